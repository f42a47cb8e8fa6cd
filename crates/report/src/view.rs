//! A recorded run as a reader sees it: one fold over its events, from which every report is computed.

mod action;
mod fold;

pub(crate) use action::{ActionView, End, Review, Started};

use crate::language::Language;
use serde::{Serialize, Serializer};
use std::{collections::BTreeMap, fmt};
use tracegate_core::{
    event::Event,
    fact::{
        gate::ValidationRuling,
        model::{ContextBuildFinished, ReplyKind, Usage},
        run::{LimitReached, Limits, Settings},
        user::QuestionKind,
    },
    ids::{ActionId, QuestionId, RunId, SegmentNo, Seq, StepNo, TraceId},
    payload::Payload,
    stop::{Status, StopReason},
    validation::{GateReason, Outcome as VerdictOutcome, Trust, Verdict},
};

/// Whether a process holds the run's lock; only the caller can know, because a log cannot say that its writer died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// A process is at work on the run.
    Alive,
    /// Nobody is: a log that says `running` was interrupted.
    Nobody,
}

/// The status of a run as it is shown: the recorded one, or `interrupted`, which no log can record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShownStatus {
    /// A segment is at work.
    Running,
    /// The validation gate passed.
    Completed,
    /// The run ended without reaching its goal.
    Failed,
    /// The agent asked and nobody has answered yet.
    WaitingForUser,
    /// A person stopped the run.
    Cancelled,
    /// The log says running, and nobody holds the run.
    Interrupted,
}

impl ShownStatus {
    /// Returns the spelling used in tables and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::WaitingForUser => "waiting_for_user",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
}

impl fmt::Display for ShownStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Events that are no run that could be shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There are none.
    #[error("the log of run `{run}` holds no event")]
    Empty {
        /// Whose log.
        run: RunId,
    },
    /// None of them begins a run, so goal, limits and trace are not known.
    #[error("none of the {events} events of run `{run}` is `run.started`")]
    NotStarted {
        /// Whose log.
        run: RunId,
        /// How many events there are.
        events: usize,
    },
    /// They are not in the order of their numbers.
    #[error("event {found} of run `{run}` stands after event {after}")]
    OutOfOrder {
        /// Whose log.
        run: RunId,
        /// The event that stands too late.
        found: Seq,
        /// The one before it.
        after: Seq,
    },
}

impl ReadError {
    /// Returns what to do about it.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::Empty { run } | Self::NotStarted { run, .. } | Self::OutOfOrder { run, .. } => {
                format!(
                    "the log itself is `events.jsonl` in the run's directory; what came before the damage is whole: run `{run}`"
                )
            }
        }
    }
}

/// Something in a readable log that does not fit together; shown, never silently passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// Numbers are missing before this event: the log was salvaged.
    Gap {
        /// The last event before the gap.
        after: Seq,
        /// The first one behind it.
        before: Seq,
    },
    /// The event is about an action that nobody asked for.
    UnknownAction {
        /// The event.
        event: Seq,
        /// The action.
        action: ActionId,
    },
    /// The event must be about an action and names none.
    NoAction {
        /// The event.
        event: Seq,
    },
    /// A second action of the same id.
    RepeatedAction {
        /// The event.
        event: Seq,
        /// The action.
        action: ActionId,
    },
    /// A second `run.started`; the first one counts.
    StartedTwice {
        /// The event.
        event: Seq,
    },
}

impl Problem {
    /// Returns the first event behind a gap.
    const fn gap_ends(&self) -> Option<Seq> {
        match self {
            Self::Gap { before, .. } => Some(*before),
            Self::UnknownAction { .. }
            | Self::NoAction { .. }
            | Self::RepeatedAction { .. }
            | Self::StartedTwice { .. } => None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap { after, before } => write!(f, "events between {after} and {before} are missing"),
            Self::UnknownAction { event, action } => {
                write!(
                    f,
                    "event {event} is about action {action}, which nobody asked for"
                )
            }
            Self::NoAction { event } => write!(f, "event {event} does not say about which action it is"),
            Self::RepeatedAction { event, action } => {
                write!(f, "event {event} asks for action {action} a second time")
            }
            Self::StartedTwice { event } => write!(f, "event {event} starts the run a second time"),
        }
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A finished `context.build`.
#[derive(Debug, Clone)]
pub(crate) struct ContextView {
    pub(crate) seq: Seq,
    pub(crate) step: Option<StepNo>,
    pub(crate) built: ContextBuildFinished,
}

/// A reply of the model.
#[derive(Debug, Clone)]
pub(crate) struct ReplyView {
    pub(crate) seq: Seq,
    pub(crate) step: Option<StepNo>,
    pub(crate) kind: ReplyKind,
    pub(crate) text: Payload,
    pub(crate) error: Option<tracegate_core::fact::Failure>,
}

/// A ruling of the validation gate.
#[derive(Debug, Clone)]
pub(crate) struct ValidationView {
    pub(crate) seq: Seq,
    pub(crate) verdict: Verdict,
    pub(crate) ruling: ValidationRuling,
    pub(crate) pushed_back: u32,
    pub(crate) error: Option<tracegate_core::fact::Failure>,
}

/// The end of the run, as its last `run.finished` says.
#[derive(Debug, Clone)]
pub(crate) struct FinishedView {
    pub(crate) seq: Seq,
    pub(crate) claim: Option<Payload>,
    pub(crate) evidence: String,
    pub(crate) verdict: Option<Verdict>,
}

/// A question that nobody has answered yet.
#[derive(Debug, Clone)]
pub(crate) struct QuestionView {
    pub(crate) question: QuestionId,
    pub(crate) kind: QuestionKind,
    pub(crate) action: Option<ActionId>,
    pub(crate) text: Payload,
}

/// A test run that a reader can rely on: what it says, and by which action.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrustedRun<'a> {
    pub(crate) seq: Seq,
    pub(crate) action: &'a ActionView,
    pub(crate) record: &'a tracegate_core::fact::tool::TestRunRecord,
}

impl TrustedRun<'_> {
    /// Tells whether tests failed in it.
    pub(crate) fn is_red(&self) -> bool {
        self.record.reading.trust == Trust::Red
    }

    /// Returns the command without what wraps it.
    pub(crate) fn command(&self) -> String {
        if self.record.command.normalised.is_empty() {
            self.action.target()
        } else {
            self.record.command.normalised.join(" ")
        }
    }
}

/// A recorded run, folded from its events.
#[derive(Debug, Clone)]
pub struct RunView {
    run: RunId,
    trace: TraceId,
    pub(crate) goal: Payload,
    pub(crate) workspace: String,
    pub(crate) limits: Limits,
    pub(crate) settings: Settings,
    status: Status,
    pub(crate) stop: Option<StopReason>,
    pub(crate) finished: Option<FinishedView>,
    pub(crate) validations: Vec<ValidationView>,
    pub(crate) contexts: Vec<ContextView>,
    pub(crate) replies: Vec<ReplyView>,
    pub(crate) actions: Vec<ActionView>,
    pub(crate) limit: Option<(Seq, LimitReached)>,
    pub(crate) questions: Vec<QuestionView>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) usage: Usage,
    /// The longest monotonic time seen of each segment: the time between segments is nobody's work.
    segments: BTreeMap<SegmentNo, u64>,
    pub(crate) steps: u32,
    pub(crate) events: u64,
    pub(crate) last: Seq,
}

impl RunView {
    /// Folds the events of `run`, in the order of the log; any prefix of a log is a log.
    ///
    /// # Errors
    /// As [`ReadError`] lists. What is readable but does not fit together is kept in [`Self::problems`].
    pub fn read(run: RunId, events: &[Event]) -> Result<Self, ReadError> {
        fold::fold(run, events)
    }

    /// Returns the run's id.
    #[must_use]
    pub const fn run_id(&self) -> &RunId {
        &self.run
    }

    /// Returns the goal, as far as it can be shown without the artifact store.
    #[must_use]
    pub fn goal(&self) -> String {
        self.goal.preview()
    }

    /// Returns the trace that its spans belong to.
    #[must_use]
    pub const fn trace_id(&self) -> TraceId {
        self.trace
    }

    /// Returns the status to show.
    #[must_use]
    pub const fn status(&self, holder: Holder) -> ShownStatus {
        match (self.status, holder) {
            (Status::Running, Holder::Alive) => ShownStatus::Running,
            (Status::Running, Holder::Nobody) => ShownStatus::Interrupted,
            (Status::Completed, _) => ShownStatus::Completed,
            (Status::Failed, _) => ShownStatus::Failed,
            (Status::WaitingForUser, _) => ShownStatus::WaitingForUser,
            (Status::Cancelled, _) => ShownStatus::Cancelled,
        }
    }

    /// Returns what does not fit together in the log.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns the time that the run's processes worked, in milliseconds; downtime between segments is not counted.
    #[must_use]
    pub fn duration_ms(&self) -> u64 {
        self.segments
            .values()
            .fold(0, |sum: u64, ns| sum.saturating_add(ns / 1_000_000))
    }

    /// Returns the newest verdict of the validation gate.
    pub(crate) fn verdict(&self) -> Option<&Verdict> {
        let finished = self.finished.as_ref().and_then(|end| end.verdict.as_ref());
        finished.or_else(|| self.validations.last().map(|review| &review.verdict))
    }

    /// Tells whether the gate found that the newest test run was red.
    pub(crate) fn judged_red(&self) -> bool {
        self.verdict().is_some_and(|verdict| {
            verdict.outcome == VerdictOutcome::Failed && verdict.reason == GateReason::LastTestFailed
        })
    }

    /// Returns the test runs whose result can be relied on, in order.
    pub(crate) fn trusted_runs(&self) -> Vec<TrustedRun<'_>> {
        let mut runs: Vec<TrustedRun<'_>> = self
            .actions
            .iter()
            .filter_map(|action| {
                let end = action.end.as_ref()?;
                let record = end.test.as_ref()?;
                (record.reading.trust != Trust::Unknown).then_some(TrustedRun {
                    seq: end.seq,
                    action,
                    record,
                })
            })
            .collect();
        // What was tested before events were lost may have been changed among them.
        let found = self.problems.iter().filter_map(Problem::gap_ends);
        let ends = found.max().unwrap_or(Seq(0));
        runs.retain(|run| run.seq >= ends);
        // Actions are in the order in which they were asked for; results may come in another.
        runs.sort_by_key(|run| run.seq);
        runs
    }

    /// Returns the replies that were final answers.
    pub(crate) fn finals(&self) -> impl Iterator<Item = &ReplyView> {
        self.replies.iter().filter(|reply| reply.kind == ReplyKind::Final)
    }

    /// Spells a path as the log does: relative to the workspace, without `./`.
    pub(crate) fn relative<'a>(&self, path: &'a str) -> &'a str {
        let mut path = path
            .strip_prefix(self.workspace.as_str())
            .filter(|rest| rest.starts_with('/') && !self.workspace.is_empty())
            .map_or(path, |rest| rest.trim_start_matches('/'));
        while let Some(rest) = path.strip_prefix("./") {
            path = rest.trim_start_matches('/');
        }
        path
    }

    /// Returns one line for the way the run took: what was done, in order, and the final answer.
    pub(crate) fn execution_path(&self, language: Language) -> String {
        let mut stations: Vec<(Seq, String)> = self
            .actions
            .iter()
            .map(|action| (action.asked, action.station(language)))
            .collect();
        stations.extend(self.finals().map(|reply| (reply.seq, "final".to_owned())));
        stations.sort_by_key(|(seq, _)| *seq);
        let mut names: Vec<String> = stations.into_iter().map(|(_, name)| name).collect();
        if names.len() > PATH_HEAD + PATH_TAIL + 1 {
            let left_out = names.len() - PATH_HEAD - PATH_TAIL;
            let note = language.pick(format!("… {left_out} more …"), format!("… 另有 {left_out} 步 …"));
            let tail = names.split_off(names.len() - PATH_TAIL);
            names.truncate(PATH_HEAD);
            names.push(note);
            names.extend(tail);
        }
        if names.is_empty() {
            return language.pick("nothing was done", "没有执行任何动作").to_owned();
        }
        names.join(" -> ")
    }
}

/// How many stations of a long way are shown from its beginning.
const PATH_HEAD: usize = 6;
/// How many from its end, where things went wrong.
const PATH_TAIL: usize = 6;
