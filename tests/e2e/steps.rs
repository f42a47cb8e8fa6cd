//! `show --view steps`: one line an action, the ends of a long run, and the same as JSON.

use crate::e2e::place::{Place, QUESTION, acts, answers, call, shell};
use regex::Regex;
use serde_json::{Value, json};

/// The answer with durations left out.
fn shown(place: &Place, args: &[&str]) -> String {
    let said = place.tracegate(&[&["show", "@last", "--view", "steps"], args].concat());
    assert_eq!(said.code, 0, "{said:?}");
    let took = Regex::new(r" +\d[\d.]* (?:ms|s|min) +").unwrap();
    took.replace_all(&said.stdout, " … ").into_owned()
}

#[test]
fn each_action_has_a_line_that_says_whether_it_changed_anything() {
    let place = Place::new();
    let replies = [
        acts([
            call("read_file", json!({ "path": "notes.txt" })),
            call("write_text", json!({ "path": "new.txt", "content": "x" })),
            call("write_text", json!({ "path": ".env", "content": "x" })),
        ]),
        acts([shell("cat missing.txt")]),
        acts([call("ask_user", json!({ "question": "Which\u{1b}[31m notes?" }))]),
    ];
    place.recorded(QUESTION, &replies, &[], 14);
    let wanted = "\
Step   Tool        What                        Outcome     Changed  Took  Event
1 1/3  read_file   notes.txt                   ok          no … 16
1 2/3  write_text  new.txt                     ok          yes … 22
1 3/3  write_text  .env                        refused     no       -     26
2      shell       cat missing.txt             failed (1)  no … 42
3      ask_user    Which‹U+001B›[31m notes?    open        -        -     55
why: tracegate explain @last
";
    let found = shown(&place, &[]);
    let columns = |text: &str| {
        let lines = text.lines();
        lines
            .map(|line| line.split_whitespace().map(str::to_owned).collect())
            .collect::<Vec<Vec<String>>>()
    };
    // Events are numbered by what the runtime records, which other tests are about.
    let but_event = |text: &str| {
        let mut lines = columns(text);
        for line in lines.iter_mut().skip(1).filter(|line| line[0] != "why:") {
            line.pop();
        }
        lines
    };
    assert_eq!(but_event(&found), but_event(wanted), "{found}");
    let json = place
        .tracegate(&["show", "@last", "--view", "steps", "--json"])
        .json();
    let changed: Vec<&Value> = json["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| &step["changedAnything"])
        .collect();
    assert_eq!(
        json!(changed),
        json!([false, true, false, false, null]),
        "{json:#}"
    );
    assert_eq!((&json["problems"], &json["log"]), (&json!([]), &json!("clean")));
    place.tracegate(&["show", "@last", "--all"]).refuses(
        2,
        "--all is about steps",
        "tracegate show @last --view steps --all",
    );
}

#[test]
fn a_long_run_shows_its_ends_in_twelve_lines_unless_all_is_asked_for() {
    let place = Place::new();
    let calls: Vec<Value> = (0..30)
        .map(|_| call("read_file", json!({ "path": "notes.txt" })))
        .collect();
    place.recorded(QUESTION, &[acts(calls), answers("milk")], &[], 0);
    let found = shown(&place, &[]);
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 11, "{found}");
    assert_eq!(
        (lines[5], lines[10]),
        (
            "… 22 more",
            "all of them: tracegate show @last --view steps --all"
        )
    );
    assert!(
        lines[4].starts_with("1 4/30 ") && lines[6].starts_with("1 27/30"),
        "{found}"
    );
    assert_eq!(shown(&place, &["--all"]).lines().count(), 32);
}
