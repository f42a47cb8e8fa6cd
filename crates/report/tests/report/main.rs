//! Reports of whole runs, from logs built by hand.

mod endings;
mod hostile;
mod logs;
mod seed;
mod support;
