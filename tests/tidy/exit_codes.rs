//! One table of exit codes: the enum, `--help` and the README say the same. `UPDATE_GOLDEN=1` writes the README's.

use crate::support::{root, stdout, tracegate, updates};
use regex::Regex;
use tracegate_core::stop::Exit;

/// Stands before the table in the README.
const MARK: &str = "<!-- exit-codes -->";
/// Stands after it.
const END: &str = "<!-- /exit-codes -->";

/// The table as Markdown, from mark to mark.
fn markdown() -> String {
    let rows = Exit::ALL.iter().map(|exit| {
        let (code, name, when) = exit.row();
        format!("| {code} | {name} | {when} |\n")
    });
    let rows: String = rows.collect();
    format!("{MARK}\n| code | name | when |\n|---|---|---|\n{rows}{END}")
}

/// What stands in `text` from mark to mark, marks included.
fn marked(text: &str) -> Option<&str> {
    let start = text.find(MARK)?;
    let (table, _) = text.get(start..)?.split_once(END)?;
    text.get(start..start + table.len() + END.len())
}

#[test]
fn help_shows_every_exit_code() {
    let help = stdout(tracegate(&["--help"]));
    let (_, table) = help
        .split_once("Exit codes:\n")
        .expect("help ends with the table");
    // Help is wrapped to the terminal: a row begins with its code, and what follows goes on with it.
    let row = Regex::new(r"^ +([0-9]+)  (\S.*?)  +(\S.*)$").unwrap();
    let mut found: Vec<(u8, String, String)> = Vec::new();
    for line in table.lines().filter(|line| !line.trim().is_empty()) {
        match row.captures(line) {
            Some(row) => found.push((row[1].parse().unwrap(), row[2].to_owned(), row[3].to_owned())),
            None => {
                let (_, _, when) = found.last_mut().unwrap();
                when.push(' ');
                when.push_str(line.trim());
            }
        }
    }
    let wanted: Vec<_> = Exit::ALL
        .iter()
        .map(|exit| exit.row())
        .map(|(code, name, when)| (code, name.to_owned(), when.to_owned()))
        .collect();
    assert_eq!(found, wanted);
}

#[test]
fn the_readme_shows_every_exit_code() {
    let path = root().join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("README.md: {error}"));
    let table = marked(&readme).unwrap_or_else(|| {
        panic!("README.md has `{MARK}` before its table of exit codes and `{END}` after it")
    });
    if updates() {
        std::fs::write(&path, readme.replace(table, &markdown())).unwrap();
        return;
    }
    assert_eq!(table, markdown(), "UPDATE_GOLDEN=1 writes the table anew");
}

#[test]
fn a_table_is_found_between_its_marks() {
    let readme = format!("# x\n\n{}\n\nrest {END}\n", markdown());
    assert_eq!(marked(&readme), Some(markdown().as_str()));
    assert_eq!(marked(&format!("{MARK} no end")), None);
}
