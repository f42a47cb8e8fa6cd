//! Policy files as typed, or the built-in one; a typed file is the user's layer.

use crate::{failure::Failure, typed};
use std::path::{Path, PathBuf};
use tracegate_core::{
    fact::{gate::PolicyGranted, run::PolicyRef},
    ids::Digest,
    stop::Exit,
};
use tracegate_policy::{Grant, Layer, Policy, Source};

/// The policy that is used where none is named.
pub(crate) const BUILT_IN: &str = include_str!("../../../policies/default.toml");

/// What the built-in policy is called in messages and records.
pub(crate) const BUILT_IN_NAME: &str = "builtin:default";

/// A loaded policy and how it is recorded.
pub(crate) struct Loaded {
    pub(crate) policy: Policy,
    pub(crate) reference: PolicyRef,
    pub(crate) grants: Vec<PolicyGranted>,
}

/// Returns what the gate calls a policy file: one inside the workspace by its path there, so that its floor protects the file in force.
fn name_of(file: &Path, dir: &Path, workspace: &Path) -> String {
    let inside = dir
        .join(file)
        .canonicalize()
        .ok()
        .zip(workspace.canonicalize().ok());
    let inside = inside.and_then(|(file, workspace)| file.strip_prefix(workspace).ok().map(Path::to_owned));
    inside.as_deref().unwrap_or(file).display().to_string()
}

/// Loads the policy `files` below `dir` for a run on `workspace`, and what the command line grants.
pub(crate) fn load(
    dir: &Path,
    files: &[PathBuf],
    allow_writes: Option<&str>,
    workspace: &Path,
) -> Result<Loaded, Failure> {
    let (mut sources, mut paths) = (Vec::new(), Vec::new());
    for file in files {
        let name = name_of(file, dir, workspace);
        let bytes = typed::read(&dir.join(file)).map_err(|error| {
            Failure::usage(format!("cannot read policy `{name}`: {error}"))
                .help("nothing was run; name a policy file with --policy FILE")
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let line = error
                .as_bytes()
                .iter()
                .take(error.utf8_error().valid_up_to())
                .filter(|byte| **byte == b'\n')
                .count()
                + 1;
            Failure::usage(format!("{name}:{line}:1: the file is not UTF-8"))
                .help("nothing was run; save the file as UTF-8")
        })?;
        // Recorded by its whole path, so that a resume finds it from anywhere.
        paths.push(dir.join(file).display().to_string());
        sources.push(source(name, text));
    }
    if sources.is_empty() {
        paths.push(BUILT_IN_NAME.to_owned());
        sources.push(source(BUILT_IN_NAME.to_owned(), BUILT_IN.to_owned()));
    }
    let grants: Vec<Grant> = allow_writes
        .map(|glob| Grant::Writes((glob != "**").then(|| glob.to_owned())))
        .into_iter()
        .collect();
    let policy = Policy::load(&sources, &grants).map_err(|error| {
        let failure = Failure::new(Exit::Usage, &error);
        match error.help() {
            Some(help) => failure.help(help),
            None => failure.help("nothing was run"),
        }
    })?;
    let digest = Digest::of(
        sources
            .iter()
            .map(|source| source.text.as_str())
            .collect::<Vec<_>>()
            .join("\0")
            .as_bytes(),
    );
    let reference = PolicyRef { digest, files: paths };
    let grants = allow_writes.map(|glob| PolicyGranted {
        grant: "writes".to_owned(),
        pattern: if glob == "**" {
            String::new()
        } else {
            glob.to_owned()
        },
        source: "command line".to_owned(),
    });
    Ok(Loaded {
        policy,
        reference,
        grants: grants.into_iter().collect(),
    })
}

fn source(name: String, text: String) -> Source {
    Source {
        layer: Layer::User,
        name,
        text,
        trusted: true,
    }
}
