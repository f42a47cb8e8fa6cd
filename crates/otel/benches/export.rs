//! What spans cost: projecting one from its two events, sending many, and waiting for a receiver that is not there.
//!
//! `cargo bench -p tracegate-otel --bench export`; a word after `--` keeps the groups whose names contain it, a number sets how many spans
//! `pending` has. The groups `projection`, `sending` and `pending` are independent.
#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench measures the machine it runs on, prints, and stops at the first surprise"
)]

#[path = "../tests/receivers/mod.rs"]
mod receivers;
#[path = "../../core/tests/recorded/mod.rs"]
mod recorded;
#[path = "../tests/stored/mod.rs"]
mod stored;

use opentelemetry::{
    Context, KeyValue,
    trace::{Span as _, Tracer as _, TracerProvider as _},
};
use opentelemetry_sdk::trace::{SdkTracerProvider, Span, SpanData, SpanProcessor};
use receivers::{grpc_receiver, http_receiver};
use rustix::time::{ClockId, clock_gettime};
use std::{hint::black_box, thread, time::Instant};
use stored::{Stored, endpoint, redactor};
use tracegate_core::{
    fact::SpanKind,
    ids::{SpanId, TraceId},
    span::Projector,
};
use tracegate_otel::{
    bridge::{SpanIds, layer},
    encode,
    exporter::Exporter,
};
use tracing_subscriber::layer::SubscriberExt as _;

/// CPU time of this thread, or of the whole process, in nanoseconds.
fn cpu(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The best of several passes: everything else on the machine only adds.
fn best(passes: u32, mut pass: impl FnMut() -> u64) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..passes {
        let began = cpu(ClockId::ThreadCPUTime);
        let done = pass();
        let took = cpu(ClockId::ThreadCPUTime) - began;
        best = best.min(took as f64 / done as f64);
    }
    best
}

/// Takes finished spans and does nothing with them.
#[derive(Debug)]
struct Sink;

impl SpanProcessor for Sink {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        black_box(span);
    }

    fn force_flush(&self) -> opentelemetry_sdk::error::OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: std::time::Duration) -> opentelemetry_sdk::error::OTelSdkResult {
        Ok(())
    }
}

/// A span of the recorded run has about this many attributes.
const ATTRIBUTES: usize = 14;

fn projection() {
    let (run, events) = (recorded::run(), recorded::events());
    let mut attributes = 0;
    let projected = best(50, || {
        let mut spans = 0;
        // How the run began is said once, however many spans follow.
        let mut projector = Projector::new(&run);
        projector.feed(&events[0]);
        for _ in 0..200 {
            for event in &events[1..] {
                for span in black_box(projector.feed(black_box(event))) {
                    attributes = attributes.max(span.attrs.len());
                    spans += 1;
                }
            }
        }
        spans
    });
    let encoded = best(20, || {
        let mut projector = Projector::new(&run);
        let records: Vec<_> = events.iter().flat_map(|event| projector.feed(event)).collect();
        let mut spans = 0;
        for _ in 0..200 {
            for record in &records {
                black_box(encode::span(record.clone()));
                spans += 1;
            }
        }
        spans
    });
    let provider = SdkTracerProvider::builder().with_span_processor(Sink).build();
    let tracer = provider.tracer("bench");
    let keys: Vec<String> = (0..ATTRIBUTES)
        .map(|n| format!("tracegate.attribute.{n}"))
        .collect();
    let raw = best(50, || {
        for _ in 0..2000 {
            let attributes = keys
                .iter()
                .map(|key| KeyValue::new(key.clone(), "a value of some length".to_owned()));
            let mut span = tracer
                .span_builder("tool.execute")
                .with_attributes(attributes.collect::<Vec<_>>())
                .start(&tracer);
            span.end();
        }
        2000
    });
    let (layer, bridge) = layer();
    let subscriber = tracing_subscriber::registry().with(layer);
    let live = tracing::subscriber::with_default(subscriber, || {
        best(50, || {
            for number in 0..2000_u64 {
                let ids = SpanIds {
                    trace: TraceId::from_bytes([7; 16]),
                    span: SpanId::from_bytes((number + 2).to_be_bytes()),
                    parent: Some(SpanId::from_bytes([1; 8])),
                };
                drop(black_box(bridge.open(ids, SpanKind::ToolExecute)));
            }
            2000
        })
    });
    println!(
        "projection of a span, on top of its two events   {:>8.2} us",
        projected / 1e3
    );
    println!(
        "live span through tracing, opened and closed     {:>8.2} us",
        live / 1e3
    );
    println!(
        "both: begin and end of a span                    {:>8.2} us",
        (projected + live) / 1e3
    );
    println!(
        "  the same to a message of OTLP, with a copy     {:>8.2} us",
        encoded / 1e3
    );
    println!(
        "raw opentelemetry, begin and end, {ATTRIBUTES} attributes   {:>8.2} us",
        raw / 1e3
    );
    println!(
        "ratio of both to it                              {:>8.2} (largest span: {attributes} attributes)",
        (projected + live) / raw
    );
}

fn sending() {
    const SPANS: u64 = 40_000;
    let stored = Stored::many(SPANS, |_| String::new());
    for protocol in ["http/protobuf", "grpc"] {
        let (port, received) = if protocol == "grpc" {
            grpc_receiver()
        } else {
            http_receiver(&[])
        };
        thread::spawn(move || received.iter().for_each(drop));
        let source = tracegate_otel::exporter::Source {
            again: true,
            ..stored.source()
        };
        let (began, cpu_began) = (Instant::now(), cpu(ClockId::ProcessCPUTime));
        let exporter = Exporter::start(endpoint(port, protocol, &[]), source, redactor()).unwrap();
        let report = exporter.drain();
        let (wall, busy) = (began.elapsed(), cpu(ClockId::ProcessCPUTime) - cpu_began);
        assert_eq!(report.sent, SPANS, "{report:?}");
        println!(
            "sent over {protocol:<14} {:>9.0} spans/s by the clock, {:>9.0} spans/s of CPU, receiver included",
            SPANS as f64 / wall.as_secs_f64(),
            SPANS as f64 / (busy as f64 / 1e9)
        );
    }
}

/// What stands in `/proc/self/status` under `name`, in KiB.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn pending(spans: u64) {
    let stored = Stored::many(spans, |_| String::new());
    let before = memory("VmRSS");
    // Nothing listens on port 1.
    let exporter = Exporter::start(endpoint(1, "grpc", &[]), stored.source(), redactor()).unwrap();
    let report = exporter.drain();
    assert_eq!((report.sent, report.pending), (0, spans));
    println!(
        "{spans} spans pending: {before} KiB before, {} KiB after, {} KiB at most",
        memory("VmRSS"),
        memory("VmHWM")
    );
}

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let number = words.iter().find_map(|word| word.parse().ok());
    let asked: Vec<&String> = words.iter().filter(|word| word.parse::<u64>().is_err()).collect();
    let wants = |group: &str| asked.is_empty() || asked.iter().any(|word| group.contains(word.as_str()));
    if wants("projection") {
        projection();
    }
    if wants("sending") {
        sending();
    }
    if wants("pending") {
        pending(number.unwrap_or(1_000_000));
    }
}
