//! What the gate says of small histories, as whole verdicts and as outcomes.

use tracegate_core::{
    goal::Goal,
    ids::Seq,
    validation::{
        CommandRun, Ended, Evidence, GateReason, Outcome, Policy, TestRun, Verdict, judge, read_result,
        recognise,
    },
};

/// One thing that happened; events are numbered from 1 in order, two for each command.
#[derive(Debug, Clone, Copy)]
enum Step {
    Changed(&'static str),
    Ran(&'static str, i32, &'static str),
    Started(&'static str),
    /// A run during which a path changed.
    RanWhileChanging(&'static str, i32, &'static str, &'static str),
}
use Step::{Changed, Ran, RanWhileChanging, Started};

const GREEN: &str = "Tests: 12 passed, 12 total";
const RED: &str = "Tests: 1 failed, 11 passed, 12 total";

fn verdict(goal: &str, policy: Policy, steps: &[Step]) -> Verdict {
    let goal = Goal::read(goal);
    let mut evidence = Evidence::new(&goal).in_workspace("/repo");
    let mut seq = 0;
    let mut next = || {
        seq += 1;
        Seq(seq)
    };
    for step in steps {
        match *step {
            Changed(path) => evidence.changed(next(), &[path.to_owned()]),
            Started(script) => evidence.test_started(next(), script),
            Ran(script, code, output) => {
                let (started, finished) = (next(), next());
                ran(&mut evidence, script, code, output, started, finished);
            }
            RanWhileChanging(script, code, output, path) => {
                let started = next();
                evidence.changed(next(), &[path.to_owned()]);
                ran(&mut evidence, script, code, output, started, next());
            }
        }
    }
    judge(&goal, policy, &evidence)
}

fn ran(evidence: &mut Evidence, script: &str, code: i32, output: &str, started: Seq, finished: Seq) {
    let ended = Ended::Exited(code);
    let script = script.to_owned();
    match recognise(&script) {
        Some(command) => {
            let reading = read_result(&command, &ended, output);
            evidence.test_run(TestRun {
                started,
                finished,
                command,
                script,
                ended,
                reading,
            });
        }
        None => evidence.command_run(&CommandRun {
            started,
            finished,
            script,
            ended,
        }),
    }
}

#[test]
fn a_verdict_explains_itself_with_its_events() {
    let got = verdict(
        "Make `npm test` pass",
        Policy::Goal,
        &[Changed("src/a.ts"), Ran("npm test", 1, RED)],
    );
    let wanted = Verdict {
        outcome: Outcome::Failed,
        armed: true,
        reason: GateReason::LastTestFailed,
        alternatives: vec![],
        warnings: vec![],
        evidence: vec![Seq(3)],
        required: vec!["npm test".to_owned()],
        explanation: "the last `npm test` exited 1 with 1 failed (event 3)".to_owned(),
    };
    assert_eq!(got, wanted);
    let text = serde_json::to_string(&got).unwrap();
    assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), wanted);
}

#[test]
fn a_run_is_completed_only_on_a_trusted_green_that_covers_its_goal() {
    use GateReason as R;
    let check =
        |goal: &str, policy: Policy, steps: &[Step], outcome: Outcome, reason: R, warnings: &[&str]| {
            let got = verdict(goal, policy, steps);
            let warned: Vec<&str> = got.warnings.iter().map(String::as_str).collect();
            assert_eq!(
                (got.outcome, got.reason, warned),
                (outcome, reason, warnings.to_vec()),
                "{goal}: {steps:?}"
            );
        };
    let npm = "Make `npm test` pass";
    let code = Changed("src/a.ts");
    let green = Ran("npm test", 0, GREEN);
    let goal = Policy::Goal;
    check(npm, goal, &[code, green], Outcome::Passed, R::LastTestPassed, &[]);
    check(
        npm,
        goal,
        &[code, Ran("npm t", 0, GREEN)],
        Outcome::Passed,
        R::LastTestPassed,
        &[],
    );
    check(
        npm,
        goal,
        &[code, Ran("npx jest", 0, GREEN)],
        Outcome::Passed,
        R::LastTestPassed,
        &[],
    );
    check(
        npm,
        goal,
        &[code, Ran("cd /repo && npm test", 0, GREEN)],
        Outcome::Passed,
        R::LastTestPassed,
        &[],
    );
    check(
        npm,
        goal,
        &[code, Ran("npm test | tail -5", 0, GREEN)],
        Outcome::Passed,
        R::LastTestPassed,
        &["exit_code_masked"],
    );
    check(
        npm,
        goal,
        &[code, green, Changed("README.md")],
        Outcome::Passed,
        R::LastTestPassed,
        &["write_after_pass_docs_only"],
    );
    check(
        npm,
        goal,
        &[code, green, Changed("coverage/lcov.info")],
        Outcome::Passed,
        R::LastTestPassed,
        &[],
    );
    check(
        npm,
        goal,
        &[code, RanWhileChanging("npm test", 0, GREEN, "coverage/lcov.info")],
        Outcome::Passed,
        R::LastTestPassed,
        &[],
    );
    check(
        npm,
        goal,
        &[code, Ran("npm test", 1, RED), green],
        Outcome::Passed,
        R::LastTestPassed,
        &["flaky_suspected"],
    );
    check(npm, goal, &[code], Outcome::Inconclusive, R::NoTestRun, &[]);
    check(
        npm,
        goal,
        &[code, green, code],
        Outcome::Inconclusive,
        R::StalePass,
        &[],
    );
    check(
        npm,
        goal,
        &[code, RanWhileChanging("npm test", 0, GREEN, "src/b.ts")],
        Outcome::Inconclusive,
        R::StalePass,
        &[],
    );
    check(
        npm,
        goal,
        &[
            code,
            Ran("npm test", 1, RED),
            Ran("npx jest src/b.test.ts", 0, GREEN),
        ],
        Outcome::Failed,
        R::LastTestFailed,
        &[],
    );
    check(
        npm,
        goal,
        &[code, Ran("npm run test:unit", 0, GREEN)],
        Outcome::Inconclusive,
        R::SubsetOnly,
        &[],
    );
    check(
        npm,
        goal,
        &[code, Ran("yarn workspace web test", 0, GREEN)],
        Outcome::Inconclusive,
        R::SubsetOnly,
        &[],
    );
    check(
        npm,
        goal,
        &[code, Ran("cd web && npm test", 0, GREEN)],
        Outcome::Inconclusive,
        R::SubsetOnly,
        &[],
    );
    check(
        npm,
        goal,
        &[code, Ran("pytest", 0, "12 passed in 1s")],
        Outcome::Inconclusive,
        R::WrongTarget,
        &[],
    );
    check(
        npm,
        goal,
        &[code, Ran("cd /elsewhere && npm test", 0, GREEN)],
        Outcome::Inconclusive,
        R::WrongTarget,
        &[],
    );
    check(
        npm,
        goal,
        &[code, green, Started("npm test")],
        Outcome::Inconclusive,
        R::TestNotFinished,
        &[],
    );
    let two = "Make `npm test` and `npm run lint` pass";
    check(
        two,
        goal,
        &[code, green],
        Outcome::Failed,
        R::RequiredCommandFailed,
        &[],
    );
    check(
        two,
        goal,
        &[code, green, Ran("npm run lint", 1, "")],
        Outcome::Failed,
        R::RequiredCommandFailed,
        &[],
    );
    check(
        two,
        goal,
        &[code, green, Ran("npm run lint; true", 0, "")],
        Outcome::Failed,
        R::RequiredCommandFailed,
        &[],
    );
    check(
        two,
        goal,
        &[code, green, Ran("npm run lint", 0, "")],
        Outcome::Passed,
        R::LastTestPassed,
        &[],
    );
    check(
        two,
        goal,
        &[code, Ran("npm run lint && npm test", 0, GREEN)],
        Outcome::Passed,
        R::LastTestPassed,
        &[],
    );
    check(
        two,
        goal,
        &[code, Ran("npm run lint", 0, ""), code, green],
        Outcome::Failed,
        R::RequiredCommandFailed,
        &[],
    );
    let silent = "Improve add()";
    check(
        silent,
        goal,
        &[code],
        Outcome::Passed,
        R::GateNotArmed,
        &["no_test_run"],
    );
    check(
        silent,
        goal,
        &[code, Ran("npm test", 1, RED)],
        Outcome::Failed,
        R::LastTestFailed,
        &[],
    );
    check(
        silent,
        goal,
        &[Ran("npm test", 1, RED), code],
        Outcome::Passed,
        R::GateNotArmed,
        &[],
    );
    check(
        silent,
        Policy::Observed,
        &[code, green, code],
        Outcome::Inconclusive,
        R::StalePass,
        &[],
    );
    check(
        silent,
        Policy::Strict,
        &[code],
        Outcome::Inconclusive,
        R::NoTestRun,
        &[],
    );
    check(
        npm,
        Policy::Off,
        &[code, Ran("npm test", 1, RED)],
        Outcome::Passed,
        R::GateNotArmed,
        &[],
    );
    check(
        "Write a failing test for issue 12",
        goal,
        &[code, Ran("npm test", 1, RED)],
        Outcome::Passed,
        R::GateNotArmed,
        &["goal_expects_failure"],
    );
}
