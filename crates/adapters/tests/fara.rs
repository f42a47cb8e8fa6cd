//! The mapping to Fara, where a whole run is not needed: endings, odd arguments, names of verifiers, and what the strict reader refuses.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "a test stops at the first surprise, and a log built by hand reads best without ceremony"
)]

#[path = "../../core/tests/recorded/mod.rs"]
mod recorded;

use proptest::prelude::*;
use recorded::{Recording, run, run_started};
use serde_json::{Value, json};
use std::convert::Infallible;
use tracegate_adapters::fara::{
    Directory, ExportError, Exported, ReadError, Sources, export, read,
    schema::{DataPoint, Event as Line, SolverStatus},
};
use tracegate_core::{event::Event, payload::Payload};

fn exported(events: &[Event]) -> Result<Exported, ExportError<Infallible>> {
    let sources = Sources {
        text: &|payload: &Payload| Ok(payload.preview()),
        tools: &|_| vec!["shell".to_owned()],
    };
    export(&run(), events, &sources)
}

/// A log that begins a run, and `facts`: type, action (0 for none), data.
fn log(facts: &[(&str, u64, Value)]) -> Vec<Event> {
    let mut log = Recording::new();
    log.push("run.started", &run_started());
    for (name, action, data) in facts {
        log.action = (*action > 0).then_some(*action);
        log.push(name, data);
    }
    log.events
}

/// Reads what was written, part by part.
fn reread(data_point: &DataPoint) -> Result<DataPoint, ReadError> {
    let files = data_point.files().unwrap();
    let text = |name: &str| files.iter().find(|(file, _)| *file == name).unwrap().1.as_str();
    read(&Directory {
        task: text("task.json"),
        metadata: text("metadata.json"),
        events: text("solver_log/events.jsonl"),
        status: text("solver_log/status.json"),
        verification: text("verification.jsonl"),
    })
}

#[test]
fn every_ending_has_its_status_in_fara() {
    let ended = |status: &str, stop: &str| json!({"status": status, "stop_reason": stop, "claim": "done", "evidence": "", "steps": 1});
    let limit = |which: &str| {
        (
            "limit.reached",
            0,
            json!({"which": which, "value": 9, "limit": 9}),
        )
    };
    let end = |status: &str, stop: &str| ("run.finished", 0, ended(status, stop));
    let changed = |status: &str| ("status.changed", 0, json!({ "status": status }));
    let rows = [
        (vec![], SolverStatus::Running, None),
        (
            vec![end("completed", "completed")],
            SolverStatus::Complete,
            Some("done"),
        ),
        (
            vec![end("cancelled", "cancelled")],
            SolverStatus::Aborted,
            Some("done"),
        ),
        (
            vec![limit("steps"), end("failed", "max_steps")],
            SolverStatus::MaxRounds,
            Some("done"),
        ),
        (
            vec![limit("time"), end("failed", "budget_exhausted")],
            SolverStatus::TimedOut,
            Some("done"),
        ),
        (
            vec![limit("tokens"), end("failed", "budget_exhausted")],
            SolverStatus::Aborted,
            Some("done"),
        ),
        (
            vec![end("failed", "validation_failed")],
            SolverStatus::Aborted,
            Some("done"),
        ),
        (
            vec![changed("waiting_for_user")],
            SolverStatus::WaitingForUser,
            None,
        ),
        // Reopened: what was said at an end that is none any more is no outcome.
        (
            vec![end("failed", "max_steps"), changed("running")],
            SolverStatus::Running,
            None,
        ),
    ];
    for (facts, status, answer) in rows {
        let log = exported(&log(&facts)).unwrap().data_point.solver_log;
        let found = log.outcome.map(|outcome| outcome.answer);
        assert_eq!((log.status, found.as_deref()), (status, answer), "{facts:?}");
    }
}

fn action(args: Value) -> Value {
    json!({"tool": "shell", "args": args, "call_id": "c", "index": 0, "description": "shell"})
}

#[test]
fn arguments_are_an_object_whatever_the_model_gave() {
    let reference = |text: &str| {
        json!({"$ref": format!("b3:{}", "0".repeat(64)), "bytes": text.len(), "lines": 1, "media": "text/plain", "head": text,
            "tail": "", "omitted": 0})
    };
    let fake = json!({"$ref": "b3:nothing"});
    let rows = [
        (Value::Null, json!({})),
        (json!([1, "a"]), json!({ "value": [1, "a"] })),
        (json!("text"), json!({ "value": "text" })),
        (reference("{\"a\":[true]}"), json!({ "a": [true] })),
        (reference("no JSON"), json!({ "value": "no JSON" })),
        (
            json!({"deep": [{"x": reference("whole")}]}),
            json!({"deep": [{"x": "whole"}]}),
        ),
        (fake.clone(), fake),
    ];
    for (args, wanted) in rows {
        let exported = exported(&log(&[("action", 1, action(args.clone()))])).unwrap();
        let Line::Action(found) = &exported.data_point.solver_log.events[0] else {
            panic!("no action");
        };
        assert_eq!(found.content["arguments"], wanted, "{args}");
    }
}

#[test]
fn calls_that_follow_each_other_get_what_fara_needs_between_them() {
    let state = json!({"digest": recorded::digest(), "files": 3, "changed": ["a"], "changed_total": 2});
    let look = json!({"kind": "environment", "phase": "before", "workspace": state});
    let events = log(&[
        ("action", 1, action(json!({}))),
        ("action", 2, action(json!({}))),
        ("observation", 0, look),
        ("action", 3, action(json!({}))),
        ("action", 4, action(json!({}))),
    ]);
    let exported = exported(&events).unwrap();
    assert_eq!(exported.inserted, 2);
    let seen: Vec<Value> = exported
        .data_point
        .solver_log
        .events
        .iter()
        .map(|event| match event {
            Line::Action(action) => json!(action.id),
            Line::Observation(seen) => {
                let seen = json!(seen);
                json!([
                    seen["page_info"],
                    seen["action_id"],
                    seen["metadata"]["tracegate"].get("inserted")
                ])
            }
        })
        .collect();
    let page = format!("workspace {}, 3 files\nchanged: a and 1 more", recorded::digest());
    let wanted = [
        json!("a1"),
        json!(["not observed", null, true]),
        json!("a2"),
        json!([page, null, null]),
        json!("a3"),
        json!([page, null, true]),
        json!("a4"),
    ];
    assert_eq!(seen, wanted);
    assert_eq!(reread(&exported.data_point).unwrap(), exported.data_point);
}

#[test]
fn no_verifier_overwrites_another_whatever_they_are_called() {
    let said = |verifier: &str, instance: u32, score: f64| {
        let result = json!({"verifier": verifier, "instance": instance, "passed": null, "score": score, "reasoning": ""});
        ("verification.recorded", 0, result)
    };
    let events = log(&[
        said("a", 0, 0.1),
        said("a_1", 0, 0.2),
        said("a", 1, 0.3),
        said("a", 1, 0.4),
        said("b", 2, 0.5),
        said("tracegate.validation_gate", 0, 0.6),
    ]);
    let found = exported(&events).unwrap().data_point.verification;
    let found: Vec<_> = found
        .iter()
        .map(|(name, result)| (name.as_str(), result.score))
        .collect();
    let wanted = [
        ("a", Some(0.1)),
        ("a_1", Some(0.2)),
        ("a_2", Some(0.3)),
        ("a_3", Some(0.4)),
        ("b_2", Some(0.5)),
        ("tracegate.validation_gate", Some(0.6)),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn times_are_utc_without_an_offset() {
    let exported = exported(&log(&[("action", 1, action(json!({})))])).unwrap();
    let Line::Action(found) = &exported.data_point.solver_log.events[0] else {
        panic!("no action");
    };
    assert_eq!(found.timestamp.as_deref(), Some("2026-11-30T00:53:20.002000"));
    let created = exported.data_point.metadata.created_at;
    assert_eq!(created.as_deref(), Some("2026-11-30T00:53:20.001000"));
}

#[test]
fn a_log_that_does_not_fit_together_is_refused() {
    let look = json!({"kind": "tool_output", "phase": "after"});
    let events = log(&[("observation", 7, look)]);
    let error = exported(&events).unwrap_err().to_string();
    assert_eq!(error, "event 2 is about action a7, which the log does not hold");
    let error = exported(&events[1..1]).unwrap_err().to_string();
    assert_eq!(
        error,
        "none of the events of run `run_repair_20261130_00000001` is `run.started`"
    );
}

#[test]
fn the_reader_refuses_what_faras_own_drops_or_overwrites() {
    let events = log(&[
        ("user.message", 0, json!({"kind": "task", "content": "x"})),
        ("action", 1, action(json!({}))),
        (
            "verification.recorded",
            0,
            json!({"verifier": "v", "instance": 0, "passed": true, "reasoning": ""}),
        ),
    ]);
    let files = exported(&events).unwrap().data_point.files().unwrap();
    let check = |file: &str, from: &str, to: &str, wanted: &str| {
        let text = |name: &str| {
            let (_, text) = files.iter().find(|(file, _)| *file == name).unwrap();
            if name == file {
                assert!(text.contains(from), "{text}");
                text.replace(from, to)
            } else {
                text.clone()
            }
        };
        let (task, metadata) = (text("task.json"), text("metadata.json"));
        let (events, status) = (text("solver_log/events.jsonl"), text("solver_log/status.json"));
        let directory = Directory {
            task: &task,
            metadata: &metadata,
            events: &events,
            status: &status,
            verification: &text("verification.jsonl"),
        };
        let error = read(&directory).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    };
    let log = "solver_log/events.jsonl";
    check(
        log,
        "\"content\":\"x\"",
        "\"content\":\"x\",\"new\":1",
        "line 1: unknown field `new`",
    );
    check(log, "\"action_name\"", "\"name\"", "line 2: unknown field `name`");
    check(
        log,
        "user_message",
        "thought",
        "line 1: unknown variant `thought`",
    );
    check(
        "task.json",
        "\"images\"",
        "\"pictures\"",
        "unknown field `pictures`",
    );
    check(
        "solver_log/status.json",
        "running",
        "interrupted",
        "unknown variant `interrupted`",
    );
    let (_, all) = files.iter().find(|(file, _)| *file == log).unwrap();
    let last = all.lines().last().unwrap();
    check(
        log,
        last,
        &format!("{last}\n{last}"),
        "line 3: an action follows an action",
    );
    let (_, result) = files
        .iter()
        .find(|(file, _)| *file == "verification.jsonl")
        .unwrap();
    check(
        "verification.jsonl",
        result,
        &format!("{result}{result}"),
        "line 2: there is a result of `v` already",
    );
}

proptest! {
    #[test]
    fn whatever_is_exported_fara_can_read(words in prop::collection::vec(("[aorlmsvt]", 1..4_u64, "\\PC{0,6}"), 0..30)) {
        let facts: Vec<(&str, u64, Value)> = words
            .iter()
            .map(|(word, action, text)| match word.as_str() {
                "a" => ("action", *action, self::action(json!({ "t": text }))),
                "o" => ("observation", 0, json!({"kind": "external", "phase": "notice", "content": text})),
                "r" => ("observation", *action, json!({"kind": "tool_output", "phase": "after", "outcome": "failed", "content": text})),
                "l" => ("model.complete.finished", 0, json!({"reply_kind": "final", "tool_calls": 0, "reply": text, "text": text,
                    "finish_reason": "", "usage": {"input": action}, "attempts": 1})),
                "m" => ("user.message", 0, json!({"kind": "answer", "content": text})),
                "s" => ("subcall", *action, json!({"tool": text, "request": text, "reply": text})),
                "v" => ("verification.recorded", 0, json!({"verifier": text, "instance": action, "passed": null, "reasoning": text})),
                _ => ("status.changed", 0, json!({"status": "running"})),
            })
            .collect();
        if let Ok(exported) = exported(&log(&facts)) {
            prop_assert_eq!(&reread(&exported.data_point).unwrap(), &exported.data_point);
            let results = facts.iter().filter(|(name, ..)| *name == "verification.recorded").count();
            prop_assert_eq!(exported.data_point.verification.len(), results);
        }
    }
}
