//! How the run went and ended: rows that pass, fail and cannot be judged.

use super::*;

#[test]
fn a_run_ends_by_status_or_stop_reason() {
    let of = |reason| {
        let mut log = Log::new();
        log.finish(reason, None);
        log
    };
    let row = |log: &Log, wanted: Value, status, message| {
        check(
            log,
            &json!({"finalStatus": wanted}),
            &[("finalStatus", status, message)],
        );
    };
    row(&of(StopReason::Completed), json!("completed"), Pass, "completed");
    row(&of(StopReason::MaxSteps), json!("failed"), Pass, "max_steps");
    row(&of(StopReason::MaxSteps), json!("max_steps"), Pass, "max_steps");
    row(
        &of(StopReason::MaxSteps),
        json!(["completed", "tool_error"]),
        Fail,
        "wanted completed or tool_error, got max_steps",
    );
    // A run that waits has no `run.finished`; one that was taken up again has not ended.
    let mut waiting = Log::new();
    waiting.segment_end(StopReason::WaitingForUser);
    row(&waiting, json!("waiting_for_user"), Pass, "waiting_for_user");
    waiting.push(StatusChanged {
        status: Status::Running,
        stop_reason: None,
    });
    row(
        &waiting,
        json!("waiting_for_user"),
        Error,
        "no event says how the run ended",
    );
}

#[test]
fn a_refusal_is_a_denied_permission() {
    let expected = json!({"noPermissionDenied": true});
    check(
        &run_of(|log| done(log.read("a"))),
        &expected,
        &[("noPermissionDenied", Pass, "no action refused")],
    );
    let refused = "shell was refused (event 10)";
    let denied = run_of(|log| {
        log.ask("shell", json!({}), Class::Shell, Verb::Deny);
    });
    check(&denied, &expected, &[("noPermissionDenied", Fail, refused)]);
    // No review in the log, only what the model was told.
    let told = run_of(|log| {
        let id = log.request_action("shell", json!({}));
        log.push(tool::Observation {
            kind: tool::ObservationKind::ToolOutput,
            phase: Phase::After,
            content: None,
            outcome: Some(Outcome::Refused),
            workspace: None,
        })
        .action = Some(id);
    });
    check(&told, &expected, &[("noPermissionDenied", Fail, refused)]);
    check(
        &denied,
        &json!({"noPermissionDenied": false}),
        &[("noPermissionDenied", Skip, "switched off")],
    );
}

#[test]
fn a_file_is_in_the_context_in_time() {
    let entry = |by: Value| json!({"contextIncludes": [{"file": "src/math.test.ts", "by": by}]});
    let row = |log: &Log, by: Value, id: &str, status, message| {
        check(
            log,
            &entry(by),
            &[(&format!("contextIncludes:src/math.test.ts{id}"), status, message)],
        );
    };
    let there = "in the context (event 20)";
    row(&good_run(), json!("any"), "", Pass, there);
    row(&good_run(), json!("first-write"), " by first-write", Pass, there);
    row(&good_run(), json!(2), " by 2", Pass, there);
    let late = "src/math.test.ts came into the context too late (event 20)";
    row(&good_run(), json!(1), " by 1", Fail, late);
    // In the bad run a listing names the file: that shows nothing of it.
    row(
        &bad_run(),
        json!("any"),
        "",
        Fail,
        "src/math.test.ts never in the context",
    );
    let after = run_of(|log| {
        log.write("s", None, Some("1")).step(&["src/math.test.ts"]);
    });
    let late = "src/math.test.ts came into the context too late (event 15)";
    row(&after, json!("first-write"), " by first-write", Fail, late);
    let mut stepless = good_run();
    for event in &mut stepless.events {
        event.step = None;
    }
    let unknown = "the step of event 20 is not recorded";
    row(&stepless, json!(2), " by 2", Error, unknown);
}

#[test]
fn no_context_exceeds_its_budget() {
    let expected = json!({"contextBudgetRespected": true});
    let id = "contextBudgetRespected";
    check(&good_run(), &expected, &[(id, Pass, "within budget")]);
    let over = run_of(|log| done(log.context(&[], 100, 101)));
    check(
        &over,
        &expected,
        &[(id, Fail, "101 tokens used of 100 (event 10)")],
    );
    let mut none = Log::new();
    none.finish(StopReason::ModelError, None);
    check(&none, &expected, &[(id, Error, "no context was recorded")]);
    check(
        &none,
        &json!({"contextBudgetRespected": false}),
        &[(id, Skip, "switched off")],
    );
}

#[test]
fn spans_are_there_when_they_ended() {
    check(
        &good_run(),
        &json!({"spansPresent": ["context.build", "tool.execute", "checkpoint.save", "tool.exec"]}),
        &[
            ("spansPresent:context.build", Pass, "there (event 6)"),
            ("spansPresent:tool.execute", Pass, "there (event 12)"),
            ("spansPresent:checkpoint.save", Fail, "no checkpoint.save span"),
            (
                "spansPresent:tool.exec",
                Fail,
                "no kind of span is called tool.exec",
            ),
        ],
    );
}

#[test]
fn steps_requests_and_tokens_are_counted() {
    let log = {
        let mut log = Log::new();
        log.step(&[]).no_reply().request().asks(1).list();
        log.step(&[]).answers(Payload::short("done"));
        log.finish(StopReason::Completed, None);
        log
    };
    let row = |expected: Value, id, status, message| check(&log, &expected, &[(id, status, message)]);
    // A request without a usable reply is a model call and no step.
    row(json!({"minSteps": 2}), "minSteps", Pass, "2 steps");
    row(
        json!({"minSteps": 3}),
        "minSteps",
        Fail,
        "2 steps, at least 3 wanted",
    );
    row(json!({"maxSteps": 2}), "maxSteps", Pass, "2 steps");
    let over = "2 steps, at most 1 wanted (event 19)";
    row(json!({"maxSteps": 1}), "maxSteps", Fail, over);
    row(
        json!({"maxModelCalls": 3}),
        "maxModelCalls",
        Pass,
        "3 model calls",
    );
    let over = "3 model calls, at most 2 wanted (event 18)";
    row(json!({"maxModelCalls": 2}), "maxModelCalls", Fail, over);
    row(json!({"maxTokens": 200}), "maxTokens", Pass, "200 tokens");
    let over = "200 tokens, at most 199 wanted (event 19)";
    row(json!({"maxTokens": 199}), "maxTokens", Fail, over);
    let uncounted = run_of(|log| done(log.asks_uncounted()));
    let unknown = "the tokens of a reply are not recorded (event 9)";
    check(
        &uncounted,
        &json!({"maxTokens": 9999}),
        &[("maxTokens", Error, unknown)],
    );
}

#[test]
fn the_text_of_the_answer_informs_and_decides_nothing() {
    let expected = json!({"finalMentions": ["ALL TESTS"], "finalMustNotMatch": ["(?i)all tests? pass"]});
    let (mentions, not) = ("finalMentions:ALL TESTS", "finalMustNotMatch:(?i)all tests? pass");
    let said = run_of(|_| {});
    check(
        &said,
        &expected,
        &[
            (mentions, Pass, "said (event 13)"),
            (not, Fail, "the answer says `all tests pass` (event 13)"),
        ],
    );
    let results = judge(&case(&expected), &Recorded::of(&said.events));
    assert!(results.iter().all(|result| result.severity == Severity::Info));
    check(
        &bad_run(),
        &expected,
        &[
            (mentions, Fail, "the answer does not say `ALL TESTS` (event 41)"),
            (not, Pass, "no match (event 41)"),
        ],
    );
    let mut silent = Log::new();
    silent.finish(StopReason::MaxSteps, None);
    check(
        &silent,
        &expected,
        &[
            (mentions, Fail, "there is no final answer"),
            (not, Skip, "there is no final answer"),
        ],
    );
    // Only head and tail of a long answer stand in the log.
    let long = format!("begin {} end", "x".repeat(10_000));
    let reference = ArtifactRef::describe(long.as_bytes(), "text/plain");
    let mut cut = Log::new();
    cut.step(&[]).answers(Payload::Ref(Box::new(reference)));
    cut.finish(StopReason::Completed, None);
    let middle = "the middle of the answer is in an artifact (event 8)";
    check(
        &cut,
        &expected,
        &[(mentions, Error, middle), (not, Error, middle)],
    );
}
