//! Events about the context, the model's requests and replies, and compaction.

use crate::{
    fact::Failure,
    ids::{ActionId, Digest},
    payload::Payload,
};
use serde::{Deserialize, Serialize};

/// Choosing the context began.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ContextBuildStarted {
    /// Token budget.
    pub budget: u64,
}

/// The context was chosen: the summary of the report that lies beside the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextBuildFinished {
    /// Token budget.
    pub budget: u64,
    /// Tokens used, by the report's estimator.
    pub used: u64,
    /// The first 64 files that are in, in the order in which the model reads them.
    pub included: Vec<ContextItem>,
    /// The first 64 candidates that are not.
    pub dropped: Vec<ContextDrop>,
    /// How many are in.
    pub included_total: u64,
    /// How many candidates are not.
    pub dropped_total: u64,
    /// The first 64 links from a touched source to a test.
    pub links: Vec<ContextLink>,
    /// File name of the report below the run's `context/`.
    pub report: String,
    /// Digest of the report.
    pub digest: Digest,
    /// Set if it could not be built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// A file in the context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextItem {
    /// Path, relative to the workspace.
    pub path: String,
    /// `full`, `slice`, `outline` or `path`.
    pub level: String,
}

/// A candidate that did not get in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextDrop {
    /// Path, relative to the workspace.
    pub path: String,
    /// Reason code of the report.
    pub reason: String,
}

/// A test that belongs to a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextLink {
    /// The source.
    pub source: String,
    /// Its test.
    pub test: String,
    /// The linker's score.
    pub score: i64,
    /// Whether the linker is sure.
    pub strong: bool,
    /// Whether the test's text is in this context.
    pub included: bool,
}

/// A request went to the model: what changed since the request before, and the digest of the whole.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ModelCompleteStarted {
    /// Provider.
    pub provider: String,
    /// Model as requested.
    pub model: String,
    /// How many messages of the request before stand unchanged at the beginning of this one.
    pub keep: u64,
    /// The messages after those.
    pub append: Vec<MessageRecord>,
    /// Digest of the canonical request.
    pub digest: Digest,
    /// Digest of the tool definitions.
    pub tools_digest: Digest,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageRecord {
    /// Who says it.
    pub role: Role,
    /// What.
    pub content: Payload,
    /// The action that a `tool` message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
    /// The tool calls of an `assistant` message: the actions in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ActionId>,
}

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The runtime's standing instructions.
    System,
    /// The user, or the runtime on the user's behalf.
    User,
    /// The model.
    Assistant,
    /// The result of an action.
    Tool,
}

/// What kind of reply it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyKind {
    /// The model asks for actions.
    ToolCalls,
    /// The model gives its answer.
    Final,
    /// No reply came.
    None,
}

/// The model replied, or failed to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ModelCompleteFinished {
    /// What kind of reply.
    pub reply_kind: ReplyKind,
    /// Number of tool calls in it.
    pub tool_calls: u32,
    /// The reply verbatim, as the model's service gave it (redacted).
    pub reply: Payload,
    /// Its text.
    pub text: Payload,
    /// Its reasoning, if the service shows any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Payload>,
    /// The service's finish reason.
    pub finish_reason: String,
    /// Tokens of this request.
    pub usage: Usage,
    /// Attempts made, at least one.
    pub attempts: u32,
    /// Set if no reply could be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// Tokens in exclusive buckets: their sum is what was processed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input that was neither read from nor written to a cache.
    #[serde(default)]
    pub input: u64,
    /// Output without reasoning.
    #[serde(default)]
    pub output: u64,
    /// Reasoning output.
    #[serde(default)]
    pub reasoning: u64,
    /// Input read from a cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Input written to a cache.
    #[serde(default)]
    pub cache_write: u64,
}

impl Usage {
    /// Adds another request's tokens.
    pub fn add(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }

    /// Returns all input, cached or not.
    #[must_use]
    pub const fn total_input(self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// Returns all output.
    #[must_use]
    pub const fn total_output(self) -> u64 {
        self.output.saturating_add(self.reasoning)
    }

    /// Returns everything.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.total_input().saturating_add(self.total_output())
    }
}

/// Old turns of the conversation were replaced by a summary.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ContextCompacted {
    /// The message that stands in their place.
    pub summary: Payload,
    /// How many messages before them stand unchanged.
    pub keep: u64,
    /// How many messages after those the summary replaces.
    pub dropped: u64,
}
