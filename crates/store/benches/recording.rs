//! What recording and reading a run cost: appending, checkpoints early and late, opening logs of 29 MB and of 1 GB.
//!
//! `cargo bench -p tracegate-store --bench recording`; a word after `--` keeps the groups whose names contain it.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench measures the machine it runs on, prints, and stops at the first surprise"
)]

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json, value::to_raw_value};
use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};
use tracegate_core::{
    event::Event,
    fact::{Fact, is_free_key, is_schema_key},
    ids::{ActionId, Chain, RunId, SegmentNo, Seq, SpanId, StepNo, Timestamp},
    redact::{RedactionKey, Redactor, Registered, Schema, Scrubbed},
    state::RunState,
    steps::Steps,
};
use tracegate_store::{Disk, LogError, LogFile, LogWriter, RealDisk, RunDir, Store};

/// What a step of the peer's recorder takes on disk, by which the two are compared (`reference` figures, measured elsewhere).
const FARA_APPEND_US: f64 = 43.0;

fn run_id() -> RunId {
    "run_bench_20261130_00000001".parse().unwrap()
}

/// A run of a coding agent, event by event: each step looks, asks, is permitted, reads two KiB and saves a checkpoint.
struct Recording {
    seq: u64,
    step: u32,
    actions: u64,
    open: Vec<(&'static str, SpanId)>,
    output: String,
}

impl Recording {
    fn new() -> Self {
        let line = "    let total: u64 = entries.iter().map(|entry| entry.bytes).sum(); // counted once\n";
        Self {
            seq: 0,
            step: 0,
            actions: 0,
            open: Vec::new(),
            output: line.repeat(2048 / line.len()),
        }
    }

    fn event(&mut self, name: &str, data: &Value) -> Event {
        self.seq += 1;
        let fact = Fact::from_json(name, &to_raw_value(data).unwrap()).unwrap();
        let at = self.seq * 1_000_000;
        let mut event = Event::new(
            &run_id(),
            Seq(self.seq),
            SegmentNo(1),
            Timestamp(1_796_000_000_000_000_000 + at),
            at,
            fact,
        );
        event.step = (self.step > 0).then_some(StepNo(self.step));
        event
    }

    fn start(&mut self, kind: &'static str, data: &Value) -> Event {
        let mut event = self.event(&format!("{kind}.started"), data);
        let span = SpanId::derive(&run_id(), event.seq);
        event.span = Some(span);
        event.parent = self.open.last().map(|(_, span)| *span);
        self.open.push((kind, span));
        event
    }

    fn finish(&mut self, data: &Value) -> Event {
        let (kind, span) = self.open.pop().unwrap();
        let mut event = self.event(&format!("{kind}.finished"), data);
        event.span = Some(span);
        event
    }

    fn begin(&mut self) -> Vec<Event> {
        let digest = format!("b3:{}", "0".repeat(64));
        let settings = json!({"context_tests": "on", "context_budget": 2800, "push_back": 2, "redaction": "masked",
            "durability": "kill", "readiness_ms": 1, "command_ms": 1});
        let started = json!({"goal": "Fix the failing tests", "agent": {"name": "bench", "version": "1"},
            "model": {"provider": "scripted", "name": "cassette"}, "trace_id": "0123456789abcdef0123456789abcdef",
            "host_id": "h", "resource": {}, "semconv": "1", "workspace": "/w", "policy": {"digest": digest, "files": []},
            "limits": {"max_steps": 1_000_000}, "settings": settings});
        vec![
            self.event("run.started", &started),
            self.start("segment", &json!({"pid": 1, "version": "1"})),
        ]
    }

    fn step(&mut self) -> Vec<Event> {
        self.step += 1;
        let digest = format!("b3:{}", "0".repeat(64));
        let workspace = json!({"digest": digest, "files": 120, "changed": [], "changed_total": 0});
        let look = json!({"kind": "environment", "phase": "before", "workspace": workspace});
        let built = json!({"budget": 2800, "used": 900, "included": [{"path": "src/total.rs", "level": "full"}], "dropped": [],
            "included_total": 1, "dropped_total": 0, "links": [], "report": "context/step-0001.json", "digest": digest});
        let message = json!({"role": "tool", "content": {"$ref": digest, "bytes": 2048, "lines": 26,
            "media": "text/plain; charset=utf-8", "head": "", "tail": "", "omitted": 2048}, "action": format!("a{}", self.actions.max(1))});
        let request = json!({"provider": "scripted", "model": "cassette", "keep": 2, "append": [message], "digest": digest,
            "tools_digest": digest});
        let reply = json!({"reply_kind": "tool_calls", "tool_calls": 1, "reply": "{\"text\":\"I look at it again.\"}",
            "text": "I look at it again.", "finish_reason": "tool_calls", "usage": {"input": 900, "output": 40}, "attempts": 1});
        let action = json!({"tool": "read_file", "args": {"path": "src/total.rs"}, "call_id": "call_1", "index": 0,
            "description": "read_file src/total.rs"});
        let ruling = json!({"tool": "read_file", "decision": "allow", "class": "read", "reason_code": "class_default",
            "rule": "default:read", "reason": "the class default allows it", "effects": ["read src/total.rs"], "digest": digest});
        let begun = json!({"tool": "read_file", "risk": "read", "args": {"path": "src/total.rs"}});
        let done = json!({"outcome": "ok", "output": self.output, "output_chars": self.output.len(), "truncated": false,
            "duration_ms": 1, "sideEffects": []});
        let seen = json!({"kind": "tool_output", "phase": "after", "content": "the same", "outcome": "ok",
            "workspace": {"digest": digest, "files": 120, "changed": [], "changed_total": 0}});
        let mut events = vec![
            self.start("agent.step", &json!({})),
            self.event("observation", &look),
            self.start("context.build", &json!({"budget": 2800})),
            self.finish(&built),
            self.start("model.complete", &request),
            self.finish(&reply),
        ];
        self.actions += 1;
        let mut of_action = vec![
            self.event("action", &action),
            self.start("permission.review", &json!({"tool": "read_file"})),
            self.finish(&ruling),
            self.start("tool.execute", &begun),
            self.finish(&done),
            self.event("observation", &seen),
        ];
        for event in &mut of_action {
            event.action = Some(ActionId(self.actions));
        }
        events.append(&mut of_action);
        events.push(self.start("checkpoint.save", &json!({})));
        let covers = self.seq;
        events.push(self.finish(&json!({"covers": covers, "bytes": 1})));
        events.push(self.finish(&json!({"actions": 1})));
        events
    }
}

/// The file system, with what is written and synced counted.
#[derive(Debug, Clone, Default)]
struct Counting {
    bytes: Arc<AtomicU64>,
    syncs: Arc<AtomicU64>,
}

#[derive(Debug)]
struct CountingFile(Box<dyn LogFile>, Counting);

impl Disk for Counting {
    fn open_log(&self, path: &Path, create: bool) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(CountingFile(
            RealDisk.open_log(path, create)?,
            self.clone(),
        )))
    }

    fn write_beside(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<PathBuf> {
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        RealDisk.write_beside(path, bytes, mode)
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        RealDisk.sync(path)
    }
}

impl LogFile for CountingFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.1.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.0.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.1.syncs.fetch_add(1, Ordering::Relaxed);
        self.0.sync()
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }
}

/// Time of this process in milliseconds: processor and wall.
#[derive(Clone, Copy)]
struct Clock(f64, Instant);

impl Clock {
    fn start() -> Self {
        Self(cpu_ms(), Instant::now())
    }

    fn read(self) -> (f64, f64) {
        (cpu_ms() - self.0, self.1.elapsed().as_secs_f64() * 1e3)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a time of days has fewer digits")]
fn cpu_ms() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

fn redactor() -> Redactor {
    // Values like those that an environment holds; put together here.
    let registered: Vec<Registered> = (0..50)
        .map(|n| Registered {
            name: format!("SERVICE_{n}_TOKEN"),
            value: format!("v{n:03}{}", "Qk7x".repeat(7)),
        })
        .collect();
    Redactor::new(RedactionKey::from_bytes([7; 32]), &registered)
}

fn scrub(redactor: &Redactor, event: &Event) -> Scrubbed<Event> {
    let schema = Schema {
        keep: is_schema_key,
        free: is_free_key,
    };
    redactor.scrub(event, &schema).unwrap()
}

/// A store with one run, on a disk that counts.
struct Bench {
    _dir: tempfile::TempDir,
    store: Store,
    run: RunDir,
    counting: Counting,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let counting = Counting::default();
        let disk = Arc::new(counting.clone());
        let store = Store::open_on(disk, &dir.path().join("store"), || [7; 32]).unwrap();
        let run = store.create_run(&run_id()).unwrap();
        Self {
            _dir: dir,
            store,
            run,
            counting,
        }
    }

    fn writer(&self) -> LogWriter {
        LogWriter::create(&self.run, &self.counting, self.store.artifacts(), 1).unwrap()
    }

    /// Writes a log of at least `bytes` without scrubbing it: that is what is not measured. Returns its length and its steps.
    fn log(&self, bytes: u64) -> (u64, u32) {
        let (mut recording, mut chain) = (Recording::new(), Chain::genesis(&run_id()));
        let mut file = BufWriter::new(File::create(self.run.events()).unwrap());
        let mut written = 0;
        let mut put = |events: Vec<Event>| {
            for event in events {
                let (line, next) = event.to_line(chain).unwrap();
                chain = next;
                file.write_all(line.as_bytes()).unwrap();
                written += line.len() as u64;
            }
            written
        };
        put(recording.begin());
        while put(recording.step()) < bytes {}
        file.flush().unwrap();
        (fs::metadata(self.run.events()).unwrap().len(), recording.step)
    }
}

fn row(name: &str, cpu: &str, wall: &str, more: &str) {
    println!("{name:<46} {cpu:>14} {wall:>14}  {more}");
}

fn append() {
    const EVENTS: u32 = 20_000;
    let redactor = redactor();
    let bench = Bench::new();
    let mut recording = Recording::new();
    let mut writer = bench.writer();
    let mut state = RunState::default();
    for event in recording.begin().into_iter().chain(recording.step()) {
        state.apply(&event).unwrap();
        writer.append(&scrub(&redactor, &event)).unwrap();
    }
    let text = recording.output.get(..640).unwrap().to_owned();
    let note = json!({"kind": "external", "phase": "notice", "content": text});
    let events: Vec<Event> = (0..EVENTS)
        .map(|_| recording.event("observation", &note))
        .collect();
    let length = events
        .first()
        .unwrap()
        .to_line(Chain::genesis(&run_id()))
        .unwrap()
        .0
        .len();
    let clock = Clock::start();
    for event in &events {
        let event = scrub(&redactor, event);
        state.check(event.get()).unwrap();
        writer.append(&event).unwrap();
        state.apply(event.get()).unwrap();
    }
    let (cpu, wall) = clock.read();
    let each = |ms: f64| ms * 1e3 / f64::from(EVENTS);
    let ratio = FARA_APPEND_US / each(cpu);
    row(
        &format!("append one event of {length} bytes, kill"),
        &format!("{:.1} µs", each(cpu)),
        &format!("{:.1} µs", each(wall)),
        &format!("target 10 µs; {ratio:.1} x Fara's 43 µs"),
    );
    let clock = Clock::start();
    for event in &events {
        std::hint::black_box(scrub(&redactor, event));
    }
    let (cpu, wall) = clock.read();
    row(
        "  of which redaction",
        &format!("{:.1} µs", each(cpu)),
        &format!("{:.1} µs", each(wall)),
        "50 registered values",
    );
    let clock = Clock::start();
    let mut chain = Chain::genesis(&run_id());
    for event in &events {
        chain = std::hint::black_box(event.to_line(chain).unwrap()).1;
    }
    let (cpu, wall) = clock.read();
    row(
        "  of which encoding and chain",
        &format!("{:.1} µs", each(cpu)),
        &format!("{:.1} µs", each(wall)),
        "the rest is the fold and one write",
    );
}

fn checkpoint() {
    let redactor = redactor();
    let at = |steps: u32| {
        let bench = Bench::new();
        let (mut recording, mut state, mut writer) = (Recording::new(), RunState::default(), bench.writer());
        let put = |events: Vec<Event>, writer: &mut LogWriter, state: &mut RunState| {
            for event in events {
                state.apply(&event).unwrap();
                writer.append(&scrub(&redactor, &event)).unwrap();
            }
        };
        put(recording.begin(), &mut writer, &mut state);
        for _ in 0..steps {
            put(recording.step(), &mut writer, &mut state);
        }
        // The best of some rounds: each checkpoint has a step of events before it to sync.
        let mut best = (f64::MAX, f64::MAX, 0, 0);
        for _ in 0..20 {
            put(recording.step(), &mut writer, &mut state);
            let (bytes, syncs) = (&bench.counting.bytes, &bench.counting.syncs);
            let before = (bytes.load(Ordering::Relaxed), syncs.load(Ordering::Relaxed));
            let clock = Clock::start();
            let head = writer.sync().unwrap();
            let schema = Schema {
                keep: is_schema_key,
                free: is_free_key,
            };
            let cached = redactor.scrub(&state, &schema).unwrap();
            bench.run.replace_json(&bench.run.state(), &cached).unwrap();
            let status = redactor.scrub_json(json!({"runId": run_id(), "status": "running", "head": head}));
            bench.run.replace_json(&bench.run.status(), &status).unwrap();
            let (cpu, wall) = clock.read();
            let written = bytes.load(Ordering::Relaxed) - before.0;
            let synced = syncs.load(Ordering::Relaxed) - before.1;
            best = (best.0.min(cpu), best.1.min(wall), written, synced);
        }
        best
    };
    let (early, late) = (at(10), at(10_000));
    for (name, (cpu, wall, bytes, syncs)) in [("step 10", early), ("step 10,000", late)] {
        row(
            &format!("checkpoint at {name}"),
            &format!("{cpu:.2} ms"),
            &format!("{wall:.2} ms"),
            &format!("{bytes} bytes, {syncs} syncs; target 10 ms"),
        );
    }
    row(
        "  late to early",
        &format!("{:.2} x", late.0 / early.0),
        &format!("{:.2} x", late.1 / early.1),
        "target 1.2 x",
    );
}

fn open() {
    for (name, bytes, target) in [
        ("29 MB", 29_000_000, "target 300 ms"),
        ("1 GB", 1_000_000_000, "target RSS 64 MB"),
    ] {
        let bench = Bench::new();
        let (length, steps) = bench.log(bytes);
        // From here on the peak is that of reading.
        fs::write("/proc/self/clear_refs", "5").ok();
        let clock = Clock::start();
        let (mut state, mut rebuilt) = (RunState::default(), Steps::new());
        let (disk, artifacts) = (&bench.counting, bench.store.artifacts());
        let opened = LogWriter::resume(&bench.run, disk, artifacts, 1, |event| {
            state.apply(&event).unwrap();
            rebuilt.push(&event);
            Ok::<_, LogError>(())
        });
        drop(opened.unwrap());
        let rebuilt = rebuilt.finish(tracegate_core::steps::Reading::Strict).unwrap();
        assert_eq!(rebuilt.steps.len(), usize::try_from(steps).unwrap());
        let (cpu, wall) = clock.read();
        row(
            &format!("open, verify, fold, steps: {name}"),
            &format!("{cpu:.0} ms"),
            &format!("{wall:.0} ms"),
            &format!(
                "{length} bytes, {} events, {steps} steps, peak {} MB; {target}",
                state.seq,
                peak_mb()
            ),
        );
    }
}

/// The largest resident set since the mark was set, in MB.
fn peak_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes / 1024
}

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    row("", "CPU", "wall", "");
    let groups: [(&str, fn()); 3] = [("append", append), ("checkpoint", checkpoint), ("open", open)];
    for (name, group) in groups {
        if wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str())) {
            group();
        }
    }
}
