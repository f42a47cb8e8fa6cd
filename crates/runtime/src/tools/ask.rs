//! Asking the user: the question becomes durable and the run waits; nobody invents an answer.

use crate::{
    recorder::{Place, RecorderError},
    session::Session,
};
use tracegate_core::{
    fact::user::UserQuestion,
    ids::{ActionId, QuestionId},
};

/// Records the question of an action. The action stays open until somebody answers.
pub(super) fn ask(
    session: &mut Session,
    action: ActionId,
    question: &str,
) -> Result<QuestionId, RecorderError> {
    let id = QuestionId(session.recorder.state().questions + 1);
    let text = session.recorder.payload(question)?;
    session.recorder.record(
        Place::at(action),
        UserQuestion {
            question: id,
            text,
            choices: Vec::new(),
        },
    )?;
    session.recorder.sync()?;
    Ok(id)
}
