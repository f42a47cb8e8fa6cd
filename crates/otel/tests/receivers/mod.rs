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
    io::{Read, Write as _},
    net::TcpListener,
    sync::mpsc,
    thread,
};

/// A request as a receiver saw it.
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) request: ExportTraceServiceRequest,
}

/// How a receiver answers a request over HTTP: status, further headers (each ending in CR LF), body.
pub(crate) type HttpAnswer = (u16, &'static str, Vec<u8>);

/// Answers OTLP over HTTP with `statuses` in turn and with 200 afterwards.
pub(crate) fn http_receiver(statuses: &'static [u16]) -> (u16, mpsc::Receiver<Received>) {
    let mut statuses = statuses.iter();
    judging_receiver(move |_| (*statuses.next().unwrap_or(&200), "", Vec::new()))
}

/// Answers OTLP over HTTP as `judge` says.
pub(crate) fn judging_receiver(
    judge: impl FnMut(&ExportTraceServiceRequest) -> HttpAnswer + Send + 'static,
) -> (u16, mpsc::Receiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, received) = mpsc::channel();
    thread::spawn(move || serve(&listener, judge, &sender));
    (port, received)
}

/// Serves a listener that may have been there, without anybody listening, before.
pub(crate) fn serve(
    listener: &TcpListener,
    mut judge: impl FnMut(&ExportTraceServiceRequest) -> HttpAnswer,
    sender: &mpsc::Sender<Received>,
) {
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let Some(seen) = read_request(&mut stream) else {
            continue;
        };
        let (status, headers, body) = judge(&seen.request);
        if sender.send(seen).is_err() {
            return;
        }
        let length = body.len();
        let head =
            format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n");
        // Whoever gave up waiting has closed the connection.
        stream.write_all(&[head.as_bytes(), &body].concat()).ok();
    }
}

pub(crate) fn read_request(stream: &mut (impl Read + ?Sized)) -> Option<Received> {
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
    if headers.get("content-encoding").map(String::as_str) == Some("gzip") {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(body.as_slice())
            .read_to_end(&mut plain)
            .unwrap();
        body = plain;
    }
    let request = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
    Some(Received {
        path,
        headers,
        request,
    })
}

/// How a receiver answers a request over gRPC: status code, and the details that go with it.
pub(crate) type GrpcAnswer = (u16, Vec<u8>);

/// Takes everything over gRPC.
pub(crate) fn grpc_receiver() -> (u16, mpsc::Receiver<Received>) {
    judging_grpc_receiver(|_| (0, Vec::new()))
}

/// Answers OTLP over gRPC as `judge` says, for one connection after the other. Messages above 4 MiB are refused, as Go's servers do.
pub(crate) fn judging_grpc_receiver(
    judge: fn(&ExportTraceServiceRequest) -> GrpcAnswer,
) -> (u16, mpsc::Receiver<Received>) {
    let (port, listener) = listen();
    let (sender, received) = mpsc::channel();
    inside_a_runtime(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            converse(stream, &sender, judge).await;
        }
    });
    (port, received)
}

/// A port of this machine, for a runtime.
pub(crate) fn listen() -> (u16, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    (port, listener)
}

/// Runs `receiving` on a thread of its own.
pub(crate) fn inside_a_runtime(receiving: impl Future<Output = ()> + Send + 'static) {
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(receiving);
    });
}

/// Answers what comes over one connection.
pub(crate) async fn converse(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    sender: &mpsc::Sender<Received>,
    judge: fn(&ExportTraceServiceRequest) -> GrpcAnswer,
) {
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    while let Some(Ok((request, respond))) = connection.accept().await {
        // The connection moves only while it is polled, so the call is answered beside it.
        tokio::spawn(answer(request, respond, sender.clone(), judge));
    }
}

async fn answer(
    request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    sender: mpsc::Sender<Received>,
    judge: fn(&ExportTraceServiceRequest) -> GrpcAnswer,
) {
    let (head, mut body) = request.into_parts();
    let mut message = Vec::new();
    while let Some(Ok(chunk)) = body.data().await {
        body.flow_control().release_capacity(chunk.len()).unwrap();
        message.extend_from_slice(&chunk);
    }
    // One byte of compression flag and four of length come before the message.
    let mut bytes = message[5..].to_vec();
    if message[0] == 1 {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(bytes.as_slice())
            .read_to_end(&mut plain)
            .unwrap();
        bytes = plain;
    }
    let request = ExportTraceServiceRequest::decode(bytes.as_slice()).unwrap();
    let (status, details) = if bytes.len() > 4 * 1024 * 1024 {
        (8, Vec::new())
    } else {
        judge(&request)
    };
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
    if status == 0 {
        // An empty message, or the answer that the details hold.
        let length = u32::try_from(details.len()).unwrap().to_be_bytes();
        let answer = [&[0], length.as_slice(), &details].concat();
        stream.send_data(answer.into(), false).unwrap();
    }
    let mut trailers = http::HeaderMap::new();
    trailers.insert("grpc-status", status.into());
    if status != 0 && !details.is_empty() {
        let details = base64(&details);
        trailers.insert("grpc-status-details-bin", details.parse().unwrap());
    }
    stream.send_trailers(trailers).unwrap();
}

fn base64(bytes: &[u8]) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .fold(0_u32, |word, byte| word << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for at in 0..=chunk.len() {
            text.push(char::from(letters[(word >> (18 - 6 * at) & 63) as usize]));
        }
    }
    text
}
