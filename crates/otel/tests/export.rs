//! The exporter against receivers in this process: what arrives, what does not, and that nobody waits for it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a missing request is a failed test"
)]

mod receivers;
#[path = "../../core/tests/recorded/mod.rs"]
mod recorded;

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    trace::v1::{ResourceSpans, Span},
};
use prost::Message as _;
use receivers::{Received, grpc_receiver, http_receiver};
use recorded::{events, run};
use std::{net::TcpListener, sync::mpsc, thread, time::Duration};
use tracegate_core::span::{Attributes, Projected, Resource, SpanEvent, SpanRecord, Value, project};
use tracegate_otel::{
    convert::encoded_bound,
    endpoint::{Endpoint, OtelEnv},
    exporter::{BATCH_BYTES, BATCH_SPANS, ExportReport, Exporter},
    jsonl::to_json_line,
};

/// Long enough for a loaded machine; no test that passes waits for it.
const LONG: Duration = Duration::from_secs(60);

fn endpoint(port: u16, protocol: &str, headers: &str) -> Endpoint {
    let env = OtelEnv::from([
        ("OTEL_EXPORTER_OTLP_PROTOCOL".to_owned(), protocol.to_owned()),
        ("OTEL_EXPORTER_OTLP_HEADERS".to_owned(), headers.to_owned()),
    ]);
    Endpoint::resolve(Some(&format!("http://127.0.0.1:{port}")), &env)
        .unwrap()
        .unwrap()
}

fn recorded_run() -> (Resource, Vec<SpanRecord>) {
    let Projected { resource, spans } = project(&run(), &events());
    (resource.unwrap(), spans)
}

fn sent(spans: usize) -> ExportReport {
    ExportReport {
        sent: spans as u64,
        pending: 0,
        last_error: None,
    }
}

/// The same spans as the file has them.
fn as_in_the_file(resource: &Resource, spans: &[SpanRecord]) -> Vec<Span> {
    let lines = spans.iter().map(|span| to_json_line(resource, span).unwrap());
    let requests = lines.map(|line| serde_json::from_str::<ExportTraceServiceRequest>(&line).unwrap());
    requests.flat_map(|request| spans_of(&request)).collect()
}

fn spans_of(request: &ExportTraceServiceRequest) -> Vec<Span> {
    let scopes = request
        .resource_spans
        .iter()
        .flat_map(|resource: &ResourceSpans| &resource.scope_spans);
    scopes.flat_map(|scope| scope.spans.clone()).collect()
}

/// Sends the recorded run and compares what arrives with what the file says.
fn arrives(port: u16, received: &mpsc::Receiver<Received>, protocol: &str) -> Received {
    let (resource, spans) = recorded_run();
    let exporter = Exporter::start(endpoint(port, protocol, "x-tenant=a%20b"), resource.clone()).unwrap();
    exporter.send(spans.clone());
    let seen = received.recv_timeout(LONG).unwrap();
    assert_eq!(exporter.finish(LONG), sent(spans.len()));
    assert_eq!(spans_of(&seen.request), as_in_the_file(&resource, &spans));
    let attributes = &seen.request.resource_spans[0]
        .resource
        .as_ref()
        .unwrap()
        .attributes;
    let mut keys: Vec<&str> = attributes.iter().map(|it| it.key.as_str()).collect();
    keys.sort_unstable();
    let wanted: Vec<&str> = resource.iter().map(|(key, _)| key).collect();
    assert_eq!(keys, wanted, "the resource is ours and nothing is added");
    assert_eq!(seen.headers["x-tenant"], "a b");
    seen
}

#[test]
fn what_arrives_over_http_is_what_the_file_says() {
    let (port, received) = http_receiver(&[]);
    let seen = arrives(port, &received, "http/protobuf");
    assert_eq!(seen.path, "/v1/traces");
    assert_eq!(seen.headers["content-type"], "application/x-protobuf");
}

#[test]
fn what_arrives_over_grpc_is_what_the_file_says() {
    let (port, received) = grpc_receiver();
    let seen = arrives(port, &received, "grpc");
    assert_eq!(
        seen.path,
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    );
}

#[test]
fn it_works_inside_any_runtime_even_one_whose_only_thread_waits_for_it() {
    let current = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let multi = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    for protocol in ["http/protobuf", "grpc"] {
        for runtime in [&current, &multi] {
            let (port, received) = if protocol == "grpc" {
                grpc_receiver()
            } else {
                http_receiver(&[])
            };
            runtime.block_on(async { drop(arrives(port, &received, protocol)) });
            let (port, received) = if protocol == "grpc" {
                grpc_receiver()
            } else {
                http_receiver(&[])
            };
            let task = runtime.spawn(async move { drop(arrives(port, &received, protocol)) });
            runtime.block_on(task).unwrap();
        }
    }
}

#[test]
fn a_batch_that_is_refused_is_sent_again_until_it_is_taken() {
    let (port, received) = http_receiver(&[503, 429]);
    let (resource, spans) = recorded_run();
    let exporter = Exporter::start(endpoint(port, "http/protobuf", ""), resource.clone()).unwrap();
    exporter.send(spans.clone());
    for _ in 0..3 {
        let seen = received.recv_timeout(LONG).unwrap();
        assert_eq!(spans_of(&seen.request), as_in_the_file(&resource, &spans));
    }
    let report = exporter.finish(LONG);
    assert_eq!((report.sent, report.pending), (spans.len() as u64, 0));
    assert!(report.last_error.unwrap().contains("429"));
    assert!(received.try_recv().is_err(), "nothing is sent twice without need");
}

#[test]
fn requests_stay_below_the_limits_of_receivers() {
    let (port, received) = http_receiver(&[]);
    let (resource, template) = recorded_run();
    let mut spans = Vec::new();
    for at in 0..700_u64 {
        let mut span = template[0].clone();
        span.start_ns += at;
        // The last hundred together are above 4 MiB.
        let length = if at < 600 { 10 } else { 50_000 };
        span.attrs.insert("filler".into(), Value::Str("x".repeat(length)));
        spans.push(span);
    }
    let exporter = Exporter::start(endpoint(port, "http/protobuf", ""), resource).unwrap();
    exporter.send(spans.clone());
    assert_eq!(exporter.finish(LONG), sent(700));
    let mut starts = Vec::new();
    for seen in received.try_iter() {
        let batch = spans_of(&seen.request);
        assert!(batch.len() <= BATCH_SPANS && seen.request.encoded_len() <= BATCH_BYTES);
        starts.extend(batch.iter().map(|span| span.start_time_unix_nano));
    }
    let wanted: Vec<u64> = spans.iter().map(|span| span.start_ns).collect();
    assert_eq!(starts, wanted, "all of them, once, in order");
}

#[test]
fn the_bound_on_a_records_size_holds() {
    let (resource, mut spans) = recorded_run();
    let mut large = spans[0].clone();
    let list = Value::List(vec![String::new(); 64]);
    let attrs: Attributes = (0..10).map(|at| (format!("{at}").into(), list.clone())).collect();
    let event = SpanEvent {
        name: String::new(),
        at_ns: u64::MAX,
        attrs: attrs.clone(),
    };
    large.events = vec![event; 16];
    large.attrs.extend(attrs);
    spans.push(large);
    for (record, span) in spans.iter().zip(as_in_the_file(&resource, &spans)) {
        assert!(
            span.encoded_len() <= encoded_bound(record),
            "{}: {} bytes",
            record.name,
            span.encoded_len()
        );
    }
}

#[test]
fn with_nobody_listening_a_run_ends_soon_and_says_what_is_pending() {
    // Nothing listens on port 1; a port that was free a moment ago could be another test's by now.
    let port = 1;
    for protocol in ["http/protobuf", "grpc"] {
        let (resource, spans) = recorded_run();
        let exporter = Exporter::start(endpoint(port, protocol, ""), resource).unwrap();
        exporter.send(spans.clone());
        let report = exporter.finish(LONG);
        assert_eq!(
            (report.sent, report.pending),
            (0, spans.len() as u64),
            "{protocol}"
        );
        assert!(
            report.last_error.unwrap().contains(&format!("127.0.0.1:{port}")),
            "{protocol}"
        );
    }
}

#[test]
fn a_receiver_that_never_answers_holds_nobody_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (accepted, connections) = mpsc::channel();
    // Connections are accepted and kept open in the channel.
    thread::spawn(move || listener.incoming().try_for_each(|stream| accepted.send(stream)));
    for protocol in ["http/protobuf", "grpc"] {
        let (resource, spans) = recorded_run();
        let exporter = Exporter::start(endpoint(port, protocol, ""), resource).unwrap();
        exporter.send(spans.clone());
        let connection = connections.recv_timeout(LONG).unwrap();
        let report = exporter.finish(Duration::from_millis(20));
        assert_eq!(
            (report.sent, report.pending),
            (0, spans.len() as u64),
            "{protocol}"
        );
        assert!(report.last_error.unwrap().contains("in time"), "{protocol}");
        drop(connection);
    }
}

#[test]
fn nothing_to_send_is_no_reason_to_wait() {
    let exporter = Exporter::start(endpoint(1, "grpc", ""), Resource::default()).unwrap();
    assert_eq!(exporter.finish(LONG), sent(0));
}
