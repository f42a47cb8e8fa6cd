//! A run that asks its user, and one that its user stops.

use crate::e2e::place::{Place, QUESTION, acts, answers, call, shell};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::{
    fs,
    io::{Read as _, Write as _},
    process::Stdio,
};
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

/// Rules under which every write has to be asked for.
const CAREFUL: &str = "version = 1\n[defaults]\nread = \"allow\"\nwrite = \"ask\"\n";

fn write(name: &str) -> serde_json::Value {
    call("write_text", json!({ "path": name, "content": "new\n" }))
}

#[test]
fn a_permission_is_given_from_another_directory_by_whoever_answers() {
    let place = Place::new();
    place.policy(CAREFUL);
    let replies = [acts([write("a.txt"), write("b.txt")]), answers("written")];
    let suspended = place.run(QUESTION, &replies, &["--on-ask", "suspend"]);
    assert_eq!(suspended.code, 14, "{suspended:?}");
    let next = suspended.stdout.lines().last().unwrap();
    assert!(
        next.starts_with("answer it: tracegate answer run_")
            && next.ends_with("--allow --question q1  # or --deny"),
        "{next}"
    );
    assert!(
        suspended.stdout.contains("Allow write_text a.txt?"),
        "{suspended:?}"
    );
    // The files that the run was started with are found from wherever the answer is given.
    let answer = |args: &[&str]| {
        let mut command = place.command(&["answer", "@last"]);
        crate::e2e::place::said(command.args(args).current_dir("/"))
    };
    answer(&["--allow"]).refuses(
        2,
        "several questions are open: q1: Allow write_text a.txt?",
        "--question ID",
    );
    answer(&["yes", "--question", "q1"]).refuses(2, "asks for a permission", "--allow --question q1");
    assert_eq!(answer(&["--deny", "--question", "q2"]).code, 14);
    assert_eq!(
        answer(&["--deny", "--question", "q2"]).code,
        2,
        "a second answer is none"
    );
    let done = answer(&["--allow"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(place.read("a.txt"), "new\n");
    assert!(!place.workspace().join("b.txt").exists());
    // What was done only after later actions had been asked for has changed something all the same.
    let shown = place
        .tracegate(&["show", "@last", "--view", "steps", "--json"])
        .json();
    let changed = |index: usize| shown["steps"][index]["changedAnything"].clone();
    assert_eq!((changed(0), changed(1)), (json!(true), json!(false)), "{shown}");
}

#[test]
fn whoever_sits_at_the_terminal_is_asked_there() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let place = Place::new();
    place.policy(CAREFUL);
    let ask = call("ask_user", json!({ "question": "Which colour?" }));
    place.script(&[
        acts([write("a.txt"), write("b.txt")]),
        acts([ask]),
        answers("done"),
    ]);
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let side = || {
        let path = std::path::Path::new(name.to_str().unwrap());
        fs::File::options().read(true).write(true).open(path).unwrap()
    };
    let child = place
        .command(&Place::run_args(QUESTION, &[]))
        .stdin(side())
        .stderr(side())
        .spawn()
        .unwrap();
    let mut terminal = fs::File::from(terminal);
    // What is typed ahead waits in the terminal until somebody reads it.
    terminal.write_all(b"maybe\ny\nno\n\nblue\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let mut shown = vec![0; 64 * 1024];
    let read = terminal.read(&mut shown).unwrap();
    let shown = String::from_utf8_lossy(&shown[..read]).into_owned();
    for text in [
        "? Allow write_text a.txt?",
        "? Which colour?",
        "y allows it, n refuses it",
    ] {
        assert!(shown.contains(text), "{shown}");
    }
    assert_eq!(place.read("a.txt"), "new\n");
    assert!(!place.workspace().join("b.txt").exists());
    let record = place.last();
    assert!(record.text().contains("The user answers: blue"));
    assert_eq!(record.state.segment.0, 1);
}

#[test]
fn a_task_that_was_edited_is_refused_until_that_is_accepted_and_then_told_to_the_model() {
    let place = Place::new();
    let replies = [
        acts([call("list_files", json!({}))]),
        acts([call("list_files", json!({}))]),
        answers("done"),
    ];
    place.recorded(QUESTION, &replies, &["--max-steps", "1"], 12);
    let task = place.last().dir.task();
    let text = fs::read_to_string(&task).unwrap();
    let edit = |from: &str, to: &str| {
        let edited = text.replace(from, to);
        assert_ne!(edited, text);
        fs::remove_file(&task).unwrap();
        fs::write(&task, edited).unwrap();
    };
    let more = ["resume", "@last", "--max-steps", "9"];
    edit("\"max_steps\": 1", "\"max_steps\": 100");
    place.tracegate(&more).refuses(
        2,
        "`task.json` says another setup than the log",
        "options of `tracegate resume`",
    );
    edit(QUESTION, "Say what is in notes.txt, in German.");
    place.tracegate(&more).refuses(
        2,
        "`task.json` says another goal than the log",
        "--accept-changes",
    );
    let said = place.tracegate(&["resume", "@last", "--max-steps", "2", "--accept-changes"]);
    assert_eq!(said.code, 12, "{said:?}");
    // Accepted once is accepted.
    let said = place.tracegate(&more);
    assert_eq!(said.code, 0, "{said:?}");
    let record = place.last();
    let told = "The user has changed the task. It is now: Say what is in notes.txt, in German.";
    assert_eq!(
        record.text().matches(told).count(),
        2,
        "once as a message, once in a request"
    );
}

#[test]
fn a_limit_of_cost_needs_prices_and_says_what_was_spent() {
    let place = Place::new();
    let mut reply = acts([call("list_files", json!({}))]);
    reply["reply"]["usage"] = json!({ "input": 1000, "output": 100 });
    let replies = [reply.clone(), reply, answers("done")];
    place.run(QUESTION, &replies, &["--max-cost", "0.01"]).refuses(
        2,
        "needs to know what tokens cost",
        "--prices 3,15",
    );
    let wrong = place.run(QUESTION, &replies, &["--max-cost", "0.01", "--prices", "3"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("two or four amounts"), "{wrong:?}");
    let (said, _) = place.recorded(
        QUESTION,
        &replies,
        &["--max-cost", "0.008", "--prices", "3,15"],
        12,
    );
    assert!(
        said.stdout
            .contains("the limit of 0.008 USD is reached: 0.009 were spent"),
        "{said:?}"
    );
    let said = place.tracegate(&["resume", "@last"]);
    said.refuses(2, "reached its limit of 8000 cost", "--max-cost USD");
    let said = place.tracegate(&["resume", "@last", "--max-cost", "1"]);
    assert_eq!(said.code, 0, "{said:?}");
}
