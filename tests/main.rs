//! The tests that look at tracegate from outside: corpora, goldens and rules of the source. One binary, so that it links once.
#![expect(
    clippy::disallowed_methods,
    reason = "tests read corpora, goldens and sources from disk, start the binary, and are steered by variables"
)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and corpus runners print their scores"
)]

mod corpus;
mod crash;
mod e2e;
mod golden;
mod healing;
mod state;
mod support;
mod tidy;
