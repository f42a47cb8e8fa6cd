//! What a log says so far: the fold of its events. One function, [`RunState::apply`], serves the live run, resume and readers.

mod lost;
mod violation;

pub use lost::Lost;
pub use violation::Violation;

use crate::{
    event::Event,
    fact::{
        Data as _, Edge, Fact, SpanKind,
        gate::{ValidationRuling, Verb},
        log::LogGap,
        model::Usage,
        run::{Limits, RunFinished, SegmentFinished, Settings, StatusChanged},
        tool::{ObservationKind, Outcome, Phase, ToolExecuteFinished},
        user::MessageKind,
    },
    goal::Goal,
    ids::{ActionId, Digest, QuestionId, SegmentNo, Seq, SpanId, StepNo, Timestamp},
    stop::{Status, StopReason},
    validation::{self, CommandRun, Ended, Evidence, TestRun, Verdict},
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A span that has begun and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenSpan {
    /// Its kind, as in event types.
    pub kind: String,
    /// The event that began it.
    pub started: Seq,
    /// When.
    pub ts: Timestamp,
    /// Its parent.
    pub parent: Option<SpanId>,
    /// The action it is about.
    pub action: Option<ActionId>,
}

/// How far an action has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// The model asked for it.
    Asked,
    /// The permission gate let it pass.
    Permitted,
    /// The permission gate did not.
    Refused,
    /// It is being done: after a crash its outcome is unknown.
    Begun,
    /// It is over, but what came back is not yet observed.
    Done,
}

/// The fold of a log; its size does not grow with the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// The last event.
    pub seq: Seq,
    /// When it was.
    pub ts: Timestamp,
    /// When the run began.
    pub began: Timestamp,
    /// The segment that wrote the last event.
    pub writer: SegmentNo,
    /// How long its process had been at work then, in nanoseconds.
    pub worked_ns: u64,
    /// How long the segments before it were, in nanoseconds.
    pub worked_before_ns: u64,
    /// The segment at work, 0 before the first.
    pub segment: SegmentNo,
    /// Span of the first segment, the root of the trace.
    pub root: Option<SpanId>,
    /// The last step begun, 0 before the first.
    pub step: StepNo,
    /// What the goal asks for, as far as gates and context need it.
    pub goal: Goal,
    /// Where the run ends on its own.
    pub limits: Option<Limits>,
    /// How it was set up.
    pub settings: Option<Settings>,
    /// Its status.
    pub status: Status,
    /// Why it stopped, if it did.
    pub stop_reason: Option<StopReason>,
    /// Whether `run.finished` stands in the log.
    pub finished: bool,
    /// Spans begun and not ended.
    pub open_spans: BTreeMap<SpanId, OpenSpan>,
    /// How many actions were asked for: their ids are contiguous.
    pub actions: u64,
    /// Those without an observed result.
    pub open_actions: BTreeMap<ActionId, Progress>,
    /// Command lines of the actions being done.
    pub commands: BTreeMap<ActionId, String>,
    /// Whether something was observed since the last action.
    pub observed: bool,
    /// Questions without an answer.
    pub open_questions: BTreeSet<QuestionId>,
    /// How many questions were asked: their ids are contiguous.
    pub questions: u64,
    /// Requests to the model.
    pub model_calls: u64,
    /// Tokens so far.
    pub usage: Usage,
    /// What test runs and changes there were.
    pub evidence: Evidence,
    /// The validation gate's last verdict.
    pub verdict: Option<Verdict>,
    /// What followed from it, as long as the agent has done nothing since.
    pub ruling: Option<ValidationRuling>,
    /// How often the agent was sent back.
    pub pushed_back: u32,
    /// The effect refused last, and how often running.
    pub refusal: Option<(String, u32)>,
    /// Failures of the runtime itself, running.
    pub internal_failures: u32,
    /// The workspace when it was last observed.
    pub workspace: Option<Digest>,
    /// What the log has lost, if it was salvaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
}

impl Default for RunState {
    fn default() -> Self {
        Self {
            seq: Seq(0),
            ts: Timestamp(0),
            began: Timestamp(0),
            writer: SegmentNo(0),
            worked_ns: 0,
            worked_before_ns: 0,
            segment: SegmentNo(0),
            root: None,
            step: StepNo(0),
            goal: Goal::read(""),
            limits: None,
            settings: None,
            status: Status::Running,
            stop_reason: None,
            finished: false,
            open_spans: BTreeMap::new(),
            actions: 0,
            open_actions: BTreeMap::new(),
            commands: BTreeMap::new(),
            observed: false,
            open_questions: BTreeSet::new(),
            questions: 0,
            model_calls: 0,
            usage: Usage::default(),
            evidence: Evidence::new(&Goal::read("")),
            verdict: None,
            ruling: None,
            pushed_back: 0,
            refusal: None,
            internal_failures: 0,
            workspace: None,
            lost: None,
        }
    }
}

impl RunState {
    /// Folds a whole log.
    ///
    /// # Errors
    /// The first [`Violation`].
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Self, Violation> {
        let mut state = Self::default();
        for event in events {
            state.apply(event)?;
        }
        Ok(state)
    }

    /// Takes in the next event, or changes nothing.
    ///
    /// # Errors
    /// The [`Violation`] that the event would be.
    pub fn apply(&mut self, event: &Event) -> Result<(), Violation> {
        self.check(event)?;
        self.seq = event.through();
        self.ts = event.ts;
        if event.segment != self.writer {
            self.worked_before_ns = self.worked_before_ns.saturating_add(self.worked_ns);
            self.writer = event.segment;
        }
        self.worked_ns = event.mono_ns;
        self.meet(event);
        self.apply_edge(event);
        self.apply_fact(event);
        Ok(())
    }

    /// Returns how long processes have worked on the run so far, in milliseconds; while it waited for its user, nobody did.
    #[must_use]
    pub const fn elapsed_ms(&self) -> u64 {
        self.worked_before_ns.saturating_add(self.worked_ns) / 1_000_000
    }

    /// Returns what the model's tokens cost so far, in millionths of a US dollar, if anybody said what they cost.
    #[must_use]
    pub fn cost(&self) -> Option<u64> {
        let prices = self.settings.as_ref()?.prices?;
        Some(prices.cost(self.usage))
    }

    /// Tells whether an event may follow.
    ///
    /// # Errors
    /// The [`Violation`] that it would be.
    pub fn check(&self, event: &Event) -> Result<(), Violation> {
        let seq = event.seq;
        let name = || event.fact.name().to_owned();
        if seq.0 != self.seq.0 + 1 {
            return Err(Violation::Seq {
                found: seq,
                last: self.seq,
            });
        }
        if let Some(gap) = LogGap::of(&event.fact) {
            return gap.is_sound(seq).then_some(()).ok_or(Violation::Gap { seq });
        }
        if (seq.0 == 1) != matches!(event.fact, Fact::RunStarted(_)) {
            return Err(Violation::Beginning { name: name(), seq });
        }
        let notes = follows_end(&event.fact) && !matches!(event.fact, Fact::StatusChanged(_));
        if !notes && !self.may_have_lost(seq) {
            self.check_whole()?;
        }
        // The end of a span can be lost although the end of the run is not: then it is closed when the run is reopened.
        let heals = self.lost.is_some() && matches!(event.fact, Fact::SpanHealed(..));
        if self.finished && !heals && !self.may_have_lost(seq) && !follows_end(&event.fact) {
            return Err(Violation::AfterEnd { name: name(), seq });
        }
        self.check_edge(event)?;
        self.check_action(event)?;
        if ends_as(&event.fact) == Some(Status::Completed)
            && self.ruling != Some(ValidationRuling::Complete)
            && !self.may_have_lost(seq)
        {
            return Err(Violation::Uncertified { seq });
        }
        if let Fact::UserMessage(message) = &event.fact
            && message.kind == MessageKind::Answer
            && !message
                .question
                .is_some_and(|question| self.open_questions.contains(&question))
            && !self.may_have_lost(seq)
        {
            return Err(Violation::Answer { seq });
        }
        Ok(())
    }

    fn check_edge(&self, event: &Event) -> Result<(), Violation> {
        let seq = event.seq;
        match event.fact.edge() {
            Some((kind, Edge::Started)) => {
                let fits = match (kind, event.parent) {
                    (SpanKind::Segment, None) => self.root.is_none(),
                    // A later segment hangs under the first one, which has ended.
                    (SpanKind::Segment, Some(parent)) => self.root == Some(parent),
                    (_, None) => false,
                    (_, Some(parent)) => self.open_spans.contains_key(&parent),
                };
                if (fits || self.may_have_lost(seq))
                    && event
                        .span
                        .is_some_and(|span| !self.open_spans.contains_key(&span))
                {
                    return Ok(());
                }
                let parent = event
                    .parent
                    .map_or_else(|| "nothing".to_owned(), |span| span.to_string());
                Err(Violation::Parent {
                    kind: kind.as_str(),
                    seq,
                    parent,
                })
            }
            Some((kind, Edge::Finished)) => {
                let ends = event.span.is_some_and(|span| {
                    self.open_spans
                        .get(&span)
                        .map_or(self.may_have_lost(seq), |open| {
                            open.kind == kind.as_str() && open.action == event.action
                        })
                        && self
                            .open_spans
                            .values()
                            .all(|open| open.parent != Some(span) || self.may_have_ended(open, seq))
                });
                ends.then_some(()).ok_or(Violation::End {
                    kind: kind.as_str(),
                    seq,
                })
            }
            None => Ok(()),
        }
    }

    fn check_action(&self, event: &Event) -> Result<(), Violation> {
        let seq = event.seq;
        if let Fact::ModelCompleteStarted(_) = event.fact
            && let Some(action) = self
                .open_actions
                .keys()
                .find(|action| !self.may_be_further(**action, seq))
        {
            return Err(Violation::Unsettled { action: *action, seq });
        }
        let Some(action) = event.action else {
            let needed = matches!(
                event.fact,
                Fact::Action(_) | Fact::PermissionReviewStarted(_) | Fact::ToolExecuteStarted(_)
            );
            let name = event.fact.name().to_owned();
            return if needed {
                Err(Violation::NoAction { name, seq })
            } else {
                Ok(())
            };
        };
        let violation = |why| {
            Err(Violation::Action {
                name: event.fact.name().to_owned(),
                seq,
                action: action.to_string(),
                why,
            })
        };
        let progress = self.open_actions.get(&action).copied();
        if let Fact::Action(_) = event.fact {
            let next = action.0 == self.actions + 1 || (action.0 > self.actions && self.may_have_lost(seq));
            if !next {
                return violation("not the next one");
            }
            if !self.observed {
                return Err(Violation::Unobserved { action, seq });
            }
            return Ok(());
        }
        if action.0 == 0 || (action.0 > self.actions && !self.may_have_lost(seq)) {
            return violation("unknown");
        }
        if action.0 > self.actions || (progress.is_some() && self.may_be_further(action, seq)) {
            return Ok(());
        }
        match (&event.fact, progress) {
            (Fact::ToolExecuteStarted(_), Some(Progress::Permitted)) => Ok(()),
            (Fact::ToolExecuteStarted(_), _) => violation("not permitted"),
            // A review that was cut off, or whose ruling was not acted on, is begun again: the policy decides anew.
            (
                Fact::PermissionReviewStarted(_),
                Some(Progress::Asked | Progress::Permitted | Progress::Refused),
            ) => Ok(()),
            (Fact::PermissionReviewStarted(_), _) => violation("not waiting for a ruling"),
            (Fact::Observation(observation), None)
                if observation.kind == ObservationKind::ToolOutput && observation.phase == Phase::After =>
            {
                violation("settled")
            }
            _ => Ok(()),
        }
    }

    fn apply_edge(&mut self, event: &Event) {
        let (Some((kind, edge)), Some(span)) = (event.fact.edge(), event.span) else {
            return;
        };
        match edge {
            Edge::Started => {
                let open = OpenSpan {
                    kind: kind.as_str().to_owned(),
                    started: event.seq,
                    ts: event.ts,
                    parent: event.parent,
                    action: event.action,
                };
                self.open_spans.insert(span, open);
            }
            Edge::Finished => {
                self.open_spans.remove(&span);
            }
        }
    }

    fn apply_fact(&mut self, event: &Event) {
        match &event.fact {
            Fact::RunStarted(run) => {
                self.began = event.ts;
                self.goal = Goal::read(&run.goal.preview());
                self.evidence = Evidence::new(&self.goal).in_workspace(&run.workspace);
                self.limits = Some(run.limits);
                self.settings = Some(run.settings.clone());
            }
            Fact::SegmentStarted(data) => {
                self.limits = data.limits.or(self.limits);
                if let Some(goal) = &data.goal {
                    self.goal = Goal::read(&goal.preview());
                    self.evidence.aim_at(&self.goal);
                }
                self.segment = event.segment;
                self.root = self.root.or(event.span);
                self.status = Status::Running;
                self.finished = false;
            }
            Fact::SegmentFinished(data) => {
                self.status = data.status;
                self.stop_reason = Some(data.stop_reason);
            }
            Fact::StatusChanged(data) => {
                self.status = data.status;
                self.stop_reason = data.stop_reason;
                if data.status == Status::Running {
                    self.finished = false;
                    // What was ruled before a run was reopened certifies nothing after it.
                    self.ruling = None;
                }
            }
            Fact::RunFinished(data) => {
                self.status = data.status;
                self.stop_reason = Some(data.stop_reason);
                self.finished = true;
                // Whoever stopped the run instead of answering has taken the question back: its action has its result.
                self.open_questions.clear();
            }
            Fact::AgentStepStarted(_) => {
                self.step = event.step.unwrap_or(self.step);
                // A ruling certifies the end that it was given at, not whatever the agent does next.
                self.ruling = None;
            }
            Fact::ModelCompleteStarted(data) => {
                self.model_calls += 1;
                self.bridge(data);
            }
            Fact::LogGap(gap) => self.lose(gap),
            Fact::ModelCompleteFinished(data) => self.usage.add(data.usage),
            Fact::Action(_) => {
                self.actions = event.action.map_or(self.actions + 1, |action| action.0);
                self.observed = false;
                self.open_actions
                    .extend(event.action.map(|action| (action, Progress::Asked)));
            }
            Fact::PermissionReviewFinished(data) => {
                let refused = data.decision == Verb::Deny;
                let progress = match data.decision {
                    Verb::Deny => Progress::Refused,
                    Verb::Allow => Progress::Permitted,
                    // The run waits for whoever may say so.
                    Verb::Ask => Progress::Asked,
                };
                self.advance(event.action, progress);
                self.refusal = refused.then(|| {
                    let effect = format!("{} {}", data.tool, data.effects.join(", "));
                    let before = self.refusal.take().filter(|(last, _)| *last == effect);
                    let times = before.map_or(0, |(_, times)| times) + 1;
                    (effect, times)
                });
            }
            Fact::ToolExecuteStarted(data) => {
                self.advance(event.action, Progress::Begun);
                if let (Some(action), Some(command)) = (event.action, &data.command) {
                    self.evidence.test_started(event.seq, command);
                    self.commands.insert(action, command.clone());
                }
            }
            Fact::ToolExecuteFinished(data) => self.apply_result(event, data),
            Fact::SpanHealed(SpanKind::ToolExecute, _) => self.advance(event.action, Progress::Done),
            Fact::Observation(observation) => {
                self.observed = true;
                let settles =
                    observation.kind == ObservationKind::ToolOutput && observation.phase == Phase::After;
                if let (true, Some(action)) = (settles, event.action) {
                    self.open_actions.remove(&action);
                }
                if let Some(workspace) = &observation.workspace {
                    self.workspace = Some(workspace.digest);
                    if !workspace.changed.is_empty() {
                        self.evidence.changed(event.seq, &workspace.changed);
                    }
                }
            }
            Fact::UserQuestion(data) => {
                self.questions = self.questions.max(data.question.0);
                self.open_questions.insert(data.question);
            }
            Fact::UserMessage(data) => {
                if let Some(question) = data.question {
                    self.open_questions.remove(&question);
                }
            }
            Fact::ValidationReviewFinished(data) => {
                self.verdict = Some(data.verdict.clone());
                self.ruling = Some(data.ruling);
                self.pushed_back += u32::from(data.ruling == ValidationRuling::PushBack);
            }
            Fact::ContextBuildStarted(_)
            | Fact::ContextBuildFinished(_)
            | Fact::AgentStepFinished(_)
            | Fact::PermissionReviewStarted(_)
            | Fact::CheckpointSaveStarted(_)
            | Fact::CheckpointSaveFinished(_)
            | Fact::ValidationReviewStarted(_)
            | Fact::SpanNoted(_)
            | Fact::Subcall(_)
            | Fact::PolicyGranted(_)
            | Fact::LimitReached(_)
            | Fact::VerificationRecorded(_)
            | Fact::ReadinessWaited(_)
            | Fact::ContextCompacted(_)
            | Fact::RedactionNoted(_)
            | Fact::ArtifactDropped(_)
            | Fact::LogRecovered(_)
            | Fact::LogScrubbed(_)
            | Fact::SpanHealed(..)
            | Fact::Unknown { .. } => {}
        }
    }

    fn apply_result(&mut self, event: &Event, data: &ToolExecuteFinished) {
        let internal = data
            .error
            .as_ref()
            .is_some_and(|error| error.kind == INTERNAL_FAILURE);
        self.internal_failures = if internal { self.internal_failures + 1 } else { 0 };
        // A run counts for the workspace as it was when the command began.
        let started = event.cause.unwrap_or(event.seq);
        let changed: Vec<String> = data
            .side_effects
            .iter()
            .map(|effect| effect.relative_path.clone())
            .collect();
        if !changed.is_empty() {
            self.evidence.changed(event.seq, &changed);
        }
        let script = event.action.and_then(|action| self.commands.remove(&action));
        let (finished, ended) = (event.seq, ended(data));
        match (script, &data.test) {
            (Some(script), Some(test)) => {
                let (command, reading) = (test.command.clone(), test.reading.clone());
                self.evidence.test_run(TestRun {
                    started,
                    finished,
                    command,
                    script,
                    ended,
                    reading,
                });
            }
            (Some(script), None) => self.evidence.command_run(&CommandRun {
                started,
                finished,
                script,
                ended,
            }),
            (None, _) => {}
        }
        let settled = matches!(data.outcome, Outcome::Unknown | Outcome::NotRun);
        let progress = if settled {
            Progress::Refused
        } else {
            Progress::Done
        };
        self.advance(event.action, progress);
    }

    fn advance(&mut self, action: Option<ActionId>, progress: Progress) {
        if let Some(entry) = action.and_then(|action| self.open_actions.get_mut(&action)) {
            *entry = progress;
        }
    }

    /// Returns the verdict that the validation gate would give now.
    #[must_use]
    pub fn judge(&self, policy: validation::Policy) -> Verdict {
        validation::judge(&self.goal, policy, &self.evidence)
    }
}

/// The failure kind of an action that the runtime itself could not do.
pub const INTERNAL_FAILURE: &str = "internal";

/// Returns how a command ended.
const fn ended(data: &ToolExecuteFinished) -> Ended {
    match (data.outcome, data.exit_code, data.signal) {
        (Outcome::Timeout, _, _) => Ended::TimedOut,
        (_, Some(code), _) => Ended::Exited(code),
        (_, None, Some(signal)) => Ended::Signalled(signal),
        (_, None, None) => Ended::NotFinished,
    }
}

/// Returns the status that an event leaves the run in, where it speaks of it.
fn ends_as(fact: &Fact) -> Option<Status> {
    let of_run = RunFinished::of(fact).map(|data| data.status);
    let of_segment = SegmentFinished::of(fact).map(|data| data.status);
    of_run
        .or(of_segment)
        .or(StatusChanged::of(fact).map(|data| data.status))
}

/// Tells what may stand after `run.finished`: results of verifiers, notes about the record, and reopening.
fn follows_end(fact: &Fact) -> bool {
    let reopens = matches!(fact, Fact::StatusChanged(data) if data.status == Status::Running);
    let notes = matches!(
        fact,
        Fact::VerificationRecorded(_)
            | Fact::LogRecovered(_)
            | Fact::LogGap(_)
            | Fact::LogScrubbed(_)
            | Fact::RedactionNoted(_)
            | Fact::ArtifactDropped(_)
            | Fact::Unknown { .. }
    );
    reopens || notes
}
