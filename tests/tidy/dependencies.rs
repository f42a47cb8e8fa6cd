//! Who may depend on whom, as cargo sees it, and on what else; and that every dependency has its reason.

use super::members;
use crate::support::root;
use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::{BTreeMap, BTreeSet};

/// The arrows: what a crate of ours may use of ours. They only point down.
const ARROWS: &[(&str, &[&str])] = &[
    ("tracegate-core", &[]),
    ("tracegate-policy", &["tracegate-core"]),
    ("tracegate-store", &["tracegate-core"]),
    ("tracegate-report", &["tracegate-core"]),
    ("tracegate-adapters", &["tracegate-core"]),
    ("tracegate-otel", &["tracegate-core", "tracegate-store"]),
    (
        "tracegate",
        &["tracegate-core", "tracegate-policy", "tracegate-store"],
    ),
    (
        "tracegate-eval",
        &[
            "tracegate",
            "tracegate-core",
            "tracegate-policy",
            "tracegate-store",
        ],
    ),
    (
        "tracegate-cli",
        &[
            "tracegate",
            "tracegate-adapters",
            "tracegate-core",
            "tracegate-eval",
            "tracegate-otel",
            "tracegate-policy",
            "tracegate-report",
            "tracegate-store",
        ],
    ),
    // Nobody may need the tests, and they need nobody in what they ship, which is nothing.
    ("tracegate-tests", &[]),
];

/// What the pure crates may use of others: none of these does I/O, reads a clock or the environment, or waits.
const PURE: &[(&str, &[&str])] = &[
    (
        "tracegate-core",
        &[
            "aho-corasick",
            "blake3",
            "jiff",
            "memchr",
            "regex",
            "serde",
            "serde_json",
            "thiserror",
        ],
    ),
    (
        "tracegate-policy",
        &[
            "globset",
            "serde",
            "serde_json",
            "thiserror",
            "toml",
            "unicode-normalization",
        ],
    ),
    ("tracegate-report", &["serde", "serde_json", "thiserror"]),
    ("tracegate-adapters", &["serde", "serde_json", "thiserror"]),
];

/// What each member of the workspace depends on outside its tests.
fn depends() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .other_options(vec!["--offline".to_owned()])
        .exec()
        .unwrap();
    let packages = metadata.packages.into_iter().map(|package| {
        let dependencies = package.dependencies.into_iter();
        let shipped = dependencies.filter(|dependency| dependency.kind != DependencyKind::Development);
        let names = shipped.map(|dependency| dependency.name).collect();
        (package.name.to_string(), names)
    });
    packages.collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn arrows_only_point_down() {
    let depends = depends();
    let ours: BTreeSet<String> = depends.keys().cloned().collect();
    let found: BTreeMap<String, BTreeSet<String>> = depends
        .into_iter()
        .map(|(name, used)| (name, used.intersection(&ours).cloned().collect()))
        .collect();
    let drawn: BTreeMap<String, BTreeSet<String>> = ARROWS
        .iter()
        .map(|(name, used)| ((*name).to_owned(), set(used)))
        .collect();
    assert_eq!(found, drawn);
}

#[test]
fn pure_crates_use_nothing_that_could_do_io() {
    let depends = depends();
    for (name, allowed) in PURE {
        let foreign: BTreeSet<String> = depends[*name]
            .iter()
            .filter(|used| !depends.contains_key(*used))
            .cloned()
            .collect();
        let allowed = set(allowed);
        let unknown: Vec<_> = foreign.difference(&allowed).collect();
        assert!(unknown.is_empty(), "{name} may not use {unknown:?}");
    }
}

/// The lines of `[workspace.dependencies]` that name a crate of others and say no reason.
fn without_reason(manifest: &str) -> Vec<&str> {
    manifest
        .lines()
        .skip_while(|line| *line != "[workspace.dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#') && !line.contains("path = \""))
        .filter(|line| {
            line.split_once(" # ")
                .is_none_or(|(_, reason)| reason.trim().is_empty())
        })
        .collect()
}

#[test]
fn every_dependency_has_its_reason() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert_eq!(without_reason(&manifest), Vec::<&str>::new());
    let bare = "[a]\nx = \"1\"\n[workspace.dependencies]\na = { path = \"a\" }\nb = \"1\" # why\nc = \"1\" #\nd = \"1\"\n[b]\ny = \"1\"\n";
    assert_eq!(without_reason(bare), ["c = \"1\" #", "d = \"1\""]);
}

#[test]
fn versions_live_in_the_root_alone() {
    for member in members() {
        let path = member.join("Cargo.toml");
        let manifest = std::fs::read_to_string(&path).unwrap();
        let own = manifest
            .lines()
            .skip_while(|line| !line.contains("dependencies]"))
            .take_while(|line| !line.starts_with("[["))
            .filter(|line| line.contains(" = ") && !line.contains("workspace = true"));
        assert_eq!(own.collect::<Vec<_>>(), Vec::<&str>::new(), "{}", path.display());
    }
}
