//! What a goal names: commands whose success it asks for, and paths.

use super::{
    is_cjk, is_wide_punctuation,
    lexicon::{BARE_AFTER, BARE_BEFORE, PROSE},
};
use crate::validation::{can_begin_a_run, recognise};

/// Paths that a text names.
pub(super) fn paths(text: &str) -> Vec<String> {
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

/// Test and check commands that a text names; `outcome` says whether it wants a state of the tests.
pub(super) fn commands(text: &str, outcome: bool) -> Vec<String> {
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
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        let tool = before.is_some_and(|word| BARE_BEFORE.contains(&word.to_lowercase().as_str()));
        let taken = longest_command(words.get(at..).unwrap_or_default(), outcome && !tool);
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

/// Runners that run the whole suite when they stand alone.
const ALONE: &[&str] = &[
    "pytest",
    "vitest",
    "phpunit",
    "rspec",
    "ctest",
    "tox",
    "nosetests",
    "mocha",
    "jest",
    "gotestsum",
];

/// The longest command that begins here; `bare` says whether a program alone may be meant as one.
fn longest_command(words: &[String], bare: bool) -> Option<(String, usize)> {
    let first = words.first().filter(|word| !word.is_empty() && word.len() < 60)?;
    // A program is written in lower case; `Make` begins a sentence.
    if !first.starts_with(|c: char| c.is_ascii_lowercase() || c == '.') || !first.is_ascii() {
        return None;
    }
    let program = first.rsplit('/').next().unwrap_or(first);
    if !can_begin_a_run(first) {
        return None;
    }
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
        let result = next.is_none_or(|next| BARE_AFTER.contains(&next.as_str()));
        let known_alone = length > 1 || bare && result && ALONE.contains(&program);
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
        let plain_word = ALONE.contains(&program) && next != "run";
        if prose || (best.is_some() || plain_word) && !path_like(next) {
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
