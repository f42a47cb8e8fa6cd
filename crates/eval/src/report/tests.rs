//! Reports of suites: their lines, their JSON, their exit codes.

use super::*;
use tracegate_core::ids::Seq;

fn result(kind: &str, item: &str, status: AssertionStatus, message: &str) -> AssertionResult {
    AssertionResult {
        id: format!("{kind}:{item}"),
        kind: kind.to_owned(),
        status,
        severity: Severity::Gate,
        expected: "e".to_owned(),
        observed: "o".to_owned(),
        evidence: vec![Seq(21)],
        message: message.to_owned(),
    }
}

fn report(id: &str, steps: u64, duration_ms: u64, results: Vec<AssertionResult>) -> CaseReport {
    CaseReport {
        id: id.to_owned(),
        title: None,
        weight: Weight::Decides,
        outcome: CaseOutcome::of(&results),
        steps,
        duration_ms,
        run_id: Some(format!("run_{id}")),
        results,
    }
}

use AssertionStatus::{Error, Fail, Pass, Skip};

fn suite() -> SuiteReport {
    SuiteReport::new(vec![
        report(
            "no-network-002",
            6,
            2_000,
            vec![result("forbiddenTools", "network", Pass, "")],
        ),
        report(
            "repair-math-test-001",
            4,
            14_200,
            vec![
                result("requiredTools", "read_file", Pass, "called"),
                result(
                    "mustReadFiles",
                    "src/math.test.ts",
                    Fail,
                    "src/math.test.ts never read",
                ),
                result("commandsPass", "npm test", Fail, "npm test exit 1 (event 21)"),
                result("finalStatus", "", Fail, "wanted completed, got validation_failed"),
            ],
        ),
        report("fix-typo-001", 3, 1_100, vec![result("maxSteps", "", Pass, "")]),
    ])
}

#[test]
fn a_suite_reads_as_in_ci() {
    let text = "\
[1/3] PASS  fix-typo-001              3 steps   1.1 s
[2/3] PASS  no-network-002            6 steps   2.0 s
[3/3] FAIL  repair-math-test-001      4 steps  14.2 s
        mustReadFiles   src/math.test.ts never read
        commandsPass    npm test exit 1 (event 21)
        finalStatus     wanted completed, got validation_failed
3 cases: 2 passed, 1 failed, 0 without verdict   17.3 s
why: tracegate explain run_repair-math-test-001
";
    assert_eq!(suite().render_text(), text);
}

#[test]
fn what_was_not_judged_is_shown_with_its_reason() {
    let mut informs = result("finalMentions", "x", Fail, "the answer does not say `x`");
    informs.severity = Severity::Info;
    let mut draft = report(
        "c",
        1,
        49,
        vec![result("maxSteps", "", Fail, "a\u{1b}[2Jb\nc\u{202e}d")],
    );
    draft.weight = Weight::Shown;
    let suite = SuiteReport::new(vec![
        report("a", 0, 0, vec![]),
        report(
            "b",
            1,
            950,
            vec![result("claimsSupported", "", Error, "not supported"), informs],
        ),
        draft,
    ]);
    let text = "\
[1/3] ERROR a      0 steps   0.0 s
        no verdict: no assertion judged anything
[2/3] ERROR b       1 step   1.0 s
        claimsSupported   not supported
        finalMentions     the answer does not say `x`   (informs only)
[3/3] FAIL  c       1 step   0.0 s   (does not count)
        maxSteps   a\u{fffd}[2Jb\u{fffd}c\u{fffd}d
3 cases: 0 passed, 1 failed, 2 without verdict   1.0 s
";
    assert_eq!(suite.render_text(), text);
    assert_eq!(suite.exit(), Exit::EvalNoVerdict);
}

#[test]
fn only_what_was_proved_is_green() {
    let check = |statuses: &[AssertionStatus], wanted: &str| {
        let results: Vec<_> = statuses
            .iter()
            .map(|status| result("k", "i", *status, "why"))
            .collect();
        assert_eq!(CaseOutcome::of(&results).as_str(), wanted, "{statuses:?}");
    };
    check(&[Pass], "passed");
    check(&[Pass, Skip], "passed");
    check(&[Pass, Error], "no_verdict");
    check(&[Pass, Error, Fail], "failed");
    check(&[Skip], "no_verdict");
    check(&[], "no_verdict");
    let mut informs = result("k", "i", Pass, "");
    informs.severity = Severity::Info;
    assert_eq!(CaseOutcome::of(&[informs.clone()]).as_str(), "no_verdict");
    informs.status = Fail;
    let results = [informs, result("k", "j", Pass, "")];
    assert_eq!(CaseOutcome::of(&results), CaseOutcome::Passed);
}

#[test]
fn a_failed_case_beats_one_without_verdict_and_nothing_is_not_green() {
    let check = |cases: &[(AssertionStatus, Weight)], wanted| {
        let cases = cases.iter().map(|(status, weight)| CaseReport {
            weight: *weight,
            ..report("c", 1, 1, vec![result("k", "i", *status, "why")])
        });
        assert_eq!(SuiteReport::new(cases.collect()).exit(), wanted, "{wanted:?}");
    };
    let (decides, shown) = (Weight::Decides, Weight::Shown);
    check(&[], Exit::Nothing);
    check(&[(Pass, decides)], Exit::Ok);
    check(&[(Pass, decides), (Error, decides)], Exit::EvalNoVerdict);
    check(&[(Error, decides), (Pass, decides)], Exit::EvalNoVerdict);
    check(
        &[(Error, decides), (Fail, decides), (Pass, decides)],
        Exit::EvalFailed,
    );
    check(&[(Pass, decides), (Fail, shown), (Error, shown)], Exit::Ok);
    check(&[(Pass, shown)], Exit::Nothing);
}

#[test]
fn the_json_has_one_order_and_keeps_what_varies_apart() {
    let case = report("c", 4, 7, vec![result("maxSteps", "", Error, "why")]);
    let json = SuiteReport::new(vec![case]).to_json();
    let wanted = concat!(
        r#"{"schema":"tracegate.eval-report/1","exit":21,"#,
        r#""summary":{"cases":1,"passed":0,"failed":0,"noVerdict":1},"#,
        r#""cases":[{"id":"c","title":null,"decides":true,"outcome":"no_verdict","reason":"maxSteps:: why","steps":4,"#,
        r#""results":[{"id":"maxSteps:","type":"maxSteps","status":"error","severity":"gate","expected":"e","#,
        r#""observed":"o","evidence":[21],"message":"why"}],"meta":{"runId":"run_c","durationMs":7}}]}"#
    );
    assert_eq!(json.to_string(), wanted);
}

#[test]
fn the_order_of_trials_changes_nothing() {
    let mut cases = suite().cases().to_vec();
    cases.reverse();
    assert_eq!(SuiteReport::new(cases), suite());
}
