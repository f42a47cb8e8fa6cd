//! What git keeps beside a checkout: which commit is checked out, and ignore rules that are nobody else's. Git itself is not run.

use super::plain::{Links, Moment, Plain, Seen, look, read};
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{Mode, OFlags, openat},
};
use std::{ffi::OsStr, io, os::unix::ffi::OsStrExt as _};

/// The longest `HEAD`, branch, `.git` or `commondir` file that is read, in bytes.
const MAX_POINTER_BYTES: u64 = 64 * 1024;
/// The longest `packed-refs` file that is read, in bytes.
const MAX_PACKED_BYTES: u64 = 16 * 1024 * 1024;

/// Where git keeps what belongs to one checkout, and what all checkouts of the repository share.
#[derive(Debug)]
pub(super) struct GitDir {
    own: OwnedFd,
    shared: Option<OwnedFd>,
}

/// What `packed-refs` said about one branch when it was last read: it may be large.
#[derive(Debug)]
pub(super) struct Packed {
    seen: Seen,
    branch: String,
    commit: Option<String>,
}

impl GitDir {
    /// Finds the repository of the checkout at `dir`: a directory `.git`, or a file of that name which says where it is.
    ///
    /// # Errors
    /// When this process cannot open files.
    pub(super) fn of(dir: impl AsFd) -> io::Result<Option<Self>> {
        let dir = dir.as_fd();
        let mut text = Vec::new();
        let own = match read(dir, c".git", Links::Refused, MAX_POINTER_BYTES, &mut text)? {
            Plain::Read(_) => match line(&text).strip_prefix(b"gitdir: ") {
                Some(path) => open(dir, path),
                None => None,
            },
            Plain::NotRegular => open(dir, b".git"),
            Plain::Missing | Plain::TooLong(_) => None,
        };
        let Some(own) = own else {
            return Ok(None);
        };
        let shared = match read(&own, c"commondir", Links::Refused, MAX_POINTER_BYTES, &mut text)? {
            Plain::Read(_) => open(&own, line(&text)),
            Plain::Missing | Plain::NotRegular | Plain::TooLong(_) => None,
        };
        Ok(Some(Self { own, shared }))
    }

    /// Returns the directory that holds branches and `info/exclude`.
    pub(super) fn shared(&self) -> &OwnedFd {
        self.shared.as_ref().unwrap_or(&self.own)
    }

    /// Returns the commit that is checked out, 40 or 64 lower-case hex digits. `None`: there is none yet, or it cannot be told.
    ///
    /// Only a commit id is ever returned, and below the repository no link is followed: a workspace cannot make this show another file.
    ///
    /// # Errors
    /// When this process cannot open files.
    pub(super) fn head(&self, packed: &mut Option<Packed>, now: Moment) -> io::Result<Option<String>> {
        let mut text = Vec::new();
        let mut pointer = |dir: &OwnedFd, name: &str| {
            let found = read(dir, name, Links::Refused, MAX_POINTER_BYTES, &mut text)?;
            Ok::<_, io::Error>(matches!(found, Plain::Read(_)).then(|| line(&text).to_vec()))
        };
        let Some(head) = pointer(&self.own, "HEAD")? else {
            return Ok(None);
        };
        let Some(branch) = head.strip_prefix(b"ref: ") else {
            return Ok(commit(&head));
        };
        let Some(branch) = branch_name(branch) else {
            return Ok(None);
        };
        match pointer(self.shared(), branch)? {
            Some(found) => Ok(commit(&found)),
            None => self.packed(branch, packed, now),
        }
    }

    fn packed(&self, branch: &str, known: &mut Option<Packed>, now: Moment) -> io::Result<Option<String>> {
        let stamp = look(self.shared(), c"packed-refs");
        if let (Some(known), Some(stamp)) = (known.as_ref(), stamp)
            && known.branch == branch
            && known.seen.holds(&stamp)
        {
            return Ok(known.commit.clone());
        }
        let mut text = Vec::new();
        let Plain::Read(stamp) = read(
            self.shared(),
            c"packed-refs",
            Links::Refused,
            MAX_PACKED_BYTES,
            &mut text,
        )?
        else {
            return Ok(None);
        };
        let found = text.split(|byte| *byte == b'\n').find_map(|line| {
            let (id, name) = line.split_at_checked(line.iter().position(|byte| *byte == b' ')?)?;
            (name.get(1..)? == branch.as_bytes())
                .then(|| commit(id))
                .flatten()
        });
        *known = Some(Packed {
            seen: Seen::at(now, stamp),
            branch: branch.to_owned(),
            commit: found.clone(),
        });
        Ok(found)
    }
}

/// Opens a directory that git's own files name; it may lie anywhere, as that of a linked worktree does.
fn open(dir: impl AsFd, path: &[u8]) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(dir, OsStr::from_bytes(path), flags, Mode::empty()).ok()
}

/// The first line, without what ends it.
fn line(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default()
        .trim_ascii_end()
}

fn commit(text: &[u8]) -> Option<String> {
    let hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let right = matches!(text.len(), 40 | 64) && text.iter().all(hex);
    right.then(|| String::from_utf8_lossy(text).into_owned())
}

/// A name that leads nowhere but below `refs`.
fn branch_name(text: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(text).ok()?;
    let part = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    (name.starts_with("refs/") && name.split('/').all(part)).then_some(name)
}
