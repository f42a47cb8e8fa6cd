//! The small files of a run: written once, replaced atomically, or appended to.
#![expect(clippy::disallowed_methods, reason = "this is the disk")]

use crate::{layout::RunDir, store::StoreError};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    path::Path,
};
use tracegate_core::{
    fact::run::VerificationRecorded,
    ids::{Chain, Seq, StepNo},
    redact::Scrubbed,
};

/// The last event known to be synced; a log that ends before it is damaged, not short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Its position.
    pub seq: Seq,
    /// The chain after it.
    pub chain: Chain,
}

/// The part of `status.json` that opening a log needs; the rest is for readers.
#[derive(Deserialize)]
struct StatusHead {
    head: Option<Head>,
}

impl RunDir {
    /// Writes a file that must not exist yet.
    ///
    /// # Errors
    /// When it exists or cannot be written.
    pub fn create_json<T: Serialize>(&self, path: &Path, value: &Scrubbed<T>) -> Result<(), StoreError> {
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
            file.write_all(&pretty(value.get())?)?;
            file.sync_all()
        };
        write().map_err(|error| StoreError::write(path, error))
    }

    /// Replaces a file, so that a reader and a crash see the old or the new one, never half of one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn replace_json<T: Serialize>(&self, path: &Path, value: &Scrubbed<T>) -> Result<(), StoreError> {
        let write = || replace(path, &pretty(value.get())?);
        write().map_err(|error| StoreError::write(path, error))
    }

    /// Writes the context report of `step`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_context<T: Serialize>(&self, step: StepNo, report: &Scrubbed<T>) -> Result<(), StoreError> {
        let path = self.context(step);
        let parent = path.parent().unwrap_or(&path);
        fs::create_dir_all(parent).map_err(|error| StoreError::write(parent, error))?;
        self.replace_json(&path, report)
    }

    /// Replaces the file of spans.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_traces(&self, lines: &Scrubbed<String>) -> Result<(), StoreError> {
        let path = self.traces();
        replace(&path, lines.get().as_bytes()).map_err(|error| StoreError::write(&path, error))
    }

    /// Appends a verifier's result.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append_verification(&self, result: &Scrubbed<VerificationRecorded>) -> Result<(), StoreError> {
        let path = self.verification();
        let write = || -> io::Result<()> {
            let mut line = serde_json::to_vec(result.get())?;
            line.push(b'\n');
            OpenOptions::new()
                .append(true)
                .create(true)
                .open(&path)?
                .write_all(&line)
        };
        write().map_err(|error| StoreError::write(&path, error))
    }

    /// Makes sure that the file of verifier results exists: an empty one says that nothing was verified.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn touch_verification(&self) -> Result<(), StoreError> {
        let path = self.verification();
        let open = OpenOptions::new().append(true).create(true).open(&path);
        open.map(drop).map_err(|error| StoreError::write(&path, error))
    }

    /// Reads a small file; none if it does not exist.
    ///
    /// # Errors
    /// When it cannot be read or says something else.
    pub fn read_json<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, StoreError> {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| StoreError::read(path, io::Error::new(io::ErrorKind::InvalidData, error))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::read(path, error)),
        }
    }

    /// Returns the synced head that `status.json` remembers; none if that file is missing or unreadable.
    #[must_use]
    pub fn head(&self) -> Option<Head> {
        self.read_json::<StatusHead>(&self.status())
            .ok()
            .flatten()
            .and_then(|status| status.head)
    }
}

fn pretty<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Writes beside `path` and renames over it.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let parent = path.parent().unwrap_or_else(|| Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".tmp-").tempfile_in(parent)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
