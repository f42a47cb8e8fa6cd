//! What a suite of cases came to: one outcome a case, one exit code for all, as text and as JSON.

use crate::{
    assertion::{AssertionResult, AssertionStatus},
    case::{Case, Severity},
};
use serde_json::{Map, Value};
use std::fmt::Write as _;
use tracegate_core::stop::Exit;

/// The format of [`SuiteReport::to_json`].
pub const REPORT_SCHEMA: &str = "tracegate.eval-report/1";

/// What a case came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseOutcome {
    /// Every gate assertion that applies passed, and at least one did.
    Passed,
    /// A gate assertion failed.
    Failed,
    /// Nothing failed, but something could not be judged, or nothing was; with the reason.
    NoVerdict(String),
}

impl CaseOutcome {
    /// Adds up the results of one trial. A failure outweighs what could not be judged; a case that judged nothing is no pass.
    #[must_use]
    pub fn of(results: &[AssertionResult]) -> Self {
        let gates = || results.iter().filter(|result| result.severity == Severity::Gate);
        let first = |status| gates().find(|result| result.status == status);
        if first(AssertionStatus::Fail).is_some() {
            return Self::Failed;
        }
        if let Some(result) = first(AssertionStatus::Error) {
            return Self::NoVerdict(format!("{}: {}", result.id, result.message));
        }
        if first(AssertionStatus::Pass).is_none() {
            return Self::NoVerdict("no assertion judged anything".to_owned());
        }
        Self::Passed
    }

    /// Returns the spelling used in JSON.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::NoVerdict(_) => "no_verdict",
        }
    }

    /// Returns the word that begins the case's line.
    const fn word(&self) -> &'static str {
        match self {
            Self::Passed => "PASS",
            Self::Failed => "FAIL",
            Self::NoVerdict(_) => "ERROR",
        }
    }
}

/// Whether a case decides about its suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// It does.
    Decides,
    /// It is shown: a draft, a quarantined or a usually stable case.
    Shown,
}

impl Weight {
    /// Returns the weight of `case`.
    #[must_use]
    pub const fn of(case: &Case) -> Self {
        if case.decides() {
            Self::Decides
        } else {
            Self::Shown
        }
    }
}

/// What one case came to, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseReport {
    /// Id of the case.
    pub id: String,
    /// Its title.
    pub title: Option<String>,
    /// Whether it decides about the suite.
    pub weight: Weight,
    /// What it came to.
    pub outcome: CaseOutcome,
    /// Steps of the run.
    pub steps: u64,
    /// How long the run took, in milliseconds.
    pub duration_ms: u64,
    /// The run that was judged, if one was recorded.
    pub run_id: Option<String>,
    /// What its assertions say, in the order of the format.
    pub results: Vec<AssertionResult>,
}

/// What all cases came to, sorted by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteReport {
    cases: Vec<CaseReport>,
}

/// How many cases came to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    passed: usize,
    failed: usize,
    no_verdict: usize,
}

impl SuiteReport {
    /// Sorts the cases by id (and run), so that the order in which trials end changes nothing.
    #[must_use]
    pub fn new(mut cases: Vec<CaseReport>) -> Self {
        cases.sort_by(|a, b| (&a.id, &a.run_id).cmp(&(&b.id, &b.run_id)));
        Self { cases }
    }

    /// Returns the cases, sorted by id.
    #[must_use]
    pub fn cases(&self) -> &[CaseReport] {
        &self.cases
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for case in &self.cases {
            match case.outcome {
                CaseOutcome::Passed => counts.passed += 1,
                CaseOutcome::Failed => counts.failed += 1,
                CaseOutcome::NoVerdict(_) => counts.no_verdict += 1,
            }
        }
        counts
    }

    /// Returns how the process ends: a failed case beats one without verdict. Cases that are only shown decide nothing, and
    /// a suite in which no case decides is not green but empty.
    #[must_use]
    pub fn exit(&self) -> Exit {
        let mut exit = Exit::Nothing;
        for case in &self.cases {
            match (case.weight, &case.outcome) {
                (Weight::Shown, _) => {}
                (Weight::Decides, CaseOutcome::Failed) => return Exit::EvalFailed,
                (Weight::Decides, CaseOutcome::NoVerdict(_)) => exit = Exit::EvalNoVerdict,
                (Weight::Decides, CaseOutcome::Passed) if exit == Exit::Nothing => exit = Exit::Ok,
                (Weight::Decides, CaseOutcome::Passed) => {}
            }
        }
        exit
    }

    /// Renders the report as lines for a log: no colour, no clock but the durations, safe to print whatever the cases hold.
    #[must_use]
    pub fn render_text(&self) -> String {
        let mut text = String::new();
        let id_width = width(self.cases.iter().map(|case| case.id.as_str()));
        let times: Vec<String> = self.cases.iter().map(|case| seconds(case.duration_ms)).collect();
        let time_width = width(times.iter().map(String::as_str)).max(4);
        let total = self.cases.len();
        let number_width = total.to_string().len();
        for (index, (case, time)) in self.cases.iter().zip(&times).enumerate() {
            let number = index + 1;
            let word = case.outcome.word();
            let shown = match case.weight {
                Weight::Decides => "",
                Weight::Shown => "   (does not count)",
            };
            let steps = format!("{} {}", case.steps, plural(case.steps, "step"));
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "[{number:>number_width$}/{total}] {word:<5} {id:<id_width$}  {steps:>11}  {time:>time_width$} s{shown}",
                id = printable(&case.id),
            );
            problems(case, &mut text);
        }
        self.summary(&mut text);
        text
    }

    fn summary(&self, text: &mut String) {
        let Counts {
            passed,
            failed,
            no_verdict,
        } = self.counts();
        let total = self.cases.len();
        let all_ms = self
            .cases
            .iter()
            .fold(0_u64, |sum, case| sum.saturating_add(case.duration_ms));
        let _ = writeln!(
            text,
            "{total} {}: {passed} passed, {failed} failed, {no_verdict} without verdict   {} s",
            plural(total as u64, "case"),
            seconds(all_ms),
        );
        let blamed =
            |case: &&CaseReport| case.weight == Weight::Decides && case.outcome == CaseOutcome::Failed;
        let run = self
            .cases
            .iter()
            .find(blamed)
            .and_then(|case| case.run_id.as_deref());
        if let Some(run) = run {
            let _ = writeln!(text, "why: tracegate explain {}", printable(run));
        }
    }

    /// Returns the report as JSON of the schema [`REPORT_SCHEMA`]: keys in a fixed order, cases by id, and all that differs
    /// between two equal runs (run id, duration) below `meta`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let counts = self.counts();
        let summary = object([
            ("cases", self.cases.len().into()),
            ("passed", counts.passed.into()),
            ("failed", counts.failed.into()),
            ("noVerdict", counts.no_verdict.into()),
        ]);
        object([
            ("schema", REPORT_SCHEMA.into()),
            ("exit", self.exit().code().into()),
            ("summary", summary),
            ("cases", self.cases.iter().map(case_json).collect()),
        ])
    }
}

/// Lists below a case what did not pass: failures and errors that decide, then the others as notes.
fn problems(case: &CaseReport, text: &mut String) {
    let open = |result: &&AssertionResult| match result.status {
        AssertionStatus::Fail | AssertionStatus::Error => true,
        AssertionStatus::Pass | AssertionStatus::Skip => false,
    };
    let open: Vec<&AssertionResult> = case.results.iter().filter(open).collect();
    let kinds = open.iter().map(|result| result.kind.as_str());
    let kind_width = width(kinds);
    if let CaseOutcome::NoVerdict(reason) = &case.outcome
        && open.is_empty()
    {
        let _ = writeln!(text, "        no verdict: {}", printable(reason));
    }
    for result in open {
        let note = match result.severity {
            Severity::Gate => "",
            Severity::Info => "   (informs only)",
        };
        let _ = writeln!(
            text,
            "        {:<kind_width$}   {}{note}",
            printable(&result.kind),
            printable(&result.message)
        );
    }
}

fn case_json(case: &CaseReport) -> Value {
    let reason = match &case.outcome {
        CaseOutcome::NoVerdict(reason) => reason.as_str().into(),
        CaseOutcome::Passed | CaseOutcome::Failed => Value::Null,
    };
    object([
        ("id", case.id.as_str().into()),
        ("title", case.title.as_deref().into()),
        ("decides", (case.weight == Weight::Decides).into()),
        ("outcome", case.outcome.as_str().into()),
        ("reason", reason),
        ("steps", case.steps.into()),
        ("results", case.results.iter().map(result_json).collect()),
        (
            "meta",
            object([
                ("runId", case.run_id.as_deref().into()),
                ("durationMs", case.duration_ms.into()),
            ]),
        ),
    ])
}

fn result_json(result: &AssertionResult) -> Value {
    object([
        ("id", result.id.as_str().into()),
        ("type", result.kind.as_str().into()),
        ("status", result.status.as_str().into()),
        ("severity", result.severity.as_str().into()),
        ("expected", result.expected.as_str().into()),
        ("observed", result.observed.as_str().into()),
        (
            "evidence",
            result.evidence.iter().map(|seq| Value::from(seq.0)).collect(),
        ),
        ("message", result.message.as_str().into()),
    ])
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let members = members.into_iter().map(|(key, value)| (key.to_owned(), value));
    Value::Object(members.collect::<Map<_, _>>())
}

/// One decimal, rounded, without floating point.
fn seconds(ms: u64) -> String {
    let tenths = ms.saturating_add(50) / 100;
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn plural(count: u64, word: &str) -> String {
    if count == 1 {
        word.to_owned()
    } else {
        format!("{word}s")
    }
}

fn width<'t>(texts: impl Iterator<Item = &'t str>) -> usize {
    texts.map(|text| text.chars().count()).max().unwrap_or_default()
}

/// Names and messages hold text of cases and runs: a control character in it would move the cursor or end the line, and a
/// directional one would make it read otherwise than it is.
fn printable(text: &str) -> String {
    let hostile = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .map(|c| if hostile(c) { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests;
