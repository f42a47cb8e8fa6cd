//! Spans of a run: written beside its log, sent while it goes on, or sent later.

use crate::{commands::run::quote, environment::Environment, failure::Failure, live::Bridged, print};
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tracegate::{
    heal::{HealError, Healing, heal},
    recorder::Sink,
    world::RealWorld,
};
use tracegate_core::{
    event::Event,
    ids::RunId,
    redact::{Redactor, Scrubbed},
    span::Projector,
    stop::Exit,
};
use tracegate_otel::{
    bridge,
    endpoint::{Endpoint, Silence, Typed},
    exporter::{Durable, ExportReport, Exporter, Source},
    jsonl,
    pairs::parse_pairs,
};
use tracegate_store::{LogReader, RealDisk, RunDir, Store, Tail};
use tracing_subscriber::{EnvFilter, Layer as _, layer::SubscriberExt as _};

/// How long the end of a run waits for a collector.
const WAIT: Duration = Duration::from_secs(3);

/// Decides where spans go, by what was typed and by variables; nowhere is no failure.
pub(crate) fn endpoint(
    environment: &Environment,
    typed: &Typed<'_>,
) -> Result<Result<Endpoint, Silence>, Failure> {
    Endpoint::resolve(typed, &environment.vars).map_err(|error| Failure::usage(&error).help(error.help()))
}

/// Returns the attributes in `OTEL_RESOURCE_ATTRIBUTES`; an entry that is not `name=value` makes all of them void, as OpenTelemetry asks.
pub(crate) fn resource(environment: &Environment) -> BTreeMap<String, String> {
    environment
        .var("OTEL_RESOURCE_ATTRIBUTES")
        .and_then(parse_pairs)
        .unwrap_or_default()
}

/// Installs the live bridge and, with `TRACEGATE_LOG` set, log lines on standard error.
pub(crate) fn install_bridge(environment: &Environment, redactor: &Redactor) -> Bridged {
    let (layer, handle) = bridge::layer();
    let lines = environment.var("TRACEGATE_LOG").map(|filter| {
        tracing_subscriber::fmt::layer()
            .with_writer(print::log_lines(redactor))
            .with_filter(EnvFilter::new(filter))
    });
    // A second run in the same process, as in an eval, finds the subscriber installed already.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer).with(lines));
    Bridged(handle)
}

/// The spans of a run as OTLP/JSON lines, read from its log one by one.
pub(crate) struct Lines<'a> {
    reader: LogReader,
    projector: Projector,
    redactor: &'a Redactor,
}

impl<'a> Lines<'a> {
    pub(crate) fn of(dir: &RunDir, redactor: &'a Redactor) -> Result<Self, Failure> {
        Ok(Self {
            reader: LogReader::open(dir)?,
            projector: Projector::new(dir.id()),
            redactor,
        })
    }

    /// Returns the next line, with its line feed.
    pub(crate) fn next(&mut self) -> Result<Option<Scrubbed<String>>, Failure> {
        while let Some(event) = self.reader.next_event()? {
            // An event ends one span or none.
            if let Some(span) = self.projector.feed(&event).pop() {
                let resource = self.projector.resource().cloned().unwrap_or_default();
                let line = jsonl::to_json_line(&resource, span).map_err(|error| {
                    Failure::new(Exit::Internal, format!("cannot encode a span: {error}"))
                })?;
                return Ok(Some(self.redactor.scrub_text(line)));
            }
        }
        Ok(None)
    }

    /// Returns how the log ends, once there are no more lines.
    pub(crate) fn tail(&self) -> Tail {
        self.reader.tail()
    }
}

/// Writes the spans of a run beside its log.
pub(crate) fn write(dir: &RunDir, redactor: &Redactor) -> Result<(), Failure> {
    let mut lines = Lines::of(dir, redactor)?;
    dir.write_traces(|| lines.next())
}

impl From<HealError> for Failure {
    fn from(error: HealError) -> Self {
        match error {
            HealError::Violation(_) => Self::new(Exit::Integrity, error).help("tracegate fsck RUN"),
            HealError::Recorder(error) => error.into(),
        }
    }
}

/// Ends what a killed process left open in a run, and writes the file of its spans anew if there was anything.
pub(crate) fn healed(store: &Store, dir: &RunDir, redactor: &Redactor) -> Result<Healing, Failure> {
    let world = Box::new(RealWorld::default());
    let healing = heal(store, &RealDisk, redactor.clone(), world, dir.clone())?;
    if let Healing::Healed(open) = healing {
        write(dir, redactor)?;
        let text = format!(
            "{}: {open} spans that a killed process left open got their end",
            dir.id()
        );
        print::talk(&redactor.scrub_text(text));
    }
    Ok(healing)
}

/// Sends the spans of a run that nobody is at work on, or those of one at work up to what is durable.
pub(crate) fn send(
    store: &Store,
    dir: &RunDir,
    healing: Healing,
    endpoint: &Endpoint,
    redactor: &Redactor,
    again: bool,
) -> Result<ExportReport, Failure> {
    let durable = match healing {
        Healing::Alive => Durable::UpTo(
            dir.head()
                .unwrap_or_else(|| tracegate_store::Head::start(dir.id())),
        ),
        Healing::Whole | Healing::Healed(_) | Healing::Closed => Durable::Here(store.artifacts().clone()),
    };
    let source = Source {
        dir: dir.clone(),
        durable,
        from: None,
        again,
    };
    let exporter = Exporter::start(endpoint.clone(), source, redactor.clone())
        .map_err(|error| Failure::new(Exit::Internal, error))?;
    Ok(exporter.drain())
}

/// What a report says of spans that did not arrive whole, and which command sends what is pending; nothing if all is well.
pub(crate) fn complaint(
    report: &ExportReport,
    endpoint: &Endpoint,
    dir: &RunDir,
    run: &str,
) -> Option<String> {
    let mut lines = Vec::new();
    let url = endpoint.url();
    let to = tracegate_store::Destination::at(url);
    if report.restarted {
        lines.push(format!(
            "the log was rewritten since it was last sent to {url}: everything is sent again"
        ));
    }
    if report.dead > 0 {
        let kept = dir.dead_letters(&to);
        lines.push(format!(
            "{url} refuses {} spans for good; they are kept in {}",
            report.dead,
            kept.display()
        ));
    }
    if report.cut > 0 {
        lines.push(format!(
            "{url} took {} spans only after they were shortened",
            report.cut
        ));
    }
    if report.rejected > 0 {
        lines.push(format!("{url} says that it left out {} spans", report.rejected));
    }
    if report.pending > 0 {
        let least = if report.more { "at least " } else { "" };
        lines.push(format!("{least}{} spans are not sent yet", report.pending));
    }
    if let (Some(why), Some(last)) = (&report.last_error, lines.last_mut())
        && (report.dead + report.rejected + report.pending) > 0
    {
        last.push_str(": ");
        last.push_str(why);
    }
    if report.pending > 0 {
        let options = endpoint.options();
        lines.push(format!("is anybody there: tracegate doctor {options}"));
        lines.push(format!("send them: tracegate export {run} {options}"));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// An exporter at work; it starts with the first event of this process, when the log is there.
#[derive(Debug, Clone)]
pub(crate) struct Sending {
    endpoint: Endpoint,
    store: Store,
    redactor: Redactor,
    exporter: Arc<OnceLock<Exporter>>,
}

/// Tells the exporter that there is more in the log.
#[derive(Debug)]
struct Noticing {
    run: RunId,
    sending: Sending,
}

impl Sink for Noticing {
    fn on_event(&mut self, event: &Scrubbed<Event>) {
        self.sending.notice(&self.run, event.get());
    }
}

impl Sending {
    pub(crate) fn new(endpoint: Endpoint, store: Store, redactor: Redactor) -> Self {
        Self {
            endpoint,
            store,
            redactor,
            exporter: Arc::default(),
        }
    }

    /// Returns the sink that feeds it.
    pub(crate) fn sink(&self, run: &RunId) -> Box<dyn Sink> {
        Box::new(Noticing {
            run: run.clone(),
            sending: self.clone(),
        })
    }

    /// Takes notice of an event; without a thread the spans stay where they are, in the log.
    fn notice(&self, run: &RunId, event: &Event) {
        if self.exporter.get().is_none()
            && let Ok(dir) = self.store.run(run)
        {
            let source = Source {
                dir,
                durable: Durable::Here(self.store.artifacts().clone()),
                from: Some(event.seq),
                again: false,
            };
            if let Ok(exporter) = Exporter::start(self.endpoint.clone(), source, self.redactor.clone()) {
                // Only this thread sets it.
                self.exporter.set(exporter).ok();
            }
        }
        if let Some(exporter) = self.exporter.get() {
            exporter.notice(event);
        }
    }

    /// Waits a little for the rest and says what is pending and how to send it.
    pub(crate) fn finish(self, environment: &Environment, dir: &RunDir) {
        let Some(exporter) = Arc::into_inner(self.exporter).and_then(OnceLock::into_inner) else {
            return;
        };
        let report = exporter.finish(WAIT);
        // A run elsewhere is named by its folder, which is found from anywhere.
        let here = environment.store(None, Path::new(".")) == self.store.root();
        let run = if here {
            dir.id().to_string()
        } else {
            quote(&dir.path().display().to_string())
        };
        if let Some(text) = complaint(&report, &self.endpoint, dir, &run) {
            print::talk(&self.redactor.scrub_text(text));
        }
    }
}
