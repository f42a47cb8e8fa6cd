//! Going on with a run in another process: the log is mended, folded and checked, and the loop continues where it was cut off.

use crate::{
    agent::Unfinished,
    asking::Answered,
    config::RunConfig,
    context::INSTRUCTIONS,
    conversation::{Conversation, ConversationError},
    model::{Model, ModelError},
    past::{Asked, Past, Standing},
    recorder::{Parts, Place, Recorder, RecorderError},
    session::{Session, Surroundings, VERSION},
    workspace::{Fingerprint, UnusableWorkspace, enter},
};
use std::collections::BTreeMap;
use tracegate_core::{
    fact::{
        SpanRef,
        gate::PolicyGranted,
        run::{Limits, RunStarted, SegmentStarted, StatusChanged},
        tool::{Observation, ObservationKind, Phase},
        user::{Permission, QuestionKind},
    },
    ids::{Digest, QuestionId, SpanId, Timestamp},
    payload::Payload,
    state::Violation,
    stop::{Status, StopReason},
};
use tracegate_store::{ArtifactError, LogError, LogWriter, Recovery, RunDir, StoreError};

/// A run cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// It is over, and nothing can be added to it.
    #[error("the run ended as {0}: there is nothing to go on with")]
    Over(StopReason),
    /// It reached a limit and no higher one was given.
    #[error("the run reached its limit of {limit} {which}")]
    Exhausted {
        /// Which, as in `limit.reached`.
        which: &'static str,
        /// The limit.
        limit: u64,
    },
    /// It waits for an answer.
    #[error("the run waits for an answer to {0}")]
    Waiting(QuestionId),
    /// The question is not open.
    #[error("question {0} is not open: it was answered already, or never asked")]
    NotOpen(QuestionId),
    /// The answer is not of the kind that the question asks for.
    #[error("question {question} {wants}")]
    WrongKind {
        /// The question.
        question: QuestionId,
        /// What it asks for.
        wants: &'static str,
    },
    /// `task.json` names another goal than the run was started with.
    #[error("the task has changed: `task.json` says another {what} than the log")]
    TaskChanged {
        /// What is different.
        what: &'static str,
    },
    /// `task.json` names no goal, or cannot be read.
    #[error("`task.json` {0}")]
    NoTask(String),
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
    /// New limits; those that are none stay as they were.
    pub limits: NewLimits,
    /// An answer to an open question.
    pub answer: Option<(QuestionId, Answer)>,
    /// Whether a changed policy or task is accepted; that it was is recorded.
    pub accept: bool,
}

/// Limits to go on with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NewLimits {
    /// Steps.
    pub max_steps: Option<u32>,
    /// Tokens.
    pub max_tokens: Option<u64>,
    /// Working time in milliseconds.
    pub max_ms: Option<u64>,
    /// Cost in millionths of a US dollar.
    pub max_cost: Option<u64>,
}

impl NewLimits {
    /// Returns `limits` with what is new in their place.
    #[must_use]
    pub fn over(self, limits: Limits) -> Limits {
        Limits {
            max_steps: self.max_steps.unwrap_or(limits.max_steps),
            max_tokens: self.max_tokens.or(limits.max_tokens),
            max_ms: self.max_ms.or(limits.max_ms),
            max_cost: self.max_cost.or(limits.max_cost),
        }
    }
}

/// What a user says to an open question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Words.
    Text(String),
    /// Whether the action may happen.
    Permission(Permission),
}

impl Answer {
    /// Returns the answer as it stands in the log.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Permission(permission) => permission.as_str(),
        }
    }

    const fn kind(&self) -> QuestionKind {
        match self {
            Self::Text(_) => QuestionKind::Text,
            Self::Permission(_) => QuestionKind::Permission,
        }
    }
}

/// What a new segment is told of the one before it.
struct Before {
    recovery: Recovery,
    died: Timestamp,
    last_segment: Option<SpanId>,
    told: bool,
    granted: Vec<PolicyGranted>,
    started: RunStarted,
    limits: Option<Limits>,
    /// Set if it differs from the one in force and was accepted.
    goal: Option<String>,
    policy_changed: bool,
    /// The question that is answered now.
    asked: Option<Asked>,
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
        let artifacts = store.artifacts().clone();
        let mut past = Past::new(&artifacts, &redactor);
        let (log, recovery) =
            LogWriter::resume(&dir, disk, &artifacts, world.pid(), |event| past.push(event))?;
        let started = past.started()?.clone();
        let goal = permit(&past, &dir, config, changes)?;
        let text = |payload: &Payload| artifacts.text(payload);
        let standing = past.standing();
        let claim = past.claim().map(text).transpose()?;
        let asked = changes.answer.as_ref().and_then(|(question, _)| {
            let mut questions = past.questions.iter();
            questions.find(|asked| asked.id == *question).cloned()
        });
        let before = Before {
            recovery,
            died: past.state.ts,
            last_segment: past.last_segment,
            told: past.told,
            granted: past.granted.clone(),
            limits: past
                .state
                .limits
                .map(|limits| changes.limits.over(limits))
                .filter(|new| Some(*new) != past.state.limits),
            goal,
            policy_changed: past.policy_in_force() != Some(config.policy.digest),
            started,
            asked,
        };
        let (root, fingerprints, observed) = enter(&config.workspace, &redactor)?;
        let (was, open) = (past.state.status, past.state.open_actions.clone());
        let (questions, done) = (past.questions.clone(), std::mem::take(&mut past.done));
        let (turn, state) = (std::mem::take(&mut past.turn), past.state.clone());
        let attention = std::mem::take(&mut past.attention);
        let conversation: Conversation = past.into_conversation()?;
        let (pid, settings) = (world.pid(), before.started.settings.clone());
        let parts = Parts {
            dir,
            log,
            artifacts: artifacts.clone(),
            redactor,
            world,
            sinks,
            live,
            trace: before.started.trace_id,
            durability: settings.durability,
        };
        let recorder = Recorder::new(parts, state, attention);
        let mut session = Self::assemble(
            recorder,
            root,
            conversation,
            config,
            &settings,
            fingerprints,
            observed,
        );
        session.resumed = true;
        session.claim = claim;
        session.reopen(&before, changes, pid, config)?;
        session.note_workspace(&done)?;
        crate::tools::settle(&mut session, &turn, &open)?;
        session.take_up(questions, changes)?;
        session.unfinished = match standing {
            Standing::Replied { raw, first } => {
                let raw = artifacts.text(&raw)?;
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

    /// Takes up the questions of the turn at work with what the user said to them.
    fn take_up(&mut self, questions: Vec<Asked>, changes: &Changes) -> Result<(), ResumeError> {
        for asked in questions {
            let now = changes
                .answer
                .as_ref()
                .filter(|(question, _)| *question == asked.id);
            let answer = match (now, &asked.answer) {
                (Some((_, answer)), _) => Some(
                    self.recorder
                        .redactor()
                        .scrub_text(answer.as_str().to_owned())
                        .into_inner(),
                ),
                (None, Some(given)) => Some(self.recorder.artifacts().text(given)?),
                (None, None) => None,
            };
            self.suspended |= asked.suspended || now.is_some();
            self.asked.extend(asked.action);
            if let (Some(action), Some(answer)) = (asked.action, answer) {
                let question = self.recorder.artifacts().text(&asked.question.text)?;
                let kind = asked.question.kind;
                self.answered.insert(
                    action,
                    Answered {
                        kind,
                        question,
                        answer,
                    },
                );
            }
        }
        Ok(())
    }

    /// Writes what a new segment begins with: the mended end, closed spans, the answer, the status.
    fn reopen(
        &mut self,
        before: &Before,
        changes: &Changes,
        pid: u32,
        config: &RunConfig,
    ) -> Result<(), RecorderError> {
        self.recorder.take_over(&before.recovery, before.died)?;
        if let (Some((_, answer)), Some(asked)) = (&changes.answer, &before.asked) {
            let question = self.recorder.artifacts().text(&asked.question.text)?;
            self.hear(asked.id, &question, answer.as_str())?;
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
        let resumed_from = before.last_segment.map(|span_id| SpanRef {
            span_id,
            relation: "resumed_from".to_owned(),
        });
        let goal = before
            .goal
            .as_deref()
            .map(|goal| self.recorder.payload(goal))
            .transpose()?;
        let segment = SegmentStarted {
            pid,
            version: VERSION.to_owned(),
            resumed_from,
            limits: before.limits,
            policy: before.policy_changed.then(|| config.policy.clone()),
            goal,
        };
        self.begin_segment(segment)?;
        self.catch_up(before)?;
        if let Some(goal) = &before.goal {
            self.follow_up(goal)?;
        }
        self.recorder.sync()?;
        self.write_status(Status::Running, None, None)
    }

    /// Records grants and task of a run that died before it had.
    fn catch_up(&mut self, before: &Before) -> Result<(), RecorderError> {
        if before.told {
            return Ok(());
        }
        let grants = before.started.grants.iter();
        let missing: Vec<PolicyGranted> = grants
            .filter(|grant| !before.granted.contains(grant))
            .cloned()
            .collect();
        let goal = self.recorder.artifacts().text(&before.started.goal)?;
        self.set_out(&missing, &goal)?;
        self.conversation.open(INSTRUCTIONS, goal);
        Ok(())
    }

    /// Tells the model what changed in the workspace while nobody was at work; what the log's own actions did is no news.
    fn note_workspace(&mut self, done: &BTreeMap<String, Option<Digest>>) -> Result<(), RecorderError> {
        if self
            .state()
            .workspace
            .is_none_or(|before| before == self.observed.digest())
        {
            return Ok(());
        }
        let dir = self.recorder.dir();
        let before = dir.read_json::<Fingerprint>(&dir.workspace()).ok().flatten();
        let paths = match &before {
            Some(before) => {
                let mut changed = self.observed.changes_since(before);
                changed.retain(|effect| done.get(&effect.relative_path) != Some(&effect.after));
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

/// Says why a run must not go on, if it must not. Returns the goal of `task.json` if that is another one and was accepted.
fn permit(
    past: &Past<'_>,
    dir: &RunDir,
    config: &RunConfig,
    changes: &Changes,
) -> Result<Option<String>, ResumeError> {
    let state = &past.state;
    // What a salvage marked as lost may hold an action: better said now than at the first event that is refused.
    state.check_whole()?;
    // A run that was cut off between its last two events is only finished.
    if let Some(stop) = state.stop_reason.filter(|_| state.finished)
        && matches!(
            stop,
            StopReason::Completed | StopReason::ValidationFailed | StopReason::GateFailed
        )
    {
        return Err(ResumeError::Over(stop));
    }
    if let Some((question, answer)) = &changes.answer {
        let asked = past.questions.iter().find(|asked| asked.id == *question);
        let Some(asked) = asked.filter(|_| state.open_questions.contains(question)) else {
            return Err(ResumeError::NotOpen(*question));
        };
        if asked.question.kind != answer.kind() {
            let wants = match asked.question.kind {
                QuestionKind::Permission => {
                    "asks for a permission: it is answered by allow or deny, not by words"
                }
                QuestionKind::Text => "asks for words, not for a permission",
            };
            let question = *question;
            return Err(ResumeError::WrongKind { question, wants });
        }
    } else if let Some(question) = state.open_questions.first() {
        return Err(ResumeError::Waiting(*question));
    }
    if let Some(limits) = state.limits.map(|limits| changes.limits.over(limits))
        && matches!(
            state.stop_reason,
            Some(StopReason::MaxSteps | StopReason::BudgetExhausted)
        )
        && let Some(reached) = crate::limits::reached(state, &limits)
    {
        let (which, limit) = (reached.which(), reached.limit());
        return Err(ResumeError::Exhausted { which, limit });
    }
    let (was, is) = (past.policy_in_force(), config.policy.digest);
    if let Some(was) = was.filter(|was| *was != is && !changes.accept) {
        return Err(ResumeError::PolicyChanged { was, is });
    }
    changed_goal(past, dir, changes.accept)
}

/// Compares `task.json` with what the log says of the task: the log is the truth, and a person who edited the file meant something.
fn changed_goal(past: &Past<'_>, dir: &RunDir, accept: bool) -> Result<Option<String>, ResumeError> {
    let read = dir.read_json::<RunStarted>(&dir.task());
    let Some(written) = read.map_err(|error| ResumeError::NoTask(format!("is no task: {error}")))? else {
        return Ok(None);
    };
    if written.goal.preview().trim().is_empty() {
        return Err(ResumeError::NoTask("names no goal".to_owned()));
    }
    let started = past.started()?;
    let same_setup = written.limits == started.limits
        && written.settings == started.settings
        && written.workspace == started.workspace
        && written.policy == started.policy
        && written.agent == started.agent
        && written.model == started.model;
    if !same_setup {
        // These are not taken from the file even if they are accepted: options of `resume` change them, and say so.
        return Err(ResumeError::TaskChanged { what: "setup" });
    }
    if past.goal_in_force() == Some(&written.goal) || written.goal == started.goal {
        return Ok(None);
    }
    if !accept {
        return Err(ResumeError::TaskChanged { what: "goal" });
    }
    // The text of a long goal is only what the file shows of it: nobody edits an artifact.
    Ok(Some(written.goal.preview()))
}
