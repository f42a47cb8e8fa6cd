//! A run in a fixed world: a workspace, a store, a scripted model, a policy, and a disk that is watched and can fail.
#![allow(dead_code, reason = "each test program uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at the first surprise and picks the facts that it is about"
)]
#![expect(clippy::disallowed_methods, reason = "a test prepares a workspace")]

use serde_json::json;
use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};
use tempfile::TempDir;
use tokio::sync::Notify;
use tracegate::{
    agent::{Parts, drive},
    asking::User,
    config::{RunConfig, default_limits, default_settings},
    live::NoLiveSpans,
    model::{Model as _, scripted::ScriptedModel},
    past::Outline,
    recorder::{RecorderError, Sink},
    resume::{Changes, ResumeError},
    session::{Ending, Session, StartError, Surroundings},
    world::{FixedWorld, World},
};
use tracegate_core::{
    event::Event,
    fact::{
        Fact,
        run::{Agent, PolicyRef},
    },
    ids::{Chain, Digest, RunId, Timestamp},
    redact::{Redactor, Scrubbed},
    state::RunState,
};
use tracegate_policy::{Layer, Policy, Source};
use tracegate_store::{Disk, LogFile, LogReader, RealDisk, RunDir, Store, Tail};

/// When a run begins.
pub(crate) const START: Timestamp = Timestamp(1_796_000_000_000_000_000);
/// A day in nanoseconds.
pub(crate) const DAY: u64 = 86_400_000_000_000;

/// What a test run may do: read, write, and the commands that the tests use.
const POLICY: &str = r#"
version = 1
[defaults]
read = "allow"
write = "allow"
shell = "deny"
network = "deny"
[[rule]]
id = "commands"
effect = "allow"
command = ["pytest **", "cp **", "sleep **", "./wreck **"]
[[rule]]
id = "secret"
effect = "deny"
tools = ["read_file", "write_text", "edit_text"]
paths = ["secret/**"]
"#;

/// `pytest` as far as these tests need one: red until `app.py` says `fixed`, quick, and the same on every machine.
const PYTEST: &str = "#!/bin/sh
if grep -q fixed app.py; then
  echo '===== 2 passed in 0.01s ====='
  exit 0
fi
echo 'FAILED test_app.py::test_answer - assert 41 == 42'
echo '===== 1 failed, 1 passed in 0.01s ====='
exit 1
";

/// Everything that a run is made of; tests change the fields that they are about.
pub(crate) struct Rig {
    dir: TempDir,
    pub(crate) store: Store,
    pub(crate) run: RunId,
    pub(crate) config: RunConfig,
    pub(crate) policy: Policy,
    pub(crate) disk: Watched,
    pub(crate) user: Option<Box<dyn User>>,
    pub(crate) cancel: Arc<Notify>,
    pub(crate) seen: Seen,
}

impl Rig {
    /// A workspace with one red test.
    pub(crate) fn new() -> Self {
        Self::below(tempfile::tempdir().unwrap())
    }

    /// As [`Rig::new`], in a directory of the caller's.
    pub(crate) fn below(dir: TempDir) -> Self {
        let workspace = dir.path().join("work");
        fs::create_dir(&workspace).unwrap();
        fs::write(workspace.join("app.py"), "def answer():\n    return 41\n").unwrap();
        fs::write(
            workspace.join("test_app.py"),
            "from app import answer\n\ndef test_answer():\n    assert answer() == 42\n",
        )
        .unwrap();
        let bin = dir.path().join("bin");
        fs::create_dir(&bin).unwrap();
        program(&bin.join("pytest"), PYTEST);
        let store = Store::open(&dir.path().join("store"), || [7; 32]).unwrap();
        let environment = [("PATH", format!("{}:/usr/bin:/bin", bin.display()))]
            .map(|(name, value)| (name.to_owned(), value))
            .into();
        let config = RunConfig {
            goal: "Fix app.py so that `pytest` passes".to_owned(),
            workspace,
            policy: PolicyRef {
                digest: Digest::of(POLICY.as_bytes()),
                files: vec!["test".to_owned()],
            },
            grants: Vec::new(),
            limits: default_limits(),
            settings: default_settings(),
            agent: Agent {
                name: "test".to_owned(),
                version: "1".to_owned(),
            },
            origin: tracegate::config::Origin::Alone,
            resource: BTreeMap::new(),
            environment,
        };
        Self {
            dir,
            store,
            run: "run_rig_20261130_00000001".parse().unwrap(),
            config,
            policy: policy(POLICY),
            disk: Watched::default(),
            user: None,
            cancel: Arc::new(Notify::new()),
            seen: Seen::default(),
        }
    }

    /// Gives the directory back; everything in it is gone.
    pub(crate) fn into_dir(self) -> TempDir {
        for name in ["work", "bin", "store"] {
            fs::remove_dir_all(self.dir.path().join(name)).unwrap();
        }
        self.dir
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.config.workspace
    }

    pub(crate) fn run_dir(&self) -> RunDir {
        self.store.run(&self.run).unwrap()
    }

    pub(crate) fn log_bytes(&self) -> Vec<u8> {
        fs::read(self.run_dir().events()).unwrap()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.workspace().join(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.workspace().join(name)).ok()
    }

    /// What a session needs, on any disk and in any world.
    pub(crate) fn around<'a>(&'a self, disk: &'a dyn Disk, world: Box<dyn World>) -> Surroundings<'a> {
        Surroundings {
            store: &self.store,
            disk,
            redactor: Redactor::new(self.store.redaction_key().clone(), &[self.store.registered_key()]),
            world,
            sinks: vec![Box::new(self.seen.clone())],
            live: Box::new(NoLiveSpans),
        }
    }

    pub(crate) fn start(&self, model: &ScriptedModel) -> Result<Session, StartError> {
        let around = self.around(&self.disk, Box::new(FixedWorld::new(START)));
        Session::start(around, &self.run, &self.config, model.info())
    }

    /// Puts the store on another disk.
    pub(crate) fn put_store_on(&mut self, disk: Arc<dyn Disk>) {
        let root = self.dir.path().join("store");
        fs::remove_dir_all(&root).unwrap();
        self.store = Store::open_on(disk, &root, || [7; 32]).unwrap();
    }

    /// Goes on with the run a day later; the model goes on in its cassette.
    pub(crate) fn resume(&self, cassette: &str, changes: &Changes) -> Result<Ending, ResumeError> {
        self.resume_at(Timestamp(START.0 + DAY), cassette, changes)
    }

    pub(crate) fn resume_at(
        &self,
        now: Timestamp,
        cassette: &str,
        changes: &Changes,
    ) -> Result<Ending, ResumeError> {
        let mut outline = Outline::default();
        self.events().iter().for_each(|event| outline.push(event));
        let model = ScriptedModel::parse("cassette.jsonl", cassette)
            .unwrap()
            .after(outline.replies);
        let around = self.around(&self.disk, Box::new(FixedWorld::new(now)));
        let session = Session::resume(around, self.run_dir(), &self.config, changes, &model)?;
        Ok(block_on(self.drive(session, &model))?)
    }

    /// Runs `cassette` to its end. The outer error is that of the start.
    pub(crate) fn try_run(&self, cassette: &str) -> Result<Result<Ending, RecorderError>, StartError> {
        let model = ScriptedModel::parse("cassette.jsonl", cassette).unwrap();
        let session = self.start(&model)?;
        Ok(block_on(self.drive(session, &model)))
    }

    pub(crate) async fn drive(
        &self,
        session: Session,
        model: &ScriptedModel,
    ) -> Result<Ending, RecorderError> {
        let parts = Parts {
            model,
            policy: &self.policy,
            user: self.user.as_deref(),
            cancel: &self.cancel,
        };
        drive(session, &parts).await
    }

    pub(crate) fn run(&self, cassette: &str) -> Ending {
        self.try_run(cassette).unwrap().unwrap()
    }

    /// Reads the log back, which must be whole.
    pub(crate) fn events(&self) -> Vec<Event> {
        let (events, tail) = LogReader::open(&self.run_dir()).unwrap().read_all().unwrap();
        assert_eq!(tail, Tail::Clean);
        events
    }

    /// The log, folded; it must be in order, and what the sinks were told must be what it says.
    pub(crate) fn state(&self) -> RunState {
        let events = self.events();
        assert_eq!(lines(&self.run, &self.seen.events()), lines(&self.run, &events));
        RunState::fold(&events).unwrap()
    }
}

/// Makes an executable file.
pub(crate) fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

pub(crate) fn policy(text: &str) -> Policy {
    Policy::load(&[Source::new(Layer::User, "test.toml", text)], &[]).unwrap()
}

pub(crate) fn policy_with(more: &str) -> Policy {
    policy(&format!("{POLICY}{more}"))
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// The lines that `events` came from; equal lines, equal events.
pub(crate) fn lines(run: &RunId, events: &[Event]) -> Vec<String> {
    let mut chain = Chain::genesis(run);
    let line = |event: &Event| {
        let (line, next) = event.to_line(chain).unwrap();
        chain = next;
        line
    };
    events.iter().map(line).collect()
}

/// Names the events: type, action and, where it has one, outcome, phase, ruling or reason.
pub(crate) fn names(events: &[Event]) -> Vec<String> {
    let name = |event: &Event| {
        let action = event
            .action
            .map_or_else(String::new, |action| format!(" {action}"));
        let more = match &event.fact {
            Fact::Observation(data) => data.outcome.map_or_else(
                || " before".to_owned(),
                |outcome| format!(" {}", outcome.as_str()),
            ),
            Fact::ToolExecuteFinished(data) => format!(" {}", data.outcome.as_str()),
            Fact::PermissionReviewFinished(data) => format!(" {}", data.decision),
            Fact::SpanHealed(_, data) => format!(" healed: {}", data.error.kind),
            _ => String::new(),
        };
        format!("{}{action}{more}", event.fact.name())
    };
    events.iter().map(name).collect()
}

/// One reply that asks for actions.
pub(crate) fn calls(calls: &[(&str, serde_json::Value)]) -> String {
    let calls: Vec<_> = calls
        .iter()
        .map(|(name, input)| serde_json::json!({"name": name, "input": input}))
        .collect();
    format!(
        "{}\n",
        serde_json::json!({"reply": {"text": "", "tool_calls": calls}})
    )
}

/// One reply that is the answer.
pub(crate) fn answer(text: &str) -> String {
    format!("{}\n", serde_json::json!({"reply": {"text": text}}))
}

/// Runs the tests.
pub(crate) fn pytest() -> (&'static str, serde_json::Value) {
    ("shell_readonly", json!({"command": "pytest"}))
}

/// Makes them green.
pub(crate) fn fix() -> (&'static str, serde_json::Value) {
    (
        "edit_text",
        json!({"path": "app.py", "old": "41", "new": "42  # fixed"}),
    )
}

/// A run that looks, repairs, tests and answers.
pub(crate) fn repair() -> String {
    [
        calls(&[("read_file", json!({"path": "app.py"})), pytest()]),
        calls(&[fix()]),
        calls(&[pytest()]),
        answer("Fixed."),
    ]
    .concat()
}

/// A sink that remembers what it was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<Event>>>);

impl Seen {
    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }
}

impl Sink for Seen {
    fn on_event(&mut self, event: &Scrubbed<Event>) {
        self.0.lock().unwrap().push(event.get().clone());
    }
}

/// What was done to a log file, and whether the watched file was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Did {
    /// The event of this type was appended.
    Append(String),
    /// The log was synced.
    Sync,
}

/// A disk that writes down what is done to it, with whether `watch` exists at that moment, and fails at the `fail_at`-th append.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watched {
    pub(crate) watch: Option<PathBuf>,
    pub(crate) fail_at: Option<usize>,
    /// Half of the record is written before the failure.
    pub(crate) short: bool,
    pub(crate) did: Arc<Mutex<Vec<(Did, bool)>>>,
    pub appends: Arc<Mutex<usize>>,
}

#[derive(Debug)]
struct WatchedFile(Box<dyn LogFile>, Watched);

impl Watched {
    fn note(&self, did: Did) {
        let there = self.watch.as_ref().is_some_and(|path| path.exists());
        self.did.lock().unwrap().push((did, there));
    }
}

impl Disk for Watched {
    fn open_log(&self, path: &Path, create: bool) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(WatchedFile(
            RealDisk.open_log(path, create)?,
            self.clone(),
        )))
    }
}

impl LogFile for WatchedFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut appends = self.1.appends.lock().unwrap();
        *appends += 1;
        if Some(*appends) == self.1.fail_at {
            if self.1.short {
                self.0.append(&bytes[..bytes.len() / 2])?;
            }
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.0.append(bytes)?;
        let event = Event::from_line_unverified(std::str::from_utf8(bytes).unwrap().trim_end()).unwrap();
        self.1.note(Did::Append(event.fact.name().to_owned()));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        // The real sync is left out: nothing here loses the machine's memory, and it takes most of a test's time.
        self.1.note(Did::Sync);
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }
}
