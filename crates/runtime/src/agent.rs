//! The loop: steps until the agent answers, asks, or something stops it.

use crate::{
    conversation::Message,
    gate::{self, PendingAction, Ruling},
    model::{self, Model, ModelError, ModelReply},
    readiness,
    recorder::{Place, RecorderError},
    session::{Ending, Session},
    tools::{self, After, Request},
    validate,
};
use tokio::sync::Notify;
use tracegate_core::{
    fact::{
        gate::ValidationRuling,
        model::Role,
        run::{AgentStepFinished, AgentStepStarted, LimitReached},
        tool::Action,
    },
    ids::ActionId,
    payload::{INLINE_STRING, clip},
    stop::StopReason,
};
use tracegate_policy::{OnDeny, Policy};

/// A step cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The run cannot be recorded: it stops, whatever it was doing.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The model gave nothing that could be used.
    #[error(transparent)]
    Model(ModelError),
    /// The workspace cannot be looked at.
    #[error("the workspace cannot be read: {0}")]
    Workspace(#[from] std::io::Error),
}

/// What a step comes to.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// There is more to do.
    Continue,
    /// The agent gave its answer.
    Final,
    /// The agent asked its user.
    Waiting,
}

/// What the loop works with besides the session.
#[derive(Debug)]
pub struct Parts<'a> {
    /// Gives replies.
    pub model: &'a dyn Model,
    /// Rules on actions.
    pub policy: &'a Policy,
    /// Notified when a person stops the run; the step at work is dropped and what it began is recorded as cut off.
    pub cancel: &'a Notify,
}

/// Runs the loop to its end and closes the session.
///
/// # Errors
/// When the run cannot be recorded; everything else is how the run ended.
pub async fn drive(mut session: Session, parts: &Parts<'_>) -> Result<Ending, RecorderError> {
    let ended = match turns(&mut session, parts).await {
        Ok((stop, why)) => session.settle(stop).and_then(|()| session.finish(stop, &why)),
        Err(error) => Err(error),
    };
    // The log cannot say that it could not be written: the exit code, standard error and, if possible, `status.json` do.
    ended.inspect_err(|error| session.give_up(error))
}

/// Takes turns until something ends them, and says what.
async fn turns(session: &mut Session, parts: &Parts<'_>) -> Result<(StopReason, String), RecorderError> {
    loop {
        if let Some(stop) = stop_check(session, parts.policy)? {
            return Ok(stop);
        }
        let turn = tokio::select! {
            biased;
            () = parts.cancel.notified() => return Ok((StopReason::Cancelled, "a person stopped the run".to_owned())),
            turn = step(session, parts) => turn,
        };
        match turn {
            Ok(Turn::Continue) => {}
            Ok(Turn::Waiting) => {
                return Ok((StopReason::WaitingForUser, "the agent asked its user".to_owned()));
            }
            Ok(Turn::Final) => match validate::judge(session)? {
                ValidationRuling::Complete => return Ok((StopReason::Completed, String::new())),
                ValidationRuling::Fail => return Ok((StopReason::ValidationFailed, String::new())),
                ValidationRuling::PushBack => {}
            },
            Err(StepError::Recorder(error)) => return Err(error),
            Err(error @ StepError::Model(_)) => return Ok((StopReason::ModelError, error.to_string())),
            Err(error @ StepError::Workspace(_)) => return Ok((StopReason::ToolError, error.to_string())),
        }
    }
}

/// One turn: look, show, ask, and do what was asked, each action past the gate.
async fn step(session: &mut Session, parts: &Parts<'_>) -> Result<Turn, StepError> {
    let step = session.recorder.begin(None, AgentStepStarted {})?;
    readiness::wait(session).await?;
    session.observe_before()?;
    let context = crate::context::build(session)?;
    let reply = model::complete(session, parts.model, context).await?;
    let mut turn = if reply.tool_calls.is_empty() {
        Turn::Final
    } else {
        Turn::Continue
    };
    let asked = session.listen(&reply);
    for (index, id) in asked.iter().enumerate() {
        let action = session.record_action(*id, &reply, index)?;
        match gate::review(session, parts.policy, action)? {
            Ruling::Permitted(action) => {
                if tools::execute(session, action).await? == After::Wait {
                    turn = Turn::Waiting;
                    break;
                }
            }
            Ruling::Refused(refusal) => session.refuse(&refusal)?,
        }
    }
    session.checkpoint()?;
    let actions = u32::try_from(asked.len()).unwrap_or(u32::MAX);
    session.recorder.end(step, AgentStepFinished { actions })?;
    Ok(turn)
}

/// Says why the run must stop here, if it must.
fn stop_check(session: &mut Session, policy: &Policy) -> Result<Option<(StopReason, String)>, RecorderError> {
    let state = session.state();
    let refused = state.refusal.as_ref().map_or(0, |(_, times)| *times);
    let refusals = if policy.limits().on_deny == OnDeny::Stop {
        1
    } else {
        3
    };
    if refused >= refusals {
        let effect = state.refusal.as_ref().map_or("", |(effect, _)| effect.as_str());
        return Ok(Some((
            StopReason::PermissionDenied,
            format!("refused {refused} times running: {}", clip(effect, 200)),
        )));
    }
    if state.internal_failures >= 3 {
        return Ok(Some((
            StopReason::ToolError,
            "the runtime failed three times running".to_owned(),
        )));
    }
    let Some(limits) = state.limits else {
        return Ok(None);
    };
    let (steps, tokens, elapsed) = (u64::from(state.step.0), state.usage.total(), state.elapsed_ms());
    let reached = [
        (
            "steps",
            steps,
            Some(u64::from(limits.max_steps)),
            StopReason::MaxSteps,
        ),
        ("tokens", tokens, limits.max_tokens, StopReason::BudgetExhausted),
        ("time", elapsed, limits.max_ms, StopReason::BudgetExhausted),
    ];
    for (which, value, limit, stop) in reached {
        if let Some(limit) = limit.filter(|limit| value >= *limit) {
            session.recorder.record(
                Place::default(),
                LimitReached {
                    which: which.to_owned(),
                    value,
                    limit,
                },
            )?;
            return Ok(Some((stop, format!("the limit of {limit} {which} is reached"))));
        }
    }
    Ok(None)
}

impl Session {
    /// Takes in a reply: as the agent's answer, or as a message that asks for actions, whose ids are returned.
    fn listen(&mut self, reply: &ModelReply) -> Vec<ActionId> {
        let text = self
            .recorder
            .redactor()
            .scrub_text(reply.text.clone())
            .into_inner();
        if reply.tool_calls.is_empty() {
            self.claim(text);
            return Vec::new();
        }
        let first = self.state().actions + 1;
        let calls: Vec<ActionId> = (first..).take(reply.tool_calls.len()).map(ActionId).collect();
        let message = Message {
            role: Role::Assistant,
            content: text,
            action: None,
            calls: calls.clone(),
        };
        self.conversation.push(message);
        calls
    }

    /// Records what the model asked for, before anybody rules on it.
    fn record_action(
        &mut self,
        id: ActionId,
        reply: &ModelReply,
        index: usize,
    ) -> Result<PendingAction, RecorderError> {
        let Some(call) = reply.tool_calls.get(index) else {
            return Ok(PendingAction {
                id,
                request: Err("there is no such call".to_owned()),
            });
        };
        let mut args = call.input.clone();
        let redacted = self.recorder.redactor().json(&mut args).total() > 0;
        self.recorder.shorten(&mut args)?;
        let request = Request::parse(&call.name, &call.input);
        let description = request
            .as_ref()
            .map_or_else(|_| clip(&call.name, 80), ToString::to_string);
        let action = Action {
            tool: clip(&call.name, 80),
            args,
            call_id: clip(&call.id, 200),
            index: u32::try_from(index).unwrap_or(u32::MAX),
            description: clip(&description, INLINE_STRING),
            args_redacted: redacted,
        };
        self.recorder.record(Place::at(id), action)?;
        Ok(PendingAction { id, request })
    }
}
