//! tracegate as a library: a session on a workspace, a context, a model, two gates, tools, and one loop.
//!
//! Start with [`session::Session::start`], then [`agent::drive`]; `agent.rs` reads top to bottom. This crate does not print, and
//! knows neither OpenTelemetry nor evals.

pub mod agent;
pub mod asking;
pub mod attention;
pub mod config;
pub mod context;
pub mod conversation;
pub mod gate;
pub mod heal;
pub mod limits;
pub mod live;
pub mod model;
pub mod past;
pub mod readiness;
pub mod recorder;
pub mod resume;
pub mod session;
mod snapshot;
pub mod tools;
pub mod validate;
pub mod workspace;
pub mod world;
