//! A run as the real writer leaves it: valid from its first event to its last, with texts, artifacts and checkpoints.
#![allow(dead_code, reason = "each test program uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]
#![expect(clippy::disallowed_methods, reason = "a test looks at what is on the disk")]

#[path = "../../../core/tests/recorded/mod.rs"]
pub(crate) mod recorded;

use recorded::{Recording, digest, run_started};
use serde_json::{Value, json};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};
use tempfile::TempDir;
use tracegate_core::{
    event::Event,
    fact::{is_free_key, is_schema_key},
    ids::{Chain, Seq},
    redact::{RedactionKey, Redactor, Schema, Scrubbed},
    state::RunState,
};
use tracegate_store::{Artifacts, Disk, Head, LogError, LogFile, LogWriter, Recovery, RunDir, Store};

/// The machine's disk, but nothing is made durable: that takes most of a test's time and is not what it is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Swift;

#[derive(Debug)]
struct SwiftFile(fs::File);

impl Disk for Swift {
    fn open_log(&self, path: &Path, create: bool) -> io::Result<Box<dyn LogFile>> {
        let file = fs::OpenOptions::new()
            .append(true)
            .create_new(create)
            .open(path)?;
        Ok(Box::new(SwiftFile(file)))
    }

    fn sync(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl LogFile for SwiftFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        io::Write::write_all(&mut self.0, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
}

pub(crate) fn redactor() -> Redactor {
    Redactor::new(RedactionKey::from_bytes([7; 32]), &[])
}

pub(crate) fn scrub(event: &Event) -> Scrubbed<Event> {
    let schema = Schema {
        keep: is_schema_key,
        free: is_free_key,
    };
    redactor().scrub(event, &schema).unwrap()
}

/// Text of a command, different each time.
fn output(step: u32) -> String {
    (0..12)
        .map(|line| {
            format!(
                "test case_{step}_{line} … ok äöü \"quoted\" \\ {}\n",
                line * 7919 % 97
            )
        })
        .collect()
}

/// The events of a run of `steps` steps with one effect each; texts of every third one are artifacts.
pub(crate) fn life(steps: u32, artifacts: &Artifacts) -> Vec<Event> {
    let mut log = Recording::new();
    log.push("run.started", &run_started());
    log.start("segment", json!({"pid": 1, "version": "0.1.0"}));
    log.push(
        "user.message",
        &json!({"kind": "task", "content": "Fix it, please"}),
    );
    let mut append = vec![json!({"role": "user", "content": "Fix it, please"})];
    for step in 1..=steps {
        let text: Value = if step % 3 == 0 {
            let bytes = redactor().scrub_bytes(output(step).repeat(9).into_bytes());
            json!(artifacts.put(&bytes, "text/plain; charset=utf-8").unwrap())
        } else {
            json!(output(step))
        };
        log.step = Some(step);
        log.start("agent.step", json!({}));
        log.push("observation", &json!({"kind": "environment", "phase": "before"}));
        log.start(
            "model.complete",
            json!({"provider": "scripted", "model": "c", "keep": 0, "append": append, "digest": digest(),
                "tools_digest": digest()}),
        );
        log.finish(json!({"reply_kind": "tool_calls", "tool_calls": 1, "reply": "{\"text\":\"look\"}", "text": "look",
            "finish_reason": "tool_use", "usage": {"input": 10}, "attempts": 1}));
        log.action = Some(u64::from(step));
        log.push(
            "action",
            &json!({"tool": "shell", "args": {"command": "pytest"}, "call_id": "c", "index": 0, "description": "shell"}),
        );
        log.start("permission.review", json!({"tool": "shell"}));
        log.finish(
            json!({"tool": "shell", "decision": "allow", "class": "shell", "reason_code": "rule", "rule": "user:x",
            "reason": "", "effects": ["run pytest"], "digest": digest()}),
        );
        log.start(
            "tool.execute",
            json!({"tool": "shell", "risk": "shell", "args": {}, "command": "pytest"}),
        );
        log.finish(
            json!({"outcome": "ok", "output": text, "output_chars": 9, "truncated": false, "duration_ms": 1,
            "sideEffects": []}),
        );
        log.push(
            "observation",
            &json!({"kind": "tool_output", "phase": "after", "content": text, "outcome": "ok"}),
        );
        log.action = None;
        log.start("checkpoint.save", json!({}));
        log.finish(json!({"covers": 1, "bytes": 1}));
        log.finish(json!({"actions": 1}));
        let id = format!("a{step}");
        append = vec![
            json!({"role": "assistant", "content": "look", "calls": [id]}),
            json!({"role": "tool", "content": "ok", "action": id}),
        ];
    }
    log.finish(json!({"status": "failed", "stop_reason": "max_steps", "usage": {}}));
    log.push(
        "run.finished",
        &json!({"status": "failed", "stop_reason": "max_steps", "evidence": "", "steps": steps}),
    );
    RunState::fold(&log.events).unwrap();
    log.events
}

/// A store with one recorded run in it, and everything that is known about its log.
pub(crate) struct Recorded {
    pub(crate) dir: TempDir,
    pub(crate) store: Store,
    pub(crate) run: RunDir,
    pub(crate) bytes: Vec<u8>,
    /// The offset behind each line.
    pub(crate) ends: Vec<usize>,
    /// The head behind each line.
    pub(crate) heads: Vec<Head>,
}

impl Recorded {
    /// Opens the log to go on with it, as another process would.
    pub(crate) fn resume(&self) -> Result<(LogWriter, Vec<Event>, Recovery), LogError> {
        let mut events = Vec::new();
        let opened = LogWriter::resume(&self.run, &Swift, self.store.artifacts(), 1, |event| {
            events.push(event);
            Ok::<_, LogError>(())
        });
        opened.map(|(writer, recovery)| (writer, events, recovery))
    }

    pub(crate) fn new(steps: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_on(Arc::new(Swift), &dir.path().join("store"), || [7; 32]).unwrap();
        let run = store.create_run(&recorded::run()).unwrap();
        let events = life(steps, store.artifacts());
        let mut log = LogWriter::create(&run, &Swift, store.artifacts(), 1).unwrap();
        let mut heads = Vec::new();
        for event in &events {
            log.append(&scrub(event)).unwrap();
            heads.push(log.sync().unwrap());
        }
        drop(log);
        let started = redactor().scrub_json(serde_json::to_value(events[0].fact.to_json().unwrap()).unwrap());
        run.create_json(&run.task(), &started).unwrap();
        let trace = run_started()["trace_id"].clone();
        let metadata = json!({"runId": run.id(), "traceId": trace});
        run.create_json(&run.metadata(), &redactor().scrub_json(metadata))
            .unwrap();
        let bytes = fs::read(run.events()).unwrap();
        let feeds = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let ends = feeds.map(|(at, _)| at + 1).collect();
        let recorded = Self {
            dir,
            store,
            run,
            bytes,
            ends,
            heads,
        };
        recorded.set_head(None);
        recorded
    }

    /// Where line `index` begins.
    pub(crate) fn start(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// The bytes of line `index`, with its line feed.
    pub(crate) fn line(&self, index: usize) -> &[u8] {
        &self.bytes[self.start(index)..self.ends[index]]
    }

    /// The line that byte `at` is in.
    pub(crate) fn line_at(&self, at: usize) -> usize {
        self.ends.partition_point(|end| *end <= at)
    }

    /// The head before line `index`.
    pub(crate) fn before(&self, index: usize) -> Head {
        index.checked_sub(1).map_or(
            Head {
                seq: Seq(0),
                chain: Chain::genesis(self.run.id()),
            },
            |before| self.heads[before],
        )
    }

    /// Writes `status.json` with the head behind line `index`.
    pub(crate) fn set_head(&self, index: Option<usize>) {
        let head = index.map(|index| self.heads[index]);
        let status =
            json!({"runId": self.run.id(), "status": "failed", "stopReason": "max_steps", "head": head});
        self.run
            .replace_json(&self.run.status(), &redactor().scrub_json(status))
            .unwrap();
    }

    /// Puts other bytes where the log is.
    pub(crate) fn put(&self, bytes: &[u8]) {
        fs::write(self.run.events(), bytes).unwrap();
    }

    /// Removes what salvages and recoveries left beside the log.
    pub(crate) fn tidy(&self) {
        for entry in fs::read_dir(self.run.path()).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with("events.") && name != "events.jsonl" {
                fs::remove_file(&path).unwrap();
            }
        }
    }
}

/// What of a line the chain value is over.
pub(crate) fn body(line: &[u8]) -> &[u8] {
    let text = String::from_utf8_lossy(line);
    let at = text.rfind(",\"chain\":\"").unwrap();
    &line[..at]
}
