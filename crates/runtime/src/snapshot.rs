//! `run.json`: the whole run in one file for readers, written when a segment ends and never per step.

use crate::recorder::{Recorder, RecorderError};
use serde_json::json;
use tracegate_core::{
    event::FORMAT,
    fact::{
        Data as _,
        run::{RunFinished, VerificationRecorded},
    },
    steps::step_summaries,
};
use tracegate_store::LogReader;

/// Writes the snapshot of the run from its log.
///
/// # Errors
/// When the log cannot be read back or the file cannot be written.
pub(crate) fn write(recorder: &Recorder, evidence: &str) -> Result<(), RecorderError> {
    let dir = recorder.dir();
    let (events, _) = LogReader::open(dir)?.read_all()?;
    let state = recorder.state();
    let verifications: Vec<_> = events
        .iter()
        .filter_map(|event| VerificationRecorded::of(&event.fact))
        .collect();
    let claim = events
        .iter()
        .rev()
        .find_map(|event| RunFinished::of(&event.fact)?.claim.as_ref());
    let snapshot = json!({
        "schemaVersion": FORMAT,
        "runId": recorder.run(),
        "traceId": recorder.trace(),
        "status": state.status,
        "stopReason": state.stop_reason,
        "claim": claim,
        "evidence": evidence,
        "verdict": state.verdict,
        "usage": state.usage,
        "steps": step_summaries(&events),
        "verification": verifications,
        "events": events,
    });
    // Every event went through redaction before it was written; this pass has nothing left to find and only proves it.
    Ok(dir.replace_json(&dir.run(), &recorder.redactor().scrub_json(snapshot))?)
}
