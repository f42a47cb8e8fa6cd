//! What the transport logs about itself reaches no subscriber: its spans would be exported, which would make more of them.
//! Alone in its program, because it needs the one global subscriber.
#![allow(clippy::unwrap_used, reason = "a missing request is a failed test")]

mod receivers;
#[path = "../../core/tests/recorded/mod.rs"]
mod recorded;
mod stored;

use receivers::grpc_receiver;
use std::{sync::Mutex, thread};
use stored::{Stored, endpoint, redactor};
use tracegate_otel::exporter::Exporter;
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
    let stored = Stored::recorded();
    let (port, received) = grpc_receiver();
    let exporter = Exporter::start(endpoint(port, "grpc", &[]), stored.source(), redactor()).unwrap();
    assert_eq!(exporter.drain().pending, 0);
    drop(received);
    let spoke = SPOKE.lock().unwrap();
    // The receiver's thread speaks the same protocol through the same library, so somebody did log.
    assert!(!spoke.is_empty());
    assert!(!spoke.iter().any(|name| name == "tracegate-otlp"), "{spoke:?}");
}
