//! The one place where events come from: what is in memory is the fold of what is on disk, whatever fails.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod rig;

use rig::{Rig, Watched};
use serde_json::json;
use tracegate::{
    attention::Attention,
    live::NoLiveSpans,
    recorder::{Parts, Place, Recorder, RecorderError},
    world::FixedWorld,
};
use tracegate_core::{
    event::Event,
    fact::{Fact, run::Durability},
    ids::{Timestamp, TraceId},
    redact::Redactor,
    state::{RunState, Violation},
};
use tracegate_store::{LogReader, LogWriter, RunDir};

fn fact(name: &str, data: &serde_json::Value) -> Fact {
    Fact::from_json(name, &serde_json::value::to_raw_value(data).unwrap()).unwrap()
}

/// The first event of a run, as a session writes it.
fn first() -> Fact {
    let rig = Rig::new();
    rig.run(&rig::answer("Nothing."));
    rig.events().remove(0).fact
}

fn recorder(rig: &Rig, disk: &Watched) -> (Recorder, RunDir) {
    let dir = rig.store.create_run(&rig.run).unwrap();
    let parts = Parts {
        log: LogWriter::create(&dir, disk, rig.store.artifacts(), 1).unwrap(),
        dir: dir.clone(),
        artifacts: rig.store.artifacts().clone(),
        redactor: Redactor::new(rig.store.redaction_key().clone(), &[]),
        world: Box::new(FixedWorld::new(Timestamp(1_796_000_000_000_000_000))),
        sinks: vec![Box::new(rig.seen.clone())],
        live: Box::new(NoLiveSpans),
        trace: TraceId::derive(&rig.run),
        durability: Durability::Event,
    };
    (
        Recorder::new(parts, RunState::default(), Attention::default()),
        dir,
    )
}

fn on_disk(dir: &RunDir) -> Vec<Event> {
    LogReader::open(dir).unwrap().read_all().unwrap().0
}

#[test]
fn memory_never_runs_ahead_of_the_log() {
    let first = first();
    for at in 1..=6 {
        let rig = Rig::new();
        let disk = Watched {
            fail_at: Some(at),
            ..Watched::default()
        };
        let (mut recorder, dir) = recorder(&rig, &disk);
        let mut failures = 0;
        for seq in 1..=6 {
            let next = if seq == 1 {
                first.clone()
            } else {
                fact("observation", &json!({"kind": "environment", "phase": "before"}))
            };
            match recorder.record(Place::default(), next.clone()) {
                Ok(_) => {}
                Err(RecorderError::Log(_)) => {
                    failures += 1;
                    assert_eq!(
                        *recorder.state(),
                        RunState::fold(&on_disk(&dir)).unwrap(),
                        "event {at}"
                    );
                    // The disk has room again: the same event takes the same place.
                    recorder.record(Place::default(), next).unwrap();
                }
                Err(other) => panic!("{other}"),
            }
            let events = on_disk(&dir);
            assert_eq!(*recorder.state(), RunState::fold(&events).unwrap(), "event {at}");
            assert_eq!(rig.seen.events().len(), events.len());
        }
        assert_eq!((failures, on_disk(&dir).len()), (1, 6));
    }
}

#[test]
fn an_event_that_must_not_follow_is_not_written() {
    let rig = Rig::new();
    let (mut recorder, dir) = recorder(&rig, &Watched::default());
    let observation = || fact("observation", &json!({"kind": "environment", "phase": "before"}));
    let refused = recorder.record(Place::default(), observation()).unwrap_err();
    assert!(matches!(
        refused,
        RecorderError::Violation(Violation::Beginning { .. })
    ));
    assert_eq!((on_disk(&dir).len(), rig.seen.events().len()), (0, 0));
    assert_eq!(*recorder.state(), RunState::default());
    recorder.record(Place::default(), first()).unwrap();
    recorder.record(Place::default(), observation()).unwrap();
    assert_eq!(on_disk(&dir).len(), 2);
}
