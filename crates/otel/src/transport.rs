//! One request to a receiver and what its answer means. Both transports say more than the OTLP exporter crate lets through: which answer
//! is final, how long to wait, and how many spans were left out.

mod grpc;
mod http;
mod tls;

use crate::endpoint::{Endpoint, Protocol};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use std::time::Duration;

/// The longest reason that is taken over from a receiver, in bytes.
const MAX_WHY: usize = 200;

/// What an answer means for the spans of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// They are there.
    Taken,
    /// They are there but for some, which must not be sent again.
    Partly {
        /// How many are not.
        rejected: u64,
        /// What the receiver says about it.
        why: String,
    },
    /// These spans will never be taken, so smaller requests are worth a try.
    Refused(String),
    /// No span would be taken: wrong address, wrong credentials.
    Misdirected(String),
    /// Not now.
    Later {
        /// What is wrong.
        why: String,
        /// How long the receiver wants to be left alone.
        wait: Option<Duration>,
    },
}

/// An answer with what else is known about the receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) answer: Answer,
    /// The receiver's clock, as an HTTP date, if it told.
    pub(crate) date: Option<String>,
}

/// A way to send requests.
pub(crate) trait Transport {
    /// Sends one request; never longer than the endpoint's timeout.
    async fn send(&self, request: ExportTraceServiceRequest) -> Reply;
}

/// A connection to an endpoint, made when the first request is sent.
#[derive(Debug)]
pub(crate) enum Connection {
    Grpc(Box<grpc::Grpc>),
    Http(Box<http::Http>),
}

impl Connection {
    /// Prepares a connection; must be called inside the runtime that will drive it.
    pub(crate) fn to(endpoint: &Endpoint) -> Result<Self, String> {
        let tls = tls::config(endpoint)?;
        Ok(match endpoint.protocol() {
            Protocol::Grpc => Self::Grpc(Box::new(grpc::Grpc::to(endpoint, tls)?)),
            Protocol::HttpProtobuf => Self::Http(Box::new(http::Http::to(endpoint, tls)?)),
        })
    }
}

impl Transport for Connection {
    async fn send(&self, request: ExportTraceServiceRequest) -> Reply {
        match self {
            Self::Grpc(grpc) => grpc.send(request).await,
            Self::Http(http) => http.send(request).await,
        }
    }
}

/// What a receiver says that took the request.
fn taken(response: ExportTraceServiceResponse) -> Answer {
    match response.partial_success {
        Some(partial) if partial.rejected_spans > 0 => Answer::Partly {
            rejected: u64::try_from(partial.rejected_spans).unwrap_or(0),
            why: shown(&partial.error_message),
        },
        // A message without a count is a warning about spans that were taken.
        Some(_) | None => Answer::Taken,
    }
}

/// One line of what a receiver says, short enough for a terminal.
fn shown(text: &str) -> String {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    tracegate_core::payload::clip(line.trim(), MAX_WHY)
}

/// A library's error with its causes, of which the last one says most.
fn causes(error: &dyn std::error::Error) -> String {
    let (mut text, mut next) = (error.to_string(), error.source());
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    shown(&text)
}
