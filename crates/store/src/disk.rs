//! The few operations on a log file that can fail in the field, behind a trait that tests replace.
#![expect(clippy::disallowed_methods, reason = "this is the disk")]

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::Path,
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

/// Opens log files.
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// Opens `path` for appending; creates it, and only then, if `create`.
    ///
    /// # Errors
    /// As the file system reports; an existing file with `create` is an error.
    fn open_log(&self, path: &Path, create: bool) -> io::Result<Box<dyn LogFile>>;
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
