//! How the workspace is at a moment: every file that git does not ignore, by digest, so that "did this change anything" is a comparison.
#![expect(clippy::disallowed_methods, reason = "this is the disk")]

use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    io,
    path::Path,
    time::{Duration, SystemTime},
};
use tracegate_core::{
    fact::tool::{SideEffect, SideEffectType, WorkspaceState},
    ids::Digest,
    payload::encoded_len,
    redact::Redactor,
    validation::Weight,
};

/// Most files that are looked at; a workspace with more is described by its first ones.
const MAX_FILES: usize = 50_000;
/// Larger files are described by length and time, not by content.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// A file changed this shortly before it was read may change again within the same time stamp.
const RACY: Duration = Duration::from_secs(2);
/// How many changed paths an event lists.
const LISTED: usize = 256;
/// How many bytes such a list may take.
const LISTED_BYTES: usize = 24 * 1024;

/// The largest file of ignore rules that is read.
const MAX_IGNORE_BYTES: u64 = 1024 * 1024;

/// Makes sure that whoever walks the workspace can read its ignore rules: a pipe would be waited for, a link to a device read for ever.
///
/// # Errors
/// When a `.gitignore` or `.ignore` is no regular file, or larger than 1 MiB. Git, too, follows no link there.
pub(super) fn check_ignore_files(root: &Path) -> io::Result<()> {
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else {
                continue;
            };
            let rules = name == ".gitignore" || name == ".ignore";
            if rules && (!kind.is_file() || entry.metadata()?.len() > MAX_IGNORE_BYTES) {
                let message = format!(
                    "`{}` is not a regular file of at most 1 MiB",
                    entry.path().display()
                );
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
            if kind.is_dir() && name != ".git" && name != ".tracegate" {
                open.push(entry.path());
            }
        }
    }
    let exclude = root.join(".git/info/exclude");
    match std::fs::symlink_metadata(&exclude) {
        Ok(found) if !found.is_file() => {
            let message = format!("`{}` is not a regular file", exclude.display());
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The files of a workspace and their digests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    files: BTreeMap<String, Digest>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    racy: bool,
}

/// Takes fingerprints; remembers digests of files whose length and time did not change.
#[derive(Debug)]
pub struct Fingerprints {
    /// Digests are keyed: what is in the workspace has not been redacted.
    redactor: Redactor,
    cache: BTreeMap<String, (Stamp, Digest)>,
}

impl Fingerprints {
    /// Creates one without memory.
    #[must_use]
    pub const fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            cache: BTreeMap::new(),
        }
    }

    /// Takes the fingerprint of the workspace at `root`.
    ///
    /// Files that vanish or cannot be read while it is taken are left out.
    ///
    /// # Errors
    /// When the workspace itself cannot be read.
    pub fn take(&mut self, root: &Path) -> io::Result<Fingerprint> {
        std::fs::read_dir(root)?;
        let mut walk = ignore::WalkBuilder::new(root);
        walk.hidden(false)
            .require_git(false)
            .git_global(false)
            .follow_links(false)
            .parents(false);
        walk.filter_entry(|entry| !matches!(entry.file_name().to_str(), Some(".git" | ".tracegate")));
        let mut files = BTreeMap::new();
        let mut cache = BTreeMap::new();
        for entry in walk.build().flatten() {
            if !entry
                .file_type()
                .is_some_and(|kind| kind.is_file() || kind.is_symlink())
                || files.len() >= MAX_FILES
            {
                continue;
            }
            let Some(name) = entry
                .path()
                .strip_prefix(root)
                .ok()
                .map(|path| path.to_string_lossy().into_owned())
            else {
                continue;
            };
            if let Some((stamp, digest)) = self.digest(&name, entry.path()) {
                files.insert(name.clone(), digest);
                cache.insert(name, (stamp, digest));
            }
        }
        self.cache = cache;
        Ok(Fingerprint { files })
    }

    fn digest(&self, name: &str, path: &Path) -> Option<(Stamp, Digest)> {
        let metadata = std::fs::symlink_metadata(path).ok()?;
        if metadata.is_symlink() {
            let target = std::fs::read_link(path).ok()?;
            let stamp = Stamp {
                bytes: metadata.len(),
                modified: None,
                racy: true,
            };
            return Some((
                stamp,
                self.redactor
                    .digest(format!("link {}", target.display()).as_bytes()),
            ));
        }
        let modified = metadata.modified().ok();
        let age = modified.and_then(|modified| SystemTime::now().duration_since(modified).ok());
        let stamp = Stamp {
            bytes: metadata.len(),
            modified,
            racy: age.is_none_or(|age| age < RACY),
        };
        match self.cache.get(name) {
            Some((known, digest))
                if !known.racy && known.bytes == stamp.bytes && known.modified == modified =>
            {
                Some((Stamp { racy: false, ..stamp }, *digest))
            }
            _ if stamp.bytes > MAX_BYTES => Some((
                stamp,
                self.redactor
                    .digest(format!("large {} {modified:?}", stamp.bytes).as_bytes()),
            )),
            _ => std::fs::read(path)
                .ok()
                .map(|bytes| (stamp, self.redactor.digest(&bytes))),
        }
    }
}

impl Fingerprint {
    /// Returns the digest of a file, if it is there.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<Digest> {
        self.files.get(path).copied()
    }

    /// Returns what changed since `before`, by path, as far as an event can list it: `listed`.
    #[must_use]
    pub fn effects_since(&self, before: &Self) -> Vec<SideEffect> {
        // Two digests and the names of four fields.
        listed(self.changes_since(before), |effect| {
            (effect.relative_path.as_str(), 240)
        })
    }

    /// Returns what changed since `before`, by path.
    #[must_use]
    pub fn changes_since(&self, before: &Self) -> Vec<SideEffect> {
        let mut paths: Vec<&String> = before.files.keys().chain(self.files.keys()).collect();
        paths.sort_unstable();
        paths.dedup();
        let changed = paths.into_iter().filter_map(|path| {
            let (was, is) = (before.file(path), self.file(path));
            let effect = if is.is_some() {
                SideEffectType::WriteFile
            } else {
                SideEffectType::DeleteFile
            };
            (was != is).then(|| SideEffect {
                effect,
                relative_path: path.clone(),
                before: was,
                after: is,
            })
        });
        changed.collect()
    }

    /// Describes the workspace for an event, with what changed since `before`.
    #[must_use]
    pub fn state_since(&self, before: Option<&Self>) -> WorkspaceState {
        let changed = before.map_or_else(Vec::new, |before| self.changes_since(before));
        let changed_total = changed.len() as u64;
        let changed = listed(changed, |effect| (effect.relative_path.as_str(), 3));
        let mut input = Vec::new();
        for (path, digest) in &self.files {
            input.extend_from_slice(path.as_bytes());
            input.push(0);
            input.extend_from_slice(&digest.to_bytes());
        }
        WorkspaceState {
            digest: Digest::of(&input),
            files: self.files.len() as u64,
            changed_total,
            changed: changed.into_iter().map(|effect| effect.relative_path).collect(),
        }
    }
}

/// Keeps what an event can hold of `items`, which are sorted by path: the ones that weigh most as evidence, in their order.
///
/// `measure` returns an item's path and how many bytes it takes beside that.
fn listed<T>(items: Vec<T>, measure: impl Fn(&T) -> (&str, usize)) -> Vec<T> {
    let mut ranked: Vec<(usize, T)> = items.into_iter().enumerate().collect();
    ranked.sort_by_key(|(index, item)| (Weight::of(measure(item).0), *index));
    let mut bytes = 0;
    let fits = ranked.iter().take(LISTED).take_while(|(_, item)| {
        let (path, beside) = measure(item);
        bytes += encoded_len(path) + beside;
        bytes <= LISTED_BYTES
    });
    let count = fits.count();
    ranked.truncate(count);
    ranked.sort_by_key(|(index, _)| *index);
    ranked.into_iter().map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_cut_keeps_what_weighs_as_evidence() {
        let mut paths: Vec<String> = (0..500)
            .map(|index| format!("coverage/{index:03}.html"))
            .collect();
        paths.extend(["docs/a.md", "src/a.js", "src/a.test.js"].map(str::to_owned));
        let kept = listed(paths.clone(), |path| (path.as_str(), 3));
        assert_eq!(kept.len(), LISTED);
        assert_eq!(kept.get(LISTED - 3..).unwrap(), paths.get(500..).unwrap());
        let long: Vec<String> = (0..500)
            .map(|index| format!("{}{index:03}", "\u{1}".repeat(100)))
            .collect();
        assert_eq!(listed(long, |path| (path.as_str(), 3)).len(), LISTED_BYTES / 608);
    }

    #[test]
    fn ignore_rules_that_could_not_be_read_to_their_end_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("src")).unwrap();
        std::fs::write(dir.path().join(".gitignore"), "*.log\n").unwrap();
        check_ignore_files(dir.path()).unwrap();
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("src/.gitignore")).unwrap();
        let refused = check_ignore_files(dir.path()).unwrap_err().to_string();
        assert!(
            refused.contains("src/.gitignore") && refused.contains("not a regular file"),
            "{refused}"
        );
    }

    #[test]
    fn changes_are_found_and_ignored_files_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write(".gitignore", "*.log\n");
        write("a.txt", "one");
        write("b.txt", "b");
        let key = tracegate_core::redact::RedactionKey::from_bytes([7; 32]);
        let mut prints = Fingerprints::new(Redactor::new(key, &[]));
        let before = prints.take(dir.path()).unwrap();
        write("a.txt", "two");
        write("noise.log", "x");
        std::fs::remove_file(dir.path().join("b.txt")).unwrap();
        let after = prints.take(dir.path()).unwrap();
        let changes: Vec<_> = after
            .changes_since(&before)
            .into_iter()
            .map(|c| (c.relative_path, c.effect))
            .collect();
        let wanted = [
            ("a.txt".to_owned(), SideEffectType::WriteFile),
            ("b.txt".to_owned(), SideEffectType::DeleteFile),
        ];
        assert_eq!(changes, wanted);
        assert_eq!(after.state_since(Some(&after)).changed_total, 0);
        assert_ne!(after.state_since(None).digest, before.state_since(None).digest);
    }
}
