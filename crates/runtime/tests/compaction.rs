//! A conversation that outgrows the model's window: old turns give way to a summary, what the user said stays, the log grows linearly.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at the first surprise and picks the facts that it is about"
)]

mod rig;

use rig::{Rig, answer, calls};
use serde_json::json;
use tracegate::{
    context::estimate_tokens,
    conversation::{Message, rebuild},
    resume::{Answer, Changes},
};
use tracegate_core::{
    fact::{
        Data as _,
        model::{ContextCompacted, Role},
        run::{Durability, OnAsk},
    },
    ids::QuestionId,
    stop::StopReason,
};

/// A window that a few readings of the long file fill.
const WINDOW: u64 = 16_000;

fn rig() -> Rig {
    let mut rig = Rig::new();
    rig.config.goal = "Read the long file again and again".to_owned();
    rig.config.settings.window = WINDOW;
    rig.config.settings.durability = Durability::Kill;
    rig.config.settings.on_ask = OnAsk::Suspend;
    rig.config.limits.max_steps = 1000;
    rig.write("long.txt", &"a line that is long enough\n".repeat(200));
    rig
}

fn read() -> String {
    calls(&[("read_file", json!({"path": "long.txt"}))])
}

fn tokens(request: &[Message]) -> u64 {
    request
        .iter()
        .map(|message| estimate_tokens(&message.content))
        .sum()
}

fn compactions(rig: &Rig) -> Vec<ContextCompacted> {
    rig.events()
        .iter()
        .filter_map(|event| ContextCompacted::of(&event.fact).cloned())
        .collect()
}

#[test]
fn every_request_fits_the_window_and_is_given_back_by_the_log() {
    let rig = rig();
    let cassette = [read().repeat(40), answer("Read.")].concat();
    assert_eq!(rig.run(&cassette).stop_reason, StopReason::Completed);
    let events = rig.events();
    let requests = rebuild(&events, rig.store.artifacts()).unwrap();
    assert_eq!(requests.len(), 41);
    for request in &requests {
        assert!(tokens(request) <= WINDOW, "{}", tokens(request));
        assert_eq!(request[0].role, Role::System);
        assert_eq!(request[1].content, "Read the long file again and again");
        // A result stands behind the message that asked for it, whatever was left out before.
        for (at, message) in request.iter().enumerate() {
            if let Some(action) = message.action {
                let asked = request[..at].iter().any(|before| before.calls.contains(&action));
                assert!(asked, "{action} has no call");
            }
        }
    }
    let done = compactions(&rig);
    assert!((3..20).contains(&done.len()), "{}", done.len());
    let last = requests.last().unwrap();
    assert!(
        last[2].content.contains("outgrew the model's window"),
        "{}",
        last[2].content
    );
    assert!(
        last[2].content.contains("- a1 gave 200 lines"),
        "{}",
        last[2].content
    );
}

#[test]
fn what_the_user_answered_is_never_left_out() {
    let rig = rig();
    let ask = calls(&[("ask_user", json!({"question": "Which colour\nshould it be?"}))]);
    let cassette = [ask, read().repeat(40), answer("Read.")].concat();
    assert_eq!(rig.run(&cassette).stop_reason, StopReason::WaitingForUser);
    let said = Changes {
        answer: Some((QuestionId(1), Answer::Text("blue\n- as the sea".to_owned()))),
        ..Changes::default()
    };
    assert_eq!(
        rig.resume(&cassette, &said).unwrap().stop_reason,
        StopReason::Completed
    );
    let requests = rebuild(&rig.events(), rig.store.artifacts()).unwrap();
    let wanted = "The user was asked: Which colour\nshould it be?\nThe user answered: blue\n- as the sea";
    for request in requests.iter().filter(|request| request.len() > 3) {
        let whole: String = request.iter().map(|message| message.content.as_str()).collect();
        let summed_up = request[2].content.contains("outgrew the model's window");
        assert!(whole.contains(if summed_up {
            wanted
        } else {
            "The user answers: blue"
        }));
    }
    // It is not said once more with each compaction.
    let last = requests.last().unwrap();
    assert_eq!(last[2].content.matches(wanted).count(), 1);
}

#[test]
fn a_run_that_was_cut_off_between_compactions_goes_on_with_the_same_conversation() {
    let cassette = [read().repeat(30), answer("Read.")].concat();
    let whole = rig();
    whole.run(&cassette);
    let mut stopped = rig();
    // A limit cuts it off after each of these steps; each resume compacts on from what the log says.
    stopped.config.limits.max_steps = 7;
    stopped.run(&cassette);
    for steps in [8, 9, 17, 30, 1000] {
        let mut more = Changes::default();
        more.limits.max_steps = Some(steps);
        stopped.resume(&cassette, &more).unwrap();
    }
    let summaries = |rig: &Rig| -> Vec<(u64, u64, String)> {
        let text = |data: ContextCompacted| {
            (
                data.keep,
                data.dropped,
                rig.store.artifacts().text(&data.summary).unwrap(),
            )
        };
        compactions(rig).into_iter().map(text).collect()
    };
    assert_eq!(summaries(&stopped), summaries(&whole));
    let requests = |rig: &Rig| rebuild(&rig.events(), rig.store.artifacts()).unwrap();
    assert_eq!(requests(&stopped), requests(&whole));
}

#[test]
fn the_log_grows_by_the_same_amount_for_each_step() {
    let size = |steps: usize| {
        let rig = rig();
        rig.run(&[read().repeat(steps), answer("Read.")].concat());
        rig.log_bytes().len()
    };
    let (first, second, third) = (size(20), size(40), size(60));
    let (one, two) = (second - first, third - second);
    assert!(
        one.abs_diff(two) * 20 < one,
        "20 steps take {one} bytes, 20 more {two}"
    );
}

#[test]
fn a_compaction_that_replaces_what_was_never_sent_is_refused() {
    let rig = rig();
    rig.run(&[read().repeat(10), answer("Read.")].concat());
    let mut events = rig.events();
    let damaged = events.iter_mut().find_map(|event| match &mut event.fact {
        tracegate_core::fact::Fact::ContextCompacted(data) => Some(data),
        _ => None,
    });
    damaged.unwrap().dropped = 1000;
    let error = rebuild(&events, rig.store.artifacts()).unwrap_err().to_string();
    assert!(error.contains("replaces 1000 messages"), "{error}");
}
