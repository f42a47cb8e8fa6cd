//! What things mean: ids, events, the state they fold to, spans, redaction, stop reasons, verdicts.
//!
//! Pure: no I/O, no clock, no environment, no async, no panic on any input.

pub mod context_report;
pub mod event;
pub mod fact;
pub mod goal;
pub mod ids;
pub mod payload;
pub mod redact;
pub mod span;
pub mod state;
pub mod steps;
pub mod stop;
pub mod validation;
