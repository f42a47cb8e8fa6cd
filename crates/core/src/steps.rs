//! The seed's steps, rebuilt from the log: one per action, with what was observed before and after it.
//!
//! A fold: [`Steps::push`] takes the events in the order of the log, of each of which it keeps a position, so that a log of a
//! gigabyte can be read in little memory. [`summary`] builds the flat view on top of it.

mod positions;
pub mod summary;

pub use positions::Positions;
pub use summary::{StepSummary, step_summaries};

use crate::{
    event::Event,
    fact::{
        Fact,
        tool::{Observation, Outcome},
        user::MessageKind,
    },
    ids::{ActionId, Digest, Seq},
};
use std::collections::BTreeMap;

/// What to do with an event that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// It is an error.
    Strict,
    /// It is a listed problem; nothing is lost.
    Salvage,
}

/// An event that does not fit into the steps of its log. No log that this program writes holds one; an edited or foreign one may.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepProblem {
    /// It is about an action that the log does not hold.
    #[error("event {seq} is about action {action}, which the log does not hold")]
    UnknownAction {
        /// The event.
        seq: Seq,
        /// The action.
        action: ActionId,
    },
    /// It asks for an action under an id that another one has. Both are steps; what is observed of the id belongs to the one that was asked for last.
    #[error("event {seq} asks for action {action} a second time")]
    RepeatedAction {
        /// The event.
        seq: Seq,
        /// The action.
        action: ActionId,
    },
    /// It must be about an action and names none.
    #[error("event {seq} does not say which action it is about")]
    NoAction {
        /// The event.
        seq: Seq,
    },
}

impl StepProblem {
    /// Returns the event that does not fit.
    #[must_use]
    pub const fn seq(&self) -> Seq {
        match self {
            Self::UnknownAction { seq, .. } | Self::RepeatedAction { seq, .. } | Self::NoAction { seq } => {
                *seq
            }
        }
    }
}

/// One action with its surroundings; positions are those of events in the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActionStep {
    /// The action; none for observations after the last action.
    pub action: Option<(ActionId, Seq)>,
    /// Observations and messages before it that belong to no action; the task is not among them.
    pub before: Positions,
    /// Observations and messages that name it, wherever they stand.
    pub after: Positions,
    /// Those of `after` that came only after a later action.
    pub late: Positions,
    /// Late observations of earlier actions that appeared before this one.
    pub late_before: Positions,
    /// Calls inside it.
    pub subcalls: Positions,
    /// The workspace as it was last observed before it; none if nobody looked since the action before, which may have changed it.
    pub workspace_before: Option<Digest>,
    /// The workspace as it was observed of it or, if its own observations do not say, next; none if another action came first.
    pub workspace_after: Option<Digest>,
}

impl ActionStep {
    /// Tells whether the step changed anything; none where nobody looked before and after it.
    ///
    /// An action that was refused or not reached changed nothing. What somebody else changes between the two looks counts as changed by the step.
    #[must_use]
    pub fn changed(&self) -> Option<bool> {
        Some(self.workspace_before? != self.workspace_after?)
    }
}

/// Observations that stand before an action: its own, and late ones of earlier actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pre<'a> {
    /// Observations and messages that belong to no action.
    pub main: &'a [Seq],
    /// Late observations of earlier actions.
    pub late: &'a [Seq],
}

/// Steps and what did not fit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActionSteps {
    /// In the order of the actions.
    pub steps: Vec<ActionStep>,
    /// In the order of the log; only in [`Reading::Salvage`].
    pub problems: Vec<StepProblem>,
}

impl ActionSteps {
    /// Returns what was observed of the action before step `at`; nothing for the first step.
    #[must_use]
    pub fn previous_post(&self, at: usize) -> &[Seq] {
        let previous = at.checked_sub(1).and_then(|before| self.steps.get(before));
        previous.map_or(&[], |step| &step.after)
    }

    /// Returns what stands before the step after step `at`; nothing after the last step.
    #[must_use]
    pub fn next_pre(&self, at: usize) -> Pre<'_> {
        let next = at.checked_add(1).and_then(|next| self.steps.get(next));
        next.map_or_else(Pre::default, |step| Pre {
            main: &step.before,
            late: &step.late_before,
        })
    }
}

/// Where an event belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placed {
    /// It is the action of this step.
    Action(usize),
    /// It was observed of the action of this step, after a later one or not.
    After { at: usize, late: bool },
    /// It names an action that has not been asked for yet.
    Early(ActionId),
    /// It is no part of a step by itself.
    Elsewhere,
}

/// What an event is to the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Observed,
    Subcall,
}

/// The steps so far: a fold whose memory grows with the number of steps and not with what their events hold.
#[derive(Debug, Default)]
pub struct Steps {
    steps: Vec<ActionStep>,
    /// The step of the newest action of each id.
    owner: BTreeMap<ActionId, usize>,
    /// What belongs to no action, since the last action.
    before: Positions,
    /// What came late, since the last action.
    late: Positions,
    /// What names an action that has not come yet.
    early: Vec<(ActionId, Seq, Part)>,
    problems: Vec<StepProblem>,
    /// The workspace, if it was observed since the last action that may have changed it.
    workspace: Option<Digest>,
    /// The workspace as it was observed last, whatever may have changed it since.
    seen: Option<Digest>,
    /// The action that began last, and the workspace then, unless somebody looked since.
    begun: Option<(ActionId, Option<Digest>)>,
}

impl Steps {
    /// Begins before the first event.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the next event of the log.
    pub fn push(&mut self, event: &Event) {
        self.place(event);
    }

    /// Ends the fold, attaching what came after the last action as a step of its own.
    ///
    /// # Errors
    /// In [`Reading::Strict`], the first problem in the order of the log.
    pub fn finish(mut self, reading: Reading) -> Result<ActionSteps, StepProblem> {
        if !self.before.is_empty() {
            self.steps.push(ActionStep {
                before: self.before,
                late_before: self.late,
                ..ActionStep::default()
            });
        }
        let unknown = self.early.into_iter();
        self.problems
            .extend(unknown.map(|(action, seq, _)| StepProblem::UnknownAction { seq, action }));
        self.problems.sort_by_key(StepProblem::seq);
        match (reading, self.problems.first()) {
            (Reading::Strict, Some(first)) => Err(first.clone()),
            (Reading::Strict, None) | (Reading::Salvage, _) => Ok(ActionSteps {
                steps: self.steps,
                problems: self.problems,
            }),
        }
    }

    /// Returns the step of the newest action of this id so far.
    fn owner(&self, action: Option<ActionId>) -> Option<usize> {
        self.owner.get(&action?).copied()
    }

    /// Takes in an event and says where it belongs.
    fn place(&mut self, event: &Event) -> Placed {
        let seq = event.seq;
        match (&event.fact, event.action) {
            (Fact::Action(_), Some(action)) => self.begin(seq, action),
            (Fact::Action(_) | Fact::Subcall(_), None) => {
                self.problems.push(StepProblem::NoAction { seq });
                Placed::Elsewhere
            }
            (Fact::Subcall(_), Some(action)) => self.attach(seq, action, Part::Subcall),
            (Fact::Observation(seen), Some(action)) => {
                let placed = self.attach(seq, action, Part::Observed);
                self.look(seen, Some(action), placed);
                placed
            }
            (Fact::ToolExecuteStarted(_), Some(action)) => {
                self.begun = Some((action, self.seen));
                Placed::Elsewhere
            }
            (Fact::UserMessage(_), Some(action)) => self.attach(seq, action, Part::Observed),
            (Fact::Observation(seen), None) => {
                self.before.push(seq);
                self.look(seen, None, Placed::Elsewhere);
                Placed::Elsewhere
            }
            (Fact::UserMessage(message), None) if message.kind != MessageKind::Task => {
                self.before.push(seq);
                Placed::Elsewhere
            }
            _ => Placed::Elsewhere,
        }
    }

    fn begin(&mut self, seq: Seq, action: ActionId) -> Placed {
        let at = self.steps.len();
        let mut step = ActionStep {
            action: Some((action, seq)),
            before: std::mem::take(&mut self.before),
            late_before: std::mem::take(&mut self.late),
            workspace_before: self.workspace.take(),
            ..ActionStep::default()
        };
        if self.owner.insert(action, at).is_some() {
            self.problems.push(StepProblem::RepeatedAction { seq, action });
        }
        self.early.retain(|(early, seq, part)| {
            if *early == action {
                match part {
                    Part::Observed => step.after.push(*seq),
                    Part::Subcall => step.subcalls.push(*seq),
                }
            }
            *early != action
        });
        self.steps.push(step);
        Placed::Action(at)
    }

    fn attach(&mut self, seq: Seq, action: ActionId, part: Part) -> Placed {
        let last = self.steps.len().saturating_sub(1);
        let Some((at, step)) = self
            .owner(Some(action))
            .and_then(|at| Some((at, self.steps.get_mut(at)?)))
        else {
            self.early.push((action, seq, part));
            return Placed::Early(action);
        };
        let late = at < last;
        match part {
            Part::Subcall => step.subcalls.push(seq),
            Part::Observed => {
                step.after.push(seq);
                if late {
                    step.late.push(seq);
                    self.late.push(seq);
                }
            }
        }
        Placed::After { at, late }
    }

    /// Takes in what an observation says about the workspace, for the last action and for the next one.
    fn look(&mut self, seen: &Observation, action: Option<ActionId>, placed: Placed) {
        let begun = self.begun.take().filter(|(begun, _)| Some(*begun) == action);
        let begun = begun.map(|(_, seen)| seen);
        let digest = seen.workspace.as_ref().map(|workspace| workspace.digest);
        let own = match placed {
            Placed::After { late, .. } => !late,
            Placed::Action(_) | Placed::Early(_) | Placed::Elsewhere => false,
        };
        let done = !matches!(seen.outcome, Some(Outcome::Refused | Outcome::NotRun));
        if let Placed::After { at, late: true } = placed
            && done
            && let Some(step) = self.steps.get_mut(at)
            && step.after.len() == step.late.len()
        {
            // Nothing was seen of it before a later action was asked for, as when it waited for an answer. Two looks lie around
            // it alone only if nobody else looked since it began.
            step.workspace_before = begun.unwrap_or(step.workspace_before);
            step.workspace_after = digest.filter(|_| begun.is_some());
        }
        if let Some(last) = self.steps.last_mut() {
            if let (true, Some(begun)) = (own && !self.late.is_empty(), begun) {
                // Earlier actions were done after it was asked for.
                last.workspace_before = begun;
            }
            if own && !done && digest.is_none() {
                // Nothing was done: what was known before holds on.
                last.workspace_after = last.workspace_before;
                self.workspace = self.workspace.or(last.workspace_before);
            } else if own {
                last.workspace_after = digest.or(last.workspace_after);
            } else if placed == Placed::Elsewhere {
                last.workspace_after = last.workspace_after.or(digest);
            }
        }
        self.workspace = digest.or(self.workspace);
        self.seen = digest.or(self.seen);
    }
}

/// Rebuilds the steps of a log that is in memory; [`Steps`] does it event by event.
///
/// # Errors
/// In [`Reading::Strict`], the first problem in the order of the log.
pub fn action_steps(events: &[Event], reading: Reading) -> Result<ActionSteps, StepProblem> {
    let mut steps = Steps::new();
    for event in events {
        steps.push(event);
    }
    steps.finish(reading)
}
