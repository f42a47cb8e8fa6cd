//! `tracegate runs list`: what was recorded here, newest first.

use crate::{
    Outcome, args::Global, commands::show::store_of, environment::Environment, ingredients, print, runs,
};
use serde_json::json;
use tracegate_core::stop::Exit;
use tracegate_report::{RunView, figures::duration, summary, terminal::one_line};
use tracegate_store::Store;

pub(crate) fn list(environment: &Environment, global: &Global, limit: usize, json: bool) -> Outcome {
    let store = runs::open(&store_of(environment, global))?;
    let redactor = ingredients::redactor(environment, &store, None);
    let dirs = store.runs()?;
    let total = dirs.len();
    // What the columns before the goal leave of the terminal.
    let room = environment.columns.saturating_sub(98).max(24);
    let mut rows = Vec::new();
    let mut lines = vec![format!(
        "{:<44} {:<17} {:<18} {:>5} {:>8}  {}",
        "ID", "Status", "Stop reason", "Steps", "Time", "Goal"
    )];
    for dir in dirs.into_iter().rev().take(limit) {
        let id = dir.id().clone();
        match row(&store, dir) {
            Ok((summary, goal)) => {
                let reason = summary.stop_reason.map_or("-", |reason| reason.as_str());
                lines.push(format!(
                    "{:<44} {:<17} {reason:<18} {:>5} {:>8}  {}",
                    id.as_str(),
                    summary.status.as_str(),
                    summary.steps,
                    duration(summary.duration_ms),
                    one_line(&goal, room),
                ));
                rows.push(json!({ "summary": summary, "goal": goal }));
            }
            // One damaged run must not hide the others.
            Err(why) => {
                lines.push(format!(
                    "{:<44} cannot be read: {}",
                    id.as_str(),
                    one_line(&why, room)
                ));
                rows.push(json!({ "runId": id, "error": why }));
            }
        }
    }
    let text = if json {
        json!({ "runs": rows, "total": total }).to_string()
    } else if total == 0 {
        "no runs yet\nstart with: tracegate demo".to_owned()
    } else {
        lines.push(format!("{total} runs\nshow one: tracegate show @last"));
        lines.join("\n")
    };
    print::answer(&redactor.scrub_text(text));
    Ok(if total == 0 { Exit::Nothing } else { Exit::Ok })
}

fn row(store: &Store, dir: tracegate_store::RunDir) -> Result<(summary::Summary, String), String> {
    let id = dir.id().clone();
    let found = runs::read(store.clone(), dir).map_err(|failure| failure.to_string())?;
    let view = RunView::read(id, &found.events).map_err(|error| error.to_string())?;
    Ok((
        summary::summarise(&view, found.holder),
        view.goal().replace('\n', " "),
    ))
}
