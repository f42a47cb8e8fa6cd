//! Span records to the messages of OTLP. One way, for files and for all transports: the same record gives the same bytes.
//!
//! Not through the SDK's `SpanData`: it costs a copy of every attribute, and its resource changes the order of attributes from process to
//! process. A test compares both.

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, any_value},
    resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span, SpanFlags, Status, span, status},
};
use tracegate_core::{
    payload::clip,
    span::{Attributes, Parent, RecordKind, Resource, SpanRecord, SpanStatus, Value, names},
};

/// Trace flags of every span: sampled. Sampling is always on, so that no `OTEL_*` variable makes two exports of a run differ.
const SAMPLED: u32 = 1;
/// Flags of a span whose parent is in the same run; the mask says that this is known.
const LOCAL: u32 = SAMPLED | SpanFlags::ContextHasIsRemoteMask as u32;
/// The longest string of a span that was cut.
const CUT_STRING: usize = 128;
/// The most items of a list in a span that was cut.
const CUT_ITEMS: usize = 4;
/// The most span events of a span that was cut.
const CUT_EVENTS: usize = 8;

/// Returns a request with `spans`, which may be none: receivers accept that too.
#[must_use]
pub fn request(resource: &Resource, spans: Vec<Span>) -> ExportTraceServiceRequest {
    if spans.is_empty() {
        return ExportTraceServiceRequest::default();
    }
    let attributes = resource
        .iter()
        .map(|(key, value)| pair(key.to_owned(), string(value.to_owned())));
    let scope = InstrumentationScope {
        name: names::SCOPE.to_owned(),
        ..InstrumentationScope::default()
    };
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(resource::v1::Resource {
                attributes: attributes.collect(),
                ..resource::v1::Resource::default()
            }),
            scope_spans: vec![ScopeSpans {
                scope: Some(scope),
                spans,
                schema_url: names::SCHEMA_URL.to_owned(),
            }],
            schema_url: String::new(),
        }],
    }
}

/// Returns a record as OTLP has it; all ids, times and attributes are taken over unchanged, attributes in the order of their keys.
#[must_use]
pub fn span(record: SpanRecord) -> Span {
    let trace_id = record.trace_id.to_bytes().to_vec();
    let remote = match record.parent {
        Parent::Remote(_) => SpanFlags::ContextIsRemoteMask as u32,
        Parent::Root | Parent::Local(_) => 0,
    };
    let events = record.events.into_iter().map(|event| span::Event {
        time_unix_nano: event.at_ns,
        name: event.name,
        attributes: attributes(event.attrs),
        dropped_attributes_count: 0,
    });
    let links = record.links.into_iter().map(|link| span::Link {
        trace_id: link.trace_id.to_bytes().to_vec(),
        span_id: link.span_id.to_bytes().to_vec(),
        trace_state: String::new(),
        attributes: attributes(link.attrs),
        dropped_attributes_count: 0,
        flags: LOCAL,
    });
    let (code, message) = match record.status {
        SpanStatus::Unset => (status::StatusCode::Unset, String::new()),
        SpanStatus::Error(message) => (status::StatusCode::Error, message),
    };
    Span {
        trace_id,
        span_id: record.span_id.to_bytes().to_vec(),
        trace_state: String::new(),
        parent_span_id: record
            .parent
            .span_id()
            .map_or_else(Vec::new, |id| id.to_bytes().to_vec()),
        flags: LOCAL | remote,
        name: record.name,
        kind: match record.kind {
            RecordKind::Internal => span::SpanKind::Internal,
            RecordKind::Client => span::SpanKind::Client,
        } as i32,
        start_time_unix_nano: record.start_ns,
        end_time_unix_nano: record.end_ns,
        attributes: attributes(record.attrs),
        dropped_attributes_count: 0,
        events: events.collect(),
        dropped_events_count: record.dropped_events,
        links: links.collect(),
        dropped_links_count: 0,
        status: Some(Status {
            message,
            code: code as i32,
        }),
    }
}

/// Returns a span that a receiver would not take, with everything long shortened and a mark that it was.
pub(crate) fn cut(mut span: Span) -> Span {
    shorten(&mut span.attributes);
    let kept = span.events.len().min(CUT_EVENTS);
    let dropped = u32::try_from(span.events.len() - kept).unwrap_or(u32::MAX);
    span.events.truncate(kept);
    span.dropped_events_count = span.dropped_events_count.saturating_add(dropped);
    for event in &mut span.events {
        shorten(&mut event.attributes);
    }
    for link in &mut span.links {
        shorten(&mut link.attributes);
    }
    if let Some(status) = &mut span.status {
        status.message = clip(&status.message, CUT_STRING);
    }
    let mark = pair(
        names::EXPORT_CUT.to_owned(),
        any(any_value::Value::BoolValue(true)),
    );
    let at = span
        .attributes
        .partition_point(|attribute| attribute.key.as_str() < names::EXPORT_CUT);
    span.attributes.insert(at, mark);
    span
}

fn shorten(attributes: &mut [KeyValue]) {
    for attribute in attributes {
        match attribute.value.as_mut().and_then(|value| value.value.as_mut()) {
            Some(any_value::Value::StringValue(text)) => *text = clip(text, CUT_STRING),
            Some(any_value::Value::ArrayValue(list)) => {
                list.values.truncate(CUT_ITEMS);
                for item in &mut list.values {
                    if let Some(any_value::Value::StringValue(text)) = &mut item.value {
                        *text = clip(text, CUT_STRING);
                    }
                }
            }
            Some(_) | None => {}
        }
    }
}

fn attributes(attributes: Attributes) -> Vec<KeyValue> {
    let pairs = attributes.into_iter();
    pairs
        .map(|(key, value)| pair(key.into_owned(), convert(value)))
        .collect()
}

fn pair(key: String, value: AnyValue) -> KeyValue {
    KeyValue {
        key,
        value: Some(value),
        ..KeyValue::default()
    }
}

fn convert(value: Value) -> AnyValue {
    match value {
        Value::Str(text) => string(text),
        Value::Int(number) => any(any_value::Value::IntValue(number)),
        Value::Float(number) => any(any_value::Value::DoubleValue(number.get())),
        Value::Bool(flag) => any(any_value::Value::BoolValue(flag)),
        Value::List(items) => any(any_value::Value::ArrayValue(ArrayValue {
            values: items.into_iter().map(string).collect(),
        })),
    }
}

const fn string(text: String) -> AnyValue {
    any(any_value::Value::StringValue(text))
}

const fn any(value: any_value::Value) -> AnyValue {
    AnyValue { value: Some(value) }
}
