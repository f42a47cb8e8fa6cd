//! Where spans are sent: a URL and the `OTEL_*` variables, parsed once. The environment is an argument; nothing here reads it.

mod address;

use address::{Url, parse_headers};
use std::{collections::BTreeMap, fmt, path::PathBuf, str::FromStr, time::Duration};

/// The `OTEL_*` variables by name, as the command found them.
pub type OtelEnv = BTreeMap<String, String>;

/// How long one attempt may take unless a variable says otherwise, as in the OTLP specification.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The port that OTLP reserves for gRPC.
const GRPC_PORT: u16 = 4317;
/// What HTTP endpoints add to a base URL.
const TRACES_PATH: &str = "/v1/traces";

/// How spans are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// OTLP over gRPC, usually port 4317.
    Grpc,
    /// OTLP over HTTP with protobuf bodies, usually port 4318.
    HttpProtobuf,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Grpc => "grpc",
            Self::HttpProtobuf => "http/protobuf",
        })
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "grpc" => Ok(Self::Grpc),
            "http/protobuf" => Ok(Self::HttpProtobuf),
            _ => Err("it is grpc or http/protobuf".to_owned()),
        }
    }
}

/// How requests are made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// With gzip.
    Gzip,
}

/// Files with which an endpoint is trusted, and this program to it; all PEM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Certificates {
    /// Whom to trust instead of the machine's roots.
    pub roots: Option<PathBuf>,
    /// This program's certificate.
    pub client: Option<PathBuf>,
    /// The key to it.
    pub client_key: Option<PathBuf>,
}

/// What was typed about an endpoint; it wins over the variables.
#[derive(Debug, Clone, Default)]
pub struct Typed<'a> {
    /// Where.
    pub url: Option<&'a str>,
    /// How.
    pub protocol: Option<Protocol>,
    /// Headers beside those of the variables, as `name=value`.
    pub headers: &'a [String],
}

/// Why nothing is sent although nothing is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// No endpoint is named.
    NoEndpoint,
    /// `OTEL_SDK_DISABLED` is true.
    Disabled,
    /// `OTEL_TRACES_EXPORTER` is `none`.
    NoExporter,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoEndpoint => "no endpoint is named",
            Self::Disabled => "OTEL_SDK_DISABLED is set",
            Self::NoExporter => "OTEL_TRACES_EXPORTER is none",
        })
    }
}

/// A receiver of spans. Its headers may hold credentials, so neither `Debug` nor any error shows them.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    url: String,
    protocol: Protocol,
    headers: BTreeMap<String, String>,
    timeout: Duration,
    compression: Compression,
    certificates: Certificates,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.headers.keys().collect();
        f.debug_struct("Endpoint")
            .field("url", &self.url)
            .field("protocol", &self.protocol)
            .field("headers", &names)
            .field("timeout", &self.timeout)
            .field("compression", &self.compression)
            .field("certificates", &self.certificates)
            .finish()
    }
}

/// An endpoint or variable that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// It is no URL of a receiver.
    #[error("{source_name} `{url}` is not an endpoint: {why}")]
    Url {
        /// The variable, or what the argument is called.
        source_name: &'static str,
        /// What stands there.
        url: String,
        /// What is wrong.
        why: &'static str,
    },
    /// It carries a user or password, which would end up in messages and in the log.
    #[error("{source_name} holds a user name or password")]
    Credentials {
        /// The variable, or what the argument is called.
        source_name: &'static str,
    },
    /// It is none of the protocols.
    #[error("{variable} is `{value}`, which is not a protocol of this program")]
    Protocol {
        /// The variable.
        variable: &'static str,
        /// What stands there.
        value: String,
    },
    /// An entry is not `name=value`; the entry is not shown, because its value may be a credential.
    #[error("{variable} has an entry that is not `name=value` (entry {position})")]
    Header {
        /// The variable.
        variable: &'static str,
        /// Which entry, from 1.
        position: usize,
    },
    /// It is none of the values that this program knows.
    #[error("{variable} is `{value}`, which this program does not know")]
    Value {
        /// The variable.
        variable: &'static str,
        /// What stands there.
        value: String,
        /// What may stand there.
        known: &'static str,
    },
    /// It is no number of milliseconds above 0.
    #[error("{variable} is `{value}`, not a number of milliseconds above 0")]
    Timeout {
        /// The variable.
        variable: &'static str,
        /// What stands there.
        value: String,
    },
}

impl EndpointError {
    /// Says what to do about it.
    #[must_use]
    pub const fn help(&self) -> &'static str {
        match self {
            Self::Url { .. } => "write http://localhost:4317 for gRPC or http://localhost:4318 for HTTP",
            Self::Credentials { .. } => "put credentials into OTEL_EXPORTER_OTLP_HEADERS=authorization=…",
            Self::Protocol { .. } => "set it to grpc or http/protobuf, or unset it: port 4317 means grpc",
            Self::Header { .. } => "write name=value,name=value with percent-encoded values",
            Self::Value { known, .. } => known,
            Self::Timeout { .. } => "write for instance 10000 for ten seconds",
        }
    }
}

impl Endpoint {
    /// Decides where spans go: to what was typed, else to where the variables say. `docs/export.md` lists the variables.
    ///
    /// The `_TRACES_` form of a variable wins over the general one; an empty variable counts as unset. `OTEL_SDK_DISABLED` and
    /// `OTEL_TRACES_EXPORTER=none` win over everything.
    ///
    /// A base URL gets `/v1/traces` for HTTP; the traces form of the variable is taken as it is, as the specification says. Without a
    /// protocol, port 4317 means gRPC and any other port HTTP.
    ///
    /// # Errors
    /// As [`EndpointError`] lists.
    pub fn resolve(typed: &Typed<'_>, env: &OtelEnv) -> Result<Result<Self, Silence>, EndpointError> {
        if let Some(silence) = silenced(env)? {
            return Ok(Err(silence));
        }
        let base = typed
            .url
            .map(|url| ("the endpoint", url))
            .or_else(|| named(env, "OTEL_EXPORTER_OTLP_ENDPOINT"));
        // What was typed means this receiver, whatever the variables say about another one.
        let exact = named(env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").filter(|_| typed.url.is_none());
        let Some((source_name, url)) = exact.or(base) else {
            return Ok(Err(Silence::NoEndpoint));
        };
        let url = Url::parse(source_name, url)?;
        let protocol = match (typed.protocol, of(env, "PROTOCOL")) {
            (Some(protocol), _) => protocol,
            (None, Some((variable, value))) => parse_protocol(variable, value)?,
            (None, None) if url.port == Some(GRPC_PORT) => Protocol::Grpc,
            (None, None) => Protocol::HttpProtobuf,
        };
        let origin = format!("{}://{}", url.scheme, url.authority);
        let full = match protocol {
            // gRPC has no path: methods are named by the service.
            Protocol::Grpc => origin,
            Protocol::HttpProtobuf if exact.is_some() => format!("{origin}{}", url.path),
            Protocol::HttpProtobuf => format!("{origin}{}{TRACES_PATH}", url.path.trim_end_matches('/')),
        };
        let mut headers = of(env, "HEADERS").map_or_else(
            || Ok(BTreeMap::new()),
            |(variable, text)| parse_headers(variable, text.split(',')),
        )?;
        headers.extend(parse_headers(
            "--header",
            typed.headers.iter().map(String::as_str),
        )?);
        let timeout = of(env, "TIMEOUT").map_or(Ok(DEFAULT_TIMEOUT), |(variable, text)| {
            parse_timeout(variable, text)
        })?;
        let compression = of(env, "COMPRESSION").map_or(Ok(Compression::None), |(variable, text)| {
            parse_compression(variable, text)
        })?;
        let file = |what| of(env, what).map(|(_, path)| PathBuf::from(path));
        Ok(Ok(Self {
            url: full,
            protocol,
            headers,
            timeout,
            compression,
            certificates: Certificates {
                roots: file("CERTIFICATE"),
                client: file("CLIENT_CERTIFICATE"),
                client_key: file("CLIENT_KEY"),
            },
        }))
    }

    /// Returns the complete URL, with the path for HTTP and without one for gRPC.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns how spans are sent.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns the headers that go with every request.
    #[must_use]
    pub const fn headers(&self) -> &BTreeMap<String, String> {
        &self.headers
    }

    /// Returns how long one attempt may take.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns how requests are made smaller.
    #[must_use]
    pub const fn compression(&self) -> Compression {
        self.compression
    }

    /// Returns the files of certificates.
    #[must_use]
    pub const fn certificates(&self) -> &Certificates {
        &self.certificates
    }

    /// Tells whether the connection is encrypted.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.url.starts_with("https://")
    }

    /// Returns the options of a command that name this endpoint again; headers are named by the variables alone.
    #[must_use]
    pub fn options(&self) -> String {
        let base = self.url.strip_suffix(TRACES_PATH);
        let implied = match Url::parse("the endpoint", &self.url)
            .ok()
            .and_then(|url| url.port)
        {
            Some(GRPC_PORT) => Protocol::Grpc,
            Some(_) | None => Protocol::HttpProtobuf,
        };
        let protocol = if implied == self.protocol {
            String::new()
        } else {
            format!(" --protocol {}", self.protocol)
        };
        format!("--endpoint {}{protocol}", base.unwrap_or(&self.url))
    }
}

/// The settings of OTLP that have a form for traces alone, which wins: what follows `OTEL_EXPORTER_OTLP_`, and both whole names.
const SETTINGS: [(&str, &str, &str); 7] = [
    (
        "PROTOCOL",
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
        "OTEL_EXPORTER_OTLP_PROTOCOL",
    ),
    (
        "HEADERS",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
        "OTEL_EXPORTER_OTLP_HEADERS",
    ),
    (
        "TIMEOUT",
        "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
        "OTEL_EXPORTER_OTLP_TIMEOUT",
    ),
    (
        "COMPRESSION",
        "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
        "OTEL_EXPORTER_OTLP_COMPRESSION",
    ),
    (
        "CERTIFICATE",
        "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
        "OTEL_EXPORTER_OTLP_CERTIFICATE",
    ),
    (
        "CLIENT_CERTIFICATE",
        "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE",
        "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
    ),
    (
        "CLIENT_KEY",
        "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY",
        "OTEL_EXPORTER_OTLP_CLIENT_KEY",
    ),
];

fn of<'a>(env: &'a OtelEnv, setting: &str) -> Option<(&'static str, &'a str)> {
    let (_, traces, general) = SETTINGS.iter().find(|(name, ..)| *name == setting)?;
    named(env, traces).or_else(|| named(env, general))
}

/// Returns why nothing may be sent, if the variables say so.
fn silenced(env: &OtelEnv) -> Result<Option<Silence>, EndpointError> {
    if set(env, "OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(Some(Silence::Disabled));
    }
    let Some((variable, value)) = named(env, "OTEL_TRACES_EXPORTER") else {
        return Ok(None);
    };
    let mut exporters = value.split(',').map(str::trim);
    if exporters.clone().any(|exporter| exporter == "otlp") {
        return Ok(None);
    }
    if exporters.all(|exporter| exporter == "none") {
        return Ok(Some(Silence::NoExporter));
    }
    Err(EndpointError::Value {
        variable,
        value: value.chars().take(80).collect(),
        known: "set it to otlp or none, or unset it",
    })
}

fn set<'a>(env: &'a OtelEnv, variable: &str) -> Option<&'a str> {
    env.get(variable)
        .map(|value| value.trim())
        .filter(|value| !value.is_empty())
}

fn named<'a>(env: &'a OtelEnv, variable: &'static str) -> Option<(&'static str, &'a str)> {
    set(env, variable).map(|value| (variable, value))
}

fn parse_protocol(variable: &'static str, value: &str) -> Result<Protocol, EndpointError> {
    value.parse().map_err(|_| EndpointError::Protocol {
        variable,
        value: value.chars().take(80).collect(),
    })
}

fn parse_compression(variable: &'static str, value: &str) -> Result<Compression, EndpointError> {
    match value {
        "gzip" => Ok(Compression::Gzip),
        "none" => Ok(Compression::None),
        _ => Err(EndpointError::Value {
            variable,
            value: value.chars().take(80).collect(),
            known: "set it to gzip or none, or unset it",
        }),
    }
}

fn parse_timeout(variable: &'static str, text: &str) -> Result<Duration, EndpointError> {
    match text.parse() {
        Ok(1..) => Ok(Duration::from_millis(text.parse().unwrap_or(u64::MAX))),
        Ok(0_u64) | Err(_) => Err(EndpointError::Timeout {
            variable,
            value: text.chars().take(80).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    const EXACT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";

    fn env(pairs: &[(&str, &str)]) -> OtelEnv {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn flag_and_variables_decide_where_spans_go() {
        let check = |flag: Option<&str>, pairs: &[(&str, &str)], wanted: &str| {
            let typed = Typed {
                url: flag,
                ..Typed::default()
            };
            let found = Endpoint::resolve(&typed, &env(pairs)).unwrap();
            let shown = found.map_or_else(
                |why| format!("nowhere: {why}"),
                |it| format!("{} {}", it.protocol(), it.url()),
            );
            assert_eq!(shown, wanted, "{flag:?} {pairs:?}");
        };
        check(None, &[], "nowhere: no endpoint is named");
        check(None, &[(BASE, "")], "nowhere: no endpoint is named");
        check(Some("http://localhost:4317"), &[], "grpc http://localhost:4317");
        check(
            Some("http://localhost:4317/ignored"),
            &[],
            "grpc http://localhost:4317",
        );
        check(
            Some("http://localhost:4318"),
            &[],
            "http/protobuf http://localhost:4318/v1/traces",
        );
        check(
            Some("http://localhost:4318/"),
            &[],
            "http/protobuf http://localhost:4318/v1/traces",
        );
        check(
            Some("http://gate/otel/"),
            &[],
            "http/protobuf http://gate/otel/v1/traces",
        );
        check(Some("HTTP://[::1]:4317"), &[], "grpc http://[::1]:4317");
        check(Some("http://[::1]"), &[], "http/protobuf http://[::1]/v1/traces");
        check(
            Some("http://a:1"),
            &[(BASE, "http://b:2"), (EXACT, "http://c:3")],
            "http/protobuf http://a:1/v1/traces",
        );
        check(
            None,
            &[(BASE, "http://b:2")],
            "http/protobuf http://b:2/v1/traces",
        );
        check(
            None,
            &[(BASE, "http://b:2"), (EXACT, "http://c:3/x")],
            "http/protobuf http://c:3/x",
        );
        check(
            None,
            &[(BASE, "http://b:4317"), (PROTOCOL, "http/protobuf")],
            "http/protobuf http://b:4317/v1/traces",
        );
        let traces = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL";
        check(
            None,
            &[
                (BASE, "http://b:9"),
                (PROTOCOL, "http/protobuf"),
                (traces, "grpc"),
            ],
            "grpc http://b:9",
        );
        check(
            Some("http://a:1"),
            &[("OTEL_SDK_DISABLED", "True")],
            "nowhere: OTEL_SDK_DISABLED is set",
        );
        let exporter = "OTEL_TRACES_EXPORTER";
        check(
            Some("http://a:1"),
            &[(exporter, "none")],
            "nowhere: OTEL_TRACES_EXPORTER is none",
        );
        check(
            Some("https://a:4317"),
            &[(exporter, "console, otlp")],
            "grpc https://a:4317",
        );
        check(Some("HTTPS://a/x"), &[], "http/protobuf https://a/x/v1/traces");
        check(
            Some("http://a:1"),
            &[("OTEL_SDK_DISABLED", "false")],
            "http/protobuf http://a:1/v1/traces",
        );
    }

    #[test]
    fn what_is_no_endpoint_is_refused_with_its_reason() {
        let check = |flag: &str, wanted: &str| {
            let typed = Typed {
                url: Some(flag),
                ..Typed::default()
            };
            let error = Endpoint::resolve(&typed, &env(&[])).unwrap_err();
            assert_eq!(error.to_string(), wanted);
            assert!(!error.help().is_empty());
        };
        check(
            "localhost:4317",
            "the endpoint `localhost:4317` is not an endpoint: it does not begin with http:// or https://",
        );
        check(
            "ftp://x",
            "the endpoint `ftp://x` is not an endpoint: it does not begin with http:// or https://",
        );
        check(
            "http://x?y",
            "the endpoint `http://x?y` is not an endpoint: it has a query or a fragment",
        );
        check(
            "http:///p",
            "the endpoint `http:///p` is not an endpoint: it has no host",
        );
        check(
            "http://::1:4317",
            "the endpoint `http://::1:4317` is not an endpoint: it has no host",
        );
        check(
            "http://x:0",
            "the endpoint `http://x:0` is not an endpoint: its port is not a number from 1 to 65535",
        );
        check(
            "http://x:99999",
            "the endpoint `http://x:99999` is not an endpoint: its port is not a number from 1 to 65535",
        );
        check(
            "http://a b",
            "the endpoint `http://a b` is not an endpoint: it has characters that a URL cannot have",
        );
        check(
            "http://me:word@x:4317",
            "the endpoint holds a user name or password",
        );
        check(
            "",
            "the endpoint `` is not an endpoint: it does not begin with http:// or https://",
        );
    }

    #[test]
    fn headers_and_timeout_come_from_the_variables_and_stay_out_of_messages() {
        let resolve = |name: &str, value: &str| {
            let typed = Typed {
                url: Some("http://x:1"),
                ..Typed::default()
            };
            Endpoint::resolve(&typed, &env(&[(name, value)]))
        };
        let found = resolve(
            "OTEL_EXPORTER_OTLP_HEADERS",
            "Authorization=Basic%20Zm9v, x-a = 1,",
        )
        .unwrap()
        .unwrap();
        let pairs: Vec<_> = found
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(pairs, [("authorization", "Basic Zm9v"), ("x-a", "1")]);
        assert!(!format!("{found:?}").contains("Zm9v"));
        for bad in [
            "secret",
            "a=1,=secret",
            "a b=secret",
            "a=%zzsecret",
            "a=%0asecret",
        ] {
            let error = resolve("OTEL_EXPORTER_OTLP_TRACES_HEADERS", bad).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        let timeout = |value| resolve("OTEL_EXPORTER_OTLP_TIMEOUT", value).map(|it| it.unwrap().timeout());
        assert_eq!(timeout("250"), Ok(Duration::from_millis(250)));
        assert_eq!(timeout(""), Ok(DEFAULT_TIMEOUT));
        for bad in ["0", "-1", "10s"] {
            assert!(timeout(bad).is_err(), "{bad}");
        }
        assert!(resolve(PROTOCOL, "http/json").is_err());
        assert!(resolve("OTEL_TRACES_EXPORTER", "zipkin").is_err());
        let compression =
            |value| resolve("OTEL_EXPORTER_OTLP_COMPRESSION", value).map(|it| it.unwrap().compression());
        assert_eq!(compression("gzip"), Ok(Compression::Gzip));
        assert_eq!(compression("none"), Ok(Compression::None));
        assert!(compression("zstd").is_err());
    }

    #[test]
    fn what_was_typed_wins_and_is_named_again_by_the_next_command() {
        let headers = ["x-b=2".to_owned()];
        let typed = Typed {
            url: Some("http://x:4317"),
            protocol: Some(Protocol::HttpProtobuf),
            headers: &headers,
        };
        let env = env(&[
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-a=1,x-b=1"),
            (PROTOCOL, "grpc"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem"),
        ]);
        let found = Endpoint::resolve(&typed, &env).unwrap().unwrap();
        assert_eq!(found.url(), "http://x:4317/v1/traces");
        let pairs: Vec<_> = found.headers().iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(pairs, ["x-a=1", "x-b=2"]);
        assert_eq!(
            found.options(),
            "--endpoint http://x:4317 --protocol http/protobuf"
        );
        assert_eq!(found.certificates().roots, Some(PathBuf::from("ca.pem")));
        let typed = Typed {
            url: Some("https://x:4317"),
            ..Typed::default()
        };
        let found = Endpoint::resolve(&typed, &OtelEnv::new()).unwrap().unwrap();
        assert_eq!(found.options(), "--endpoint https://x:4317");
        assert!(found.is_tls());
    }
}
