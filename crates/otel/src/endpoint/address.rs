//! URLs of receivers and the headers that go with requests, parsed without a secret ever reaching an error.

use super::EndpointError;
use crate::pairs::decode_percent;
use std::collections::BTreeMap;

/// The parts of a URL that matter here.
pub(super) struct Url<'a> {
    pub(super) scheme: &'static str,
    pub(super) authority: &'a str,
    pub(super) port: Option<u16>,
    /// Empty, or with its leading slash.
    pub(super) path: &'a str,
}

impl<'a> Url<'a> {
    pub(super) fn parse(source_name: &'static str, url: &'a str) -> Result<Self, EndpointError> {
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
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => "http",
            "https" => "https",
            _ => return Err(fail("it does not begin with http:// or https://")),
        };
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
            scheme,
            authority,
            port,
            path,
        })
    }
}

pub(super) fn parse_headers<'a>(
    variable: &'static str,
    entries: impl Iterator<Item = &'a str>,
) -> Result<BTreeMap<String, String>, EndpointError> {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let entries = entries.enumerate().filter(|(_, entry)| !entry.trim().is_empty());
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
