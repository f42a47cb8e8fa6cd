//! How runs are named on the command line, and what is said where none can be found.

use crate::e2e::place::{Place, QUESTION, answers};
use std::fs;

const READERS: [&[&str]; 3] = [&["show"], &["explain"], &["export", "--to", "otlp-json"]];

fn three_runs() -> (Place, Vec<String>) {
    let place = Place::new();
    for goal in [
        "Say what notes.txt holds.",
        "Say what notes.txt holds.",
        "Count the notes.",
    ] {
        assert_eq!(place.run(goal, &[answers("milk")], &["--quiet"]).code, 0);
    }
    let ids = place
        .store()
        .runs()
        .unwrap()
        .iter()
        .map(|dir| dir.id().to_string())
        .collect();
    (place, ids)
}

#[test]
fn a_run_is_found_by_every_form_of_its_name() {
    let (place, ids) = three_runs();
    let dir = format!("../store/runs/{}", ids[0]);
    let absolute = place
        .path("store/runs")
        .join(&ids[0])
        .join("events.jsonl")
        .display()
        .to_string();
    let log = format!("{dir}/events.jsonl");
    let whole = ids[1].as_str();
    let names = [
        ("@last", 2),
        ("@-1", 2),
        ("@-2", 1),
        ("@-3", 0),
        (whole, 1),
        (whole.get(..whole.len() - 1).unwrap(), 1),
        ("run_count", 2),
        (&dir, 0),
        (&log, 0),
        (&absolute, 0),
    ];
    for (name, index) in names {
        let said = place.tracegate(&["show", name, "--json"]);
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{name}: {said:?}");
        assert_eq!(said.json()["summary"]["runId"], ids[index], "{name}");
        for reader in READERS {
            let said = place.tracegate(&[reader, &[name]].concat());
            assert_eq!(
                (said.code, said.stderr.as_str()),
                (0, ""),
                "{reader:?} {name}: {said:?}"
            );
        }
    }
    // Without a name, the last one.
    assert_eq!(
        place.tracegate(&["show", "--json"]).json()["summary"]["runId"],
        ids[2]
    );
}

#[test]
fn a_name_that_fits_no_run_or_several_is_refused() {
    let (place, ids) = three_runs();
    for reader in READERS {
        let check = |name: &str, code, error: &str, help: &str| {
            place
                .tracegate(&[reader, &[name]].concat())
                .refuses(code, error, help);
        };
        check(
            "run_say",
            2,
            &format!("`run_say` is the beginning of 2 runs: {}, {}", ids[0], ids[1]),
            "more of it",
        );
        check("run_none", 3, "no run `run_none` in `", "tracegate runs list");
        check("@-4", 3, "no run `@-4` in `", "");
        check("@first", 3, "no run `@first` in `", "tracegate runs list");
        check(
            "../store/runs/none",
            3,
            "`../store/runs/none` is not the directory or log of a run",
            "",
        );
        check(
            "../store",
            3,
            "`../store` is not the directory or log of a run",
            "",
        );
    }
}

#[test]
fn no_store_and_an_empty_store_are_said_with_the_way_on() {
    let place = Place::new();
    for reader in READERS {
        let said = place.tracegate(&[reader, &["@last"]].concat());
        said.refuses(
            3,
            "there is no store at `",
            "tracegate demo, or name a store with --store DIR",
        );
    }
    place
        .tracegate(&["runs", "list"])
        .refuses(3, "there is no store at `", "tracegate demo");
    // A run whose script is missing still leaves no store; one that ran and was deleted leaves an empty one.
    assert_eq!(place.run(QUESTION, &[answers("milk")], &[]).code, 0);
    fs::remove_dir_all(place.last().dir.path()).unwrap();
    let list = place.tracegate(&["runs", "list"]);
    assert_eq!(
        (list.code, list.stdout.as_str()),
        (4, "no runs yet\nstart with: tracegate demo\n")
    );
    let list = place.tracegate(&["runs", "list", "--json"]);
    assert_eq!(
        (list.code, list.json()),
        (4, serde_json::json!({ "runs": [], "total": 0 }))
    );
    for reader in READERS {
        place
            .tracegate(&[reader, &["@last"]].concat())
            .refuses(3, "no run `@last` in `", "tracegate demo");
    }
}

#[test]
fn runs_are_listed_newest_first_and_as_json() {
    let (place, ids) = three_runs();
    let list = place.tracegate(&["runs", "list"]);
    assert_eq!((list.code, list.stderr.as_str()), (0, ""));
    let listed: Vec<&str> = list
        .stdout
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|id| id.starts_with("run_"))
        .collect();
    assert_eq!(listed, [&ids[2], &ids[1], &ids[0]]);
    let json = place
        .tracegate(&["runs", "list", "--json", "--limit", "1"])
        .json();
    assert_eq!(
        (json["runs"].as_array().unwrap().len(), json["total"].as_u64()),
        (1, Some(3))
    );
    assert_eq!(json["runs"][0]["summary"]["runId"], ids[2]);
    for args in [&["explain", "--json"][..], &["show", "--json"]] {
        assert!(place.tracegate(args).json().is_object());
    }
}

#[test]
fn advice_names_the_store_that_was_named() {
    let (place, _) = three_runs();
    let said = place.tracegate(&["show", "@last", "--store", "../store"]);
    assert!(
        said.stdout
            .contains("why: tracegate explain @last --store ../store"),
        "{said:?}"
    );
}
