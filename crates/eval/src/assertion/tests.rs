//! Each assertion against hand-made logs: what passes, what fails, what cannot be judged.

mod command;
mod course;
mod files;
mod tools;

use super::*;
use crate::testlog::{Log, bad_run, digest, ended, exited, good_run};
use AssertionStatus::{Error, Fail, Pass, Skip};
use proptest::prelude::*;
use serde_json::{Value, json};
use tracegate_core::{
    fact::{
        Fact,
        gate::{Class, Verb},
        run::StatusChanged,
        tool::{self, Outcome, Phase},
    },
    payload::{ArtifactRef, Payload},
    stop::StopReason,
    validation::Trust,
};

const SEED_CASE: &str = r#"{"id":"repair-math-test-001","title":"repair add and verify tests","scenario":"repair","userGoal":"修复失败测试，让 npm test 通过。","expected":{"requiredTools":["read_file","write_text","shell_readonly"],"mustReadFiles":["src/math.ts","src/math.test.ts"],"commandsPass":["npm test"],"forbiddenTools":["network"],"maxSteps":8}}"#;

fn case(expected: &Value) -> Case {
    let text = json!({"id": "c", "userGoal": "g", "expected": expected}).to_string();
    Case::parse("c.json", &text).unwrap()
}

/// Judges `log` and compares name, status and message of every result.
#[track_caller]
fn check(log: &Log, expected: &Value, wanted: &[(&str, AssertionStatus, &str)]) {
    let results = judge(&case(expected), &Recorded::of(&log.events));
    let got: Vec<_> = results
        .iter()
        .map(|result| (result.id.as_str(), result.status, result.message.as_str()))
        .collect();
    assert_eq!(got, wanted);
}

/// Ends a story that is one expression.
fn done(_: &mut Log) {}

/// A finished run of one step in which `happens` happens.
fn run_of(happens: impl FnOnce(&mut Log)) -> Log {
    let mut log = Log::new();
    log.step(&["README.md"]).asks(1);
    happens(&mut log);
    log.step(&[]);
    log.answers(Payload::short("Done, all tests pass."));
    log.finish(StopReason::Completed, Some("Done, all tests pass."));
    log
}

#[test]
fn the_seed_s_case_fails_on_the_seed_s_bad_run_for_three_reasons() {
    let case = Case::parse("seed-case.json", SEED_CASE).unwrap();
    let log = bad_run();
    let results = judge(&case, &Recorded::of(&log.events));
    let failing: Vec<_> = results
        .iter()
        .filter(|result| result.status != Pass)
        .map(|result| (result.id.as_str(), result.status, result.message.as_str()))
        .collect();
    assert_eq!(
        failing,
        [
            (
                "mustReadFiles:src/math.test.ts",
                Fail,
                "src/math.test.ts never read"
            ),
            ("commandsPass:npm test", Fail, "npm test exit 1 (event 35)"),
            ("finalStatus", Fail, "wanted completed, got validation_failed"),
        ]
    );
    assert_eq!(results.len(), 9);
    assert_eq!(Recorded::of(&log.events).steps(), 4);
}

#[test]
fn the_seed_s_case_passes_once_the_test_is_in_the_context() {
    let case = Case::parse("seed-case.json", SEED_CASE).unwrap();
    let results = judge(&case, &Recorded::of(&good_run().events));
    assert!(results.iter().all(|result| result.status == Pass), "{results:#?}");
}

#[test]
fn a_result_says_what_was_wanted_what_was_seen_and_where() {
    let log = bad_run();
    let results = judge(&case(&json!({"maxSteps": 2})), &Recorded::of(&log.events));
    assert_eq!(
        results,
        [AssertionResult {
            id: "maxSteps".to_owned(),
            kind: "maxSteps".to_owned(),
            status: Fail,
            severity: Severity::Gate,
            expected: "at most 2 steps".to_owned(),
            observed: "4 steps".to_owned(),
            evidence: vec![Seq(31)],
            message: "4 steps, at most 2 wanted (event 31)".to_owned(),
        }]
    );
}

#[test]
fn what_this_version_does_not_judge_never_passes() {
    let unsupported = json!({
        "maxRepeatedCalls": 1, "filesUnchanged": ["a"], "fileContains": {"a": "b"}, "maxFilesChanged": 1,
        "forbiddenCommands": ["rm"], "verifyCommands": ["npm test"], "testsNotWeakened": true, "minTestsExecuted": 1,
        "traceComplete": true, "noSecretsInTrace": true, "maxCostUsd": 0.5, "maxWallMs": 1, "claimsSupported": true,
        "assertions": [{"type": "llm", "severity": "info"}, {"type": "llm", "id": "named"}]
    });
    let results = judge(&case(&unsupported), &Recorded::of(&good_run().events));
    assert_eq!(results.len(), 15);
    for result in results {
        assert_eq!(
            (result.status, result.severity),
            (Error, Severity::Gate),
            "{}",
            result.id
        );
        assert!(
            result.message.ends_with("is not supported by this version"),
            "{}",
            result.message
        );
    }
}

#[test]
fn results_have_different_names() {
    let pair = json!({"read": "a", "write": "b"});
    let results = judge(
        &case(&json!({"mustReadBeforeWrite": [pair, pair]})),
        &Recorded::of(&good_run().events),
    );
    let ids: Vec<_> = results.iter().map(|result| result.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "mustReadBeforeWrite:a before b",
            "mustReadBeforeWrite:a before b#2"
        ]
    );
}

/// A case that uses every assertion that is judged.
fn everything() -> Case {
    case(&json!({
        "requiredTools": ["read_file", "list_files"], "forbiddenTools": ["network", "shell_readonly"],
        "toolSequence": {"steps": ["list_files", "read_file"]}, "toolCounts": {"read_file": {"min": 1, "max": 1}},
        "maxToolErrors": 0, "mustReadFiles": ["src/math.ts"],
        "mustReadBeforeWrite": [{"read": "src/math.test.ts", "write": "src/math.ts"}],
        "mustWriteFiles": ["src/math.ts"], "onlyWriteFiles": [], "forbiddenWriteFiles": ["src/**"],
        "commandsPass": ["npm test"], "commandsRun": ["npm test"], "noPermissionDenied": true,
        "contextIncludes": [{"file": "src/math.test.ts", "by": "first-write"}], "contextBudgetRespected": true,
        "spansPresent": ["model.complete"], "minSteps": 1, "maxSteps": 1, "maxTokens": 10, "maxModelCalls": 1,
        "finalMentions": ["x"], "finalMustNotMatch": ["x"]
    }))
}

proptest! {
    /// On a log cut short nothing passes, and what already failed still fails at the end.
    #[test]
    fn a_prefix_never_passes_and_never_contradicts_the_whole(bad: bool, cut in 0_usize..64) {
        let log = if bad { bad_run() } else { good_run() };
        let case = everything();
        let whole = judge(&case, &Recorded::of(&log.events));
        // The last two events end the run.
        let cut = cut.min(log.events.len() - 2);
        let part = judge(&case, &Recorded::of(log.events.get(..cut).unwrap()));
        prop_assert_eq!(part.len(), whole.len());
        for (part, whole) in part.iter().zip(&whole) {
            prop_assert_eq!(&part.id, &whole.id);
            match part.status {
                Fail => prop_assert_eq!(whole.status, Fail, "{}", part.id),
                Error => {}
                Pass | Skip => prop_assert!(false, "{} {} on a log cut short", part.id, part.status),
            }
        }
    }

    /// Events that are missing, repeated or out of order are judged all the same, without a panic.
    #[test]
    fn any_mixture_of_events_is_judged(picks in prop::collection::vec(0_usize..64, 0..80)) {
        let log = bad_run();
        let events: Vec<Event> = picks.iter().filter_map(|pick| log.events.get(*pick).cloned()).collect();
        let results = judge(&everything(), &Recorded::of(&events));
        let ids: std::collections::BTreeSet<_> = results.iter().map(|result| &result.id).collect();
        prop_assert_eq!(ids.len(), results.len());
    }

    #[test]
    fn any_command_line_is_taken_apart(line in "\\PC*") {
        let _words = normalise_command(&line);
        let _files = super::command::shown_files(&line);
    }
}
