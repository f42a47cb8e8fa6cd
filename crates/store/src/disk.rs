//! The few operations on files that can fail in the field, behind traits that tests replace.
#![expect(clippy::disallowed_methods, reason = "this is the disk")]

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// A log file open for appending.
pub trait LogFile: Send + std::fmt::Debug {
    /// Appends all of `bytes` or reports an error; after an error the caller truncates back.
    ///
    /// # Errors
    /// As the file system reports, such as a full disk.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes everything appended survive the loss of the machine's memory.
    ///
    /// # Errors
    /// As the file system reports; afterwards nothing may be assumed about earlier writes.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file to `len` bytes.
    ///
    /// # Errors
    /// As the file system reports.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
}

/// The operations through which everything of a store is written and made durable.
///
/// All but the opening of logs have the file system's as their default, so that a test replaces only what it is about.
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// Opens `path` for appending; creates it, and only then, if `create`.
    ///
    /// # Errors
    /// As the file system reports; an existing file with `create` is an error.
    fn open_log(&self, path: &Path, create: bool) -> io::Result<Box<dyn LogFile>>;

    /// Creates the directory `path` in one that exists; that it is there already is no error.
    ///
    /// # Errors
    /// As the file system reports.
    fn make_dir(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            done => done,
        }
    }

    /// Writes a new file beside `path`, under a name that nobody else uses, and returns that name.
    ///
    /// # Errors
    /// As the file system reports; then there is no such file.
    fn write_beside(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<PathBuf> {
        let parent = path.parent().unwrap_or_else(|| Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".tmp-").tempfile_in(parent)?;
        file.write_all(bytes)?;
        file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
        Ok(file.into_temp_path().keep()?)
    }

    /// Gives the file `from` the name `to`; a file that has it is replaced in one moment.
    ///
    /// # Errors
    /// As the file system reports.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    /// Gives the file `from` the name `to`, which no file may have.
    ///
    /// # Errors
    /// As the file system reports, such as that there is one.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        tempfile::TempPath::try_from_path(from)?
            .persist_noclobber(to)
            .map_err(|error| error.error)
    }

    /// Makes the bytes of a file, or the names in a directory, survive the loss of the machine's memory.
    ///
    /// # Errors
    /// As the file system reports; afterwards nothing may be assumed about earlier writes.
    fn sync(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

/// What has to survive the loss of the machine's memory once a small file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The old or the new file, or an empty one.
    Whatever,
    /// The old or the new file.
    OldOrNew,
    /// The new file.
    New,
}

/// Writes beside `path` and renames over it: a reader, and the next one after a kill, see the old file or the new one.
pub(crate) fn replace(disk: &dyn Disk, path: &Path, bytes: &[u8], mode: u32, keep: Keep) -> io::Result<()> {
    put(disk, path, bytes, mode, keep, |from| disk.rename(from, path))
}

/// Writes a file that must not exist yet, so that it survives and is never seen half.
pub(crate) fn create(disk: &dyn Disk, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    put(disk, path, bytes, mode, Keep::New, |from| {
        disk.rename_new(from, path)
    })
}

fn put(
    disk: &dyn Disk,
    path: &Path,
    bytes: &[u8],
    mode: u32,
    keep: Keep,
    name: impl Fn(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let beside = disk.write_beside(path, bytes, mode)?;
    let synced = match keep {
        Keep::Whatever => Ok(()),
        Keep::OldOrNew | Keep::New => disk.sync(&beside),
    };
    if let Err(error) = synced.and_then(|()| name(&beside)) {
        // Whatever is wrong, the file that nobody will look for goes; if it cannot, the error above is the one to tell.
        fs::remove_file(&beside).ok();
        return Err(error);
    }
    match (keep, path.parent()) {
        (Keep::New, Some(parent)) => disk.sync(parent),
        (Keep::New, None) | (Keep::Whatever | Keep::OldOrNew, _) => Ok(()),
    }
}

/// The file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open_log(&self, path: &Path, create: bool) -> io::Result<Box<dyn LogFile>> {
        let file = OpenOptions::new().append(true).create_new(create).open(path)?;
        if create {
            sync_parent(path)?;
        }
        Ok(Box::new(file))
    }
}

impl LogFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        // One write(2) a line: after SIGKILL a line is there whole or, at worst, torn at the end of the file.
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)?;
        self.sync_data()
    }
}

/// Makes the entry of `path` in its directory durable.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}
