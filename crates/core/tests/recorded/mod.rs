//! A small recorded run, written by hand: the seed's failing repair in two steps, with a retry, a refusal and a rejected end.
#![allow(dead_code, reason = "each test program uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a fixture reads best without ceremony"
)]

use serde_json::{Value, json};
use tracegate_core::{
    event::Event,
    fact::Fact,
    ids::{ActionId, Digest, RunId, SegmentNo, Seq, SpanId, StepNo, Timestamp},
};

/// When the run began.
pub(crate) const BEGAN: u64 = 1_796_000_000_000_000_000;

/// The run's id.
pub(crate) fn run() -> RunId {
    "run_repair_20261130_00000001".parse().unwrap()
}

/// Builds a log event by event; spans nest as they are opened and closed.
pub(crate) struct Recording {
    pub(crate) events: Vec<Event>,
    pub(crate) segment: u32,
    pub(crate) step: Option<u32>,
    pub(crate) action: Option<u64>,
    open: Vec<(&'static str, SpanId)>,
}

impl Recording {
    pub(crate) fn new() -> Self {
        Self {
            events: Vec::new(),
            segment: 1,
            step: None,
            action: None,
            open: Vec::new(),
        }
    }

    /// Appends an event in the innermost open span.
    pub(crate) fn push(&mut self, name: &str, data: &Value) -> &mut Event {
        let seq = Seq(self.events.len() as u64 + 1);
        let raw = serde_json::value::to_raw_value(data).unwrap();
        let fact = Fact::from_json(name, &raw).unwrap();
        let ts = Timestamp(BEGAN + seq.0 * 1_000_000);
        let mut event = Event::new(&run(), seq, SegmentNo(self.segment), ts, seq.0 * 1_000_000, fact);
        event.step = self.step.map(StepNo);
        event.action = self.action.map(ActionId);
        event.span = self.open.last().map(|(_, span)| *span);
        self.events.push(event);
        self.events.last_mut().unwrap()
    }

    pub(crate) fn start(&mut self, kind: &'static str, data: Value) -> SpanId {
        let parent = self.open.last().map(|(_, span)| *span);
        let event = self.push(&format!("{kind}.started"), &data);
        let span = SpanId::derive(&run(), event.seq);
        event.span = Some(span);
        event.parent = parent;
        self.open.push((kind, span));
        span
    }

    pub(crate) fn finish(&mut self, data: Value) {
        let (kind, _) = *self.open.last().unwrap();
        self.push(&format!("{kind}.finished"), &data);
        self.open.pop();
    }
}

pub(crate) fn digest() -> String {
    Digest::of(b"x").to_string()
}

pub(crate) fn run_started() -> Value {
    json!({
        "goal": "Fix the failing tests", "agent": {"name": "repair-bot", "version": "1.0"},
        "model": {"provider": "scripted", "name": "cassette"}, "trace_id": "0123456789abcdef0123456789abcdef",
        "host_id": "h-1", "resource": {"deployment.environment.name": "test"}, "semconv": "gen-ai/1.42.0",
        "workspace": "work", "policy": {"digest": digest(), "files": []}, "limits": {"max_steps": 8},
        "settings": {"context_tests": "on", "context_budget": 2800, "push_back": 0, "redaction": "masked",
            "durability": "step", "readiness_ms": 1000, "command_ms": 1000}
    })
}

/// The events: one segment, two steps, 25 events, 10 spans.
pub(crate) fn events() -> Vec<Event> {
    let mut log = Recording::new();
    log.push("run.started", &run_started());
    log.start("segment", json!({"pid": 7, "version": "0.1.0"}));
    log.step = Some(1);
    log.start("agent.step", json!({}));
    log.start("context.build", json!({"budget": 2800}));
    log.push(
        "readiness.waited",
        &json!({"waited_ms": 12, "conditions": [".git/index.lock"], "degraded": false}),
    );
    log.finish(json!({"budget": 2800, "used": 2410,
        "included": [{"path": "README.md", "level": "full"}, {"path": "src/math.ts", "level": "full"}],
        "dropped": [{"path": "src/math.test.ts", "reason": "linking_off"}], "included_total": 2, "dropped_total": 1,
        "links": [{"source": "src/math.ts", "test": "src/math.test.ts", "score": 9, "strong": true, "included": false}],
        "report": "step-0001.json", "digest": digest()}));
    log.start(
        "model.complete",
        json!({"provider": "scripted", "model": "cassette", "keep": 0, "append": [],
        "digest": digest(), "tools_digest": digest()}),
    );
    log.push("span.noted", &json!({"name": "retry", "attrs": {"attempt": "2"}}));
    log.finish(json!({"reply_kind": "tool_calls", "tool_calls": 2, "reply": "{}", "text": "", "finish_reason": "tool_use",
        "usage": {"input": 100, "output": 20, "reasoning": 5, "cache_read": 30}, "attempts": 2}));
    log.action = Some(1);
    log.push(
        "action",
        &json!({"tool": "shell_readonly", "args": {"command": "npm test"}, "call_id": "call-1", "index": 0,
        "description": "shell_readonly npm test"}),
    );
    log.start("permission.review", json!({"tool": "shell_readonly"}));
    log.finish(
        json!({"tool": "shell_readonly", "decision": "allow", "class": "shell", "reason_code": "rule",
        "rule": "user:tests", "reason": "a test command", "effects": ["exec npm test"], "digest": digest()}),
    );
    log.start(
        "tool.execute",
        json!({"tool": "shell_readonly", "risk": "shell", "args": {"command": "npm test"},
        "command": "npm test"}),
    );
    log.finish(
        json!({"outcome": "failed", "exit_code": 1, "output": "FAIL src/math.test.ts\n", "output_chars": 22,
        "truncated": false, "duration_ms": 14, "sideEffects": []}),
    );
    log.action = Some(2);
    log.push(
        "action",
        &json!({"tool": "write_text", "args": {"path": ".env"}, "call_id": "call-2", "index": 1,
        "description": "write_text .env"}),
    );
    log.start("permission.review", json!({"tool": "write_text"}));
    log.finish(
        json!({"tool": "write_text", "decision": "deny", "class": "write", "reason_code": "floor",
        "rule": "floor:env", "reason": "a file of secrets", "effects": ["write .env"], "digest": digest()}),
    );
    log.action = None;
    log.start("checkpoint.save", json!({}));
    log.finish(json!({"covers": 19, "bytes": 9000}));
    log.finish(json!({"actions": 2}));
    log.step = Some(2);
    log.start("agent.step", json!({}));
    log.finish(json!({"actions": 0}));
    log.step = None;
    log.start("validation.review", json!({}));
    log.finish(
        json!({"verdict": {"outcome": "failed", "armed": true, "reason": "last_test_failed", "alternatives": [],
        "warnings": [], "evidence": [14], "required": [], "explanation": "`npm test` is red"}, "ruling": "fail", "pushed_back": 0}),
    );
    log.finish(
        json!({"status": "failed", "stop_reason": "validation_failed", "claim": "Fixed.",
        "gate_reason": "`npm test` is red", "usage": {"input": 100, "output": 20},
        "error": {"type": "validation_failed", "message": "`npm test` is red"}}),
    );
    log.events
}
