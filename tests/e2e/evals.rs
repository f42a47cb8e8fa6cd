//! `eval run`: the shipped case passes with its recorded replies, fails by name where it must, and a case that proves nothing is no pass.

use crate::e2e::place::{Place, QUESTION, answers, repository};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{fs, io::Read as _};

/// Writes a case about a fixture of the test and returns its path.
fn case(place: &Place, name: &str, change: impl FnOnce(&mut Value)) -> String {
    let fixture = place.path("fixture");
    fs::create_dir_all(&fixture).unwrap();
    fs::write(fixture.join("notes.txt"), "remember the milk\n").unwrap();
    place.script(&[answers("milk")]);
    let mut case = json!({
        "version": 1, "id": name, "scenario": "explain", "userGoal": QUESTION,
        "workspace": { "fixture": "fixture" },
        "replay": { "mode": "recorded", "cassette": "script.jsonl" },
        "run": { "policy": "policy.toml" },
        "expected": { "finalStatus": "completed", "maxSteps": 3 },
    });
    change(&mut case);
    let path = place.path(&format!("{name}.json"));
    fs::write(&path, serde_json::to_string_pretty(&case).unwrap()).unwrap();
    path.display().to_string()
}

fn shipped() -> String {
    repository()
        .join("evals/repair-math-test-001.json")
        .display()
        .to_string()
}

#[test]
fn the_shipped_case_passes() {
    let place = Place::new();
    let said = place.tracegate(&["eval", "run", &shipped()]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stdout.contains("PASS  repair-math-test-001"), "{said:?}");
    let record = place.last();
    assert_eq!(record.state.status.to_string(), "completed");
}

#[test]
fn the_shipped_case_fails_by_name_without_linked_tests() {
    let place = Place::new();
    let said = place.tracegate(&["eval", "run", &shipped(), "--context-tests", "off", "--json"]);
    assert_eq!(said.code, 20, "{said:?}");
    let json = said.json();
    let case = &json["cases"][0];
    let failing: Vec<&str> = case["results"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|result| result["status"] == "fail")
        .map(|result| result["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        failing,
        [
            "mustReadFiles:src/math.test.ts",
            "commandsPass:npm test",
            "finalStatus"
        ]
    );
    assert_eq!(
        place.last().state.stop_reason.unwrap().as_str(),
        "validation_failed"
    );
}

#[test]
fn a_case_of_ones_own_passes_fails_or_has_no_verdict() {
    let place = Place::new();
    let check = |name: &str, code: i32, words: &str, change: fn(&mut Value)| {
        let said = place.tracegate(&["eval", "run", &case(&place, name, change)]);
        assert_eq!(said.code, code, "{said:?}");
        assert!(said.stdout.contains(words), "{said:?}");
    };
    check("good", 0, "PASS ", |_| {});
    check("wrong-end", 20, "finalStatus", |case| {
        case["expected"]["finalStatus"] = "failed".into();
    });
    check(
        "already-green",
        21,
        "`true` passes on the untouched fixture: the case cannot fail",
        |case| {
            case["workspace"]["expectRed"] = json!(["true"]);
        },
    );
    check("red", 0, "PASS ", |case| {
        case["workspace"]["expectRed"] = json!(["false"]);
    });
    check("not-words", 21, "`expectRed` command", |case| {
        case["workspace"]["expectRed"] = json!(["false && true"]);
    });
    check("no-fixture", 21, "cannot copy the fixture `absent`", |case| {
        case["workspace"]["fixture"] = "absent".into();
    });
}

#[test]
fn a_case_that_does_not_parse_is_named_with_its_place_and_nothing_is_run() {
    let place = Place::new();
    let good = case(&place, "good", |_| {});
    let typo = case(&place, "typo", |case| case["expected"]["maxStep"] = 3.into());
    let line = fs::read_to_string(&typo)
        .unwrap()
        .lines()
        .position(|line| line.contains("\"maxStep\""))
        .unwrap()
        + 1;
    let said = place.tracegate(&["eval", "run", &good, &typo]);
    said.refuses(2, &format!("{typo}:{line}:5: "), "maxSteps");
    assert_eq!(place.runs(), 0);
    let said = place.tracegate(&["eval", "run", "../absent.json"]);
    said.refuses(3, "there is no case at `", "");
    fs::create_dir(place.path("empty")).unwrap();
    place.tracegate(&["eval", "run", "../empty"]).refuses(
        4,
        "no eval case was found",
        "a case is a JSON file",
    );
    let orphan = case(&place, "orphan", |case| {
        case["replay"].as_object_mut().unwrap().remove("cassette");
    });
    place
        .tracegate(&["eval", "run", &orphan])
        .refuses(2, "the case names no cassette", "--cassette FILE");
    let broken = case(&place, "broken", |_| {});
    place
        .tracegate(&["eval", "run", &broken, "--cassette", "../absent.jsonl"])
        .refuses(2, "cannot read script", "name a cassette");
}

#[test]
fn a_signal_stops_an_eval_and_everything_that_it_started() {
    let place = Place::new();
    let pipe = place.path("pipe");
    assert!(place.program("mkfifo").arg(&pipe).status().unwrap().success());
    let path = case(&place, "slow", |case| {
        case["workspace"]["expectRed"] = json!(["sh wait.sh"]);
    });
    // Both processes hold the pipe open: it ends when the last of them is gone, and one that was let live says so.
    let script = format!(
        "exec 3>{}\n(sleep 30; echo outlived >&3) &\necho begun >&3\nwait\n",
        pipe.display()
    );
    fs::write(place.path("fixture/wait.sh"), script).unwrap();
    let child = place.command(&["eval", "run", &path]).spawn().unwrap();
    let mut pipe = fs::File::open(pipe).unwrap();
    pipe.read_exact(&mut [0; 6]).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    let mut after = String::new();
    pipe.read_to_string(&mut after).unwrap();
    assert_eq!(after, "", "the group outlived its eval");
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("error: stopped in the case `slow`\nhelp: "),
        "{told}"
    );
}
