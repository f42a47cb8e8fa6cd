//! The seed's steps: what was observed before and after each action, wherever in the log it stands.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "recorded/mod.rs"]
mod recorded;

use recorded::Recording;
use serde_json::json;
use tracegate_core::{
    event::Event,
    ids::{ActionId, Seq},
    steps::{ActionStep, ActionSteps, Reading, UnknownAction, action_steps},
};

/// Builds a log from words: `o` an observation of the workspace, `aN` an action, `rN` something observed of it,
/// `t` the task, `f` feedback to the agent, `x` anything else. Event numbers are word numbers, from 1.
fn log(words: &str) -> Vec<Event> {
    let mut log = Recording::new();
    for word in words.split_whitespace() {
        let (kind, number) = word.split_at(1);
        log.action = number.parse().ok();
        match kind {
            "o" => log.push("observation", &json!({"kind": "environment", "phase": "before"})),
            "a" => log.push(
                "action",
                &json!({"tool": "shell", "args": {}, "call_id": "c", "index": 0, "description": ""}),
            ),
            "r" => log.push(
                "observation",
                &json!({"kind": "tool_output", "phase": "after", "outcome": "ok"}),
            ),
            "t" => log.push("user.message", &json!({"kind": "task", "content": "x"})),
            "f" => log.push("user.message", &json!({"kind": "retry_feedback", "content": "x"})),
            _ => log.push("status.changed", &json!({"status": "running"})),
        };
    }
    log.events
}

fn step(action: Option<(u64, u64)>, before: &[u64], after: &[u64]) -> ActionStep {
    let seqs = |numbers: &[u64]| numbers.iter().copied().map(Seq).collect();
    ActionStep {
        action: action.map(|(id, seq)| (ActionId(id), Seq(seq))),
        before: seqs(before),
        after: seqs(after),
        late: Vec::new(),
        late_before: Vec::new(),
    }
}

fn check(words: &str, steps: Vec<ActionStep>) {
    let wanted = ActionSteps {
        steps,
        problems: Vec::new(),
    };
    for reading in [Reading::Strict, Reading::Salvage] {
        assert_eq!(action_steps(&log(words), reading), Ok(wanted.clone()), "{words}");
    }
}

#[test]
fn each_action_has_what_was_observed_before_and_after_it() {
    check("", Vec::new());
    check("t x x", Vec::new());
    check(
        "t o a1 r1 o a2 r2",
        vec![step(Some((1, 3)), &[2], &[4]), step(Some((2, 6)), &[5], &[7])],
    );
    check(
        "o a1 x r1 r1 f a2 r2",
        vec![step(Some((1, 2)), &[1], &[4, 5]), step(Some((2, 7)), &[6], &[8])],
    );
    check("a1", vec![step(Some((1, 1)), &[], &[])]);
}

#[test]
fn a_late_observation_stands_where_it_belongs_and_where_it_appeared() {
    let mut first = step(Some((1, 2)), &[1], &[3, 7]);
    first.late = vec![Seq(7)];
    let mut third = step(Some((3, 8)), &[], &[]);
    third.late_before = vec![Seq(7)];
    check(
        "o a1 r1 o a2 r2 r1 a3",
        vec![first, step(Some((2, 5)), &[4], &[6]), third],
    );
}

#[test]
fn an_observation_before_the_next_action_is_not_late() {
    check(
        "a1 o r1 a2 r2",
        vec![step(Some((1, 1)), &[], &[3]), step(Some((2, 4)), &[2], &[5])],
    );
}

#[test]
fn a_late_observation_after_the_last_action_is_kept_at_its_action() {
    let mut first = step(Some((1, 1)), &[], &[2, 5]);
    first.late = vec![Seq(5)];
    check(
        "a1 r1 a2 r2 r1",
        vec![first.clone(), step(Some((2, 3)), &[], &[4])],
    );
    // With a trailing step it is shown there as well.
    let mut tail = step(None, &[6], &[]);
    tail.late_before = vec![Seq(5)];
    check(
        "a1 r1 a2 r2 r1 o",
        vec![first, step(Some((2, 3)), &[], &[4]), tail],
    );
}

#[test]
fn what_was_observed_after_the_last_action_is_a_step_of_its_own() {
    check(
        "o a1 r1 o f",
        vec![step(Some((1, 2)), &[1], &[3]), step(None, &[4, 5], &[])],
    );
    check("t o", vec![step(None, &[2], &[])]);
}

#[test]
fn the_calls_of_one_reply_keep_their_results_apart() {
    // Three calls in a row, results in another order: the first two results come after a later call.
    let mut first = step(Some((1, 2)), &[1], &[6]);
    first.late = vec![Seq(6)];
    let mut second = step(Some((2, 3)), &[], &[5]);
    second.late = vec![Seq(5)];
    let third = step(Some((3, 4)), &[], &[7]);
    let mut fourth = step(Some((4, 9)), &[8], &[10]);
    fourth.late_before = vec![Seq(5), Seq(6)];
    check("o a1 a2 a3 r2 r1 r3 o a4 r4", vec![first, second, third, fourth]);
}

#[test]
fn an_observation_before_its_action_is_kept_at_its_action() {
    check("r1 a1 r1", vec![step(Some((1, 2)), &[], &[1, 3])]);
}

#[test]
fn an_observation_of_an_unknown_action_is_an_error_or_a_listed_problem() {
    let events = log("a1 r1 r7 a2 r9 r2");
    let unknown = |seq, action| UnknownAction {
        seq: Seq(seq),
        action: ActionId(action),
    };
    let refused = action_steps(&events, Reading::Strict).unwrap_err();
    assert_eq!(refused, unknown(3, 7));
    assert_eq!(
        refused.to_string(),
        "event 3 is about action a7, which the log does not hold"
    );
    let salvaged = action_steps(&events, Reading::Salvage).unwrap();
    let wanted = ActionSteps {
        steps: vec![step(Some((1, 1)), &[], &[2]), step(Some((2, 4)), &[], &[6])],
        problems: vec![unknown(3, 7), unknown(5, 9)],
    };
    assert_eq!(salvaged, wanted);
}
