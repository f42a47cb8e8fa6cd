//! Which tests belong to a source file, by their names alone. Pure.
//!
//! One list of rules, tried from the best down; the first that holds gives the link its score. Scores are integers and
//! fixed per rule, so a report can say which rule spoke. Rules over contents will add to these scores, not replace them.

use crate::context::names::{Ecosystem, FileKind, Name};
use std::cmp::Reverse;
use tracegate_core::context_report::{Confidence, RuleId};

/// Most tests that one source gets.
const MOST_LINKS: usize = 3;
/// A link stays if it has this share of the best one's score, in per cent.
const CUT_PERCENT: i64 = 70;

/// One test of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The test file, as it was spelled in the list.
    pub test: String,
    /// The link's score; [`Link::confidence`] says what it is worth.
    pub score: i64,
    /// The rules that gave the score, best first.
    pub rules: Vec<RuleId>,
}

impl Link {
    /// Returns how far the link can be trusted.
    #[must_use]
    pub fn confidence(&self) -> Confidence {
        match self.score {
            100.. => Confidence::Strong,
            60..100 => Confidence::Medium,
            _ => Confidence::Weak,
        }
    }
}

/// The tests of one list of files, read once for many questions.
#[derive(Debug)]
pub struct Linker<'a> {
    tests: Vec<Name<'a>>,
}

impl<'a> Linker<'a> {
    /// Reads the test files among `files`, paths with `/`; their order does not matter.
    pub fn new(files: impl IntoIterator<Item = &'a str>) -> Self {
        let mut tests: Vec<Name<'a>> = files
            .into_iter()
            .filter_map(Name::of)
            .filter(|name| name.kind == FileKind::Test)
            .collect();
        tests.sort_unstable_by(|a, b| a.path.cmp(b.path));
        tests.dedup_by(|a, b| a.path == b.path);
        Self { tests }
    }

    /// Returns at most three tests of `source`, best first; none if `source` is no source file.
    #[must_use]
    pub fn tests_of(&self, source: &str) -> Vec<Link> {
        let Some(source) = Name::of(source).filter(|name| name.kind == FileKind::Source) else {
            return Vec::new();
        };
        let mut found: Vec<(i64, i64, &str, RuleId)> = self
            .tests
            .iter()
            .filter(|test| test.ecosystem == source.ecosystem)
            .filter_map(|test| {
                let rule = rule_of(&source, test)?;
                Some((score(rule), nearness(&source, test), test.path, rule))
            })
            .collect();
        // Nearness only orders equal scores: it is no evidence of its own, but of two `parser` tests the near one is meant.
        found.sort_unstable_by_key(|&(score, near, path, _)| (Reverse(score), Reverse(near), path));
        let best = found.first().map_or(0, |&(score, ..)| score);
        found
            .into_iter()
            .take(MOST_LINKS)
            .filter(|&(score, ..)| score * 100 >= best * CUT_PERCENT)
            .map(|(score, _, path, rule)| Link {
                test: path.to_owned(),
                score,
                rules: vec![rule],
            })
            .collect()
    }
}

/// Returns at most three tests of `source` among `files`, best first. For several sources build one [`Linker`].
#[must_use]
pub fn linked_tests(source: &str, files: &[&str]) -> Vec<Link> {
    Linker::new(files.iter().copied()).tests_of(source)
}

fn score(rule: RuleId) -> i64 {
    match rule {
        RuleId::SameDirStem => 130,
        RuleId::DirIndex => 128,
        RuleId::DirNamedTest => 125,
        RuleId::MirrorStem => 120,
        RuleId::StemElsewhere => 100,
        RuleId::PathTokens => 90,
        RuleId::StemPrefix => 65,
        RuleId::TokensSubset => 55,
        RuleId::Abbrev => 45,
        RuleId::DirTest => 40,
        RuleId::SamePackage => 30,
    }
}

/// Returns the best rule that links `test` to `source`.
fn rule_of(source: &Name<'_>, test: &Name<'_>) -> Option<RuleId> {
    let same_folder = source.folder == test.folder;
    let called = subject(source);
    let tested = subject(test);
    if same_folder && source.index && (test.index || test.stem.is_empty()) {
        return Some(RuleId::DirIndex);
    }
    if same_folder && !source.index && !source.stem.is_empty() && source.stem == test.stem {
        return Some(RuleId::SameDirStem);
    }
    if is_dir_named(source, test) {
        return Some(RuleId::DirNamedTest);
    }
    if !called.is_empty() && called == tested {
        return Some(if is_mirrored(source, test) {
            RuleId::MirrorStem
        } else {
            RuleId::StemElsewhere
        });
    }
    if called.is_empty() || tested.is_empty() {
        return fallback(source, test, same_folder);
    }
    if called.iter().all(|word| tested.contains(word))
        && tested
            .iter()
            .all(|word| called.contains(word) || source.place.contains(word))
    {
        return Some(RuleId::PathTokens);
    }
    if tested.starts_with(called) || called.starts_with(tested) {
        return Some(RuleId::StemPrefix);
    }
    if called.iter().all(|word| tested.contains(word)) || tested.iter().all(|word| called.contains(word)) {
        return Some(RuleId::TokensSubset);
    }
    if abbreviates(called, tested) {
        return Some(RuleId::Abbrev);
    }
    fallback(source, test, same_folder)
}

/// What a file is called: its stem, or its folder's name where the stem only stands for the folder.
fn subject<'n>(name: &'n Name<'_>) -> &'n [String] {
    if name.index || name.stem.is_empty() {
        &name.folder_stem
    } else {
        &name.stem
    }
}

/// `foo.rs` and `foo/tests.rs`; `foo/bar.ts` and `foo/__tests__/bar.test.ts`; `add/add.ts` and `add/test.ts`.
fn is_dir_named(source: &Name<'_>, test: &Name<'_>) -> bool {
    let beside = test
        .folder
        .strip_prefix(source.folder)
        .map(|rest| rest.trim_start_matches('/'));
    if beside == Some("__tests__") {
        return source.stem == test.stem || (source.index && test.stem == source.folder_stem);
    }
    if !test.stem.is_empty() || source.index {
        return false;
    }
    let own_folder = subject(source) == test.folder_stem.as_slice();
    own_folder
        && (source.folder == test.folder
            || beside.is_some_and(|rest| !rest.is_empty() && !rest.contains('/')))
}

/// Whether two places agree in at least half of the words that they have in all; two places without words agree.
fn is_mirrored(source: &Name<'_>, test: &Name<'_>) -> bool {
    let common = common_words(source, test);
    let all = source.place.len() + test.place.len() - common;
    2 * common >= all
}

fn common_words(source: &Name<'_>, test: &Name<'_>) -> usize {
    source
        .place
        .iter()
        .filter(|word| test.place.binary_search(word).is_ok())
        .count()
}

/// Agreement of two places in thousandths.
fn nearness(source: &Name<'_>, test: &Name<'_>) -> i64 {
    let common = common_words(source, test);
    let all = source.place.len() + test.place.len() - common;
    if all == 0 {
        return 1000;
    }
    i64::try_from(common * 1000 / all).unwrap_or(1000)
}

/// Whether the first word of one stem abbreviates the first word of the other: at least three letters of it.
fn abbreviates(called: &[String], tested: &[String]) -> bool {
    let (Some(a), Some(b)) = (called.first(), tested.first()) else {
        return false;
    };
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    short.chars().count() >= 3 && long.starts_with(short.as_str())
}

fn fallback(source: &Name<'_>, test: &Name<'_>, same_folder: bool) -> Option<RuleId> {
    if source.ecosystem == Ecosystem::Go {
        return same_folder.then_some(RuleId::SamePackage);
    }
    let mirrored = !source.place.is_empty() && source.place == test.place;
    (same_folder || mirrored).then_some(RuleId::DirTest)
}
