//! The table of test runners: how each is started, and which of its flags change what a run proves.
//!
//! Data, not code: a new runner is a row. Flags ending in `=` take a separate value; `name=value` matches that value alone.
//! Facts come from each tool's `--help`.

use super::command::Scope;

/// Whose world a runner belongs to: a named `npm test` may be proved by `jest`, never by `pytest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Js,
    Rust,
    Python,
    Go,
    Jvm,
    Dotnet,
    Ruby,
    Php,
    Native,
    Other,
    /// Task runners and scripts: they may start anything.
    Any,
}

/// What has to stand behind the program for the command to be a test run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Verb {
    /// Nothing: the program is a test runner.
    Bare,
    /// The operands begin with one of these word sequences.
    First(&'static [&'static str]),
    /// One of the operands is one of these goals.
    Goal(&'static [&'static str]),
    /// One of the operands is the name of a task that tests (`test`, `check`, `test-unit`).
    Task,
    /// Nothing, but one of these words may stand first and selects no tests.
    Optional(&'static [&'static str]),
    /// One of these flags is given.
    Flag(&'static [&'static str]),
}

/// What the operands behind the verb say about the scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// Files, directories, node ids.
    Paths,
    /// Go packages: `./...` is all, none is the current one.
    Packages,
    /// Build labels: `//...` is all.
    Labels,
    /// Any operand selects by name.
    Filters,
    /// Operands say nothing.
    Ignored,
}

/// One row of the table.
#[derive(Debug)]
pub(super) struct Runner {
    pub(super) name: &'static str,
    pub(super) programs: &'static [&'static str],
    pub(super) family: Family,
    pub(super) verb: Verb,
    /// Operands or flags with which nothing is run (lists, builds, help).
    pub(super) idle: &'static [&'static str],
    /// Flags that take a separate value and say nothing about scope.
    pub(super) values: &'static [&'static str],
    /// Flags that leave tests out.
    pub(super) narrow: &'static [&'static str],
    /// Flags with which a run of no tests exits 0.
    pub(super) zero_ok: &'static [&'static str],
    pub(super) watch: &'static [&'static str],
    /// Flags with which a failing test does not fail the command.
    pub(super) masks: &'static [&'static str],
    pub(super) operands: Operands,
    /// The scope of a run without operands and narrowing flags.
    pub(super) whole: Scope,
    /// True if the runner exits 0 when a filter or a directory matched no test.
    pub(super) zero_exits_0: bool,
    /// True if every run of tests ends in a summary that the reader knows.
    pub(super) summary: bool,
}

const ROW: Runner = Runner {
    name: "",
    programs: &[],
    family: Family::Other,
    verb: Verb::Bare,
    idle: &[],
    values: &[],
    narrow: &[],
    zero_ok: &["--passWithNoTests", "--pass-with-no-tests", "--if-present"],
    watch: &["--watch", "--watchAll", "-w"],
    masks: &[],
    operands: Operands::Paths,
    whole: Scope::All,
    zero_exits_0: false,
    summary: false,
};

const TEST: Verb = Verb::First(&["test"]);

/// Returns the row of a runner by the name that [`super::TestCommand`] carries.
pub(super) fn named(name: &str) -> Option<&'static Runner> {
    RUNNERS.iter().find(|row| row.name == name)
}

/// Returns the rows that `program` (a base name) may start.
pub(super) fn of_program(program: &str) -> impl Iterator<Item = &'static Runner> {
    RUNNERS.iter().filter(move |row| row.programs.contains(&program))
}

#[rustfmt::skip]
static RUNNERS: &[Runner] = &[
    // JavaScript and TypeScript
    Runner { name: "npm", family: Family::Js, ..ROW },
    Runner { name: "pnpm", family: Family::Js, ..ROW },
    Runner { name: "yarn", family: Family::Js, ..ROW },
    Runner { name: "jest", programs: &["jest", "jest-cli"], family: Family::Js, summary: true,
        idle: &["--listTests", "--clearCache", "--showConfig", "--init", "start", "build", "eject"],
        values: &["-c=", "--config=", "--maxWorkers=", "-w=", "--reporters=", "--rootDir=", "--roots=", "--coverageReporters=", "--coverageDirectory=", "--env=", "--testEnvironment=", "--setupFilesAfterEnv=", "--testTimeout=", "--preset=", "--bail="],
        narrow: &["-t=", "--testNamePattern=", "--testPathPattern=", "--testPathPatterns=", "--testPathIgnorePatterns=", "--findRelatedTests", "--onlyChanged", "-o", "--onlyFailures", "-f", "--changedSince=", "--lastCommit", "--watch", "--selectProjects", "--ignoreProjects", "--shard=", "--runTestsByPath", "--filter="],
        zero_ok: &["--passWithNoTests", "--findRelatedTests", "--onlyChanged", "-o", "--changedSince="],
        watch: &["--watch", "--watchAll"], masks: &["--testFailureExitCode=0"], operands: Operands::Filters, ..ROW },
    Runner { name: "react-scripts", programs: &["react-scripts", "craco"], family: Family::Js, verb: TEST, summary: true, narrow: &["-t=", "--testNamePattern=", "--testPathPattern=", "-o"], watch: &["--watch", "--watchAll"], operands: Operands::Filters, ..ROW },
    Runner { name: "vitest", programs: &["vitest"], family: Family::Js, verb: Verb::Optional(&["run", "watch", "dev", "related"]), summary: true, idle: &["bench", "list", "init", "--mergeReports"],
        values: &["-c=", "--config=", "-r=", "--root=", "--reporter=", "--outputFile=", "--environment=", "--pool=", "--coverage.reporter=", "--maxWorkers=", "--mode=", "--bail=", "--retry=", "--testTimeout=", "--dir="],
        narrow: &["-t=", "--testNamePattern=", "--changed", "--project=", "--exclude=", "--shard=", "--related="],
        zero_ok: &["--passWithNoTests", "--changed"], watch: &["--watch", "-w", "watch", "dev"], masks: &["--dangerouslyIgnoreUnhandledErrors"], operands: Operands::Filters, ..ROW },
    Runner { name: "mocha", programs: &["mocha", "_mocha", "electron-mocha", "mochapack"], family: Family::Js, summary: true, idle: &["--list-interfaces", "--list-reporters", "--dry-run", "init"],
        values: &["-r=", "--require=", "-R=", "--reporter=", "-t=", "--timeout=", "-u=", "--ui=", "--config=", "--extension=", "--spec=", "--slow=", "-s=", "--import=", "--loader=", "--retries=", "-j=", "--jobs=", "--reporter-option=", "-O="],
        narrow: &["-g=", "--grep=", "-f=", "--fgrep=", "-i", "--invert", "--ignore=", "--exclude="], ..ROW },
    Runner { name: "ava", programs: &["ava"], family: Family::Js, idle: &["debug", "reset-cache"], values: &["--config=", "-c=", "--concurrency=", "-T=", "--timeout="], narrow: &["-m=", "--match="], ..ROW },
    Runner { name: "jasmine", programs: &["jasmine", "jasmine-ts", "jasmine-browser-runner"], family: Family::Js, idle: &["init", "examples"], values: &["--config=", "--reporter=", "--helper="], narrow: &["--filter="], ..ROW },
    Runner { name: "tap", programs: &["tap", "tape", "borp", "poku", "qunit", "uvu", "zora", "lab", "best"], family: Family::Js, values: &["-R=", "--reporter=", "-r=", "--require=", "-j=", "--jobs="], narrow: &["-g=", "--grep=", "--filter=", "-f=", "--only", "-o", "--changed"], ..ROW },
    Runner { name: "karma", programs: &["karma"], family: Family::Js, verb: Verb::First(&["start", "run"]), values: &["--browsers=", "--reporters="], watch: &["--auto-watch"], masks: &["--no-fail-on-failing-test-suite"], operands: Operands::Ignored, ..ROW },
    Runner { name: "node", programs: &["node", "nodejs", "tsx"], family: Family::Js, verb: Verb::Flag(&["--test", "--test-only"]), summary: true,
        values: &["--import=", "-r=", "--require=", "--loader=", "--test-reporter=", "--test-reporter-destination=", "--test-concurrency=", "--test-timeout=", "--env-file=", "-C=", "--conditions="],
        narrow: &["--test-name-pattern=", "--test-skip-pattern=", "--test-only", "--test-shard="], ..ROW },
    Runner { name: "deno", programs: &["deno"], family: Family::Js, verb: TEST, idle: &["--no-run"], values: &["-c=", "--config=", "--reporter=", "--junit-path=", "--import-map="], narrow: &["--filter=", "--ignore="], zero_ok: &["--permit-no-files"], ..ROW },
    Runner { name: "bun", programs: &["bun"], family: Family::Js, verb: TEST, values: &["--timeout=", "--preload=", "--reporter=", "--reporter-outfile=", "--cwd=", "--rerun-each="], narrow: &["-t=", "--test-name-pattern=", "--only"], operands: Operands::Filters, ..ROW },
    Runner { name: "playwright", programs: &["playwright"], family: Family::Js, verb: TEST, idle: &["--list"], values: &["-c=", "--config=", "--reporter=", "--workers=", "-j=", "--retries=", "--timeout=", "--output=", "--trace="], narrow: &["-g=", "--grep=", "--grep-invert=", "--project=", "--last-failed", "--only-changed", "--shard="], operands: Operands::Filters, watch: &["--ui"], ..ROW },
    Runner { name: "cypress", programs: &["cypress"], family: Family::Js, verb: Verb::First(&["run"]), values: &["-b=", "--browser=", "-c=", "--config=", "-C=", "--config-file=", "-e=", "--env=", "-r=", "--reporter=", "-k=", "--key=", "-P=", "--project="], narrow: &["--spec=", "-s=", "--component", "--e2e"], ..ROW },
    Runner { name: "angular", programs: &["ng"], family: Family::Js, verb: Verb::First(&["test", "t", "e2e"]), values: &["--configuration=", "-c=", "--browsers=", "--reporters="], narrow: &["--include=", "--exclude="], operands: Operands::Filters, ..ROW },
    Runner { name: "nx", programs: &["nx"], family: Family::Js, verb: Verb::First(&["test", "e2e"]), values: &["-c=", "--configuration=", "--parallel="], operands: Operands::Filters, ..ROW },
    Runner { name: "turbo", programs: &["turbo", "lage", "wireit"], family: Family::Js, verb: Verb::Task, idle: &["--dry", "--dry-run", "--graph"], values: &["--concurrency=", "--cache-dir="], narrow: &["-F=", "--filter=", "--affected", "--scope=", "--since=", "--only", "--to="], operands: Operands::Ignored, ..ROW },
    Runner { name: "lerna", programs: &["lerna", "rush", "rushx", "wsrun", "melos"], family: Family::Js, verb: Verb::Task, values: &["--concurrency="], narrow: &["--scope=", "--since", "--ignore=", "--to=", "-o=", "--only="], operands: Operands::Ignored, ..ROW },
    Runner { name: "web-test-runner", programs: &["wtr", "web-test-runner"], family: Family::Js, values: &["--config=", "--node-resolve=", "--root-dir=", "--concurrency="], narrow: &["--group=", "--files="], ..ROW },
    Runner { name: "js-other", programs: &["nightwatch", "cucumber-js", "zunit", "intern", "codeceptjs", "test-storybook"], family: Family::Js, idle: &["init", "def", "--dry-run"], values: &["-c=", "--config=", "-e=", "--env=", "--require=", "--format=", "-f="], narrow: &["--tag=", "--tags=", "-t=", "--name=", "--grep="], ..ROW },
    Runner { name: "testcafe", programs: &["testcafe"], family: Family::Js, values: &["-r=", "--reporter=", "-c=", "--concurrency="], narrow: &["-t=", "--test=", "-f=", "--fixture="], operands: Operands::Ignored, ..ROW },
    Runner { name: "wdio", programs: &["wdio", "hardhat", "truffle", "ember", "anchor", "detox", "aegir"], family: Family::Js, verb: Verb::First(&["run", "test", "exam"]), narrow: &["--spec=", "--suite=", "--grep=", "--filter=", "-f=", "--module="], values: &["--network=", "-c=", "--configuration="], operands: Operands::Ignored, ..ROW },
    Runner { name: "vue-cli", programs: &["vue-cli-service"], family: Family::Js, verb: Verb::Task, operands: Operands::Filters, ..ROW },
    Runner { name: "gulp", programs: &["gulp", "grunt"], family: Family::Js, verb: Verb::Task, idle: &["--tasks"], operands: Operands::Ignored, ..ROW },

    // Rust
    Runner { name: "nextest", programs: &["cargo"], family: Family::Rust, verb: Verb::First(&["nextest run", "nextest r", "llvm-cov nextest", "hack nextest run"]), summary: true, idle: &["--no-run"],
        values: &["--profile=", "-P=", "--features=", "-F=", "--target=", "--cargo-profile=", "--test-threads=", "-j=", "--retries=", "--tool-config-file=", "--config-file=", "--target-dir=", "--failure-output=", "--success-output=", "--manifest-path=", "--lcov", "--output-path="],
        narrow: &["-E=", "--filter-expr=", "--filterset=", "-p=", "--package=", "--exclude=", "--lib", "--bins", "--bin=", "--test=", "--example=", "--partition=", "--run-ignored=only", "--run-ignored=ignored-only"], zero_ok: &["--no-tests=pass", "--no-tests=warn"], masks: &["--ignore-run-fail"], operands: Operands::Filters, ..ROW },
    Runner { name: "cargo", programs: &["cargo", "cross"], family: Family::Rust,
        verb: Verb::First(&["test", "t", "llvm-cov test", "llvm-cov", "tarpaulin", "hack test", "miri test", "careful test", "all-features test", "auditable test", "zigbuild test", "make test"]), summary: true,
        idle: &["--no-run", "--list", "report", "clean", "show-env"],
        values: &["--features=", "-F=", "--target=", "--target-dir=", "--profile=", "-j=", "--jobs=", "-Z=", "--color=", "--message-format=", "--config=", "--out=", "-o=", "--test-threads=", "--format=", "--output-path=", "--logfile="],
        narrow: &["-p=", "--package=", "--exclude=", "--lib", "--bins", "--bin=", "--doc", "--test=", "--tests", "--example=", "--examples", "--benches", "--ignored", "--skip=", "--exact"],
        masks: &["--ignore-run-fail"], operands: Operands::Filters, zero_exits_0: true, ..ROW },
    Runner { name: "insta", programs: &["cargo", "cargo-insta"], family: Family::Rust, verb: Verb::First(&["insta test"]), values: &["--features=", "--test-runner=", "--profile="], narrow: &["-p=", "--package=", "--lib", "--bins", "--bin=", "--test=", "--exclude="], operands: Operands::Filters, zero_exits_0: true, ..ROW },
    Runner { name: "wasm-pack", programs: &["wasm-pack"], family: Family::Rust, verb: TEST, operands: Operands::Paths, ..ROW },
    Runner { name: "bacon", programs: &["bacon"], family: Family::Rust, verb: TEST, watch: &["test"], masks: &["test"], operands: Operands::Ignored, ..ROW },

    // Python
    Runner { name: "pytest", programs: &["pytest", "py.test", "ptw", "pytest-watch"], family: Family::Python, summary: true,
        idle: &["--co", "--collect-only", "--collectonly", "--fixtures", "--funcargs", "--fixtures-per-test", "--markers", "--setup-plan", "--trace-config", "--cache-show", "--version"],
        values: &["-p=", "-n=", "--numprocesses=", "-c=", "--config-file=", "--rootdir=", "--tb=", "--cov=", "--cov-report=", "--cov-config=", "--junitxml=", "--junit-xml=", "-W=", "-o=", "--override-ini=", "--maxfail=", "--durations=", "--timeout=", "--dist=", "--log-level=", "--log-cli-level=", "--basetemp=", "--reruns=", "-r=", "--color=", "--import-mode=", "--capture=", "--ds=", "--randomly-seed="],
        narrow: &["-k=", "-m=", "--lf", "--last-failed", "--ff=never", "--nf=never", "--sw", "--stepwise", "--sw-skip", "--ignore=", "--ignore-glob=", "--deselect=", "--testmon", "--picked", "--pyargs"],
        watch: &["--looponfail", "-f", "--watch"], masks: &["--suppress-tests-failed-exit-code"], ..ROW },
    Runner { name: "unittest", programs: &["unittest", "unit2", "unittest-parallel"], family: Family::Python, verb: Verb::Optional(&["discover"]), summary: true, values: &["-s=", "--start-directory=", "-t=", "--top-level-directory="], narrow: &["-k=", "-p=", "--pattern="], zero_exits_0: true, ..ROW },
    Runner { name: "django", programs: &["manage.py", "django-admin", "runtests.py"], family: Family::Python, verb: TEST, summary: true, values: &["--settings=", "--parallel=", "-v=", "--verbosity=", "--testrunner="], narrow: &["-k=", "--tag=", "--exclude-tag=", "-t=", "-p=", "--pattern="], operands: Operands::Filters, zero_exits_0: true, ..ROW },
    Runner { name: "setuptools", programs: &["setup.py"], family: Family::Python, verb: Verb::Goal(&["test", "pytest", "nosetests"]), narrow: &["-s=", "--test-suite=", "-m="], operands: Operands::Ignored, ..ROW },
    Runner { name: "nose", programs: &["nosetests", "nose2", "nosetests3", "ward", "green", "trial", "stestr", "zope-testrunner", "testify"], family: Family::Python, verb: Verb::Optional(&["run"]), idle: &["--collect-only", "list", "init", "last", "failing"], values: &["-c=", "--config=", "-s=", "-v="], narrow: &["-a=", "-m=", "-e=", "-i=", "--exclude=", "--search=", "--tags=", "-k=", "--failing"], ..ROW },
    Runner { name: "tox", programs: &["tox"], family: Family::Python, idle: &["-l", "-a", "--listenvs", "--showconfig", "--notest", "-n", "list", "config", "devenv", "l", "c", "d", "quickstart", "exec", "-e=lint", "-e=mypy", "-e=docs", "-e=format", "-e=fmt", "-e=build", "-e=typecheck", "-e=type", "-e=pre-commit", "-e=style", "-e=flake8", "-e=ruff", "-e=black"], values: &["-c=", "-e=", "--workdir=", "-x="], narrow: &[], watch: &[], operands: Operands::Ignored, ..ROW },
    Runner { name: "nox", programs: &["nox"], family: Family::Python, idle: &["-l", "--list", "--list-sessions", "-s=lint", "-s=mypy", "-s=docs", "-s=format", "-s=build", "-s=typecheck", "-s=fmt", "-s=pre-commit"], values: &["-s=", "-e=", "--session=", "-f=", "--noxfile=", "-p=", "--python="], narrow: &["-k=", "--keywords=", "-t=", "--tags="], watch: &[], operands: Operands::Ignored, ..ROW },
    Runner { name: "python-script", family: Family::Python, whole: Scope::Subset, summary: true, ..ROW },
    Runner { name: "doctest", programs: &["doctest", "xdoctest"], family: Family::Python, ..ROW },
    Runner { name: "behave", programs: &["behave", "lettuce", "radish"], family: Family::Python, idle: &["-d", "--dry-run", "--steps-catalog"], values: &["-f=", "--format=", "-o=", "-D=", "--stage="], narrow: &["-t=", "--tags=", "-n=", "--name=", "-i=", "--include=", "-e=", "--exclude="], ..ROW },
    Runner { name: "robot", programs: &["robot", "pabot", "robotframework"], family: Family::Python, idle: &["--dryrun"], values: &["-d=", "--outputdir=", "-v=", "--variable=", "--processes="], narrow: &["-t=", "--test=", "-s=", "--suite=", "-i=", "--include=", "-e=", "--exclude=", "-R=", "--rerunfailed="], masks: &["--nostatusrc", "--NoStatusRC"], ..ROW },
    Runner { name: "molecule", programs: &["molecule", "kitchen", "ansible-test", "avocado", "hatch", "rye", "pdm", "briefcase", "pants"], family: Family::Python, verb: Verb::First(&["test", "t", "verify", "units", "run"]), narrow: &["-s=", "--scenario-name=", "-i=", "--include=", "-py="], operands: Operands::Paths, ..ROW },

    // Go
    Runner { name: "go", programs: &["go", "richgo", "gotest", "grc"], family: Family::Go, verb: Verb::First(&["test", "go test"]), idle: &["-c", "-list=", "--list=", "-n"],
        values: &["-timeout=", "-count=", "-p=", "-parallel=", "-cpu=", "-coverprofile=", "-covermode=", "-coverpkg=", "-tags=", "-o=", "-exec=", "-mod=", "-ldflags=", "-gcflags=", "-bench=", "-benchtime=", "-fuzztime=", "-vet=", "-shuffle=", "-outputdir=", "-C=", "-modfile="],
        narrow: &["-run=", "--run=", "-short", "--short", "-skip=", "-fuzz=", "-failfast=never"], zero_ok: &["-run=", "--run="], watch: &[], operands: Operands::Packages, ..ROW },
    Runner { name: "gotestsum", programs: &["gotestsum"], family: Family::Go, idle: &["tool"], values: &["-f=", "--format=", "--junitfile=", "--jsonfile=", "--packages=", "-count=", "-timeout=", "-coverprofile=", "--max-fails="], narrow: &["-run=", "-short", "-skip="], zero_ok: &["-run="], operands: Operands::Packages, ..ROW },
    Runner { name: "ginkgo", programs: &["ginkgo"], family: Family::Go, idle: &["build", "bootstrap", "generate", "outline", "labels", "unfocus", "version", "--dry-run", "-dry-run"], values: &["-p=never", "--procs=", "-procs=", "--timeout="], narrow: &["--focus=", "-focus=", "--skip=", "-skip=", "--label-filter=", "--focus-file="], watch: &["watch"], whole: Scope::Subset, operands: Operands::Packages, ..ROW },

    // JVM
    Runner { name: "maven", programs: &["mvn", "mvnw", "mvnd", "mvnDebug"], family: Family::Jvm, verb: Verb::Goal(&["test", "verify", "install", "package", "deploy", "integration-test", "surefire:test", "failsafe:integration-test", "failsafe:verify", "post-integration-test", "quarkus:test"]),
        idle: &["-DskipTests", "-Dmaven.test.skip", "-DskipITs=never", "-DskipUnitTests", "-Dsurefire.skip"], values: &["-f=", "--file=", "-P=", "-T=", "-s=", "--settings=", "-l=", "--log-file="],
        narrow: &["-pl=", "--projects=", "-Dtest=", "-Dit.test=", "-Dgroups=", "-DexcludedGroups=", "-rf=", "--resume-from=", "-Dsurefire.includes="], zero_ok: &["-DfailIfNoTests=never", "-Dsurefire.failIfNoSpecifiedTests=never"], watch: &[],
        masks: &["-Dmaven.test.failure.ignore", "-fn", "--fail-never", "-DtestFailureIgnore"], operands: Operands::Ignored, ..ROW },
    Runner { name: "gradle", programs: &["gradle", "gradlew"], family: Family::Jvm, verb: Verb::Task, idle: &["-m", "--dry-run", "-x=test", "--exclude-task=test", "tasks", "dependencies"], values: &["-p=", "--project-dir=", "-b=", "-c=", "--max-workers=", "-I=", "-x=", "--exclude-task=", "-g="], narrow: &["--tests=", "-p=", "--project-dir="], watch: &["-t", "--continuous"], masks: &["-PignoreTestFailures", "-PignoreFailures"], operands: Operands::Ignored, ..ROW },
    Runner { name: "sbt", programs: &["sbt", "sbtn", "mill"], family: Family::Jvm, verb: Verb::Task, values: &["-D="], operands: Operands::Ignored, ..ROW },
    Runner { name: "lein", programs: &["lein", "boot", "kaocha"], family: Family::Jvm, verb: Verb::First(&["test", "midje", "kaocha", "eftest", "do test", "with-profile test"]), narrow: &[":only=", ":focus="], operands: Operands::Filters, ..ROW },
    Runner { name: "clojure", programs: &["clojure", "clj"], family: Family::Jvm, verb: Verb::Flag(&["-M:test", "-X:test", "-T:test", "-M:kaocha", "-A:test", "-M:dev:test", "-X:dev:test", "-M:test:runner", "-M:runner"]), operands: Operands::Ignored, ..ROW },
    Runner { name: "ant", programs: &["ant"], family: Family::Jvm, verb: Verb::Task, values: &["-f=", "-buildfile="], operands: Operands::Ignored, ..ROW },
    Runner { name: "bazel", programs: &["bazel", "bazelisk", "buck", "buck2", "please", "plz", "pants"], family: Family::Any, verb: Verb::First(&["test", "coverage"]), values: &["-c=", "--config=", "-j=", "--jobs="], narrow: &["--test_filter=", "--test_tag_filters=", "--changed-since="], operands: Operands::Labels, whole: Scope::Unknown, ..ROW },
    Runner { name: "scala-cli", programs: &["scala-cli", "scala"], family: Family::Jvm, verb: TEST, narrow: &["--test-only="], ..ROW },
    Runner { name: "kotlin-script", family: Family::Jvm, whole: Scope::Unknown, ..ROW },

    // .NET
    Runner { name: "dotnet", programs: &["dotnet"], family: Family::Dotnet, verb: Verb::First(&["test", "vstest", "watch test"]), summary: true, idle: &["-t", "--list-tests"],
        values: &["-c=", "--configuration=", "-f=", "--framework=", "-l=", "--logger=", "-r=", "--results-directory=", "--settings=", "-s=", "-v=", "--verbosity=", "--collect=", "-a=", "-p=", "--arch=", "--os=", "--runtime="],
        narrow: &["--filter="], zero_ok: &["--filter="], watch: &["watch"], ..ROW },
    Runner { name: "nunit", programs: &["nunit3-console", "xunit.console", "vstest.console", "mstest"], family: Family::Dotnet, narrow: &["--where=", "--test=", "-trait=", "-method=", "-class=", "/Tests"], operands: Operands::Ignored, whole: Scope::Unknown, ..ROW },

    // Ruby
    Runner { name: "rspec", programs: &["rspec", "parallel_rspec", "turbo_tests"], family: Family::Ruby, summary: true, idle: &["--dry-run", "--init", "--bisect"], values: &["-f=", "--format=", "-o=", "--out=", "-r=", "--require=", "-I=", "--seed=", "--order=", "-O=", "--failure-exit-code=", "-n="], narrow: &["-e=", "--example=", "-E=", "-t=", "--tag=", "--only-failures", "--next-failure", "-n", "-P=", "--pattern=", "--exclude-pattern="], masks: &["--failure-exit-code=0"], watch: &[], ..ROW },
    Runner { name: "rake", programs: &["rake"], family: Family::Ruby, verb: Verb::Task, idle: &["-T", "-n", "--dry-run", "-P", "--tasks"], values: &["-f=", "-j="], operands: Operands::Ignored, ..ROW },
    Runner { name: "rails", programs: &["rails"], family: Family::Ruby, verb: Verb::First(&["test", "t", "spec", "test:all", "test:system", "test:models"]), narrow: &["-n=", "--name=", "-i=", "--include="], values: &["-s=", "--seed=", "-e=", "-b="], ..ROW },
    Runner { name: "minitest", programs: &["m", "parallel_test", "testrb", "mtest", "minitest"], family: Family::Ruby, narrow: &["-n=", "--name="], whole: Scope::All, ..ROW },
    Runner { name: "cucumber", programs: &["cucumber", "parallel_cucumber", "spinach"], family: Family::Ruby, idle: &["-d", "--dry-run", "--init"], values: &["-f=", "--format=", "-r=", "--require=", "-p=", "--profile=", "-o="], narrow: &["-t=", "--tags=", "-n=", "--name=", "-e="], ..ROW },

    // PHP
    Runner { name: "phpunit", programs: &["phpunit", "paratest", "pest", "simple-phpunit", "phpunit.phar"], family: Family::Php, summary: true, idle: &["--list-tests", "--list-suites", "--list-groups", "--list-test-files", "--generate-configuration", "--check-version", "--migrate-configuration", "--atleast-version="], values: &["-c=", "--configuration=", "--bootstrap=", "--coverage-html=", "--coverage-clover=", "--log-junit=", "-d=", "--processes=", "-p=", "--printer="], narrow: &["--filter=", "--testsuite=", "--group=", "--exclude-group=", "--exclude-testsuite=", "--covers=", "--uses=", "--dirty", "--retry", "--exclude-filter="], ..ROW },
    Runner { name: "composer", family: Family::Php, ..ROW },
    Runner { name: "artisan", programs: &["artisan"], family: Family::Php, verb: Verb::First(&["test", "dusk"]), narrow: &["--filter=", "--testsuite=", "--group="], ..ROW },
    Runner { name: "codecept", programs: &["codecept", "behat", "phpspec", "kahlan", "atoum", "peridot", "tester"], family: Family::Php, verb: Verb::Optional(&["run"]), idle: &["build", "bootstrap", "generate", "clean", "describe", "desc", "--init", "--dry-run", "-dl"], values: &["-c=", "--config=", "-f=", "--format="], narrow: &["-g=", "--group=", "--name=", "--tags=", "--suite=", "-s="], ..ROW },

    // C, C++, builds
    Runner { name: "ctest", programs: &["ctest"], family: Family::Native, summary: true, idle: &["-N", "--show-only", "--print-labels"], values: &["--test-dir=", "-j=", "--parallel=", "-C=", "--build-config=", "--timeout=", "--preset=", "-O=", "--repeat=", "--output-junit=", "-S=", "-D="], narrow: &["-R=", "--tests-regex=", "-E=", "--exclude-regex=", "-L=", "--label-regex=", "-LE=", "--label-exclude=", "-I=", "--tests-information=", "--rerun-failed"], zero_exits_0: true, operands: Operands::Ignored, ..ROW },
    Runner { name: "make", programs: &["make", "gmake", "bmake", "mingw32-make", "nmake"], family: Family::Any, verb: Verb::Task, idle: &["-n", "--dry-run", "--just-print", "--recon", "-q", "--question", "-t", "--touch", "-p"], values: &["-C=", "--directory=", "-f=", "--file=", "--makefile=", "-I=", "-o=", "-W="], narrow: &["-C=", "--directory="], masks: &["-i", "--ignore-errors"], watch: &[], operands: Operands::Ignored, ..ROW },
    Runner { name: "ninja", programs: &["ninja", "scons", "waf", "b", "samu"], family: Family::Native, verb: Verb::Task, idle: &["-n", "-t"], values: &["-C=", "-j=", "-f="], masks: &[], operands: Operands::Ignored, ..ROW },
    Runner { name: "meson", programs: &["meson", "muon"], family: Family::Native, verb: TEST, idle: &["--list"], values: &["-C=", "-t=", "--timeout-multiplier=", "--num-processes=", "-j=", "--setup=", "--wrapper=", "--logbase=", "--repeat="], narrow: &["--suite=", "--no-suite="], operands: Operands::Filters, ..ROW },
    Runner { name: "gtest", family: Family::Native, whole: Scope::Subset, ..ROW },
    Runner { name: "xmake", programs: &["xmake"], family: Family::Native, verb: TEST, narrow: &["-g=", "--group="], operands: Operands::Filters, ..ROW },

    // Other languages
    Runner { name: "mix", programs: &["mix"], verb: Verb::First(&["test", "espec", "coveralls", "test.watch", "do test"]), summary: true, values: &["--seed=", "--max-failures=", "--formatter=", "--partitions=", "--max-cases=", "--timeout="], narrow: &["--only=", "--exclude=", "--include=never", "--failed", "--stale"], watch: &["test.watch"], ..ROW },
    Runner { name: "rebar3", programs: &["rebar3", "rebar"], verb: Verb::Goal(&["eunit", "ct", "proper"]), narrow: &["--module=", "-m=", "--suite=", "--case=", "--app=", "--group=", "--dir="], operands: Operands::Ignored, ..ROW },
    Runner { name: "swift", programs: &["swift"], verb: TEST, idle: &["list", "-l", "--list-tests"], values: &["-c=", "--configuration=", "--package-path=", "-j=", "--xunit-output=", "-Xswiftc=", "-Xcc=", "--num-workers="], narrow: &["--filter=", "--skip=", "-s=", "--specifier=", "--test-product="], operands: Operands::Filters, ..ROW },
    Runner { name: "xcodebuild", programs: &["xcodebuild", "xctool"], verb: Verb::Goal(&["test", "test-without-building"]), values: &["-scheme=", "-project=", "-workspace=", "-destination=", "-configuration=", "-sdk=", "-derivedDataPath=", "-resultBundlePath=", "-enableCodeCoverage="], narrow: &["-only-testing=", "-skip-testing=", "-only-testing:", "-skip-testing:", "-testPlan="], operands: Operands::Ignored, ..ROW },
    Runner { name: "fastlane", programs: &["fastlane"], verb: Verb::Goal(&["test", "tests", "scan", "run_tests"]), operands: Operands::Ignored, ..ROW },
    Runner { name: "dart", programs: &["dart", "flutter", "fvm", "very_good"], verb: Verb::First(&["test", "pub run test", "run test", "flutter test", "dart test"]), values: &["-r=", "--reporter=", "-j=", "--concurrency=", "--coverage=", "--timeout=", "-d="], narrow: &["-n=", "--name=", "-N=", "--plain-name=", "-t=", "--tags=", "-x=", "--exclude-tags=", "-p=", "--platform="], ..ROW },
    Runner { name: "zig", programs: &["zig"], verb: Verb::First(&["build test", "test"]), values: &["-O=", "-target=", "--main-pkg-path="], narrow: &["--test-filter=", "-Dtest-filter="], operands: Operands::Paths, ..ROW },
    Runner { name: "cabal", programs: &["cabal", "stack", "v2-test"], verb: Verb::First(&["test", "v2-test", "new-test", "v1-test"]), idle: &["--no-run-tests"], values: &["-w=", "--with-compiler=", "--resolver=", "--ta=", "--test-arguments=", "--test-options=", "--test-show-details="], narrow: &["--test-option=", "--ta="], operands: Operands::Paths, ..ROW },
    Runner { name: "dune", programs: &["dune", "jbuilder", "esy"], verb: Verb::First(&["runtest", "test", "build @runtest", "build @test", "build @all @runtest", "dune runtest"]), values: &["--root=", "--profile=", "-j=", "-p="], watch: &["-w", "--watch"], ..ROW },
    Runner { name: "prove", programs: &["prove", "yath"], idle: &["-D", "--dry"], values: &["-I=", "-j=", "--jobs=", "-e=", "--exec=", "-P=", "--formatter="], narrow: &["--state="], ..ROW },
    Runner { name: "bats", programs: &["bats", "shellspec", "shunit2", "roundup", "bashunit"], idle: &["-c", "--count", "--init", "--list"], values: &["-j=", "--jobs=", "-F=", "--formatter=", "-o=", "--output="], narrow: &["-f=", "--filter=", "--filter-tags=", "--filter-status=", "-E=", "-e=", "--example="], ..ROW },
    Runner { name: "busted", programs: &["busted", "luaunit", "telescope"], idle: &["-l", "--list"], values: &["-o=", "--output=", "-m=", "--helper=", "-c="], narrow: &["--filter=", "--filter-out=", "-t=", "--tags=", "--exclude-tags=", "-r=", "--run="], ..ROW },
    Runner { name: "testthat", family: Family::Other, ..ROW },
    Runner { name: "julia", family: Family::Other, ..ROW },
    Runner { name: "elm-test", programs: &["elm-test", "elm-test-rs"], idle: &["init", "install", "make"], values: &["--compiler=", "--seed=", "--fuzz=", "--report="], ..ROW },
    Runner { name: "cargo-xtask", programs: &["cargo"], family: Family::Any, verb: Verb::First(&["xtask test", "x test", "xtask tests"]), whole: Scope::Unknown, operands: Operands::Ignored, ..ROW },
    Runner { name: "other-test", programs: &["spago", "pulp", "alire", "fpm", "raco", "nimble", "testament", "dub", "crystal", "shards", "v", "gleam", "forge", "opa", "helm", "terraform", "tofu", "conftest", "haxe", "inspec", "goss", "sui", "aptos", "move", "starknet-foundry", "snforge", "scarb", "nargo", "solana", "odin", "godog", "aiken"],
        verb: Verb::First(&["test", "spec", "unittest", "exec", "validate", "move test", "pattern", "build --test"]), idle: &["--list", "install", "init"], values: &["-v=", "--fork-url=", "--compiler="], narrow: &["--match-test=", "--match-path=", "--match-contract=", "--mt=", "--mc=", "--mp=", "--no-match-test=", "--no-match-path=", "--filter=", "-filter=", "--run=", "-r=", "--example=", "-e=", "--controls="], operands: Operands::Paths, watch: &["--watch"], ..ROW },
    Runner { name: "act", programs: &["act"], family: Family::Any, verb: Verb::Flag(&["-j=test", "--job=test", "-j=tests", "--job=tests", "-j=unit-tests", "-j=unit"]), idle: &["-l", "--list", "-n", "--dryrun"], whole: Scope::Unknown, operands: Operands::Ignored, ..ROW },
    Runner { name: "task", programs: &["task", "go-task", "just", "mage", "invoke", "inv", "doit", "poe", "taskipy", "fab", "cargo-make", "makers", "mask", "bake", "nps", "mise"], family: Family::Any, verb: Verb::Task, idle: &["-n", "--dry", "--dry-run", "-l", "--list", "--summary", "--show", "--evaluate"], values: &["-f=", "--justfile=", "-t=", "--taskfile=", "-d=", "--dir=", "--working-directory="], narrow: &["-d=", "--dir="], masks: &[], operands: Operands::Ignored, ..ROW },
    Runner { name: "moon", programs: &["moon", "earthly", "dagger", "garden"], family: Family::Any, verb: Verb::Task, narrow: &["--affected"], operands: Operands::Ignored, ..ROW },
    Runner { name: "script", family: Family::Any, whole: Scope::Unknown, ..ROW },
];
