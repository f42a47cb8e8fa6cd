//! `tracegate run`: an agent on a goal, from the first event to the exit code.

use crate::{
    Outcome,
    args::{Endpoint, Global, Run},
    commands::resume::answer_to,
    environment::Environment,
    failure::Failure,
    ingredients::{Ingredients, gather},
    print,
    signals::Signals,
    spans,
    terminal::Person,
};
use serde_json::json;
use std::{io::Read as _, path::Path};
use tokio::sync::Notify;
use tracegate::{
    agent::{Parts, drive},
    asking::User,
    model::Model as _,
    session::{Ending, Session, Surroundings},
};
use tracegate_core::{
    ids::RunId,
    stop::{Exit, StopReason},
};
use tracegate_otel::endpoint::Typed;
use tracegate_report::{RunView, Width, summary};
use tracegate_store::RunDir;

pub(crate) fn run(environment: &Environment, global: &Global, args: &Run) -> Outcome {
    let goal = if args.goal == "-" {
        read_text("the goal")?
    } else {
        args.goal.clone()
    };
    let ingredients = gather(environment, global, &goal, &args.how)?;
    let quiet = global.quiet || args.json;
    let ending = record(environment, &ingredients, &args.export, quiet)?;
    print_ending(environment, global, &ingredients, &ending, args.json)
}

/// Prints how a run ended and which command comes next.
pub(crate) fn print_ending(
    environment: &Environment,
    global: &Global,
    ingredients: &Ingredients,
    ending: &Ending,
    as_json: bool,
) -> Outcome {
    let text = if as_json {
        json!({
            "runId": ending.run, "status": ending.status, "stopReason": ending.stop_reason, "claim": ending.claim,
            "evidence": ending.evidence, "exitCode": ending.stop_reason.exit().code(),
            "store": ingredients.store.root(),
        })
        .to_string()
    } else {
        let names = Names::of(environment, global, ingredients);
        let next = match ending.stop_reason {
            StopReason::Completed => format!("what happened: tracegate show {}{names}", ending.run),
            StopReason::WaitingForUser => {
                let dir = ingredients.store.run(&ending.run)?;
                format!("answer it: {}", answer_to(&dir, &names.to_string())?)
            }
            StopReason::MaxSteps => format!("go on: tracegate resume {} --max-steps N{names}", ending.run),
            StopReason::BudgetExhausted => {
                format!("go on with more: tracegate resume {} --help{names}", ending.run)
            }
            StopReason::ValidationFailed
            | StopReason::ToolError
            | StopReason::PermissionDenied
            | StopReason::ModelError
            | StopReason::RecorderFailed
            | StopReason::GateFailed
            | StopReason::Cancelled => format!("why: tracegate explain {}{names}", ending.run),
        };
        format!("{}\n{next}", answer(environment, ingredients, ending)?)
    };
    print::answer(&ingredients.redactor.scrub_text(text));
    Ok(ending.stop_reason.exit())
}

/// Reads what the user typed `-` for.
pub(crate) fn read_text(what: &str) -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| {
        Failure::usage(format!("cannot read {what} from standard input: {error}"))
            .help("it is UTF-8 text: echo \"Fix the failing tests\" | tracegate run - --script FILE")
    })?;
    Ok(text.trim().to_owned())
}

/// Starts a run and carries it to its end.
pub(crate) fn record(
    environment: &Environment,
    ingredients: &Ingredients,
    export: &Endpoint,
    quiet: bool,
) -> Result<Ending, Failure> {
    let run = ingredients.name_run();
    let start = |around: Surroundings<'_>| {
        Ok(Session::start(
            around,
            &run,
            &ingredients.config,
            ingredients.model.info(),
        )?)
    };
    carry_out(environment, ingredients, export, quiet, &run, start)
}

/// Carries a session to its end, writes the spans of its run, sends them if asked.
pub(crate) fn carry_out(
    environment: &Environment,
    ingredients: &Ingredients,
    export: &Endpoint,
    quiet: bool,
    run: &RunId,
    start: impl FnOnce(Surroundings<'_>) -> Result<Session, Failure>,
) -> Result<Ending, Failure> {
    let typed = Typed {
        url: export.url.as_deref(),
        ..Typed::default()
    };
    let sending = spans::endpoint(environment, &typed)?.ok().map(|endpoint| {
        spans::Sending::new(endpoint, ingredients.store.clone(), ingredients.redactor.clone())
    });
    let live = spans::install_bridge(environment, &ingredients.redactor);
    let mut sinks = ingredients.progress(environment, quiet);
    if let Some(sending) = &sending {
        sinks.push(sending.sink(run));
    }
    sinks.extend(crate::pause::Pause::of(environment));
    let session = start(ingredients.surroundings(sinks, Some(live)))?;
    let dir = ingredients.store.run(run)?;
    // Whoever wants only the answer is not asked in between.
    let person = (!quiet)
        .then(|| Person::at_terminal(environment, &ingredients.redactor))
        .flatten();
    let ending = block_on(session, ingredients, person.as_ref());
    // Whatever came of the run, its spans are written: they are computed from what the log holds.
    let written = spans::write(&dir, &ingredients.redactor);
    if let Some(sending) = sending {
        sending.finish(environment, &dir);
    }
    let ending = ending?;
    written?;
    Ok(ending)
}

fn block_on(session: Session, ingredients: &Ingredients, person: Option<&Person>) -> Result<Ending, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Exit::Internal, format!("cannot start the runtime: {error}")))?;
    let cancel = Notify::new();
    let mut signals = Signals::watch(&runtime)?;
    let parts = Parts {
        model: &ingredients.model,
        policy: &ingredients.policy.policy,
        user: person.map(|person| person as &dyn User),
        cancel: &cancel,
    };
    runtime.block_on(async {
        let driving = drive(session, &parts);
        tokio::pin!(driving);
        loop {
            tokio::select! {
                ending = &mut driving => return Ok(ending?),
                () = signals.next() => cancel.notify_one(),
            }
        }
    })
}

/// What follow-up commands must name because they would not find it by themselves.
pub(crate) struct Names(String);

impl Names {
    /// Names the store, if a command typed here would look elsewhere.
    pub(crate) fn of(environment: &Environment, global: &Global, ingredients: &Ingredients) -> Self {
        let found = environment.store(None, Path::new("."));
        let told = global.store.is_some() && environment.var("TRACEGATE_STORE").is_none();
        let store = ingredients.store.root();
        if found == store && !told {
            Self(String::new())
        } else {
            Self(format!(" --store {}", quote(&store.display().to_string())))
        }
    }
}

impl std::fmt::Display for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Repeats the flags of a command that reads, so that the next one finds the same run.
pub(crate) fn same_place(global: &Global) -> String {
    let flags = [("--store", &global.store), ("--dir", &global.dir)];
    let typed = flags
        .into_iter()
        .filter_map(|(flag, value)| Some((flag, value.as_ref()?)));
    typed
        .map(|(flag, value)| format!(" {flag} {}", quote(&value.display().to_string())))
        .collect()
}

/// Quotes a word for the shell, if it needs it.
pub(crate) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Claim and evidence side by side: the product's face.
pub(crate) fn answer(
    environment: &Environment,
    ingredients: &Ingredients,
    ending: &Ending,
) -> Result<String, Failure> {
    let dir: RunDir = ingredients.store.run(&ending.run)?;
    let found = crate::runs::read(ingredients.store.clone(), dir)?;
    let view = view(&ending.run, &found)?;
    let summary = summary::render(
        &summary::summarise(&view, found.holder),
        Width::new(environment.columns),
    );
    Ok(format!(
        "{}  {}\n\n{summary}",
        ending.stop_reason,
        headline(ending)
    ))
}

/// What an ending means, in one sentence.
const fn headline(ending: &Ending) -> &'static str {
    match ending.stop_reason {
        StopReason::Completed if !ending.armed => {
            "The agent says it is done; the goal asks for no test that could say otherwise."
        }
        StopReason::Completed => "The agent says it is done, and the evidence agrees.",
        StopReason::ValidationFailed => "The agent says it is done. The evidence says it is not.",
        StopReason::ToolError => "Actions could not be executed.",
        StopReason::MaxSteps => "The steps are used up; nothing was claimed.",
        StopReason::BudgetExhausted => "The budget is used up; nothing was claimed.",
        StopReason::PermissionDenied => "The agent wanted what the policy forbids.",
        StopReason::WaitingForUser => "The agent asks its user.",
        StopReason::ModelError => "The model gave no reply that could be used.",
        StopReason::RecorderFailed => "The run could not be recorded.",
        StopReason::GateFailed => "A gate broke.",
        StopReason::Cancelled => "A person stopped the run.",
    }
}

/// Reads a run for the reports.
pub(crate) fn view(run: &RunId, found: &crate::runs::Found) -> Result<RunView, Failure> {
    RunView::read(run.clone(), &found.events)
        .map_err(|error| Failure::new(Exit::Integrity, &error).help(error.help()))
}
