//! The fold of a salvaged log: whatever was lost, the rest folds; what is recorded later is checked as ever, and no effect is done twice.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod moves;
#[path = "recorded/mod.rs"]
mod recorded;

use moves::*;
use recorded::{Recording, digest, run};
use serde_json::json;
use std::collections::BTreeSet;
use tracegate_core::{
    event::{Event, LineError},
    fact::{Data as _, Fact, SpanKind, log::LogGap, model::ModelCompleteStarted, tool::ToolExecuteStarted},
    ids::{ActionId, Chain, SegmentNo, Seq, SpanId, Timestamp},
    span::project,
    state::{Progress, RunState, Violation},
};

/// A run of three steps with two actions each, cut off in its second step, gone on with, asking once, completed.
fn events() -> Vec<Event> {
    let mut log = Recording::new();
    begin(&mut log);
    message(&mut log, "task", None);
    let mut asked = 0;
    for step in 1..=3 {
        log.step = Some(step);
        log.start("agent.step", json!({}));
        observe(&mut log);
        let told = |action: u64| json!({"role": "tool", "content": "", "action": format!("a{action}")});
        let mut append = vec![json!({"role": "user", "content": "x"})];
        if asked > 0 {
            let calls = [asked - 1, asked].map(|action| format!("a{action}"));
            append.push(json!({"role": "assistant", "content": "", "calls": calls}));
            append.extend([told(asked - 1), told(asked)]);
        }
        log.start(
            "model.complete",
            json!({"provider": "scripted", "model": "c", "keep": 0, "append": append, "digest": digest(),
                "tools_digest": digest()}),
        );
        log.finish(
            json!({"reply_kind": "tool_calls", "tool_calls": 2, "reply": "", "text": "",
            "finish_reason": "tool_use", "usage": {}, "attempts": 1}),
        );
        for action in 1..=2 {
            asked += 1;
            ask_for(&mut log, asked);
            review(&mut log, "allow");
            execute(&mut log);
            if (step, action) == (2, 1) {
                // The process died here; the next one closes what was open.
                let cut = json!({"healed": true, "end_ts": "2026-11-30T12:00:00Z", "error": {"type": "process_killed"}});
                log.finish(cut.clone());
                log.action = None;
                log.finish(cut.clone());
                log.finish(cut);
                log.segment = 2;
                log.start("segment", json!({"pid": 2, "version": "0.1.0"}));
                log.events.last_mut().unwrap().parent = root(&log);
                log.action = Some(asked);
                settle(&mut log);
                log.start("agent.step", json!({}));
                log.push("user.question", &json!({"question": "q1", "text": "?"}));
                message(&mut log, "answer", Some("q1"));
            } else {
                executed(&mut log);
                settle(&mut log);
            }
        }
        log.start("checkpoint.save", json!({}));
        log.finish(json!({"covers": 1, "bytes": 1}));
        log.finish(json!({"actions": 2}));
    }
    rule(&mut log, "complete");
    end_segment(&mut log, "completed", "completed");
    end_run(&mut log, "completed", "completed");
    verify(&mut log);
    RunState::fold(&log.events).unwrap();
    log.events
}

fn root(log: &Recording) -> Option<SpanId> {
    log.events
        .iter()
        .find(|event| event.fact.name() == "segment.started")
        .and_then(|event| event.span)
}

fn gap(from: u64, to: u64, until: u64) -> LogGap {
    LogGap {
        from: Seq(from),
        to: Seq(to),
        offset: 0,
        bytes: 0,
        why: "test".to_owned(),
        until: Seq(until),
        superseded: None,
    }
}

/// The event that stands for `from` to `to` in a log that ends at `until`.
fn marked(from: u64, to: u64, until: u64) -> Event {
    let ts = Timestamp(recorded::BEGAN + from);
    Event::new(
        &run(),
        Seq(from),
        SegmentNo(1),
        ts,
        0,
        gap(from, to, until).into(),
    )
}

/// `all` without the events `from` to `to`, which a gap stands for.
fn without(all: &[Event], from: usize, to: usize) -> Vec<Event> {
    let mut kept = all[..from - 1].to_vec();
    kept.push(marked(from as u64, to as u64, all.len() as u64));
    kept.extend_from_slice(&all[to..]);
    kept
}

#[test]
fn any_part_of_a_log_can_be_lost_and_the_rest_folds() {
    let all = events();
    let end = all.len();
    let mut folds = 0;
    for from in 1..=end {
        for to in from..=end {
            let kept = without(&all, from, to);
            let mut state = RunState::default();
            for event in &kept {
                if let Err(violation) = state.apply(event) {
                    panic!("events {from} to {to} are lost: {violation}");
                }
                // What is not known to be settled may have been done: it is never taken for something still to do.
                let lost = event.through().0 >= from as u64;
                let waiting = state.open_actions.iter().find(|(action, progress)| {
                    let asked = kept.iter().any(|event| {
                        event.seq.0 > to as u64
                            && event.action == Some(**action)
                            && matches!(event.fact, Fact::Action(_))
                    });
                    lost && !asked
                        && state.lost.as_ref().is_some_and(|lost| lost.asked >= action.0)
                        && matches!(progress, Progress::Asked)
                });
                assert_eq!(waiting, None, "events {from} to {to} are lost");
            }
            assert_eq!(state.seq, Seq(end as u64), "events {from} to {to} are lost");
            let json = serde_json::to_string(&state).unwrap();
            assert_eq!(serde_json::from_str::<RunState>(&json).unwrap(), state);
            project(&run(), &kept);
            folds += 1;
        }
    }
    println!("gaps: {folds} of {} fold", end * (end + 1) / 2);
}

#[test]
fn a_run_goes_on_only_if_no_action_can_be_among_what_is_lost() {
    let all = events();
    let end = all.len();
    let (mut on, mut refused) = (0, 0);
    for from in 1..=end {
        for to in from..=end {
            let kept = without(&all, from, to);
            let state = RunState::fold(&kept).unwrap();
            let lost = &all[from - 1..to];
            let action = lost.iter().any(|event| matches!(event.fact, Fact::Action(_)));
            let later_request = all[to..]
                .iter()
                .any(|event| ModelCompleteStarted::of(&event.fact).is_some());
            match state.check_whole() {
                Ok(()) => {
                    assert!(later_request && from > 1, "{from} to {to}");
                    // The ids of lost actions are known from what is left, so they cannot be given out again.
                    let named: BTreeSet<ActionId> = kept.iter().filter_map(|event| event.action).collect();
                    let known = named.last().map_or(0, |action| action.0);
                    assert!(!action || state.actions >= known, "{from} to {to}");
                    on += 1;
                }
                Err(violation) => {
                    let named = Violation::Lost {
                        from: Seq(from as u64),
                        to: Seq(to as u64),
                    };
                    assert_eq!(violation, named);
                    // And then nothing but notes about the record is taken.
                    let next = |fact: Fact| {
                        let seq = Seq(end as u64 + 1);
                        Event::new(&run(), seq, SegmentNo(2), Timestamp(u64::MAX), 0, fact)
                    };
                    let resumed = all
                        .iter()
                        .find(|event| event.fact.name() == "segment.started")
                        .unwrap();
                    assert_eq!(state.check(&next(resumed.fact.clone())), Err(named));
                    refused += 1;
                }
            }
        }
    }
    assert!(on > 0 && refused > 0);
    println!("gaps: {on} can go on, {refused} are refused");
}

#[test]
fn what_is_recorded_after_a_salvage_is_checked_as_ever() {
    let all = events();
    let end = all.len() as u64;
    let begun = all
        .iter()
        .position(|event| ToolExecuteStarted::of(&event.fact).is_some())
        .unwrap();
    // Something small is lost early, and a request follows: the run may go on.
    let state = RunState::fold(&without(&all, 3, 3)).unwrap();
    assert_eq!(state.check_whole(), Ok(()));
    let mut again = all[begun].clone();
    again.seq = Seq(end + 1);
    let strange = SpanId::from_bytes([9; 8]);
    again.span = Some(strange);
    assert!(state.check(&again).is_err(), "its parent is not open");
    again.parent = state.root;
    assert!(state.check(&again).is_err(), "it was not permitted");
    let mut end_of_nothing = all
        .iter()
        .find(|event| matches!(event.fact.edge(), Some((SpanKind::CheckpointSave, _))))
        .unwrap()
        .clone();
    end_of_nothing.seq = Seq(end + 1);
    end_of_nothing.parent = Some(strange);
    assert!(state.check(&end_of_nothing).is_err());
}

#[test]
fn a_gap_whose_numbers_do_not_fit_is_no_event() {
    let bad = [
        (2, 3, 1, 9),
        (2, 2, 1, 9),
        (2, 2, 9, 8),
        (2, 2, 3, u64::MAX),
        (2, 1, 3, 9),
        (0, 0, 0, 0),
    ];
    for (at, from, to, until) in bad {
        let mut event = marked(at, at, at);
        event.fact = gap(from, to, until).into();
        let chain = Chain::genesis(&run());
        let (line, _) = event.to_line(chain).unwrap();
        let read = Event::from_line(line.trim_end(), chain, Seq(at));
        let refused = matches!(read, Err(LineError::BrokenGap { .. }));
        assert!(refused || at == 0, "{at}: {from} to {to} until {until}: {read:?}");
        let state = RunState {
            seq: Seq(at.saturating_sub(1)),
            ..RunState::default()
        };
        let refused = matches!(
            state.check(&event),
            Err(Violation::Gap { .. } | Violation::Seq { .. })
        );
        assert!(refused, "{at}: {from} to {to} until {until}");
    }
}
