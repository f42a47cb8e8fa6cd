//! How runs end: exit code, message, status and stop reason of every ending that a person can bring about.

use crate::e2e::{
    place::{Place, QUESTION, acts, answers, binary, call, said, shell},
    record::Record,
};
use serde_json::{Value, json};
use std::fs;
use tracegate_core::stop::{Status, StopReason};

const REPAIR: &str = "Fix the failing tests.";

/// Runs to an end and compares how the command, the log, the files and the answer say it.
#[track_caller]
fn check(goal: &str, replies: &[Value], more: &[&str], stop: StopReason, evidence: &str) -> (Place, Record) {
    let place = Place::new();
    let code = i32::from(stop.exit().code());
    let (said, record) = place.recorded(goal, replies, more, code);
    assert_eq!(record.ended(), (stop.status(), Some(stop)));
    let told = record.json("status.json")["evidence"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(told.contains(evidence), "{told}");
    assert!(
        said.stdout.contains(&format!("stopReason  {stop}\n")),
        "{}",
        said.stdout
    );
    let run = record.dir.id().as_str();
    let next = match stop {
        StopReason::Completed => format!("what happened: tracegate show {run}"),
        StopReason::WaitingForUser => {
            format!("answer it: tracegate answer {run} -  # then type it, and end with ctrl-d")
        }
        StopReason::MaxSteps => format!("go on: tracegate resume {run} --max-steps N"),
        StopReason::ValidationFailed
        | StopReason::ToolError
        | StopReason::BudgetExhausted
        | StopReason::PermissionDenied
        | StopReason::ModelError
        | StopReason::RecorderFailed
        | StopReason::GateFailed
        | StopReason::Cancelled => format!("why: tracegate explain {run}"),
    };
    assert_eq!(said.stdout.lines().last(), Some(next.as_str()));
    assert_eq!(record.state.finished, stop.status().is_terminal());
    assert_eq!(record.state.open_actions.is_empty(), stop.status().is_terminal());
    // Reading it later says the same.
    for command in ["show", "explain"] {
        let later = place.tracegate(&[command, "@last"]);
        assert_eq!((later.code, later.stderr.as_str()), (0, ""), "{later:?}");
        assert!(
            command == "explain" || later.stdout.contains(stop.as_str()),
            "{later:?}"
        );
    }
    (place, record)
}

#[test]
fn an_answer_to_a_goal_without_tests_completes() {
    let (_place, record) = check(
        QUESTION,
        &[answers("milk")],
        &[],
        StopReason::Completed,
        "not armed",
    );
    assert_eq!(record.json("status.json")["claim"], "milk");
}

#[test]
fn an_answer_without_the_tests_that_the_goal_asks_for_is_rejected() {
    let (_place, record) = check(REPAIR, &[answers("fixed")], &[], StopReason::ValidationFailed, "");
    assert_eq!(record.json("status.json")["claim"], "fixed");
}

#[test]
fn an_answer_is_sent_back_as_often_as_was_asked_for() {
    let place = Place::new();
    let replies = [
        answers("fixed"),
        answers("fixed, really"),
        answers("fixed, I said"),
    ];
    let said = {
        place.script(&replies);
        place.tracegate(&["run", REPAIR, "--script", "../script.jsonl", "--push-back", "2"])
    };
    assert_eq!(said.code, 10, "{said:?}");
    let record = place.last();
    assert_eq!(record.state.pushed_back, 2);
    assert_eq!(record.json("status.json")["claim"], "fixed, I said");
}

#[test]
fn a_limit_of_steps_without_an_answer_is_a_limit() {
    let look = acts([call("list_files", json!({}))]);
    let (_place, record) = check(
        QUESTION,
        &[look.clone(), look.clone(), look],
        &["--max-steps", "2"],
        StopReason::MaxSteps,
        "the limit of 2 steps is reached",
    );
    assert_eq!(record.state.step.0, 2);
    assert!(record.types().contains(&"limit.reached"));
}

#[test]
fn an_answer_at_the_last_step_is_judged_as_an_answer() {
    let more = ["--max-steps", "1"];
    check(QUESTION, &[answers("milk")], &more, StopReason::Completed, "");
    check(
        REPAIR,
        &[answers("fixed")],
        &more,
        StopReason::ValidationFailed,
        "",
    );
}

#[test]
fn the_same_refused_action_three_times_running_ends_the_run() {
    let out = acts([call("read_file", json!({ "path": "../secret" }))]);
    let replies = [out.clone(), out.clone(), out.clone(), answers("never reached")];
    let (_place, record) = check(
        QUESTION,
        &replies,
        &[],
        StopReason::PermissionDenied,
        "refused 3 times running",
    );
    assert_eq!(record.state.step.0, 3);
    // Something else in between starts the count again.
    let look = acts([call("list_files", json!({}))]);
    let replies = [
        out.clone(),
        out.clone(),
        look,
        out.clone(),
        out,
        answers("given up"),
    ];
    check(QUESTION, &replies, &[], StopReason::Completed, "");
}

#[test]
fn a_policy_can_end_the_run_at_the_first_refusal() {
    let place = Place::new();
    place.policy("version = 1\n[defaults]\nread = \"deny\"\n[limits]\non_deny = \"stop\"\n");
    let replies = [
        acts([
            call("list_files", json!({})),
            call("read_file", json!({ "path": "notes.txt" })),
            shell("touch ran"),
        ]),
        answers("never reached"),
    ];
    let (_, record) = place.recorded(QUESTION, &replies, &[], 13);
    // What the same reply asked for after the refusal is not done any more.
    assert!(!place.path("ran").exists());
    assert_eq!(
        record.ended(),
        (Status::Failed, Some(StopReason::PermissionDenied))
    );
    assert_eq!(record.state.step.0, 1);
}

#[test]
fn a_model_without_a_reply_ends_the_run() {
    let look = acts([call("list_files", json!({}))]);
    check(
        QUESTION,
        &[look],
        &[],
        StopReason::ModelError,
        "has no reply for request 2",
    );
    let unfit =
        json!({ "turn": 1, "when": { "context_includes": "absent.txt" }, "reply": { "text": "seen" } });
    check(
        QUESTION,
        &[unfit],
        &[],
        StopReason::ModelError,
        "no reply for request 1",
    );
    check(
        QUESTION,
        &[answers(" ")],
        &[],
        StopReason::ModelError,
        "neither text nor tool calls",
    );
    let many: Vec<Value> = (0..65).map(|_| call("list_files", json!({}))).collect();
    let (_place, record) = check(QUESTION, &[acts(many)], &[], StopReason::ModelError, "65 actions");
    assert_eq!(record.state.actions, 0);
}

#[test]
fn a_store_that_cannot_be_created_is_said_before_anything_runs() {
    let place = Place::new();
    fs::write(place.path("file"), "").unwrap();
    place.script(&[acts([shell("touch ran")]), answers("done")]);
    let said = place.tracegate(&Place::run_args(QUESTION, &["--store", "../file/store"]));
    said.refuses(
        16,
        "../file/store",
        "nothing was run; name a writable store with --store DIR",
    );
    assert!(!place.workspace().join("ran").exists());
}

/// The disk fills up: a limit on the size of files, whose signal is ignored, makes every write beyond it fail.
#[test]
fn a_log_that_cannot_be_written_any_more_stops_the_run_loudly() {
    let place = Place::new();
    let look = acts([call("list_files", json!({}))]);
    place.script(&vec![look; 30]);
    let args = Place::run_args(QUESTION, &[]);
    // 24 blocks of 512 bytes.
    let script = "trap '' XFSZ; ulimit -f 24; exec \"$0\" \"$@\"";
    let said = said(place.program("sh").args(["-c", script]).arg(binary()).args(&args));
    assert_eq!(said.code, 16, "{said:?}");
    assert!(said.stderr.contains("error: cannot append to `"), "{said:?}");
    assert!(said.stderr.contains("help: "), "{said:?}");
    let runs = place.store().runs().unwrap();
    let record = Record::prefix(place.store(), runs[0].clone());
    assert!(record.events.len() > 10 && !record.state.finished);
    let status = record.json("status.json");
    assert_eq!(
        (&status["status"], &status["stopReason"]),
        (&json!("failed"), &json!("recorder_failed"))
    );
    let later = place.tracegate(&["show", "@last"]);
    assert_eq!(later.code, 0, "{later:?}");
}

#[test]
fn a_workspace_that_vanishes_is_a_tool_error() {
    let place = Place::new();
    place.file("vanish.sh", "mv ../workspace ../moved\n");
    let replies = [acts([shell("sh vanish.sh")]), answers("never reached")];
    let (_, record) = place.recorded(QUESTION, &replies, &[], 11);
    assert_eq!(record.ended(), (Status::Failed, Some(StopReason::ToolError)));
    let told = record.json("status.json")["evidence"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(told.contains("the workspace cannot be read"), "{told}");
    assert_eq!(record.actions()[0].outcome, "ok");
}

#[test]
fn every_durability_records_the_same_events() {
    let types = |durability: &str| {
        let place = Place::new();
        let look = acts([
            call("read_file", json!({ "path": "notes.txt" })),
            shell("cat notes.txt"),
        ]);
        let more = ["--durability", durability, "--quiet"];
        let (said, record) = place.recorded(QUESTION, &[look, answers("milk")], &more, 0);
        assert_eq!(said.stderr, "", "quiet is quiet");
        record
            .types()
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let step = types("step");
    assert_eq!(types("event"), step);
    assert_eq!(types("kill"), step);
}
