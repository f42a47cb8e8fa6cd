//! A run that asks its user, and one that its user stops.

use crate::e2e::place::{Place, QUESTION, acts, answers, call, shell};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::{fs, io::Read as _, process::Stdio};
use tracegate_core::stop::{Status, StopReason};

#[test]
fn a_question_ends_the_process_without_waiting_and_is_durable() {
    let place = Place::new();
    place.script(&[
        acts([call("ask_user", json!({ "question": "Which notes?" }))]),
        answers("never reached"),
    ]);
    // A pipe that nobody writes to: a command that waited for an answer here would wait for ever.
    let mut child = place
        .command(&Place::run_args(QUESTION, &[]))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(14));
    drop(stdin);
    let record = place.last();
    assert_eq!(
        record.ended(),
        (Status::WaitingForUser, Some(StopReason::WaitingForUser))
    );
    assert!(!record.state.finished && !record.types().contains(&"run.finished"));
    assert_eq!(
        (record.state.open_questions.len(), record.state.open_actions.len()),
        (1, 1)
    );
    assert!(record.text().contains("Which notes?"));
    // Durable: everything is below the synced head.
    assert_eq!(record.json("status.json")["head"]["seq"], record.state.seq.0);
    let shown = place.tracegate(&["show", "@last"]);
    assert!(
        shown.stdout.contains("waiting_for_user") && shown.stdout.contains("Which notes?"),
        "{shown:?}"
    );
}

#[test]
fn a_signal_stops_the_run_and_everything_that_it_started() {
    for signal in [Signal::INT, Signal::TERM] {
        let place = Place::new();
        let pipe = place.path("pipe");
        assert!(place.program("mkfifo").arg(&pipe).status().unwrap().success());
        // Both processes hold the pipe open: it ends when the last of them is gone, and one that was let live says so.
        place.file(
            "wait.sh",
            "exec 3>../pipe\n(sleep 30; echo outlived >&3) &\necho begun >&3\nwait\n",
        );
        place.script(&[
            acts([shell("sh wait.sh"), shell("touch never")]),
            answers("never reached"),
        ]);
        let child = place.command(&Place::run_args(QUESTION, &[])).spawn().unwrap();
        let mut pipe = fs::File::open(pipe).unwrap();
        let mut begun = [0; 6];
        pipe.read_exact(&mut begun).unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let mut after = String::new();
        pipe.read_to_string(&mut after).unwrap();
        assert_eq!(after, "", "the group outlived its run");
        assert_eq!(output.status.code(), Some(130), "{signal:?}: {output:?}");
        let record = place.last();
        assert_eq!(record.ended(), (Status::Cancelled, Some(StopReason::Cancelled)));
        let outcomes: Vec<&str> = record.actions().iter().map(|came| came.outcome).collect();
        assert_eq!(outcomes, ["unknown"]);
        assert!(!place.workspace().join("never").exists());
    }
}

#[test]
fn an_answer_under_another_policy_needs_a_yes_and_says_how_to_give_it() {
    let place = Place::new();
    place.policy("version = 1\n[defaults]\nread = \"allow\"\n");
    let replies = [
        acts([call("ask_user", json!({ "question": "Which notes?" }))]),
        acts([call("ask_user", json!({ "question": "Sure?" }))]),
        answers("those"),
    ];
    place.recorded(QUESTION, &replies, &["--max-steps", "1"], 14);
    place.policy("version = 1\n[defaults]\nread = \"deny\"\n");
    let said = place.tracegate(&["answer", "@last", "the old ones", "--max-steps", "5"]);
    said.refuses(2, "policy", "tracegate answer run_");
    assert!(said.stderr.contains("--accept-changes"), "{said:?}");
    let said = place.tracegate(&[
        "answer",
        "@last",
        "the old ones",
        "--max-steps",
        "5",
        "--accept-changes",
    ]);
    assert_eq!(said.code, 14, "{said:?}");
    // The policy in force is the one that was accepted, and the summary counts against the limit in force.
    let said = place.tracegate(&["answer", "@last", "yes"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stdout.contains("3 of 5"), "{said:?}");
}
