//! What the rules look at: the input without terminal colours and escapes, with the way back to the original offsets.
//!
//! A colour change in the middle of a token (as `grep` makes) must not hide it, and a placeholder from an earlier pass must be
//! opaque. So the rules read a view in which control sequences are gone and each placeholder is one NUL, a byte that belongs to
//! no token. OSC payloads (hyperlinks, titles) stay in: they carry URLs with tokens. Their ESC bytes stay too, as boundaries.

use memchr::{memchr, memmem};
use std::borrow::Cow;
use std::sync::LazyLock;

/// One stretch of the view and where it comes from.
#[derive(Debug, Clone, Copy)]
struct Piece {
    view: usize,
    start: usize,
    end: usize,
    /// Several original bytes stand behind one byte of the view.
    folded: bool,
}

/// The bytes that rules see, and the map from their offsets to those of the original.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    pieces: Vec<Piece>,
    /// The original is UTF-16: a NUL beside each ASCII byte.
    pub(super) wide: Wide,
    /// An escape was decoded: this is another text than [`Reading::Plain`] shows.
    pub(super) decoded: bool,
    /// Bytes of the original.
    length: usize,
}

/// How many bytes a character of the original has, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wide {
    No,
    Little,
    Big,
}

/// How the original is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Bytes as they are.
    Plain,
    /// `\u00XX` decoded to the ASCII character that it means in JSON and many languages.
    Unescaped,
}

impl<'a> View<'a> {
    /// Reads `original`; `is_rule` decides which ids make a bracketed text a placeholder.
    pub(super) fn new(original: &'a [u8], reading: Reading, is_rule: fn(&[u8]) -> bool) -> Self {
        let wide = wide(original);
        if wide != Wide::No {
            // The narrowed text can itself hold colours and placeholders: it is read like any other.
            let narrow = narrowed(original, wide);
            let view = View::narrow(&narrow, reading, is_rule);
            return View {
                bytes: Cow::Owned(view.bytes.into_owned()),
                pieces: view.pieces,
                wide,
                decoded: view.decoded,
                length: original.len(),
            };
        }
        Self::narrow(original, reading, is_rule)
    }

    fn narrow(original: &'a [u8], reading: Reading, is_rule: fn(&[u8]) -> bool) -> Self {
        let mut specials = Specials::new(original, reading);
        Self::narrow_at(original, is_rule, |from| specials.next(from))
    }

    /// Reads `original`, of which only the places that `next` names can be special.
    fn narrow_at(
        original: &'a [u8],
        is_rule: fn(&[u8]) -> bool,
        mut next: impl FnMut(usize) -> Option<usize>,
    ) -> Self {
        let mut view = View {
            bytes: Cow::Borrowed(original),
            pieces: Vec::new(),
            wide: Wide::No,
            decoded: false,
            length: original.len(),
        };
        let mut out: Vec<u8> = Vec::new();
        let mut copied = 0;
        let mut at = 0;
        while let Some(special) = next(at) {
            at = special;
            let rest = original.get(at..).unwrap_or_default();
            let (length, stands_for) = match rest.first() {
                Some(0x1b) => (control_sequence(rest), None),
                Some(b'[') => (placeholder(rest, is_rule), Some(0)),
                _ => unescaped(rest),
            };
            let is_escape = rest.first() == Some(&b'\\');
            // A decoded ESC begins a control sequence exactly like a plain one.
            let (length, stands_for) = match stands_for {
                Some(0x1b) => {
                    let tail = rest.get(length..).unwrap_or_default();
                    let sequence = [&[0x1b], tail.get(..tail.len().min(64)).unwrap_or_default()].concat();
                    match control_sequence(&sequence) {
                        0 => (length, Some(0x1b)),
                        whole => (length + whole - 1, None),
                    }
                }
                other => (length, other),
            };
            if length == 0 {
                at += 1;
                continue;
            }
            view.decoded |= is_escape;
            view.copy(original, copied, at, &mut out);
            if let Some(byte) = stands_for {
                view.pieces.push(Piece {
                    view: out.len(),
                    start: at,
                    end: at + length,
                    folded: true,
                });
                out.push(byte);
            }
            at += length;
            copied = at;
        }
        if copied > 0 {
            view.copy(original, copied, original.len(), &mut out);
            view.bytes = Cow::Owned(out);
        } else {
            view.pieces.push(Piece {
                view: 0,
                start: 0,
                end: original.len(),
                folded: false,
            });
        }
        view
    }

    fn copy(&mut self, original: &[u8], start: usize, end: usize, out: &mut Vec<u8>) {
        if start < end {
            self.pieces.push(Piece {
                view: out.len(),
                start,
                end,
                folded: false,
            });
            out.extend_from_slice(original.get(start..end).unwrap_or_default());
        }
    }

    fn piece(&self, offset: usize) -> Option<(usize, &Piece)> {
        let index = self
            .pieces
            .partition_point(|piece| piece.view <= offset)
            .checked_sub(1)?;
        self.pieces.get(index).map(|piece| (index, piece))
    }

    /// Returns the original range behind the range `start..end` of the view, or nothing if there is none.
    pub(super) fn original(&self, start: usize, end: usize) -> Option<(usize, usize)> {
        let (_, first) = self.piece(start)?;
        let from = if first.folded {
            first.start
        } else {
            first.start + (start - first.view)
        };
        let last = end.checked_sub(1)?;
        let (_, piece) = self.piece(last)?;
        let to = if piece.folded {
            piece.end
        } else {
            piece.start + (last - piece.view) + 1
        };
        // Pieces of UTF-16 count characters. The last one may be half a one.
        let unit = if self.wide == Wide::No { 1 } else { 2 };
        let (from, to) = (from * unit, self.length.min(to * unit));
        (from < to).then_some((from, to))
    }

    /// Says whether something that is not in the view (a colour) stood just before this byte.
    pub(super) fn gap_before(&self, offset: usize) -> bool {
        let Some((index, piece)) = self.piece(offset) else {
            return false;
        };
        if piece.view != offset {
            return false;
        }
        index
            .checked_sub(1)
            .and_then(|before| self.pieces.get(before))
            .is_some_and(|before| before.end != piece.start)
    }
}

static PLACEHOLDER: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new("[REDACTED:"));
static ESCAPE: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new("\\u00"));

/// Says whether [`Reading::Unescaped`] may show another text than [`Reading::Plain`].
pub(super) fn has_escape(original: &[u8]) -> bool {
    ESCAPE.find(original).is_some()
}

/// The places of a text that a view may have to change: where a control sequence, a placeholder or an escape begins.
struct Specials<'a> {
    text: &'a [u8],
    /// The next place of each kind; nothing if there is none.
    control: Option<usize>,
    placeholder: Option<usize>,
    escape: Option<usize>,
}

impl<'a> Specials<'a> {
    fn new(text: &'a [u8], reading: Reading) -> Self {
        Self {
            text,
            control: memchr(0x1b, text),
            placeholder: PLACEHOLDER.find(text),
            escape: match reading {
                Reading::Plain => None,
                Reading::Unescaped => ESCAPE.find(text),
            },
        }
    }

    /// Returns the first place that is not before `from`, which never goes back.
    fn next(&mut self, from: usize) -> Option<usize> {
        let rest = self.text.get(from..)?;
        let later = |place: &mut Option<usize>, find: &dyn Fn() -> Option<usize>| {
            if place.is_some_and(|place| place < from) {
                *place = find().map(|step| from + step);
            }
            *place
        };
        [
            later(&mut self.control, &|| memchr(0x1b, rest)),
            later(&mut self.placeholder, &|| PLACEHOLDER.find(rest)),
            later(&mut self.escape, &|| ESCAPE.find(rest)),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}

/// Reads UTF-16 as one byte for each character.
fn narrowed(original: &[u8], wide: Wide) -> Vec<u8> {
    original
        .chunks(2)
        .map(|pair| {
            let (byte, high) = match (wide, pair) {
                (Wide::Big, [high, low]) => (*low, *high),
                (Wide::Little | Wide::No, [low, high]) => (*low, *high),
                _ => (0xff, 0xff),
            };
            // What is not ASCII becomes a byte that belongs to no token.
            if high == 0 { byte } else { 0xff }
        })
        .collect()
}

/// A text is taken for UTF-16 if nearly every second byte of its beginning is NUL.
fn wide(original: &[u8]) -> Wide {
    let sample = original.get(..original.len().min(256)).unwrap_or_default();
    if original.len() < 16 || !sample.contains(&0) {
        return Wide::No;
    }
    let (even, odd) = sample
        .chunks_exact(2)
        .fold((0, 0), |(even, odd), pair| match pair {
            [0, 0] => (even, odd),
            [0, _] => (even + 1, odd),
            [_, 0] => (even, odd + 1),
            _ => (even, odd),
        });
    let most = sample.len() / 2 * 3 / 4;
    if odd >= most {
        Wide::Little
    } else if even >= most {
        Wide::Big
    } else {
        Wide::No
    }
}

/// Length of a control sequence that only changes how text looks or where it stands; 0 if there is none.
fn control_sequence(rest: &[u8]) -> usize {
    let body = rest.get(1..rest.len().min(64)).unwrap_or_default();
    match body.first() {
        Some(b'[') => {
            let after = body.get(1..).unwrap_or_default();
            let parameters = after
                .iter()
                .take_while(|byte| (0x20..=0x3f).contains(*byte))
                .count();
            match after.get(parameters) {
                Some(0x40..=0x7e) => parameters + 3,
                _ => 0,
            }
        }
        // Character set selection, as `tput sgr0` prints.
        Some(b'(' | b')') if body.get(1).is_some_and(u8::is_ascii_alphanumeric) => 3,
        _ => 0,
    }
}

/// Length of a placeholder of ours at the beginning of `rest`; 0 if there is none.
///
/// The ids come from the rule table: a made-up id in brackets is ordinary text, so nothing can hide in a forged placeholder.
pub(super) fn placeholder(rest: &[u8], is_rule: fn(&[u8]) -> bool) -> usize {
    let Some(body) = rest.strip_prefix(b"[REDACTED:") else {
        return 0;
    };
    let body = body.get(..body.len().min(64)).unwrap_or_default();
    let Some(colon) = body.iter().position(|byte| *byte == b':') else {
        return 0;
    };
    let Some((id, tail)) = body.split_at_checked(colon) else {
        return 0;
    };
    let tag = tail.get(1..7).unwrap_or_default();
    let hex = tag.len() == 6 && tag.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if hex && tail.get(7) == Some(&b']') && is_rule(id) {
        10 + colon + 8
    } else {
        0
    }
}

/// Length and meaning of a `\u00XX` at the beginning of `rest`.
fn unescaped(rest: &[u8]) -> (usize, Option<u8>) {
    let digits = rest.strip_prefix(b"\\u00").and_then(|tail| tail.get(..2));
    let Some([high, low]) = digits else {
        return (0, None);
    };
    let value = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    match (value(*high), value(*low)) {
        (Some(high), Some(low)) if high < 8 => (6, Some(high * 16 + low)),
        _ => (0, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(original: &[u8], reading: Reading, wanted: &[u8]) {
        let view = View::new(original, reading, |id| id == b"jwt");
        assert_eq!(view.bytes.as_ref(), wanted, "{original:?}");
    }

    #[test]
    fn a_view_drops_colours_keeps_links_and_folds_placeholders() {
        check(b"a\x1b[01;31m\x1b[Kb\x1b[m\x1b(Bc", Reading::Plain, b"abc");
        check(
            b"\x1b]8;;http://x\x1b\\l",
            Reading::Plain,
            b"\x1b]8;;http://x\x1b\\l",
        );
        check(b"x[REDACTED:jwt:0a1b2c]y", Reading::Plain, b"x\0y");
        check(
            b"x[REDACTED:nope:0a1b2c]y",
            Reading::Plain,
            b"x[REDACTED:nope:0a1b2c]y",
        );
        check(
            b"x[REDACTED:jwt:0A1b2c]y",
            Reading::Plain,
            b"x[REDACTED:jwt:0A1b2c]y",
        );
        check(b"a\\u005fb\\u001b[1mc\\u00e9", Reading::Unescaped, b"a_bc\\u00e9");
        check(b"a\\u005fb", Reading::Plain, b"a\\u005fb");
        check(b"g\0h\0p\0_\0a\0\x1b\0[\x000\0m\0b\0", Reading::Plain, b"ghp_ab");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn looking_only_at_special_places_shows_the_same_as_looking_at_every_byte(
            parts in prop::collection::vec(prop::sample::select(vec![
                "a", "\x1b", "[", "31m", "(B", "[REDACTED:", "jwt:", "nope:", "0a1b2c", "]", "\\", "u00", "\\u00", "5f", "1b", "e9", "é", "\0",
            ]), 0..24),
        ) {
            let text = parts.concat();
            let original = text.as_bytes();
            for reading in [Reading::Plain, Reading::Unescaped] {
                let special = |byte: &u8| matches!(byte, 0x1b | b'[') || (*byte == b'\\' && reading == Reading::Unescaped);
                let every = View::narrow_at(original, |id| id == b"jwt", |from| {
                    original.get(from..)?.iter().position(special).map(|step| from + step)
                });
                let fast = View::narrow(original, reading, |id| id == b"jwt");
                prop_assert_eq!(format!("{fast:?}"), format!("{every:?}"));
                prop_assert!(fast.decoded || fast.bytes == View::narrow(original, Reading::Plain, |id| id == b"jwt").bytes);
            }
        }
    }

    #[test]
    fn offsets_lead_back_to_the_original() {
        let original = b"ab\x1b[1mcd[REDACTED:jwt:0a1b2c]ef";
        let view = View::new(original, Reading::Plain, |id| id == b"jwt");
        assert_eq!(view.bytes.as_ref(), b"abcd\0ef");
        assert_eq!(view.original(1, 3), Some((1, 7)));
        assert_eq!(view.original(4, 5), Some((8, 29)));
        assert_eq!(view.original(5, 7), Some((29, 31)));
        assert_eq!(view.original(0, 0), None);
        assert!(view.gap_before(2) && !view.gap_before(3) && !view.gap_before(1));
        // The same in UTF-16, with half a character at the end.
        let wide: Vec<u8> = original
            .iter()
            .flat_map(|byte| [*byte, 0])
            .chain([b'g'])
            .collect();
        let view = View::new(&wide, Reading::Plain, |id| id == b"jwt");
        assert_eq!(view.bytes.as_ref(), b"abcd\0ef\xff");
        assert_eq!(view.original(1, 3), Some((2, 14)));
        assert_eq!(view.original(4, 5), Some((16, 58)));
        assert_eq!(view.original(5, 8), Some((58, 63)));
        assert!(view.gap_before(2) && !view.gap_before(3) && !view.gap_before(1));
    }
}
