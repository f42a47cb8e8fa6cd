//! What a person sees while a run goes on: one line an action, on standard error.

use crate::print;
use std::collections::BTreeMap;
use tracegate::recorder::Sink;
use tracegate_core::{
    event::Event,
    fact::{
        Fact,
        gate::{ValidationRuling, Verb},
        tool::Outcome,
    },
    ids::ActionId,
    redact::{Redactor, Scrubbed},
};
use tracegate_report::terminal::one_line;

/// Prints a line for each step's context, each action and each ruling of the validation gate.
#[derive(Debug)]
pub(crate) struct Progress {
    redactor: Redactor,
    columns: usize,
    /// What each open action is, and how the gate ruled on it.
    actions: BTreeMap<ActionId, (String, String)>,
}

impl Progress {
    pub(crate) const fn new(redactor: Redactor, columns: usize) -> Self {
        Self {
            redactor,
            columns,
            actions: BTreeMap::new(),
        }
    }

    fn line(&self, text: &str) {
        // The indentation shows what belongs to which step; everything after it is one line, whatever was recorded.
        let indent: String = text.chars().take_while(|c| *c == ' ').collect();
        let line = format!(
            "{indent}{}",
            one_line(text.trim_start(), self.columns.saturating_sub(indent.len()))
        );
        print::talk(&self.redactor.scrub_text(line));
    }

    fn describe(&mut self, event: &Event) -> Option<String> {
        let step = event.step.map_or(0, |step| step.0);
        if let Fact::ContextBuildFinished(data) = &event.fact {
            let mut files: Vec<&str> = data
                .included
                .iter()
                .take(4)
                .map(|item| item.path.as_str())
                .collect();
            let more = data.included_total.saturating_sub(files.len() as u64);
            let rest = format!("{more} more");
            if more > 0 {
                files.push(&rest);
            }
            let files = if files.is_empty() {
                "nothing".to_owned()
            } else {
                files.join(", ")
            };
            let hidden = data.links.iter().find(|link| link.strong && !link.included);
            let hidden = hidden.map_or_else(String::new, |link| {
                format!(
                    "\n    ! {} is the test of {} and was not shown to the model",
                    link.test, link.source
                )
            });
            let shown = format!(
                "{step:>2}  context: {files}  ({} of {} tokens)",
                data.used, data.budget
            );
            return Some(shown + &hidden);
        }
        if let (Fact::Action(data), Some(action)) = (&event.fact, event.action) {
            self.actions
                .insert(action, (data.description.clone(), "-".to_owned()));
            return None;
        }
        if let (Fact::PermissionReviewFinished(data), Some(action)) = (&event.fact, event.action) {
            let (_, permission) = self.actions.get_mut(&action)?;
            *permission = data.decision.to_string();
            return (data.decision != Verb::Allow).then(|| {
                let (what, permission) = self.actions.remove(&action).unwrap_or_default();
                let mark = if data.decision == Verb::Ask { "?" } else { "✕" };
                format!("    {mark} {what}  {permission}: {} ({})", data.reason, data.rule)
            });
        }
        if let (Fact::ToolExecuteFinished(data), Some(action)) = (&event.fact, event.action) {
            let (what, permission) = self.actions.remove(&action)?;
            let mark = if data.outcome == Outcome::Ok { "✓" } else { "✕" };
            let exit = data
                .exit_code
                .map_or_else(String::new, |code| format!("  exit {code}"));
            return Some(format!(
                "    {mark} {what}  {permission}  {} ms{exit}",
                data.duration_ms
            ));
        }
        if let Fact::ValidationReviewFinished(data) = &event.fact {
            let (mark, ruling) = match data.ruling {
                ValidationRuling::Complete => ("✓", "open"),
                ValidationRuling::PushBack => ("✕", "closed, the agent is sent back"),
                ValidationRuling::Fail => ("✕", "closed"),
            };
            return Some(format!(
                "    {mark} validation gate {ruling}: {}",
                data.verdict.explanation
            ));
        }
        None
    }
}

impl Sink for Progress {
    fn on_event(&mut self, event: &Scrubbed<Event>) {
        let described = self.describe(event.get()).unwrap_or_default();
        described.lines().for_each(|line| self.line(line));
    }
}
