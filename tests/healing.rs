//! Killing runs while their receiver comes and goes: in the end it has every span of the log once or several times, and always the same.

#[path = "../crates/otel/tests/receivers/mod.rs"]
mod receivers;

use crate::support::{clean, events};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use receivers::judging_receiver;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};
use tempfile::TempDir;
use tracegate_core::{
    event::Event,
    fact::{Edge, Fact},
    state::RunState,
};
use tracegate_store::{RunDir, Store};

/// How many schedules of kills and outages are tried.
const SCHEDULES: u64 = 20;

/// A sequence of numbers that looks random and is the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// A receiver that can be down, and everything that reached it.
struct Receiver {
    url: String,
    down: Arc<AtomicBool>,
    taken: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

impl Receiver {
    fn start() -> Self {
        let (down, taken) = (Arc::new(AtomicBool::new(true)), Arc::default());
        let (is_down, taking) = (Arc::clone(&down), Arc::<Mutex<Vec<_>>>::clone(&taken));
        let (port, received) = judging_receiver(move |request| {
            if is_down.load(Ordering::SeqCst) {
                return (503, "", Vec::new());
            }
            taking.lock().unwrap().push(request.clone());
            (200, "", Vec::new())
        });
        // It stops when nobody listens to it any more.
        std::thread::spawn(move || received.iter().for_each(drop));
        let url = format!("http://127.0.0.1:{port}");
        Self { url, down, taken }
    }

    fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    /// The copies of each span that it took, by id, each with its resource and scope.
    fn copies(&self) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
        let mut copies: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for request in self.taken.lock().unwrap().iter() {
            for (id, copy) in one_by_one(request) {
                copies.entry(id).or_default().push(copy);
            }
        }
        copies
    }
}

/// The spans of a request, each as the bytes of a request of its own.
fn one_by_one(request: &ExportTraceServiceRequest) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    for resource in &request.resource_spans {
        for scope in &resource.scope_spans {
            for span in &scope.spans {
                let mut alone = resource.clone();
                alone.scope_spans = vec![scope.clone()];
                alone.scope_spans[0].spans = vec![span.clone()];
                let alone = ExportTraceServiceRequest {
                    resource_spans: vec![alone],
                };
                found.push((span.span_id.clone(), alone.encode_to_vec()));
            }
        }
    }
    found
}

/// A workspace, a script that reads, writes, asks and runs, and a store.
struct Stage {
    dir: TempDir,
}

impl Stage {
    fn set() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("workspace")).unwrap();
        fs::write(dir.path().join("workspace/a.txt"), "old\n").unwrap();
        let call = |name: &str, input: serde_json::Value| json!({ "name": name, "input": input });
        let replies = [
            json!({ "reply": { "text": "look", "tool_calls": [
                call("read_file", json!({ "path": "a.txt" })),
            ] } }),
            json!({ "reply": { "text": "ask", "tool_calls": [
                call("ask_user", json!({ "question": "Which word?" })),
            ] } }),
            json!({ "reply": { "text": "change", "tool_calls": [
                call("write_text", json!({ "path": "a.txt", "content": "new\n" })),
                call("list_files", json!({})),
            ] } }),
            json!({ "reply": { "text": "done" } }),
        ];
        let script = replies.map(|reply| reply.to_string()).join("\n");
        fs::write(dir.path().join("script.jsonl"), script).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = clean("tracegate");
        command.args(args).arg("--store").arg(self.path("store"));
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, to: &str) -> Command {
        let mut command = self.command(&[
            "run",
            "change a word",
            "--quiet",
            "--allow-writes",
            "--export",
            to,
        ]);
        command.arg("--dir").arg(self.path("workspace"));
        command.arg("--script").arg(self.path("script.jsonl"));
        command
    }

    fn dir(&self) -> RunDir {
        let store = Store::read(&self.path("store")).unwrap();
        store.runs().unwrap().remove(0)
    }

    /// The command that goes on with the run as it stands.
    fn go_on(&self, state: &RunState, to: &str) -> Command {
        // Also if it was killed between its question and its saying that it waits.
        if !state.open_questions.is_empty() {
            self.command(&["answer", "@last", "new", "--quiet", "--export", to])
        } else {
            self.command(&["resume", "@last", "--quiet", "--export", to])
        }
    }
}

/// Runs `command` until event `at` and kills it there with SIGKILL; tells whether it came so far.
fn kill_at(mut command: Command, at: usize) -> bool {
    let paused = command
        .env("TRACEGATE_PAUSE_AT", at.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = paused.spawn().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
    if status.stopped() {
        kill_process(pid, Signal::KILL).unwrap();
    }
    // One that came to its end was waited for above; waiting once more only says so.
    child.wait().ok();
    status.stopped()
}

fn said(output: &Output) -> String {
    format!(
        "{:?}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn begun(events: &[Event]) -> usize {
    let begins = |event: &&Event| matches!(event.fact.edge(), Some((_, Edge::Started)));
    events.iter().filter(begins).count()
}

fn killed(events: &[Event]) -> usize {
    let heals = |event: &&Event| matches!(event.fact, Fact::SpanHealed(..));
    events.iter().filter(heals).count()
}

/// What came of one schedule.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    kills: usize,
    healed: usize,
    spans: usize,
    copies: usize,
    missing: usize,
    unknown: usize,
    differing: usize,
}

/// Carries a run through kills and outages by the numbers of `dice`, to its end and to the receiver.
fn schedule(dice: &mut Dice) -> Outcome {
    let (stage, receiver) = (Stage::set(), Receiver::start());
    let mut outcome = Outcome::default();
    // Not before the log is there: a run without a first event cannot be gone on with.
    outcome.kills += usize::from(kill_at(stage.run(&receiver.url), 2 + dice.roll(40)));
    for round in 0_u32.. {
        assert!(round < 20, "the run comes to no end: {outcome:?}");
        receiver.set_down(dice.roll(2) == 0);
        if dice.roll(2) == 0 {
            // Ends what was left open, without going on; whether it arrives is the receiver's affair.
            let exported = stage
                .command(&["export", "@last", "--endpoint", &receiver.url])
                .output()
                .unwrap();
            assert!(
                matches!(exported.status.code(), Some(0 | 1)),
                "{}",
                said(&exported)
            );
            let state = RunState::fold(&events(&stage.dir())).unwrap();
            assert!(state.open_spans.is_empty(), "{}", said(&exported));
        }
        let log = events(&stage.dir());
        let state = RunState::fold(&log).unwrap();
        if state.finished {
            break;
        }
        let command = stage.go_on(&state, &receiver.url);
        if round < 3 && dice.roll(3) > 0 {
            outcome.kills += usize::from(kill_at(command, log.len() + 1 + dice.roll(30)));
        } else {
            let mut command = command;
            let output = command.output().unwrap();
            assert!(matches!(output.status.code(), Some(0 | 14)), "{}", said(&output));
        }
    }
    receiver.set_down(false);
    let last = stage
        .command(&["export", "@last", "--endpoint", &receiver.url])
        .output()
        .unwrap();
    assert_eq!(last.status.code(), Some(0), "{}", said(&last));
    compare(&stage, &receiver, &mut outcome);
    // Exported once more from the beginning, and to a file, it is the same again.
    let again = stage
        .command(&["export", "@last", "--again", "--endpoint", &receiver.url])
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(0), "{}", said(&again));
    let mut repeated = Outcome::default();
    compare(&stage, &receiver, &mut repeated);
    assert_eq!(
        (repeated.missing, repeated.unknown, repeated.differing),
        (0, 0, 0)
    );
    assert_eq!(repeated.copies, outcome.copies + outcome.spans);
    outcome
}

/// Compares what arrived with the file of the run, and that file with an export from the log.
fn compare(stage: &Stage, receiver: &Receiver, outcome: &mut Outcome) {
    let dir = stage.dir();
    let log = events(&dir);
    let file = fs::read_to_string(dir.traces()).unwrap();
    let offline = stage
        .command(&["export", "@last", "--to", "otlp-json"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(offline.stdout).unwrap(), file);
    let wanted: BTreeMap<Vec<u8>, Vec<u8>> = file
        .lines()
        .flat_map(|line| one_by_one(&serde_json::from_str(line).unwrap()))
        .collect();
    assert_eq!(wanted.len(), begun(&log), "every span that began has its end");
    let copies = receiver.copies();
    outcome.healed = killed(&log);
    outcome.spans = wanted.len();
    outcome.copies = copies.values().map(Vec::len).sum();
    outcome.missing = wanted.keys().filter(|id| !copies.contains_key(*id)).count();
    outcome.unknown = copies.keys().filter(|id| !wanted.contains_key(*id)).count();
    let differs =
        |(id, copies): &(&Vec<u8>, &Vec<Vec<u8>>)| copies.iter().any(|copy| Some(copy) != wanted.get(*id));
    outcome.differing = copies.iter().filter(differs).count();
    let traces: BTreeSet<_> = receiver
        .taken
        .lock()
        .unwrap()
        .iter()
        .flat_map(|request| &request.resource_spans)
        .flat_map(|resource| &resource.scope_spans)
        .flat_map(|scope| &scope.spans)
        .map(|span| span.trace_id.clone())
        .collect();
    assert_eq!(traces.len(), 1, "one run, one trace");
}

#[test]
fn no_span_is_lost_or_differs_however_a_run_is_killed_and_whenever_its_receiver_is_down() {
    let mut all = Outcome::default();
    for number in 0..SCHEDULES {
        let outcome = schedule(&mut Dice(number));
        println!("schedule {number}: {outcome:?}");
        assert_eq!(
            (outcome.missing, outcome.unknown, outcome.differing),
            (0, 0, 0),
            "schedule {number}: {outcome:?}"
        );
        all.kills += outcome.kills;
        all.healed += outcome.healed;
    }
    assert!(all.kills >= 20 && all.healed >= 20, "{all:?}");
}

#[test]
fn a_run_at_work_is_exported_up_to_what_is_durable_and_left_alone() {
    let (stage, receiver) = (Stage::set(), Receiver::start());
    receiver.set_down(false);
    let mut child = stage
        .run(&receiver.url)
        .env("TRACEGATE_PAUSE_AT", "30")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped());
    let before = fs::read(stage.dir().events()).unwrap();
    let other = Receiver::start();
    other.set_down(false);
    let exported = stage
        .command(&["export", "@last", "--endpoint", &other.url])
        .output()
        .unwrap();
    assert_eq!(exported.status.code(), Some(0), "{}", said(&exported));
    assert_eq!(
        fs::read(stage.dir().events()).unwrap(),
        before,
        "nothing is healed"
    );
    let durable = stage.dir().head().unwrap().seq;
    let ended = events(&stage.dir())
        .iter()
        .filter(|event| event.seq <= durable && matches!(event.fact.edge(), Some((_, Edge::Finished))))
        .count();
    assert_eq!(other.copies().len(), ended);
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(14));
}
