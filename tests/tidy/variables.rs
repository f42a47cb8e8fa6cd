//! The table of `OTEL_*` variables in `docs/export.md` says what the code does: it reads those that are called honoured, and no others.

use super::sources;
use crate::support::root;
use regex::Regex;
use std::collections::BTreeSet;

#[test]
fn the_table_of_variables_names_those_that_the_code_reads() {
    let literal = Regex::new(r#""(OTEL_[A-Z_]+)""#).unwrap();
    let mut read = BTreeSet::new();
    for source in sources().iter().filter(|source| source.ships()) {
        let product = source.text.split("#[cfg(test)]").next().unwrap_or_default();
        read.extend(literal.captures_iter(product).map(|found| found[1].to_owned()));
    }
    let text = std::fs::read_to_string(root().join("docs/export.md")).unwrap();
    let (_, table) = text.split_once("<!-- variables -->").unwrap();
    let (table, _) = table.split_once("<!-- /variables -->").unwrap();
    let name = Regex::new("`(OTEL_[A-Z_]+)`").unwrap();
    let (mut honoured, mut others) = (BTreeSet::new(), BTreeSet::new());
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let names = name.captures_iter(cells[1]).map(|found| found[1].to_owned());
        match cells[2] {
            "yes" => honoured.extend(names),
            "no" => others.extend(names),
            other => panic!("`{other}` in {row}"),
        }
    }
    assert_eq!(honoured, read);
    assert_eq!(others.intersection(&read).count(), 0);
    assert!(others.len() > 5, "{others:?}");
}
