//! Which entries git ignores: the rules of a directory and of those above it, remembered with the files that they were read from.

use super::{
    git::GitDir,
    plain::{Links, Moment, Plain, Seen, Stamp, look, read},
};
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder, Glob},
};
use rustix::{
    fd::AsFd,
    fs::{CWD, FileType},
};
use std::{ffi::CStr, io, path::Path, sync::Arc};
use tracegate_core::ids::Digest;

/// The largest file of ignore rules that is read, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The rules that hold in a directory. Two that are the same object decide the same.
#[derive(Debug, Default)]
pub(super) struct Rules {
    above: Option<Arc<Self>>,
    own: [Option<Arc<Gitignore>>; 3],
}

impl Rules {
    /// Tells whether git passes over an entry. `path` begins at the workspace.
    pub(super) fn ignores(&self, path: &Path, is_dir: bool) -> bool {
        // The nearest file of a kind that says something decides for the kind; then `.ignore` comes before `.gitignore` before `exclude`.
        let mut found: [Match<&Glob>; 3] = [const { Match::None }; 3];
        let mut at = Some(self);
        while let Some(rules) = at {
            for (found, globs) in found.iter_mut().zip(&rules.own) {
                if let (true, Some(globs)) = (found.is_none(), globs) {
                    *found = globs.matched(path, is_dir);
                }
            }
            at = rules.above.as_deref();
        }
        let [plain, git, exclude] = found;
        plain.or(git).or(exclude).is_ignore()
    }
}

/// Which names that matter to the rules a directory holds.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct RuleNames {
    ignore: bool,
    gitignore: bool,
    git: bool,
}

impl RuleNames {
    pub(super) fn note(&mut self, name: &CStr) {
        match name.to_bytes() {
            b".ignore" => self.ignore = true,
            b".gitignore" => self.gitignore = true,
            b".git" => self.git = true,
            _ => {}
        }
    }
}

/// The files of rules that a directory holds, as last read: `.ignore`, `.gitignore` and git's `info/exclude`.
#[derive(Debug, Default)]
pub(super) struct RuleFiles([Option<RuleFile>; 3]);

#[derive(Debug)]
struct RuleFile {
    seen: Seen,
    digest: Digest,
    globs: Arc<Gitignore>,
}

impl RuleFiles {
    /// Looks at the files again and returns whether any of their rules changed. `path` is the directory's in the workspace.
    ///
    /// # Errors
    /// When one is not a regular file of at most 1 MiB: it is not opened, because a pipe would be waited for, and a link to a device
    /// read for ever. Git, too, follows no link there.
    pub(super) fn refresh(
        &mut self,
        dir: impl AsFd,
        names: RuleNames,
        path: &Path,
        now: Moment,
    ) -> io::Result<bool> {
        let dir = dir.as_fd();
        let Self([ignore, gitignore, exclude]) = self;
        let mut changed = false;
        for (slot, name, there) in [
            (ignore, c".ignore", names.ignore),
            (gitignore, c".gitignore", names.gitignore),
        ] {
            changed |= if there {
                refresh(slot, dir, name, path, now)?
            } else {
                slot.take().is_some()
            };
        }
        let git = if names.git { GitDir::of(dir)? } else { None };
        changed |= match git {
            Some(git) => refresh(exclude, git.shared(), c"info/exclude", path, now)?,
            None => exclude.take().is_some(),
        };
        Ok(changed)
    }

    /// Returns the rules of a directory with these files below one with the rules `above`.
    pub(super) fn below(&self, above: &Arc<Rules>) -> Arc<Rules> {
        if self.0.iter().all(Option::is_none) {
            return Arc::clone(above);
        }
        let own = self.0.each_ref();
        Arc::new(Rules {
            above: Some(Arc::clone(above)),
            own: own.map(|file| file.as_ref().map(|file| Arc::clone(&file.globs))),
        })
    }
}

fn refresh(
    slot: &mut Option<RuleFile>,
    dir: impl AsFd,
    name: &CStr,
    path: &Path,
    now: Moment,
) -> io::Result<bool> {
    let dir = dir.as_fd();
    if let (Some(known), Some(stamp)) = (slot.as_ref(), look(dir, name))
        && stamp.kind() == FileType::RegularFile
        && known.seen.holds(&stamp)
    {
        return Ok(false);
    }
    let mut text = Vec::new();
    let stamp = match read(dir, name, Links::Followed, MAX_BYTES, &mut text)? {
        Plain::Read(stamp) => stamp,
        Plain::Missing => return Ok(slot.take().is_some()),
        Plain::NotRegular | Plain::TooLong(_) => {
            let inside = if name == c"info/exclude" { ".git" } else { "" };
            return Err(unreadable(&path.join(inside), name));
        }
    };
    let (seen, digest) = (Seen::at(now, stamp), Digest::of(&text));
    if let Some(known) = slot.as_mut().filter(|known| known.digest == digest) {
        known.seen = seen;
        return Ok(false);
    }
    let globs = Arc::new(compile(&text, path));
    *slot = Some(RuleFile { seen, digest, globs });
    Ok(true)
}

fn unreadable(path: &Path, name: &CStr) -> io::Error {
    let file = path.join(name.to_string_lossy().as_ref());
    let message = format!("`{}` is not a regular file of at most 1 MiB", file.display());
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Makes sure that a walk by other code can read the ignore rules of a directory and of all above it, which it opens, too. A
/// fingerprint has made sure of it inside the workspace wherever git does not ignore the directory.
///
/// # Errors
/// When a `.gitignore`, `.ignore` or `exclude` there is not a regular file of at most 1 MiB.
pub(crate) fn readable_upwards(dir: &Path) -> io::Result<()> {
    dir.ancestors().try_for_each(readable)
}

/// As [`readable_upwards`], of one directory.
pub(super) fn readable(dir: &Path) -> io::Result<()> {
    let refused = |stamp: Stamp| stamp.kind() != FileType::RegularFile || stamp.bytes > MAX_BYTES;
    for (dir, name) in [
        (dir, c".gitignore"),
        (dir, c".ignore"),
        (&dir.join(".git"), c"info/exclude"),
    ] {
        let file = dir.join(name.to_string_lossy().as_ref());
        if look(CWD, file).is_some_and(refused) {
            return Err(unreadable(dir, name));
        }
    }
    Ok(())
}

/// A line that is no pattern is passed over, as git does.
fn compile(text: &[u8], path: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(path);
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Ok(line) = std::str::from_utf8(line) {
            drop(builder.add_line(None, line));
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
