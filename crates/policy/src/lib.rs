//! A policy file and an action become a decision. Pure.
//!
//! Three steps, each its own module: a request is a list of **effects** ([`request`], with [`words`] and
//! [`profile`] behind shell commands), a policy is a list of **rules** ([`Policy::load`], [`pattern`]), and
//! [`policy`] decides each effect alone: floor > deny > ask > allow > class default > deny. Neither the
//! order of the rules nor how specific they are ever matters, and the strictest effect is the decision.
//!
//! No I/O, no clock, no environment, no panic on any input (design, invariant 10).

pub mod decision;
pub mod error;
pub mod floor;
pub mod host;
mod load;
pub mod path;
pub mod pattern;
pub mod policy;
pub mod profile;
mod programs;
pub mod request;
mod rule;
mod suggest;
mod toml_file;
pub mod words;

pub use decision::{Answer, Class, Decision, Match, ReasonCode, Verb};
pub use error::{ErrorCode, PolicyError};
pub use floor::{FloorRule, Operation};
pub use load::{Grant, Layer, Source};
pub use path::{Target, WorkspacePath};
pub use policy::{OnDeny, Policy, PolicyLimits, Sandbox};
pub use request::{Effect, Known, Reach, Request, Tool};
pub use words::{PlainWordsError, plain_words};
