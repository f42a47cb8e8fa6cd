//! Runs that ended otherwise, or not at all; the rules where they must stay silent.

use crate::{
    logs::{answered, killed, other_failures, refused, resumed, seed, waiting, without_step},
    support::{Log, SEED, USUAL, exited, failed, link, ok, run_id, tested, verdict, wrote},
};
use serde_json::json;
use tracegate_core::{
    fact::{
        gate::{ValidationRuling, Verb},
        tool::{Outcome, ToolExecuteFinished},
    },
    stop::StopReason,
};
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
    insta::assert_snapshot!(short(&refused(), Holder::Nobody), @r#"
    runId       run_repair_20260816_001
    traceId     d9c36ab1d61287b128634db7163cf493
    status      failed
    stopReason  permission_denied
    steps       1 of 8      3.21 s      2,536 in, 81 out      11 events

    Step  Tool        Status   Permission  Evidence                                          Took  Event
    1     write_text  refused  deny        .git/hooks/pre-commit: .git may be read, never…   -     7

    Direct failure   Permission Gate  write_text .git/hooks/pre-commit was refused: .git may be read,
                                      never written (event 7)
    Root cause       undetermined: no rule fires; a person has to look
    "#);
}

#[test]
fn a_killed_run_is_interrupted_and_its_open_action_unknown() {
    insta::assert_snapshot!(short(&killed(), Holder::Nobody), @r#"
    runId       run_repair_20260816_001
    traceId     d9c36ab1d61287b128634db7163cf493
    status      interrupted
    stopReason  -
    steps       2 of 8      6.47 s      5,072 in, 162 out      24 events

    Step  Tool        Status   Permission  Evidence                                         Took   Event
    1     list_files  ok       allow       README.md package.json src/math.test.ts src/ma…  41 ms  10
    1     read_file   ok       allow       src/math.ts return a - b                         12 ms  16
    2     shell       unknown  allow       npm test: begun, its end is not known            -      24
    2     read_file   not_run  -           src/math.test.ts: not reached                    -      21

    Direct failure   Runtime          the process died during shell npm test; nobody knows whether it
                                      took effect (event 24)
    Root cause       undetermined: no rule fires; a person has to look
    "#);
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
    insta::assert_snapshot!(short(&resumed(), Holder::Nobody), @r#"
    runId       run_repair_20260816_001
    traceId     d9c36ab1d61287b128634db7163cf493
    status      failed
    stopReason  max_steps
    steps       2 of 8      7.47 s      5,072 in, 162 out      34 events

    Step  Tool        Status   Permission  Evidence                                         Took   Event
    1     list_files  ok       allow       README.md package.json src/math.test.ts src/ma…  41 ms  10
    1     read_file   ok       allow       src/math.ts return a - b                         12 ms  16
    2     shell       unknown  allow       npm test: begun, its end is not known            -      27
    2     read_file   not_run  -           src/math.test.ts: not reached                    -      30

    Direct failure   Runtime          limit of steps reached: 8 of 8 (event 31)
    Root cause       undetermined: no rule fires; a person has to look
    "#);
}

#[test]
fn a_run_without_any_step_is_reported() {
    let log = without_step();
    insta::assert_snapshot!(short(&log, Holder::Nobody), @r#"
    runId       run_repair_20260816_001
    traceId     d9c36ab1d61287b128634db7163cf493
    status      cancelled
    stopReason  cancelled
    steps       0 of 8      0 ms      0 in, 0 out      5 events

    no action was asked for

    Direct failure   none: a person stopped the run
    "#);
    insta::assert_snapshot!(
        postmortem::render(&postmortem::write(&log.view(), Holder::Nobody, Language::En), Width::default()),
        @r#"
    User goal        x
    Execution path   nothing was done
    Failure point    none: a person stopped the run
    Root causes      none
    Regression plan  none needed
    "#
    );
}

#[test]
fn a_waiting_run_shows_its_question() {
    insta::assert_snapshot!(short(&waiting(), Holder::Nobody), @r#"
    runId       run_repair_20260816_001
    traceId     d9c36ab1d61287b128634db7163cf493
    status      waiting_for_user
    stopReason  waiting_for_user
    steps       1 of 8      3.21 s      2,536 in, 81 out      12 events
    waitingFor  q1 “Keep the old heading?”

    Step  Tool      Status   Permission  Evidence                                   Took  Event
    1     ask_user  waiting  allow       Keep the old heading?: waits for its user  -     8

    Direct failure   none so far: the run waits for its user
    "#);
    let answered = answered().view();
    assert_eq!(summary::summarise(&answered, Holder::Nobody).waiting_for, []);
    assert_eq!(answered.status(Holder::Nobody), ShownStatus::Completed);
    assert_eq!(
        evidence::rows(&answered, Holder::Nobody)[0].status,
        evidence::RowStatus::Ok
    );
}

#[test]
fn an_action_that_the_policy_asks_about_waits() {
    let mut log = Log::new("x", USUAL);
    log.step(1);
    let id = log.ask("shell", json!({"command": "make install"}));
    log.review(id, "shell", Verb::Ask, "a person must say so");
    log.ask("list_files", json!({"path": "."}));
    log.leave(StopReason::WaitingForUser);
    insta::assert_snapshot!(
        evidence::render(&evidence::rows(&log.view(), Holder::Nobody), Width::default()),
        @r#"
    Step  Tool        Status   Permission  Evidence                          Took  Event
    1     shell       waiting  ask         make install: waits for its user  -     6
    1     list_files  not_run  -           .: not reached                    -     7
    "#
    );
}

#[test]
fn every_kind_of_tool_has_its_own_evidence() {
    let mut log = Log::new("x", USUAL);
    log.step(1);
    let path = json!({"path": "./src/a.ts"});
    let timeout = ToolExecuteFinished {
        outcome: Outcome::Timeout,
        ..ok("", 60_000)
    };
    let killed = ToolExecuteFinished {
        outcome: Outcome::Failed,
        signal: Some(9),
        ..ok("", 185_000)
    };
    let long = "let x = 1;\n".repeat(21);
    for (tool, args, end) in [
        ("read_file", path.clone(), ok("const a = 1;\n", 1)),
        ("read_file", path.clone(), ok(&long, 1)),
        ("read_file", path.clone(), failed("not_found", "no such file")),
        ("list_files", json!({"path": "empty"}), ok("", 1)),
        ("edit_text", path, ok("", 1)),
        ("search_text", json!({"pattern": "add"}), ok("src/a.ts:1: add", 1)),
        ("shell", json!({"command": "sleep 99"}), timeout),
        ("shell", json!({"command": "sleep 99"}), killed),
        (
            "shell",
            json!({"command": "touch b"}),
            ToolExecuteFinished {
                exit_code: Some(0),
                ..wrote("b", 1)
            },
        ),
        ("mcp_weather", json!({"city": "x"}), ok("\n sunny\n", 1)),
    ] {
        log.act(tool, args, end);
    }
    insta::assert_snapshot!(
        evidence::render(&evidence::rows(&log.view(), Holder::Nobody), Width::default()),
        @r#"
    Step  Tool         Status  Permission  Evidence                         Took        Event
    1     read_file    ok      allow       src/a.ts const a = 1             1 ms        8
    1     read_file    ok      allow       src/a.ts                         1 ms        14
    1     read_file    error   allow       src/a.ts: no such file           5 ms        20
    1     list_files   ok      allow       no files                         1 ms        26
    1     edit_text    ok      allow       src/a.ts: nothing changed        1 ms        32
    1     search_text  ok      allow       add: src/a.ts:1: add             1 ms        38
    1     shell        error   allow       sleep 99 timeout                 1 min 00 s  44
    1     shell        error   allow       sleep 99 signal=9                3 min 05 s  50
    1     shell        ok      allow       touch b exitCode=0, wrote b      1 ms        56
    1     mcp_weather  ok      allow       mcp_weather {"city":"x"}: sunny  1 ms        62
    "#
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
fn variant<T>(before: impl FnOnce(&mut Log) -> T, armed: bool, steps_between: u32) -> Log {
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
                |log| log.act("read_file", read("./src/a.test.ts"), ok("x", 1)),
                true,
                2,
            ),
            vec![gate],
        ),
        (
            "read by its whole path",
            variant(
                |log| log.act("read_file", read("/srv/repo/src/a.test.ts"), ok("x", 1)),
                true,
                2,
            ),
            vec![gate],
        ),
        (
            "shown by a command",
            variant(
                |log| {
                    log.act(
                        "shell",
                        json!({"command": "cat src/a.test.ts"}),
                        exited(0, "x", 1),
                    )
                },
                true,
                2,
            ),
            vec![gate],
        ),
        (
            "only listed",
            variant(
                |log| log.act("list_files", read("."), ok("src/a.test.ts", 1)),
                true,
                2,
            ),
            vec![context, gate],
        ),
        (
            "in the context by its link",
            variant(|log| log.context(&[], &[], &strong), true, 2),
            vec![gate],
        ),
        (
            "in the context as a file",
            variant(|log| log.context(&[test], &[], &[]), true, 2),
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
    let mut log = variant(|log| log.context(&["README.md"], &[], &[]), true, 2);
    for event in &mut log.events {
        if let tracegate_core::fact::Fact::ContextBuildFinished(built) = &mut event.fact {
            built.included_total = 65;
        }
    }
    log
}

#[test]
fn the_gate_s_own_reason_comes_before_a_red_run() {
    let mut log = Log::new("make npm test pass", USUAL);
    log.step(1);
    log.act(
        "shell",
        json!({"command": "npm test"}),
        tested("red", 1, &[], None),
    );
    log.answer("done");
    let judged = verdict(
        "failed",
        true,
        "required_command_failed",
        "the goal names `npm run lint`, which was not run",
    );
    log.judge(&judged, ValidationRuling::Fail, 2);
    log.finish(StopReason::ValidationFailed, Some("done"), "", Some(judged));
    let explained = attribution::explain(&log.view(), Holder::Nobody, Language::En);
    let said: Vec<(Kind, &str)> = explained
        .findings
        .iter()
        .map(|finding| (finding.kind, finding.sentence.as_str()))
        .collect();
    assert_eq!(
        said,
        [
            (
                Kind::DirectFailure,
                "required_command_failed: the goal names `npm run lint`, which was not run"
            ),
            (
                Kind::Observed,
                "claimed while red; the gate caught it and had pushed back 2 of 2 times"
            ),
        ]
    );
    assert_eq!(explained.root_cause, RootCause::Undetermined);
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
    let judged = verdict("passed", true, "last_test_passed", "green");
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
            "the log itself is `events.jsonl` in the run's directory; what came before the damage is whole: run `run_repair_20260816_001`"
        );
    };
    check(&[], "the log of run `run_repair_20260816_001` holds no event");
    check(
        &log.events[1..3],
        "none of the 2 events of run `run_repair_20260816_001` is `run.started`",
    );
    let mut swapped = log.events;
    swapped.swap(4, 5);
    check(
        &swapped,
        "event 5 of run `run_repair_20260816_001` stands after event 6",
    );
}
