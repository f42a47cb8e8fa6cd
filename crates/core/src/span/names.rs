//! Every name that a span carries to the outside: scope, span names, attribute keys. `docs/spans.md` explains each of them.
//!
//! The GenAI conventions have no stable release, so their names are pinned here ([`SEMCONV`]) instead of being taken from
//! a crate in which they may vanish. Three groups: conventions of OpenTelemetry, names of our own (`tracegate.*`), and the
//! short names of the seed's trace, which its readers look for.

/// The version of the GenAI conventions that these names follow; recorded in `run.started`.
pub const SEMCONV: &str = "gen-ai/1.42.0";
/// Schema URL of the instrumentation scope.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/gen-ai/1.42.0";
/// Name of the instrumentation scope. It has no version: an export by a newer program must repeat the older one's bytes.
pub const SCOPE: &str = "tracegate";
/// What a segment's span name begins with; the agent's name follows.
pub const INVOKE_AGENT: &str = "invoke_agent";

/// Resource: the agent's name.
pub const SERVICE_NAME: &str = "service.name";
/// Resource: the agent's version.
pub const SERVICE_VERSION: &str = "service.version";
/// Resource: random id of the store; tells Jaeger that all processes of a run share one clock.
pub const HOST_ID: &str = "host.id";
/// Resource: what made the spans.
pub const TELEMETRY_SDK_NAME: &str = "telemetry.sdk.name";
/// Resource: in which language.
pub const TELEMETRY_SDK_LANGUAGE: &str = "telemetry.sdk.language";

/// On every span: the run, under the name by which backends group sessions.
pub const SESSION_ID: &str = "session.id";
/// On every failed span, and on no other: a low-cardinality kind of failure.
pub const ERROR_TYPE: &str = "error.type";
/// On segments: process id.
pub const PROCESS_PID: &str = "process.pid";

/// What kind of GenAI operation this is; only on segments, `model.complete` and `tool.execute`.
pub const GEN_AI_OPERATION_NAME: &str = "gen_ai.operation.name";
/// The run, as a conversation.
pub const GEN_AI_CONVERSATION_ID: &str = "gen_ai.conversation.id";
/// The agent's name.
pub const GEN_AI_AGENT_NAME: &str = "gen_ai.agent.name";
/// The agent's version.
pub const GEN_AI_AGENT_VERSION: &str = "gen_ai.agent.version";
/// Who serves the model.
pub const GEN_AI_PROVIDER_NAME: &str = "gen_ai.provider.name";
/// The model as requested.
pub const GEN_AI_REQUEST_MODEL: &str = "gen_ai.request.model";
/// Why the model stopped, in its service's words.
pub const GEN_AI_RESPONSE_FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// All input tokens, cached ones included.
pub const GEN_AI_USAGE_INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// All output tokens, reasoning included.
pub const GEN_AI_USAGE_OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// Input tokens read from a cache.
pub const GEN_AI_USAGE_CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
/// Input tokens written to a cache.
pub const GEN_AI_USAGE_CACHE_CREATION: &str = "gen_ai.usage.cache_creation.input_tokens";
/// Output tokens spent on reasoning.
pub const GEN_AI_USAGE_REASONING: &str = "gen_ai.usage.reasoning.output_tokens";
/// The tool.
pub const GEN_AI_TOOL_NAME: &str = "gen_ai.tool.name";
/// What sort of tool; ours are functions.
pub const GEN_AI_TOOL_TYPE: &str = "gen_ai.tool.type";
/// The model service's id of the call.
pub const GEN_AI_TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
/// The arguments, redacted and shortened, always valid JSON.
pub const GEN_AI_TOOL_CALL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
/// The span event that says what an evaluation found.
pub const GEN_AI_EVALUATION_RESULT: &str = "gen_ai.evaluation.result";
/// What was evaluated, on that event.
pub const GEN_AI_EVALUATION_NAME: &str = "gen_ai.evaluation.name";
/// What it found, in one word.
pub const GEN_AI_EVALUATION_SCORE_LABEL: &str = "gen_ai.evaluation.score.label";
/// Why, for people.
pub const GEN_AI_EVALUATION_EXPLANATION: &str = "gen_ai.evaluation.explanation";

/// The run.
pub const RUN_ID: &str = "tracegate.run.id";
/// The segment's number.
pub const SEGMENT: &str = "tracegate.segment";
/// The action's id.
pub const ACTION_ID: &str = "tracegate.action.id";
/// The event that began the span.
pub const BEGIN_SEQ: &str = "tracegate.event.begin_seq";
/// The event that ended the span.
pub const END_SEQ: &str = "tracegate.event.end_seq";
/// Set where another process ended the span.
pub const HEALED: &str = "tracegate.healed";
/// Set where the span ended because its run waits for its user.
pub const SUSPENDED: &str = "tracegate.suspended";
/// On a span that a receiver took only after everything long in it was shortened; other receivers have it whole.
pub const EXPORT_CUT: &str = "tracegate.export.cut";
/// How a span relates to the one that it links to; repeated on the span, because Jaeger's page drops link attributes.
pub const LINK_RELATION: &str = "tracegate.link.relation";
/// Version of the program that ran the segment.
pub const VERSION: &str = "tracegate.version";
/// Status of the run when the segment ended.
pub const STATUS: &str = "tracegate.status";
/// Why the loop ended.
pub const STOP_REASON: &str = "tracegate.stop_reason";
/// What the agent says at the end: a claim, not a result.
pub const CLAIM: &str = "tracegate.claim";
/// Why the validation gate ruled as it did, on segments.
pub const GATE_REASON: &str = "tracegate.gate.reason";
/// The validation gate's verdict.
pub const VERDICT: &str = "tracegate.verdict";
/// Input tokens of the whole run so far.
pub const USAGE_INPUT_TOTAL: &str = "tracegate.usage.total_input_tokens";
/// Output tokens of the whole run so far.
pub const USAGE_OUTPUT_TOTAL: &str = "tracegate.usage.total_output_tokens";
/// Actions that the model asked for in a step.
pub const STEP_ACTIONS: &str = "tracegate.step.actions";
/// How many files are in the context, of which the list shows the first ones.
pub const CONTEXT_INCLUDED_TOTAL: &str = "tracegate.context.included_total";
/// How many candidates are not.
pub const CONTEXT_DROPPED_TOTAL: &str = "tracegate.context.dropped_total";
/// Tests that belong to touched sources, and whether the model saw them.
pub const CONTEXT_LINKED_TESTS: &str = "tracegate.context.linked_tests";
/// Digest of the context report.
pub const CONTEXT_DIGEST: &str = "tracegate.context.digest";
/// Digest of the canonical request.
pub const REQUEST_DIGEST: &str = "tracegate.model.request_digest";
/// Reference to the reply where it is an artifact.
pub const REPLY_REF: &str = "tracegate.model.reply_ref";
/// Attempts made for one reply.
pub const ATTEMPTS: &str = "tracegate.model.attempts";
/// The ruling of the permission gate.
pub const PERMISSION_DECISION: &str = "tracegate.permission.decision";
/// Why, for programs.
pub const PERMISSION_REASON_CODE: &str = "tracegate.permission.reason_code";
/// The rule that decided.
pub const PERMISSION_RULE: &str = "tracegate.permission.rule";
/// What the action would have done.
pub const PERMISSION_EFFECTS: &str = "tracegate.permission.effects";
/// Digest of the policy in force.
pub const PERMISSION_POLICY_DIGEST: &str = "tracegate.permission.policy_digest";
/// Who answered, where somebody was asked.
pub const PERMISSION_APPROVER: &str = "tracegate.permission.approver";
/// The tool, on `permission.review`: `gen_ai.tool.name` there would count as a second tool call.
pub const TOOL_NAME: &str = "tracegate.tool.name";
/// How an action ended.
pub const TOOL_OUTCOME: &str = "tracegate.tool.outcome";
/// The signal that ended a command.
pub const TOOL_SIGNAL: &str = "tracegate.tool.signal";
/// What an action changed.
pub const TOOL_SIDE_EFFECTS: &str = "tracegate.tool.side_effects";
/// Reference to the output where it is an artifact.
pub const OUTPUT_REF: &str = "tracegate.tool.output_ref";
/// The last event that a checkpoint covers.
pub const CHECKPOINT_COVERS: &str = "tracegate.checkpoint.covers_seq";
/// Size of the log up to there.
pub const CHECKPOINT_BYTES: &str = "tracegate.checkpoint.log_bytes";
/// Whether the validation gate was armed.
pub const VALIDATION_ARMED: &str = "tracegate.validation.armed";
/// What follows from the verdict.
pub const VALIDATION_RULING: &str = "tracegate.validation.ruling";
/// Why, for people.
pub const VALIDATION_EXPLANATION: &str = "tracegate.validation.explanation";
/// How often the agent was sent back before.
pub const VALIDATION_PUSHED_BACK: &str = "tracegate.validation.pushed_back";
/// On the event `redaction.noted`: which rule fired how often.
pub const REDACTION_RULES: &str = "tracegate.redaction.rules";
/// On the event `readiness.waited`: for how long.
pub const READINESS_WAITED_MS: &str = "tracegate.readiness.waited_ms";
/// On the event `readiness.waited`: for what.
pub const READINESS_CONDITIONS: &str = "tracegate.readiness.conditions";
/// On the event `readiness.waited`: whether it went on all the same.
pub const READINESS_DEGRADED: &str = "tracegate.readiness.degraded";

/// Seed: the step's number.
pub const STEP: &str = "step";
/// Seed: token budget of the context.
pub const CONTEXT_BUDGET: &str = "context.budget";
/// Seed: tokens used.
pub const CONTEXT_USED: &str = "context.used";
/// Seed: files in the context.
pub const CONTEXT_INCLUDED_FILES: &str = "context.included_files";
/// Seed: candidates that are not, with the reason.
pub const CONTEXT_DROPPED_ITEMS: &str = "context.dropped_items";
/// Seed: file of the context report.
pub const CONTEXT_DEBUG_REPORT: &str = "context.debug_report";
/// Seed: `tool_calls`, `final` or `none`.
pub const RESPONSE_KIND: &str = "responseKind";
/// Seed: number of tool calls in a reply.
pub const TOOL_CALL_COUNT: &str = "toolCallCount";
/// Seed: the tool.
pub const SEED_TOOL_NAME: &str = "toolName";
/// Seed: the ruling.
pub const ACTION: &str = "action";
/// Seed: what the action can do.
pub const RISK: &str = "risk";
/// Seed: why the gate ruled so.
pub const REASON: &str = "reason";
/// Seed: the command line.
pub const COMMAND: &str = "command";
/// Seed: the command's exit code.
pub const EXIT_CODE: &str = "exit_code";
/// Seed: whether there was more output than was kept.
pub const OUTPUT_TRUNCATED: &str = "output.truncated";
/// Seed: how long the action took.
pub const DURATION_MS: &str = "durationMs";
/// Seed: characters of output.
pub const OUTPUT_CHARS: &str = "outputChars";
