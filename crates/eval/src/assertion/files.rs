//! Assertions about which files were read, and which were changed.

use super::{
    AssertionStatus, Finding, Results,
    record::{Change, Read, ReadBy, Record, leaves_file},
};
use crate::case::{Expected, PathPattern, ReadBeforeWrite};
use serde_json::Value;
use std::collections::BTreeSet;
use tracegate_core::ids::{Digest, Seq};

/// Narrows what counts as reading: a list of `tool`, `context`, `shell`.
const SOURCES_KEY: &str = "x-readSources";

pub(super) fn judge(expected: &Expected, results: &mut Results<'_, '_>) {
    let record = results.record;
    let reads = record.reads();
    let changes = record.changes();
    let sources = sources(expected.extra.get(SOURCES_KEY));
    for file in &expected.must_read_files {
        let wanted = format!("content of {} reached the model", file.as_str());
        let finding = match &sources {
            Some(sources) => was_read(record, &reads, sources, file),
            None => Finding::error(format!(
                "`{SOURCES_KEY}` is no list of `tool`, `context` and `shell`"
            )),
        };
        results.gate("mustReadFiles", file.as_str(), wanted, finding);
    }
    for pair in &expected.must_read_before_write {
        let ReadBeforeWrite { read, write } = pair;
        let item = format!("{} before {}", read.as_str(), write.as_str());
        let finding = read_before_write(record, &reads, &changes, pair);
        results.gate("mustReadBeforeWrite", &item, item.clone(), finding);
    }
    for file in &expected.must_write_files {
        let wanted = format!("{} differs at the end", file.as_str());
        results.gate(
            "mustWriteFiles",
            file.as_str(),
            wanted,
            was_written(record, &changes, file),
        );
    }
    if let Some(allowed) = &expected.only_write_files {
        let names: Vec<&str> = allowed.iter().map(PathPattern::as_str).collect();
        let wanted = match names.as_slice() {
            [] => "no file changed".to_owned(),
            names => format!("only {} changed", names.join(", ")),
        };
        let meant = |path: &str| !allowed.iter().any(|pattern| pattern.matches(path));
        results.gate("onlyWriteFiles", "", wanted, untouched(record, &changes, meant));
    }
    for file in &expected.forbidden_write_files {
        let wanted = format!("{} not changed", file.as_str());
        let finding = untouched(record, &changes, |path| file.matches(path));
        results.gate("forbiddenWriteFiles", file.as_str(), wanted, finding);
    }
}

fn sources(value: Option<&Value>) -> Option<Vec<ReadBy>> {
    let Some(value) = value else {
        return Some(vec![ReadBy::Tool, ReadBy::Context, ReadBy::Shell]);
    };
    let source = |value: &Value| match value.as_str() {
        Some("tool") => Some(ReadBy::Tool),
        Some("context") => Some(ReadBy::Context),
        Some("shell") => Some(ReadBy::Shell),
        Some(_) | None => None,
    };
    value.as_array()?.iter().map(source).collect()
}

/// A file was read when a request to the model followed: what came back after the last one never reached it.
fn was_read(record: &Record<'_>, reads: &[Read<'_>], sources: &[ReadBy], file: &PathPattern) -> Finding {
    let mut late = None;
    for read in reads {
        if !sources.contains(&read.how) || !file.matches(&read.path) {
            continue;
        }
        if record.request_after(read.seq).is_some() {
            return Finding::pass(format!("read by {} (event {})", read.by, read.seq)).with([read.seq]);
        }
        late.get_or_insert(read.seq);
    }
    let name = file.as_str();
    match late {
        Some(seq) => Finding::fail(
            "read too late",
            format!("{name} was read after the last request to the model (event {seq})"),
        )
        .with([seq]),
        None => match unlisted(record, file) {
            Some(why) => Finding::error(why),
            None => Finding::fail("never read", format!("{name} never read")),
        },
    }
}

/// A context report in the log lists its first 64 files; what is beyond may or may not be the file.
pub(super) fn unlisted(record: &Record<'_>, file: &PathPattern) -> Option<String> {
    let cut = record
        .contexts
        .iter()
        .find(|(_, _, report)| report.included_total > report.included.len() as u64)?;
    let (seq, _, report) = cut;
    Some(format!(
        "the log lists {} of {} files of a context, {} not among them (event {seq})",
        report.included.len(),
        report.included_total,
        file.as_str()
    ))
}

fn read_before_write(
    record: &Record<'_>,
    reads: &[Read<'_>],
    changes: &[Change<'_>],
    pair: &ReadBeforeWrite,
) -> Finding {
    let ReadBeforeWrite { read, write } = pair;
    let first = changes
        .iter()
        .filter(|change| write.matches(change.path))
        .min_by_key(|change| change.asked);
    let Some(first) = first else {
        return Finding::skip(format!("{} never changed", write.as_str()));
    };
    // The model must have known the content when it asked for the change, so a read in the same reply comes too late.
    let known = reads.iter().find(|known| {
        read.matches(&known.path)
            && record
                .request_after(known.seq)
                .is_some_and(|request| request < first.asked)
    });
    match known {
        Some(known) => Finding::pass(format!(
            "read (event {}), then changed (event {})",
            known.seq, first.asked
        ))
        .with([known.seq, first.asked]),
        None => Finding::broken(
            format!("{} changed first", write.as_str()),
            format!(
                "{} changed before the model had read {} (event {})",
                write.as_str(),
                read.as_str(),
                first.asked
            ),
        )
        .with([first.asked]),
    }
}

/// What became of one file over the whole run.
enum Net {
    /// There at the end, with another content than at the start.
    Differs,
    /// As it was.
    Same,
    /// Not there at the end.
    Gone,
    /// The record does not say.
    Unknown,
}

fn was_written(record: &Record<'_>, changes: &[Change<'_>], file: &PathPattern) -> Finding {
    let name = file.as_str();
    if let (Some(start), Some(end)) = (record.start_files, record.final_files) {
        let differs = end
            .iter()
            .any(|(path, digest)| file.matches(path) && start.get(path) != Some(digest));
        let seqs: Vec<Seq> = seqs_of(changes, |path| file.matches(path));
        return if differs {
            Finding::pass("differs").with(seqs)
        } else {
            Finding::fail("as it was, or gone", format!("{name} does not differ at the end")).with(seqs)
        };
    }
    let paths: BTreeSet<&str> = changes
        .iter()
        .map(|change| change.path)
        .filter(|path| file.matches(path))
        .collect();
    let mut worst = None;
    for path in paths {
        let seqs = seqs_of(changes, |other| other == path);
        let finding = match net(changes, path) {
            Net::Differs => return Finding::pass(format!("{path} differs")).with(seqs),
            Net::Same => Finding::fail("written back", format!("{path} is as it was")).with(seqs),
            Net::Gone => Finding::fail("deleted", format!("{path} was deleted")).with(seqs),
            Net::Unknown => Finding::error(format!("{path} changed, its content is not recorded")).with(seqs),
        };
        // An unknown one could be what is wanted, so it outweighs those that surely are not.
        if worst.is_none() || finding.status == AssertionStatus::Error {
            worst = Some(finding);
        }
    }
    if let Some(finding) = worst {
        return finding;
    }
    match record.unseen_changes(Seq(0)) {
        Some(why) => Finding::error(why),
        None => Finding::fail("never written", format!("{name} never written")),
    }
}

fn net(changes: &[Change<'_>], path: &str) -> Net {
    let mut of_path = changes.iter().filter(|change| change.path == path);
    let Some(first) = of_path.next() else {
        return Net::Same;
    };
    let last = of_path.next_back().unwrap_or(first);
    let (Some(first), Some(last)) = (first.effect, last.effect) else {
        return Net::Unknown;
    };
    let start: Option<Digest> = first.before;
    match (leaves_file(last), last.after) {
        (false, _) => Net::Gone,
        (true, None) => Net::Unknown,
        (true, Some(end)) if Some(end) == start => Net::Same,
        (true, Some(_)) => Net::Differs,
    }
}

fn seqs_of(changes: &[Change<'_>], meant: impl Fn(&str) -> bool) -> Vec<Seq> {
    let meant = changes.iter().filter(|change| meant(change.path));
    meant.map(|change| change.seq).collect()
}

/// Judges that no file that `meant` picks was changed, not even for a while.
fn untouched(record: &Record<'_>, changes: &[Change<'_>], meant: impl Fn(&str) -> bool) -> Finding {
    let mut touched: BTreeSet<&str> = changes
        .iter()
        .map(|change| change.path)
        .filter(|path| meant(path))
        .collect();
    let mut compared = false;
    if let (Some(start), Some(end)) = (record.start_files, record.final_files) {
        compared = true;
        let all = start.keys().chain(end.keys());
        let differ = all.filter(|path| start.get(*path) != end.get(*path));
        touched.extend(differ.map(String::as_str).filter(|path| meant(path)));
    }
    if !touched.is_empty() {
        let seqs = seqs_of(changes, &meant);
        let names: Vec<&str> = touched.iter().copied().take(5).collect();
        let more = match touched.len().saturating_sub(names.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let place = seqs
            .first()
            .map(|seq| format!(" (event {seq})"))
            .unwrap_or_default();
        let names = format!("{}{more}", names.join(", "));
        return Finding::broken(format!("{names} changed"), format!("{names} changed{place}")).with(seqs);
    }
    match record.unseen_changes(Seq(0)) {
        Some(why) if !compared => Finding::error(why),
        Some(_) | None => Finding::pass("not changed"),
    }
}
