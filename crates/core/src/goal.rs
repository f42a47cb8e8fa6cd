//! What a goal asks for as far as tests are concerned: read once, used by the context builder and the validation gate.
//!
//! A lexicon in eight languages, matched on words and not on letters: `latest`, `contest` and `attestation` are no tests, a
//! `test-mode` flag is a feature, and "do not run the tests" waives them.

use crate::validation::recognise;
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

/// Words that mean tests. CJK entries are matched as substrings, since those languages do not space their words.
const TEST_WORDS: &[&str] = &[
    // en
    "test",
    "tests",
    "tested",
    "testing",
    "unittest",
    "unittests",
    "testsuite",
    "testcase",
    "testcases",
    "spec",
    "specs",
    "pytest",
    "jest",
    "vitest",
    "mocha",
    "rspec",
    "phpunit",
    "unit-test",
    "unit-tests",
    "test-suite",
    "junit",
    "ctest",
    "nextest",
    // es, pt
    "prueba",
    "pruebas",
    "teste",
    "testes",
    "testear",
    "testar",
    // de
    "testen",
    "testfall",
    "testfälle",
    "testlauf",
    "unittests",
    "modultest",
    "modultests",
    "komponententests",
    "integrationstest",
    "integrationstests",
    "unit-tests",
    "testsuiten",
    // fr
    "essais",
    "tester",
];
const TEST_CJK: &[&str] = &[
    "测试",
    "測試",
    "单测",
    "單測",
    "用例",
    "テスト",
    "試験",
    "테스트",
    "시험",
];

/// Words after `test` that make it the name of a thing: a test account is no test.
const ATTRIBUTIVE: &[&str] = &[
    "mode",
    "flag",
    "option",
    "account",
    "accounts",
    "server",
    "environment",
    "env",
    "page",
    "user",
    "users",
    "button",
    "key",
    "token",
    "card",
    "drive",
    "id",
    "strip",
    "kit",
    "bed",
    "bench",
    "plan",
    "score",
    "scores",
    "center",
    "centre",
    "tube",
    "pilot",
    "net",
    "testnet",
];

/// Outcome words: the goal wants a state of the tests, not a text about them.
const OUTCOME: &[&str] = &[
    "pass",
    "passes",
    "passing",
    "passed",
    "green",
    "fix",
    "fixes",
    "fixed",
    "repair",
    "succeed",
    "succeeds",
    "work",
    "works",
    "broken",
    "flaky",
    "unbreak",
    "pasar",
    "pasen",
    "pase",
    "arregla",
    "arreglar",
    "corrige",
    "corregir",
    "verde",
    "grün",
    "bestehen",
    "repariere",
    "behebe",
    "beheben",
    "korrigiere",
    "durchlaufen",
    "passer",
    "passent",
    "réparer",
    "répare",
    "corriger",
    "vert",
    "passem",
    "passar",
    "conserte",
    "consertar",
    "corrija",
    "corrigir",
];
const OUTCOME_CJK: &[&str] = &[
    "通过",
    "通過",
    "修复",
    "修復",
    "修好",
    "修正",
    "跑通",
    "变绿",
    "直し",
    "直す",
    "直して",
    "通る",
    "通す",
    "パス",
    "통과",
    "고쳐",
    "고치",
    "수정",
];

/// Words that mean every test there is.
const WHOLE: &[&str] = &[
    "all", "suite", "every", "entire", "whole", "todas", "todos", "alle", "tous", "toutes",
];
const WHOLE_CJK: &[&str] = &["所有", "全部", "全て", "すべて", "모든"];

/// Words that turn "run the tests" into "leave them".
const NEGATION: &[&str] = &[
    "not", "don't", "dont", "don’t", "never", "without", "no", "skip", "avoid", "nicht", "keine", "ohne",
    "no", "sin", "sans", "pas", "não", "nao", "sem", "nunca", "jamais",
];
const RUN: &[&str] = &[
    "run",
    "running",
    "execute",
    "executing",
    "start",
    "launch",
    "need",
    "needed",
    "necessary",
    "require",
    "bother",
    "ausführen",
    "laufen",
    "ejecutes",
    "ejecutar",
    "corras",
    "lance",
    "lancer",
    "exécute",
    "exécuter",
    "rode",
    "rodar",
    "execute",
    "executar",
    "for",
    "any",
    "with",
];
const WAIVED_CJK: &[&str] = &[
    "不要运行测试",
    "不要跑测试",
    "别跑测试",
    "别运行测试",
    "不用跑测试",
    "不用测试",
    "无需测试",
    "不需要测试",
    "不必测试",
    "不運行測試",
    "テストは実行しない",
    "テストを実行しない",
    "テストは不要",
    "テストしない",
    "테스트를 실행하지",
    "테스트는 실행하지",
    "테스트 실행하지",
    "테스트하지",
];

const FAILING: &[&str] = &[
    "failing",
    "red",
    "fails",
    "fail",
    "broken",
    "falla",
    "falle",
    "fallida",
    "fehlschlagenden",
    "fehlschlagender",
    "fehlschlägt",
    "échoue",
    "échouant",
    "falha",
    "falhando",
];
const WRITE: &[&str] = &[
    "write", "add", "create", "produce", "provide", "commit", "escribe", "añade", "agrega", "crea",
    "schreibe", "schreib", "erstelle", "ergänze", "écris", "ajoute", "crée", "escreva", "adicione", "crie",
];
const DIAGNOSE: &[&str] = &[
    "explain",
    "why",
    "diagnose",
    "investigate",
    "analyze",
    "analyse",
    "understand",
    "describe",
    "explica",
    "explicar",
    "porqué",
    "erkläre",
    "warum",
    "explique",
    "expliquer",
    "pourquoi",
    "explica",
    "porque",
];
const DIAGNOSE_CJK: &[&str] = &[
    "为什么",
    "為什麼",
    "解释",
    "解釋",
    "说明",
    "分析",
    "なぜ",
    "原因",
    "説明",
    "왜",
    "설명",
];
const RED_TEST_CJK: &[&str] = &[
    "写一个失败的测试",
    "写个失败的测试",
    "添加一个失败的测试",
    "编写一个失败的测试",
    "新增一个失败的测试",
    "失敗するテストを書",
    "失敗するテストを追加",
    "실패하는 테스트를 작성",
    "실패하는 테스트를 추가",
];

/// Goals about texts.
const DOCS: &[&str] = &[
    "readme",
    "readme.md",
    "docs",
    "documentation",
    "document",
    "changelog",
    "docstring",
    "docstrings",
    "comment",
    "comments",
    "guide",
    "tutorial",
    "contributing.md",
    "contributing",
    "wiki",
    "documenta",
    "documentación",
    "dokumentation",
    "dokumentiere",
    "documentação",
];
const DOCS_CJK: &[&str] = &["文档", "文檔", "说明书", "注释", "ドキュメント", "문서"];
/// Goals that only look.
const LOOK: &[&str] = &[
    "list",
    "count",
    "show",
    "summarize",
    "summarise",
    "which",
    "what",
    "where",
    "how",
    "find",
    "describe",
    "print",
];

/// Programs that are also English words: followed by prose they are no command.
const PROSE: &[&str] = &[
    "the", "a", "an", "it", "this", "that", "my", "our", "your", "these", "those", "whether", "if", "all",
    "every", "each", "me", "you", "us", "in", "on", "of", "coverage", "cases", "files", "suite", "suites",
    "runner",
];

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
        let mut goal = Self {
            named_paths: named_paths(&text),
            named_commands: named_commands(&text),
            ..Self::default()
        };
        let has = |words: &[&str]| tokens.iter().any(|token| words.contains(&token.text));
        let has_cjk = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let mentions = mentions(&tokens, &lower);
        let outcome = has(OUTCOME) || has_cjk(OUTCOME_CJK) || has_pair(&tokens, "make", FAILING);
        let named_tests = goal
            .named_commands
            .iter()
            .any(|command| recognise(command).is_some());
        let named_test_path = goal.named_paths.iter().any(|path| is_test_path(path));
        let about_docs = (has(DOCS) || has_cjk(DOCS_CJK)) && !outcome;
        let only_looks =
            tokens.first().is_some_and(|first| LOOK.contains(&first.text)) && !outcome && !named_tests;
        goal.expects_failure = wants_red(&tokens, &lower)
            || (has(DIAGNOSE) || has_cjk(DIAGNOSE_CJK))
                && !wants_fix(&tokens, &lower)
                && (!mentions.is_empty() || named_tests);
        let waived = mentions.iter().all(|mention| mention.negated) && !mentions.is_empty() && !outcome
            || has_cjk(WAIVED_CJK);
        let asked = mentions.iter().any(|mention| !mention.negated)
            || named_tests
            || named_test_path
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

fn mentions(tokens: &[Token<'_>], lower: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if !TEST_WORDS.contains(&token.text) {
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
    let skips = clause
        .iter()
        .take(at - start)
        .any(|token| matches!(token.text, "skip" | "skipping"));
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

/// "Write a failing test", "add a test that fails", "reproduce the bug with a red test".
fn wants_red(tokens: &[Token<'_>], lower: &str) -> bool {
    if RED_TEST_CJK.iter().any(|phrase| lower.contains(phrase)) {
        return true;
    }
    let place = |words: &[&str], from: usize| {
        tokens
            .iter()
            .skip(from)
            .position(|token| words.contains(&token.text))
            .map(|at| at + from)
    };
    let Some(write) = tokens
        .iter()
        .position(|token| WRITE.contains(&token.text) || token.text == "reproduce")
    else {
        return false;
    };
    let near = |at: usize| at > write && at - write <= 7;
    let red = place(FAILING, write).filter(|at| near(*at));
    let test = place(TEST_WORDS, write).filter(|at| near(*at));
    match (red, test) {
        (Some(red), Some(test)) => red.abs_diff(test) <= 3 && !wants_fix(tokens, lower),
        (Some(_) | None, _) => false,
    }
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

fn named_paths(text: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    let breaks = |c: char| {
        let punctuation =
            c.is_ascii_punctuation() && !matches!(c, '.' | '_' | '-' | '/' | '@' | '+' | ':' | '~');
        c.is_whitespace() || is_cjk(c) || is_wide_punctuation(c) || punctuation
    };
    for word in text.split(breaks) {
        let path = word.split("::").next().unwrap_or(word);
        let path = path
            .split(':')
            .next()
            .unwrap_or(path)
            .trim_end_matches('.')
            .trim_start_matches("./");
        let name = path.rsplit('/').next().unwrap_or(path);
        let extension = name
            .rsplit_once('.')
            .filter(|(stem, _)| !stem.is_empty())
            .map(|(_, extension)| extension);
        let plain = path.chars().all(|c| c.is_alphanumeric() || "._-/@+".contains(c))
            && path.chars().any(char::is_alphabetic);
        let file = extension.is_some_and(|extension| {
            (1..=5).contains(&extension.len())
                && extension.chars().all(|c| c.is_ascii_alphanumeric())
                && extension.starts_with(|c: char| c.is_ascii_alphabetic())
        });
        let directory = path.contains('/')
            && !path.starts_with('/')
            && !path.contains("..")
            && !word.contains("://")
            && path
                .split('/')
                .filter(|part| !part.is_empty())
                .all(|part| part.len() > 1);
        let abbreviation = matches!(path, "e.g" | "i.e" | "Node.js" | "node.js" | "Vue.js" | "Next.js");
        if plain
            && (file || directory)
            && !abbreviation
            && !word.starts_with("--")
            && !paths.iter().any(|known| known == path)
            && paths.len() < 32
        {
            paths.push(path.trim_end_matches('/').to_owned());
        }
    }
    paths
}

/// Words of commands that check something and can be required: lint, types, build.
const CHECKS: &[&str] = &[
    "lint",
    "typecheck",
    "type-check",
    "types",
    "build",
    "clippy",
    "fmt",
    "check",
    "tsc",
    "eslint",
    "ruff",
    "mypy",
    "flake8",
    "vet",
    "golangci-lint",
    "prettier",
    "format",
    "compile",
    "pyright",
    "biome",
];

/// True if `command` is a test run or a check whose success a goal can ask for.
fn is_required(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let check = words.iter().take(4).any(|word| {
        CHECKS
            .iter()
            .any(|check| word == check || word.split(':').any(|part| part == *check))
    });
    let shaped = command.len() <= 200
        && words
            .first()
            .is_some_and(|first| first.starts_with(|c: char| c.is_ascii_lowercase() || c == '.'));
    shaped && (recognise(command).is_some() || check && words.len() > 1)
}

fn named_commands(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = String::new();
    // What stands in backquotes is meant literally.
    for (place, part) in text.split('`').enumerate() {
        if place % 2 == 1 && part.len() <= 200 {
            let command = part.trim();
            if is_required(command) {
                found.push(command.to_owned());
                rest.push_str(" ; ");
                continue;
            }
        }
        rest.push_str(part);
    }
    let words = command_words(&rest);
    let mut at = 0;
    while at < words.len().min(2_000) {
        let taken = longest_command(words.get(at..).unwrap_or_default());
        if let Some((command, length)) = taken {
            if !found.contains(&command) {
                found.push(command);
            }
            at += length;
        } else {
            at += 1;
        }
    }
    found.truncate(8);
    found
}

/// Words that could be of a command; an empty word is a break.
fn command_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for raw in text.split(|c: char| c.is_whitespace() || is_cjk(c)) {
        let clean = raw.trim_start_matches(['"', '\'', '(', '“', '「']);
        let closes =
            |c: char| matches!(c, '"' | '\'' | ')' | ',' | ';' | '!' | '?' | ':') || is_wide_punctuation(c);
        let end = clean.trim_end_matches(closes);
        let end = match end.ends_with("...") {
            true => end,
            false => end.trim_end_matches('.'),
        };
        words.push(end.to_owned());
        if end.len() != clean.len() {
            words.push(String::new());
        }
    }
    words
}

fn longest_command(words: &[String]) -> Option<(String, usize)> {
    let first = words.first().filter(|word| !word.is_empty() && word.len() < 60)?;
    // A program is written in lower case; `Make` begins a sentence.
    if !first.starts_with(|c: char| c.is_ascii_lowercase() || c == '.') || !first.is_ascii() {
        return None;
    }
    let program = first.rsplit('/').next().unwrap_or(first);
    let a_word = [
        "test", "tests", "spec", "task", "act", "tap", "best", "move", "tester", "lab", "green", "m", "b",
        "v", "behave", "robot", "testing", "trial", "check", "fish", "time", "watch", "env",
    ]
    .contains(&program);
    // "make go test pass": `go` is no target of make.
    let takes_target = matches!(
        program,
        "make" | "just" | "rake" | "ant" | "gulp" | "grunt" | "invoke" | "inv"
    );
    if takes_target
        && !words
            .get(1)
            .is_some_and(|target| is_test_line(&format!("{first} {target}")))
    {
        return None;
    }
    let path_like = |word: &String| {
        word.starts_with('-')
            || word.contains('/')
            || word.contains("::")
            || word.contains(':')
            || word.contains('.')
    };
    if a_word || (first.contains('.') && !first.contains('/')) {
        return None;
    }
    let mut best = None;
    let mut candidate = first.clone();
    let mut length = 1;
    loop {
        let next = words.get(length);
        let prose = next.is_some_and(|next| PROSE.contains(&next.as_str()));
        let bare = length == 1;
        let known_alone = !bare
            || matches!(
                program,
                "pytest"
                    | "vitest"
                    | "phpunit"
                    | "rspec"
                    | "ctest"
                    | "tox"
                    | "nosetests"
                    | "mocha"
                    | "jest"
                    | "gotestsum"
            );
        let ambiguous = matches!(
            program,
            "make"
                | "just"
                | "go"
                | "mix"
                | "forge"
                | "swift"
                | "dart"
                | "rake"
                | "node"
                | "bun"
                | "ant"
                | "gradle"
                | "crystal"
                | "stack"
        );
        if known_alone && !(ambiguous && prose) && is_test_line(&candidate) {
            best = Some((candidate.clone(), length));
        }
        let Some(next) = next.filter(|next| !next.is_empty() && next.is_ascii() && length < 8) else {
            return best;
        };
        // After a complete command only options and paths still belong to it.
        if prose || best.is_some() && !path_like(next) {
            return best;
        }
        candidate.push(' ');
        candidate.push_str(next);
        length += 1;
    }
}

fn is_test_line(candidate: &str) -> bool {
    recognise(candidate).is_some_and(|command| command.runner != "script" && command.runner != "gtest")
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
