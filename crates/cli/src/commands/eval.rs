//! `tracegate eval run`: cases replayed with recorded replies and real tools, and judged by what happened.
#![expect(clippy::disallowed_methods, reason = "case files are read here")]

use crate::{
    Outcome,
    args::{EvalRun, Global, OnOff},
    commands::show::store_of,
    environment::Environment,
    failure::Failure,
    ingredients::{open_store, read_script},
    policy, print,
    signals::Signals,
    spans,
};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tracegate_core::{fact::run::Switch, redact::Redactor, stop::Exit};
use tracegate_eval::{
    case::Case,
    report::{CaseReport, SuiteReport},
    trial::{Bench, run_trial},
};
use tracegate_store::Store;

pub(crate) fn run(environment: &Environment, global: &Global, args: &EvalRun) -> Outcome {
    let files = case_files(environment, &args.paths)?;
    // Every case is read before any is run: a typo in the last one must not cost the time of the others.
    let mut cases = Vec::new();
    for file in files {
        let case = read_case(&file)?;
        if args
            .pattern
            .as_ref()
            .is_none_or(|pattern| case.id.contains(pattern.as_str()))
        {
            cases.push((file, case));
        }
    }
    if cases.is_empty() {
        return Err(
            Failure::new(Exit::Nothing, "no eval case matches").help("tracegate eval run, without -k")
        );
    }
    let total = cases.len();
    let (store, redactor) = open_store(environment, &store_of(environment, global), Path::new("."))?;
    let mut reports = Vec::new();
    for (index, (file, case)) in cases.into_iter().enumerate() {
        if !global.quiet {
            let line = format!("[{}/{}] {} …", index + 1, total, case.id);
            print::talk(&redactor.scrub_text(line));
        }
        reports.push(trial(environment, args, &file, case, &store, &redactor)?);
    }
    let report = SuiteReport::new(reports);
    let text = if args.json {
        report.to_json().to_string()
    } else {
        report.render_text()
    };
    print::answer(&redactor.scrub_text(text));
    Ok(report.exit())
}

fn trial(
    environment: &Environment,
    args: &EvalRun,
    file: &Path,
    mut case: Case,
    store: &Store,
    redactor: &Redactor,
) -> Result<CaseReport, Failure> {
    let base = file.parent().unwrap_or(Path::new("."));
    if let Some(tests) = args.context_tests {
        case.run.context_tests = match tests {
            OnOff::On => Switch::On,
            OnOff::Off => Switch::Off,
        };
    }
    let recorded = case.replay.cassette.as_ref().map(|cassette| base.join(cassette));
    let cassette = args
        .cassette
        .clone()
        .map(|cassette| environment.dir.join(cassette))
        .or(recorded);
    let cassette = cassette.ok_or_else(|| {
        Failure::usage(format!("{}: the case names no cassette", file.display()))
            .help("name one with --cassette FILE")
    })?;
    let model = read_script(environment, &cassette)?;
    let policies: Vec<PathBuf> = case.run.policy.iter().map(|policy| base.join(policy)).collect();
    let loaded = policy::load(&environment.dir, &policies, allow_writes(file, &case)?, base)?;
    let bench = Bench {
        store,
        redactor,
        base,
        policy: &loaded.policy,
        policy_ref: loaded.reference.clone(),
        grants: loaded.grants.clone(),
        model: &model,
        environment: &environment.vars,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Internal, format!("cannot start the runtime: {error}")))?;
    let mut signals = Signals::watch(&runtime)?;
    let report = runtime.block_on(async {
        tokio::select! {
            report = run_trial(&case, &bench) => Ok(report),
            // The trial is dropped, and with it whatever it was running.
            () = signals.next() => Err(Failure::new(Exit::Cancelled, format!("stopped in the case `{}`", case.id))
                .help("no later case was run; the cut-off run shows as interrupted: tracegate runs list")),
        }
    })?;
    if let Some(dir) = report
        .run_id
        .as_ref()
        .and_then(|id| store.run(&id.parse().ok()?).ok())
    {
        spans::write(&dir, redactor)?;
    }
    Ok(report)
}

/// Reads the grants of a case, spelled as on the command line.
fn allow_writes<'a>(file: &Path, case: &'a Case) -> Result<Option<&'a str>, Failure> {
    let mut writes = None;
    for grant in &case.run.grants {
        match grant.strip_prefix("--allow-writes") {
            Some("") => writes = Some("**"),
            Some(glob) if glob.starts_with('=') => writes = glob.strip_prefix('='),
            _ => {
                return Err(
                    Failure::usage(format!("{}: unknown grant `{grant}`", file.display()))
                        .help("grants are `--allow-writes` and `--allow-writes=GLOB`"),
                );
            }
        }
    }
    Ok(writes)
}

fn read_case(file: &Path) -> Result<Case, Failure> {
    let name = file.display().to_string();
    let text = fs::read_to_string(file).map_err(|error| {
        Failure::usage(format!("cannot read case `{name}`: {error}")).help("no case was run")
    })?;
    Case::parse(&name, &text).map_err(|error| {
        let failure = Failure::usage(&error);
        match error.help() {
            Some(help) => failure.help(help),
            None => failure.help("no case was run"),
        }
    })
}

/// Returns the files named, and the JSON files directly in the directories named, in order.
fn case_files(environment: &Environment, paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        let path = environment.dir.join(path);
        if path.is_dir() {
            let entries = fs::read_dir(&path).map_err(|error| {
                Failure::new(
                    Exit::NotFound,
                    format!("cannot read `{}`: {error}", path.display()),
                )
            })?;
            let found = entries.flatten().map(|entry| entry.path());
            files
                .extend(found.filter(|file| {
                    file.is_file() && file.extension().is_some_and(|ending| ending == "json")
                }));
        } else if path.is_file() {
            files.push(path);
        } else {
            return Err(Failure::new(
                Exit::NotFound,
                format!("there is no case at `{}`", path.display()),
            )
            .help("name case files or directories of them: tracegate eval run evals/"));
        }
    }
    files.sort_unstable();
    files.dedup();
    if files.is_empty() {
        return Err(Failure::new(Exit::Nothing, "no eval case was found")
            .help("a case is a JSON file, see docs/evals.md"));
    }
    Ok(files)
}
