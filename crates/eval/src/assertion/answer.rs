//! Assertions about the text of the final answer. They inform: a run is judged by what it did.

use super::{Finding, Results, record::Record};
use crate::case::{AnswerPattern, Expected, Severity};
use tracegate_core::payload::Payload;

pub(super) fn judge(expected: &Expected, results: &mut Results<'_, '_>) {
    let record = results.record;
    for words in &expected.final_mentions {
        let wanted = format!("the answer says `{words}`");
        let finding = mentions(record, words);
        results.add("finalMentions", words, Severity::Info, wanted, finding);
    }
    for pattern in &expected.final_must_not_match {
        let wanted = format!("nothing in the answer matches `{}`", pattern.as_str());
        let finding = does_not_match(record, pattern);
        results.add(
            "finalMustNotMatch",
            pattern.as_str(),
            Severity::Info,
            wanted,
            finding,
        );
    }
}

/// The parts of a text that the event holds, and whether there is more of it in an artifact.
fn parts(text: &Payload) -> (Vec<String>, bool) {
    match text {
        Payload::Inline(text) => (vec![text.clone()], false),
        Payload::Ref(reference) if reference.omitted == 0 => {
            let whole = format!("{}{}", reference.head, reference.tail);
            (vec![whole], reference.truncated)
        }
        Payload::Ref(reference) => (vec![reference.head.clone(), reference.tail.clone()], true),
    }
}

/// Looks for words, whatever their case.
fn mentions(record: &Record<'_>, words: &str) -> Finding {
    let Some((seq, text)) = record.answer else {
        return Finding::fail("no answer", "there is no final answer");
    };
    let (parts, more) = parts(text);
    let words_lower = words.to_lowercase();
    if parts
        .iter()
        .any(|part| part.to_lowercase().contains(&words_lower))
    {
        Finding::pass(format!("said (event {seq})")).with([seq])
    } else if more {
        Finding::error(format!(
            "the middle of the answer is in an artifact (event {seq})"
        ))
        .with([seq])
    } else {
        Finding::fail(
            "not said",
            format!("the answer does not say `{words}` (event {seq})"),
        )
        .with([seq])
    }
}

fn does_not_match(record: &Record<'_>, pattern: &AnswerPattern) -> Finding {
    let Some((seq, text)) = record.answer else {
        return Finding::skip("there is no final answer");
    };
    let (parts, more) = parts(text);
    if let Some(found) = parts.iter().find_map(|part| pattern.find(part)) {
        let found: String = found.chars().take(80).collect();
        Finding::fail(
            format!("`{found}`"),
            format!("the answer says `{found}` (event {seq})"),
        )
        .with([seq])
    } else if more {
        Finding::error(format!(
            "the middle of the answer is in an artifact (event {seq})"
        ))
        .with([seq])
    } else {
        Finding::pass(format!("no match (event {seq})")).with([seq])
    }
}
