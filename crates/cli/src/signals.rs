//! What stops a command from outside: a person's interrupt, a job's termination. Neither may leave behind what a run has started.

use crate::failure::Failure;
use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
};
use tracegate_core::stop::Exit;

/// Watches for both; while it lives, neither ends the process by itself.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn watch(runtime: &Runtime) -> Result<Self, Failure> {
        let _context = runtime.enter();
        let watch = |kind| {
            signal(kind).map_err(|error| {
                Failure::new(Exit::Internal, format!("cannot watch for signals: {error}"))
                    .help("nothing was run")
            })
        };
        Ok(Self {
            interrupt: watch(SignalKind::interrupt())?,
            terminate: watch(SignalKind::terminate())?,
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            Some(()) = self.interrupt.recv() => {}
            Some(()) = self.terminate.recv() => {}
            else => std::future::pending().await,
        }
    }
}
