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
    for line in output.lines() {
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
        .find(|line| SIGNS.iter().any(|sign| line.contains(sign)))
        .or_else(|| lines().next())?;
    Some(line.chars().take(200).collect())
}
