//! Other agents' dialects and our events, mapped to each other.
//!
//! Pure: it is given events and texts and gives back values and texts; it reads no file, no clock and no environment, and does not
//! panic on any input.

pub mod fara;
