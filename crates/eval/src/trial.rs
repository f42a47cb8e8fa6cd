//! A trial: one run of a case in a copy of its fixture, with recorded replies and real tools, judged afterwards.
#![expect(clippy::disallowed_methods, reason = "fixtures are copied here")]

use crate::{
    assertion::{Recorded, judge},
    case::{Case, Match, Network, OnMiss, ReplayMode},
    report::{CaseOutcome, CaseReport, Weight},
};
use std::{collections::BTreeMap, fs, io, path::Path, time::Duration};
use tokio::sync::Notify;
use tracegate::{
    agent::{Parts, drive},
    config::{Origin, RunConfig, default_limits, default_settings},
    model::Model,
    session::{Session, Surroundings, VERSION, name_run},
    tools::run_command,
    world::{RealWorld, World as _},
};
use tracegate_core::{
    fact::{
        gate::PolicyGranted,
        run::{Agent, Limits, PolicyRef, Settings},
    },
    redact::Redactor,
    validation::Ended,
};
use tracegate_policy::{Policy, plain_words};
use tracegate_store::{LogReader, RealDisk, Store};

/// How long a command of the case itself may run.
const COMMAND: Duration = Duration::from_secs(300);

/// What a trial needs besides its case.
#[derive(Debug)]
pub struct Bench<'a> {
    /// Where the run is recorded.
    pub store: &'a Store,
    /// Removes secrets.
    pub redactor: &'a Redactor,
    /// The directory of the case file; its paths are relative to it.
    pub base: &'a Path,
    /// The policy that the case names.
    pub policy: &'a Policy,
    /// How that policy is recorded.
    pub policy_ref: PolicyRef,
    /// What the case grants.
    pub grants: Vec<PolicyGranted>,
    /// The recorded replies.
    pub model: &'a dyn Model,
    /// The environment of this process.
    pub environment: &'a BTreeMap<String, String>,
}

/// Runs a case once and judges the run. Whatever keeps it from being judged is the outcome, never a pass.
pub async fn run_trial(case: &Case, bench: &Bench<'_>) -> CaseReport {
    let mut report = CaseReport {
        id: case.id.clone(),
        title: case.title.clone(),
        weight: Weight::of(case),
        outcome: CaseOutcome::NoVerdict(String::new()),
        steps: 0,
        duration_ms: 0,
        run_id: None,
        results: Vec::new(),
    };
    if let Err(why) = attempt(case, bench, &mut report).await {
        report.outcome = CaseOutcome::NoVerdict(why);
    }
    report
}

async fn attempt(case: &Case, bench: &Bench<'_>, report: &mut CaseReport) -> Result<(), String> {
    supported(case)?;
    let dir = tempfile::Builder::new()
        .prefix("tracegate-eval-")
        .tempdir()
        .map_err(|error| error.to_string())?;
    let workspace = dir.path().join("workspace");
    let fixture = case
        .workspace
        .fixture
        .as_deref()
        .ok_or("the case names no fixture")?;
    copy(&bench.base.join(fixture), &workspace)
        .map_err(|error| format!("cannot copy the fixture `{fixture}`: {error}"))?;
    prove_red(case, bench, &workspace).await?;
    let world = RealWorld::default();
    let run = name_run(&case.user_goal, bench.redactor, &world);
    let around = Surroundings {
        store: bench.store,
        disk: &RealDisk,
        redactor: bench.redactor.clone(),
        world: Box::new(world),
        sinks: Vec::new(),
        live: Box::new(tracegate::live::NoLiveSpans),
    };
    let began = RealWorld::default();
    let session = Session::start(around, &run, &config(case, bench, &workspace), bench.model.info())
        .map_err(|error| error.to_string())?;
    report.run_id = Some(run.to_string());
    let cancel = Notify::new();
    let parts = Parts {
        user: None,
        model: bench.model,
        policy: bench.policy,
        cancel: &cancel,
    };
    drive(session, &parts).await.map_err(|error| error.to_string())?;
    report.duration_ms = began.monotonic_ns() / 1_000_000;
    let dir = bench.store.run(&run).map_err(|error| error.to_string())?;
    let (events, _) = LogReader::open(&dir)
        .and_then(LogReader::read_all)
        .map_err(|error| error.to_string())?;
    report.steps = events
        .iter()
        .filter_map(|event| event.step)
        .max()
        .map_or(0, |step| u64::from(step.0));
    report.results = judge(case, &Recorded::of(&events));
    report.outcome = CaseOutcome::of(&report.results);
    Ok(())
}

/// A case that asks for what this version cannot do has no verdict: passing over the wish could turn it green.
fn supported(case: &Case) -> Result<(), String> {
    let wishes = [
        (
            case.replay.mode != ReplayMode::Recorded,
            "a replay mode other than `recorded`",
        ),
        (
            case.replay.matching != Match::Sequence,
            "a `replay.match` other than `sequence`",
        ),
        (
            case.replay.on_miss != OnMiss::Fail,
            "a `replay.onMiss` other than `fail`",
        ),
        (!case.workspace.setup.is_empty(), "`workspace.setup`"),
        (case.workspace.digest.is_some(), "`workspace.digest`"),
        (!case.workspace.env.is_empty(), "`workspace.env`"),
        (
            case.workspace.network == Network::Allow,
            "`workspace.network` = allow",
        ),
        (case.repeat.k != 1, "`repeat.k` above 1"),
        (!case.step_budgets.is_empty(), "`stepBudgets`"),
        (case.run.sandbox.is_some(), "`run.sandbox`"),
    ];
    match wishes.into_iter().find(|(wished, _)| *wished) {
        Some((_, wish)) => Err(format!("{wish} is not supported by this version")),
        None => Ok(()),
    }
}

/// Proves that the case can fail: its commands are red on the untouched fixture.
async fn prove_red(case: &Case, bench: &Bench<'_>, workspace: &Path) -> Result<(), String> {
    for command in &case.workspace.expect_red {
        let words =
            plain_words(command).map_err(|error| format!("`expectRed` command `{command}`: {error}"))?;
        let ran = run_command(&words, workspace, bench.environment, None, COMMAND)
            .await
            .map_err(|error| format!("`expectRed` command `{command}` cannot be started: {error}"))?;
        match ran.ended {
            Ended::Exited(0) => {
                return Err(format!(
                    "`{command}` passes on the untouched fixture: the case cannot fail"
                ));
            }
            Ended::Exited(_) => {}
            Ended::Signalled(_) | Ended::TimedOut | Ended::NotFinished => {
                return Err(format!("`expectRed` command `{command}` did not finish"));
            }
        }
    }
    Ok(())
}

fn config(case: &Case, bench: &Bench<'_>, workspace: &Path) -> RunConfig {
    let (limits, settings) = (default_limits(), default_settings());
    RunConfig {
        goal: case.user_goal.clone(),
        workspace: workspace.to_owned(),
        policy: bench.policy_ref.clone(),
        grants: bench.grants.clone(),
        limits: Limits {
            max_steps: case.run.max_steps.unwrap_or(limits.max_steps),
            ..limits
        },
        settings: Settings {
            context_tests: case.run.context_tests,
            context_budget: case.run.context_budget.unwrap_or(settings.context_budget),
            push_back: case.run.push_back,
            ..settings
        },
        agent: Agent {
            name: "tracegate".to_owned(),
            version: VERSION.to_owned(),
        },
        origin: Origin::Alone,
        resource: BTreeMap::new(),
        environment: bench.environment.clone(),
    }
}

/// Copies a directory; a link or device in a fixture is an error rather than a surprise.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        let built = matches!(
            entry.file_name().to_str(),
            Some("node_modules" | "target" | ".git" | ".tracegate")
        );
        if kind.is_dir() && !built {
            copy(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), target)?;
        } else if !kind.is_dir() {
            let message = format!("`{}` is neither file nor directory", entry.path().display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
    }
    Ok(())
}
