//! A wall clock that is set back an hour: inside a segment nothing changes, between segments time goes on, and durations are true.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod rig;

use rig::{Rig, block_on, repair};
use std::sync::atomic::{AtomicU64, Ordering};
use tracegate::{
    model::{Model as _, scripted::ScriptedModel},
    resume::Changes,
    session::Session,
    world::{Sleeping, World},
};
use tracegate_core::{
    event::Event,
    fact::{Data as _, Edge, Fact, tool::ToolExecuteFinished},
    ids::Timestamp,
    span::project,
    state::RunState,
    stop::StopReason,
};

const HOUR: u64 = 3_600_000_000_000;
const LOOK: u64 = 1_000_000;

/// Every look takes a millisecond of both clocks; at the look `back_at` the wall clock is set back an hour.
#[derive(Debug)]
struct Stepping {
    start: Timestamp,
    back_at: u64,
    looks: AtomicU64,
}

impl Stepping {
    fn look(&self) -> u64 {
        self.looks.fetch_add(1, Ordering::Relaxed)
    }
}

impl World for Stepping {
    fn wall(&self) -> Timestamp {
        let look = self.look();
        let back = if look >= self.back_at { HOUR } else { 0 };
        Timestamp(self.start.0 + look * LOOK - back)
    }

    fn monotonic_ns(&self) -> u64 {
        self.look() * LOOK
    }

    fn random(&self) -> [u8; 32] {
        [3; 32]
    }

    fn pid(&self) -> u32 {
        1
    }

    fn sleep(&self, _ms: u64) -> Sleeping {
        Box::pin(std::future::pending())
    }
}

fn world(start: u64, back_at: u64) -> Box<Stepping> {
    Box::new(Stepping {
        start: Timestamp(start),
        back_at,
        looks: AtomicU64::new(0),
    })
}

/// In each segment the time between two events is what the monotonic clock says, whatever the wall clock does.
fn check(events: &[Event]) {
    for pair in events.windows(2) {
        let (one, two) = (&pair[0], &pair[1]);
        assert!(one.ts < two.ts, "event {} is not later than {}", two.seq, one.seq);
        if one.segment == two.segment {
            assert_eq!(
                two.ts.0 - one.ts.0,
                two.mono_ns - one.mono_ns,
                "events {} and {}",
                one.seq,
                two.seq
            );
        }
    }
}

#[test]
fn a_clock_that_is_set_back_changes_neither_order_nor_durations_nor_what_a_resume_does() {
    const START: u64 = 1_796_000_000_000_000_000;
    // Never; at the first look; in the middle of the first segment.
    for back_at in [u64::MAX, 0, 40, 200] {
        let mut rig = Rig::new();
        rig.config.limits.max_steps = 2;
        let model = ScriptedModel::parse("cassette.jsonl", &repair()).unwrap();
        let around = rig.around(&rig.disk, world(START, back_at));
        let session = Session::start(around, &rig.run, &rig.config, model.info()).unwrap();
        let ending = block_on(rig.drive(session, &model)).unwrap();
        assert_eq!(ending.stop_reason, StopReason::MaxSteps);
        let first = rig.events();
        check(&first);
        let died = first.last().unwrap().ts;
        // The next segment begins an hour before the first one did.
        let model = ScriptedModel::parse("cassette.jsonl", &repair())
            .unwrap()
            .after(2);
        let around = rig.around(&rig.disk, world(START - HOUR, 30));
        let mut changes = Changes::default();
        changes.limits.max_steps = Some(9);
        let session = Session::resume(around, rig.run_dir(), &rig.config, &changes, &model).unwrap();
        let ending = block_on(rig.drive(session, &model)).unwrap();
        assert_eq!(ending.stop_reason, StopReason::Completed, "{ending:?}");
        let events = rig.events();
        check(&events);
        let second = events.iter().find(|event| event.segment.0 == 2).unwrap();
        assert!(second.ts > died, "{back_at}");
        let state = RunState::fold(&events).unwrap();
        // Two segments of some hundred looks: neither an hour more nor an overflow.
        assert!(
            state.elapsed_ms() < 10_000,
            "{back_at}: {} ms",
            state.elapsed_ms()
        );
        for span in project(&rig.run, &events).spans {
            assert!(
                span.end_ns > span.start_ns && span.end_ns - span.start_ns < HOUR,
                "{}",
                span.name
            );
        }
        // What a tool took is what the clock says between its two events, or less.
        for event in &events {
            let Some(done) = ToolExecuteFinished::of(&event.fact) else {
                continue;
            };
            let begun = events
                .iter()
                .find(|other| {
                    other.span == event.span && matches!(other.fact.edge(), Some((_, Edge::Started)))
                })
                .unwrap();
            let between = (event.ts.0 - begun.ts.0) / 1_000_000;
            assert!(
                done.duration_ms <= between && matches!(begun.fact, Fact::ToolExecuteStarted(_)),
                "{} ms of {between}",
                done.duration_ms
            );
        }
    }
}
