//! The proof that a value went through the redactor: a type that only `redact` can make.

use super::findings::Findings;

/// A value from which every secret that the redactor knows has been removed.
///
/// Sinks (log, artifacts, exporters, printers) take this type, so that an unscrubbed byte does not type-check. There is no public
/// constructor, no `From`, no `Deserialize` and no way to change the value inside: whoever needs another value scrubs that one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scrubbed<T> {
    value: T,
    findings: Findings,
}

impl<T> Scrubbed<T> {
    pub(super) const fn new(value: T, findings: Findings) -> Self {
        Self { value, findings }
    }

    /// Returns the scrubbed value.
    #[must_use]
    pub const fn get(&self) -> &T {
        &self.value
    }

    /// Gives up the proof and returns the scrubbed value.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Returns what was replaced, counted by rule.
    #[must_use]
    pub const fn findings(&self) -> &Findings {
        &self.findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two implementations apply to a type that can be deserialised, and then this test does not compile: which one is meant?
    trait OnlyOne<Which> {
        fn holds() -> bool {
            true
        }
    }
    struct Deserialised;
    impl<T> OnlyOne<()> for T {}
    impl<T: serde::de::DeserializeOwned> OnlyOne<Deserialised> for T {}

    #[test]
    fn a_scrubbed_value_cannot_be_deserialised() {
        assert!(<Scrubbed<String> as OnlyOne<_>>::holds());
    }
}
