//! The engine without any look ahead, for tests alone: the reference that the fast one must equal.

use super::anchors::{Hit, Row};
use super::names::{NAMES, WORDS};
use super::rules::RULES;
use aho_corasick::{AhoCorasick, AhoCorasickKind};
use std::sync::LazyLock;

static KEYS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .build(RULES.iter().map(|rule| rule.key))
        .unwrap()
});

/// Gives every occurrence of every key to `take`: first all shapes, then all names.
pub(super) fn walk(text: &[u8], mut take: impl FnMut(Hit)) {
    assert_eq!(NAMES.as_ref().unwrap().patterns_len(), WORDS.len());
    for found in KEYS.find_overlapping_iter(text) {
        take(Hit {
            row: Row::Shape(found.pattern().as_usize()),
            start: found.start(),
            end: found.end(),
        });
    }
    for found in NAMES.as_ref().unwrap().find_overlapping_iter(text) {
        take(Hit {
            row: Row::Name(found.pattern().as_usize()),
            start: found.start(),
            end: found.end(),
        });
    }
}
