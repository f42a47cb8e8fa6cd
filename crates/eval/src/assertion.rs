//! Assertions: predicates on a recorded run, each with what was expected, what was observed and the events that show it.
//!
//! A result is a pass only where the record proves it. What the record cannot prove either way is an `error`: a run that
//! has not ended, a field that was not recorded, an assertion that this version does not judge.

mod answer;
mod command;
mod context;
mod files;
mod limits;
mod record;
mod tools;

pub use command::normalise_command;

use crate::case::{Case, Custom, FinalStatus, Severity};
use record::Record;
use std::{collections::BTreeMap, fmt};
use tracegate_core::{
    event::Event,
    ids::{Digest, Seq},
    stop::Status,
};

/// What assertions judge: a recorded run.
#[derive(Debug, Clone, Copy)]
pub struct Recorded<'a> {
    /// The events of the run, in order.
    pub events: &'a [Event],
    /// Digest of each file before the run, by path relative to the workspace, where the trial took them.
    pub start_files: Option<&'a BTreeMap<String, Digest>>,
    /// The same after the run. Both or neither: without them the events' own digests are used.
    pub final_files: Option<&'a BTreeMap<String, Digest>>,
}

impl<'a> Recorded<'a> {
    /// Takes the events alone.
    #[must_use]
    pub const fn of(events: &'a [Event]) -> Self {
        Self {
            events,
            start_files: None,
            final_files: None,
        }
    }

    /// Counts the steps of the run: replies that ask for actions or are final.
    #[must_use]
    pub fn steps(&self) -> u64 {
        limits::steps(&Record::read(self)).len() as u64
    }
}

/// What one assertion says about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssertionResult {
    /// The assertion, and for one that has several the item: `mustReadFiles:src/math.ts`. Unique in a case's results.
    pub id: String,
    /// Its key in the case: `mustReadFiles`.
    pub kind: String,
    /// What came out.
    pub status: AssertionStatus,
    /// Whether it decides about the case.
    pub severity: Severity,
    /// What the case wants.
    pub expected: String,
    /// What the run shows.
    pub observed: String,
    /// The events that show it, ascending.
    pub evidence: Vec<Seq>,
    /// One line for people.
    pub message: String,
}

/// What came out of an assertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AssertionStatus {
    /// The run proves it.
    Pass,
    /// The run proves the contrary.
    Fail,
    /// It does not apply to this run, or is switched off.
    Skip,
    /// It could not be judged.
    Error,
}

impl AssertionStatus {
    /// Returns the spelling used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Skip => "skip",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for AssertionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a failure can be undone by what happens later in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failing {
    /// Once failed, failed.
    Stays,
    /// Later events can still bring what is missing.
    MayPass,
}

/// What an assertion found, before it has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    status: AssertionStatus,
    failing: Failing,
    observed: String,
    evidence: Vec<Seq>,
    message: String,
}

impl Finding {
    fn new(status: AssertionStatus, observed: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            status,
            failing: Failing::MayPass,
            observed: observed.into(),
            evidence: Vec::new(),
            message: message.into(),
        }
    }

    /// Builds a pass; the observation is the message.
    fn pass(observed: impl Into<String>) -> Self {
        let observed = observed.into();
        Self::new(AssertionStatus::Pass, observed.clone(), observed)
    }

    /// Builds a failure that later events can undo.
    fn fail(observed: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(AssertionStatus::Fail, observed, message)
    }

    /// Builds a failure that no later event undoes.
    fn broken(observed: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            failing: Failing::Stays,
            ..Self::fail(observed, message)
        }
    }

    fn skip(why: impl Into<String>) -> Self {
        let why = why.into();
        Self::new(AssertionStatus::Skip, why.clone(), why)
    }

    fn error(why: impl Into<String>) -> Self {
        let why = why.into();
        Self::new(AssertionStatus::Error, why.clone(), why)
    }

    fn with(mut self, evidence: impl IntoIterator<Item = Seq>) -> Self {
        self.evidence.extend(evidence);
        self.evidence.sort_unstable();
        self.evidence.dedup();
        self
    }
}

/// Collects results under their names.
struct Results<'r, 'a> {
    record: &'r Record<'a>,
    all: Vec<AssertionResult>,
}

impl Results<'_, '_> {
    /// Adds what `kind` found about `item`; an empty item is the whole assertion.
    fn add(&mut self, kind: &str, item: &str, severity: Severity, expected: String, finding: Finding) {
        let finding = self.settle(finding);
        let id = if item.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind}:{item}")
        };
        self.all.push(AssertionResult {
            id: self.unused(id),
            kind: kind.to_owned(),
            status: finding.status,
            severity,
            expected,
            observed: finding.observed,
            evidence: finding.evidence,
            message: finding.message,
        });
    }

    fn gate(&mut self, kind: &str, item: &str, expected: impl Into<String>, finding: Finding) {
        self.add(kind, item, Severity::Gate, expected.into(), finding);
    }

    /// While the run goes on, only what later events cannot undo is said. Nothing ever passes on a log cut short.
    fn settle(&self, finding: Finding) -> Finding {
        let stays = finding.status == AssertionStatus::Fail && finding.failing == Failing::Stays;
        if self.record.end.is_some() || stays || finding.status == AssertionStatus::Error {
            return finding;
        }
        Finding {
            status: AssertionStatus::Error,
            message: format!("the log ends before the run does; so far: {}", finding.message),
            ..finding
        }
    }

    /// Lists in which an entry may stand twice would give two results one name.
    fn unused(&self, id: String) -> String {
        let taken = |id: &str| self.all.iter().any(|result| result.id == id);
        if !taken(&id) {
            return id;
        }
        (2..)
            .map(|n| format!("{id}#{n}"))
            .find(|id| !taken(id))
            .unwrap_or(id)
    }
}

/// Holds `recorded` against every assertion of `case`: one result for each item of a list, in the order of the format.
#[must_use]
pub fn judge(case: &Case, recorded: &Recorded<'_>) -> Vec<AssertionResult> {
    let record = Record::read(recorded);
    let mut results = Results {
        record: &record,
        all: Vec::new(),
    };
    let expected = &case.expected;
    tools::judge(expected, &mut results);
    files::judge(expected, &mut results);
    command::judge(expected, &mut results);
    ending(expected, &mut results);
    context::judge(expected, &mut results);
    limits::judge(expected, &mut results);
    answer::judge(expected, &mut results);
    for kind in &expected.unsupported {
        results.gate(kind, "", "", not_judged(kind));
    }
    for (index, custom) in expected.custom.iter().enumerate() {
        let Custom { kind, id, .. } = custom;
        let item = id.clone().unwrap_or_else(|| index.to_string());
        // The severity that it asks for is ignored: what nobody judges must not turn a case green.
        results.gate("assertions", &item, "", not_judged(kind));
    }
    results.all
}

fn not_judged(kind: &str) -> Finding {
    Finding::error(format!("`{kind}` is not supported by this version"))
}

/// Judges how the run ended.
fn ending(expected: &crate::case::Expected, results: &mut Results<'_, '_>) {
    let record = results.record;
    let default = [FinalStatus::Status(Status::Completed)];
    let wanted: &[FinalStatus] = match expected.final_status.as_slice() {
        // Commands that pass in a run that did not complete prove nothing: the gate saw something else.
        [] if !expected.commands_pass.is_empty() => &default,
        named => named,
    };
    if !wanted.is_empty() {
        let names: Vec<String> = wanted.iter().map(ToString::to_string).collect();
        let names = names.join(" or ");
        let finding = match record.end {
            None => Finding::error("no event says how the run ended"),
            Some(end) => {
                let got = end
                    .reason
                    .map_or_else(|| end.status.to_string(), |reason| reason.to_string());
                if wanted.iter().any(|wanted| wanted.is(end.status, end.reason)) {
                    Finding::pass(got).with([end.seq])
                } else {
                    let message = format!("wanted {names}, got {got}");
                    Finding::fail(got, message).with([end.seq])
                }
            }
        };
        results.gate("finalStatus", "", names, finding);
    }
    match expected.no_permission_denied {
        None => {}
        Some(false) => {
            results.gate("noPermissionDenied", "", "", Finding::skip("switched off"));
        }
        Some(true) => {
            let finding = no_permission_denied(record);
            results.gate("noPermissionDenied", "", "no action refused", finding);
        }
    }
}

fn no_permission_denied(record: &Record<'_>) -> Finding {
    let refused: Vec<_> = record
        .calls
        .iter()
        .filter_map(|call| call.refused.map(|seq| (call.tool, seq)))
        .collect();
    match refused.as_slice() {
        [] => Finding::pass("no action refused"),
        [(tool, seq), ..] => {
            let count = refused.len();
            Finding::broken(
                format!("{count} refused"),
                format!("{tool} was refused (event {seq})"),
            )
            .with(refused.iter().map(|(_, seq)| *seq))
        }
    }
}

#[cfg(test)]
mod tests;
