//! The live side: a real `tracing` span per span of the run, with the run's own ids, so that log lines, spans of libraries and child
//! processes hang on the right parent. Nothing is exported from here; what leaves the machine comes from the events alone.
#![expect(
    clippy::disallowed_macros,
    reason = "this is the one place that opens tracing spans"
)]

use opentelemetry::{
    Context,
    trace::{
        SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, TracerProvider as _,
    },
};
use opentelemetry_sdk::{
    Resource,
    trace::{IdGenerator, RandomIdGenerator, Sampler, SdkTracerProvider, TracerProviderBuilder},
};
use std::cell::Cell;
use tracegate_core::{fact::SpanKind, ids};
use tracing::{Level, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

/// The ids of a span, as the event that begins it has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanIds {
    /// The run's trace.
    pub trace: ids::TraceId,
    /// The span.
    pub span: ids::SpanId,
    /// Its parent, local or remote; none for the root of a trace.
    pub parent: Option<ids::SpanId>,
}

thread_local! {
    /// The ids that the next span on this thread gets; empty except inside [`BridgeHandle::open`].
    static PREPARED: Cell<Option<SpanIds>> = const { Cell::new(None) };
}

/// Hands out prepared ids, and random ones to spans of libraries.
#[derive(Debug, Default)]
struct PreparedIds(RandomIdGenerator);

impl IdGenerator for PreparedIds {
    fn new_trace_id(&self) -> TraceId {
        PREPARED
            .get()
            .map_or_else(|| self.0.new_trace_id(), |ids| trace_id(ids.trace))
    }

    fn new_span_id(&self) -> SpanId {
        PREPARED
            .get()
            .map_or_else(|| self.0.new_span_id(), |ids| span_id(ids.span))
    }
}

/// Empties the cell however the span's opening ends.
struct Prepared;

impl Prepared {
    fn set(ids: SpanIds) -> Self {
        PREPARED.set(Some(ids));
        Self
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        PREPARED.set(None);
    }
}

/// Opens live spans; handed out with the layer, because without it they would have no ids.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BridgeHandle;

/// Returns the layer to put into the subscriber, and the handle that opens spans through it.
///
/// The layer sees spans alone, of all libraries, from INFO upwards, and adds no attributes of its own; log lines are for other layers.
#[must_use]
pub fn layer<S>() -> (impl Layer<S>, BridgeHandle)
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    (layer_of(SdkTracerProvider::builder()), BridgeHandle)
}

fn layer_of<S>(provider: TracerProviderBuilder) -> impl Layer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    // Sampler and resource are set so that the SDK does not read the environment for them.
    let provider = provider
        .with_id_generator(PreparedIds::default())
        .with_sampler(Sampler::AlwaysOn)
        .with_resource(Resource::builder_empty().build())
        .build();
    // The tracer keeps the provider alive.
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("tracegate"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_target(false)
        .with_level(false)
        // Spans only: the layer turns every error event into the status of its span, and nobody reads its copies of log lines.
        // OpenTelemetry's own targets stay out, as they come from inside the layer's lock (tracing-opentelemetry 250, 251, 260).
        // Finer spans than INFO, such as those of HTTP libraries, would cost more than they tell.
        .with_filter(
            filter_fn(|metadata| {
                let ours = metadata.is_span() && *metadata.level() <= Level::INFO;
                ours && !metadata.target().starts_with("opentelemetry")
            })
            .with_max_level_hint(Level::INFO),
        )
}

/// Opens a tracing span with a constant name, as tracing demands, chosen by kind.
macro_rules! span_of {
    ($kind:expr, $($variant:ident = $name:literal),* $(,)?) => {
        match $kind {
            // The level is ERROR so that a filter which shows errors only still knows in which span they are.
            $(SpanKind::$variant => tracing::error_span!(target: "tracegate", $name),)*
        }
    };
}

impl BridgeHandle {
    /// Opens the live span of a span of the run. Its OpenTelemetry context has exactly `ids`; it ends when the last clone is dropped.
    ///
    /// Without the layer in the current subscriber the span is an ordinary tracing span, or none: a live view never stops a run.
    /// Enter it, or instrument futures with it; a task spawned without it starts a trace of its own.
    #[must_use]
    pub fn open(&self, ids: SpanIds, kind: SpanKind) -> Span {
        // The layer draws ids when a span's context is first asked for, not when the span is made: so all of this happens here, in
        // this order, on one thread, before anybody else can enter the span.
        let _prepared = Prepared::set(ids);
        let span = span_of!(
            kind,
            Segment = "segment",
            AgentStep = "agent.step",
            ContextBuild = "context.build",
            ModelComplete = "model.complete",
            PermissionReview = "permission.review",
            ToolExecute = "tool.execute",
            CheckpointSave = "checkpoint.save",
            ValidationReview = "validation.review",
        );
        let parent = ids.parent.map_or_else(Context::new, |parent| {
            Context::new().with_remote_span_context(context(ids.trace, parent))
        });
        // Fails only where there is no layer, and then there are no ids either.
        if span.set_parent(parent).is_ok() {
            drop(span.context());
        }
        span
    }
}

const fn trace_id(id: ids::TraceId) -> TraceId {
    TraceId::from_bytes(id.to_bytes())
}

const fn span_id(id: ids::SpanId) -> SpanId {
    SpanId::from_bytes(id.to_bytes())
}

/// A sampled context: sampling is always on, so that no `OTEL_*` variable makes two exports of a run differ.
fn context(trace: ids::TraceId, span: ids::SpanId) -> SpanContext {
    SpanContext::new(
        trace_id(trace),
        span_id(span),
        TraceFlags::SAMPLED,
        false,
        TraceState::NONE,
    )
}

/// Returns the `traceparent` of a span, for the environment of child processes and the headers of requests (W3C Trace Context 1).
#[must_use]
pub fn traceparent(ids: SpanIds) -> String {
    format!("00-{}-{}-01", ids.trace, ids.span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_sdk::{
        error::OTelSdkResult,
        trace::{SpanData, SpanExporter},
    };
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::layer::SubscriberExt as _;

    /// Keeps what ends, to see parents; the product has no exporter here.
    #[derive(Debug, Clone, Default)]
    struct Kept(Arc<Mutex<Vec<SpanData>>>);

    impl SpanExporter for Kept {
        async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
            self.0.lock().unwrap().extend(batch);
            Ok(())
        }
    }

    fn ids(span: u8, parent: Option<u8>) -> SpanIds {
        let id = |byte| ids::SpanId::from_bytes([byte; 8]);
        SpanIds {
            trace: ids::TraceId::from_bytes([7; 16]),
            span: id(span),
            parent: parent.map(id),
        }
    }

    #[test]
    fn a_span_of_a_library_hangs_under_the_span_of_the_run_and_takes_none_of_its_ids() {
        let kept = Kept::default();
        let layer = layer_of(SdkTracerProvider::builder().with_simple_exporter(kept.clone()));
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            let root = BridgeHandle.open(ids(1, None), SpanKind::Segment);
            let tool = BridgeHandle.open(ids(2, Some(1)), SpanKind::ToolExecute);
            tool.in_scope(|| {
                tracing::error!("an error event leaves the status alone");
                drop(tracing::info_span!(target: "some_library", "request").entered());
            });
            drop((tool, root));
        });
        let spans = kept.0.lock().unwrap();
        let request = spans.iter().find(|span| span.name == "request").unwrap();
        assert_eq!(request.parent_span_id, span_id(ids(2, None).span));
        assert_eq!(request.span_context.trace_id(), trace_id(ids(1, None).trace));
        assert_ne!(request.span_context.span_id(), span_id(ids(2, None).span));
        let tool = spans.iter().find(|span| span.name == "tool.execute").unwrap();
        assert_eq!(tool.parent_span_id, span_id(ids(1, None).span));
        assert_eq!(
            (tool.status.clone(), tool.attributes.len()),
            (opentelemetry::trace::Status::Unset, 0)
        );
        let root = spans.iter().find(|span| span.name == "segment").unwrap();
        assert_eq!(root.parent_span_id, SpanId::INVALID);
    }

    #[test]
    fn a_parent_of_the_run_wins_over_the_span_that_happens_to_be_entered() {
        let (layer, handle) = layer();
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            let other = handle.open(ids(1, None), SpanKind::Segment);
            let _entered = other.enter();
            let mut foreign = ids(3, Some(2));
            foreign.trace = ids::TraceId::from_bytes([9; 16]);
            let context = handle.open(foreign, SpanKind::AgentStep).context();
            assert_eq!(context.span().span_context().trace_id(), trace_id(foreign.trace));
            let mut root = ids(4, None);
            root.trace = ids::TraceId::from_bytes([5; 16]);
            let context = handle.open(root, SpanKind::Segment).context();
            assert_eq!(context.span().span_context().trace_id(), trace_id(root.trace));
        });
    }

    #[test]
    fn without_the_layer_opening_a_span_does_no_harm_and_leaves_no_ids_behind() {
        let span = BridgeHandle.open(ids(1, None), SpanKind::AgentStep);
        assert!(!span.context().span().span_context().is_valid());
        assert_eq!(PREPARED.get(), None);
    }

    #[test]
    fn a_traceparent_is_55_characters_and_sampled() {
        let text = traceparent(ids(1, None));
        assert_eq!(text, "00-07070707070707070707070707070707-0101010101010101-01");
    }
}
