//! Stopping a run at an exact point, so that another process can look at it, or kill it, there: what crash tests are made of.

use crate::environment::Environment;
use rustix::process::{Signal, getpid, kill_process};
use tracegate::recorder::Sink;
use tracegate_core::{event::Event, ids::Seq, redact::Scrubbed};

/// Stops this process with SIGSTOP right after the event `TRACEGATE_PAUSE_AT` is written; SIGCONT lets it go on.
#[derive(Debug)]
pub(crate) struct Pause {
    at: Seq,
}

impl Pause {
    pub(crate) fn of(environment: &Environment) -> Option<Box<dyn Sink>> {
        let at = environment.var("TRACEGATE_PAUSE_AT")?.parse().ok()?;
        Some(Box::new(Self { at: Seq(at) }))
    }
}

impl Sink for Pause {
    fn on_event(&mut self, event: &Scrubbed<Event>) {
        if event.get().seq == self.at {
            // A process may always signal itself.
            kill_process(getpid(), Signal::STOP).ok();
        }
    }
}
