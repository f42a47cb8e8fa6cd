//! Reports of whole runs, from logs built by hand.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a builder or a check of a test may panic, inside and outside of test functions"
)]

mod endings;
mod hostile;
mod logs;
mod seed;
mod support;
