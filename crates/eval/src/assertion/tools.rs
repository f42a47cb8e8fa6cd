//! Assertions about which tools were called, how often and in which order.

use super::{
    Finding, Results,
    record::{Record, same_tool},
};
use crate::case::{CountBounds, Expected, SequenceMode, ToolSequence};
use tracegate_core::{fact::gate::Class, fact::tool::Outcome, ids::Seq};

pub(super) fn judge(expected: &Expected, results: &mut Results<'_, '_>) {
    let record = results.record;
    for tool in &expected.required_tools {
        let finding = required(record, tool);
        results.gate("requiredTools", tool, format!("{tool} did its work"), finding);
    }
    for tool in &expected.forbidden_tools {
        let finding = forbidden(record, tool);
        results.gate("forbiddenTools", tool, format!("{tool} never asked for"), finding);
    }
    if let Some(sequence) = &expected.tool_sequence {
        let wanted = format!("{}: {}", sequence.mode.as_str(), sequence.steps.join(" "));
        results.gate("toolSequence", "", wanted, in_sequence(record, sequence));
    }
    for (tool, bounds) in &expected.tool_counts {
        let wanted = match (bounds.min, bounds.max) {
            (Some(min), Some(max)) => format!("{min} to {max} calls of {tool}"),
            (Some(min), None) => format!("at least {min} calls of {tool}"),
            (None, Some(max)) => format!("at most {max} calls of {tool}"),
            (None, None) => String::new(),
        };
        results.gate("toolCounts", tool, wanted, counted(record, tool, *bounds));
    }
    if let Some(max) = expected.max_tool_errors {
        let wanted = format!("at most {max} failed calls");
        results.gate("maxToolErrors", "", wanted, few_errors(record, max));
    }
}

fn required(record: &Record<'_>, tool: &str) -> Finding {
    let mut named = record.calls.iter().filter(|call| same_tool(call.tool, tool));
    if let Some(call) = named.clone().find(|call| call.worked()) {
        let seq = call.finished.unwrap_or(call.seq);
        return Finding::pass(format!("called (event {seq})")).with([seq]);
    }
    match named.next_back() {
        None => Finding::fail("never called", format!("{tool} never called")),
        Some(call) => {
            let seq = call.finished.unwrap_or(call.seq);
            let end = call.outcome.map_or("not finished", Outcome::as_str);
            Finding::fail(
                end,
                format!("{tool} never did its work, last {end} (event {seq})"),
            )
            .with([seq])
        }
    }
}

/// The risk class of this name, if it is one.
fn class_named(name: &str) -> Option<Class> {
    [Class::Read, Class::Write, Class::Shell, Class::Network]
        .into_iter()
        .find(|class| class.to_string() == name)
}

fn forbidden(record: &Record<'_>, name: &str) -> Finding {
    let class = class_named(name);
    let asked: Vec<_> = record
        .calls
        .iter()
        .filter(|call| same_tool(call.tool, name) || (class.is_some() && call.class() == class))
        .collect();
    if let Some(first) = asked.first() {
        let message = if first.tool == name {
            format!("{name} asked for (event {})", first.seq)
        } else {
            format!("{} asked for, which is {name} (event {})", first.tool, first.seq)
        };
        let count = asked.len();
        return Finding::broken(format!("asked for {count} times"), message)
            .with(asked.iter().map(|call| call.seq));
    }
    // A class can only be ruled out for calls whose class is recorded.
    let unknown = record.calls.iter().find(|call| call.class().is_none());
    match (class, unknown) {
        (Some(_), Some(call)) => Finding::error(format!(
            "what {} (event {}) could do is not recorded",
            call.tool, call.seq
        ))
        .with([call.seq]),
        (Some(_) | None, _) => Finding::pass("never asked for"),
    }
}

/// The calls that were executed, in the order in which they began.
fn executed<'r>(record: &'r Record<'_>) -> Vec<(&'r str, Seq)> {
    let executed = record.calls.iter().filter(|call| call.executed());
    let mut calls: Vec<_> = executed
        .map(|call| (call.tool, call.started.unwrap_or(call.seq)))
        .collect();
    calls.sort_by_key(|(_, seq)| *seq);
    calls
}

fn in_sequence(record: &Record<'_>, sequence: &ToolSequence) -> Finding {
    let calls = executed(record);
    let observed = match calls.as_slice() {
        [] => "no calls".to_owned(),
        calls => {
            let names: Vec<&str> = calls.iter().map(|(tool, _)| *tool).collect();
            names.join(" ")
        }
    };
    let steps = &sequence.steps;
    let mut evidence = Vec::new();
    match sequence.mode {
        SequenceMode::Subsequence => {
            let mut rest = calls.iter();
            for step in steps {
                match rest.find(|(tool, _)| same_tool(tool, step)) {
                    Some((_, seq)) => evidence.push(*seq),
                    None => {
                        let message = format!("no {step} after {} of {} steps", evidence.len(), steps.len());
                        return Finding::fail(observed, message).with(evidence);
                    }
                }
            }
        }
        SequenceMode::Prefix | SequenceMode::Exact => {
            for (index, step) in steps.iter().enumerate() {
                match calls.get(index) {
                    Some((tool, seq)) if same_tool(tool, step) => evidence.push(*seq),
                    Some((tool, seq)) => {
                        let message = format!("call {} is {tool}, not {step} (event {seq})", index + 1);
                        return Finding::broken(observed, message).with([*seq]);
                    }
                    None => {
                        let message = format!("{} calls, then no {step}", calls.len());
                        return Finding::fail(observed, message).with(evidence);
                    }
                }
            }
            if let (SequenceMode::Exact, Some((tool, seq))) = (sequence.mode, calls.get(steps.len())) {
                let message = format!("call {} is {tool}, one too many (event {seq})", steps.len() + 1);
                return Finding::broken(observed, message).with([*seq]);
            }
        }
    }
    Finding::pass(observed).with(evidence)
}

fn counted(record: &Record<'_>, tool: &str, bounds: CountBounds) -> Finding {
    let calls = executed(record);
    let seqs: Vec<Seq> = calls
        .iter()
        .filter(|(name, _)| same_tool(name, tool))
        .map(|(_, seq)| *seq)
        .collect();
    let count = seqs.len() as u64;
    let observed = format!("{count} calls of {tool}");
    match (bounds.min, bounds.max) {
        (None, None) => Finding::skip("neither `min` nor `max` is given"),
        (_, Some(max)) if count > max => {
            Finding::broken(observed, format!("{count} calls of {tool}, at most {max} wanted")).with(seqs)
        }
        (Some(min), _) if count < min => Finding::fail(
            observed,
            format!("{count} calls of {tool}, at least {min} wanted"),
        )
        .with(seqs),
        (Some(_) | None, Some(_) | None) => Finding::pass(observed).with(seqs),
    }
}

/// Counts calls that were executed and did not end well, a command's non-zero exit among them. Refusals have an
/// assertion of their own.
fn few_errors(record: &Record<'_>, max: u64) -> Finding {
    let errors: Vec<_> = record
        .calls
        .iter()
        .filter(|call| match call.outcome {
            Some(Outcome::Failed | Outcome::Timeout | Outcome::Unknown) => true,
            Some(Outcome::Ok | Outcome::Refused | Outcome::Cancelled | Outcome::NotRun) | None => false,
        })
        .map(|call| (call.tool, call.finished.unwrap_or(call.seq)))
        .collect();
    let count = errors.len() as u64;
    let seqs = errors.iter().map(|(_, seq)| *seq);
    match errors.last() {
        Some((tool, seq)) if count > max => Finding::broken(
            format!("{count} failed calls"),
            format!("{count} failed calls, at most {max} wanted, the last {tool} (event {seq})"),
        )
        .with(seqs),
        Some(_) | None => Finding::pass(format!("{count} failed calls")).with(seqs),
    }
}
