//! The validation gate: rules on the agent's answer by the evidence in the log.

use crate::{
    conversation::Message,
    recorder::{Place, RecorderError},
    session::Session,
};
use tracegate_core::{
    fact::{
        gate::{ValidationReviewFinished, ValidationReviewStarted, ValidationRuling},
        model::Role,
        user::{MessageKind, UserMessage},
    },
    validation::{self, Outcome, Verdict},
};

/// Reviews the agent's answer and records the ruling.
///
/// # Errors
/// When the run cannot be recorded.
pub fn judge(session: &mut Session) -> Result<ValidationRuling, RecorderError> {
    let span = session.recorder.begin(None, ValidationReviewStarted {})?;
    let state = session.recorder.state();
    let verdict = state.judge(validation::Policy::Goal);
    let pushed_back = state.pushed_back;
    let steps_left = state.limits.is_none_or(|limits| state.step.0 < limits.max_steps);
    let ruling = match verdict.outcome {
        Outcome::Passed => ValidationRuling::Complete,
        // An answer at the last permitted step cannot be sent back: it is judged as it is.
        Outcome::Failed | Outcome::Inconclusive if pushed_back < session.push_back && steps_left => {
            ValidationRuling::PushBack
        }
        Outcome::Failed | Outcome::Inconclusive => ValidationRuling::Fail,
    };
    session.recorder.end(
        span,
        ValidationReviewFinished {
            verdict,
            ruling,
            pushed_back,
            error: None,
        },
    )?;
    Ok(ruling)
}

/// Sends the agent back with the evidence of the last verdict.
///
/// # Errors
/// When the run cannot be recorded.
pub fn push_back(session: &mut Session) -> Result<(), RecorderError> {
    let Some(verdict) = session.recorder.state().verdict.clone() else {
        return Ok(());
    };
    // What the conversation holds is what the log holds, so that a resume rebuilds it bit by bit.
    let feedback = session
        .recorder
        .redactor()
        .scrub_text(feedback(&verdict))
        .into_inner();
    let content = session.recorder.payload(&feedback)?;
    let message = UserMessage {
        kind: MessageKind::RetryFeedback,
        content,
        question: None,
    };
    session.recorder.record(Place::default(), message)?;
    session.conversation.push(Message::plain(Role::User, feedback));
    Ok(())
}

/// What the agent is told when its answer is not accepted: the evidence, not an opinion.
fn feedback(verdict: &Verdict) -> String {
    format!(
        "Your answer is not accepted yet: {}. Go on until the tests that the goal asks for are run and pass after your \
         last change, or say plainly that you cannot reach the goal.",
        verdict.explanation.trim_end_matches('.')
    )
}
