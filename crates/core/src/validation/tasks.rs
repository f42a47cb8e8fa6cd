//! Tests behind a name: package scripts, make targets, and the plain commands of a line.

use super::{
    command::{Args, Invocation, Scope, base, from_table, normalised, path_scope, script_run, wider},
    script,
};

/// Words in a task's name that say it prepares, checks or shows something instead of running tests.
const NOT_RUNNING: &[&str] = &[
    "lint",
    "build",
    "compile",
    "install",
    "format",
    "fmt",
    "clean",
    "types",
    "type",
    "typecheck",
    "list",
    "data",
    "deps",
    "setup",
    "up",
    "down",
    "image",
    "server",
    "serve",
    "fixtures",
    "fixture",
    "docs",
    "doc",
    "prepare",
    "env",
    "db",
    "gen",
    "generate",
    "mode",
    "classes",
    "resources",
    "bench",
    "tsc",
    "eslint",
    "prettier",
    "help",
    "report",
    "publish",
    "deploy",
    "cli",
    "utils",
    "helpers",
    "new",
    "create",
    "init",
];

/// Words in a task's name that say it runs tests.
const RUNNING: &[&str] = &[
    "test",
    "tests",
    "testing",
    "unittest",
    "unittests",
    "runtests",
    "testall",
    "spec",
    "specs",
    "e2e",
    "unit",
    "jest",
    "vitest",
    "mocha",
    "pytest",
    "cypress",
    "playwright",
    "karma",
    "selftest",
    "rspec",
    "phpunit",
];

/// What a task of this name covers; `None` if the name does not say that it tests.
pub(super) fn task_scope(name: &str) -> Option<Scope> {
    if name.contains(['=', '$', ' ']) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    if [
        "test",
        "tests",
        "test-all",
        "test_all",
        "test:all",
        "tests-all",
        "testall",
        "all-tests",
        "runtests",
        "run-tests",
        "spec",
        "specs",
    ]
    .contains(&name.as_str())
    {
        return Some(Scope::All);
    }
    let mut parts = name
        .split([':', '-', '_', '.', '/'])
        .filter(|part| !part.is_empty());
    let named = parts.clone().any(|part| RUNNING.contains(&part));
    let other = parts.any(|part| NOT_RUNNING.contains(&part));
    (named && !other).then_some(Scope::Unknown)
}

/// As [`task_scope`], with the target names of one task runner.
pub(super) fn task_of(runner: &str, name: &str) -> Option<Scope> {
    match runner {
        "gradle" => {
            let (project, task) = name.rsplit_once(':').unwrap_or(("", name));
            let scope = match task {
                "test" | "check" | "build" | "allTests" | "buildNeeded" => Scope::All,
                _ if task.ends_with("Classes")
                    || task.starts_with("compile")
                    || task.starts_with("process") =>
                {
                    return None;
                }
                _ if task.ends_with("Test") || task.ends_with("Tests") || task.starts_with("test") => {
                    Scope::Unknown
                }
                _ => return None,
            };
            Some(if project.is_empty() { scope } else { Scope::Subset })
        }
        "sbt" => {
            let mut words = name.split_whitespace();
            let head = words.next()?.trim_start_matches(['+', ';']);
            let (project, task) = head.rsplit_once(['/', ':', '.']).unwrap_or(("", head));
            match task {
                "test" | "testFull" if project.is_empty() || project == "__" || project == "Test" => {
                    Some(Scope::All)
                }
                "test" if ["IntegrationTest", "it", "Test"].contains(&project) => Some(Scope::Unknown),
                "test" | "testOnly" | "testQuick" | "test-only" | "testLocal" | "testCached" => {
                    Some(Scope::Subset)
                }
                _ => None,
            }
        }
        "moon" => {
            let task = name.trim_start_matches(['+', '~']);
            match task.rsplit_once([':', '+']) {
                Some(("" | "./" | "#", task)) => task_scope(task),
                Some((_, task)) => task_scope(task).map(|_| Scope::Subset),
                None if name.starts_with(['+', '~']) || !name.contains('/') => task_scope(task),
                None => None,
            }
        }
        "make" | "ninja" | "task" | "rake" | "ant"
            if matches!(name, "check" | "check-all" | "ctest" | "distcheck" | "junit") =>
        {
            Some(Scope::All)
        }
        _ => task_scope(name),
    }
}

/// Commands of package managers that are no scripts.
const MANAGER_COMMANDS: &[&str] = &[
    "install",
    "i",
    "add",
    "remove",
    "rm",
    "uninstall",
    "update",
    "up",
    "upgrade",
    "exec",
    "dlx",
    "x",
    "init",
    "create",
    "publish",
    "pack",
    "link",
    "unlink",
    "why",
    "info",
    "view",
    "list",
    "ls",
    "outdated",
    "audit",
    "config",
    "cache",
    "set",
    "get",
    "pkg",
    "version",
    "login",
    "logout",
    "store",
    "prune",
    "rebuild",
    "start",
    "stop",
    "ci",
    "import",
    "patch",
    "fund",
    "doctor",
    "help",
    "build",
    "dedupe",
];

/// `npm test`, `pnpm -r test`, `yarn workspace a run test:unit`, `bun run test`, `composer test`, `deno task test`.
pub(super) fn package_script(program: &str, raw: &[String]) -> Option<Invocation> {
    if !["npm", "pnpm", "yarn", "bun", "composer", "deno"].contains(&program) {
        return None;
    }
    let place = raw.iter().position(|arg| arg == "--").unwrap_or(raw.len());
    let (own, _) = raw.split_at_checked(place)?;
    let takes = |flag: &str| {
        [
            "--prefix",
            "-C",
            "--dir",
            "--filter",
            "-F",
            "-w",
            "--workspace",
            "--cwd",
            "--loglevel",
            "--reporter",
            "--working-dir",
            "-d",
        ]
        .contains(&flag)
            && !(program == "pnpm" && flag == "-w")
    };
    let args = Args::read(own, takes);
    let mut words: Vec<&str> = args.operands.iter().map(String::as_str).collect();
    words.reverse();
    let mut part = args.any(&[
        "--prefix=",
        "-C=",
        "--dir=",
        "--filter=",
        "--filter-prod=",
        "-F=",
        "--workspace=",
        "--cwd=",
        "--working-dir=",
    ]) || (program == "npm" && args.any(&["-w="]));
    let mut shorthand = false;
    let name = loop {
        let word = words.pop()?;
        match (program, word) {
            (
                "npm" | "pnpm",
                "test" | "t" | "tst" | "it" | "install-test" | "cit" | "install-ci-test"
                | "clean-install-test",
            ) => break "test",
            ("yarn", "test") | ("composer", "test") => break "test",
            ("npm", "sit") => break "test",
            ("npm" | "pnpm", "run" | "run-script" | "rum" | "urn")
            | ("yarn" | "bun", "run")
            | ("composer", "run" | "run-script")
            | ("deno", "task") => {
                break words.pop()?;
            }
            ("pnpm", "recursive" | "multi" | "m") | ("yarn", "workspaces" | "foreach") => {}
            ("yarn", "workspace") => {
                words.pop()?;
                part = true;
            }
            ("pnpm" | "yarn", word) if !MANAGER_COMMANDS.contains(&word) => {
                shorthand = true;
                break word;
            }
            _ => return None,
        }
    };
    // `yarn jest` and `pnpm vitest run` start the program itself.
    let at = raw.iter().position(|arg| arg == name);
    let rest: &[String] = at
        .and_then(|at| raw.get(at + 1..))
        .unwrap_or_else(|| after_verb(raw));
    if shorthand
        && !["test", "spec"].contains(&name)
        && let Some(run) = from_table(&base(name), raw.get(at.unwrap_or(0)..).unwrap_or_default())
    {
        return Some(run);
    }
    let mut scope = match name {
        "test" => Scope::All,
        "check" => return None,
        name => task_scope(name).map(|scope| if name == "test" { scope } else { Scope::Unknown })?,
    };
    let passed_on = Args::read(rest, |flag| {
        matches!(
            flag,
            "--reporter"
                | "--reporters"
                | "--config"
                | "-c"
                | "--maxWorkers"
                | "--coverageReporters"
                | "--timeout"
                | "--environment"
                | "--browsers"
                | "-t"
                | "-g"
                | "--grep"
                | "-k"
                | "--testNamePattern"
                | "--filter"
                | "-F"
                | "-w"
                | "--workspace"
                | "--project"
                | "--prefix"
                | "-n"
                | "--tb"
        )
    });
    if passed_on.any(&[
        "--listTests",
        "--collect-only",
        "--co",
        "--dry-run",
        "--list",
        "--no-run",
    ]) {
        return None;
    }
    if let Some(found) = passed_on
        .operands
        .iter()
        .filter(|word| !word.chars().all(|c| c.is_ascii_digit()))
        .map(|word| path_scope(word, true))
        .reduce(wider)
    {
        scope = found;
    }
    let narrowing = [
        "-t=",
        "--testNamePattern=",
        "-g=",
        "--grep=",
        "--filter=",
        "-k=",
        "--testPathPattern=",
        "--testPathPatterns=",
        "--findRelatedTests",
        "--onlyChanged",
        "-o",
        "--changed",
        "--shard=",
        "--spec=",
        "--lf",
        "--only",
        "--watch",
        "--workspace=",
        "-F=",
        "--project=",
        "--prefix=",
        "--include=",
        "--group=",
        "--testsuite=",
        "--lastCommit",
        "--changedSince=",
    ];
    if part || passed_on.any(&narrowing) || (program == "npm" && passed_on.any(&["-w="])) {
        scope = Scope::Subset;
    }
    let mut argv: Vec<String> = vec![program.to_owned()];
    match name {
        "test" => argv.push("test".to_owned()),
        name => argv.extend(["run".to_owned(), name.to_owned()]),
    }
    let verbs = ["run", "run-script", "test", "t", "tst"];
    let chosen = own
        .iter()
        .take_while(|arg| arg.as_str() != name)
        .filter(|arg| part && !verbs.contains(&arg.as_str()));
    let own_flags: Vec<String> = chosen.cloned().collect();
    argv.extend(normalised("", rest).into_iter().skip(1));
    argv.extend(own_flags);
    Some(Invocation {
        runner: match program {
            "pnpm" => "pnpm",
            "yarn" => "yarn",
            "bun" => "bun",
            "composer" => "composer",
            "deno" => "deno",
            _ => "npm",
        },
        normalised: argv,
        scope,
        zero_ok: args.any(&["--if-present"])
            || passed_on.any(&["--passWithNoTests", "--if-present", "--findRelatedTests"]),
        watch: name.contains("watch") || passed_on.any(&["--watch", "--watchAll"]),
        masks: passed_on.any(&["--testFailureExitCode=0", "--failure-exit-code=0"]),
        dir: args
            .value(&["--prefix", "-C", "--dir", "--cwd", "--working-dir"])
            .map(str::to_owned),
    })
}

/// `npm t`: the alias is not the script's name, so what follows it is found by its place.
fn after_verb(raw: &[String]) -> &[String] {
    let verb = raw.iter().position(|arg| !arg.starts_with('-'));
    verb.and_then(|at| raw.get(at + 1..)).unwrap_or_default()
}

/// Commands whose test run is named by more than a verb.
pub(super) fn special(program: &str, raw: &[String]) -> Option<Invocation> {
    let args = Args::read(raw, |flag| {
        matches!(
            flag,
            "-t" | "--target"
                | "--targets"
                | "--project"
                | "-p"
                | "--projects"
                | "-c"
                | "--config"
                | "--base"
                | "--head"
                | "--parallel"
                | "-j"
                | "-f"
                | "--exclude"
        )
    });
    let target = args.value(&["-t", "--target", "--targets"]);
    let first = args.operands.first().map(String::as_str);
    match program {
        "nx" => {
            let tests = |list: Option<&str>| {
                list.is_some_and(|list| list.split(',').any(|name| task_scope(name).is_some()))
            };
            let scope = match first? {
                "affected" if tests(target) => Scope::Subset,
                "affected:test" => Scope::Subset,
                "run-many" if tests(target) && args.any(&["-p=", "--projects=", "--exclude="]) => {
                    Scope::Subset
                }
                "run-many" if tests(target) => Scope::All,
                "run" => {
                    let (_, task) = args.operands.get(1)?.split_once(':')?;
                    task_scope(task)?;
                    Scope::Subset
                }
                _ => return None,
            };
            Some(Invocation {
                zero_ok: scope == Scope::Subset && first != Some("run"),
                ..script_run("nx", normalised(program, raw), scope)
            })
        }
        "cargo" if first == Some("watch") => {
            let what = args
                .flags
                .iter()
                .position(|(name, _)| name == "-x" || name == "--exec")?;
            let (_, value) = args.flags.get(what)?;
            let text = value.clone().or_else(|| args.operands.get(1).cloned())?;
            let tests = ["test", "t", "nextest"].contains(&text.split_whitespace().next()?);
            tests.then(|| Invocation {
                masks: true,
                watch: true,
                ..script_run("cargo", normalised(program, raw), Scope::All)
            })
        }
        "cmake" => {
            let wanted = args.any(&["--build"]) || raw.iter().any(|arg| arg == "--build");
            let target = target.filter(|_| wanted)?;
            ["test", "check", "RUN_TESTS", "tests"]
                .contains(&target)
                .then(|| script_run("ctest", normalised(program, raw), Scope::All))
        }
        "dotnet" if first == Some("run") => {
            let project = args.value(&["--project", "-p"])?;
            let named = base(project.trim_end_matches('/'))
                .split(['.', '-', '_'])
                .any(|part| task_scope(part).is_some());
            named.then(|| script_run("dotnet", normalised(program, raw), Scope::Subset))
        }
        "emacs" => raw
            .iter()
            .any(|arg| arg.contains("ert-run-tests"))
            .then(|| script_run("script", normalised(program, raw), Scope::Unknown)),
        "nox" | "tox" => {
            let session = args
                .flags
                .iter()
                .find(|(name, _)| matches!(name.as_str(), "-s" | "-e" | "--session" | "--sessions"));
            let names: Vec<&String> = args
                .operands
                .iter()
                .filter(|word| !matches!(word.as_str(), "run" | "r" | "p" | "run-parallel"))
                .collect();
            session?;
            let other = names.iter().any(|name| NOT_RUNNING.contains(&name.as_str()));
            (!other).then(|| {
                script_run(
                    if program == "nox" { "nox" } else { "tox" },
                    normalised(program, raw),
                    Scope::Unknown,
                )
            })
        }
        _ => None,
    }
}

/// The plain commands of a line.
#[derive(Debug, Default)]
pub(super) struct Plain {
    /// Their normalised argument vectors.
    pub(super) commands: Vec<Vec<String>>,
    /// True if exit 0 of the line means that each of them succeeded: one command, or several joined by `&&`.
    pub(super) all_succeed: bool,
}

/// Takes the plain commands out of a line: to see that a named command (`npm run lint`) was run.
pub(super) fn plain_commands(text: &str) -> Plain {
    let list = script::parse(text);
    let mut plain = Plain {
        all_succeed: list.len() == 1 && list.iter().all(|statement| !statement.background),
        ..Plain::default()
    };
    for statement in &list {
        plain.collect(&statement.node);
    }
    plain
}

impl Plain {
    fn collect(&mut self, node: &script::Node) {
        match node {
            script::Node::Simple(simple) => {
                let argv: Vec<String> = simple.words.iter().map(|word| word.text.clone()).collect();
                if let Some((program, args)) = argv.split_first() {
                    self.commands.push(normalised(&base(program), args));
                }
            }
            script::Node::AndOr { first, rest } => {
                self.collect(first);
                for (connector, node) in rest {
                    self.all_succeed &= *connector == script::Connector::And;
                    self.collect(node);
                }
            }
            script::Node::Pipeline { stages, .. } => {
                self.all_succeed = false;
                stages.iter().for_each(|stage| self.collect(stage));
            }
            script::Node::Subshell(list) | script::Node::Group(list) => {
                self.all_succeed &= list.len() == 1;
                list.iter().for_each(|statement| self.collect(&statement.node));
            }
            // What a branch or a loop runs is not known from the line.
            script::Node::If { .. }
            | script::Node::Loop { .. }
            | script::Node::Case(_)
            | script::Node::Function { .. } => self.all_succeed = false,
        }
    }
}
