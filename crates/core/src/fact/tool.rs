//! Events about actions: what was asked, what was done, what came back.

use crate::{
    fact::{Failure, gate::Class},
    ids::Digest,
    payload::Payload,
    validation::{TestCommand, TestReading},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the model asked to have done; not yet allowed. The envelope's `action` is its id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// The tool.
    pub tool: String,
    /// The arguments as the model gave them, redacted; strings above the inline limit are artifact references.
    pub args: Value,
    /// The model service's id of the call.
    pub call_id: String,
    /// Position among the actions of the same reply, from 0.
    pub index: u32,
    /// One line for people: the tool and what it works on.
    pub description: String,
    /// Whether redaction changed the arguments: then the action can run now, but not be suspended.
    #[serde(default)]
    pub args_redacted: bool,
}

/// A permitted action is about to happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolExecuteStarted {
    /// The tool.
    pub tool: String,
    /// What it can do.
    pub risk: Class,
    /// The arguments, strings above 256 bytes cut.
    pub args: Value,
    /// The command line, for shell tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did what it should.
    Ok,
    /// It failed; for a command, it exited with another code than 0.
    Failed,
    /// A gate refused it.
    Refused,
    /// It took too long and was killed.
    Timeout,
    /// A person stopped it.
    Cancelled,
    /// The process died meanwhile: nobody knows.
    Unknown,
    /// It was not reached.
    NotRun,
}

impl Outcome {
    /// Returns the spelling used in events and tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
            Self::NotRun => "not_run",
        }
    }
}

/// The action happened, or did not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolExecuteFinished {
    /// How it ended.
    pub outcome: Outcome,
    /// A command's exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Everything that it put out.
    pub output: Payload,
    /// Characters of that.
    pub output_chars: u64,
    /// Whether it put out more than was kept.
    pub truncated: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What it changed.
    #[serde(rename = "sideEffects")]
    pub side_effects: Vec<SideEffect>,
    /// What its output says, if it was a test run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<TestRunRecord>,
    /// Set unless the outcome is `ok`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// A recognised test run and what it says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestRunRecord {
    /// The command, taken apart.
    pub command: TestCommand,
    /// What its end and output say.
    pub reading: TestReading,
}

/// A file that an action changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideEffect {
    /// What happened to it.
    #[serde(rename = "type")]
    pub effect: SideEffectType,
    /// Path, relative to the workspace.
    #[serde(rename = "relativePath")]
    pub relative_path: String,
    /// Digest before; absent if there was no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    /// Digest after; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Digest>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SideEffectType {
    /// It was written.
    WriteFile,
    /// It was removed.
    DeleteFile,
}

/// What came back from an action, or how the workspace was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// What it is about.
    pub kind: ObservationKind,
    /// When, seen from the action.
    pub phase: Phase,
    /// What the model reads, for tool output and notices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Payload>,
    /// How the action ended, for tool output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The workspace at this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceState>,
}

/// What an observation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservationKind {
    /// The workspace.
    Environment,
    /// The result of an action.
    ToolOutput,
    /// Anything else.
    External,
}

/// When an observation was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before an action.
    Before,
    /// After one.
    After,
    /// At any time.
    Notice,
}

/// The state of a workspace: equal digests, equal files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceState {
    /// Digest over all paths and contents that git does not ignore.
    pub digest: Digest,
    /// How many files.
    pub files: u64,
    /// The commit that is checked out, 40 or 64 hex digits. `None`: the workspace is no repository, or has no commit yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The first 256 paths that differ from the observation before.
    pub changed: Vec<String>,
    /// How many differ.
    pub changed_total: u64,
}

/// A call inside an action, for instance of another model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Subcall {
    /// The tool or model called.
    pub tool: String,
    /// What was asked.
    pub request: Payload,
    /// What came back.
    pub reply: Payload,
    /// Tokens.
    #[serde(default)]
    pub usage: crate::fact::model::Usage,
    /// Anything else.
    #[serde(default)]
    pub extra: Value,
}
