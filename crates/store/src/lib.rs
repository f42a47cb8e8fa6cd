//! A run on disk: log, artifacts, small files, lock.
//!
//! Decides nothing, and accepts no byte that redaction has not seen: everything that is written is [`Scrubbed`].

mod artifacts;
mod disk;
mod exports;
mod files;
mod fsck;
mod layout;
mod lines;
mod lock;
mod log;
mod salvage;
mod scan;
mod store;

pub use artifacts::{ArtifactError, Artifacts};
pub use disk::{Disk, LogFile, RealDisk};
pub use exports::{Cursor, Destination};
pub use files::Head;
pub use fsck::{Finding, LISTED, Report, Verdict, fsck};
pub use layout::RunDir;
pub use lock::{LockError, RunLock};
pub use log::{LogError, LogReader, LogWriter, Recovery, Tail};
pub use salvage::{Salvage, SalvageError, salvage};
pub use store::{Store, StoreError};

#[expect(unused_imports, reason = "named in the documentation above")]
use tracegate_core::redact::Scrubbed;
