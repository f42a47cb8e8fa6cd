//! The conversation with the model: what was said, and requests as deltas with a digest, so that the log can repeat them bit by bit.

mod compact;
mod recall;

pub use compact::Compaction;
pub(crate) use recall::Recall;
pub use recall::{ConversationError, rebuild};

use crate::{
    context::estimate_tokens,
    recorder::{Recorder, RecorderError},
};
use serde::Serialize;
use tracegate_core::{
    fact::model::{MessageRecord, Role},
    ids::{ActionId, Digest},
    redact::Redactor,
};

/// A message, with its whole text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What; the same scrubbed text that the log holds.
    pub content: String,
    /// The action that a `tool` message answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionId>,
    /// The actions that an `assistant` message asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ActionId>,
}

impl Message {
    /// Builds a message that neither asks for actions nor answers one.
    #[must_use]
    pub const fn plain(role: Role, content: String) -> Self {
        Self {
            role,
            content,
            action: None,
            calls: Vec::new(),
        }
    }
}

/// Everything said so far, without the context, which is new in each request.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    messages: Vec<Message>,
    /// `digests[n]` covers the first `n` messages; a request's digest costs only its new ones.
    digests: Vec<Digest>,
    /// Estimated tokens of each message.
    weights: Vec<u64>,
    /// How many of `messages` the last request held.
    sent: usize,
    /// What the next request adds after the results of actions: between a call and its result nothing may stand.
    notices: Vec<Message>,
    /// What the user was asked and answered, word for word: no compaction loses it.
    answers: Vec<String>,
}

/// What a message takes besides its text.
const ENVELOPE_TOKENS: u64 = 8;

/// A request as the log holds it.
#[derive(Debug)]
pub struct Delta {
    /// Messages kept from the request before.
    pub keep: u64,
    /// Messages after those.
    pub append: Vec<MessageRecord>,
    /// Digest of the whole.
    pub digest: Digest,
}

impl Conversation {
    /// Adds a message.
    pub fn push(&mut self, message: Message) {
        let digest = extend_digest(self.digests.last().copied(), &message);
        self.weights
            .push(estimate_tokens(&message.content) + ENVELOPE_TOKENS);
        self.messages.push(message);
        self.digests.push(digest);
    }

    /// Forgets all but the first `kept` messages.
    fn truncate(&mut self, kept: usize) {
        self.messages.truncate(kept);
        self.digests.truncate(kept);
        self.weights.truncate(kept);
    }

    /// Remembers what the user was asked and answered, in words that are the same whoever reads them out of the log again.
    pub(crate) fn keep_answer(&mut self, question: &str, answer: &str, redactor: &Redactor) {
        let said = format!("The user was asked: {question}\nThe user answered: {answer}");
        self.answers.push(redactor.scrub_text(said).into_inner());
    }

    /// Opens the conversation: standing instructions, then the goal.
    pub fn open(&mut self, instructions: &str, goal: String) {
        self.push(Message::plain(Role::System, instructions.to_owned()));
        self.push(Message::plain(Role::User, goal));
    }

    /// Says something to the model in the next request.
    pub fn notice(&mut self, text: String) {
        self.notices.push(Message::plain(Role::User, text));
    }

    /// Returns the messages.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the delta of a request that ends in `context`, and counts its messages as sent.
    ///
    /// # Errors
    /// When the artifact store refuses a long message.
    pub fn request(&mut self, recorder: &Recorder, context: &Message) -> Result<Delta, RecorderError> {
        for notice in std::mem::take(&mut self.notices) {
            self.push(notice);
        }
        let keep = std::mem::replace(&mut self.sent, self.messages.len());
        let new = self.messages.iter().skip(keep).chain(std::iter::once(context));
        let append = new
            .map(|message| {
                Ok(MessageRecord {
                    role: message.role,
                    content: recorder.message_payload(&message.content)?,
                    action: message.action,
                    calls: message.calls.clone(),
                })
            })
            .collect::<Result<_, RecorderError>>()?;
        let digest = extend_digest(self.digests.last().copied(), context);
        Ok(Delta {
            keep: keep as u64,
            append,
            digest,
        })
    }
}

/// Returns the digest of a conversation that goes on with `message` after what `before` covers.
fn extend_digest(before: Option<Digest>, message: &Message) -> Digest {
    let mut input = before.map_or_else(Vec::new, |digest| digest.to_string().into_bytes());
    // A message holds strings and numbers only, so writing it as JSON cannot fail.
    input.extend(serde_json::to_vec(message).unwrap_or_default());
    Digest::of(&input)
}
