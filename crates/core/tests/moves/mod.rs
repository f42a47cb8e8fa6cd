//! The moves of a run, to be recorded one after another: each a function that appends one event, or a span's two.
#![allow(dead_code, reason = "each test program uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a fixture reads best without ceremony"
)]

use crate::recorded::{Recording, digest, run_started};
use serde_json::{Value, json};

pub(crate) fn push(log: &mut Recording, name: &str, data: &Value) {
    log.push(name, data);
}

pub(crate) fn start(log: &mut Recording, kind: &'static str, data: Value) {
    log.start(kind, data);
}

pub(crate) fn begin(log: &mut Recording) {
    log.push("run.started", &run_started());
    log.start("segment", json!({"pid": 1, "version": "0.1.0"}));
}

pub(crate) fn observe(log: &mut Recording) {
    log.push("observation", &json!({"kind": "environment", "phase": "before"}));
}

pub(crate) fn ask_for(log: &mut Recording, action: u64) {
    log.action = Some(action);
    log.push(
        "action",
        &json!({"tool": "shell", "args": {}, "call_id": "c", "index": 0, "description": "shell"}),
    );
}

pub(crate) fn review(log: &mut Recording, decision: &str) {
    log.start("permission.review", json!({"tool": "shell"}));
    log.finish(
        json!({"tool": "shell", "decision": decision, "class": "shell", "reason_code": "rule", "rule": "user:x",
        "reason": "", "effects": ["run x"], "digest": digest()}),
    );
}

pub(crate) fn execute(log: &mut Recording) {
    log.start(
        "tool.execute",
        json!({"tool": "shell", "risk": "shell", "args": {}, "command": "x"}),
    );
}

pub(crate) fn executed(log: &mut Recording) {
    log.finish(
        json!({"outcome": "ok", "output": "", "output_chars": 0, "truncated": false, "duration_ms": 1,
        "sideEffects": []}),
    );
}

pub(crate) fn settle(log: &mut Recording) {
    log.push(
        "observation",
        &json!({"kind": "tool_output", "phase": "after", "content": "", "outcome": "ok"}),
    );
    log.action = None;
}

pub(crate) fn request(log: &mut Recording) {
    log.start(
        "model.complete",
        json!({"provider": "scripted", "model": "c", "keep": 0, "append": [], "digest": digest(), "tools_digest": digest()}),
    );
}

pub(crate) fn rule(log: &mut Recording, ruling: &str) {
    let outcome = if ruling == "complete" { "passed" } else { "failed" };
    log.start("validation.review", json!({}));
    log.finish(json!({"verdict": {"outcome": outcome, "armed": true, "reason": "last_test_passed", "alternatives": [],
        "warnings": [], "evidence": [], "required": [], "explanation": "x"}, "ruling": ruling, "pushed_back": 0}));
}

pub(crate) fn end_segment(log: &mut Recording, status: &str, reason: &str) {
    log.finish(json!({"status": status, "stop_reason": reason, "usage": {}}));
}

pub(crate) fn end_run(log: &mut Recording, status: &str, reason: &str) {
    log.push(
        "run.finished",
        &json!({"status": status, "stop_reason": reason, "evidence": "", "steps": 1}),
    );
}

pub(crate) fn ended(log: &mut Recording) {
    begin(log);
    end_segment(log, "failed", "max_steps");
    end_run(log, "failed", "max_steps");
}

pub(crate) fn message(log: &mut Recording, kind: &str, question: Option<&str>) {
    log.push(
        "user.message",
        &json!({"kind": kind, "content": "x", "question": question}),
    );
}

pub(crate) fn verify(log: &mut Recording) {
    log.push(
        "verification.recorded",
        &json!({"verifier": "v", "instance": 0, "passed": true, "reasoning": ""}),
    );
}

pub(crate) fn status(log: &mut Recording, status: &str) {
    log.push("status.changed", &json!({ "status": status }));
}
