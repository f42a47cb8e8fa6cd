//! The log of a run: appended by one writer, read by anybody, repaired at its end and nowhere else.
#![expect(clippy::disallowed_methods, reason = "this is the disk")]

use crate::{
    artifacts::Artifacts,
    disk::{Disk, LogFile},
    files::{Head, open},
    layout::RunDir,
    lines::next_line,
    lock::{LockError, RunLock},
};
use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Seek as _, SeekFrom},
    path::PathBuf,
};
use tracegate_core::{
    event::{Event, LineError},
    ids::{Chain, RunId, Seq},
    payload::INLINE_RECORD,
    redact::Scrubbed,
};

/// A log cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Somebody else writes.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The file system refuses.
    #[error("cannot {doing} `{}`: {error}", .path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// An event is longer than a log line may be.
    #[error("event {seq} (`{name}`) has {bytes} bytes, more than the {INLINE_RECORD} of a record")]
    TooLong {
        /// Which.
        seq: Seq,
        /// Its type.
        name: String,
        /// Its length.
        bytes: usize,
    },
    /// The log is damaged where it must not be: nothing is appended.
    #[error("`{}` is damaged at event {seq} (byte {offset}): {why}", .path.display())]
    Damaged {
        /// Which log.
        path: PathBuf,
        /// The event that should stand there.
        seq: Seq,
        /// Where.
        offset: u64,
        /// What is wrong.
        why: String,
    },
    /// The log was written by a newer version.
    #[error("event {seq} of `{}` needs a newer version of tracegate: it can be read, not continued", .path.display())]
    Newer {
        /// Which log.
        path: PathBuf,
        /// Which event.
        seq: Seq,
    },
}

/// How a log ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tail {
    /// With a whole record and its line feed.
    Clean,
    /// With a whole record without its line feed.
    Unterminated,
    /// With bytes that are no record, and none after them.
    Torn {
        /// Where they begin.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// A record is bad and good ones follow, or the log ends before its synced head, or does not lead to it.
    Damaged {
        /// The event that should stand there.
        seq: Seq,
        /// Where.
        offset: u64,
        /// What is wrong.
        why: String,
    },
}

/// Reads a log line by line; memory does not grow with its length.
#[derive(Debug)]
pub struct LogReader<R = BufReader<File>> {
    path: PathBuf,
    file: R,
    chain: Chain,
    seq: Seq,
    offset: u64,
    head: Option<Head>,
    tail: Option<Tail>,
}

impl LogReader {
    /// Opens the log of `run`.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(run: &RunDir) -> Result<Self, LogError> {
        let path = run.events();
        let file = open(&path).map_err(|error| LogError::Io {
            doing: "open",
            path: path.clone(),
            error,
        })?;
        let file = BufReader::with_capacity(1 << 16, file);
        Ok(Self::over(file, run.id(), run.head(), path))
    }

    /// Goes on after the end: what was appended since is read next. For whoever follows a log that another thread writes.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn go_on(&mut self) -> Result<(), LogError> {
        // Of a record that was read without its line feed, the line feed is the next byte to come.
        self.offset += u64::from(self.tail == Some(Tail::Unterminated));
        self.tail = None;
        let to = SeekFrom::Start(self.offset);
        self.file
            .seek(to)
            .map(drop)
            .map_err(|error| self.failed("read", error))
    }

    /// Makes everything that was read durable. The artifacts that it names must be so before.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn sync(&self) -> Result<(), LogError> {
        let synced = self.file.get_ref().sync_data();
        synced.map_err(|error| self.failed("sync", error))
    }
}

impl<R: BufRead> LogReader<R> {
    /// Reads the log of `run` from anywhere; `head` is the last event known to be synced, `path` is what errors name.
    pub fn over(file: R, run: &RunId, head: Option<Head>, path: PathBuf) -> Self {
        Self {
            path,
            file,
            chain: Chain::genesis(run),
            seq: Seq(0),
            offset: 0,
            head,
            tail: None,
        }
    }

    /// Begins behind the event `after`, which ends at byte `offset` and was verified before; what is read from must begin there.
    #[must_use]
    pub fn behind(self, after: Head, offset: u64) -> Self {
        Self {
            chain: after.chain,
            seq: after.seq,
            offset,
            ..self
        }
    }

    /// Returns the next verified event; none at the end of the verified prefix, where [`LogReader::tail`] says how the log ends.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn next_event(&mut self) -> Result<Option<Event>, LogError> {
        if self.tail.is_some() {
            return Ok(None);
        }
        let mut line = Vec::new();
        let read = self.read_line(&mut line)?;
        if read == 0 {
            self.tail = Some(self.judge_end(Tail::Clean));
            return Ok(None);
        }
        let wanted = Seq(self.seq.0 + 1);
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let parsed = std::str::from_utf8(text)
            .map_err(|_| "not UTF-8".to_owned())
            .and_then(|text| {
                Event::from_line(text, self.chain, wanted).map_err(|error: LineError| error.to_string())
            });
        match parsed {
            Ok((event, chain)) if self.head.is_some_and(|head| head.contradicts(&event, chain)) => {
                // Whole in itself and still not the log that was synced: somebody put another one in its place.
                self.tail = Some(Tail::Damaged {
                    seq: wanted,
                    offset: self.offset,
                    why: format!("another event {wanted} was synced"),
                });
                Ok(None)
            }
            Ok((event, chain)) => {
                self.chain = chain;
                self.seq = event.through();
                self.offset += read;
                self.head = self.head.filter(|head| !head.is_superseded_by(&event));
                if !line.ends_with(b"\n") {
                    self.tail = Some(self.judge_end(Tail::Unterminated));
                }
                Ok(Some(event))
            }
            Err(why) => {
                self.tail = Some(self.classify(read, wanted, why)?);
                Ok(None)
            }
        }
    }

    /// Reads everything.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read_all(mut self) -> Result<(Vec<Event>, Tail), LogError> {
        let mut events = Vec::new();
        while let Some(event) = self.next_event()? {
            events.push(event);
        }
        Ok((events, self.tail()))
    }

    /// Returns the last verified event and the chain after it.
    #[must_use]
    pub const fn head(&self) -> Head {
        Head {
            seq: self.seq,
            chain: self.chain,
        }
    }

    /// Returns where the verified part ends.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns how the log ends, once it was read to its end.
    #[must_use]
    pub fn tail(&self) -> Tail {
        self.tail.clone().unwrap_or(Tail::Clean)
    }

    fn read_line(&mut self, line: &mut Vec<u8>) -> Result<u64, LogError> {
        next_line(&mut self.file, line).map_err(|error| self.failed("read", error))
    }

    fn failed(&self, doing: &'static str, error: io::Error) -> LogError {
        let path = self.path.clone();
        LogError::Io { doing, path, error }
    }

    /// Tells a torn tail from damage: after a torn write nothing that is an event can follow.
    fn classify(&mut self, mut bad: u64, wanted: Seq, why: String) -> Result<Tail, LogError> {
        let offset = self.offset;
        let mut line = Vec::new();
        loop {
            let read = self.read_line(&mut line)?;
            if read == 0 {
                return Ok(self.judge_end(Tail::Torn { offset, bytes: bad }));
            }
            bad += read;
            let event = std::str::from_utf8(&line)
                .ok()
                .and_then(|text| Event::from_line_unverified(text.trim_end()).ok());
            if event.is_some_and(|event| event.seq > self.seq) {
                return Ok(Tail::Damaged {
                    seq: wanted,
                    offset,
                    why,
                });
            }
        }
    }

    fn judge_end(&self, tail: Tail) -> Tail {
        match self.head {
            Some(head) if self.seq < head.seq => {
                let why = format!("the log ends here, but event {} was synced", head.seq);
                Tail::Damaged {
                    seq: Seq(self.seq.0 + 1),
                    offset: self.offset,
                    why,
                }
            }
            _ => tail,
        }
    }
}

/// What opening a log for writing had to mend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// Nothing.
    Clean,
    /// The last record lacked its line feed.
    Completed,
    /// Torn bytes were set aside.
    Quarantined {
        /// Where the good part ends.
        offset: u64,
        /// How many bytes.
        bytes: u64,
        /// The file they are in, below the run's directory.
        file: String,
    },
}

/// The one writer of a log; holds the run's lock as long as it lives.
#[derive(Debug)]
pub struct LogWriter {
    path: PathBuf,
    file: Box<dyn LogFile>,
    chain: Chain,
    seq: Seq,
    offset: u64,
    /// Whether a failed append may have left bytes after `offset`: they go before anything else is written.
    torn: bool,
    synced: Head,
    artifacts: Artifacts,
    _lock: RunLock,
}

impl LogWriter {
    /// Creates the log of a new run.
    ///
    /// # Errors
    /// When there is one already, or it cannot be written.
    pub fn create(run: &RunDir, disk: &dyn Disk, artifacts: &Artifacts, pid: u32) -> Result<Self, LogError> {
        let lock = RunLock::take(&run.lock(), pid)?;
        let path = run.events();
        let file = disk.open_log(&path, true).map_err(|error| LogError::Io {
            doing: "create",
            path: path.clone(),
            error,
        })?;
        let chain = Chain::genesis(run.id());
        let synced = Head { seq: Seq(0), chain };
        Ok(Self {
            path,
            file,
            chain,
            seq: Seq(0),
            offset: 0,
            torn: false,
            synced,
            artifacts: artifacts.clone(),
            _lock: lock,
        })
    }

    /// Opens the log of a run to go on with it: verifies it, gives each event to `each`, mends its end.
    ///
    /// Nothing is kept of the events: memory does not grow with the log.
    ///
    /// # Errors
    /// When somebody else writes, or the log is damaged elsewhere than at its end, or was written by a newer version, and whatever
    /// `each` returns; up to there nothing was written.
    pub fn resume<E: From<LogError>>(
        run: &RunDir,
        disk: &dyn Disk,
        artifacts: &Artifacts,
        pid: u32,
        mut each: impl FnMut(Event) -> Result<(), E>,
    ) -> Result<(Self, Recovery), E> {
        let lock = RunLock::take(&run.lock(), pid).map_err(LogError::from)?;
        let mut reader = LogReader::open(run)?;
        while let Some(event) = reader.next_event()? {
            if !event.permits_append() {
                let (path, seq) = (run.events(), event.seq);
                return Err(LogError::Newer { path, seq }.into());
            }
            each(event)?;
        }
        Ok(Self::mend(run, disk, artifacts, &reader, lock)?)
    }

    /// Mends the end of a log that was read to it.
    fn mend(
        run: &RunDir,
        disk: &dyn Disk,
        artifacts: &Artifacts,
        reader: &LogReader,
        lock: RunLock,
    ) -> Result<(Self, Recovery), LogError> {
        let path = run.events();
        let io = |doing| move |error| (doing, error);
        let fail = |(doing, error)| LogError::Io {
            doing,
            path: path.clone(),
            error,
        };
        let mut file = disk.open_log(&path, false).map_err(io("open")).map_err(fail)?;
        let mut offset = reader.offset;
        let recovery = match reader.tail() {
            Tail::Clean => Recovery::Clean,
            Tail::Unterminated => {
                file.append(b"\n").map_err(io("complete")).map_err(fail)?;
                offset += 1;
                Recovery::Completed
            }
            Tail::Torn { offset, bytes } => {
                let name = set_aside(run, offset)
                    .map_err(io("set aside the end of"))
                    .map_err(fail)?;
                file.truncate(offset).map_err(io("truncate")).map_err(fail)?;
                Recovery::Quarantined {
                    offset,
                    bytes,
                    file: name,
                }
            }
            Tail::Damaged { seq, offset, why } => {
                return Err(LogError::Damaged {
                    path,
                    seq,
                    offset,
                    why,
                });
            }
        };
        let synced = run.head().unwrap_or(Head {
            seq: Seq(0),
            chain: Chain::genesis(run.id()),
        });
        let (chain, seq) = (reader.chain, reader.seq);
        let writer = Self {
            path,
            file,
            chain,
            seq,
            offset,
            torn: false,
            synced,
            artifacts: artifacts.clone(),
            _lock: lock,
        };
        Ok((writer, recovery))
    }

    /// Appends an event with one write; on failure the log is as before.
    ///
    /// # Errors
    /// When it is too long or the file system refuses; the run must stop then.
    pub fn append(&mut self, event: &Scrubbed<Event>) -> Result<(), LogError> {
        let event = event.get();
        let io = |doing, error| LogError::Io {
            doing,
            path: self.path.clone(),
            error,
        };
        let (line, chain) = event
            .to_line(self.chain)
            .map_err(|error| io("encode an event for", error.into()))?;
        if line.len() > INLINE_RECORD {
            return Err(LogError::TooLong {
                seq: event.seq,
                name: event.fact.name().to_owned(),
                bytes: line.len(),
            });
        }
        if self.torn {
            self.file
                .truncate(self.offset)
                .map_err(|error| io("truncate", error))?;
            self.torn = false;
        }
        if let Err(error) = self.file.append(line.as_bytes()) {
            // A short write leaves half a line. If it cannot be cut off now, it must be before the next append:
            // a record behind half a record would be damage, while half a record at the end is only set aside.
            self.torn = self.file.truncate(self.offset).is_err();
            return Err(io("append to", error));
        }
        self.offset += line.len() as u64;
        self.chain = chain;
        self.seq = event.through();
        Ok(())
    }

    /// Makes everything appended durable, after the artifacts that it names.
    ///
    /// # Errors
    /// When the file system refuses; the run must stop then.
    pub fn sync(&mut self) -> Result<Head, LogError> {
        let done = self.artifacts.barrier().and_then(|()| self.file.sync());
        done.map_err(|error| LogError::Io {
            doing: "sync",
            path: self.path.clone(),
            error,
        })?;
        self.synced = Head {
            seq: self.seq,
            chain: self.chain,
        };
        Ok(self.synced)
    }

    /// Returns the last event known to be synced.
    #[must_use]
    pub const fn synced(&self) -> Head {
        self.synced
    }

    /// Returns the length of the log in bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.offset
    }

    /// Tells whether nothing was appended yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.offset == 0
    }
}

/// Copies the end of a log into a new file and returns its name; those bytes went through redaction before they were written.
fn set_aside(run: &RunDir, offset: u64) -> io::Result<String> {
    let mut source = File::open(run.events())?;
    source.seek(SeekFrom::Start(offset))?;
    // The same place can be torn more than once, and what was set aside is evidence: no file is ever overwritten.
    let mut time = 0;
    let (quarantine, mut target) = loop {
        let path = run.quarantine(offset, time);
        match fs::OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => time += 1,
            opened => break (path, opened?),
        }
    };
    io::copy(&mut source, &mut target)?;
    target.sync_all()?;
    crate::disk::sync_parent(&quarantine)?;
    let name = quarantine.file_name().unwrap_or_default();
    Ok(name.to_string_lossy().into_owned())
}
