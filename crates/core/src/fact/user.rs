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

/// What a question asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// Words: the agent asks.
    #[default]
    Text,
    /// Whether an action may happen: the permission gate asks.
    Permission,
}

/// What a user says to [`QuestionKind::Permission`], as it stands in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// It may.
    Allow,
    /// It may not.
    Deny,
}

impl Permission {
    /// Both, in the order of the choices.
    pub const ALL: [Self; 2] = [Self::Allow, Self::Deny];

    /// Returns the word in the log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }

    /// Reads the word in the log.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|answer| answer.as_str() == word)
    }
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserQuestion {
    /// Its id.
    pub question: QuestionId,
    /// Its text.
    pub text: Payload,
    /// What it asks for.
    #[serde(default)]
    pub kind: QuestionKind,
    /// Answers to choose from; empty for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
}
