//! Fara's types, field by field, in its order and with its defaults; a field that it does not have is refused, where Fara drops it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The whole of a trajectory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataPoint {
    /// What was to be done.
    pub task: Task,
    /// What happened.
    pub solver_log: SolverLog,
    /// What verifiers say, by name.
    #[serde(default)]
    pub verification: BTreeMap<String, VerificationResult>,
    /// Which run, when.
    pub metadata: DataPointMetadata,
}

/// What was to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its id.
    pub task_id: String,
    /// The goal.
    pub instruction: String,
    /// Paths of images.
    #[serde(default)]
    pub images: Vec<String>,
    /// Where it was to be done.
    #[serde(default)]
    pub environment_config: Map<String, Value>,
    /// For the agent.
    #[serde(default)]
    pub solver: SolverConfig,
    /// For verifiers.
    #[serde(default)]
    pub verifier: VerifierConfig,
    /// Anything else.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

/// What the agent is told besides the task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SolverConfig {
    /// Hints.
    #[serde(default)]
    pub hints: Option<String>,
}

/// What verifiers are told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifierConfig {
    /// Hints.
    #[serde(default)]
    pub hints: Option<String>,
    /// One object a verifier.
    #[serde(default)]
    pub config: Vec<Map<String, Value>>,
}

/// Which run, when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataPointMetadata {
    /// Anything countable.
    #[serde(default)]
    pub stats: Map<String, Value>,
    /// The run.
    #[serde(default)]
    pub run_id: Option<String>,
    /// When it began; without an offset.
    #[serde(default)]
    pub created_at: Option<String>,
}

/// What happened, and how it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SolverLog {
    /// In their order.
    #[serde(default)]
    pub events: Vec<Event>,
    /// How it ended.
    pub status: SolverStatus,
    /// What the agent said at the end.
    #[serde(default)]
    pub outcome: Option<Outcome>,
}

/// `status.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusFile {
    /// How it ended.
    pub status: SolverStatus,
    /// What the agent said at the end.
    pub outcome: Option<Outcome>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SolverStatus {
    /// It has not, or was killed.
    Running,
    /// The agent is done.
    Complete,
    /// Any other abnormal end.
    Aborted,
    /// Its time was up.
    TimedOut,
    /// Its steps were used up.
    MaxRounds,
    /// It waits for an answer.
    WaitingForUser,
}

/// What the agent said at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Its answer.
    #[serde(default)]
    pub answer: String,
}

/// One line of `events.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// What was seen or said.
    Observation(Box<Observation>),
    /// What the agent did.
    Action(Box<Action>),
}

/// What was seen or said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "observation_type", rename_all = "snake_case")]
pub enum Observation {
    /// The state of the environment.
    Environment(ComputerObservation),
    /// What came back from an action.
    ToolOutput(ToolOutput),
    /// What the user said.
    UserMessage(UserMessage),
}

/// The state of the environment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ComputerObservation {
    /// Its id.
    pub id: Option<String>,
    /// Anything else.
    pub metadata: Map<String, Value>,
    /// When; without an offset.
    pub timestamp: Option<String>,
    /// The action after which it was made; none before an action.
    pub action_id: Option<String>,
    /// A picture of it.
    pub screenshot_path: String,
    /// Where a browser is.
    pub url: String,
    /// Its text.
    pub page_info: String,
}

/// What came back from an action.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolOutput {
    /// Its id.
    pub id: Option<String>,
    /// Anything else.
    pub metadata: Map<String, Value>,
    /// When; without an offset.
    pub timestamp: Option<String>,
    /// The action.
    pub action_id: Option<String>,
    /// What came back.
    pub output: String,
    /// What went wrong.
    pub error: String,
}

/// What the user said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UserMessage {
    /// Its id.
    pub id: Option<String>,
    /// Anything else.
    pub metadata: Map<String, Value>,
    /// When; without an offset.
    pub timestamp: Option<String>,
    /// An action.
    pub action_id: Option<String>,
    /// What.
    pub content: String,
    /// Why.
    pub message_type: UserMessageType,
}

/// Why the user says something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserMessageType {
    /// The goal.
    #[default]
    Task,
    /// A further one.
    FollowupTask,
    /// The answer to a question of the agent.
    CriticalPointResponse,
    /// What a gate or a person found wrong.
    RetryFeedback,
}

/// What the agent did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Action {
    /// Its id.
    pub id: Option<String>,
    /// When; without an offset.
    pub timestamp: Option<String>,
    /// The tool.
    pub action_name: String,
    /// The agent when it decided.
    pub agent_state: AgentState,
    /// What the model said.
    pub llm_conversation: LlmConversation,
    /// `action` and `arguments`.
    pub content: Map<String, Value>,
    /// One sentence for people.
    pub action_nl_description: String,
    /// What another model said about where to click.
    pub grounding: Option<LlmConversation>,
    /// Calls of models inside it.
    pub tool_sub_calls: Vec<ToolSubCall>,
}

/// The agent when it decided.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentState {
    /// Its name.
    pub agent: String,
    /// What it could call.
    pub tools_available: Vec<String>,
    /// What it was going to do.
    pub plan: Vec<Map<String, Value>>,
    /// What it had noted.
    pub facts: Vec<String>,
}

/// What a model said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LlmConversation {
    /// In its order.
    pub messages: Vec<LlmMessage>,
}

/// One reply of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LlmMessage {
    /// Which model.
    pub model: Option<String>,
    /// What for.
    pub label: String,
    /// Verbatim.
    pub raw_response: String,
    /// Its reasoning.
    pub reasoning: String,
    /// Why it ended.
    pub finish_reason: String,
    /// Its tokens.
    pub usage: LlmUsage,
}

/// Tokens, as services count them: reasoning is a part of the completion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LlmUsage {
    /// All input.
    pub prompt_tokens: u64,
    /// All output.
    pub completion_tokens: u64,
    /// The reasoning in it.
    pub reasoning_tokens: u64,
}

/// A call inside an action.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolSubCall {
    /// What was called.
    pub tool_name: String,
    /// What it said.
    pub conversation: LlmConversation,
    /// Anything else.
    pub extra: Map<String, Value>,
}

/// What a verifier says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerificationResult {
    /// Always `base`.
    #[serde(default = "base")]
    pub result_type: String,
    /// Between 0 and 1; none if it could not judge.
    #[serde(default)]
    pub score: Option<f64>,
    /// Why.
    #[serde(default)]
    pub reasoning: Option<String>,
    /// Its name, unique in the trajectory.
    pub verifier_name: String,
    /// Anything else.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// What a model said about it.
    #[serde(default)]
    pub llm_conversation: LlmConversation,
}

fn base() -> String {
    "base".to_owned()
}

/// Tells whether the value under `key` is an id, an enum, a digest or a time of ours, and never payload.
#[must_use]
pub fn is_schema_key(key: &str) -> bool {
    matches!(
        key,
        "type"
            | "observation_type"
            | "message_type"
            | "result_type"
            | "id"
            | "action_id"
            | "run_id"
            | "task_id"
            | "trace_id"
            | "timestamp"
            | "created_at"
            | "status"
            | "digest"
            | "before"
            | "after"
    )
}

/// Tells whether what lies under `key` is free-form payload in which no key is ours.
#[must_use]
pub fn is_free_key(key: &str) -> bool {
    matches!(key, "arguments" | "extra")
}
