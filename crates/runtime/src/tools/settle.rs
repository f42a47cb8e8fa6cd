//! Giving every action that a dead process left behind its result, without doing anything again.

use crate::{
    recorder::{Place, RecorderError},
    session::Session,
    tools::{MODEL_TEXT, middle_out},
};
use std::collections::BTreeMap;
use tracegate_core::{
    event::Event,
    fact::{
        Data as _,
        gate::Class,
        tool::{Observation, ObservationKind, Outcome, Phase, ToolExecuteFinished, ToolExecuteStarted},
    },
    ids::ActionId,
    state::Progress,
};

/// What the model reads of an action whose end nobody saw.
const UNKNOWN: &str = "It is not known whether this happened: the process ended while it was being done. \
                       Look at the workspace before you do it again.";

/// Settles what can be settled from the events of the turn at work: actions whose end is unknown, results that were not yet observed.
///
/// Actions that were asked for and not begun stay open, those that wait for their user among them: the step goes on with them.
pub(crate) fn settle(
    session: &mut Session,
    turn: &[Event],
    open: &BTreeMap<ActionId, Progress>,
) -> Result<(), RecorderError> {
    for (action, progress) in open {
        match progress {
            Progress::Begun => observe(session, *action, Outcome::Unknown, UNKNOWN)?,
            Progress::Done => {
                let mut ended = turn.iter().rev().filter(|event| event.action == Some(*action));
                if let Some(ended) = ended.find_map(|event| ToolExecuteFinished::of(&event.fact)) {
                    let output = session.recorder.artifacts().text(&ended.output)?;
                    observe(session, *action, ended.outcome, &middle_out(&output, MODEL_TEXT))?;
                } else {
                    // Healed by an earlier resume that died before it could say so.
                    observe(session, *action, Outcome::Unknown, UNKNOWN)?;
                }
            }
            Progress::Asked | Progress::Permitted | Progress::Refused => {}
        }
    }
    Ok(())
}

/// Records an answer as the result of the action that asked; the answer is labelled as the user's.
pub(crate) fn answered(
    session: &mut Session,
    action: ActionId,
    question: &str,
    answer: &str,
) -> Result<(), RecorderError> {
    let started = ToolExecuteStarted {
        tool: "ask_user".to_owned(),
        risk: Class::Read,
        args: serde_json::json!({ "question": tracegate_core::payload::clip(question, 256) }),
        command: None,
    };
    let span = session.recorder.begin(Some(action), started)?;
    let text = session
        .recorder
        .redactor()
        .scrub_text(format!("The user answers: {answer}"))
        .into_inner();
    let finished = ToolExecuteFinished {
        outcome: Outcome::Ok,
        exit_code: None,
        signal: None,
        output: session.recorder.payload(&text)?,
        output_chars: text.chars().count() as u64,
        truncated: false,
        duration_ms: 0,
        side_effects: Vec::new(),
        test: None,
        error: None,
    };
    session.recorder.end(span, finished)?;
    observe(session, action, Outcome::Ok, &text)
}

fn observe(
    session: &mut Session,
    action: ActionId,
    outcome: Outcome,
    text: &str,
) -> Result<(), RecorderError> {
    let observation = Observation {
        kind: ObservationKind::ToolOutput,
        phase: Phase::After,
        content: Some(session.recorder.payload(text)?),
        outcome: Some(outcome),
        workspace: Some(session.workspace_state()),
    };
    session.recorder.record(Place::at(action), observation)?;
    session.answer(action, text.to_owned());
    Ok(())
}
