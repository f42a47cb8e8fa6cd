//! Command lines beyond the corpus: what runs tests, whose exit status the line has, and that hostile lines end.

use tracegate_core::{
    goal::Goal,
    validation::{Ended, Scope, read_result, recognise},
};

#[test]
fn a_line_is_masked_exactly_if_a_failing_test_can_end_in_0() {
    let check = |script: &str, masked: bool| {
        let got = recognise(script).map(|command| command.masked);
        assert_eq!(got, Some(masked), "{script}");
    };
    for kept in [
        "npm test && echo ok",
        "true && npm test",
        "cargo build; cargo test",
        "set -e; cargo test; cargo build",
        "set -o pipefail; npm test | tee log",
        "bash -o pipefail -c 'npm test | tail -5'",
        "npm test 2>&1 | tee log; exit ${PIPESTATUS[0]}",
        "npm test || exit $?",
        "npm test || { echo no; exit 1; }",
        "npm test; rc=$?; echo $rc; exit $rc",
        "if ! npm test; then exit 1; fi",
        "if npm test; then echo ok; else exit 1; fi",
        "for p in a b; do (cd $p && npm test) || exit 1; done",
        "npm test & pid=$!; wait $pid",
        "out=$(npm test) || exit 1; echo \"$out\"",
        "trap 'rm -rf tmp' EXIT; npm test",
        "t() { npm test; }; t",
        "npm test; status=$?; if [ $status -ne 0 ]; then exit 1; fi",
        "timeout -k 5 300 cargo test",
        "script -e -q -c 'npm test' /dev/null",
    ] {
        check(kept, false);
    }
    for lost in [
        "npm test | cat",
        "npm test |& tee log",
        "set -e; npm test | tee log",
        "npm test || :",
        "npm test; true",
        "npm test && echo ok || echo no",
        "cargo test\ncargo build",
        "npm test; rc=$?; echo $rc",
        "while ! npm test; do sleep 1; done",
        "npm test & wait",
        "echo $(npm test)",
        "out=$(npm test); echo \"$out\"",
        "export X=$(pytest)",
        "pytest || pytest --lf",
        "(npm test; echo $?)",
        "{ npm test; } 2>&1 | tail -3",
        "eval 'npm test; true'",
        "find . -name package.json -execdir npm test \\;",
        "watch -n 5 npm test",
        "make -i test",
        "npm test; if true; then exit 0; fi",
    ] {
        check(lost, true);
    }
}

#[test]
fn aliases_and_wrappers_come_out_as_one_command() {
    let check = |script: &str, runner: &str, scope: Scope, argv: &[&str]| {
        let got = recognise(script).map(|command| (command.runner, command.scope, command.normalised));
        let argv = argv.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(got, Some((runner.to_owned(), scope, argv)), "{script}");
    };
    for script in [
        "npm test",
        "npm t",
        "npm run test",
        "npm test --silent",
        "CI=1 npm test",
        "env -u X npm t",
        "sudo npm test",
        "npx c8 npm test",
        "ssh host 'npm test'",
        "docker exec -it app npm test",
    ] {
        check(script, "npm", Scope::All, &["npm", "test"]);
    }
    for script in [
        "pytest",
        "py.test -q",
        "python3.12 -m pytest",
        "uv run --with pytest pytest",
        "coverage run -m pytest",
        "./venv/bin/pytest",
    ] {
        check(script, "pytest", Scope::All, &["pytest"]);
    }
    for script in [
        "npx jest",
        "yarn jest",
        "pnpm exec jest",
        "node_modules/.bin/jest",
        "node node_modules/jest/bin/jest.js",
        "npm exec -- jest",
    ] {
        check(script, "jest", Scope::All, &["jest"]);
    }
    check(
        "yarn workspace web test",
        "yarn",
        Scope::Subset,
        &["yarn", "test", "workspace", "web"],
    );
    check("cargo +nightly t", "cargo", Scope::All, &["cargo", "test"]);
    check(
        "make -C build test",
        "make",
        Scope::All,
        &["make", "-C", "build", "test"],
    );
    check("cd build && ctest", "ctest", Scope::All, &["ctest"]);
    check("tox -e py311", "tox", Scope::Unknown, &["tox", "-e", "py311"]);
}

#[test]
fn what_only_names_tests_runs_none() {
    for script in [
        "cat <<EOF\nnpm test\nEOF",
        "git commit -m 'npm test'",
        "# npm test",
        "vim tests/a.py",
        "cp -r tests /tmp",
        "docker build -t test .",
        "git checkout test",
        "npm run build:test",
        "npm run dev -- --test",
        "make test-deps",
        "tox -e lint",
        "cargo insta accept",
        "./gradlew assemble",
        "pip show pytest",
        "npx eslint tests",
        "go test -c",
        "go test -run=^$ -bench=. ./...",
        "cargo test -- --list",
        "npm test --help",
        "command -v pytest",
        "",
    ] {
        assert_eq!(recognise(script), None, "{script}");
    }
}

#[test]
fn a_hostile_line_ends_and_is_no_green() {
    let many = |text: &str, count: usize| text.repeat(count);
    for line in [
        many("$(", 6_000),
        many("(", 6_000),
        many("{ ", 6_000),
        many("if ", 6_000),
        many("yarn ", 6_000),
        many("ruby ", 6_000),
        many("coverage run -m ", 2_000),
        many("bash -c '", 2_000),
        many("a=$?;", 6_000),
        many("npm test;", 2_000),
        many("f(){ ", 2_000),
        many("! ", 6_000),
        many("\"$(", 2_000),
        many("case x in a) ", 2_000),
        many("`", 6_001),
        many("<<A\n", 2_000),
        many("timeout ", 2_000),
    ] {
        let command = recognise(&line)
            .or_else(|| recognise("npm test"))
            .unwrap_or_else(|| panic!("npm test is a test"));
        assert!(command.also.len() <= 16);
        let reading = read_result(&command, &Ended::Exited(0), &line);
        assert_eq!(reading.passed.unwrap_or_default(), 0);
        assert_eq!(Goal::read(&line), Goal::read(&line));
    }
}
