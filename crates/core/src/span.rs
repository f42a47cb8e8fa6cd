//! Spans: what leaves a run as OpenTelemetry, computed from its events and from nothing else.

mod arguments;
mod attributes;
pub mod names;
mod project;
mod record;
mod sorted;

pub use project::{OpenSpan, Projected, Projector, project};
pub use record::{
    Finite, MAX_LIST, MAX_LIST_ITEMS, MAX_NAME, MAX_SPAN_EVENTS, MAX_STRING, Parent, RecordKind, Resource,
    SpanEvent, SpanLink, SpanRecord, SpanStatus, Value,
};
pub use sorted::Attributes;
