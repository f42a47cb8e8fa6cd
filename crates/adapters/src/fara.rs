//! Fara's trajectory directory: its schema, a run of ours in it, and a strict reader. `docs/fara.md` has the mapping.

mod actions;
mod export;
mod read;
pub mod schema;

pub use export::{ExportError, Exported, Sources, export};
pub use read::{Directory, ReadError, read};

/// The files of the directory, relative to it.
pub mod files {
    /// What was to be done.
    pub const TASK: &str = "task.json";
    /// Which run, when.
    pub const METADATA: &str = "metadata.json";
    /// What happened, one event a line.
    pub const EVENTS: &str = "solver_log/events.jsonl";
    /// How it ended.
    pub const STATUS: &str = "solver_log/status.json";
    /// What verifiers say, one result a line.
    pub const VERIFICATION: &str = "verification.jsonl";
    /// All of it in one file.
    pub const DATA_POINT: &str = "data_point.json";
}
