//! Finding runs: by id, by the beginning of one, by `@last`, by path.

use crate::{environment::Environment, failure::Failure};
use std::path::Path;
use tracegate_core::{event::Event, ids::RunId, stop::Exit};
use tracegate_report::Holder;
use tracegate_store::{LogReader, RunDir, RunLock, Store, Tail};

/// A run that was found and read.
pub(crate) struct Found {
    pub(crate) store: Store,
    pub(crate) dir: RunDir,
    pub(crate) events: Vec<Event>,
    pub(crate) tail: Tail,
    pub(crate) holder: Holder,
}

/// Finds and reads the run that `name` means.
pub(crate) fn find(environment: &Environment, store: &Path, name: &str) -> Result<Found, Failure> {
    let (store, dir) = locate(environment, store, name)?;
    read(store, dir)
}

/// Reads a run.
pub(crate) fn read(store: Store, dir: RunDir) -> Result<Found, Failure> {
    let (events, tail) = LogReader::open(&dir)?.read_all()?;
    let holder = if RunLock::is_held(&dir.lock()) {
        Holder::Alive
    } else {
        Holder::Nobody
    };
    Ok(Found {
        store,
        dir,
        events,
        tail,
        holder,
    })
}

/// Finds the run that `name` means, without reading its log.
pub(crate) fn locate(
    environment: &Environment,
    store: &Path,
    name: &str,
) -> Result<(Store, RunDir), Failure> {
    if name.is_empty() {
        return Err(Failure::usage("the name of the run is empty").help("tracegate runs list"));
    }
    if name.contains('/') {
        return by_path(environment, name);
    }
    let store = open(store)?;
    let runs = store.runs()?;
    if let Some(back) = recency(name) {
        let none = || {
            Failure::new(
                Exit::NotFound,
                format!("no run `{name}` in `{}`", store.root().display()),
            )
            .help("tracegate demo")
        };
        let dir = runs
            .len()
            .checked_sub(back)
            .and_then(|at| runs.get(at))
            .cloned()
            .ok_or_else(none)?;
        return Ok((store, dir));
    }
    if let Some(dir) = runs.iter().find(|dir| dir.id().as_str() == name) {
        return Ok((store, dir.clone()));
    }
    let fitting: Vec<&RunDir> = runs
        .iter()
        .filter(|dir| dir.id().as_str().starts_with(name))
        .collect();
    match fitting.as_slice() {
        [dir] => Ok((store, (*dir).clone())),
        [] => Err(Failure::new(
            Exit::NotFound,
            format!("no run `{name}` in `{}`", store.root().display()),
        )
        .help("tracegate runs list")),
        several => {
            let ids: Vec<&str> = several.iter().take(5).map(|dir| dir.id().as_str()).collect();
            Err(Failure::usage(format!(
                "`{name}` is the beginning of {} runs: {}",
                several.len(),
                ids.join(", ")
            ))
            .help("type more of it, or @last"))
        }
    }
}

/// Opens a store for reading.
pub(crate) fn open(store: &Path) -> Result<Store, Failure> {
    if !store.is_dir() {
        let message = format!("there is no store at `{}`", store.display());
        return Err(
            Failure::new(Exit::NotFound, message).help("tracegate demo, or name a store with --store DIR")
        );
    }
    Ok(Store::read(store)?)
}

/// `@last` is 1, `@-2` the one before it is 2.
fn recency(name: &str) -> Option<usize> {
    match name.strip_prefix('@')? {
        "last" => Some(1),
        back => back
            .strip_prefix('-')
            .and_then(|back| back.parse().ok())
            .filter(|back| *back > 0),
    }
}

/// A directory of a run, or its log; the store is two levels up.
fn by_path(environment: &Environment, name: &str) -> Result<(Store, RunDir), Failure> {
    let missing = || {
        Failure::new(
            Exit::NotFound,
            format!("`{name}` is not the directory or log of a run"),
        )
        .help("tracegate runs list")
    };
    let path = environment.dir.join(name);
    let path = if path.file_name().is_some_and(|file| file == "events.jsonl") {
        path.parent().map(Path::to_owned).ok_or_else(missing)?
    } else {
        path
    };
    let path = path.canonicalize().map_err(|_| missing())?;
    // Nearly every name could be a run's id; a run's directory lies in `runs` and holds a log.
    let lies_in_runs = path
        .parent()
        .and_then(Path::file_name)
        .is_some_and(|name| name == "runs");
    if !lies_in_runs || !path.join("events.jsonl").is_file() {
        return Err(missing());
    }
    let id: RunId = path
        .file_name()
        .and_then(|name| name.to_str()?.parse().ok())
        .ok_or_else(missing)?;
    let root = path.parent().and_then(Path::parent).ok_or_else(missing)?;
    let store = open(root)?;
    let dir = store.run(&id)?;
    Ok((store, dir))
}
