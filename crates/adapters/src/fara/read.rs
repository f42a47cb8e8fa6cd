//! Reading Fara's directory: as its own reader does, but strictly. A field that Fara does not have is an error, not dropped.

use super::{
    files,
    schema::{DataPoint, Event, SolverLog, StatusFile, VerificationResult},
};
use std::collections::BTreeMap;

/// The texts of the files that Fara reads a trajectory from; `data_point.json` repeats them.
#[derive(Debug, Clone, Copy)]
pub struct Directory<'a> {
    /// `task.json`.
    pub task: &'a str,
    /// `metadata.json`.
    pub metadata: &'a str,
    /// `solver_log/events.jsonl`.
    pub events: &'a str,
    /// `solver_log/status.json`.
    pub status: &'a str,
    /// `verification.jsonl`.
    pub verification: &'a str,
}

/// A directory that is not Fara's.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file is no JSON, or lacks a field, or has one too many or of another type.
    #[error("`{file}` line {line}: {error}")]
    Json {
        /// Which file.
        file: &'static str,
        /// Which line, from 1.
        line: usize,
        /// What is wrong.
        error: serde_json::Error,
    },
    /// Fara refuses a log with two actions and no observation between them, for ever.
    #[error(
        "`{}` line {line}: an action follows an action without an observation between",
        files::EVENTS
    )]
    ActionsInARow {
        /// Line of the second, from 1.
        line: usize,
    },
    /// Fara keeps the last result of a name and loses the one before.
    #[error(
        "`{}` line {line}: there is a result of `{name}` already",
        files::VERIFICATION
    )]
    RepeatedVerifier {
        /// Line of the second, from 1.
        line: usize,
        /// The name.
        name: String,
    },
}

/// Reads a trajectory.
///
/// # Errors
/// As [`ReadError`] lists.
pub fn read(directory: &Directory<'_>) -> Result<DataPoint, ReadError> {
    let status: StatusFile = whole(files::STATUS, directory.status)?;
    let events: Vec<Event> = lines(files::EVENTS, directory.events)?;
    let mut acted = false;
    for (event, line) in events.iter().zip(1..) {
        let acts = matches!(event, Event::Action(_));
        if acted && acts {
            return Err(ReadError::ActionsInARow { line });
        }
        acted = acts;
    }
    let results: Vec<VerificationResult> = lines(files::VERIFICATION, directory.verification)?;
    let mut verification = BTreeMap::new();
    for (result, line) in results.into_iter().zip(1..) {
        let name = result.verifier_name.clone();
        if verification.insert(name.clone(), result).is_some() {
            return Err(ReadError::RepeatedVerifier { line, name });
        }
    }
    Ok(DataPoint {
        task: whole(files::TASK, directory.task)?,
        solver_log: SolverLog {
            events,
            status: status.status,
            outcome: status.outcome,
        },
        verification,
        metadata: whole(files::METADATA, directory.metadata)?,
    })
}

fn whole<T: serde::de::DeserializeOwned>(file: &'static str, text: &str) -> Result<T, ReadError> {
    serde_json::from_str(text).map_err(|error| ReadError::Json {
        file,
        line: error.line(),
        error,
    })
}

fn lines<T: serde::de::DeserializeOwned>(file: &'static str, text: &str) -> Result<Vec<T>, ReadError> {
    let lines = text.lines().zip(1..);
    lines
        .map(|(text, line)| serde_json::from_str(text).map_err(|error| ReadError::Json { file, line, error }))
        .collect()
}
