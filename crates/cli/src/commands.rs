//! The commands, a file each.

mod demo;
mod doctor;
mod eval;
mod explain;
mod export;
mod fsck;
mod resume;
pub(crate) mod run;
mod runs;
mod show;

use crate::{
    Outcome,
    args::{Cli, Command, Eval, Runs},
    environment::Environment,
    print,
};
use tracegate_core::stop::Exit;

/// Does what was typed.
pub(crate) fn dispatch(cli: &Cli, environment: &Environment) -> Outcome {
    let global = &cli.global;
    match &cli.command {
        None => Ok(start_page(environment)),
        Some(Command::Demo(args)) => demo::demo(environment, global, args),
        Some(Command::Run(args)) => run::run(environment, global, args),
        Some(Command::Resume(args)) => resume::resume(environment, global, args),
        Some(Command::Answer(args)) => resume::answer(environment, global, args),
        Some(Command::Show(args)) => show::show(environment, global, args),
        Some(Command::Runs(Runs::List { limit, json })) => runs::list(environment, global, *limit, *json),
        Some(Command::Explain(args)) => explain::explain(environment, global, args),
        Some(Command::Export(args)) => export::export(environment, global, args),
        Some(Command::Doctor(args)) => doctor::doctor(environment, global, args),
        Some(Command::Fsck(args)) => fsck::fsck(environment, global, args),
        Some(Command::Eval(Eval::Run(args))) => eval::run(environment, global, args),
    }
}

/// What somebody sees who types nothing but the name.
fn start_page(environment: &Environment) -> Exit {
    let page = "\
tracegate: runs coding agents so that afterwards nobody has to believe them

  tracegate demo               a failed repair, replayed: no key, no network
  tracegate demo --fixed       the same model sees the linked test
  tracegate run GOAL …         an agent on a workspace of yours
  tracegate runs list          what was recorded here
  tracegate show @last         what happened
  tracegate explain @last      why it failed
  tracegate eval run evals/    turn failures into tests

start here: tracegate demo";
    print::answer(&print::stand_in(environment).scrub_text(page.to_owned()));
    Exit::Ok
}
