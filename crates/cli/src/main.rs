//! The `tracegate` command: arguments, settings, terminal, exit codes. Whatever others could need lives in the libraries.

mod args;
mod commands;
mod environment;
mod failure;
mod fixture;
mod ingredients;
mod live;
mod pause;
mod policy;
mod print;
mod progress;
mod runs;
mod signals;
mod spans;
mod terminal;
mod typed;

use std::process::ExitCode;
use tracegate_core::stop::Exit;

fn main() -> ExitCode {
    let environment = environment::Environment::read();
    let exit = match args::parse(&environment) {
        Ok(args) => {
            commands::dispatch(&args, &environment).unwrap_or_else(|failure| failure.report(&environment))
        }
        Err(exit) => exit,
    };
    // A command that did its work and could not say so did not succeed; one that failed has said more than this.
    let exit = match print::lost() {
        Some(error) if exit == Exit::Ok => {
            let failure = failure::Failure::new(Exit::Internal, format!("cannot write the answer: {error}"));
            failure
                .help("look at where standard output goes")
                .report(&environment)
        }
        Some(_) | None => exit,
    };
    ExitCode::from(exit.code())
}

/// What a command comes to: the exit that it asks for, or why it could not be done.
type Outcome = Result<Exit, failure::Failure>;
