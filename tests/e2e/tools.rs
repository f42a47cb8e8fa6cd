//! What the model may get wrong, or try: each becomes an observation that says so, and the run goes on.

use crate::e2e::{
    place::{Place, QUESTION, acts, answers, call, shell},
    record::{Came, Record},
};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::symlink};
use tracegate_core::fact::Fact;

/// Lets the model do `calls` in one reply and returns what came of them.
#[track_caller]
fn came(place: &Place, calls: Vec<Value>) -> (Record, Vec<Came>) {
    let count = calls.len();
    let (_, record) = place.recorded(QUESTION, &[acts(calls), answers("done")], &[], 0);
    let actions = record.actions();
    assert_eq!(actions.len(), count);
    (record, actions)
}

#[test]
fn calls_that_cannot_be_understood_are_explained_to_the_model() {
    let place = Place::new();
    let read = |input: Value| call("read_file", input);
    let rows = [
        (
            call("readfile", json!({ "path": "notes.txt" })),
            "there is no tool `readfile`; the tools are list_files,",
        ),
        (call("", json!({})), "there is no tool ``"),
        (read(json!({})), "missing field `path`"),
        (read(Value::Null), "missing field `path`"),
        (
            read(json!({ "path": 7 })),
            "invalid type: integer `7`, expected a string",
        ),
        (read(json!({ "path": "notes.txt", "from": -1 })), "expected u32"),
        (read(json!("notes.txt")), "expected struct"),
        (
            read(json!({ "path": "notes.txt", "encoding": "utf-8" })),
            "unknown field `encoding`",
        ),
        (call("shell", json!({ "command": ["ls"] })), "expected a string"),
        (call("ask_user", json!({ "question": "" })), "`question` is empty"),
    ];
    let (_, actions) = came(&place, rows.iter().map(|(call, _)| call.clone()).collect());
    for (action, (call, message)) in actions.iter().zip(&rows) {
        assert_eq!(action.outcome, "failed", "{call}");
        assert!(action.text.contains(message), "{call}: {}", action.text);
        // There is nothing that a rule could judge, and nothing that was done.
        assert!(action.review.is_none() && action.done.is_none(), "{call}");
    }
}

#[test]
fn whatever_the_model_sends_fits_into_the_log() {
    let place = Place::new();
    let long = "x".repeat(100_000);
    let many: Value = (0..40_000).collect();
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let rows = [
        call(&long, json!({})),
        call("read_file", json!({ "path": long })),
        call("read_file", json!({ "path": "notes.txt", "other": many })),
        call("read_file", json!({ "path": "notes.txt", "other": deep })),
        call("search_text", json!({ "pattern": long })),
        call("write_text", json!({ "path": "long.txt", "content": long })),
        call(
            "edit_text",
            json!({ "path": "long.txt", "old": long, "new": "short" }),
        ),
        shell(&format!("echo {long}")),
        shell(&format!("echo '{}'", "a\n".repeat(50_000))),
        shell(&format!("no-such-program {long}")),
        shell(&format!("npm test {long}")),
        json!({ "name": "list_files", "id": long, "input": {} }),
        shell(&format!("echo \'{}\'", "\"".repeat(4000))),
        shell(&format!("no-such-program {}", "x".repeat(4000))),
    ];
    let (record, actions) = came(&place, rows.into());
    assert_eq!(place.read("long.txt"), "short");
    for action in &actions[7..11] {
        assert_eq!(action.outcome, "failed");
        assert!(
            action
                .text
                .contains("more than 4096: write it to a file and run that"),
            "{}",
            action.text
        );
    }
    assert_eq!(actions[11].outcome, "ok");
    assert_eq!(actions[12].outcome, "ok", "{}", actions[12].text);
    assert_eq!(actions[13].done.as_ref().unwrap().exit_code, Some(127));
    let longest = record.text().lines().map(str::len).max().unwrap();
    assert!(longest <= 64 * 1024, "{longest}");
}

#[test]
fn a_reply_may_be_as_long_and_odd_as_it_likes() {
    let place = Place::new();
    let long = "y".repeat(100_000);
    let reply = json!({ "reply": { "text": long, "reasoning": long, "finish_reason": long } });
    let (_, record) = place.recorded(QUESTION, &[reply], &[], 0);
    assert!(record.text().lines().all(|line| line.len() <= 64 * 1024));
}

#[test]
fn the_results_of_sixty_four_actions_fit_into_the_next_request() {
    let place = Place::new();
    place.file("quotes.txt", "\"".repeat(510));
    place.file("controls.txt", "\u{1}".repeat(300));
    let calls: Vec<Value> = (0..64)
        .map(|index| {
            let name = if index % 2 == 0 {
                "quotes.txt"
            } else {
                "controls.txt"
            };
            call("read_file", json!({ "path": name }))
        })
        .collect();
    let (_, actions) = came(&place, calls);
    assert!(actions.iter().all(|action| action.outcome == "ok"));
}

#[test]
fn thousands_of_changed_files_fit_into_the_log() {
    let place = Place::new();
    let name = "n".repeat(200);
    place.file(
        "many.sh",
        format!("i=0\nwhile [ $i -lt 3000 ]; do echo $i > {name}$i.txt; i=$((i+1)); done\n"),
    );
    let look = call("list_files", json!({}));
    let replies = [
        acts([shell("sh many.sh")]),
        acts([shell("rm -r .")]),
        acts([look]),
        answers("done"),
    ];
    let (_, record) = place.recorded(QUESTION, &replies, &[], 0);
    let actions = record.actions();
    assert_eq!(actions[0].outcome, "ok");
    let listed = actions[0].done.as_ref().unwrap().side_effects.len();
    assert!((20..3000).contains(&listed), "{listed}");
    let totals: Vec<u64> = record
        .events
        .iter()
        .filter_map(|event| {
            if let Fact::Observation(data) = &event.fact {
                data.workspace.as_ref().map(|workspace| workspace.changed_total)
            } else {
                None
            }
        })
        .collect();
    assert!(totals.contains(&3000), "{totals:?}");
}

#[test]
fn nothing_outside_the_workspace_is_read_or_written() {
    let place = Place::new();
    fs::write(place.path("outside.txt"), "before").unwrap();
    symlink("../outside.txt", place.workspace().join("link.txt")).unwrap();
    symlink("..", place.workspace().join("up")).unwrap();
    symlink("../not-there.txt", place.workspace().join("dangling.txt")).unwrap();
    let absolute = place.path("outside.txt").display().to_string();
    let paths = [
        "../outside.txt",
        &absolute,
        "link.txt",
        "up/outside.txt",
        "a/../../outside.txt",
        "/etc/hostname",
    ];
    let mut calls = Vec::new();
    for path in paths.iter().copied().chain(["dangling.txt"]) {
        calls.push(call("read_file", json!({ "path": path })));
        calls.push(call("write_text", json!({ "path": path, "content": "after" })));
        calls.push(call(
            "edit_text",
            json!({ "path": path, "old": "before", "new": "after" }),
        ));
        calls.push(call("search_text", json!({ "pattern": "before", "path": path })));
        calls.push(call("list_files", json!({ "path": path })));
    }
    let (record, actions) = came(&place, calls.clone());
    for (action, call) in actions.iter().zip(&calls) {
        assert_eq!(action.outcome, "refused", "{call}: {}", action.text);
        assert!(action.done.is_none(), "{call}");
    }
    assert_eq!(fs::read_to_string(place.path("outside.txt")).unwrap(), "before");
    assert!(!place.path("not-there.txt").exists());
    assert!(
        !record.text().contains("before\\n") && record.spans.iter().all(|span| span.name != "tool.execute")
    );
}

#[test]
fn files_that_are_no_text_are_said_to_be_so() {
    let place = Place::new();
    place.file("picture.bin", b"\x89PNG\x00\x00\x01");
    place.file("latin.txt", b"caf\xe9\n");
    fs::create_dir(place.workspace().join("dir")).unwrap();
    let read = |path: &str| call("read_file", json!({ "path": path }));
    let edit = |path: &str| call("edit_text", json!({ "path": path, "old": "caf", "new": "tea" }));
    let calls = vec![
        read("picture.bin"),
        read("latin.txt"),
        edit("latin.txt"),
        read("dir"),
        read("absent.txt"),
    ];
    let (_, actions) = came(&place, calls);
    let told: Vec<_> = actions
        .iter()
        .map(|action| (action.outcome, action.error()))
        .collect();
    assert_eq!(
        told,
        [
            ("failed", Some("binary")),
            ("ok", None),
            ("failed", Some("binary")),
            ("failed", Some("io")),
            ("failed", Some("not_found")),
        ]
    );
    assert_eq!(actions[0].text, "`picture.bin` is a binary file of 7 bytes");
    assert_eq!(actions[1].text, "caf\u{fffd}\n");
    assert_eq!(
        fs::read(place.workspace().join("latin.txt")).unwrap(),
        b"caf\xe9\n"
    );
}

#[test]
fn actions_of_one_reply_are_done_in_their_order() {
    let place = Place::new();
    let write = |content: &str| call("write_text", json!({ "path": "order.txt", "content": content }));
    let read = || call("read_file", json!({ "path": "order.txt" }));
    let (record, actions) = came(
        &place,
        vec![
            read(),
            write("one"),
            read(),
            write("two"),
            read(),
            shell("cat order.txt"),
        ],
    );
    let texts: Vec<&str> = actions.iter().map(|action| action.text.as_str()).collect();
    assert!(texts[0].contains("No such file"), "{}", texts[0]);
    assert_eq!((texts[2], texts[4]), ("one", "two"));
    assert!(texts[5].contains("two"), "{}", texts[5]);
    assert_eq!(record.state.step.0, 2);
    let done: Vec<u64> = record
        .events
        .iter()
        .filter(|event| event.fact.name() == "tool.execute.started")
        .map(|event| event.action.unwrap().0)
        .collect();
    assert_eq!(done, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn sixty_four_actions_in_one_reply_are_done() {
    let place = Place::new();
    let calls: Vec<Value> = (0..64)
        .map(|_| call("read_file", json!({ "path": "notes.txt" })))
        .collect();
    let (_, actions) = came(&place, calls);
    assert!(actions.iter().all(|action| action.outcome == "ok"));
}

#[test]
fn a_placeholder_is_never_written_over_the_secret_that_it_stands_for() {
    let place = Place::new();
    let placeholder = format!("[{}:known-value:1a2b3c]", "REDACTED");
    place.file("settings.txt", "user = me\n");
    let calls = vec![
        call(
            "write_text",
            json!({ "path": "settings.txt", "content": format!("key = {placeholder}\n") }),
        ),
        call(
            "edit_text",
            json!({ "path": "settings.txt", "old": "me", "new": placeholder }),
        ),
    ];
    let (_, actions) = came(&place, calls);
    for action in &actions {
        assert_eq!(
            (action.outcome, action.error()),
            ("failed", Some("placeholder_in_write"))
        );
    }
    assert_eq!(place.read("settings.txt"), "user = me\n");
}
