//! `tracegate show`: the summary of a run and what each tool did.

use crate::{
    Outcome,
    args::{Global, Show},
    commands::run::{quote, same_place, view},
    environment::Environment,
    ingredients, print, runs,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use tracegate_core::{redact::Redactor, stop::Exit};
use tracegate_report::{Width, evidence, summary};
use tracegate_store::Tail;

pub(crate) fn show(environment: &Environment, global: &Global, args: &Show) -> Outcome {
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
