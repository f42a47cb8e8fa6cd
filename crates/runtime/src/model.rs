//! The model: the trait that providers implement, and the phase that asks it and records what it says.

pub mod scripted;

use crate::{
    agent::StepError,
    context::{Context, estimate_tokens},
    conversation::{Delta, Message},
    session::Session,
};
use serde::Serialize;
use serde_json::Value;
use std::{future::Future, pin::Pin};
use tracegate_core::{
    fact::{
        Failure,
        model::{ModelCompleteFinished, ModelCompleteStarted, ReplyKind, Role, Usage},
        run::ModelInfo,
    },
    ids::Digest,
    payload::{Payload, clip},
};
use tracing::Instrument as _;

/// What is left free for the reply when a conversation is fitted into the model's window.
const REPLY_TOKENS: u64 = 4096;
/// The most actions that one reply may ask for; more is a model that has lost its way.
pub const MAX_ACTIONS: usize = 64;

/// A request: the conversation, this step's context last.
#[derive(Debug)]
pub struct ModelRequest<'a> {
    /// The messages, oldest first.
    pub messages: Vec<&'a Message>,
    /// The tools on offer.
    pub tools: &'a [ToolSpec],
    /// Files whose text is in the context, by the context report; not sent to a provider.
    pub context_files: &'a [String],
}

/// A tool as the model is told of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a sentence or two.
    pub description: &'static str,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// What the model wants done.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The service's id of the call.
    pub id: String,
    /// The tool named, known or not.
    pub name: String,
    /// The arguments as given.
    pub input: Value,
}

/// A reply.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelReply {
    /// The reply verbatim.
    pub raw: String,
    /// Its text.
    pub text: String,
    /// Its reasoning, if shown.
    pub reasoning: Option<String>,
    /// What it wants done; empty for an answer.
    pub tool_calls: Vec<ToolCall>,
    /// The service's finish reason.
    pub finish_reason: String,
    /// Tokens.
    pub usage: Usage,
}

/// No reply could be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// Low-cardinality kind, such as `cassette_exhausted` or `rate_limited`.
    pub kind: &'static str,
    /// What happened.
    pub message: String,
}

/// A reply to come.
pub type Replying<'a> = Pin<Box<dyn Future<Output = Result<ModelReply, ModelError>> + Send + 'a>>;

/// Gives replies.
pub trait Model: Send + Sync + std::fmt::Debug {
    /// Returns which model this is.
    fn info(&self) -> ModelInfo;

    /// Reads back a reply that this model gave in an earlier process, from what [`ModelReply::raw`] was.
    ///
    /// # Errors
    /// When it is no reply of this model.
    fn recall(&self, raw: &str) -> Result<ModelReply, ModelError>;

    /// Asks for a reply.
    fn complete<'a>(&'a self, request: &'a ModelRequest<'a>) -> Replying<'a>;
}

/// Asks the model and records request and reply.
///
/// # Errors
/// When the run cannot be recorded, or no reply can be used.
pub async fn complete(
    session: &mut Session,
    model: &dyn Model,
    context: Context,
) -> Result<ModelReply, StepError> {
    let message = Message::plain(Role::User, context.text);
    let tools = crate::tools::specs();
    let spelled = serde_json::to_string(tools).unwrap_or_default();
    session.compact(estimate_tokens(&message.content) + estimate_tokens(&spelled) + REPLY_TOKENS)?;
    let Delta { keep, append, digest } = session.conversation.request(&session.recorder, &message)?;
    let info = model.info();
    let asking = ModelCompleteStarted {
        provider: info.provider,
        model: info.name,
        keep,
        append,
        digest,
        tools_digest: Digest::of(spelled.as_bytes()),
    };
    let span = session.recorder.begin(None, asking.clone())?;
    if session.resumed {
        // What this process sends and what the log will give to the next one must be the same, whoever wrote which part.
        let (seq, artifacts) = (span.started(), session.recorder.artifacts());
        session
            .conversation
            .assert_recorded(seq, &asking, &message, artifacts)
            .map_err(|error| StepError::Recorder(error.into()))?;
    }
    let messages = session
        .conversation
        .messages()
        .iter()
        .chain(std::iter::once(&message))
        .collect();
    let request = ModelRequest {
        messages,
        tools,
        context_files: &context.files,
    };
    let reply = model
        .complete(&request)
        .instrument(span.live())
        .await
        .and_then(within_reason);
    let finished = match &reply {
        Ok(reply) => ModelCompleteFinished {
            reply_kind: if reply.tool_calls.is_empty() {
                ReplyKind::Final
            } else {
                ReplyKind::ToolCalls
            },
            tool_calls: u32::try_from(reply.tool_calls.len()).unwrap_or(u32::MAX),
            reply: session.recorder.message_payload(&reply.raw)?,
            text: session.recorder.payload(&reply.text)?,
            reasoning: reply
                .reasoning
                .as_deref()
                .map(|text| session.recorder.payload(text))
                .transpose()?,
            finish_reason: clip(&reply.finish_reason, 80),
            usage: reply.usage,
            attempts: 1,
            error: None,
        },
        Err(error) => ModelCompleteFinished {
            reply_kind: ReplyKind::None,
            tool_calls: 0,
            reply: Payload::short(""),
            text: Payload::short(""),
            reasoning: None,
            finish_reason: String::new(),
            usage: Usage::default(),
            attempts: 1,
            error: Some(Failure::new(error.kind, clip(&error.message, 512))),
        },
    };
    session.recorder.end(span, finished)?;
    reply.map_err(StepError::Model)
}

fn within_reason(reply: ModelReply) -> Result<ModelReply, ModelError> {
    if reply.tool_calls.len() > MAX_ACTIONS {
        let message = format!(
            "the reply asks for {} actions, more than {MAX_ACTIONS}",
            reply.tool_calls.len()
        );
        return Err(ModelError {
            kind: "too_many_actions",
            message,
        });
    }
    if reply.tool_calls.is_empty() && reply.text.trim().is_empty() {
        return Err(ModelError {
            kind: "empty_reply",
            message: "the reply has neither text nor tool calls".to_owned(),
        });
    }
    Ok(reply)
}
