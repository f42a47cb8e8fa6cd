//! Whether an endpoint would take spans: one empty request, which every receiver accepts and nobody sees.

use crate::{
    encode,
    endpoint::Endpoint,
    exporter::ExporterError,
    transport::{Answer, Connection, Transport as _},
};
use jiff::fmt::rfc2822::DateTimeParser;
use std::thread;
use tracegate_core::span::Resource;

/// What an endpoint said to an empty request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It takes spans.
    Accepts,
    /// Nobody is there, or not now; why.
    Unreachable(String),
    /// Somebody is there and refuses; why.
    Refuses(String),
}

/// An endpoint as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// What it said.
    pub health: Health,
    /// Its clock, in seconds since the Unix epoch, if it told.
    pub clock: Option<i64>,
}

/// Sends an empty request to `endpoint` and waits for the answer, at most as long as its timeout.
///
/// # Errors
/// When there is no thread or runtime to be had.
pub fn probe(endpoint: &Endpoint) -> Result<Probe, ExporterError> {
    thread::scope(|scope| {
        let asking = thread::Builder::new()
            .name("tracegate-otlp".to_owned())
            .spawn_scoped(scope, || ask(endpoint))?;
        asking
            .join()
            .unwrap_or_else(|_| Ok(unreachable("the transport broke".to_owned())))
    })
}

fn ask(endpoint: &Endpoint) -> Result<Probe, ExporterError> {
    let _silent = tracing::dispatcher::set_default(&tracing::Dispatch::none());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let probe = runtime.block_on(async {
        let connection = match Connection::to(endpoint) {
            Ok(connection) => connection,
            Err(why) => return unreachable(why),
        };
        let empty = encode::request(&Resource::default(), Vec::new());
        let reply = connection.send(empty).await;
        let health = match reply.answer {
            Answer::Taken | Answer::Partly { .. } => Health::Accepts,
            Answer::Later { why, .. } => Health::Unreachable(why),
            Answer::Refused(why) | Answer::Misdirected(why) => Health::Refuses(why),
        };
        let clock = reply.date.and_then(|date| {
            let parsed = DateTimeParser::new().parse_timestamp(&date).ok()?;
            Some(parsed.as_second())
        });
        Probe { health, clock }
    });
    runtime.shutdown_background();
    Ok(probe)
}

const fn unreachable(why: String) -> Probe {
    Probe {
        health: Health::Unreachable(why),
        clock: None,
    }
}
