//! Closed-key objects and the typed values below their keys: what every part of a case is read with.

use super::{
    error::{CaseError, Problem, nearest},
    json::{Member, Node},
    pattern::{AnswerPattern, PathPattern},
};
use std::collections::{BTreeMap, BTreeSet};

/// Whether an object may hold keys that begin with `x-`, which mean nothing to us.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extras {
    Free,
    Closed,
}

/// An object whose keys were all known.
pub(super) struct Fields<'a> {
    node: Node<'a>,
    object: &'static str,
    members: Vec<Member<'a>>,
}

impl<'a> Fields<'a> {
    /// Reads `node` as an object named `object` in errors.
    pub(super) fn read(
        node: Node<'a>,
        object: &'static str,
        known: &'static [&'static str],
        extras: Extras,
    ) -> Result<Self, CaseError> {
        let members = node.object()?;
        for member in &members {
            let free = extras == Extras::Free && member.key.starts_with("x-");
            if !free && !known.contains(&member.key.as_ref()) {
                return Err(member.error(Problem::UnknownKey {
                    key: member.key.clone().into_owned(),
                    object,
                    meant: nearest(&member.key, known),
                    known,
                }));
            }
        }
        Ok(Self {
            node,
            object,
            members,
        })
    }

    /// Returns the value below `key`.
    pub(super) fn get(&self, key: &str) -> Option<Node<'a>> {
        self.members
            .iter()
            .find(|member| member.key == key)
            .map(|member| member.value)
    }

    /// Returns the value below `key`, which must be there.
    pub(super) fn need(&self, key: &'static str) -> Result<Node<'a>, CaseError> {
        self.get(key).ok_or_else(|| {
            self.node.error(Problem::Missing {
                key,
                object: self.object,
            })
        })
    }

    /// Reads the value below `key`, if it is there.
    pub(super) fn read_with<T>(
        &self,
        key: &str,
        read: impl FnOnce(Node<'a>) -> Result<T, CaseError>,
    ) -> Result<Option<T>, CaseError> {
        self.get(key).map(read).transpose()
    }

    /// Reads a list below `key`; no key, an empty list.
    pub(super) fn list<T>(
        &self,
        key: &str,
        read: impl FnOnce(Node<'a>) -> Result<Vec<T>, CaseError>,
    ) -> Result<Vec<T>, CaseError> {
        Ok(self.read_with(key, read)?.unwrap_or_default())
    }

    /// Returns what stands below the `x-` keys.
    pub(super) fn extras(&self) -> Result<BTreeMap<String, serde_json::Value>, CaseError> {
        let extras = self.members.iter().filter(|member| member.key.starts_with("x-"));
        extras
            .map(|member| Ok((member.key.clone().into_owned(), member.value.free()?)))
            .collect()
    }

    /// Returns the keys in the order of the text.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.key.as_ref())
    }
}

/// Reads a text that is not empty.
pub(super) fn filled(node: Node<'_>) -> Result<String, CaseError> {
    let text = node.string()?;
    if text.is_empty() {
        return Err(node.error(Problem::Empty));
    }
    Ok(text)
}

/// Reads an array of texts.
pub(super) fn texts(node: Node<'_>) -> Result<Vec<String>, CaseError> {
    node.array()?.into_iter().map(Node::string).collect()
}

/// Reads an array of texts that are different.
pub(super) fn different(node: Node<'_>) -> Result<Vec<String>, CaseError> {
    unique(node, Node::string)
}

/// Reads an array of texts that are different and not empty.
pub(super) fn names(node: Node<'_>) -> Result<Vec<String>, CaseError> {
    unique(node, filled)
}

fn unique<'a>(
    node: Node<'a>,
    read: impl Fn(Node<'a>) -> Result<String, CaseError>,
) -> Result<Vec<String>, CaseError> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for element in node.array()? {
        let text = read(element)?;
        if !seen.insert(text.clone()) {
            return Err(element.error(Problem::DuplicateElement(text)));
        }
        all.push(text);
    }
    Ok(all)
}

/// Reads one path pattern.
pub(super) fn path(node: Node<'_>) -> Result<PathPattern, CaseError> {
    let text = node.string()?;
    PathPattern::parse(&text).map_err(|why| {
        node.error(Problem::Pattern {
            text,
            wanted: "a path pattern",
            why,
        })
    })
}

/// Reads an array of path patterns that are different and not empty.
pub(super) fn paths(node: Node<'_>) -> Result<Vec<PathPattern>, CaseError> {
    names(node)?;
    node.array()?.into_iter().map(path).collect()
}

/// Reads an array of regular expressions that are different and not empty.
pub(super) fn expressions(node: Node<'_>) -> Result<Vec<AnswerPattern>, CaseError> {
    names(node)?;
    let compile = |element: Node<'_>| {
        let text = element.string()?;
        AnswerPattern::parse(&text).map_err(|why| {
            element.error(Problem::Pattern {
                text,
                wanted: "a regular expression",
                why,
            })
        })
    };
    node.array()?.into_iter().map(compile).collect()
}

/// Reads an object from any key to a text.
pub(super) fn text_map(node: Node<'_>) -> Result<BTreeMap<String, String>, CaseError> {
    node.object()?
        .into_iter()
        .map(|member| Ok((member.key.into_owned(), member.value.string()?)))
        .collect()
}

/// Reads a text that has a pattern.
pub(super) fn spelled(
    node: Node<'_>,
    wanted: &'static str,
    fits: impl FnOnce(&str) -> bool,
) -> Result<String, CaseError> {
    let value = node.string()?;
    if fits(&value) {
        Ok(value)
    } else {
        Err(node.error(Problem::Spelling { value, wanted }))
    }
}

/// Declares an enum that is spelled in cases, with the reading of it.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$row:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$row])* $variant,)*
        }

        impl $name {
            /// Every spelling.
            pub const SPELLINGS: &'static [&'static str] = &[$($text),*];

            /// Returns the spelling.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            pub(crate) fn from_text(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        impl $crate::case::fields::Choice for $name {
            const KNOWN: &'static [&'static str] = Self::SPELLINGS;

            fn of(text: &str) -> Option<Self> {
                Self::from_text(text)
            }
        }
    };
}
pub(super) use choice;

/// A value of a closed list.
pub(super) trait Choice: Sized {
    const KNOWN: &'static [&'static str];

    fn of(text: &str) -> Option<Self>;
}

/// Reads a value of the closed list below `key`.
pub(super) fn chosen<T: Choice>(node: Node<'_>, key: &'static str) -> Result<T, CaseError> {
    let value = node.string()?;
    T::of(&value).ok_or_else(|| not_chosen(node, value, key, T::KNOWN))
}

/// Builds the error about a value that the closed list below `key` does not hold.
pub(super) fn not_chosen(
    node: Node<'_>,
    value: String,
    key: &'static str,
    known: &'static [&'static str],
) -> CaseError {
    node.error(Problem::Choice {
        meant: nearest(&value, known),
        value,
        key,
        known,
    })
}
