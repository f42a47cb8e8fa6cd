//! Killing a run that waits for its user at every event: whatever was asked is answered once, and nothing is done before it was allowed.

use super::{Stage, course, outcomes};
use crate::support::clean;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::{Value, json};
use std::process::Stdio;
use tracegate_core::{
    fact::{Data as _, tool::Outcome, user::UserMessage},
    state::RunState,
    stop::Status,
};

/// Every write and every command has to be allowed.
const ASKING: &str = "version = 1\n[defaults]\nread = \"allow\"\nwrite = \"ask\"\nshell = \"ask\"\n";

fn stage() -> Stage {
    let call = |name: &str, input: Value| json!({ "name": name, "input": input });
    Stage::with(
        ASKING,
        &[
            json!({ "reply": { "text": "change and ask", "tool_calls": [
                call("write_text", json!({ "path": "a.txt", "content": "new\n" })),
                call("ask_user", json!({ "question": "Once or twice?" })),
            ] } }),
            json!({ "reply": { "text": "run", "tool_calls": [call("shell", json!({ "command": "sh count.sh" }))] } }),
            json!({ "reply": { "text": "done" } }),
        ],
    )
}

/// What a person who finds the run does next.
fn next(stage: &Stage, code: Option<i32>) -> Option<Vec<String>> {
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
    match code {
        None => words(&["resume", "@last"]),
        Some(14) => {
            let shown = clean("tracegate")
                .args(["show", "@last", "--json", "--store"])
                .arg(stage.path("store"))
                .output()
                .unwrap();
            let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
            let first = &shown["summary"]["waitingFor"][0];
            let question = first["question"].as_str().unwrap();
            let answer = if first["kind"] == "permission" {
                "--allow"
            } else {
                "once"
            };
            words(&["answer", "@last", answer, "--question", question])
        }
        Some(0 | 2) => None,
        Some(code) => panic!("exit {code}"),
    }
}

/// Carries the run to its end with everything allowed; kills whichever process writes event `at`, right after it.
fn carry(stage: &Stage, at: Option<usize>) {
    let goal = ["run", "change and count", "--on-ask", "suspend", "--policy"];
    let mut words: Option<Vec<String>> = Some(goal.map(str::to_owned).to_vec());
    let mut first = true;
    while let Some(args) = words {
        let mut command = clean("tracegate");
        command.args(&args);
        if first {
            command.arg(stage.path("policy.toml"));
            for (flag, name) in [("--dir", "workspace"), ("--script", "script.jsonl")] {
                command.arg(flag).arg(stage.path(name));
            }
        }
        first = false;
        command
            .args(["--quiet", "--json", "--store"])
            .arg(stage.path("store"))
            .envs(at.map(|at| ("TRACEGATE_PAUSE_AT", at.to_string())))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let pid = Pid::from_child(&child);
        let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
        if status.stopped() {
            kill_process(pid, Signal::KILL).unwrap();
        }
        // One that was not stopped is gone already, and its status with it.
        child.wait().ok();
        words = next(stage, status.exit_status());
    }
}

#[test]
fn a_run_that_asks_is_killed_at_any_event_and_ends_as_the_uninterrupted_one() {
    let whole = stage();
    carry(&whole, None);
    let (_, clean) = whole.events();
    assert_eq!((whole.count(), whole.text().as_str()), (1, "new\n"));
    assert_eq!(outcomes(&clean), [Outcome::Ok; 3]);
    for at in 1..=clean.len() {
        let stage = stage();
        carry(&stage, Some(at));
        let killed_in = clean[at - 1].fact.name();
        let shown = format!("killed after event {at} ({killed_in})");
        let (_, events) = stage.events();
        let state = RunState::fold(&events).unwrap();
        assert_eq!(
            (state.status, state.finished),
            (Status::Completed, true),
            "{shown}"
        );
        let answers = |events: &[_]| {
            events
                .iter()
                .filter_map(|event: &tracegate_core::event::Event| UserMessage::of(&event.fact)?.question)
                .count()
        };
        assert_eq!(
            answers(&events),
            answers(&clean),
            "{shown}: every question is answered once"
        );
        if killed_in == "tool.execute.started" && outcomes(&events) != outcomes(&clean) {
            let unknown = outcomes(&events)
                .into_iter()
                .filter(|outcome| *outcome == Outcome::Unknown);
            assert_eq!(unknown.count(), 1, "{shown}");
            assert!(stage.count() <= 1, "{shown}");
        } else {
            assert_eq!(course(&events), course(&clean), "{shown}");
            assert_eq!((stage.count(), stage.text().as_str()), (1, "new\n"), "{shown}");
        }
    }
}
