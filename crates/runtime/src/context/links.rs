//! Which tests belong to a source file, by their names alone. Pure.
//!
//! One list of rules, tried from the best down; the first that holds gives the link its score. Scores are integers and
//! fixed per rule, so a report can say which rule spoke. Rules over contents will add to these scores, not replace them.

use crate::context::names::{Ecosystem, FileKind, Name};
use std::cmp::Reverse;
use std::collections::BTreeMap;
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
        Confidence::of_score(self.score)
    }
}

/// The tests of one list of files, read once for many questions.
#[derive(Debug)]
pub struct Linker<'a> {
    tests: Vec<Test<'a>>,
}

#[derive(Debug)]
struct Test<'a> {
    name: Name<'a>,
    /// How close its nearest namesake among the sources is. A namesake farther away does not own the test: with
    /// `a/conn.ts`, `b/conn.ts` and `a/conn.test.ts` the test says nothing about `b/conn.ts`.
    owner: i64,
}

impl<'a> Linker<'a> {
    /// Reads the sources and tests among `files`, paths with `/`; their order does not matter.
    pub fn new(files: impl IntoIterator<Item = &'a str>) -> Self {
        let mut names: Vec<Name<'a>> = files.into_iter().filter_map(Name::of).collect();
        names.sort_unstable_by(|a, b| a.path.cmp(b.path));
        names.dedup_by(|a, b| a.path == b.path);
        let (tests, others): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| name.kind == FileKind::Test);
        let mut namesakes: BTreeMap<(Ecosystem, &[String]), Vec<&Name<'a>>> = BTreeMap::new();
        for source in others.iter().filter(|name| name.kind == FileKind::Source) {
            namesakes
                .entry((source.ecosystem, subject(source)))
                .or_default()
                .push(source);
        }
        let tests = tests
            .into_iter()
            .map(|name| {
                let owner = namesakes
                    .get(&(name.ecosystem, subject(&name)))
                    .and_then(|sources| sources.iter().map(|source| closeness(source, &name)).max())
                    .unwrap_or(0);
                Test { name, owner }
            })
            .collect();
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
            .filter(|test| test.name.ecosystem == source.ecosystem)
            .filter_map(|test| {
                let rule = rule_of(&source, test)?;
                Some((score(rule), closeness(&source, &test.name), test.name.path, rule))
            })
            .collect();
        // Closeness only orders equal scores: it is no evidence of its own, but of two `parser` tests the near one is meant.
        found.sort_unstable_by_key(|&(score, close, path, _)| (Reverse(score), Reverse(close), path));
        let best = found.first().map_or(0, |&(score, ..)| score);
        if is_fallback(best) && found.len() > MOST_LINKS {
            // Three of many tests that only share a folder would be picked by the alphabet.
            return Vec::new();
        }
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

/// Whether a score comes from a rule that knows nothing but the folder.
fn is_fallback(best: i64) -> bool {
    best <= score(RuleId::DirTest)
}

/// Returns the best rule that links `test` to `source`.
fn rule_of(source: &Name<'_>, test: &Test<'_>) -> Option<RuleId> {
    let Test { name: test, owner } = test;
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
        // A header and its implementation are one subject in two places.
        let owned = closeness(source, test) >= *owner || is_header(source);
        return Some(if !owned {
            RuleId::TokensSubset
        } else if is_mirrored(source, test) {
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

/// How close a test lies to a source: 2000 in the same folder, else the agreement of their places in thousandths.
fn closeness(source: &Name<'_>, test: &Name<'_>) -> i64 {
    if source.folder == test.folder {
        return 2000;
    }
    let common = common_words(source, test);
    let all = source.place.len() + test.place.len() - common;
    if all == 0 {
        return 1000;
    }
    i64::try_from(common * 1000 / all).unwrap_or(1000)
}

fn is_header(source: &Name<'_>) -> bool {
    source.ecosystem == Ecosystem::C
        && source
            .path
            .rsplit_once('.')
            .is_some_and(|(_, extension)| extension.starts_with(['h', 'H']))
}

/// Whether the first word of one stem abbreviates the only word of the other: at least three letters of it, not all.
fn abbreviates(called: &[String], tested: &[String]) -> bool {
    let shortens = |first: Option<&String>, word: &[String]| match (first, word) {
        (Some(short), [long]) => {
            short.chars().count() >= 3 && short.len() < long.len() && long.starts_with(short.as_str())
        }
        (Some(_) | None, _) => false,
    };
    shortens(tested.first(), called) || shortens(called.first(), tested)
}

fn fallback(source: &Name<'_>, test: &Name<'_>, same_folder: bool) -> Option<RuleId> {
    if source.ecosystem == Ecosystem::Go {
        return same_folder.then_some(RuleId::SamePackage);
    }
    let mirrored = !source.place.is_empty() && source.place == test.place;
    (same_folder || mirrored).then_some(RuleId::DirTest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks which of `files` are linked to `source`, best first, and by which rule.
    fn check(source: &str, files: &[&str], wanted: &[(&str, RuleId)]) {
        let links = linked_tests(source, files);
        let got: Vec<(&str, RuleId)> = links
            .iter()
            .map(|link| (link.test.as_str(), link.rules[0]))
            .collect();
        assert_eq!(got, wanted, "{source} among {files:?}");
    }

    #[test]
    fn each_ecosystem_names_its_tests_in_its_own_way() {
        use RuleId::{DirNamedTest, MirrorStem, SameDirStem, StemElsewhere};
        for (source, test, rule) in [
            ("src/math.ts", "src/math.test.ts", SameDirStem),
            ("src/math.ts", "test/math.test.ts", MirrorStem),
            ("src/Button.tsx", "src/__tests__/Button.test.tsx", DirNamedTest),
            ("src/a/type.ts", "src/a/type.test-d.ts", SameDirStem),
            ("packages/x/src/io.ts", "packages/x/test/io.spec.ts", MirrorStem),
            ("src/add/add.ts", "src/add/test.ts", DirNamedTest),
            ("src/login.ts", "e2e/login.e2e-spec.ts", MirrorStem),
            ("pkg/core.py", "tests/test_core.py", StemElsewhere),
            ("pkg/core.py", "tests/pkg/test_core.py", MirrorStem),
            (
                "src/httpx/_client.py",
                "tests/client/test_client.py",
                StemElsewhere,
            ),
            ("app/models.py", "app/models_test.py", SameDirStem),
            ("src/foo.rs", "src/foo/tests.rs", DirNamedTest),
            ("src/foo.rs", "tests/foo.rs", MirrorStem),
            ("src/take.rs", "tests/test_take.rs", MirrorStem),
            ("auth.go", "auth_test.go", SameDirStem),
            ("fs/fs.go", "fs/fs_internal_test.go", SameDirStem),
            (
                "src/main/java/a/Foo.java",
                "src/test/java/a/FooTest.java",
                MirrorStem,
            ),
            (
                "src/main/java/a/Foo.java",
                "src/test/java/a/TestFoo.java",
                MirrorStem,
            ),
            (
                "src/main/java/a/Foo.java",
                "src/test/java/a/FooIT.java",
                MirrorStem,
            ),
            (
                "app/src/main/kotlin/a/Foo.kt",
                "app/src/test/kotlin/a/FooTests.kt",
                MirrorStem,
            ),
            (
                "src/Serilog/Core/Logger.cs",
                "test/Serilog.Tests/Core/LoggerTests.cs",
                MirrorStem,
            ),
            ("lib/rack/mime.rb", "test/spec_mime.rb", StemElsewhere),
            ("lib/foo/bar.rb", "spec/foo/bar_spec.rb", MirrorStem),
            ("lib/bar.rb", "test/test_bar.rb", MirrorStem),
            ("src/Http/Client.php", "tests/Http/ClientTest.php", MirrorStem),
            ("util/arena.cc", "util/arena_test.cc", SameDirStem),
            ("util/arena.cc", "util/arena_unittest.cc", SameDirStem),
            ("src/arena.c", "tests/test_arena.c", MirrorStem),
            ("src/arena.c", "tests/arena.c", MirrorStem),
            (
                "Sources/Kit/Parser.swift",
                "Tests/KitTests/ParserTests.swift",
                MirrorStem,
            ),
            (
                "Sources/Kit/Flag.swift",
                "Tests/KitTests/FlagsEndToEndTests.swift",
                MirrorStem,
            ),
            ("lib/plug/conn.ex", "test/plug/conn_test.exs", MirrorStem),
            ("lib/src/parser.dart", "test/parser_test.dart", MirrorStem),
            (
                "src/main/scala/a/Foo.scala",
                "src/test/scala/a/FooSpec.scala",
                MirrorStem,
            ),
            (
                "src/main/scala/a/Foo.scala",
                "src/test/scala/a/FooSuite.scala",
                MirrorStem,
            ),
        ] {
            check(
                source,
                &["README.md", source, test, "zz/other_thing.ts"],
                &[(test, rule)],
            );
        }
    }

    #[test]
    fn each_rule_has_its_rank() {
        use RuleId::{
            Abbrev, DirIndex, DirTest, MirrorStem, PathTokens, SameDirStem, SamePackage, StemElsewhere,
            StemPrefix, TokensSubset,
        };
        for (source, files, wanted) in [
            (
                "src/jsx/index.ts",
                &["src/jsx/index.test.ts"][..],
                &[("src/jsx/index.test.ts", DirIndex)][..],
            ),
            (
                "src/jsx/index.ts",
                &["tests/jsx.test.ts"],
                &[("tests/jsx.test.ts", StemElsewhere)],
            ),
            ("src/jsx/index.ts", &["src/css/index.test.ts"], &[]),
            (
                "src/io/util/copy.rs",
                &["tests/io_copy.rs"],
                &[("tests/io_copy.rs", PathTokens)],
            ),
            (
                "src/foo.py",
                &["tests/test_foo_bar.py"],
                &[("tests/test_foo_bar.py", StemPrefix)],
            ),
            (
                "a/json_writer.rb",
                &["b/fast_json_writer_spec.rb"],
                &[("b/fast_json_writer_spec.rb", TokensSubset)],
            ),
            (
                "lib/application.js",
                &["test/app.use.js"],
                &[("test/app.use.js", Abbrev)],
            ),
            (
                "src/io/a.ts",
                &["src/io/zebra.test.ts"],
                &[("src/io/zebra.test.ts", DirTest)],
            ),
            (
                "p/a.go",
                &["p/b_test.go", "q/c_test.go"],
                &[("p/b_test.go", SamePackage)],
            ),
            // Four tests that only share the folder: the alphabet would choose.
            (
                "p/a.go",
                &["p/b_test.go", "p/c_test.go", "p/d_test.go", "p/e_test.go"],
                &[],
            ),
            // The cut: 65 is less than 70 % of 130.
            (
                "a/x.ts",
                &["a/x.test.ts", "a/x-y.test.ts"],
                &[("a/x.test.ts", SameDirStem)],
            ),
            // At most three; equal scores by closeness, then by path.
            (
                "lib/p/x.rb",
                &[
                    "spec/x_spec.rb",
                    "spec/p/x_spec.rb",
                    "spec/q/x_spec.rb",
                    "test/r/s/x_test.rb",
                ],
                &[
                    ("spec/p/x_spec.rb", MirrorStem),
                    ("spec/q/x_spec.rb", StemElsewhere),
                    ("spec/x_spec.rb", StemElsewhere),
                ],
            ),
            // The nearest namesake owns a test.
            (
                "a/conn.ts",
                &["a/conn.ts", "b/conn.ts", "b/conn.test.ts"],
                &[("b/conn.test.ts", TokensSubset)],
            ),
            // A header and its implementation are one subject.
            (
                "include/db/log.h",
                &["include/db/log.h", "src/log.cc", "src/log_test.cc"],
                &[("src/log_test.cc", StemElsewhere)],
            ),
            // Never across languages, never data, never for a test, never for prose.
            (
                "src/math.py",
                &["src/math.test.ts", "tests/fixtures/test_math.py"],
                &[],
            ),
            (
                "src/math.test.ts",
                &["src/math.test.ts", "test/math.test.ts"],
                &[],
            ),
            ("README.md", &["test/readme.test.ts"], &[]),
        ] {
            check(source, files, wanted);
        }
    }

    #[test]
    fn confidence_follows_the_score() {
        for (score, wanted) in [
            (130, Confidence::Strong),
            (100, Confidence::Strong),
            (99, Confidence::Medium),
            (60, Confidence::Medium),
            (59, Confidence::Weak),
            (0, Confidence::Weak),
        ] {
            let link = Link {
                test: String::new(),
                score,
                rules: Vec::new(),
            };
            assert_eq!(link.confidence(), wanted, "{score}");
        }
    }

    proptest! {
        #[test]
        fn links_do_not_depend_on_the_order_of_the_files(
            files in proptest::collection::vec("(src/|test/|a/)?(x|y|x_y|index)(_test|\\.test|Test)?\\.(ts|go|rb|java)", 0..20),
            source in "(src/|a/)?(x|y|x_y|index)\\.(ts|go|rb|java)",
        ) {
            let ordered: Vec<&str> = files.iter().map(String::as_str).collect();
            let reversed: Vec<&str> = files.iter().rev().map(String::as_str).collect();
            let links = linked_tests(&source, &ordered);
            prop_assert!(links.len() <= 3);
            prop_assert!(links.iter().all(|link| ordered.contains(&link.test.as_str()) && link.test != source));
            prop_assert_eq!(links, linked_tests(&source, &reversed));
        }

        #[test]
        fn no_path_makes_the_linker_panic(source in any::<String>(), files in proptest::collection::vec(any::<String>(), 0..8)) {
            let files: Vec<&str> = files.iter().map(String::as_str).collect();
            prop_assert!(linked_tests(&source, &files).len() <= 3);
        }
    }
}
