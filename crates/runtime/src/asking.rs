//! Asking the user: for the agent, which wants words, and for the permission gate, which wants a yes or a no. Nobody invents an answer.

use crate::{
    recorder::{Place, RecorderError},
    session::Session,
};
use std::{future::Future, pin::Pin};
use tracegate_core::{
    fact::user::{MessageKind, Permission, QuestionKind, UserMessage, UserQuestion},
    ids::{ActionId, QuestionId},
};

/// An answer to come; none if whoever was asked went away.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Option<String>> + Send + 'a>>;

/// Somebody who can be asked while the run goes on, as at a terminal.
pub trait User: Send + Sync + std::fmt::Debug {
    /// Asks for words.
    fn ask<'a>(&'a self, question: &'a str) -> Answering<'a>;

    /// Asks for [`Permission`], and for nothing else: whatever is not the word for it is none.
    fn permit<'a>(&'a self, question: &'a str) -> Answering<'a>;
}

/// What the user said to the question of an action, before the action came to its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answered {
    /// What was asked for.
    pub(crate) kind: QuestionKind,
    /// The question.
    pub(crate) question: String,
    /// The answer.
    pub(crate) answer: String,
}

impl Answered {
    /// Returns the permission given; words are none.
    pub(crate) fn permission(&self) -> Option<Permission> {
        match self.kind {
            QuestionKind::Permission => Permission::parse(&self.answer),
            QuestionKind::Text => None,
        }
    }
}

impl Session {
    /// Records a question of `action` and makes it durable. The action stays open until somebody answers.
    ///
    /// # Errors
    /// When the run cannot be recorded.
    pub(crate) fn ask(
        &mut self,
        action: ActionId,
        kind: QuestionKind,
        question: &str,
    ) -> Result<QuestionId, RecorderError> {
        let id = QuestionId(self.state().questions + 1);
        let choices = match kind {
            QuestionKind::Text => Vec::new(),
            QuestionKind::Permission => Permission::ALL.map(|answer| answer.as_str().to_owned()).to_vec(),
        };
        let event = UserQuestion {
            question: id,
            text: self.recorder.payload(question)?,
            kind,
            choices,
        };
        self.recorder.record(Place::at(action), event)?;
        self.recorder.sync()?;
        self.asked.insert(action);
        Ok(id)
    }

    /// Records what the user answered; returns it as the log holds it.
    ///
    /// # Errors
    /// When the run cannot be recorded.
    pub(crate) fn hear(
        &mut self,
        id: QuestionId,
        question: &str,
        answer: &str,
    ) -> Result<String, RecorderError> {
        let answer = self
            .recorder
            .redactor()
            .scrub_text(answer.to_owned())
            .into_inner();
        let question = self
            .recorder
            .redactor()
            .scrub_text(question.to_owned())
            .into_inner();
        let message = UserMessage {
            kind: MessageKind::Answer,
            content: self.recorder.payload(&answer)?,
            question: Some(id),
        };
        self.recorder.record(Place::default(), message)?;
        self.recorder.sync()?;
        self.conversation
            .keep_answer(&question, &answer, self.recorder.redactor());
        Ok(answer)
    }
}
