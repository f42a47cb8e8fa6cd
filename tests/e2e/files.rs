//! The files that a run leaves, and that they all say the same.

use crate::e2e::place::{Place, QUESTION, acts, answers, call, shell};
use serde_json::{Value, json};
use std::fs;
use tracegate_core::{
    fact::{Data as _, Fact, tool::Observation},
    ids::Digest,
};

#[test]
fn every_file_of_a_run_is_there_and_agrees_with_the_log() {
    let ask = acts([call("ask_user", json!({ "question": "Which?" }))]);
    let look = acts([
        call("read_file", json!({ "path": "notes.txt" })),
        shell("cat notes.txt"),
    ]);
    for (goal, replies, code) in [
        (QUESTION, vec![look.clone(), answers("milk")], 0),
        ("Fix the failing tests.", vec![look.clone(), answers("fixed")], 10),
        (QUESTION, vec![look.clone()], 15),
        (QUESTION, vec![look, ask], 14),
    ] {
        let place = Place::new();
        let (said, record) = place.recorded(goal, &replies, &["--json"], code);
        let told = said.json();
        let status = record.json("status.json");
        for key in ["runId", "status", "stopReason", "claim", "evidence"] {
            assert_eq!(told[key], status[key], "{key}");
        }
        assert_eq!(told["exitCode"], code);
        assert_eq!(status["runId"], record.dir.id().as_str());
        assert_eq!(status["steps"], record.state.step.0);
        assert_eq!(status["head"]["seq"], record.events.len());
        assert_eq!(
            record.json("state.json"),
            serde_json::to_value(&record.state).unwrap()
        );
        let task = record.json("task.json");
        assert_eq!(task["goal"], goal);
        assert_eq!(task["limits"]["max_steps"], 30);
        let metadata = record.json("metadata.json");
        assert_eq!(metadata["runId"], status["runId"]);
        assert_eq!(metadata["traceId"], task["trace_id"]);
        if let Fact::RunFinished(finished) = &record.events.last().unwrap().fact {
            assert_eq!(told["status"], json!(finished.status));
            assert_eq!(told["stopReason"], json!(finished.stop_reason));
            assert_eq!(
                told["claim"],
                json!(finished.claim.as_ref().map(|claim| record.whole(claim)))
            );
            assert_eq!(told["evidence"], json!(finished.evidence));
        } else {
            assert_eq!(code, 14);
        }
        for step in 1..=record.state.step.0 {
            let report = record.json(&format!("context/step-{step:04}.json"));
            assert!(report.is_object(), "{report}");
        }
        assert!(record.dir.verification().is_file());
        let traces = fs::read_to_string(record.dir.traces()).unwrap();
        assert_eq!(traces.lines().count(), record.spans.len());
        let exported = place.tracegate(&["export", "@last", "--to", "otlp-json"]);
        assert_eq!(
            exported.stdout, traces,
            "a later export is the same, byte for byte"
        );
        for line in traces.lines() {
            let spans: Value = serde_json::from_str(line).unwrap();
            assert!(spans["resourceSpans"].is_array(), "{line}");
        }
    }
}

#[test]
fn the_snapshot_for_readers_agrees_with_the_status() {
    let place = Place::new();
    let (said, record) = place.recorded(QUESTION, &[answers("milk")], &["--json"], 0);
    let (told, run) = (said.json(), record.json("run.json"));
    for key in ["runId", "status", "stopReason", "claim"] {
        assert_eq!(run[key], told[key], "{key}");
    }
}

#[test]
fn a_store_keeps_itself_out_of_git() {
    let place = Place::new();
    let said = place.run(QUESTION, &[answers("milk")], &["--store", ".tracegate"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(place.read(".tracegate/.gitignore"), "*\n");
    let seen = place.program("git").args(["init", "-q"]).status();
    if seen.is_ok_and(|status| status.success()) {
        let output = place
            .program("git")
            .args(["status", "--porcelain", "--untracked-files=all"])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "?? notes.txt\n");
    }
}

#[test]
fn an_observation_names_the_commit_that_is_checked_out() {
    let place = Place::new();
    let commit: String = Digest::of(b"commit")
        .to_string()
        .chars()
        .skip(3)
        .take(40)
        .collect();
    place.file(".git/HEAD", "ref: refs/heads/main\n");
    place.file(".git/refs/heads/main", format!("{commit}\n"));
    let (_, record) = place.recorded(QUESTION, &[answers("milk")], &[], 0);
    let states: Vec<_> = record
        .events
        .iter()
        .filter_map(|event| Observation::of(&event.fact)?.workspace.as_ref())
        .collect();
    assert!(!states.is_empty());
    for state in states {
        assert_eq!(state.head.as_deref(), Some(commit.as_str()));
    }
}

#[test]
fn what_can_be_made_again_may_be_deleted_before_a_run_goes_on() {
    let place = Place::new();
    let replies = [
        acts([call("write_text", json!({ "path": "a.txt", "content": "one" }))]),
        acts([call("read_file", json!({ "path": "a.txt" }))]),
        answers("milk"),
    ];
    place.recorded(QUESTION, &replies, &["--max-steps", "1"], 12);
    let dir = place.last().dir;
    for path in [
        dir.state(),
        dir.workspace(),
        dir.run(),
        dir.traces(),
        dir.verification(),
        dir.status(),
    ] {
        fs::remove_file(path).unwrap();
    }
    let said = place.tracegate(&["resume", "@last", "--max-steps", "9"]);
    assert_eq!(said.code, 0, "{said:?}");
    let record = place.last();
    assert_eq!(record.state.step.0, 3);
    for path in [
        dir.state(),
        dir.workspace(),
        dir.run(),
        dir.traces(),
        dir.status(),
    ] {
        assert!(path.is_file(), "{} was not made again", path.display());
    }
}
