//! Tests started through an interpreter or as a file of their own: `python -m pytest`, `node a.test.js`, `./run_tests.sh`.

use super::{
    command::{Args, Invocation, Scope, base, from_table, normalised, script_run},
    tasks::task_scope,
};

/// `python -m pytest`, `coverage run -m pytest`, `node x.test.js`, `ruby -Itest test/a_test.rb`, `Rscript -e …`.
pub(super) fn interpreted(program: &str, args: &[String]) -> Option<Invocation> {
    let python = program == "coverage"
        || program == "slipcover"
        || program == "pypy3"
        || program == "pypy"
        || program == "py"
        || program
            .strip_prefix("python")
            .is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'));
    if python {
        return python_run(program, args);
    }
    let read = |takes: &[&str]| Args::read(args, |flag| takes.contains(&flag));
    match program {
        "node" | "tsx" | "ts-node" | "babel-node" | "esr" | "esno" => {
            if args.iter().any(|arg| arg.starts_with("--test")) {
                return None;
            }
            let read = read(&[
                "-r",
                "--require",
                "--loader",
                "--import",
                "-e",
                "-p",
                "--env-file",
                "-C",
                "-P",
            ]);
            if read.any(&["-e=", "-p=", "--eval=", "--print="]) {
                return None;
            }
            let file = read.operands.first()?;
            let name = base(file);
            let program = name
                .trim_end_matches(".js")
                .trim_end_matches(".cjs")
                .trim_end_matches(".mjs");
            let after: Vec<String> = args.iter().skip_while(|arg| *arg != file).cloned().collect();
            if file.contains("node_modules") {
                return from_table(program, &after);
            }
            script_file(file, after.get(1..).unwrap_or_default())
        }
        "ruby" | "php" | "perl" | "lua" | "luajit" | "bash" | "sh" | "zsh" | "dash" | "ksh" | "fish"
        | "tclsh" | "pwsh" => {
            let read = read(&["-r", "-I", "-e", "-d", "-c", "-f", "-o", "-O"]);
            if read.any(&["-e=", "-c="]) {
                return None;
            }
            let file = read.operands.first()?;
            let after: Vec<String> = args.iter().skip_while(|arg| *arg != file).cloned().collect();
            let known =
                from_table(&base(file), &after).filter(|run| run.runner != "script" && run.runner != "gtest");
            known.or_else(|| {
                let run = script_file(file, after.get(1..).unwrap_or_default())?;
                let own = matches!(program, "ruby" | "perl") && run.scope == Scope::Subset;
                let runner = match program {
                    "ruby" if own => "minitest",
                    "perl" if own => "prove",
                    _ => run.runner,
                };
                Some(Invocation { runner, ..run })
            })
        }
        "Rscript" | "R" | "julia" => {
            let text = args.join(" ");
            let tests = [
                "devtools::test",
                "testthat::",
                "tinytest::",
                "test_dir(",
                "test_local(",
                "test_check(",
                "test_package(",
                "Pkg.test(",
                "CMD check",
            ];
            let runner = if program == "julia" { "julia" } else { "testthat" };
            if tests.iter().any(|word| text.contains(word)) {
                let one = text.contains("test_file(") || text.contains("filter");
                return Some(script_run(
                    runner,
                    normalised(program, args),
                    if one { Scope::Subset } else { Scope::All },
                ));
            }
            if text.contains("test_file(") {
                return Some(script_run(runner, normalised(program, args), Scope::Subset));
            }
            let file = args.iter().rfind(|arg| !arg.starts_with('-'))?;
            let whole = base(file) == "runtests.jl" || base(file) == "testthat.R";
            if whole {
                return Some(script_run(runner, normalised(program, args), Scope::All));
            }
            let run = script_file(file, &[]).filter(|_| file.contains('.'))?;
            Some(script_run(runner, normalised(program, args), run.scope))
        }
        "kotlinc" | "kotlin" => {
            let file = args.iter().find(|arg| arg.ends_with(".kts"))?;
            script_file(file, &[]).map(|run| Invocation {
                runner: "kotlin-script",
                ..run
            })
        }
        "java" => {
            let is = |word: &str| args.iter().any(|arg| arg.contains(word));
            (is("junit") || is("JUnitCore") || is("org.testng.TestNG"))
                .then(|| script_run("script", normalised(program, args), Scope::Unknown))
        }
        _ => None,
    }
}

/// `coverage run …` starts something, `coverage report` does not.
fn behind_run(words: &[String]) -> Option<&[String]> {
    let (first, rest) = words.split_first()?;
    (first == "run").then_some(rest)
}

fn python_run(program: &str, args: &[String]) -> Option<Invocation> {
    let mut words = args;
    if program == "coverage" {
        words = behind_run(words)?;
    }
    while let Some((first, rest)) = words.split_first() {
        if first == "-m" {
            let module = rest.first()?;
            let after = rest.get(1..).unwrap_or_default();
            if module == "coverage" || module == "slipcover" {
                words = if module == "coverage" {
                    behind_run(after)?
                } else {
                    after
                };
                continue;
            }
            let module = match module.as_str() {
                "twisted.trial" => "trial",
                "pytest_watch" => "ptw",
                "django" => "django-admin",
                module => module,
            };
            let mut argv = vec![module.to_owned()];
            argv.extend_from_slice(after);
            let known = [
                "pytest",
                "unittest",
                "nose",
                "nose2",
                "tox",
                "nox",
                "behave",
                "doctest",
                "robot",
                "trial",
                "ptw",
                "django-admin",
                "xdoctest",
                "ward",
                "green",
                "stestr",
                "pytest_watcher",
            ];
            if known.contains(&module) {
                return from_table(module, &argv);
            }
            let last = module.rsplit('.').next().unwrap_or(module);
            return (module.contains('.') && task_scope(last).is_some())
                .then(|| script_run("python-script", normalised("python", args), Scope::Subset));
        }
        if matches!(
            first.as_str(),
            "-W" | "-X"
                | "--rcfile"
                | "--source"
                | "--omit"
                | "--include"
                | "--data-file"
                | "--context"
                | "--concurrency"
        ) {
            words = rest.get(1..).unwrap_or_default();
            continue;
        }
        if first == "-c" {
            // Its result is only the exit status if the text hands it on.
            let text = rest.first()?;
            let tests = text.contains("pytest.main")
                || text.contains("unittest.main")
                || text.contains("pytest.cmdline");
            let kept =
                text.contains("exit(") || text.contains("SystemExit") || text.contains("unittest.main");
            return tests.then(|| Invocation {
                masks: !kept,
                ..script_run("python-script", normalised("python", args), Scope::Unknown)
            });
        }
        if first == "-" {
            return None;
        }
        if first.starts_with('-') {
            words = rest;
            continue;
        }
        let name = base(first);
        let mut argv = vec![name.clone()];
        argv.extend_from_slice(rest);
        if ["manage.py", "setup.py", "pytest", "nosetests", "tox"].contains(&name.as_str()) {
            return from_table(&name, &argv);
        }
        let run = script_file(first, rest)?;
        let whole = run.scope == Scope::Unknown;
        return Some(Invocation {
            runner: if whole { "script" } else { "python-script" },
            normalised: normalised("python", words),
            ..run
        });
    }
    None
}

/// A file that is run: a script named like a test runner, a test file, or a test binary.
pub(super) fn script_file(path: &str, args: &[String]) -> Option<Invocation> {
    let name = base(path);
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => (stem, extension),
        _ => (name.as_str(), ""),
    };
    let mut argv = vec![path.trim_start_matches("./").to_owned()];
    argv.extend_from_slice(args);
    let lower = stem.to_ascii_lowercase();
    let in_tests = path
        .split('/')
        .rev()
        .skip(1)
        .any(|part| matches!(part, "test" | "tests" | "spec" | "t" | "__tests__"));
    let source = matches!(
        extension,
        "py" | "js"
            | "mjs"
            | "cjs"
            | "ts"
            | "tsx"
            | "rb"
            | "pl"
            | "t"
            | "php"
            | "phpt"
            | "lua"
            | "jl"
            | "R"
            | "exs"
    );
    let scripts = path.split('/').any(|part| {
        matches!(
            part,
            "scripts" | "script" | "bin" | "ci" | "hack" | "tools" | ".ci"
        )
    });
    let runs = lower
        .split(['-', '_', '.'])
        .any(|part| matches!(part, "run" | "all" | "runtests"));
    let marked = |text: &str| {
        text.starts_with("test_")
            || text.ends_with("_test")
            || text.ends_with("_spec")
            || text.ends_with(".test")
            || text.ends_with(".spec")
            || text.ends_with("_tests")
    };
    if args.iter().any(|arg| arg.starts_with("--gtest_"))
        && !args.iter().any(|arg| arg == "--gtest_list_tests")
    {
        return Some(script_run("gtest", argv, Scope::Subset));
    }
    if source
        && !runs
        && !scripts
        && (marked(&lower) || extension == "t" || (in_tests && task_scope(&lower).is_some()))
    {
        return Some(script_run("script", argv, Scope::Subset));
    }
    let task = lower
        .replace("runtests", "run-tests")
        .replace("test.all", "test-all");
    let named = task_scope(&task).is_some()
        || stem.ends_with("Tests")
        || stem.ends_with("Test") && extension.is_empty();
    if !named {
        return None;
    }
    let binary = matches!(extension, "" | "out" | "elf");
    let test_binary = marked(&lower)
        || lower.ends_with("-test")
        || lower.ends_with("unittests")
        || lower.ends_with("_unittest")
        || stem.ends_with("Test")
        || stem.ends_with("Tests");
    if binary && test_binary && !scripts && !runs && path.contains('/') {
        return Some(script_run("gtest", argv, Scope::Subset));
    }
    Some(script_run("script", argv, Scope::Unknown))
}
