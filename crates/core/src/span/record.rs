//! A finished span as plain data: what every exporter, file and test of this project sees, independent of any OpenTelemetry crate.

use super::sorted::Attributes;
use crate::{
    ids::{SpanId, TraceId},
    payload::clip,
};
use std::collections::BTreeMap;

/// The longest string in an attribute, in bytes; longer values freeze Jaeger's page (jaeger-ui 3798) and belong into artifacts.
pub const MAX_STRING: usize = 1024;
/// The longest list in an attribute, in bytes of its items together.
pub const MAX_LIST: usize = 4 * 1024;
/// The most items of a list.
pub const MAX_LIST_ITEMS: usize = 64;
/// The longest span name, event name or event attribute key, in bytes.
pub const MAX_NAME: usize = 128;
/// The most span events of a span, as in OpenTelemetry's default limits.
pub const MAX_SPAN_EVENTS: usize = 128;

/// A number that is neither infinite nor NaN: OTLP/JSON would turn those into `null` and lose them.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Finite(f64);

impl Finite {
    /// Accepts a finite number.
    #[must_use]
    pub const fn new(value: f64) -> Option<Self> {
        if value.is_finite() {
            Some(Self(value))
        } else {
            None
        }
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// The value of an attribute. There is no unsigned kind: OTLP has none, and exporters turn such numbers into strings.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text.
    Str(String),
    /// A whole number.
    Int(i64),
    /// Any finite number.
    Float(Finite),
    /// Yes or no.
    Bool(bool),
    /// Several texts, in order.
    List(Vec<String>),
}

impl Value {
    /// Wraps text, cut to [`MAX_STRING`] bytes with a note of what went.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Str(clip(text, MAX_STRING))
    }

    /// Likewise, of text that is not needed any more.
    #[must_use]
    pub fn of(text: String) -> Self {
        if text.len() <= MAX_STRING {
            Self::Str(text)
        } else {
            Self::text(&text)
        }
    }

    /// Wraps a count; what does not fit is the greatest number that does.
    #[must_use]
    pub fn count(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }

    /// Wraps the first [`MAX_LIST_ITEMS`] texts that fit into [`MAX_LIST`] bytes together.
    #[must_use]
    pub fn list(items: impl IntoIterator<Item = String>) -> Self {
        let mut room = MAX_LIST;
        let mut kept = Vec::new();
        for item in items.into_iter().take(MAX_LIST_ITEMS) {
            let item = clip(&item, MAX_STRING);
            let Some(rest) = room.checked_sub(item.len()) else {
                break;
            };
            room = rest;
            kept.push(item);
        }
        Self::List(kept)
    }
}

/// What a span hangs under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// Nothing: it is the root of its trace.
    Root,
    /// A span of this run.
    Local(SpanId),
    /// A span of the program that started the run, from `TRACEPARENT`.
    Remote(SpanId),
}

impl Parent {
    /// Returns the parent's id, if there is a parent.
    #[must_use]
    pub const fn span_id(self) -> Option<SpanId> {
        match self {
            Self::Root => None,
            Self::Local(id) | Self::Remote(id) => Some(id),
        }
    }
}

/// Which side of a call a span describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// Work of this process.
    Internal,
    /// A request to another service.
    Client,
}

/// How a span ended. There is no `Ok`: OpenTelemetry leaves that to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanStatus {
    /// Nothing failed.
    Unset,
    /// The operation failed; the message is redacted and may be empty.
    Error(String),
}

/// A point in time inside a span.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanEvent {
    /// What happened.
    pub name: String,
    /// When, in nanoseconds since the Unix epoch.
    pub at_ns: u64,
    /// More about it.
    pub attrs: Attributes,
}

/// A reference to another span that is not the parent.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanLink {
    /// The other span's trace.
    pub trace_id: TraceId,
    /// The other span.
    pub span_id: SpanId,
    /// How this span relates to it.
    pub attrs: Attributes,
}

/// A finished span. It never changes once it was made: same events, same record.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanRecord {
    /// The run's trace.
    pub trace_id: TraceId,
    /// Derived from run and started event.
    pub span_id: SpanId,
    /// What it hangs under.
    pub parent: Parent,
    /// Name, at most [`MAX_NAME`] bytes.
    pub name: String,
    /// Which side of a call.
    pub kind: RecordKind,
    /// Begin, in nanoseconds since the Unix epoch.
    pub start_ns: u64,
    /// End, likewise; never before the begin.
    pub end_ns: u64,
    /// What is known about it.
    pub attrs: Attributes,
    /// The first [`MAX_SPAN_EVENTS`] points inside it.
    pub events: Vec<SpanEvent>,
    /// How many further points are not kept.
    pub dropped_events: u32,
    /// Other spans that it refers to.
    pub links: Vec<SpanLink>,
    /// How it ended.
    pub status: SpanStatus,
}

/// What all spans of a run have in common; fixed when the run starts, because a varying resource would make a re-export a second span.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resource(BTreeMap<String, String>);

impl Resource {
    /// Wraps attributes, each value cut to [`MAX_STRING`] bytes.
    #[must_use]
    pub fn new(attributes: impl IntoIterator<Item = (String, String)>) -> Self {
        let clipped = attributes
            .into_iter()
            .map(|(key, value)| (clip(&key, MAX_NAME), clip(&value, MAX_STRING)));
        Self(clipped.collect())
    }

    /// Returns the attributes in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns one attribute.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }
}
