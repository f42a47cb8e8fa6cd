//! Rebuilding a conversation from the log, bit by bit: every request's digest is computed again and must be the recorded one.

use super::{Conversation, Message, extend_digest};
use tracegate_core::{
    event::Event,
    fact::{
        Data as _, Fact,
        model::{ModelCompleteFinished, ModelCompleteStarted, ReplyKind, Role},
        tool::{Observation, ObservationKind, Phase},
        user::{MessageKind, UserMessage},
    },
    ids::{ActionId, Digest, Seq},
};
use tracegate_store::{ArtifactError, Artifacts};

/// A conversation that cannot be rebuilt as it was.
#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    /// A message's text is gone or damaged.
    #[error("a message of the request at event {seq} cannot be read: {error}")]
    Artifact {
        /// The event that needs it.
        seq: Seq,
        /// Why.
        error: ArtifactError,
    },
    /// A request keeps more messages than the one before it had.
    #[error("the request at event {seq} keeps {keep} messages of {before}")]
    Keep {
        /// The request.
        seq: Seq,
        /// How many it keeps.
        keep: u64,
        /// How many there were.
        before: usize,
    },
    /// A request is not the one that was sent.
    #[error(
        "the request at event {seq} is not the one that was sent: its digest is `{found}`, recorded is `{recorded}`"
    )]
    Mismatch {
        /// The request.
        seq: Seq,
        /// What the rebuilt one has.
        found: Digest,
        /// What was recorded.
        recorded: Digest,
    },
}

impl Conversation {
    /// Rebuilds the conversation that the log holds; `instructions` open it where no request was sent yet.
    ///
    /// # Errors
    /// When a text is gone, or a request comes out different from the one that was sent.
    pub fn recall(
        events: &[Event],
        artifacts: &Artifacts,
        instructions: &str,
    ) -> Result<Self, ConversationError> {
        let mut conversation = Self::default();
        let mut actions = 0;
        for event in events {
            actions += u64::from(matches!(event.fact, Fact::Action(_)));
            let unread = |error| ConversationError::Artifact {
                seq: event.seq,
                error,
            };
            if let Some(request) = ModelCompleteStarted::of(&event.fact) {
                conversation.resend(event.seq, request, artifacts)?;
            } else if let Some(reply) = ModelCompleteFinished::of(&event.fact) {
                let calls = (actions + 1..)
                    .take(reply.tool_calls as usize)
                    .map(ActionId)
                    .collect();
                if reply.reply_kind != ReplyKind::None {
                    let content = artifacts.text(&reply.text).map_err(unread)?;
                    conversation.push(Message {
                        role: Role::Assistant,
                        content,
                        action: None,
                        calls,
                    });
                }
            } else if let Some(message) = UserMessage::of(&event.fact) {
                let content = artifacts.text(&message.content).map_err(unread)?;
                match message.kind {
                    MessageKind::Task => conversation.open(instructions, content),
                    MessageKind::FollowupTask | MessageKind::RetryFeedback => {
                        conversation.push(Message::plain(Role::User, content));
                    }
                    // The answer reaches the model as the result of the action that asked.
                    MessageKind::Answer => {}
                }
            } else if let Some(observation) = Observation::of(&event.fact)
                && let Some(content) = &observation.content
            {
                let content = artifacts.text(content).map_err(unread)?;
                match (observation.kind, observation.phase) {
                    (ObservationKind::ToolOutput, Phase::After) => {
                        let (action, calls) = (event.action, Vec::new());
                        conversation.push(Message {
                            role: Role::Tool,
                            content,
                            action,
                            calls,
                        });
                    }
                    (ObservationKind::External, Phase::Notice) => {
                        conversation.notice(content);
                    }
                    _ => {}
                }
            }
        }
        Ok(conversation)
    }

    /// Replays one request and returns the context that it ended in: what it appended is the truth, whatever was gathered before it.
    fn resend(
        &mut self,
        seq: Seq,
        request: &ModelCompleteStarted,
        artifacts: &Artifacts,
    ) -> Result<Option<Message>, ConversationError> {
        let (keep, before) = (request.keep, self.messages.len());
        let kept = usize::try_from(keep).ok().filter(|kept| *kept <= before);
        let kept = kept.ok_or(ConversationError::Keep { seq, keep, before })?;
        self.messages.truncate(kept);
        self.digests.truncate(kept);
        self.notices.clear();
        let mut context = None;
        for record in &request.append {
            let content = artifacts
                .text(&record.content)
                .map_err(|error| ConversationError::Artifact { seq, error })?;
            let message = Message {
                role: record.role,
                content,
                action: record.action,
                calls: record.calls.clone(),
            };
            if let Some(before) = context.replace(message) {
                self.push(before);
            }
        }
        let last = self.digests.last().copied();
        let found = context.as_ref().map_or_else(
            || last.unwrap_or_else(|| Digest::of(b"")),
            |context| extend_digest(last, context),
        );
        self.sent = self.messages.len();
        if found != request.digest {
            return Err(ConversationError::Mismatch {
                seq,
                found,
                recorded: request.digest,
            });
        }
        Ok(context)
    }
}

/// Puts together every request to the model that `events` record, oldest first, each with the context that it ended in.
///
/// # Errors
/// The first request that the log and the artifacts do not give back bit by bit.
pub fn rebuild(events: &[Event], artifacts: &Artifacts) -> Result<Vec<Vec<Message>>, ConversationError> {
    let mut conversation = Conversation::default();
    let mut requests = Vec::new();
    for event in events {
        if let Some(request) = ModelCompleteStarted::of(&event.fact) {
            let context = conversation.resend(event.seq, request, artifacts)?;
            requests.push(conversation.messages.iter().cloned().chain(context).collect());
        }
    }
    Ok(requests)
}
