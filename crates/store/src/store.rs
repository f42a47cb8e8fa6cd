//! The store: where runs and artifacts of a workspace are kept, its random id and its redaction key.
#![expect(clippy::disallowed_methods, reason = "this is the disk")]

use crate::{
    artifacts::Artifacts,
    disk::{Disk, RealDisk, create},
    files::read_small,
    layout::RunDir,
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};
use tracegate_core::{
    ids::RunId,
    redact::{RedactionKey, Registered},
};

/// A store, or a file in it, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be read.
    #[error("cannot read `{}`: {error}", .path.display())]
    Read {
        /// What.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It cannot be written.
    #[error("cannot write `{}`: {error}", .path.display())]
    Write {
        /// What.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is no such run.
    #[error("no run `{run}` in `{}`", .store.display())]
    NoRun {
        /// Which.
        run: RunId,
        /// Where it was looked for.
        store: PathBuf,
    },
}

impl StoreError {
    pub(crate) fn read(path: &Path, error: io::Error) -> Self {
        Self::Read {
            path: path.to_owned(),
            error,
        }
    }

    pub(crate) fn write(path: &Path, error: io::Error) -> Self {
        Self::Write {
            path: path.to_owned(),
            error,
        }
    }
}

/// A directory of runs and their artifacts, usually `.tracegate` in the workspace.
#[derive(Clone)]
pub struct Store {
    root: PathBuf,
    host_id: String,
    key: RedactionKey,
    key_text: String,
    artifacts: Artifacts,
    disk: Arc<dyn Disk>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("root", &self.root)
            .field("host_id", &self.host_id)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store at `root`, creating what is missing; `random` is used only for a new one.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn open(root: &Path, random: impl Fn() -> [u8; 32]) -> Result<Self, StoreError> {
        Self::open_on(Arc::new(RealDisk), root, random)
    }

    /// As [`Store::open`], on another disk than the machine's.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_on(
        disk: Arc<dyn Disk>,
        root: &Path,
        random: impl Fn() -> [u8; 32],
    ) -> Result<Self, StoreError> {
        let write = |path: &Path, error| StoreError::write(path, error);
        let runs = root.join("runs");
        let above = root.parent().unwrap_or(root);
        fs::create_dir_all(above).map_err(|error| write(root, error))?;
        for dir in [root, &runs] {
            disk.make_dir(dir).map_err(|error| write(dir, error))?;
        }
        let create_once = |path: &Path, mode, bytes: &[u8]| create_once(disk.as_ref(), path, mode, bytes);
        let ignore = root.join(".gitignore");
        create_once(&ignore, 0o644, b"*\n").map_err(|error| write(&ignore, error))?;
        let key = root.join("redaction.key");
        create_once(&key, 0o600, hex(&random()).as_bytes()).map_err(|error| write(&key, error))?;
        let host = root.join("host-id");
        let id: String = hex(&random()).chars().take(32).collect();
        create_once(&host, 0o644, id.as_bytes()).map_err(|error| write(&host, error))?;
        // Whoever made the directories may have died before they were durable.
        disk.sync(root).map_err(|error| write(root, error))?;
        let above = if above.as_os_str().is_empty() {
            Path::new(".")
        } else {
            above
        };
        match disk.sync(above) {
            // A directory that we may enter but not read cannot be synced by us; the store in it can be used all the same.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            done => done.map_err(|error| write(root, error))?,
        }
        Ok(Self::read(root)?.on(disk))
    }

    /// As [`Store::read`], on another disk than the machine's.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn read_on(disk: Arc<dyn Disk>, root: &Path) -> Result<Self, StoreError> {
        Ok(Self::read(root)?.on(disk))
    }

    fn on(self, disk: Arc<dyn Disk>) -> Self {
        let artifacts = Artifacts::new(self.root.join("artifacts"), Arc::clone(&disk));
        Self {
            artifacts,
            disk,
            ..self
        }
    }

    /// Opens the store at `root` without creating anything.
    ///
    /// # Errors
    /// When it does not exist or cannot be read.
    pub fn read(root: &Path) -> Result<Self, StoreError> {
        let text = |name: &str| {
            let path = root.join(name);
            let read = read_small(&path).and_then(|bytes| {
                let bytes = bytes.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
                String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
            });
            read.map_err(|error| StoreError::read(&path, error))
        };
        let key_text = text("redaction.key")?.trim().to_owned();
        let key = unhex(&key_text).ok_or_else(|| {
            let error = io::Error::new(io::ErrorKind::InvalidData, "not 64 hexadecimal digits");
            StoreError::read(&root.join("redaction.key"), error)
        })?;
        Ok(Self {
            root: root.to_owned(),
            host_id: text("host-id")?.trim().to_owned(),
            key: RedactionKey::from_bytes(key),
            key_text,
            artifacts: Artifacts::new(root.join("artifacts"), Arc::new(RealDisk)),
            disk: Arc::new(RealDisk),
        })
    }

    /// Returns the directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the store's random id.
    #[must_use]
    pub fn host_id(&self) -> &str {
        &self.host_id
    }

    /// Returns the key of the tags in placeholders.
    #[must_use]
    pub const fn redaction_key(&self) -> &RedactionKey {
        &self.key
    }

    /// Returns the key file's text as a value to redact: a command may read the store, and the key opens its tags to guessing.
    #[must_use]
    pub fn registered_key(&self) -> Registered {
        Registered {
            name: "redaction.key".to_owned(),
            value: self.key_text.clone(),
        }
    }

    /// Returns the artifacts.
    #[must_use]
    pub const fn artifacts(&self) -> &Artifacts {
        &self.artifacts
    }

    /// Creates the directory of a new run.
    ///
    /// # Errors
    /// When there is one already, or it cannot be written.
    pub fn create_run(&self, id: &RunId) -> Result<RunDir, StoreError> {
        let runs = self.root.join("runs");
        let path = runs.join(id.as_str());
        let create = || {
            if path.exists() {
                return Err(io::Error::from(io::ErrorKind::AlreadyExists));
            }
            self.disk.make_dir(&path)?;
            self.disk.sync(&runs)
        };
        create().map_err(|error| StoreError::write(&path, error))?;
        Ok(RunDir::new(id.clone(), path, Arc::clone(&self.disk)))
    }

    /// Returns the directory of a run.
    ///
    /// # Errors
    /// [`StoreError::NoRun`].
    pub fn run(&self, id: &RunId) -> Result<RunDir, StoreError> {
        let dir = RunDir::new(
            id.clone(),
            self.root.join("runs").join(id.as_str()),
            Arc::clone(&self.disk),
        );
        if dir.events().is_file() {
            return Ok(dir);
        }
        Err(StoreError::NoRun {
            run: id.clone(),
            store: self.root.clone(),
        })
    }

    /// Lists the runs, oldest first.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn runs(&self) -> Result<Vec<RunDir>, StoreError> {
        let path = self.root.join("runs");
        let mut found = Vec::new();
        for entry in fs::read_dir(&path).map_err(|error| StoreError::read(&path, error))? {
            let entry = entry.map_err(|error| StoreError::read(&path, error))?;
            let id = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<RunId>().ok());
            let Some(dir) = id.map(|id| RunDir::new(id, entry.path(), Arc::clone(&self.disk))) else {
                continue;
            };
            // The log is created with the run and never again: its birth orders the runs. Ties fall to the id.
            // Where that file is gone the log itself must do: no run may vanish with a file that can be made again.
            if let Ok(metadata) = fs::metadata(dir.metadata()).or_else(|_| fs::metadata(dir.events())) {
                found.push((metadata.modified().ok(), dir.id().clone(), dir));
            }
        }
        found.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        Ok(found.into_iter().map(|(_, _, dir)| dir).collect())
    }
}

/// Creates a small file unless it exists; a concurrent creation of the same one is no error.
fn create_once(disk: &dyn Disk, path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    match create(disk, path, bytes, mode) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    format!("b3:{text}")
        .parse::<tracegate_core::ids::Digest>()
        .ok()
        .map(tracegate_core::ids::Digest::to_bytes)
}
