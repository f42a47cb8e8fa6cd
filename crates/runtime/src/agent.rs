//! The loop: steps until the agent answers, asks, or something stops it.

use crate::{
    asking::User,
    conversation::Message,
    gate::{self, Arguments, PendingAction, Rules, Ruling},
    limits,
    model::{self, Model, ModelError, ModelReply, ToolCall},
    readiness,
    recorder::{Place, RecorderError, Span},
    session::{Ending, Session},
    tools::{self, After, Request},
    validate,
    world::Sleeping,
};
use tokio::sync::Notify;
use tracegate_core::{
    fact::{
        gate::ValidationRuling,
        model::Role,
        run::{AgentStepFinished, AgentStepStarted},
        tool::{Action, Outcome},
        user::QuestionKind,
    },
    ids::ActionId,
    payload::{INLINE_STRING, clip},
    redact::Redactor,
    stop::StopReason,
};
use tracegate_policy::OnDeny;

/// A step cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The run cannot be recorded: it stops, whatever it was doing.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The model gave nothing that could be used.
    #[error(transparent)]
    Model(ModelError),
    /// The permission gate itself broke.
    #[error("{0}")]
    Gate(String),
    /// The workspace cannot be looked at.
    #[error("the workspace cannot be read: {0}")]
    Workspace(#[from] std::io::Error),
}

/// What a turn comes to.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// There is more to do.
    Continue,
    /// The validation gate ruled on the agent's answer.
    Judged(ValidationRuling),
    /// The agent asked its user.
    Waiting,
}

/// What the agent did in a step.
#[derive(Debug, PartialEq, Eq)]
enum Did {
    /// It acted.
    Act,
    /// It gave its answer.
    Answer,
    /// It asked its user.
    Ask,
}

/// Where a step begins.
#[derive(Debug)]
enum Cut {
    /// At its beginning.
    New,
    /// At its beginning once more: a process died before the model had replied.
    BeforeReply,
    /// Behind a reply that is recorded: what it asks for is done, as far as it was not.
    AfterReply {
        /// The reply.
        reply: ModelReply,
        /// The first action that it asks for.
        first: u64,
    },
}

/// What a resumed run has to finish before its next turn.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Unfinished {
    /// Nothing.
    #[default]
    Nothing,
    /// A step without a reply.
    Step,
    /// A step with one.
    Reply {
        /// The reply.
        reply: ModelReply,
        /// The first action that it asks for.
        first: u64,
    },
    /// An answer without a ruling.
    Answer,
    /// A ruling that was not carried out.
    Ruling(ValidationRuling),
}

/// Returns the ids of `count` actions from `first` on.
fn ids(first: u64, count: usize) -> Vec<ActionId> {
    (first..).take(count).map(ActionId).collect()
}

/// What the loop works with besides the session.
#[derive(Debug)]
pub struct Parts<'a> {
    /// Gives replies.
    pub model: &'a dyn Model,
    /// Rules on actions.
    pub policy: &'a dyn Rules,
    /// Who can be asked while the run goes on; nobody, and questions suspend it.
    pub user: Option<&'a dyn User>,
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
        let unfinished = std::mem::take(&mut session.unfinished);
        if unfinished == Unfinished::Nothing
            && let Some(stop) = stop_check(session, parts.policy)?
        {
            return Ok(stop);
        }
        let alarm = session.alarm();
        let turn = tokio::select! {
            biased;
            () = parts.cancel.notified() => return Ok((StopReason::Cancelled, "a person stopped the run".to_owned())),
            turn = turn(session, parts, unfinished) => turn,
            () = alarm => return session.out_of_time(),
        };
        match turn {
            Ok(Turn::Continue) => {}
            Ok(Turn::Waiting) => return Ok((StopReason::WaitingForUser, session.waits_for())),
            Ok(Turn::Judged(ValidationRuling::Complete)) => {
                return Ok((StopReason::Completed, String::new()));
            }
            Ok(Turn::Judged(ValidationRuling::Fail)) => {
                return Ok((StopReason::ValidationFailed, String::new()));
            }
            Ok(Turn::Judged(ValidationRuling::PushBack)) => validate::push_back(session)?,
            Err(StepError::Recorder(error)) => return Err(error),
            Err(error @ StepError::Model(_)) => return Ok((StopReason::ModelError, error.to_string())),
            Err(error @ StepError::Gate(_)) => return Ok((StopReason::GateFailed, error.to_string())),
            Err(error @ StepError::Workspace(_)) => return Ok((StopReason::ToolError, error.to_string())),
        }
    }
}

/// Takes one turn; a resumed run first finishes the one that was cut off.
async fn turn(session: &mut Session, parts: &Parts<'_>, unfinished: Unfinished) -> Result<Turn, StepError> {
    let answered = match unfinished {
        Unfinished::Nothing => step(session, parts, Cut::New).await?,
        Unfinished::Step => step(session, parts, Cut::BeforeReply).await?,
        Unfinished::Reply { reply, first } => step(session, parts, Cut::AfterReply { reply, first }).await?,
        Unfinished::Answer => Did::Answer,
        Unfinished::Ruling(ruling) => return Ok(Turn::Judged(ruling)),
    };
    match answered {
        Did::Act => Ok(Turn::Continue),
        Did::Ask => Ok(Turn::Waiting),
        Did::Answer => Ok(Turn::Judged(validate::judge(session)?)),
    }
}

/// One step: look, show, ask, and do what was asked, each action past the gate.
async fn step(session: &mut Session, parts: &Parts<'_>, cut: Cut) -> Result<Did, StepError> {
    let step = session.begin_step(&cut)?;
    let (reply, asked) = match cut {
        Cut::AfterReply { reply, first } => {
            let asked = ids(first, reply.tool_calls.len());
            (reply, asked)
        }
        Cut::New | Cut::BeforeReply => {
            readiness::wait(session).await?;
            session.observe_before()?;
            let context = crate::context::build(session, parts.policy)?;
            let reply = model::complete(session, parts.model, context).await?;
            let asked = session.listen(&reply);
            (reply, asked)
        }
    };
    let mut did = if reply.tool_calls.is_empty() {
        Did::Answer
    } else {
        Did::Act
    };
    for (index, id) in session.unsettled(&asked) {
        if refused_too_often(session, parts.policy).is_some() {
            break;
        }
        if session.waits(id) {
            did = Did::Ask;
            break;
        }
        let action = session.record_action(id, &reply, index)?;
        if session.take_answer(id)? {
            continue;
        }
        match gate::review(session, parts, action).await? {
            Ruling::Permitted(action) if session.passes_over(&action) => session.pass_over(action.id())?,
            Ruling::Permitted(action) => {
                if tools::execute(session, action, parts.user).await? == After::Wait {
                    did = session.suspend();
                }
            }
            Ruling::Suspended => did = session.suspend(),
            Ruling::Refused(refusal) => session.refuse(&refusal)?,
        }
    }
    session.end_of_turn();
    session.checkpoint()?;
    let actions = u32::try_from(asked.len()).unwrap_or(u32::MAX);
    session.recorder.end(step, AgentStepFinished { actions })?;
    Ok(did)
}

/// Says why the run must stop here, if it must.
fn stop_check(
    session: &mut Session,
    policy: &dyn Rules,
) -> Result<Option<(StopReason, String)>, RecorderError> {
    if let Some(why) = refused_too_often(session, policy) {
        return Ok(Some((StopReason::PermissionDenied, why)));
    }
    let state = session.state();
    if state.internal_failures >= 3 {
        return Ok(Some((
            StopReason::ToolError,
            "the runtime failed three times running".to_owned(),
        )));
    }
    let reached = state.limits.and_then(|limits| limits::reached(state, &limits));
    if let Some(reached) = reached {
        session.recorder.record(Place::default(), reached.event())?;
        return Ok(Some((reached.stop(), reached.to_string())));
    }
    Ok(None)
}

/// Says which effect was refused so often that nothing more may be done, not even what else the same reply asked for.
fn refused_too_often(session: &Session, policy: &dyn Rules) -> Option<String> {
    let (effect, times) = session.state().refusal.as_ref()?;
    let limit = match policy.limits().on_deny {
        OnDeny::Stop => 1,
        OnDeny::Continue => 3,
    };
    let effect = clip(effect, 200);
    match times {
        1 if limit == 1 => Some(format!("refused: {effect}")),
        times if *times >= limit => Some(format!("refused {times} times running: {effect}")),
        _ => None,
    }
}

impl Session {
    /// Completes when the run has worked as long as it may; never, if nothing limits that.
    fn alarm(&self) -> Sleeping {
        let most = self.state().limits.and_then(|limits| limits.max_ms);
        match most {
            Some(most) => self
                .recorder
                .sleep(most.saturating_sub(self.recorder.worked_ms())),
            None => Box::pin(std::future::pending()),
        }
    }

    /// Ends a run that ran out of time in the middle of a turn.
    fn out_of_time(&mut self) -> Result<(StopReason, String), RecorderError> {
        let limit = self
            .state()
            .limits
            .and_then(|limits| limits.max_ms)
            .unwrap_or_default();
        let value = self.recorder.worked_ms().max(limit);
        let reached = limits::Reached::Time { value, limit };
        self.recorder.record(Place::default(), reached.event())?;
        Ok((reached.stop(), reached.to_string()))
    }

    /// Says what the run waits for.
    fn waits_for(&self) -> String {
        let open: Vec<String> = self
            .state()
            .open_questions
            .iter()
            .map(ToString::to_string)
            .collect();
        format!("the run waits for an answer to {}", open.join(" and "))
    }

    /// Gives an action that asked for words the user's answer as its result; false if there is none for it.
    fn take_answer(&mut self, id: ActionId) -> Result<bool, RecorderError> {
        match self.answered.get(&id) {
            Some(answered) if answered.kind == QuestionKind::Text => {
                let (question, answer) = (answered.question.clone(), answered.answer.clone());
                self.answered.remove(&id);
                tools::answered(self, id, &question, &answer)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Says that the run has to wait, which the rest of the reply feels.
    const fn suspend(&mut self) -> Did {
        self.suspended = true;
        Did::Ask
    }

    /// Tells whether a permitted action is not done all the same: a question before it suspended the run, and its answer may change
    /// what the agent wants.
    fn passes_over(&self, action: &gate::PermittedAction) -> bool {
        let own_question = self.answered.contains_key(&action.id()) || action.request().is_question();
        self.suspended && !own_question
    }

    /// Gives an action that was not reached its result.
    fn pass_over(&mut self, id: ActionId) -> Result<(), RecorderError> {
        let text =
            "not done: a question before it had to be answered first; ask for it again if it is still wanted";
        self.record_outcome(id, Outcome::NotRun, text)
    }

    /// Forgets what belongs to the turn that is over.
    fn end_of_turn(&mut self) {
        if self.state().open_questions.is_empty() {
            self.suspended = false;
            self.asked.clear();
            self.answered.clear();
        }
    }

    /// Begins a step, or once more the one that a dead process had begun.
    fn begin_step(&mut self, cut: &Cut) -> Result<Span, RecorderError> {
        match cut {
            Cut::New => self.recorder.begin(None, AgentStepStarted {}),
            Cut::BeforeReply | Cut::AfterReply { .. } => self.recorder.begin_again(AgentStepStarted {}),
        }
    }

    /// Returns the actions of a reply that have no result yet, with their positions, in the order in which they are taken up.
    ///
    /// Where a question has suspended the turn, those that nobody was asked about come first: what there is to ask is asked
    /// before anything of the reply is done, whether or not a process died in between.
    fn unsettled(&self, asked: &[ActionId]) -> Vec<(usize, ActionId)> {
        let state = self.state();
        let settled = |id: ActionId| id.0 <= state.actions && !state.open_actions.contains_key(&id);
        let mut open: Vec<(usize, ActionId)> = asked
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, id)| !settled(*id))
            .collect();
        if self.suspended {
            open.sort_by_key(|(_, id)| self.asked.contains(id));
        }
        open
    }

    /// Tells whether an action has to wait: it was suspended, and not everything that the reply asks has its answer.
    fn waits(&self, id: ActionId) -> bool {
        self.suspended && self.asked.contains(&id) && !self.state().open_questions.is_empty()
    }

    /// Takes in a reply: as the agent's answer, or as a message that asks for actions, whose ids are returned.
    fn listen(&mut self, reply: &ModelReply) -> Vec<ActionId> {
        let text = self
            .recorder
            .redactor()
            .scrub_text(reply.text.clone())
            .into_inner();
        let calls = ids(self.state().actions + 1, reply.tool_calls.len());
        if calls.is_empty() {
            self.claim = Some(text.clone());
        }
        let message = Message {
            role: Role::Assistant,
            content: text,
            action: None,
            calls: calls.clone(),
        };
        self.conversation.push(message);
        calls
    }

    /// Records what the model asked for, before anybody rules on it; an action that is recorded already is taken up again.
    fn record_action(
        &mut self,
        id: ActionId,
        reply: &ModelReply,
        index: usize,
    ) -> Result<PendingAction, StepError> {
        let Some(call) = reply.tool_calls.get(index) else {
            return Ok(PendingAction {
                id,
                request: Err("there is no such call".to_owned()),
                arguments: Arguments::Whole,
            });
        };
        if id.0 <= self.state().actions {
            return Ok(PendingAction {
                id,
                request: taken_up(call),
                arguments: Arguments::Whole,
            });
        }
        let mut args = call.input.clone();
        let redacted = self.recorder.redactor().json(&mut args).total() > 0;
        self.recorder.fit(&mut args)?;
        let request = Request::parse(&call.name, &call.input);
        if !self.state().observed {
            // Between two actions lies at least one observation; one that waits for its user has left none.
            self.observe_before()?;
        }
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
        let arguments = if redacted {
            Arguments::Redacted
        } else {
            Arguments::Whole
        };
        Ok(PendingAction {
            id,
            request,
            arguments,
        })
    }
}

/// Parses a call that comes from the log. One whose arguments lost a secret to redaction cannot be done any more.
fn taken_up(call: &ToolCall) -> Result<Request, String> {
    if Redactor::holds_placeholder(&call.input.to_string()) {
        return Err(
            "args_redacted: the arguments held a secret, which is not kept; ask for the action again"
                .to_owned(),
        );
    }
    Request::parse(&call.name, &call.input)
}
