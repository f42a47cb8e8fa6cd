//! The fold of a log: which event may follow which, and that a refused one changes nothing.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod moves;
#[path = "recorded/mod.rs"]
mod recorded;

use moves::*;
use recorded::{Recording, digest, run, run_started};
use serde_json::{Value, json};
use tracegate_core::{
    event::Event,
    ids::{ActionId, Seq, SpanId},
    state::{Progress, RunState, Violation},
    stop::{Status, StopReason},
};

type Part = fn(&mut Recording);

/// Folds what `parts` record, and returns the state before the last event and what the last event did.
fn fold(parts: &[Part]) -> (RunState, Event, Result<RunState, Violation>) {
    let mut log = Recording::new();
    for part in parts {
        part(&mut log);
    }
    let last = log.events.pop().unwrap();
    let before = RunState::fold(&log.events).unwrap();
    let mut after = before.clone();
    let result = after.apply(&last);
    if result.is_err() {
        assert_eq!(after, before, "a refused event changes nothing");
    }
    (before, last, result.map(|()| after))
}

/// `bad` after `before` is the violation `wanted`; its neighbour `good` is none.
fn check(before: &[Part], bad: Part, good: Part, wanted: &str) {
    let (_, _, result) = fold(&[before, &[bad]].concat());
    assert_eq!(
        result.map(drop).map_err(|violation| violation.to_string()),
        Err(wanted.to_owned())
    );
    let (_, last, result) = fold(&[before, &[good]].concat());
    assert!(
        result.is_ok(),
        "{wanted}: {} is legal: {result:?}",
        last.fact.name()
    );
}

#[test]
fn a_log_begins_with_one_run_started_and_has_no_gaps() {
    check(
        &[],
        observe,
        |log| push(log, "run.started", &run_started()),
        "`observation` cannot stand at event 1: a log begins with one `run.started`",
    );
    check(
        &[begin],
        |log| push(log, "run.started", &run_started()),
        observe,
        "`run.started` cannot stand at event 3: a log begins with one `run.started`",
    );
    for seq in [0, 1, 2, 4, u64::MAX] {
        let mut log = Recording::new();
        begin(&mut log);
        let state = RunState::fold(&log.events).unwrap();
        observe(&mut log);
        let mut next = log.events.pop().unwrap();
        assert_eq!(state.check(&next), Ok(()));
        next.seq = Seq(seq);
        let last = Seq(2);
        assert_eq!(
            state.check(&next),
            Err(Violation::Seq {
                found: Seq(seq),
                last
            })
        );
    }
}

#[test]
fn a_span_begins_under_an_open_one() {
    check(
        &[begin],
        |log| {
            log.start("agent.step", json!({}));
            log.events.last_mut().unwrap().parent = Some(SpanId::from_bytes([9; 8]));
        },
        |log| start(log, "agent.step", json!({})),
        "`agent.step` at event 3 begins under span 0909090909090909, which is not open",
    );
    check(
        &[begin],
        |log| {
            log.start("agent.step", json!({}));
            log.events.last_mut().unwrap().parent = None;
        },
        |log| start(log, "agent.step", json!({})),
        "`agent.step` at event 3 begins under span nothing, which is not open",
    );
    check(
        &[begin],
        |log| {
            let open = log.events[1].span;
            log.start("agent.step", json!({}));
            log.events.last_mut().unwrap().span = open;
        },
        |log| start(log, "agent.step", json!({})),
        &format!(
            "`agent.step` at event 3 begins under span {}, which is not open",
            SpanId::derive(&run(), Seq(2))
        ),
    );
    // Under the first segment, when it has ended, only a later segment begins.
    let root = format!("{}", SpanId::derive(&run(), Seq(2)));
    let under_root = |log: &mut Recording, kind: &'static str, data: Value| {
        log.start(kind, data);
        log.events.last_mut().unwrap().parent = Some(SpanId::derive(&run(), Seq(2)));
    };
    let ended: [Part; 2] = [begin, |log| {
        end_segment(log, "waiting_for_user", "waiting_for_user");
    }];
    let mut log = Recording::new();
    ended.iter().for_each(|part| part(&mut log));
    let state = RunState::fold(&log.events).unwrap();
    under_root(&mut log, "agent.step", json!({}));
    let refused = state.check(log.events.last().unwrap()).unwrap_err().to_string();
    assert_eq!(
        refused,
        format!("`agent.step` at event 4 begins under span {root}, which is not open")
    );
    let mut log = Recording::new();
    ended.iter().for_each(|part| part(&mut log));
    under_root(&mut log, "segment", json!({"pid": 2, "version": "0.1.0"}));
    assert_eq!(state.check(log.events.last().unwrap()), Ok(()));
}

#[test]
fn a_run_has_one_first_segment() {
    check(
        &[begin],
        |log| {
            log.start("segment", json!({"pid": 2, "version": "0.1.0"}));
            log.events.last_mut().unwrap().parent = None;
        },
        |log| start(log, "segment", json!({"pid": 2, "version": "0.1.0"})),
        "`segment` at event 3 begins under span nothing, which is not open",
    );
}

#[test]
fn a_span_ends_once_as_what_it_began_and_after_its_children() {
    const WHY: &str =
        "ends a span that is not open, is of another kind or action, or still has an open child";
    let step: Part = |log| start(log, "agent.step", json!({}));
    let end_step: Part = |log| log.finish(json!({"actions": 0}));
    let foreign: Part = |log| {
        log.finish(json!({"actions": 0}));
        log.events.last_mut().unwrap().span = Some(SpanId::from_bytes([9; 8]));
    };
    check(
        &[begin, step],
        foreign,
        end_step,
        &format!("`agent.step` at event 4 {WHY}"),
    );
    let twice: Part = |log| {
        log.push("agent.step.finished", &json!({"actions": 0}));
        log.events.last_mut().unwrap().span = Some(SpanId::derive(&run(), Seq(3)));
    };
    let end: Part = |log| end_segment(log, "failed", "max_steps");
    check(
        &[begin, step, end_step],
        twice,
        end,
        &format!("`agent.step` at event 5 {WHY}"),
    );
    let as_another: Part = |log| push(log, "checkpoint.save.finished", &json!({"covers": 1, "bytes": 1}));
    check(
        &[begin, step],
        as_another,
        end_step,
        &format!("`checkpoint.save` at event 4 {WHY}"),
    );
    let with_child: Part = |log| {
        log.push(
            "segment.finished",
            &json!({"status": "failed", "stop_reason": "max_steps", "usage": {}}),
        );
        log.events.last_mut().unwrap().span = log.events[1].span;
    };
    check(
        &[begin, step],
        with_child,
        end_step,
        &format!("`segment` at event 4 {WHY}"),
    );
    let about_another: Part = |log| {
        executed(log);
        log.events.last_mut().unwrap().action = None;
    };
    check(
        &[
            begin,
            observe,
            |log| ask_for(log, 1),
            |log| review(log, "allow"),
            execute,
        ],
        about_another,
        executed,
        &format!("`tool.execute` at event 8 {WHY}"),
    );
}

#[test]
fn an_action_is_asked_for_permitted_done_and_settled_in_this_order() {
    let asked: [Part; 3] = [begin, observe, |log| ask_for(log, 1)];
    let reviewed: Part = |log| start(log, "permission.review", json!({"tool": "shell"}));
    check(
        &[begin, observe],
        |log| ask_for(log, 2),
        |log| ask_for(log, 1),
        "event 4 (`action`) is about action a2, which is not the next one",
    );
    check(
        &[&asked[..], &[settle]].concat(),
        |log| ask_for(log, 1),
        |log| ask_for(log, 2),
        "event 6 (`action`) is about action a1, which is not the next one",
    );
    for unknown in [0, 2, u64::MAX] {
        let mut log = Recording::new();
        asked.iter().for_each(|part| part(&mut log));
        let state = RunState::fold(&log.events).unwrap();
        observe(&mut log);
        let mut next = log.events.pop().unwrap();
        assert_eq!(state.check(&next), Ok(()));
        next.action = Some(ActionId(unknown));
        assert_eq!(
            state.check(&next).unwrap_err().to_string(),
            format!("event 5 (`observation`) is about action a{unknown}, which is unknown")
        );
    }
    check(
        &asked,
        execute,
        reviewed,
        "event 5 (`tool.execute.started`) is about action a1, which is not permitted",
    );
    let refused: [Part; 1] = [|log| review(log, "deny")];
    check(
        &[&asked[..], &refused].concat(),
        execute,
        settle,
        "event 7 (`tool.execute.started`) is about action a1, which is not permitted",
    );
    let permitted: [Part; 1] = [|log| review(log, "allow")];
    // A ruling that was not acted on may be asked for again; an action that has begun may not.
    check(
        &[&asked[..], &permitted, &[execute]].concat(),
        reviewed,
        executed,
        "event 8 (`permission.review.started`) is about action a1, which is not waiting for a ruling",
    );
    check(
        &[&asked[..], &permitted, &[execute, executed]].concat(),
        execute,
        settle,
        "event 9 (`tool.execute.started`) is about action a1, which is not permitted",
    );
    let again: Part = |log| {
        log.action = Some(1);
        settle(log);
    };
    // A late observation of another kind may still come.
    let late: Part = |log| {
        log.action = Some(1);
        log.push(
            "observation",
            &json!({"kind": "external", "phase": "notice", "content": "late"}),
        );
    };
    check(
        &[&asked[..], &[settle]].concat(),
        again,
        late,
        "event 6 (`observation`) is about action a1, which is settled",
    );
}

#[test]
fn what_is_about_an_action_says_which() {
    let nameless = |part: Part, wanted: &str| {
        let mut log = Recording::new();
        begin(&mut log);
        observe(&mut log);
        ask_for(&mut log, 1);
        settle(&mut log);
        let state = RunState::fold(&log.events).unwrap();
        part(&mut log);
        let mut next = log.events.last().unwrap().clone();
        next.action = None;
        assert_eq!(state.check(&next).unwrap_err().to_string(), wanted);
    };
    nameless(|log| ask_for(log, 2), "`action` at event 6 names no action");
    nameless(
        |log| start(log, "permission.review", json!({"tool": "shell"})),
        "`permission.review.started` at event 6 names no action",
    );
    nameless(execute, "`tool.execute.started` at event 6 names no action");
}

#[test]
fn between_two_actions_lies_an_observation() {
    check(
        &[begin, observe, |log| ask_for(log, 1)],
        |log| ask_for(log, 2),
        settle,
        "action a2 at event 5 follows another action without an observation between",
    );
    check(
        &[begin],
        |log| ask_for(log, 1),
        observe,
        "action a1 at event 3 follows another action without an observation between",
    );
}

#[test]
fn no_request_leaves_an_action_without_a_result() {
    check(
        &[
            begin,
            observe,
            |log| ask_for(log, 1),
            |log| review(log, "allow"),
            execute,
            executed,
        ],
        request,
        settle,
        "a request at event 9 leaves action a1 without a result",
    );
    check(
        &[begin, observe, |log| ask_for(log, 1), settle],
        |log| {
            log.events.last_mut().unwrap().action = None;
            log.push("run.started", &run_started());
        },
        request,
        "`run.started` cannot stand at event 6: a log begins with one `run.started`",
    );
}

#[test]
fn nothing_but_verification_follows_the_end() {
    for bad in [observe, request, |log: &mut Recording| {
        end_run(log, "failed", "max_steps");
    }] as [Part; 3]
    {
        let (_, last, result) = fold(&[ended, bad]);
        let name = last.fact.name();
        assert_eq!(
            result.unwrap_err().to_string(),
            format!("`{name}` at event 5 follows the end of the run")
        );
    }
    let recovered: Part = |log| {
        push(
            log,
            "log.recovered",
            &json!({"offset": 1, "torn_bytes": 1, "quarantine": "x"}),
        );
    };
    let noted: Part = |log| push(log, "redaction.noted", &json!({"rules": {}}));
    let unknown: Part = |log| push(log, "moon.rose", &json!({}));
    for good in [verify, recovered, noted, unknown] {
        let (before, last, result) = fold(&[ended, good]);
        let after = result.unwrap_or_else(|violation| panic!("{}: {violation}", last.fact.name()));
        assert_eq!(
            (after.status, after.stop_reason),
            (before.status, before.stop_reason)
        );
        assert!(after.finished);
    }
    let (_, _, reopened) = fold(&[ended, |log| status(log, "running")]);
    let reopened = reopened.unwrap();
    assert_eq!((reopened.finished, reopened.status), (false, Status::Running));
    assert!(fold(&[ended, |log| status(log, "running"), observe]).2.is_ok());
    assert!(fold(&[ended, |log| status(log, "failed")]).2.is_err());
}

#[test]
fn only_the_validation_gate_completes_a_run() {
    let wanted = |seq| format!("event {seq} says `completed` without a verdict of the validation gate");
    let ways: [Part; 3] = [
        |log| end_segment(log, "completed", "completed"),
        |log| end_run(log, "completed", "completed"),
        |log| status(log, "completed"),
    ];
    for end in ways {
        check(
            &[begin],
            end,
            |log| end_segment(log, "failed", "max_steps"),
            &wanted(3),
        );
        for ruling in [
            |log: &mut Recording| rule(log, "push_back"),
            |log: &mut Recording| rule(log, "fail"),
        ] as [Part; 2]
        {
            let refused = fold(&[begin, ruling, end]).2.unwrap_err();
            assert_eq!(refused.to_string(), wanted(5));
        }
        let complete: Part = |log| rule(log, "complete");
        let (_, _, completed) = fold(&[begin, complete, end]);
        assert_eq!(completed.unwrap().status, Status::Completed);
        // What the agent does after a ruling was not ruled on.
        let step: Part = |log| {
            log.start("agent.step", json!({}));
            log.finish(json!({"actions": 0}));
        };
        let refused = fold(&[begin, complete, step, end]).2.unwrap_err();
        assert_eq!(refused.to_string(), wanted(7));
    }
    // Nor does an old ruling complete a run that was reopened.
    let done: [Part; 4] = [
        begin,
        |log| rule(log, "complete"),
        |log| end_segment(log, "completed", "completed"),
        |log| end_run(log, "completed", "completed"),
    ];
    let reopen: Part = |log| status(log, "running");
    let again: Part = |log| end_run(log, "completed", "completed");
    let refused = fold(&[&done[..], &[reopen, again]].concat()).2.unwrap_err();
    assert_eq!(refused.to_string(), wanted(8));
}

#[test]
fn an_answer_answers_an_open_question() {
    let question: Part = |log| push(log, "user.question", &json!({"question": "q1", "text": "?"}));
    let answer: Part = |log| message(log, "answer", Some("q1"));
    let wanted = |seq| format!("the answer at event {seq} answers no open question");
    check(
        &[begin],
        answer,
        |log| message(log, "followup_task", None),
        &wanted(3),
    );
    check(
        &[begin, question],
        |log| message(log, "answer", Some("q2")),
        answer,
        &wanted(4),
    );
    check(
        &[begin, question],
        |log| message(log, "answer", None),
        answer,
        &wanted(4),
    );
    check(&[begin, question, answer], answer, observe, &wanted(5));
}

#[test]
fn the_state_says_how_far_each_action_has_come() {
    let asked: [Part; 3] = [begin, observe, |log| ask_for(log, 1)];
    let progress = |parts: &[Part]| {
        let (_, _, state) = fold(&[&asked[..], parts].concat());
        state.unwrap().open_actions.get(&ActionId(1)).copied()
    };
    let allow: Part = |log| review(log, "allow");
    assert_eq!(progress(&[]), Some(Progress::Asked));
    assert_eq!(progress(&[allow]), Some(Progress::Permitted));
    assert_eq!(progress(&[|log| review(log, "deny")]), Some(Progress::Refused));
    assert_eq!(progress(&[allow, execute]), Some(Progress::Begun));
    assert_eq!(progress(&[allow, execute, executed]), Some(Progress::Done));
    assert_eq!(progress(&[allow, execute, executed, settle]), None);
    // A process that died inside an effect: its span is closed for it, the outcome stays open.
    let healed: Part = |log| {
        log.finish(
            json!({"healed": true, "end_ts": "2026-11-30T12:00:00Z", "error": {"type": "process_killed"}}),
        );
    };
    assert_eq!(progress(&[allow, execute, healed]), Some(Progress::Done));
}

#[test]
fn refusals_and_internal_failures_count_only_while_they_follow_each_other() {
    let refuse = |log: &mut Recording, effect: &str| {
        log.start("permission.review", json!({"tool": "shell"}));
        log.finish(
            json!({"tool": "shell", "decision": "deny", "class": "shell", "reason_code": "rule", "rule": "user:x",
            "reason": "", "effects": [effect], "digest": digest()}),
        );
        settle(log);
    };
    let mut log = Recording::new();
    begin(&mut log);
    observe(&mut log);
    let mut counts = Vec::new();
    for (action, effect) in ["a", "a", "b", "b", "b"].into_iter().enumerate() {
        ask_for(&mut log, action as u64 + 1);
        refuse(&mut log, effect);
        counts.push(RunState::fold(&log.events).unwrap().refusal.unwrap().1);
    }
    assert_eq!(counts, [1, 2, 1, 2, 3]);
    ask_for(&mut log, 6);
    review(&mut log, "allow");
    assert_eq!(RunState::fold(&log.events).unwrap().refusal, None);
    let mut failures = Vec::new();
    for (index, kind) in ["internal", "internal", "exit_code", "internal"]
        .into_iter()
        .enumerate()
    {
        if index > 0 {
            ask_for(&mut log, index as u64 + 6);
            review(&mut log, "allow");
        }
        execute(&mut log);
        log.finish(
            json!({"outcome": "failed", "output": "", "output_chars": 0, "truncated": false, "duration_ms": 1,
            "sideEffects": [], "error": {"type": kind}}),
        );
        settle(&mut log);
        failures.push(RunState::fold(&log.events).unwrap().internal_failures);
    }
    assert_eq!(failures, [1, 2, 0, 1]);
}

#[test]
fn the_recorded_run_folds_to_what_it_says() {
    let mut log = Recording::new();
    begin(&mut log);
    log.step = Some(1);
    log.start("agent.step", json!({}));
    request(&mut log);
    log.finish(
        json!({"reply_kind": "final", "tool_calls": 0, "reply": "", "text": "done", "finish_reason": "stop",
        "usage": {"input": 3, "output": 4}, "attempts": 1}),
    );
    log.finish(json!({"actions": 0}));
    rule(&mut log, "fail");
    end_segment(&mut log, "failed", "validation_failed");
    end_run(&mut log, "failed", "validation_failed");
    let state = RunState::fold(&log.events).unwrap();
    assert_eq!(
        (
            state.status,
            state.stop_reason,
            state.finished,
            state.step.0,
            state.model_calls
        ),
        (Status::Failed, Some(StopReason::ValidationFailed), true, 1, 1)
    );
    assert_eq!((state.usage.total(), state.pushed_back), (7, 0));
    assert!(state.open_spans.is_empty() && state.open_actions.is_empty());
    assert_eq!(state.elapsed_ms(), state.seq.0);
    let json = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<RunState>(&json).unwrap(), state);
}
