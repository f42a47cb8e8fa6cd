//! Going on with a run in another process: the log is mended, folded and checked, and the loop continues where it was cut off.

use crate::{
    agent::Unfinished,
    attention::Attention,
    config::RunConfig,
    context::INSTRUCTIONS,
    conversation::{Conversation, ConversationError},
    model::{Model, ModelError},
    recorder::{Parts, Place, Recorder, RecorderError},
    session::{Session, Surroundings, VERSION},
    workspace::{Fingerprint, UnusableWorkspace, enter},
};
use std::collections::BTreeMap;
use tracegate_core::{
    event::Event,
    fact::{
        Data as _, Edge, Fact, Failure, SpanKind, SpanRef,
        gate::{PolicyGranted, ValidationReviewFinished, ValidationRuling},
        log::LogRecovered,
        model::{ModelCompleteFinished, ReplyKind},
        run::{AgentStepFinished, AgentStepStarted, Limits, RunStarted, SegmentStarted, StatusChanged},
        tool::{Observation, ObservationKind, Phase, ToolExecuteFinished},
        user::{MessageKind, UserMessage, UserQuestion},
    },
    ids::{Digest, QuestionId, Timestamp},
    state::{RunState, Violation},
    stop::{Status, StopReason},
};
use tracegate_store::{ArtifactError, LogError, LogWriter, Recovery, RunDir, StoreError};

/// A run cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// It is over, and nothing can be added to it.
    #[error("the run ended as {0}: there is nothing to go on with")]
    Over(StopReason),
    /// It used up its steps and no more were granted.
    #[error("the run used up its {0} steps")]
    Exhausted(u32),
    /// It waits for an answer.
    #[error("the run waits for an answer to {0}")]
    Waiting(QuestionId),
    /// The question is not open.
    #[error("question {0} is not open: it was answered already, or never asked")]
    NotOpen(QuestionId),
    /// The policy is another one than the run was started with.
    #[error("the policy has changed: its digest is `{is}`, the run was started with `{was}`")]
    PolicyChanged {
        /// Then.
        was: Digest,
        /// Now.
        is: Digest,
    },
    /// The log does not begin with `run.started`.
    #[error("the log has no beginning")]
    NoBeginning,
    /// The log breaks a rule; a defect, or an edited log.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The conversation cannot be rebuilt as it was.
    #[error(transparent)]
    Conversation(#[from] ConversationError),
    /// The reply that was being acted on cannot be read back.
    #[error("the last reply cannot be read back: {0}")]
    Reply(ModelError),
    /// The workspace cannot be used.
    #[error(transparent)]
    Workspace(#[from] UnusableWorkspace),
    /// The run cannot be recorded.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
}

impl From<LogError> for ResumeError {
    fn from(error: LogError) -> Self {
        Self::Recorder(error.into())
    }
}

impl From<StoreError> for ResumeError {
    fn from(error: StoreError) -> Self {
        Self::Recorder(error.into())
    }
}

impl From<ArtifactError> for ResumeError {
    fn from(error: ArtifactError) -> Self {
        Self::Recorder(error.into())
    }
}

/// What may differ from how the run was started.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// A new step limit.
    pub max_steps: Option<u32>,
    /// An answer to an open question.
    pub answer: Option<(QuestionId, String)>,
    /// Whether a changed policy is accepted; that it was is recorded.
    pub accept_policy: bool,
}

/// Where a cut-off run stands: what the loop has to finish before it takes its next turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Between two steps.
    BetweenSteps,
    /// In a step whose request has no reply yet: the step begins again.
    Unanswered,
    /// In a step whose reply is recorded: its remaining actions are done, its answer is judged.
    Replied {
        /// The reply verbatim.
        raw: String,
        /// The first action that it asked for.
        first: u64,
    },
    /// After the step in which the agent gave its answer.
    Answered,
    /// After a ruling of the validation gate that was not carried out yet.
    Judged(ValidationRuling),
}

impl Session {
    /// Goes on with the run in `dir`.
    ///
    /// Spans that a dead process left open are closed as `process_killed` with the time of its last event. An action that had begun and not
    /// ended becomes an observation with outcome *unknown*; it is never run again. A changed workspace is said to the model.
    ///
    /// # Errors
    /// As [`ResumeError`] lists; up to a refusal nothing is written but the mended end of the log.
    pub fn resume(
        around: Surroundings<'_>,
        dir: RunDir,
        config: &RunConfig,
        changes: &Changes,
        model: &dyn Model,
    ) -> Result<Self, ResumeError> {
        let Surroundings {
            store,
            disk,
            redactor,
            world,
            sinks,
            live,
        } = around;
        let (log, events, recovery) = LogWriter::resume(&dir, disk, store.artifacts(), world.pid())?;
        let state = RunState::fold(&events)?;
        let (open, died, was) = (state.open_actions.clone(), state.ts, state.status);
        let started = events
            .first()
            .and_then(|event| RunStarted::of(&event.fact))
            .ok_or(ResumeError::NoBeginning)?;
        permit(&state, (&events, started), config, changes)?;
        let conversation = Conversation::recall(&events, store.artifacts(), INSTRUCTIONS)?;
        let standing = standing(&events, store.artifacts())?;
        let (root, fingerprints, observed) = enter(&config.workspace, &redactor)?;
        let mut attention = Attention::default();
        events.iter().for_each(|event| attention.apply(event));
        let (pid, trace, durability) = (world.pid(), started.trace_id, started.settings.durability);
        let artifacts = store.artifacts().clone();
        let parts = Parts {
            dir,
            log,
            artifacts,
            redactor,
            world,
            sinks,
            live,
            trace,
            durability,
        };
        let recorder = Recorder::new(parts, state, attention);
        let settings = &started.settings;
        let mut session = Self::assemble(
            recorder,
            root,
            conversation,
            config,
            settings,
            fingerprints,
            observed,
        );
        session.claim = last_claim(&events, &session)?;
        session.reopen(&events, &recovery, changes, pid, died, config)?;
        session.note_workspace(&events)?;
        crate::tools::settle(&mut session, &events, &open, changes.answer.as_ref())?;
        session.unfinished = match standing {
            Standing::Replied { raw, first } => {
                let reply = model.recall(&raw).map_err(ResumeError::Reply)?;
                Unfinished::Reply { reply, first }
            }
            Standing::Answered => Unfinished::Answer,
            // A run that had already said how it ended was reopened: what was ruled before certifies nothing now.
            Standing::Judged(_) if was != Status::Running => Unfinished::Answer,
            Standing::Judged(ruling) => Unfinished::Ruling(ruling),
            Standing::Unanswered => Unfinished::Step,
            Standing::BetweenSteps => Unfinished::Nothing,
        };
        Ok(session)
    }

    /// Writes what a new segment begins with: the mended end, closed spans, the answer, the status.
    fn reopen(
        &mut self,
        events: &[Event],
        recovery: &Recovery,
        changes: &Changes,
        pid: u32,
        died: Timestamp,
        config: &RunConfig,
    ) -> Result<(), RecorderError> {
        if let Recovery::Quarantined { offset, bytes, file } = recovery {
            let recovered = LogRecovered {
                offset: *offset,
                torn_bytes: *bytes,
                quarantine: file.clone(),
            };
            self.recorder.record(Place::default(), recovered)?;
        }
        self.recorder.heal(
            &Failure::new("process_killed", "the process ended before the operation did"),
            died,
        )?;
        if let Some((question, text)) = &changes.answer {
            let content = self.recorder.payload(text)?;
            let message = UserMessage {
                kind: MessageKind::Answer,
                content,
                question: Some(*question),
            };
            self.recorder.record(Place::default(), message)?;
        }
        if self.state().status != Status::Running {
            self.recorder.record(
                Place::default(),
                StatusChanged {
                    status: Status::Running,
                    stop_reason: None,
                },
            )?;
        }
        let before = events
            .iter()
            .rev()
            .find(|event| event.fact.edge() == Some((SpanKind::Segment, Edge::Started)));
        let resumed_from = before.and_then(|event| event.span).map(|span_id| SpanRef {
            span_id,
            relation: "resumed_from".to_owned(),
        });
        let limits = changes
            .max_steps
            .zip(self.state().limits)
            .map(|(max_steps, limits)| Limits { max_steps, ..limits });
        let policy = (changes.accept_policy && changed_policy(events, config)).then(|| config.policy.clone());
        let segment = SegmentStarted {
            pid,
            version: VERSION.to_owned(),
            resumed_from,
            limits,
            policy,
        };
        self.begin_segment(segment)?;
        self.catch_up(events)?;
        self.recorder.sync()?;
        self.write_status(Status::Running, None, None)
    }

    /// Records grants and task of a run that died before it had.
    fn catch_up(&mut self, events: &[Event]) -> Result<(), RecorderError> {
        let Some(started) = events.first().and_then(|event| RunStarted::of(&event.fact)) else {
            return Ok(());
        };
        let told = |message: &UserMessage| message.kind == MessageKind::Task;
        if events
            .iter()
            .filter_map(|event| UserMessage::of(&event.fact))
            .any(told)
        {
            return Ok(());
        }
        let granted: Vec<&PolicyGranted> = events
            .iter()
            .filter_map(|event| PolicyGranted::of(&event.fact))
            .collect();
        let missing: Vec<PolicyGranted> = started
            .grants
            .iter()
            .filter(|grant| !granted.contains(grant))
            .cloned()
            .collect();
        let goal = self.recorder.artifacts().text(&started.goal)?;
        self.set_out(&missing, &goal)?;
        self.conversation.open(INSTRUCTIONS, goal);
        Ok(())
    }

    /// Tells the model what changed in the workspace while nobody was at work; what the log's own actions did is no news.
    fn note_workspace(&mut self, events: &[Event]) -> Result<(), RecorderError> {
        if self
            .state()
            .workspace
            .is_none_or(|before| before == self.observed.state_since(None).digest)
        {
            return Ok(());
        }
        let dir = self.recorder.dir();
        let before = dir.read_json::<Fingerprint>(&dir.workspace()).ok().flatten();
        let done: BTreeMap<&str, Option<Digest>> = events
            .iter()
            .filter_map(|event| ToolExecuteFinished::of(&event.fact))
            .flat_map(|done| &done.side_effects)
            .map(|effect| (effect.relative_path.as_str(), effect.after))
            .collect();
        let paths = match &before {
            Some(before) => {
                let mut changed = self.observed.changes_since(before);
                changed.retain(|effect| done.get(effect.relative_path.as_str()) != Some(&effect.after));
                if changed.is_empty() {
                    return Ok(());
                }
                let paths: Vec<String> = changed
                    .into_iter()
                    .take(20)
                    .map(|effect| effect.relative_path)
                    .collect();
                paths.join(", ")
            }
            None => "which files is not known".to_owned(),
        };
        let text = format!(
            "While the run was stopped the workspace changed: {paths}. Look again before you rely on it."
        );
        let text = self.recorder.redactor().scrub_text(text).into_inner();
        let observation = Observation {
            kind: ObservationKind::External,
            phase: Phase::Notice,
            content: Some(self.recorder.payload(&text)?),
            outcome: None,
            workspace: Some(self.observed.state_since(before.as_ref())),
        };
        self.recorder.record(Place::default(), observation)?;
        self.conversation.notice(text);
        Ok(())
    }
}

/// Says why a run must not go on, if it must not.
fn permit(
    state: &RunState,
    (events, started): (&[Event], &RunStarted),
    config: &RunConfig,
    changes: &Changes,
) -> Result<(), ResumeError> {
    // A run that was cut off between its last two events is only finished.
    if let Some(stop) = state.stop_reason.filter(|_| state.finished)
        && matches!(
            stop,
            StopReason::Completed | StopReason::ValidationFailed | StopReason::GateFailed
        )
    {
        return Err(ResumeError::Over(stop));
    }
    if let Some((question, _)) = &changes.answer {
        if !state.open_questions.contains(question) {
            return Err(ResumeError::NotOpen(*question));
        }
    } else if let Some(question) = state.open_questions.first() {
        return Err(ResumeError::Waiting(*question));
    }
    let limit = changes
        .max_steps
        .or(state.limits.map(|limits| limits.max_steps))
        .unwrap_or(u32::MAX);
    if state.stop_reason == Some(StopReason::MaxSteps) && state.step.0 >= limit {
        return Err(ResumeError::Exhausted(limit));
    }
    let (was, is) = (policy_in_force(events, started), config.policy.digest);
    if was != is && !changes.accept_policy {
        return Err(ResumeError::PolicyChanged { was, is });
    }
    Ok(())
}

fn changed_policy(events: &[Event], config: &RunConfig) -> bool {
    let started = events.first().and_then(|event| RunStarted::of(&event.fact));
    started.is_some_and(|started| policy_in_force(events, started) != config.policy.digest)
}

/// Returns the policy that was accepted last: the one that a later segment went on with, else the one that the run began with.
fn policy_in_force(events: &[Event], started: &RunStarted) -> Digest {
    events
        .iter()
        .rev()
        .filter_map(|event| SegmentStarted::of(&event.fact))
        .find_map(|segment| segment.policy.as_ref())
        .unwrap_or(&started.policy)
        .digest
}

/// Reads from the end of the log how far the last step had come.
fn standing(events: &[Event], artifacts: &tracegate_store::Artifacts) -> Result<Standing, ResumeError> {
    let actions = |before: usize| {
        events
            .iter()
            .take(before)
            .filter(|event| matches!(event.fact, Fact::Action(_)))
            .count() as u64
    };
    let mut told = false;
    for (at, event) in events.iter().enumerate().rev() {
        told |=
            UserMessage::of(&event.fact).is_some_and(|message| message.kind == MessageKind::RetryFeedback);
        if let Some(judged) = ValidationReviewFinished::of(&event.fact) {
            // An agent that was told why it is sent back has only to take its next turn.
            return Ok(if told {
                Standing::BetweenSteps
            } else {
                Standing::Judged(judged.ruling)
            });
        }
        if let Some(reply) = ModelCompleteFinished::of(&event.fact) {
            // A failed request has no reply: the step begins again, which is what a retry is.
            return Ok(match reply.reply_kind {
                ReplyKind::None => Standing::Unanswered,
                ReplyKind::ToolCalls | ReplyKind::Final => Standing::Replied {
                    raw: artifacts.text(&reply.reply)?,
                    first: actions(at) + 1,
                },
            });
        }
        if AgentStepStarted::of(&event.fact).is_some() {
            // A step that was begun again behind its reply goes on behind that reply.
            let replied = last_reply(events, at).and_then(|(reply, _)| events.get(reply));
            if replied.is_none_or(|reply| reply.step != event.step) {
                return Ok(Standing::Unanswered);
            }
        }
        // A step that was closed on behalf of a dead process is not over; neither is one that stopped to ask in the middle.
        if let Some(step) = AgentStepFinished::of(&event.fact)
            && let Some((reply_at, reply)) = last_reply(events, at)
        {
            let first = actions(reply_at) + 1;
            if reply.reply_kind == ReplyKind::Final {
                return Ok(Standing::Answered);
            }
            if actions(events.len()) + 1 < first + u64::from(step.actions) {
                return Ok(Standing::Replied {
                    raw: artifacts.text(&reply.reply)?,
                    first,
                });
            }
            return Ok(Standing::BetweenSteps);
        }
    }
    Ok(Standing::BetweenSteps)
}

fn last_reply(events: &[Event], before: usize) -> Option<(usize, &ModelCompleteFinished)> {
    let replies = events.iter().enumerate().take(before);
    replies
        .rev()
        .find_map(|(at, event)| Some((at, ModelCompleteFinished::of(&event.fact)?)))
}

fn last_claim(events: &[Event], session: &Session) -> Result<Option<String>, ResumeError> {
    let reply = events
        .iter()
        .rev()
        .find_map(|event| ModelCompleteFinished::of(&event.fact));
    let claim = reply.filter(|reply| reply.reply_kind == ReplyKind::Final);
    Ok(claim
        .map(|reply| session.recorder.artifacts().text(&reply.text))
        .transpose()?)
}

/// Returns the questions of a log that nobody has answered, oldest first, with their texts.
#[must_use]
pub fn open_questions(events: &[Event]) -> Vec<(QuestionId, String)> {
    let answered: Vec<QuestionId> = events
        .iter()
        .filter_map(|event| UserMessage::of(&event.fact)?.question)
        .collect();
    let asked = events.iter().filter_map(|event| UserQuestion::of(&event.fact));
    asked
        .filter(|question| !answered.contains(&question.question))
        .map(|question| (question.question, question.text.preview()))
        .collect()
}
