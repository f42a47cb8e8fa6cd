//! Runs on disk, in a store of their own: what the exporter reads.
#![allow(dead_code, reason = "each test program uses its part")]
#![allow(
    clippy::unwrap_used,
    reason = "a fixture that cannot be written is a failed test"
)]

use crate::recorded::{BEGAN, events, run};
use opentelemetry_proto::tonic::{collector::trace::v1::ExportTraceServiceRequest, trace::v1::Span};
use serde_json::json;
use std::collections::BTreeMap;
use tempfile::TempDir;
use tracegate_core::{
    event::Event,
    fact::{Fact, is_free_key, is_schema_key},
    ids::{SegmentNo, Seq, SpanId, Timestamp},
    redact::{RedactionKey, Redactor, Schema},
    span::{Resource, SpanRecord, project},
};
use tracegate_otel::{
    endpoint::{Endpoint, OtelEnv, Typed},
    exporter::{Durable, Source},
    jsonl::to_json_line,
};
use tracegate_store::{LogWriter, RealDisk, RunDir, Store};

/// A store with one run, and the writer of its log.
pub(crate) struct Stored {
    pub(crate) store: Store,
    pub(crate) dir: RunDir,
    pub(crate) log: LogWriter,
    _folder: TempDir,
}

pub(crate) fn redactor() -> Redactor {
    Redactor::new(RedactionKey::from_bytes([7; 32]), &[])
}

/// The endpoint on `port` of this machine.
pub(crate) fn endpoint(port: u16, protocol: &str, more: &[(&str, &str)]) -> Endpoint {
    let mut env: OtelEnv = more
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    env.insert("OTEL_EXPORTER_OTLP_PROTOCOL".to_owned(), protocol.to_owned());
    let url = format!("http://127.0.0.1:{port}");
    let typed = Typed {
        url: Some(&url),
        ..Typed::default()
    };
    Endpoint::resolve(&typed, &env).unwrap().unwrap()
}

pub(crate) fn spans_of(request: &ExportTraceServiceRequest) -> Vec<Span> {
    let scopes = request
        .resource_spans
        .iter()
        .flat_map(|resource| &resource.scope_spans);
    scopes.flat_map(|scope| scope.spans.clone()).collect()
}

impl Stored {
    /// A run without events.
    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store"), || [3; 32]).unwrap();
        let dir = store.create_run(&run()).unwrap();
        let log = LogWriter::create(&dir, &RealDisk, store.artifacts(), 1).unwrap();
        Self {
            store,
            dir,
            log,
            _folder: folder,
        }
    }

    /// The recorded run.
    pub(crate) fn recorded() -> Self {
        let mut stored = Self::empty();
        for event in events() {
            stored.add(&event);
        }
        stored
    }

    /// A run with `spans` spans; each has eight times the text that `note` gives for it, cut to 1 KiB as all texts are.
    pub(crate) fn many(spans: u64, note: impl Fn(u64) -> String) -> Self {
        let mut stored = Self::empty();
        for event in many(spans, note) {
            stored.add(&event);
        }
        stored
    }

    pub(crate) fn add(&mut self, event: &Event) {
        let schema = Schema {
            keep: is_schema_key,
            free: is_free_key,
        };
        let event = redactor().scrub(event, &schema).unwrap();
        self.log.append(&event).unwrap();
    }

    /// The spans as the file of the run has them.
    pub(crate) fn in_the_file(&self) -> Vec<Span> {
        let (resource, spans) = self.projected();
        let lines = spans
            .into_iter()
            .map(|span| to_json_line(&resource, span).unwrap());
        let requests = lines.map(|line| serde_json::from_str::<ExportTraceServiceRequest>(&line).unwrap());
        requests.flat_map(|request| spans_of(&request)).collect()
    }

    /// What an export of the whole run reads.
    pub(crate) fn source(&self) -> Source {
        Source {
            dir: self.dir.clone(),
            durable: Durable::Here(self.store.artifacts().clone()),
            from: None,
            again: false,
        }
    }

    pub(crate) fn projected(&self) -> (Resource, Vec<SpanRecord>) {
        let (events, _) = tracegate_store::LogReader::open(&self.dir)
            .unwrap()
            .read_all()
            .unwrap();
        let projected = project(self.dir.id(), &events);
        (projected.resource.unwrap(), projected.spans)
    }
}

/// The events of a run whose spans all lie under one segment that never ends; without text nothing is noted in them.
pub(crate) fn many(spans: u64, note: impl Fn(u64) -> String) -> impl Iterator<Item = Event> {
    let opening: Vec<Event> = events().into_iter().take(2).collect();
    let segment = opening.iter().rev().find_map(|event| event.span).unwrap();
    let mut seq = opening.len() as u64;
    let pairs = (0..spans).flat_map(move |at| {
        let span = SpanId::derive(&run(), Seq(seq + 1));
        let mut place = |name: &str, data: serde_json::Value| {
            seq += 1;
            let raw = serde_json::value::to_raw_value(&data).unwrap();
            let fact = Fact::from_json(name, &raw).unwrap();
            let ts = Timestamp(BEGAN + seq * 1000);
            let mut event = Event::new(&run(), Seq(seq), SegmentNo(1), ts, seq * 1000, fact);
            event.span = Some(span);
            event
        };
        let mut begun = place("checkpoint.save.started", json!({}));
        begun.parent = Some(segment);
        let (started, text) = (begun.seq, note(at));
        let mut pair = vec![begun];
        if !text.is_empty() {
            let attrs: BTreeMap<String, &String> = (0..8).map(|n| (format!("text{n}"), &text)).collect();
            pair.push(place("span.noted", json!({ "name": "note", "attrs": attrs })));
        }
        let mut ended = place(
            "checkpoint.save.finished",
            json!({ "covers": started.0, "bytes": at }),
        );
        ended.cause = Some(started);
        pair.push(ended);
        pair
    });
    opening.into_iter().chain(pairs)
}
