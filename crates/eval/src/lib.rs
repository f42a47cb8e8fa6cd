//! Eval cases, trials, assertions, reports.
//!
//! A [`case::Case`] says what a run must have done, [`assertion::judge`] holds a recorded run against it,
//! and [`report::SuiteReport`] adds the cases up. Whatever could not be judged is never shown as passed.

pub mod assertion;
pub mod case;
pub mod normalise;
pub mod report;
pub mod trial;

#[cfg(test)]
mod testlog;
