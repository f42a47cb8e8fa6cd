//! The tools that run a command: exactly the words that were reviewed.

use crate::{
    live::SpanIds,
    session::Session,
    tools::{
        Done,
        command::{Ran, run_command},
    },
};
use std::{fmt::Write as _, io, time::Duration};
use tracegate_core::{
    fact::{
        Failure,
        tool::{Outcome, TestRunRecord},
    },
    payload::clip,
    state::INTERNAL_FAILURE,
    validation::{Ended, read_result, recognise},
};

/// Runs `words` in the workspace.
pub(super) async fn run(session: &Session, words: &[String], script: &str, ids: &SpanIds) -> Done {
    let limit = Duration::from_millis(session.command_ms);
    let (dir, environment) = (session.root.path(), &session.environment);
    match run_command(words, dir, environment, Some(ids.traceparent()), limit).await {
        Ok(ran) => report(script, ran, session.command_ms),
        Err(error) => unstarted(script, words.first().map_or("", String::as_str), &error),
    }
}

/// Tells whether it is this machine that has run out of something, and not the command that is wrong.
fn is_ours(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let exhausted = [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE];
    exhausted
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// As a shell would say it: 127 for a program that is not there, 126 for one that cannot be started.
fn unstarted(script: &str, program: &str, error: &io::Error) -> Done {
    if is_ours(error) {
        return Done::failed(
            INTERNAL_FAILURE,
            format!("`{program}` cannot be started here: {error}"),
        );
    }
    let (code, why) = if error.kind() == io::ErrorKind::NotFound {
        (127, format!("there is no program `{program}` on the path"))
    } else {
        (126, format!("`{program}` cannot be started: {error}"))
    };
    let output = render(script, Outcome::Failed, Some(code), "", &why);
    Done {
        outcome: Some(Outcome::Failed),
        exit_code: Some(code),
        test: read_test(script, Ended::Exited(code), &output),
        error: Some(Failure::new("not_started", clip(&why, 512))),
        output,
        ..Done::default()
    }
}

fn report(script: &str, ran: Ran, limit_ms: u64) -> Done {
    let Ran {
        ended,
        stdout,
        stderr,
        truncated,
    } = ran;
    let brief = clip(script, 256);
    let failed = |kind, message| (Outcome::Failed, Some(Failure::new(kind, message)));
    let (outcome, error) = match ended {
        Ended::Exited(0) => (Outcome::Ok, None),
        Ended::Exited(code) => failed("exit_code", format!("`{brief}` exited with {code}")),
        Ended::Signalled(signal) => failed("signal", format!("`{brief}` was ended by signal {signal}")),
        Ended::TimedOut | Ended::NotFinished => (
            Outcome::Timeout,
            Some(Failure::new(
                "timeout",
                format!("`{brief}` was killed after {limit_ms} ms"),
            )),
        ),
    };
    let (exit_code, signal) = match ended {
        Ended::Exited(code) => (Some(code), None),
        Ended::Signalled(signal) => (None, Some(signal)),
        Ended::TimedOut | Ended::NotFinished => (None, None),
    };
    let test = read_test(script, ended, &format!("{stdout}\n{stderr}"));
    let output = render(script, outcome, exit_code, &stdout, &stderr);
    Done {
        outcome: Some(outcome),
        output,
        exit_code,
        signal,
        truncated,
        test,
        error,
        ..Done::default()
    }
}

/// The result is read from the whole output, before anything is cut for the log or the model.
fn read_test(script: &str, ended: Ended, output: &str) -> Option<TestRunRecord> {
    let command = recognise(script)?;
    let reading = read_result(&command, &ended, output);
    Some(TestRunRecord { command, reading })
}

fn render(script: &str, outcome: Outcome, exit_code: Option<i32>, stdout: &str, stderr: &str) -> String {
    let status = if outcome == Outcome::Failed {
        "error"
    } else {
        outcome.as_str()
    };
    let mut text = format!("command: {script}\nstatus: {status}\n");
    if let Some(code) = exit_code {
        let _ = writeln!(text, "exitCode: {code}");
    }
    for (name, stream) in [("stdout", stdout), ("stderr", stderr)] {
        if !stream.trim().is_empty() {
            let _ = writeln!(text, "{name}:\n{}", stream.trim_end());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_the_machine_cannot_start_is_a_failure_of_ours_and_another_is_its_own() {
        let check = |errno: rustix::io::Errno, code: Option<i32>, kind: &str| {
            let done = unstarted("npm test", "npm", &io::Error::from(errno));
            assert_eq!((done.exit_code, done.error.unwrap().kind.as_str()), (code, kind));
        };
        check(rustix::io::Errno::AGAIN, None, "internal");
        check(rustix::io::Errno::MFILE, None, "internal");
        check(rustix::io::Errno::NOENT, Some(127), "not_started");
        check(rustix::io::Errno::ACCESS, Some(126), "not_started");
    }
}
