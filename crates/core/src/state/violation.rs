//! What may not follow what: every way in which an event can be out of order.

use crate::ids::{ActionId, Seq};

/// An event that must not follow the ones before it. Checked before a byte is written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Sequence numbers have no gaps.
    #[error("event {found} cannot follow event {last}")]
    Seq {
        /// The number found.
        found: Seq,
        /// The last good one.
        last: Seq,
    },
    /// A log begins with `run.started`, which stands nowhere else.
    #[error("`{name}` cannot stand at event {seq}: a log begins with one `run.started`")]
    Beginning {
        /// The type found.
        name: String,
        /// Where.
        seq: Seq,
    },
    /// A span begins under an open span.
    #[error("`{kind}` at event {seq} begins under span {parent}, which is not open")]
    Parent {
        /// The kind of span.
        kind: &'static str,
        /// Where.
        seq: Seq,
        /// The parent named.
        parent: String,
    },
    /// A span ends once, as what it began, about the same action, after everything inside it.
    #[error(
        "`{kind}` at event {seq} ends a span that is not open, is of another kind or action, or still has an open child"
    )]
    End {
        /// The kind of span.
        kind: &'static str,
        /// Where.
        seq: Seq,
    },
    /// An event names an action that was never asked for, or one that is settled.
    #[error("event {seq} (`{name}`) is about action {action}, which is {why}")]
    Action {
        /// The type found.
        name: String,
        /// Where.
        seq: Seq,
        /// The action.
        action: String,
        /// What is wrong.
        why: &'static str,
    },
    /// An action, its review and its execution say which action they are about.
    #[error("`{name}` at event {seq} names no action")]
    NoAction {
        /// The type found.
        name: String,
        /// Where.
        seq: Seq,
    },
    /// Between two actions lies at least one observation.
    #[error("action {action} at event {seq} follows another action without an observation between")]
    Unobserved {
        /// The action.
        action: ActionId,
        /// Where.
        seq: Seq,
    },
    /// Every action has its result before the next request to the model.
    #[error("a request at event {seq} leaves action {action} without a result")]
    Unsettled {
        /// The action.
        action: ActionId,
        /// Where.
        seq: Seq,
    },
    /// Nothing but verification follows the end of a run.
    #[error("`{name}` at event {seq} follows the end of the run")]
    AfterEnd {
        /// The type found.
        name: String,
        /// Where.
        seq: Seq,
    },
    /// Only the validation gate completes a run.
    #[error("event {seq} says `completed` without a verdict of the validation gate")]
    Uncertified {
        /// Where.
        seq: Seq,
    },
    /// A gap is numbered as the events that it stands for.
    #[error("the gap at event {seq} names other events than the ones missing there")]
    Gap {
        /// Where.
        seq: Seq,
    },
    /// A run goes on only if the log shows that nothing of it was lost that the agent or its user could miss.
    #[error(
        "events {from} to {to} are lost, and nothing recorded after them shows that no action was among them: \
         the run cannot go on"
    )]
    Lost {
        /// The first lost event.
        from: Seq,
        /// The last.
        to: Seq,
    },
    /// An answer answers an open question.
    #[error("the answer at event {seq} answers no open question")]
    Answer {
        /// Where.
        seq: Seq,
    },
}
