//! A workspace that is half-way through something: the run waits within its limit, then goes on and says so.

use crate::e2e::{
    place::{Place, QUESTION, answers},
    record::Record,
};
use tracegate_core::fact::{Fact, run::ReadinessWaited};

fn waited(record: &Record) -> Vec<&ReadinessWaited> {
    let facts = record.events.iter().map(|event| &event.fact);
    facts
        .filter_map(|fact| {
            if let Fact::ReadinessWaited(data) = fact {
                Some(data)
            } else {
                None
            }
        })
        .collect()
}

#[test]
fn a_lock_that_stays_is_waited_for_and_recorded() {
    for (timeout, least, most) in [("0", 0, 0), ("1", 1000, 10_000)] {
        let place = Place::new();
        place.file(".git/index.lock", "");
        let (_, record) = place.recorded(QUESTION, &[answers("milk")], &["--ready-timeout", timeout], 0);
        let waits = waited(&record);
        assert_eq!(waits.len(), 1);
        assert!(waits[0].degraded);
        assert_eq!(waits[0].conditions, [".git/index.lock"]);
        assert!(
            (least..=most).contains(&waits[0].waited_ms),
            "{}",
            waits[0].waited_ms
        );
    }
}

#[test]
fn a_ready_workspace_is_not_waited_for() {
    let place = Place::new();
    place.file(".git/HEAD", "ref: refs/heads/main\n");
    let (_, record) = place.recorded(QUESTION, &[answers("milk")], &[], 0);
    assert!(waited(&record).is_empty());
}
