//! Eval cases, trials, assertions, reports.
