//! Ids and digests: newtypes, parsed once at the edge, derived and never drawn where an export must repeat them.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{fmt, str::FromStr};

/// An id, digest or number that is not spelled as it must be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}")]
pub struct ParseIdError {
    text: String,
    wanted: &'static str,
}

impl ParseIdError {
    fn new(text: &str, wanted: &'static str) -> Self {
        Self {
            text: text.chars().take(80).collect(),
            wanted,
        }
    }
}

/// Gives a fixed-size byte id its lower-case hex spelling everywhere: display, JSON, parsing.
macro_rules! hex_id {
    ($(#[$doc:meta])* $name:ident, $bytes:literal, $prefix:literal, $wanted:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $bytes]);

        impl $name {
            /// Wraps raw bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; $bytes]) -> Self {
                Self(bytes)
            }

            /// Returns the raw bytes.
            #[must_use]
            pub const fn to_bytes(self) -> [u8; $bytes] {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // Every event and span holds several of these: formatting byte by byte was a tenth of what a span costs.
                let mut digits = [0_u8; 2 * $bytes];
                for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
                    pair.copy_from_slice(&hex(byte));
                }
                f.write_str($prefix)?;
                f.write_str(std::str::from_utf8(&digits).unwrap_or_default())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                text.strip_prefix($prefix)
                    .and_then(parse_hex::<$bytes>)
                    .map(Self)
                    .ok_or_else(|| ParseIdError::new(text, $wanted))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        }
    };
}

/// Returns the two lowercase digits of a byte.
const fn hex(byte: u8) -> [u8; 2] {
    const fn digit(number: u8) -> u8 {
        if number < 10 {
            b'0' + number
        } else {
            b'a' + number - 10
        }
    }
    [digit(byte >> 4), digit(byte & 15)]
}

fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let mut value = 0;
        for &digit in pair {
            let nibble = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ => return None,
            };
            value = value * 16 + nibble;
        }
        *byte = value;
    }
    Some(bytes)
}

hex_id!(
    /// A W3C trace id: 16 bytes, 32 lower-case hex digits, never all zero.
    TraceId, 16, "", "a trace id (32 lower-case hex digits)"
);
hex_id!(
    /// A W3C span id: 8 bytes, 16 lower-case hex digits, never all zero.
    SpanId, 8, "", "a span id (16 lower-case hex digits)"
);
hex_id!(
    /// A blake3 digest of redacted bytes, spelled `b3:` and 64 hex digits.
    Digest, 32, "b3:", "a digest (`b3:` and 64 lower-case hex digits)"
);
hex_id!(
    /// One link of the hash chain over a log: 32 lower-case hex digits (`docs/events.md` has a test vector).
    Chain, 16, "", "a chain value (32 lower-case hex digits)"
);
hex_id!(
    /// The id of an event, derived from run and sequence number, so that two copies of a log agree.
    EventId, 8, "", "an event id (16 lower-case hex digits)"
);

impl Digest {
    /// Returns the digest of `bytes`. Only ever called with redacted bytes: a digest of a secret could be guessed.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

/// Computes a digest from bytes that come in pieces.
#[derive(Debug, Clone, Default)]
pub struct Digester(blake3::Hasher);

impl Digester {
    /// Takes in the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest of all bytes so far.
    #[must_use]
    pub fn finish(&self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }
}

impl Chain {
    /// Returns the value before the first event of `run`.
    #[must_use]
    pub fn genesis(run: &RunId) -> Self {
        Self(first(blake3::derive_key(
            "tracegate chain v1",
            run.as_str().as_bytes(),
        )))
    }

    /// Returns the value after a record whose line is `body` up to, but not including, `,"chain"`.
    #[must_use]
    pub fn next(self, body: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.to_string().as_bytes());
        hasher.update(body);
        Self(first(*hasher.finalize().as_bytes()))
    }
}

impl TraceId {
    /// Derives the trace id of `run`.
    #[must_use]
    pub fn derive(run: &RunId) -> Self {
        Self(nonzero(first(blake3::derive_key(
            "tracegate trace-id v1",
            run.as_str().as_bytes(),
        ))))
    }
}

impl SpanId {
    /// Derives the id of the span that the event `started` of `run` begins: re-exporting repeats it.
    #[must_use]
    pub fn derive(run: &RunId, started: Seq) -> Self {
        Self(nonzero(derive_for(run, started, "tracegate span-id v1")))
    }
}

impl EventId {
    /// Derives the id of event `seq` of `run`.
    #[must_use]
    pub fn derive(run: &RunId, seq: Seq) -> Self {
        Self(derive_for(run, seq, "tracegate event-id v1"))
    }
}

fn derive_for(run: &RunId, seq: Seq, context: &str) -> [u8; 8] {
    let mut input = run.as_str().as_bytes().to_vec();
    input.push(0);
    input.extend_from_slice(&seq.0.to_be_bytes());
    first(blake3::derive_key(context, &input))
}

fn first<const N: usize>(bytes: [u8; 32]) -> [u8; N] {
    let mut cut = [0; N];
    for (to, from) in cut.iter_mut().zip(bytes) {
        *to = from;
    }
    cut
}

/// OpenTelemetry calls an all-zero id invalid; a derived one is as likely as any other.
fn nonzero<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    if bytes.iter().all(|&byte| byte == 0)
        && let Some(last) = bytes.last_mut()
    {
        *last = 1;
    }
    bytes
}

/// The id of a run: `run_<slug>_<yyyymmdd>_<8 base32>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// Builds an id from the goal, the date and 5 random bytes; the slug keeps at most 24 ASCII characters of the goal.
    #[must_use]
    pub fn build(goal: &str, day: Timestamp, random: [u8; 5]) -> Self {
        let mut slug = String::new();
        for word in goal
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
        {
            if slug.len() + word.len() >= 24 {
                break;
            }
            if !slug.is_empty() {
                slug.push('-');
            }
            slug.push_str(&word.to_ascii_lowercase());
        }
        if slug.is_empty() {
            slug.push_str("task");
        }
        let date: String = day.to_string().chars().take(10).filter(|c| *c != '-').collect();
        Self(format!("run_{slug}_{date}_{}", base32(random)))
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Crockford's alphabet in lower case: no letter that a person would mistake for a digit.
fn base32(bytes: [u8; 5]) -> String {
    const ALPHABET: [char; 32] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'j', 'k',
        'm', 'n', 'p', 'q', 'r', 's', 't', 'v', 'w', 'x', 'y', 'z',
    ];
    let bits = bytes
        .iter()
        .fold(0_u64, |bits, byte| (bits << 8) | u64::from(*byte));
    (0..8)
        .rev()
        .filter_map(|place| ALPHABET.get(((bits >> (place * 5)) & 31) as usize))
        .collect()
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RunId {
    type Err = ParseIdError;

    /// Accepts what can safely be a directory name: letters, digits, `_`, `-` and `.`, at most 120, not starting with a dot.
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if text.is_empty() || text.len() > 120 || text.starts_with('.') || !text.chars().all(safe) {
            return Err(ParseIdError::new(
                text,
                "a run id (letters, digits, `_`, `-`, `.`)",
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

/// The number of an event in its log, contiguous from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// The number of a segment, one process life of a run, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SegmentNo(pub u32);

/// The number of a step, one turn of the loop, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepNo(pub u32);

macro_rules! display_number {
    ($($name:ident)*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}
display_number!(Seq SegmentNo StepNo);

/// Gives a numbered id its spelling: a letter and a number from 1.
macro_rules! numbered_id {
    ($(#[$doc:meta])* $name:ident, $letter:literal, $wanted:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                text.strip_prefix($letter)
                    .filter(|digits| !digits.starts_with(['0', '+']))
                    .and_then(|digits| digits.parse().ok())
                    .map(Self)
                    .ok_or_else(|| ParseIdError::new(text, $wanted))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(D::Error::custom)
            }
        }
    };
}

numbered_id!(
    /// The id of an action of a run, `a1`, `a2`, … in the order in which the model asked.
    ActionId, "a", "an action id (`a` and a number from 1)"
);
numbered_id!(
    /// The id of a question to the user, `q1`, `q2`, …
    QuestionId, "q", "a question id (`q` and a number from 1)"
);

/// A point in time: nanoseconds since the Unix epoch, spelled in RFC 3339, UTC, nine decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_nanosecond(i128::from(self.0)) {
            Ok(at) => write!(f, "{at:.9}"),
            // Unreachable in this millennium: u64 nanoseconds end in 2554, jiff's range in 9999.
            Err(_) => write!(f, "{}ns", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        text.parse::<jiff::Timestamp>()
            .ok()
            .and_then(|at| u64::try_from(at.as_nanosecond()).ok())
            .map(Self)
            .ok_or_else(|| ParseIdError::new(text, "a time (RFC 3339, UTC)"))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_spell_and_parse_back() {
        let run: RunId = "run_fix_20261130_00000001".parse().unwrap();
        let span = SpanId::derive(&run, Seq(7));
        assert_eq!(span.to_string().parse(), Ok(span));
        assert_eq!(Digest::of(b"").to_string().parse(), Ok(Digest::of(b"")));
        assert_eq!("a12".parse(), Ok(ActionId(12)));
        for bad in ["", "a", "a0", "a01", "a+1", "12", "b12", "a99999999999999999999"] {
            assert!(bad.parse::<ActionId>().is_err(), "{bad}");
        }
        for bad in ["", "..", ".x", "a/b", "a b", "ü"] {
            assert!(bad.parse::<RunId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_run_id_names_goal_and_day() {
        let day: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let check =
            |goal: &str, wanted: &str| assert_eq!(RunId::build(goal, day, [1, 2, 3, 4, 5]).as_str(), wanted);
        check(
            "Fix the failing tests, please",
            "run_fix-the-failing-tests_20261130_04106105",
        );
        check(
            "修复失败测试，让 npm test 通过。",
            "run_npm-test_20261130_04106105",
        );
        check("修复", "run_task_20261130_04106105");
    }

    #[test]
    fn times_keep_their_nanoseconds() {
        let at = Timestamp(1_796_000_000_123_456_789);
        assert_eq!(at.to_string().parse(), Ok(at));
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000000000Z");
    }
}
