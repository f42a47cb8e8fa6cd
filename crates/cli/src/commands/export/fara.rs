//! `tracegate export --to fara`: one run as Fara's trajectory directory.
#![expect(
    clippy::disallowed_methods,
    reason = "the directory that --output names is written here"
)]

use crate::{
    Outcome,
    args::{Export, Global},
    commands::{export::found, run::quote, show::warn},
    environment::Environment,
    failure::Failure,
    print, runs,
};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::Path,
};
use tracegate::tools::specs;
use tracegate_adapters::fara::{
    Sources,
    schema::{DataPoint, Event, is_free_key, is_schema_key},
};
use tracegate_core::{
    ids::Digest,
    redact::{Schema, Scrubbed},
    stop::Exit,
};

/// What a right command looks like.
const USAGE: &str = "tracegate export @last --to fara -o DIR";

pub(super) fn export(environment: &Environment, global: &Global, args: &Export) -> Outcome {
    let [name] = args.run.as_slice() else {
        return Err(
            Failure::usage(format!("Fara's directory holds one run, not {}", args.run.len())).help(USAGE),
        );
    };
    let Some(output) = &args.output else {
        return Err(Failure::usage("Fara's format is a directory: name it with -o DIR").help(USAGE));
    };
    let (store, dir, redactor) = found(environment, global, name)?;
    let found = runs::read(store, dir)?;
    let artifacts = found.store.artifacts();
    let sources = Sources {
        text: &|payload| artifacts.text(payload),
        tools: &offered,
    };
    let exported = tracegate_adapters::fara::export(found.dir.id(), &found.events, &sources);
    let exported = exported.map_err(|error| {
        Failure::new(
            Exit::Integrity,
            format!("`{}` cannot be exported: {error}", found.dir.id()),
        )
        .help(format!("tracegate show {} --view steps", quote(name)))
    })?;
    let schema = Schema {
        keep: is_schema_key,
        free: is_free_key,
    };
    let scrubbed = redactor
        .scrub(&exported.data_point, &schema)
        .map_err(|error| Failure::new(Exit::Internal, error))?;
    let target = environment.dir.join(output);
    write(&target, &scrubbed).map_err(|error| {
        let message = format!("cannot write `{}`: {error}", output.display());
        if error.kind() == io::ErrorKind::AlreadyExists {
            Failure::usage(message).help("name a directory that does not exist yet with -o DIR")
        } else {
            Failure::new(Exit::Internal, message)
                .help("name a new directory below one that exists with -o DIR")
        }
    })?;
    let log = &scrubbed.get().solver_log.events;
    let actions = log
        .iter()
        .filter(|event| matches!(event, Event::Action(_)))
        .count();
    let text = format!(
        "{}  {actions} actions and {} observations ({} inserted) to {}\nwhat differs from the log: docs/fara.md",
        found.dir.id(),
        log.len() - actions,
        exported.inserted,
        output.display()
    );
    print::answer(&redactor.scrub_text(text));
    Ok(warn(&redactor, &found.tail))
}

/// Returns the tools whose definitions a request had; a log of another version may have had others.
fn offered(digest: Digest) -> Vec<String> {
    let ours = serde_json::to_vec(specs()).map(|bytes| Digest::of(&bytes));
    if ours.is_ok_and(|ours| ours == digest) {
        specs().iter().map(|tool| tool.name.to_string()).collect()
    } else {
        Vec::new()
    }
}

/// Writes the directory under another name beside `target`, and gives it its name when it is whole.
fn write(target: &Path, exported: &Scrubbed<DataPoint>) -> io::Result<()> {
    let exists = || io::Error::new(io::ErrorKind::AlreadyExists, "it exists already");
    if fs::symlink_metadata(target).is_ok() {
        return Err(exists());
    }
    let parent = target.parent().unwrap_or_else(|| Path::new("."));
    let whole = tempfile::Builder::new()
        .prefix(".tmp-fara-")
        .permissions(Permissions::from_mode(0o777))
        .tempdir_in(parent)?;
    for (name, text) in exported.get().files()? {
        let path = whole.path().join(name);
        fs::create_dir_all(path.parent().unwrap_or(parent))?;
        fs::write(&path, text)?;
    }
    match renameat_with(CWD, whole.path(), CWD, target, RenameFlags::NOREPLACE) {
        // A file system that cannot refuse to replace; a directory with files in it is never replaced.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => fs::rename(whole.path(), target)?,
        Err(rustix::io::Errno::EXIST) => return Err(exists()),
        other => other?,
    }
    // It has another name now: there is nothing left to remove.
    drop(whole.keep());
    Ok(())
}
