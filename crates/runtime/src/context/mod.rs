//! The deterministic context: what is there, which tests belong to what, what fits, and what the model reads.

pub mod links;
pub mod names;
