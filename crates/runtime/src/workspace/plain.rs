//! What lies in a directory, looked at without following a link, waiting for a pipe or touching a device; and when it was last changed.

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2, statat},
    io::Errno,
    path::Arg,
};
use std::{
    fs::File,
    io::{self, Read as _},
    time::{SystemTime, UNIX_EPOCH},
};

/// What was changed this shortly before it was looked at, in seconds, may change again within the same time stamp.
const RACY_SECONDS: i64 = 2;

/// What tells one state of a file or directory from another without reading it.
///
/// The change time cannot be set back and the inode is another one after a rename: who restores a modification time hides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) device: u64,
    inode: u64,
    mode: u32,
    pub(super) bytes: u64,
    /// Seconds and nanoseconds since 1970.
    pub(super) modified: (i64, u64),
    pub(super) changed: (i64, u64),
}

impl Stamp {
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_fallible_conversions,
        reason = "the widths of these fields differ between architectures"
    )]
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev.into(),
            inode: stat.st_ino.into(),
            mode: stat.st_mode,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime.into(), stat.st_mtime_nsec.into()),
            changed: (stat.st_ctime.into(), stat.st_ctime_nsec.into()),
        }
    }

    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }
}

/// The time of a look at the disk, against which time stamps are judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// What was changed earlier is settled.
    settled: (i64, u64),
}

impl Moment {
    pub(super) fn of(now: SystemTime) -> Self {
        // A clock before 1970 settles nothing: everything is looked at again.
        let settled = now.duration_since(UNIX_EPOCH).map_or((i64::MIN, 0), |since| {
            let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
            (seconds.saturating_sub(RACY_SECONDS), since.subsec_nanos().into())
        });
        Self { settled }
    }
}

/// A stamp and whether it can be relied on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    stamp: Stamp,
    settled: bool,
}

impl Seen {
    /// `now` is a time before the look: the file may have changed during it.
    pub(super) fn at(now: Moment, stamp: Stamp) -> Self {
        // A time in the future, too, is one that the next change may leave as it is.
        let settled = stamp.modified < now.settled && stamp.changed < now.settled;
        Self { stamp, settled }
    }

    /// Tells whether nothing can have changed between this look and the one that found `stamp`.
    pub(super) fn holds(&self, stamp: &Stamp) -> bool {
        self.settled && self.stamp == *stamp
    }
}

/// Tells whether an error says something about the file, and not that this process has run out of something.
pub(super) fn about_the_file(error: Errno) -> bool {
    !matches!(error, Errno::MFILE | Errno::NFILE | Errno::NOMEM)
}

/// Opens a directory beneath `dir` without passing through any link. `None`: it is not there, or cannot be read.
pub(super) fn open_dir(dir: impl AsFd, path: impl Arg) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(dir, path, flags, Mode::empty(), beneath) {
        Ok(fd) => Ok(Some(fd)),
        Err(error) if about_the_file(error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether links on the way to a file are followed. The last part of its path never is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    Followed,
    Refused,
}

/// What lies under a name that should be a regular file.
#[derive(Debug)]
pub(super) enum Plain {
    Missing,
    /// A link, pipe, device or directory: it was not opened.
    NotRegular,
    /// Longer than it may be, by this stamp: its content is not known.
    TooLong(Stamp),
    /// Its content is in the buffer.
    Read(Stamp),
}

/// Looks at a name without opening what it names. `None`: it is not there.
pub(super) fn look(dir: impl AsFd, name: impl Arg) -> Option<Stamp> {
    let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(Stamp::of(&found))
}

/// Reads the regular file `name` of at most `limit` bytes into `buffer`. What cannot be read is missing.
///
/// # Errors
/// When this process cannot open files.
pub(super) fn read(
    dir: impl AsFd,
    name: impl Arg + Copy,
    links: Links,
    limit: u64,
    buffer: &mut Vec<u8>,
) -> io::Result<Plain> {
    let dir = dir.as_fd();
    buffer.clear();
    // Looked at before it is opened, because opening a device can do something; and after, because it may be another one by then.
    match look(dir, name) {
        None => return Ok(Plain::Missing),
        Some(stamp) if stamp.kind() != FileType::RegularFile => return Ok(Plain::NotRegular),
        Some(_) => {}
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = match links {
        Links::Followed => ResolveFlags::NO_MAGICLINKS,
        Links::Refused => ResolveFlags::NO_SYMLINKS,
    };
    let fd = match openat2(dir, name, flags, Mode::empty(), resolve) {
        Ok(fd) => fd,
        Err(error) if about_the_file(error) => return Ok(Plain::Missing),
        Err(error) => return Err(error.into()),
    };
    let stamp = Stamp::of(&fstat(&fd)?);
    if stamp.kind() != FileType::RegularFile {
        return Ok(Plain::NotRegular);
    }
    if stamp.bytes > limit {
        return Ok(Plain::TooLong(stamp));
    }
    buffer.reserve(usize::try_from(stamp.bytes).unwrap_or(0).saturating_add(1));
    // It may grow while it is read.
    match File::from(fd).take(limit + 1).read_to_end(buffer) {
        Ok(length) if length as u64 > limit => Ok(Plain::TooLong(stamp)),
        Ok(_) => Ok(Plain::Read(stamp)),
        Err(_) => Ok(Plain::Missing),
    }
}
