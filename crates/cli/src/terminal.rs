//! A person at the terminal, who can be asked while a run goes on.

use crate::{environment::Environment, print};
use std::{
    io::{BufRead as _, IsTerminal as _},
    thread,
};
use tokio::sync::oneshot;
use tracegate::asking::{Answering, User};
use tracegate_core::{fact::user::Permission, redact::Redactor};
use tracegate_report::terminal::one_line;

/// Whoever reads standard error and types on standard input.
#[derive(Debug)]
pub(crate) struct Person {
    redactor: Redactor,
    columns: usize,
}

impl Person {
    /// Returns the person, if both streams are terminals.
    pub(crate) fn at_terminal(environment: &Environment, redactor: &Redactor) -> Option<Self> {
        let there = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        there.then(|| Self {
            redactor: redactor.clone(),
            columns: environment.columns,
        })
    }

    fn say(&self, text: &str) {
        print::talk(
            &self
                .redactor
                .scrub_text(one_line(text, self.columns.saturating_mul(4))),
        );
    }

    /// Reads a line without holding up the run: a signal must end it while the person thinks.
    async fn line() -> Option<String> {
        let (sender, receiver) = oneshot::channel();
        // A thread that is waiting for a line cannot be stopped; it ends with the process.
        let reader = thread::Builder::new().name("terminal".to_owned()).spawn(move || {
            let mut line = Vec::new();
            let read = std::io::stdin().lock().read_until(b'\n', &mut line);
            // What is no text is no answer either, and is asked for again.
            let line = String::from_utf8(line).unwrap_or_default();
            // Nobody waits any more if the run was stopped meanwhile.
            drop(sender.send(matches!(read, Ok(1..)).then_some(line)));
        });
        reader.ok()?;
        receiver.await.ok().flatten().map(|line| line.trim().to_owned())
    }
}

impl User for Person {
    fn ask<'a>(&'a self, question: &'a str) -> Answering<'a> {
        Box::pin(async move {
            self.say(&format!("? {question}"));
            loop {
                self.say("  type an answer, or end with ctrl-d to answer later:");
                let line = Self::line().await?;
                if !line.is_empty() {
                    return Some(line);
                }
            }
        })
    }

    fn permit<'a>(&'a self, question: &'a str) -> Answering<'a> {
        Box::pin(async move {
            self.say(&format!("? {question}"));
            loop {
                self.say("  y allows it, n refuses it, or end with ctrl-d to answer later:");
                let line = Self::line().await?;
                let answer = match line.to_lowercase().as_str() {
                    "y" | "yes" | "allow" => Some(Permission::Allow),
                    "n" | "no" | "deny" => Some(Permission::Deny),
                    _ => None,
                };
                if let Some(answer) = answer {
                    return Some(answer.as_str().to_owned());
                }
            }
        })
    }
}
