//! What a run is made of, put together from what was typed and what the environment says.

use crate::{
    args::{Durability, Global, How, OnAsk, OnOff},
    environment::Environment,
    failure::Failure,
    live::Bridged,
    policy::{self, Loaded},
    print,
    progress::Progress,
    typed,
};
use std::path::PathBuf;
use tracegate::{
    config::{Origin, RunConfig, default_settings},
    live::{LiveSpans, NoLiveSpans},
    model::scripted::ScriptedModel,
    recorder::Sink,
    session::{Surroundings, VERSION, name_run},
    world::{RealWorld, World as _},
};
use tracegate_core::{
    fact::run::{Agent, Durability as Level, Limits, OnAsk as Asks, Settings, Switch},
    ids::RunId,
    redact::Redactor,
};
use tracegate_store::{RealDisk, Store};

/// Everything that a run needs, resolved and checked; nothing was run yet.
pub(crate) struct Ingredients {
    pub(crate) store: Store,
    pub(crate) redactor: Redactor,
    pub(crate) config: RunConfig,
    pub(crate) policy: Loaded,
    pub(crate) model: ScriptedModel,
}

/// Opens the store at `root`, creating it if need be, and the redactor that goes with it.
pub(crate) fn open_store(
    environment: &Environment,
    root: &std::path::Path,
    workspace: &std::path::Path,
) -> Result<(Store, Redactor), Failure> {
    let world = RealWorld::default();
    let store = Store::open(root, || world.random())?;
    let redactor = redactor(environment, &store, Some(workspace));
    Ok((store, redactor))
}

/// Returns the redactor of a store: its key, and the secrets of the environment and of the workspace's `.env`.
pub(crate) fn redactor(
    environment: &Environment,
    store: &Store,
    workspace: Option<&std::path::Path>,
) -> Redactor {
    let dot_env = workspace.and_then(read_dot_env);
    let mut registered = print::registered(environment, dot_env.as_deref());
    registered.push(store.registered_key());
    Redactor::new(store.redaction_key().clone(), &registered)
}

#[expect(
    clippy::disallowed_methods,
    reason = "secrets of the workspace are registered here"
)]
fn read_dot_env(workspace: &std::path::Path) -> Option<String> {
    const MOST: u64 = 1024 * 1024;
    let path = workspace.join(".env");
    // A pipe would be waited for, a device read for ever.
    std::fs::metadata(&path)
        .ok()
        .filter(|found| found.is_file() && found.len() <= MOST)?;
    std::fs::read(path)
        .ok()
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Puts a run together.
pub(crate) fn gather(
    environment: &Environment,
    global: &Global,
    goal: &str,
    how: &How,
) -> Result<Ingredients, Failure> {
    let workspace = environment
        .dir
        .join(global.dir.clone().unwrap_or_else(|| PathBuf::from(".")));
    if goal.trim().is_empty() {
        return Err(tracegate::session::StartError::EmptyGoal.into());
    }
    if how.budget.max_cost.is_some() && how.prices.is_none() {
        return Err(Failure::usage("a limit of cost needs to know what tokens cost")
            .help("say it with --prices IN,OUT in USD per million tokens, as in --prices 3,15"));
    }
    if !workspace.is_dir() {
        return Err(Failure::usage(format!(
            "the workspace `{}` is not a directory",
            workspace.display()
        ))
        .help("name an existing directory with --dir DIR"));
    }
    let policy = policy::load(
        &environment.dir,
        &how.policy,
        how.allow_writes.as_deref(),
        &workspace,
    )?;
    let model = read_script(environment, &how.script)?;
    let root = environment.store(global.store.as_deref(), &workspace);
    let (store, redactor) = open_store(environment, &root, &workspace)?;
    let resource = crate::spans::resource(environment);
    let name = environment
        .var("OTEL_SERVICE_NAME")
        .or_else(|| resource.get("service.name").map(String::as_str))
        .unwrap_or("tracegate")
        .to_owned();
    let config = RunConfig {
        goal: goal.to_owned(),
        workspace,
        policy: policy.reference.clone(),
        grants: policy.grants.clone(),
        limits: Limits {
            max_steps: how.max_steps,
            max_tokens: how.budget.max_tokens,
            max_ms: how.budget.max_ms(),
            max_cost: how.budget.max_cost,
        },
        settings: settings(how),
        agent: Agent {
            name,
            version: VERSION.to_owned(),
        },
        origin: match environment.traceparent() {
            None => Origin::Alone,
            Some(remote) if how.trace_link => Origin::Links(remote),
            Some(remote) => Origin::Joins(remote),
        },
        resource,
        environment: environment.vars.clone(),
    };
    Ok(Ingredients {
        store,
        redactor,
        config,
        policy,
        model,
    })
}

fn settings(how: &How) -> Settings {
    Settings {
        context_tests: match how.context_tests {
            OnOff::On => Switch::On,
            OnOff::Off => Switch::Off,
        },
        context_budget: how.context_budget,
        push_back: how.push_back,
        durability: match how.durability {
            Durability::Kill => Level::Kill,
            Durability::Step => Level::Step,
            Durability::Event => Level::Event,
        },
        readiness_ms: how.ready_timeout.saturating_mul(1000),
        command_ms: how.command_timeout.saturating_mul(1000),
        window: how.window,
        prices: how.prices,
        on_ask: match how.on_ask {
            None => Asks::Terminal,
            Some(OnAsk::Deny) => Asks::Deny,
            Some(OnAsk::Suspend) => Asks::Suspend,
        },
        ..default_settings()
    }
}

/// Reads a cassette.
pub(crate) fn read_script(
    environment: &Environment,
    file: &std::path::Path,
) -> Result<ScriptedModel, Failure> {
    let name = file.display().to_string();
    let text = typed::read_text(&environment.dir.join(file)).map_err(|error| {
        Failure::usage(format!("cannot read script `{name}`: {error}"))
            .help("name a cassette with --script FILE")
    })?;
    let model =
        ScriptedModel::parse(&name, &text).map_err(|error| Failure::usage(&error).help(error.help()))?;
    // Recorded by its whole path, so that a resume finds it from anywhere.
    Ok(model.kept_at(&environment.dir.join(file).display().to_string()))
}

impl Ingredients {
    /// Names the run.
    pub(crate) fn name_run(&self) -> RunId {
        name_run(&self.config.goal, &self.redactor, &RealWorld::default())
    }

    /// Returns the surroundings of a session of this run.
    pub(crate) fn surroundings(&self, sinks: Vec<Box<dyn Sink>>, live: Option<Bridged>) -> Surroundings<'_> {
        Surroundings {
            store: &self.store,
            disk: &RealDisk,
            redactor: self.redactor.clone(),
            world: Box::new(RealWorld::default()),
            sinks,
            live: live.map_or_else(
                || Box::new(NoLiveSpans) as Box<dyn LiveSpans>,
                |bridge| Box::new(bridge),
            ),
        }
    }

    /// Returns the sink that shows progress, unless nothing is to be said.
    pub(crate) fn progress(&self, environment: &Environment, quiet: bool) -> Vec<Box<dyn Sink>> {
        if quiet {
            return Vec::new();
        }
        vec![Box::new(Progress::new(
            self.redactor.clone(),
            environment.columns,
        ))]
    }
}
