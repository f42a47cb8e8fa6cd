//! Assertions about what the model got to see, and about the spans of the run.

use super::{Finding, Results, files::unlisted, record::Record};
use crate::case::{By, ContextIncludes, Expected};
use tracegate_core::{fact::SpanKind, ids::Seq};

pub(super) fn judge(expected: &Expected, results: &mut Results<'_, '_>) {
    let record = results.record;
    for entry in &expected.context_includes {
        let file = entry.file.as_str();
        let (item, wanted) = match entry.by {
            By::Any => (file.to_owned(), format!("{file} in the context")),
            By::FirstWrite => (
                format!("{file} by first-write"),
                format!("{file} in the context before the first change of a file"),
            ),
            By::Step(step) => (
                format!("{file} by {step}"),
                format!("{file} in the context by step {step}"),
            ),
        };
        results.gate("contextIncludes", &item, wanted, includes(record, entry));
    }
    match expected.context_budget_respected {
        None => {}
        Some(false) => results.gate("contextBudgetRespected", "", "", Finding::skip("switched off")),
        Some(true) => {
            let finding = within_budget(record);
            results.gate(
                "contextBudgetRespected",
                "",
                "every context within its budget",
                finding,
            );
        }
    }
    for span in &expected.spans_present {
        results.gate(
            "spansPresent",
            span,
            format!("a {span} span"),
            has_span(record, span),
        );
    }
}

/// A file is in a context when its text is: an outline or a bare path shows nothing of it.
fn includes(record: &Record<'_>, entry: &ContextIncludes) -> Finding {
    let file = entry.file.as_str();
    let first_write = record.changes().iter().map(|change| change.asked).min();
    let mut late: Option<Seq> = None;
    for (seq, step, report) in &record.contexts {
        let has = report
            .included
            .iter()
            .any(|item| matches!(item.level.as_str(), "full" | "slice") && entry.file.matches(&item.path));
        if !has {
            continue;
        }
        let in_time = match entry.by {
            By::Any => true,
            By::FirstWrite => first_write.is_none_or(|write| *seq < write),
            By::Step(by) => match step {
                Some(step) => u64::from(step.0) <= by,
                None => {
                    return Finding::error(format!("the step of event {seq} is not recorded")).with([*seq]);
                }
            },
        };
        if in_time {
            return Finding::pass(format!("in the context (event {seq})")).with([*seq]);
        }
        late.get_or_insert(*seq);
    }
    // The list of a context in the log is bounded; a file beyond its end is not proved absent.
    if let Some(why) = unlisted(record, &entry.file) {
        return Finding::error(why);
    }
    match late {
        Some(seq) => Finding::fail(
            "too late",
            format!("{file} came into the context too late (event {seq})"),
        )
        .with([seq]),
        None => Finding::fail("never", format!("{file} never in the context"))
            .with(record.contexts.iter().map(|(seq, _, _)| *seq)),
    }
}

fn within_budget(record: &Record<'_>) -> Finding {
    if record.contexts.is_empty() {
        return Finding::error("no context was recorded");
    }
    let over = record
        .contexts
        .iter()
        .find(|(_, _, report)| report.used > report.budget);
    match over {
        Some((seq, _, report)) => Finding::broken(
            format!("{} of {}", report.used, report.budget),
            format!("{} tokens used of {} (event {seq})", report.used, report.budget),
        )
        .with([*seq]),
        None => Finding::pass("within budget").with(record.contexts.iter().map(|(seq, _, _)| *seq)),
    }
}

fn has_span(record: &Record<'_>, name: &str) -> Finding {
    let Some(kind) = SpanKind::ALL.into_iter().find(|kind| kind.as_str() == name) else {
        return Finding::fail(
            "no such kind of span",
            format!("no kind of span is called {name}"),
        );
    };
    match record.spans.get(&kind) {
        Some(seq) => Finding::pass(format!("there (event {seq})")).with([*seq]),
        None => Finding::fail("none", format!("no {name} span")),
    }
}
