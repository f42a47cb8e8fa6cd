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
        user::{UserMessage, UserQuestion},
    },
    ids::{ActionId, QuestionId},
    state::Progress,
};

/// What the model reads of an action whose end nobody saw.
const UNKNOWN: &str = "It is not known whether this happened: the process ended while it was being done. \
                       Look at the workspace before you do it again.";

/// Settles what can be settled from the log: actions whose end is unknown, results that were not yet observed, questions that were answered.
///
/// Actions that were asked for and not begun stay open: the step that asked for them goes on with them.
pub(crate) fn settle(
    session: &mut Session,
    events: &[Event],
    open: &BTreeMap<ActionId, Progress>,
    answer: Option<&(QuestionId, String)>,
) -> Result<(), RecorderError> {
    for (action, progress) in open {
        match progress {
            Progress::Begun => observe(session, *action, Outcome::Unknown, UNKNOWN)?,
            Progress::Done => {
                let ended = events.iter().rev().filter(|event| event.action == Some(*action));
                if let Some(ended) = ended
                    .clone()
                    .find_map(|event| ToolExecuteFinished::of(&event.fact))
                {
                    let output = session.recorder.artifacts().text(&ended.output)?;
                    observe(session, *action, ended.outcome, &middle_out(&output, MODEL_TEXT))?;
                } else {
                    // Healed by an earlier resume that died before it could say so.
                    observe(session, *action, Outcome::Unknown, UNKNOWN)?;
                }
            }
            Progress::Asked | Progress::Permitted | Progress::Refused => {
                let asked = events.iter().rev().filter(|event| event.action == Some(*action));
                let question = asked.clone().find_map(|event| UserQuestion::of(&event.fact));
                if let Some(question) = question
                    && let Some(text) = answer_to(session, events, question.question, answer)?
                {
                    answered(session, *action, &question.text.preview(), &text)?;
                }
            }
        }
    }
    Ok(())
}

fn answer_to(
    session: &Session,
    events: &[Event],
    question: QuestionId,
    answer: Option<&(QuestionId, String)>,
) -> Result<Option<String>, RecorderError> {
    if let Some((_, text)) = answer.filter(|(answered, _)| *answered == question) {
        return Ok(Some(text.clone()));
    }
    let messages = events.iter().filter_map(|event| UserMessage::of(&event.fact));
    let given = messages
        .clone()
        .find(|message| message.question == Some(question));
    Ok(given
        .map(|message| session.recorder.artifacts().text(&message.content))
        .transpose()?)
}

/// Records an answer as the result of the action that asked; the answer is labelled as the user's.
fn answered(
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
