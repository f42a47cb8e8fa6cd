//! The fold of a log on any sequence of events: no panic, and a refused event changes nothing.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod moves;
#[path = "recorded/mod.rs"]
mod recorded;

use moves::*;
use proptest::prelude::*;
use recorded::{BEGAN, Recording, events, run};
use serde_json::json;
use tracegate_core::{
    event::Event,
    fact::Fact,
    ids::{ActionId, SegmentNo, Seq, SpanId, Timestamp},
    state::RunState,
};

/// One event of each kind that matters to the fold, and a few that do not.
fn templates() -> Vec<Fact> {
    let mut log = Recording::new();
    begin(&mut log);
    observe(&mut log);
    ask_for(&mut log, 1);
    review(&mut log, "allow");
    review(&mut log, "deny");
    execute(&mut log);
    executed(&mut log);
    settle(&mut log);
    request(&mut log);
    log.push("user.question", &json!({"question": "q1", "text": "?"}));
    for kind in ["task", "answer", "retry_feedback"] {
        message(&mut log, kind, Some("q1"));
    }
    for ruling in ["complete", "push_back", "fail"] {
        rule(&mut log, ruling);
    }
    for after in ["running", "completed", "failed", "waiting_for_user"] {
        status(&mut log, after);
    }
    verify(&mut log);
    log.push("moon.rose", &json!({}));
    log.push(
        "agent.step.finished",
        &json!({"healed": true, "end_ts": "2026-11-30T12:00:00Z", "error": {"type": "process_killed"}}),
    );
    end_run(&mut log, "completed", "completed");
    end_run(&mut log, "failed", "max_steps");
    let recorded = events().into_iter().map(|event| event.fact);
    log.events
        .into_iter()
        .map(|event| event.fact)
        .chain(recorded)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_sequence_of_events_panics_and_a_refused_one_changes_nothing(
        picks in proptest::collection::vec((any::<u16>(), 0_u64..4, 0_u8..6, 0_u8..6, 0_u8..12), 1..120)
    ) {
        let templates = templates();
        let span = |pick: u8| (pick > 0).then(|| SpanId::from_bytes([pick; 8]));
        let mut log = Recording::new();
        begin(&mut log);
        let mut kept = log.events;
        kept[1].span = span(1);
        let mut state = RunState::fold(&kept).unwrap();
        for (pick, action, at, parent, skip) in picks {
            let fact = templates[usize::from(pick) % templates.len()].clone();
            let seq = Seq(state.seq.0 + u64::from(skip != 0));
            let mut event = Event::new(&run(), seq, SegmentNo(1), Timestamp(BEGAN + seq.0), seq.0, fact);
            event.action = (action > 0).then_some(ActionId(if skip > 6 { state.actions + 1 } else { action }));
            event.span = span(at);
            event.parent = span(parent);
            let before = state.clone();
            match state.apply(&event) {
                Ok(()) => kept.push(event),
                Err(_) => prop_assert_eq!(&state, &before),
            }
            prop_assert!(state.open_actions.keys().all(|id| id.0 >= 1 && id.0 <= state.actions));
            prop_assert_eq!(state.seq, Seq(kept.len() as u64));
        }
        // Live equals resumed, from the events and from the cache.
        prop_assert_eq!(&RunState::fold(&kept).unwrap(), &state);
        let json = serde_json::to_string(&state).unwrap();
        prop_assert_eq!(&serde_json::from_str::<RunState>(&json).unwrap(), &state);
    }
}
