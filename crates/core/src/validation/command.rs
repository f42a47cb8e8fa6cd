//! Is this command line a test run, of which runner and scope, and does its exit status say what the tests said?

use super::{
    interpreters,
    runners::{self, Family, Operands, Runner, Verb},
    status,
    tasks::{self, task_scope},
    wrappers::{self, Unwrapped},
};
use serde::{Deserialize, Serialize};

/// How much of the project's tests a run covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Everything that the runner finds by itself.
    All,
    /// A named part: a file, a package, a filter, a changed set.
    Subset,
    /// Not said by the command: a directory, a task of its own name, a script.
    Unknown,
}

/// What of the runner's output the command line lets through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// All of it.
    Whole,
    /// Its end, where the summary is.
    Tail,
    /// What a filter such as `grep` or `head` chose.
    Filtered,
    /// Nothing: it goes to a file or to `/dev/null`.
    Elsewhere,
    /// The line prints text of its own that reads like a result.
    Mixed,
}

/// A further test run on the same line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Also {
    /// The runner's name, as in [`TestCommand::runner`].
    pub runner: String,
    /// As in [`TestCommand::normalised`].
    pub normalised: Vec<String>,
    /// As in [`TestCommand::scope`].
    pub scope: Scope,
    /// As in [`TestCommand::dir`].
    pub dir: Option<String>,
}

/// A command line that runs tests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCommand {
    /// The name of the runner: `npm`, `pytest`, `cargo`, … or `script` for a script that is named like one.
    pub runner: String,
    /// The argument vector without wrappers and display options, aliases spelled out: `npm t` is `npm test`.
    pub normalised: Vec<String>,
    /// How much it covers.
    pub scope: Scope,
    /// True if the line can exit 0 although a test in it failed.
    pub masked: bool,
    /// True if the runner exits 0 when it finds no test.
    pub zero_ok: bool,
    /// True if it stays running and waits for changes.
    pub watch: bool,
    /// True if it was sent to the background and not waited for: its exit status says nothing at all.
    pub detached: bool,
    /// What of its output can be read.
    pub shown: Shown,
    /// The directory that the line changes to before, as written and joined; `None` for the one it started in.
    pub dir: Option<String>,
    /// Further test runs on the line.
    pub also: Vec<Also>,
}

/// Says whether `script`, a shell command line, runs tests; `None` if it does not.
///
/// Reads structure (lists, pipelines, substitutions, wrappers) and then matches argument vectors against a table of runners.
#[must_use]
pub fn recognise(script: &str) -> Option<TestCommand> {
    let line = status::read(script);
    let mut found = line.found.into_iter();
    let first = found.next()?;
    let also: Vec<Also> = found
        .map(|run| Also {
            runner: run.runner.to_owned(),
            normalised: run.normalised,
            scope: run.scope,
            dir: run.dir,
        })
        .collect();
    Some(TestCommand {
        runner: first.runner.to_owned(),
        normalised: first.normalised,
        scope: first.scope,
        masked: line.masked,
        zero_ok: first.zero_ok,
        watch: first.watch,
        detached: line.detached,
        shown: line.shown,
        dir: first.dir,
        also,
    })
}

/// One test run found on a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Invocation {
    pub(super) runner: &'static str,
    pub(super) normalised: Vec<String>,
    pub(super) scope: Scope,
    pub(super) zero_ok: bool,
    pub(super) watch: bool,
    pub(super) masks: bool,
    pub(super) dir: Option<String>,
}

/// What an argument vector does, wrappers taken off.
#[derive(Debug)]
pub(super) enum Meaning {
    Test(Invocation),
    Script {
        text: String,
        options: Vec<String>,
        masks: bool,
        watch: bool,
    },
    Other,
}

/// Reads an argument vector: takes wrappers off (at most eight) and matches the rest.
pub(super) fn meaning(argv: &[String]) -> Meaning {
    let mut argv = argv.to_vec();
    let (mut masks, mut watch, mut runs_tasks) = (false, false, false);
    for _ in 0..8 {
        let Some(program) = argv.first().map(|word| base(word)) else {
            return Meaning::Other;
        };
        // `command -v pytest` asks where it is.
        if program == "command" && argv.get(1).is_some_and(|arg| arg == "-v" || arg == "-V") {
            return Meaning::Other;
        }
        if let Some(inside) = wrappers::unwrap(&program, &argv) {
            masks |= inside.masks;
            watch |= inside.watch;
            runs_tasks |= TASK_WRAPPERS.contains(&program.as_str());
            match inside.command {
                Unwrapped::Argv(inner) => argv = inner,
                Unwrapped::Script(text) => {
                    return Meaning::Script {
                        text,
                        options: inside.options,
                        masks,
                        watch,
                    };
                }
            }
            continue;
        }
        let found = invocation(&program, &argv).or_else(|| {
            let scope = argv
                .first()
                .filter(|_| runs_tasks)
                .and_then(|name| task_scope(name))?;
            Some(script_run("task", argv.clone(), scope))
        });
        return match found {
            Some(mut run) => {
                run.masks |= masks;
                run.watch |= watch;
                Meaning::Test(run)
            }
            None => Meaning::Other,
        };
    }
    Meaning::Other
}

/// Wrappers that also run tasks of the project by name.
const TASK_WRAPPERS: &[&str] = &[
    "pdm", "hatch", "rye", "pixi", "poetry", "pipenv", "uv", "devbox", "devenv",
];

/// The last part of a path, without what Windows and version managers add.
pub(super) fn base(word: &str) -> String {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let name = [".exe", ".cmd", ".bat", ".ps1"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(name);
    match name {
        "mvnw" | "mvnd" => "mvn",
        "gradlew" => "gradle",
        "py.test" => "pytest",
        "_mocha" => "mocha",
        "jest-cli" => "jest",
        "bazelisk" => "bazel",
        "gmake" => "make",
        "nodejs" => "node",
        name => name,
    }
    .to_owned()
}

pub(super) fn script_run(runner: &'static str, argv: Vec<String>, scope: Scope) -> Invocation {
    Invocation {
        runner,
        normalised: argv,
        scope,
        zero_ok: false,
        watch: false,
        masks: false,
        dir: None,
    }
}

/// Matches an argument vector without wrappers.
pub(super) fn invocation(program: &str, argv: &[String]) -> Option<Invocation> {
    // The shell's own `test`, and what prints instead of running; `script/test` is a file.
    let is_path = argv.first().is_some_and(|word| word.contains(['/', '\\']));
    if matches!(
        program,
        "test" | "[" | "[[" | "echo" | "printf" | "cat" | "ls" | "grep" | "rg"
    ) && !is_path
    {
        return None;
    }
    let asks_for_help = |arg: &String| matches!(arg.as_str(), "--help" | "--version");
    if argv
        .iter()
        .skip(1)
        .take_while(|arg| *arg != "--")
        .any(asks_for_help)
    {
        return None;
    }
    let args = argv.get(1..).unwrap_or_default();
    tasks::package_script(program, args)
        .or_else(|| interpreters::interpreted(program, args))
        .or_else(|| from_table(program, argv))
        .or_else(|| {
            let word = argv.first().filter(|word| word.contains(['/', '\\']))?;
            interpreters::script_file(word, args)
        })
}

/// Matches a program that tests by itself: no package manager, no interpreter, so that nothing recurses.
pub(super) fn from_table(program: &str, argv: &[String]) -> Option<Invocation> {
    let args = argv.get(1..).unwrap_or_default();
    tasks::special(program, args)
        .or_else(|| runners::of_program(program).find_map(|row| from_row(row, program, args)))
}

/// True if a command line that tests can begin with this word.
pub(crate) fn can_begin_a_run(word: &str) -> bool {
    const OTHERS: [&str; 14] = [
        "npm", "pnpm", "yarn", "bun", "composer", "deno", "coverage", "ruby", "php", "perl", "Rscript",
        "julia", "cmake", "tsx",
    ];
    let program = base(word);
    runners::of_program(&program).next().is_some()
        || wrappers::knows(&program)
        || OTHERS.contains(&program.as_str())
        || program.starts_with("python")
}

/// Arguments split into options and operands by a runner's own rules.
#[derive(Debug, Default)]
pub(super) struct Args {
    pub(super) flags: Vec<(String, Option<String>)>,
    pub(super) operands: Vec<String>,
}

impl Args {
    pub(super) fn read(args: &[String], takes_value: impl Fn(&str) -> bool) -> Self {
        let mut read = Self::default();
        let mut words = args.iter().peekable();
        while let Some(arg) = words.next() {
            if arg == "--" || (read.operands.is_empty() && is_toolchain(arg)) {
                continue;
            }
            if !arg.starts_with('-') || arg.len() == 1 {
                read.operands.push(arg.clone());
            } else if let Some((name, value)) = arg.split_once('=') {
                read.flags.push((name.to_owned(), Some(value.to_owned())));
            } else if takes_value(arg) {
                // A value is taken even if it begins with a dash: `-k "-slow"`.
                read.flags.push((arg.clone(), words.next().cloned()));
            } else {
                // `-j8`, `-kname`: a short option with its value glued on.
                let short: String = arg.chars().take(2).collect();
                let glued = arg.chars().count() > 2 && !arg.starts_with("--") && takes_value(&short);
                match glued {
                    true => read.flags.push((short, Some(arg.chars().skip(2).collect()))),
                    false => read.flags.push((arg.clone(), None)),
                }
            }
        }
        read
    }

    /// True if one of the table's flags is given; `--watch=false` does not give `--watch`.
    pub(super) fn any(&self, entries: &[&str]) -> bool {
        self.flags.iter().any(|(name, value)| {
            entries.iter().any(|entry| match entry.split_once('=') {
                Some((wanted, "")) => name == wanted,
                Some((wanted, exactly)) => name == wanted && value.as_deref() == Some(exactly),
                None if entry.ends_with(':') => name.starts_with(entry),
                None => name == entry && !matches!(value.as_deref(), Some("false" | "0" | "no" | "never")),
            })
        })
    }

    pub(super) fn value(&self, names: &[&str]) -> Option<&str> {
        let (_, value) = self
            .flags
            .iter()
            .find(|(name, _)| names.contains(&name.as_str()))?;
        value.as_deref()
    }
}

fn from_row(row: &'static Runner, program: &str, raw: &[String]) -> Option<Invocation> {
    let takes_value = |flag: &str| {
        row.values
            .iter()
            .chain(row.narrow)
            .chain(row.idle)
            .filter_map(|entry| entry.strip_suffix('='))
            .any(|name| name == flag)
            || matches!(row.verb, Verb::Flag(entries) if entries.iter().any(|entry| entry.split_once('=').is_some_and(|(name, _)| name == flag)))
    };
    let args = Args::read(raw, takes_value);
    let mut operands = args.operands.as_slice();
    let mut scope = row.whole;
    let mut taken: Vec<String> = Vec::new();
    match row.verb {
        Verb::Bare => {}
        Verb::Optional(words) => {
            if let Some((first, rest)) = operands.split_first()
                && words.contains(&first.as_str())
            {
                taken.push(first.clone());
                operands = rest;
            }
        }
        Verb::First(verbs) => {
            let verb = verbs.iter().find(|verb| {
                let words: Vec<&str> = verb.split(' ').collect();
                operands.len() >= words.len() && operands.iter().zip(&words).all(|(have, want)| have == want)
            })?;
            let (verb, rest) = operands.split_at_checked(verb.split(' ').count())?;
            taken.extend_from_slice(verb);
            operands = rest;
        }
        Verb::Goal(goals) => {
            operands.iter().find(|goal| goals.contains(&goal.as_str()))?;
        }
        Verb::Task => {
            let scopes: Vec<Scope> = operands
                .iter()
                .filter_map(|name| tasks::task_of(row.name, name))
                .collect();
            scope = scopes.into_iter().reduce(wider)?;
        }
        Verb::Flag(flags) => {
            if !args.any(flags) {
                return None;
            }
        }
    }
    let idles = |word: &String| row.idle.contains(&word.as_str());
    if args.any(row.idle) || operands.first().is_some_and(idles) {
        return None;
    }
    if row.family == Family::Go && args.value(&["-run", "--run"]).is_some_and(matches_nothing) {
        return None;
    }
    let start: Vec<String> = args
        .value(&["-s", "--start-directory"])
        .filter(|_| row.name == "unittest")
        .map(str::to_owned)
        .into_iter()
        .collect();
    let filtered = operands_scope(row, operands).or_else(|| operands_scope(row, &start));
    if let Some(found) = filtered {
        scope = found;
    }
    let narrowed = args.any(row.narrow) && !only_a_build_directory(&args);
    if narrowed || operands.iter().any(|word| selects_by_variable(word)) {
        scope = Scope::Subset;
    }
    if row.name == "ginkgo" && args.any(&["-r", "--recursive"]) && scope == row.whole && !narrowed {
        scope = Scope::All;
    }
    let watch = args.any(row.watch) || taken.iter().any(|word| row.watch.contains(&word.as_str()));
    if args.any(&["--watch"]) && row.name == "jest" {
        scope = Scope::Subset;
    }
    let by_name = matches!(filtered, Some(Scope::Subset)) || args.any(&["-t=", "-k=", "--filter="]);
    Some(Invocation {
        runner: row.name,
        normalised: normalised(program, raw),
        scope,
        zero_ok: args.any(row.zero_ok) || row.zero_exits_0 && (by_name || row.name == "unittest"),
        watch,
        masks: args.any(row.masks) || taken.iter().any(|word| row.masks.contains(&word.as_str())),
        dir: args
            .value(&["-C", "--directory", "--cwd", "--prefix"])
            .map(str::to_owned),
    })
}

/// `+nightly`, `+1.80`: cargo's choice of a toolchain, no operand.
fn is_toolchain(arg: &str) -> bool {
    arg.strip_prefix('+').is_some_and(|name| {
        ["nightly", "stable", "beta"]
            .iter()
            .any(|channel| name.starts_with(channel))
            || name.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// `go test -run=^$ -bench=.` runs benchmarks only.
fn matches_nothing(pattern: &str) -> bool {
    matches!(
        pattern,
        "^$" | "NONE" | "XXX" | "^NONE$" | "^#" | "a^" | "none" | "notests"
    )
}

/// `make -C build test` is the whole project, built elsewhere.
fn only_a_build_directory(args: &Args) -> bool {
    args.value(&["-C", "--directory", "-p", "--project-dir"])
        .is_some_and(|dir| is_build_directory(dir) || dir == ".")
}

pub(super) fn is_build_directory(dir: &str) -> bool {
    let name = dir.trim_end_matches('/').trim_start_matches("./");
    ["build", "_build", "out", "builddir"].contains(&name)
        || name.starts_with("cmake-build")
        || name.starts_with("build/")
        || name.starts_with("build-")
}

/// `make test TESTS=foo`, `rake test TEST=test/a.rb`.
fn selects_by_variable(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, value)| {
        !value.is_empty()
            && [
                "TEST",
                "TESTS",
                "SPEC",
                "T",
                "TESTARGS",
                "TEST_ARGS",
                "PYTEST_ARGS",
                "ARGS",
                "RUN",
                "FILTER",
                "PKG",
                "TEST_FILES",
            ]
            .contains(&name)
    })
}

pub(super) const fn wider(a: Scope, b: Scope) -> Scope {
    match (a, b) {
        (Scope::All, _) | (_, Scope::All) => Scope::All,
        (Scope::Unknown, _) | (_, Scope::Unknown) => Scope::Unknown,
        (Scope::Subset, Scope::Subset) => Scope::Subset,
    }
}

fn operands_scope(row: &Runner, operands: &[String]) -> Option<Scope> {
    let one = |word: &String| match row.operands {
        Operands::Ignored => None,
        Operands::Paths => Some(path_scope(word, false)),
        Operands::Filters => Some(path_scope(word, true)),
        Operands::Packages => Some(
            if matches!(word.as_str(), "./..." | "..." | "all")
                || word.ends_with("/...") && word.starts_with("$")
            {
                Scope::All
            } else {
                Scope::Subset
            },
        ),
        Operands::Labels => Some(
            if matches!(word.as_str(), "//..." | "..." | "//...:all" | "::" | "//:all") {
                Scope::All
            } else {
                Scope::Subset
            },
        ),
    };
    let found = operands.iter().filter_map(one).reduce(wider);
    match (found, row.name) {
        // `go test` alone is the package of the directory; `gotestsum` alone is `./...`.
        (None, "go") => Some(Scope::Subset),
        (found, _) => found,
    }
}

/// What one path or filter operand covers. Directories of tests say little; files and names are parts.
pub(super) fn path_scope(word: &str, bare_is_filter: bool) -> Scope {
    const USUAL: [&str; 14] = [
        "test",
        "tests",
        "spec",
        "specs",
        "src",
        "t",
        "features",
        "e2e",
        "integration",
        "__tests__",
        "lib",
        "unit",
        "testing",
        "acceptance",
    ];
    if matches!(word, "." | "./" | "./..." | "*" | "all" | "**")
        || word.ends_with(".sln")
        || word.ends_with(".slnx")
    {
        return Scope::All;
    }
    let trimmed = word.trim_start_matches("./").trim_end_matches('/');
    let whole_glob = trimmed.contains('*');
    let last = trimmed.rsplit('/').next().unwrap_or(trimmed);
    let is_file =
        last.contains("::") || last.trim_start_matches('.').contains(['.', ':', '*']) && !whole_glob;
    if is_file || (!whole_glob && trimmed.contains('/')) {
        return Scope::Subset;
    }
    if whole_glob || word.ends_with('/') || (!bare_is_filter && USUAL.contains(&trimmed)) {
        return Scope::Unknown;
    }
    Scope::Subset
}

/// The argument vector with aliases spelled out and without what only changes the display.
pub(super) fn normalised(program: &str, args: &[String]) -> Vec<String> {
    const DISPLAY: [&str; 12] = [
        "-q",
        "-v",
        "-vv",
        "--quiet",
        "--verbose",
        "--silent",
        "--color",
        "--no-color",
        "--colors",
        "--nocapture",
        "--color=always",
        "--",
    ];
    let mut argv = vec![program.to_owned()];
    for (place, arg) in args.iter().enumerate() {
        if DISPLAY.contains(&arg.as_str()) || (place == 0 && arg.starts_with('+')) {
            continue;
        }
        let spelled = match arg.as_str() {
            "t" | "tst" if argv.len() == 1 => "test",
            arg => arg,
        };
        argv.push(spelled.to_owned());
    }
    argv
}
