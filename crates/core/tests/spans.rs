//! The projection from events to spans, seen from outside.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a missing span is a failed test"
)]

#[path = "recorded/mod.rs"]
mod recorded;

use recorded::{BEGAN, Recording, digest, events, run, run_started};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use tracegate_core::{
    event::Event,
    ids::{Seq, SpanId},
    span::{
        MAX_LIST, MAX_LIST_ITEMS, MAX_SPAN_EVENTS, MAX_STRING, Parent, Projector, RecordKind, SpanRecord,
        SpanStatus, Value, names, project,
    },
};

const DOCS: &str = include_str!("../../../docs/spans.md");

fn text<'a>(span: &'a SpanRecord, key: &str) -> Option<&'a str> {
    match span.attrs.get(key)? {
        Value::Str(text) => Some(text),
        Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::List(_) => None,
    }
}

fn named<'a>(spans: &'a [SpanRecord], name: &str) -> Vec<&'a SpanRecord> {
    spans.iter().filter(|span| span.name == name).collect()
}

#[test]
fn every_name_is_explained_in_the_documentation_and_nothing_else_is() {
    let source = include_str!("../src/span/names.rs");
    let ours: BTreeSet<&str> = source
        .lines()
        .filter_map(|line| line.strip_prefix("pub const ")?.split('"').nth(1))
        .collect();
    assert!(ours.len() > 60, "{ours:?}");
    let code: BTreeSet<&str> = DOCS.split('`').skip(1).step_by(2).collect();
    let missing: Vec<_> = ours.iter().filter(|name| !code.contains(**name)).collect();
    assert_eq!(
        missing,
        Vec::<&&str>::new(),
        "names that docs/spans.md does not explain"
    );
    let attribute = |name: &&&str| name.starts_with("tracegate.") || name.starts_with("gen_ai.");
    let unknown: Vec<_> = code
        .iter()
        .filter(attribute)
        .filter(|name| !ours.contains(**name))
        .collect();
    assert_eq!(
        unknown,
        Vec::<&&str>::new(),
        "names that only docs/spans.md knows"
    );
}

#[test]
fn the_same_events_give_the_same_spans_however_they_come() {
    let log = events();
    let whole = project(&run(), &log);
    assert_eq!(whole, project(&run(), &log));
    let mut projector = Projector::new(&run());
    let mut chain = tracegate_core::ids::Chain::genesis(&run());
    let mut spans = Vec::new();
    for event in &log {
        // Through the log's bytes and back, one at a time, in a projector that is copied in between.
        let (line, next) = event.to_line(chain).unwrap();
        let (read, _) = Event::from_line(line.trim_end(), chain, event.seq).unwrap();
        chain = next;
        projector = projector.clone();
        spans.extend(projector.feed(&read));
    }
    assert_eq!(spans, whole.spans);
    assert_eq!(projector.open(), []);
    assert_eq!(whole.spans.len(), 10);
}

#[test]
fn spans_nest_as_their_events_say_and_only_the_model_is_a_client() {
    let spans = project(&run(), &events()).spans;
    let by_id: BTreeMap<SpanId, &SpanRecord> = spans.iter().map(|span| (span.span_id, span)).collect();
    let mut edges = Vec::new();
    for span in &spans {
        let parent = match span.parent {
            Parent::Root => "-",
            Parent::Local(id) => by_id[&id].name.as_str(),
            Parent::Remote(_) => "remote",
        };
        edges.push(format!("{} < {parent}", span.name));
        assert_eq!(span.kind == RecordKind::Client, span.name == "model.complete");
        assert_eq!(span.trace_id.to_string(), "0123456789abcdef0123456789abcdef");
        assert!(BEGAN < span.start_ns && span.start_ns < span.end_ns);
    }
    let steps = [
        "context.build",
        "model.complete",
        "permission.review",
        "tool.execute",
        "permission.review",
        "checkpoint.save",
    ];
    let mut wanted: Vec<String> = steps.iter().map(|name| format!("{name} < agent.step")).collect();
    let rest = ["agent.step", "agent.step", "validation.review"];
    wanted.extend(
        rest.iter()
            .map(|name| format!("{name} < invoke_agent repair-bot")),
    );
    wanted.push("invoke_agent repair-bot < -".to_owned());
    assert_eq!(edges, wanted);
}

#[test]
fn the_red_marks_are_on_the_root_and_on_what_failed() {
    let spans = project(&run(), &events()).spans;
    let red: Vec<_> = spans
        .iter()
        .filter_map(|span| match &span.status {
            SpanStatus::Error(message) => Some((
                span.name.as_str(),
                text(span, names::ERROR_TYPE),
                message.as_str(),
            )),
            SpanStatus::Unset => {
                assert_eq!(text(span, names::ERROR_TYPE), None, "{}", span.name);
                None
            }
        })
        .collect();
    assert_eq!(
        red,
        [
            ("tool.execute", Some("exit_code"), "exit code 1"),
            (
                "invoke_agent repair-bot",
                Some("validation_failed"),
                "`npm test` is red"
            ),
        ]
    );
    let denied = named(&spans, "permission.review")[1];
    assert_eq!(text(denied, names::ACTION), Some("deny"));
}

#[test]
fn names_of_the_genai_conventions_are_only_on_genai_operations() {
    for span in project(&run(), &events()).spans {
        let operation = text(&span, names::GEN_AI_OPERATION_NAME);
        let wanted = match span.name.as_str() {
            "invoke_agent repair-bot" => Some("invoke_agent"),
            "model.complete" => Some("chat"),
            "tool.execute" => Some("execute_tool"),
            _ => None,
        };
        assert_eq!(operation, wanted, "{}", span.name);
        let any = span.attrs.keys().any(|key| key.starts_with("gen_ai."));
        assert_eq!(any, operation.is_some(), "{}", span.name);
        let usage = span.attrs.keys().any(|key| key.starts_with("gen_ai.usage."));
        assert_eq!(usage, span.name == "model.complete", "{}", span.name);
        assert_eq!(text(&span, names::SESSION_ID), Some(run().as_str()));
        assert_eq!(text(&span, names::RUN_ID), Some(run().as_str()));
    }
}

#[test]
fn the_seeds_attributes_are_there_under_the_seeds_names() {
    let spans = project(&run(), &events()).spans;
    let check = |span: &str, key: &str, wanted: Value| {
        assert_eq!(
            named(&spans, span)[0].attrs.get(key),
            Some(&wanted),
            "{span} {key}"
        );
    };
    let list = |items: &[&str]| Value::List(items.iter().map(|item| (*item).to_owned()).collect());
    check("context.build", "step", Value::Int(1));
    check("context.build", "context.budget", Value::Int(2800));
    check("context.build", "context.used", Value::Int(2410));
    check(
        "context.build",
        "context.included_files",
        list(&["README.md", "src/math.ts"]),
    );
    check(
        "context.build",
        "context.dropped_items",
        list(&["src/math.test.ts: linking_off"]),
    );
    check(
        "context.build",
        "context.debug_report",
        Value::text("step-0001.json"),
    );
    check("model.complete", "responseKind", Value::text("tool_calls"));
    check("model.complete", "toolCallCount", Value::Int(2));
    check(
        "model.complete",
        names::GEN_AI_USAGE_INPUT_TOKENS,
        Value::Int(130),
    );
    check(
        "model.complete",
        names::GEN_AI_USAGE_OUTPUT_TOKENS,
        Value::Int(25),
    );
    check("permission.review", "toolName", Value::text("shell_readonly"));
    check("permission.review", "action", Value::text("allow"));
    check("permission.review", "risk", Value::text("shell"));
    check("permission.review", "reason", Value::text("a test command"));
    check("tool.execute", "toolName", Value::text("shell_readonly"));
    check("tool.execute", "risk", Value::text("shell"));
    check("tool.execute", "command", Value::text("npm test"));
    check("tool.execute", "exit_code", Value::Int(1));
    check("tool.execute", "output.truncated", Value::Bool(false));
    check("tool.execute", "durationMs", Value::Int(14));
    check("tool.execute", "outputChars", Value::Int(22));
    check("tool.execute", names::GEN_AI_TOOL_CALL_ID, Value::text("call-1"));
    check(
        "tool.execute",
        names::GEN_AI_TOOL_CALL_ARGUMENTS,
        Value::text(r#"{"command":"npm test"}"#),
    );
    check(
        "invoke_agent repair-bot",
        names::STOP_REASON,
        Value::text("validation_failed"),
    );
    check("invoke_agent repair-bot", names::CLAIM, Value::text("Fixed."));
    check("invoke_agent repair-bot", names::VERDICT, Value::text("failed"));
}

#[test]
fn points_inside_a_span_become_its_span_events() {
    let spans = project(&run(), &events()).spans;
    let points = |name: &str| -> Vec<String> {
        let span = named(&spans, name)[0];
        span.events.iter().map(|event| event.name.clone()).collect()
    };
    assert_eq!(points("context.build"), ["readiness.waited"]);
    assert_eq!(points("model.complete"), ["retry"]);
    assert_eq!(points("validation.review"), ["gen_ai.evaluation.result"]);
    let review = named(&spans, "validation.review")[0];
    let label = review.events[0].attrs.get(names::GEN_AI_EVALUATION_SCORE_LABEL);
    assert_eq!(label, review.attrs.get(names::VERDICT));
    assert_eq!(review.events[0].at_ns, review.end_ns);
    let mut log = Recording::new();
    log.start("segment", json!({"pid": 1, "version": ""}));
    for _ in 0..MAX_SPAN_EVENTS + 3 {
        log.push("redaction.noted", &json!({"rules": {"npm-token": 2}}));
    }
    let end = json!({"status": "running", "stop_reason": "completed", "usage": {}});
    log.finish(end);
    let spans = project(&run(), &log.events).spans;
    assert_eq!(
        (spans[0].events.len(), spans[0].dropped_events),
        (MAX_SPAN_EVENTS, 3)
    );
    assert_eq!(
        spans[0].events[0].attrs.get(names::REDACTION_RULES).unwrap(),
        &Value::List(vec!["npm-token=2".to_owned()])
    );
}

/// A run whose first process dies in a tool, healed and resumed by a second one.
fn healed(error: &str) -> Vec<Event> {
    let mut log = Recording::new();
    log.push("run.started", &run_started());
    let first = log.start("segment", json!({"pid": 1, "version": "0.1.0"}));
    log.start("agent.step", json!({}));
    log.start(
        "tool.execute",
        json!({"tool": "shell", "risk": "shell", "args": {}}),
    );
    let open = {
        let mut projector = Projector::new(&run());
        log.events.iter().for_each(|event| drop(projector.feed(event)));
        projector.open()
    };
    let kinds: Vec<_> = open
        .iter()
        .map(|span| (span.kind.as_str(), span.started))
        .collect();
    assert_eq!(
        kinds,
        [
            ("tool.execute", Seq(4)),
            ("agent.step", Seq(3)),
            ("segment", Seq(2))
        ]
    );
    let end_ts = log.events.last().unwrap().ts;
    log.segment = 2;
    for _ in 0..3 {
        log.finish(json!({"error": {"type": error, "message": "gone"}, "end_ts": end_ts, "healed": true}));
    }
    let second =
        json!({"pid": 2, "version": "0.1.0", "resumed_from": {"span_id": first, "relation": "resumed_from"}});
    log.start("segment", second);
    log.events.last_mut().unwrap().parent = Some(first);
    log.finish(json!({"status": "completed", "stop_reason": "completed", "usage": {}}));
    log.events
}

#[test]
fn a_dead_process_ends_its_spans_when_it_died_and_the_next_one_links_back() {
    let log = healed("process_killed");
    let spans = project(&run(), &log).spans;
    let seen: Vec<_> = spans
        .iter()
        .map(|span| {
            (
                span.name.as_str(),
                span.status.clone(),
                span.attrs.contains_key(names::HEALED),
            )
        })
        .collect();
    let gone = || SpanStatus::Error("gone".to_owned());
    assert_eq!(
        seen,
        [
            ("tool.execute", gone(), true),
            ("agent.step", SpanStatus::Unset, true),
            ("invoke_agent repair-bot", gone(), true),
            ("invoke_agent repair-bot", SpanStatus::Unset, false),
        ]
    );
    for span in &spans[..3] {
        // The tool began with the last event; Jaeger warns about spans that take no time, and about children that end later.
        assert_eq!(span.end_ns, log[3].ts.0 + 1, "downtime is not work");
    }
    assert_eq!(spans[3].parent, Parent::Local(spans[2].span_id));
    assert_eq!(
        (spans[3].links[0].span_id, spans[3].links[0].trace_id),
        (spans[2].span_id, spans[2].trace_id)
    );
    let waiting = project(&run(), &healed("suspended")).spans;
    assert!(waiting.iter().all(|span| span.status == SpanStatus::Unset));
    assert_eq!(
        waiting[0].attrs.get(names::SUSPENDED).unwrap(),
        &Value::Bool(true)
    );
}

#[test]
fn a_run_that_joins_a_foreign_trace_hangs_under_its_remote_span() {
    let mut log = events();
    let mut started = run_started();
    started["remote_parent"] = json!({"span_id": "00000000000000aa"});
    let raw = serde_json::value::to_raw_value(&started).unwrap();
    log[0].fact = tracegate_core::fact::Fact::from_json("run.started", &raw).unwrap();
    let spans = project(&run(), &log).spans;
    let remote: Vec<_> = spans
        .iter()
        .filter(|span| matches!(span.parent, Parent::Remote(_)))
        .map(|span| (span.name.as_str(), span.parent.span_id().map(|id| id.to_string())))
        .collect();
    assert_eq!(
        remote,
        [("invoke_agent repair-bot", Some("00000000000000aa".to_owned()))]
    );
}

#[test]
fn a_run_with_a_trace_of_its_own_refers_to_the_span_that_started_it() {
    let mut log = healed("process_killed");
    let mut started = run_started();
    let trace = "000000000000000000000000000000bb";
    started["trace_link"] = json!({"trace_id": trace, "span_id": "00000000000000aa"});
    let raw = serde_json::value::to_raw_value(&started).unwrap();
    log[0].fact = tracegate_core::fact::Fact::from_json("run.started", &raw).unwrap();
    let spans = project(&run(), &log).spans;
    let links: Vec<_> = spans
        .iter()
        .flat_map(|span| span.links.iter().map(move |link| (span, link)))
        .map(|(span, link)| {
            let relation = span.attrs.get(names::LINK_RELATION).unwrap().clone();
            (
                span.parent,
                link.trace_id.to_string(),
                link.span_id.to_string(),
                relation,
            )
        })
        .collect();
    let first = &spans[2];
    assert_eq!(
        links,
        [
            (
                Parent::Root,
                trace.to_owned(),
                "00000000000000aa".to_owned(),
                Value::text("started_by")
            ),
            (
                Parent::Local(first.span_id),
                first.trace_id.to_string(),
                first.span_id.to_string(),
                Value::text("resumed_from")
            ),
        ]
    );
    assert_ne!(first.trace_id.to_string(), trace);
}

#[test]
fn the_resource_is_what_the_run_was_started_with() {
    let resource = project(&run(), &events()).resource.unwrap();
    let all: Vec<_> = resource.iter().collect();
    assert_eq!(
        all,
        [
            ("deployment.environment.name", "test"),
            ("host.id", "h-1"),
            ("service.name", "repair-bot"),
            ("service.version", "1.0"),
            ("telemetry.sdk.language", "rust"),
            ("telemetry.sdk.name", "tracegate"),
        ]
    );
    assert_eq!(project(&run(), &[]).resource, None);
}

#[test]
fn no_attribute_outgrows_its_limit() {
    let long = "ä".repeat(5000);
    let many: Vec<_> = (0..200)
        .map(|at| json!({"path": format!("{at}/{}", "p".repeat(100)), "level": "full"}))
        .collect();
    let mut log = Recording::new();
    log.start("context.build", json!({"budget": 1}));
    log.push("span.noted", &json!({"name": long, "attrs": {"why": long}}));
    log.finish(
        json!({"budget": 1, "used": u64::MAX, "included": many, "dropped": [{"path": long, "reason": long}],
        "included_total": 200, "dropped_total": 1, "links": [], "report": long, "digest": digest(),
        "error": {"type": long, "message": long}}),
    );
    let spans = project(&run(), &log.events).spans;
    let all = spans[0].attrs.iter().chain(spans[0].events[0].attrs.iter());
    for (key, value) in all {
        match value {
            Value::Str(text) => assert!(text.len() <= MAX_STRING, "{key}"),
            Value::List(items) => {
                assert!(
                    items.len() <= MAX_LIST_ITEMS && items.iter().map(String::len).sum::<usize>() <= MAX_LIST,
                    "{key}"
                );
            }
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => {}
        }
    }
    assert_eq!(
        spans[0].attrs.get(names::CONTEXT_USED).unwrap(),
        &Value::Int(i64::MAX)
    );
    let SpanStatus::Error(message) = &spans[0].status else {
        panic!("it failed");
    };
    assert!(message.len() <= MAX_STRING);
}

#[test]
fn a_damaged_log_gives_the_spans_that_it_still_holds() {
    let log = events();
    for missing in 0..log.len() {
        let rest: Vec<Event> = log
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != missing)
            .map(|(_, event)| event.clone())
            .collect();
        let lost = usize::from(log[missing].fact.edge().is_some());
        assert_eq!(
            project(&run(), &rest).spans.len(),
            10 - lost,
            "without event {}",
            missing + 1
        );
    }
}

#[test]
fn no_order_of_events_breaks_the_projection() {
    let log = events();
    for first in 0..log.len() {
        for second in 0..log.len() {
            let mut swapped = log.clone();
            swapped.swap(first, second);
            let mut repeated = log.clone();
            repeated.insert(first, log[second].clone());
            for events in [swapped, repeated] {
                let spans = project(&run(), &events).spans;
                let ids: BTreeSet<SpanId> = spans.iter().map(|span| span.span_id).collect();
                let proper = spans.iter().all(|span| span.start_ns <= span.end_ns);
                assert!(proper && !ids.is_empty(), "{first} and {second}");
            }
        }
    }
}

#[test]
fn how_an_action_ended_decides_whether_it_failed() {
    let check = |end: serde_json::Value, wanted: Option<(&str, &str)>| {
        let mut log = Recording::new();
        log.start(
            "tool.execute",
            json!({"tool": "shell", "risk": "shell", "args": {}}),
        );
        let mut data =
            json!({"output": "", "output_chars": 0, "truncated": false, "duration_ms": 0, "sideEffects": []});
        for (key, value) in end.as_object().unwrap() {
            data[key] = value.clone();
        }
        log.finish(data);
        let span = project(&run(), &log.events).spans.remove(0);
        let found = match &span.status {
            SpanStatus::Unset => None,
            SpanStatus::Error(message) => Some((text(&span, names::ERROR_TYPE).unwrap(), message.as_str())),
        };
        assert_eq!(found, wanted, "{end}");
    };
    check(json!({"outcome": "ok", "exit_code": 0}), None);
    check(json!({"outcome": "refused"}), None);
    check(json!({"outcome": "not_run"}), None);
    check(json!({"outcome": "refused", "error": {"type": "denied"}}), None);
    check(
        json!({"outcome": "failed", "exit_code": 2}),
        Some(("exit_code", "exit code 2")),
    );
    check(
        json!({"outcome": "failed", "exit_code": -1}),
        Some(("exit_code", "exit code -1")),
    );
    check(json!({"outcome": "failed"}), Some(("tool_error", "")));
    check(json!({"outcome": "timeout"}), Some(("timeout", "")));
    check(json!({"outcome": "cancelled"}), Some(("cancelled", "")));
    check(json!({"outcome": "unknown"}), Some(("process_killed", "")));
    check(
        json!({"outcome": "failed", "error": {"type": "no_such_file", "message": "`a` is not there"}}),
        Some(("no_such_file", "`a` is not there")),
    );
}

#[test]
fn a_failed_run_is_red_and_a_waiting_one_is_not() {
    let check = |end: serde_json::Value, wanted: SpanStatus| {
        let mut log = Recording::new();
        log.start("segment", json!({"pid": 1, "version": ""}));
        log.finish(end);
        assert_eq!(project(&run(), &log.events).spans[0].status, wanted);
    };
    let end = |status: &str, reason: &str| json!({"status": status, "stop_reason": reason, "usage": {}});
    check(end("completed", "completed"), SpanStatus::Unset);
    check(end("waiting_for_user", "waiting_for_user"), SpanStatus::Unset);
    check(end("cancelled", "cancelled"), SpanStatus::Unset);
    check(end("failed", "max_steps"), SpanStatus::Error(String::new()));
}
