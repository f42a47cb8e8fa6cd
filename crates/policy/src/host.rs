//! A host name or address, parsed before anything is compared with it.

use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
};

/// A host in the one spelling that rules compare.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// Lower-case labels without a final dot.
    Name(String),
    /// Four decimal octets.
    V4(Ipv4Addr),
    /// Any legal spelling of an IPv6 address, with or without brackets.
    V6(Ipv6Addr),
}

impl Host {
    /// Parses a host, or says why it is none.
    ///
    /// # Errors
    /// Labels must be letters, digits and inner hyphens, at most 63 bytes each and 253 in all. A name whose
    /// last label is a number is an address in disguise (`0x7f.1`, `2130706433`) and refused unless it is
    /// four plain octets: resolvers disagree about the rest.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let bracketed = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Ok(address) = bracketed.unwrap_or(text).parse::<Ipv6Addr>() {
            return Ok(address.to_ipv4_mapped().map_or(Self::V6(address), Self::V4));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::V4(address));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if name.is_empty() || name.len() > 253 {
            return Err("a host has 1 to 253 characters");
        }
        if !name.split('.').all(is_label) {
            return Err("a label of a host is 1 to 63 letters, digits and inner hyphens");
        }
        let last = name.rsplit('.').next().unwrap_or_default();
        let hex = last
            .strip_prefix("0x")
            .is_some_and(|rest| rest.chars().all(|digit| digit.is_ascii_hexdigit()));
        if hex || last.chars().all(|digit| digit.is_ascii_digit()) {
            return Err("an address is written as four decimal numbers");
        }
        Ok(Self::Name(name))
    }

    /// Is this a link-local address or a cloud's metadata service? Nothing opens these (floor `metadata`).
    #[must_use]
    pub fn is_metadata(&self) -> bool {
        match self {
            Self::Name(name) => matches!(
                name.as_str(),
                "metadata" | "metadata.google.internal" | "instance-data"
            ),
            Self::V4(address) => address.is_link_local() || *address == Ipv4Addr::new(100, 100, 100, 200),
            Self::V6(address) => {
                address.is_unicast_link_local()
                    || *address == Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)
                    // 6to4, NAT64 and the deprecated compatible form carry an IPv4 address that a gateway would reach.
                    || embedded_v4(*address).is_some_and(|inner| Self::V4(inner).is_metadata())
            }
        }
    }
}

fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0, 0, 0, 0, 0, 0, high, low] => Some(join(high, low)),
        [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::V4(address) => address.fmt(f),
            Self::V6(address) => write!(f, "[{address}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_one_spelling_and_disguised_addresses_have_none() {
        for (text, expected) in [
            ("PACKAGES.Example.", Ok("packages.example")),
            ("127.0.0.1", Ok("127.0.0.1")),
            ("[::1]", Ok("[::1]")),
            ("::ffff:169.254.169.254", Ok("169.254.169.254")),
            ("evil.invalid\0.example.com", Err(())),
            ("0x7f.1", Err(())),
            ("2130706433", Err(())),
            ("127.1", Err(())),
            ("0x7f000001", Err(())),
            ("a..b", Err(())),
            ("", Err(())),
        ] {
            let found = Host::parse(text).map(|host| host.to_string()).map_err(|_| ());
            assert_eq!(found, expected.map(str::to_owned), "{text:?}");
        }
    }

    #[test]
    fn metadata_services_are_known_in_every_spelling() {
        for text in [
            "169.254.169.254",
            "169.254.0.1",
            "::ffff:a9fe:a9fe",
            "fe80::1",
            "fd00:ec2::254",
            "64:ff9b::a9fe:a9fe",
            "METADATA.google.internal.",
        ] {
            assert!(Host::parse(text).unwrap().is_metadata(), "{text}");
        }
        assert!(!Host::parse("10.0.0.1").unwrap().is_metadata());
    }
}
