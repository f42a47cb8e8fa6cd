//! The environment of the process, read once.
#![expect(clippy::disallowed_methods, reason = "this is the environment")]

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};
use tracegate_core::{
    fact::run::RemoteSpan,
    ids::{SpanId, TraceId},
};

/// Arguments, variables, directory and terminal of this process.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    pub(crate) args: Vec<OsString>,
    pub(crate) vars: BTreeMap<String, String>,
    pub(crate) dir: PathBuf,
    pub(crate) columns: usize,
}

impl Environment {
    pub(crate) fn read() -> Self {
        let vars: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let columns = vars
            .get("COLUMNS")
            .and_then(|columns| columns.parse().ok())
            .unwrap_or(100);
        Self {
            args: std::env::args_os().collect(),
            dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            columns,
            vars,
        }
    }

    /// Returns a variable that is set and not empty.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        self.vars
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Returns where the store of work in `dir` lies: as told, as `TRACEGATE_STORE` says, the nearest one above, or a new one there.
    pub(crate) fn store(&self, told: Option<&Path>, dir: &Path) -> PathBuf {
        if let Some(told) = told.or_else(|| self.var("TRACEGATE_STORE").map(Path::new)) {
            return self.dir.join(told);
        }
        let dir = self.dir.join(dir);
        let dir = dir.canonicalize().unwrap_or(dir);
        let nearest = dir
            .ancestors()
            .map(|above| above.join(".tracegate"))
            .find(|store| store.join("runs").is_dir());
        nearest.unwrap_or_else(|| dir.join(".tracegate"))
    }

    /// Returns the span of another program that started this one, if `TRACEPARENT` names it (W3C, version 00).
    pub(crate) fn traceparent(&self) -> Option<RemoteSpan> {
        let mut parts = self.var("TRACEPARENT")?.split('-');
        let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
        let (trace, span): (TraceId, SpanId) = (trace.parse().ok()?, span.parse().ok()?);
        let valid = version == "00" && trace.to_bytes() != [0; 16] && span.to_bytes() != [0; 8];
        valid.then_some(RemoteSpan {
            trace_id: trace,
            span_id: span,
        })
    }

    /// Tells whether a program of this name is on the path.
    pub(crate) fn has_program(&self, name: &str) -> bool {
        let path = self.var("PATH").unwrap_or_default();
        path.split(':').any(|dir| Path::new(dir).join(name).is_file())
    }
}
