//! Is green really green? Which command lines are test runs, what their output says, and what that proves at the end.
//!
//! [`recognise`] reads a command line, [`read_result`] its output, [`Evidence`] folds what happened, and [`judge`] rules.
//! Everything here is a pure function of what was recorded, so a verdict can be computed again from the log.

mod command;
mod coverage;
mod evidence;
mod gate;
mod interpreters;
mod reading;
mod runners;
mod script;
mod status;
mod summary;
mod tasks;
mod words;
mod wrappers;

pub(crate) use command::can_begin_a_run;
pub use command::{Also, Scope, Shown, TestCommand, recognise};
pub use evidence::{CommandRun, Evidence, TestRun, Weight};
pub use gate::{GateReason, Outcome, Policy, Verdict, judge};
pub use reading::{Ended, ReadingReason, TestReading, Trust, read_result};
