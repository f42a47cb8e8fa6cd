//! What the user is told when a command cannot be done: what, where and why, then which command comes next, then an exit code.

use crate::{environment::Environment, print};
use std::{fmt::Display, path::Path};
use tracegate::{recorder::RecorderError, session::StartError};
use tracegate_core::stop::Exit;
use tracegate_store::{LogError, StoreError};

/// What to do when a run stopped because it could not be recorded.
const RECORDER_HELP: &str = "the run stopped there; make room or name another store with --store DIR, and run it again. \
                             What was recorded: tracegate show @last";

/// A command that could not be done.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    help: Option<String>,
    exit: Exit,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Display) -> Self {
        Self {
            message: message.to_string(),
            help: None,
            exit,
        }
    }

    pub(crate) fn usage(message: impl Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Tells the user and returns the exit code.
    pub(crate) fn report(&self, environment: &Environment) -> Exit {
        let redactor = print::stand_in(environment);
        print::talk(&redactor.scrub_text(format!("error: {}", self.message)));
        if let Some(help) = &self.help {
            print::talk(&redactor.scrub_text(format!("help: {help}")));
        }
        self.exit
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoRun { .. } => Self::new(Exit::NotFound, error).help("tracegate runs list"),
            StoreError::Read { .. } => {
                Self::new(Exit::NotFound, error).help("name the store with --store DIR")
            }
            StoreError::Write { .. } => Self::new(Exit::RecorderFailed, error)
                .help("nothing was run; name a writable store with --store DIR"),
        }
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Damaged { ref path, .. } => {
                let run = path.parent().and_then(Path::file_name).unwrap_or_default();
                let help = format!("tracegate fsck {}", run.to_string_lossy());
                Self::new(Exit::Integrity, error).help(help)
            }
            LogError::Newer { .. } => {
                Self::new(Exit::Integrity, error).help("use the version of tracegate that wrote it")
            }
            LogError::Io { doing: "open", .. } => {
                Self::new(Exit::NotFound, error).help("tracegate runs list")
            }
            LogError::Lock(_) => {
                Self::new(Exit::RecorderFailed, error).help("wait until it ends, or stop it; then try again")
            }
            LogError::Io { .. } | LogError::TooLong { .. } => {
                Self::new(Exit::RecorderFailed, error).help(RECORDER_HELP)
            }
        }
    }
}

impl From<RecorderError> for Failure {
    fn from(error: RecorderError) -> Self {
        match error {
            RecorderError::Log(error) => error.into(),
            RecorderError::Store(error) => error.into(),
            RecorderError::Artifact(_) | RecorderError::Violation(_) | RecorderError::Scrub(_) => {
                Self::new(Exit::RecorderFailed, error).help(RECORDER_HELP)
            }
            RecorderError::Conversation(_) => {
                Self::new(Exit::Integrity, error).help("nothing was sent to the model; tracegate fsck RUN")
            }
        }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        match error {
            StartError::EmptyGoal => {
                Self::usage(error).help("tracegate run \"Fix the failing tests\" --script FILE")
            }
            StartError::Workspace(_) => Self::usage(error).help("name an existing directory with --dir DIR"),
            StartError::Recorder(error) => error.into(),
        }
    }
}
