//! Events about the run as a whole: its beginning and end, segments, steps, status, limits, verification.

use crate::{
    fact::{Failure, SpanRef, gate::PolicyGranted},
    ids::{Digest, SpanId, TraceId},
    payload::Payload,
    stop::{Status, StopReason},
    validation::Verdict,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that a reader, a resume or an export of the run needs and that must not change afterwards.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunStarted {
    /// The goal, as the user gave it (redacted).
    pub goal: Payload,
    /// Who works on it.
    pub agent: Agent,
    /// Which model the agent uses.
    pub model: ModelInfo,
    /// The trace that every span of the run belongs to.
    pub trace_id: TraceId,
    /// The span of another program that this run joins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_parent: Option<RemoteParent>,
    /// The span of another program that this run refers to from a trace of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_link: Option<RemoteSpan>,
    /// Random id of the store, for the resource attribute `host.id`.
    pub host_id: String,
    /// The resource attributes of every exported span, fixed here so that a re-export repeats them.
    pub resource: BTreeMap<String, String>,
    /// Version of the GenAI conventions that the spans follow.
    pub semconv: String,
    /// The workspace's directory.
    pub workspace: String,
    /// The policy in force.
    pub policy: PolicyRef,
    /// What the command line granted on top.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<PolicyGranted>,
    /// Where the run ends on its own.
    pub limits: Limits,
    /// How the run was set up.
    pub settings: Settings,
}

/// Name and version of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Name, the `service.name` of its spans.
    pub name: String,
    /// Version.
    pub version: String,
}

/// Which model, from whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Provider in the words of the GenAI conventions (`anthropic`, `openai`, …), or `scripted`.
    pub provider: String,
    /// The model as requested.
    pub name: String,
    /// Where a scripted model's replies come from, so that a resume finds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
}

/// A span of another process that a run hangs under, from `TRACEPARENT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteParent {
    /// Its span id; its trace id is the run's.
    pub span_id: SpanId,
}

/// A span of another process in its own trace, from `TRACEPARENT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteSpan {
    /// Its trace.
    pub trace_id: TraceId,
    /// The span.
    pub span_id: SpanId,
}

/// The policy that a run was started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRef {
    /// Digest over all policy files in force, in order.
    pub digest: Digest,
    /// Their names.
    pub files: Vec<String>,
}

/// Where a run ends on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Steps, at least one.
    pub max_steps: u32,
    /// Tokens, input and output together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Wall time of all segments together, in milliseconds; what passes between two segments is nobody's work and does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<u64>,
    /// Cost by [`Settings::prices`], in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<u64>,
}

/// What a million tokens of each kind cost, in millionths of a US dollar. Reasoning is paid as output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// Input that is neither read from nor written to a cache.
    pub input: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache.
    pub cache_write: u64,
}

impl Prices {
    /// Returns what `usage` costs, in millionths of a US dollar, rounded up.
    #[must_use]
    pub fn cost(self, usage: crate::fact::model::Usage) -> u64 {
        let parts = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.reasoning, self.output),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
        ];
        let pico = parts.into_iter().fold(0_u128, |sum, (tokens, price)| {
            sum.saturating_add(u128::from(tokens) * u128::from(price))
        });
        u64::try_from(pico.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// How a run was set up, as far as its course depends on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Whether linked tests may enter the context.
    pub context_tests: Switch,
    /// Token budget of the context.
    pub context_budget: u64,
    /// How often the validation gate sends the agent back.
    pub push_back: u32,
    /// What the model reads.
    pub redaction: RedactionMode,
    /// When the log is synced.
    pub durability: Durability,
    /// How long a step waits for the workspace, in milliseconds.
    pub readiness_ms: u64,
    /// How long a command may run, in milliseconds.
    pub command_ms: u64,
    /// How many tokens the model takes in; a conversation that outgrows it is compacted.
    #[serde(default = "default_window")]
    pub window: u64,
    /// What the gate does where the policy asks.
    #[serde(default)]
    pub on_ask: OnAsk,
    /// What the model's tokens cost, if anybody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
}

/// The model's window where none is named; logs from before this setting were made without compaction, which this only resembles.
const fn default_window() -> u64 {
    128_000
}

/// What the gate does where the policy asks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnAsk {
    /// It asks whoever sits at the terminal; if nobody does, it refuses.
    #[default]
    Terminal,
    /// It refuses: the model is told that nobody was there.
    Deny,
    /// It suspends the run until somebody answers.
    Suspend,
}

/// On or off, where a bool would not say of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// In use.
    On,
    /// Not in use.
    Off,
}

/// What the model reads where a secret stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RedactionMode {
    /// The same scrubbed text that the log holds.
    Masked,
}

/// When the log is synced to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Never by us: survives the death of the process, not of the machine.
    Kill,
    /// Before a side effect, after its result, at questions and at the end.
    Step,
    /// After every event.
    Event,
}

/// The run is over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunFinished {
    /// The last status.
    pub status: Status,
    /// Why.
    pub stop_reason: StopReason,
    /// What the agent said at the end, if it said anything: a claim, not a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Payload>,
    /// What the evidence says.
    pub evidence: String,
    /// The validation gate's last verdict, if it ruled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Steps taken.
    pub steps: u32,
}

/// A process began to work on the run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SegmentStarted {
    /// Process id.
    pub pid: u32,
    /// Version of the program.
    pub version: String,
    /// The segment before, if this one resumes the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<SpanRef>,
    /// New limits, if the run was resumed with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The policy in force, if the run was resumed with another one and the user accepted that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyRef>,
    /// The goal in force, if `task.json` names another one and the user accepted that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Payload>,
}

/// A process stopped working on the run; the first segment of a run that ends in it carries the outcome on the root span.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SegmentFinished {
    /// Status that it leaves.
    pub status: Status,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// The agent's last words, shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// Why the validation gate ruled as it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_reason: Option<String>,
    /// Set if the run failed in this segment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// Tokens of the whole run so far.
    pub usage: crate::fact::model::Usage,
}

/// A turn of the loop began.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct AgentStepStarted {}

/// A turn of the loop ended.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct AgentStepFinished {
    /// Actions that the model asked for.
    pub actions: u32,
}

/// The run changed its status.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct StatusChanged {
    /// The new status.
    pub status: Status,
    /// Why, unless it is `running` again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
}

/// Which limit, at which value.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LimitReached {
    /// `steps`, `tokens`, `time` in milliseconds, or `cost` in millionths of a US dollar.
    pub which: String,
    /// The value that reached it.
    pub value: u64,
    /// The limit.
    pub limit: u64,
}

/// A verifier or an eval gave a result; also a line of `verification.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerificationRecorded {
    /// Name of the verifier.
    pub verifier: String,
    /// How many results of this name there were before; shown as `name`, `name_1`, `name_2`.
    pub instance: u32,
    /// Whether it is satisfied; null if it could not judge.
    pub passed: Option<bool>,
    /// Between 0 and 1, if it scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Why.
    pub reasoning: String,
}

/// A step waited until the workspace could be used.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadinessWaited {
    /// How long, in milliseconds.
    pub waited_ms: u64,
    /// What it waited for, such as `.git/index.lock`.
    pub conditions: Vec<String>,
    /// Whether it gave up waiting and went on all the same.
    pub degraded: bool,
}
