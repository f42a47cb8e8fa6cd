//! Each assertion against hand-made logs: what passes, what fails, what cannot be judged.

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
fn a_required_tool_has_done_its_work() {
    let required = json!({"requiredTools": ["shell"]});
    let of = |outcome, exit| {
        run_of(|log| {
            log.call("shell", json!({}), Class::Shell, Some("x"), ended(outcome, exit));
        })
    };
    let ok = "called (event 12)";
    check(
        &of(Outcome::Ok, Some(0)),
        &required,
        &[("requiredTools:shell", Pass, ok)],
    );
    // A command that ran to a non-zero exit code was run: its tool is not at fault.
    check(
        &of(Outcome::Failed, Some(1)),
        &required,
        &[("requiredTools:shell", Pass, ok)],
    );
    let failed = "shell never did its work, last failed (event 12)";
    check(
        &of(Outcome::Failed, None),
        &required,
        &[("requiredTools:shell", Fail, failed)],
    );
    let timeout = "shell never did its work, last timeout (event 12)";
    check(
        &of(Outcome::Timeout, None),
        &required,
        &[("requiredTools:shell", Fail, timeout)],
    );
    let refused = "shell never did its work, last refused (event 12)";
    check(
        &of(Outcome::Refused, None),
        &required,
        &[("requiredTools:shell", Fail, refused)],
    );
    let never = "shell never called";
    check(
        &run_of(|_| {}),
        &required,
        &[("requiredTools:shell", Fail, never)],
    );
    let alias = run_of(|log| {
        log.call("Bash", json!({}), Class::Shell, Some("x"), exited(0));
    });
    check(&alias, &required, &[("requiredTools:shell", Pass, ok)]);
}

#[test]
fn a_forbidden_tool_is_not_even_asked_for() {
    let forbidden = json!({"forbiddenTools": ["network", "write_text"]});
    check(
        &run_of(|log| {
            log.read("a");
        }),
        &forbidden,
        &[
            ("forbiddenTools:network", Pass, "never asked for"),
            ("forbiddenTools:write_text", Pass, "never asked for"),
        ],
    );
    // Denied, so nothing was done; it was asked for all the same.
    let asked = run_of(|log| {
        log.ask("shell", json!({"command": "curl x"}), Class::Network, Verb::Deny);
        log.ask("write_text", json!({"path": "a"}), Class::Write, Verb::Deny);
    });
    check(
        &asked,
        &forbidden,
        &[
            (
                "forbiddenTools:network",
                Fail,
                "shell asked for, which is network (event 9)",
            ),
            (
                "forbiddenTools:write_text",
                Fail,
                "write_text asked for (event 11)",
            ),
        ],
    );
    // Nobody reviewed it, so nobody knows whether it would have reached the network.
    let unknown = run_of(|log| {
        log.request_action("shell", json!({"command": "curl x"}));
    });
    check(
        &unknown,
        &forbidden,
        &[
            (
                "forbiddenTools:network",
                Error,
                "what shell (event 9) could do is not recorded",
            ),
            ("forbiddenTools:write_text", Pass, "never asked for"),
        ],
    );
}

#[test]
fn a_sequence_of_calls_is_contained_exact_or_a_prefix() {
    let log = run_of(|log| {
        log.list().read("a").write("a", None, Some("1")).read("a");
    });
    let row = |mode: &str, steps: &[&str], status, message| {
        let expected = json!({"toolSequence": {"mode": mode, "steps": steps}});
        check(&log, &expected, &[("toolSequence", status, message)]);
    };
    let calls = "list_files read_file write_text read_file";
    let (list, read, write) = ("list_files", "read_file", "write_text");
    row("subsequence", &[list, write], Pass, calls);
    row(
        "subsequence",
        &[write, list],
        Fail,
        "no list_files after 1 of 2 steps",
    );
    row("prefix", &[list, read], Pass, calls);
    row(
        "prefix",
        &[read],
        Fail,
        "call 1 is list_files, not read_file (event 11)",
    );
    row(
        "prefix",
        &[list, read, write, read, list],
        Fail,
        "4 calls, then no list_files",
    );
    row("exact", &[list, read, write, read], Pass, calls);
    row(
        "exact",
        &[list, read, write],
        Fail,
        "call 4 is read_file, one too many (event 26)",
    );
    row(
        "exact",
        &[list, write],
        Fail,
        "call 2 is read_file, not write_text (event 16)",
    );
}

#[test]
fn calls_are_counted_by_tool() {
    let log = run_of(|log| {
        log.read("a").read("b");
    });
    let row = |bounds: Value, status, message| {
        let expected = json!({"toolCounts": {"read_file": bounds}});
        check(&log, &expected, &[("toolCounts:read_file", status, message)]);
    };
    row(json!({"min": 2, "max": 2}), Pass, "2 calls of read_file");
    row(json!({"min": 3}), Fail, "2 calls of read_file, at least 3 wanted");
    row(json!({"max": 1}), Fail, "2 calls of read_file, at most 1 wanted");
    row(json!({}), Skip, "neither `min` nor `max` is given");
}

#[test]
fn failed_calls_are_counted_and_refused_ones_are_not() {
    let log = run_of(|log| {
        log.shell("false", 1);
        log.call(
            "read_file",
            json!({}),
            Class::Read,
            None,
            ended(Outcome::Failed, None),
        );
        log.call(
            "read_file",
            json!({}),
            Class::Read,
            None,
            ended(Outcome::Refused, None),
        );
    });
    check(
        &log,
        &json!({"maxToolErrors": 2}),
        &[("maxToolErrors", Pass, "2 failed calls")],
    );
    let many = "2 failed calls, at most 1 wanted, the last read_file (event 17)";
    check(
        &log,
        &json!({"maxToolErrors": 1}),
        &[("maxToolErrors", Fail, many)],
    );
}

#[test]
fn a_file_is_read_when_its_content_reached_the_model() {
    let expected = json!({"mustReadFiles": ["src/*.test.ts"]});
    let row = |happens: &dyn Fn(&mut Log), status, message| {
        check(
            &run_of(happens),
            &expected,
            &[("mustReadFiles:src/*.test.ts", status, message)],
        );
    };
    let never = "src/*.test.ts never read";
    row(&|_| {}, Fail, never);
    row(
        &|log| done(log.read("src/a.test.ts")),
        Pass,
        "read by read_file (event 12)",
    );
    row(
        &|log| done(log.read("/home/u/project/src/a.test.ts")),
        Pass,
        "read by read_file (event 12)",
    );
    row(&|log| done(log.read("/elsewhere/src/a.test.ts")), Fail, never);
    row(&|log| done(log.read("src/b/a.test.ts")), Fail, never);
    let failed = |log: &mut Log| {
        let args = json!({"path": "src/a.test.ts"});
        log.call("read_file", args, Class::Read, None, ended(Outcome::Failed, None));
    };
    row(&failed, Fail, never);
    row(
        &|log| done(log.step(&["src/a.test.ts"])),
        Pass,
        "read by context.build (event 10)",
    );
    row(
        &|log| done(log.step(&["src/a.test.ts@slice"])),
        Pass,
        "read by context.build (event 10)",
    );
    row(&|log| done(log.step(&["src/a.test.ts@outline"])), Fail, never);
    row(&|log| done(log.step(&["src/a.test.ts@path"])), Fail, never);
    row(
        &|log| done(log.shell("cat src/a.test.ts", 0)),
        Pass,
        "read by shell_readonly (event 12)",
    );
    row(
        &|log| done(log.shell("cd src && head -n 5 a.test.ts", 0)),
        Pass,
        "read by shell_readonly (event 12)",
    );
    row(&|log| done(log.shell("cat src/a.test.ts", 1)), Fail, never);
    row(
        &|log| done(log.shell("cat src/a.test.ts | wc -l", 0)),
        Fail,
        never,
    );
    row(&|log| done(log.shell("ls src/a.test.ts", 0)), Fail, never);
    let silent = |log: &mut Log| {
        let mut finished = exited(0);
        finished.output_chars = 0;
        log.call(
            "shell",
            json!({}),
            Class::Shell,
            Some("cat src/a.test.ts"),
            finished,
        );
    };
    row(&silent, Fail, never);
}

#[test]
fn what_was_read_after_the_last_request_never_reached_the_model() {
    let mut log = Log::new();
    log.step(&[]).asks(1).read("a").finish(StopReason::MaxSteps, None);
    let late = "a was read after the last request to the model (event 12)";
    check(
        &log,
        &json!({"mustReadFiles": ["a"]}),
        &[("mustReadFiles:a", Fail, late)],
    );
}

#[test]
fn a_context_list_that_was_cut_proves_nothing_absent() {
    let mut log = run_of(|_| {});
    for event in &mut log.events {
        if let Fact::ContextBuildFinished(report) = &mut event.fact {
            report.included_total = 70;
        }
    }
    let expected = json!({"mustReadFiles": ["a", "README.md"], "contextIncludes": [{"file": "a"}]});
    let cut = "the log lists 1 of 70 files of a context, a not among them (event 6)";
    check(
        &log,
        &expected,
        &[
            ("mustReadFiles:a", Error, cut),
            ("mustReadFiles:README.md", Pass, "read by context.build (event 6)"),
            ("contextIncludes:a", Error, cut),
        ],
    );
}

#[test]
fn what_counts_as_reading_can_be_narrowed() {
    let log = run_of(|log| {
        log.read("a");
    });
    let row = |sources: Value, status, message| {
        let expected = json!({"mustReadFiles": ["a"], "x-readSources": sources});
        check(&log, &expected, &[("mustReadFiles:a", status, message)]);
    };
    row(json!(["tool"]), Pass, "read by read_file (event 12)");
    row(json!(["context", "shell"]), Fail, "a never read");
    let bad = "`x-readSources` is no list of `tool`, `context` and `shell`";
    row(json!(["tol"]), Error, bad);
    row(json!("tool"), Error, bad);
}

#[test]
fn a_file_is_read_before_another_is_written() {
    let expected = json!({"mustReadBeforeWrite": [{"read": "t", "write": "s"}]});
    let row = |log: &Log, status, message| {
        check(
            log,
            &expected,
            &[("mustReadBeforeWrite:t before s", status, message)],
        );
    };
    let write = |log: &mut Log| done(log.write("s", Some("1"), Some("2")));
    let first = |log: &mut Log| {
        log.read("t").step(&[]).asks(1);
        write(log);
    };
    row(&run_of(first), Pass, "read (event 12), then changed (event 18)");
    // Both in one reply: when the model asked for the change it had not seen the file.
    let at_once = |log: &mut Log| {
        log.read("t");
        write(log);
    };
    row(
        &run_of(at_once),
        Fail,
        "s changed before the model had read t (event 14)",
    );
    row(
        &run_of(write),
        Fail,
        "s changed before the model had read t (event 9)",
    );
    row(&run_of(|log| done(log.read("t"))), Skip, "s never changed");
}

#[test]
fn a_written_file_differs_at_the_end() {
    let row = |happens: &dyn Fn(&mut Log), status, message| {
        check(
            &run_of(happens),
            &json!({"mustWriteFiles": ["s"]}),
            &[("mustWriteFiles:s", status, message)],
        );
    };
    row(
        &|log| done(log.write("s", Some("1"), Some("2"))),
        Pass,
        "s differs",
    );
    row(&|log| done(log.write("s", None, Some("2"))), Pass, "s differs");
    row(&|_| {}, Fail, "s never written");
    let back = |log: &mut Log| {
        done(
            log.write("s", Some("1"), Some("2"))
                .write("s", Some("2"), Some("1")),
        )
    };
    row(&back, Fail, "s is as it was");
    row(
        &|log| done(log.write("s", Some("1"), None)),
        Fail,
        "s was deleted",
    );
    // The seed's own side effects have no digests.
    let bare = |log: &mut Log| {
        let mut finished = ended(Outcome::Ok, None);
        finished.side_effects = vec![tool::SideEffect {
            effect: tool::SideEffectType::WriteFile,
            relative_path: "s".to_owned(),
            before: None,
            after: None,
        }];
        log.call("write_text", json!({}), Class::Write, None, finished);
    };
    row(&bare, Error, "s changed, its content is not recorded");
    let by_shell = |log: &mut Log| done(log.shell("x", 0).observe(None, Phase::Notice, &["s"]));
    row(&by_shell, Error, "s changed, its content is not recorded");
}

#[test]
fn digests_of_the_trial_decide_where_they_were_taken() {
    let log = run_of(|log| {
        log.shell("make", 0);
    });
    let files = |rows: &[(&str, &str)]| -> BTreeMap<String, Digest> {
        rows.iter()
            .map(|(path, text)| ((*path).to_owned(), digest(text)))
            .collect()
    };
    let start = files(&[("a", "1"), ("b", "1")]);
    let end = files(&[("a", "2"), ("b", "1"), ("c", "1")]);
    let recorded = Recorded {
        events: &log.events,
        start_files: Some(&start),
        final_files: Some(&end),
    };
    let expected =
        json!({"mustWriteFiles": ["a", "b", "c"], "onlyWriteFiles": ["a"], "forbiddenWriteFiles": ["b"]});
    let results = judge(&case(&expected), &recorded);
    let got: Vec<_> = results
        .iter()
        .map(|result| (result.id.as_str(), result.status))
        .collect();
    assert_eq!(
        got,
        [
            ("mustWriteFiles:a", Pass),
            ("mustWriteFiles:b", Fail),
            ("mustWriteFiles:c", Pass),
            ("onlyWriteFiles", Fail),
            ("forbiddenWriteFiles:b", Pass),
        ]
    );
}

#[test]
fn only_the_named_files_change() {
    let row =
        |happens: &dyn Fn(&mut Log), only: (AssertionStatus, &str), forbidden: (AssertionStatus, &str)| {
            check(
                &run_of(happens),
                &json!({"onlyWriteFiles": ["src/**"], "forbiddenWriteFiles": ["*.json"]}),
                &[
                    ("onlyWriteFiles", only.0, only.1),
                    ("forbiddenWriteFiles:*.json", forbidden.0, forbidden.1),
                ],
            );
        };
    let good = (Pass, "not changed");
    row(&|log| done(log.write("src/a", None, Some("1"))), good, good);
    row(
        &|log| done(log.write("package.json", Some("1"), Some("2"))),
        (Fail, "package.json changed (event 12)"),
        (Fail, "package.json changed (event 12)"),
    );
    let back = |log: &mut Log| {
        log.write("package.json", Some("1"), Some("2"))
            .write("package.json", Some("2"), Some("1"));
    };
    row(
        &back,
        (Fail, "package.json changed (event 12)"),
        (Fail, "package.json changed (event 12)"),
    );
    row(
        &|log| done(log.shell("make", 0).observe(None, Phase::Before, &["out"])),
        (Fail, "out changed (event 14)"),
        good,
    );
    // A command ran and nobody looked at the workspace afterwards.
    let unseen = |log: &mut Log| {
        let id = log.ask("shell", json!({}), Class::Shell, Verb::Allow);
        log.begin(id, "shell", Class::Shell, Some("make"));
        log.end(id, exited(0));
    };
    let why = "the workspace was not observed before and after shell (event 9)";
    row(&unseen, (Error, why), (Error, why));
    let cut = |log: &mut Log| {
        log.shell("make", 0).observe(None, Phase::Notice, &["src/a"]);
        if let Some(Fact::Observation(seen)) = log.events.last_mut().map(|event| &mut event.fact) {
            seen.workspace.as_mut().unwrap().changed_total = 300;
        }
    };
    let why = "event 14 lists 1 of 300 changed files";
    row(&cut, (Error, why), (Error, why));
}

#[test]
fn a_command_passes_when_its_newest_run_is_green_and_nothing_changed_since() {
    let row = |happens: &dyn Fn(&mut Log), status, message| {
        let log = run_of(happens);
        let results = judge(
            &case(&json!({"commandsPass": ["npm test"]})),
            &Recorded::of(&log.events),
        );
        let got: Vec<_> = results
            .iter()
            .map(|result| (result.id.as_str(), result.status, result.message.as_str()))
            .collect();
        let ended = ("finalStatus", Pass, "completed");
        assert_eq!(got, [("commandsPass:npm test", status, message), ended]);
    };
    let test = |log: &mut Log, exit, trust| {
        log.test("npm test", exit, trust, false);
    };
    let write = |log: &mut Log| done(log.write("s", Some("1"), Some("2")));
    row(&|log| test(log, 0, Trust::Green), Pass, "green (event 12)");
    row(&|_| {}, Fail, "npm test never run");
    row(
        &|log| test(log, 1, Trust::Red),
        Fail,
        "npm test exit 1 (event 12)",
    );
    row(
        &|log| test(log, 0, Trust::Red),
        Fail,
        "npm test is red (event 12)",
    );
    row(
        &|log| test(log, 1, Trust::Green),
        Fail,
        "npm test exit 1 (event 12)",
    );
    row(
        &|log| test(log, 0, Trust::Unknown),
        Fail,
        "npm test gave no result that can be trusted (event 12)",
    );
    let masked = |log: &mut Log| {
        log.test("npm test || true", 0, Trust::Green, true);
    };
    row(&masked, Fail, "npm test ran with its exit code masked (event 12)");
    let red_then_green = |log: &mut Log| {
        test(log, 1, Trust::Red);
        write(log);
        test(log, 0, Trust::Green);
    };
    row(&red_then_green, Pass, "green (event 22)");
    let green_then_red = |log: &mut Log| {
        test(log, 0, Trust::Green);
        test(log, 1, Trust::Red);
    };
    row(&green_then_red, Fail, "npm test exit 1 (event 17)");
    let stale = |log: &mut Log| {
        test(log, 0, Trust::Green);
        write(log);
    };
    row(
        &stale,
        Fail,
        "npm test was green, but s changed after it began (event 17)",
    );
    let seen_stale = |log: &mut Log| {
        test(log, 0, Trust::Green);
        log.observe(None, Phase::Before, &["s"]);
    };
    row(
        &seen_stale,
        Fail,
        "npm test was green, but s changed after it began (event 14)",
    );
    let begin = |log: &mut Log| {
        let id = log.ask("shell", json!({}), Class::Shell, Verb::Allow);
        let span = log.begin(id, "shell", Class::Shell, Some("npm test"));
        (id, span)
    };
    row(
        &|log| {
            begin(log);
        },
        Fail,
        "npm test did not finish (event 11)",
    );
    let killed = |log: &mut Log| {
        let (id, span) = begin(log);
        log.healed(id, span);
    };
    row(&killed, Fail, "npm test has no known end (event 12)");
    let slow = |log: &mut Log| {
        let (id, _) = begin(log);
        log.end(id, ended(Outcome::Timeout, None));
    };
    row(&slow, Fail, "npm test timed out (event 12)");
    let stopped = |log: &mut Log| {
        let (id, _) = begin(log);
        log.end(id, ended(Outcome::Cancelled, None));
    };
    row(&stopped, Fail, "npm test was cancelled (event 12)");
    let unobserved = |log: &mut Log| {
        test(log, 0, Trust::Green);
        log.events.pop();
    };
    row(
        &unobserved,
        Error,
        "whether anything changed after npm test is not known: \
         the workspace was not observed before and after shell_readonly (event 9)",
    );
}

#[test]
fn a_command_that_is_no_test_passes_by_its_own_exit_code() {
    let row = |line: &str, exit, status, message| {
        let log = run_of(|log| done(log.shell(line, exit)));
        let results = judge(
            &case(&json!({"commandsPass": ["tool lint 'a b'"]})),
            &Recorded::of(&log.events),
        );
        let first = results.first().unwrap();
        assert_eq!(
            (first.status, first.message.as_str()),
            (status, message),
            "{line}"
        );
    };
    row("tool lint 'a b'", 0, Pass, "green (event 12)");
    row("tool build && tool lint \"a b\"", 0, Pass, "green (event 12)");
    row("tool lint 'a b'", 2, Fail, "tool lint 'a b' exit 2 (event 12)");
    row(
        "tool lint 'a b' && x",
        2,
        Fail,
        "tool lint 'a b' exit 2 (event 12)",
    );
    row("tool lint", 0, Fail, "tool lint 'a b' never run");
    row("tool lint 'a b' || true", 0, Fail, "tool lint 'a b' never run");
    row(
        "cd sub && tool lint 'a b'",
        0,
        Fail,
        "tool lint 'a b' ran where its exit code cannot be seen (event 12)",
    );
}

#[test]
fn a_test_command_without_a_reading_proves_nothing() {
    let log = run_of(|log| done(log.shell("npm test", 0)));
    let recorded = Recorded::of(&log.events);
    let record = Record::read(&recorded);
    let finding = command::passes(&record, "npm test", command::CommandKind::Test);
    assert_eq!(
        (finding.status, finding.message.as_str()),
        (Error, "no reading of npm test was recorded (event 12)")
    );
}

#[test]
fn a_command_has_run_when_it_surely_did() {
    let row = |line: &str, exit, status| {
        let log = run_of(|log| done(log.shell(line, exit)));
        let message = match status {
            Pass => "run (event 11)",
            Fail | Skip | Error => "make lint never run",
        };
        check(
            &log,
            &json!({"commandsRun": ["make lint"]}),
            &[("commandsRun:make lint", status, message)],
        );
    };
    row("make lint", 0, Pass);
    row("make lint", 2, Pass);
    row("make all && make lint", 0, Pass);
    row("make all && make lint", 2, Fail);
    row("make lint && make all", 2, Pass);
    row("cd x && make lint", 1, Fail);
    row("make", 0, Fail);
    row("echo make lint", 0, Fail);
    let denied = run_of(|log| {
        let id = log.ask("shell", json!({}), Class::Shell, Verb::Deny);
        log.end(id, ended(Outcome::Refused, None));
    });
    let never = "make lint never run";
    check(
        &denied,
        &json!({"commandsRun": ["make lint"]}),
        &[("commandsRun:make lint", Fail, never)],
    );
}

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
        let _files = command::shown_files(&line);
    }
}
