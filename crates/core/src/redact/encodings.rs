//! The spellings in which one secret travels: JSON, percent, hex, base64, shell and HTML.
//!
//! Written here and not taken from a crate because the redactor needs unusual cuts of them: base64 at three alignments without
//! the characters that depend on the neighbours, and escapes in the dialects that differ between languages.

/// Escapes as the inside of a JSON string. `ascii` spells other characters as `\uXXXX`, `slash` spells `/` as `\/`.
pub(super) fn json(text: &str, ascii: bool, slash: bool) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '/' if slash => out.push_str("\\/"),
            _ if character < ' ' || (ascii && !character.is_ascii()) => {
                let mut units = [0_u16; 2];
                for unit in character.encode_utf16(&mut units) {
                    out.push_str("\\u");
                    push_hex(&mut out, &unit.to_be_bytes(), false);
                }
            }
            _ => out.push(character),
        }
    }
    out
}

/// Percent-encodes everything but letters, digits, `-_.~` and the bytes in `kept`.
pub(super) fn percent(bytes: &[u8], kept: &[u8], upper: bool, plus_for_space: bool) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(byte) || kept.contains(byte) {
            out.push(char::from(*byte));
        } else if *byte == b' ' && plus_for_space {
            out.push('+');
        } else {
            out.push('%');
            push_hex(&mut out, std::slice::from_ref(byte), upper);
        }
    }
    out
}

/// Spells bytes as hex digits.
pub(super) fn hex(bytes: &[u8], upper: bool) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    push_hex(&mut out, bytes, upper);
    out
}

fn push_hex(out: &mut String, bytes: &[u8], upper: bool) {
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            let character = char::from_digit(u32::from(digit), 16).unwrap_or('0');
            out.push(if upper {
                character.to_ascii_uppercase()
            } else {
                character
            });
        }
    }
}

/// The two base64 alphabets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// `+` and `/`.
    Standard,
    /// `-` and `_`.
    Url,
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Encodes without padding.
pub(super) fn base64(bytes: &[u8], alphabet: Alphabet) -> String {
    let table = match alphabet {
        Alphabet::Standard => STANDARD,
        Alphabet::Url => URL,
    };
    let mut out = String::with_capacity(bytes.len() * 4 / 3 + 4);
    for chunk in bytes.chunks(3) {
        let word = chunk
            .iter()
            .fold(0_u32, |word, byte| (word << 8) | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            let index = (word >> (18 - 6 * place)) & 63;
            let byte = usize::try_from(index).ok().and_then(|index| table.get(index));
            out.push(byte.map_or('A', |byte| char::from(*byte)));
        }
    }
    out
}

/// Encodes `bytes` as they look inside a longer base64 text, `before` bytes after a multiple of three: only the characters
/// that no neighbour can change.
pub(super) fn base64_inside(bytes: &[u8], before: usize, alphabet: Alphabet) -> String {
    let mut padded = vec![0; before];
    padded.extend_from_slice(bytes);
    let first = (8 * before).div_ceil(6);
    let last = 8 * padded.len() / 6;
    base64(&padded, alphabet)
        .get(first..last)
        .unwrap_or_default()
        .to_owned()
}

/// Decodes either alphabet up to the first byte that belongs to neither.
pub(super) fn base64_decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut word, mut bits) = (0_u32, 0_u32);
    for byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => break,
        };
        word = (word << 6) | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push(u8::try_from((word >> bits) & 255).unwrap_or_default());
        }
    }
    out
}

/// Spells a text inside single quotes of a POSIX shell.
pub(super) fn shell(text: &str) -> String {
    text.replace('\'', "'\\''")
}

/// Escapes for HTML, with `apostrophe` as the spelling of `'`.
pub(super) fn html(text: &str, apostrophe: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', apostrophe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_round_trips_and_its_inner_part_is_found_at_every_alignment() {
        let secret = b"s3cr3t-v\xffalue!";
        for alphabet in [Alphabet::Standard, Alphabet::Url] {
            assert_eq!(base64_decode(base64(secret, alphabet).as_bytes()), secret);
            for before in 0..6 {
                for after in 0..4 {
                    let mut whole = vec![b'x'; before];
                    whole.extend_from_slice(secret);
                    whole.extend(vec![b'y'; after]);
                    let inner = base64_inside(secret, before % 3, alphabet);
                    assert!(base64(&whole, alphabet).contains(&inner), "{before} {after}");
                }
            }
        }
    }

    #[test]
    fn spellings_are_those_of_their_languages() {
        let rows = [
            (json("a\"\\/\n\u{1}é", false, false), "a\\\"\\\\/\\n\\u0001é"),
            (json("é/😀", true, true), "\\u00e9\\/\\ud83d\\ude00"),
            (percent(b"a b+/!", b"", true, false), "a%20b%2B%2F%21"),
            (percent(b"a b+/!", b"/!", false, true), "a+b%2b/!"),
            (hex(b"\x0aZ", true), "0A5A"),
            (shell("it's"), "it'\\''s"),
            (html("<&'>", "&#39;"), "&lt;&amp;&#39;&gt;"),
        ];
        for (found, wanted) in rows {
            assert_eq!(found, wanted);
        }
    }
}
