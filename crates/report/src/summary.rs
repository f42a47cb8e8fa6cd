//! What a run was and how it ended, on one screen: the fields of seed 003 in its order, then claim and evidence side by side.

use crate::{
    figures::{count, duration},
    terminal::{Width, beside, one_line},
    view::{Holder, Problem, QuestionView, RunView, ShownStatus},
};
use serde::Serialize;
use tracegate_core::{
    fact::{model::Usage, user::QuestionKind},
    ids::{QuestionId, RunId, TraceId},
    payload::clip,
    stop::StopReason,
};

/// The longest claim, evidence or question in a summary, in bytes; the log has the whole of it.
const LONGEST: usize = 4 * 1024;
/// How many columns the names of the fields take.
const INDENT: usize = 12;

/// The summary of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The run.
    pub run_id: RunId,
    /// The trace of all its spans.
    pub trace_id: TraceId,
    /// Its status; `interrupted` where the log says running and nobody holds the run.
    pub status: ShownStatus,
    /// Why it stopped; null while it runs and after a kill.
    pub stop_reason: Option<StopReason>,
    /// Steps begun.
    pub steps: u32,
    /// Steps it may take.
    pub max_steps: u32,
    /// What the agent said at the end: its words, not a result.
    pub claim: Option<String>,
    /// What the gate, or else the newest test run, says.
    pub evidence: Option<String>,
    /// The questions that nobody has answered yet, oldest first.
    pub waiting_for: Vec<WaitingFor>,
    /// Tokens of all requests and subcalls.
    pub usage: Tokens,
    /// Time that its processes worked, in milliseconds, without the time between segments.
    pub duration_ms: u64,
    /// Events in the log.
    pub events: u64,
    /// What does not fit together in the log.
    pub problems: Vec<Problem>,
}

/// How many open questions a summary shows.
const SHOWN_QUESTIONS: usize = 3;

fn waiting_for(asked: &QuestionView) -> WaitingFor {
    WaitingFor {
        question: asked.question,
        kind: asked.kind,
        text: clip(&asked.text.preview(), LONGEST),
    }
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingFor {
    /// Its id.
    pub question: QuestionId,
    /// What it asks for.
    pub kind: QuestionKind,
    /// Its text.
    pub text: String,
}

/// Tokens in exclusive buckets, and their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    /// Input that no cache had to do with.
    pub input: u64,
    /// Output without reasoning.
    pub output: u64,
    /// Reasoning output.
    pub reasoning: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache.
    pub cache_write: u64,
    /// All of it.
    pub total: u64,
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        Self {
            input: usage.input,
            output: usage.output,
            reasoning: usage.reasoning,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            total: usage.total(),
        }
    }
}

impl Tokens {
    /// Returns all input, cached or not.
    const fn all_input(self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }
}

/// Summarises a run.
#[must_use]
pub fn summarise(view: &RunView, holder: Holder) -> Summary {
    Summary {
        run_id: view.run_id().clone(),
        trace_id: view.trace_id(),
        status: view.status(holder),
        stop_reason: view.stop,
        steps: view.steps,
        max_steps: view.limits.max_steps,
        claim: claim(view),
        evidence: evidence(view),
        waiting_for: view.questions.iter().map(waiting_for).collect(),
        usage: view.usage.into(),
        duration_ms: view.duration_ms(),
        events: view.events,
        problems: view.problems().to_vec(),
    }
}

fn claim(view: &RunView) -> Option<String> {
    let finished = view.finished.as_ref().and_then(|end| end.claim.as_ref());
    let said = finished.or_else(|| view.finals().last().map(|reply| &reply.text))?;
    let text = clip(&said.preview(), LONGEST);
    (!text.trim().is_empty()).then_some(text)
}

/// The end's own evidence, else the gate's explanation, else what the newest test run said, else nothing.
fn evidence(view: &RunView) -> Option<String> {
    let finished = view.finished.as_ref().map(|end| end.evidence.clone());
    let judged = view.verdict().map(|verdict| verdict.explanation.clone());
    let tested = view.trusted_runs().last().map(|run| {
        let color = if run.is_red() { "red" } else { "green" };
        let end = run.action.end.as_ref();
        let code = end.and_then(|end| end.exit_code);
        let code = code.map_or_else(String::new, |code| format!(" exit {code}"));
        format!("tests {color}: `{}`{code} (event {})", run.command(), run.seq)
    });
    [finished, judged, tested]
        .into_iter()
        .flatten()
        .find(|text| !text.trim().is_empty())
        .map(|text| clip(&text, LONGEST))
}

/// Writes a summary for a terminal.
#[must_use]
pub fn render(summary: &Summary, width: Width) -> String {
    let line = |name: &str, text: &str| beside(name, INDENT, text, width, 1);
    let stop = summary.stop_reason.map_or("-", StopReason::as_str);
    let usage = summary.usage;
    let mut text = line("runId", summary.run_id.as_str());
    text.push_str(&line("traceId", &summary.trace_id.to_string()));
    text.push_str(&line("status", summary.status.as_str()));
    text.push_str(&line("stopReason", stop));
    let mut steps = vec![format!("{} of {}", summary.steps, summary.max_steps)];
    steps.push(duration(summary.duration_ms));
    steps.push(format!(
        "{} in, {} out",
        count(usage.all_input()),
        count(usage.output.saturating_add(usage.reasoning))
    ));
    steps.push(format!("{} events", count(summary.events)));
    text.push_str(&spaced("steps", &steps, width));
    if let Some(claim) = &summary.claim {
        let quoted = format!("“{}”", claim.trim());
        text.push_str(&beside("claim", INDENT, &quoted, width, 2));
    }
    if let Some(evidence) = &summary.evidence {
        text.push_str(&beside("evidence", INDENT, evidence, width, 2));
    }
    for (at, asked) in summary.waiting_for.iter().take(SHOWN_QUESTIONS).enumerate() {
        let question = format!("{} “{}”", asked.question, asked.text.trim());
        let name = if at == 0 { "waitingFor" } else { "" };
        text.push_str(&beside(name, INDENT, &question, width, 2));
    }
    if let Some(more) = summary.waiting_for.len().checked_sub(SHOWN_QUESTIONS + 1) {
        text.push_str(&beside("", INDENT, &format!("and {} more", more + 1), width, 1));
    }
    if let Some(first) = summary.problems.first() {
        let more = match summary.problems.len() {
            1 => String::new(),
            all => format!(" (and {} more)", all - 1),
        };
        text.push_str(&beside("problem", INDENT, &format!("{first}{more}"), width, 2));
    }
    text
}

/// Sets figures beside a name with wide gaps, which would otherwise be taken for runs of spaces.
fn spaced(name: &str, figures: &[String], width: Width) -> String {
    let whole = format!("{name:INDENT$}{}", figures.join("      "));
    if whole.chars().count() <= width.columns() {
        return format!("{whole}\n");
    }
    format!(
        "{name:INDENT$}{}\n",
        one_line(&figures.join(", "), width.beside(INDENT))
    )
}
