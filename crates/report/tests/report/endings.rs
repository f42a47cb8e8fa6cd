//! Runs that ended otherwise, or not at all; the rules where they must stay silent.

use crate::{
    logs::{answered, killed, other_failures, refused, resumed, seed, waiting, without_step},
    support::{Log, SEED, USUAL, exited, link, ok, run_id, tested, verdict, wrote},
};
use serde_json::json;
use tracegate_core::{fact::gate::ValidationRuling, stop::StopReason};
use tracegate_report::{
    Holder, Language, Problem, ReadError, RunView, ShownStatus, Width,
    attribution::{self, Confidence, Kind, RootCause, Rule},
    evidence, postmortem, summary,
};

fn short(log: &Log, holder: Holder) -> String {
    let view = log.view();
    let width = Width::default();
    [
        summary::render(&summary::summarise(&view, holder), width),
        evidence::render(&evidence::rows(&view, holder), width),
        attribution::render(&attribution::explain(&view, holder, Language::En), width),
    ]
    .join("\n")
}

#[test]
fn a_refused_action_says_who_refused_it_and_why() {
    insta::assert_snapshot!(short(&refused(), Holder::Nobody), @"");
}

#[test]
fn a_killed_run_is_interrupted_and_its_open_action_unknown() {
    insta::assert_snapshot!(short(&killed(), Holder::Nobody), @"");
}

#[test]
fn the_same_log_with_a_living_holder_is_running() {
    let view = killed().view();
    assert_eq!(view.status(Holder::Alive), ShownStatus::Running);
    let rows = evidence::rows(&view, Holder::Alive);
    let last: Vec<String> = rows.iter().skip(2).map(|row| row.status.to_string()).collect();
    assert_eq!(last, ["running", "running"]);
    let explained = attribution::explain(&view, Holder::Alive, Language::En);
    assert_eq!(
        (explained.root_cause, explained.findings),
        (RootCause::None, Vec::new())
    );
}

#[test]
fn a_resumed_run_does_not_count_the_downtime() {
    insta::assert_snapshot!(short(&resumed(), Holder::Nobody), @"");
}

#[test]
fn a_run_without_any_step_is_reported() {
    let log = without_step();
    insta::assert_snapshot!(short(&log, Holder::Nobody), @"");
    insta::assert_snapshot!(
        postmortem::render(&postmortem::write(&log.view(), Holder::Nobody, Language::En), Width::default()),
        @""
    );
}

#[test]
fn a_waiting_run_shows_its_question() {
    insta::assert_snapshot!(short(&waiting(), Holder::Nobody), @"");
    let answered = answered().view();
    assert_eq!(summary::summarise(&answered, Holder::Nobody).waiting_for, None);
    assert_eq!(answered.status(Holder::Nobody), ShownStatus::Completed);
    assert_eq!(
        evidence::rows(&answered, Holder::Nobody)[0].status,
        evidence::RowStatus::Ok
    );
}

#[test]
fn each_stop_reason_has_its_direct_failure_and_no_guessed_cause() {
    for (log, wanted) in other_failures() {
        let explained = attribution::explain(&log.view(), Holder::Nobody, Language::En);
        let said: Vec<&str> = explained
            .findings
            .iter()
            .map(|finding| finding.sentence.as_str())
            .collect();
        assert_eq!(said, [wanted]);
        assert_eq!(explained.root_cause, RootCause::Undetermined);
    }
}

/// Returns rule, kind and confidence of everything that was found, but for the direct failure.
fn fired(log: &Log) -> Vec<(Rule, Kind, Confidence)> {
    attribution::explain(&log.view(), Holder::Nobody, Language::En)
        .findings
        .into_iter()
        .filter_map(|finding| Some((finding.rule?, finding.kind, finding.confidence)))
        .collect()
}

/// A failed run in which the agent looks at `before`, writes, and claims in the step after the red run or later.
fn variant(before: impl FnOnce(&mut Log), armed: bool, steps_between: u32) -> Log {
    let mut log = Log::new("make npm test pass", USUAL);
    log.step(1);
    before(&mut log);
    log.step(2);
    log.context(&["src/a.ts"], &[], &[link("src/a.ts", "src/a.test.ts", false)]);
    log.act("edit_text", json!({"path": "src/a.ts"}), wrote("src/a.ts", 1));
    log.step(3);
    log.act(
        "shell",
        json!({"command": "npm test"}),
        tested("red", 1, &[], None),
    );
    log.step(3 + steps_between);
    log.answer("done");
    let judged = verdict("failed", armed, "last_test_failed", "red");
    log.judge(&judged, ValidationRuling::Fail, 2);
    log.finish(StopReason::ValidationFailed, Some("done"), "red", Some(judged));
    log
}

#[test]
fn rules_fire_on_what_the_events_show_and_on_nothing_else() {
    use Confidence::{Decided, Likely};
    use Kind::{Observed, RootCause};
    let context = (Rule::R01, RootCause, Decided);
    let gate = (Rule::R05, RootCause, Decided);
    let gave_up = (Rule::R27, RootCause, Decided);
    let gave_up_too = (Rule::R27, Observed, Decided);
    let test = "src/a.test.ts";
    let read = |path: &str| json!({"path": path});
    let strong = [link("src/a.ts", test, true)];
    for (case, log, wanted) in [
        (
            "nothing read",
            variant(|_| {}, true, 1),
            vec![context, gate, gave_up_too],
        ),
        ("goal not armed", variant(|_| {}, false, 1), vec![gate, gave_up]),
        (
            "claimed two steps later",
            variant(|_| {}, true, 2),
            vec![context, gate],
        ),
        (
            "read by a tool",
            variant(
                |log| drop(log.act("read_file", read("./src/a.test.ts"), ok("x", 1))),
                true,
                2,
            ),
            vec![gate],
        ),
        (
            "read by its whole path",
            variant(
                |log| drop(log.act("read_file", read("/work/repo/src/a.test.ts"), ok("x", 1))),
                true,
                2,
            ),
            vec![gate],
        ),
        (
            "shown by a command",
            variant(
                |log| {
                    drop(log.act(
                        "shell",
                        json!({"command": "cat src/a.test.ts"}),
                        exited(0, "x", 1),
                    ))
                },
                true,
                2,
            ),
            vec![gate],
        ),
        (
            "only listed",
            variant(
                |log| drop(log.act("list_files", read("."), ok("src/a.test.ts", 1))),
                true,
                2,
            ),
            vec![context, gate],
        ),
        (
            "in the context by its link",
            variant(|log| drop(log.context(&[], &[], &strong)), true, 2),
            vec![gate],
        ),
        (
            "in the context as a file",
            variant(|log| drop(log.context(&[test], &[], &[])), true, 2),
            vec![gate],
        ),
        (
            "cut list of files",
            cut_list(),
            vec![(Rule::R01, RootCause, Likely), gate],
        ),
    ] {
        assert_eq!(fired(&log), wanted, "{case}");
    }
}

/// A context with more files than its event lists.
fn cut_list() -> Log {
    let mut log = variant(|log| drop(log.context(&["README.md"], &[], &[])), true, 2);
    for event in &mut log.events {
        if let tracegate_core::fact::Fact::ContextBuildFinished(built) = &mut event.fact {
            built.included_total = 65;
        }
    }
    log
}

#[test]
fn a_read_in_the_reply_that_also_writes_came_too_late() {
    let mut log = Log::new("make npm test pass", USUAL);
    log.step(1);
    log.context(&[], &[], &[link("a.ts", "a.test.ts", false)]);
    let read = log.ask("read_file", json!({"path": "a.test.ts"}));
    let write = log.ask("write_text", json!({"path": "a.ts"}));
    log.end(read, ok("x", 1));
    log.end(write, wrote("a.ts", 1));
    log.answer("done");
    let judged = verdict("passed", true, "trusted_green", "green");
    log.finish(StopReason::Completed, None, "green", Some(judged));
    assert_eq!(fired(&log), [(Rule::R01, Kind::Observed, Confidence::Decided)]);
}

#[test]
fn what_does_not_fit_together_is_listed_and_not_dropped() {
    let mut log = seed(SEED);
    let stray = tracegate_core::ids::ActionId(99);
    log.end(stray, ok("x", 1));
    log.events.remove(3);
    let view = log.view();
    let listed: Vec<String> = view.problems().iter().map(Problem::to_string).collect();
    let last = log.events.len() as u64;
    assert_eq!(
        listed,
        [
            "events between 3 and 5 are missing".to_owned(),
            format!("event {last} is about action a99, which nobody asked for"),
            format!("event {} is about action a99, which nobody asked for", last + 1),
        ]
    );
    let summary = summary::render(&summary::summarise(&view, Holder::Nobody), Width::default());
    assert!(
        summary.ends_with("problem     events between 3 and 5 are missing (and 2 more)\n"),
        "{summary}"
    );
}

#[test]
fn what_is_no_run_is_an_error_that_says_why() {
    let log = seed(SEED);
    let check = |events: &[tracegate_core::event::Event], wanted: &str| {
        let error: ReadError = RunView::read(run_id(), events).unwrap_err();
        assert_eq!(error.to_string(), wanted);
        assert_eq!(
            error.help(),
            "see what is left of the log with `tracegate fsck run_repair_20260816_001`"
        );
    };
    check(&[], "the log of run `run_repair_20260816_001` holds no event");
    check(
        &log.events[1..3],
        "none of the 2 events of run `run_repair_20260816_001` is `run.started`",
    );
    let mut swapped = log.events.clone();
    swapped.swap(4, 5);
    check(
        &swapped,
        "event 5 of run `run_repair_20260816_001` stands after event 6",
    );
}
