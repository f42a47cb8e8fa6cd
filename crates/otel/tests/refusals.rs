//! What receivers refuse: a span, a message, a part, everything; and what is kept of it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a missing request is a failed test"
)]
#![expect(clippy::disallowed_methods, reason = "dead letters are read from disk")]

mod receivers;
#[path = "../../core/tests/recorded/mod.rs"]
mod recorded;
mod stored;

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message as _;
use receivers::{judging_grpc_receiver, judging_receiver};
use std::{
    fs,
    sync::atomic::{AtomicU32, Ordering},
};
use stored::{Stored, endpoint, redactor, spans_of};
use tonic_types::{ErrorDetails, StatusExt as _};
use tracegate_otel::{
    endpoint::Endpoint,
    exporter::{ExportReport, Exporter},
};
use tracegate_store::Destination;

fn export(stored: &Stored, to: &Endpoint) -> ExportReport {
    Exporter::start(to.clone(), stored.source(), redactor())
        .unwrap()
        .drain()
}

/// Whether a request has the span number `at` of [`Stored::many`].
fn has(request: &ExportTraceServiceRequest, at: i64) -> bool {
    let key = "tracegate.checkpoint.log_bytes";
    spans_of(request).iter().any(|span| {
        let mut values = span.attributes.iter().filter(|it| it.key == key);
        values.any(|it| format!("{:?}", it.value).contains(&format!("IntValue({at})")))
    })
}

#[test]
fn a_span_that_is_refused_alone_is_kept_and_the_others_arrive() {
    let stored = Stored::many(300, |_| String::new());
    let (port, received) = judging_receiver(|request| {
        if has(request, 77) {
            (400, "", b"span 77 is not to my taste".to_vec())
        } else {
            (200, "", Vec::new())
        }
    });
    let to = endpoint(port, "http/protobuf", &[]);
    let report = export(&stored, &to);
    assert_eq!(
        (report.sent, report.dead, report.cut, report.pending),
        (299, 1, 0, 0)
    );
    assert!(report.last_error.unwrap().contains("not to my taste"));
    let requests: Vec<_> = received.try_iter().map(|seen| seen.request).collect();
    let taken = requests.iter().filter(|request| !has(request, 77));
    let mut wanted = stored.in_the_file();
    let poison = wanted.remove(77);
    assert!(taken.flat_map(spans_of).eq(wanted), "each once, in order");
    let destination = Destination::at(to.url());
    let letters = fs::read_to_string(stored.dir.dead_letters(&destination)).unwrap();
    let [letter] = letters.lines().collect::<Vec<_>>()[..] else {
        panic!("one letter: {letters}")
    };
    let letter: serde_json::Value = serde_json::from_str(letter).unwrap();
    let kept: ExportTraceServiceRequest = serde_json::from_value(letter["request"].clone()).unwrap();
    assert_eq!(spans_of(&kept), [poison], "it is kept whole");
    let cursor = stored.dir.read_cursor(&destination).unwrap();
    assert_eq!(cursor.spans, 300, "the cursor passes over it");
    assert_eq!(export(&stored, &to).before, 300);
}

#[test]
fn a_span_that_is_too_large_for_a_receiver_arrives_cut() {
    let stored = Stored::many(4, |at| "x".repeat(if at == 2 { 1000 } else { 1 }));
    let (port, received) = judging_receiver(|request| {
        let large = request.encoded_len() > 6000;
        (if large { 413 } else { 200 }, "", Vec::new())
    });
    let report = export(&stored, &endpoint(port, "http/protobuf", &[]));
    assert_eq!(
        (report.sent, report.cut, report.dead, report.pending),
        (4, 1, 0, 0)
    );
    let taken = received
        .try_iter()
        .filter(|seen| seen.request.encoded_len() <= 6000);
    let spans: Vec<_> = taken.flat_map(|seen| spans_of(&seen.request)).collect();
    let marks: Vec<bool> = spans
        .iter()
        .map(|span| span.attributes.iter().any(|it| it.key == "tracegate.export.cut"))
        .collect();
    assert_eq!(marks, [false, false, true, false]);
    let keys: Vec<&str> = spans[2].attributes.iter().map(|it| it.key.as_str()).collect();
    assert!(keys.is_sorted(), "{keys:?}");
}

#[test]
fn a_receiver_that_refuses_everything_costs_no_span() {
    for status in [400, 401, 403, 404, 413, 500] {
        let stored = Stored::many(40, |_| String::new());
        let (port, received) = judging_receiver(move |_| (status, "", Vec::new()));
        let to = endpoint(port, "http/protobuf", &[]);
        let report = export(&stored, &to);
        assert_eq!((report.sent, report.dead, report.pending), (0, 0, 40), "{status}");
        assert!(
            report.last_error.unwrap().contains(&status.to_string()),
            "{status}"
        );
        let destination = Destination::at(to.url());
        assert_eq!(stored.dir.read_cursor(&destination), None, "{status}");
        assert!(!stored.dir.dead_letters(&destination).exists(), "{status}");
        drop(received);
    }
}

#[test]
fn what_a_receiver_leaves_out_is_counted_and_not_sent_again() {
    fn partly() -> Vec<u8> {
        let partial_success = Some(ExportTracePartialSuccess {
            rejected_spans: 2,
            error_message: "two without a name".to_owned(),
        });
        ExportTraceServiceResponse { partial_success }.encode_to_vec()
    }
    let stored = Stored::many(10, |_| String::new());
    let (http, over_http) = judging_receiver(|_| (200, "content-type: application/x-protobuf\r\n", partly()));
    let (grpc, over_grpc) = judging_grpc_receiver(|_| (0, partly()));
    for (to, received) in [
        (endpoint(http, "http/protobuf", &[]), over_http),
        (endpoint(grpc, "grpc", &[]), over_grpc),
    ] {
        let report = export(&stored, &to);
        assert_eq!((report.sent, report.rejected, report.pending), (10, 2, 0));
        assert!(report.last_error.unwrap().contains("two without a name"));
        assert_eq!(received.try_iter().count(), 1);
    }
}

#[test]
fn a_receiver_that_is_exhausted_is_left_alone_if_it_says_for_how_long() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let stored = Stored::many(4, |_| String::new());
    let (port, received) = judging_grpc_receiver(|_| {
        if ASKED.fetch_add(1, Ordering::Relaxed) > 0 {
            return (0, Vec::new());
        }
        let details = ErrorDetails::with_retry_info(Some(std::time::Duration::from_millis(1)));
        let status = tonic::Status::with_error_details(tonic::Code::ResourceExhausted, "busy", details);
        (8, status.details().to_vec())
    });
    let report = export(&stored, &endpoint(port, "grpc", &[]));
    assert_eq!((report.sent, report.dead, report.pending), (4, 0, 0));
    assert_eq!(received.try_iter().count(), 2, "the same request, twice");
}

#[test]
fn an_exhausted_receiver_that_names_no_time_means_the_message() {
    let stored = Stored::many(4, |_| String::new());
    let (port, received) = judging_grpc_receiver(|request| {
        let code = if spans_of(request).len() > 2 { 8 } else { 0 };
        (code, Vec::new())
    });
    let report = export(&stored, &endpoint(port, "grpc", &[]));
    assert_eq!((report.sent, report.dead, report.pending), (4, 0, 0));
    let sizes: Vec<usize> = received
        .try_iter()
        .map(|seen| spans_of(&seen.request).len())
        .collect();
    assert_eq!(sizes, [4, 2, 2]);
}
