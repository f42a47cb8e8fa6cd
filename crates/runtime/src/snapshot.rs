//! `run.json`: the whole run in one file for readers, written when a segment ends and never per step.

use crate::recorder::{Recorder, RecorderError};
use serde_json::json;
use tracegate_core::{
    event::FORMAT,
    fact::{
        Data as _,
        run::{RunFinished, VerificationRecorded},
    },
    steps::summary::{Keep, Summaries},
};
use tracegate_store::LogReader;

/// Writes the snapshot of the run from its log, which is read once and never held in memory.
///
/// # Errors
/// When the log cannot be read back or the file cannot be written.
pub(crate) fn write(recorder: &Recorder, evidence: &str) -> Result<(), RecorderError> {
    let dir = recorder.dir();
    let mut reader = LogReader::open(dir)?;
    let mut summaries = Summaries::new(Keep::All);
    let (mut verifications, mut claim) = (Vec::new(), None);
    while let Some(event) = reader.next_event()? {
        summaries.push(&event);
        verifications.extend(VerificationRecorded::of(&event.fact).cloned());
        claim = RunFinished::of(&event.fact)
            .map(|run| run.claim.clone())
            .unwrap_or(claim);
    }
    let state = recorder.state();
    let head = json!({
        "schemaVersion": FORMAT,
        "runId": recorder.run(),
        "traceId": recorder.trace(),
        "status": state.status,
        "stopReason": state.stop_reason,
        "claim": claim,
        "evidence": evidence,
        "verdict": state.verdict,
        "usage": state.usage,
        "steps": summaries.finish().steps,
        "verification": verifications,
    });
    // Every event went through redaction before it was written; this pass has nothing left to find and only proves it.
    Ok(dir.write_snapshot(&recorder.redactor().scrub_json(head))?)
}
