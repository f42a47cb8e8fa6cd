//! The terminal: the answer goes to standard output, the talk to standard error, and nothing that redaction has not seen to either.

use crate::environment::Environment;
use std::{
    io::{self, Write as _},
    sync::OnceLock,
};
use tracegate_core::redact::{RedactionKey, Redactor, Registered, Scrubbed};

/// Why a part of the answer could not be written; the first reason is kept.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints a part of the answer.
pub(crate) fn answer(text: &Scrubbed<String>) {
    let written = writeln!(anstream::stdout(), "{}", text.get().trim_end_matches('\n'));
    match written {
        // A reader that went away, such as `head`, is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            // One reason is enough.
            LOST.set(error).ok();
        }
        Ok(()) | Err(_) => {}
    }
}

/// Returns why the answer is not all there, if it is not.
pub(crate) fn lost() -> Option<&'static io::Error> {
    // What still sits in the buffer is part of the answer too.
    if let Err(error) = io::stdout().flush()
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.set(error).ok();
    }
    LOST.get()
}

/// Says something to the person at the terminal.
pub(crate) fn talk(text: &Scrubbed<String>) {
    writeln!(anstream::stderr(), "{}", text.get().trim_end_matches('\n')).ok();
}

/// Returns a maker of writers to standard error for log lines, each of which is scrubbed.
pub(crate) fn log_lines(redactor: &Redactor) -> impl Fn() -> LogLine + use<> {
    let redactor = redactor.clone();
    move || LogLine {
        redactor: redactor.clone(),
        line: Vec::new(),
    }
}

/// One log line: written when it is whole, because half of a secret is none that a rule knows.
pub(crate) struct LogLine {
    redactor: Redactor,
    line: Vec<u8>,
}

impl std::io::Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for LogLine {
    fn drop(&mut self) {
        if !self.line.is_empty() {
            talk(
                &self
                    .redactor
                    .scrub_text(String::from_utf8_lossy(&self.line).into_owned()),
            );
        }
    }
}

/// Returns the secrets of the environment and of a `.env` file.
pub(crate) fn registered(environment: &Environment, dot_env: Option<&str>) -> Vec<Registered> {
    let of_env = environment
        .vars
        .iter()
        .filter_map(|(name, value)| Registered::from_env(name, value));
    let lines = dot_env.unwrap_or_default().lines();
    let of_file = lines.filter_map(|line| {
        let (name, value) = line.trim().trim_start_matches("export ").split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        Some(Registered {
            name: name.trim().to_owned(),
            value: value.to_owned(),
        })
    });
    of_env.chain(of_file).collect()
}

/// A redactor for what is said before a store, with its key, is open: its tags are not comparable with any log.
pub(crate) fn stand_in(environment: &Environment) -> Redactor {
    Redactor::new(RedactionKey::from_bytes([0; 32]), &registered(environment, None))
}
