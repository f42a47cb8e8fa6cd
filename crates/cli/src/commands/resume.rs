//! `tracegate resume` and `tracegate answer`: going on with a run, in another process, on another day.

use crate::{
    Outcome,
    args::{Again, Answer, Global, Resume},
    commands::{
        run::{carry_out, print_ending, read_text},
        show::{store_of, tail},
    },
    environment::Environment,
    failure::Failure,
    ingredients::{Ingredients, read_script, redactor},
    policy, runs,
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};
use tracegate::{
    config::RunConfig,
    resume::{Changes, ResumeError, open_questions},
    session::{Session, Surroundings},
};
use tracegate_core::{
    fact::{
        Data as _,
        model::{ModelCompleteFinished, ReplyKind},
        run::{RemoteParent, RunStarted},
    },
    ids::{QuestionId, TraceId},
    stop::Exit,
};
use tracegate_store::Tail;

pub(crate) fn resume(environment: &Environment, global: &Global, args: &Resume) -> Outcome {
    let found = runs::find(environment, &store_of(environment, global), &args.run)?;
    go_on(environment, global, &found, &args.how, None)
}

pub(crate) fn answer(environment: &Environment, global: &Global, args: &Answer) -> Outcome {
    let found = runs::find(environment, &store_of(environment, global), &args.run)?;
    let text = if args.text == "-" {
        read_text("the answer")?
    } else {
        args.text.clone()
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("the answer is empty"));
    }
    if let Tail::Damaged { .. } = found.tail {
        let message = format!(
            "the log of {} is {}: nothing is added to it",
            found.dir.id(),
            tail(&found.tail)
        );
        return Err(Failure::new(Exit::Integrity, message).help(format!("tracegate show {}", found.dir.id())));
    }
    let open = open_questions(&found.events);
    let question = match (&args.question, open.as_slice()) {
        (Some(id), _) => id.parse::<QuestionId>().map_err(Failure::usage)?,
        (None, [(only, _)]) => *only,
        (None, []) => {
            return Err(Failure::usage(format!("{} waits for no answer", found.dir.id()))
                .help(format!("tracegate show {}", found.dir.id())));
        }
        (None, several) => {
            let list: Vec<String> = several.iter().map(|(id, text)| format!("{id}: {text}")).collect();
            return Err(
                Failure::usage(format!("several questions are open: {}", list.join("; ")))
                    .help("name one with --question ID"),
            );
        }
    };
    go_on(environment, global, &found, &args.how, Some((question, text)))
}

fn go_on(
    environment: &Environment,
    global: &Global,
    found: &runs::Found,
    how: &Again,
    answer: Option<(QuestionId, String)>,
) -> Outcome {
    let run = found.dir.id().clone();
    let started = found
        .events
        .first()
        .and_then(|event| RunStarted::of(&event.fact))
        .ok_or_else(|| {
            Failure::new(
                Exit::Integrity,
                format!("the log of {run} has no beginning: nothing can be added to it"),
            )
        })?;
    let ingredients = gather_again(environment, found, started, how)?;
    let changes = Changes {
        max_steps: how.max_steps,
        answer,
        accept_policy: how.accept_changes,
    };
    let start = |around: Surroundings<'_>| {
        Session::resume(
            around,
            found.dir.clone(),
            &ingredients.config,
            &changes,
            &ingredients.model,
        )
        .map_err(|error| refused(error, found, changes.answer.is_some()))
    };
    let quiet = global.quiet || how.json;
    let ending = carry_out(
        environment,
        &ingredients,
        &how.export,
        quiet,
        (&run, &found.events),
        start,
    )?;
    print_ending(environment, global, &ingredients, &ending, how.json)
}

/// Puts together what the run was started with.
fn gather_again(
    environment: &Environment,
    found: &runs::Found,
    started: &RunStarted,
    how: &Again,
) -> Result<Ingredients, Failure> {
    let files: Vec<PathBuf> = started
        .policy
        .files
        .iter()
        .filter(|file| *file != policy::BUILT_IN_NAME)
        .map(PathBuf::from)
        .collect();
    let writes = started.grants.iter().rfind(|grant| grant.grant == "writes");
    let writes = writes.map(|grant| {
        if grant.pattern.is_empty() {
            "**"
        } else {
            grant.pattern.as_str()
        }
    });
    let policy = policy::load(&environment.dir, &files, writes, Path::new(&started.workspace))?;
    let script = how
        .script
        .clone()
        .or_else(|| started.model.script.clone().map(PathBuf::from))
        .ok_or_else(|| {
            Failure::usage("the run does not say where its model's replies come from")
                .help("name them with --script FILE")
        })?;
    // A request that was cut off, or failed, is made again: only replies count.
    let replies = found
        .events
        .iter()
        .filter_map(|event| ModelCompleteFinished::of(&event.fact));
    let replies = replies
        .filter(|reply| reply.reply_kind != ReplyKind::None)
        .count();
    let model = read_script(environment, &script)?.after(replies as u64);
    let workspace = PathBuf::from(&started.workspace);
    let join: Option<(TraceId, RemoteParent)> =
        started.remote_parent.map(|parent| (started.trace_id, parent));
    let config = RunConfig {
        goal: started.goal.preview(),
        workspace: workspace.clone(),
        policy: policy.reference.clone(),
        grants: Vec::new(),
        limits: started.limits,
        settings: started.settings.clone(),
        agent: started.agent.clone(),
        join,
        resource: BTreeMap::new(),
        environment: environment.vars.clone(),
    };
    let redactor = redactor(environment, &found.store, Some(&workspace));
    Ok(Ingredients {
        store: found.store.clone(),
        redactor,
        config,
        policy,
        model,
    })
}

fn refused(error: ResumeError, found: &runs::Found, answering: bool) -> Failure {
    let run = found.dir.id();
    let again = if answering {
        format!("tracegate answer {run} \"…\"")
    } else {
        format!("tracegate resume {run}")
    };
    match error {
        ResumeError::Recorder(error) => error.into(),
        ResumeError::Over(_) => Failure::usage(error).help(format!("tracegate show {run}")),
        ResumeError::Exhausted(_) => {
            Failure::usage(error).help(format!("tracegate resume {run} --max-steps N"))
        }
        ResumeError::Waiting(question) => {
            let asked = open_questions(&found.events)
                .into_iter()
                .find(|(id, _)| *id == question);
            let text = asked.map_or_else(String::new, |(_, text)| format!(": {text}"));
            Failure::new(Exit::WaitingForUser, format!("{error}{text}"))
                .help(format!("tracegate answer {run} \"…\""))
        }
        ResumeError::NotOpen(_) => Failure::usage(error).help(format!("tracegate show {run}")),
        ResumeError::PolicyChanged { .. } => {
            Failure::usage(error).help(format!("{again} --accept-changes, if that is what you want"))
        }
        ResumeError::Workspace(_) => Failure::usage(error),
        ResumeError::NoBeginning
        | ResumeError::Violation(_)
        | ResumeError::Conversation(_)
        | ResumeError::Reply(_) => Failure::new(Exit::Integrity, error),
    }
}
