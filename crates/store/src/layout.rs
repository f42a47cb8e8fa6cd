//! Where each file of a run lies: every path, once.

use crate::disk::Disk;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tracegate_core::ids::{RunId, StepNo};

/// The directory of one run.
#[derive(Debug, Clone)]
pub struct RunDir {
    id: RunId,
    path: PathBuf,
    disk: Arc<dyn Disk>,
}

impl PartialEq for RunDir {
    fn eq(&self, other: &Self) -> bool {
        (&self.id, &self.path) == (&other.id, &other.path)
    }
}

impl Eq for RunDir {}

impl RunDir {
    pub(crate) const fn new(id: RunId, path: PathBuf, disk: Arc<dyn Disk>) -> Self {
        Self { id, path, disk }
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        self.disk.as_ref()
    }

    /// Returns the run's id.
    #[must_use]
    pub const fn id(&self) -> &RunId {
        &self.id
    }

    /// Returns the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Goal, limits, policy digest, agent and model settings; written once.
    #[must_use]
    pub fn task(&self) -> PathBuf {
        self.path.join("task.json")
    }

    /// Run id, trace id, versions; written once.
    #[must_use]
    pub fn metadata(&self) -> PathBuf {
        self.path.join("metadata.json")
    }

    /// The log: the only truth.
    #[must_use]
    pub fn events(&self) -> PathBuf {
        self.path.join("events.jsonl")
    }

    /// Status, stop reason, final answer, synced head; replaced atomically.
    #[must_use]
    pub fn status(&self) -> PathBuf {
        self.path.join("status.json")
    }

    /// The fold of the log as a cache; may be deleted at any time.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.path.join("state.json")
    }

    /// The files of the workspace as last observed; a cache that lets a resume name what changed.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.path.join("workspace.json")
    }

    /// The whole run for readers; written when a segment ends.
    #[must_use]
    pub fn run(&self) -> PathBuf {
        self.path.join("run.json")
    }

    /// Results of verifiers, append-only.
    #[must_use]
    pub fn verification(&self) -> PathBuf {
        self.path.join("verification.jsonl")
    }

    /// The spans as OTLP/JSON lines; can be made again from the log.
    #[must_use]
    pub fn traces(&self) -> PathBuf {
        self.path.join("traces.otlp.jsonl")
    }

    /// The lock that the writer holds.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.path.join("run.lock")
    }

    /// Name of the context report of a step, below the run's directory.
    #[must_use]
    pub fn context_name(step: StepNo) -> String {
        format!("context/step-{:04}.json", step.0)
    }

    /// The context report of a step.
    #[must_use]
    pub fn context(&self, step: StepNo) -> PathBuf {
        self.path.join(Self::context_name(step))
    }

    /// Where the bytes from `offset` on are set aside when they are torn, the first `time` as 0.
    #[must_use]
    pub fn quarantine(&self, offset: u64, time: u32) -> PathBuf {
        let again = if time == 0 {
            String::new()
        } else {
            format!("-{time}")
        };
        self.path.join(format!("events.torn-{offset}{again}.bin"))
    }

    /// Where a damaged log is kept once it was written anew, the first `number` as 1.
    #[must_use]
    pub fn damaged(&self, number: u32) -> PathBuf {
        self.path.join(format!("events.damaged-{number}.jsonl"))
    }

    /// Where a damaged log is written anew.
    pub(crate) fn salvaging(&self) -> PathBuf {
        self.path.join("events.salvaging.jsonl")
    }
}
