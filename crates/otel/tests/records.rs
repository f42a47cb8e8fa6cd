//! Properties of the conversion, for all records.
#![allow(
    clippy::unwrap_used,
    reason = "a property that cannot be checked is a failed test"
)]

use opentelemetry::{
    Array, InstrumentationScope, KeyValue, StringValue,
    trace::{Event, Link, SpanContext, SpanKind, Status, TraceFlags, TraceState},
};
use opentelemetry_proto::tonic::{collector::trace::v1::ExportTraceServiceRequest, trace::v1::Span};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use proptest::{collection, prelude::*};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracegate_core::{
    ids::{self, SpanId, TraceId},
    span::{
        Attributes, Finite, Parent, RecordKind, Resource, SpanEvent, SpanLink, SpanRecord, SpanStatus, Value,
        names,
    },
};
use tracegate_otel::jsonl::to_json_line;

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
    let pairs = collection::vec((any::<String>().prop_map_into(), values()), 0..5);
    pairs.prop_map(|pairs| pairs.into_iter().collect())
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

/// The record as the SDK would have it, had it made the span.
fn span_data(record: &SpanRecord) -> SpanData {
    let mut events = SpanEvents::default();
    events.events = record
        .events
        .iter()
        .map(|event| Event::new(event.name.clone(), time(event.at_ns), key_values(&event.attrs), 0))
        .collect();
    events.dropped_count = record.dropped_events;
    let mut links = SpanLinks::default();
    links.links = record
        .links
        .iter()
        .map(|link| Link::new(context(link.trace_id, link.span_id), key_values(&link.attrs), 0))
        .collect();
    SpanData {
        span_context: context(record.trace_id, record.span_id),
        parent_span_id: record
            .parent
            .span_id()
            .map_or(opentelemetry::trace::SpanId::INVALID, span_id),
        parent_span_is_remote: matches!(record.parent, Parent::Remote(_)),
        span_kind: match record.kind {
            RecordKind::Internal => SpanKind::Internal,
            RecordKind::Client => SpanKind::Client,
        },
        name: record.name.clone().into(),
        start_time: time(record.start_ns),
        end_time: time(record.end_ns),
        attributes: key_values(&record.attrs),
        dropped_attributes_count: 0,
        events,
        links,
        status: match &record.status {
            SpanStatus::Unset => Status::Unset,
            SpanStatus::Error(message) => Status::error(message.clone()),
        },
        instrumentation_scope: InstrumentationScope::builder(names::SCOPE)
            .with_schema_url(names::SCHEMA_URL)
            .build(),
    }
}

const fn span_id(id: ids::SpanId) -> opentelemetry::trace::SpanId {
    opentelemetry::trace::SpanId::from_bytes(id.to_bytes())
}

fn context(trace: ids::TraceId, span: ids::SpanId) -> SpanContext {
    SpanContext::new(
        opentelemetry::trace::TraceId::from_bytes(trace.to_bytes()),
        span_id(span),
        TraceFlags::SAMPLED,
        false,
        TraceState::NONE,
    )
}

fn time(ns: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(ns)
}

fn key_values(attributes: &Attributes) -> Vec<KeyValue> {
    attributes
        .iter()
        .map(|(key, value)| KeyValue::new(key.to_owned(), convert(value)))
        .collect()
}

fn convert(value: &Value) -> opentelemetry::Value {
    match value {
        Value::Str(text) => text.clone().into(),
        Value::Int(number) => (*number).into(),
        Value::Float(number) => number.get().into(),
        Value::Bool(flag) => (*flag).into(),
        Value::List(items) => {
            let items = items.iter().map(|item| StringValue::from(item.clone())).collect();
            opentelemetry::Value::Array(Array::String(items))
        }
    }
}

proptest! {
    #[test]
    fn a_line_is_one_line_reads_back_and_is_the_same_every_time(record in records()) {
        let resource = Resource::new([("service.name".to_owned(), record.name.clone())]);
        let line = to_json_line(&resource, record.clone()).unwrap();
        prop_assert_eq!(&line, &to_json_line(&resource, record.clone()).unwrap());
        prop_assert_eq!(line.find('\n'), Some(line.len() - 1));
        let request: ExportTraceServiceRequest = serde_json::from_str(&line).unwrap();
        prop_assert_eq!(serde_json::to_string(&request).unwrap() + "\n", line);
        let spans = request.resource_spans.iter().flat_map(|it| &it.scope_spans).flat_map(|it| &it.spans);
        let spans: Vec<_> = spans.collect();
        prop_assert_eq!(spans.len(), 1);
        for span in spans {
            prop_assert_eq!((span.start_time_unix_nano, span.end_time_unix_nano), (record.start_ns, record.end_ns));
            prop_assert_eq!(span.attributes.len(), record.attrs.len());
            // Converted by the SDK, which copies everything twice, it is the same.
            prop_assert_eq!(span, &Span::from(span_data(&record)));
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
