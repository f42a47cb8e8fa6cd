//! Whom a connection trusts, and by what it is trusted: the files of the `OTEL_*_CERTIFICATE` variables, which the SDK does not read.
#![expect(clippy::disallowed_methods, reason = "certificates are read here")]

use crate::endpoint::Endpoint;
use hyper_rustls::ConfigBuilderExt as _;
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use std::{path::Path, sync::Arc};

/// Returns the configuration of connections to `endpoint`; without TLS it trusts nobody and is not used.
pub(super) fn config(endpoint: &Endpoint) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    if !endpoint.is_tls() {
        let nobody = builder.with_root_certificates(RootCertStore::empty());
        return Ok(nobody.with_no_client_auth());
    }
    let files = endpoint.certificates();
    let builder = match &files.roots {
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots
                    .add(certificate)
                    .map_err(|error| format!("a certificate in `{}`: {error}", path.display()))?;
            }
            builder.with_root_certificates(roots)
        }
        None => builder.with_native_roots().map_err(|error| {
            format!("the machine's certificates: {error}; OTEL_EXPORTER_OTLP_CERTIFICATE names others")
        })?,
    };
    match (&files.client, &files.client_key) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(certificate), Some(key)) => {
            let key = PrivateKeyDer::from_pem_slice(&read(key)?)
                .map_err(|_| format!("`{}` holds no private key in PEM", key.display()))?;
            builder
                .with_client_auth_cert(certificates(certificate)?, key)
                .map_err(|error| format!("the client certificate: {error}"))
        }
        (Some(_), None) | (None, Some(_)) => Err(
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY go together".to_owned(),
        ),
    }
}

/// Returns what opens connections, before anything is known about the protocol on them.
pub(super) fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    // The scheme is judged by the connector above this one.
    tcp.enforce_http(false);
    // Without this the end of every request waits for the receiver's delayed acknowledgement, 40 ms.
    tcp.set_nodelay(true);
    tcp
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) | Err(_) => Err(format!("`{}` holds no certificate in PEM", path.display())),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))
}
