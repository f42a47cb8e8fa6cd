//! Checking a run: every line of its log, every artifact that is named, every file beside it. Changes nothing.

use crate::{
    artifacts::{ArtifactError, Artifacts},
    files::read_small,
    layout::RunDir,
    lines::next_line,
    lock::RunLock,
    log::{LogError, LogReader, Tail},
    salvage::{open_scan, set_aside},
    scan::Piece,
    store::Store,
};
use serde::Serialize;
use serde_json::Value;
use std::{collections::HashSet, fmt, io::BufReader, path::Path};
use tracegate_core::{
    event::Event,
    fact::{
        Data as _,
        log::LogGap,
        run::{RunStarted, VerificationRecorded},
    },
    ids::{Digest, RunId, Seq},
    payload::ArtifactRef,
    state::RunState,
    stop::Status,
};

/// What a check comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing is wrong.
    Whole,
    /// Only the end of the log is torn or lacks its line feed: whoever goes on with the run mends that.
    Mendable,
    /// Something is lost or changed.
    Damaged,
}

/// One thing that a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Finding {
    /// The last record lacks its line feed.
    Unterminated {
        /// Where the log ends.
        offset: u64,
    },
    /// The log ends in bytes that are no record.
    Torn {
        /// Where they begin.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// The log is damaged: nothing is appended to it, and what comes after was verified by no reader.
    Damaged {
        /// The event that should stand there.
        seq: Seq,
        /// Where.
        offset: u64,
        /// What is wrong.
        why: String,
    },
    /// Records of a damaged log that no salvage can bring back.
    Missing {
        /// The first.
        from: Seq,
        /// The last.
        to: Seq,
        /// Where they should stand.
        offset: u64,
        /// How many bytes are no record there.
        bytes: u64,
    },
    /// Bytes between records, of which none is missing.
    Foreign {
        /// Where.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// A salvaged log says that records were lost.
    Gap {
        /// The first.
        from: Seq,
        /// The last.
        to: Seq,
        /// Where the gap is marked.
        offset: u64,
    },
    /// An event must not follow the ones before it; what comes after it was not folded.
    OutOfOrder {
        /// The event.
        seq: Seq,
        /// Where it stands.
        offset: u64,
        /// What is wrong.
        why: String,
    },
    /// The run cannot go on after what its log has lost.
    Stuck {
        /// Why not.
        why: String,
    },
    /// An event of a newer version: it can be read, not continued.
    Newer {
        /// The event.
        seq: Seq,
        /// Where it stands.
        offset: u64,
    },
    /// An artifact is missing or changed.
    Artifact {
        /// The event that names it.
        seq: Seq,
        /// Where that stands.
        offset: u64,
        /// Which.
        digest: Digest,
        /// What is wrong.
        why: String,
    },
    /// A file beside the log cannot be read, or says something else.
    File {
        /// Its name.
        file: String,
        /// What is wrong.
        why: String,
    },
    /// A cache beside the log is old; the log counts.
    Stale {
        /// Its name.
        file: String,
        /// What is different.
        why: String,
    },
    /// Another process writes to the run: what was found holds for the moment it was looked at.
    Held,
    /// A file that holds what was set aside before.
    SetAside {
        /// Its name.
        file: String,
    },
}

impl Finding {
    /// Tells how bad it is.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        match self {
            Self::Damaged { .. }
            | Self::Missing { .. }
            | Self::Foreign { .. }
            | Self::OutOfOrder { .. }
            | Self::Artifact { .. }
            | Self::File { .. } => Verdict::Damaged,
            Self::Torn { .. } | Self::Unterminated { .. } => Verdict::Mendable,
            Self::Gap { .. }
            | Self::Stuck { .. }
            | Self::Newer { .. }
            | Self::Stale { .. }
            | Self::Held
            | Self::SetAside { .. } => Verdict::Whole,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unterminated { offset } => write!(
                f,
                "byte {offset}: the last record lacks its line feed; it counts, and is completed when the run goes on"
            ),
            Self::Torn { offset, bytes } => write!(
                f,
                "byte {offset}: {bytes} bytes at the end are no record; they are set aside when the run goes on"
            ),
            Self::Damaged { seq, offset, why } => write!(f, "event {seq}, byte {offset}: damaged: {why}"),
            Self::Missing { from, to, offset, .. } if from == to => {
                write!(f, "event {from}, byte {offset}: lost")
            }
            Self::Missing { from, to, offset, .. } => {
                write!(f, "events {from} to {to}, byte {offset}: lost")
            }
            Self::Foreign { offset, bytes } => {
                write!(
                    f,
                    "byte {offset}: {bytes} bytes are no record of this run; none is missing there"
                )
            }
            Self::Gap { from, to, offset } => {
                write!(
                    f,
                    "note: events {from} to {to}, byte {offset}: lost, as an earlier salvage marked"
                )
            }
            Self::OutOfOrder { seq, offset, why } => {
                write!(f, "event {seq}, byte {offset}: breaks a rule: {why}")
            }
            Self::Stuck { why } => write!(f, "note: {why}"),
            Self::Newer { seq, offset } => write!(
                f,
                "note: event {seq}, byte {offset}: a newer tracegate wrote it; this one can read on, not append"
            ),
            Self::Artifact {
                seq,
                offset,
                digest,
                why,
            } => {
                write!(
                    f,
                    "event {seq}, byte {offset}: artifact {digest} is {why}: its text cannot be shown"
                )
            }
            Self::File { file, why } => write!(f, "{file}: {why}"),
            Self::Stale { file, why } => write!(f, "note: {file}: {why}"),
            Self::Held => f.write_str("note: another process is writing to it at this moment"),
            Self::SetAside { file } => write!(f, "note: {file}: set aside before, kept as evidence"),
        }
    }
}

/// What is known about a run after a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The run.
    pub run: RunId,
    /// The worst of the findings.
    pub verdict: Verdict,
    /// How many records of the log verify, up to the first that does not.
    pub verified: u64,
    /// How many good records stand behind damage.
    pub behind: u64,
    /// The last number that the verified part reaches.
    pub last: Seq,
    /// How many bytes verify.
    pub bytes: u64,
    /// How many artifacts were looked at.
    pub artifacts: u64,
    /// What the verified part says the run's status is; none if it does not fold.
    pub status: Option<Status>,
    /// Whether the run is over.
    pub finished: bool,
    /// Whether the log itself can be salvaged.
    pub salvageable: bool,
    /// What was found, the first [`LISTED`] of it.
    pub findings: Vec<Finding>,
    /// How much more there is.
    pub unlisted: u64,
}

/// The most findings that a report lists.
pub const LISTED: usize = 100;

impl Report {
    fn find(&mut self, finding: Finding) {
        self.verdict = self.verdict.max(finding.verdict());
        if self.findings.len() < LISTED {
            self.findings.push(finding);
        } else {
            self.unlisted += 1;
        }
    }

    fn file(&mut self, path: &Path, why: impl Into<String>) {
        let (file, why) = (name(path), why.into());
        self.find(Finding::File { file, why });
    }

    fn stale(&mut self, path: &Path, why: impl Into<String>) {
        let (file, why) = (name(path), why.into());
        self.find(Finding::Stale { file, why });
    }
}

/// Checks a run without changing anything. Memory does not grow with the length of its log.
///
/// # Errors
/// When the log cannot be read at all.
pub fn fsck(store: &Store, run: &RunDir) -> Result<Report, LogError> {
    let mut report = Report {
        run: run.id().clone(),
        verdict: Verdict::Whole,
        verified: 0,
        behind: 0,
        last: Seq(0),
        bytes: 0,
        artifacts: 0,
        status: None,
        finished: false,
        salvageable: false,
        findings: Vec::new(),
        unlisted: 0,
    };
    let held = RunLock::is_held(&run.lock());
    if held {
        report.find(Finding::Held);
    }
    let mut check = Check {
        artifacts: store.artifacts(),
        run,
        report,
        state: Some(RunState::default()),
        started: None,
        cached: None,
        cache_differs: None,
        looked_at: HashSet::new(),
        verifications: 0,
    };
    check.log()?;
    check.files(held);
    for file in set_aside(run) {
        check.report.find(Finding::SetAside { file });
    }
    Ok(check.report)
}

struct Check<'a> {
    artifacts: &'a Artifacts,
    run: &'a RunDir,
    report: Report,
    /// The fold so far; none once an event broke a rule.
    state: Option<RunState>,
    started: Option<Event>,
    /// What `state.json` holds, until the fold has come as far.
    cached: Option<RunState>,
    cache_differs: Option<Seq>,
    looked_at: HashSet<[u8; 32]>,
    verifications: u64,
}

/// How many artifacts are remembered as looked at; beyond that they are forgotten, and looked at again.
const REMEMBERED: usize = 1 << 18;

impl Check<'_> {
    fn log(&mut self) -> Result<(), LogError> {
        let run = self.run;
        match read_small(&run.state()) {
            Ok(None) => {}
            Ok(Some(bytes)) => match serde_json::from_slice(&bytes) {
                Ok(state) => self.cached = Some(state),
                Err(error) => self
                    .report
                    .stale(&run.state(), format!("no state of this version: {error}")),
            },
            Err(error) => self.report.stale(&run.state(), error.to_string()),
        }
        let mut reader = LogReader::open(run)?;
        loop {
            let offset = reader.offset();
            let Some(event) = reader.next_event()? else { break };
            self.event(&event, offset);
            if self.report.verified == 1 {
                self.started = Some(event);
            }
        }
        self.report.last = reader.head().seq;
        self.report.bytes = reader.offset();
        if let Some(seq) = self.cache_differs {
            self.report.stale(
                &run.state(),
                format!("differs from the log at event {seq}; it is a cache and may be deleted"),
            );
        } else if let Some(cached) = &self.cached {
            let why = format!(
                "is of event {}, which the verified log does not reach; it is a cache and may be deleted",
                cached.seq
            );
            self.report.stale(&run.state(), why);
        }
        match reader.tail() {
            Tail::Clean => {}
            Tail::Unterminated => self.report.find(Finding::Unterminated {
                offset: reader.offset(),
            }),
            Tail::Torn { offset, bytes } => self.report.find(Finding::Torn { offset, bytes }),
            Tail::Damaged { seq, offset, why } => {
                self.report.salvageable = true;
                self.report.find(Finding::Damaged { seq, offset, why });
                self.behind()?;
            }
        }
        if self.report.verified == 0 && !self.report.salvageable {
            let why = "the log holds no event: there is nothing to show or to go on with".to_owned();
            self.report.find(Finding::Stuck { why });
        }
        if let Some(state) = &self.state {
            self.report.status = (self.report.verified > 0).then_some(state.status);
            self.report.finished = state.finished;
            if let Err(lost) = state.check_whole() {
                self.report.find(Finding::Stuck {
                    why: lost.to_string(),
                });
            }
        }
        Ok(())
    }

    fn event(&mut self, event: &Event, offset: u64) {
        let seq = event.seq;
        self.report.verified += 1;
        if !event.permits_append() {
            self.report.find(Finding::Newer { seq, offset });
        }
        if let Some(gap) = LogGap::of(&event.fact) {
            let (from, to) = (gap.from, gap.to);
            self.report.find(Finding::Gap { from, to, offset });
        }
        self.verifications += u64::from(VerificationRecorded::of(&event.fact).is_some());
        if let Some(state) = &mut self.state {
            if let Err(violation) = state.apply(event) {
                let why = violation.to_string();
                self.report.find(Finding::OutOfOrder { seq, offset, why });
                self.state = None;
            } else if let Some(cached) = self.cached.take_if(|cached| cached.seq <= state.seq) {
                self.cache_differs = (cached != *state).then_some(state.seq);
            }
        }
        let Ok(data) = event.fact.to_json() else { return };
        if data.get().contains("\"$ref\"")
            && let Ok(data) = serde_json::from_str(data.get())
        {
            self.named(&data, seq, offset);
        }
    }

    /// Looks at every artifact that a value names; a value that only looks like such a name names none.
    fn named(&mut self, value: &Value, seq: Seq, offset: u64) {
        match value {
            Value::Object(map) => {
                if map.contains_key("$ref")
                    && let Ok(reference) = serde_json::from_value::<ArtifactRef>(value.clone())
                {
                    self.artifact(&reference, seq, offset);
                }
                for value in map.values() {
                    self.named(value, seq, offset);
                }
            }
            Value::Array(items) => items.iter().for_each(|value| self.named(value, seq, offset)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn artifact(&mut self, reference: &ArtifactRef, seq: Seq, offset: u64) {
        let digest = reference.digest;
        if self.looked_at.len() >= REMEMBERED {
            self.looked_at.clear();
        }
        if !self.looked_at.insert(digest.to_bytes()) {
            return;
        }
        self.report.artifacts += 1;
        let why = match self.artifacts.verify(digest, reference.bytes) {
            Ok(()) => return,
            Err(ArtifactError::Missing(_)) => "missing".to_owned(),
            Err(ArtifactError::Corrupt(_)) => "not what was put in".to_owned(),
            Err(ArtifactError::Io { error, .. }) => format!("unreadable ({error})"),
        };
        self.report.find(Finding::Artifact {
            seq,
            offset,
            digest,
            why,
        });
    }

    /// Looks at what stands behind the damage.
    fn behind(&mut self) -> Result<(), LogError> {
        let mut scan = open_scan(self.run)?;
        let path = self.run.events();
        let mut found = 0_u64;
        while let Some(piece) = scan.next_piece().map_err(|error| LogError::Io {
            doing: "read",
            path: path.clone(),
            error,
        })? {
            match piece {
                Piece::Record(_) => found += 1,
                Piece::Hole(hole) => self.report.find(Finding::Missing {
                    from: hole.from,
                    to: hole.to,
                    offset: hole.offset,
                    bytes: hole.bytes,
                }),
                Piece::Foreign { offset, bytes } => {
                    self.report.find(Finding::Foreign { offset, bytes });
                }
                Piece::Torn { offset, bytes } => self.report.find(Finding::Torn { offset, bytes }),
            }
        }
        self.report.behind = found.saturating_sub(self.report.verified);
        Ok(())
    }

    fn files(&mut self, held: bool) {
        let (run, report) = (self.run, &mut self.report);
        let started = self
            .started
            .as_ref()
            .and_then(|event| RunStarted::of(&event.fact));
        for path in [run.task(), run.metadata()] {
            let found = match json(&path) {
                Ok(Some(found)) => found,
                Ok(None) if started.is_none() => continue,
                Ok(None) => {
                    report.file(&path, "missing; what it held stands in the log too");
                    continue;
                }
                Err(why) => {
                    report.file(&path, why);
                    continue;
                }
            };
            let Some(started) = started else { continue };
            let agrees = if path == run.task() {
                serde_json::to_value(started).is_ok_and(|started| started == found)
            } else {
                found.get("runId").and_then(Value::as_str) == Some(run.id().as_str())
                    && found.get("traceId").and_then(Value::as_str) == Some(&started.trace_id.to_string())
            };
            if !agrees && path == run.task() {
                // Whoever edits it means something: `resume` says so and takes it only if that is accepted.
                report.stale(&path, "is not what event 1 says; the log counts");
            } else if !agrees {
                report.file(&path, "is not what event 1 says; the log counts");
            }
        }
        self.status(held);
        self.verification();
    }

    fn status(&mut self, held: bool) {
        let (path, report) = (self.run.status(), &mut self.report);
        let found = match json(&path) {
            Ok(Some(found)) => found,
            Ok(None) if report.verified == 0 => return,
            Ok(None) => {
                return report.stale(
                    &path,
                    "missing: whether the end of the log was cut off cannot be told",
                );
            }
            Err(why) => {
                return report.file(
                    &path,
                    format!("{why}; whether the end of the log was cut off cannot be told"),
                );
            }
        };
        let text = |key: &str| found.get(key).and_then(Value::as_str).unwrap_or_default();
        if text("runId") != self.run.id().as_str() {
            return report.file(&path, format!("is of another run, `{}`", text("runId")));
        }
        // It is written after the log, so it may lag; whoever writes at this moment is in between.
        let Some(status) = report.status.map(|status| status.to_string()) else {
            return;
        };
        if held || text("status") == status || report.salvageable {
            return;
        }
        let why = format!(
            "says `{}`, the log says `{status}`: the log counts",
            text("status")
        );
        if text("status") == Status::Completed.to_string() {
            report.file(&path, why);
        } else {
            report.stale(&path, why);
        }
    }

    fn verification(&mut self) {
        let (path, report) = (self.run.verification(), &mut self.report);
        let Ok(file) = crate::files::open(&path) else {
            return;
        };
        let (mut file, mut line, mut lines) = (BufReader::new(file), Vec::new(), 0_u64);
        loop {
            match next_line(&mut file, &mut line) {
                Ok(0) => break,
                Ok(_) => lines += 1,
                Err(error) => return report.file(&path, error.to_string()),
            }
            if let Err(error) = serde_json::from_slice::<VerificationRecorded>(&line) {
                return report.file(&path, format!("line {lines} is no result: {error}"));
            }
        }
        if lines != self.verifications && !report.salvageable {
            let why = format!(
                "holds {lines} results, the log {}: the log counts",
                self.verifications
            );
            report.stale(&path, why);
        }
    }
}

fn json(path: &Path) -> Result<Option<Value>, String> {
    let Some(bytes) = read_small(path).map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| format!("cannot be read: {error}"))
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
