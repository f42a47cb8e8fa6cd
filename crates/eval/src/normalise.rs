//! Normalisation: the events of a run without what differs between two runs of the same goal, for goldens and comparisons.
//!
//! What goes: times and durations, the segment's number, the process id, token counts and byte counts (they follow from texts that
//! hold durations). What is renamed in the order of its first appearance, so that equal things stay recognisable as equal: ids that
//! derive from the run's id, the host's id, digests, redaction tags. What is renamed for good: the workspace, the policy files and the
//! script of a scripted model, wherever they lie. In what commands put out, durations, thread ids, build hashes and temporary paths
//! are renamed too; everything else of it stays, because it is evidence.
//!
//! What an interruption adds to a log (another segment, healed spans, pairs that were begun again) is kept: whoever compares an
//! interrupted run says first which of it belongs to the interruption.

use regex::{Captures, Regex};
use serde_json::{Map, Value};
use std::{borrow::Cow, collections::BTreeMap, sync::LazyLock};
use tracegate_core::{
    event::Event,
    fact::{Fact, is_free_key},
};

/// Fields that differ from run to run and carry nothing that could be compared.
const DROPPED: &[&str] = &[
    "ts",
    "mono_ns",
    "id",
    "segment",
    "end_ts",
    "pid",
    "duration_ms",
    "waited_ms",
    "bytes",
    "omitted",
    "output_chars",
    "usage",
    "used",
];

/// Fields whose texts hold what a command put out, or quote it.
const OUTPUTS: &[&str] = &[
    "output",
    "content",
    "head",
    "tail",
    "first_failure",
    "message",
    "explanation",
    "evidence",
];

/// Names that are only known by their shape: digests, run ids, redaction tags, the tags of files in a context, ids.
static NAMES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?P<digest>\bb3:[0-9a-f]{64}\b)",
        r"|(?P<run>\brun_[a-z0-9_-]*_[0-9]{8}_[0-9a-z]+\b)",
        r"|(?P<before>\[REDACTED:[a-z0-9-]+:)(?P<tag>[0-9a-f]{6})\]",
        r"|(?P<line>(?m:^)(?:<<< .*\) |>>> ))(?P<file>[0-9a-f]{16})(?m:$)",
        r"|(?P<id>\b(?:[0-9a-f]{32}|[0-9a-f]{16})\b)",
    ))
    .ok()
});

/// What differs in the output of the same command on the same files.
static VARYING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?P<time>\b[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?Z?)",
        r"|(?P<duration>\b[0-9]+(?:\.[0-9]+)?(?: ?(?:ns|us|µs|ms|s)|m [0-9.]+s| seconds?)\b)",
        r"|(?P<thread>thread '[^'\n]*' \()[0-9]+\)",
        r"|(?P<hash>-[0-9a-f]{16}\b)",
        r"|(?P<temporary>(?:/private)?(?:/var)?/tmp/[^\s'\x22():;,]*)",
    ))
    .ok()
});

/// Returns the events as JSON, one value an event, without what differs between runs.
///
/// Equal results mean: the same was done, seen, ruled and concluded, in the same order. The envelope's keys and those of `data` are
/// those of the log. Pure; the paths that are renamed are those that `run.started` names.
#[must_use]
pub fn normalise(events: &[Event]) -> Vec<Value> {
    let mut names = Names::of(events);
    let values = events.iter().filter_map(|event| {
        let mut value = serde_json::to_value(event).ok()?;
        names.envelope(&mut value);
        Some(value)
    });
    values.collect()
}

/// What has been given a name so far.
#[derive(Default)]
struct Names {
    /// Ids of this run by their text, with what they are.
    ids: BTreeMap<String, &'static str>,
    /// Paths and their names, longest first, so that no path is cut by its own beginning.
    paths: Vec<(String, String)>,
    /// Kind and text to ordinal.
    given: BTreeMap<(&'static str, String), usize>,
    /// How many of a kind have a name.
    counts: BTreeMap<&'static str, usize>,
}

impl Names {
    fn of(events: &[Event]) -> Self {
        let mut names = Self::default();
        for event in events {
            names.ids.insert(event.id.to_string(), "event");
            for span in event.span.iter().chain(&event.parent) {
                names.ids.insert(span.to_string(), "span");
            }
            if let Fact::RunStarted(started) = &event.fact {
                names.ids.insert(started.trace_id.to_string(), "trace");
                names.ids.insert(started.host_id.clone(), "host");
                names
                    .paths
                    .push((started.workspace.clone(), "<workspace>".to_owned()));
                let script = started.model.script.iter();
                names
                    .paths
                    .extend(script.map(|file| (file.clone(), "<script>".to_owned())));
                let files = (1..).zip(&started.policy.files);
                names
                    .paths
                    .extend(files.map(|(number, file)| (file.clone(), format!("<policy-{number}>"))));
            }
        }
        // A root or a bare name would be found everywhere.
        names
            .paths
            .retain(|(path, _)| path.starts_with('/') && path.len() > 1);
        names.paths.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        names
    }

    /// Gives `text` the next name of its kind, or the one that it has.
    fn name(&mut self, kind: &'static str, text: &str) -> String {
        let next = self.counts.entry(kind).or_default();
        let number = *self.given.entry((kind, text.to_owned())).or_insert_with(|| {
            *next += 1;
            *next
        });
        format!("{kind}-{number}")
    }

    fn envelope(&mut self, value: &mut Value) {
        if let Value::Object(map) = value {
            let waits = map.get("type").is_some_and(|name| name == "limit.reached");
            self.object(map);
            // How far a limit was passed is a matter of time; the limit itself stays.
            if waits && let Some(Value::Object(data)) = map.get_mut("data") {
                data.remove("value");
            }
        }
    }

    fn object(&mut self, map: &mut Map<String, Value>) {
        map.retain(|key, _| !DROPPED.contains(&key.as_str()));
        for (key, value) in map.iter_mut() {
            if is_free_key(key) {
                self.free(value);
            } else {
                self.ours(value, OUTPUTS.contains(&key.as_str()));
            }
        }
    }

    fn ours(&mut self, value: &mut Value, output: bool) {
        match value {
            Value::String(text) => *text = self.text(text, output),
            Value::Array(items) => items.iter_mut().for_each(|item| self.ours(item, output)),
            Value::Object(map) => self.object(map),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Keys of payload are not ours: none is dropped.
    fn free(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text, false),
            Value::Array(items) => items.iter_mut().for_each(|item| self.free(item)),
            Value::Object(map) => map.values_mut().for_each(|item| self.free(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, text: &str, output: bool) -> String {
        let mut text = Cow::Borrowed(text);
        for (path, name) in &self.paths {
            if text.contains(path.as_str()) {
                text = Cow::Owned(replace_path(&text, path, name));
            }
        }
        if let Some(names) = NAMES.as_ref() {
            let named = names.replace_all(&text, |found: &Captures<'_>| self.replacement(found));
            text = Cow::Owned(named.into_owned());
        }
        if output && let Some(varying) = VARYING.as_ref() {
            let steady = varying.replace_all(&text, |found: &Captures<'_>| steady(found));
            // Whether cargo had to wait for another one says nothing about the run.
            let lines = steady.split_inclusive('\n');
            text = Cow::Owned(
                lines
                    .filter(|line| !line.contains("Blocking waiting for file lock"))
                    .collect(),
            );
        }
        text.into_owned()
    }

    fn replacement(&mut self, found: &Captures<'_>) -> String {
        let part = |name| found.name(name).map(|part| part.as_str());
        if let Some(digest) = part("digest") {
            return self.name("digest", digest);
        }
        if let Some(run) = part("run") {
            return self.name("run", run);
        }
        if let (Some(before), Some(tag)) = (part("before"), part("tag")) {
            return format!("{before}{}]", self.name("tag", tag));
        }
        if let (Some(line), Some(file)) = (part("line"), part("file")) {
            return format!("{line}{}", self.name("file", file));
        }
        let id = part("id").unwrap_or_default();
        match self.ids.get(id).copied() {
            Some(kind) => self.name(kind, id),
            // Hexadecimal of somebody else, such as a commit, is evidence.
            None => id.to_owned(),
        }
    }
}

fn steady(found: &Captures<'_>) -> String {
    let part = |name| found.name(name).map(|part| part.as_str());
    if let Some(thread) = part("thread") {
        return format!("{thread}<thread>)");
    }
    let kinds = ["time", "duration", "temporary"];
    kinds
        .into_iter()
        .find(|kind| part(kind).is_some())
        .map_or_else(|| "-<hash>".to_owned(), |kind| format!("<{kind}>"))
}

/// Replaces `path` where it stands as a whole name or as the beginning of a longer path.
fn replace_path(text: &str, path: &str, name: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(path) {
        let goes_on = after
            .chars()
            .next()
            .is_some_and(|next| next.is_alphanumeric() || matches!(next, '_' | '-'));
        replaced.push_str(before);
        replaced.push_str(if goes_on { path } else { name });
        rest = after;
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testlog::{Log, bad_run, good_run};
    use proptest::prelude::*;
    use serde_json::json;
    use tracegate_core::{
        ids::{EventId, RunId, SpanId, Timestamp, TraceId},
        payload::Payload,
    };

    /// The same run as another process would have recorded it: other ids, other times, another place.
    fn elsewhere(log: &Log, run: &str, seconds: u64, host: &str, workspace: &str) -> Vec<Event> {
        let run: RunId = run.parse().unwrap();
        let mut spans = BTreeMap::new();
        let mut events = log.events.clone();
        for event in &mut events {
            event.id = EventId::derive(&run, event.seq);
            event.ts = Timestamp(event.ts.0 + seconds * 1_000_000_000 + event.seq.0 * 77);
            event.mono_ns += seconds * event.seq.0;
            for span in event.span.iter_mut().chain(&mut event.parent) {
                *span = *spans
                    .entry(*span)
                    .or_insert_with(|| SpanId::derive(&run, event.seq));
            }
            if let Fact::RunStarted(started) = &mut event.fact {
                started.trace_id = TraceId::derive(&run);
                started.host_id = host.to_owned();
                started.workspace = workspace.to_owned();
            }
            if let Fact::SegmentStarted(started) = &mut event.fact {
                started.pid += u32::try_from(seconds).unwrap();
            }
            if let Fact::ToolExecuteFinished(finished) = &mut event.fact {
                finished.duration_ms += seconds;
            }
        }
        events
    }

    #[test]
    fn every_pattern_compiles() {
        assert!(NAMES.is_some() && VARYING.is_some());
    }

    #[test]
    fn two_different_runs_stay_different() {
        assert_ne!(normalise(&bad_run().events), normalise(&good_run().events));
        let mut log = bad_run();
        for event in &mut log.events {
            if let Fact::ToolExecuteFinished(finished) = &mut event.fact
                && let Some(code) = &mut finished.exit_code
            {
                *code += 1;
            }
        }
        assert_ne!(normalise(&bad_run().events), normalise(&log.events));
    }

    #[test]
    fn a_text_loses_what_differs_and_nothing_else() {
        let run = "run_x_20261130_00000000";
        let span = SpanId::derive(&run.parse().unwrap(), tracegate_core::ids::Seq(3));
        let digests = [crate::testlog::digest("a"), crate::testlog::digest("b")];
        let mut names = Names {
            ids: BTreeMap::from([(span.to_string(), "span")]),
            paths: vec![
                ("/home/u/ws".to_owned(), "<workspace>".to_owned()),
                ("/home/u".to_owned(), "<policy-1>".to_owned()),
            ],
            ..Names::default()
        };
        let rows = [
            ("nothing", "nothing"),
            ("at /home/u/ws/src/a.ts:3", "at <workspace>/src/a.ts:3"),
            (
                "/home/u/wsx /home/u/ws-2 /home/u/ws.",
                "<policy-1>/wsx <policy-1>/ws-2 <workspace>.",
            ),
            (
                "finished in 0.03s, 12 ms, 1.2 µs, 3 seconds",
                "finished in <duration>, <duration>, <duration>, <duration>",
            ),
            (
                "1 failed, 12 passed; 3 sources, 5 stages",
                "1 failed, 12 passed; 3 sources, 5 stages",
            ),
            (
                "thread 'a b' (1745) panicked at a.rs:9:5",
                "thread 'a b' (<thread>) panicked at a.rs:9:5",
            ),
            (
                "target/debug/deps/math-9d773e5ee5e3622b)",
                "target/debug/deps/math-<hash>)",
            ),
            (
                "commit 0123456789abcdef0123456789abcdef01234567",
                "commit 0123456789abcdef0123456789abcdef01234567",
            ),
            (
                "2026-11-30T12:00:00.5Z and /tmp/x-1/y.log:3",
                "<time> and <temporary>:3",
            ),
            (
                "<<< a.txt (4 lines) 0123456789abcdef",
                "<<< a.txt (4 lines) file-1",
            ),
            (">>> 0123456789abcdef", ">>> file-1"),
        ];
        for (text, wanted) in rows {
            assert_eq!(names.text(text, true), wanted, "{text}");
        }
        let text = format!("{run} {span} {} {} {}", digests[1], digests[0], digests[1]);
        assert_eq!(
            names.text(&text, false),
            "run-1 span-1 digest-1 digest-2 digest-1"
        );
        let tags =
            "[REDACTED:github-token:0a0a0a] [REDACTED:github-token:0b0b0b] [REDACTED:assigned-secret:0a0a0a]";
        let wanted =
            "[REDACTED:github-token:tag-1] [REDACTED:github-token:tag-2] [REDACTED:assigned-secret:tag-1]";
        assert_eq!(names.text(tags, false), wanted);
        // A limit is what was asked for: only output has its durations renamed.
        assert_eq!(names.text("timeout 10s npm test", false), "timeout 10s npm test");
    }

    #[test]
    fn keys_of_payload_are_kept_and_ours_are_dropped() {
        let mut names = Names::default();
        let mut value =
            json!({"type": "x", "pid": 3, "data": {"args": {"pid": 3, "bytes": 9}, "bytes": 9, "n": 1}});
        names.envelope(&mut value);
        assert_eq!(
            value,
            json!({"type": "x", "data": {"args": {"pid": 3, "bytes": 9}, "n": 1}})
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn the_same_run_elsewhere_and_later_is_the_same(
            name in "[a-z]{1,9}", random in "[0-9a-hjkmnp-tv-z]{8}", seconds in 0_u64..1_000_000,
            host in "[0-9a-f]{32}", place in "/[a-z]{1,5}/[a-z]{1,9}",
        ) {
            let run = format!("run_{name}_20270101_{random}");
            for log in [bad_run(), good_run()] {
                let here = elsewhere(&log, "run_x_20261130_00000000", 0, &"0".repeat(32), "/home/u/project");
                let there = elsewhere(&log, &run, seconds, &host, &place);
                prop_assert!(normalise(&here) == normalise(&there));
            }
        }

        #[test]
        fn any_text_is_normalised_without_panic_and_always_the_same(text in any::<String>()) {
            let mut log = Log::new();
            log.answers(Payload::short(&text));
            prop_assert_eq!(normalise(&log.events), normalise(&log.events));
        }
    }
}
