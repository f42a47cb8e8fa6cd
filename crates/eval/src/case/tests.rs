//! Reading cases: the seed's own, every field, and every way to get one wrong.

use super::*;
use proptest::prelude::*;

const SEED_CASE: &str = r#"{"id":"repair-math-test-001","title":"repair add and verify tests","scenario":"repair","userGoal":"修复失败测试，让 npm test 通过。","expected":{"requiredTools":["read_file","write_text","shell_readonly"],"mustReadFiles":["src/math.ts","src/math.test.ts"],"commandsPass":["npm test"],"forbiddenTools":["network"],"maxSteps":8}}"#;

#[test]
fn the_seed_s_case_is_a_case_as_it_stands() {
    let case = Case::parse("seed-case.json", SEED_CASE).unwrap();
    assert_eq!(case.id, "repair-math-test-001");
    assert_eq!(case.scenario.as_deref(), Some("repair"));
    assert_eq!(case.user_goal, "修复失败测试，让 npm test 通过。");
    assert_eq!(case.repeat, Repeat { k: 1, min_pass: None });
    assert_eq!(case.run, RunSetup::usual());
    assert_eq!(case.replay, Replay::recorded());
    assert!(case.decides());
    let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect();
    let path = |text| PathPattern::parse(text).unwrap();
    let expected = Expected {
        required_tools: texts(&["read_file", "write_text", "shell_readonly"]),
        forbidden_tools: texts(&["network"]),
        must_read_files: vec![path("src/math.ts"), path("src/math.test.ts")],
        commands_pass: texts(&["npm test"]),
        max_steps: Some(8),
        ..Expected::default()
    };
    assert_eq!(case.expected, expected);
}

#[test]
fn every_field_is_read() {
    let text = r#"{
        "$schema": "urn:tracegate:eval-case:v1", "version": 1, "id": "a.b_c-9", "title": "t", "scenario": "s-1",
        "userGoal": "g", "description": "d", "tags": ["x"], "status": "draft", "stability": "usually",
        "source": {"kind": "incident", "runId": "r", "traceId": "t", "incident": "i", "rules": ["R01"],
                   "createdAt": "2026-08-16T09:12:03Z"},
        "workspace": {"fixture": "f", "digest": "b3:0000000000000000000000000000000000000000000000000000000000000000",
                      "setup": ["npm ci"], "expectRed": ["npm test"], "env": {"TZ": "UTC"}, "network": "allow"},
        "replay": {"mode": "judge", "trace": "t", "cassette": "c", "match": "normalized", "onMiss": "stop"},
        "run": {"policy": "p", "grants": ["writes"], "maxSteps": 8.0, "contextTests": "off", "contextBudget": 2800,
                "pushBack": 0, "sandbox": "require"},
        "repeat": {"k": 5, "minPass": 4}, "stepBudgets": [2, 4], "x-team": {"any": [1]},
        "expected": {"finalStatus": ["completed", "max_steps"], "contextIncludes": [{"file": "a", "by": 2}, {"file": "b"}],
                     "toolSequence": {"steps": ["a", "a"], "mode": "exact"}, "toolCounts": {"a": {"min": 1}},
                     "claimsSupported": true, "assertions": [{"type": "t", "severity": "info", "more": 1}], "x-note": 1}
    }"#;
    let case = Case::parse("c.json", text).unwrap();
    assert_eq!(
        (case.status, case.stability),
        (CaseStatus::Draft, Stability::Usually)
    );
    assert!(!case.decides());
    let source = case.source.unwrap();
    assert_eq!(
        (source.kind, source.rules),
        (OriginKind::Incident, vec!["R01".to_owned()])
    );
    assert_eq!(case.workspace.network, Network::Allow);
    assert_eq!(case.workspace.expect_red, ["npm test"]);
    assert_eq!(case.replay.matching, Match::Normalized);
    assert_eq!((case.run.max_steps, case.run.push_back), (Some(8), 0));
    assert_eq!(case.run.context_tests, Switch::Off);
    assert_eq!(
        case.repeat,
        Repeat {
            k: 5,
            min_pass: Some(4)
        }
    );
    assert_eq!(case.step_budgets, [2, 4]);
    assert_eq!(
        case.extra.get("x-team").unwrap(),
        &serde_json::json!({"any": [1]})
    );
    let expected = case.expected;
    assert_eq!(expected.unsupported, ["claimsSupported"]);
    assert_eq!(expected.custom.first().unwrap().severity, Severity::Info);
    assert_eq!(
        expected
            .context_includes
            .iter()
            .map(|entry| entry.by)
            .collect::<Vec<_>>(),
        [By::Step(2), By::Any]
    );
    assert_eq!(
        expected.final_status,
        [
            FinalStatus::Status(tracegate_core::stop::Status::Completed),
            FinalStatus::StopReason(tracegate_core::stop::StopReason::MaxSteps)
        ]
    );
    assert!(expected.extra.contains_key("x-note"));
}

#[test]
fn what_is_no_case_is_refused_where_it_is_wrong() {
    let check = |text: &str, error: &str, help: Option<&str>| {
        let found = Case::parse("c.json", text).unwrap_err();
        assert_eq!(
            (found.to_string().as_str(), found.help().as_deref()),
            (error, help),
            "{text}"
        );
    };
    // The rest of a case around a wrong `expected`, a wrong id, a wrong other field.
    let expected = |expected: &str| format!("{{\"id\":\"c\",\"userGoal\":\"g\",\n \"expected\":{expected}}}");
    let field = |field: &str| {
        format!("{{\"id\":\"c\",\"userGoal\":\"g\",\"expected\":{{\"maxSteps\":1}},\n{field}}}")
    };

    check("", "c.json:1:0: no JSON: EOF while parsing a value", None);
    check("{\n  \"id\": }", "c.json:2:9: no JSON: expected value", None);
    check(
        "[]",
        "c.json:1:1: an array stands where an object is wanted",
        None,
    );
    check("{}", "c.json:1:1: a case lacks the key `id`", None);
    check(
        &expected("{\"requiredTool\":[\"a\"]}"),
        "c.json:2:14: unknown key `requiredTool` in `expected`",
        Some("did you mean `requiredTools`?"),
    );
    check(
        &expected("{\"maxSteps\":1,\"修复\":1}"),
        "c.json:2:27: unknown key `修复` in `expected`",
        Some(&format!("known are {EXPECTED_KEYS}")),
    );
    check(
        &field("\"titel\":\"t\""),
        "c.json:2:1: unknown key `titel` in a case",
        Some("did you mean `title`?"),
    );
    check(
        &field("\"repeat\":{\"K\":1}"),
        "c.json:2:11: unknown key `K` in `repeat`",
        Some("did you mean `k`?"),
    );
    check(
        &field("\"run\":{\"x-free\":1}"),
        "c.json:2:8: unknown key `x-free` in `run`",
        Some(
            "known are `policy`, `grants`, `maxSteps`, `contextTests`, `contextBudget`, `pushBack`, `sandbox`",
        ),
    );
    check(
        &field("\"id\":\"d\""),
        "c.json:2:1: key `id` stands here twice",
        None,
    );
    check(&expected("{}"), "c.json:2:13: `expected` is empty", None);
    check(
        &expected("{\"maxSteps\":0}"),
        "c.json:2:25: `0` is less than 1",
        None,
    );
    check(
        &expected("{\"maxSteps\":-1}"),
        "c.json:2:25: `-1` is less than 1",
        None,
    );
    check(
        &expected("{\"maxSteps\":1.5}"),
        "c.json:2:25: a number stands where an integer is wanted",
        None,
    );
    check(
        &expected("{\"maxSteps\":1e30}"),
        "c.json:2:25: a number stands where an integer is wanted",
        None,
    );
    check(
        &expected("{\"maxSteps\":\"8\"}"),
        "c.json:2:25: a string stands where an integer is wanted",
        None,
    );
    check(
        &expected("{\"maxCostUsd\":-0.5}"),
        "c.json:2:27: `-0.5` is less than 0",
        None,
    );
    check(
        &expected("{\"requiredTools\":[\"a\",\"\"]}"),
        "c.json:2:35: an empty text stands here",
        None,
    );
    check(
        &expected("{\"requiredTools\":[\"a\",\n\"a\"]}"),
        "c.json:3:1: `a` stands in this list twice",
        None,
    );
    check(
        &expected("{\"requiredTools\":\"a\"}"),
        "c.json:2:30: a string stands where an array is wanted",
        None,
    );
    check(
        &expected("{\"requiredTools\":[null]}"),
        "c.json:2:31: null stands where a string is wanted",
        None,
    );
    check(
        &expected("{\"mustReadFiles\":[\"a[\"]}"),
        "c.json:2:31: `a[` is not a path pattern: unclosed character class; missing ']'",
        None,
    );
    check(
        &expected("{\"finalMustNotMatch\":[\"(\"]}"),
        "c.json:2:35: `(` is not a regular expression: unclosed group",
        None,
    );
    check(
        &expected("{\"finalStatus\":\"complete\"}"),
        "c.json:2:28: `complete` is none of the values of `finalStatus`",
        Some("did you mean `completed`?"),
    );
    check(
        &expected("{\"contextIncludes\":[{\"file\":\"a\",\"by\":\"first_write\"}]}"),
        "c.json:2:50: `first_write` is none of the values of `by`",
        Some("did you mean `first-write`?"),
    );
    check(
        &expected("{\"contextIncludes\":[{}]}"),
        "c.json:2:33: an entry of `contextIncludes` lacks the key `file`",
        None,
    );
    check(
        &expected("{\"toolSequence\":{\"steps\":[]}}"),
        "c.json:2:38: `steps` is empty",
        None,
    );
    check(
        &expected("{\"testsNotWeakened\":\"yes\"}"),
        "c.json:2:33: a string stands where true or false is wanted",
        None,
    );
    check(
        &expected("{\"assertions\":[{}]}"),
        "c.json:2:28: an entry of `assertions` lacks the key `type`",
        None,
    );
    check(
        &field("\"status\":\"activ\""),
        "c.json:2:10: `activ` is none of the values of `status`",
        Some("did you mean `active`?"),
    );
    check(&field("\"version\":2"), "c.json:2:11: `2` is more than 1", None);
    check(
        &field("\"repeat\":{\"k\":101}"),
        "c.json:2:15: `101` is more than 100",
        None,
    );
    check(
        &field("\"stepBudgets\":[3,3]"),
        "c.json:2:18: `3` stands in this list twice",
        None,
    );
    check(
        &field("\"tags\":[\"a\",\"a\"]"),
        "c.json:2:13: `a` stands in this list twice",
        None,
    );
    check(
        &field("\"source\":{}"),
        "c.json:2:10: `source` lacks the key `kind`",
        None,
    );
    check(
        &field("\"scenario\":\"Repair\""),
        "c.json:2:12: `Repair` is not a scenario (a lower-case letter, then those, digits and `-`)",
        None,
    );
    check(
        &field("\"workspace\":{\"digest\":\"b3:00\"}"),
        "c.json:2:23: `b3:00` is not a digest (`b3:` and 64 lower-case hex digits)",
        None,
    );
    check(
        &field("\"title\":\"\\ud800\""),
        "c.json:2:9: a string stands where a string is wanted",
        None,
    );
    for id in ["", "A", ".a", "a b", "ä", &"a".repeat(129)] {
        let text = format!("{{\"id\":\"{id}\",\"userGoal\":\"g\",\"expected\":{{\"maxSteps\":1}}}}");
        let error = Case::parse("c.json", &text).unwrap_err();
        assert!(matches!(error.problem(), Problem::Spelling { .. }), "{id}");
        assert_eq!((error.line(), error.column()), (1, 7));
    }
    assert!(Case::parse("c.json", r#"{"id":"a","userGoal":"","expected":{"maxSteps":1}}"#).is_err());
    assert!(Case::parse("c.json", &field(&format!("\"title\":\"{}\"", "ü".repeat(200)))).is_ok());
    assert!(Case::parse("c.json", &field(&format!("\"title\":\"{}\"", "ü".repeat(201)))).is_err());
}

const EXPECTED_KEYS: &str = "`requiredTools`, `forbiddenTools`, `toolSequence`, `toolCounts`, `maxToolErrors`, \
    `maxRepeatedCalls`, `mustReadFiles`, `mustReadBeforeWrite`, `mustWriteFiles`, `onlyWriteFiles`, \
    `forbiddenWriteFiles`, `filesUnchanged`, `fileContains`, `maxFilesChanged`, `commandsPass`, `commandsRun`, \
    `forbiddenCommands`, `verifyCommands`, `testsNotWeakened`, `minTestsExecuted`, `finalStatus`, \
    `noPermissionDenied`, `contextIncludes`, `contextBudgetRespected`, `spansPresent`, `traceComplete`, \
    `noSecretsInTrace`, `minSteps`, `maxSteps`, `maxTokens`, `maxCostUsd`, `maxWallMs`, `maxModelCalls`, \
    `finalMentions`, `finalMustNotMatch`, `claimsSupported`, `assertions`";

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        let _case = Case::parse("c.json", &text);
    }

    /// A case with one stretch of it replaced is as near to a case as anything that is none.
    #[test]
    fn any_damaged_case_is_read_or_refused(at in 0_usize..400, len in 0_usize..40, put in "[\\PC\\n]{0,6}") {
        let chars: Vec<char> = SEED_CASE.chars().collect();
        let kept = chars.iter().take(at).copied();
        let text: String = kept.chain(put.chars()).chain(chars.iter().skip(at + len).copied()).collect();
        if let Err(error) = Case::parse("c.json", &text) {
            prop_assert!(error.line() <= text.lines().count().max(1) + 1);
        }
    }
}

#[test]
fn deep_nesting_is_refused_and_not_a_crash() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert!(Case::parse("c.json", &deep).is_err());
    let text = format!(r#"{{"id":"c","userGoal":"g","expected":{{"maxSteps":1}},"x-deep":{deep}}}"#);
    assert!(Case::parse("c.json", &text).is_err());
}
