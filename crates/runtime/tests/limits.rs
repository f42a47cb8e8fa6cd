//! Limits: each is a stop of its own, names what reached it, holds in the middle of an action, and can be raised later.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at the first surprise and picks the facts that it is about"
)]

mod rig;

use rig::{Rig, START, answer, block_on, calls};
use serde_json::json;
use tracegate::{
    model::{Model as _, scripted::ScriptedModel},
    resume::{Changes, NewLimits, ResumeError},
    session::{Ending, Session},
    world::{FixedWorld, Sleeping, World},
};
use tracegate_core::{
    fact::{
        Fact,
        run::{Limits, Prices},
    },
    ids::Timestamp,
    stop::StopReason,
};

/// Lists files, for 10 tokens in and 2 out, each time.
fn lists(times: usize) -> String {
    let reply = json!({"reply": {"text": "", "tool_calls": [{"name": "list_files", "input": {}}],
        "usage": {"input": 10, "output": 2}}});
    format!("{reply}\n").repeat(times)
}

fn reached(rig: &Rig) -> Vec<(String, u64, u64)> {
    let events = rig.events().into_iter();
    events
        .filter_map(|event| match event.fact {
            Fact::LimitReached(data) => Some((data.which, data.value, data.limit)),
            _ => None,
        })
        .collect()
}

fn check(change: impl FnOnce(&mut Limits), stop: StopReason, wanted: (&str, u64, u64), says: &str) {
    let mut rig = Rig::new();
    rig.config.goal = "Look around".to_owned();
    // A dollar a token in, ten a token out.
    rig.config.settings.prices = Some(Prices {
        input: 1_000_000_000_000,
        output: 10_000_000_000_000,
        cache_read: 0,
        cache_write: 0,
    });
    change(&mut rig.config.limits);
    let ending = rig.run(&lists(20));
    assert_eq!((ending.stop_reason, ending.evidence.as_str()), (stop, says));
    let (which, value, limit) = wanted;
    assert_eq!(reached(&rig), [(which.to_owned(), value, limit)]);
}

#[test]
fn each_limit_is_a_stop_of_its_own_and_names_value_and_limit() {
    let exhausted = StopReason::BudgetExhausted;
    check(
        |limits| limits.max_steps = 3,
        StopReason::MaxSteps,
        ("steps", 3, 3),
        "the limit of 3 steps is reached",
    );
    check(
        |limits| limits.max_tokens = Some(30),
        exhausted,
        ("tokens", 36, 30),
        "the limit of 30 tokens is reached: 36 were used",
    );
    check(
        |limits| limits.max_cost = Some(60_500_000),
        exhausted,
        ("cost", 90_000_000, 60_500_000),
        "the limit of 60.5 USD is reached: 90 were spent",
    );
}

/// A world in which every time that somebody waits for has passed already.
#[derive(Debug)]
struct Impatient(FixedWorld);

impl World for Impatient {
    fn wall(&self) -> Timestamp {
        self.0.wall()
    }

    fn monotonic_ns(&self) -> u64 {
        self.0.monotonic_ns()
    }

    fn random(&self) -> [u8; 32] {
        self.0.random()
    }

    fn pid(&self) -> u32 {
        self.0.pid()
    }

    fn sleep(&self, _ms: u64) -> Sleeping {
        Box::pin(std::future::ready(()))
    }
}

fn run_impatiently(rig: &Rig, cassette: &str) -> Ending {
    let model = ScriptedModel::parse("cassette.jsonl", cassette).unwrap();
    let around = rig.around(&rig.disk, Box::new(Impatient(FixedWorld::new(START))));
    let session = Session::start(around, &rig.run, &rig.config, model.info()).unwrap();
    block_on(rig.drive(session, &model)).unwrap()
}

#[test]
fn time_that_runs_out_ends_a_command_that_would_go_on_for_ever() {
    let mut rig = Rig::new();
    rig.config.limits.max_ms = Some(3_600_000);
    let ending = run_impatiently(&rig, &calls(&[("shell", json!({"command": "sleep 1000000"}))]));
    assert_eq!(ending.stop_reason, StopReason::BudgetExhausted);
    assert_eq!(reached(&rig), [("time".to_owned(), 3_600_000, 3_600_000)]);
    let state = rig.state();
    assert!(state.open_spans.is_empty() && state.open_actions.is_empty() && state.finished);
    // Without the limit nobody waits for the time to run out.
    let rig = Rig::new();
    let ending = run_impatiently(&rig, &lists(1));
    assert_eq!(ending.stop_reason, StopReason::ModelError);
}

#[test]
fn a_run_at_its_limit_goes_on_with_a_higher_one_and_only_with_that() {
    let cassette = [lists(6), answer("Looked.")].concat();
    let more = |limits: NewLimits| Changes {
        limits,
        ..Changes::default()
    };
    let mut rig = Rig::new();
    rig.config.goal = "Look around".to_owned();
    rig.config.limits.max_tokens = Some(20);
    rig.run(&cassette);
    let check = |limits: NewLimits, wanted: &str| {
        let refused = rig.resume(&cassette, &more(limits)).unwrap_err();
        assert!(matches!(refused, ResumeError::Exhausted { .. }));
        assert_eq!(refused.to_string(), wanted);
    };
    let tokens = |max: u64| NewLimits {
        max_tokens: Some(max),
        ..NewLimits::default()
    };
    check(NewLimits::default(), "the run reached its limit of 20 tokens");
    check(tokens(24), "the run reached its limit of 24 tokens");
    let steps = NewLimits {
        max_steps: Some(2),
        ..tokens(100)
    };
    check(steps, "the run reached its limit of 2 steps");
    assert_eq!(
        rig.resume(&cassette, &more(tokens(40))).unwrap().stop_reason,
        StopReason::BudgetExhausted
    );
    assert_eq!(
        rig.resume(&cassette, &more(tokens(1000))).unwrap().stop_reason,
        StopReason::Completed
    );
    // What was used before counts on: 24, then 48 of 40.
    let tokens = |value, limit| ("tokens".to_owned(), value, limit);
    assert_eq!(reached(&rig), [tokens(24, 20), tokens(48, 40)]);
}
