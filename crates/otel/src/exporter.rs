//! Sending spans to a collector from one thread of its own: the run says that there is more in the log, and never waits.
//!
//! The SDK's own processors are not used, because they lose spans silently: batches are dropped after four attempts, an open queue at
//! exit is reported as success, and the HTTP client panics on their thread (`hyper` without a reactor). Here everything is built and
//! driven inside a single-threaded runtime on the thread, so it works whatever runtime the caller has, or none.
//!
//! The log is the queue. A cursor beside it says up to where the receiver has everything; it moves when the receiver has acknowledged, or
//! when it refused a span for good, which is then kept beside the cursor. So nothing is lost by a receiver that is down, by an exporter
//! that is stopped, or by a process that is killed: whoever comes next goes on there.

use crate::{
    delivery::{Delivered, Fate, Halt, deliver},
    encode,
    endpoint::Endpoint,
    feed::{Feed, Ready},
    transport::{Answer, Connection, Transport as _},
};
use serde_json::json;
use std::{
    fmt,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};
use tokio::sync::{Notify, oneshot};
use tracegate_core::{event::Event, fact::Edge, ids::Seq, redact::Redactor, span::Resource};
use tracegate_store::{Artifacts, Destination, Head, LogError, RunDir};

pub use crate::feed::{BATCH_BYTES, BATCH_SPANS};

/// How long a span waits for others that end soon after it.
const GATHER: Duration = Duration::from_millis(200);
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
/// After how many failures in a row, once somebody waits, the rest is left pending: a collector that is not there refuses at once, and
/// nobody should wait for it.
const CLOSING_ATTEMPTS: u32 = 3;
/// The longest that a receiver is left alone because it asks for it.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How much longer than asked [`Exporter::finish`] waits for the thread to notice that its time is over.
const GRACE: Duration = Duration::from_millis(500);
/// How many spans that were refused alone are believed to be at fault if the receiver takes an empty request, and nothing else is known.
const FEW: usize = 3;

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

/// Up to where a log may be sent: what could still vanish with the machine's memory would be a span without a log.
#[derive(Debug, Clone)]
pub enum Durable {
    /// To its end: this process owns the log, and the exporter syncs it, after these artifacts, before it sends.
    Here(Artifacts),
    /// To this event: another process writes the log.
    UpTo(Head),
}

/// Whose spans are sent.
#[derive(Debug, Clone)]
pub struct Source {
    /// The run.
    pub dir: RunDir,
    /// Up to where.
    pub durable: Durable,
    /// The first event of this process, if it adds to the log meanwhile.
    pub from: Option<Seq>,
    /// Whether to send also what the receiver has acknowledged before.
    pub again: bool,
}

/// What became of the spans.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportReport {
    /// Acknowledged by the receiver, those that were cut included.
    pub sent: u64,
    /// Those of them that it took only with everything long in them shortened.
    pub cut: u64,
    /// Those of them that it said it left out (partial success).
    pub rejected: u64,
    /// Refused for good, and kept beside the cursor.
    pub dead: u64,
    /// Acknowledged by an earlier export.
    pub before: u64,
    /// Not acknowledged; some of them may have arrived all the same, and sending them again does no harm.
    pub pending: u64,
    /// Whether `pending` counts only what was seen so far: a long log was not read to the end.
    pub more: bool,
    /// Whether everything was sent again, because the log is not the one that the cursor was made for.
    pub restarted: bool,
    /// Why, if anything failed: the last failure.
    pub last_error: Option<String>,
}

/// The exporter could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ExporterError {
    /// The operating system gave no thread or no reactor.
    #[error("the exporter could not be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// How an exporter is told to end.
#[derive(Debug, Clone, Copy)]
enum Close {
    /// Send what there is within this time.
    Within(Duration),
    /// Send what there is, as long as the receiver takes something.
    Drained,
}

/// Sends the spans of a run to one endpoint until it is finished or dropped.
///
/// Dropping it stops the thread soon; what was not sent then stays where it is, in the log. [`Exporter::finish`] is the way to end.
#[must_use]
pub struct Exporter {
    shared: Arc<Shared>,
    /// Tells the thread how to end; gone once it was told.
    close: Option<oneshot::Sender<Close>>,
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
    report: ExportReport,
    /// Spans that this process has ended.
    noticed: u64,
    /// Spans that came out of the log, by who ended them: earlier processes, and this one.
    read_before: u64,
    read_here: u64,
    /// Those that need no more work.
    settled: u64,
    /// Whether everything that earlier processes wrote was read.
    caught_up: bool,
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

    fn phase(&self) -> Phase {
        self.lock().phase
    }

    fn fail(&self, why: String) {
        self.lock().report.last_error = Some(why);
    }

    fn report(&self) -> ExportReport {
        let state = self.lock();
        let known = state.read_before + state.read_here.max(state.noticed);
        ExportReport {
            pending: known.saturating_sub(state.settled),
            more: !state.caught_up,
            ..state.report.clone()
        }
    }

    /// Waits for `pause`, or until the run ends: then there is one more attempt at once. New spans do not shorten the pause.
    async fn pause(&self, pause: Duration) {
        let ended = async {
            while self.phase() == Phase::Running {
                self.wake.notified().await;
            }
        };
        // Elapsed or ended: either way it goes on.
        drop(tokio::time::timeout(pause, ended).await);
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
    /// Starts the thread that sends the spans of `source` to `endpoint`. Nothing is connected yet, and a receiver that is not there is
    /// no error here. `redactor` is the one of the run's store.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(endpoint: Endpoint, source: Source, redactor: Redactor) -> Result<Self, ExporterError> {
        let shared = Arc::new(Shared::default());
        let (close, closing) = oneshot::channel();
        let ending = Ending(Arc::clone(&shared));
        let job = Job {
            to: Destination::at(endpoint.url()),
            endpoint,
            source,
            redactor,
        };
        thread::Builder::new()
            .name("tracegate-otlp".to_owned())
            .spawn(move || run(&ending.0, &job, closing))?;
        Ok(Self {
            shared,
            close: Some(close),
        })
    }

    /// Takes notice of an event that is in the log now, and returns at once.
    pub fn notice(&self, event: &Event) {
        let ends = matches!(event.fact.edge(), Some((_, Edge::Finished))) && event.span.is_some();
        if ends {
            self.shared.lock().noticed += 1;
            self.shared.wake.notify_one();
        }
    }

    /// Returns what became of the spans so far.
    #[must_use]
    pub fn report(&self) -> ExportReport {
        self.shared.report()
    }

    /// Sends the rest, waiting at most about `wait` for it, and says what became of everything.
    ///
    /// Returns earlier when all is sent, or when the receiver fails three times running. Blocks the calling thread; the exporter has its
    /// own, so this is safe inside any runtime.
    #[must_use]
    pub fn finish(mut self, wait: Duration) -> ExportReport {
        self.end(Close::Within(wait));
        let state = self.shared.lock();
        let limit = wait.saturating_add(GRACE);
        let waited = self
            .shared
            .ended
            .wait_timeout_while(state, limit, |state| state.phase != Phase::Ended);
        drop(waited);
        self.shared.report()
    }

    /// Sends everything, however long it takes, unless the receiver fails three times running.
    #[must_use]
    pub fn drain(mut self) -> ExportReport {
        self.end(Close::Drained);
        let state = self.shared.lock();
        let waited = self
            .shared
            .ended
            .wait_while(state, |state| state.phase != Phase::Ended);
        drop(waited);
        self.shared.report()
    }

    fn end(&mut self, how: Close) {
        if let Some(close) = self.close.take() {
            // Fails only if the thread has ended already.
            let _ = close.send(how);
        }
    }
}

/// What the thread works on.
struct Job {
    endpoint: Endpoint,
    to: Destination,
    source: Source,
    redactor: Redactor,
}

/// The thread: everything that needs a reactor is built, used and dropped in here.
fn run(shared: &Arc<Shared>, job: &Job, closing: oneshot::Receiver<Close>) {
    // What the transport itself traces would become spans to export, without end (opentelemetry-rust 2877, 3654).
    let _silent = tracing::dispatcher::set_default(&tracing::Dispatch::none());
    let _suppressed = opentelemetry::Context::enter_telemetry_suppressed_scope();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return shared.fail(error.to_string()),
    };
    runtime.block_on(async {
        let deadline = async {
            // An exporter that was dropped closes with no time left.
            let close = closing.await.unwrap_or(Close::Within(Duration::ZERO));
            shared.lock().phase = Phase::Closing;
            shared.wake.notify_one();
            match close {
                Close::Within(wait) => tokio::time::sleep(wait).await,
                Close::Drained => std::future::pending().await,
            }
        };
        tokio::select! {
            () = work(shared, job) => {}
            () = deadline => {
                let mut state = shared.lock();
                state.report.last_error.get_or_insert_with(|| format!("no answer from {} in time", job.endpoint.url()));
            }
        }
    });
    // A name lookup may still sit on a helper thread; it is not waited for.
    runtime.shutdown_background();
}

async fn work(shared: &Shared, job: &Job) {
    let cursor = job.source.dir.read_cursor(&job.to).filter(|_| !job.source.again);
    let feed = Feed::open(job.source.dir.clone(), job.source.durable.clone(), cursor);
    let mut feed = match feed {
        Ok(feed) => feed,
        Err(error) => return give_up(shared, error.to_string()).await,
    };
    match Connection::to(&job.endpoint) {
        Ok(connection) => pump(shared, job, &mut feed, &connection).await,
        Err(why) => give_up(shared, format!("{}: {why}", job.endpoint.url())).await,
    }
    // Somebody waits, and the deadline ends it if they do not wait long.
    if let Err(error) = feed.count_rest().await {
        shared.fail(error.to_string());
    }
    note(shared, job, &feed, true);
}

/// Nothing will ever be sent, but the report is due at the end and not before.
async fn give_up(shared: &Shared, why: String) {
    shared.fail(why);
    while shared.phase() == Phase::Running {
        shared.wake.notified().await;
    }
}

/// Sends batch after batch; returns when the run has ended and nothing is left, or nothing can be done.
async fn pump(shared: &Shared, job: &Job, feed: &mut Feed, connection: &Connection) {
    let mut batch: Vec<Ready> = Vec::new();
    let (mut failures, mut closing_failures) = (0_u32, 0_u32);
    loop {
        // Asked before the log is read: what was appended before the end is seen then.
        let phase = shared.phase();
        let filled = feed.fill(&mut batch).await;
        note(shared, job, feed, filled.is_ok() && batch.is_empty());
        let halt = match filled {
            Ok(()) if batch.is_empty() => {
                if phase != Phase::Running {
                    return;
                }
                shared.wake.notified().await;
                shared.pause(GATHER).await;
                continue;
            }
            Ok(()) => {
                let resource = feed.resource();
                let delivered = deliver(connection, &resource, &batch).await;
                let (settled, halt) = settle(shared, job, &resource, &batch, delivered, connection).await;
                batch.drain(..settled);
                if settled > 0 {
                    (failures, closing_failures) = (0, 0);
                }
                halt
            }
            Err(error) => Some(not_readable(&error)),
        };
        let Some(halt) = halt else {
            continue;
        };
        let (why, wait) = match halt {
            Halt::Later { why, wait } => (why, wait.unwrap_or_default().min(LONGEST_WAIT)),
            Halt::Refuses(why) => (format!("it refuses every span: {why}"), Duration::ZERO),
        };
        shared.fail(format!("{}: {why}", job.endpoint.url()));
        if phase == Phase::Running {
            failures = failures.saturating_add(1);
            shared.pause(BACKOFF.after(failures).max(wait)).await;
        } else {
            closing_failures = closing_failures.saturating_add(1);
            if closing_failures >= CLOSING_ATTEMPTS {
                return;
            }
            tokio::time::sleep(CLOSING_BACKOFF.after(closing_failures).max(wait)).await;
        }
    }
}

/// The disk's trouble, which may pass as the network's may.
fn not_readable(error: &LogError) -> Halt {
    Halt::Later {
        why: error.to_string(),
        wait: None,
    }
}

/// Says how far the log was read.
fn note(shared: &Shared, job: &Job, feed: &Feed, to_the_end: bool) {
    let mut state = shared.lock();
    let ours = job.source.from.is_some_and(|from| feed.seq() >= from);
    let fresh = feed.fed().saturating_sub(state.read_before + state.read_here);
    if ours {
        // A batch that reaches over the boundary counts as ours; the sum is what matters, and the greater one is taken.
        state.read_here += fresh;
    } else {
        state.read_before += fresh;
    }
    state.caught_up |= ours || to_the_end;
    state.report.before = feed.passed();
    state.report.restarted = feed.restarted();
    if let Some(damage) = feed.damage() {
        state.report.last_error.get_or_insert_with(|| damage.to_owned());
    }
}

/// Writes down what became of the first spans of a batch, moves the cursor over them, and returns how many they are.
async fn settle(
    shared: &Shared,
    job: &Job,
    resource: &Resource,
    batch: &[Ready],
    delivered: Delivered,
    connection: &Connection,
) -> (usize, Option<Halt>) {
    let Delivered {
        mut fates,
        rejected,
        remark,
        mut halt,
    } = delivered;
    let first = fates.iter().position(|fate| matches!(fate, Fate::Condemned(_)));
    if let Some(first) = first
        && !is_credible(shared, &fates, connection).await
    {
        let mut doubtful = fates.split_off(first).into_iter();
        if let (None, Some(Fate::Condemned(why))) = (&halt, doubtful.next()) {
            halt = Some(Halt::Refuses(why));
        }
    }
    let mut settled = 0_usize;
    for (fate, ready) in fates.iter().zip(batch) {
        if let Fate::Condemned(why) = fate {
            let letter = json!({
                "seq": ready.cursor.head.seq,
                "why": why,
                "request": encode::request(resource, vec![ready.span.clone()]),
            });
            let letter = job.redactor.scrub_text(letter.to_string());
            if let Err(error) = job.source.dir.add_dead_letter(&job.to, &letter) {
                halt = Some(Halt::Later {
                    why: error.to_string(),
                    wait: None,
                });
                break;
            }
        }
        let mut state = shared.lock();
        match fate {
            Fate::Taken => state.report.sent += 1,
            Fate::Cut => {
                state.report.sent += 1;
                state.report.cut += 1;
            }
            Fate::Condemned(why) => {
                state.report.dead += 1;
                state.report.last_error = Some(format!("{}: {why}", job.endpoint.url()));
            }
        }
        state.settled += 1;
        settled += 1;
    }
    if rejected > 0 {
        let mut state = shared.lock();
        state.report.rejected += rejected;
        let why = remark.unwrap_or_default();
        state.report.last_error = Some(format!("{}: {why}", job.endpoint.url()));
    }
    if let Some(last) = settled.checked_sub(1).and_then(|last| batch.get(last))
        && let Err(error) = job.source.dir.write_cursor(&job.to, last.cursor)
    {
        // The next export sends these once more, which does no harm.
        shared.fail(error.to_string());
    }
    (settled, halt)
}

/// Tells whether spans that were refused alone are to blame: the receiver takes others, or at least a request without any.
async fn is_credible(shared: &Shared, fates: &[Fate], connection: &Connection) -> bool {
    let condemned = |fate: &&Fate| matches!(fate, Fate::Condemned(_));
    if fates.iter().any(|fate| !condemned(&fate)) {
        return true;
    }
    if fates.len() > FEW && shared.lock().report.sent == 0 {
        return false;
    }
    let empty = encode::request(&Resource::default(), Vec::new());
    connection.send(empty).await.answer == Answer::Taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_limit() {
        let pauses: Vec<u128> = [1, 2, 3, 7, 8, u32::MAX]
            .map(|n| BACKOFF.after(n).as_millis())
            .to_vec();
        assert_eq!(pauses, [500, 1000, 2000, 30_000, 30_000, 30_000]);
    }
}
