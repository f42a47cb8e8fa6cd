//! What happened, folded to constant size: the newest run of each test command, the newest run of all, the newest change.

use super::{
    command::{TestCommand, recognise},
    reading::{Ended, ReadingReason, TestReading, Trust},
    tasks::plain_commands,
};
use crate::{goal::Goal, goal::is_test_path, ids::Seq};
use serde::{Deserialize, Serialize};

/// One finished test run, as an observer saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRun {
    /// The event with which it began: it speaks for the workspace as it was then.
    pub started: Seq,
    /// The event with which it ended.
    pub finished: Seq,
    /// What was run.
    pub command: TestCommand,
    /// The command line as written.
    pub script: String,
    /// How it ended.
    pub ended: Ended,
    /// What its output says.
    pub reading: TestReading,
}

/// One finished command that is no test run but may be required by the goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRun {
    /// The event with which it began.
    pub started: Seq,
    /// The event with which it ended.
    pub finished: Seq,
    /// The command line as written.
    pub script: String,
    /// How it ended.
    pub ended: Ended,
}

/// A required command that is no test run, and how it last went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Required {
    pub(super) name: String,
    pub(super) argv: Vec<String>,
    pub(super) last: Option<CommandRun>,
}

/// A run and the red run of the same command before it, if nothing changed in between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) run: TestRun,
    pub(super) red_before: Option<Seq>,
}

/// A test run whose end nobody saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Running {
    pub(super) started: Seq,
    pub(super) script: String,
}

/// At most this many commands are told apart; the one that ended longest ago goes first.
const MAX_COMMANDS: usize = 64;
/// At most this many runs without an end are kept.
const MAX_RUNNING: usize = 16;

/// Returns the commands that a goal wants besides tests.
fn required(goal: &Goal) -> Vec<Required> {
    goal.named_commands
        .iter()
        .filter(|command| recognise(command).is_none())
        .filter_map(|command| {
            Some(Required {
                name: command.clone(),
                argv: plain_commands(command).commands.pop()?,
                last: None,
            })
        })
        .collect()
}

/// What happened, as far as the validation gate needs it. Its size does not grow with the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The workspace's absolute path, if known: a run in a directory outside proves nothing.
    pub(super) root: Option<String>,
    pub(super) changed_at: Option<Seq>,
    /// The newest change that touched nothing but documentation.
    pub(super) docs_changed_at: Option<Seq>,
    pub(super) tests_changed_at: Option<Seq>,
    pub(super) runs: Vec<Kept>,
    pub(super) running: Vec<Running>,
    pub(super) required: Vec<Required>,
    pub(super) other_failed: Option<Seq>,
}

impl Evidence {
    /// Starts with nothing: no run, no change.
    #[must_use]
    pub fn new(goal: &Goal) -> Self {
        Self {
            root: None,
            changed_at: None,
            docs_changed_at: None,
            tests_changed_at: None,
            runs: Vec::new(),
            running: Vec::new(),
            required: required(goal),
            other_failed: None,
        }
    }

    /// Takes another goal: what it requires was not done yet, whatever was done for the one before.
    pub fn aim_at(&mut self, goal: &Goal) {
        self.required = required(goal);
    }

    /// Says where the workspace is, so that `cd /elsewhere && npm test` can be told from `cd /the/workspace && npm test`.
    #[must_use]
    pub fn in_workspace(mut self, root: &str) -> Self {
        self.root = Some(root.trim_end_matches('/').to_owned());
        self
    }

    /// Records that `paths` (relative to the workspace) were seen changed at `at`. No path means: something, unknown what.
    ///
    /// The caller leaves out what git ignores; a runner's own outputs are left out here.
    pub fn changed(&mut self, at: Seq, paths: &[String]) {
        let matters: Vec<&String> = paths.iter().filter(|path| !is_runner_output(path)).collect();
        if matters.is_empty() && !paths.is_empty() {
            return;
        }
        if !matters.is_empty() && matters.iter().all(|path| is_documentation(path)) {
            self.docs_changed_at = newest(self.docs_changed_at, at);
            return;
        }
        if matters.iter().any(|path| is_test_path(path)) {
            self.tests_changed_at = newest(self.tests_changed_at, at);
        }
        self.changed_at = newest(self.changed_at, at);
    }

    /// Records that a test run began; [`Evidence::test_run`] with the same `started` settles it.
    pub fn test_started(&mut self, started: Seq, script: &str) {
        self.running.push(Running {
            started,
            script: cut(script),
        });
        let over = self.running.len().saturating_sub(MAX_RUNNING);
        self.running.drain(..over);
    }

    /// Records a finished test run.
    pub fn test_run(&mut self, mut run: TestRun) {
        run.script = cut(&run.script);
        self.running.retain(|running| running.started != run.started);
        let settled_commands = CommandRun {
            started: run.started,
            finished: run.finished,
            script: run.script.clone(),
            ended: run.ended,
        };
        self.required_run(&settled_commands);
        let key = key(&run.command);
        let place = self
            .runs
            .iter()
            .position(|kept| self::key(&kept.run.command) == key);
        let before = place.map(|place| self.runs.remove(place));
        // "Up to date" repeats what the runner proved before, if nothing changed since.
        if run.reading.reason == ReadingReason::UpToDate
            && let Some(before) = &before
            && before.run.reading.trust == Trust::Green
            && self.is_current(before.run.started)
        {
            self.runs.push(before.clone());
            self.runs.sort_by_key(|kept| kept.run.finished);
            return;
        }
        let red_before = before.and_then(|before| match before.run.reading.trust {
            Trust::Red => Some(before.run.started),
            Trust::Green | Trust::Unknown => before.red_before,
        });
        self.runs.push(Kept { run, red_before });
        self.runs.sort_by_key(|kept| kept.run.finished);
        let over = self.runs.len().saturating_sub(MAX_COMMANDS);
        self.runs.drain(..over);
    }

    /// Records any other finished command: the goal may require it (`npm run lint`), and a failed check is worth a warning.
    pub fn command_run(&mut self, run: &CommandRun) {
        let required = self.required_run(run);
        if !required && run.ended != Ended::Exited(0) && is_check(&run.script) {
            self.other_failed = newest(self.other_failed, run.finished);
        }
    }

    fn required_run(&mut self, run: &CommandRun) -> bool {
        let line = plain_commands(&run.script);
        let mut hit = false;
        for required in &mut self.required {
            if line.commands.iter().any(|argv| argv.starts_with(&required.argv)) {
                // Exit 0 of `lint; build` says nothing about `lint`.
                let unproved = run.ended == Ended::Exited(0) && !line.all_succeed;
                let ended = if unproved { Ended::NotFinished } else { run.ended };
                required.last = Some(CommandRun {
                    script: cut(&run.script),
                    ended,
                    ..run.clone()
                });
                hit = true;
            }
        }
        hit
    }

    /// True if nothing that can change a test's result changed after `started`.
    pub(super) fn is_current(&self, started: Seq) -> bool {
        self.changed_at.is_none_or(|changed| changed < started)
    }
}

fn key(command: &TestCommand) -> (Vec<&str>, Option<&str>) {
    (
        command.normalised.iter().map(String::as_str).collect(),
        command.dir.as_deref(),
    )
}

fn newest(before: Option<Seq>, at: Seq) -> Option<Seq> {
    before.max(Some(at))
}

fn cut(script: &str) -> String {
    script.chars().take(500).collect()
}

/// Texts that no test reads. `.txt` is not among them: `requirements.txt` and `CMakeLists.txt` are no prose.
/// How much a changed path matters to [`Evidence::changed`], most first: where not all can be listed, these are.
///
/// A list that begins with the weightiest paths leads to the same evidence as the whole list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// A test.
    Test,
    /// A source, or anything that is none of the others.
    Source,
    /// Prose.
    Documentation,
    /// What a test runner leaves behind.
    RunnerOutput,
}

impl Weight {
    /// Weighs a path relative to the workspace.
    #[must_use]
    pub fn of(path: &str) -> Self {
        if is_runner_output(path) {
            Self::RunnerOutput
        } else if is_test_path(path) {
            Self::Test
        } else if is_documentation(path) {
            Self::Documentation
        } else {
            Self::Source
        }
    }
}

fn is_documentation(path: &str) -> bool {
    let lower = path.to_lowercase();
    let name = lower.rsplit('/').next().unwrap_or(&lower);
    let prose = [".md", ".markdown", ".rst", ".adoc"]
        .iter()
        .any(|end| name.ends_with(end));
    let named = [
        "license",
        "licence",
        "notice",
        "authors",
        "changelog",
        "contributors",
        "codeowners",
    ]
    .contains(&name.split('.').next().unwrap_or(name));
    let data = lower.split('/').rev().skip(1).any(|part| {
        matches!(
            part,
            "test"
                | "tests"
                | "testdata"
                | "fixtures"
                | "golden"
                | "__snapshots__"
                | "spec"
                | "src"
                | "examples"
        )
    });
    (prose || named) && !data
}

/// What a runner writes by itself: reports, caches, coverage.
fn is_runner_output(path: &str) -> bool {
    const DIRECTORIES: &[&str] = &[
        "coverage",
        "htmlcov",
        ".pytest_cache",
        "__pycache__",
        ".nyc_output",
        "test-results",
        "playwright-report",
        ".mypy_cache",
        ".ruff_cache",
        ".hypothesis",
        "TestResults",
        "surefire-reports",
        ".vitest",
        ".jest",
        ".cache",
    ];
    let name = path.rsplit('/').next().unwrap_or(path);
    let directory = path
        .split('/')
        .rev()
        .skip(1)
        .any(|part| DIRECTORIES.contains(&part))
        || path.starts_with("target/")
        || path.contains("/.cache/");
    let file = matches!(
        name,
        ".coverage"
            | "coverage.xml"
            | "lcov.info"
            | "coverage.out"
            | "cover.out"
            | "junit.xml"
            | ".eslintcache"
            | ".phpunit.result.cache"
            | "test-report.xml"
    ) || name.ends_with(".pyc")
        || name.ends_with(".snap.new")
        || name.ends_with(".profraw")
        || name.ends_with(".tsbuildinfo");
    directory || file
}

fn is_check(script: &str) -> bool {
    plain_commands(script).commands.iter().flatten().any(|word| {
        word.split(':').any(|part| {
            matches!(
                part,
                "lint"
                    | "typecheck"
                    | "build"
                    | "clippy"
                    | "check"
                    | "tsc"
                    | "eslint"
                    | "ruff"
                    | "mypy"
                    | "vet"
                    | "fmt"
            )
        })
    })
}
