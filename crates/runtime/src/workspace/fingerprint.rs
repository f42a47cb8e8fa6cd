//! How the workspace is at a moment: every file that git does not ignore, by digest, so that "did this change anything" is a comparison.

pub(super) mod tree;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{collections::BTreeMap, sync::Arc};
use tracegate_core::{
    fact::tool::{SideEffect, SideEffectType, WorkspaceState},
    ids::Digest,
    payload::encoded_len,
    validation::Weight,
};
use tree::Folder;

/// How many folders a path can have: half of the bytes that the system takes.
const DEEPEST: usize = 2048;
/// How many changed paths an event lists.
const LISTED: usize = 256;
/// How many bytes such a list may take.
const LISTED_BYTES: usize = 24 * 1024;

/// The files of a workspace and their digests, and the commit that is checked out. A copy shares what it is a copy of.
#[derive(Debug, Clone, Default)]
pub struct Fingerprint {
    pub(super) files: Arc<Folder>,
    pub(super) head: Option<String>,
}

impl PartialEq for Fingerprint {
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest() && self.head == other.head
    }
}

impl Eq for Fingerprint {}

/// How a fingerprint lies beside the log.
#[derive(Serialize, Deserialize)]
struct Written {
    files: BTreeMap<String, Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head: Option<String>,
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut files = BTreeMap::new();
        let none = Folder::default();
        self.files.differences(&none, |path, _, digest| {
            files.extend(digest.map(|digest| (path, digest)));
        });
        let head = self.head.clone();
        Written { files, head }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { files, head } = Written::deserialize(deserializer)?;
        if files.keys().any(|path| path.matches('/').count() > DEEPEST) {
            return Err(D::Error::custom("a path is deeper than any the system takes"));
        }
        let files = files.iter().map(|(path, digest)| (path.as_str(), *digest));
        let files = Arc::new(Folder::from_paths(files));
        Ok(Self { files, head })
    }
}

impl Fingerprint {
    /// Returns the digest over all paths and contents: equal digests, equal files.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.files.digest()
    }

    /// Returns the digest of a file, if it is there.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<Digest> {
        self.files.file(path)
    }

    /// Returns what changed since `before`, by path, as far as an event can list it: `listed`.
    #[must_use]
    pub fn effects_since(&self, before: &Self) -> Vec<SideEffect> {
        // Two digests and the names of four fields.
        listed(self.changes_since(before), |effect| {
            (effect.relative_path.as_str(), 240)
        })
    }

    /// Returns what changed since `before`, by path.
    #[must_use]
    pub fn changes_since(&self, before: &Self) -> Vec<SideEffect> {
        let mut changes = Vec::new();
        self.files.differences(&before.files, |path, before, after| {
            let effect = if after.is_some() {
                SideEffectType::WriteFile
            } else {
                SideEffectType::DeleteFile
            };
            changes.push(SideEffect {
                effect,
                relative_path: path,
                before,
                after,
            });
        });
        changes
    }

    /// Describes the workspace for an event, with what changed since `before`.
    #[must_use]
    pub fn state_since(&self, before: Option<&Self>) -> WorkspaceState {
        let changed = before.map_or_else(Vec::new, |before| self.changes_since(before));
        let changed_total = changed.len() as u64;
        let changed = listed(changed, |effect| (effect.relative_path.as_str(), 3));
        WorkspaceState {
            digest: self.digest(),
            files: self.files.files(),
            head: self.head.clone(),
            changed_total,
            changed: changed.into_iter().map(|effect| effect.relative_path).collect(),
        }
    }
}

/// Keeps what an event can hold of `items`, which are sorted by path: the ones that weigh most as evidence, in their order.
///
/// `measure` returns an item's path and how many bytes it takes beside that.
fn listed<T>(items: Vec<T>, measure: impl Fn(&T) -> (&str, usize)) -> Vec<T> {
    let mut ranked: Vec<(usize, T)> = items.into_iter().enumerate().collect();
    ranked.sort_by_key(|(index, item)| (Weight::of(measure(item).0), *index));
    let mut bytes = 0;
    let fits = ranked.iter().take(LISTED).take_while(|(_, item)| {
        let (path, beside) = measure(item);
        bytes += encoded_len(path) + beside;
        bytes <= LISTED_BYTES
    });
    let count = fits.count();
    ranked.truncate(count);
    ranked.sort_by_key(|(index, _)| *index);
    ranked.into_iter().map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_cut_keeps_what_weighs_as_evidence() {
        let mut paths: Vec<String> = (0..500)
            .map(|index| format!("coverage/{index:03}.html"))
            .collect();
        paths.extend(["docs/a.md", "src/a.js", "src/a.test.js"].map(str::to_owned));
        let kept = listed(paths.clone(), |path| (path.as_str(), 3));
        assert_eq!(kept.len(), LISTED);
        assert_eq!(kept.get(LISTED - 3..).unwrap(), paths.get(500..).unwrap());
        let long: Vec<String> = (0..500)
            .map(|index| format!("{}{index:03}", "\u{1}".repeat(100)))
            .collect();
        assert_eq!(listed(long, |path| (path.as_str(), 3)).len(), LISTED_BYTES / 608);
    }
}
