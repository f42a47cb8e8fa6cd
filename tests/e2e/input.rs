//! What can be wrong with what was typed and with the files that it names: each is said with its place, and nothing is run.

use crate::e2e::place::{Place, QUESTION, acts, answers, binary, call, said};
use serde_json::json;
use std::{fs, io::Write as _, process::Stdio};

/// Checks that a run with `more` arguments is refused and leaves no run behind.
#[track_caller]
fn refused(place: &Place, goal: &str, more: &[&str], error: &str, help: &str) {
    let args = [&["run", goal, "--script", "../script.jsonl"], more].concat();
    place.tracegate(&args).refuses(2, error, help);
    assert_eq!(place.runs(), 0, "nothing was to run");
}

#[test]
fn a_policy_that_cannot_be_used_is_named_with_its_place() {
    let place = Place::new();
    place.script(&[answers("milk")]);
    let policy = ["--policy", "../policy.toml"];
    let check = |text: &[u8], error: &str, help: &str| {
        fs::write(place.path("policy.toml"), text).unwrap();
        refused(&place, QUESTION, &policy, error, help);
    };
    check(b"", "../policy.toml:1:1: ", "");
    check(
        b"version = 1\n[defaults]\nreed = \"allow\"\n",
        "../policy.toml:3:1: ",
        "",
    );
    check(
        b"version = 1\n[defaults]\nread = \"maybe\"\n",
        "../policy.toml:3:8: ",
        "",
    );
    check(b"version = 1\n[defaults\n", "../policy.toml:2:", "");
    check(b"version = 99\n", "../policy.toml:1:", "");
    check(
        b"version = 1\n# \xff\n",
        "../policy.toml:2:1: the file is not UTF-8",
        "",
    );
    let missing = ["--policy", "../absent.toml"];
    let help = "nothing was run; name a policy file with --policy FILE";
    refused(
        &place,
        QUESTION,
        &missing,
        "cannot read policy `../absent.toml`",
        help,
    );
    refused(
        &place,
        QUESTION,
        &["--policy", ".."],
        "cannot read policy `..`",
        help,
    );
}

#[test]
fn a_cassette_that_cannot_be_used_is_named_with_its_place() {
    let place = Place::new();
    let check = |text: &str, error: &str| {
        fs::write(place.path("script.jsonl"), text).unwrap();
        refused(&place, QUESTION, &[], error, "a cassette has one reply a line");
    };
    check("", "../script.jsonl:1:1: the cassette holds no reply");
    check(
        "{\"reply\":{\"text\":\"a\"}}\n{\"reply\":\n",
        "../script.jsonl:2:9: ",
    );
    check(
        "{\"reply\":{\"txt\":\"a\"}}\n",
        "../script.jsonl:1:15: unknown field `txt`",
    );
    check(
        "{\"turn\":0,\"reply\":{}}\n",
        "../script.jsonl:1:1: `turn` counts from 1",
    );
    fs::remove_file(place.path("script.jsonl")).unwrap();
    refused(
        &place,
        QUESTION,
        &[],
        "cannot read script `../script.jsonl`",
        "name a cassette with --script FILE",
    );
}

#[test]
fn a_goal_must_say_something() {
    let place = Place::new();
    place.script(&[answers("milk")]);
    for goal in ["", "  \n"] {
        refused(&place, goal, &[], "the goal is empty", "tracegate run ");
    }
    // Standard input is empty here.
    refused(&place, "-", &[], "the goal is empty", "tracegate run ");
}

#[test]
fn a_goal_can_come_from_standard_input() {
    let place = Place::new();
    place.script(&[answers("milk")]);
    let mut child = place
        .command(&Place::run_args("-", &[]))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(format!("{QUESTION}\n").as_bytes())
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(place.last().json("task.json")["goal"], QUESTION);
}

#[test]
fn a_goal_may_be_long_but_must_be_text() {
    let place = Place::new();
    place.script(&[answers("milk")]);
    let with = |goal: &[u8]| {
        let mut child = place
            .command(&Place::run_args("-", &[]))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(goal).unwrap();
        child.wait_with_output().unwrap()
    };
    let output = with(b"caf\xe9");
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("cannot read the goal") && told.contains("help: it is UTF-8 text"),
        "{told}"
    );
    let goal = "Say what src/notes.txt and docs/other.md hold, and `more`. ".repeat(20_000);
    let output = with(goal.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let record = place.last();
    assert!(record.json("task.json")["goal"]["$ref"].is_string());
    assert!(record.dir.id().as_str().len() < 100);
}

#[test]
fn a_workspace_must_be_a_directory() {
    let place = Place::new();
    place.script(&[answers("milk")]);
    let help = "name an existing directory with --dir DIR";
    refused(
        &place,
        QUESTION,
        &["--dir", "absent"],
        "absent` is not a directory",
        help,
    );
    refused(
        &place,
        QUESTION,
        &["--dir", "notes.txt"],
        "notes.txt` is not a directory",
        help,
    );
}

#[test]
fn wrong_arguments_are_a_usage_error_with_advice() {
    let place = Place::new();
    let check = |args: &[&str], error: &str| {
        let said = place.tracegate(args);
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{said:?}");
        assert!(
            said.stderr.contains(error) && said.stderr.contains("--help"),
            "{said:?}"
        );
    };
    check(&["run"], "<GOAL>");
    check(&["run", QUESTION], "--script <FILE>");
    check(
        &["run", QUESTION, "--script", "x", "--max-steps", "0"],
        "--max-steps",
    );
    check(&["run", QUESTION, "--script", "x", "--max-steps", "-1"], "'-1'");
    check(
        &["run", QUESTION, "--script", "x", "--context-tests", "maybe"],
        "--context-tests",
    );
    check(&["shwo"], "shwo");
    check(&["show", "--no-such"], "--no-such");
}

/// Returns whether this process may make a mount of its own; without it a read-only directory cannot be had as root.
fn can_mount(place: &Place) -> bool {
    let tried = said(place.program("unshare").args(["-m", "true"]));
    if tried.code != 0 {
        eprintln!(
            "skipped: a read-only workspace needs `unshare -m`: {}",
            tried.stderr.trim()
        );
    }
    tried.code == 0
}

#[test]
fn a_workspace_that_is_read_only_fails_writes_and_nothing_else() {
    let place = Place::new();
    if !can_mount(&place) {
        return;
    }
    let read_only = |args: &[&str]| {
        let script =
            "mount --bind . . && mount -o remount,ro,bind \"$PWD\" && cd \"$PWD\" && exec \"$0\" \"$@\"";
        let mut command = place.program("unshare");
        said(command.args(["-m", "sh", "-c", script]).arg(binary()).args(args))
    };
    place.script(&[
        acts([
            call("read_file", json!({ "path": "notes.txt" })),
            call("write_text", json!({ "path": "new.txt", "content": "new" })),
        ]),
        answers("it cannot be written"),
    ]);
    let ended = read_only(&Place::run_args(QUESTION, &[]));
    assert_eq!(ended.code, 0, "{ended:?}");
    let actions = place.last().actions();
    assert_eq!(actions[0].outcome, "ok");
    assert_eq!(
        (actions[1].outcome, actions[1].error()),
        ("failed", Some("not_permitted"))
    );
    // The store that would lie in the workspace cannot be made there.
    let ended = read_only(&Place::run_args(QUESTION, &["--store", ".tracegate"]));
    ended.refuses(
        16,
        "Read-only file system",
        "nothing was run; name a writable store with --store DIR",
    );
}
