//! One writer per run: an advisory lock that dies with its process.
#![expect(clippy::disallowed_methods, reason = "this is the disk")]

use crate::files::open;
use rustix::fs::{FlockOperation, flock};
use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

/// The run cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process writes to the run.
    #[error("another process{} is writing to `{}`", .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default(), .run.display())]
    Held {
        /// The run's directory.
        run: PathBuf,
        /// The other process, if it said.
        pid: Option<u32>,
    },
    /// The lock file cannot be used.
    #[error("cannot lock `{}`: {error}", .run.display())]
    Io {
        /// The run's directory.
        run: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Proof that this process alone writes to a run. The kernel gives the lock up when the process ends, however it ends.
#[derive(Debug)]
pub struct RunLock {
    file: File,
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child that another thread is just starting holds a copy of the descriptor until
        // its exec, and the lock with it. If unlocking fails, closing still gives it up a moment later.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

impl RunLock {
    /// Takes the lock at `path` for process `pid`, without waiting.
    ///
    /// # Errors
    /// [`LockError::Held`] if another process has it.
    pub fn take(path: &Path, pid: u32) -> Result<Self, LockError> {
        let run = path.parent().unwrap_or(path).to_owned();
        let io = |error| LockError::Io {
            run: run.clone(),
            error,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(io)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(LockError::Held {
                pid: holder(&mut file),
                run,
            });
        }
        // What stands in the file is only for people; the lock itself is the truth.
        file.set_len(0)
            .and_then(|()| writeln!(file, "{pid}"))
            .map_err(io)?;
        Ok(Self { file })
    }

    /// Tells whether some process holds the lock at `path`.
    #[must_use]
    pub fn is_held(path: &Path) -> bool {
        open(path).is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared).is_err())
    }
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
