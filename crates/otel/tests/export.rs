//! The exporter against receivers in this process: what arrives, what does not, and that nobody waits for it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a missing request is a failed test"
)]

mod receivers;
#[path = "../../core/tests/recorded/mod.rs"]
mod recorded;
mod stored;

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use receivers::{Received, grpc_receiver, http_receiver, judging_receiver, serve};
use recorded::events;
use std::{
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};
use stored::{Stored, endpoint, redactor, spans_of};
use tracegate_core::event::Event;
use tracegate_otel::{
    endpoint::Endpoint,
    exporter::{BATCH_BYTES, BATCH_SPANS, Durable, ExportReport, Exporter, Source},
};
use tracegate_store::{Cursor, Destination, Head};

/// Long enough for a loaded machine; no test that passes waits for it.
const LONG: Duration = Duration::from_secs(120);

fn sent(spans: usize) -> ExportReport {
    ExportReport {
        sent: spans as u64,
        ..ExportReport::default()
    }
}

fn exporter(endpoint: Endpoint, source: Source) -> Exporter {
    Exporter::start(endpoint, source, redactor()).unwrap()
}

fn arrived(received: &mpsc::Receiver<Received>) -> Vec<Span> {
    received
        .try_iter()
        .flat_map(|seen| spans_of(&seen.request))
        .collect()
}

/// Exports the recorded run and compares what arrives with what its file says.
fn arrives(port: u16, received: &mpsc::Receiver<Received>, protocol: &str, compression: &str) -> Received {
    let stored = Stored::recorded();
    let env = [
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=a%20b"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", compression),
    ];
    let report = exporter(endpoint(port, protocol, &env), stored.source()).drain();
    let (resource, spans) = stored.projected();
    assert_eq!(report, sent(spans.len()));
    let seen = received.try_recv().unwrap();
    assert_eq!(spans_of(&seen.request), stored.in_the_file());
    let attributes = &seen.request.resource_spans[0]
        .resource
        .as_ref()
        .unwrap()
        .attributes;
    let keys: Vec<&str> = attributes.iter().map(|it| it.key.as_str()).collect();
    let wanted: Vec<&str> = resource.iter().map(|(key, _)| key).collect();
    assert_eq!(keys, wanted, "the resource is ours and nothing is added");
    assert_eq!(seen.headers["x-tenant"], "a b");
    seen
}

#[test]
fn what_arrives_over_http_is_what_the_file_says() {
    for compression in ["none", "gzip"] {
        let (port, received) = http_receiver(&[]);
        let seen = arrives(port, &received, "http/protobuf", compression);
        assert_eq!(seen.path, "/v1/traces");
        assert_eq!(seen.headers["content-type"], "application/x-protobuf");
        let encoding = seen.headers.get("content-encoding").map(String::as_str);
        assert_eq!(encoding, (compression == "gzip").then_some("gzip"));
    }
}

#[test]
fn what_arrives_over_grpc_is_what_the_file_says() {
    for compression in ["none", "gzip"] {
        let (port, received) = grpc_receiver();
        let seen = arrives(port, &received, "grpc", compression);
        assert_eq!(
            seen.path,
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
        );
        let encoding = seen.headers.get("grpc-encoding").map(String::as_str);
        assert_eq!(encoding, (compression == "gzip").then_some("gzip"));
    }
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
            let receiver = || {
                if protocol == "grpc" {
                    grpc_receiver()
                } else {
                    http_receiver(&[])
                }
            };
            let (port, received) = receiver();
            runtime.block_on(async { drop(arrives(port, &received, protocol, "none")) });
            let (port, received) = receiver();
            let task = runtime.spawn(async move { drop(arrives(port, &received, protocol, "none")) });
            runtime.block_on(task).unwrap();
        }
    }
}

/// Writes `events` and tells the exporter, as a run does; it begins with the first one.
fn live(stored: &mut Stored, endpoint: &Endpoint, events: &[Event]) -> Exporter {
    let mut started: Option<Exporter> = None;
    for event in events {
        stored.add(event);
        let source = Source {
            from: Some(events[0].seq),
            ..stored.source()
        };
        let exporter = started.get_or_insert_with(|| exporter(endpoint.clone(), source));
        exporter.notice(event);
    }
    started.unwrap()
}

#[test]
fn spans_of_a_run_at_work_arrive_and_what_was_written_last_arrives_too() {
    let (port, received) = http_receiver(&[]);
    let mut stored = Stored::empty();
    let (events, endpoint) = (events(), endpoint(port, "http/protobuf", &[]));
    let exporter = live(&mut stored, &endpoint, &events[..20]);
    let first = received.recv_timeout(LONG).unwrap();
    for event in &events[20..] {
        stored.add(event);
        exporter.notice(event);
    }
    let wanted = stored.in_the_file();
    assert_eq!(exporter.finish(LONG), sent(wanted.len()));
    let mut found = spans_of(&first.request);
    found.extend(arrived(&received));
    assert_eq!(found, wanted, "each once, in order");
}

#[test]
fn a_batch_that_is_not_taken_now_is_sent_again_until_it_is() {
    let (port, received) = http_receiver(&[503, 429]);
    let stored = Stored::recorded();
    let source = Source {
        from: Some(events()[0].seq),
        ..stored.source()
    };
    let exporter = exporter(endpoint(port, "http/protobuf", &[]), source);
    let wanted = stored.in_the_file();
    for _ in 0..3 {
        let seen = received.recv_timeout(LONG).unwrap();
        assert_eq!(spans_of(&seen.request), wanted);
    }
    let report = exporter.finish(LONG);
    assert_eq!((report.sent, report.pending), (wanted.len() as u64, 0));
    assert!(report.last_error.unwrap().contains("429"));
    assert!(received.try_recv().is_err(), "nothing is sent twice without need");
}

#[test]
fn requests_stay_below_the_limits_of_receivers() {
    // Of the later ones, as many as go into a request by their number are too large for it.
    let text = |at| "x".repeat(if at < 300 { 1 } else { 1000 });
    let stored = Stored::many(600, text);
    let wanted = stored.in_the_file();
    for protocol in ["http/protobuf", "grpc"] {
        let (port, received) = if protocol == "grpc" {
            grpc_receiver()
        } else {
            http_receiver(&[])
        };
        let report = exporter(endpoint(port, protocol, &[]), stored.source()).drain();
        assert_eq!(report, sent(600), "{protocol}");
        let mut found = Vec::new();
        for seen in received.try_iter() {
            let batch = spans_of(&seen.request);
            let bytes = seen.request.encoded_len();
            assert!(
                batch.len() <= BATCH_SPANS && bytes <= BATCH_BYTES + 4096,
                "{bytes}"
            );
            found.extend(batch);
        }
        assert!(found == wanted, "{protocol}: all of them, once, in order");
    }
}

#[test]
fn with_nobody_listening_a_run_ends_soon_and_says_what_is_pending() {
    // Nothing listens on port 1; a port that was free a moment ago could be another test's by now.
    let port = 1;
    for protocol in ["http/protobuf", "grpc"] {
        let mut stored = Stored::empty();
        let exporter = live(&mut stored, &endpoint(port, protocol, &[]), &events());
        let report = exporter.finish(LONG);
        assert_eq!(
            (report.sent, report.pending, report.more),
            (0, stored.in_the_file().len() as u64, false),
            "{protocol}"
        );
        let why = report.last_error.unwrap();
        assert!(why.contains(&format!("127.0.0.1:{port}")), "{why}");
        assert!(why.contains("refused"), "{why}");
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
        let mut stored = Stored::empty();
        let exporter = live(&mut stored, &endpoint(port, protocol, &[]), &events());
        let connection = connections.recv_timeout(LONG).unwrap();
        let report = exporter.finish(Duration::from_millis(20));
        assert_eq!(
            (report.sent, report.pending),
            (0, stored.in_the_file().len() as u64),
            "{protocol}"
        );
        assert!(report.last_error.unwrap().contains("in time"), "{protocol}");
        drop(connection);
    }
}

#[test]
fn an_attempt_without_an_answer_ends_with_the_timeout_and_is_repeated() {
    // The system takes connections and nobody reads from them, until somebody does.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let stored = Stored::recorded();
    let short = endpoint(port, "http/protobuf", &[("OTEL_EXPORTER_OTLP_TIMEOUT", "20")]);
    let report = exporter(short, stored.source()).drain();
    assert_eq!(
        (report.sent, report.pending),
        (0, stored.in_the_file().len() as u64)
    );
    assert!(report.last_error.unwrap().contains("no answer within 20 ms"));
    // A slow one: the request waits until somebody reads it.
    let slow = exporter(endpoint(port, "http/protobuf", &[]), stored.source());
    let (sender, received) = mpsc::channel();
    thread::spawn(move || serve(&listener, |_| (200, "", Vec::new()), &sender));
    let wanted = stored.in_the_file();
    assert_eq!(slow.drain(), sent(wanted.len()));
    assert!(received.try_iter().any(|seen| spans_of(&seen.request) == wanted));
}

#[test]
fn dropping_an_exporter_waits_for_nobody_and_nothing_to_send_is_no_reason_to_wait() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let stored = Stored::recorded();
    drop(exporter(endpoint(port, "grpc", &[]), stored.source()));
    let stored = Stored::empty();
    assert_eq!(
        exporter(endpoint(1, "grpc", &[]), stored.source()).drain(),
        sent(0)
    );
}

#[test]
fn an_export_goes_on_where_the_receiver_has_everything() {
    let (port, received) = http_receiver(&[]);
    let to = || endpoint(port, "http/protobuf", &[]);
    let mut stored = Stored::empty();
    let events = events();
    for event in &events[..12] {
        stored.add(event);
    }
    let early = stored.in_the_file();
    assert_eq!(exporter(to(), stored.source()).drain(), sent(early.len()));
    assert_eq!(arrived(&received), early);
    let nothing_new = ExportReport {
        before: early.len() as u64,
        ..ExportReport::default()
    };
    assert_eq!(exporter(to(), stored.source()).drain(), nothing_new);
    let exporter_here = live(&mut stored, &to(), &events[12..]);
    let all = stored.in_the_file();
    let rest = ExportReport {
        before: early.len() as u64,
        ..sent(all.len() - early.len())
    };
    assert_eq!(exporter_here.finish(LONG), rest);
    assert_eq!(arrived(&received), all[early.len()..]);
    // Asked for, everything is sent again, and it is the same.
    let again = Source {
        again: true,
        ..stored.source()
    };
    assert_eq!(exporter(to(), again).drain(), sent(all.len()));
    assert_eq!(arrived(&received), all);
    // Another receiver has a cursor of its own.
    let (port, other) = grpc_receiver();
    assert_eq!(
        exporter(endpoint(port, "grpc", &[]), stored.source()).drain(),
        sent(all.len())
    );
    assert_eq!(arrived(&other), all);
}

#[test]
fn a_cursor_of_another_log_is_not_believed() {
    let (port, received) = http_receiver(&[]);
    let to = endpoint(port, "http/protobuf", &[]);
    let destination = Destination::at(to.url());
    let stored = Stored::recorded();
    let all = stored.in_the_file();
    assert_eq!(exporter(to.clone(), stored.source()).drain(), sent(all.len()));
    let good = stored.dir.read_cursor(&destination).unwrap();
    assert_eq!(good.spans, all.len() as u64);
    let start = Head::start(stored.dir.id());
    let other = Head {
        seq: good.head.seq,
        ..start
    };
    let mut beyond = good.head;
    beyond.seq.0 += 100;
    for head in [other, beyond] {
        stored
            .dir
            .write_cursor(&destination, Cursor { head, ..good })
            .unwrap();
        drop(arrived(&received));
        let report = exporter(to.clone(), stored.source()).drain();
        assert_eq!(
            report,
            ExportReport {
                restarted: true,
                ..sent(all.len())
            }
        );
        assert_eq!(arrived(&received), all);
        assert_eq!(stored.dir.read_cursor(&destination), Some(good));
    }
}

#[test]
fn a_run_that_another_process_writes_is_exported_up_to_what_is_durable() {
    let (port, received) = http_receiver(&[]);
    let mut stored = Stored::empty();
    for event in &events()[..12] {
        stored.add(event);
    }
    let head = stored.log.sync().unwrap();
    let durable = stored.in_the_file();
    for event in &events()[12..] {
        stored.add(event);
    }
    let until = |head| Source {
        durable: Durable::UpTo(head),
        ..stored.source()
    };
    let to = || endpoint(port, "http/protobuf", &[]);
    assert_eq!(exporter(to(), until(head)).drain(), sent(durable.len()));
    assert_eq!(arrived(&received), durable);
    let nothing = until(Head::start(stored.dir.id()));
    let report = exporter(to(), nothing).drain();
    assert_eq!((report.sent, report.restarted), (0, false));
}

#[test]
fn a_receiver_that_went_away_and_came_back_has_every_span_once_in_every_order() {
    let down = Arc::new(AtomicBool::new(true));
    let is_down = Arc::clone(&down);
    let (port, received) = judging_receiver(move |_| {
        let status = if is_down.load(Ordering::SeqCst) { 503 } else { 200 };
        (status, "", Vec::new())
    });
    let to = || endpoint(port, "http/protobuf", &[]);
    let mut stored = Stored::empty();
    let events = events();
    let away = live(&mut stored, &to(), &events[..20]).finish(LONG);
    assert_eq!((away.sent, away.more), (0, false));
    assert!(
        received.try_iter().count() >= 3,
        "three attempts are made at the end"
    );
    down.store(false, Ordering::SeqCst);
    // The next process adds to the log, and what the first one could not send goes first.
    let back = live(&mut stored, &to(), &events[20..]);
    let all = stored.in_the_file();
    assert_eq!(back.finish(LONG), sent(all.len()));
    assert_eq!(arrived(&received), all);
}
