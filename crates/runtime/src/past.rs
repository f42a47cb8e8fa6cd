//! What a log says to whoever goes on with it, folded while it is read: memory does not grow with the log.

use crate::{
    attention::Attention,
    context::INSTRUCTIONS,
    conversation::{Conversation, Recall},
    resume::ResumeError,
};
use std::collections::BTreeMap;
use tracegate_core::{
    event::Event,
    fact::{
        Data as _, Fact,
        gate::{PolicyGranted, ValidationReviewFinished, ValidationRuling},
        model::{ModelCompleteFinished, ReplyKind},
        run::{AgentStepFinished, AgentStepStarted, PolicyRef, RunFinished, RunStarted, SegmentStarted},
        tool::ToolExecuteFinished,
        user::{MessageKind, QuestionKind, UserMessage, UserQuestion},
    },
    ids::{ActionId, Digest, QuestionId, SegmentNo, SpanId},
    payload::Payload,
    redact::Redactor,
    state::RunState,
};
use tracegate_store::Artifacts;

/// Where a cut-off run stands: what the loop has to finish before it takes its next turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Between two steps.
    BetweenSteps,
    /// In a step whose request has no reply yet: the step begins again.
    Unanswered,
    /// In a step whose reply is recorded: its remaining actions are done, its answer is judged.
    Replied {
        /// The reply verbatim.
        raw: Payload,
        /// The first action that it asked for.
        first: u64,
    },
    /// After the step in which the agent gave its answer.
    Answered,
    /// After a ruling of the validation gate that was not carried out yet.
    Judged(ValidationRuling),
}

/// A question and, once it was given, the answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    /// Its id.
    pub(crate) id: QuestionId,
    /// The action that waits for it.
    pub(crate) action: Option<ActionId>,
    /// The question.
    pub(crate) question: UserQuestion,
    /// What the user said.
    pub(crate) answer: Option<Payload>,
    /// Whether the process that asked was gone when the answer came, or is gone now.
    pub(crate) suspended: bool,
    segment: SegmentNo,
}

/// The fold of a log for the process that goes on with it.
#[derive(Debug)]
pub(crate) struct Past<'a> {
    /// The fold that every reader has.
    pub(crate) state: RunState,
    /// What the run has looked at.
    pub(crate) attention: Attention,
    recall: Recall<'a>,
    started: Option<RunStarted>,
    /// The policy and the goal that were accepted last.
    policy: Option<PolicyRef>,
    goal: Option<Payload>,
    /// Span of the last segment.
    pub(crate) last_segment: Option<SpanId>,
    /// Whether the task was told.
    pub(crate) told: bool,
    /// Grants that are recorded.
    pub(crate) granted: Vec<PolicyGranted>,
    /// What the log's own actions left each file as.
    pub(crate) done: BTreeMap<String, Option<Digest>>,
    /// The reply before the events of `turn`, or among them.
    last_reply: Option<ModelCompleteFinished>,
    /// Questions of the last turn: an earlier one cannot be open, as every action has its result before the next request.
    pub(crate) questions: Vec<Asked>,
    /// The events since the last step began.
    pub(crate) turn: Vec<Event>,
    /// How many actions were asked for before those.
    actions_before: u64,
}

impl<'a> Past<'a> {
    /// Starts with nothing.
    pub(crate) fn new(artifacts: &'a Artifacts, redactor: &'a Redactor) -> Self {
        Self {
            state: RunState::default(),
            attention: Attention::default(),
            recall: Recall::new(artifacts, redactor),
            started: None,
            policy: None,
            goal: None,
            last_segment: None,
            told: false,
            granted: Vec::new(),
            done: BTreeMap::new(),
            last_reply: None,
            questions: Vec::new(),
            turn: Vec::new(),
            actions_before: 0,
        }
    }

    /// Takes in the next event.
    ///
    /// # Errors
    /// When it must not follow, or the conversation does not come out as it was.
    pub(crate) fn push(&mut self, event: Event) -> Result<(), ResumeError> {
        let begins = AgentStepStarted::of(&event.fact).is_some() && event.step != Some(self.state.step);
        if begins {
            self.turn.clear();
            self.questions.clear();
            self.actions_before = self.state.actions;
        }
        self.state.apply(&event)?;
        self.recall.push(&event)?;
        self.attention.apply(&event);
        self.note(&event);
        self.turn.push(event);
        Ok(())
    }

    fn note(&mut self, event: &Event) {
        if let Some(started) = RunStarted::of(&event.fact) {
            self.started = Some(started.clone());
        } else if let Some(segment) = SegmentStarted::of(&event.fact) {
            self.policy = segment.policy.clone().or(self.policy.take());
            self.goal = segment.goal.clone().or(self.goal.take());
            self.last_segment = event.span;
        } else if let Some(grant) = PolicyGranted::of(&event.fact) {
            self.granted.push(grant.clone());
        } else if let Some(done) = ToolExecuteFinished::of(&event.fact) {
            for effect in &done.side_effects {
                self.done.insert(effect.relative_path.clone(), effect.after);
            }
        } else if let Some(reply) = ModelCompleteFinished::of(&event.fact) {
            self.last_reply = Some(reply.clone());
        } else if let Some(question) = UserQuestion::of(&event.fact) {
            self.questions.push(Asked {
                id: question.question,
                action: event.action,
                question: question.clone(),
                answer: None,
                suspended: true,
                segment: event.segment,
            });
        } else if let Some(message) = UserMessage::of(&event.fact) {
            self.told |= message.kind == MessageKind::Task;
            let asked = self
                .questions
                .iter_mut()
                .find(|asked| Some(asked.id) == message.question);
            if let Some(asked) = asked {
                asked.answer = Some(message.content.clone());
                asked.suspended = asked.segment != event.segment;
            }
        }
    }

    /// Returns how the run was set up.
    ///
    /// # Errors
    /// [`ResumeError::NoBeginning`].
    pub(crate) fn started(&self) -> Result<&RunStarted, ResumeError> {
        self.started.as_ref().ok_or(ResumeError::NoBeginning)
    }

    /// Returns the policy that was accepted last: the one that a later segment went on with, else the one that the run began with.
    pub(crate) fn policy_in_force(&self) -> Option<Digest> {
        let begun = self.started.as_ref().map(|started| &started.policy);
        self.policy.as_ref().or(begun).map(|policy| policy.digest)
    }

    /// Returns the goal that was accepted last.
    pub(crate) fn goal_in_force(&self) -> Option<&Payload> {
        let begun = self.started.as_ref().map(|started| &started.goal);
        self.goal.as_ref().or(begun)
    }

    /// Returns the agent's last words, if its last reply was an answer.
    pub(crate) fn claim(&self) -> Option<&Payload> {
        let reply = self.last_reply.as_ref()?;
        (reply.reply_kind == ReplyKind::Final).then_some(&reply.text)
    }

    /// Gives the conversation; nothing can be pushed afterwards.
    ///
    /// # Errors
    /// When a text is gone.
    pub(crate) fn into_conversation(self) -> Result<Conversation, ResumeError> {
        Ok(self.recall.finish(INSTRUCTIONS)?)
    }

    /// Says from the end of the log how far the last step had come.
    pub(crate) fn standing(&self) -> Standing {
        let mut told = false;
        for (at, event) in self.turn.iter().enumerate().rev() {
            told |= UserMessage::of(&event.fact)
                .is_some_and(|message| message.kind == MessageKind::RetryFeedback);
            if let Some(judged) = ValidationReviewFinished::of(&event.fact) {
                // An agent that was told why it is sent back has only to take its next turn.
                return if told {
                    Standing::BetweenSteps
                } else {
                    Standing::Judged(judged.ruling)
                };
            }
            if let Some(reply) = ModelCompleteFinished::of(&event.fact) {
                // A failed request has no reply: the step begins again, which is what a retry is.
                return match reply.reply_kind {
                    ReplyKind::None => Standing::Unanswered,
                    ReplyKind::ToolCalls | ReplyKind::Final => self.replied(at, reply),
                };
            }
            if AgentStepStarted::of(&event.fact).is_some() {
                // A step that was begun again behind its reply goes on behind that reply.
                let replied = self.reply_before(at).and_then(|(reply, _)| self.turn.get(reply));
                if replied.is_none_or(|reply| reply.step != event.step) {
                    return Standing::Unanswered;
                }
            }
            // A step that was closed on behalf of a dead process is not over; neither is one that waits for its user.
            if AgentStepFinished::of(&event.fact).is_some()
                && let Some((reply_at, reply)) = self.reply_before(at)
            {
                if reply.reply_kind == ReplyKind::Final {
                    return Standing::Answered;
                }
                let asked = self.actions(reply_at) + u64::from(reply.tool_calls);
                if self.state.actions < asked || !self.state.open_actions.is_empty() {
                    return self.replied(reply_at, reply);
                }
                return Standing::BetweenSteps;
            }
        }
        Standing::BetweenSteps
    }

    fn replied(&self, at: usize, reply: &ModelCompleteFinished) -> Standing {
        Standing::Replied {
            raw: reply.reply.clone(),
            first: self.actions(at) + 1,
        }
    }

    fn reply_before(&self, at: usize) -> Option<(usize, &ModelCompleteFinished)> {
        let before = self.turn.iter().enumerate().take(at);
        before
            .rev()
            .find_map(|(at, event)| Some((at, ModelCompleteFinished::of(&event.fact)?)))
    }

    /// How many actions were asked for before event `at` of the turn.
    fn actions(&self, at: usize) -> u64 {
        let here = self.turn.iter().take(at);
        self.actions_before + here.filter(|event| matches!(event.fact, Fact::Action(_))).count() as u64
    }
}

/// A question that nobody has answered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Its id.
    pub id: QuestionId,
    /// What it asks for.
    pub kind: QuestionKind,
    /// Its text, as far as the event shows it.
    pub text: String,
}

/// What somebody who is about to go on with a run needs to know of it beforehand; small, whatever the log's length.
#[derive(Debug, Clone, Default)]
pub struct Outline {
    /// How it was set up.
    pub started: Option<RunStarted>,
    /// Replies that it got from its model; a request that was cut off, or failed, is made again and does not count.
    pub replies: u64,
    /// Its open questions, oldest first.
    pub open: Vec<OpenQuestion>,
}

impl Outline {
    /// Takes in the next event.
    pub fn push(&mut self, event: &Event) {
        if let Some(started) = RunStarted::of(&event.fact) {
            self.started = Some(started.clone());
        } else if let Some(reply) = ModelCompleteFinished::of(&event.fact) {
            self.replies += u64::from(reply.reply_kind != ReplyKind::None);
        } else if let Some(question) = UserQuestion::of(&event.fact) {
            self.open.push(OpenQuestion {
                id: question.question,
                kind: question.kind,
                text: question.text.preview(),
            });
        } else if let Some(message) = UserMessage::of(&event.fact) {
            self.open.retain(|open| Some(open.id) != message.question);
        } else if RunFinished::of(&event.fact).is_some() {
            self.open.clear();
        }
    }
}
