//! The loss of power after every operation of a whole run: what was said to be durable is there, whatever of the rest survives.
//!
//! A recording disk remembers what the real session writes and makes durable. A model of a file system replays it up to each operation
//! and loses what was not made durable: names, contents, the end of the log.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "the recorded run is made on a real disk"
)]

mod rig;

use rig::{Rig, block_on, repair};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};
use tracegate::{
    model::{Model as _, scripted::ScriptedModel},
    session::Session,
    world::FixedWorld,
};
use tracegate_core::{
    event::Event,
    ids::{Chain, Digest, RunId, Seq, Timestamp},
};
use tracegate_store::{Disk, Head, LogFile, LogReader, RealDisk, Tail};

#[derive(Debug, Clone)]
enum Op {
    MakeDir(PathBuf),
    Write(PathBuf, Vec<u8>),
    Rename(PathBuf, PathBuf),
    Sync(PathBuf),
    CreateLog(PathBuf),
    Append(Vec<u8>),
    SyncLog,
    Truncate,
}

/// Does what it is told and remembers it; nothing is really made durable.
#[derive(Debug, Clone, Default)]
struct Recording(Arc<Mutex<Vec<Op>>>);

impl Recording {
    fn note(&self, op: Op) {
        self.0.lock().unwrap().push(op);
    }
}

impl Disk for Recording {
    fn open_log(&self, path: &Path, create: bool) -> io::Result<Box<dyn LogFile>> {
        assert!(create, "a new run");
        self.note(Op::CreateLog(path.to_owned()));
        Ok(Box::new(RecordingFile(
            RealDisk.open_log(path, create)?,
            self.clone(),
        )))
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        self.note(Op::MakeDir(path.to_owned()));
        RealDisk.make_dir(path)
    }

    fn write_beside(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<PathBuf> {
        let beside = RealDisk.write_beside(path, bytes, mode)?;
        self.note(Op::Write(beside.clone(), bytes.to_vec()));
        Ok(beside)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note(Op::Rename(from.to_owned(), to.to_owned()));
        RealDisk.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note(Op::Rename(from.to_owned(), to.to_owned()));
        RealDisk.rename_new(from, to)
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        self.note(Op::Sync(path.to_owned()));
        Ok(())
    }
}

#[derive(Debug)]
struct RecordingFile(Box<dyn LogFile>, Recording);

impl LogFile for RecordingFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.1.note(Op::Append(bytes.to_vec()));
        self.0.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.1.note(Op::SyncLog);
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.1.note(Op::Truncate);
        self.0.truncate(len)
    }
}

/// A file's bytes, and whether they were made durable. No file but the log changes once it is written.
#[derive(Debug, Clone)]
struct File {
    bytes: Arc<Vec<u8>>,
    durable: bool,
}

#[derive(Debug, Clone)]
enum Node {
    Dir,
    File(usize),
}

#[derive(Debug, Clone)]
enum Change {
    Add(PathBuf, Node),
    Move(PathBuf, PathBuf, Node),
}

/// The file system: durable names, changes of names that are not yet, and files.
#[derive(Debug, Default)]
struct Model {
    names: BTreeMap<PathBuf, Node>,
    pending: Vec<Change>,
    now: BTreeMap<PathBuf, Node>,
    files: Vec<File>,
    log: Option<(PathBuf, Vec<u8>, usize)>,
    appended: Option<Head>,
    synced: Option<Head>,
}

impl Model {
    fn apply(&mut self, op: &Op, run: &RunId) {
        match op {
            Op::MakeDir(path) => {
                if self.now.insert(path.clone(), Node::Dir).is_none() {
                    self.pending.push(Change::Add(path.clone(), Node::Dir));
                }
            }
            Op::Write(path, bytes) => {
                let node = Node::File(self.files.len());
                self.files.push(File {
                    bytes: Arc::new(bytes.clone()),
                    durable: false,
                });
                self.now.insert(path.clone(), node.clone());
                self.pending.push(Change::Add(path.clone(), node));
            }
            Op::Rename(from, to) => {
                let node = self.now.remove(from).unwrap();
                self.now.insert(to.clone(), node.clone());
                self.pending.push(Change::Move(from.clone(), to.clone(), node));
            }
            Op::Sync(path) => match self.now.get(path) {
                Some(Node::File(file)) => self.files[*file].durable = true,
                // The directories above the store are nobody's business here.
                Some(Node::Dir) | None => self.sync_dir(path),
            },
            Op::CreateLog(path) => {
                // The disk makes its name durable.
                self.sync_dir(path.parent().unwrap());
                self.log = Some((path.clone(), Vec::new(), 0));
                let chain = Chain::genesis(run);
                self.appended = Some(Head { seq: Seq(0), chain });
            }
            Op::Append(bytes) => {
                let head = self.appended.unwrap();
                let text = std::str::from_utf8(bytes).unwrap().trim_end();
                let (event, chain) = Event::from_line(text, head.chain, Seq(head.seq.0 + 1)).unwrap();
                self.appended = Some(Head {
                    seq: event.seq,
                    chain,
                });
                self.log.as_mut().unwrap().1.extend_from_slice(bytes);
            }
            Op::SyncLog => {
                let log = self.log.as_mut().unwrap();
                log.2 = log.1.len();
                self.synced = self.appended;
            }
            Op::Truncate => panic!("nothing fails here"),
        }
    }

    fn sync_dir(&mut self, dir: &Path) {
        let (done, left) = std::mem::take(&mut self.pending).into_iter().partition(|change| {
            let (Change::Add(path, _) | Change::Move(path, _, _)) = change;
            path.parent() == Some(dir)
        });
        self.pending = left;
        for change in Vec::<Change>::from_iter(done) {
            rename(&mut self.names, &change);
        }
    }
}

fn rename(names: &mut BTreeMap<PathBuf, Node>, change: &Change) {
    match change {
        Change::Add(path, node) => {
            names.insert(path.clone(), node.clone());
        }
        Change::Move(from, to, node) => {
            names.remove(from);
            names.insert(to.clone(), node.clone());
        }
    }
}

/// What happens to the bytes of files that were not made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contents {
    Lost,
    There,
}

/// What is left after the loss of power.
struct Left<'a> {
    model: &'a Model,
    names: BTreeMap<PathBuf, Node>,
    contents: Contents,
    root: &'a Path,
}

impl Left<'_> {
    /// A file's bytes, if every directory on the way to it is there.
    fn read(&self, path: &Path) -> Option<Arc<Vec<u8>>> {
        if !self.reaches(path) {
            return None;
        }
        match self.names.get(path)? {
            Node::File(file) => {
                let file = &self.model.files[*file];
                let kept = file.durable || self.contents == Contents::There;
                Some(if kept {
                    Arc::clone(&file.bytes)
                } else {
                    Arc::default()
                })
            }
            Node::Dir => panic!("{} is a directory", path.display()),
        }
    }

    fn reaches(&self, path: &Path) -> bool {
        path.ancestors()
            .skip(1)
            .take_while(|dir| dir.starts_with(self.root))
            .all(|dir| matches!(self.names.get(dir), Some(Node::Dir)))
    }
}

/// The digests that the events of a log name, up to each.
fn named(log: &[u8]) -> Vec<(Seq, Digest)> {
    fn walk(value: &Value, found: &mut Vec<Digest>) {
        if let Some(digest) = value.get("$ref").and_then(Value::as_str) {
            found.push(digest.parse().unwrap());
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
            Value::Object(map) => map.values().for_each(|item| walk(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut all = Vec::new();
    for (index, line) in std::str::from_utf8(log).unwrap().lines().enumerate() {
        let mut found = Vec::new();
        walk(&serde_json::from_str(line).unwrap(), &mut found);
        all.extend(found.into_iter().map(|digest| (Seq(index as u64 + 1), digest)));
    }
    all
}

#[test]
fn what_is_durable_survives_the_loss_of_power_after_any_operation() {
    let mut rig = Rig::new();
    // Long enough to be artifacts.
    rig.write("long.txt", &"a line of a long file\n".repeat(400));
    rig.config.goal = format!("Fix app.py so that `pytest` passes. {}", "Really. ".repeat(600));
    let disk = Recording::default();
    rig.put_store_on(Arc::new(disk.clone()));
    let cassette = [
        rig::calls(&[("read_file", serde_json::json!({"path": "long.txt"}))]),
        repair(),
    ]
    .concat();
    let model = ScriptedModel::parse("cassette.jsonl", &cassette).unwrap();
    let world = Box::new(FixedWorld::new(Timestamp(1_796_000_000_000_000_000)));
    let session = Session::start(rig.around(&disk, world), &rig.run, &rig.config, model.info()).unwrap();
    block_on(rig.drive(session, &model)).unwrap();
    let ops = disk.0.lock().unwrap().clone();
    let (root, dir) = (rig.store.root().to_owned(), rig.run_dir());
    let references = named(&fs::read(dir.events()).unwrap());
    assert!(references.len() > 3, "some events name artifacts");
    let artifact = |digest: Digest| {
        let hex = digest.to_string()[3..].to_owned();
        root.join("artifacts/b3").join(&hex[..2]).join(&hex[2..])
    };

    let mut model = Model::default();
    let (mut states, mut prefixes) = (0, 0);
    let mut verified: BTreeMap<(usize, Option<u64>), Seq> = BTreeMap::new();
    // The head and length of the log at each sync: what lies before was verified.
    let mut base = (
        Head {
            seq: Seq(0),
            chain: Chain::genesis(&rig.run),
        },
        0,
    );
    for (at, op) in ops.iter().enumerate() {
        // Before a sync the most is at stake: every prefix of the log's unsynced bytes.
        if let (Op::SyncLog, Some((_, bytes, durable))) = (op, &model.log) {
            for end in *durable..=bytes.len() {
                let reader =
                    LogReader::over(&bytes[base.1..end], &rig.run, model.synced, PathBuf::from("log"));
                let mut reader = reader.behind(base.0, base.1 as u64);
                while reader.next_event().unwrap().is_some() {}
                assert!(
                    !matches!(reader.tail(), Tail::Damaged { .. }),
                    "operation {at}, {end} bytes"
                );
                assert!(reader.head().seq >= base.0.seq);
                prefixes += 1;
            }
        }
        model.apply(op, &rig.run);
        if let (Op::SyncLog, Some((_, bytes, _))) = (op, &model.log) {
            base = (model.synced.unwrap(), bytes.len());
        }
        for kept in 0..=model.pending.len() {
            let mut names = model.names.clone();
            model.pending[..kept]
                .iter()
                .for_each(|change| rename(&mut names, change));
            for contents in [Contents::Lost, Contents::There] {
                let left = Left {
                    model: &model,
                    names: names.clone(),
                    contents,
                    root: &root,
                };
                let what = format!(
                    "operation {at} ({op:.40?}), {kept} of {} names, contents {contents:?}",
                    model.pending.len()
                );
                states += 1;
                let status = left.read(&dir.status());
                let head = status.as_ref().and_then(|bytes| Head::of_status(bytes));
                if let (Some(status), Some(_)) = (status, model.synced) {
                    let whole = serde_json::from_slice::<Value>(&status).is_ok();
                    assert!(whole, "{what}: status.json is {} bytes", status.len());
                }
                let Some(synced) = model.synced else {
                    continue;
                };
                let (path, bytes, durable) = model.log.as_ref().unwrap();
                assert!(left.reaches(path), "{what}: the log cannot be reached");
                for key in ["redaction.key", "host-id"] {
                    let bytes = left.read(&root.join(key));
                    assert!(bytes.is_some_and(|bytes| !bytes.is_empty()), "{what}: {key}");
                }
                assert!(head.is_none_or(|head| head.seq <= synced.seq), "{what}: {head:?}");
                for end in [*durable, durable + (bytes.len() - durable) / 2, bytes.len()] {
                    let reached = *verified
                        .entry((end, head.map(|head| head.seq.0)))
                        .or_insert_with(|| {
                            let mut reader =
                                LogReader::over(&bytes[..end], &rig.run, head, PathBuf::from("log"));
                            while reader.next_event().unwrap().is_some() {}
                            assert!(!matches!(reader.tail(), Tail::Damaged { .. }), "{what}");
                            reader.head().seq
                        });
                    assert!(reached >= synced.seq, "{what}: {reached} of {}", synced.seq);
                }
                let durable: BTreeSet<Digest> = references
                    .iter()
                    .filter(|(seq, _)| *seq <= synced.seq)
                    .map(|(_, digest)| *digest)
                    .collect();
                for digest in durable {
                    let bytes = left.read(&artifact(digest));
                    let right = bytes.is_some_and(|bytes| Digest::of(&bytes) == digest);
                    assert!(
                        right,
                        "{what}: a durable event names {digest}, which is not durable"
                    );
                }
                for path in [dir.task(), dir.metadata()] {
                    let whole = left.read(&path);
                    let whole = whole.is_some_and(|bytes| serde_json::from_slice::<Value>(&bytes).is_ok());
                    assert!(whole, "{what}: {}", path.display());
                }
            }
        }
    }
    println!(
        "power losses: {states} states after {} operations, and {prefixes} prefixes of the log; all as promised",
        ops.len()
    );
}
