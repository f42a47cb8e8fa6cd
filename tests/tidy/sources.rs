//! Files, words and places: what every source file begins with, how long it is, what it may not say, and who may do what.

use super::{Source, sources};
use regex::Regex;
use std::collections::BTreeSet;

/// Names that say nothing about what a file is for.
const NAMELESS: &[&str] = &[
    "utils", "util", "common", "helpers", "helper", "manager", "imp", "misc",
];

/// The modules through which tracegate reaches disk, clock, environment and processes. Each says why at its head.
const DOORS: &[&str] = &[
    "crates/cli/src/commands/eval.rs",
    "crates/cli/src/commands/export.rs",
    "crates/cli/src/commands/export/fara.rs",
    "crates/cli/src/environment.rs",
    "crates/cli/src/fixture.rs",
    "crates/cli/src/ingredients.rs",
    "crates/cli/src/typed.rs",
    "crates/eval/src/trial.rs",
    "crates/otel/src/transport/tls.rs",
    "crates/runtime/src/context/inventory.rs",
    "crates/runtime/src/workspace/root.rs",
    "crates/runtime/src/workspace/walk.rs",
    "crates/runtime/src/world.rs",
    "crates/store/src/disk.rs",
    "crates/store/src/exports.rs",
    "crates/store/src/files.rs",
    "crates/store/src/lock.rs",
    "crates/store/src/log.rs",
    "crates/store/src/salvage.rs",
    "crates/store/src/store.rs",
];

/// The one module that writes into a log.
const RECORDER: &str = "crates/runtime/src/recorder.rs";

/// `path:line` of every line of code that ships and matches `pattern`.
fn places(pattern: &str) -> Vec<String> {
    let pattern = Regex::new(pattern).unwrap();
    let mut found = Vec::new();
    for source in sources().iter().filter(|source| source.ships()) {
        for (number, line) in source.code() {
            if pattern.is_match(line) {
                found.push(format!("{}:{number}", source.path));
            }
        }
    }
    found
}

/// The files of [`places`], each once.
fn files(pattern: &str) -> BTreeSet<String> {
    let files = places(pattern).into_iter();
    files
        .filter_map(|place| Some(place.rsplit_once(':')?.0.to_owned()))
        .collect()
}

fn complaint(source: &Source) -> Option<String> {
    let first = source.text.lines().next().unwrap_or_default();
    if !first.starts_with("//! ") {
        return Some(format!(
            "{}: its first line does not say what it is for",
            source.path
        ));
    }
    let lines = source.text.lines().count();
    if lines > 700 {
        return Some(format!("{}: {lines} lines, at most 700", source.path));
    }
    let mut names = source.path.split('/').map(|name| name.trim_end_matches(".rs"));
    let nameless = names.find(|name| NAMELESS.contains(name));
    nameless.map(|name| format!("{}: `{name}` says nothing", source.path))
}

#[test]
fn every_file_says_what_it_is_for_is_short_and_has_a_name() {
    let complaints: Vec<String> = sources().iter().filter_map(complaint).collect();
    assert_eq!(complaints, Vec::<String>::new());
    let long = "//! x\n".repeat(701);
    let rows = [
        ("a/b.rs", "x\n"),
        ("a/b.rs", long.as_str()),
        ("a/utils/b.rs", "//! x\n"),
        ("a/helper.rs", "//! x\n"),
    ];
    for (path, text) in rows {
        let (path, text) = (path.to_owned(), text.to_owned());
        assert!(complaint(&Source { path, text }).is_some());
    }
}

#[test]
fn nothing_is_left_for_later() {
    // Spelled in halves, or this file would not pass. In a string the word is data, such as a command that searches for it.
    let words = Regex::new(&format!(r"//.*\b(?:{}{}|{}{})\b", "TO", "DO", "FIX", "ME")).unwrap();
    let code = Regex::new(&format!(r"\b(?:unimple{}|to{})!|#\[ig{}", "mented", "do", "nore")).unwrap();
    let mut found = Vec::new();
    for source in sources() {
        for (number, line) in (1..).zip(source.text.lines()) {
            if words.is_match(line) {
                found.push(format!("{}:{number}", source.path));
            }
        }
        let lines = source.code().filter(|(_, line)| code.is_match(line));
        found.extend(lines.map(|(number, _)| format!("{}:{number}", source.path)));
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn the_recorder_alone_appends_to_a_log() {
    // Files are opened with `.append(true)`, vectors take `&mut`, and the store's log ends in the file's own `append`. A salvage writes
    // a log anew while no writer can be open, and takes nothing in but the records of the old one and the marks of what is lost.
    let of_the_store = ["crates/store/src/log.rs:", "crates/store/src/salvage.rs:"];
    let appends: Vec<String> = places(r"\.append\((?:&[^m]|&m[^u]|[^&)tf])")
        .into_iter()
        .filter(|place| !of_the_store.iter().any(|file| place.starts_with(file)))
        .collect();
    assert_eq!(appends.len(), 1, "{appends:?}");
    assert!(appends[0].starts_with(RECORDER), "{appends:?}");
    let recorder = BTreeSet::from([RECORDER.to_owned()]);
    let log = places(r"\bparts\.log\.append\(");
    assert_eq!(log.len(), 1, "{log:?}");
    for pattern in [r"\bself\.parts\.log\b", r"\bfn record\(&mut self"] {
        assert_eq!(files(pattern), recorder, "{pattern}");
    }
    assert_eq!(places(r"\bfn record\(&mut self").len(), 1);
    // Whoever has a writer could append: it is made where a segment begins, in a new run or a resumed one, and where a dead one is ended, for the recorder.
    let writers = files(r"\bLogWriter\b");
    let wanted = [
        RECORDER,
        "crates/runtime/src/heal.rs",
        "crates/runtime/src/resume.rs",
        "crates/runtime/src/session.rs",
        "crates/store/src/lib.rs",
        "crates/store/src/log.rs",
    ];
    assert_eq!(writers, wanted.map(str::to_owned).into());
}

#[test]
fn the_recorder_alone_opens_live_spans() {
    assert_eq!(files(r"\blive\.open\("), BTreeSet::from([RECORDER.to_owned()]));
    assert_eq!(places(r"\blive\.open\(").len(), 1);
    // The bridge and what hands it on implement `open`; no other code of ours makes a span.
    assert_eq!(
        files(r"\btracing::span!|\b(?:info|debug|trace|warn|error)_span!|#\[(?:tracing::)?instrument"),
        BTreeSet::from(["crates/otel/src/bridge.rs".to_owned()])
    );
}

/// The expectations of `disallowed_methods` in a text, each with its reason, if it has one.
fn doors(text: &str) -> Vec<Option<String>> {
    let attribute = Regex::new(r#"(?s)#!?\[(?:expect|allow)\(([^\]]*?)\)\]"#).unwrap();
    let reason = Regex::new(r#"reason = "([^"]+)""#).unwrap();
    attribute
        .captures_iter(text)
        .filter(|found| found[1].contains("disallowed_methods"))
        .map(|found| reason.captures(&found[1]).map(|reason| reason[1].to_owned()))
        .collect()
}

#[test]
fn every_door_to_the_outside_is_known_and_says_why() {
    let mut found = BTreeSet::new();
    for source in sources() {
        let doors = doors(&source.text);
        assert!(
            doors.iter().all(Option::is_some),
            "{}: a door without a reason",
            source.path
        );
        // A module of tests at the end of a file is no way out for the product.
        let product = source.text.split("#[cfg(test)]").next().unwrap_or_default();
        if source.path.contains("/src/") && !self::doors(product).is_empty() {
            found.insert(source.path);
        }
    }
    assert_eq!(found, DOORS.iter().map(|door| (*door).to_owned()).collect());
}

#[test]
fn an_attribute_without_a_reason_is_noticed() {
    let lint = format!("clippy::disallowed_{}", "methods");
    let open = format!("#![expect(\n    {lint}\n)]\n#[expect({lint}, reason = \"x\")]\nfn f() {{}}\n");
    assert_eq!(doors(&open), [None, Some("x".to_owned())]);
}
