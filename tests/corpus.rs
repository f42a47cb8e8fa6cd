//! The labelled corpora: where their files are read from, and how a runner says how many of its cases passed.
//!
//! `TRACEGATE_CORPUS=DIR` reads files of the same names and shapes from `DIR` instead; one that is absent there is `skipped`.

mod policy_cases;
mod secrets;
mod test_commands;
mod validation_cases;

use serde::de::DeserializeOwned;
use std::{io::Read as _, path::PathBuf};

/// The cases of `file`, one JSON object a line, gzipped if its name says so; none if another folder was named that lacks it.
fn cases<T: DeserializeOwned>(file: &str) -> Option<Vec<T>> {
    let named = std::env::var_os("TRACEGATE_CORPUS").map(PathBuf::from);
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let path = named.clone().unwrap_or(own).join(file);
    if named.is_some() && !path.exists() {
        println!("{}: skipped", name_of(file));
        return None;
    }
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let text = if file.ends_with(".gz") {
        let mut text = String::new();
        flate2::read::GzDecoder::new(bytes.as_slice())
            .read_to_string(&mut text)
            .unwrap();
        text
    } else {
        String::from_utf8(bytes).unwrap()
    };
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let cases: Vec<T> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!cases.is_empty(), "{file} holds no case");
    Some(cases)
}

/// A corpus is called what its file is called up to the first dot.
fn name_of(file: &str) -> &str {
    file.split('.').next().unwrap_or(file)
}

/// What the cases of one corpus, or of one tier of it, came to.
struct Tally {
    name: &'static str,
    passed: u32,
    failed: Vec<String>,
}

impl Tally {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            passed: 0,
            failed: Vec::new(),
        }
    }

    /// Counts the case `id`, which failed for the reason in `result` or passed.
    fn count(&mut self, id: &str, result: Result<(), String>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(why) => self.failed.push(format!("{id}: {why}")),
        }
    }

    fn print(&self) {
        println!(
            "{}: {} passed, {} failed",
            self.name,
            self.passed,
            self.failed.len()
        );
        self.failed.iter().for_each(|failed| println!("  {failed}"));
    }
}
