//! A recorded run becomes a summary, its tool evidence, an attribution and a post-mortem, as text and as JSON.
//!
//! Pure: it is given events and gives back values and text; it reads no file, no clock and no environment, and does not
//! panic on any log. Every text is bounded to a width and shows what a terminal would obey (escape sequences, bidirectional
//! controls, invisible characters) as `‹U+001B›`. The text never ends with a command to try next: that line is the caller's.

pub mod attribution;
pub mod evidence;
pub mod figures;
pub mod language;
pub mod postmortem;
pub mod steps;
pub mod summary;
mod table;
pub mod terminal;
mod view;

pub use language::Language;
pub use terminal::Width;
pub use view::{Holder, Problem, ReadError, RunView, ShownStatus};
