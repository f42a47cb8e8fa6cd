//! Joins the library's live spans to the OpenTelemetry bridge; neither knows the other.

use tracegate::live::{LiveSpans, SpanIds};
use tracegate_core::fact::SpanKind;
use tracegate_otel::bridge::{self, BridgeHandle};

/// Opens live spans through the bridge.
#[derive(Debug)]
pub(crate) struct Bridged(pub(crate) BridgeHandle);

impl LiveSpans for Bridged {
    fn open(&self, ids: SpanIds, kind: SpanKind) -> tracing::Span {
        self.0.open(
            bridge::SpanIds {
                trace: ids.trace,
                span: ids.span,
                parent: ids.parent,
            },
            kind,
        )
    }
}
