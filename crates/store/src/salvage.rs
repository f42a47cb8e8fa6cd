//! A damaged log is written anew: what is good stays, what is lost is marked, and the damaged file is kept.
#![expect(clippy::disallowed_methods, reason = "this is the disk")]

use crate::{
    disk::LogFile,
    files::{Head, open, read_small},
    layout::RunDir,
    lock::RunLock,
    log::{LogError, LogReader, Tail},
    scan::{Hole, Piece, Record, Scan},
};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{self, BufReader},
    path::Path,
};
use tracegate_core::{
    event::Event,
    fact::{is_free_key, is_schema_key, log::LogGap},
    ids::{Chain, SegmentNo, Seq, Timestamp},
    redact::{Redactor, Schema},
    state::RunState,
};

/// What salvaging a log came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Salvage {
    /// It is whole.
    Whole,
    /// Only its end is torn: going on with the run mends that.
    OnlyTorn,
    /// It was written anew.
    Done {
        /// How many records were kept.
        kept: u64,
        /// The numbers that are lost, from and to, one pair a gap.
        gaps: Vec<(Seq, Seq)>,
        /// How many bytes were left out because they are no record.
        left_out: u64,
        /// The file below the run's directory that is the damaged log.
        damaged: String,
    },
}

/// A log cannot be salvaged; it is as it was.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// It cannot be read or written, or somebody else writes it.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The gap could not be marked.
    #[error("the gap cannot be marked: {0}")]
    Mark(String),
}

/// Writes the log of `run` anew if it is damaged elsewhere than at its end.
///
/// Records before the damage keep every byte. Those after it keep everything but their chain value, which is over what comes before them.
///
/// # Errors
/// When another process holds the run, the log cannot be read or written, or a newer version wrote it.
pub fn salvage(run: &RunDir, redactor: &Redactor, pid: u32) -> Result<Salvage, SalvageError> {
    let _lock = RunLock::take(&run.lock(), pid).map_err(LogError::Lock)?;
    let mut reader = LogReader::open(run)?;
    while reader.next_event()?.is_some() {}
    match reader.tail() {
        Tail::Clean => return Ok(Salvage::Whole),
        Tail::Unterminated | Tail::Torn { .. } => return Ok(Salvage::OnlyTorn),
        Tail::Damaged { .. } => {}
    }
    let survey = survey(run)?;
    let fresh = run.salvaging();
    let io = |doing, path: &Path| {
        let path = path.to_owned();
        move |error| LogError::Io { doing, path, error }
    };
    // What an earlier attempt left behind; the lock is ours.
    remove(&fresh).map_err(io("remove", &fresh))?;
    let disk = run.disk();
    let file = disk.open_log(&fresh, true).map_err(io("create", &fresh))?;
    let mut copy = Copy {
        run,
        redactor,
        file,
        pending: Vec::new(),
        chain: Chain::genesis(run.id()),
        last: None,
        survey: &survey,
    };
    let written = copy.write();
    if let Err(error) = written.and_then(|()| verify(run, &fresh, copy.last, copy.chain)) {
        remove(&fresh).ok();
        return Err(error);
    }
    let head = Head {
        seq: survey.until,
        chain: copy.chain,
    };
    let damaged = keep(run).map_err(io("keep", &run.events()))?;
    let events = run.events();
    disk.rename(&fresh, &events)
        .and_then(|()| disk.sync(run.path()))
        .map_err(io("replace", &events))?;
    // From here on the log is whole: the old head is superseded by the gap, so stopping here costs nothing.
    remember(run, redactor, head).map_err(|error| SalvageError::Mark(error.to_string()))?;
    remove(&run.state()).map_err(io("remove", &run.state()))?;
    Ok(Salvage::Done {
        kept: survey.kept,
        gaps: survey.gaps,
        left_out: survey.left_out,
        damaged,
    })
}

/// What the new log will hold.
struct Survey {
    kept: u64,
    gaps: Vec<(Seq, Seq)>,
    left_out: u64,
    until: Seq,
}

/// The most gaps that are listed one by one.
const LISTED: usize = 64;

/// Opens the log of `run` for reading past damage.
pub(crate) fn open_scan(run: &RunDir) -> Result<Scan<'_, BufReader<File>>, LogError> {
    let path = run.events();
    let file = open(&path).map_err(|error| LogError::Io {
        doing: "open",
        path,
        error,
    })?;
    Ok(Scan::new(
        BufReader::with_capacity(1 << 16, file),
        run.id(),
        run.head(),
    ))
}

fn read_error(run: &RunDir) -> impl FnOnce(io::Error) -> LogError {
    let path = run.events();
    move |error| LogError::Io {
        doing: "read",
        path,
        error,
    }
}

fn survey(run: &RunDir) -> Result<Survey, LogError> {
    let mut survey = Survey {
        kept: 0,
        gaps: Vec::new(),
        left_out: 0,
        until: Seq(0),
    };
    let mut scan = open_scan(run)?;
    while let Some(piece) = scan.next_piece().map_err(read_error(run))? {
        match piece {
            Piece::Record(record) => {
                if !record.event.permits_append() {
                    return Err(LogError::Newer {
                        path: run.events(),
                        seq: record.event.seq,
                    });
                }
                survey.kept += 1;
                survey.until = record.event.through();
            }
            Piece::Hole(hole) => {
                survey.left_out += hole.bytes;
                survey.until = hole.to;
                if survey.gaps.len() < LISTED {
                    survey.gaps.push((hole.from, hole.to));
                }
            }
            Piece::Foreign { bytes, .. } | Piece::Torn { bytes, .. } => survey.left_out += bytes,
        }
    }
    Ok(survey)
}

/// The new log while it is written.
struct Copy<'a> {
    run: &'a RunDir,
    redactor: &'a Redactor,
    file: Box<dyn LogFile>,
    pending: Vec<u8>,
    chain: Chain,
    /// Place and time of the last record.
    last: Option<Stamp>,
    survey: &'a Survey,
}

#[derive(Clone, Copy)]
struct Stamp {
    seq: Seq,
    ts: Timestamp,
    mono_ns: u64,
    segment: SegmentNo,
}

impl Stamp {
    fn of(event: &Event) -> Self {
        Self {
            seq: event.through(),
            ts: event.ts,
            mono_ns: event.mono_ns,
            segment: event.segment,
        }
    }
}

impl Copy<'_> {
    fn write(&mut self) -> Result<(), SalvageError> {
        let mut scan = open_scan(self.run)?;
        let mut hole: Option<Hole> = None;
        while let Some(piece) = scan.next_piece().map_err(read_error(self.run))? {
            match piece {
                Piece::Hole(found) => hole = Some(found),
                Piece::Record(record) => {
                    if let Some(hole) = hole.take() {
                        self.mark(hole, Some(Stamp::of(&record.event)))?;
                    }
                    self.copy(&record)?;
                }
                Piece::Foreign { .. } | Piece::Torn { .. } => {}
            }
        }
        if let Some(hole) = hole {
            self.mark(hole, None)?;
        }
        self.flush()?;
        self.file.sync().map_err(self.failed("sync"))?;
        Ok(())
    }

    fn failed(&self, doing: &'static str) -> impl FnOnce(io::Error) -> LogError + use<> {
        let path = self.run.salvaging();
        move |error| LogError::Io { doing, path, error }
    }

    fn copy(&mut self, record: &Record) -> Result<(), SalvageError> {
        let (body, _) = crate::lines::split(&record.line);
        let chain = self.chain.next(body);
        self.chain = chain;
        self.last = Some(Stamp::of(&record.event));
        self.pending.extend_from_slice(body);
        self.pending
            .extend_from_slice(format!(",\"chain\":\"{chain}\"}}\n").as_bytes());
        self.flush_at(1 << 16)
    }

    /// Writes the event that stands for what is lost, at a time between those of its neighbours.
    fn mark(&mut self, hole: Hole, next: Option<Stamp>) -> Result<(), SalvageError> {
        let gap = LogGap {
            from: hole.from,
            to: hole.to,
            offset: hole.offset,
            bytes: hole.bytes,
            why: hole.why,
            until: self.survey.until,
            superseded: self.run.head().map(|head| head.chain),
        };
        let near = self.last.map(|last| Stamp {
            ts: Timestamp(last.ts.0.saturating_add(1)),
            ..last
        });
        let near = near.or(next.map(|next| Stamp {
            ts: Timestamp(next.ts.0.saturating_sub(1)),
            ..next
        }));
        let near = near.unwrap_or(Stamp {
            seq: Seq(0),
            ts: Timestamp(0),
            mono_ns: 0,
            segment: SegmentNo(1),
        });
        let event = Event::new(
            self.run.id(),
            hole.from,
            near.segment,
            near.ts,
            near.mono_ns,
            gap.into(),
        );
        let schema = Schema {
            keep: is_schema_key,
            free: is_free_key,
        };
        let event = self
            .redactor
            .scrub(&event, &schema)
            .map_err(|error| SalvageError::Mark(error.to_string()))?;
        let (line, chain) = event
            .get()
            .to_line(self.chain)
            .map_err(|error| SalvageError::Mark(error.to_string()))?;
        self.chain = chain;
        self.last = Some(Stamp::of(event.get()));
        self.pending.extend_from_slice(line.as_bytes());
        self.flush_at(1 << 16)
    }

    fn flush_at(&mut self, bytes: usize) -> Result<(), SalvageError> {
        if self.pending.len() >= bytes {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SalvageError> {
        self.file.append(&self.pending).map_err(self.failed("write"))?;
        self.pending.clear();
        Ok(())
    }
}

/// Reads the new log as any reader will: it must be whole before it takes the old one's place.
fn verify(run: &RunDir, path: &Path, last: Option<Stamp>, chain: Chain) -> Result<(), SalvageError> {
    let file = File::open(path).map_err(|error| LogError::Io {
        doing: "open",
        path: path.to_owned(),
        error,
    })?;
    let file = BufReader::with_capacity(1 << 16, file);
    let mut reader = LogReader::over(file, run.id(), run.head(), path.to_owned());
    while reader.next_event()?.is_some() {}
    let seq = last.map_or(Seq(0), |last| last.seq);
    if reader.tail() == Tail::Clean && reader.head() == (Head { seq, chain }) {
        Ok(())
    } else {
        Err(SalvageError::Mark("the new log does not verify".to_owned()))
    }
}

/// Gives the damaged log a second name; it loses its first one only to the whole one.
fn keep(run: &RunDir) -> io::Result<String> {
    let mut number = 1;
    loop {
        let path = run.damaged(number);
        match fs::hard_link(run.events(), &path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            done => {
                // A file system without second names gets a copy.
                done.or_else(|_| copy(&run.events(), &path))?;
                run.disk().sync(run.path())?;
                return Ok(name(&path));
            }
        }
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut target = fs::OpenOptions::new().write(true).create_new(true).open(to)?;
    io::copy(&mut File::open(from)?, &mut target)?;
    target.sync_all()
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Writes the new head into `status.json`, and what the new log says of the run.
fn remember(run: &RunDir, redactor: &Redactor, head: Head) -> Result<(), Box<dyn std::error::Error>> {
    let read = read_small(&run.status()).ok().flatten();
    let read = read.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let mut status = read.filter(Value::is_object).unwrap_or_else(|| json!({}));
    let mut state = RunState::default();
    let mut reader = LogReader::open(run)?;
    while let Some(event) = reader.next_event()? {
        // A record that breaks a rule is the check's to name; what comes before it counts.
        if state.apply(&event).is_err() {
            break;
        }
    }
    if let Some(members) = status.as_object_mut() {
        let said = [
            ("runId", json!(run.id())),
            ("status", json!(state.status)),
            ("stopReason", json!(state.stop_reason)),
            ("steps", json!(state.step)),
            ("head", json!(head)),
        ];
        members.extend(said.map(|(name, value)| (name.to_owned(), value)));
    }
    run.replace_json(&run.status(), &redactor.scrub_json(status))?;
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Returns the files of `run` that hold what was set aside: torn ends and damaged logs.
pub(crate) fn set_aside(run: &RunDir) -> Vec<String> {
    let entries = fs::read_dir(run.path()).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut found: Vec<String> = names
        .filter(|name| name.starts_with("events.torn-") || name.starts_with("events.damaged-"))
        .collect();
    found.sort_unstable();
    found
}
