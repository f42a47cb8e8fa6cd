//! OTLP receivers in this process: what a collector would see, on a port of 127.0.0.1.
#![allow(dead_code, reason = "each test program uses its part")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a broken receiver is a failed test"
)]

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    thread,
};

/// A request as a receiver saw it.
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) request: ExportTraceServiceRequest,
}

/// Answers OTLP over HTTP with `statuses` in turn and with 200 afterwards.
pub(crate) fn http_receiver(statuses: &'static [u16]) -> (u16, mpsc::Receiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, received) = mpsc::channel();
    thread::spawn(move || {
        let mut statuses = statuses.iter();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let Some(seen) = read_request(&mut stream) else {
                continue;
            };
            if sender.send(seen).is_err() {
                return;
            }
            let status = statuses.next().unwrap_or(&200);
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (port, received)
}

fn read_request(stream: &mut TcpStream) -> Option<Received> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let mut body = vec![0; headers["content-length"].parse().unwrap()];
    stream.read_exact(&mut body).ok()?;
    let request = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
    Some(Received {
        path,
        headers,
        request,
    })
}

/// Answers OTLP over gRPC, for one connection after the other.
pub(crate) fn grpc_receiver() -> (u16, mpsc::Receiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    let (sender, received) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((request, respond))) = connection.accept().await {
                    // The connection moves only while it is polled, so the call is answered beside it.
                    tokio::spawn(answer(request, respond, sender.clone()));
                }
            }
        });
    });
    (port, received)
}

async fn answer(
    request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    sender: mpsc::Sender<Received>,
) {
    let (head, mut body) = request.into_parts();
    let mut message = Vec::new();
    while let Some(Ok(chunk)) = body.data().await {
        body.flow_control().release_capacity(chunk.len()).unwrap();
        message.extend_from_slice(&chunk);
    }
    // One byte of compression flag and four of length come before the message.
    let request = ExportTraceServiceRequest::decode(&message[5..]).unwrap();
    let headers = head
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
    let seen = Received {
        path: head.uri.path().to_owned(),
        headers: headers.collect(),
        request,
    };
    drop(sender.send(seen));
    let response = http::Response::builder()
        .header("content-type", "application/grpc")
        .body(())
        .unwrap();
    let mut stream = respond.send_response(response, false).unwrap();
    stream.send_data(vec![0; 5].into(), false).unwrap();
    let trailers = [(
        http::HeaderName::from_static("grpc-status"),
        http::HeaderValue::from_static("0"),
    )];
    stream.send_trailers(trailers.into_iter().collect()).unwrap();
}
