//! Which commands ran and passed: rows that pass, fail and cannot be judged.

use super::*;

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
    let finding =
        super::super::command::passes(&record, "npm test", super::super::command::CommandKind::Test);
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
