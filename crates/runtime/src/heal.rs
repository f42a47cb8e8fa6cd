//! Ending what a dead process left open, without going on with the run: its spans can be exported then, and every export agrees.

use crate::{
    attention::Attention,
    live::NoLiveSpans,
    recorder::{Parts, Recorder, RecorderError},
    world::World,
};
use serde_json::Value;
use tracegate_core::{
    fact::{Data as _, run::RunStarted},
    redact::Redactor,
    state::{RunState, Violation},
};
use tracegate_store::{Disk, LogError, LogWriter, Recovery, RunDir, RunLock, Store};

/// What was done about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Healing {
    /// A process is at work on it.
    Alive,
    /// Nothing was open.
    Whole,
    /// This many spans got their end.
    Healed(usize),
    /// Nothing is added to the log, because it lost events or a newer version wrote it; it can be exported as far as it goes.
    Closed,
}

/// A run cannot be healed.
#[derive(Debug, thiserror::Error)]
pub enum HealError {
    /// The log breaks a rule; a defect, or an edited log.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// It cannot be recorded.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
}

impl From<LogError> for HealError {
    fn from(error: LogError) -> Self {
        Self::Recorder(error.into())
    }
}

/// Closes the spans that a dead process left open in the log of `dir`, exactly as a resume would, but begins no segment.
///
/// The run stays interrupted and can be resumed later. A run at work is left alone.
///
/// # Errors
/// When the log cannot be read, breaks a rule or cannot be written.
pub fn heal(
    store: &Store,
    disk: &dyn Disk,
    redactor: Redactor,
    world: Box<dyn World>,
    dir: RunDir,
) -> Result<Healing, HealError> {
    if RunLock::is_held(&dir.lock()) {
        return Ok(Healing::Alive);
    }
    let mut state = RunState::default();
    let mut started: Option<RunStarted> = None;
    let opened = LogWriter::resume(&dir, disk, store.artifacts(), world.pid(), |event| {
        started = RunStarted::of(&event.fact).cloned().or(started.take());
        Ok(state.apply(&event)?)
    });
    let (log, recovery) = match opened {
        Ok(opened) => opened,
        Err(HealError::Recorder(RecorderError::Log(LogError::Lock(_)))) => return Ok(Healing::Alive),
        Err(HealError::Recorder(RecorderError::Log(LogError::Newer { .. } | LogError::Damaged { .. }))) => {
            return Ok(Healing::Closed);
        }
        Err(error) => return Err(error),
    };
    let open = state.open_spans.len();
    if open == 0 && !matches!(recovery, Recovery::Quarantined { .. }) {
        return Ok(Healing::Whole);
    }
    // An end that a salvage lost may have been exported as it was; a second one must not be made up.
    let Some(started) = started.filter(|_| state.lost.is_none()) else {
        return Ok(Healing::Closed);
    };
    let died = state.ts;
    let parts = Parts {
        dir,
        log,
        artifacts: store.artifacts().clone(),
        redactor,
        world,
        sinks: Vec::new(),
        live: Box::new(NoLiveSpans),
        trace: started.trace_id,
        durability: started.settings.durability,
    };
    let mut recorder = Recorder::new(parts, state, Attention::default());
    recorder.take_over(&recovery, died)?;
    recorder.sync()?;
    remember(&recorder)?;
    Ok(Healing::Healed(open))
}

/// Puts the new synced head into `status.json`; what that file says of the run stays.
fn remember(recorder: &Recorder) -> Result<(), RecorderError> {
    let dir = recorder.dir();
    if let Ok(Some(Value::Object(mut status))) = dir.read_json(&dir.status()) {
        status.insert("head".to_owned(), serde_json::json!(recorder.synced()));
        let status = recorder.redactor().scrub_json(Value::Object(status));
        dir.replace_json(&dir.status(), &status)?;
    }
    Ok(())
}
