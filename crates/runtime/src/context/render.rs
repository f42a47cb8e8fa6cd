//! How the model reads one file: whole, as line windows with every gap marked in place, or by name. Pure.
//!
//! A block ends with the tag that it began with, 16 digits of its text's own digest: no text can contain its own digest, so no
//! file can end its block early and speak outside of it.

use tracegate_core::context_report::{Estimator, Level};
use tracegate_core::ids::Digest;

/// Per cent of a budget that stays free because tokens are estimated.
pub const HEADROOM_PCT: u64 = 10;

/// Returns how many tokens `text` takes at most, as far as an estimate can say: a third of its ASCII bytes and one and a half for
/// each other character, each rounded up.
///
/// Measured against a real tokenizer this errs upward for all but dense code (C++, JSON); [`HEADROOM_PCT`] covers those.
#[must_use]
pub fn estimate_tokens(text: &str) -> u64 {
    Count::of(text).tokens()
}

/// Names the estimate for the report.
#[must_use]
pub(crate) fn estimator() -> Estimator {
    Estimator {
        name: "bytes3".to_owned(),
        version: 1,
        headroom_pct: HEADROOM_PCT,
    }
}

/// What the estimate is made from; adds up over pieces of a text.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    ascii: u64,
    other: u64,
}

impl Count {
    fn of(text: &str) -> Self {
        let all = text.chars().count() as u64;
        let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
        Self {
            ascii,
            other: all - ascii,
        }
    }

    fn plus(self, more: Self) -> Self {
        Self {
            ascii: self.ascii + more.ascii,
            other: self.other + more.other,
        }
    }

    fn tokens(self) -> u64 {
        self.ascii.div_ceil(3) + (3 * self.other).div_ceil(2)
    }
}

/// A file's redacted text, split into lines.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    path: &'a str,
    lines: Vec<&'a str>,
    digest: Digest,
}

/// One file as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) text: String,
    pub(crate) tokens: u64,
    pub(crate) level: Level,
    /// First and last line shown, from 1; zeros if none is.
    pub(crate) lines: [u64; 2],
    /// Ranges of lines that are not shown.
    pub(crate) omitted: Vec<[u64; 2]>,
}

/// Lines of a document, first and last, from 1.
type Window = [u64; 2];

impl<'a> Document<'a> {
    pub(crate) fn new(path: &'a str, text: &'a str) -> Self {
        Self {
            path,
            lines: text.split_inclusive('\n').collect(),
            digest: Digest::of(text.as_bytes()),
        }
    }

    pub(crate) fn digest(&self) -> Digest {
        self.digest
    }

    pub(crate) fn total_lines(&self) -> u64 {
        self.lines.len() as u64
    }

    /// Returns the whole file.
    pub(crate) fn full(&self) -> Block {
        match self.total_lines() {
            0 => self.windows(&[]),
            last => self.windows(&[[1, last]]),
        }
    }

    /// Returns as many first lines as fit into `limit` tokens, marks included; `None` if not one does, or all would be shown.
    pub(crate) fn head(&self, limit: u64) -> Option<Block> {
        let mut shown = Count::default();
        let mut last = None;
        for (number, line) in (1..self.total_lines()).zip(&self.lines) {
            shown = shown.plus(Count::of(line));
            if shown.tokens() > limit {
                break;
            }
            let around = Count::of(&self.header(&[[1, number]]))
                .plus(Count::of(&self.mark([number + 1, self.total_lines()])))
                .plus(Count::of(&self.footer()));
            if around.plus(shown).tokens() <= limit {
                last = Some(number);
            }
        }
        Some(self.windows(&[[1, last?]]))
    }

    /// Returns the line that only names the file.
    pub(crate) fn name_only(&self) -> Block {
        let text = format!(
            "{path} ({total} lines, not shown; read_file {path})\n",
            path = self.path,
            total = self.total_lines()
        );
        Block {
            tokens: estimate_tokens(&text),
            text,
            level: Level::Path,
            lines: [0, 0],
            omitted: Vec::new(),
        }
    }

    /// Renders windows, which are in order and apart; each gap between, before and after them is marked where it is.
    fn windows(&self, windows: &[Window]) -> Block {
        let mut text = self.header(windows);
        let mut omitted = Vec::new();
        let mut next = 1;
        for &[first, last] in windows {
            if next < first {
                omitted.push([next, first - 1]);
                text.push_str(&self.mark([next, first - 1]));
            }
            for (_, line) in (1_u64..)
                .zip(&self.lines)
                .filter(|(number, _)| (first..=last).contains(number))
            {
                text.push_str(line);
            }
            if !text.ends_with('\n') {
                text.push('\n');
            }
            next = last + 1;
        }
        if next <= self.total_lines() {
            omitted.push([next, self.total_lines()]);
            text.push_str(&self.mark([next, self.total_lines()]));
        }
        text.push_str(&self.footer());
        Block {
            tokens: estimate_tokens(&text),
            text,
            level: if omitted.is_empty() {
                Level::Full
            } else {
                Level::Slice
            },
            lines: match (windows.first(), windows.last()) {
                (Some([first, _]), Some([_, last])) => [*first, *last],
                (None, _) | (_, None) => [0, 0],
            },
            omitted,
        }
    }

    fn header(&self, windows: &[Window]) -> String {
        let (path, total, tag) = (self.path, self.total_lines(), self.tag());
        match windows {
            [] => format!("<<< {path} (empty) {tag}\n"),
            [[1, last]] if *last == total => format!("<<< {path} ({total} lines) {tag}\n"),
            windows => {
                let ranges: Vec<String> = windows
                    .iter()
                    .map(|[first, last]| format!("{first}-{last}"))
                    .collect();
                format!("<<< {path} (lines {} of {total}) {tag}\n", ranges.join(", "))
            }
        }
    }

    fn footer(&self) -> String {
        format!(">>> {}\n\n", self.tag())
    }

    /// Says in place what is missing, and how to get it.
    fn mark(&self, [first, last]: Window) -> String {
        let (path, total) = (self.path, self.total_lines());
        format!("[lines {first}-{last} of {total} omitted by tracegate; read_file {path}:{first}-{last}]\n")
    }

    fn tag(&self) -> String {
        self.digest
            .to_string()
            .chars()
            .skip("b3:".len())
            .take(16)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tokens_are_counted_by_the_kind_of_character() {
        for (text, wanted) in [
            ("", 0),
            ("a", 1),
            ("abc", 1),
            ("abcd", 2),
            ("测", 2),
            ("测试", 3),
            ("测试ab", 4),
            ("é", 2),
        ] {
            assert_eq!(estimate_tokens(text), wanted, "{text}");
        }
    }

    #[test]
    fn a_file_reads_whole_in_part_or_by_name() {
        let text = "one\ntwo\nthree\nfour";
        let document = Document::new("a.txt", text);
        let tag: String = Digest::of(text.as_bytes())
            .to_string()
            .chars()
            .skip(3)
            .take(16)
            .collect();
        assert_eq!(
            document.full().text,
            format!("<<< a.txt (4 lines) {tag}\none\ntwo\nthree\nfour\n>>> {tag}\n\n")
        );
        assert_eq!(
            document.name_only().text,
            "a.txt (4 lines, not shown; read_file a.txt)\n"
        );
        assert_eq!(
            document.windows(&[[2, 2], [4, 4]]),
            Block {
                text: format!(
                    "<<< a.txt (lines 2-2, 4-4 of 4) {tag}\n\
                     [lines 1-1 of 4 omitted by tracegate; read_file a.txt:1-1]\ntwo\n\
                     [lines 3-3 of 4 omitted by tracegate; read_file a.txt:3-3]\nfour\n>>> {tag}\n\n"
                ),
                tokens: 66,
                level: Level::Slice,
                lines: [2, 4],
                omitted: vec![[1, 1], [3, 3]],
            }
        );
        let empty = Document::new("e", "").full();
        assert_eq!(
            (empty.level, empty.lines, empty.omitted),
            (Level::Full, [0, 0], vec![])
        );
    }

    proptest! {
        #[test]
        fn a_head_fits_its_limit_and_no_longer_one_would(lines in proptest::collection::vec("[a-z测]{0,30}", 1..60), limit in 0_u64..200) {
            let text = lines.join("\n");
            let document = Document::new("src/a.ts", &text);
            let wanted = (1..document.total_lines())
                .rev()
                .map(|last| document.windows(&[[1, last]]))
                .find(|block| block.tokens <= limit);
            prop_assert_eq!(document.head(limit), wanted);
        }
    }
}
