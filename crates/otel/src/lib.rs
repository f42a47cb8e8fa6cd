//! Spans to OTLP files and collectors, and the live tracing bridge.
//!
//! Nothing here can influence a run: spans come from the projection in `tracegate-core`, go out on a thread of their own, and what
//! cannot be sent is counted and reported, never raised.

pub mod bridge;
mod delivery;
pub mod doctor;
pub mod encode;
pub mod endpoint;
pub mod exporter;
mod feed;
pub mod jsonl;
pub mod pairs;
mod transport;
