//! Rebuilding a conversation from the log, bit by bit: every request's digest is computed again and must be the recorded one.

use super::{Conversation, Message, extend_digest};
use std::collections::BTreeMap;
use tracegate_core::{
    event::Event,
    fact::{
        Data as _, Fact,
        model::{ContextCompacted, ModelCompleteFinished, ModelCompleteStarted, ReplyKind, Role},
        tool::{Observation, ObservationKind, Phase},
        user::{MessageKind, UserMessage, UserQuestion},
    },
    ids::{ActionId, Digest, QuestionId, Seq},
    payload::Payload,
    redact::Redactor,
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
    /// A compaction replaces messages that were never sent.
    #[error(
        "the compaction at event {seq} replaces {dropped} messages after the first {keep}, and there are fewer"
    )]
    Compaction {
        /// The event.
        seq: Seq,
        /// How many messages stay before the summary.
        keep: u64,
        /// How many it replaces.
        dropped: u64,
    },
    /// A request is not the one that was sent.
    #[error(
        "the request at event {seq} is not the one that was sent: the first difference is in message {first} or after it \
         (its digest is `{found}`, recorded is `{recorded}`)"
    )]
    Mismatch {
        /// The request.
        seq: Seq,
        /// The first message, from 1, that the requests before do not vouch for.
        first: u64,
        /// What the rebuilt one has.
        found: Digest,
        /// What was recorded.
        recorded: Digest,
    },
}

/// A message that stands in the log and in no request yet.
#[derive(Debug)]
struct Heard {
    seq: Seq,
    content: Payload,
    place: HeardAs,
}

#[derive(Debug)]
enum HeardAs {
    Goal,
    Message {
        role: Role,
        action: Option<ActionId>,
        calls: Vec<ActionId>,
    },
    Notice,
}

/// Rebuilds the conversation of a log while that is read.
///
/// What a request appended is the truth, whatever was gathered before it: of what stands in no request yet only the references are
/// kept until the log is read to its end, so that no text is read twice.
#[derive(Debug)]
pub(crate) struct Recall<'a> {
    artifacts: &'a Artifacts,
    redactor: &'a Redactor,
    conversation: Conversation,
    heard: Vec<Heard>,
    actions: u64,
    /// Questions without an answer.
    asked: BTreeMap<QuestionId, Payload>,
}

impl<'a> Recall<'a> {
    pub(crate) fn new(artifacts: &'a Artifacts, redactor: &'a Redactor) -> Self {
        Self {
            artifacts,
            redactor,
            conversation: Conversation::default(),
            heard: Vec::new(),
            actions: 0,
            asked: BTreeMap::new(),
        }
    }

    /// Takes in the next event.
    ///
    /// # Errors
    /// When a text is gone, or a request comes out different from the one that was sent.
    pub(crate) fn push(&mut self, event: &Event) -> Result<(), ConversationError> {
        let seq = event.seq;
        self.actions += u64::from(matches!(event.fact, Fact::Action(_)));
        if let Some(request) = ModelCompleteStarted::of(&event.fact) {
            self.heard.clear();
            self.conversation.resend(seq, request, self.artifacts)?;
        } else if let Some(compacted) = ContextCompacted::of(&event.fact) {
            self.conversation.recompact(seq, compacted, self.artifacts)?;
        } else if let Some(reply) = ModelCompleteFinished::of(&event.fact) {
            if reply.reply_kind != ReplyKind::None {
                let calls = (self.actions + 1..)
                    .take(reply.tool_calls as usize)
                    .map(ActionId)
                    .collect();
                let (role, action) = (Role::Assistant, None);
                self.hear(seq, &reply.text, HeardAs::Message { role, action, calls });
            }
        } else if let Some(message) = UserMessage::of(&event.fact) {
            match message.kind {
                MessageKind::Task => self.hear(seq, &message.content, HeardAs::Goal),
                MessageKind::FollowupTask | MessageKind::RetryFeedback => {
                    let (role, action, calls) = (Role::User, None, Vec::new());
                    self.hear(seq, &message.content, HeardAs::Message { role, action, calls });
                }
                // The answer reaches the model as the result of the action that asked.
                MessageKind::Answer => self.answered(seq, message)?,
            }
        } else if let Some(question) = UserQuestion::of(&event.fact) {
            self.asked.insert(question.question, question.text.clone());
        } else if let Some(observation) = Observation::of(&event.fact)
            && let Some(content) = &observation.content
        {
            match (observation.kind, observation.phase) {
                (ObservationKind::ToolOutput, Phase::After) => {
                    let (role, action, calls) = (Role::Tool, event.action, Vec::new());
                    self.hear(seq, content, HeardAs::Message { role, action, calls });
                }
                (ObservationKind::External, Phase::Notice) => self.hear(seq, content, HeardAs::Notice),
                _ => {}
            }
        }
        Ok(())
    }

    fn hear(&mut self, seq: Seq, content: &Payload, place: HeardAs) {
        let content = content.clone();
        self.heard.push(Heard { seq, content, place });
    }

    fn answered(&mut self, seq: Seq, message: &UserMessage) -> Result<(), ConversationError> {
        if let Some(question) = message.question.and_then(|question| self.asked.remove(&question)) {
            let unread = |error| ConversationError::Artifact { seq, error };
            let question = self.artifacts.text(&question).map_err(unread)?;
            let answer = self.artifacts.text(&message.content).map_err(unread)?;
            self.conversation.keep_answer(&question, &answer, self.redactor);
        }
        Ok(())
    }

    /// Returns the conversation that the log holds; `instructions` open it where no request was sent yet.
    ///
    /// # Errors
    /// When a text is gone.
    pub(crate) fn finish(self, instructions: &str) -> Result<Conversation, ConversationError> {
        let mut conversation = self.conversation;
        for Heard { seq, content, place } in self.heard {
            let content = self
                .artifacts
                .text(&content)
                .map_err(|error| ConversationError::Artifact { seq, error })?;
            match place {
                HeardAs::Goal => conversation.open(instructions, content),
                HeardAs::Message { role, action, calls } => conversation.push(Message {
                    role,
                    content,
                    action,
                    calls,
                }),
                HeardAs::Notice => conversation.notice(content),
            }
        }
        Ok(conversation)
    }
}

impl Conversation {
    /// Replays one request and returns the context that it ended in.
    fn resend(
        &mut self,
        seq: Seq,
        request: &ModelCompleteStarted,
        artifacts: &Artifacts,
    ) -> Result<Option<Message>, ConversationError> {
        let (keep, before) = (request.keep, self.messages.len());
        let kept = usize::try_from(keep).ok().filter(|kept| *kept <= before);
        let kept = kept.ok_or(ConversationError::Keep { seq, keep, before })?;
        self.truncate(kept);
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
                first: keep + 1,
                found,
                recorded: request.digest,
            });
        }
        Ok(context)
    }

    /// Replays one compaction.
    fn recompact(
        &mut self,
        seq: Seq,
        compacted: &ContextCompacted,
        artifacts: &Artifacts,
    ) -> Result<(), ConversationError> {
        let summary = artifacts
            .text(&compacted.summary)
            .map_err(|error| ConversationError::Artifact { seq, error })?;
        let (keep, dropped) = (compacted.keep, compacted.dropped);
        let replaced = usize::try_from(keep)
            .ok()
            .zip(usize::try_from(dropped).ok())
            .is_some_and(|(keep, dropped)| dropped > 0 && self.compact(keep, dropped, summary));
        replaced
            .then_some(())
            .ok_or(ConversationError::Compaction { seq, keep, dropped })
    }

    /// Tells whether the request just recorded gives back, from disk, the messages that are about to be sent.
    ///
    /// # Errors
    /// The first message that does not.
    pub(crate) fn assert_recorded(
        &self,
        seq: Seq,
        request: &ModelCompleteStarted,
        context: &Message,
        artifacts: &Artifacts,
    ) -> Result<(), ConversationError> {
        let kept = usize::try_from(request.keep).unwrap_or(usize::MAX);
        let mut sending = self.messages.iter().skip(kept).chain(std::iter::once(context));
        let mut digest = kept
            .checked_sub(1)
            .and_then(|last| self.digests.get(last))
            .copied();
        for (record, first) in request.append.iter().zip(request.keep + 1..) {
            let content = artifacts
                .text(&record.content)
                .map_err(|error| ConversationError::Artifact { seq, error })?;
            let message = Message {
                role: record.role,
                content,
                action: record.action,
                calls: record.calls.clone(),
            };
            let found = extend_digest(digest, &message);
            if sending.next() != Some(&message) {
                let recorded = request.digest;
                return Err(ConversationError::Mismatch {
                    seq,
                    first,
                    found,
                    recorded,
                });
            }
            digest = Some(found);
        }
        match digest {
            Some(found) if found == request.digest && sending.next().is_none() => Ok(()),
            found => Err(ConversationError::Mismatch {
                seq,
                first: request.keep + request.append.len() as u64,
                found: found.unwrap_or_else(|| Digest::of(b"")),
                recorded: request.digest,
            }),
        }
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
        if let Some(compacted) = ContextCompacted::of(&event.fact) {
            conversation.recompact(event.seq, compacted, artifacts)?;
        } else if let Some(request) = ModelCompleteStarted::of(&event.fact) {
            let context = conversation.resend(event.seq, request, artifacts)?;
            requests.push(conversation.messages.iter().cloned().chain(context).collect());
        }
    }
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracegate_core::{fact::model::MessageRecord, redact::RedactionKey};
    use tracegate_store::Store;

    #[test]
    fn what_is_about_to_be_sent_must_be_what_the_log_gives_back() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), || [7; 32]).unwrap();
        let redactor = Redactor::new(RedactionKey::from_bytes([7; 32]), &[]);
        let long = redactor.scrub_bytes("a line\n".repeat(900).into_bytes());
        let reference = store.artifacts().put(&long, "text/plain").unwrap();
        let mut conversation = Conversation::default();
        conversation.open("instructions", "goal".to_owned());
        conversation.push(Message::plain(Role::Assistant, "a line\n".repeat(900)));
        let context = Message::plain(Role::User, "files".to_owned());
        let record = |role, content| MessageRecord {
            role,
            content,
            action: None,
            calls: Vec::new(),
        };
        let text = |text: &str| Payload::Inline(text.to_owned());
        let request = |keep: u64, append: Vec<MessageRecord>| ModelCompleteStarted {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            keep,
            append,
            digest: extend_digest(conversation.digests.last().copied(), &context),
            tools_digest: Digest::of(b""),
        };
        let reply = || record(Role::Assistant, Payload::Ref(Box::new(reference.clone())));
        let check = |request: &ModelCompleteStarted, wanted: Option<u64>| {
            let found = conversation.assert_recorded(Seq(9), request, &context, store.artifacts());
            let first = match found {
                Ok(()) => None,
                Err(ConversationError::Mismatch { first, .. }) => Some(first),
                Err(error) => panic!("{error}"),
            };
            assert_eq!(first, wanted);
        };
        check(
            &request(2, vec![reply(), record(Role::User, text("files"))]),
            None,
        );
        check(
            &request(2, vec![reply(), record(Role::User, text("other files"))]),
            Some(4),
        );
        check(
            &request(2, vec![record(Role::Assistant, text("a line")), reply()]),
            Some(3),
        );
        check(&request(2, vec![reply()]), Some(3));
        check(
            &request(1, vec![reply(), record(Role::User, text("files"))]),
            Some(2),
        );
    }
}
