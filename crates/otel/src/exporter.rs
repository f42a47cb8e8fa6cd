//! Sending spans to a collector from one thread of its own: the run hands them over and never waits.
//!
//! The SDK's own processors are not used, because they lose spans silently: batches are dropped after four attempts, an open queue at
//! exit is reported as success, and the HTTP client panics on their thread (`hyper` without a reactor). Here the exporter is built and
//! driven inside a single-threaded runtime on the thread, so it works whatever runtime the caller has, or none.
//!
//! A batch that was not acknowledged stays at the head of the queue and is sent again. What did not fit into the queue, or was not sent
//! when the run ended, is pending: it lies in the run's log and in `traces.otlp.jsonl`.

use crate::{
    convert::{encoded_bound, resource, span_data},
    endpoint::{Endpoint, Protocol},
};
use opentelemetry_otlp::{
    SpanExporter as OtlpExporter, WithExportConfig as _, WithHttpConfig as _, WithTonicConfig as _,
    tonic_types::metadata::MetadataMap,
};
use opentelemetry_sdk::{error::OTelSdkError, trace::SpanExporter as _};
use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};
use tokio::sync::{Notify, oneshot};
use tracegate_core::span::{Resource, SpanRecord};

/// The most spans of one request.
pub const BATCH_SPANS: usize = 256;
/// The most bytes of one request, by [`encoded_bound`]: half of the 4 MiB above which gRPC receivers refuse a whole batch.
pub const BATCH_BYTES: usize = 2 * 1024 * 1024;
/// The most spans that wait; a run has some hundreds.
const QUEUE_SPANS: usize = 16 * 1024;
/// The most bytes that wait.
const QUEUE_BYTES: usize = 64 * 1024 * 1024;
/// The pauses between attempts while the run goes on.
const BACKOFF: Pauses = Pauses {
    first: Duration::from_millis(500),
    longest: Duration::from_secs(30),
};
/// The pauses once the run has ended and somebody waits.
const CLOSING_BACKOFF: Pauses = Pauses {
    first: Duration::from_millis(100),
    longest: Duration::from_millis(400),
};
/// After how many failures in a row, once the run has ended, the rest is left pending: a collector that is not there refuses at once,
/// and nobody should wait for it.
const CLOSING_ATTEMPTS: u32 = 3;
/// How much longer than asked [`Exporter::finish`] waits for the thread to notice that its time is over.
const GRACE: Duration = Duration::from_millis(500);

/// How long to wait between attempts, doubling.
#[derive(Debug, Clone, Copy)]
struct Pauses {
    first: Duration,
    longest: Duration,
}

impl Pauses {
    fn after(self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.longest)
    }
}

/// What became of the spans.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportReport {
    /// Acknowledged by the receiver.
    pub sent: u64,
    /// Not acknowledged; some of them may have arrived all the same, and sending them again does no harm.
    pub pending: u64,
    /// Why, if anything failed: the last failure.
    pub last_error: Option<String>,
}

/// The exporter could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ExporterError {
    /// The operating system gave no thread.
    #[error("the exporter's thread could not be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// Sends spans to one endpoint until it is finished or dropped.
///
/// Dropping it stops the thread soon and abandons what is queued; [`Exporter::finish`] is the way to end.
#[must_use]
pub struct Exporter {
    shared: Arc<Shared>,
    /// Tells the thread how much longer it has; gone once it was told.
    close: Option<oneshot::Sender<Duration>>,
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter")
            .field("report", &self.report())
            .finish()
    }
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// There is work, or the end has come. Wakes the thread without blocking whoever calls.
    wake: Notify,
    /// The thread is done.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<(Arc<SpanRecord>, usize)>,
    queued_bytes: usize,
    /// Spans that found the queue full.
    overflowed: u64,
    sent: u64,
    last_error: Option<String>,
    phase: Phase,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    #[default]
    Running,
    Closing,
    Ended,
}

impl Shared {
    /// A panic elsewhere while the lock was held leaves counters that are still true, so it is not passed on.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn batch(&self) -> (Vec<Arc<SpanRecord>>, Phase) {
        let state = self.lock();
        let mut bytes = 0_usize;
        let fits = |(_, size): &&(Arc<SpanRecord>, usize)| {
            bytes = bytes.saturating_add(*size);
            // The first one always goes: a record is bounded below the limit of a batch, and nothing may block the queue.
            bytes <= BATCH_BYTES || bytes == *size
        };
        let batch = state.queue.iter().take(BATCH_SPANS).take_while(fits);
        (batch.map(|(record, _)| Arc::clone(record)).collect(), state.phase)
    }

    fn acknowledge(&self, spans: usize) {
        let mut state = self.lock();
        for _ in 0..spans {
            if let Some((_, size)) = state.queue.pop_front() {
                state.queued_bytes = state.queued_bytes.saturating_sub(size);
                state.sent = state.sent.saturating_add(1);
            }
        }
    }

    fn report(&self) -> ExportReport {
        let state = self.lock();
        ExportReport {
            sent: state.sent,
            pending: state.overflowed.saturating_add(state.queue.len() as u64),
            last_error: state.last_error.clone(),
        }
    }
}

/// Says that the thread is done, even if it ends by a panic inside a library.
struct Ending(Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.lock().phase = Phase::Ended;
        self.0.ended.notify_all();
    }
}

impl Exporter {
    /// Starts the thread that sends to `endpoint`. Nothing is connected yet, and a receiver that is not there is no error here.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(endpoint: Endpoint, resource: Resource) -> Result<Self, ExporterError> {
        let shared = Arc::new(Shared::default());
        let (close, closing) = oneshot::channel();
        let ending = Ending(Arc::clone(&shared));
        thread::Builder::new()
            .name("tracegate-otlp".to_owned())
            .spawn(move || run(&ending.0, &endpoint, &resource, closing))?;
        Ok(Self {
            shared,
            close: Some(close),
        })
    }

    /// Hands spans over and returns at once. With the queue full they are counted as pending.
    pub fn send(&self, spans: Vec<SpanRecord>) {
        let mut state = self.shared.lock();
        for span in spans {
            let size = encoded_bound(&span);
            let bytes = state.queued_bytes.saturating_add(size);
            if state.queue.len() >= QUEUE_SPANS || bytes > QUEUE_BYTES {
                state.overflowed = state.overflowed.saturating_add(1);
                let held = state.queue.len();
                state
                    .last_error
                    .get_or_insert_with(|| format!("the queue is full at {held} spans"));
            } else {
                state.queued_bytes = bytes;
                state.queue.push_back((Arc::new(span), size));
            }
        }
        drop(state);
        self.shared.wake.notify_one();
    }

    /// Returns what became of the spans so far.
    #[must_use]
    pub fn report(&self) -> ExportReport {
        self.shared.report()
    }

    /// Sends the rest, waiting at most about `wait` for it, and says what became of everything.
    ///
    /// Returns earlier when all is sent, or when the receiver refuses three times running. Blocks the calling thread; the exporter has its
    /// own, so this is safe inside any runtime.
    #[must_use]
    pub fn finish(mut self, wait: Duration) -> ExportReport {
        if let Some(close) = self.close.take() {
            // Fails only if the thread has ended already.
            let _ = close.send(wait);
        }
        let state = self.shared.lock();
        let limit = wait.saturating_add(GRACE);
        let waited = self
            .shared
            .ended
            .wait_timeout_while(state, limit, |state| state.phase != Phase::Ended);
        drop(waited);
        self.shared.report()
    }
}

/// The thread: everything that needs a reactor is built, used and dropped in here.
fn run(shared: &Arc<Shared>, endpoint: &Endpoint, resource: &Resource, closing: oneshot::Receiver<Duration>) {
    // What the transport itself traces would become spans to export, without end (opentelemetry-rust 2877, 3654).
    let _silent = tracing::dispatcher::set_default(&tracing::Dispatch::none());
    let _suppressed = opentelemetry::Context::enter_telemetry_suppressed_scope();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            shared.lock().last_error = Some(error.to_string());
            return;
        }
    };
    runtime.block_on(async {
        let deadline = async {
            // An exporter that was dropped closes with no time left.
            let wait = closing.await.unwrap_or_default();
            shared.lock().phase = Phase::Closing;
            shared.wake.notify_one();
            tokio::time::sleep(wait).await;
        };
        tokio::select! {
            () = pump(shared, endpoint, resource) => {}
            () = deadline => {
                let mut state = shared.lock();
                if !state.queue.is_empty() && state.last_error.is_none() {
                    state.last_error = Some(format!("no answer from {} in time", endpoint.url()));
                }
            }
        }
    });
    // A name lookup may still sit on a helper thread; it is not waited for.
    runtime.shutdown_background();
}

/// Sends batch after batch; returns when the run has ended and nothing is left, or nothing can be done.
async fn pump(shared: &Shared, endpoint: &Endpoint, resource: &Resource) {
    let exporter = match build(endpoint, resource) {
        Ok(exporter) => exporter,
        Err(error) => {
            shared.lock().last_error = Some(error);
            // Nothing will ever be sent, but the report is due at the end and not before.
            while shared.lock().phase == Phase::Running {
                shared.wake.notified().await;
            }
            return;
        }
    };
    let mut failures = 0_u32;
    let mut closing_failures = 0_u32;
    loop {
        let (batch, phase) = shared.batch();
        if batch.is_empty() {
            if phase != Phase::Running {
                return;
            }
            shared.wake.notified().await;
            continue;
        }
        let spans = batch.iter().map(|record| span_data(record)).collect();
        match exporter.export(spans).await {
            Ok(()) => {
                shared.acknowledge(batch.len());
                failures = 0;
                closing_failures = 0;
            }
            Err(error) => {
                shared.lock().last_error = Some(format!("{}: {}", endpoint.url(), plain(error)));
                failures = failures.saturating_add(1);
                if phase == Phase::Running {
                    pause_while_running(shared, BACKOFF.after(failures)).await;
                } else {
                    closing_failures = closing_failures.saturating_add(1);
                    if closing_failures >= CLOSING_ATTEMPTS {
                        return;
                    }
                    tokio::time::sleep(CLOSING_BACKOFF.after(closing_failures)).await;
                }
            }
        }
    }
}

/// The SDK prefixes every failure with the words `Operation failed`, which say nothing.
fn plain(error: OTelSdkError) -> String {
    match error {
        OTelSdkError::InternalFailure(message) => message,
        other @ (OTelSdkError::AlreadyShutdown | OTelSdkError::Timeout(_)) => other.to_string(),
    }
}

/// Waits for `pause`, or until the run ends: then there is one more attempt at once. New spans do not shorten the pause.
async fn pause_while_running(shared: &Shared, pause: Duration) {
    let ended = async {
        while shared.lock().phase == Phase::Running {
            shared.wake.notified().await;
        }
    };
    // Elapsed or ended: either way the next attempt is due.
    drop(tokio::time::timeout(pause, ended).await);
}

/// Builds the exporter of the OTLP crate with its own retries off: ours know when the run ends.
fn build(endpoint: &Endpoint, spans_of: &Resource) -> Result<OtlpExporter, String> {
    let once = opentelemetry_otlp::RetryPolicy::disabled();
    let headers: HashMap<String, String> = endpoint.headers().clone().into_iter().collect();
    let built = match endpoint.protocol() {
        Protocol::Grpc => {
            let headers = (&headers)
                .try_into()
                .map_err(|_| "a header of the endpoint is not one that can be sent".to_owned())?;
            OtlpExporter::builder()
                .with_tonic()
                .with_metadata(MetadataMap::from_headers(headers))
                .with_endpoint(endpoint.url())
                .with_timeout(endpoint.timeout())
                .with_retry_policy(once)
                .build()
        }
        Protocol::HttpProtobuf => OtlpExporter::builder()
            .with_http()
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_headers(headers)
            .with_endpoint(endpoint.url())
            .with_timeout(endpoint.timeout())
            .with_retry_policy(once)
            .build(),
    };
    let mut exporter = built.map_err(|error| error.to_string())?;
    exporter.set_resource(&resource(spans_of));
    Ok(exporter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracegate_core::{
        ids::{SpanId, TraceId},
        span::{Attributes, Parent, RecordKind, SpanStatus, Value},
    };

    fn span(bytes: usize) -> SpanRecord {
        SpanRecord {
            trace_id: TraceId::from_bytes([1; 16]),
            span_id: SpanId::from_bytes([2; 8]),
            parent: Parent::Root,
            name: "n".to_owned(),
            kind: RecordKind::Internal,
            start_ns: 1,
            end_ns: 2,
            attrs: Attributes::from([("k".into(), Value::Str("x".repeat(bytes)))]),
            events: Vec::new(),
            dropped_events: 0,
            links: Vec::new(),
            status: SpanStatus::Unset,
        }
    }

    fn queue(sizes: &[usize]) -> Exporter {
        let exporter = Exporter {
            shared: Arc::new(Shared::default()),
            close: None,
        };
        exporter.send(sizes.iter().map(|size| span(*size)).collect());
        exporter
    }

    #[test]
    fn a_batch_is_bounded_by_spans_and_by_bytes_and_never_empty() {
        let check = |sizes: &[usize], wanted: usize| {
            assert_eq!(
                queue(sizes).shared.batch().0.len(),
                wanted,
                "{} spans",
                sizes.len()
            );
        };
        check(&[], 0);
        check(&[1; 300], BATCH_SPANS);
        check(&[1024 * 1024; 3], 1);
        check(&[700 * 1024; 3], 2);
        check(&[3 * 1024 * 1024, 1], 1);
    }

    #[test]
    fn what_does_not_fit_into_the_queue_is_pending_and_not_forgotten() {
        let exporter = queue(&vec![1; QUEUE_SPANS + 5]);
        let report = exporter.report();
        assert_eq!((report.sent, report.pending), (0, QUEUE_SPANS as u64 + 5));
        assert!(report.last_error.is_some());
        exporter.shared.acknowledge(QUEUE_SPANS);
        let report = exporter.report();
        assert_eq!((report.sent, report.pending), (QUEUE_SPANS as u64, 5));
        let exporter = queue(&[QUEUE_BYTES, 1]);
        assert_eq!(
            exporter.shared.batch().0.len(),
            1,
            "the small one fits, the huge one does not"
        );
        assert_eq!(exporter.report().pending, 2);
    }

    #[test]
    fn dropping_an_exporter_ends_its_thread_without_waiting_for_the_receiver() {
        // Connections to it are taken by the system and never answered.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let endpoint = Endpoint::resolve(Some(&url), &crate::endpoint::OtelEnv::new())
            .unwrap()
            .unwrap();
        let exporter = Exporter::start(endpoint, Resource::default()).unwrap();
        exporter.send(vec![span(1)]);
        let shared = Arc::clone(&exporter.shared);
        drop(exporter);
        let running = |state: &mut State| state.phase != Phase::Ended;
        let waited = shared
            .ended
            .wait_timeout_while(shared.lock(), Duration::from_secs(60), running);
        assert!(!waited.unwrap().1.timed_out());
        assert_eq!(shared.report().pending, 1);
    }

    #[test]
    fn pauses_double_up_to_their_limit() {
        let pauses: Vec<u128> = [1, 2, 3, 7, 8, u32::MAX]
            .map(|n| BACKOFF.after(n).as_millis())
            .to_vec();
        assert_eq!(pauses, [500, 1000, 2000, 30_000, 30_000, 30_000]);
    }
}
