//! What runners print at the end: counts, phrases that mean "nothing ran", signs of a broken environment.
//!
//! Facts about formats come from each runner's own output; a line is read with a handful of anchored shapes.

use regex::Regex;
use std::sync::LazyLock;

/// Counts of one output, summed where a runner prints one line per package.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) skipped: u64,
    /// Number of summary lines seen.
    pub(super) lines: u64,
    /// True if a line says that something failed without a count, such as go's `FAIL`.
    pub(super) red: bool,
}

/// What an output says, exit status apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) counts: Counts,
    /// A phrase that means that no test was found.
    pub(super) nothing_found: bool,
    /// Packages that passed and ran something (go).
    pub(super) packages_ok: u64,
    /// All of the runner's work was up to date: nothing ran.
    pub(super) up_to_date: bool,
    pub(super) cached: bool,
    pub(super) snapshots_written: bool,
}

/// Compiles one of the fixed shapes below; each is exercised by a test, so `None` never happens in practice.
fn shape(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

/// `3 failed`, `1 failing`, `12 passed`, `2 skipped`: number before word.
static COUNT_WORD: LazyLock<Option<Regex>> =
    LazyLock::new(|| shape(r"(?i)\b(\d{1,9})\s+(?:(tests?|examples?|specs?)\s+)?([a-z]+)"));
/// `Failures: 2`, `# pass 3`, `fail 0`: word before number.
static WORD_COUNT: LazyLock<Option<Regex>> =
    LazyLock::new(|| shape(r"(?i)\b([a-z]+(?: run)?)(?:\s*[:=]\s*|\s+)(\d{1,9})\b"));

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Passed,
    Failed,
    Skipped,
    Total,
}

fn kind(word: &str) -> Option<Kind> {
    match word.to_ascii_lowercase().as_str() {
        "passed" | "passing" | "pass" | "succeeded" | "ok" | "successes" | "success" => Some(Kind::Passed),
        "failed" | "failing" | "fail" | "failures" | "failure" | "errors" | "error" | "errored"
        | "cancelled" | "errs" | "timed" => Some(Kind::Failed),
        "skipped" | "skip" | "pending" | "ignored" | "todo" | "disabled" | "deselected" | "excluded"
        | "xfailed" | "incomplete" | "skips" | "omissions" | "filtered" => Some(Kind::Skipped),
        "total" | "tests" | "test" | "tests run" | "examples" | "example" | "runs" | "specs"
        | "scenarios" => Some(Kind::Total),
        _ => None,
    }
}

/// Removes colours: what a terminal shows is what counts.
pub(super) fn plain(output: &str) -> String {
    let mut text = String::with_capacity(output.len());
    let mut chars = output.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            if chars.next_if_eq(&'[').is_some() {
                while chars.next_if(|c| !c.is_ascii_alphabetic()).is_some() {}
                chars.next();
            }
        } else if c == '\r' {
            text.push('\n');
        } else {
            text.push(c);
        }
    }
    text
}

const NOTHING_FOUND: &[&str] = &[
    "no tests found",
    "no test files found",
    "no tests to run",
    "no tests ran",
    "no tests were found",
    "no test matches",
    "no test is available",
    "no tests executed",
    "no test suites found",
    "collected 0 items",
    "ran 0 tests",
    "no examples found",
    "no test found",
    "0 tests executed",
    "0 passing",
    "total tests: 0",
    "test count: 0",
    "no specs found",
    "there are no tests",
    "no matching tests",
    "no tests matched",
    "error: no test modules found",
    "no test targets",
    "0 scenarios",
    "no test specified",
    "no tests!",
    "no tests run",
];

/// Reads the output of `runner`.
pub(super) fn read(runner: &str, output: &str) -> Summary {
    let mut summary = Summary::default();
    let (mut packages, mut without_tests) = (0_u64, 0_u64);
    let (mut tasks_done, mut tasks_current, mut tasks_empty) = (0_u64, 0_u64, 0_u64);
    let mut total = None;
    for line in output.lines() {
        // A longer line is no summary; cutting keeps this linear on any output.
        let line: String = line.trim().chars().take(400).collect();
        let lower = line.to_lowercase();
        summary.cached |=
            lower.contains("(cached)") || lower.contains("from-cache") || lower.contains("cache hit");
        summary.snapshots_written |= (lower.contains("snapshot")
            && (lower.contains("updated") || lower.contains("written")))
            || lower.contains("snapshots accepted");
        summary.nothing_found |= lower == "1..0" || lower.starts_with("1..0 #");
        if NOTHING_FOUND.iter().any(|phrase| lower.contains(phrase)) {
            let one_package = lower.starts_with("ok ") || lower.starts_with("ok\t") || lower.starts_with('?');
            summary.nothing_found |= !one_package;
        }
        if runner == "gradle"
            && lower.starts_with("> task ")
            && lower.contains("test")
            && !lower.contains("classes")
            && !lower.contains("compile")
            && !lower.contains("resources")
        {
            if lower.ends_with("no-source") {
                tasks_empty += 1;
            } else if lower.ends_with("up-to-date") {
                tasks_current += 1;
            } else {
                tasks_done += 1;
            }
        }
        if go_line(&line, &mut summary, &mut packages, &mut without_tests) {
            continue;
        }
        if let Some((counts, all)) = summary_line(&line, &lower) {
            let seen = summary.counts;
            summary.counts = Counts {
                passed: seen.passed.saturating_add(counts.passed),
                failed: seen.failed.saturating_add(counts.failed),
                skipped: seen.skipped.saturating_add(counts.skipped),
                lines: seen.lines + 1,
                red: seen.red || counts.red,
            };
            total = match (total, all) {
                (Some(before), Some(all)) => Some(u64::saturating_add(before, all)),
                (before, all) => before.or(all),
            };
        }
    }
    // `31 examples, 0 failures`, `Tests run: 88, Failures: 2`: what did not fail or skip passed.
    if let Some(total) = total
        && summary.counts.passed == 0
    {
        let other = summary.counts.failed.saturating_add(summary.counts.skipped);
        summary.counts.passed = total.saturating_sub(other);
    }
    summary.packages_ok = packages.saturating_sub(without_tests);
    if without_tests > 0 && summary.packages_ok == 0 && summary.counts.passed == 0 {
        summary.nothing_found = true;
    }
    summary.nothing_found |= tasks_empty > 0 && tasks_done == 0 && tasks_current == 0;
    summary.up_to_date = tasks_current > 0 && tasks_done == 0 && summary.counts.lines == 0;
    summary
}

/// `ok  pkg 0.02s`, `ok pkg (cached)`, `FAIL pkg`, `?  pkg [no test files]`.
fn go_line(line: &str, summary: &mut Summary, packages: &mut u64, without_tests: &mut u64) -> bool {
    let mut words = line.split_whitespace();
    match (words.next(), words.next()) {
        (Some("ok"), Some(package))
            if package.parse::<u64>().is_err() && (line.contains('\t') || package.contains(['/', '.'])) =>
        {
            *packages += 1;
            if line.contains("[no tests to run]") {
                *without_tests += 1;
            }
            true
        }
        (Some("?"), Some(_)) if line.contains("[no test files]") => {
            *packages += 1;
            *without_tests += 1;
            true
        }
        (Some("FAIL"), _) | (Some("---"), Some("FAIL:")) => {
            summary.counts.red = true;
            true
        }
        (Some("not"), Some("ok")) => {
            // TAP: an expected failure is no failure.
            let lower = line.to_lowercase();
            summary.counts.red |= !lower.contains("# todo") && !lower.contains("# skip");
            true
        }
        _ => false,
    }
}

/// Reads counts of a summary line; `None` if the line is none.
fn summary_line(line: &str, lower: &str) -> Option<(Counts, Option<u64>)> {
    let body = line.trim_matches(['=', '-', ' ', '*', '│', '|']);
    let is_suites = [
        "test suites:",
        "test files",
        "snapshots:",
        "suites:",
        "time:",
        "# suites",
        "duration",
    ]
    .iter()
    .any(|head| lower.trim_start().starts_with(head));
    let digit_first = body.starts_with(|c: char| c.is_ascii_digit());
    let heads = [
        "tests:",
        "tests run:",
        "tests ",
        "test result:",
        "# pass",
        "# fail",
        "# skipped",
        "# cancelled",
        "# todo",
        "# tests",
        "ℹ pass",
        "ℹ fail",
        "ℹ skipped",
        "ℹ tests",
        "ℹ cancelled",
        "total tests:",
        "passed:",
        "failed:",
        "passed!",
        "failed!",
        "failed (",
        "ok (",
        "[info] passed:",
        "[error] failed:",
        "[info] failed:",
        "[warning] tests run:",
        "[error] tests run:",
        "[info] tests run:",
        "summary",
        "result:",
        "executed ",
        "ran ",
        "tests run",
        "finished in",
        "ok |",
        "failed |",
        "passing:",
        "failing:",
        "pending:",
        "pass rate",
        "runs:",
        "total:",
        "skipped:",
    ];
    let lower_body = lower.trim_start_matches(['=', '-', ' ', '*', '│', '|']);
    if is_suites || !(digit_first || heads.iter().any(|head| lower_body.starts_with(head))) {
        return None;
    }
    let marks = [
        "Failures:",
        "Errors:",
        "Failed:",
        "Passed:",
        "Assertions:",
        "Skipped:",
    ];
    let words_first = lower_body.starts_with("# ")
        || lower_body.starts_with('\u{2139}')
        || lower_body.contains("(skipped=")
        || lower_body.starts_with("failed (")
        || lower_body.starts_with("total tests:")
        || marks.iter().any(|mark| body.contains(mark))
        || starts_with_named_count(body);
    let (mut counts, total) = match lower_body.split_once("% tests passed, ") {
        Some((_, rest)) => ctest_line(rest)?,
        None if words_first => named_counts(body)?,
        None => plain_counts(body, digit_first)?,
    };
    counts.red = lower_body.starts_with("test result: failed") || lower_body.starts_with("failed!");
    Some((counts, total))
}

#[derive(Debug, Default)]
struct Tally {
    counts: Counts,
    total: Option<u64>,
    seen: bool,
}

impl Tally {
    fn put(&mut self, kind: Kind, number: u64) {
        self.seen = true;
        let counts = &mut self.counts;
        match kind {
            Kind::Passed => counts.passed = counts.passed.saturating_add(number),
            Kind::Failed => counts.failed = counts.failed.saturating_add(number),
            Kind::Skipped => counts.skipped = counts.skipped.saturating_add(number),
            Kind::Total => self.total = Some(number),
        }
    }

    fn done(self) -> Option<(Counts, Option<u64>)> {
        self.seen.then_some((self.counts, self.total))
    }
}

/// `0 tests failed out of 12`, behind `100% tests passed, `.
fn ctest_line(rest: &str) -> Option<(Counts, Option<u64>)> {
    let mut tally = Tally::default();
    tally.put(Kind::Failed, rest.split_whitespace().next()?.parse().ok()?);
    tally.put(Kind::Total, rest.split_whitespace().last()?.parse().ok()?);
    tally.done()
}

/// `Failing: 1`, `Passed: Total 12`: the line begins with a word that counts.
fn starts_with_named_count(body: &str) -> bool {
    let found = WORD_COUNT.as_ref().and_then(|shape| shape.captures(body));
    found.is_some_and(|found| {
        let first = found.get(0).is_some_and(|all| all.start() == 0);
        let counts = found.get(1).and_then(|word| kind(word.as_str()));
        first && counts.is_some_and(|kind| kind != Kind::Total)
    })
}

fn named_counts(body: &str) -> Option<(Counts, Option<u64>)> {
    let mut tally = Tally::default();
    for found in WORD_COUNT.as_ref()?.captures_iter(body) {
        let word = found.get(1).and_then(|word| kind(word.as_str()));
        let number = found.get(2).and_then(|number| number.as_str().parse().ok());
        if let (Some(kind), Some(number)) = (word, number) {
            tally.put(kind, number);
        }
    }
    tally.done()
}

fn plain_counts(body: &str, digit_first: bool) -> Option<(Counts, Option<u64>)> {
    let mut tally = Tally::default();
    for found in COUNT_WORD.as_ref()?.captures_iter(body) {
        // `Ran 2 tests in`: the word behind says nothing, the one before it does.
        let word = found.get(3).and_then(|word| kind(word.as_str()));
        let counted = word.or(found.get(2).map(|_| Kind::Total));
        let number = found.get(1).and_then(|number| number.as_str().parse().ok());
        let (Some(kind), Some(number), Some(all)) = (counted, number, found.get(0)) else {
            continue;
        };
        // "3 errors found in fixtures" is prose, "3 errors, 2 passed" a summary.
        let after = body.get(all.end()..).unwrap_or_default().trim_start();
        let ends = after.is_empty()
            || after.starts_with([',', '|', '(', ';', '.', ':', '/', '-'])
            || ["in ", "and ", "out of "]
                .iter()
                .any(|word| after.starts_with(word));
        if digit_first && !tally.seen && !ends {
            return None;
        }
        tally.put(kind, number);
    }
    tally.done()
}

/// Signs that the environment and not the code is at fault: a closed list.
pub(super) fn environment_broken(output: &str) -> bool {
    const SIGNS: &[&str] = &[
        "command not found",
        "network is unreachable",
        "temporary failure in name resolution",
        "could not resolve host",
        "eai_again",
        "enotfound",
        "read-only file system",
        "erofs",
        "no space left on device",
        "is not recognized as an internal or external command",
        "could not find or load main class",
        "toolchain is not installed",
        "missing script: \"test\"",
        "missing script: test",
        "no module named pytest",
        "enetunreach",
        "cannot connect to the docker daemon",
        "no such command:",
        "unable to locate package.json",
        "err_pnpm_no_script",
        "could not read package.json",
    ];
    let lower = output.to_lowercase();
    SIGNS.iter().any(|sign| lower.contains(sign))
        || lower.lines().any(|line| line.trim_end().ends_with(": not found"))
}

/// True if the output shows that tests could not even be collected for want of a dependency.
pub(super) fn collection_broken(output: &str) -> bool {
    let lower = output.to_lowercase();
    let collecting = lower.contains("error collecting")
        || lower.contains("errors during collection")
        || lower.contains("error while loading conftest")
        || lower.contains("importerror while loading");
    collecting && (lower.contains("modulenotfounderror") || lower.contains("no module named"))
}
