//! What a redaction replaced: a count for each rule, never the secret.

use serde::Serialize;
use std::collections::BTreeMap;

/// How many placeholders each rule left behind, by rule id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Findings(BTreeMap<&'static str, u32>);

impl Findings {
    /// Returns the findings of a text that held no secret.
    #[must_use]
    pub const fn empty() -> Self {
        Self(BTreeMap::new())
    }

    /// Says whether nothing was replaced.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of replacements, all rules together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().copied().map(u64::from).sum()
    }

    /// Goes through rule ids and counts, in the order of the ids.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u32)> + '_ {
        self.0.iter().map(|(rule, count)| (*rule, *count))
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (rule, count) in other.iter() {
            let sum = self.0.entry(rule).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    pub(super) fn count(&mut self, rule: &'static str) {
        let sum = self.0.entry(rule).or_default();
        *sum = sum.saturating_add(1);
    }
}
