//! JSON in which every value knows where it stands, so that an error in a case can name line and column.

use super::error::{CaseError, Place, Problem};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// The text that is being read.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

/// A value of that text, read no further than its own level.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    source: Source<'a>,
    raw: &'a RawValue,
}

/// A key of an object and its value.
pub(super) struct Member<'a> {
    pub(super) key: Cow<'a, str>,
    key_at: usize,
    pub(super) value: Node<'a>,
}

impl<'a> Source<'a> {
    /// Checks the syntax of all of `text` and returns its value.
    pub(super) fn parse(file: &'a str, text: &'a str) -> Result<Node<'a>, CaseError> {
        let source = Self { file, text };
        let raw = serde_json::from_str::<&RawValue>(text).map_err(|error| {
            // serde_json appends the position that the error shows anyway.
            let said = error.to_string();
            let what = said.split(" at line ").next().unwrap_or_default().to_owned();
            CaseError::new(
                file,
                Place::of(error.line(), error.column()),
                Problem::Syntax(what),
            )
        })?;
        Ok(Node { source, raw })
    }

    /// Returns how far into the text `part` begins. A part that is no slice of it (an unescaped copy) counts as the end.
    fn offset(self, part: &str) -> usize {
        let base = self.text.as_ptr().addr();
        part.as_ptr().addr().saturating_sub(base).min(self.text.len())
    }

    fn place(self, offset: usize) -> Place {
        let before = self.text.get(..offset).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        Place::of(line, column)
    }
}

impl<'a> Node<'a> {
    /// Builds an error about this value.
    pub(super) fn error(self, problem: Problem) -> CaseError {
        let at = self.source.offset(self.raw.get());
        CaseError::new(self.source.file, self.source.place(at), problem)
    }

    fn wrong_type(self, wanted: &'static str) -> CaseError {
        let found = match self.raw.get().bytes().next() {
            Some(b'{') => "an object",
            Some(b'[') => "an array",
            Some(b'"') => "a string",
            Some(b't' | b'f') => "true or false",
            Some(b'n') => "null",
            Some(_) | None => "a number",
        };
        self.error(Problem::Type { wanted, found })
    }

    fn read<T: Deserialize<'a>>(self, wanted: &'static str) -> Result<T, CaseError> {
        serde_json::from_str(self.raw.get()).map_err(|_| self.wrong_type(wanted))
    }

    /// Reads a string. One with half a surrogate pair is none.
    pub(super) fn string(self) -> Result<String, CaseError> {
        self.read("a string")
    }

    /// Reads `true` or `false`.
    pub(super) fn boolean(self) -> Result<bool, CaseError> {
        self.read("true or false")
    }

    /// Reads a number that is at least `min`.
    pub(super) fn number(self, min: f64) -> Result<f64, CaseError> {
        let value: f64 = self.read("a number")?;
        if value < min {
            return Err(self.error(Problem::Range(format!("`{value}` is less than {min}"))));
        }
        Ok(value)
    }

    /// Reads an integer between `min` and `max`; as in JSON Schema, `8.0` is one.
    pub(super) fn integer(self, min: u64, max: u64) -> Result<u64, CaseError> {
        let text = self.raw.get();
        let value = match text.parse::<u64>() {
            Ok(value) => value,
            Err(_) => {
                let float: f64 = self.read("an integer")?;
                if float < 0.0 {
                    return Err(self.error(Problem::Range(format!("`{text}` is less than {min}"))));
                }
                // A whole float prints as an integer; anything else, or one beyond u64, does not parse.
                format!("{}", float.abs())
                    .parse()
                    .map_err(|_| self.wrong_type("an integer"))?
            }
        };
        if value < min {
            return Err(self.error(Problem::Range(format!("`{text}` is less than {min}"))));
        }
        if value > max {
            return Err(self.error(Problem::Range(format!("`{text}` is more than {max}"))));
        }
        Ok(value)
    }

    /// Reads a value that this version does not look into.
    pub(super) fn free(self) -> Result<serde_json::Value, CaseError> {
        self.read("JSON of at most 127 levels")
    }

    /// Reads the elements of an array.
    pub(super) fn array(self) -> Result<Vec<Self>, CaseError> {
        if !self.raw.get().starts_with('[') {
            return Err(self.wrong_type("an array"));
        }
        let Elements(raw) = self.read("an array")?;
        let source = self.source;
        Ok(raw.into_iter().map(|raw| Self { source, raw }).collect())
    }

    /// Reads the members of an object; a key that stands there twice is an error, because one of the two would be ignored.
    pub(super) fn object(self) -> Result<Vec<Member<'a>>, CaseError> {
        if !self.raw.get().starts_with('{') {
            return Err(self.wrong_type("an object"));
        }
        let Members(raw) = self.read("an object")?;
        let source = self.source;
        let mut members: Vec<Member<'a>> = Vec::with_capacity(raw.len());
        let mut seen = std::collections::BTreeSet::new();
        for (key, raw) in raw {
            let at = match &key {
                // The opening quote belongs to the key.
                Cow::Borrowed(text) => source.offset(text).saturating_sub(1),
                Cow::Owned(_) => source.offset(raw.get()),
            };
            if !seen.insert(key.clone()) {
                let problem = Problem::DuplicateKey(key.into_owned());
                return Err(CaseError::new(source.file, source.place(at), problem));
            }
            let value = Node { source, raw };
            members.push(Member {
                key,
                key_at: at,
                value,
            });
        }
        Ok(members)
    }
}

impl Member<'_> {
    /// Builds an error about the key.
    pub(super) fn error(&self, problem: Problem) -> CaseError {
        let source = self.value.source;
        CaseError::new(source.file, source.place(self.key_at), problem)
    }
}

struct Elements<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Elements<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shape;

        impl<'de> Visitor<'de> for Shape {
            type Value = Vec<&'de RawValue>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = seq.next_element()? {
                    elements.push(element);
                }
                Ok(elements)
            }
        }

        deserializer.deserialize_seq(Shape).map(Elements)
    }
}

struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// A key that stays a slice of the text where it holds no escapes; plain `Cow` would always copy.
struct Key<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Key<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shape;

        impl<'de> Visitor<'de> for Shape {
            type Value = Cow<'de, str>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(text))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(text.to_owned()))
            }
        }

        deserializer.deserialize_str(Shape).map(Key)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Shape;

        impl<'de> Visitor<'de> for Shape {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Key(key), value)) = map.next_entry::<Key<'de>, _>()? {
                    members.push((key, value));
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Shape).map(Members)
    }
}
