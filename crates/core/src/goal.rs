//! What a goal asks for as far as tests are concerned: read once, used by the context builder and the validation gate.
//!
//! A lexicon in eight languages, matched on words and not on letters: `latest`, `contest` and `attestation` are no tests, a
//! `test-mode` flag is a feature, and "do not run the tests" waives them.

mod lexicon;
mod names;

use crate::validation::recognise;
use lexicon::{
    ATTRIBUTIVE, CODE_VERBS, DIAGNOSE, DIAGNOSE_CJK, DOCS, DOCS_CJK, FAILING, LOOK, NEGATION, OTHER_TESTING,
    OUTCOME, OUTCOME_CJK, RED_TEST_CJK, RUN, TEST_CJK, TEST_NAMES, TEST_WORDS, TEXT_VERBS, WAIVED_CJK, WHOLE,
    WHOLE_CJK, WRITE,
};
use serde::{Deserialize, Serialize};

/// What a goal says about tests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// True if the goal asks for something that tests decide; false if it waives them or only writes or asks about them.
    pub mentions_tests: bool,
    /// True if the goal wants a red test, or asks why something fails: then red is no failure of the run.
    pub expects_failure: bool,
    /// True if the goal speaks of the whole suite: a part of it proves nothing then.
    pub wants_all: bool,
    /// The words of the goal that decided, in its order, for the trace.
    pub matched: Vec<String>,
    /// Test and check commands that the goal names, as written, in its order: `npm test`, `cargo clippy`.
    pub named_commands: Vec<String>,
    /// Paths that the goal names, without `::test` or `:line`.
    pub named_paths: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    /// True if a separator that ends a clause stands before it.
    new_clause: bool,
}

impl Goal {
    /// Reads a goal. Pure and total: any text gives an answer.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let text: String = text.chars().take(20_000).collect();
        let lower = text.to_lowercase();
        let tokens = tokens(&lower);
        let has = |words: &[&str]| tokens.iter().any(|token| words.contains(&token.text));
        let has_cjk = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let outcome = has(OUTCOME) || has_cjk(OUTCOME_CJK) || has_pair(&tokens, "make", FAILING);
        let mentions = mentions(&tokens, &lower, outcome);
        let mut goal = Self {
            named_paths: names::paths(&text),
            named_commands: names::commands(&text, outcome),
            ..Self::default()
        };
        let named_tests = goal
            .named_commands
            .iter()
            .any(|command| recognise(command).is_some());
        let named_test_path = goal.named_paths.iter().any(|path| is_test_path(path));
        let changes_code = tokens
            .iter()
            .any(|token| CODE_VERBS.contains(&token.text) && !TEXT_VERBS.contains(&token.text));
        let about_docs = (has(DOCS) || has_cjk(DOCS_CJK)) && !outcome && !changes_code;
        let looks = tokens.first().is_some_and(|first| LOOK.contains(&first.text));
        let only_looks = looks && !outcome && !named_tests && !has(CODE_VERBS);
        let asks_why = asks_why(&tokens, &lower) && (!mentions.is_empty() || named_tests);
        goal.expects_failure = wants_red(&tokens, &lower) || asks_why;
        let negated = !mentions.is_empty() && mentions.iter().all(|mention| mention.negated);
        let waived_cjk = has_cjk(WAIVED_CJK)
            && !["通过", "通過", "跑通", "パス", "통과"]
                .iter()
                .any(|word| lower.contains(word));
        let waived = negated && !outcome || waived_cjk;
        let asked = mentions.iter().any(|mention| !mention.negated)
            || (named_tests || named_test_path) && !negated
            || ci_green(&tokens, &lower);
        goal.mentions_tests = asked && !waived && !about_docs && !only_looks;
        goal.wants_all =
            goal.mentions_tests && (has(WHOLE) || has_cjk(WHOLE_CJK) || ci_green(&tokens, &lower));
        goal.matched = mentions.into_iter().map(|mention| mention.text).collect();
        if goal.matched.is_empty() {
            goal.matched
                .extend(goal.named_commands.iter().filter(|_| named_tests).cloned());
        }
        goal.matched.dedup();
        goal.matched.truncate(16);
        goal
    }
}

/// True if a path is that of a test by the usual names.
#[must_use]
pub(crate) fn is_test_path(path: &str) -> bool {
    let lower = path.to_lowercase();
    let name = lower.rsplit('/').next().unwrap_or(&lower);
    let in_tests = lower.split('/').rev().skip(1).any(|part| {
        matches!(
            part,
            "test" | "tests" | "spec" | "specs" | "__tests__" | "e2e" | "testdata" | "__snapshots__"
        )
    });
    let stem = name.split('.').next().unwrap_or(name);
    in_tests
        || name.contains(".test.")
        || name.contains(".spec.")
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_spec")
        || stem == "conftest"
        || name.ends_with("test.java")
        || name.ends_with("tests.cs")
        || name.ends_with("test.php")
}

/// Full-width and typographic punctuation: `\u{ff0c}` is the comma between Chinese clauses.
fn is_wide_punctuation(c: char) -> bool {
    matches!(u32::from(c), 0x2010..=0x205e | 0x3000..=0x303f | 0xff01..=0xff0f | 0xff1a..=0xff20 | 0xff3b..=0xff40 | 0xff5b..=0xff65)
}

fn is_cjk(c: char) -> bool {
    matches!(u32::from(c), 0x3040..=0x30ff | 0x3400..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff)
}

/// Words of letters, digits, and what can stand inside a path, an option or a contraction; CJK runs are words of their own.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut start: Option<(usize, bool)> = None;
    let mut new_clause = true;
    let mut push = |from: usize, to: usize, new_clause: &mut bool| {
        let word = text.get(from..to).unwrap_or_default();
        let trimmed = word
            .trim_end_matches(['.', ':', '-', '_', '/'])
            .trim_start_matches(['\'', '’']);
        if !trimmed.is_empty() {
            tokens.push(Token {
                text: trimmed,
                new_clause: *new_clause,
            });
            *new_clause = word.ends_with(['.', ':']);
        }
    };
    for (at, c) in text.char_indices() {
        let cjk = is_cjk(c);
        let inside = c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '.' | '\'' | '’' | ':' | '@' | '+');
        if let Some((from, was_cjk)) = start
            && (!inside || was_cjk != cjk)
        {
            push(from, at, &mut new_clause);
            start = None;
        }
        if inside && start.is_none() {
            start = Some((at, cjk));
        }
        if matches!(c, ';' | ',' | '!' | '?' | '\n') || is_wide_punctuation(c) {
            new_clause = true;
        }
    }
    if let Some((from, _)) = start {
        push(from, text.len(), &mut new_clause);
    }
    tokens
}

struct Mention {
    text: String,
    negated: bool,
}

fn mentions(tokens: &[Token<'_>], lower: &str, outcome: bool) -> Vec<Mention> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let named = TEST_WORDS.contains(&token.text) || outcome && TEST_NAMES.contains(&token.text);
        if !named {
            continue;
        }
        let previous = at
            .checked_sub(1)
            .and_then(|at| tokens.get(at))
            .map_or("", |token| token.text);
        if token.text == "testing" && OTHER_TESTING.contains(&previous) {
            continue;
        }
        let next = tokens
            .get(at + 1)
            .filter(|next| !next.new_clause)
            .map_or("", |next| next.text);
        if ATTRIBUTIVE.contains(&next) && token.text.starts_with("test") {
            continue;
        }
        found.push(Mention {
            text: token.text.to_owned(),
            negated: is_negated(tokens, at),
        });
    }
    for word in TEST_CJK {
        if lower.contains(word) {
            found.push(Mention {
                text: (*word).to_owned(),
                negated: false,
            });
        }
    }
    found
}

/// "do not run the tests", "without running tests", "no tests needed": a negation and a word of running in the same clause.
fn is_negated(tokens: &[Token<'_>], at: usize) -> bool {
    let mut start = at;
    while start > 0 && tokens.get(start).is_some_and(|token| !token.new_clause) && at - start < 7 {
        start -= 1;
    }
    let mut end = at + 1;
    while tokens.get(end).is_some_and(|token| !token.new_clause) && end - at < 5 {
        end += 1;
    }
    let clause = tokens.get(start..end).unwrap_or_default();
    let negation = clause.iter().position(|token| NEGATION.contains(&token.text));
    // "Skip the flaky test" changes a test, "skip running the tests" waives them.
    let skips = clause.windows(2).any(|pair| matches!(pair, [a, b] if a.text.starts_with("skip") && !matches!(b.text, "running" | "executing")));
    let changes_kept = clause.iter().any(|token| {
        matches!(
            token.text,
            "break"
                | "breaking"
                | "change"
                | "changing"
                | "modify"
                | "modifying"
                | "edit"
                | "delete"
                | "touch"
                | "fail"
                | "failing"
                | "weaken"
        )
    });
    negation.is_some_and(|place| {
        place <= at - start && !changes_kept && !skips && clause.iter().any(|token| RUN.contains(&token.text))
    })
}

fn has_pair(tokens: &[Token<'_>], first: &str, then: &[&str]) -> bool {
    tokens
        .windows(2)
        .any(|pair| matches!(pair, [a, b] if a.text == first && then.contains(&b.text)))
}

/// "Write a failing test", "add a test that fails", "reproduce the bug with a red test"; not "add a test for the failing login".
fn wants_red(tokens: &[Token<'_>], lower: &str) -> bool {
    if RED_TEST_CJK.iter().any(|phrase| lower.contains(phrase)) {
        return true;
    }
    let Some(write) = tokens
        .iter()
        .position(|token| WRITE.contains(&token.text) || token.text == "reproduce")
    else {
        return false;
    };
    let near = tokens.iter().enumerate().skip(write + 1).take(12);
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let is_test = |at: usize| TEST_WORDS.contains(&word(at));
    let red = near.into_iter().any(|(at, token)| {
        // "the failing tests" exist already.
        let known = matches!(
            word(at - 1),
            "the" | "these" | "those" | "all" | "existing" | "every" | "currently" | "our" | "any"
        );
        let before = FAILING.contains(&token.text) && !known && (is_test(at + 1) || is_test(at + 2));
        let verb =
            |at: usize| FAILING.contains(&word(at)) && !matches!(word(at), "failing" | "red" | "broken");
        let joined = |at: usize| {
            matches!(
                word(at),
                "that" | "which" | "should" | "que" | "qui" | "der" | "die" | "must"
            )
        };
        let behind = is_test(at) && (verb(at + 1) || joined(at + 1) && (verb(at + 2) || verb(at + 3)));
        before || behind
    });
    red && !wants_fix(tokens, lower)
}

/// "Explain why the tests fail": the question leads, and nothing is to be changed.
fn asks_why(tokens: &[Token<'_>], lower: &str) -> bool {
    let leads = tokens.iter().take(4).any(|token| DIAGNOSE.contains(&token.text));
    let head: String = lower.chars().take(12).collect();
    let leads_cjk = DIAGNOSE_CJK.iter().any(|word| head.contains(word));
    let changes = tokens.iter().any(|token| CODE_VERBS.contains(&token.text));
    (leads || leads_cjk) && !changes && !wants_fix(tokens, lower)
}

fn wants_fix(tokens: &[Token<'_>], lower: &str) -> bool {
    const FIX: &[&str] = &[
        "fix",
        "fixes",
        "repair",
        "pass",
        "passes",
        "green",
        "arregla",
        "arreglar",
        "corrige",
        "behebe",
        "beheben",
        "repariere",
        "répare",
        "corriger",
        "corrija",
        "conserte",
        "resolve",
        "solve",
    ];
    tokens.iter().any(|token| FIX.contains(&token.text))
        || OUTCOME_CJK.iter().any(|word| lower.contains(word))
}

/// "Get CI green", "修复 CI": the project's own checks are meant.
fn ci_green(tokens: &[Token<'_>], lower: &str) -> bool {
    let ci = tokens
        .iter()
        .any(|token| matches!(token.text, "ci" | "pipeline" | "build"));
    let green = tokens.iter().any(|token| OUTCOME.contains(&token.text))
        || OUTCOME_CJK.iter().any(|word| lower.contains(word));
    let named_ci = tokens.iter().any(|token| token.text == "ci");
    ci && green && (named_ci || tokens.iter().any(|token| token.text == "green"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_says_whether_tests_decide_it() {
        let check = |text: &str, mentions: bool, red: bool, commands: &[&str]| {
            let goal = Goal::read(text);
            let seen = (
                goal.mentions_tests,
                goal.expects_failure,
                goal.named_commands.iter().map(String::as_str).collect::<Vec<_>>(),
            );
            assert_eq!(seen, (mentions, red, commands.to_vec()), "{text}");
        };
        check("修复失败测试,让 npm test 通过。", true, false, &["npm test"]);
        check("修复失败测试\u{ff0c}让npm test通过。", true, false, &["npm test"]);
        check(
            "Fix the failing tests so that `npm test` passes.",
            true,
            false,
            &["npm test"],
        );
        check(
            "Make `npm test` and `npm run lint` pass.",
            true,
            false,
            &["npm test", "npm run lint"],
        );
        check(
            "Fix the race in cache.go and make go test ./... pass.",
            true,
            false,
            &["go test ./..."],
        );
        check(
            "Fix the bug; cargo test must be green.",
            true,
            false,
            &["cargo test"],
        );
        check("Make mvn test pass.", true, false, &["mvn test"]);
        check("Make the pytest suite pass.", true, false, &["pytest"]);
        check("Make tests/test_math.py::test_add pass.", true, false, &[]);
        check("Please go test the login page", true, false, &[]);
        check("Get CI green.", true, false, &[]);
        check("テストを直して", true, false, &[]);
        check("실패하는 테스트를 고쳐줘", true, false, &[]);
        check("Arregla las pruebas que fallan", true, false, &[]);
        check("Behebe die fehlschlagenden Tests", true, false, &[]);
        check("Corrige les tests qui échouent", true, false, &[]);
        check("Conserte os testes que falham", true, false, &[]);
        check("Upgrade to the latest contest attestation", false, false, &[]);
        check(
            "Do not run the tests; just fix the typo in add().",
            false,
            false,
            &[],
        );
        check("不要运行测试,只改错别字", false, false, &[]);
        check("Add a test-mode flag to the CLI.", false, false, &[]);
        check("Create a test account page", false, false, &[]);
        check("Update the README section about running tests", false, false, &[]);
        check("Write a failing test that reproduces issue 12.", true, true, &[]);
        check("Explain why npm test fails", true, true, &["npm test"]);
        check(
            "Find out why npm test fails and fix it",
            true,
            false,
            &["npm test"],
        );
        check("写一个失败的测试来重现问题", true, true, &[]);
        check(
            "Refactor src/math.ts without breaking any tests",
            true,
            false,
            &[],
        );
    }

    #[test]
    fn a_goal_names_paths_as_written() {
        let check = |text: &str, wanted: &[&str]| assert_eq!(Goal::read(text).named_paths, wanted, "{text}");
        check("Make tests/test_math.py::test_add pass.", &["tests/test_math.py"]);
        check("Make the tests of packages/core pass.", &["packages/core"]);
        check("修复 src/math.ts,让测试通过", &["src/math.ts"]);
        check("See https://example.com/a and/or e.g. this", &["and/or"]);
    }
}
