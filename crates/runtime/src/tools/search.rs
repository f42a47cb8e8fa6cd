//! The tool that searches files.

use crate::{tools::Done, workspace::Root};
use std::fmt::Write as _;
use tracegate_core::payload::clip;

/// Most lines that a search shows.
const MAX_LINES: usize = 200;
/// Larger files are not searched.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

pub(super) fn search(root: &Root, pattern: &str, path: &str) -> Done {
    let regex = match regex::RegexBuilder::new(pattern).size_limit(1 << 20).build() {
        Ok(regex) => regex,
        Err(error) => {
            return Done::failed(
                "invalid_pattern",
                format!("`pattern` is no regular expression: {error}"),
            );
        }
    };
    let below = match root.resolve(path) {
        Ok(below) => below,
        Err(error) => return Done::failed("outside_workspace", error.to_string()),
    };
    let mut walk = ignore::WalkBuilder::new(root.path().join(&below));
    walk.hidden(false)
        .require_git(false)
        .git_global(false)
        .follow_links(false)
        .sort_by_file_path(Ord::cmp);
    walk.filter_entry(|entry| !matches!(entry.file_name().to_str(), Some(".git" | ".tracegate")));
    let mut output = String::new();
    let mut found = 0_usize;
    for entry in walk
        .build()
        .flatten()
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
    {
        let Some(name) = entry
            .path()
            .strip_prefix(root.path())
            .ok()
            .and_then(|name| name.to_str())
        else {
            continue;
        };
        // A file with a secret-looking name is not shown by way of a search either.
        if crate::context::is_secret_name(name) {
            continue;
        }
        let Ok((bytes, length)) = root.read(name, MAX_BYTES) else {
            continue;
        };
        if length > MAX_BYTES || bytes.iter().take(8192).any(|byte| *byte == 0) {
            continue;
        }
        for (number, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
            if regex.is_match(line) {
                found += 1;
                if found <= MAX_LINES {
                    // Writing to a string cannot fail.
                    let _ = writeln!(output, "{name}:{}: {}", number + 1, clip(line.trim_end(), 300));
                }
            }
        }
    }
    if found > MAX_LINES {
        let _ = writeln!(output, "[{} more lines omitted by tracegate]", found - MAX_LINES);
    }
    Done::ok(if output.is_empty() {
        "nothing found".to_owned()
    } else {
        output
    })
}
