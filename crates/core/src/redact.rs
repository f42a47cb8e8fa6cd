//! Removes secrets from everything that leaves the process: text, bytes, JSON, records.
//!
//! Three layers look at a text, and their spans are united: registered values in every usual spelling (`known`), shapes of tokens and
//! keys (`rules`, `structural`), values under the name of a secret (`names`). There is no layer for mere entropy: it hides evidence.
//! A secret becomes `[REDACTED:<rule>:<tag>]`. The tag is the beginning of a keyed hash, so equal secrets of one store stay
//! recognisable as equal and nothing else is revealed.
//!
//! What must stay true: the result of a redaction is a fixed point; JSON stays JSON of the same shape; time is linear in the input;
//! and if the engine cannot vouch for its result, the whole payload is replaced.

mod anchors;
mod clean;
mod encodings;
mod engine;
mod findings;
mod grams;
mod json;
mod known;
mod names;
mod rules;
mod scan;
mod scrubbed;
mod structural;
mod value;
mod view;

pub use findings::Findings;
pub use json::Schema;
pub use known::{Registered, secret_env_name};
pub use scrubbed::Scrubbed;

use crate::ids::Digest;
use engine::{Engine, Failed, Layers};
use known::Known;
use serde::{Serialize, de::DeserializeOwned};
use std::{borrow::Cow, fmt, sync::Arc};

/// The key of the tags: 32 secret bytes, one for each store.
#[derive(Clone, PartialEq, Eq)]
pub struct RedactionKey([u8; 32]);

impl RedactionKey {
    /// Wraps the bytes of a store's key file.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for RedactionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedactionKey(..)")
    }
}

/// A record that could not be scrubbed as a whole; nothing of it may be written.
///
/// The texts name the record's type and never repeat a value: the value is what could not be scrubbed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScrubError {
    /// The record has no JSON form.
    #[error("cannot scrub a record of type `{type_name}`: it does not serialise to JSON")]
    ToJson {
        /// The Rust type.
        type_name: &'static str,
    },
    /// A secret stood where the record's type needs something else.
    #[error(
        "cannot scrub a record of type `{type_name}`: without its secrets it does not fit the type any more ({reason})"
    )]
    FromJson {
        /// The Rust type.
        type_name: &'static str,
        /// What the type refused, scrubbed.
        reason: String,
    },
    /// The engine could not vouch for its result.
    #[error("cannot scrub a record of type `{type_name}`: the redaction engine failed")]
    Engine {
        /// The Rust type.
        type_name: &'static str,
    },
}

/// Finds and replaces secrets. Cheap to clone; one for each run.
#[derive(Clone)]
pub struct Redactor {
    engine: Arc<Engine>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

/// What replaces a payload when redaction failed.
const FAILED: &str = "[REDACTED:redactor-error:000000]";

fn failure() -> Findings {
    let mut findings = Findings::empty();
    findings.count(rules::ERROR);
    findings
}

impl Redactor {
    /// Makes a redactor with a store's key and the values that are known to be secret.
    ///
    /// Values shorter than 8 bytes, ordinary words, references to other secrets, plain paths and plain URLs are not looked for
    /// ([`Redactor::refused`] names them); of a URL with userinfo only the password is.
    #[must_use]
    pub fn new(key: RedactionKey, registered: &[Registered]) -> Self {
        let engine = Arc::new(Engine {
            key,
            known: Known::new(registered),
            #[cfg(test)]
            exact: false,
        });
        Self { engine }
    }

    /// Returns the names of registered values that are not looked for, because they would hide ordinary text.
    #[must_use]
    pub fn refused(&self) -> &[String] {
        self.engine.known.refused()
    }

    fn settled(&self, input: &[u8]) -> Result<Option<(Vec<u8>, Findings)>, Failed> {
        self.engine.settle(input, Layers::All)
    }

    /// Redacts a text. Borrowed if there was nothing to replace.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> (Cow<'a, str>, Findings) {
        match self.settled(text.as_bytes()) {
            Ok(None) => (Cow::Borrowed(text), Findings::empty()),
            Ok(Some((redacted, findings))) => match String::from_utf8(redacted) {
                Ok(redacted) => (Cow::Owned(redacted), findings),
                Err(_) => (Cow::Owned(FAILED.to_owned()), failure()),
            },
            Err(Failed) => (Cow::Owned(FAILED.to_owned()), failure()),
        }
    }

    /// Redacts bytes of any encoding that contains ASCII, UTF-16 included. Borrowed if there was nothing to replace.
    #[must_use]
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> (Cow<'a, [u8]>, Findings) {
        match self.settled(bytes) {
            Ok(None) => (Cow::Borrowed(bytes), Findings::empty()),
            Ok(Some((redacted, findings))) => (Cow::Owned(redacted), findings),
            Err(Failed) => (Cow::Owned(FAILED.as_bytes().to_vec()), failure()),
        }
    }

    /// Redacts the strings of a JSON value in place: leaves, leaves under the name of a secret, keys that are secrets themselves,
    /// JSON inside strings, and numbers that equal a registered value (they become strings).
    pub fn json(&self, value: &mut serde_json::Value) -> Findings {
        json::redact(&self.engine, value, None).unwrap_or_else(|Failed| {
            *value = serde_json::Value::String(FAILED.to_owned());
            failure()
        })
    }

    /// Redacts a text and vouches for it.
    #[must_use]
    pub fn scrub_text(&self, text: String) -> Scrubbed<String> {
        let (redacted, findings) = match self.text(&text) {
            (Cow::Borrowed(_), findings) => (None, findings),
            (Cow::Owned(redacted), findings) => (Some(redacted), findings),
        };
        Scrubbed::new(redacted.unwrap_or(text), findings)
    }

    /// Redacts bytes and vouches for them.
    #[must_use]
    pub fn scrub_bytes(&self, bytes: Vec<u8>) -> Scrubbed<Vec<u8>> {
        let (redacted, findings) = match self.bytes(&bytes) {
            (Cow::Borrowed(_), findings) => (None, findings),
            (Cow::Owned(redacted), findings) => (Some(redacted), findings),
        };
        Scrubbed::new(redacted.unwrap_or(bytes), findings)
    }

    /// Redacts a JSON value and vouches for it.
    #[must_use]
    pub fn scrub_json(&self, mut value: serde_json::Value) -> Scrubbed<serde_json::Value> {
        let findings = self.json(&mut value);
        Scrubbed::new(value, findings)
    }

    /// Returns a digest of bytes that redaction has not seen, such as a file of the workspace.
    ///
    /// It depends on the store's key: an unkeyed one would let anybody test guesses of a secret against the log.
    #[must_use]
    pub fn digest(&self, bytes: &[u8]) -> Digest {
        Digest::from_bytes(*blake3::keyed_hash(self.engine.key.bytes(), bytes).as_bytes())
    }

    /// Tells whether `text` holds a placeholder: writing it to a file would destroy the secret that it stands for.
    #[must_use]
    pub fn holds_placeholder(text: &str) -> bool {
        let bytes = text.as_bytes();
        let starts = text
            .match_indices('[')
            .map(|(at, _)| bytes.get(at..).unwrap_or_default());
        starts
            .into_iter()
            .any(|rest| view::placeholder(rest, rules::is_rule) > 0)
    }

    /// Scrubs a record through its JSON form. Fields that `schema` keeps, and numbers and keys outside its free parts, are ours
    /// and stay as they are.
    ///
    /// What a record does not serialise is not looked at, so it must serialise all of it.
    ///
    /// # Errors
    /// If the record does not serialise, or does not fit its type any more without its secrets.
    pub fn scrub<T: Serialize + DeserializeOwned + Clone>(
        &self,
        value: &T,
        schema: &Schema,
    ) -> Result<Scrubbed<T>, ScrubError> {
        let type_name = std::any::type_name::<T>();
        let text = serde_json::to_string(value).map_err(|_| ScrubError::ToJson { type_name })?;
        let clean = clean::is_clean(&self.engine, &text, json::Place::top(Some(schema)))
            .map_err(|Failed| ScrubError::Engine { type_name })?;
        // A line feed outside strings comes from raw JSON; the way through the value takes it out.
        if clean && !text.contains('\n') {
            return Ok(Scrubbed::new(value.clone(), Findings::empty()));
        }
        self.scrub_as_value(value, schema)
    }

    /// Scrubs a record by taking it apart and building it anew.
    fn scrub_as_value<T: Serialize + DeserializeOwned>(
        &self,
        value: &T,
        schema: &Schema,
    ) -> Result<Scrubbed<T>, ScrubError> {
        let type_name = std::any::type_name::<T>();
        let mut json = serde_json::to_value(value).map_err(|_| ScrubError::ToJson { type_name })?;
        let findings = json::redact(&self.engine, &mut json, Some(schema))
            .map_err(|Failed| ScrubError::Engine { type_name })?;
        let scrubbed = serde_json::from_value(json).map_err(|error| ScrubError::FromJson {
            type_name,
            reason: self.text(&error.to_string()).0.into_owned(),
        })?;
        Ok(Scrubbed::new(scrubbed, findings))
    }
}

#[cfg(test)]
mod exact;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
