//! `tracegate demo`: `run` with bundled arguments. Only the model is scripted; it exits 0 when it behaved as promised.

use crate::{
    Outcome,
    args::{Budget, Demo, Durability, Global, How, Language, OnOff},
    commands::run::{Names, answer, quote, record},
    environment::Environment,
    failure::Failure,
    fixture,
    ingredients::gather,
    print,
};
use std::path::PathBuf;
use tracegate::world::{RealWorld, World as _};
use tracegate_core::stop::{Exit, StopReason};

pub(crate) fn demo(environment: &Environment, global: &Global, args: &Demo) -> Outcome {
    let language = language(environment, args)?;
    let dir = args
        .keep
        .clone()
        .map_or_else(|| temporary(environment), |dir| environment.dir.join(dir));
    let placed = fixture::place(language, &dir)?;
    let goal = fixture::goal(language);
    let how = How {
        policy: vec![placed.policy.clone()],
        script: placed.script.clone(),
        allow_writes: Some("**".to_owned()),
        max_steps: 8,
        budget: Budget::default(),
        prices: None,
        window: 128_000,
        trace_link: false,
        on_ask: None,
        context_tests: if args.fixed { OnOff::On } else { OnOff::Off },
        context_budget: 2800,
        push_back: 0,
        command_timeout: 600,
        ready_timeout: 10,
        durability: Durability::Step,
    };
    let here = global.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let store = environment.store(global.store.as_deref(), &here);
    let inner = Global {
        dir: Some(placed.workspace.clone()),
        store: Some(store.clone()),
        quiet: global.quiet,
    };
    let ingredients = gather(environment, &inner, goal, &how)?;
    if !global.quiet {
        let why = match (language, args.language) {
            (Language::Rust, None) => "; Node was not found, so this is the Rust twin of the fixture",
            (Language::Rust | Language::Ts, _) => "",
        };
        let head = format!(
            "tracegate demo: only the model is scripted; tools, gates and log are real. No key, no network{why}.\n\
             goal   {goal}\ndir    {}",
            placed.workspace.display()
        );
        print::talk(&ingredients.redactor.scrub_text(head));
    }
    let ending = record(environment, &ingredients, &args.export, global.quiet)?;
    let names = Names::of(environment, global, &ingredients);
    let again = format!(
        "tracegate run {} --dir {} --policy {} --script {} --allow-writes --max-steps 8 --context-tests {} --push-back 0 --store {}",
        quote(goal),
        quote(&placed.again.display().to_string()),
        quote(&placed.policy.display().to_string()),
        quote(&placed.script.display().to_string()),
        if args.fixed { "on" } else { "off" },
        quote(&store.display().to_string()),
    );
    let next = if args.fixed {
        format!("what happened:    tracegate show @last{names}")
    } else {
        let twin = match args.language {
            Some(Language::Rust) => " --language rust",
            Some(Language::Ts) => " --language ts",
            None => "",
        };
        format!(
            "the same, fixed:  tracegate demo --fixed{twin}\nwhy it failed:    tracegate explain @last{names}"
        )
    };
    let text = format!(
        "{}\nas a command:     {again}\n{next}",
        answer(environment, &ingredients, &ending)?
    );
    print::answer(&ingredients.redactor.scrub_text(text));
    let promised = if args.fixed {
        StopReason::Completed
    } else {
        StopReason::ValidationFailed
    };
    if ending.stop_reason == promised {
        return Ok(Exit::Ok);
    }
    Err(Failure::new(
        Exit::Internal,
        format!(
            "the demo should have ended as {promised}, not as {}",
            ending.stop_reason
        ),
    )
    .help(format!("tracegate show @last{names}")))
}

/// The fixture in TypeScript where it can run, else its twin.
fn language(environment: &Environment, args: &Demo) -> Result<Language, Failure> {
    if let Some(language) = args.language {
        return Ok(language);
    }
    if environment.has_program("node") && environment.has_program("npm") {
        return Ok(Language::Ts);
    }
    if environment.has_program("cargo") {
        return Ok(Language::Rust);
    }
    Err(Failure::usage(
        "the demo runs real tests and finds neither Node (node and npm) nor Rust (cargo) on the path",
    )
    .help("install Node 18 or later, then: tracegate demo"))
}

fn temporary(environment: &Environment) -> PathBuf {
    let base = environment.var("TMPDIR").unwrap_or("/tmp");
    let random = RealWorld::default().random();
    let name: String = random.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    PathBuf::from(base).join(format!("tracegate-demo-{name}"))
}
