//! The small files of a run: written once, replaced atomically, or appended to.
#![expect(clippy::disallowed_methods, reason = "this is the disk")]

use crate::{
    disk::{Keep, create, replace},
    layout::RunDir,
    lines::next_line,
    store::StoreError,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, BufWriter, Read as _, Write as _},
    path::Path,
};
use tracegate_core::{
    event::Event,
    fact::{Data as _, log::LogGap, run::VerificationRecorded},
    ids::{Chain, RunId, Seq, StepNo},
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

impl Head {
    /// Returns the place before the first event of `run`.
    #[must_use]
    pub fn start(run: &RunId) -> Self {
        Self {
            seq: Seq(0),
            chain: Chain::genesis(run),
        }
    }

    /// Tells whether `event`, after which the chain is `chain`, is another one than was synced at that place.
    pub(crate) fn contradicts(&self, event: &Event, chain: Chain) -> bool {
        event.through() == self.seq && chain != self.chain && !self.is_superseded_by(event)
    }

    /// Tells whether `event` is a gap that was marked by somebody who knew this head: then it speaks of the damaged log.
    pub(crate) fn is_superseded_by(&self, event: &Event) -> bool {
        LogGap::of(&event.fact).is_some_and(|gap| gap.superseded == Some(self.chain))
    }

    /// Returns the head that the bytes of a `status.json` hold; none if they hold something else.
    #[must_use]
    pub fn of_status(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice::<StatusHead>(bytes).ok()?.head
    }
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
        let write = || create(self.disk(), path, &pretty(value.get())?, 0o644);
        write().map_err(|error| StoreError::write(path, error))
    }

    /// Replaces a file, so that a reader and a crash see the old or the new one, never half of one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn replace_json<T: Serialize>(&self, path: &Path, value: &Scrubbed<T>) -> Result<(), StoreError> {
        let write = || {
            let bytes = pretty(value.get())?;
            // The synced head guards the log: after the loss of power an empty file must not stand where it was.
            let guards =
                path == self.status() && Head::of_status(&bytes).is_some_and(|head| head.seq > Seq(0));
            let keep = if guards { Keep::OldOrNew } else { Keep::Whatever };
            replace(self.disk(), path, &bytes, 0o600, keep)
        };
        write().map_err(|error| StoreError::write(path, error))
    }

    /// Writes the context report of `step`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_context<T: Serialize>(&self, step: StepNo, report: &Scrubbed<T>) -> Result<(), StoreError> {
        let path = self.context(step);
        let parent = path.parent().unwrap_or(&path);
        self.disk()
            .make_dir(parent)
            .map_err(|error| StoreError::write(parent, error))?;
        self.replace_json(&path, report)
    }

    /// Replaces the snapshot for readers by the members of `head` and, as `events`, the lines of the log up to its last whole one.
    ///
    /// The lines are copied one by one: they were scrubbed before they were written, and there may be more of them than memory.
    ///
    /// # Errors
    /// When the log cannot be read or the snapshot cannot be written; then the one before stays.
    pub fn write_snapshot(&self, head: &Scrubbed<Value>) -> Result<(), StoreError> {
        let path = self.run();
        let write = || -> io::Result<()> {
            let file = tempfile::Builder::new()
                .prefix(".tmp-")
                .tempfile_in(self.path())?;
            let mut target = BufWriter::new(file);
            let mut head = serde_json::to_string_pretty(head.get())?;
            // The closing brace goes: the events are the last member.
            head.truncate(head.trim_end_matches('}').trim_end().len());
            write!(target, "{head},\n  \"events\": [")?;
            let mut log = BufReader::with_capacity(1 << 16, File::open(self.events())?);
            let (mut line, mut before) = (Vec::new(), "\n    ");
            while next_line(&mut log, &mut line)? > 0 && line.ends_with(b"\n") {
                target.write_all(before.as_bytes())?;
                target.write_all(line.trim_ascii_end())?;
                before = ",\n    ";
            }
            target.write_all(b"\n  ]\n}\n")?;
            let file = target.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        write().map_err(|error| StoreError::write(&path, error))
    }

    /// Replaces the file of spans by the lines that `next` gives until it gives none; there may be more of them than memory.
    ///
    /// # Errors
    /// When it cannot be written, and whatever `next` returns; then the one before stays.
    pub fn write_traces<E: From<StoreError>>(
        &self,
        mut next: impl FnMut() -> Result<Option<Scrubbed<String>>, E>,
    ) -> Result<(), E> {
        let path = self.traces();
        let failed = |error| StoreError::write(&path, error);
        let file = tempfile::Builder::new().prefix(".tmp-").tempfile_in(self.path());
        let mut target = BufWriter::new(file.map_err(failed)?);
        while let Some(line) = next()? {
            target.write_all(line.get().as_bytes()).map_err(failed)?;
        }
        let file = target.into_inner().map_err(|error| failed(error.into_error()))?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
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
        match read_small(path) {
            Ok(Some(bytes)) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|error| StoreError::read(path, io::Error::new(io::ErrorKind::InvalidData, error))),
            Ok(None) => Ok(None),
            Err(error) => Err(StoreError::read(path, error)),
        }
    }

    /// Returns the synced head that `status.json` remembers; none if that file is missing or unreadable.
    #[must_use]
    pub fn head(&self) -> Option<Head> {
        Head::of_status(&read_small(&self.status()).ok()??)
    }
}

fn pretty<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The most bytes of a small file: that of a workspace's files grows with these.
const MOST: u64 = 256 << 20;

/// Reads a file that is small unless something is wrong with it; none if it does not exist.
pub(crate) fn read_small(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    if file.take(MOST + 1).read_to_end(&mut bytes)? as u64 > MOST {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is longer than it can be",
        ));
    }
    Ok(Some(bytes))
}

/// Opens a file for reading, if it is one: a pipe would be waited for, a device read for ever.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        return File::open(path);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "it is not a regular file",
    ))
}
