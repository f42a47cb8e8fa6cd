//! Which files a workspace holds: the one place of the context builder that reads the disk.
//!
//! The walk follows no link, leaves the workspace nowhere, and reads no ignore file outside of it, so two checkouts of the same
//! tree give the same inventory on every machine.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the disk: the walk and the first 8 KiB of each file"
)]

use crate::context::names::{FileKind, split_folder};
use ignore::WalkBuilder;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{File, FileType};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use tracegate_core::context_report::{DropReason, IgnoredCounts};
use tracegate_core::ids::Digest;

/// Most files that an inventory lists; the rest is counted.
pub const MOST_FILES: usize = 50_000;
/// Largest file in bytes that can be a candidate.
pub const LARGEST_FILE: u64 = 1024 * 1024;
/// A NUL byte among this many first ones makes a file binary, as git decides it.
const BINARY_PROBE: usize = 8 * 1024;

/// Never entered, never counted: git's and our own bookkeeping.
const BOOKKEEPING: &[&str] = &[".git", ".tracegate"];
/// Never entered, counted as generated: installed packages and caches, also where no `.gitignore` names them.
const INSTALLED: &[&str] = &["node_modules", "__pycache__", ".venv"];

/// The workspace cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// The root is not there, or is no directory.
    #[error("cannot list the workspace `{}`: {source}", root.display())]
    Root {
        /// The workspace.
        root: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl InventoryError {
    /// Returns what to do about it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::Root { .. } => "name an existing directory, as in `tracegate run --workspace DIR`",
        }
    }
}

/// One file that can be a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Path relative to the workspace, with `/`.
    pub path: String,
    /// Size on disk.
    pub bytes: u64,
    /// What its name says it is.
    pub kind: FileKind,
}

/// The files of a workspace, sorted by the bytes of their paths, and the paths that can never be candidates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inventory {
    files: Vec<FileEntry>,
    excluded: BTreeMap<String, DropReason>,
    over_cap: u64,
}

impl Inventory {
    /// Builds an inventory from `(path, bytes)` of candidates and from paths that can be none, in any order.
    pub fn of(
        files: impl IntoIterator<Item = (String, u64)>,
        excluded: impl IntoIterator<Item = (String, DropReason)>,
    ) -> Self {
        let sizes: BTreeMap<String, u64> = files.into_iter().collect();
        let over_cap = sizes.len().saturating_sub(MOST_FILES) as u64;
        let files = sizes
            .into_iter()
            .take(MOST_FILES)
            .map(|(path, bytes)| FileEntry {
                kind: FileKind::of(&path),
                path,
                bytes,
            })
            .collect();
        Self {
            files,
            excluded: excluded.into_iter().collect(),
            over_cap,
        }
    }

    /// Returns the files, sorted by the bytes of their paths.
    #[must_use]
    pub fn files(&self) -> &[FileEntry] {
        &self.files
    }

    /// Returns the file at exactly this path.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&FileEntry> {
        let at = self
            .files
            .binary_search_by(|file| file.path.as_str().cmp(path))
            .ok()?;
        self.files.get(at)
    }

    /// Returns why a path that is not listed cannot be a candidate; a folder that is left out answers for what it holds.
    #[must_use]
    pub fn why_not(&self, path: &str) -> DropReason {
        if path.starts_with('/') || path.split('/').any(|part| part == "..") {
            return DropReason::OutsideRoot;
        }
        if path.split('/').any(|part| BOOKKEEPING.contains(&part)) {
            return DropReason::IgnoredByGitignore;
        }
        let mut at = path;
        while !at.is_empty() {
            if let Some(reason) = self.excluded.get(at) {
                return *reason;
            }
            at = split_folder(at).0;
        }
        if is_secret(path) {
            return DropReason::Secret;
        }
        DropReason::Unreadable
    }

    /// Returns a digest over every path, size and exclusion: two equal ones list the same.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut bytes = Vec::new();
        for file in &self.files {
            bytes.extend_from_slice(file.path.as_bytes());
            bytes.extend_from_slice(&[0, 0]);
            bytes.extend_from_slice(&file.bytes.to_be_bytes());
        }
        for (path, reason) in &self.excluded {
            bytes.extend_from_slice(path.as_bytes());
            bytes.extend_from_slice(&[0, 1]);
            bytes.extend_from_slice(format!("{reason:?}").as_bytes());
            bytes.push(0);
        }
        bytes.extend_from_slice(&self.over_cap.to_be_bytes());
        Digest::of(&bytes)
    }

    /// Returns how many paths can never be candidates, by reason.
    #[must_use]
    pub fn ignored(&self) -> IgnoredCounts {
        let count = |reason| self.excluded.values().filter(|found| **found == reason).count() as u64;
        IgnoredCounts {
            gitignored: count(DropReason::IgnoredByGitignore),
            binary: count(DropReason::Binary),
            too_large: count(DropReason::TooLarge),
            outside_root: count(DropReason::OutsideRoot),
            secret: count(DropReason::Secret),
            unreadable: count(DropReason::Unreadable),
            generated: count(DropReason::Generated),
            over_cap: self.over_cap,
        }
    }
}

/// Lists the workspace at `root`.
///
/// `.gitignore` files are honoured also without a repository; files of a user's own git configuration and of folders above the
/// root are not. Costs one `stat`, one `open` and one `read` a file.
///
/// # Errors
/// If `root` is not a directory that can be listed. A file or folder that cannot be read is counted, not an error.
pub fn take_inventory(root: &Path) -> Result<Inventory, InventoryError> {
    let failed = |source| InventoryError::Root {
        root: root.to_owned(),
        source,
    };
    let real_root = root.canonicalize().map_err(failed)?;
    std::fs::read_dir(&real_root).map_err(failed)?;
    let mut walk = Walk {
        root: &real_root,
        files: Vec::new(),
        excluded: BTreeMap::new(),
        seen: BTreeSet::new(),
        folders: Vec::new(),
        over_cap: 0,
    };
    let entries = WalkBuilder::new(&real_root)
        .standard_filters(false)
        .git_ignore(true)
        .git_exclude(true)
        .require_git(false)
        .follow_links(false)
        .sort_by_file_name(OsStr::cmp)
        .filter_entry(|entry| {
            let name = entry.file_name().to_string_lossy();
            entry.depth() == 0 || !(BOOKKEEPING.contains(&&*name) || INSTALLED.contains(&&*name))
        })
        .build();
    for entry in entries {
        match entry {
            Ok(entry) if entry.depth() > 0 => walk.visit(entry.path(), entry.file_type()),
            Ok(entry) => walk.folders.push(entry.into_path()),
            // A folder that cannot be opened; its name is not in every error, so the count stands for it below.
            Err(_) => {}
        }
    }
    walk.find_left_out();
    let over_cap = walk.over_cap;
    let mut inventory = Inventory::of(walk.files, walk.excluded);
    inventory.over_cap += over_cap;
    Ok(inventory)
}

/// What the walk has found so far.
struct Walk<'a> {
    root: &'a Path,
    files: Vec<(String, u64)>,
    excluded: BTreeMap<String, DropReason>,
    /// Spelled as the system does: comparing paths part by part is slow.
    seen: BTreeSet<OsString>,
    folders: Vec<PathBuf>,
    over_cap: u64,
}

impl Walk<'_> {
    fn visit(&mut self, path: &Path, file_type: Option<FileType>) {
        self.seen.insert(path.as_os_str().to_owned());
        let (name, clean) = relative(self.root, path);
        let Some(file_type) = file_type else {
            self.excluded.insert(name, DropReason::Unreadable);
            return;
        };
        if file_type.is_dir() {
            self.folders.push(path.to_owned());
        } else if file_type.is_symlink() {
            // A link that stays inside is another name of a file that is listed already.
            if path
                .canonicalize()
                .is_ok_and(|target| !target.starts_with(self.root))
            {
                self.excluded.insert(name, DropReason::OutsideRoot);
            }
        } else if !file_type.is_file() || !clean {
            self.excluded.insert(name, DropReason::Unreadable);
        } else if is_secret(&name) {
            self.excluded.insert(name, DropReason::Secret);
        } else if self.files.len() >= MOST_FILES {
            self.over_cap += 1;
        } else {
            match probe(path) {
                Ok(bytes) => self.files.push((name, bytes)),
                Err(reason) => {
                    self.excluded.insert(name, reason);
                }
            }
        }
    }

    /// Finds what the walk passed over: each entry of a folder it entered that it did not yield.
    fn find_left_out(&mut self) {
        for folder in std::mem::take(&mut self.folders) {
            let Ok(entries) = std::fs::read_dir(&folder) else {
                self.excluded
                    .insert(relative(self.root, &folder).0, DropReason::Unreadable);
                continue;
            };
            for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if BOOKKEEPING.contains(&&*name) || self.seen.contains(path.as_os_str()) {
                    continue;
                }
                let reason = if INSTALLED.contains(&&*name) {
                    DropReason::Generated
                } else {
                    DropReason::IgnoredByGitignore
                };
                self.excluded.insert(relative(self.root, &path).0, reason);
            }
        }
    }
}

/// Returns a path relative to the root with `/`, and whether it is a clean name: Unicode, without control characters.
///
/// A control character in a file name could forge the lines around a file in what the model reads.
fn relative(root: &Path, path: &Path) -> (String, bool) {
    let parts: Vec<_> = path
        .strip_prefix(root)
        .unwrap_or(path)
        .components()
        .map(|part| part.as_os_str().to_string_lossy())
        .collect();
    let name = parts.join("/");
    let clean = path.to_str().is_some() && !name.chars().any(char::is_control);
    (name, clean)
}

/// Returns a file's size, or why it can be no candidate.
fn probe(path: &Path) -> Result<u64, DropReason> {
    let unreadable = |_: io::Error| DropReason::Unreadable;
    let mut file = File::open(path).map_err(unreadable)?;
    let bytes = file.metadata().map_err(unreadable)?.len();
    if bytes > LARGEST_FILE {
        return Err(DropReason::TooLarge);
    }
    // Not `read_to_end`: it asks for the size again and reads once more to see the end.
    let mut head = [0; BINARY_PROBE];
    let wanted = usize::try_from(bytes).unwrap_or(BINARY_PROBE).min(BINARY_PROBE);
    let mut filled = 0;
    while let Some(rest) = head.get_mut(filled..wanted).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(DropReason::Unreadable),
        }
    }
    if head.iter().take(filled).any(|byte| *byte == 0) {
        return Err(DropReason::Binary);
    }
    Ok(bytes)
}

/// Whether a name says that the file holds a secret. Examples (`.env.example`) and public keys (`id_rsa.pub`) do not.
pub(crate) fn is_secret(path: &str) -> bool {
    const FILES: &[&str] = &[
        ".npmrc",
        ".pypirc",
        ".netrc",
        "_netrc",
        ".git-credentials",
        ".htpasswd",
        ".pgpass",
        "credentials",
        "credentials.json",
        "id_rsa",
        "id_dsa",
        "id_ecdsa",
        "id_ed25519",
    ];
    const EXTENSIONS: &[&str] = &["pem", "key", "p12", "pfx", "jks", "keystore", "kdbx", "ppk"];
    const EXAMPLES: &[&str] = &["example", "sample", "template", "dist"];
    const FOLDERS: &[&str] = &[".ssh", ".gnupg", ".aws"];
    let path = path.to_ascii_lowercase();
    let (folder, file) = split_folder(&path);
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_env =
        (file == ".env" || file.starts_with(".env.") || file == ".envrc") && !EXAMPLES.contains(&extension);
    is_env
        || FILES.contains(&file)
        || EXTENSIONS.contains(&extension)
        || folder.split('/').any(|part| FOLDERS.contains(&part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Writes `files` into a new workspace.
    fn workspace(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        root
    }

    fn paths(inventory: &Inventory) -> Vec<&str> {
        inventory.files().iter().map(|file| file.path.as_str()).collect()
    }

    #[test]
    fn an_inventory_lists_candidates_in_byte_order_and_says_why_others_are_none() {
        let large = vec![b'x'; 1024 * 1024 + 1];
        let root = workspace(&[
            (".gitignore", b"dist\n*.log\n!keep.log\n"),
            (".ignore", b"src\n"),
            ("dist/a.js", b"1"),
            ("dist/b.js", b"2"),
            ("debug.log", b"x"),
            ("keep.log", b"x"),
            ("src/b.ts", b"b"),
            ("src/a/x.ts", b"xx"),
            ("src/a.ts", b"a"),
            ("src/nul.bin", b"a\0b"),
            ("src/late.bin", &[vec![b'a'; 9000], vec![0]].concat()),
            ("big.txt", &large),
            (".env", b"A=1"),
            (".env.example", b"A="),
            ("keys/server.pem", b"-"),
            ("keys/id_rsa", b"-"),
            ("keys/id_rsa.pub", b"-"),
            ("node_modules/x/index.js", b"1"),
            (".git/config", b"-"),
            (".tracegate/runs/x", b"-"),
        ]);
        let inventory = take_inventory(root.path()).unwrap();
        assert_eq!(
            paths(&inventory),
            [
                ".env.example",
                ".gitignore",
                ".ignore",
                "keep.log",
                "keys/id_rsa.pub",
                "src/a.ts",
                "src/a/x.ts",
                "src/b.ts",
                "src/late.bin",
            ]
        );
        assert_eq!(inventory.get("src/a/x.ts").map(|file| file.bytes), Some(2));
        assert_eq!(
            inventory.ignored(),
            IgnoredCounts {
                gitignored: 2,
                binary: 1,
                too_large: 1,
                outside_root: 0,
                secret: 3,
                unreadable: 0,
                generated: 1,
                over_cap: 0,
            }
        );
        for (path, wanted) in [
            ("dist/a.js", DropReason::IgnoredByGitignore),
            ("debug.log", DropReason::IgnoredByGitignore),
            (".git/config", DropReason::IgnoredByGitignore),
            ("src/nul.bin", DropReason::Binary),
            ("big.txt", DropReason::TooLarge),
            (".env", DropReason::Secret),
            ("later/.env.local", DropReason::Secret),
            ("node_modules/x/index.js", DropReason::Generated),
            ("/etc/hosts", DropReason::OutsideRoot),
            ("src/../../x", DropReason::OutsideRoot),
            ("src/none.ts", DropReason::Unreadable),
        ] {
            assert_eq!(inventory.why_not(path), wanted, "{path}");
        }
    }

    #[test]
    fn a_gitignore_counts_also_without_a_repository() {
        let root = workspace(&[
            (".gitignore", b"*.log\n"),
            ("a.log", b"x"),
            ("sub/.gitignore", b"!b.log\n"),
            ("sub/b.log", b"x"),
        ]);
        let inventory = take_inventory(root.path()).unwrap();
        assert_eq!(paths(&inventory), [".gitignore", "sub/.gitignore", "sub/b.log"]);
        assert_eq!(inventory.ignored().gitignored, 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_never_followed() {
        let outside = workspace(&[("secret.ts", b"1")]);
        let root = workspace(&[("src/a.ts", b"a")]);
        std::os::unix::fs::symlink(outside.path(), root.path().join("out")).unwrap();
        std::os::unix::fs::symlink(root.path().join("src"), root.path().join("again")).unwrap();
        std::os::unix::fs::symlink("nowhere", root.path().join("dangling")).unwrap();
        let inventory = take_inventory(root.path()).unwrap();
        assert_eq!(paths(&inventory), ["src/a.ts"]);
        assert_eq!(inventory.ignored().outside_root, 1);
        assert_eq!(inventory.why_not("out/secret.ts"), DropReason::OutsideRoot);
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_could_forge_a_line_is_no_candidate() {
        let root = workspace(&[("a\nb.ts", b"a"), ("ok.ts", b"a")]);
        let inventory = take_inventory(root.path()).unwrap();
        assert_eq!(paths(&inventory), ["ok.ts"]);
        assert_eq!(inventory.ignored().unreadable, 1);
    }

    #[test]
    fn ignore_files_above_the_workspace_do_not_count() {
        let root = workspace(&[(".gitignore", b"*"), ("inner/a.ts", b"a")]);
        let inventory = take_inventory(&root.path().join("inner")).unwrap();
        assert_eq!(paths(&inventory), ["a.ts"]);
    }

    #[test]
    fn a_workspace_that_is_not_there_is_an_error() {
        let root = workspace(&[("file", b"")]);
        for path in [root.path().join("none"), root.path().join("file")] {
            let error = take_inventory(&path).unwrap_err();
            assert!(
                error.to_string().starts_with("cannot list the workspace `"),
                "{error}"
            );
        }
    }

    #[test]
    fn files_beyond_the_cap_are_counted() {
        let files = (0..MOST_FILES + 3).map(|number| (format!("{number:06}.ts"), 1));
        let inventory = Inventory::of(files, []);
        assert_eq!(
            (inventory.files().len(), inventory.ignored().over_cap),
            (MOST_FILES, 3)
        );
    }
}
