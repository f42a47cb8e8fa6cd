//! Spans of a run: written beside its log, sent while it goes on, or sent later.

use crate::{environment::Environment, failure::Failure, live::Bridged, print};
use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tracegate::recorder::Sink;
use tracegate_core::{
    event::Event,
    ids::RunId,
    redact::{Redactor, Scrubbed},
    span::{Projected, Projector, Resource, SpanRecord, project},
    stop::Exit,
};
use tracegate_otel::{bridge, endpoint::Endpoint, exporter::Exporter, jsonl};
use tracegate_store::{LogReader, RunDir};
use tracing_subscriber::{EnvFilter, Layer as _, layer::SubscriberExt as _};

/// How long the end of a run waits for a collector.
const WAIT: Duration = Duration::from_secs(3);

/// Decides where spans go, by flag and variables.
pub(crate) fn endpoint(environment: &Environment, flag: Option<&str>) -> Result<Option<Endpoint>, Failure> {
    Endpoint::resolve(flag, &environment.vars).map_err(|error| Failure::usage(&error).help(error.help()))
}

/// Returns the attributes in `OTEL_RESOURCE_ATTRIBUTES`; an entry that is not `name=value` makes all of them void, as OpenTelemetry asks.
pub(crate) fn resource(environment: &Environment) -> BTreeMap<String, String> {
    environment
        .var("OTEL_RESOURCE_ATTRIBUTES")
        .and_then(parse_attributes)
        .unwrap_or_default()
}

fn parse_attributes(text: &str) -> Option<BTreeMap<String, String>> {
    let entries = text.split(',').filter(|entry| !entry.trim().is_empty());
    entries
        .map(|entry| {
            let (name, value) = entry.split_once('=')?;
            let name = decode(name.trim())?;
            (!name.is_empty()).then_some((name, decode(value.trim())?))
        })
        .collect()
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
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

/// Computes the spans of a run from its log.
pub(crate) fn of(dir: &RunDir) -> Result<Projected, Failure> {
    let (events, _) = LogReader::open(dir)?.read_all()?;
    Ok(project(dir.id(), &events))
}

/// Returns the spans as OTLP/JSON lines.
pub(crate) fn lines(projected: &Projected) -> Result<String, Failure> {
    let mut text = String::new();
    let Some(resource) = &projected.resource else {
        return Ok(text);
    };
    for span in &projected.spans {
        let line = jsonl::to_json_line(resource, span);
        text.push_str(
            &line.map_err(|error| Failure::new(Exit::Internal, format!("cannot encode a span: {error}")))?,
        );
    }
    Ok(text)
}

/// Writes the spans of a run beside its log.
pub(crate) fn write(dir: &RunDir, redactor: &Redactor) -> Result<(), Failure> {
    let text = lines(&of(dir)?)?;
    Ok(dir.write_traces(&redactor.scrub_text(text))?)
}

/// An exporter at work; it starts with the first event, which says what all spans have in common.
#[derive(Debug, Clone)]
pub(crate) struct Sending {
    endpoint: Endpoint,
    exporter: Arc<OnceLock<Exporter>>,
}

/// Hands the spans that an event ends to the exporter.
#[derive(Debug)]
struct SpanSink {
    projector: Projector,
    sending: Sending,
}

impl Sink for SpanSink {
    fn on_event(&mut self, event: &Scrubbed<Event>) {
        let spans = self.projector.feed(event.get());
        if let Some(resource) = self.projector.resource() {
            self.sending.send(resource, spans);
        }
    }
}

impl Sending {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            exporter: Arc::default(),
        }
    }

    /// Returns the sink that feeds it. The events of earlier segments only say what is open and what all spans have in common.
    pub(crate) fn sink(&self, run: &RunId, before: Option<&RunDir>) -> Result<Box<dyn Sink>, Failure> {
        let mut projector = Projector::new(run);
        if let Some(dir) = before {
            let mut reader = LogReader::open(dir)?;
            while let Some(event) = reader.next_event()? {
                drop(projector.feed(&event));
            }
        }
        Ok(Box::new(SpanSink {
            projector,
            sending: self.clone(),
        }))
    }

    /// Hands spans over; without a thread they stay where they are, in the log.
    pub(crate) fn send(&self, resource: &Resource, spans: Vec<SpanRecord>) {
        if self.exporter.get().is_none()
            && let Ok(exporter) = Exporter::start(self.endpoint.clone(), resource.clone())
        {
            // Only this thread sets it.
            self.exporter.set(exporter).ok();
        }
        if let Some(exporter) = self.exporter.get() {
            exporter.send(spans);
        }
    }

    /// Waits a little for the rest and says what is pending and how to send it; returns how many were sent and how many were not.
    pub(crate) fn finish(self, redactor: &Redactor, run: &RunId) -> (u64, u64) {
        let url = self.endpoint.url().trim_end_matches("/v1/traces").to_owned();
        let Some(exporter) = Arc::into_inner(self.exporter).and_then(OnceLock::into_inner) else {
            return (0, 0);
        };
        let report = exporter.finish(WAIT);
        if report.pending > 0 {
            let why = report
                .last_error
                .map(|error| format!(": {error}"))
                .unwrap_or_default();
            let text = format!(
                "{} spans are not sent to {url} yet{why}\nsend them: tracegate export {run} --endpoint {url}",
                report.pending
            );
            print::talk(&redactor.scrub_text(text));
        }
        (report.sent, report.pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_decoded_or_void() {
        let check = |text: &str, wanted: Option<&[(&str, &str)]>| {
            let wanted = wanted.map(|pairs| {
                let owned = pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
                owned.collect::<BTreeMap<_, _>>()
            });
            assert_eq!(parse_attributes(text), wanted, "{text}");
        };
        check(
            "deployment.environment=ci, team=a%2Cb%3D,",
            Some(&[("deployment.environment", "ci"), ("team", "a,b=")]),
        );
        check("a=%E4%B8%AD", Some(&[("a", "中")]));
        check("", Some(&[]));
        for void in ["a", "=b", "a=%", "a=%zz", "a=%ff", "a=1,b"] {
            check(void, None);
        }
    }
}
