//! The steps of a run as a table: one line an action, what it wanted, how it ended, and whether it changed anything.

use crate::{
    figures::{count, duration},
    table::table,
    terminal::{Width, one_line},
};
use tracegate_core::steps::summary::{StepSummary, Summarised};

const TITLES: [&str; 7] = ["Step", "Tool", "What", "Outcome", "Changed", "Took", "Event"];
/// Which of them says what the action is about.
const WHAT: usize = 2;
/// The widest that a tool's name gets; tools of other servers choose theirs.
const TOOL_COLUMN: usize = 24;
/// The widest that the column of what it is about gets.
const WHAT_COLUMN: usize = 400;

/// Writes the table for a terminal: a line of titles, one line an action, a line for those that were not kept, a line if something
/// does not fit; none wider than `width`.
///
/// `first` is how many of the kept ones stand before those that were not kept.
#[must_use]
pub fn render(steps: &Summarised, first: usize, width: Width) -> String {
    let mut lines = if steps.total == 0 {
        vec!["no action was asked for".to_owned()]
    } else {
        let rows: Vec<[String; 7]> = steps.steps.iter().map(cells).collect();
        table(TITLES, WHAT, &rows, width)
    };
    let left_out = steps.total.saturating_sub(steps.steps.len());
    if left_out > 0 {
        // One more for the titles.
        let at = first.saturating_add(1).min(lines.len());
        lines.insert(at, format!("… {} more", count(left_out as u64)));
    }
    if let Some(problem) = steps.problems.first() {
        let more = match steps.problems.len() - 1 {
            0 => String::new(),
            more => format!(", and {} more", count(more as u64)),
        };
        let text = format!("does not fit: {problem}{more}");
        lines.push(one_line(&text, width.columns()));
    }
    lines.join("\n") + "\n"
}

fn cells(step: &StepSummary) -> [String; 7] {
    let place = if step.batch.size > 1 {
        format!(
            "{} {}/{}",
            step.step,
            step.batch.index.saturating_add(1),
            step.batch.size
        )
    } else {
        step.step.to_string()
    };
    let outcome = step.outcome.map_or("open", |outcome| outcome.as_str());
    let ended = match step.exit_code {
        Some(code) if code != 0 => format!("{outcome} ({code})"),
        Some(_) | None => outcome.to_owned(),
    };
    let changed = match step.changed_anything {
        Some(true) => "yes",
        Some(false) => "no",
        None => "-",
    };
    [
        place,
        one_line(&step.tool, TOOL_COLUMN),
        one_line(what(step), WHAT_COLUMN),
        ended,
        changed.to_owned(),
        step.duration_ms.map_or_else(|| "-".to_owned(), duration),
        step.event.to_string(),
    ]
}

/// Returns what the action is about: its description without the tool's name, which has a column of its own.
fn what(step: &StepSummary) -> &str {
    let rest = step.description.strip_prefix(step.tool.as_str());
    let rest = rest
        .filter(|rest| rest.starts_with(' '))
        .map(str::trim_start)
        .filter(|rest| !rest.is_empty());
    rest.unwrap_or(&step.description)
}
