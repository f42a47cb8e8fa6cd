//! What each event adds to its span: attributes, and whether the operation failed. The table of `docs/spans.md`, as code.

use super::{arguments::arguments, names, record::Value, sorted::Attributes};
use crate::{
    fact::{
        Fact, Failure,
        gate::{PermissionReviewFinished, ValidationReviewFinished},
        model::{ContextBuildFinished, ModelCompleteFinished, ModelCompleteStarted, ReplyKind},
        run::{SegmentFinished, SegmentStarted},
        tool::{Outcome, SideEffectType, ToolExecuteFinished, ToolExecuteStarted},
    },
    payload::{Payload, clip},
    stop::Status,
};
use serde::Serialize;
use std::borrow::Cow;

/// The longest `error.type`, in bytes: it is a kind, not a message.
const MAX_ERROR_TYPE: usize = 64;
/// The failure of a span whose process waits for its user: nothing failed.
const SUSPENDED: &str = "suspended";

/// The facts about a run that its spans repeat.
#[derive(Debug, Clone)]
pub(super) struct Actor {
    pub(super) run: String,
    pub(super) agent: String,
    pub(super) version: String,
    pub(super) provider: String,
    pub(super) model: String,
}

/// The attributes of one span while its events come in.
#[derive(Debug, Clone, Default)]
pub(super) struct Sheet(pub(super) Attributes);

impl Sheet {
    pub(super) fn text(&mut self, key: &'static str, text: &str) {
        self.0.insert(Cow::Borrowed(key), Value::text(text));
    }

    /// Leaves out what is empty: an empty attribute says nothing and costs a row.
    fn some_text(&mut self, key: &'static str, text: &str) {
        if !text.is_empty() {
            self.text(key, text);
        }
    }

    fn shown(&mut self, key: &'static str, value: impl std::fmt::Display) {
        self.0.insert(Cow::Borrowed(key), Value::of(value.to_string()));
    }

    /// Writes an enum in its spelling of the log, whatever its variants are.
    pub(super) fn spelled(&mut self, key: &'static str, value: &impl Serialize) {
        if let Ok(serde_json::Value::String(text)) = serde_json::to_value(value) {
            self.0.insert(Cow::Borrowed(key), Value::of(text));
        }
    }

    pub(super) fn count(&mut self, key: &'static str, number: u64) {
        self.0.insert(Cow::Borrowed(key), Value::count(number));
    }

    fn int(&mut self, key: &'static str, number: i64) {
        self.0.insert(Cow::Borrowed(key), Value::Int(number));
    }

    pub(super) fn flag(&mut self, key: &'static str, flag: bool) {
        self.0.insert(Cow::Borrowed(key), Value::Bool(flag));
    }

    pub(super) fn list(&mut self, key: &'static str, items: impl IntoIterator<Item = String>) {
        self.0.insert(Cow::Borrowed(key), Value::list(items));
    }

    /// Names the artifact that holds a payload; text that is not in one stays in the log.
    fn reference(&mut self, key: &'static str, payload: &Payload) {
        if let Some(reference) = payload.reference() {
            self.shown(key, reference.digest);
        }
    }

    /// Writes what every GenAI operation carries.
    fn operation(&mut self, name: &str, actor: &Actor) {
        self.text(names::GEN_AI_OPERATION_NAME, name);
        self.text(names::GEN_AI_CONVERSATION_ID, &actor.run);
        self.text(names::GEN_AI_AGENT_NAME, &actor.agent);
    }

    /// Adds what `fact` says about its span and returns how the operation failed, if it did.
    ///
    /// Only the beginning and the end of a span say something here; points inside it are span events.
    pub(super) fn add(&mut self, fact: &Fact, actor: &Actor, call_id: Option<&str>) -> Option<Failure> {
        match fact {
            Fact::SegmentStarted(data) => self.segment_started(data, actor),
            Fact::SegmentFinished(data) => return self.segment_finished(data),
            Fact::AgentStepStarted(_) => {}
            Fact::AgentStepFinished(data) => self.count(names::STEP_ACTIONS, data.actions.into()),
            Fact::ContextBuildStarted(data) => self.count(names::CONTEXT_BUDGET, data.budget),
            Fact::ContextBuildFinished(data) => return self.context(data),
            Fact::ModelCompleteStarted(data) => self.model_started(data, actor),
            Fact::ModelCompleteFinished(data) => return self.model_finished(data),
            Fact::PermissionReviewStarted(data) => {
                self.text(names::SEED_TOOL_NAME, &data.tool);
                self.text(names::TOOL_NAME, &data.tool);
            }
            Fact::PermissionReviewFinished(data) => return self.permission(data),
            Fact::ToolExecuteStarted(data) => self.tool_started(data, actor, call_id),
            Fact::ToolExecuteFinished(data) => return self.tool_finished(data),
            Fact::CheckpointSaveStarted(_) | Fact::ValidationReviewStarted(_) => {}
            Fact::CheckpointSaveFinished(data) => {
                self.count(names::CHECKPOINT_COVERS, data.covers.0);
                self.count(names::CHECKPOINT_BYTES, data.bytes);
                return data.error.clone();
            }
            Fact::ValidationReviewFinished(data) => return self.validation(data),
            Fact::SpanHealed(_, data) => {
                self.flag(names::HEALED, true);
                if data.error.kind == SUSPENDED {
                    self.flag(names::SUSPENDED, true);
                    return None;
                }
                return Some(data.error.clone());
            }
            Fact::RunStarted(_)
            | Fact::RunFinished(_)
            | Fact::UserMessage(_)
            | Fact::UserQuestion(_)
            | Fact::Action(_)
            | Fact::Observation(_)
            | Fact::SpanNoted(_)
            | Fact::Subcall(_)
            | Fact::PolicyGranted(_)
            | Fact::StatusChanged(_)
            | Fact::LimitReached(_)
            | Fact::VerificationRecorded(_)
            | Fact::ReadinessWaited(_)
            | Fact::ContextCompacted(_)
            | Fact::RedactionNoted(_)
            | Fact::ArtifactDropped(_)
            | Fact::LogRecovered(_)
            | Fact::LogGap(_)
            | Fact::LogScrubbed(_)
            | Fact::Unknown { .. } => {}
        }
        None
    }

    fn segment_started(&mut self, data: &SegmentStarted, actor: &Actor) {
        self.operation(names::INVOKE_AGENT, actor);
        self.some_text(names::GEN_AI_AGENT_VERSION, &actor.version);
        self.some_text(names::GEN_AI_PROVIDER_NAME, &actor.provider);
        self.some_text(names::GEN_AI_REQUEST_MODEL, &actor.model);
        self.count(names::PROCESS_PID, data.pid.into());
        self.some_text(names::VERSION, &data.version);
    }

    fn segment_finished(&mut self, data: &SegmentFinished) -> Option<Failure> {
        self.shown(names::STATUS, data.status);
        self.shown(names::STOP_REASON, data.stop_reason);
        self.some_text(names::CLAIM, data.claim.as_deref().unwrap_or_default());
        self.some_text(
            names::GATE_REASON,
            data.gate_reason.as_deref().unwrap_or_default(),
        );
        // Not `gen_ai.usage.*`: backends that add up the spans of a trace would count every token twice.
        self.count(names::USAGE_INPUT_TOTAL, data.usage.total_input());
        self.count(names::USAGE_OUTPUT_TOTAL, data.usage.total_output());
        // A failed run is red even if nothing else is known about its failure.
        let failed = || (data.status == Status::Failed).then(|| Failure::new(data.stop_reason.as_str(), ""));
        data.error.clone().or_else(failed)
    }

    fn context(&mut self, data: &ContextBuildFinished) -> Option<Failure> {
        self.count(names::CONTEXT_BUDGET, data.budget);
        self.count(names::CONTEXT_USED, data.used);
        self.list(
            names::CONTEXT_INCLUDED_FILES,
            data.included.iter().map(|item| item.path.clone()),
        );
        self.list(
            names::CONTEXT_DROPPED_ITEMS,
            data.dropped
                .iter()
                .map(|item| format!("{}: {}", item.path, item.reason)),
        );
        self.count(names::CONTEXT_INCLUDED_TOTAL, data.included_total);
        self.count(names::CONTEXT_DROPPED_TOTAL, data.dropped_total);
        if !data.links.is_empty() {
            let links = data.links.iter().map(|link| {
                let seen = if link.included { "included" } else { "left out" };
                format!("{} -> {} ({seen})", link.source, link.test)
            });
            self.list(names::CONTEXT_LINKED_TESTS, links);
        }
        self.some_text(names::CONTEXT_DEBUG_REPORT, &data.report);
        self.shown(names::CONTEXT_DIGEST, data.digest);
        data.error.clone()
    }

    fn model_started(&mut self, data: &ModelCompleteStarted, actor: &Actor) {
        self.operation("chat", actor);
        self.text(names::GEN_AI_PROVIDER_NAME, &data.provider);
        self.text(names::GEN_AI_REQUEST_MODEL, &data.model);
        self.shown(names::REQUEST_DIGEST, data.digest);
    }

    fn model_finished(&mut self, data: &ModelCompleteFinished) -> Option<Failure> {
        let kind = match data.reply_kind {
            ReplyKind::ToolCalls => "tool_calls",
            ReplyKind::Final => "final",
            ReplyKind::None => "none",
        };
        self.text(names::RESPONSE_KIND, kind);
        self.count(names::TOOL_CALL_COUNT, data.tool_calls.into());
        self.count(names::ATTEMPTS, data.attempts.into());
        self.reference(names::REPLY_REF, &data.reply);
        if !data.finish_reason.is_empty() {
            self.list(
                names::GEN_AI_RESPONSE_FINISH_REASONS,
                [data.finish_reason.clone()],
            );
        }
        self.count(names::GEN_AI_USAGE_INPUT_TOKENS, data.usage.total_input());
        self.count(names::GEN_AI_USAGE_OUTPUT_TOKENS, data.usage.total_output());
        for (key, tokens) in [
            (names::GEN_AI_USAGE_CACHE_READ, data.usage.cache_read),
            (names::GEN_AI_USAGE_CACHE_CREATION, data.usage.cache_write),
            (names::GEN_AI_USAGE_REASONING, data.usage.reasoning),
        ] {
            if tokens > 0 {
                self.count(key, tokens);
            }
        }
        data.error.clone()
    }

    fn permission(&mut self, data: &PermissionReviewFinished) -> Option<Failure> {
        self.text(names::SEED_TOOL_NAME, &data.tool);
        self.text(names::TOOL_NAME, &data.tool);
        self.shown(names::ACTION, data.decision);
        self.shown(names::RISK, data.class);
        self.text(names::REASON, &data.reason);
        self.shown(names::PERMISSION_DECISION, data.decision);
        self.text(names::PERMISSION_REASON_CODE, &data.reason_code);
        self.text(names::PERMISSION_RULE, &data.rule);
        self.list(names::PERMISSION_EFFECTS, data.effects.iter().cloned());
        self.shown(names::PERMISSION_POLICY_DIGEST, data.digest);
        self.some_text(
            names::PERMISSION_APPROVER,
            data.approver.as_deref().unwrap_or_default(),
        );
        data.error.clone()
    }

    fn tool_started(&mut self, data: &ToolExecuteStarted, actor: &Actor, call_id: Option<&str>) {
        self.operation("execute_tool", actor);
        self.text(names::GEN_AI_TOOL_NAME, &data.tool);
        self.text(names::GEN_AI_TOOL_TYPE, "function");
        self.some_text(names::GEN_AI_TOOL_CALL_ID, call_id.unwrap_or_default());
        // Longer than other strings, and cut by `arguments` itself so that it stays JSON.
        let args = Value::Str(arguments(&data.args));
        self.0
            .insert(Cow::Borrowed(names::GEN_AI_TOOL_CALL_ARGUMENTS), args);
        self.text(names::SEED_TOOL_NAME, &data.tool);
        self.shown(names::RISK, data.risk);
        self.some_text(names::COMMAND, data.command.as_deref().unwrap_or_default());
    }

    fn tool_finished(&mut self, data: &ToolExecuteFinished) -> Option<Failure> {
        self.text(names::TOOL_OUTCOME, data.outcome.as_str());
        if let Some(code) = data.exit_code {
            self.int(names::EXIT_CODE, code.into());
        }
        if let Some(signal) = data.signal {
            self.int(names::TOOL_SIGNAL, signal.into());
        }
        self.flag(names::OUTPUT_TRUNCATED, data.truncated);
        self.count(names::DURATION_MS, data.duration_ms);
        self.count(names::OUTPUT_CHARS, data.output_chars);
        self.reference(names::OUTPUT_REF, &data.output);
        if !data.side_effects.is_empty() {
            let effects = data.side_effects.iter().map(|effect| {
                let verb = match effect.effect {
                    SideEffectType::WriteFile => "write_file",
                    SideEffectType::DeleteFile => "delete_file",
                };
                format!("{verb} {}", effect.relative_path)
            });
            self.list(names::TOOL_SIDE_EFFECTS, effects);
        }
        tool_failure(data)
    }

    fn validation(&mut self, data: &ValidationReviewFinished) -> Option<Failure> {
        self.spelled(names::VERDICT, &data.verdict.outcome);
        self.flag(names::VALIDATION_ARMED, data.verdict.armed);
        self.spelled(names::VALIDATION_RULING, &data.ruling);
        self.some_text(names::VALIDATION_EXPLANATION, &data.verdict.explanation);
        self.count(names::VALIDATION_PUSHED_BACK, data.pushed_back.into());
        data.error.clone()
    }

    /// Marks the span as failed and returns its status message.
    pub(super) fn fail(&mut self, failure: &Failure) -> String {
        let kind = if failure.kind.is_empty() {
            "_OTHER"
        } else {
            &failure.kind
        };
        self.text(names::ERROR_TYPE, &clip(kind, MAX_ERROR_TYPE));
        clip(&failure.message, super::record::MAX_STRING)
    }
}

/// Returns how a tool call failed. A refusal and an action that was not reached are results, not failures.
fn tool_failure(data: &ToolExecuteFinished) -> Option<Failure> {
    let kind = match data.outcome {
        Outcome::Ok | Outcome::Refused | Outcome::NotRun => return None,
        Outcome::Failed if data.exit_code.is_some_and(|code| code != 0) => "exit_code",
        Outcome::Failed => "tool_error",
        Outcome::Timeout => "timeout",
        Outcome::Cancelled => "cancelled",
        Outcome::Unknown => "process_killed",
    };
    let given = data.error.clone().filter(|error| !error.kind.is_empty());
    let mut failure = given.unwrap_or_else(|| Failure::new(kind, ""));
    if failure.message.is_empty()
        && let Some(code) = data.exit_code
    {
        failure.message = format!("exit code {code}");
    }
    Some(failure)
}
