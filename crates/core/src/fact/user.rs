//! Events between agent and user.

use crate::{ids::QuestionId, payload::Payload};
use serde::{Deserialize, Serialize};

/// A message to the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    /// What kind of message.
    pub kind: MessageKind,
    /// Its text.
    pub content: Payload,
    /// The question that an answer answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
}

/// What kind of message a user message is: the four of seed 000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// The goal.
    Task,
    /// A further task.
    FollowupTask,
    /// An answer to a question.
    Answer,
    /// The validation gate's evidence, on the user's behalf.
    RetryFeedback,
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserQuestion {
    /// Its id.
    pub question: QuestionId,
    /// Its text.
    pub text: Payload,
    /// Answers to choose from; empty for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
}
