//! How far each receiver has taken a run's spans, and what it would not take: the files below the run's `export/`.
#![expect(clippy::disallowed_methods, reason = "this is the disk")]

use crate::{
    disk::{Keep, replace},
    files::{Head, read_small},
    layout::RunDir,
    store::StoreError,
};
use serde::{Deserialize, Serialize};
use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    path::PathBuf,
};
use tracegate_core::{ids::Digest, redact::Scrubbed};

/// The longest readable part of a destination's name, in bytes.
const READABLE: usize = 80;

/// A receiver of spans as a part of a file's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Destination(String);

impl Destination {
    /// Names the receiver at `url`: what is readable of it, and eight digits of its digest, so that no two share a file.
    #[must_use]
    pub fn at(url: &str) -> Self {
        let (_, address) = url.split_once("://").unwrap_or(("", url));
        let mut name = String::new();
        for c in address.chars() {
            let plain = c.is_ascii_alphanumeric() || c == '.';
            if plain && name.len() < READABLE {
                name.push(c.to_ascii_lowercase());
            } else if !name.is_empty() && !name.ends_with('-') && name.len() < READABLE {
                name.push('-');
            }
        }
        let digest = Digest::of(url.as_bytes()).to_string();
        let digest: String = digest.chars().skip_while(|c| *c != ':').skip(1).take(8).collect();
        // Nothing of a name begins with a dot: it would be hidden, or a directory.
        let name = name.trim_matches(['-', '.']);
        Self(format!("{name}-{digest}").trim_start_matches('-').to_owned())
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Up to where a receiver has everything that it will ever take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The event that ended the last span of them, and the chain after it.
    #[serde(flatten)]
    pub head: Head,
    /// How many spans end up to there.
    pub spans: u64,
}

impl RunDir {
    /// How far `to` has taken the run's spans.
    #[must_use]
    pub fn cursor(&self, to: &Destination) -> PathBuf {
        self.path().join("export").join(format!("{}.cursor", to.0))
    }

    /// What `to` would not take.
    #[must_use]
    pub fn dead_letters(&self, to: &Destination) -> PathBuf {
        self.path().join("export").join(format!("{}.dead.jsonl", to.0))
    }

    /// Reads how far `to` has come; none if nothing was sent, or if the file says something else: sending again does no harm.
    #[must_use]
    pub fn read_cursor(&self, to: &Destination) -> Option<Cursor> {
        let bytes = read_small(&self.cursor(to)).ok()??;
        serde_json::from_slice(&bytes).ok()
    }

    /// Replaces the cursor of `to`.
    ///
    /// # Errors
    /// When it cannot be written; then the one before stays.
    pub fn write_cursor(&self, to: &Destination, cursor: Cursor) -> Result<(), StoreError> {
        let path = self.cursor(to);
        let write = || {
            let mut bytes = serde_json::to_vec(&cursor)?;
            bytes.push(b'\n');
            self.make_export_dir()?;
            replace(self.disk(), &path, &bytes, 0o600, Keep::Whatever)
        };
        write().map_err(|error| StoreError::write(&path, error))
    }

    /// Adds a line about a span that `to` would not take, durably: the cursor passes over it.
    ///
    /// # Errors
    /// When it cannot be written; then the cursor may not move.
    pub fn add_dead_letter(&self, to: &Destination, line: &Scrubbed<String>) -> Result<(), StoreError> {
        let path = self.dead_letters(to);
        let write = || {
            self.make_export_dir()?;
            let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
            file.write_all(format!("{}\n", line.get().trim_end_matches('\n')).as_bytes())?;
            file.sync_data()
        };
        write().map_err(|error| StoreError::write(&path, error))
    }

    fn make_export_dir(&self) -> io::Result<()> {
        self.disk().make_dir(&self.path().join("export"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destinations_name_is_readable_safe_and_its_own() {
        let check = |url: &str, wanted: &str| {
            let name = Destination::at(url).0;
            let (readable, digest) = name.rsplit_once('-').unwrap_or(("", &name));
            assert_eq!((readable, digest.len()), (wanted, 8), "{url}");
            assert!(digest.chars().all(|c| c.is_ascii_hexdigit()), "{name}");
        };
        check("http://localhost:4318/v1/traces", "localhost-4318-v1-traces");
        check("https://[::1]:4317", "1-4317");
        check("http://../../etc/passwd", "etc-passwd");
        check("http://ä", "");
        check(&format!("http://{}", "a".repeat(300)), &"a".repeat(READABLE));
        assert_ne!(Destination::at("http://a:1"), Destination::at("https://a:1"));
        assert_ne!(Destination::at("http://a-1"), Destination::at("http://a:1"));
    }
}
