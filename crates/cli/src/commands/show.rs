//! `tracegate show`: the summary of a run and what each tool did, or its steps.

use crate::{
    Outcome,
    args::{Global, Show, View},
    commands::run::{quote, same_place, view},
    environment::Environment,
    failure::Failure,
    ingredients, print, runs,
};
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use tracegate_core::{
    redact::Redactor,
    steps::summary::{Keep, StepSummary, Summaries},
    stop::Exit,
};
use tracegate_report::{Width, evidence, steps, summary};
use tracegate_store::{LogReader, Tail};

/// How many steps of a long run are shown from its beginning, and as many from its end.
const ENDS: usize = 4;

pub(crate) fn show(environment: &Environment, global: &Global, args: &Show) -> Outcome {
    match args.view {
        View::Summary if args.all => Err(Failure::usage("--all is about steps")
            .help(format!("tracegate show {} --view steps --all", quote(&args.run)))),
        View::Summary => show_summary(environment, global, args),
        View::Steps => show_steps(environment, global, args),
    }
}

fn show_summary(environment: &Environment, global: &Global, args: &Show) -> Outcome {
    let store = store_of(environment, global);
    let found = runs::find(environment, &store, &args.run)?;
    let redactor = ingredients::redactor(environment, &found.store, None);
    let view = view(found.dir.id(), &found)?;
    let summary = summary::summarise(&view, found.holder);
    let rows = evidence::rows(&view, found.holder);
    let text = if args.json {
        json!({ "summary": summary, "tools": rows, "log": tail(&found.tail) }).to_string()
    } else {
        let width = Width::new(environment.columns);
        format!(
            "{}\n{}\nwhy: tracegate explain {}{}",
            summary::render(&summary, width),
            evidence::render(&rows, width),
            quote(&args.run),
            same_place(global)
        )
    };
    print::answer(&redactor.scrub_text(text));
    Ok(warn(&redactor, &found.tail))
}

/// The answer of `--view steps --json`.
#[derive(Serialize)]
struct Steps<'a> {
    steps: &'a [StepSummary],
    problems: Vec<String>,
    log: String,
}

/// Reads the log event by event: it may be longer than the memory of this machine.
fn show_steps(environment: &Environment, global: &Global, args: &Show) -> Outcome {
    let (store, dir) = runs::locate(environment, &store_of(environment, global), &args.run)?;
    let redactor = ingredients::redactor(environment, &store, None);
    let whole = args.all || args.json;
    let mut summaries = Summaries::new(if whole {
        Keep::All
    } else {
        Keep::Ends {
            first: ENDS,
            last: ENDS,
        }
    });
    let mut log = LogReader::open(&dir)?;
    while let Some(event) = log.next_event()? {
        summaries.push(&event);
    }
    let found = summaries.finish();
    let text = if args.json {
        let answer = Steps {
            steps: &found.steps,
            problems: found.problems.iter().map(ToString::to_string).collect(),
            log: tail(&log.tail()),
        };
        serde_json::to_string(&answer).map_err(|error| Failure::new(Exit::Internal, error))?
    } else {
        let (run, place) = (quote(&args.run), same_place(global));
        let next = if found.steps.len() < found.total {
            format!("all of them: tracegate show {run} --view steps --all{place}")
        } else {
            format!("why: tracegate explain {run}{place}")
        };
        let table = steps::render(&found, ENDS, Width::new(environment.columns));
        format!("{table}{next}")
    };
    print::answer(&redactor.scrub_text(text));
    Ok(warn(&redactor, &log.tail()))
}

/// Returns the store that a command works with.
pub(crate) fn store_of(environment: &Environment, global: &Global) -> PathBuf {
    environment.store(
        global.store.as_deref(),
        global.dir.as_deref().unwrap_or(Path::new(".")),
    )
}

pub(crate) fn tail(tail: &Tail) -> String {
    match tail {
        Tail::Clean => "clean".to_owned(),
        Tail::Unterminated => "the last record lacks its line feed".to_owned(),
        Tail::Torn { offset, bytes } => format!("{bytes} torn bytes at the end, from byte {offset}"),
        Tail::Damaged { seq, offset, why } => format!("damaged at event {seq}, byte {offset}: {why}"),
    }
}

/// Says what is wrong with a log that was read as far as it is whole, and returns the exit for it: a torn end is no damage.
pub(crate) fn warn(redactor: &Redactor, end: &Tail) -> Exit {
    if *end != Tail::Clean {
        print::talk(&redactor.scrub_text(format!("warning: {}", tail(end))));
    }
    if matches!(end, Tail::Damaged { .. }) {
        Exit::Integrity
    } else {
        Exit::Ok
    }
}
