//! OTLP over HTTP with protobuf bodies.

use super::{Answer, Reply, causes, shown, taken};
use crate::endpoint::{Compression, Endpoint};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message as _;
use std::{io::Write as _, time::Duration};

/// The most that is read of an answer, in bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// A client of a receiver.
#[derive(Debug)]
pub(crate) struct Http {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    url: http::Uri,
    headers: HeaderMap,
    timeout: Duration,
    compression: Compression,
}

impl Http {
    pub(super) fn to(endpoint: &Endpoint, tls: rustls::ClientConfig) -> Result<Self, String> {
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(super::tls::tcp());
        let url = endpoint
            .url()
            .parse()
            .map_err(|error| format!("`{}`: {error}", endpoint.url()))?;
        let mut headers = HeaderMap::new();
        for (name, value) in endpoint.headers() {
            let pair = HeaderName::from_bytes(name.as_bytes())
                .ok()
                .zip(HeaderValue::from_str(value).ok());
            let (name, value) = pair.ok_or_else(|| format!("the header `{name}` cannot be sent"))?;
            headers.insert(name, value);
        }
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/x-protobuf"),
        );
        if endpoint.compression() == Compression::Gzip {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            url,
            headers,
            timeout: endpoint.timeout(),
            compression: endpoint.compression(),
        })
    }

    pub(super) async fn send(&self, message: ExportTraceServiceRequest) -> Reply {
        let later = |why| Reply {
            answer: Answer::Later { why, wait: None },
            date: None,
        };
        match tokio::time::timeout(self.timeout, self.exchange(&message)).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(why)) => later(why),
            Err(_) => later(format!("no answer within {} ms", self.timeout.as_millis())),
        }
    }

    async fn exchange(&self, message: &ExportTraceServiceRequest) -> Result<Reply, String> {
        let body = match self.compression {
            Compression::None => message.encode_to_vec(),
            Compression::Gzip => {
                let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                gzip.write_all(&message.encode_to_vec())
                    .and_then(|()| gzip.finish())
                    .map_err(|error| error.to_string())?
            }
        };
        let length = body.len();
        let mut request = http::Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.clone();
        // An empty body would go without one, and some receivers insist on it.
        request
            .headers_mut()
            .insert(header::CONTENT_LENGTH, length.into());
        let answered = self.client.request(request).await;
        let (head, body) = answered.map_err(|error| causes(&error))?.into_parts();
        // What cannot be read of an answer changes nothing about its status.
        let body = Limited::new(body, MAX_ANSWER).collect().await;
        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
        let text = |name: HeaderName| head.headers.get(name)?.to_str().ok();
        Ok(Reply {
            date: text(header::DATE).map(str::to_owned),
            answer: judge(head.status, &body, text(header::RETRY_AFTER)),
        })
    }
}

/// Says what a status means (OTLP 1.10, failures).
fn judge(status: StatusCode, body: &[u8], retry_after: Option<&str>) -> Answer {
    if status.is_success() {
        return ExportTraceServiceResponse::decode(body).map_or(Answer::Taken, taken);
    }
    let said = tonic_types::Status::decode(body)
        .map(|status| status.message)
        .ok()
        .filter(|message| !message.is_empty())
        .or_else(|| String::from_utf8(body.to_vec()).ok())
        .map(|text| shown(&text))
        .filter(|text| !text.is_empty());
    let why = match said {
        Some(said) => format!("{status}: {said}"),
        None => status.to_string(),
    };
    match status.as_u16() {
        429 | 502 | 503 | 504 => Answer::Later {
            why,
            wait: retry_after
                .and_then(|text| text.trim().parse().ok())
                .map(Duration::from_secs),
        },
        // What it says of these spans, or of their number; 500 too, as a receiver that breaks on one span takes the others.
        400 | 413 | 422 | 500 => Answer::Refused(why),
        _ => Answer::Misdirected(why),
    }
}
