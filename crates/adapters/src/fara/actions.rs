//! What the log says about each action in several events, gathered: Fara has one record for it.

use std::collections::BTreeMap;
use tracegate_core::{
    event::Event,
    fact::{
        Fact, Failure, SpanKind,
        gate::{PermissionReviewFinished, Verb},
        tool::{Outcome, Subcall, ToolExecuteFinished},
    },
    ids::ActionId,
};

/// What is known of an action beside what was asked and observed.
#[derive(Debug, Default)]
pub(super) struct Known<'a> {
    pub(super) end: Option<&'a ToolExecuteFinished>,
    pub(super) review: Option<&'a PermissionReviewFinished>,
    pub(super) subcalls: Vec<&'a Subcall>,
    /// Why its execution was cut off.
    cut: Option<&'a Failure>,
}

/// Gathers what is known of each action.
pub(super) fn gather(events: &[Event]) -> BTreeMap<ActionId, Known<'_>> {
    let mut known: BTreeMap<ActionId, Known<'_>> = BTreeMap::new();
    for event in events {
        let Some(action) = event.action else { continue };
        match (&event.fact, known.entry(action).or_default()) {
            (Fact::ToolExecuteFinished(end), known) => known.end = Some(end),
            (Fact::PermissionReviewFinished(review), known) => known.review = Some(review),
            (Fact::Subcall(call), known) => known.subcalls.push(call),
            (Fact::SpanHealed(SpanKind::ToolExecute, healed), known) => known.cut = Some(&healed.error),
            _ => {}
        }
    }
    known
}

impl Known<'_> {
    /// Says why the action did not do what it should; empty if it did.
    pub(super) fn error(&self, outcome: Option<Outcome>) -> String {
        let Some(outcome) = outcome.filter(|outcome| *outcome != Outcome::Ok) else {
            return String::new();
        };
        let failure = self.end.and_then(|end| end.error.as_ref()).or(self.cut);
        if let Some(failure) = failure {
            return if failure.message.is_empty() {
                failure.kind.clone()
            } else {
                format!("{}: {}", failure.kind, failure.message)
            };
        }
        match self.review.filter(|review| review.decision == Verb::Deny) {
            Some(review) => format!("refused by {}: {}", review.rule, review.reason),
            None => outcome.as_str().to_owned(),
        }
    }
}
