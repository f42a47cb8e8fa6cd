//! Properties of the conversion, for all records.
#![allow(
    clippy::unwrap_used,
    reason = "a property that cannot be checked is a failed test"
)]

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use proptest::{collection, prelude::*};
use prost::Message as _;
use tracegate_core::{
    ids::{SpanId, TraceId},
    span::{
        Attributes, Finite, Parent, RecordKind, Resource, SpanEvent, SpanLink, SpanRecord, SpanStatus, Value,
    },
};
use tracegate_otel::{convert::encoded_bound, jsonl::to_json_line};

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<String>().prop_map(Value::Str),
        any::<i64>().prop_map(Value::Int),
        // Eighths: serde_json without `float_roundtrip` reads longer fractions one unit off, which is not what is tested here.
        any::<i32>().prop_filter_map("finite", |number| Finite::new(f64::from(number) / 8.0)
            .map(Value::Float)),
        any::<bool>().prop_map(Value::Bool),
        collection::vec(any::<String>(), 0..5).prop_map(Value::List),
    ]
}

fn attributes() -> impl Strategy<Value = Attributes> {
    collection::btree_map(any::<String>().prop_map_into(), values(), 0..5)
}

prop_compose! {
    fn records()(
        trace in any::<[u8; 16]>(), span in any::<[u8; 8]>(), other in any::<[u8; 8]>(), parent in 0..3_usize,
        name in any::<String>(), client in any::<bool>(), start_ns in any::<u64>(), end_ns in any::<u64>(),
        attrs in attributes(), noted in collection::vec(attributes(), 0..3), linked in collection::vec(attributes(), 0..3),
        dropped_events in any::<u32>(), error in any::<Option<String>>(),
    ) -> SpanRecord {
        let other = SpanId::from_bytes(other);
        SpanRecord {
            trace_id: TraceId::from_bytes(trace),
            span_id: SpanId::from_bytes(span),
            parent: [Parent::Root, Parent::Local(other), Parent::Remote(other)].into_iter().nth(parent).unwrap(),
            name: name.clone(),
            kind: if client { RecordKind::Client } else { RecordKind::Internal },
            start_ns,
            end_ns,
            attrs,
            events: noted.into_iter().map(|attrs| SpanEvent { name: name.clone(), at_ns: end_ns, attrs }).collect(),
            dropped_events,
            links: linked.into_iter().map(|attrs| SpanLink { trace_id: TraceId::from_bytes(trace), span_id: other, attrs }).collect(),
            status: error.map_or(SpanStatus::Unset, SpanStatus::Error),
        }
    }
}

proptest! {
    #[test]
    fn a_line_is_one_line_reads_back_and_is_the_same_every_time(record in records()) {
        let resource = Resource::new([("service.name".to_owned(), record.name.clone())]);
        let line = to_json_line(&resource, &record).unwrap();
        prop_assert_eq!(&line, &to_json_line(&resource, &record).unwrap());
        prop_assert_eq!(line.find('\n'), Some(line.len() - 1));
        let request: ExportTraceServiceRequest = serde_json::from_str(&line).unwrap();
        prop_assert_eq!(serde_json::to_string(&request).unwrap() + "\n", line);
        let spans = request.resource_spans.iter().flat_map(|it| &it.scope_spans).flat_map(|it| &it.spans);
        let spans: Vec<_> = spans.collect();
        prop_assert_eq!(spans.len(), 1);
        for span in spans {
            prop_assert_eq!((span.start_time_unix_nano, span.end_time_unix_nano), (record.start_ns, record.end_ns));
            prop_assert_eq!(span.attributes.len(), record.attrs.len());
            prop_assert!(span.encoded_len() <= encoded_bound(&record));
        }
    }
}

#[test]
fn a_number_that_json_cannot_hold_is_no_value() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(Finite::new(number), None);
    }
    assert_eq!(Finite::new(0.5).map(Finite::get), Some(0.5));
}
