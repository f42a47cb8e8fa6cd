//! The files of a workspace as a tree in which equal folders are known by their digests and shared between fingerprints.

use std::{cmp::Ordering, sync::Arc};
use tracegate_core::ids::Digest;

/// A folder and all that lies below it. It is never empty, except at the top.
#[derive(Debug)]
pub(crate) struct Folder {
    digest: Digest,
    files: u64,
    entries: Vec<Entry>,
}

/// A name in a folder, and what has it.
pub(crate) type Entry = (Arc<str>, Node);

/// What has a name in a folder.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// A file or link, by its content.
    File(Digest),
    /// A folder.
    Folder(Arc<Folder>),
}

impl Node {
    const fn slash(&self) -> Slash {
        match self {
            Self::File(_) => Slash::Without,
            Self::Folder(_) => Slash::With,
        }
    }
}

/// Whether a name is followed by a slash in the paths that begin with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slash {
    With,
    Without,
}

impl Slash {
    const fn byte(self) -> Option<&'static u8> {
        match self {
            Self::With => Some(&b'/'),
            Self::Without => None,
        }
    }
}

/// The order of the paths that two names of one folder begin.
pub(crate) fn path_order(left: (&str, Slash), right: (&str, Slash)) -> Ordering {
    let (left_end, right_end) = (left.1.byte(), right.1.byte());
    let left = left.0.as_bytes().iter().chain(left_end);
    left.cmp(right.0.as_bytes().iter().chain(right_end))
}

impl Default for Folder {
    fn default() -> Self {
        Self::of(Vec::new())
    }
}

impl Folder {
    /// Makes a folder of entries in path order.
    ///
    /// Equal digests, equal paths and contents below: each entry is hashed with its kind and the length of its name. The digests of
    /// contents are keyed and this one is not, so no content can pass for a folder.
    pub(crate) fn of(mut entries: Vec<Entry>) -> Self {
        entries.retain(|(_, node)| !matches!(node, Node::Folder(folder) if folder.files == 0));
        let mut input = Vec::with_capacity(entries.len() * 64);
        let mut files = 0;
        for (name, node) in &entries {
            let (kind, digest, below) = match node {
                Node::File(digest) => (b'f', *digest, 1),
                Node::Folder(folder) => (b'd', folder.digest, folder.files),
            };
            files += below;
            input.push(kind);
            input.extend_from_slice(&(name.len() as u64).to_be_bytes());
            input.extend_from_slice(name.as_bytes());
            input.extend_from_slice(&digest.to_bytes());
        }
        Self {
            digest: Digest::of(&input),
            files,
            entries,
        }
    }

    /// Makes a tree of files in path order, which two names of one path and a file that is also a folder are not.
    pub(crate) fn from_paths<'a>(files: impl IntoIterator<Item = (&'a str, Digest)>) -> Self {
        // The folders that are still open, each with its name in the one before.
        let mut open: Vec<(Arc<str>, Vec<Entry>)> = vec![("".into(), Vec::new())];
        for (path, digest) in files {
            let (folder, name) = path.rsplit_once('/').map_or((None, path), |(f, n)| (Some(f), n));
            let parts: Vec<&str> = folder.into_iter().flat_map(|folder| folder.split('/')).collect();
            let common = open
                .iter()
                .skip(1)
                .zip(&parts)
                .take_while(|((open, _), part)| **open == ***part)
                .count();
            close(&mut open, common + 1);
            open.extend(parts.iter().skip(common).map(|part| ((*part).into(), Vec::new())));
            if let Some((_, entries)) = open.last_mut() {
                entries.push((name.into(), Node::File(digest)));
            }
        }
        close(&mut open, 1);
        Self::of(open.pop().map(|(_, entries)| entries).unwrap_or_default())
    }

    /// Returns the digest over all paths and contents below.
    pub(crate) const fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns how many files lie below.
    pub(crate) const fn files(&self) -> u64 {
        self.files
    }

    fn entry(&self, name: &str, slash: Slash) -> Option<&Node> {
        let order = |(other, node): &Entry| path_order((other, node.slash()), (name, slash));
        let at = self.entries.binary_search_by(order).ok()?;
        self.entries.get(at).map(|(_, node)| node)
    }

    /// Returns the digest of the file at `path`.
    pub(crate) fn file(&self, path: &str) -> Option<Digest> {
        let (folders, name) = path.rsplit_once('/').map_or((None, path), |(f, n)| (Some(f), n));
        let mut at = self;
        for part in folders.into_iter().flat_map(|folders| folders.split('/')) {
            match at.entry(part, Slash::With) {
                Some(Node::Folder(folder)) => at = folder,
                Some(Node::File(_)) | None => return None,
            }
        }
        match at.entry(name, Slash::Without) {
            Some(Node::File(digest)) => Some(*digest),
            Some(Node::Folder(_)) | None => None,
        }
    }

    /// Calls `found` for each path whose content is another one than it was in `before`, in path order, with what it was and is.
    ///
    /// Folders with equal digests are passed over, so this costs what changed. No recursion: how deep a tree is was not our choice.
    pub(crate) fn differences(
        &self,
        before: &Self,
        mut found: impl FnMut(String, Option<Digest>, Option<Digest>),
    ) {
        let mut pairs = vec![(String::new(), before.entries.as_slice(), self.entries.as_slice())];
        while let Some((path, was, is)) = pairs.last_mut() {
            let (old, new) = (was.split_first(), is.split_first());
            let order = match (old, new) {
                (None, None) => {
                    pairs.pop();
                    continue;
                }
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(((old, a), _)), Some(((new, b), _))) => path_order((old, a.slash()), (new, b.slash())),
            };
            let old = old.filter(|_| order != Ordering::Greater);
            let new = new.filter(|_| order != Ordering::Less);
            if let Some((_, rest)) = old {
                *was = rest;
            }
            if let Some((_, rest)) = new {
                *is = rest;
            }
            let (old, new) = (old.map(|(entry, _)| entry), new.map(|(entry, _)| entry));
            let Some((name, _)) = old.or(new) else {
                continue;
            };
            let content = |entry: Option<&Entry>| match entry {
                Some((_, Node::File(digest))) => Some(*digest),
                Some((_, Node::Folder(_))) | None => None,
            };
            let (file_was, file_is) = (content(old), content(new));
            if file_was != file_is {
                found(format!("{path}{name}"), file_was, file_is);
            }
            let (below_was, below_is) = (below(old), below(new));
            if below_was.map(Self::digest) != below_is.map(Self::digest) {
                let path = format!("{path}{name}/");
                pairs.push((path, entries_of(below_was), entries_of(below_is)));
            }
        }
    }
}

fn below(entry: Option<&Entry>) -> Option<&Folder> {
    match entry {
        Some((_, Node::Folder(folder))) => Some(folder),
        Some((_, Node::File(_))) | None => None,
    }
}

fn entries_of(folder: Option<&Folder>) -> &[Entry] {
    folder.map_or(&[], |folder| &folder.entries)
}

/// Closes the open folders from the one at `depth` on.
fn close(open: &mut Vec<(Arc<str>, Vec<Entry>)>, depth: usize) {
    while open.len() > depth {
        let Some((name, entries)) = open.pop() else {
            return;
        };
        let folder = Node::Folder(Arc::new(Folder::of(entries)));
        if let Some((_, above)) = open.last_mut() {
            above.push((name, folder));
        }
    }
}
