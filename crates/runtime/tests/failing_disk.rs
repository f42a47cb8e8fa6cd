//! A disk that fails at any one operation, whatever it is: the run stops there, says so, and nothing happens any more.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]
#![expect(clippy::disallowed_methods, reason = "a test counts what a tool did")]

mod rig;

use rig::{Rig, answer, block_on, calls, program, pytest};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};
use tracegate::{
    model::{Model as _, scripted::ScriptedModel},
    session::Session,
    world::FixedWorld,
};
use tracegate_core::{ids::Timestamp, state::RunState};
use tracegate_store::{Disk, LogFile, LogReader, RealDisk, Tail};

/// Fails the operation number `at`, and every later one if it stays broken; counts the effects that there were at that moment.
#[derive(Debug, Clone)]
struct Failing {
    at: usize,
    stays: bool,
    effects: PathBuf,
    did: Arc<Mutex<Did>>,
}

#[derive(Debug, Default)]
struct Did {
    operations: usize,
    failed: Option<(&'static str, usize)>,
}

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).unwrap_or_default().lines().count()
}

impl Failing {
    fn next(&self, what: &'static str) -> io::Result<()> {
        let mut did = self.did.lock().unwrap();
        did.operations += 1;
        if did.operations == self.at || (self.stays && did.operations > self.at) {
            did.failed.get_or_insert_with(|| (what, lines(&self.effects)));
            return Err(io::Error::from_raw_os_error(5));
        }
        Ok(())
    }
}

impl Disk for Failing {
    fn open_log(&self, path: &Path, create: bool) -> io::Result<Box<dyn LogFile>> {
        self.next("open")?;
        Ok(Box::new(FailingFile(
            RealDisk.open_log(path, create)?,
            self.clone(),
        )))
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        self.next("make a directory")?;
        RealDisk.make_dir(path)
    }

    fn write_beside(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<PathBuf> {
        self.next("write")?;
        RealDisk.write_beside(path, bytes, mode)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.next("rename")?;
        RealDisk.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.next("rename")?;
        RealDisk.rename_new(from, to)
    }

    fn sync(&self, _: &Path) -> io::Result<()> {
        self.next("sync")
    }
}

#[derive(Debug)]
struct FailingFile(Box<dyn LogFile>, Failing);

impl LogFile for FailingFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.1.next("append")?;
        self.0.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.1.next("sync the log")
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.1.next("truncate")?;
        self.0.truncate(len)
    }
}

#[test]
fn whichever_operation_of_the_disk_fails_nothing_happens_after_it() {
    let cassette = [calls(&[pytest(), pytest()]), calls(&[pytest()]), answer("Done.")].concat();
    let (mut runs, mut kinds) = (0, std::collections::BTreeMap::new());
    for stays in [false, true] {
        // A disk that stays broken differs only in what is tried after the first failure: a few places stand for all.
        for at in (1..).step_by(if stays { 5 } else { 1 }) {
            let mut rig = Rig::new();
            let effects = rig.workspace().parent().unwrap().join("effects");
            let script = format!("#!/bin/sh\necho ran >> {}\n", effects.display());
            program(&rig.workspace().parent().unwrap().join("bin/pytest"), &script);
            let disk = Failing {
                at: usize::MAX,
                stays,
                effects: effects.clone(),
                did: Arc::default(),
            };
            // The store is there before: a disk that fails then is said before anything runs.
            rig.put_store_on(Arc::new(disk.clone()));
            let failing = Failing { at, ..disk };
            *failing.did.lock().unwrap() = Did::default();
            rig.store = tracegate_store::Store::read_on(Arc::new(failing.clone()), rig.store.root()).unwrap();
            let model = ScriptedModel::parse("cassette.jsonl", &cassette).unwrap();
            let world = Box::new(FixedWorld::new(Timestamp(1_796_000_000_000_000_000)));
            let session = Session::start(rig.around(&failing, world), &rig.run, &rig.config, model.info());
            let ended = match session {
                Ok(session) => block_on(rig.drive(session, &model)).map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            let failed = failing.did.lock().unwrap().failed;
            let Some((what, before)) = failed else {
                assert!(ended.is_ok(), "{ended:?}");
                assert_eq!(lines(&effects), 3);
                break;
            };
            assert!(
                ended.is_err(),
                "operation {at} ({what}) failed and the run went on"
            );
            assert_eq!(
                lines(&effects),
                before,
                "operation {at} ({what}): a tool ran after it"
            );
            // What is on the disk verifies; at most its end is torn.
            if let Ok(dir) = rig.store.run(&rig.run) {
                let (events, tail) = LogReader::open(&dir).unwrap().read_all().unwrap();
                assert!(
                    !matches!(tail, Tail::Damaged { .. }),
                    "operation {at} ({what}): {tail:?}"
                );
                RunState::fold(&events).unwrap();
            }
            runs += 1;
            *kinds.entry(what).or_insert(0) += 1;
        }
    }
    println!("failing operations: {runs} of {runs} stopped the run, no tool ran after one: {kinds:?}");
}
