//! `tracegate runs list`: what was recorded here, newest first.

use crate::{
    Outcome,
    args::Global,
    commands::{
        run::same_place,
        show::{store_of, tail},
    },
    environment::Environment,
    ingredients, print, runs,
};
use serde_json::json;
use tracegate_core::stop::Exit;
use tracegate_report::{RunView, figures::duration, summary, terminal::one_line};
use tracegate_store::{Store, Tail};

pub(crate) fn list(environment: &Environment, global: &Global, limit: usize, json: bool) -> Outcome {
    let store = runs::open(&store_of(environment, global))?;
    let redactor = ingredients::redactor(environment, &store, None);
    let dirs = store.runs()?;
    let total = dirs.len();
    let mut rows = Vec::new();
    // The columns before the goal are ours and take 97; a goal is cut to what is left, and a narrower terminal wraps.
    let width = environment.columns.max(120);
    let line = |id: &str, status: &str, reason: &str, steps: &str, time: &str, goal: &str| {
        let ours = format!("{id:<46} {status:<16} {reason:<17} {steps:>5} {time:>7}");
        let goal = one_line(goal, width.saturating_sub(ours.len() + 2));
        format!("{ours}  {goal}")
    };
    let mut lines = vec![line("ID", "Status", "Stop reason", "Steps", "Time", "Goal")];
    for dir in dirs.into_iter().rev().take(limit) {
        let id = dir.id().clone();
        match row(&store, dir) {
            Ok((summary, goal)) => {
                lines.push(line(
                    id.as_str(),
                    summary.status.as_str(),
                    summary.stop_reason.map_or("-", |reason| reason.as_str()),
                    &summary.steps.to_string(),
                    &duration(summary.duration_ms),
                    &goal,
                ));
                rows.push(json!({ "summary": summary, "goal": goal }));
            }
            // One damaged run must not hide the others.
            Err(why) => {
                lines.push(one_line(&format!("{id} cannot be read: {why}"), width));
                rows.push(json!({ "runId": id, "error": why }));
            }
        }
    }
    let text = if json {
        json!({ "runs": rows, "total": total }).to_string()
    } else if total == 0 {
        "no runs yet\nstart with: tracegate demo".to_owned()
    } else {
        lines.push(format!(
            "{total} runs
show one: tracegate show @last{}",
            same_place(global)
        ));
        lines.join(
            "
",
        )
    };
    print::answer(&redactor.scrub_text(text));
    Ok(if total == 0 { Exit::Nothing } else { Exit::Ok })
}

fn row(store: &Store, dir: tracegate_store::RunDir) -> Result<(summary::Summary, String), String> {
    let id = dir.id().clone();
    let found = runs::read(store.clone(), dir).map_err(|failure| failure.to_string())?;
    if let Tail::Damaged { .. } = found.tail {
        return Err(tail(&found.tail));
    }
    let view = RunView::read(id, &found.events).map_err(|error| error.to_string())?;
    Ok((
        summary::summarise(&view, found.holder),
        view.goal().replace('\n', " "),
    ))
}
