//! State in memory is the fold of the log: for every beginning of a log, and for what a run leaves on disk.

use crate::support::Demo;
use tracegate_core::{ids::Seq, state::RunState};

#[test]
fn every_beginning_of_a_log_folds() {
    for demo in Demo::ALL {
        let events = demo.shared().events();
        let mut live = RunState::default();
        for (at, event) in events.iter().enumerate() {
            live.apply(event).unwrap();
            let folded = RunState::fold(&events[..=at]).unwrap();
            assert_eq!(folded, live, "{demo:?}: the first {} events", at + 1);
            assert_eq!(folded.seq, Seq(at as u64 + 1));
        }
    }
}

#[test]
fn a_state_that_was_stored_goes_on_as_the_one_in_memory_would() {
    for demo in Demo::ALL {
        let events = demo.shared().events();
        let whole = RunState::fold(&events).unwrap();
        for at in 0..events.len() {
            let (before, after) = events.split_at(at);
            let stored = serde_json::to_string(&RunState::fold(before).unwrap()).unwrap();
            let mut resumed: RunState = serde_json::from_str(&stored).unwrap();
            after.iter().for_each(|event| resumed.apply(event).unwrap());
            assert_eq!(resumed, whole, "{demo:?}: stored after {at} events");
        }
    }
}

#[test]
fn the_state_on_disk_is_the_fold_of_the_whole_log() {
    for demo in Demo::ALL {
        let recorded = demo.shared();
        let [run] = &recorded.runs()[..] else {
            panic!("{demo:?} records one run");
        };
        let stored: RunState = run.read_json(&run.state()).unwrap().unwrap();
        assert_eq!(stored, RunState::fold(&recorded.events()).unwrap(), "{demo:?}");
    }
}
