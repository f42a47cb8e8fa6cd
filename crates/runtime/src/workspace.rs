//! The workspace: paths that cannot leave it, atomic writes, and how it is at a moment.

mod fingerprint;
mod git;
mod plain;
mod root;
mod rules;
mod walk;

pub use fingerprint::Fingerprint;
pub use root::{PathError, Root};
pub(crate) use rules::readable_upwards;
use std::path::{Path, PathBuf};
use tracegate_core::redact::Redactor;
pub use walk::Fingerprints;

/// The workspace cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use workspace `{}`: {error}", .path.display())]
pub struct UnusableWorkspace {
    /// Which.
    pub path: PathBuf,
    /// Why.
    pub error: std::io::Error,
}

/// Opens a workspace for a run that starts or goes on, and says how it is now.
pub(crate) fn enter(
    path: &Path,
    redactor: &Redactor,
) -> Result<(Root, Fingerprints, Fingerprint), UnusableWorkspace> {
    let unusable = |error| UnusableWorkspace {
        path: path.to_owned(),
        error,
    };
    let root = Root::open(path).map_err(unusable)?;
    let mut fingerprints = Fingerprints::new(redactor.clone());
    let now = fingerprints.take(root.path()).map_err(unusable)?;
    Ok((root, fingerprints, now))
}

/// Tells whether a walk goes on to an entry: not into git's bookkeeping or ours, nor where ignore rules cannot be read.
///
/// The walk's own root is not asked about: [`readable_upwards`] answers for it.
pub(crate) fn walkable(entry: &ignore::DirEntry) -> bool {
    let bookkeeping = matches!(entry.file_name().to_str(), Some(".git" | ".tracegate"));
    let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
    !bookkeeping && (!is_dir || rules::readable(entry.path()).is_ok())
}
