//! The ruling at the end of a run: may it be called completed? A pure function of goal, policy and evidence.
//!
//! Not judged yet: whether tests or their runner were weakened (deleted, skipped, loosened, count dropped).

use super::{
    command::{Scope, TestCommand, recognise},
    coverage::{Cover, cover, covers_paths, related},
    evidence::{Evidence, Kept, TestRun},
    reading::{Ended, ReadingReason, Trust},
};
use crate::{goal::Goal, ids::Seq};
use serde::{Deserialize, Serialize};

/// When the gate is armed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Never.
    Off,
    /// If the goal is about tests, or a red run was observed after the last change.
    #[default]
    Goal,
    /// As `Goal`, and as soon as any test run was observed.
    Observed,
    /// Always, except where the goal wants a failure.
    Strict,
}

/// What the gate finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The run may be called completed: a trusted green, or a gate that is not armed.
    Passed,
    /// Red was seen.
    Failed,
    /// Neither a trusted green nor a red: not completed either.
    Inconclusive,
}

/// Why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateReason {
    /// A trusted green that covers the goal, with nothing changed after it.
    LastTestPassed,
    /// The newest run is red.
    LastTestFailed,
    /// No test ran after the last change, or at all.
    NoTestRun,
    /// The green run is older than the last change, or did not run anew.
    StalePass,
    /// The exit code could not show a failure, and no summary did.
    ExitCodeMasked,
    /// Exit 0 over an output that shows failures.
    OutputContradictsExit,
    /// The run found no test.
    ZeroTests,
    /// Only a part of what the goal asks for ran.
    SubsetOnly,
    /// Tests of another project, language or directory ran.
    WrongTarget,
    /// Another command that the goal names failed or did not run.
    RequiredCommandFailed,
    /// The run was stopped by a time limit or a signal.
    TestTimeout,
    /// The run was sent to the background, and nobody saw its end.
    TestNotFinished,
    /// The tests could not run in this environment.
    TestEnvBroken,
    /// The gate is not armed.
    GateNotArmed,
}

impl std::fmt::Display for GateReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// The ruling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// May the run be called completed? Only [`Outcome::Passed`] says yes.
    pub outcome: Outcome,
    /// True if the gate judged; false if goal and policy left it open.
    pub armed: bool,
    /// The reason that decided.
    pub reason: GateReason,
    /// Reasons that hold too.
    pub alternatives: Vec<GateReason>,
    /// What a reviewer should know all the same, as codes such as `flaky_suspected`.
    pub warnings: Vec<String>,
    /// The events that decided.
    pub evidence: Vec<Seq>,
    /// The commands that the goal names and the gate requires.
    pub required: Vec<String>,
    /// One English sentence for people and for the model.
    pub explanation: String,
}

/// Rules whether a run with this evidence may end as completed.
#[must_use]
pub fn judge(goal: &Goal, policy: Policy, evidence: &Evidence) -> Verdict {
    let bench = Bench {
        goal,
        evidence,
        current: evidence
            .runs
            .iter()
            .filter(|kept| evidence.is_current(kept.run.started))
            .collect(),
    };
    let armed = !goal.expects_failure
        && match policy {
            Policy::Off => false,
            Policy::Goal => goal.mentions_tests || bench.standing_red().is_some(),
            Policy::Observed => goal.mentions_tests || !evidence.runs.is_empty(),
            Policy::Strict => true,
        };
    let ruling = if armed {
        bench.rule()
    } else {
        not_armed(goal, policy)
    };
    let mut warnings = bench.warnings(armed, &ruling);
    warnings.dedup();
    Verdict {
        outcome: match ruling.reason {
            GateReason::LastTestPassed | GateReason::GateNotArmed => Outcome::Passed,
            GateReason::LastTestFailed
            | GateReason::OutputContradictsExit
            | GateReason::RequiredCommandFailed => Outcome::Failed,
            GateReason::NoTestRun
            | GateReason::StalePass
            | GateReason::ExitCodeMasked
            | GateReason::ZeroTests
            | GateReason::SubsetOnly
            | GateReason::WrongTarget
            | GateReason::TestTimeout
            | GateReason::TestNotFinished
            | GateReason::TestEnvBroken => Outcome::Inconclusive,
        },
        armed,
        reason: ruling.reason,
        alternatives: ruling.alternatives,
        warnings,
        evidence: ruling.evidence,
        required: goal.named_commands.clone(),
        explanation: ruling.explanation,
    }
}

struct Ruling {
    reason: GateReason,
    alternatives: Vec<GateReason>,
    evidence: Vec<Seq>,
    explanation: String,
}

impl Ruling {
    fn new(reason: GateReason, evidence: &[Seq], explanation: String) -> Self {
        Self {
            reason,
            alternatives: Vec::new(),
            evidence: evidence.to_vec(),
            explanation,
        }
    }

    fn or(mut self, alternatives: &[GateReason]) -> Self {
        self.alternatives.extend_from_slice(alternatives);
        self
    }
}

fn not_armed(goal: &Goal, policy: Policy) -> Ruling {
    let why = if policy == Policy::Off {
        "the policy switches the validation gate off"
    } else if goal.expects_failure {
        "the goal wants a failing test or asks why something fails"
    } else {
        "the goal does not ask for tests to pass and no red test run was observed after the last change"
    };
    Ruling::new(
        GateReason::GateNotArmed,
        &[],
        format!("the validation gate is not armed: {why}"),
    )
}

struct Bench<'a> {
    goal: &'a Goal,
    evidence: &'a Evidence,
    /// Runs that began after the last change, oldest first.
    current: Vec<&'a Kept>,
}

impl Bench<'_> {
    fn rule(&self) -> Ruling {
        let Some(newest) = self.evidence.runs.last() else {
            return match self.evidence.running.last() {
                Some(running) => unfinished(&running.script, running.started),
                None => self.no_test_run(),
            };
        };
        if let Some(running) = self
            .evidence
            .running
            .iter()
            .rfind(|running| running.started > newest.run.finished)
        {
            return unfinished(&running.script, running.started);
        }
        let Some(last) = self.current.last() else {
            return self.nothing_current(&newest.run);
        };
        if let Some(red) = self.standing_red() {
            return red_run(&red.run);
        }
        let blocking = matches!(
            last.run.reading.reason,
            ReadingReason::Timeout | ReadingReason::NotFinished | ReadingReason::EnvBroken
        );
        if blocking {
            return self.unknown_run(&last.run);
        }
        let greens: Vec<&TestRun> = self
            .current
            .iter()
            .map(|kept| &kept.run)
            .filter(|run| run.reading.trust == Trust::Green)
            .collect();
        let inside: Vec<&TestRun> = greens
            .iter()
            .copied()
            .filter(|run| self.is_inside(&run.command))
            .collect();
        if inside.is_empty() {
            return match greens.last() {
                Some(run) => wrong_target(run),
                None => self.unknown_run(&last.run),
            };
        }
        let proof = match self.covering(&inside) {
            Ok(run) => run,
            Err(ruling) => return ruling,
        };
        if let Some(ruling) = self.required_commands() {
            return ruling;
        }
        let counts = proof
            .reading
            .passed
            .map(|passed| format!(" with {passed} passed tests"))
            .unwrap_or_default();
        Ruling::new(
            GateReason::LastTestPassed,
            &[proof.finished],
            format!(
                "the last `{}` passed{counts} (event {}) and nothing changed after it",
                proof.script, proof.finished
            ),
        )
    }

    fn no_test_run(&self) -> Ruling {
        let wanted = self
            .goal
            .named_commands
            .first()
            .map(|name| format!(": run `{name}`"))
            .unwrap_or_default();
        let since = if self.evidence.changed_at.is_some() {
            " after the last change"
        } else {
            ""
        };
        Ruling::new(
            GateReason::NoTestRun,
            &[],
            format!("no test run was observed{since}{wanted}"),
        )
    }

    fn nothing_current(&self, newest: &TestRun) -> Ruling {
        let changed = self.evidence.changed_at;
        let events: Vec<Seq> = std::iter::once(newest.finished).chain(changed).collect();
        let after = changed.map(|at| format!(" (event {at})")).unwrap_or_default();
        match newest.reading.trust {
            Trust::Green => Ruling::new(
                GateReason::StalePass,
                &events,
                format!(
                    "`{}` passed (event {}), but the workspace changed after it began{after}",
                    newest.script, newest.finished
                ),
            )
            .or(&[GateReason::NoTestRun]),
            Trust::Red => {
                let red = red_run(newest);
                let explanation = format!(
                    "{}, and the workspace changed after it began{after} without a new run",
                    red.explanation
                );
                Ruling::new(red.reason, &events, explanation)
                    .or(&[GateReason::NoTestRun, GateReason::StalePass])
            }
            Trust::Unknown => {
                let unknown = self.unknown_run(newest);
                Ruling::new(
                    GateReason::NoTestRun,
                    &events,
                    format!(
                        "no test run was observed after the last change{after}; {}",
                        unknown.explanation
                    ),
                )
                .or(&[unknown.reason, GateReason::StalePass])
            }
        }
    }

    /// The newest red run of the current workspace that no later green run of the same or a wider scope took back.
    fn standing_red(&self) -> Option<&Kept> {
        self.current.iter().enumerate().rev().find_map(|(place, kept)| {
            let later = self.current.iter().skip(place + 1);
            let taken_back = later.map(|kept| &kept.run).any(|run| {
                run.reading.trust == Trust::Green
                    && run.command.scope == Scope::All
                    && run.command.dir == kept.run.command.dir
                    && related(&run.command.runner, &kept.run.command.runner)
            });
            (kept.run.reading.trust == Trust::Red && !taken_back).then_some(*kept)
        })
    }

    fn unknown_run(&self, run: &TestRun) -> Ruling {
        let script = &run.script;
        let at = run.finished;
        let (reason, alternatives, text): (_, &[GateReason], String) = match run.reading.reason {
            ReadingReason::ExitCodeMasked => (
                GateReason::ExitCodeMasked,
                &[GateReason::OutputContradictsExit],
                format!(
                    "the exit code of `{script}` (event {at}) cannot show a failed test and its output has no complete summary"
                ),
            ),
            ReadingReason::ZeroTests => (
                GateReason::ZeroTests,
                &[GateReason::NoTestRun],
                format!("`{script}` ran no test (event {at})"),
            ),
            ReadingReason::UpToDate => (
                GateReason::StalePass,
                &[GateReason::NoTestRun],
                format!("`{script}` says that its result is up to date and ran nothing (event {at})"),
            ),
            ReadingReason::Timeout => (
                GateReason::TestTimeout,
                &[GateReason::TestNotFinished],
                format!("`{script}` was stopped before it ended (event {at})"),
            ),
            ReadingReason::NotFinished => (
                GateReason::TestNotFinished,
                &[GateReason::TestTimeout],
                format!("nobody saw the end of `{script}` (event {at})"),
            ),
            ReadingReason::EnvBroken => (
                GateReason::TestEnvBroken,
                &[GateReason::LastTestFailed],
                format!("`{script}` could not run in this environment (event {at})"),
            ),
            ReadingReason::Passed
            | ReadingReason::NoSummary
            | ReadingReason::SummaryDespiteMask
            | ReadingReason::Failed
            | ReadingReason::OutputContradictsExit => (
                GateReason::NoTestRun,
                &[],
                format!("`{script}` proves nothing (event {at})"),
            ),
        };
        Ruling::new(reason, &[at], text).or(alternatives)
    }

    /// False for a run in a directory that is known to lie outside the workspace.
    fn is_inside(&self, command: &TestCommand) -> bool {
        const SCRATCH: [&str; 4] = ["/tmp/", "/var/tmp/", "/dev/shm/", "/private/tmp/"];
        let Some(dir) = command.dir.as_deref() else {
            return true;
        };
        if !dir.starts_with('/') {
            return !dir.starts_with("..");
        }
        let dir = format!("{}/", dir.trim_end_matches('/'));
        match &self.evidence.root {
            Some(root) => dir.starts_with(&format!("{root}/")),
            // Without a root only scratch directories are known to be elsewhere.
            None => !SCRATCH.iter().any(|scratch| dir.starts_with(scratch)),
        }
    }

    /// The newest green run that covers what the goal asks for.
    fn covering<'r>(&self, greens: &[&'r TestRun]) -> Result<&'r TestRun, Ruling> {
        let newest = greens.last().copied();
        let mut proof = None;
        for name in &self.goal.named_commands {
            let Some(named) = recognise(name) else {
                continue;
            };
            let best = greens
                .iter()
                .rev()
                .map(|run| (cover(&named, &run.command), *run))
                .min_by_key(|(cover, _)| *cover);
            match best {
                Some((Cover::Same | Cover::Wider | Cover::Unsure, run)) => proof = Some(run),
                Some((Cover::Part, run)) => return Err(subset(run, name)),
                Some((Cover::Foreign, run)) => {
                    return Err(Ruling::new(
                        GateReason::WrongTarget,
                        &[run.finished],
                        format!(
                            "the goal names `{name}`, but only `{}` passed (event {})",
                            run.script, run.finished
                        ),
                    )
                    .or(&[GateReason::NoTestRun, GateReason::SubsetOnly]));
                }
                None => return Err(self.no_test_run()),
            }
        }
        if let Some(run) = proof {
            return Ok(run);
        }
        if let Some(run) = greens
            .iter()
            .rev()
            .find(|run| run.command.scope == Scope::All || covers_paths(&run.command, &self.goal.named_paths))
        {
            return Ok(run);
        }
        if let Some(run) = greens
            .iter()
            .rev()
            .find(|run| run.command.scope == Scope::Unknown)
        {
            return Ok(run);
        }
        let Some(run) = newest else {
            return Err(self.no_test_run());
        };
        let wider_red = self.evidence.runs.iter().any(|kept| {
            kept.run.reading.trust == Trust::Red
                && kept.run.command.scope != Scope::Subset
                && kept.run.finished < run.finished
        });
        if self.goal.wants_all || wider_red {
            Err(subset(run, "the whole suite"))
        } else {
            Ok(run)
        }
    }

    fn required_commands(&self) -> Option<Ruling> {
        self.evidence.required.iter().find_map(|required| {
            let name = &required.name;
            match &required.last {
                None => Some(
                    Ruling::new(
                        GateReason::RequiredCommandFailed,
                        &[],
                        format!("the goal names `{name}`, which was not run"),
                    )
                    .or(&[GateReason::NoTestRun]),
                ),
                Some(run) if run.ended != Ended::Exited(0) => {
                    let how = ended(run.ended);
                    Some(Ruling::new(
                        GateReason::RequiredCommandFailed,
                        &[run.finished],
                        format!(
                            "the goal names `{name}`, and `{}` {how} (event {})",
                            run.script, run.finished
                        ),
                    ))
                }
                Some(run) if !self.evidence.is_current(run.started) => Some(
                    Ruling::new(
                        GateReason::RequiredCommandFailed,
                        &[run.finished],
                        format!(
                            "the goal names `{name}`, which was last run before the last change (event {})",
                            run.finished
                        ),
                    )
                    .or(&[GateReason::StalePass]),
                ),
                Some(_) => None,
            }
        })
    }

    fn warnings(&self, armed: bool, ruling: &Ruling) -> Vec<String> {
        let mut warnings = Vec::new();
        let mut warn = |holds: bool, code: &str| {
            if holds {
                warnings.push(code.to_owned());
            }
        };
        let last_start = self.evidence.runs.last().map(|kept| kept.run.started);
        let passed = ruling.reason == GateReason::LastTestPassed;
        let proof = self
            .current
            .iter()
            .find(|kept| ruling.evidence.contains(&kept.run.finished));
        warn(self.goal.expects_failure, "goal_expects_failure");
        warn(
            !armed && self.evidence.changed_at.is_some() && self.evidence.runs.is_empty(),
            "no_test_run",
        );
        warn(
            self.evidence
                .docs_changed_at
                .zip(last_start)
                .is_some_and(|(changed, started)| changed > started),
            "write_after_pass_docs_only",
        );
        warn(self.evidence.tests_changed_at.is_some(), "tests_modified");
        warn(
            self.evidence
                .other_failed
                .is_some_and(|at| self.evidence.is_current(at)),
            "other_command_failed",
        );
        warn(
            passed
                && self
                    .current
                    .iter()
                    .any(|kept| kept.red_before.is_some_and(|red| self.evidence.is_current(red))),
            "flaky_suspected",
        );
        if let Some(kept) = proof.filter(|_| passed) {
            warn(kept.run.reading.reason == ReadingReason::NoSummary, "no_summary");
            warn(kept.run.command.masked, "exit_code_masked");
            warn(kept.run.command.scope == Scope::Unknown, "scope_unknown");
            warn(kept.run.command.scope == Scope::Subset, "subset_only");
        }
        warnings
    }
}

fn ended(how: Ended) -> String {
    match how {
        Ended::Exited(code) => format!("exited {code}"),
        Ended::Signalled(signal) => format!("was killed by signal {signal}"),
        Ended::TimedOut => "timed out".to_owned(),
        Ended::NotFinished => "has no known result".to_owned(),
    }
}

fn red_run(run: &TestRun) -> Ruling {
    let (script, at) = (&run.script, run.finished);
    let failed = run
        .reading
        .failed
        .filter(|failed| *failed > 0)
        .map(|failed| format!(" with {failed} failed"))
        .unwrap_or_default();
    match run.reading.reason {
        ReadingReason::OutputContradictsExit => Ruling::new(
            GateReason::OutputContradictsExit,
            &[at],
            format!("the last `{script}` exited 0, but its output shows failed tests{failed} (event {at})"),
        )
        .or(&[GateReason::ExitCodeMasked, GateReason::LastTestFailed]),
        ReadingReason::Passed
        | ReadingReason::NoSummary
        | ReadingReason::SummaryDespiteMask
        | ReadingReason::Failed
        | ReadingReason::ExitCodeMasked
        | ReadingReason::ZeroTests
        | ReadingReason::UpToDate
        | ReadingReason::Timeout
        | ReadingReason::NotFinished
        | ReadingReason::EnvBroken => Ruling::new(
            GateReason::LastTestFailed,
            &[at],
            format!("the last `{script}` {}{failed} (event {at})", ended(run.ended)),
        ),
    }
}

fn unfinished(script: &str, started: Seq) -> Ruling {
    Ruling::new(
        GateReason::TestNotFinished,
        &[started],
        format!("nobody saw the end of `{script}` (begun at event {started})"),
    )
    .or(&[GateReason::TestTimeout])
}

fn wrong_target(run: &TestRun) -> Ruling {
    let dir = run.command.dir.as_deref().unwrap_or(".");
    Ruling::new(
        GateReason::WrongTarget,
        &[run.finished],
        format!(
            "`{}` ran in `{dir}`, outside the workspace (event {})",
            run.script, run.finished
        ),
    )
    .or(&[GateReason::SubsetOnly])
}

fn subset(run: &TestRun, wanted: &str) -> Ruling {
    Ruling::new(
        GateReason::SubsetOnly,
        &[run.finished],
        format!(
            "the goal asks for {}, but only `{}` passed (event {})",
            if wanted.contains(' ') && wanted.starts_with("the ") {
                wanted.to_owned()
            } else {
                format!("`{wanted}`")
            },
            run.script,
            run.finished
        ),
    )
}
