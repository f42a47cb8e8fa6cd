//! The first look at a text: where keys of rules and names of secrets stand. Everything else looks only there.
//!
//! Each key is announced by one gram of four bytes, without case: a part of the key where that is long enough, otherwise the key
//! with what must stand beside it. The walk asks a bitmap at each place; what the bitmap lets through is compared exactly.
//!
//! What must stay true: every occurrence of a key that a rule or name could accept is reported, in the order of its end and, among
//! those of one end, of its length, because what one parser consumed is not given to the next.

use super::grams::Grams;
use super::names::WORDS;
use super::rules::{How, RULES, Rule};
use super::scan::Set;
use std::sync::LazyLock;

/// Makes letters equal to their lower case. Other bytes fall together too, which only costs comparisons.
const FOLD: u32 = 0x2020_2020;

/// How many bytes are walked before their occurrences are handed on: enough to forget the cost of a hand-over, and little enough
/// that a text full of keys needs no memory of its size.
const BLOCK: usize = 1 << 15;

/// A row of one of the two tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    /// Of [`RULES`].
    Shape(usize),
    /// Of [`WORDS`].
    Name(usize),
}

/// A key at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) row: Row,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A key that a gram announces.
#[derive(Debug, Clone, Copy)]
struct Announced {
    row: Row,
    key: &'static [u8],
    /// How many bytes the gram begins after the beginning of the key, or before it.
    inside: usize,
    before: usize,
}

/// What stands beside a key that is shorter than a gram.
#[derive(Debug, Clone, Copy)]
pub(super) enum Beside {
    /// The byte before the key: no rule accepts another one.
    Before(fn(u8) -> bool),
    /// Any byte after the key.
    Anything,
    /// One byte before and one after.
    Around(fn(u8) -> bool, Set),
    /// Bytes of this set after the key.
    Body(Set),
}

/// The announcements of all keys.
#[derive(Debug)]
pub(super) struct Anchors(Grams<Announced>);

/// Built once; there are about two thousand grams.
pub(super) static ANCHORS: LazyLock<Anchors> = LazyLock::new(|| {
    let mut entries = Vec::new();
    for (row, rule) in RULES.iter().enumerate() {
        announce(&mut entries, Row::Shape(row), rule.key, beside(rule));
    }
    for (row, (word, _)) in WORDS.iter().enumerate() {
        announce(&mut entries, Row::Name(row), word, Beside::Anything);
    }
    Anchors(Grams::new(entries))
});

/// Says what must stand beside a short key. At the end of a text nothing stands after it, and then no rule accepts it: a token has a
/// body, and a parser or a name without a byte after it has no value.
fn beside(rule: &Rule) -> Beside {
    match (rule.how, rule.beside) {
        (_, Some(beside)) => beside,
        (How::Token(token), None) => Beside::Body(token.body),
        (How::Parser(_) | How::Context(_), None) => Beside::Anything,
    }
}

fn announce(entries: &mut Vec<(u32, Announced)>, row: Row, key: &'static str, beside: Beside) {
    let key = key.as_bytes();
    let mut announced = Announced {
        row,
        key,
        inside: 0,
        before: 0,
    };
    let rarest = key
        .windows(4)
        .enumerate()
        .min_by_key(|(_, gram)| gram.iter().map(|byte| u32::from(commonness(*byte))).sum::<u32>());
    if let Some((inside, gram)) = rarest {
        announced.inside = inside;
        entries.extend(gram_of(gram).map(|gram| (gram, announced)));
        return;
    }
    let any = |accepts: &dyn Fn(u8) -> bool| (0..=u8::MAX).filter(|byte| accepts(*byte)).collect::<Vec<_>>();
    let (before, after): (Vec<u8>, Vec<u8>) = match beside {
        Beside::Before(before) => (any(&before), Vec::new()),
        Beside::Anything => (Vec::new(), any(&|_| true)),
        Beside::Around(before, after) => (any(&before), any(&|byte| after.contains(byte))),
        Beside::Body(body) => (Vec::new(), any(&|byte| body.contains(byte))),
    };
    announced.before = usize::from(!before.is_empty());
    let mut texts = vec![Vec::new()];
    if announced.before > 0 {
        texts = before.iter().map(|byte| vec![*byte]).collect();
    }
    for text in &mut texts {
        text.extend_from_slice(key);
    }
    while texts.first().is_some_and(|text| text.len() < 4) {
        texts = texts
            .iter()
            .flat_map(|text| after.iter().map(|byte| [text.as_slice(), &[*byte]].concat()))
            .collect();
    }
    let mut grams: Vec<_> = texts.iter().filter_map(|text| gram_of(text)).collect();
    grams.sort_unstable();
    grams.dedup();
    entries.extend(grams.into_iter().map(|gram| (gram, announced)));
}

/// How common a byte is in code and prose, as a logarithm, so that sums of it compare probabilities.
const fn commonness(byte: u8) -> u8 {
    match byte.to_ascii_lowercase() {
        b' ' | b'e' | b't' => 9,
        b'a' | b'o' | b'i' | b'n' | b's' | b'r' => 8,
        b'-' | b'/' => 7,
        b'h' | b'd' | b'l' | b'u' | b'c' | b'm' | b'_' | b'.' | b'=' => 6,
        b'f' | b'p' | b'g' | b'y' | b'b' | b':' => 5,
        b'0' | b'1' | b'2' | b'v' | b'k' | b'x' => 4,
        _ => 2,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is wanted")]
const fn truncated(number: u64) -> u32 {
    number as u32
}

fn gram_of(text: &[u8]) -> Option<u32> {
    let four = text.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*four) | FOLD)
}

impl Anchors {
    /// Hands the occurrences of all keys to `take`, block by block.
    pub(super) fn walk(&self, text: &[u8], mut take: impl FnMut(Hit)) {
        let mut hits = Vec::new();
        let mut from = 0;
        while from < text.len() {
            let to = (from + BLOCK).min(text.len());
            // A gram that begins in this block may end in the next one.
            self.block(text, from, text.len().min(to + 3), &mut hits);
            hits.sort_unstable_by_key(|hit: &Hit| (hit.end, hit.start));
            // A key whose gram begins in a later block ends after this one.
            let settled = hits.partition_point(|hit| hit.end <= to || to == text.len());
            hits.drain(..settled).for_each(&mut take);
            from = to;
        }
    }

    /// Finds the keys whose gram lies in `from..to`.
    fn block(&self, text: &[u8], from: usize, to: usize, hits: &mut Vec<Hit>) {
        let block = text.get(from..to).unwrap_or_default();
        let (words, _) = block.as_chunks::<4>();
        let mut words = words.iter().map(|word| u32::from_le_bytes(*word) | FOLD);
        let mut at = from;
        if let Some(mut low) = words.next() {
            for word in words {
                let pair = u64::from(low) | u64::from(word) << 32;
                let grams = [
                    low,
                    truncated(pair >> 8),
                    truncated(pair >> 16),
                    truncated(pair >> 24),
                ];
                if grams.iter().fold(0, |any, gram| any | self.0.may_hold(*gram)) & 1 != 0 {
                    self.judge(text, at, at + 4, hits);
                }
                low = word;
                at += 4;
            }
        }
        self.judge(text, at, to.saturating_sub(3), hits);
    }

    /// Compares the keys that the grams at `from..to` announce. Reads the grams again: keeping them would slow the walk.
    #[inline(never)]
    fn judge(&self, text: &[u8], from: usize, to: usize, hits: &mut Vec<Hit>) {
        for at in from..to {
            if let Some(gram) = text.get(at..).and_then(gram_of)
                && self.0.may_hold(gram) & 1 != 0
            {
                self.compare(text, at, gram, hits);
            }
        }
    }

    fn compare(&self, text: &[u8], at: usize, gram: u32, hits: &mut Vec<Hit>) {
        for one in self.0.of(gram) {
            let Some(start) = (at + one.before).checked_sub(one.inside) else {
                continue;
            };
            let end = start + one.key.len();
            let same = text.get(start..end).is_some_and(|found| match one.row {
                Row::Shape(_) => found == one.key,
                Row::Name(_) => found.eq_ignore_ascii_case(one.key),
            });
            if same {
                hits.push(Hit {
                    row: one.row,
                    start,
                    end,
                });
            }
        }
    }
}
