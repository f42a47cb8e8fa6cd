//! What the fold makes of a gap: it stays careful about what may have happened there, and excuses what refers to it, but nothing recorded later.

use super::{OpenSpan, Progress, RunState, Violation};
use crate::{
    event::Event,
    fact::{Fact, log::LogGap, model::ModelCompleteStarted},
    ids::{ActionId, Seq},
};
use serde::{Deserialize, Serialize};

/// What a salvaged log has lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// The first event of the last gap.
    pub from: Seq,
    /// The last one of it.
    pub to: Seq,
    /// The last event that was there when the log was salvaged: what was recorded later is checked in full.
    pub until: Seq,
    /// Number of the last action known to have been asked for before or in the gap: how far those came is not known.
    pub asked: u64,
    /// Whether a later request to the model shows, by its digest, which conversation it continued.
    pub bridged: bool,
    /// Whether an action was asked for of which no record is left.
    pub actions: bool,
}

impl RunState {
    /// Tells whether what event `seq` refers to may be among the lost events.
    pub(super) fn may_have_lost(&self, seq: Seq) -> bool {
        self.lost.as_ref().is_some_and(|lost| seq <= lost.until)
    }

    /// Tells whether a span that is open as far as is known may have ended in the gap.
    pub(super) fn may_have_ended(&self, open: &OpenSpan, seq: Seq) -> bool {
        let excused = |lost: &Lost| seq <= lost.until && open.started < lost.from;
        self.lost.as_ref().is_some_and(excused)
    }

    /// Tells whether an action may have come further than is known.
    pub(super) fn may_be_further(&self, action: ActionId, seq: Seq) -> bool {
        let excused = |lost: &Lost| seq <= lost.until && action.0 <= lost.asked;
        self.lost.as_ref().is_some_and(excused)
    }

    /// Refuses to let a run go on whose lost events may hold an action: doing it once more could be doing it twice.
    ///
    /// # Errors
    /// [`Violation::Lost`].
    pub fn check_whole(&self) -> Result<(), Violation> {
        match &self.lost {
            // Without its beginning nobody knows what the run was allowed.
            Some(lost) if !lost.bridged || lost.actions || self.settings.is_none() => Err(Violation::Lost {
                from: lost.from,
                to: lost.to,
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Takes in that events are lost.
    pub(super) fn lose(&mut self, gap: &LogGap) {
        // What was asked for may have been done, and what was tested may have been changed since; a ruling may have been overtaken.
        for progress in self.open_actions.values_mut() {
            *progress = Progress::Begun;
        }
        self.observed = true;
        self.ruling = None;
        self.evidence.changed(gap.to, &[]);
        let actions = self.lost.as_ref().is_some_and(|lost| lost.actions);
        self.lost = Some(Lost {
            from: gap.from,
            to: gap.to,
            until: gap.until,
            asked: self.actions,
            bridged: false,
            actions,
        });
    }

    /// Takes in an action that is met for the first time although it was asked for in the gap.
    pub(super) fn meet(&mut self, event: &Event) {
        let (Some(action), Some(lost)) = (event.action, &mut self.lost) else {
            return;
        };
        let asks = matches!(event.fact, Fact::Action(_));
        if action.0 <= self.actions || (asks && action.0 == self.actions + 1) {
            return;
        }
        lost.actions = true;
        if !asks {
            self.actions = action.0;
            lost.asked = action.0;
            self.open_actions.insert(action, Progress::Begun);
        }
    }

    /// Takes in a request to the model: its digest proves which conversation it continued, and its messages name the actions in that.
    pub(super) fn bridge(&mut self, request: &ModelCompleteStarted) {
        let Some(lost) = &mut self.lost else {
            return;
        };
        let named = request
            .append
            .iter()
            .flat_map(|message| message.calls.iter().chain(&message.action));
        let last = named.max().map_or(0, |action| action.0);
        if last > self.actions {
            lost.actions = true;
            self.actions = last;
        }
        lost.bridged = true;
    }
}
