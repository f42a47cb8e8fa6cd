//! Takes fingerprints of a workspace, and looks again only at what can have changed since the one before.
#![expect(
    clippy::disallowed_methods,
    reason = "the disk's time stamps are compared with the clock"
)]

use super::{
    fingerprint::{
        Fingerprint,
        tree::{Entry, Folder, Node, Slash, path_order},
    },
    git::{GitDir, Packed},
    plain::{Links, Moment, Plain, Seen, Stamp, look, open_dir, read},
    rules::{RuleFiles, RuleNames, Rules},
};
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{Dir, FileType, Mode, OFlags, fstat, fstatfs, open, readlinkat},
};
use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, OsStr},
    fmt::Write as _,
    io,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};
use tracegate_core::{ids::Digest, redact::Redactor};

/// Most files that are looked at; a workspace with more is described by its first ones in path order.
pub(super) const MAX_FILES: usize = 200_000;
/// Larger files are described by length and times, not by content.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Takes fingerprints; remembers what it saw of directories and files whose stamps did not change since.
#[derive(Debug)]
pub struct Fingerprints {
    /// Digests are keyed: what is in the workspace has not been redacted.
    redactor: Redactor,
    most_files: usize,
    /// What holds above the workspace, which is nothing: no ignore file outside is read.
    above: Arc<Rules>,
    known: Option<(PathBuf, Box<Known>)>,
    packed: Option<Packed>,
}

impl Fingerprints {
    /// Creates one without memory.
    #[must_use]
    pub fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            most_files: MAX_FILES,
            above: Arc::default(),
            known: None,
            packed: None,
        }
    }

    /// Takes the fingerprint of the workspace at `root`.
    ///
    /// Files that vanish or cannot be read while it is taken are left out. Nothing but regular files is opened.
    ///
    /// # Errors
    /// When the workspace itself cannot be read, or holds a `.gitignore` or `.ignore` that is not a regular file of at most 1 MiB.
    pub fn take(&mut self, root: &Path) -> io::Result<Fingerprint> {
        self.take_at(root, Moment::of(SystemTime::now()))
    }

    fn take_at(&mut self, root: &Path, now: Moment) -> io::Result<Fingerprint> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = open(root, flags, Mode::empty())?;
        // Whatever fails from here on, what was known is dropped with it.
        let known = self.known.take().filter(|(path, _)| path == root);
        let walk = Walk {
            trusted: trusted_device(&fd),
            root: fd.as_fd(),
            redactor: &self.redactor,
            most_files: self.most_files,
            files: 0,
            buffer: Vec::new(),
            now,
        };
        let top = walk.run(known.map(|(_, top)| top), &self.above)?;
        let files = Arc::clone(&top.folder);
        self.known = Some((root.to_owned(), top));
        let head = match GitDir::of(&fd)? {
            Some(git) => git.head(&mut self.packed, now)?,
            None => None,
        };
        Ok(Fingerprint { files, head })
    }
}

/// What is remembered of a directory.
#[derive(Debug)]
struct Known {
    seen: Option<Seen>,
    names: RuleNames,
    rule_files: RuleFiles,
    /// The rules of the directory above, and those here, by which the entries were chosen.
    above: Arc<Rules>,
    rules: Arc<Rules>,
    /// What is not ignored, in path order.
    entries: Vec<KnownEntry>,
    folder: Arc<Folder>,
    /// Whether `folder` is made of all entries.
    extent: Extent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    Cut,
}

#[derive(Debug)]
enum KnownEntry {
    File(KnownFile),
    Folder { name: Name, known: Option<Box<Known>> },
}

#[derive(Debug)]
struct KnownFile {
    name: Name,
    seen: Option<Seen>,
    /// `None`: it cannot be read.
    digest: Option<Digest>,
}

/// A name as the file system has it, and as paths spell it.
#[derive(Debug)]
struct Name {
    raw: CString,
    shown: Arc<str>,
}

impl Name {
    /// Two names are never spelled alike, or a file could hide behind another: one that is not Unicode, or could pass for such a
    /// spelling, ends in its bytes.
    fn of(raw: &CStr) -> Self {
        const REPLACED: char = '\u{fffd}';
        let mut shown = raw.to_string_lossy();
        if shown.contains(REPLACED) {
            let spelled = shown.to_mut();
            spelled.push(REPLACED);
            for byte in raw.to_bytes() {
                // Writing to a string cannot fail.
                let _ = write!(spelled, "{byte:02x}");
            }
        }
        Self {
            shown: shown.into(),
            raw: raw.to_owned(),
        }
    }

    fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.raw.to_bytes()))
    }
}

impl KnownEntry {
    const fn name(&self) -> &Name {
        match self {
            Self::File(KnownFile { name, .. }) | Self::Folder { name, .. } => name,
        }
    }

    const fn slash(&self) -> Slash {
        match self {
            Self::File(_) => Slash::Without,
            Self::Folder { .. } => Slash::With,
        }
    }

    fn node(&self) -> Option<Entry> {
        let node = match self {
            Self::File(file) => Node::File(file.digest?),
            Self::Folder { known, .. } => Node::Folder(Arc::clone(&known.as_ref()?.folder)),
        };
        Some((Arc::clone(&self.name().shown), node))
    }
}

impl Known {
    fn nothing(above: &Arc<Rules>) -> Box<Self> {
        Box::new(Self {
            seen: None,
            names: RuleNames::default(),
            rule_files: RuleFiles::default(),
            above: Arc::clone(above),
            rules: Arc::clone(above),
            entries: Vec::new(),
            folder: Arc::default(),
            extent: Extent::Cut,
        })
    }
}

/// One walk through the workspace, in path order.
struct Walk<'a> {
    root: rustix::fd::BorrowedFd<'a>,
    /// The file system on which a directory's times tell of new and deleted names.
    trusted: Option<u64>,
    redactor: &'a Redactor,
    now: Moment,
    most_files: usize,
    /// How many files come before the place where the walk is.
    files: usize,
    buffer: Vec<u8>,
}

/// A directory whose own files were looked at, and the folders in it up to `next`.
struct Visit {
    path: PathBuf,
    known: Box<Known>,
    next: usize,
    change: Change,
    /// The first entry that the walk has no room for.
    cut: Option<usize>,
}

/// Whether something below a directory may be another than it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    None,
    Possible,
}

impl Change {
    const fn when(possible: bool) -> Self {
        if possible { Self::Possible } else { Self::None }
    }
}

impl Walk<'_> {
    /// Directories are visited one inside the other without recursion: how deep they go is not our choice. None is kept open meanwhile.
    fn run(mut self, known: Option<Box<Known>>, above: &Arc<Rules>) -> io::Result<Box<Known>> {
        let mut visit = self
            .visit(PathBuf::new(), known, above)?
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let mut outer = Vec::new();
        loop {
            if let Some((path, known)) = visit.descend(&mut self.files, self.most_files) {
                match self.visit(path, known, &visit.known.rules)? {
                    Some(inner) => outer.push(std::mem::replace(&mut visit, inner)),
                    None => visit.change = Change::Possible,
                }
                continue;
            }
            let (known, change) = visit.finish();
            let Some(above) = outer.pop() else {
                return Ok(known);
            };
            visit = above;
            visit.ascend(known, change);
        }
    }

    /// Looks at a directory, and at the files in it. `None`: it is gone or cannot be read.
    fn visit(
        &mut self,
        path: PathBuf,
        known: Option<Box<Known>>,
        above: &Arc<Rules>,
    ) -> io::Result<Option<Visit>> {
        let place = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &path
        };
        let Some(dir) = open_dir(self.root, place)? else {
            return Ok(None);
        };
        let mut known = known.unwrap_or_else(|| Known::nothing(above));
        let stamp = Stamp::of(&fstat(&dir)?);
        let same = self.trusted == Some(stamp.device) && known.seen.is_some_and(|seen| seen.holds(&stamp));
        let mut listed = if same { None } else { Some(list(&dir)?) };
        if let Some(listed) = &listed {
            known.names = RuleNames::default();
            listed.iter().for_each(|(name, _)| known.names.note(name));
        }
        let changed = known.rule_files.refresh(&dir, known.names, &path, self.now)?;
        if changed || !Arc::ptr_eq(&known.above, above) {
            known.above = Arc::clone(above);
            known.rules = known.rule_files.below(above);
            if listed.is_none() {
                listed = Some(list(&dir)?);
            }
        }
        known.seen = Some(Seen::at(self.now, stamp));
        let mut change = Change::when(listed.is_some());
        if let Some(listed) = listed {
            let was = std::mem::take(&mut known.entries);
            known.entries = choose(listed, &path, &known.rules, was);
        }
        // More files than there is room for are not read.
        let mut room = self.most_files.saturating_sub(self.files);
        for entry in &mut known.entries {
            match entry {
                KnownEntry::File(_) if room == 0 => break,
                KnownEntry::File(file) => {
                    change = change.max(self.refresh(&dir, file)?);
                    room -= usize::from(file.digest.is_some());
                }
                KnownEntry::Folder { .. } => {}
            }
        }
        Ok(Some(Visit {
            path,
            known,
            next: 0,
            change,
            cut: None,
        }))
    }

    /// Looks at a file again, if it can have changed.
    fn refresh(&mut self, dir: &OwnedFd, file: &mut KnownFile) -> io::Result<Change> {
        let name = file.name.raw.as_c_str();
        let stamp = look(dir, name);
        if let (Some(seen), Some(stamp), Some(_)) = (&file.seen, &stamp, &file.digest)
            && seen.holds(stamp)
        {
            return Ok(Change::None);
        }
        let (seen, digest) = match stamp.map(|stamp| (stamp, stamp.kind())) {
            Some((stamp, FileType::Symlink)) => {
                let target = readlinkat(dir, name, Vec::new()).ok();
                let digest = target.map(|target| self.described("link", target.to_bytes()));
                (Some(stamp), digest)
            }
            Some((_, FileType::RegularFile)) => {
                match read(dir, name, Links::Refused, MAX_BYTES, &mut self.buffer)? {
                    Plain::Read(stamp) => (Some(stamp), Some(self.redactor.digest(&self.buffer))),
                    Plain::TooLong(stamp) => {
                        let text = format!("{} {:?} {:?}", stamp.bytes, stamp.modified, stamp.changed);
                        (Some(stamp), Some(self.described("large", text.as_bytes())))
                    }
                    Plain::Missing | Plain::NotRegular => (None, None),
                }
            }
            _ => (None, None),
        };
        let change = Change::when(digest != file.digest);
        file.seen = seen.map(|stamp| Seen::at(self.now, stamp));
        file.digest = digest;
        Ok(change)
    }

    /// The digest of what is not told by its bytes; hashed twice, so that no file's content can pass for it.
    fn described(&self, what: &str, bytes: &[u8]) -> Digest {
        let text = [what.as_bytes(), b" ", bytes].concat();
        Digest::of(&self.redactor.digest(&text).to_bytes())
    }
}

impl Visit {
    /// Goes on to the next folder, passing the files before it. `None`: there is none, or no room.
    fn descend(&mut self, files: &mut usize, most: usize) -> Option<(PathBuf, Option<Box<Known>>)> {
        while let Some(entry) = self
            .known
            .entries
            .get_mut(self.next)
            .filter(|_| self.cut.is_none())
        {
            match entry {
                KnownEntry::File(KnownFile { digest: None, .. }) => {}
                _ if *files >= most => {
                    self.cut = Some(self.next);
                    return None;
                }
                KnownEntry::File(_) => *files += 1,
                KnownEntry::Folder { name, known } => {
                    self.next += 1;
                    return Some((self.path.join(name.path()), known.take()));
                }
            }
            self.next += 1;
        }
        None
    }

    /// Takes back what is known of the folder that was gone on to last.
    fn ascend(&mut self, below: Box<Known>, change: Change) {
        self.change = self.change.max(change);
        let at = self.next.checked_sub(1);
        if let Some(KnownEntry::Folder { known, .. }) = at.and_then(|at| self.known.entries.get_mut(at)) {
            *known = Some(below);
        }
    }

    /// Puts the folder together, if it can be another one than it was.
    fn finish(self) -> (Box<Known>, Change) {
        let (mut known, change) = (self.known, self.change);
        let extent = if self.cut.is_none() {
            Extent::Whole
        } else {
            Extent::Cut
        };
        if (change, extent, known.extent) == (Change::None, Extent::Whole, Extent::Whole) {
            return (known, Change::None);
        }
        let end = self.cut.unwrap_or(known.entries.len());
        let entries = known.entries.iter().take(end).filter_map(KnownEntry::node);
        let folder = Folder::of(entries.collect());
        let change = Change::when(folder.digest() != known.folder.digest());
        if change == Change::Possible {
            known.folder = Arc::new(folder);
        }
        known.extent = extent;
        (known, change)
    }
}

/// The names in a directory, but for git's bookkeeping and ours, and what has them.
fn list(dir: &OwnedFd) -> io::Result<Vec<(CString, FileType)>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        // Not every file system says what a name stands for.
        let kind = match entry.file_type() {
            FileType::Unknown => look(dir, name).map_or(FileType::Unknown, |stamp| stamp.kind()),
            kind @ (FileType::RegularFile
            | FileType::Directory
            | FileType::Symlink
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice) => kind,
        };
        names.push((name.to_owned(), kind));
    }
    Ok(names)
}

/// Keeps the files, links and folders that git does not ignore, with what was known of them.
fn choose(
    listed: Vec<(CString, FileType)>,
    path: &Path,
    rules: &Rules,
    was: Vec<KnownEntry>,
) -> Vec<KnownEntry> {
    let mut was: BTreeMap<Arc<str>, KnownEntry> = was
        .into_iter()
        .map(|entry| (Arc::clone(&entry.name().shown), entry))
        .collect();
    let mut entries = Vec::with_capacity(listed.len());
    for (raw, kind) in listed {
        let slash = match kind {
            FileType::RegularFile | FileType::Symlink => Slash::Without,
            FileType::Directory => Slash::With,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => continue,
        };
        let name = Name::of(&raw);
        let bookkeeping = matches!(raw.to_bytes(), b".git" | b".tracegate");
        if bookkeeping || rules.ignores(&path.join(name.path()), slash == Slash::With) {
            continue;
        }
        entries.push(match (was.remove(&name.shown), slash) {
            (Some(known), _) if known.slash() == slash => known,
            (_, Slash::With) => KnownEntry::Folder { name, known: None },
            (_, Slash::Without) => KnownEntry::File(KnownFile {
                name,
                seen: None,
                digest: None,
            }),
        });
    }
    entries.sort_unstable_by(|left, right| {
        let key = |entry: &'_ KnownEntry| (Arc::clone(&entry.name().shown), entry.slash());
        let ((left, a), (right, b)) = (key(left), key(right));
        path_order((&left, a), (&right, b))
    });
    entries
}

/// Returns the device of a directory if its file system is one that changes a directory's times whenever a name in it changes.
///
/// Network and user-space file systems may not; there each directory is listed each time.
fn trusted_device(dir: &OwnedFd) -> Option<u64> {
    const EXT: u64 = 0xef53;
    const XFS: u64 = 0x5846_5342;
    const BTRFS: u64 = 0x9123_683e;
    const F2FS: u64 = 0xf2f5_2010;
    const BCACHEFS: u64 = 0xca45_1a4e;
    const ZFS: u64 = 0x2fc1_2fc1;
    const TMPFS: u64 = 0x0102_1994;
    const OVERLAY: u64 = 0x794c_7630;
    let kind = u64::try_from(fstatfs(dir).ok()?.f_type).ok()?;
    let known = matches!(kind, EXT | XFS | BTRFS | F2FS | BCACHEFS | ZFS | TMPFS | OVERLAY);
    known.then_some(Stamp::of(&fstat(dir).ok()?).device)
}

#[cfg(test)]
mod tests;
