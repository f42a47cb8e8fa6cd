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
    config::{Origin, RunConfig},
    past::{OpenQuestion, Outline},
    resume::{Answer as Said, Changes, NewLimits, ResumeError},
    session::{Session, Surroundings},
};
use tracegate_core::{
    fact::{
        run::{RemoteSpan, RunStarted},
        user::{Permission, QuestionKind},
    },
    ids::QuestionId,
    stop::Exit,
};
use tracegate_store::{LogReader, RunDir, Store, Tail};

pub(crate) fn resume(environment: &Environment, global: &Global, args: &Resume) -> Outcome {
    let found = Found::find(environment, global, &args.run)?;
    go_on(environment, global, &found, &args.how, None)
}

pub(crate) fn answer(environment: &Environment, global: &Global, args: &Answer) -> Outcome {
    let found = Found::find(environment, global, &args.run)?;
    let run = found.dir.id();
    let answer = match (&args.text, args.deny) {
        (Some(text), _) if text == "-" => Said::Text(read_text("the answer")?),
        (Some(text), _) => Said::Text(text.clone()),
        (None, true) => Said::Permission(Permission::Deny),
        (None, false) => Said::Permission(Permission::Allow),
    };
    if answer.as_str().trim().is_empty() {
        return Err(Failure::usage("the answer is empty"));
    }
    if let Tail::Damaged { .. } = found.tail {
        let message = format!(
            "the log of {run} is {}: nothing is added to it",
            tail(&found.tail)
        );
        return Err(Failure::new(Exit::Integrity, message).help(format!("tracegate fsck {run}")));
    }
    let question = match &args.question {
        Some(id) => id.parse::<QuestionId>().map_err(Failure::usage)?,
        None => only_question(&found, &answer)?,
    };
    go_on(environment, global, &found, &args.how, Some((question, answer)))
}

/// Returns the question that an answer without a name must mean.
fn only_question(found: &Found, answer: &Said) -> Result<QuestionId, Failure> {
    let run = found.dir.id();
    let kind = match answer {
        Said::Text(_) => QuestionKind::Text,
        Said::Permission(_) => QuestionKind::Permission,
    };
    let open = &found.outline.open;
    let fitting: Vec<&OpenQuestion> = open.iter().filter(|question| question.kind == kind).collect();
    match (open.as_slice(), fitting.as_slice()) {
        ([], _) => {
            Err(Failure::usage(format!("{run} waits for no answer")).help(format!("tracegate show {run}")))
        }
        // The only question of another kind: the run says why it is no answer to that.
        ([only], []) => Ok(only.id),
        (_, [only]) => Ok(only.id),
        (several, _) => {
            let list: Vec<String> = several
                .iter()
                .map(|question| format!("{}: {}", question.id, question.text))
                .collect();
            let message = format!("several questions are open: {}", list.join("; "));
            Err(Failure::usage(message).help("name one with --question ID"))
        }
    }
}

/// A run that somebody wants to go on with, as far as that needs to be known beforehand.
struct Found {
    store: Store,
    dir: RunDir,
    outline: Outline,
    tail: Tail,
}

impl Found {
    fn find(environment: &Environment, global: &Global, name: &str) -> Result<Self, Failure> {
        let (store, dir) = runs::locate(environment, &store_of(environment, global), name)?;
        let (outline, tail) = outline(&dir)?;
        Ok(Self {
            store,
            dir,
            outline,
            tail,
        })
    }
}

fn outline(dir: &RunDir) -> Result<(Outline, Tail), Failure> {
    let (mut outline, mut reader) = (Outline::default(), LogReader::open(dir)?);
    while let Some(event) = reader.next_event()? {
        outline.push(&event);
    }
    Ok((outline, reader.tail()))
}

fn go_on(
    environment: &Environment,
    global: &Global,
    found: &Found,
    how: &Again,
    answer: Option<(QuestionId, Said)>,
) -> Outcome {
    let run = found.dir.id().clone();
    let started = found.outline.started.as_ref().ok_or_else(|| {
        Failure::new(
            Exit::Integrity,
            format!("the log of {run} has no beginning: nothing can be added to it"),
        )
    })?;
    if how.budget.max_cost.is_some() && started.settings.prices.is_none() {
        return Err(
            Failure::usage("the run was started without prices, so its cost is not known").help(format!(
                "limit it by --max-tokens: tracegate resume {run} --max-tokens N"
            )),
        );
    }
    let ingredients = gather_again(environment, found, started, how)?;
    let changes = Changes {
        limits: NewLimits {
            max_steps: how.max_steps,
            max_tokens: how.budget.max_tokens,
            max_ms: how.budget.max_ms(),
            max_cost: how.budget.max_cost,
        },
        answer,
        accept: how.accept_changes,
    };
    let start = |around: Surroundings<'_>| {
        Session::resume(
            around,
            found.dir.clone(),
            &ingredients.config,
            &changes,
            &ingredients.model,
        )
        .map_err(|error| refused(error, found, changes.answer.as_ref()))
    };
    let quiet = global.quiet || how.json;
    let ending = carry_out(environment, &ingredients, &how.export, quiet, &run, start)?;
    print_ending(environment, global, &ingredients, &ending, how.json)
}

/// Puts together what the run was started with.
fn gather_again(
    environment: &Environment,
    found: &Found,
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
    let model = read_script(environment, &script)?.after(found.outline.replies);
    let workspace = PathBuf::from(&started.workspace);
    let joins = started.remote_parent.map(|parent| {
        Origin::Joins(RemoteSpan {
            trace_id: started.trace_id,
            span_id: parent.span_id,
        })
    });
    let origin = joins
        .or_else(|| started.trace_link.map(Origin::Links))
        .unwrap_or_default();
    let config = RunConfig {
        goal: started.goal.preview(),
        workspace: workspace.clone(),
        policy: policy.reference.clone(),
        grants: Vec::new(),
        limits: started.limits,
        settings: started.settings.clone(),
        agent: started.agent.clone(),
        origin,
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

fn refused(error: ResumeError, found: &Found, answer: Option<&(QuestionId, Said)>) -> Failure {
    let run = found.dir.id();
    let again = match answer {
        Some((_, Said::Text(_))) => format!("tracegate answer {run} \"…\""),
        Some((_, Said::Permission(permission))) => {
            format!("tracegate answer {run} --{}", permission.as_str())
        }
        None => format!("tracegate resume {run}"),
    };
    let asked = |id: QuestionId| found.outline.open.iter().find(|question| question.id == id);
    match error {
        ResumeError::Recorder(error) => error.into(),
        ResumeError::Violation(_) => {
            Failure::new(Exit::Integrity, error).help(format!("tracegate show {run}"))
        }
        ResumeError::Over(_) | ResumeError::NotOpen(_) => {
            Failure::usage(error).help(format!("tracegate show {run}"))
        }
        ResumeError::Exhausted { which, .. } => {
            let option = match which {
                "tokens" => "--max-tokens N",
                "cost" => "--max-cost USD",
                "time" => "--max-time SECONDS",
                _ => "--max-steps N",
            };
            Failure::usage(error).help(format!("{again} {option}"))
        }
        ResumeError::Waiting(question) => {
            let text = asked(question).map_or_else(String::new, |asked| format!(": {}", asked.text));
            Failure::new(Exit::WaitingForUser, format!("{error}{text}")).help(answer_with(
                &found.dir,
                &found.outline.open,
                question,
                "",
            ))
        }
        ResumeError::WrongKind { question, .. } => {
            Failure::usage(error).help(answer_with(&found.dir, &found.outline.open, question, ""))
        }
        ResumeError::PolicyChanged { .. } | ResumeError::TaskChanged { what: "goal" } => {
            Failure::usage(error).help(format!("{again} --accept-changes, if that is what you want"))
        }
        ResumeError::TaskChanged { .. } | ResumeError::NoTask(_) => Failure::usage(error).help(format!(
            "restore `{}`; limits are changed by options of `tracegate resume`",
            found.dir.task().display()
        )),
        ResumeError::Workspace(_) => Failure::usage(error),
        ResumeError::NoBeginning | ResumeError::Conversation(_) | ResumeError::Reply(_) => {
            Failure::new(Exit::Integrity, error).help(format!("tracegate fsck {run}"))
        }
    }
}

/// The command that answers the first question of a run that waits; `names` says where the run is kept.
pub(crate) fn answer_to(dir: &RunDir, names: &str) -> Result<String, Failure> {
    let (outline, _) = outline(dir)?;
    let first = outline.open.first().map(|question| question.id);
    Ok(first.map_or_else(
        || format!("tracegate show {}{names}", dir.id()),
        |first| answer_with(dir, &outline.open, first, names),
    ))
}

/// The command that answers a question.
fn answer_with(dir: &RunDir, open: &[OpenQuestion], question: QuestionId, names: &str) -> String {
    let run = dir.id();
    let kind = open
        .iter()
        .find(|asked| asked.id == question)
        .map(|asked| asked.kind);
    let name = if open.len() > 1 {
        format!(" --question {question}")
    } else {
        String::new()
    };
    match kind {
        Some(QuestionKind::Permission) => format!("tracegate answer {run} --allow{name}{names}  # or --deny"),
        Some(QuestionKind::Text) | None => {
            format!("tracegate answer {run} -{name}{names}  # then type it, and end with ctrl-d")
        }
    }
}
