//! The live spans and the projected ones are the same spans.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a missing span is a failed test"
)]

#[path = "../../core/tests/recorded/mod.rs"]
mod recorded;

use opentelemetry::{Context, trace::TraceContextExt as _};
use recorded::{events, run};
use std::collections::BTreeMap;
use tracegate_core::{
    fact::Edge,
    ids::SpanId,
    span::{Projector, SpanRecord, project},
};
use tracegate_otel::bridge::{SpanIds, layer, traceparent};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::layer::SubscriberExt as _;

/// Ids of a span as an OpenTelemetry context has them.
fn seen(context: &Context) -> (String, String) {
    let span = context.span();
    let context = span.span_context();
    assert!(context.is_sampled());
    (context.trace_id().to_string(), context.span_id().to_string())
}

fn recorded_ids(span: &SpanRecord) -> (String, String) {
    (span.trace_id.to_string(), span.span_id.to_string())
}

#[test]
fn a_live_span_has_the_ids_under_which_it_is_exported() {
    let projected: BTreeMap<SpanId, SpanRecord> = project(&run(), &events())
        .spans
        .into_iter()
        .map(|span| (span.span_id, span))
        .collect();
    let (layer, bridge) = layer();
    let subscriber = tracing_subscriber::registry().with(layer);
    let mut compared = 0;
    tracing::subscriber::with_default(subscriber, || {
        let mut open: Vec<(SpanId, Span)> = Vec::new();
        let mut projector = Projector::new(&run());
        for event in events() {
            drop(projector.feed(&event));
            match (event.fact.edge(), event.span) {
                (Some((kind, Edge::Started)), Some(span)) => {
                    let ids = SpanIds {
                        trace: projector.trace_id(),
                        span,
                        parent: event.parent,
                    };
                    let live = bridge.open(ids, kind);
                    let record = &projected[&span];
                    assert_eq!(seen(&live.context()), recorded_ids(record), "{}", record.name);
                    // What a library or a log exporter finds while the span is entered.
                    live.in_scope(|| assert_eq!(seen(&Context::current()), recorded_ids(record)));
                    let (trace, id) = recorded_ids(record);
                    assert_eq!(traceparent(ids), format!("00-{trace}-{id}-01"));
                    assert_eq!(ids.parent, record.parent.span_id());
                    compared += 1;
                    open.push((span, live));
                }
                (Some((_, Edge::Finished)), Some(span)) => open.retain(|(id, _)| *id != span),
                (Some(_) | None, _) => {}
            }
        }
        assert!(open.is_empty());
    });
    assert_eq!(compared, projected.len());
}
