//! Content-addressed bytes, shared by all runs of a store: written before the event that names them, verified on read.

use crate::{
    disk::{Disk, Keep, replace},
    files::open,
};
use std::{
    collections::BTreeSet,
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};
use tracegate_core::{
    ids::{Digest, Digester},
    payload::{ArtifactRef, Payload},
    redact::Scrubbed,
};

/// Bytes cannot be kept or given back.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// The file system refuses.
    #[error("cannot use artifact `{digest}`: {error}")]
    Io {
        /// Which artifact.
        digest: Digest,
        /// Why.
        error: io::Error,
    },
    /// It is not there.
    #[error("artifact `{0}` is not in the store")]
    Missing(Digest),
    /// Its bytes are not the ones that were put in.
    #[error("artifact `{0}` is damaged: its bytes have another digest or length")]
    Corrupt(Digest),
}

/// The artifacts of a store.
#[derive(Debug, Clone)]
pub struct Artifacts {
    root: PathBuf,
    /// Files named since the last barrier: the log may not be synced before they are.
    unsynced: Arc<Mutex<BTreeSet<PathBuf>>>,
    /// Directories whose own names this process has made durable. Held by a barrier to its end: a second one may not pass before what
    /// the first took is durable. Whoever puts an artifact meanwhile does not wait for it.
    anchored: Arc<Mutex<BTreeSet<PathBuf>>>,
    disk: Arc<dyn Disk>,
}

impl Artifacts {
    pub(crate) fn new(root: PathBuf, disk: Arc<dyn Disk>) -> Self {
        Self {
            root,
            unsynced: Arc::default(),
            anchored: Arc::default(),
            disk,
        }
    }

    fn path(&self, digest: Digest) -> PathBuf {
        let text = digest.to_string();
        let hex = text.strip_prefix("b3:").unwrap_or(&text);
        let (shard, rest) = hex.split_at_checked(2).unwrap_or((hex, ""));
        self.root.join("b3").join(shard).join(rest)
    }

    /// Keeps `bytes` and returns the reference to them; equal bytes are kept once.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn put(&self, bytes: &Scrubbed<Vec<u8>>, media: &str) -> Result<ArtifactRef, ArtifactError> {
        let mut reference = ArtifactRef::describe(bytes.get(), media);
        let fired = bytes.findings().iter();
        reference
            .redactions
            .extend(fired.map(|(rule, count)| (rule.to_owned(), count)));
        let path = self.path(reference.digest);
        self.write(&path, bytes.get())
            .map_err(|error| ArtifactError::Io {
                digest: reference.digest,
                error,
            })?;
        Ok(reference)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        // A file of another length is a torn leftover of a lost machine: it is replaced.
        if !fs::metadata(path).is_ok_and(|found| found.len() == bytes.len() as u64) {
            self.write_new(path, bytes)?;
        }
        // One that was there may come from a process that died before it synced, so it is synced all the same.
        self.unsynced
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(path.to_owned());
        Ok(())
    }

    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let shard = path.parent().unwrap_or(&self.root);
        if !shard.is_dir() {
            for dir in [self.root.as_path(), &self.root.join("b3"), shard] {
                self.disk.make_dir(dir)?;
            }
        }
        replace(self.disk.as_ref(), path, bytes, 0o400, Keep::Whatever)
    }

    /// Makes every artifact put since the last barrier durable, with every directory on the way to it.
    ///
    /// # Errors
    /// When the file system refuses; the log must not be synced then.
    pub fn barrier(&self) -> io::Result<()> {
        let mut anchored = self.anchored.lock().unwrap_or_else(PoisonError::into_inner);
        let unsynced = || self.unsynced.lock().unwrap_or_else(PoisonError::into_inner);
        let files = std::mem::take(&mut *unsynced());
        let done = self.make_durable(&files, &mut anchored);
        if done.is_err() {
            unsynced().extend(files);
        }
        done
    }

    fn make_durable(&self, files: &BTreeSet<PathBuf>, anchored: &mut BTreeSet<PathBuf>) -> io::Result<()> {
        let mut shards = BTreeSet::new();
        for path in files {
            self.disk.sync(path)?;
            shards.extend(path.parent().map(Path::to_owned));
        }
        let mut above = BTreeSet::new();
        for shard in &shards {
            self.disk.sync(shard)?;
            // Whoever made a directory may have died before its name was durable.
            if !anchored.contains(shard) {
                above.extend(shard.ancestors().skip(1).take(3).map(Path::to_owned));
            }
        }
        for dir in above.iter().rev() {
            self.disk.sync(dir)?;
        }
        anchored.extend(shards);
        Ok(())
    }

    /// Returns the bytes that `reference` names.
    ///
    /// # Errors
    /// When they are missing, or not those that were put in.
    pub fn get(&self, reference: &ArtifactRef) -> Result<Vec<u8>, ArtifactError> {
        let digest = reference.digest;
        let mut bytes = Vec::new();
        let file = open(&self.path(digest)).map_err(|error| unopened(digest, error))?;
        // One byte more than the reference says is enough to see that it is not the same.
        let limit = reference.bytes.saturating_add(1);
        file.take(limit)
            .read_to_end(&mut bytes)
            .map_err(|error| ArtifactError::Io { digest, error })?;
        if bytes.len() as u64 != reference.bytes || Digest::of(&bytes) != digest {
            return Err(ArtifactError::Corrupt(digest));
        }
        Ok(bytes)
    }

    /// Checks that `digest` names `bytes` bytes that are there, without keeping them.
    ///
    /// # Errors
    /// As [`Artifacts::get`].
    pub fn verify(&self, digest: Digest, bytes: u64) -> Result<(), ArtifactError> {
        let mut file = open(&self.path(digest)).map_err(|error| unopened(digest, error))?;
        let (mut hash, mut length) = (Digester::default(), 0);
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = file
                .read(&mut buffer)
                .map_err(|error| ArtifactError::Io { digest, error })?;
            hash.update(buffer.get(..read).unwrap_or_default());
            length += read as u64;
            if read == 0 || length > bytes {
                break;
            }
        }
        if length == bytes && hash.finish() == digest {
            Ok(())
        } else {
            Err(ArtifactError::Corrupt(digest))
        }
    }

    /// Returns the whole text of a payload, wherever it is.
    ///
    /// # Errors
    /// As [`Artifacts::get`].
    pub fn text(&self, payload: &Payload) -> Result<String, ArtifactError> {
        match payload {
            Payload::Inline(text) => Ok(text.clone()),
            Payload::Ref(reference) => Ok(String::from_utf8_lossy(&self.get(reference)?).into_owned()),
        }
    }
}

fn unopened(digest: Digest, error: io::Error) -> ArtifactError {
    if error.kind() == io::ErrorKind::NotFound {
        ArtifactError::Missing(digest)
    } else {
        ArtifactError::Io { digest, error }
    }
}
