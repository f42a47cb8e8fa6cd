//! Golden traces: what the demo does, event by event, normalised. `UPDATE_GOLDEN=1` writes them anew.
//!
//! A golden is a JSON array with one event a line, so that a difference shows the event. Runs on one machine are compared as
//! `tracegate_eval::normalise` leaves them. A golden is read on machines with other versions of Node, npm and cargo too, so there
//! what a command put out is cut to what its test runner concluded: the lines that begin as in `CONCLUSIONS`. The outcome, the exit
//! code and the counts that tracegate itself read from the output stand beside it, uncut.

use crate::support::{Demo, clean, events, root, updates};
use serde_json::Value;
use std::path::PathBuf;
use tracegate_eval::normalise::normalise;

/// How lines begin that a golden keeps of the output of a command.
const CONCLUSIONS: &[&str] = &[
    "command:",
    "status:",
    "exitCode:",
    "FAIL ",
    "PASS ",
    "Tests:",
    "Expected:",
    "Received:",
    "test ",
    "  left:",
    " right:",
];

/// Cuts every text that is the output of a command to its conclusions.
fn concluded(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with("command: ") => {
            let kept = text
                .lines()
                .filter(|line| CONCLUSIONS.iter().any(|begin| line.starts_with(begin)));
            *text = kept.collect::<Vec<_>>().join("\n");
        }
        Value::Array(items) => items.iter_mut().for_each(concluded),
        Value::Object(map) => map.values_mut().for_each(concluded),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// One event a line.
fn lines(values: &[Value]) -> String {
    let lines: Vec<String> = values.iter().map(Value::to_string).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

/// Stops at the first event that differs, showing both.
fn same(left: &[Value], right: &[Value], what: &str) {
    for (left, right) in left.iter().zip(right) {
        assert_eq!(
            serde_json::to_string_pretty(left).unwrap(),
            serde_json::to_string_pretty(right).unwrap(),
            "{what}: event {}",
            left["seq"]
        );
    }
    assert_eq!(left.len(), right.len(), "{what}: number of events");
}

fn check(demo: Demo) {
    let outcome = if demo.fixed { "fixed" } else { "failed" };
    let name = format!("demo.{}.{outcome}.json", demo.language);
    let path: PathBuf = [root(), "tests/golden".as_ref(), name.as_ref()].iter().collect();
    let mut found = normalise(&demo.shared().events());
    found.iter_mut().for_each(concluded);
    if updates() {
        std::fs::write(&path, lines(&found)).unwrap();
    }
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{name}: {error}; UPDATE_GOLDEN=1 writes it"));
    let golden: Vec<Value> = serde_json::from_str(&text).unwrap();
    same(&found, &golden, &name);
    assert_eq!(text, lines(&golden), "{name}: one event a line");
}

#[test]
fn the_demo_does_what_its_golden_says() {
    Demo::ALL.into_iter().for_each(check);
}

#[test]
fn the_same_demo_twice_gives_the_same_log() {
    for demo in Demo::ALL {
        let (once, again) = (demo.shared().events(), demo.run().events());
        same(&normalise(&once), &normalise(&again), &format!("{demo:?}"));
    }
}

#[test]
fn the_command_that_the_demo_prints_gives_the_same_log() {
    for demo in Demo::ALL {
        // Not the shared one: the command runs in the second copy of the fixture and records into the same store.
        let recorded = demo.run();
        let command = recorded.as_a_command();
        let output = clean("sh").args(["-c", &command, "--"]).output().unwrap();
        // A run exits as it ended, unlike the demo, which exits 0 when it ended as promised.
        let wanted = if demo.fixed { 0 } else { 10 };
        let shown = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(wanted), "{command}: {shown}");
        let runs = recorded.runs();
        assert_eq!(runs.len(), 2, "{command} records into the same store");
        let (itself, repeated) = (events(&runs[0]), events(&runs[1]));
        same(&normalise(&itself), &normalise(&repeated), &command);
    }
}

#[test]
fn one_setting_decides_the_outcome_of_the_demo() {
    for language in ["ts", "rust"] {
        let of = |fixed| {
            let demo = Demo::ALL
                .into_iter()
                .find(|demo| demo.language == language && demo.fixed == fixed);
            normalise(&demo.unwrap().shared().events())
        };
        let (failed, fixed) = (of(false), of(true));
        let ends = |run: &[Value]| run.last().unwrap()["data"]["stop_reason"].clone();
        assert_eq!(ends(&failed), "validation_failed");
        assert_eq!(ends(&fixed), "completed");
        // The setups differ in this setting alone.
        let mut setup = failed[0].clone();
        setup["data"]["settings"]["context_tests"] = Value::from("on");
        same(&[setup], &fixed[..1], language);
    }
}
