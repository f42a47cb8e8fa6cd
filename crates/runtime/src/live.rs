//! The live side of spans: who opens a `tracing` span while a phase runs, so that logs and children hang on the right parent.

use tracegate_core::{
    fact::SpanKind,
    ids::{SpanId, TraceId},
};

/// The derived ids of a span that begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanIds {
    /// The trace.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
    /// Its parent, if it has one.
    pub parent: Option<SpanId>,
}

impl SpanIds {
    /// Returns the W3C `traceparent` that makes another process's spans children of this one.
    #[must_use]
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.trace, self.span)
    }
}

/// Opens `tracing` spans; this library knows no OpenTelemetry, so whoever embeds it brings the bridge.
pub trait LiveSpans: Send + std::fmt::Debug {
    /// Opens the live span of a phase.
    fn open(&self, ids: SpanIds, kind: SpanKind) -> tracing::Span;
}

/// No bridge: phases run without a live span.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLiveSpans;

impl LiveSpans for NoLiveSpans {
    fn open(&self, _ids: SpanIds, _kind: SpanKind) -> tracing::Span {
        tracing::Span::none()
    }
}
