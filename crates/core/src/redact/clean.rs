//! Reads the JSON text of a record to tell whether there is certainly nothing to redact in it, without building its value.
//!
//! Follows the walk of `json` step by step. Where following it exactly is not worth the code, the answer is "perhaps", and the walk
//! itself decides. Wrong JSON may get any answer: it is no record, and inside a string it is looked at as text as well.

use super::engine::{Engine, Failed, Layers};
use super::json::{DEEPEST, NESTED, Place};
use super::names;
use memchr::memchr2;
use serde::de::IgnoredAny;
use serde_json::Number;
use std::borrow::Cow;

/// Why reading ended early.
enum Stop {
    /// Something may have to be redacted.
    Perhaps,
    /// The engine cannot vouch for its result.
    Failed,
}

impl From<Failed> for Stop {
    fn from(_: Failed) -> Self {
        Self::Failed
    }
}

/// Says whether redacting the value of this text would certainly change nothing and find nothing.
pub(super) fn is_clean(engine: &Engine, text: &str, place: Place<'_>) -> Result<bool, Failed> {
    let mut reader = Reader { engine, text, at: 0 };
    match reader.value(place) {
        Ok(()) => Ok(true),
        Err(Stop::Perhaps) => Ok(false),
        Err(Stop::Failed) => Err(Failed),
    }
}

struct Reader<'a> {
    engine: &'a Engine,
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// Skips white space and returns the byte after it, NUL at the end.
    fn peek(&mut self) -> u8 {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(byte) => return *byte,
                None => return 0,
            }
        }
    }

    /// Skips `byte` if it comes next.
    fn skip(&mut self, byte: u8) -> bool {
        let found = self.peek() == byte;
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, place: Place<'_>) -> Result<(), Stop> {
        if place.depth > DEEPEST {
            return Err(Stop::Perhaps);
        }
        let below = Place {
            depth: place.depth + 1,
            ..place
        };
        match self.peek() {
            b'"' => {
                let text = self.string()?;
                self.leaf(&text, place)
            }
            b'{' => self.object(below),
            b'[' => {
                self.at += 1;
                if self.skip(b']') {
                    return Ok(());
                }
                loop {
                    self.value(below)?;
                    if !self.skip(b',') {
                        return self.skip(b']').then_some(()).ok_or(Stop::Perhaps);
                    }
                }
            }
            _ => {
                let word = self.word();
                if place.schema.is_none() && !matches!(word, "true" | "false" | "null") {
                    let number: Number = serde_json::from_str(word).map_err(|_| Stop::Perhaps)?;
                    if self.engine.known.exactly(&number.to_string()).is_some() {
                        return Err(Stop::Perhaps);
                    }
                }
                Ok(())
            }
        }
    }

    /// Reads a number, `true`, `false` or `null`.
    fn word(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest
            .bytes()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
            .count();
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    /// Reads a string.
    fn string(&mut self) -> Result<Cow<'a, str>, Stop> {
        let start = self.at;
        let mut at = start + 1;
        let mut escaped = false;
        loop {
            let rest = self.text.as_bytes().get(at..).unwrap_or_default();
            let step = memchr2(b'"', b'\\', rest).ok_or(Stop::Perhaps)?;
            if rest.get(step) == Some(&b'"') {
                self.at = at + step + 1;
                break;
            }
            escaped = true;
            at += step + 2;
        }
        if escaped {
            let whole = self.text.get(start..self.at).ok_or(Stop::Perhaps)?;
            return serde_json::from_str(whole)
                .map(Cow::Owned)
                .map_err(|_| Stop::Perhaps);
        }
        self.text
            .get(start + 1..self.at - 1)
            .map(Cow::Borrowed)
            .ok_or(Stop::Perhaps)
    }

    fn object(&mut self, place: Place<'_>) -> Result<(), Stop> {
        self.at += 1;
        if self.skip(b'}') {
            return Ok(());
        }
        loop {
            if self.peek() != b'"' {
                return Err(Stop::Perhaps);
            }
            let key = self.string()?;
            if !self.skip(b':') {
                return Err(Stop::Perhaps);
            }
            self.field(&key, place)?;
            if !self.skip(b',') {
                return self.skip(b'}').then_some(()).ok_or(Stop::Perhaps);
            }
        }
    }

    fn field(&mut self, key: &str, place: Place<'_>) -> Result<(), Stop> {
        let first = self.peek();
        let text = if first == b'"' { Some(self.string()?) } else { None };
        // The name of a secret may stand in the field beside its value.
        let named = matches!(key, "name" | "key" | "Name" | "Key");
        if named && text.as_deref().and_then(names::sensitive).is_some() {
            return Err(Stop::Perhaps);
        }
        let kept = place.schema.is_some_and(|schema| (schema.keep)(key));
        // Lists under a kept key are looked at all the same: they may hold records.
        if kept && first != b'[' && first != b'{' {
            if text.is_none() {
                self.word();
            }
            return Ok(());
        }
        if text.is_some() && names::sensitive(key).is_some() {
            return Err(Stop::Perhaps);
        }
        if place.schema.is_none()
            && self
                .engine
                .settle(key.as_bytes(), Layers::WithoutNames)?
                .is_some()
        {
            return Err(Stop::Perhaps);
        }
        let free = place.schema.is_some_and(|schema| (schema.free)(key));
        let inside = Place {
            schema: place.schema.filter(|_| !free),
            ..place
        };
        match text {
            Some(text) => self.leaf(&text, inside),
            None => self.value(inside),
        }
    }

    fn leaf(&self, text: &str, place: Place<'_>) -> Result<(), Stop> {
        if place.nested < NESTED
            && text.trim_start().starts_with(['{', '['])
            && serde_json::from_str::<IgnoredAny>(text).is_ok()
        {
            let inside = Place {
                depth: place.depth,
                nested: place.nested + 1,
                schema: None,
            };
            if !is_clean(self.engine, text, inside)? {
                return Err(Stop::Perhaps);
            }
        }
        match self.engine.settle(text.as_bytes(), Layers::All)? {
            None => Ok(()),
            Some(_) => Err(Stop::Perhaps),
        }
    }
}
