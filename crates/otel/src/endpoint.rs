//! Where spans are sent: a URL and the `OTEL_*` variables, parsed once. The environment is an argument; nothing here reads it.

use std::{collections::BTreeMap, fmt, time::Duration};

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

/// A receiver of spans. Its headers may hold credentials, so neither `Debug` nor any error shows them.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    url: String,
    protocol: Protocol,
    headers: BTreeMap<String, String>,
    timeout: Duration,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.headers.keys().collect();
        f.debug_struct("Endpoint")
            .field("url", &self.url)
            .field("protocol", &self.protocol)
            .field("headers", &names)
            .field("timeout", &self.timeout)
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
            Self::Timeout { .. } => "write for instance 10000 for ten seconds",
        }
    }
}

impl Endpoint {
    /// Decides where spans go: to `flag` if it is given, else to where the variables say; `None` if nowhere.
    ///
    /// Honoured: `OTEL_SDK_DISABLED` (which the SDK ignores; it wins over everything), `OTEL_EXPORTER_OTLP_ENDPOINT`, `_PROTOCOL`,
    /// `_HEADERS`, `_TIMEOUT` and their `OTEL_EXPORTER_OTLP_TRACES_` forms, which win. An empty variable counts as unset.
    ///
    /// A base URL gets `/v1/traces` for HTTP; the traces form of the variable is taken as it is, as the specification says. Without a
    /// protocol, port 4317 means gRPC and any other port HTTP.
    ///
    /// # Errors
    /// As [`EndpointError`] lists. Only `http` is spoken; `https` needs a Collector near by that speaks it.
    pub fn resolve(flag: Option<&str>, env: &OtelEnv) -> Result<Option<Self>, EndpointError> {
        if set(env, "OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let base = flag
            .map(|url| ("the endpoint", url))
            .or_else(|| named(env, "OTEL_EXPORTER_OTLP_ENDPOINT"));
        // A flag means this receiver, whatever the variables say about another one.
        let exact = named(env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").filter(|_| flag.is_none());
        let Some((source_name, url)) = exact.or(base) else {
            return Ok(None);
        };
        let url = Url::parse(source_name, url)?;
        let protocol = match either(
            env,
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "OTEL_EXPORTER_OTLP_PROTOCOL",
        ) {
            Some((variable, value)) => parse_protocol(variable, value)?,
            None if url.port == Some(GRPC_PORT) => Protocol::Grpc,
            None => Protocol::HttpProtobuf,
        };
        let full = match protocol {
            // gRPC has no path: methods are named by the service.
            Protocol::Grpc => format!("http://{}", url.authority),
            Protocol::HttpProtobuf if exact.is_some() => format!("http://{}{}", url.authority, url.path),
            Protocol::HttpProtobuf => {
                format!(
                    "http://{}{}{TRACES_PATH}",
                    url.authority,
                    url.path.trim_end_matches('/')
                )
            }
        };
        let headers = either(
            env,
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
            "OTEL_EXPORTER_OTLP_HEADERS",
        )
        .map_or_else(
            || Ok(BTreeMap::new()),
            |(variable, text)| parse_headers(variable, text),
        )?;
        let timeout = either(
            env,
            "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
            "OTEL_EXPORTER_OTLP_TIMEOUT",
        )
        .map_or(Ok(DEFAULT_TIMEOUT), |(variable, text)| {
            parse_timeout(variable, text)
        })?;
        Ok(Some(Self {
            url: full,
            protocol,
            headers,
            timeout,
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
}

/// The parts of a URL that matter here.
struct Url<'a> {
    authority: &'a str,
    port: Option<u16>,
    /// Empty, or with its leading slash.
    path: &'a str,
}

impl<'a> Url<'a> {
    fn parse(source_name: &'static str, url: &'a str) -> Result<Self, EndpointError> {
        let url = url.trim();
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(EndpointError::Credentials { source_name });
        }
        let fail = |why| EndpointError::Url {
            source_name,
            url: url.chars().take(200).collect(),
            why,
        };
        if scheme.eq_ignore_ascii_case("https") {
            return Err(fail("this program does not speak TLS"));
        }
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(fail("it does not begin with http://"));
        }
        if path.contains(['?', '#']) {
            return Err(fail("it has a query or a fragment"));
        }
        let visible = |text: &str| text.chars().all(|c| c.is_ascii_graphic());
        if !visible(authority)
            || !visible(path)
            || authority.contains(['\\', '"', '<', '>', '^', '`', '{', '|', '}'])
        {
            return Err(fail("it has characters that a URL cannot have"));
        }
        let (host, port) = match authority.rsplit_once(':') {
            // The colons of a bare IPv6 address are none before a port.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            Some(_) | None => (authority, None),
        };
        let bracketed = host.starts_with('[') && host.ends_with(']');
        if host.is_empty() || (host.contains(':') && !bracketed) {
            return Err(fail("it has no host"));
        }
        let port = match port.map(str::parse) {
            None => None,
            Some(Ok(0) | Err(_)) => return Err(fail("its port is not a number from 1 to 65535")),
            Some(Ok(port)) => Some(port),
        };
        Ok(Self {
            authority,
            port,
            path,
        })
    }
}

fn set<'a>(env: &'a OtelEnv, variable: &str) -> Option<&'a str> {
    env.get(variable)
        .map(|value| value.trim())
        .filter(|value| !value.is_empty())
}

fn named<'a>(env: &'a OtelEnv, variable: &'static str) -> Option<(&'static str, &'a str)> {
    set(env, variable).map(|value| (variable, value))
}

fn either<'a>(
    env: &'a OtelEnv,
    first: &'static str,
    second: &'static str,
) -> Option<(&'static str, &'a str)> {
    named(env, first).or_else(|| named(env, second))
}

fn parse_protocol(variable: &'static str, value: &str) -> Result<Protocol, EndpointError> {
    match value {
        "grpc" => Ok(Protocol::Grpc),
        "http/protobuf" => Ok(Protocol::HttpProtobuf),
        _ => Err(EndpointError::Protocol {
            variable,
            value: value.chars().take(80).collect(),
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

fn parse_headers(variable: &'static str, text: &str) -> Result<BTreeMap<String, String>, EndpointError> {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let entries = text
        .split(',')
        .enumerate()
        .filter(|(_, entry)| !entry.trim().is_empty());
    entries
        .map(|(at, entry)| {
            let parsed = entry.split_once('=').and_then(|(name, value)| {
                let name = name.trim().to_ascii_lowercase();
                let value = decode_percent(value.trim())?;
                let valid =
                    !name.is_empty() && name.chars().all(token) && !value.contains(|c: char| c.is_control());
                valid.then_some((name, value))
            });
            parsed.ok_or(EndpointError::Header {
                variable,
                position: at + 1,
            })
        })
        .collect()
}

fn decode_percent(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
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
            let found = Endpoint::resolve(flag, &env(pairs)).unwrap();
            let shown = found.map_or("nowhere".to_owned(), |it| {
                format!("{} {}", it.protocol(), it.url())
            });
            assert_eq!(shown, wanted, "{flag:?} {pairs:?}");
        };
        check(None, &[], "nowhere");
        check(None, &[(BASE, "")], "nowhere");
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
        check(Some("http://a:1"), &[("OTEL_SDK_DISABLED", "True")], "nowhere");
        check(
            Some("http://a:1"),
            &[("OTEL_SDK_DISABLED", "false")],
            "http/protobuf http://a:1/v1/traces",
        );
    }

    #[test]
    fn what_is_no_endpoint_is_refused_with_its_reason() {
        let check = |flag: &str, wanted: &str| {
            let error = Endpoint::resolve(Some(flag), &env(&[])).unwrap_err();
            assert_eq!(error.to_string(), wanted);
            assert!(!error.help().is_empty());
        };
        check(
            "localhost:4317",
            "the endpoint `localhost:4317` is not an endpoint: it does not begin with http://",
        );
        check(
            "https://x",
            "the endpoint `https://x` is not an endpoint: this program does not speak TLS",
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
            "the endpoint `` is not an endpoint: it does not begin with http://",
        );
    }

    #[test]
    fn headers_and_timeout_come_from_the_variables_and_stay_out_of_messages() {
        let resolve = |name: &str, value: &str| Endpoint::resolve(Some("http://x:1"), &env(&[(name, value)]));
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
    }
}
