//! Spans to OTLP files and collectors, and the live tracing bridge.
//!
//! Nothing here can influence a run: spans come from the projection in `tracegate-core`, go out on a thread of their own, and what
//! cannot be sent is counted and reported, never raised.

pub mod bridge;
pub mod convert;
pub mod endpoint;
pub mod exporter;
pub mod jsonl;
