//! The readiness gate: a step waits until the workspace is not half-way through something, within a limit.
//!
//! Seed 001: an environment that is half dead yields observations on which a model only does foolish things.

use crate::{agent::StepError, recorder::Place, session::Session};
use std::{path::Path, time::Duration};
use tracegate_core::fact::run::ReadinessWaited;

/// Files that a running installer, build or git operation holds.
const LOCKS: [&str; 6] = [
    ".git/index.lock",
    "node_modules/.package-lock.json.lock",
    "package-lock.json.lock",
    ".pnpm-lock.lock",
    ".yarn-lock.lock",
    "poetry.lock.lock",
];
/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Waits until the workspace can be used, or goes on degraded and says so.
///
/// # Errors
/// When the workspace is gone or the run cannot be recorded.
pub async fn wait(session: &mut Session) -> Result<(), StepError> {
    let mut held = held(session.root.path());
    if held.is_empty() {
        return Ok(());
    }
    let began = session.recorder.now_ms();
    let conditions = held.clone();
    let mut waited_ms = 0;
    while !held.is_empty() && waited_ms < session.readiness_ms {
        tokio::time::sleep(PAUSE).await;
        held = self::held(session.root.path());
        waited_ms = session.recorder.now_ms().saturating_sub(began);
    }
    let degraded = !held.is_empty();
    let place = Place {
        span: session.recorder.innermost(),
        ..Place::default()
    };
    session.recorder.record(
        place,
        ReadinessWaited {
            waited_ms,
            conditions,
            degraded,
        },
    )?;
    Ok(())
}

fn held(workspace: &Path) -> Vec<String> {
    LOCKS
        .into_iter()
        .filter(|lock| workspace.join(lock).exists())
        .map(str::to_owned)
        .collect()
}
