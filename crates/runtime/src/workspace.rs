//! The workspace: paths that cannot leave it, atomic writes, and how it is at a moment.

mod fingerprint;
mod root;

pub use fingerprint::{Fingerprint, Fingerprints, check_ignore_files};
pub use root::{PathError, Root};
