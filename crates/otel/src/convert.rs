//! Span records to the data types of the OpenTelemetry SDK, which the OTLP exporters take.

use opentelemetry::{
    Array, InstrumentationScope, KeyValue, StringValue,
    trace::{Event, Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState},
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tracegate_core::{
    ids,
    span::{Attributes, Parent, RecordKind, Resource, SpanRecord, SpanStatus, Value, names},
};

/// Converts a record; all ids, times and attributes are taken over unchanged, attributes in the order of their keys.
#[must_use]
pub fn span_data(record: &SpanRecord) -> SpanData {
    let mut events = SpanEvents::default();
    events.events = record
        .events
        .iter()
        .map(|event| Event::new(event.name.clone(), time(event.at_ns), attributes(&event.attrs), 0))
        .collect();
    events.dropped_count = record.dropped_events;
    let mut links = SpanLinks::default();
    links.links = record
        .links
        .iter()
        .map(|link| Link::new(context(link.trace_id, link.span_id), attributes(&link.attrs), 0))
        .collect();
    SpanData {
        span_context: context(record.trace_id, record.span_id),
        parent_span_id: record.parent.span_id().map_or(SpanId::INVALID, span_id),
        parent_span_is_remote: matches!(record.parent, Parent::Remote(_)),
        span_kind: match record.kind {
            RecordKind::Internal => SpanKind::Internal,
            RecordKind::Client => SpanKind::Client,
        },
        name: record.name.clone().into(),
        start_time: time(record.start_ns),
        end_time: time(record.end_ns),
        attributes: attributes(&record.attrs),
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

/// Converts a resource, adding nothing: the SDK's own detectors would make it vary between processes.
#[must_use]
pub fn resource(resource: &Resource) -> opentelemetry_sdk::Resource {
    opentelemetry_sdk::Resource::builder_empty()
        .with_attributes(resource_attributes(resource))
        .build()
}

/// Returns the attributes of a resource in the order of their keys, which the SDK's own type does not keep.
pub(crate) fn resource_attributes(resource: &Resource) -> Vec<KeyValue> {
    resource
        .iter()
        .map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()))
        .collect()
}

/// Returns a number of bytes that the record does not exceed in OTLP/protobuf, without encoding it.
///
/// Counted per part: its text, and 64 bytes for tags, lengths, ids and times, which is more than any of them has.
#[must_use]
pub fn encoded_bound(record: &SpanRecord) -> usize {
    const PART: usize = 64;
    let attributes = |attrs: &Attributes| -> usize {
        let size = |value: &Value| match value {
            Value::Str(text) => text.len(),
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => 0,
            Value::List(items) => items.iter().map(|item| PART + item.len()).sum(),
        };
        attrs
            .iter()
            .map(|(key, value)| PART + key.len() + size(value))
            .sum()
    };
    let events: usize = record
        .events
        .iter()
        .map(|event| PART + event.name.len() + attributes(&event.attrs))
        .sum();
    let links: usize = record
        .links
        .iter()
        .map(|link| PART + attributes(&link.attrs))
        .sum();
    let status = match &record.status {
        SpanStatus::Unset => 0,
        SpanStatus::Error(message) => message.len(),
    };
    3 * PART + record.name.len() + attributes(&record.attrs) + events + links + status
}

pub(crate) const fn trace_id(id: ids::TraceId) -> TraceId {
    TraceId::from_bytes(id.to_bytes())
}

pub(crate) const fn span_id(id: ids::SpanId) -> SpanId {
    SpanId::from_bytes(id.to_bytes())
}

/// A sampled context: sampling is always on, so that no `OTEL_*` variable makes two exports of a run differ.
pub(crate) fn context(trace: ids::TraceId, span: ids::SpanId) -> SpanContext {
    SpanContext::new(
        trace_id(trace),
        span_id(span),
        TraceFlags::SAMPLED,
        false,
        TraceState::NONE,
    )
}

fn time(ns: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(ns)
}

fn attributes(attributes: &Attributes) -> Vec<KeyValue> {
    attributes
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), convert(value)))
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
