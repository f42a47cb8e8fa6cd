//! `tracegate fsck`: the verdict on a run, what is wrong with it, and what a salvage leaves to the other commands.

use crate::e2e::{
    place::{Place, QUESTION, Said, acts, answers, call, shell},
    record::Record,
};
use serde_json::json;
use std::{collections::BTreeSet, fs};
use tracegate_core::fact::Fact;
use tracegate_store::{Finding, LogReader, Tail, Verdict, fsck};

fn recorded() -> (Place, Record) {
    let place = Place::new();
    place.file("big.txt", "a line that is long enough\n".repeat(900));
    let look = acts([
        call("read_file", json!({ "path": "notes.txt" })),
        call("read_file", json!({ "path": "big.txt" })),
    ]);
    let (_, record) = place.recorded(QUESTION, &[look.clone(), look, answers("milk")], &[], 0);
    (place, record)
}

/// Checks the frame of what was said: the exit, the first line, the last line, and that it fits on a screen.
#[track_caller]
fn says(said: &Said, code: i32, first: &str, last: &str) {
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(said.code, code, "{said:?}");
    assert!(lines.len() <= 12, "{said:?}");
    assert!(lines[0].starts_with(first), "{said:?}");
    assert_eq!(lines.last(), Some(&last), "{said:?}");
}

/// The line of the first event that is `wanted`, by index.
fn place_of(record: &Record, wanted: impl Fn(&Fact) -> bool) -> usize {
    record
        .events
        .iter()
        .position(|event| wanted(&event.fact))
        .unwrap()
}

/// Changes one byte inside the data of line `index`.
fn flip(record: &Record, index: usize) {
    let mut lines: Vec<String> = record.text().lines().map(|line| format!("{line}\n")).collect();
    lines[index] = lines[index].replacen("\"data\":{", "\"dAta\":{", 1);
    fs::write(record.dir.events(), lines.concat()).unwrap();
}

#[test]
fn a_whole_run_is_said_to_be_whole_and_nothing_is_changed() {
    let (place, record) = recorded();
    let before = record.text();
    let id = record.dir.id().to_string();
    for salvage in [&["fsck", "@last"][..], &["fsck", "@last", "--salvage"]] {
        let said = place.tracegate(salvage);
        says(&said, 0, &format!("whole: {id} ("), "next: tracegate show @last");
        assert_eq!(said.stderr, "");
    }
    assert!(
        fsck(&record.store, &record.dir).unwrap().artifacts >= 1,
        "the long file is an artifact"
    );
    assert_eq!(record.text(), before);
    let json = place.tracegate(&["fsck", "@last", "--json"]).json();
    assert_eq!(
        (&json["report"]["verdict"], &json["report"]["findings"]),
        (&json!("whole"), &json!([]))
    );
    let none = place.tracegate(&["fsck", "run_none"]);
    assert_eq!(none.code, 3, "{none:?}");
}

#[test]
fn what_is_wrong_beside_the_log_is_named() {
    let lost = |record: &Record| {
        let hex = record
            .text()
            .split("\"$ref\":\"b3:")
            .nth(1)
            .unwrap()
            .chars()
            .take(64)
            .collect::<String>();
        let path = record
            .store
            .root()
            .join("artifacts/b3")
            .join(hex.get(..2).unwrap())
            .join(hex.get(2..).unwrap());
        fs::remove_file(path).unwrap();
    };
    type Harm<'a> = &'a dyn Fn(&Record);
    let write = |name: &'static str, text: &'static str| {
        move |record: &Record| fs::write(record.dir.path().join(name), text).unwrap()
    };
    let (task, metadata, status) = (
        write("task.json", "{}"),
        write("metadata.json", "nothing"),
        write("status.json", ""),
    );
    let (other, verification, state) = (
        write("status.json", r#"{"runId":"run_other","status":"completed"}"#),
        write("verification.jsonl", "{}\n"),
        write("state.json", "{}"),
    );
    let torn = |record: &Record| {
        let text = record.text() + "{\"v\":1,\"se";
        fs::write(record.dir.events(), text).unwrap();
    };
    let rows: [(Harm<'_>, i32, &str, &str); 8] = [
        (&lost, 24, "damaged: ", "is missing: its text cannot be shown"),
        (&task, 0, "whole: ", "note: task.json: is not what event 1 says"),
        (&metadata, 24, "damaged: ", "metadata.json: cannot be read"),
        (&status, 24, "damaged: ", "status.json: cannot be read"),
        (&other, 24, "damaged: ", "status.json: is of another run"),
        (
            &verification,
            24,
            "damaged: ",
            "verification.jsonl: line 1 is no result",
        ),
        (&state, 0, "whole: ", "note: state.json: no state of this version"),
        (
            &torn,
            0,
            "whole but for its end: ",
            "10 bytes at the end are no record",
        ),
    ];
    for (harm, code, first, finding) in rows {
        let (place, record) = recorded();
        harm(&record);
        let said = place.tracegate(&["fsck", "@last"]);
        says(&said, code, first, "next: tracegate show @last");
        assert!(said.stdout.contains(finding), "{finding}: {said:?}");
        // A salvage is for logs: it changes nothing here.
        let salvaged = place.tracegate(&["fsck", "@last", "--salvage"]);
        assert_eq!(salvaged.code, code, "{salvaged:?}");
        assert!(salvaged.stdout.contains("nothing to salvage: "), "{salvaged:?}");
    }
}

#[test]
fn a_salvaged_run_can_be_read_by_every_command_and_is_not_gone_on_with_blindly() {
    let (place, record) = recorded();
    let middle = place_of(&record, |fact| matches!(fact, Fact::ToolExecuteFinished(_)));
    flip(&record, middle);
    let damaged = record.text();
    let said = place.tracegate(&["fsck", "@last"]);
    says(&said, 24, "damaged: ", "next: tracegate fsck @last --salvage");
    let offset: usize = damaged.lines().take(middle).map(|line| line.len() + 1).sum();
    let named = format!("event {}, byte {offset}: damaged: ", middle + 1);
    assert!(said.stdout.contains(&named), "{named}: {said:?}");
    let refused = place.tracegate(&["resume", "@last"]);
    assert_eq!(refused.code, 24, "{refused:?}");
    let said = place.tracegate(&["fsck", "@last", "--salvage"]);
    says(
        &said,
        0,
        "whole, but for what an earlier salvage marked as lost: ",
        "next: tracegate show @last",
    );
    let kept = format!("salvaged: {} records kept, 1 lost", record.events.len() - 1);
    assert!(said.stdout.contains(&kept), "{kept}: {said:?}");
    assert_eq!(
        fs::read_to_string(record.dir.damaged(1)).unwrap(),
        damaged,
        "the damaged log is kept"
    );
    for args in [
        &["show", "@last"][..],
        &["explain", "@last"],
        &["runs", "list"],
        &["export", "@last", "--to", "otlp-json"],
    ] {
        let said = place.tracegate(args);
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{args:?}: {said:?}");
    }
    let (_, tail) = LogReader::open(&record.dir).unwrap().read_all().unwrap();
    assert_eq!(tail, Tail::Clean);
}

#[test]
fn a_salvaged_run_goes_on_where_its_log_shows_that_no_action_is_missing() {
    // The first step's context is lost, a later request proves the conversation: the run goes on. A lost action: it does not.
    let rows = [
        ("context.build.finished", 0, 0),
        ("action", 0, 24),
        ("agent.step.finished", 1, 24),
    ];
    for (kind, nth, code) in rows {
        let place = Place::new();
        place.file("count.sh", "echo ran >> count.log\n");
        let replies = [
            acts([shell("sh count.sh")]),
            acts([shell("sh count.sh")]),
            acts([shell("sh count.sh")]),
            answers("done"),
        ];
        let (_, record) = place.recorded(QUESTION, &replies, &["--max-steps", "2"], 12);
        let all: Vec<usize> = (0..record.events.len())
            .filter(|index| record.events[*index].fact.name() == kind)
            .collect();
        flip(&record, all[nth]);
        let said = place.tracegate(&["fsck", "@last", "--salvage"]);
        assert_eq!(said.code, 0, "{kind}: {said:?}");
        let resumed = place.tracegate(&["resume", "@last", "--max-steps", "9"]);
        assert_eq!(resumed.code, code, "{kind}: {resumed:?}");
        let done = place.read("count.log").lines().count();
        assert_eq!(
            done,
            if code == 0 { 3 } else { 2 },
            "{kind}: nothing is done twice"
        );
        if code == 0 {
            let said = place.tracegate(&["fsck", "@last"]);
            says(&said, 0, "whole, but for", "next: tracegate show @last");
        } else {
            assert!(
                resumed
                    .stderr
                    .contains("are lost, and nothing recorded after them shows"),
                "{resumed:?}"
            );
            assert!(
                resumed.stderr.contains("help: tracegate show run_"),
                "{resumed:?}"
            );
        }
    }
}

#[test]
fn a_run_of_the_command_cut_anywhere_is_judged_as_it_is() {
    let (_place, record) = recorded();
    let good = fs::read(record.dir.events()).unwrap();
    fs::remove_file(record.dir.state()).unwrap();
    fs::remove_file(record.dir.status()).unwrap();
    let ends: Vec<usize> = (1..=good.len()).filter(|end| good[end - 1] == b'\n').collect();
    let some = (0..500).map(|index| index * good.len() / 500);
    let cuts: BTreeSet<usize> = ends.iter().copied().chain(some).collect();
    for cut in cuts.iter().copied() {
        fs::write(record.dir.events(), &good[..cut]).unwrap();
        let report = fsck(&record.store, &record.dir).unwrap();
        let unterminated = ends.contains(&(cut + 1));
        let whole = ends.iter().filter(|end| **end <= cut).count() + usize::from(unterminated);
        let start = whole.checked_sub(1).map_or(0, |last| ends[last]);
        let mendable: Vec<Finding> = if unterminated {
            vec![Finding::Unterminated { offset: cut as u64 }]
        } else if start < cut {
            vec![Finding::Torn {
                offset: start as u64,
                bytes: (cut - start) as u64,
            }]
        } else {
            Vec::new()
        };
        let found: Vec<Finding> = report
            .findings
            .iter()
            .filter(|finding| finding.verdict() == Verdict::Mendable)
            .cloned()
            .collect();
        assert_eq!((report.verified, found), (whole as u64, mendable), "cut at {cut}");
        // The files that were written once stand beside a log that has not begun.
        assert!(report.verdict < Verdict::Damaged, "cut at {cut}: {report:?}");
    }
    println!(
        "cuts of a run of the command: {} of {} judged as they are",
        cuts.len(),
        cuts.len()
    );
}
