//! The seed's steps, rebuilt from the log: one per action, with what was observed before and after it.

use crate::{
    event::Event,
    fact::{
        Data as _, Fact,
        tool::{Action, Observation, Outcome},
        user::{MessageKind, UserMessage},
    },
    ids::{ActionId, Seq},
    payload::Payload,
};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What to do with an observation of an action that the log does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// It is an error.
    Strict,
    /// It is a listed problem; nothing is lost.
    Salvage,
}

/// An observation names an action that the log does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} is about action {action}, which the log does not hold")]
pub struct UnknownAction {
    /// The event.
    pub seq: Seq,
    /// The action.
    pub action: ActionId,
}

/// One action with its surroundings; positions are those of events in the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActionStep {
    /// The action; none for observations after the last action.
    pub action: Option<(ActionId, Seq)>,
    /// Observations and messages before it that belong to no action.
    pub before: Vec<Seq>,
    /// Observations of it, wherever they stand.
    pub after: Vec<Seq>,
    /// Those of `after` that came only after a later action.
    pub late: Vec<Seq>,
    /// Late observations of earlier actions that appeared before this one.
    pub late_before: Vec<Seq>,
}

/// Steps and what did not fit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ActionSteps {
    /// In the order of the actions.
    pub steps: Vec<ActionStep>,
    /// Only in [`Reading::Salvage`].
    pub problems: Vec<UnknownAction>,
}

/// Rebuilds the steps in two passes, as seed 000 describes.
///
/// # Errors
/// In [`Reading::Strict`], the first observation of an unknown action.
pub fn action_steps(events: &[Event], reading: Reading) -> Result<ActionSteps, UnknownAction> {
    let mut steps: Vec<ActionStep> = Vec::new();
    let mut owner = BTreeMap::new();
    let mut pending = Vec::new();
    let mut posts = Vec::new();
    for event in events {
        match (&event.fact, event.action) {
            (Fact::Action(_), Some(action)) => {
                owner.insert(action, steps.len());
                let before = std::mem::take(&mut pending);
                steps.push(ActionStep {
                    action: Some((action, event.seq)),
                    before,
                    ..ActionStep::default()
                });
            }
            (Fact::Observation(_), Some(action)) => posts.push((action, event.seq, steps.len())),
            (Fact::Observation(_), None) => pending.push(event.seq),
            (Fact::UserMessage(message), None) if message.kind != MessageKind::Task => {
                pending.push(event.seq);
            }
            _ => {}
        }
    }
    if !pending.is_empty() {
        steps.push(ActionStep {
            before: pending,
            ..ActionStep::default()
        });
    }
    let mut problems = Vec::new();
    for (action, seq, seen_at) in posts {
        let Some(&at) = owner.get(&action) else {
            let unknown = UnknownAction { seq, action };
            if reading == Reading::Strict {
                return Err(unknown);
            }
            problems.push(unknown);
            continue;
        };
        let late = seen_at > at + 1;
        if let Some(step) = steps.get_mut(at) {
            step.after.push(seq);
            if late {
                step.late.push(seq);
            }
        }
        if let (true, Some(step)) = (late, steps.get_mut(seen_at)) {
            step.late_before.push(seq);
        }
    }
    Ok(ActionSteps { steps, problems })
}

/// One action on one line, for tables and analysis; seed 000's step summary for a coding agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepSummary {
    /// Position among the actions, from 1.
    pub index: u32,
    /// The turn of the loop.
    pub step: u32,
    /// The action.
    pub action: ActionId,
    /// The tool that it wanted.
    pub tool: String,
    /// Its arguments.
    pub args: Value,
    /// One line for people.
    pub description: String,
    /// How it ended; none while it is open.
    pub outcome: Option<Outcome>,
    /// What the model read of it, as far as it can be shown without the artifact store.
    pub output: Option<String>,
    /// Files that it changed.
    pub changed: Vec<String>,
    /// What the user said since the action before.
    pub user_messages_before: Vec<String>,
}

/// Flattens the steps of a log; observations of unknown actions are passed over, as [`Reading::Salvage`] does.
#[must_use]
pub fn step_summaries(events: &[Event]) -> Vec<StepSummary> {
    let by_seq: BTreeMap<Seq, &Event> = events.iter().map(|event| (event.seq, event)).collect();
    let observation = |seq: &Seq| by_seq.get(seq).and_then(|event| Observation::of(&event.fact));
    let message = |seq: &Seq| by_seq.get(seq).and_then(|event| UserMessage::of(&event.fact));
    let steps = action_steps(events, Reading::Salvage).unwrap_or_default().steps;
    let with_action = steps
        .iter()
        .filter_map(|step| step.action.map(|(action, seq)| (step, action, seq)));
    with_action
        .zip(1..)
        .filter_map(|((step, action, seq), index)| {
            let event = by_seq.get(&seq)?;
            let data = Action::of(&event.fact)?;
            let mut summary = StepSummary {
                index,
                step: event.step.map_or(0, |step| step.0),
                action,
                tool: data.tool.clone(),
                args: data.args.clone(),
                description: data.description.clone(),
                outcome: None,
                output: None,
                changed: Vec::new(),
                user_messages_before: Vec::new(),
            };
            for observation in step.after.iter().filter_map(observation) {
                summary.outcome = observation.outcome.or(summary.outcome);
                summary.output = observation
                    .content
                    .as_ref()
                    .map(Payload::preview)
                    .or(summary.output);
                summary.changed.extend(
                    observation
                        .workspace
                        .iter()
                        .flat_map(|workspace| workspace.changed.clone()),
                );
            }
            let said = step
                .before
                .iter()
                .filter_map(message)
                .map(|message| message.content.preview());
            summary.user_messages_before.extend(said);
            Some(summary)
        })
        .collect()
}
