//! TLS over both transports: an authority of its own, and receivers that want to know who sends.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a missing request is a failed test"
)]
#![expect(clippy::disallowed_methods, reason = "certificates are files")]

mod receivers;
#[path = "../../core/tests/recorded/mod.rs"]
mod recorded;
mod stored;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use receivers::{Received, converse, inside_a_runtime, listen, read_request};
use rustls::{
    RootCertStore, ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::WebPkiClientVerifier,
};
use std::{
    fs,
    io::Write as _,
    net::TcpListener,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread,
};
use stored::{Stored, redactor, spans_of};
use tempfile::TempDir;
use tracegate_otel::{
    doctor::{Health, probe},
    endpoint::{Endpoint, OtelEnv, Typed},
    exporter::{ExportReport, Exporter},
};

/// An authority with a server's and a client's certificate, made for one test.
struct Authority {
    folder: TempDir,
    server: Arc<ServerConfig>,
}

impl Authority {
    fn new(protocol: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
        write("ca.pem", authority.pem());
        for name in ["server", "client"] {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            write(
                &format!("{name}.pem"),
                params.signed_by(&key, &authority).unwrap().pem(),
            );
            write(&format!("{name}.key"), key.serialize_pem());
        }
        let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(&read("ca.pem")).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .unwrap();
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(clients)
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(&read("server.pem")).unwrap()],
                PrivateKeyDer::from_pem_slice(&read("server.key")).unwrap(),
            )
            .unwrap();
        server.alpn_protocols = vec![protocol.to_vec()];
        Self {
            folder,
            server: Arc::new(server),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Takes everything over HTTPS, from clients that the authority knows.
fn https_receiver(server: Arc<ServerConfig>) -> (u16, mpsc::Receiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, received) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&server)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            // Nothing comes from a client that was turned away.
            if let Some(seen) = read_request(&mut stream) {
                sender.send(seen).unwrap();
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                    .unwrap();
                stream.conn.send_close_notify();
                stream.flush().unwrap();
            }
        }
    });
    (port, received)
}

/// Takes everything over gRPC with TLS, from clients that the authority knows.
fn grpcs_receiver(server: Arc<ServerConfig>) -> (u16, mpsc::Receiver<Received>) {
    let (port, listener) = listen();
    let (sender, received) = mpsc::channel();
    inside_a_runtime(async move {
        let acceptor = tokio_rustls::TlsAcceptor::from(server);
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(stream) = acceptor.accept(stream).await {
                converse(stream, &sender, |_| (0, Vec::new())).await;
            }
        }
    });
    (port, received)
}

fn endpoint(port: u16, protocol: &str, files: &[(&str, &Path)]) -> Endpoint {
    let mut env: OtelEnv = files
        .iter()
        .map(|(name, path)| (format!("OTEL_EXPORTER_OTLP_{name}"), path.display().to_string()))
        .collect();
    env.insert("OTEL_EXPORTER_OTLP_PROTOCOL".to_owned(), protocol.to_owned());
    let url = format!("https://localhost:{port}");
    let typed = Typed {
        url: Some(&url),
        ..Typed::default()
    };
    Endpoint::resolve(&typed, &env).unwrap().unwrap()
}

fn export(stored: &Stored, to: Endpoint) -> ExportReport {
    Exporter::start(to, stored.source(), redactor()).unwrap().drain()
}

#[test]
fn spans_arrive_over_tls_and_only_among_those_who_know_each_other() {
    let stored = Stored::recorded();
    let spans = stored.in_the_file();
    for protocol in ["http/protobuf", "grpc"] {
        let grpc = protocol == "grpc";
        let authority = Authority::new(if grpc { b"h2" } else { b"http/1.1" });
        let stranger = Authority::new(b"h2");
        let (port, received) = if grpc {
            grpcs_receiver(Arc::clone(&authority.server))
        } else {
            https_receiver(Arc::clone(&authority.server))
        };
        let (roots, certificate, key) = (
            authority.file("ca.pem"),
            authority.file("client.pem"),
            authority.file("client.key"),
        );
        let known: [(&str, &Path); 3] = [
            ("CERTIFICATE", &roots),
            ("CLIENT_CERTIFICATE", &certificate),
            ("CLIENT_KEY", &key),
        ];
        // Turned away: without a certificate, with one of another authority, and with a receiver that this side does not trust.
        let (strange, its_key) = (stranger.file("client.pem"), stranger.file("client.key"));
        let other_roots = stranger.file("ca.pem");
        let turned_away = [
            endpoint(port, protocol, &known[..1]),
            endpoint(
                port,
                protocol,
                &[
                    known[0],
                    ("CLIENT_CERTIFICATE", &strange),
                    ("CLIENT_KEY", &its_key),
                ],
            ),
            endpoint(
                port,
                protocol,
                &[("CERTIFICATE", &other_roots), known[1], known[2]],
            ),
        ];
        for to in turned_away {
            let report = export(&stored, to);
            assert_eq!(
                (report.sent, report.pending),
                (0, spans.len() as u64),
                "{protocol}: {report:?}"
            );
        }
        assert!(received.try_recv().is_err());
        let to = endpoint(port, protocol, &known);
        assert_eq!(probe(&to).unwrap().health, Health::Accepts, "{protocol}");
        let report = export(&stored, to);
        assert_eq!(report.sent, spans.len() as u64, "{protocol}: {report:?}");
        let last = received.try_iter().last().unwrap();
        assert_eq!(spans_of(&last.request), spans, "{protocol}");
    }
}

#[test]
fn certificates_that_cannot_be_used_are_said_by_name() {
    let stored = Stored::recorded();
    let authority = Authority::new(b"h2");
    let (roots, key) = (authority.file("ca.pem"), authority.file("client.key"));
    let absent = authority.file("absent.pem");
    let check = |files: &[(&str, &Path)], wanted: &str| {
        let report = export(&stored, endpoint(1, "grpc", files));
        assert_eq!(report.sent, 0);
        let why = report.last_error.unwrap();
        assert!(why.contains(wanted), "{why}");
    };
    check(&[("CERTIFICATE", &absent)], "absent.pem");
    check(&[("CERTIFICATE", &key)], "holds no certificate");
    check(
        &[("CERTIFICATE", &roots), ("CLIENT_KEY", &key)],
        "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY go together",
    );
    check(
        &[
            ("CERTIFICATE", &roots),
            ("CLIENT_CERTIFICATE", &roots),
            ("CLIENT_KEY", &roots),
        ],
        "holds no private key",
    );
}
