//! OTLP over gRPC.

use super::{Answer, Reply, causes, shown, taken};
use crate::endpoint::{Compression, Endpoint};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, trace_service_client::TraceServiceClient,
};
use std::{error::Error as _, time::Duration};
use tonic::{
    Code, Request, Status,
    codec::CompressionEncoding,
    metadata::{MetadataKey, MetadataMap},
    transport::Channel,
};
use tonic_types::StatusExt as _;

/// A channel to a receiver.
#[derive(Debug)]
pub(crate) struct Grpc {
    client: TraceServiceClient<Channel>,
    headers: MetadataMap,
    timeout: Duration,
}

impl Grpc {
    pub(super) fn to(endpoint: &Endpoint, tls: rustls::ClientConfig) -> Result<Self, String> {
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http2()
            .wrap_connector(super::tls::tcp());
        let channel = Channel::from_shared(endpoint.url().to_owned())
            .map_err(|error| error.to_string())?
            .connect_with_connector_lazy(connector);
        let mut client = TraceServiceClient::new(channel).accept_compressed(CompressionEncoding::Gzip);
        if endpoint.compression() == Compression::Gzip {
            client = client.send_compressed(CompressionEncoding::Gzip);
        }
        let mut headers = MetadataMap::new();
        for (name, value) in endpoint.headers() {
            let pair = MetadataKey::from_bytes(name.as_bytes())
                .ok()
                .zip(value.parse().ok());
            let (name, value) = pair.ok_or_else(|| format!("the header `{name}` cannot be sent"))?;
            headers.insert(name, value);
        }
        Ok(Self {
            client,
            headers,
            timeout: endpoint.timeout(),
        })
    }

    pub(super) async fn send(&self, message: ExportTraceServiceRequest) -> Reply {
        let mut request = Request::new(message);
        *request.metadata_mut() = self.headers.clone();
        request.set_timeout(self.timeout);
        let mut client = self.client.clone();
        let Ok(answered) = tokio::time::timeout(self.timeout, client.export(request)).await else {
            let why = format!("no answer within {} ms", self.timeout.as_millis());
            return Reply {
                answer: Answer::Later { why, wait: None },
                date: None,
            };
        };
        let told = |metadata: &MetadataMap| Some(metadata.get("date")?.to_str().ok()?.to_owned());
        match answered {
            Ok(response) => Reply {
                date: told(response.metadata()),
                answer: taken(response.into_inner()),
            },
            Err(status) => Reply {
                date: told(status.metadata()),
                answer: judge(&status),
            },
        }
    }
}

/// Says what a failure means (OTLP 1.10, failures), but for two codes: servers say `out of range` and `resource exhausted` of a message that
/// is too large for them, which gets no smaller by waiting.
fn judge(status: &Status) -> Answer {
    // Made on this side: the connection broke, or was never there.
    if let Some(source) = status.source() {
        return Answer::Later {
            why: causes(source),
            wait: None,
        };
    }
    let why = format!("{:?}: {}", status.code(), shown(status.message()));
    let wait = status
        .get_details_retry_info()
        .and_then(|retry| retry.retry_delay);
    match status.code() {
        Code::Cancelled | Code::DeadlineExceeded | Code::Aborted | Code::Unavailable | Code::DataLoss => {
            Answer::Later { why, wait }
        }
        Code::ResourceExhausted if wait.is_some() => Answer::Later { why, wait },
        Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented | Code::NotFound => {
            Answer::Misdirected(why)
        }
        Code::Ok
        | Code::Unknown
        | Code::InvalidArgument
        | Code::AlreadyExists
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Internal => Answer::Refused(why),
    }
}
