//! One walk over one view: runs of token bytes, boundaries, and the memory that keeps the walk linear.
//!
//! Rules ask for the end of the run at many places of the same run (`password=password=…`). The answer is the same everywhere in
//! it, so it is remembered; without that a repeated keyword costs quadratic time.

use super::view::View;

/// The bytes that a token can consist of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    /// Letters and digits.
    Alnum,
    /// Letters, digits, `_`, `-`.
    Url,
    /// Letters, digits, `_`, `-`, `.`.
    Dotted,
    /// Standard base64 with padding.
    Base64,
    /// Both base64 alphabets, padding.
    AnyBase64,
    /// Hex digits.
    Hex,
    /// `A`–`Z`, `0`–`9`.
    Upper,
    /// Letters, digits, `_`, `~`, `-`, `.`.
    Tilde,
    /// Letters, digits, `$`, `_`.
    Dollar,
    /// Letters, digits, `.`, `/`, `$`, `=`, `,`, `+`: crypt hashes.
    Crypt,
    /// Path segments of webhook URLs.
    Path,
    /// A percent-encoded query value.
    Query,
    /// Digits.
    Digit,
    /// An unquoted value: everything up to white space, quotes, brackets, `\`, `,`, `;`, `&`.
    Bare,
    /// A value that takes the rest of a word: everything up to white space, quotes, `\`.
    Word,
    /// A cookie's value: like `Word`, up to `;`.
    Cookie,
    /// Inside a URL: no white space, quotes, `\`, `<`, `>`.
    Location,
}

const SETS: usize = Set::Location as usize + 1;

impl Set {
    pub(super) const fn contains(self, byte: u8) -> bool {
        let alnum = byte.is_ascii_alphanumeric();
        let open = byte > b' ' && byte != 0x7f && !matches!(byte, b'"' | b'\'' | b'`' | b'\\');
        match self {
            Self::Alnum => alnum,
            Self::Url => alnum || matches!(byte, b'_' | b'-'),
            Self::Dotted => alnum || matches!(byte, b'_' | b'-' | b'.'),
            Self::Base64 => alnum || matches!(byte, b'+' | b'/' | b'='),
            Self::AnyBase64 => alnum || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-'),
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Tilde => alnum || matches!(byte, b'_' | b'~' | b'-' | b'.'),
            Self::Dollar => alnum || matches!(byte, b'$' | b'_'),
            Self::Crypt => alnum || matches!(byte, b'.' | b'/' | b'$' | b'=' | b',' | b'+'),
            Self::Path => alnum || matches!(byte, b'_' | b'-' | b'/'),
            Self::Query => alnum || matches!(byte, b'%' | b'+' | b'/' | b'=' | b'_' | b'-' | b'.' | b'~'),
            Self::Digit => byte.is_ascii_digit(),
            Self::Bare => {
                open && !matches!(
                    byte,
                    b',' | b';' | b'&' | b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<' | b'>' | b'|'
                )
            }
            Self::Word => open,
            Self::Cookie => open && byte != b';',
            Self::Location => open && !matches!(byte, b'<' | b'>'),
        }
    }
}

/// Quotes that open a value: the character and how many backslashes stand before it (0, 1, 3, 7 for each level of escaping).
const QUOTES: [u8; 3] = [b'"', b'\'', b'`'];
const LEVELS: [usize; 4] = [0, 1, 3, 7];

/// A view with what has been learned about it.
pub(super) struct Scan<'v> {
    pub(super) view: &'v View<'v>,
    pub(super) bytes: &'v [u8],
    /// For each set, the last run that was measured: from, end.
    runs: [(usize, usize); SETS],
    /// For each quote and level, the last search: from, position of the closing quote's backslashes.
    quotes: [[(usize, Option<usize>); LEVELS.len()]; QUOTES.len()],
    /// The last unquoted rest of a line that was measured.
    tail: (usize, usize),
    /// How many bytes were looked at for ends of runs and quotations: what must stay linear.
    #[cfg(test)]
    measured: usize,
}

impl<'v> Scan<'v> {
    pub(super) fn new(view: &'v View<'v>) -> Self {
        Self {
            view,
            bytes: view.bytes.as_ref(),
            runs: [(1, 0); SETS],
            quotes: [[(1, Some(0)); LEVELS.len()]; QUOTES.len()],
            tail: (1, 0),
            #[cfg(test)]
            measured: 0,
        }
    }

    /// Returns the byte at an offset, NUL past the end: NUL belongs to no token.
    pub(super) fn at(&self, offset: usize) -> u8 {
        self.bytes.get(offset).copied().unwrap_or(0)
    }

    /// Returns the byte `back` bytes before an offset, NUL before the beginning.
    pub(super) fn before(&self, offset: usize, back: usize) -> u8 {
        offset.checked_sub(back).map_or(0, |offset| self.at(offset))
    }

    /// Returns a range, empty if it is not inside the view.
    pub(super) fn cut(&self, start: usize, end: usize) -> &'v [u8] {
        self.bytes.get(start..end).unwrap_or_default()
    }

    /// Returns up to `length` bytes from `start`.
    pub(super) fn window(&self, start: usize, length: usize) -> &'v [u8] {
        self.cut(start, self.bytes.len().min(start.saturating_add(length)))
    }

    /// Returns the end of the run of `set` that `from` lies in; `from` itself if its byte is not in the set.
    pub(super) fn run_end(&mut self, set: Set, from: usize) -> usize {
        let Some(memory) = self.runs.get_mut(set as usize) else {
            return from;
        };
        if (memory.0..memory.1).contains(&from) {
            return memory.1;
        }
        let rest = self.bytes.get(from..).unwrap_or_default();
        let end = from + rest.iter().take_while(|byte| set.contains(**byte)).count();
        *memory = (from, end);
        #[cfg(test)]
        {
            self.measured += end - from;
        }
        end
    }

    /// Returns how many bytes of `set` stand before an offset, at most `limit`.
    pub(super) fn run_back(&self, set: Set, offset: usize, limit: usize) -> usize {
        let start = offset.saturating_sub(limit);
        self.cut(start, offset)
            .iter()
            .rev()
            .take_while(|byte| set.contains(**byte))
            .count()
    }

    /// Skips spaces and tabs, at most `limit`.
    pub(super) fn skip_blanks(&self, from: usize, limit: usize) -> usize {
        from + self
            .window(from, limit)
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count()
    }

    /// Returns the end of an unquoted value that owns its line, as in `KEY=value` and YAML: it stops at white space and quotes, and
    /// at punctuation only if nothing of the word follows, so that `pass=a;b&c` stays whole.
    pub(super) fn line_value_end(&mut self, from: usize) -> usize {
        if (self.tail.0..self.tail.1).contains(&from) {
            return self.tail.1;
        }
        let end = self.run_end(Set::Word, from);
        let kept = self
            .cut(from, end)
            .iter()
            .rev()
            .take_while(|byte| matches!(byte, b',' | b';' | b')' | b'&' | b'|'))
            .count();
        let end = end - kept;
        self.tail = (from, end);
        end
    }

    /// Returns where a quoted value ends that was opened by `quote` with `level` backslashes before it: the offset of the first
    /// byte that does not belong to the value, so that the backslashes of the closing quote stay where they are.
    ///
    /// Nothing if the line ends first or the quotation is nested deeper than three levels.
    pub(super) fn quoted_end(&mut self, from: usize, quote: u8, level: usize) -> Option<usize> {
        let row = QUOTES.iter().position(|one| *one == quote)?;
        let column = LEVELS.iter().position(|one| *one == level)?;
        let memory = self.quotes.get_mut(row)?.get_mut(column)?;
        // A search that began before this place and ended after it found what this search would find.
        if memory.0 <= from && memory.1.is_none_or(|end| from <= end) {
            return memory.1;
        }
        let mut backslashes = 0;
        let mut found = None;
        for (index, byte) in self.bytes.get(from..)?.iter().enumerate() {
            match byte {
                b'\\' => backslashes += 1,
                b'\n' | b'\r' => break,
                _ => {
                    // An escaped backslash of the value takes twice as many as the level has.
                    if *byte == quote
                        && (backslashes <= level || (backslashes - level).is_multiple_of(2 * (level + 1)))
                    {
                        found = Some(from + index - backslashes.min(level));
                        break;
                    }
                    backslashes = 0;
                }
            }
        }
        #[cfg(test)]
        {
            self.measured += found.unwrap_or(self.bytes.len()) - from;
        }
        // A quotation that does not close is not remembered: it happens once for each line and level, because a second one of
        // its kind would close the first.
        if found.is_some() {
            *memory = (from, found);
        }
        found
    }

    /// Says whether a token may begin here: not in the middle of a word.
    ///
    /// Escapes that end in a letter (`\n`, `\u000a`, `%3D`, `\x1b[0m`) and colours are boundaries. `strict` also refuses `_` and `-`
    /// before the token, for prefixes that occur at the end of ordinary words (`disk-…`, `cache-key-…`).
    pub(super) fn boundary(&self, start: usize, strict: bool) -> bool {
        if start == 0 || self.view.gap_before(start) {
            return true;
        }
        let previous = self.before(start, 1);
        if matches!(previous, b'_' | b'-') {
            // The `-` of a diff line is no part of the word.
            return !strict || (previous == b'-' && matches!(self.before(start, 2), 0 | b'\n'));
        }
        if !previous.is_ascii_alphanumeric() {
            return true;
        }
        let hex = |back: usize| self.before(start, back).is_ascii_hexdigit();
        let escape = matches!(previous, b'n' | b't' | b'r' | b'b' | b'f') && self.before(start, 2) == b'\\';
        let percent = hex(1) && hex(2) && self.before(start, 3) == b'%';
        let byte = hex(1) && hex(2) && self.before(start, 3) == b'x' && self.before(start, 4) == b'\\';
        let unicode = (1..=4).all(hex) && self.before(start, 5) == b'u' && self.before(start, 6) == b'\\';
        escape || percent || byte || unicode || self.after_written_colour(start)
    }

    /// Says whether a colour that is written out (`\x1b[31m`, `\033[0m`, `\e[K`) ends here.
    fn after_written_colour(&self, start: usize) -> bool {
        if !matches!(self.before(start, 1), b'm' | b'K') {
            return false;
        }
        let parameters = self.cut(start.saturating_sub(17), start.saturating_sub(1));
        let length = parameters
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_digit() || **byte == b';')
            .count();
        let bracket = start.saturating_sub(2 + length);
        let head = self.cut(bracket.saturating_sub(7), bracket);
        self.at(bracket) == b'['
            && [
                b"\\x1b".as_slice(),
                b"\\x1B",
                b"\\033",
                b"\\u001b",
                b"\\u001B",
                b"\\e",
            ]
            .iter()
            .any(|esc| head.ends_with(esc))
    }

    /// Says whether the place lies inside a long base64 text, where three random letters may look like a prefix.
    pub(super) fn inside_base64(&self, start: usize) -> bool {
        if !matches!(self.before(start, 1), b'+' | b'/') {
            return false;
        }
        let length = self.run_back(Set::Base64, start, 64);
        let run = self.cut(start - length, start);
        let any = |test: fn(&u8) -> bool| run.iter().any(test);
        length >= 24 && any(u8::is_ascii_digit) && any(u8::is_ascii_uppercase) && any(u8::is_ascii_lowercase)
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::Reading;
    use super::*;

    fn with<T>(text: &str, test: impl FnOnce(&mut Scan<'_>) -> T) -> T {
        let view = View::new(text.as_bytes(), Reading::Plain, |_| false);
        test(&mut Scan::new(&view))
    }

    #[test]
    fn a_quoted_value_ends_at_its_own_level_and_leaves_the_backslashes() {
        // The text after the opening quote, its level, and the value.
        let rows = [
            ("abc\" d", 0, Some("abc")),
            ("a\\\"c\" d", 0, Some("a\\\"c")),
            ("abc\\\\\" d", 0, Some("abc\\\\")),
            ("abc\\\", \\\"d", 1, Some("abc")),
            ("a\\\\\\\"c\\\" d", 1, Some("a\\\\\\\"c")),
            ("abc\" outer", 1, Some("abc")),
            ("abc\n\"", 0, None),
        ];
        for (text, level, wanted) in rows {
            let found = with(text, |scan| scan.quoted_end(0, b'"', level));
            assert_eq!(found.and_then(|end| text.get(..end)), wanted, "{text}");
        }
    }

    #[test]
    fn a_token_begins_after_punctuation_escapes_and_colours_but_not_in_a_word() {
        let rows = [
            ("", true, true),
            (" ", true, true),
            ("=", true, true),
            ("\\n", true, true),
            ("%3D", true, true),
            ("\\u000a", true, true),
            ("\\x1b[31m", true, true),
            ("\x1b[31m", true, true),
            ("a\x1b[31m", true, true),
            ("ン", true, true),
            ("x_", true, false),
            ("ta-", true, false),
            ("\n-", true, true),
            ("di", false, false),
            ("9", false, false),
            ("am", false, false),
        ];
        for (before, loose, strict) in rows {
            let text = format!("{before}T");
            let found = with(&text, |scan| {
                let start = scan.bytes.len() - 1;
                (scan.boundary(start, false), scan.boundary(start, true))
            });
            assert_eq!(found, (loose, strict), "{before:?}");
        }
    }

    #[test]
    fn the_end_of_a_run_is_remembered_and_right_everywhere_in_it() {
        with("ab-cd ef", |scan| {
            let ends: Vec<_> = [0, 1, 3, 2, 6, 0, 5]
                .iter()
                .map(|from| scan.run_end(Set::Alnum, *from))
                .collect();
            assert_eq!(ends, [2, 2, 5, 2, 8, 2, 5]);
        });
    }

    #[test]
    fn asking_everywhere_in_a_run_or_a_quotation_measures_it_once() {
        for unit in ["password=", "a=\\\"b", "x='y", "cookie:a="] {
            let text = unit.repeat(1000) + "\"";
            let measured = with(&text, |scan| {
                for from in 0..text.len() {
                    if scan.before(from, 1) == b'=' {
                        scan.run_end(Set::Word, from);
                        scan.line_value_end(from);
                        scan.quoted_end(from, b'"', 0);
                    }
                }
                scan.measured
            });
            assert!(measured <= 3 * text.len(), "{unit}: {measured} of {}", text.len());
        }
    }
}
