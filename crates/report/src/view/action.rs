//! One action of a run: what was asked, what the gate ruled, what came of it.

use crate::{language::Language, terminal::one_line};
use serde_json::Value;
use tracegate_core::{
    fact::{
        Failure,
        gate::Verb,
        tool::{Outcome, SideEffect, TestRunRecord},
    },
    ids::{ActionId, Seq, StepNo},
    payload::Payload,
};

/// How wide a piece of recorded text may be inside a sentence.
const PIECE: usize = 60;

/// One action with everything that the log says about it.
#[derive(Debug, Clone)]
pub(crate) struct ActionView {
    pub(crate) id: ActionId,
    pub(crate) step: Option<StepNo>,
    pub(crate) asked: Seq,
    pub(crate) tool: String,
    pub(crate) args: Value,
    pub(crate) description: String,
    pub(crate) review: Option<Review>,
    pub(crate) started: Option<Started>,
    pub(crate) end: Option<End>,
    /// The event that closed its open span because the run stopped to ask.
    pub(crate) suspended: Option<Seq>,
}

/// The permission gate's newest ruling on an action.
#[derive(Debug, Clone)]
pub(crate) struct Review {
    pub(crate) seq: Seq,
    pub(crate) decision: Verb,
    pub(crate) reason: String,
    pub(crate) error: Option<Failure>,
}

/// The newest beginning of the action's execution.
#[derive(Debug, Clone)]
pub(crate) struct Started {
    pub(crate) seq: Seq,
    pub(crate) command: Option<String>,
}

/// How the action ended: the terminal event, or the observation that settled it.
#[derive(Debug, Clone)]
pub(crate) struct End {
    pub(crate) seq: Seq,
    pub(crate) outcome: Outcome,
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) output: Option<Payload>,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) side_effects: Vec<SideEffect>,
    pub(crate) test: Option<TestRunRecord>,
    pub(crate) error: Option<Failure>,
}

impl ActionView {
    /// Returns an argument that is a string.
    pub(crate) fn arg(&self, name: &str) -> Option<&str> {
        self.args.get(name).and_then(Value::as_str)
    }

    /// Returns the path that a file tool works on.
    pub(crate) fn path(&self) -> Option<&str> {
        self.arg("path")
    }

    /// Returns the command line of a shell tool.
    pub(crate) fn command(&self) -> Option<&str> {
        let started = self.started.as_ref().and_then(|start| start.command.as_deref());
        started.or_else(|| self.arg("command"))
    }

    /// Returns what the action is about, in one short line: its command, path, pattern or description.
    pub(crate) fn target(&self) -> String {
        let about = [
            self.command(),
            self.path().map(|path| path.strip_prefix("./").unwrap_or(path)),
            self.arg("pattern"),
            self.arg("question"),
        ];
        let text = about
            .into_iter()
            .flatten()
            .find(|text| !text.trim().is_empty())
            .unwrap_or(&self.description);
        one_line(text, PIECE)
    }

    /// Returns how it ended, if it did.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.end.as_ref().map(|end| end.outcome)
    }

    /// Tells whether a gate said no, whatever else is recorded.
    pub(crate) fn is_refused(&self) -> bool {
        match self.outcome() {
            Some(Outcome::Refused) => true,
            Some(
                Outcome::Ok
                | Outcome::Failed
                | Outcome::Timeout
                | Outcome::Cancelled
                | Outcome::Unknown
                | Outcome::NotRun,
            ) => false,
            None => self
                .review
                .as_ref()
                .is_some_and(|review| review.decision == Verb::Deny),
        }
    }

    /// Returns the event that a reader should look at: the refusal, the end, or as far as the action came.
    pub(crate) fn telling_event(&self) -> Seq {
        let end = self.end.as_ref().map(|end| end.seq);
        let review = self.review.as_ref().map(|review| review.seq);
        if let Some(refusal) = review.filter(|_| self.is_refused()) {
            return refusal;
        }
        let started = self.started.as_ref().map(|start| start.seq);
        end.or_else(|| started.max(review)).unwrap_or(self.asked)
    }

    /// Returns the action as a station of the execution path: `read src/math.ts`, `npm test (exit 1)`.
    pub(crate) fn station(&self, language: Language) -> String {
        let target = self.target();
        let name = match self.tool.as_str() {
            "list_files" => language.pick(format!("list_files {target}"), format!("读目录 {target}")),
            "read_file" => language.pick(format!("read {target}"), format!("读 {target}")),
            "write_text" => language.pick(format!("write {target}"), format!("写 {target}")),
            "edit_text" => language.pick(format!("edit {target}"), format!("改 {target}")),
            "search_text" => language.pick(format!("search {target}"), format!("搜 {target}")),
            "ask_user" => language.pick(format!("ask {target}"), format!("问 {target}")),
            "shell" | "shell_readonly" => language.pick(target.clone(), format!("跑 {target}")),
            other => format!("{} {target}", one_line(other, PIECE)),
        };
        let how = match (&self.end, self.is_refused()) {
            (_, true) => Some("refused".to_owned()),
            (None, false) => self.started.is_some().then(|| "no end".to_owned()),
            (Some(end), false) => match (end.outcome, end.exit_code) {
                (Outcome::Ok, None | Some(0)) => None,
                (Outcome::Ok | Outcome::Failed, Some(code)) => Some(format!("exit {code}")),
                (outcome, _) => Some(outcome.as_str().to_owned()),
            },
        };
        let name = name.trim_end();
        how.map_or_else(|| name.to_owned(), |how| format!("{name} ({how})"))
    }
}
