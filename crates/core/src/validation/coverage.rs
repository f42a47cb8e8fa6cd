//! Does this test run cover that one? Scopes, runners of one world, paths below paths.

use super::{
    command::{Scope, TestCommand},
    runners::{self, Family},
};

/// How well a run covers a named test command, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cover {
    /// The same command.
    Same,
    /// Everything that it covers, or more.
    Wider,
    /// Perhaps: the scope of the run is not known.
    Unsure,
    /// A part of it.
    Part,
    /// Tests of another world.
    Foreign,
}

/// How well `run` covers `named`.
pub(super) fn cover(named: &TestCommand, run: &TestCommand) -> Cover {
    let parts = std::iter::once((&run.runner, &run.normalised, run.scope, &run.dir)).chain(
        run.also
            .iter()
            .map(|also| (&also.runner, &also.normalised, also.scope, &also.dir)),
    );
    let one = |(runner, normalised, scope, dir): (&String, &Vec<String>, Scope, &Option<String>)| {
        if *normalised == named.normalised && *dir == named.dir {
            return Cover::Same;
        }
        if !related(&named.runner, runner) {
            return Cover::Foreign;
        }
        let same_manager = named.runner == *runner && is_task_runner(runner);
        match scope {
            Scope::All => Cover::Wider,
            // `npm run test:unit` is another script than `npm test`.
            Scope::Unknown if same_manager => Cover::Part,
            Scope::Unknown => Cover::Unsure,
            Scope::Subset if named.scope != Scope::All && covers_arguments(normalised, named) => Cover::Wider,
            Scope::Subset => Cover::Part,
        }
    };
    parts.map(one).min().unwrap_or(Cover::Foreign)
}

fn is_task_runner(runner: &str) -> bool {
    matches!(
        runner,
        "npm" | "pnpm" | "yarn" | "bun" | "composer" | "make" | "task" | "rake" | "gradle"
    )
}

/// True if runs of the two runners can prove each other's tests.
pub(super) fn related(a: &str, b: &str) -> bool {
    let family = |name: &str| runners::named(name).map_or(Family::Any, |row| row.family);
    let (a, b) = (family(a), family(b));
    a == b && a != Family::Other
        || a == Family::Any
        || b == Family::Any
        || a == Family::Other && b == Family::Other
}

/// `pytest tests/a.py` covers `pytest tests/a.py::test_x`.
fn covers_arguments(run: &[String], named: &TestCommand) -> bool {
    let mut operands = named
        .normalised
        .iter()
        .skip(1)
        .filter(|arg| arg.contains(['/', '.', ':']))
        .peekable();
    operands.peek().is_some() && operands.all(|wanted| run.iter().any(|arg| is_prefix_path(arg, wanted)))
}

/// True if the run's operands or directory hold one of the paths.
pub(super) fn covers_paths(run: &TestCommand, paths: &[String]) -> bool {
    let places = || run.normalised.iter().skip(1).chain(&run.dir);
    paths
        .iter()
        .any(|path| places().any(|place| is_prefix_path(place.split("::").next().unwrap_or(place), path)))
}

fn is_prefix_path(prefix: &str, path: &str) -> bool {
    let prefix = prefix.trim_start_matches("./").trim_end_matches('/');
    !prefix.is_empty()
        && path
            .trim_start_matches("./")
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':']))
}
