//! The tool evidence table of seed 003: one row an action, what it did, who permitted it, and the event that shows it.

use crate::{
    figures::duration,
    table::table,
    terminal::{Width, one_line},
    view::{ActionView, End, Holder, RunView, ShownStatus},
};
use serde::Serialize;
use std::fmt;
use tracegate_core::{
    fact::{
        gate::Verb,
        tool::{Outcome, SideEffectType},
    },
    ids::{Seq, StepNo},
    payload::{Payload, clip},
};

/// The longest evidence of a row, in bytes; a table cuts it further to its width.
const LONGEST: usize = 400;
/// Up to how many lines a file is small enough for one of them to stand for it.
const SMALL_FILE: u64 = 20;
/// The widest that a tool's name gets in a table; tools of other servers choose theirs.
const TOOL_COLUMN: usize = 24;

/// One action of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceRow {
    /// The step in which it was asked for.
    pub step: Option<StepNo>,
    /// The tool.
    pub tool: String,
    /// How it ended.
    pub status: RowStatus,
    /// What the permission gate ruled; null if it has not yet.
    pub permission: Option<Verb>,
    /// What it did, in one line, at most some 400 bytes; not yet safe for a terminal.
    pub evidence: String,
    /// How long it took, in milliseconds, if it ended.
    pub took_ms: Option<u64>,
    /// The event that shows it: its end, or as far as it came.
    pub event: Seq,
}

/// How an action ended, as the table says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowStatus {
    /// It did what it should.
    Ok,
    /// It failed or took too long.
    Error,
    /// A gate refused it.
    Refused,
    /// The process died meanwhile: nobody knows.
    Unknown,
    /// A person stopped it.
    Cancelled,
    /// It was not reached.
    NotRun,
    /// It waits for the user.
    Waiting,
    /// It is under way.
    Running,
}

impl fmt::Display for RowStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
            Self::Cancelled => "cancelled",
            Self::NotRun => "not_run",
            Self::Waiting => "waiting",
            Self::Running => "running",
        })
    }
}

/// Returns one row an action, in the order in which they were asked for.
#[must_use]
pub fn rows(view: &RunView, holder: Holder) -> Vec<EvidenceRow> {
    view.actions
        .iter()
        .map(|action| {
            let status = row_status(view, action, holder);
            EvidenceRow {
                step: action.step,
                tool: action.tool.clone(),
                status,
                permission: action.review.as_ref().map(|review| review.decision),
                evidence: clip(&what_shows(view, action, status), LONGEST),
                took_ms: action.end.as_ref().and_then(|end| end.duration_ms),
                event: action.telling_event(),
            }
        })
        .collect()
}

fn row_status(view: &RunView, action: &ActionView, holder: Holder) -> RowStatus {
    match action.outcome() {
        Some(Outcome::Ok) => return RowStatus::Ok,
        Some(Outcome::Failed | Outcome::Timeout) => return RowStatus::Error,
        Some(Outcome::Refused) => return RowStatus::Refused,
        Some(Outcome::Cancelled) => return RowStatus::Cancelled,
        Some(Outcome::Unknown) => return RowStatus::Unknown,
        Some(Outcome::NotRun) => return RowStatus::NotRun,
        None if action.is_refused() => return RowStatus::Refused,
        None => {}
    }
    let asks = view.questions.iter().any(|asked| asked.action == Some(action.id));
    let ruled = action.review.as_ref().map(|review| review.decision);
    let waits = asks || action.suspended.is_some() || ruled == Some(Verb::Ask);
    match view.status(holder) {
        ShownStatus::Running => RowStatus::Running,
        ShownStatus::WaitingForUser if waits => RowStatus::Waiting,
        ShownStatus::Interrupted if waits && action.suspended.is_some() => RowStatus::Waiting,
        // What was begun and has no end may have happened; what was not begun has not.
        ShownStatus::WaitingForUser
        | ShownStatus::Interrupted
        | ShownStatus::Completed
        | ShownStatus::Failed
        | ShownStatus::Cancelled => {
            if action.started.is_some() {
                RowStatus::Unknown
            } else {
                RowStatus::NotRun
            }
        }
    }
}

/// Returns what shows how the action ended.
fn what_shows(view: &RunView, action: &ActionView, status: RowStatus) -> String {
    let target = action.target();
    match status {
        RowStatus::Refused => {
            let ruled = action.review.as_ref().map(|review| review.reason.as_str());
            let said = action.end.as_ref().and_then(|end| end.error.as_ref());
            let why = ruled
                .filter(|reason| !reason.is_empty())
                .or(said.map(|failure| failure.message.as_str()));
            why.map_or_else(|| target.clone(), |why| format!("{target}: {why}"))
        }
        RowStatus::Unknown => format!("{target}: begun, its end is not known"),
        RowStatus::NotRun => format!("{target}: not reached"),
        RowStatus::Waiting => format!("{target}: waits for its user"),
        RowStatus::Running => format!("{target}: under way"),
        RowStatus::Cancelled => format!("{target}: stopped by a person"),
        RowStatus::Ok | RowStatus::Error => action
            .end
            .as_ref()
            .map_or_else(|| target.clone(), |end| what_came(view, action, end, &target)),
    }
}

/// Returns what came of an action that ran to its end.
fn what_came(view: &RunView, action: &ActionView, end: &End, target: &str) -> String {
    if let Some(command) = action.command() {
        return command_end(view, command, end);
    }
    if end.outcome != Outcome::Ok {
        let failure = end.error.as_ref().map(|failure| {
            let message = failure.message.as_str();
            if message.is_empty() {
                failure.kind.as_str()
            } else {
                message
            }
        });
        let first = end.output.as_ref().and_then(first_line);
        let why = failure.map(str::to_owned).or(first);
        return why.map_or_else(
            || format!("{target}: {}", end.outcome.as_str()),
            |why| format!("{target}: {why}"),
        );
    }
    if let Some(changes) = changes(view, end) {
        return changes;
    }
    match action.tool.as_str() {
        "list_files" => names(end.output.as_ref()),
        "read_file" => {
            let line = end.output.as_ref().and_then(telling_line);
            let path = action.path().map_or(target, |path| view.relative(path));
            line.map_or_else(|| path.to_owned(), |line| format!("{path}  {line}"))
        }
        "write_text" | "edit_text" => format!("{target}: nothing changed"),
        _ => {
            let line = end.output.as_ref().and_then(first_line);
            line.map_or_else(|| target.to_owned(), |line| format!("{target}: {line}"))
        }
    }
}

/// Says how a command ended, and what it changed: `npm test exitCode=1`.
fn command_end(view: &RunView, command: &str, end: &End) -> String {
    let how = match (end.outcome, end.exit_code, end.signal, &end.error) {
        (Outcome::Timeout, ..) => " timeout".to_owned(),
        (_, Some(code), ..) => format!(" exitCode={code}"),
        (_, None, Some(signal), _) => format!(" signal={signal}"),
        (_, None, None, Some(failure)) => format!(" {}: {}", failure.kind, failure.message),
        (_, None, None, None) => String::new(),
    };
    let mut text = clip(command.trim(), LONGEST / 2);
    text.push_str(&how);
    if let Some(changes) = changes(view, end) {
        text.push_str(", ");
        text.push_str(&changes);
    }
    text
}

/// Names the files that were written and removed: `wrote src/math.ts`.
fn changes(view: &RunView, end: &End) -> Option<String> {
    let of = |kind: SideEffectType, verb: &str| {
        let paths: Vec<&str> = end
            .side_effects
            .iter()
            .filter(|effect| effect.effect == kind)
            .map(|effect| view.relative(&effect.relative_path))
            .collect();
        (!paths.is_empty()).then(|| format!("{verb} {}", paths.join(" ")))
    };
    let said: Vec<String> = [
        of(SideEffectType::WriteFile, "wrote"),
        of(SideEffectType::DeleteFile, "removed"),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// Puts the names of a listing side by side; the table shows as many as fit.
fn names(output: Option<&Payload>) -> String {
    let text = output.map(Payload::preview).unwrap_or_default();
    let names: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if names.is_empty() {
        return "no files".to_owned();
    }
    names.join(" ")
}

fn first_line(output: &Payload) -> Option<String> {
    let text = output.preview();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.to_owned())
}

/// Picks the line that stands for a small file: the first that is indented, which in code is what a body does, else the first.
///
/// Nothing is picked from a file of more than 20 lines: one line would not stand for it.
fn telling_line(output: &Payload) -> Option<String> {
    let text = match output {
        Payload::Inline(text) => text,
        Payload::Ref(_) => return None,
    };
    if tracegate_core::payload::count_lines(text.as_bytes()) > SMALL_FILE {
        return None;
    }
    let tells = |line: &&str| line.chars().any(char::is_alphanumeric);
    let indented = text
        .lines()
        .filter(|line| line.starts_with([' ', '\t']))
        .find(tells);
    let line = indented.or_else(|| text.lines().find(tells))?;
    Some(line.trim().trim_end_matches(';').to_owned())
}

/// Writes the table for a terminal: a line of titles and one line a row, none wider than `width`.
#[must_use]
pub fn render(rows: &[EvidenceRow], width: Width) -> String {
    if rows.is_empty() {
        return "no action was asked for\n".to_owned();
    }
    let lines: Vec<[String; 7]> = rows.iter().map(cells).collect();
    table(TITLES, EVIDENCE, &lines, width).join("\n") + "\n"
}

/// The columns of seed 003, then two that lead on: how long, and which event to look at.
const TITLES: [&str; 7] = [
    "Step",
    "Tool",
    "Status",
    "Permission",
    "Evidence",
    "Took",
    "Event",
];
/// Which of them is the evidence.
const EVIDENCE: usize = 4;
fn cells(row: &EvidenceRow) -> [String; 7] {
    [
        row.step.map_or_else(|| "-".to_owned(), |step| step.to_string()),
        one_line(&row.tool, TOOL_COLUMN),
        row.status.to_string(),
        row.permission
            .map_or_else(|| "-".to_owned(), |verb| verb.to_string()),
        one_line(&row.evidence, LONGEST),
        row.took_ms.map_or_else(|| "-".to_owned(), duration),
        row.event.to_string(),
    ]
}
