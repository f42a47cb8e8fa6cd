//! The tools: what a model can ask for, typed, and the one way to do it.

mod command;
mod files;
mod request;
mod search;
mod settle;
mod shell;
mod specs;

pub use command::{Ran, run_command};
pub use request::{Request, Tool};
pub(crate) use settle::{answered, settle};
pub use specs::specs;

use crate::{
    agent::StepError,
    asking::User,
    gate::PermittedAction,
    recorder::{Place, RecorderError, Span},
    session::Session,
};
use tracegate_core::{
    fact::{
        Failure,
        run::OnAsk,
        tool::{
            Observation, ObservationKind, Outcome, Phase, SideEffect, TestRunRecord, ToolExecuteFinished,
            ToolExecuteStarted,
        },
        user::QuestionKind,
    },
    ids::ActionId,
    payload::{brief, clip},
};
use tracing::Instrument as _;

/// The longest text of one result that the model reads, in bytes; more is cut in the middle, with a mark.
const MODEL_TEXT: usize = 32 * 1024;

/// What a tool did.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// How it ended.
    pub(crate) outcome: Option<Outcome>,
    /// Everything that it put out.
    pub(crate) output: String,
    /// A command's exit code.
    pub(crate) exit_code: Option<i32>,
    /// The signal that ended a command.
    pub(crate) signal: Option<i32>,
    /// Whether it put out more than was kept.
    pub(crate) truncated: bool,
    /// What it changed.
    pub(crate) side_effects: Vec<SideEffect>,
    /// What its output says, if it was a test run.
    pub(crate) test: Option<TestRunRecord>,
    /// Why it failed.
    pub(crate) error: Option<Failure>,
}

impl Done {
    fn ok(output: String) -> Self {
        Self {
            outcome: Some(Outcome::Ok),
            output,
            ..Self::default()
        }
    }

    fn failed(kind: &str, message: String) -> Self {
        let error = Some(Failure::new(kind, clip(&message, 512)));
        Self {
            outcome: Some(Outcome::Failed),
            output: message,
            error,
            ..Self::default()
        }
    }
}

/// What follows from an executed action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// The step goes on.
    Continue,
    /// The run waits for its user.
    Wait,
}

/// Does a permitted action and records what it did and what came back.
///
/// # Errors
/// When the run cannot be recorded. What the tool itself could not do is an observation.
pub async fn execute(
    session: &mut Session,
    action: PermittedAction,
    user: Option<&dyn User>,
) -> Result<After, StepError> {
    if let Request::Ask { question } = action.request() {
        return Ok(ask(session, action.id(), question, user).await?);
    }
    let before = session.observed.clone();
    let span = session.recorder.begin(
        Some(action.id()),
        ToolExecuteStarted {
            tool: action.request().tool().as_str().to_owned(),
            risk: action.class(),
            args: brief(&action.request().args(&session.root)),
            command: action.request().command().map(str::to_owned),
        },
    )?;
    if action.request().has_side_effects() {
        // Durable before the effect: a crash in between must read as unknown, never as not run.
        session.recorder.sync()?;
    }
    let began = session.recorder.now_ms();
    let mut done = dispatch(session, &action, &span).instrument(span.live()).await;
    let duration_ms = session.recorder.now_ms().saturating_sub(began);
    let looked = session.observe();
    if let (Ok(workspace), true) = (&looked, action.request().has_side_effects()) {
        done.side_effects = workspace.effects_since(&before);
    }
    if *action.request().tool() == Tool::ShellReadonly && !done.side_effects.is_empty() {
        mark_violation(&mut done);
    }
    finish(session, &action, span, done, duration_ms)?;
    // What was done is recorded even if the workspace is gone afterwards.
    looked?;
    Ok(After::Continue)
}

/// Asks for words. The answer of somebody who is there is the action's result; else the run waits for one.
async fn ask(
    session: &mut Session,
    id: ActionId,
    question: &str,
    user: Option<&dyn User>,
) -> Result<After, RecorderError> {
    let question = session
        .recorder
        .redactor()
        .scrub_text(question.to_owned())
        .into_inner();
    let asked = session.ask(id, QuestionKind::Text, &question)?;
    let user = user.filter(|_| session.on_ask == OnAsk::Terminal);
    let answer = match user {
        Some(user) => user.ask(&question).await,
        None => None,
    };
    let Some(answer) = answer else {
        return Ok(After::Wait);
    };
    let answer = session.hear(asked, &question, &answer)?;
    answered(session, id, &question, &answer)?;
    Ok(After::Continue)
}

/// `shell_readonly` may not change a file that git does not ignore; without a sandbox this can only be noticed afterwards.
fn mark_violation(done: &mut Done) {
    let paths: Vec<&str> = done
        .side_effects
        .iter()
        .take(5)
        .map(|effect| effect.relative_path.as_str())
        .collect();
    let message = format!(
        "shell_readonly changed {}: use `shell` for commands that change files",
        paths.join(", ")
    );
    done.output.push_str("\n[tracegate: ");
    done.output.push_str(&message);
    done.output.push(']');
    done.outcome = Some(Outcome::Failed);
    done.error = Some(Failure::new("readonly_violation", message));
}

async fn dispatch(session: &Session, action: &PermittedAction, span: &Span) -> Done {
    let root = &session.root;
    match action.request() {
        Request::List { path, depth } => files::list(root, path, *depth),
        Request::Read { path, from, to } => files::read(root, path, *from, *to),
        Request::Search { pattern, path } => search::search(root, pattern, path, action.masks()),
        Request::Write { path, content } => files::write(session, path, content),
        Request::Edit { path, old, new } => files::edit(session, path, old, new),
        Request::Shell { words, script, .. } => shell::run(session, words, script, &span.ids()).await,
        Request::Ask { .. } => Done::failed("internal", "a question is not executed".to_owned()),
    }
}

fn finish(
    session: &mut Session,
    action: &PermittedAction,
    span: Span,
    mut done: Done,
    duration_ms: u64,
) -> Result<(), RecorderError> {
    let scrubbed = session
        .recorder
        .redactor()
        .scrub_text(std::mem::take(&mut done.output))
        .into_inner();
    let outcome = done.outcome.unwrap_or(Outcome::Failed);
    let finished = ToolExecuteFinished {
        outcome,
        exit_code: done.exit_code,
        signal: done.signal,
        output: session.recorder.payload(&scrubbed)?,
        output_chars: scrubbed.chars().count() as u64,
        truncated: done.truncated,
        duration_ms,
        side_effects: done.side_effects,
        test: done.test,
        error: done.error,
    };
    session.recorder.end(span, finished)?;
    let text = middle_out(&scrubbed, MODEL_TEXT);
    let observation = Observation {
        kind: ObservationKind::ToolOutput,
        phase: Phase::After,
        content: Some(session.recorder.payload(&text)?),
        outcome: Some(outcome),
        workspace: Some(session.workspace_state()),
    };
    session.recorder.record(Place::at(action.id()), observation)?;
    if action.request().has_side_effects() {
        session.recorder.sync()?;
    }
    session.answer(action.id(), text);
    Ok(())
}

/// Cuts the middle out of a text that is too long for the model and says so in its place: failures stand at the end.
fn middle_out(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let boundary = |mut at: usize, step: fn(usize) -> usize| {
        while !text.is_char_boundary(at) {
            at = step(at);
        }
        at
    };
    let head = boundary(max / 4, |at| at - 1);
    let tail = boundary(text.len() - (max - max / 4 - 128), |at| at + 1);
    let (first, last) = (
        text.get(..head).unwrap_or_default(),
        text.get(tail..).unwrap_or_default(),
    );
    format!(
        "{first}\n[{} of {} bytes omitted by tracegate]\n{last}",
        tail - head,
        text.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_says_how_much_is_missing() {
        let text = "ä".repeat(50_000);
        let cut = middle_out(&text, 1000);
        assert!(cut.len() <= 1000, "{}", cut.len());
        let kept = cut.matches('ä').count() * 2;
        assert!(cut.contains(&format!(
            "[{} of 100000 bytes omitted by tracegate]",
            100_000 - kept
        )));
        assert_eq!(middle_out("short", 1000), "short");
    }
}
