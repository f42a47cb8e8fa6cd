//! The seed's steps: what was observed before and after each action, wherever in the log it stands.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

#[path = "recorded/mod.rs"]
mod recorded;

use proptest::prelude::*;
use recorded::Recording;
use serde_json::{Value, json};
use tracegate_core::{
    event::Event,
    ids::{ActionId, Digest, Seq},
    steps::{ActionStep, ActionSteps, Pre, Reading, StepProblem, action_steps},
};

/// Builds a log from words: `o` an observation of the workspace, `aN` an action, `rN` something observed of it, `nN` its refusal,
/// `mN` a message that names it, `sN` a call inside it, `t` the task, `f` feedback to the agent, `x` anything else.
/// `=x` behind an observation is the state of the workspace. Event numbers are word numbers, from 1.
fn log(words: &str) -> Vec<Event> {
    let mut log = Recording::new();
    for word in words.split_whitespace() {
        let (word, state) = word
            .split_once('=')
            .map_or((word, None), |(word, state)| (word, Some(state)));
        let (kind, number) = word.split_at(1);
        log.action = number.parse().ok();
        let observed = |mut data: Value| {
            if let Some(state) = state {
                data["workspace"] =
                    json!({"digest": digest(state), "files": 1, "changed": [], "changed_total": 0});
            }
            data
        };
        match kind {
            "o" => log.push(
                "observation",
                &observed(json!({"kind": "environment", "phase": "before"})),
            ),
            "a" => log.push(
                "action",
                &json!({"tool": "shell", "args": {}, "call_id": "c", "index": 0, "description": ""}),
            ),
            "r" => log.push(
                "observation",
                &observed(json!({"kind": "tool_output", "phase": "after", "outcome": "ok"})),
            ),
            "n" => log.push(
                "observation",
                &json!({"kind": "tool_output", "phase": "after", "outcome": "refused"}),
            ),
            "s" => log.push(
                "subcall",
                &json!({"tool": "reader", "request": "q", "reply": "a"}),
            ),
            "t" => log.push("user.message", &json!({"kind": "task", "content": "x"})),
            "f" | "m" => log.push("user.message", &json!({"kind": "retry_feedback", "content": "x"})),
            _ => log.push("status.changed", &json!({"status": "running"})),
        };
    }
    log.events
}

fn digest(state: &str) -> Digest {
    Digest::of(state.as_bytes())
}

fn step(action: Option<(u64, u64)>, before: &[u64], after: &[u64]) -> ActionStep {
    let seqs = |numbers: &[u64]| numbers.iter().copied().map(Seq).collect();
    ActionStep {
        action: action.map(|(id, seq)| (ActionId(id), Seq(seq))),
        before: seqs(before),
        after: seqs(after),
        ..ActionStep::default()
    }
}

fn late(mut step: ActionStep, seqs: &[u64]) -> ActionStep {
    step.late = seqs.iter().copied().map(Seq).collect();
    step
}

fn shows(mut step: ActionStep, seqs: &[u64]) -> ActionStep {
    step.late_before = seqs.iter().copied().map(Seq).collect();
    step
}

/// Checks the steps of a log in which everything fits.
fn check(words: &str, steps: Vec<ActionStep>) {
    let wanted = ActionSteps {
        steps,
        problems: Vec::new(),
    };
    for reading in [Reading::Strict, Reading::Salvage] {
        assert_eq!(action_steps(&log(words), reading), Ok(wanted.clone()), "{words}");
    }
}

/// Checks the steps of a log in which something does not fit.
fn check_salvaged(words: &str, steps: Vec<ActionStep>, problems: Vec<StepProblem>) {
    let events = log(words);
    let first = problems.first().unwrap().clone();
    assert_eq!(action_steps(&events, Reading::Strict), Err(first), "{words}");
    let wanted = ActionSteps { steps, problems };
    assert_eq!(action_steps(&events, Reading::Salvage), Ok(wanted), "{words}");
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
    check(
        "o a1 r1 o a2 r2 r1 a3",
        vec![
            late(step(Some((1, 2)), &[1], &[3, 7]), &[7]),
            step(Some((2, 5)), &[4], &[6]),
            shows(step(Some((3, 8)), &[], &[]), &[7]),
        ],
    );
    // Two actions later, and two of them.
    check(
        "a1 o a2 o a3 r1 r2 a4",
        vec![
            late(step(Some((1, 1)), &[], &[6]), &[6]),
            late(step(Some((2, 3)), &[2], &[7]), &[7]),
            step(Some((3, 5)), &[4], &[]),
            shows(step(Some((4, 8)), &[], &[]), &[6, 7]),
        ],
    );
}

#[test]
fn late_needs_another_action_in_between() {
    check(
        "a1 o r1 a2 r2",
        vec![step(Some((1, 1)), &[], &[3]), step(Some((2, 4)), &[2], &[5])],
    );
    check(
        "a1 o f x r1",
        vec![step(Some((1, 1)), &[], &[5]), step(None, &[2, 3], &[])],
    );
}

#[test]
fn a_late_observation_after_the_last_action_is_kept_at_its_action() {
    let first = late(step(Some((1, 1)), &[], &[2, 5]), &[5]);
    check(
        "a1 r1 a2 r2 r1",
        vec![first.clone(), step(Some((2, 3)), &[], &[4])],
    );
    // With a trailing step it is shown there as well.
    check(
        "a1 r1 a2 r2 r1 o",
        vec![
            first,
            step(Some((2, 3)), &[], &[4]),
            shows(step(None, &[6], &[]), &[5]),
        ],
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
    check(
        "o a1 a2 a3 r2 r1 r3 o a4 r4",
        vec![
            late(step(Some((1, 2)), &[1], &[6]), &[6]),
            late(step(Some((2, 3)), &[], &[5]), &[5]),
            step(Some((3, 4)), &[], &[7]),
            shows(step(Some((4, 9)), &[8], &[10]), &[5, 6]),
        ],
    );
    // Two in a row without any result: both are steps, where Fara refuses to read the log ever again.
    check(
        "o a1 a2",
        vec![step(Some((1, 2)), &[1], &[]), step(Some((2, 3)), &[], &[])],
    );
}

#[test]
fn an_observation_before_its_action_is_kept_at_its_action() {
    check("r1 a1 r1", vec![step(Some((1, 2)), &[], &[1, 3])]);
    let mut second = step(Some((2, 4)), &[], &[2]);
    second.subcalls = [Seq(3)].into_iter().collect();
    check("a1 r2 s2 a2", vec![step(Some((1, 1)), &[], &[]), second]);
}

#[test]
fn a_message_that_names_an_action_is_observed_of_it() {
    check(
        "a1 m1 r1 a2 m1",
        vec![
            late(step(Some((1, 1)), &[], &[2, 3, 5]), &[5]),
            step(Some((2, 4)), &[], &[]),
        ],
    );
}

#[test]
fn a_call_inside_an_action_is_kept_at_it() {
    let mut first = step(Some((1, 2)), &[1], &[5]);
    first.subcalls = [Seq(3), Seq(4)].into_iter().collect();
    let mut second = step(Some((2, 6)), &[], &[]);
    second.subcalls = [Seq(7)].into_iter().collect();
    check("o a1 s1 s1 r1 a2 s2", vec![first, second]);
}

#[test]
fn an_observation_of_an_unknown_action_is_an_error_or_a_listed_problem() {
    let unknown = |seq, action| StepProblem::UnknownAction {
        seq: Seq(seq),
        action: ActionId(action),
    };
    check_salvaged(
        "a1 r1 r7 a2 r9 r2",
        vec![step(Some((1, 1)), &[], &[2]), step(Some((2, 4)), &[], &[6])],
        vec![unknown(3, 7), unknown(5, 9)],
    );
    check_salvaged("s3 m4", Vec::new(), vec![unknown(1, 3), unknown(2, 4)]);
    assert_eq!(
        unknown(3, 7).to_string(),
        "event 3 is about action a7, which the log does not hold"
    );
}

#[test]
fn a_repeated_action_id_takes_no_observation_from_the_first_action() {
    let repeated = StepProblem::RepeatedAction {
        seq: Seq(4),
        action: ActionId(1),
    };
    check_salvaged(
        "o a1 r1 a1 r1 a2 r1",
        vec![
            step(Some((1, 2)), &[1], &[3]),
            late(step(Some((1, 4)), &[], &[5, 7]), &[7]),
            step(Some((2, 6)), &[], &[]),
        ],
        vec![repeated.clone()],
    );
    assert_eq!(repeated.to_string(), "event 4 asks for action a1 a second time");
}

#[test]
fn an_action_without_an_id_is_listed_in_the_order_of_the_log() {
    let nameless = StepProblem::NoAction { seq: Seq(2) };
    let unknown = StepProblem::UnknownAction {
        seq: Seq(1),
        action: ActionId(7),
    };
    check_salvaged(
        "r7 a a1 s",
        vec![step(Some((1, 3)), &[], &[])],
        vec![unknown, nameless.clone(), StepProblem::NoAction { seq: Seq(4) }],
    );
    assert_eq!(
        nameless.to_string(),
        "event 2 does not say which action it is about"
    );
}

#[test]
fn the_relations_of_the_seed_follow_from_the_steps() {
    let steps = action_steps(&log("o a1 r1 o a2 r1 r2 o"), Reading::Strict).unwrap();
    let post: Vec<&[Seq]> = (0..4).map(|at| steps.previous_post(at)).collect();
    assert_eq!(post, [&[][..], &[Seq(3), Seq(6)], &[Seq(7)], &[]]);
    let pre: Vec<Pre<'_>> = (0..4).map(|at| steps.next_pre(at)).collect();
    let wanted = [
        Pre {
            main: &[Seq(4)],
            late: &[],
        },
        Pre {
            main: &[Seq(8)],
            late: &[Seq(6)],
        },
        Pre::default(),
        Pre::default(),
    ];
    assert_eq!(pre, wanted);
    assert_eq!(steps.next_pre(usize::MAX), Pre::default());
}

/// Checks the workspace around each action, and what follows from it.
fn check_changes(words: &str, wanted: &[(Option<&str>, Option<&str>, Option<bool>)]) {
    let steps = action_steps(&log(words), Reading::Salvage).unwrap().steps;
    let found: Vec<_> = steps
        .iter()
        .filter(|step| step.action.is_some())
        .map(|step| (step.workspace_before, step.workspace_after, step.changed()))
        .collect();
    let wanted: Vec<_> = wanted
        .iter()
        .map(|(before, after, changed)| (before.map(digest), after.map(digest), *changed))
        .collect();
    assert_eq!(found, wanted, "{words}");
}

#[test]
fn whether_a_step_changed_anything_is_known_where_somebody_looked_before_and_after() {
    let (a, b) = (Some("a"), Some("b"));
    check_changes(
        "o=a a1 r1=a o=a a2 r2=b",
        &[(a, a, Some(false)), (a, b, Some(true))],
    );
    // In one reply, the look after one action is the look before the next.
    check_changes("o=a a1 r1=b a2 r2=b", &[(a, b, Some(true)), (b, b, Some(false))]);
    // Nobody looked after it but before the next one, or at the end.
    check_changes("o=a a1 r1 o=b a2 r2", &[(a, b, Some(true)), (b, None, None)]);
    check_changes("o=a a1 r1 o=b", &[(a, b, Some(true))]);
    // The last own look counts; a later one that is not its own does not.
    check_changes("o=a a1 r1=a r1=b o=a", &[(a, b, Some(true))]);
    check_changes("o=a a1 o=a r1=b", &[(a, b, Some(true))]);
    // Nobody looked between two actions, or only late: which of them it was is not known.
    check_changes("o=a a1 r1 a2 r2=b", &[(a, None, None), (None, b, None)]);
    check_changes("o=a a1 a2 r1=b r2=b", &[(a, None, None), (None, b, None)]);
    // What was refused did nothing, so what was known before holds on.
    check_changes(
        "o=a a1 n1 a2 r2=b a3 n3 o=a",
        &[(a, a, Some(false)), (a, b, Some(true)), (b, b, Some(false))],
    );
    check_changes("a1 n1 a2 r2=b", &[(None, None, None), (None, b, None)]);
    check_changes("a1 r1", &[(None, None, None)]);
}

proptest! {
    #[test]
    fn every_observation_of_a_log_is_in_one_step_or_a_listed_problem(
        words in prop::collection::vec("[oax]|[arsnm][1-3]|[or]=[ab]|r[1-3]=[ab]", 0..40)
    ) {
        let events = log(&words.join(" "));
        let read = action_steps(&events, Reading::Salvage).unwrap();
        let mut placed: Vec<Seq> = Vec::new();
        for step in &read.steps {
            placed.extend(step.action.map(|(_, seq)| seq));
            placed.extend(step.before.iter().chain(step.after.iter()).chain(step.subcalls.iter()));
            prop_assert!(step.late.iter().all(|seq| step.after.contains(seq)));
        }
        let repeats = read.problems.iter().filter(|problem| !matches!(problem, StepProblem::RepeatedAction { .. }));
        placed.extend(repeats.map(StepProblem::seq));
        placed.sort_unstable();
        let words = words.iter().zip(1..).filter(|(word, _)| *word != "x");
        prop_assert_eq!(placed, words.map(|(_, seq)| Seq(seq)).collect::<Vec<_>>());
        prop_assert_eq!(action_steps(&events, Reading::Strict).is_err(), !read.problems.is_empty());
    }
}
