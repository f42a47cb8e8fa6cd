//! End to end: the command as a user types it, with replies that the test writes and everything else real.

#![expect(
    clippy::disallowed_methods,
    reason = "a test of a command starts it, and reads and writes files"
)]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a part of a test may panic, inside and outside of test functions"
)]

mod asking;
mod commands;
mod damage;
mod endings;
mod evals;
mod fara;
mod files;
mod fsck;
mod full_disk;
mod input;
mod links;
mod naming;
mod place;
mod readiness;
mod record;
mod secrets;
mod steps;
mod tools;
mod traces;
