//! The tool that searches files.

use crate::{
    tools::{Done, files::one_line},
    workspace::{Root, readable_upwards, walkable},
};
use std::fmt::Write as _;
use tracegate_core::payload::clip;

/// Most lines that a search shows.
const MAX_LINES: usize = 200;
/// How many of the files that were too large are named.
const MAX_NAMED: usize = 5;
/// Larger files are not searched.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Searches what lies below `path`, passing over the files that `masks` match: the gate permitted it without them.
pub(super) fn search(root: &Root, pattern: &str, path: &str, masks: &[String]) -> Done {
    let regex = match regex::RegexBuilder::new(pattern).size_limit(1 << 20).build() {
        Ok(regex) => regex,
        Err(error) => {
            return Done::failed(
                "invalid_pattern",
                format!("`pattern` is no regular expression: {error}"),
            );
        }
    };
    let masks = match crate::gate::compile_masks(masks) {
        Ok(masks) => masks,
        Err(error) => return Done::failed("internal", format!("what must stay hidden is unknown: {error}")),
    };
    let below = match root.resolve(path) {
        Ok(below) => below,
        Err(error) => return Done::failed("outside_workspace", error.to_string()),
    };
    let below = root.path().join(&below);
    if let Err(error) = readable_upwards(&below) {
        return Done::failed("unreadable_rules", error.to_string());
    }
    let mut walk = ignore::WalkBuilder::new(below);
    walk.hidden(false)
        .require_git(false)
        .git_global(false)
        .follow_links(false)
        .sort_by_file_path(Ord::cmp);
    walk.filter_entry(walkable);
    let mut output = String::new();
    let mut found = 0_usize;
    let mut too_large = Vec::new();
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
        if crate::context::is_secret_name(name) || masks.is_match(name) {
            continue;
        }
        let Ok((bytes, length)) = root.read(name, MAX_BYTES) else {
            continue;
        };
        if length > MAX_BYTES {
            too_large.push(one_line(name).into_owned());
            continue;
        }
        if bytes.iter().take(8192).any(|byte| *byte == 0) {
            continue;
        }
        let name = one_line(name);
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
    if output.is_empty() {
        output.push_str("nothing found\n");
    }
    if !too_large.is_empty() {
        let named = too_large.get(..MAX_NAMED).unwrap_or(&too_large).join(", ");
        let more = match too_large.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let _ = writeln!(output, "[not searched, larger than 4 MiB: {named}{more}]");
    }
    Done::ok(output.trim_end().to_owned())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a workspace is made here")]
mod tests {
    use super::*;

    #[test]
    fn a_search_passes_over_the_files_that_it_was_permitted_without() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("a.txt", "plain word"),
            ("b/private.txt", "private word"),
            (".env", "W=word"),
        ] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::open(dir.path()).unwrap();
        let found = |masks: &[&str]| {
            let masks: Vec<String> = masks.iter().map(|mask| (*mask).to_owned()).collect();
            search(&root, "word", ".", &masks).output
        };
        assert_eq!(found(&["**/private.txt"]), "a.txt:1: plain word");
        assert_eq!(found(&[]), "a.txt:1: plain word\nb/private.txt:1: private word");
        // What was too large to be searched is named, and no name breaks a line.
        let large = std::fs::File::create(dir.path().join("c\n.log")).unwrap();
        large.set_len(MAX_BYTES + 1).unwrap();
        let named = "a.txt:1: plain word\n[not searched, larger than 4 MiB: c\\n.log]";
        assert_eq!(found(&["**/private.txt"]), named);
        // Ignore rules that would be waited for are not opened, where git ignores the folder either.
        std::fs::write(dir.path().join(".gitignore"), "out\n").unwrap();
        std::fs::create_dir_all(dir.path().join("out/in/deep")).unwrap();
        let pipe = rustix::fs::FileType::Fifo;
        for name in ["out/.gitignore", "b/.ignore"] {
            let mode = rustix::fs::Mode::RWXU;
            rustix::fs::mknodat(rustix::fs::CWD, dir.path().join(name), pipe, mode, 0).unwrap();
        }
        assert_eq!(found(&[]), named);
        let refused = search(&root, "word", "out/in", &[]).output;
        let listed = crate::tools::files::list(&root, "out/in", 2).output;
        assert_eq!(refused, listed);
        assert!(
            refused.ends_with("out/.gitignore` is not a regular file of at most 1 MiB"),
            "{refused}"
        );
        // A pattern that means nothing hides everything.
        assert_eq!(
            found(&["{"]).split(':').next(),
            Some("what must stay hidden is unknown")
        );
    }
}
