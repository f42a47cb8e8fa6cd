//! Recorded text on a terminal: how wide it is, how it is cut, and what must not be printed as it is.
//!
//! The width table covers what Unicode's East Asian Width calls wide or fullwidth; ambiguous characters count one column.
//! A character that this table does not know counts one column too: that can misalign a row, never overflow it, because the
//! characters that terminals draw wider than one column are the ones listed.

use serde::{Deserialize, Serialize};

/// How many columns a line may fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Width(usize);

impl Width {
    /// The narrowest width that every layout still fits into.
    pub const MIN: usize = 40;

    /// Takes a number of columns, raising it to [`Self::MIN`].
    #[must_use]
    pub const fn new(columns: usize) -> Self {
        if columns < Self::MIN {
            Self(Self::MIN)
        } else {
            Self(columns)
        }
    }

    /// Returns the number of columns.
    #[must_use]
    pub const fn columns(self) -> usize {
        self.0
    }

    /// Returns what is left beside `used` columns, at least one.
    pub(crate) const fn beside(self, used: usize) -> usize {
        if self.0 > used { self.0 - used } else { 1 }
    }
}

impl Default for Width {
    /// 100 columns: what is assumed where nobody says how wide the terminal is.
    fn default() -> Self {
        Self(100)
    }
}

/// What stands where text was cut off.
const CUT: char = '…';
/// How many zero-width marks may sit on one character; more are shown by number, or a line could grow without widening.
const MARKS: usize = 2;

/// What a character of recorded text becomes.
enum Glyph {
    /// Itself, so many columns wide.
    Plain(char, usize),
    /// Its number, because a terminal would obey it or show nothing.
    Numbered(char),
    /// A space: line feeds, tabs and runs of spaces.
    Space,
}

impl Glyph {
    fn width(&self) -> usize {
        match self {
            Self::Plain(_, width) => *width,
            // `‹U+`, at least four digits, `›`.
            Self::Numbered(c) => 4 + 4.max(digits(*c)),
            Self::Space => 1,
        }
    }

    fn push_to(&self, text: &mut String) {
        match self {
            Self::Plain(c, _) => text.push(*c),
            Self::Numbered(c) => text.push_str(&numbered(*c)),
            Self::Space => text.push(' '),
        }
    }
}

fn numbered(c: char) -> String {
    format!("‹U+{:04X}›", u32::from(c))
}

/// Counts the hexadecimal digits of a character's number.
fn digits(c: char) -> usize {
    match u32::from(c) {
        0..=0xFFFF => 4,
        0x1_0000..=0xF_FFFF => 5,
        _ => 6,
    }
}

/// Reads text glyph by glyph, without leading space and with runs of white space as one.
fn glyphs(text: &str) -> impl Iterator<Item = Glyph> + '_ {
    let mut marks = 0;
    let mut after_space = true;
    text.chars().filter_map(move |c| {
        if matches!(c, ' ' | '\n' | '\r' | '\t') {
            marks = 0;
            let first = !after_space;
            after_space = true;
            return first.then_some(Glyph::Space);
        }
        let alone = after_space;
        after_space = false;
        if is_hidden(c) {
            marks = 0;
            return Some(Glyph::Numbered(c));
        }
        let width = char_width(c);
        if width > 0 {
            marks = 0;
            return Some(Glyph::Plain(c, width));
        }
        marks += 1;
        Some(if alone || marks > MARKS {
            Glyph::Numbered(c)
        } else {
            Glyph::Plain(c, 0)
        })
    })
}

/// Tells whether a terminal obeys the character, or shows nothing for it: controls, bidirectional and zero-width characters.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            u32::from(c),
            0xAD | 0x34F
                | 0x61C
                | 0x115F
                | 0x1160
                | 0x17B4
                | 0x17B5
                | 0x180B..=0x180F
                | 0x200B..=0x200F
                | 0x2028..=0x202E
                | 0x2060..=0x206F
                | 0x3164
                | 0xFE00..=0xFE0E
                | 0xFEFF
                | 0xFFA0
                | 0xFFF9..=0xFFFB
                | 0x1D173..=0x1D17A
                | 0xE0000..=0xE0FFF
        )
}

/// Combining marks of the scripts that source code meets; of others, marks count one column each.
const MARK_RANGES: [(u32, u32); 13] = [
    (0x300, 0x36F),
    (0x483, 0x489),
    (0x591, 0x5BD),
    (0x610, 0x61A),
    (0x64B, 0x65F),
    (0xE31, 0xE31),
    (0xE34, 0xE3A),
    (0xE47, 0xE4E),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF),
    (0x3099, 0x309A),
    (0xFE20, 0xFE2F),
];

/// Wide and fullwidth characters, in order (Unicode, EastAsianWidth).
const WIDE_RANGES: [(u32, u32); 79] = [
    (0x1100, 0x115F),
    (0x231A, 0x231B),
    (0x2329, 0x232A),
    (0x23E9, 0x23EC),
    (0x23F0, 0x23F0),
    (0x23F3, 0x23F3),
    (0x25FD, 0x25FE),
    (0x2614, 0x2615),
    (0x2630, 0x2637),
    (0x2648, 0x2653),
    (0x267F, 0x267F),
    (0x268A, 0x268F),
    (0x2693, 0x2693),
    (0x26A1, 0x26A1),
    (0x26AA, 0x26AB),
    (0x26BD, 0x26BE),
    (0x26C4, 0x26C5),
    (0x26CE, 0x26CE),
    (0x26D4, 0x26D4),
    (0x26EA, 0x26EA),
    (0x26F2, 0x26F3),
    (0x26F5, 0x26F5),
    (0x26FA, 0x26FA),
    (0x26FD, 0x26FD),
    (0x2705, 0x2705),
    (0x270A, 0x270B),
    (0x2728, 0x2728),
    (0x274C, 0x274C),
    (0x274E, 0x274E),
    (0x2753, 0x2755),
    (0x2757, 0x2757),
    (0x2795, 0x2797),
    (0x27B0, 0x27B0),
    (0x27BF, 0x27BF),
    (0x2B1B, 0x2B1C),
    (0x2B50, 0x2B50),
    (0x2B55, 0x2B55),
    (0x2E80, 0x303E),
    (0x3041, 0xA4CF),
    (0xA960, 0xA97F),
    (0xAC00, 0xD7A3),
    (0xF900, 0xFAFF),
    (0xFE10, 0xFE19),
    (0xFE30, 0xFE6F),
    (0xFF01, 0xFF60),
    (0xFFE0, 0xFFE6),
    (0x16FE0, 0x18DFF),
    (0x1AFF0, 0x1B2FF),
    (0x1D300, 0x1D376),
    (0x1F004, 0x1F004),
    (0x1F0CF, 0x1F0CF),
    (0x1F18E, 0x1F18E),
    (0x1F191, 0x1F19A),
    (0x1F200, 0x1F320),
    (0x1F32D, 0x1F335),
    (0x1F337, 0x1F37C),
    (0x1F37E, 0x1F393),
    (0x1F3A0, 0x1F3CA),
    (0x1F3CF, 0x1F3D3),
    (0x1F3E0, 0x1F3F0),
    (0x1F3F4, 0x1F3F4),
    (0x1F3F8, 0x1F43E),
    (0x1F440, 0x1F440),
    (0x1F442, 0x1F4FC),
    (0x1F4FF, 0x1F53D),
    (0x1F54B, 0x1F54E),
    (0x1F550, 0x1F567),
    (0x1F57A, 0x1F57A),
    (0x1F595, 0x1F596),
    (0x1F5A4, 0x1F5A4),
    (0x1F5FB, 0x1F64F),
    (0x1F680, 0x1F6C5),
    (0x1F6CC, 0x1F6CC),
    (0x1F6D0, 0x1F6D2),
    (0x1F6D5, 0x1F6DF),
    (0x1F6EB, 0x1F6FC),
    (0x1F7E0, 0x1F7F0),
    (0x1F90C, 0x1FAFF),
    (0x20000, 0x3FFFD),
];

/// Returns how many columns a terminal gives a character: 0, 1 or 2.
fn char_width(c: char) -> usize {
    let number = u32::from(c);
    if number < 0x300 {
        return 1;
    }
    if lies_in(&MARK_RANGES, number) {
        return 0;
    }
    if lies_in(&WIDE_RANGES, number) { 2 } else { 1 }
}

fn lies_in(ranges: &[(u32, u32)], number: u32) -> bool {
    ranges
        .binary_search_by(|(first, last)| {
            if *last < number {
                std::cmp::Ordering::Less
            } else if *first > number {
                std::cmp::Ordering::Greater
            } else {
                std::cmp::Ordering::Equal
            }
        })
        .is_ok()
}

/// Returns how many columns a line takes that this module made.
#[must_use]
pub fn width_of(line: &str) -> usize {
    line.chars().map(char_width).sum()
}

/// Puts text on one line of at most `columns` columns; what does not fit is replaced by `…`.
#[must_use]
pub fn one_line(text: &str, columns: usize) -> String {
    let mut line = String::new();
    let mut used = 0;
    // Up to here the line would still have room for the mark; remembered so that the text is read once.
    let mut fits = 0;
    for glyph in glyphs(text) {
        used += glyph.width();
        if used > columns {
            line.truncate(fits);
            line.truncate(line.trim_end().len());
            if columns > 0 {
                line.push(CUT);
            }
            return line;
        }
        glyph.push_to(&mut line);
        if used < columns {
            fits = line.len();
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// Puts text on one line of exactly `columns` columns.
#[must_use]
pub fn cell(text: &str, columns: usize) -> String {
    let mut line = one_line(text, columns);
    let missing = columns.saturating_sub(width_of(&line));
    line.extend(std::iter::repeat_n(' ', missing));
    line
}

/// Breaks text into at most `lines` lines of at most `columns` columns, at spaces where it can; the last line is cut.
#[must_use]
pub fn wrap(text: &str, columns: usize, lines: usize) -> Vec<String> {
    let mut done: Vec<String> = Vec::new();
    let mut rest = text;
    while done.len() + 1 < lines {
        let (line, after) = break_line(rest, columns);
        match after {
            Some(after) => {
                done.push(line);
                rest = after;
            }
            None => {
                done.push(line);
                return done;
            }
        }
    }
    done.push(one_line(rest, columns));
    done
}

/// Takes the longest beginning that fits; returns what follows, if anything does.
fn break_line(text: &str, columns: usize) -> (String, Option<&str>) {
    let text = text.trim_start();
    let mut end = 0;
    let mut last_space = None;
    let mut used = 0;
    for (at, c) in text.char_indices() {
        let after = at + c.len_utf8();
        // The prefix is measured anew at each break only; here glyphs are counted one by one, so runs of spaces count in full,
        // which breaks a little early and never late.
        let width = match glyphs(text.get(at..after).unwrap_or_default()).next() {
            Some(glyph) => glyph.width(),
            None => 1,
        };
        if used + width > columns && used > 0 {
            let (end, start) = last_space.unwrap_or((end, end));
            let line = one_line(text.get(..end).unwrap_or_default(), columns);
            let rest = text.get(start..).unwrap_or_default();
            return (line, (!rest.trim().is_empty()).then_some(rest));
        }
        used += width;
        end = after;
        if c == ' ' || c == '\n' {
            last_space = Some((at, after));
        }
    }
    (one_line(text, columns), None)
}

/// Sets `text` beside `label`: wrapped, the further lines indented to the column where the text begins.
pub(crate) fn beside(label: &str, indent: usize, text: &str, width: Width, lines: usize) -> String {
    let mut block = String::new();
    for (place, line) in wrap(text, width.beside(indent), lines).iter().enumerate() {
        let start = if place == 0 {
            cell(label, indent)
        } else {
            cell("", indent)
        };
        let whole = format!("{start}{line}");
        block.push_str(whole.trim_end());
        block.push('\n');
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_by_number() {
        for (text, wanted) in [
            ("plain", "plain"),
            ("\u{1b}[2J", "‹U+001B›[2J"),
            ("a\u{202e}b", "a‹U+202E›b"),
            ("a\u{200b}b\u{9b}31m", "a‹U+200B›b‹U+009B›31m"),
            ("\u{e0041}", "‹U+E0041›"),
            ("two\n  lines\tand\r\nmore ", "two lines and more"),
            ("e\u{301}", "e\u{301}"),
            ("e\u{301}\u{301}\u{301}", "e\u{301}\u{301}‹U+0301›"),
        ] {
            assert_eq!(one_line(text, 80), wanted);
        }
    }

    #[test]
    fn lines_are_cut_by_columns_not_by_characters() {
        for (text, columns, wanted) in [
            ("abcdef", 6, "abcdef"),
            ("abcdef", 5, "abcd…"),
            ("修复测试", 8, "修复测试"),
            ("修复测试", 7, "修复测…"),
            ("修复测试", 6, "修复…"),
            ("a b c", 3, "a…"),
            ("\u{1b}\u{1b}", 10, "‹U+001B›…"),
            ("abc", 0, ""),
            ("", 5, ""),
        ] {
            assert_eq!(one_line(text, columns), wanted);
        }
        assert_eq!(width_of("修复 x…"), 7);
        assert_eq!(cell("修复", 6), "修复  ");
    }

    #[test]
    fn wrapped_text_breaks_at_spaces_and_stays_within_its_lines() {
        assert_eq!(wrap("one two three four", 9, 3), ["one two", "three", "four"]);
        assert_eq!(wrap("one two three four", 9, 2), ["one two", "three fo…"]);
        assert_eq!(
            wrap("修复失败测试，让它通过", 8, 5),
            ["修复失败", "测试，让", "它通过"]
        );
        assert_eq!(wrap("", 8, 3), [""]);
    }

    #[test]
    fn the_tables_are_in_order() {
        for ranges in [&WIDE_RANGES[..], &MARK_RANGES[..]] {
            assert!(ranges.iter().all(|(first, last)| first <= last));
            assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_leaves_its_columns(text in "\\PC{0,40}|.{0,40}|[a\\u{1b}\\u{301}修 \n]{0,60}", columns in 1..60_usize) {
            let line = one_line(&text, columns);
            proptest::prop_assert!(width_of(&line) <= columns);
            proptest::prop_assert!(!line.chars().any(is_hidden));
            for line in wrap(&text, columns, 3) {
                proptest::prop_assert!(width_of(&line) <= columns, "{line:?}");
            }
        }
    }
}
