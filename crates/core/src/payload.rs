//! Text in an event: inline while it is small, a reference to an artifact when it is not.

use crate::ids::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The longest string that an event holds inline, in bytes; a longer one becomes an artifact.
pub const INLINE_STRING: usize = 4 * 1024;
/// The longest record that a log holds, in bytes.
pub const INLINE_RECORD: usize = 64 * 1024;
/// How much of the beginning of an artifact its reference shows, in bytes.
pub const PREVIEW_HEAD: usize = 1024;
/// How much of the end: more than of the beginning, because failures stand at the end.
pub const PREVIEW_TAIL: usize = 3 * 1024;

/// Redacted text, inline up to [`INLINE_STRING`] bytes, otherwise by reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// The text itself.
    Inline(String),
    /// Where the text is.
    Ref(Box<ArtifactRef>),
}

/// A reference to an artifact, with enough of it to read on without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactRef {
    /// Digest of the redacted, uncompressed bytes.
    #[serde(rename = "$ref")]
    pub digest: Digest,
    /// Length of those bytes.
    pub bytes: u64,
    /// Number of line feeds, plus one for an unterminated last line.
    pub lines: u64,
    /// Media type, for instance `text/plain; charset=utf-8`.
    pub media: String,
    /// Beginning of the text, cut at a character and, where possible, at a line end.
    pub head: String,
    /// End of the text, cut alike.
    pub tail: String,
    /// Bytes that neither head nor tail shows.
    pub omitted: u64,
    /// Whether the artifact itself holds less than was produced (a cap was reached).
    #[serde(default, skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// How often each redaction rule fired.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub redactions: BTreeMap<String, u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl ArtifactRef {
    /// Describes `bytes`, which are redacted already.
    #[must_use]
    pub fn describe(bytes: &[u8], media: &str) -> Self {
        let (head, tail) = preview(bytes);
        let shown = (head.len() + tail.len()) as u64;
        Self {
            digest: Digest::of(bytes),
            bytes: bytes.len() as u64,
            lines: count_lines(bytes),
            media: media.to_owned(),
            omitted: (bytes.len() as u64).saturating_sub(shown),
            head,
            tail,
            truncated: false,
            redactions: BTreeMap::new(),
        }
    }
}

/// Counts lines; an unterminated last line counts.
#[must_use]
pub fn count_lines(bytes: &[u8]) -> u64 {
    let feeds = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
    feeds + u64::from(bytes.last().is_some_and(|&byte| byte != b'\n'))
}

fn preview(bytes: &[u8]) -> (String, String) {
    if bytes.len() <= PREVIEW_HEAD + PREVIEW_TAIL {
        return (String::from_utf8_lossy(bytes).into_owned(), String::new());
    }
    let head = bytes.get(..PREVIEW_HEAD).unwrap_or_default();
    let head = head
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(head, |end| head.get(..=end).unwrap_or(head));
    let tail = bytes.get(bytes.len() - PREVIEW_TAIL..).unwrap_or_default();
    let tail = match tail.iter().position(|&byte| byte == b'\n') {
        Some(feed) if feed + 1 < tail.len() => tail.get(feed + 1..).unwrap_or(tail),
        _ => tail,
    };
    (whole_characters(head), whole_characters(tail))
}

/// Decodes after dropping the halves of characters that the cut left at either end.
fn whole_characters(mut bytes: &[u8]) -> String {
    while let [first, rest @ ..] = bytes
        && (0x80..0xC0).contains(first)
    {
        bytes = rest;
    }
    let end = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    };
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

impl Payload {
    /// Wraps text that is known to be short, such as one that this program wrote; longer text loses its end with a mark.
    #[must_use]
    pub fn short(text: &str) -> Self {
        Self::Inline(clip(text, INLINE_STRING))
    }

    /// Returns what can be shown without the artifact store: all of it, or head, omission mark and tail.
    #[must_use]
    pub fn preview(&self) -> String {
        match self {
            Self::Inline(text) => text.clone(),
            Self::Ref(reference) if reference.omitted == 0 => format!("{}{}", reference.head, reference.tail),
            Self::Ref(reference) => {
                format!(
                    "{}\n[{} bytes omitted]\n{}",
                    reference.head.trim_end(),
                    reference.omitted,
                    reference.tail
                )
            }
        }
    }

    /// Returns the reference, if the text is in the artifact store.
    #[must_use]
    pub fn reference(&self) -> Option<&ArtifactRef> {
        match self {
            Self::Inline(_) => None,
            Self::Ref(reference) => Some(reference),
        }
    }

    /// Returns the length of the whole text in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Inline(text) => text.len() as u64,
            Self::Ref(reference) => reference.bytes,
        }
    }

    /// Tells whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Cuts `text` to at most `max` bytes at a character, saying how much went.
#[must_use]
pub fn clip(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let room = max.saturating_sub(40);
    let mut end = room;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let kept = text.get(..end).unwrap_or_default();
    format!("{kept} [{} bytes omitted]", text.len() - kept.len())
}

/// Shortens arguments where they are shown a second time: strings above 256 bytes are cut, lists after 64 items.
#[must_use]
pub fn brief(args: &Value) -> Value {
    match args {
        Value::String(text) => Value::String(clip(text, 256)),
        Value::Array(items) => Value::Array(items.iter().take(64).map(brief).collect()),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, value)| (key.clone(), brief(value)))
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => args.clone(),
    }
}

/// Returns how many bytes `text` takes in a record: quotes and control characters take more there than in the text.
#[must_use]
pub fn encoded_len(text: &str) -> usize {
    let extra = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..0x20 => 5,
        _ => 0,
    });
    text.len() + 2 + extra.sum::<usize>()
}

impl Serialize for Payload {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Inline(text) => serializer.serialize_str(text),
            Self::Ref(reference) => reference.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shape;

        impl<'de> serde::de::Visitor<'de> for Shape {
            type Value = Payload;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string or an artifact reference")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Payload, E> {
                Ok(Payload::Inline(text.to_owned()))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Payload, A::Error> {
                let reference = ArtifactRef::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(Payload::Ref(Box::new(reference)))
            }
        }

        deserializer.deserialize_any(Shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_reads_back_as_it_was_written() {
        let long = "line of text\n".repeat(1000);
        for payload in [
            Payload::short(""),
            Payload::short("x"),
            Payload::Ref(Box::new(ArtifactRef::describe(long.as_bytes(), "text/plain"))),
        ] {
            let json = serde_json::to_string(&payload).unwrap();
            assert_eq!(serde_json::from_str::<Payload>(&json).unwrap(), payload);
        }
    }

    #[test]
    fn the_encoded_length_is_what_serde_writes() {
        let all: String = (0..=0x11f).filter_map(char::from_u32).collect();
        for text in ["", "plain", "\u{7f}\u{85}\u{2028}😀", &all] {
            assert_eq!(encoded_len(text), serde_json::to_string(text).unwrap().len());
        }
    }

    #[test]
    fn a_preview_cuts_at_lines_and_counts_what_it_leaves_out() {
        let text = "äöü line\n".repeat(2000);
        let reference = ArtifactRef::describe(text.as_bytes(), "text/plain");
        assert_eq!(reference.lines, 2000);
        assert_eq!(
            reference.omitted,
            reference.bytes - (reference.head.len() + reference.tail.len()) as u64
        );
        assert!(reference.head.ends_with('\n') && reference.tail.starts_with('ä'));
        let one_line = "ä".repeat(5000);
        let reference = ArtifactRef::describe(one_line.as_bytes(), "text/plain");
        assert!(!reference.head.contains('\u{fffd}') && !reference.tail.contains('\u{fffd}'));
    }
}
