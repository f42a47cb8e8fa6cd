//! Rules of the source that no compiler knows: layers, files, doors to the outside, the one way into the log.

mod dependencies;
mod exit_codes;
mod sources;
mod variables;

use crate::support::root;
use std::path::{Path, PathBuf};

/// A source file: where it lies below the root of the workspace, and its text.
struct Source {
    path: String,
    text: String,
}

impl Source {
    /// Its lines of code, numbered from 1: comments are left out, the text of strings is not.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = (1..).zip(self.text.lines());
        lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// Tells whether it is part of the product: not a test, not a module of tests.
    fn ships(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        self.path.contains("/src/") && !matches!(name, "tests.rs" | "testlog.rs" | "properties.rs")
    }
}

/// The folders of the crates.
fn members() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("crates")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.join("Cargo.toml").exists()).collect()
}

/// Every Rust file of the workspace: sources and tests of the crates, and this member.
fn sources() -> Vec<Source> {
    let mut paths = Vec::new();
    for member in members() {
        for folder in ["src", "tests", "benches", "examples"] {
            rust_files(&member.join(folder), &mut paths);
        }
    }
    rust_files(&root().join("tests"), &mut paths);
    let mut sources: Vec<Source> = paths
        .iter()
        .map(|path| Source {
            path: path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned(),
            text: std::fs::read_to_string(path).unwrap(),
        })
        .collect();
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(sources.len() > 100, "the sources are found");
    sources
}

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}
