//! What the output and the exit of a test run prove: green, red, or nothing.

use super::{
    command::{Shown, TestCommand},
    runners,
    summary::{self, Summary},
};
use serde::{Deserialize, Serialize};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// By the runtime's or its own time limit.
    TimedOut,
    /// Not at all, as far as anyone saw.
    NotFinished,
}

/// What a run proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Tests ran and all passed.
    Green,
    /// A test failed.
    Red,
    /// Neither.
    Unknown,
}

/// Why a run is read as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadingReason {
    /// Exit 0 and a summary of passed tests.
    Passed,
    /// Exit 0 and no summary that could be read; the exit code is not masked.
    NoSummary,
    /// The exit code is masked, but a complete summary shows passed tests and no failed one.
    SummaryDespiteMask,
    /// The exit code says that a test failed.
    Failed,
    /// Exit 0, but the output shows failed tests.
    OutputContradictsExit,
    /// The exit code is masked and no summary tells.
    ExitCodeMasked,
    /// No test ran.
    ZeroTests,
    /// The runner says that its result was current: nothing ran.
    UpToDate,
    /// It was stopped by a time limit or a signal.
    Timeout,
    /// It was sent to the background, or no end was seen.
    NotFinished,
    /// The runner could not start, or what it needs is missing.
    EnvBroken,
}

/// What the output of a test run says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReading {
    /// What it proves.
    pub trust: Trust,
    /// Why.
    pub reason: ReadingReason,
    /// Number of passed tests, if the summary says.
    pub passed: Option<u64>,
    /// Number of failed tests, if the summary says.
    pub failed: Option<u64>,
    /// Number of skipped tests, if the summary says.
    pub skipped: Option<u64>,
    /// Paths of test and source files that a red output names, in order, at most 20.
    pub named_files: Vec<String>,
    /// The first line that tells of a failure, at most 200 characters.
    pub first_failure: Option<String>,
}

/// Only so much of an output is read, from its end: summaries stand there.
const READ_LIMIT: usize = 512 * 1024;

/// Reads the result of a test command. Never fails: what cannot be read proves nothing.
#[must_use]
pub fn read_result(command: &TestCommand, ended: &Ended, output: &str) -> TestReading {
    let output = summary::plain(end_of(output));
    let said = summary::read(&command.runner, &output);
    let (trust, reason) = rule(command, *ended, &output, &said);
    let counted = said.counts.lines > 0;
    let red = trust == Trust::Red;
    TestReading {
        trust,
        reason,
        passed: counted.then_some(said.counts.passed),
        failed: counted.then_some(said.counts.failed),
        skipped: counted.then_some(said.counts.skipped),
        named_files: if red { named_files(&output) } else { Vec::new() },
        first_failure: if red { first_failure(&output) } else { None },
    }
}

fn end_of(output: &str) -> &str {
    let mut start = output.len().saturating_sub(READ_LIMIT);
    while !output.is_char_boundary(start) {
        start += 1;
    }
    output.get(start..).unwrap_or(output)
}

fn rule(command: &TestCommand, ended: Ended, output: &str, said: &Summary) -> (Trust, ReadingReason) {
    let code = match ended {
        Ended::TimedOut | Ended::Signalled(_) => return (Trust::Unknown, ReadingReason::Timeout),
        Ended::NotFinished => return (Trust::Unknown, ReadingReason::NotFinished),
        Ended::Exited(code) => code,
    };
    match code {
        0 => success(command, said),
        // 124: `timeout`; 128 + n: a signal that the shell saw.
        124 | 130 | 134 | 137 | 143 => (Trust::Unknown, ReadingReason::Timeout),
        126 | 127 => (Trust::Unknown, ReadingReason::EnvBroken),
        5 if command.runner == "pytest" => (Trust::Unknown, ReadingReason::ZeroTests),
        _ if said.nothing_found && said.counts.failed == 0 && !said.counts.red => {
            (Trust::Unknown, ReadingReason::ZeroTests)
        }
        _ if summary::environment_broken(output) || summary::collection_broken(output) => {
            (Trust::Unknown, ReadingReason::EnvBroken)
        }
        _ => (Trust::Red, ReadingReason::Failed),
    }
}

fn success(command: &TestCommand, said: &Summary) -> (Trust, ReadingReason) {
    let counts = said.counts;
    if counts.failed > 0 || counts.red {
        return (Trust::Red, ReadingReason::OutputContradictsExit);
    }
    if command.detached {
        return (Trust::Unknown, ReadingReason::NotFinished);
    }
    if said.up_to_date {
        return (Trust::Unknown, ReadingReason::UpToDate);
    }
    let passed = counts.passed > 0 || said.packages_ok > 0;
    if !passed && (counts.lines > 0 || said.nothing_found) {
        return (Trust::Unknown, ReadingReason::ZeroTests);
    }
    if command.masked {
        // One line per package: a filter may have dropped the red ones.
        let many_lines = matches!(
            command.runner.as_str(),
            "cargo" | "go" | "maven" | "mix" | "bazel"
        );
        let trusted = match command.shown {
            Shown::Whole | Shown::Tail => true,
            Shown::Filtered => !many_lines,
            Shown::Elsewhere | Shown::Mixed => false,
        };
        return match trusted && passed {
            true => (Trust::Green, ReadingReason::SummaryDespiteMask),
            false => (Trust::Unknown, ReadingReason::ExitCodeMasked),
        };
    }
    if passed {
        return (Trust::Green, ReadingReason::Passed);
    }
    let always = runners::named(&command.runner).is_some_and(|row| row.summary);
    let whole = command.shown == Shown::Whole && !command.normalised.iter().any(|arg| changes_output(arg));
    if always && whole && !said.nothing_found {
        return (Trust::Unknown, ReadingReason::ZeroTests);
    }
    (Trust::Green, ReadingReason::NoSummary)
}

/// Options with which a runner may end without the usual summary.
fn changes_output(arg: &str) -> bool {
    [
        "--reporter",
        "--reporters",
        "--json",
        "-json",
        "--format",
        "-f",
        "--logger",
        "--output",
        "-qq",
        "--message-format",
        "--no-summary",
        "--test-reporter",
        "--verbosity",
        "--no-output",
        "-q",
    ]
    .iter()
    .any(|option| arg == *option || arg.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')))
}

/// Extensions of files that an agent would open after a red run.
const SOURCE: &[&str] = &[
    "ts", "tsx", "js", "jsx", "mjs", "cjs", "mts", "cts", "vue", "svelte", "py", "rs", "go", "java", "kt",
    "kts", "scala", "cs", "fs", "rb", "php", "c", "h", "cc", "cpp", "hpp", "cxx", "m", "mm", "swift", "ex",
    "exs", "erl", "dart", "zig", "hs", "ml", "clj", "lua", "jl", "R", "sh", "bats", "pl", "t", "feature",
    "elm", "cr", "nim", "snap",
];

fn named_files(output: &str) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    // Package managers echo the command of a script first (`> node run-tests.mjs`): a runner, not what failed.
    for line in output
        .lines()
        .filter(|line| !line.starts_with("> ") && !line.starts_with("$ "))
    {
        let line: String = line.chars().take(600).collect();
        for word in line.split(|c: char| {
            c.is_whitespace()
                || matches!(
                    c,
                    '(' | ')' | '"' | '\'' | '`' | ',' | '<' | '>' | '[' | ']' | '='
                )
        }) {
            let path = word
                .trim_start_matches("file://")
                .split(':')
                .next()
                .unwrap_or_default()
                .trim_start_matches("./")
                .trim_end_matches('.');
            let dependency = [
                "node_modules/",
                "site-packages/",
                ".cargo/",
                "/rustc/",
                "/usr/",
                "node:",
            ]
            .iter()
            .any(|part| word.contains(part));
            let source = path
                .rsplit('/')
                .next()
                .and_then(|name| name.rsplit_once('.'))
                .is_some_and(|(stem, extension)| !stem.is_empty() && SOURCE.contains(&extension));
            let spelled = path.len() <= 200
                && path
                    .chars()
                    .all(|c| c.is_alphanumeric() || "._-/@+$~".contains(c));
            if source && spelled && !dependency && !files.iter().any(|known| known == path) {
                files.push(path.to_owned());
                if files.len() == 20 {
                    return files;
                }
            }
        }
    }
    files
}

fn first_failure(output: &str) -> Option<String> {
    const SIGNS: &[&str] = &[
        "✕",
        "✗",
        "× ",
        "not ok",
        "--- FAIL",
        "FAILED",
        "FAIL ",
        "FAIL\t",
        "AssertionError",
        "panicked at",
        "Expected",
        "expected",
        "Error:",
        "error:",
        "error[",
        "Failure",
        "Traceback",
        "E   ",
        "failed",
    ];
    let lines = || output.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines()
        .find(|line| SIGNS.iter().any(|sign| line.contains(sign)) && !says_none_failed(line))
        .or_else(|| lines().next())?;
    Some(line.chars().take(200).collect())
}

/// Tells whether a line counts its failures as none: the summary of a binary that passed, before the one that did not.
fn says_none_failed(line: &str) -> bool {
    let none = line.match_indices("0 failed").any(|(at, _)| {
        let before = line.get(..at).unwrap_or_default();
        !before.ends_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','))
    });
    none && !line.contains("FAIL")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::recognise;

    fn read(script: &str, code: i32, output: &str) -> TestReading {
        read_result(&recognise(script).unwrap(), &Ended::Exited(code), output)
    }

    #[test]
    fn a_summary_is_read_in_the_words_of_its_runner() {
        use ReadingReason as R;
        let check = |script: &str,
                     code: i32,
                     output: &str,
                     trust: Trust,
                     reason: R,
                     counts: Option<(u64, u64, u64)>| {
            let got = read(script, code, output);
            let seen = got
                .passed
                .zip(got.failed)
                .zip(got.skipped)
                .map(|((passed, failed), skipped)| (passed, failed, skipped));
            assert_eq!(
                (got.trust, got.reason, seen),
                (trust, reason, counts),
                "{script}: {output}"
            );
        };
        let green = |script: &str, output: &str, counts: (u64, u64, u64)| {
            check(script, 0, output, Trust::Green, R::Passed, Some(counts));
        };
        let red = |script: &str, output: &str, counts: (u64, u64, u64)| {
            check(script, 1, output, Trust::Red, R::Failed, Some(counts));
        };
        let none = |script: &str, output: &str, counts: Option<(u64, u64, u64)>| {
            check(script, 0, output, Trust::Unknown, R::ZeroTests, counts);
        };
        green(
            "npm test",
            "Test Suites: 1 passed, 1 total\nTests:       12 passed, 12 total\nSnapshots:   0 total",
            (12, 0, 0),
        );
        green(
            "npx vitest run",
            " Test Files  2 passed (2)\n      Tests  14 passed | 1 skipped (15)",
            (14, 0, 1),
        );
        green(
            "node --test",
            "# tests 5\n# suites 1\n# pass 5\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0",
            (5, 0, 0),
        );
        green("pytest", "==== 24 passed, 1 skipped in 0.80s ====", (24, 0, 1));
        green(
            "cargo test",
            "test result: ok. 3 passed; 0 failed; 1 ignored\n\ntest result: ok. 4 passed; 0 failed; 0 ignored",
            (7, 0, 1),
        );
        green(
            "mvn test",
            "[INFO] Tests run: 88, Failures: 0, Errors: 0, Skipped: 1",
            (87, 0, 1),
        );
        green("rspec", "31 examples, 0 failures, 1 pending", (30, 0, 1));
        green("phpunit", "OK (9 tests, 20 assertions)", (9, 0, 0));
        green(
            "dotnet test",
            "Passed!  - Failed:     0, Passed:    12, Skipped:     0, Total:    12",
            (12, 0, 0),
        );
        green("python -m unittest", "Ran 2 tests in 0.001s\n\nOK", (2, 0, 0));
        green("ctest", "100% tests passed, 0 tests failed out of 12", (12, 0, 0));
        green(
            "npm test",
            "\u{1b}[32mTests: 12 passed\u{1b}[0m, 12 total",
            (12, 0, 0),
        );
        green(
            "npm test",
            "3 errors found in fixtures (expected)\nTests: 12 passed, 12 total",
            (12, 0, 0),
        );
        red(
            "npx mocha",
            "  2 passing (10ms)\n  1 failing\n\n  1) add",
            (2, 1, 0),
        );
        red(
            "node --test",
            "\u{2139} tests 5\n\u{2139} pass 4\n\u{2139} fail 1",
            (4, 1, 0),
        );
        red(
            "cargo nextest run",
            "     Summary [   0.045s] 12 tests run: 11 passed, 1 failed, 3 skipped",
            (11, 1, 3),
        );
        none(
            "cargo test nosuch",
            "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 41 filtered out",
            Some((0, 0, 41)),
        );
        none("go test ./...", "?   \tx/cmd\t[no test files]", None);
        none("npm test", "Tests: 12 skipped, 12 total", Some((0, 0, 12)));
        none(
            "python -m unittest",
            "Ran 2 tests in 0.001s\n\nOK (skipped=2)",
            Some((0, 0, 2)),
        );
        none("gradle test", "> Task :test NO-SOURCE\nBUILD SUCCESSFUL", None);
        none("pytest", "", None);
        check(
            "go test ./...",
            0,
            "ok  \tx/a\t0.01s [no tests to run]\nok  \tx/b\t(cached)",
            Trust::Green,
            R::Passed,
            None,
        );
        check(
            "gradle test",
            0,
            "> Task :test UP-TO-DATE",
            Trust::Unknown,
            R::UpToDate,
            None,
        );
        check("make test", 0, "ok", Trust::Green, R::NoSummary, None);
        check(
            "npm test | tail -3",
            0,
            "Tests: 2 passed, 2 total",
            Trust::Green,
            R::SummaryDespiteMask,
            Some((2, 0, 0)),
        );
        check(
            "npm test | tail -3",
            0,
            "Done.",
            Trust::Unknown,
            R::ExitCodeMasked,
            None,
        );
        check(
            "npm test || echo 'Tests: 2 passed'",
            0,
            "Tests: 2 passed, 2 total",
            Trust::Unknown,
            R::ExitCodeMasked,
            Some((2, 0, 0)),
        );
        check(
            "cargo test | grep ok",
            0,
            "test result: ok. 2 passed; 0 failed",
            Trust::Unknown,
            R::ExitCodeMasked,
            Some((2, 0, 0)),
        );
        check(
            "npm test || true",
            0,
            "Tests: 1 failed, 2 total",
            Trust::Red,
            R::OutputContradictsExit,
            Some((1, 1, 0)),
        );
        check(
            "npm test",
            127,
            "sh: jest: not found",
            Trust::Unknown,
            R::EnvBroken,
            None,
        );
        check(
            "npm test",
            1,
            "getaddrinfo EAI_AGAIN host",
            Trust::Unknown,
            R::EnvBroken,
            None,
        );
        check("npm test", 137, "", Trust::Unknown, R::Timeout, None);
        check(
            "pytest",
            5,
            "24 deselected in 0.1s",
            Trust::Unknown,
            R::ZeroTests,
            Some((0, 0, 24)),
        );
    }

    #[test]
    fn a_summary_without_failures_is_no_first_failure() {
        let rows = [
            (
                "test result: ok. 0 passed; 0 failed; 0 ignored\ntest b ... FAILED\ntest result: FAILED. 1 passed; 1 failed",
                "test b ... FAILED",
            ),
            (
                "Tests: 0 failed, 3 passed\nTests: 10 failed, 3 passed",
                "Tests: 10 failed, 3 passed",
            ),
            (
                "FAIL a.ts: 0 failed assertions, 1 error",
                "FAIL a.ts: 0 failed assertions, 1 error",
            ),
        ];
        for (output, wanted) in rows {
            assert_eq!(first_failure(output).as_deref(), Some(wanted), "{output}");
        }
    }

    #[test]
    fn a_red_output_names_its_test_and_its_first_failure() {
        let output = "FAIL src/math.test.ts\n  add keeps number return type\nExpected: \"number\"\nReceived: \"bigint\"\n    at ./src/math.ts:3:5\n    at node_modules/x/y.js:1:1\nTests: 1 failed, 1 passed, 2 total";
        let wanted = TestReading {
            trust: Trust::Red,
            reason: ReadingReason::Failed,
            passed: Some(1),
            failed: Some(1),
            skipped: Some(0),
            named_files: vec!["src/math.test.ts".to_owned(), "src/math.ts".to_owned()],
            first_failure: Some("FAIL src/math.test.ts".to_owned()),
        };
        assert_eq!(read("npm test", 1, output), wanted);
    }
}
