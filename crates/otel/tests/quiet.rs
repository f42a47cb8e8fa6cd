//! What the transport logs about itself reaches no subscriber: its spans would be exported, which would make more of them.
//! Alone in its program, because it needs the one global subscriber.
#![allow(clippy::unwrap_used, reason = "a missing request is a failed test")]

mod receivers;
#[path = "../../core/tests/recorded/mod.rs"]
mod recorded;

use receivers::grpc_receiver;
use recorded::{events, run};
use std::{sync::Mutex, thread, time::Duration};
use tracegate_core::span::project;
use tracegate_otel::{
    endpoint::{Endpoint, OtelEnv},
    exporter::Exporter,
};
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
};

/// Threads from which log lines came.
static SPOKE: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Listening;

impl<S: Subscriber> Layer<S> for Listening {
    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        let name = thread::current().name().unwrap_or_default().to_owned();
        SPOKE.lock().unwrap().push(name);
    }
}

#[test]
fn the_exporters_thread_logs_nothing_about_itself() {
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(Listening)).unwrap();
    let projected = project(&run(), &events());
    let (port, received) = grpc_receiver();
    let endpoint = Endpoint::resolve(
        Some(&format!("http://127.0.0.1:{port}")),
        &OtelEnv::from([("OTEL_EXPORTER_OTLP_PROTOCOL".to_owned(), "grpc".to_owned())]),
    );
    let exporter = Exporter::start(endpoint.unwrap().unwrap(), projected.resource.unwrap()).unwrap();
    exporter.send(projected.spans);
    assert_eq!(exporter.finish(Duration::from_secs(60)).pending, 0);
    drop(received);
    let spoke = SPOKE.lock().unwrap();
    // The receiver's thread speaks the same protocol through the same library, so somebody did log.
    assert!(!spoke.is_empty());
    assert!(!spoke.iter().any(|name| name == "tracegate-otlp"), "{spoke:?}");
}
