//! What can happen in a run: one struct per event type, one enum over them, and the kinds of span that pairs of them make.

pub mod gate;
pub mod log;
pub mod model;
pub mod run;
pub mod tool;
pub mod user;

use crate::ids::{SpanId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fmt;

/// The kinds of span, one per pair `<kind>.started` / `<kind>.finished`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpanKind {
    /// One process life of a run; exported as `invoke_agent <agent>`.
    Segment,
    /// One turn of the loop.
    AgentStep,
    /// Choosing what the model gets to see.
    ContextBuild,
    /// One request to the model with all its attempts.
    ModelComplete,
    /// The permission gate's ruling on one action.
    PermissionReview,
    /// One action being done.
    ToolExecute,
    /// Making what happened so far durable.
    CheckpointSave,
    /// The validation gate's ruling on the end of the run.
    ValidationReview,
}

impl SpanKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Segment,
        Self::AgentStep,
        Self::ContextBuild,
        Self::ModelComplete,
        Self::PermissionReview,
        Self::ToolExecute,
        Self::CheckpointSave,
        Self::ValidationReview,
    ];

    /// Returns the name, as in event types and, but for segments, as the span's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Segment => "segment",
            Self::AgentStep => "agent.step",
            Self::ContextBuild => "context.build",
            Self::ModelComplete => "model.complete",
            Self::PermissionReview => "permission.review",
            Self::ToolExecute => "tool.execute",
            Self::CheckpointSave => "checkpoint.save",
            Self::ValidationReview => "validation.review",
        }
    }
}

impl fmt::Display for SpanKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which end of a span an event marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// The event begins the span.
    Started,
    /// The event ends the span.
    Finished,
}

/// Why an operation failed, for `error.type` and the span's status; set only where the operation itself failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Low-cardinality kind, such as `timeout`, `exit_code`, `process_killed`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What happened, for people; redacted, never repeating the kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Failure {
    /// Builds a failure of `kind`.
    #[must_use]
    pub fn new(kind: &str, message: impl Into<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            message: message.into(),
        }
    }
}

/// The end of a span whose process died: written by the next process that opens the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Healed {
    /// Always `process_killed` or `suspended`.
    pub error: Failure,
    /// When the dead process wrote its last event: downtime must not show as work.
    pub end_ts: Timestamp,
    /// Always true; tells this shape from a regular end.
    pub healed: bool,
}

/// The data of one event type.
pub trait Data: Sized {
    /// Returns the data, if `fact` is of this type.
    fn of(fact: &Fact) -> Option<&Self>;
}

/// The edge of a span that an event type marks, if it marks one.
macro_rules! edge {
    () => {
        None
    };
    ($kind:ident $edge:ident) => {
        Some((SpanKind::$kind, Edge::$edge))
    };
}

/// Declares the event types once: the enum, its names, and both directions of JSON.
macro_rules! facts {
    ($($(#[$doc:meta])* $variant:ident = $name:literal : $data:ty $([$kind:ident $edge:ident])?),* $(,)?) => {
        /// The content of an event.
        #[derive(Debug, Clone)]
        pub enum Fact {
            $($(#[$doc])* $variant($data),)*
            /// A span was closed on behalf of a process that had died.
            SpanHealed(SpanKind, Healed),
            /// An event type that this version does not know: kept, passed over, written back unchanged.
            Unknown {
                /// The event's type.
                name: String,
                /// The event's data, byte for byte.
                data: Box<RawValue>,
            },
        }

        impl Fact {
            /// Returns the event type, such as `tool.execute.started`.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $name,)*
                    Self::SpanHealed(kind, _) => finished_name(*kind),
                    Self::Unknown { name, .. } => name,
                }
            }

            /// Returns the kind and the edge of the span that this event begins or ends.
            #[must_use]
            pub const fn edge(&self) -> Option<(SpanKind, Edge)> {
                match self {
                    $(Self::$variant(_) => edge!($($kind $edge)?),)*
                    Self::SpanHealed(kind, _) => Some((*kind, Edge::Finished)),
                    Self::Unknown { .. } => None,
                }
            }

            /// Returns the data as JSON.
            ///
            /// # Errors
            /// When a number is not finite or a map key is not a string; no type here holds such.
            pub fn to_json(&self) -> Result<Box<RawValue>, serde_json::Error> {
                match self {
                    $(Self::$variant(data) => serde_json::value::to_raw_value(data),)*
                    Self::SpanHealed(_, data) => serde_json::value::to_raw_value(data),
                    Self::Unknown { data, .. } => Ok(data.clone()),
                }
            }

            /// Writes the data where it stands, without a copy of its own.
            pub(crate) fn serialize_data<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(data) => data.serialize(serializer),)*
                    Self::SpanHealed(_, data) => data.serialize(serializer),
                    Self::Unknown { data, .. } => data.serialize(serializer),
                }
            }

            /// Reads the data of an event of type `name`; unknown types and unknown fields are no errors.
            ///
            /// # Errors
            /// When the data of a known type lacks a field or has one of another shape.
            pub fn from_json(name: &str, data: &RawValue) -> Result<Self, serde_json::Error> {
                if let Some(kind) = healed_kind(name, data) {
                    return Ok(Self::SpanHealed(kind, serde_json::from_str(data.get())?));
                }
                Ok(match name {
                    $($name => Self::$variant(serde_json::from_str(data.get())?),)*
                    _ => Self::Unknown { name: name.to_owned(), data: data.to_owned() },
                })
            }
        }

        $(
            impl From<$data> for Fact {
                fn from(data: $data) -> Self {
                    Self::$variant(data)
                }
            }

            impl Data for $data {
                fn of(fact: &Fact) -> Option<&Self> {
                    if let Fact::$variant(data) = fact { Some(data) } else { None }
                }
            }
        )*
    };
}

facts! {
    /// The run was created.
    RunStarted = "run.started": run::RunStarted,
    /// The run is over.
    RunFinished = "run.finished": run::RunFinished,
    /// A process began to work on the run.
    SegmentStarted = "segment.started": run::SegmentStarted [Segment Started],
    /// That process stopped working on it.
    SegmentFinished = "segment.finished": run::SegmentFinished [Segment Finished],
    /// A turn of the loop began.
    AgentStepStarted = "agent.step.started": run::AgentStepStarted [AgentStep Started],
    /// A turn of the loop ended.
    AgentStepFinished = "agent.step.finished": run::AgentStepFinished [AgentStep Finished],
    /// Choosing the context began.
    ContextBuildStarted = "context.build.started": model::ContextBuildStarted [ContextBuild Started],
    /// The context was chosen.
    ContextBuildFinished = "context.build.finished": model::ContextBuildFinished [ContextBuild Finished],
    /// A request went to the model.
    ModelCompleteStarted = "model.complete.started": model::ModelCompleteStarted [ModelComplete Started],
    /// The model replied, or failed to.
    ModelCompleteFinished = "model.complete.finished": model::ModelCompleteFinished [ModelComplete Finished],
    /// The permission gate began to review an action.
    PermissionReviewStarted = "permission.review.started": gate::PermissionReviewStarted [PermissionReview Started],
    /// The permission gate ruled.
    PermissionReviewFinished = "permission.review.finished": gate::PermissionReviewFinished [PermissionReview Finished],
    /// A permitted action is about to happen.
    ToolExecuteStarted = "tool.execute.started": tool::ToolExecuteStarted [ToolExecute Started],
    /// The action happened, or did not.
    ToolExecuteFinished = "tool.execute.finished": tool::ToolExecuteFinished [ToolExecute Finished],
    /// Saving a checkpoint began.
    CheckpointSaveStarted = "checkpoint.save.started": log::CheckpointSaveStarted [CheckpointSave Started],
    /// The checkpoint is durable.
    CheckpointSaveFinished = "checkpoint.save.finished": log::CheckpointSaveFinished [CheckpointSave Finished],
    /// The validation gate began to review the end of the run.
    ValidationReviewStarted = "validation.review.started": gate::ValidationReviewStarted [ValidationReview Started],
    /// The validation gate ruled.
    ValidationReviewFinished = "validation.review.finished": gate::ValidationReviewFinished [ValidationReview Finished],
    /// A message to the agent.
    UserMessage = "user.message": user::UserMessage,
    /// A question of the agent, or of the gate, to its user.
    UserQuestion = "user.question": user::UserQuestion,
    /// What the model asked to have done.
    Action = "action": tool::Action,
    /// What came back, or how the workspace was.
    Observation = "observation": tool::Observation,
    /// A point inside a span.
    SpanNoted = "span.noted": log::SpanNoted,
    /// A call inside an action.
    Subcall = "subcall": tool::Subcall,
    /// A grant or a remembered answer widened the policy.
    PolicyGranted = "policy.granted": gate::PolicyGranted,
    /// The run changed its status.
    StatusChanged = "status.changed": run::StatusChanged,
    /// A limit was reached.
    LimitReached = "limit.reached": run::LimitReached,
    /// A verifier or an eval gave a result.
    VerificationRecorded = "verification.recorded": run::VerificationRecorded,
    /// A step waited until the workspace could be used.
    ReadinessWaited = "readiness.waited": run::ReadinessWaited,
    /// Old turns of the conversation were replaced by a summary.
    ContextCompacted = "context.compacted": model::ContextCompacted,
    /// Secrets were removed.
    RedactionNoted = "redaction.noted": log::RedactionNoted,
    /// An artifact could not be kept.
    ArtifactDropped = "artifact.dropped": log::ArtifactDropped,
    /// A damaged tail of the log was set aside.
    LogRecovered = "log.recovered": log::LogRecovered,
    /// Records of the log are lost.
    LogGap = "log.gap": log::LogGap,
    /// The log was written anew without secrets registered too late.
    LogScrubbed = "log.scrubbed": log::LogScrubbed,
}

const fn finished_name(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Segment => "segment.finished",
        SpanKind::AgentStep => "agent.step.finished",
        SpanKind::ContextBuild => "context.build.finished",
        SpanKind::ModelComplete => "model.complete.finished",
        SpanKind::PermissionReview => "permission.review.finished",
        SpanKind::ToolExecute => "tool.execute.finished",
        SpanKind::CheckpointSave => "checkpoint.save.finished",
        SpanKind::ValidationReview => "validation.review.finished",
    }
}

/// Recognises a healed end by its `healed` field; the text search spares regular ends a second parse.
fn healed_kind(name: &str, data: &RawValue) -> Option<SpanKind> {
    #[derive(Deserialize)]
    struct Probe {
        healed: Option<bool>,
    }

    let kind = SpanKind::ALL
        .into_iter()
        .find(|kind| finished_name(*kind) == name)?;
    let marked = data.get().contains("\"healed\"");
    let probe = marked
        .then(|| serde_json::from_str::<Probe>(data.get()).ok())
        .flatten()?;
    (probe.healed == Some(true)).then_some(kind)
}

/// Tells whether the value under `key` of an event's data is written by us (an id, enum, digest, time) and never payload.
#[must_use]
pub fn is_schema_key(key: &str) -> bool {
    matches!(
        key,
        "v" | "seq"
            | "id"
            | "ts"
            | "type"
            | "action"
            | "calls"
            | "span"
            | "parent"
            | "cause"
            | "$ref"
            | "trace_id"
            | "span_id"
            | "host_id"
            | "digest"
            | "semconv"
            | "status"
            | "stop_reason"
            | "outcome"
            | "kind"
            | "phase"
            | "decision"
            | "ruling"
            | "reason_code"
            | "class"
            | "risk"
            | "end_ts"
            | "question"
            | "level"
            | "trust"
            | "scope"
            | "role"
            | "reply_kind"
            | "before"
            | "after"
            | "redaction"
            | "durability"
            | "from"
            | "superseded"
            | "media"
    )
}

/// Tells whether what lies under `key` is free-form payload in which no key is ours.
#[must_use]
pub fn is_free_key(key: &str) -> bool {
    matches!(key, "args" | "extra" | "attrs")
}

/// What a span is called in an event that refers to it from outside, such as a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanRef {
    /// The span.
    pub span_id: SpanId,
    /// How the referring span relates to it, such as `resumed_from`.
    pub relation: String,
}
