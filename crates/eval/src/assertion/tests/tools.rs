//! Which tools were called: rows that pass, fail and cannot be judged.

use super::*;

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
