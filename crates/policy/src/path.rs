//! Where a requested path points, told from its letters alone; links are the runtime's to resolve.

use crate::words::is_invisible;
use serde::{Serialize, Serializer};
use std::fmt;

/// Longest path that is accepted, in bytes (`PATH_MAX` of Linux).
pub const MAX_PATH: usize = 4096;

/// A path beneath the workspace: relative, `/` between names, no `.`, `..` or empty name; the root is `.`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath(String);

impl WorkspacePath {
    /// Returns the normalised spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Is this the workspace itself?
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0 == "."
    }

    /// Does this path lie in the tree of `root`, or is it `root`?
    #[must_use]
    pub fn is_within(&self, root: &str) -> bool {
        root == "."
            || self.0 == root
            || self
                .0
                .strip_prefix(root)
                .is_some_and(|rest| rest.starts_with('/'))
    }
}

/// A requested path after lexical reading.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// Beneath the workspace (`src/../secrets/k` has become `secrets/k`).
    Inside(WorkspacePath),
    /// Absolute, a URL, or escaping through `..`.
    Outside {
        /// The path as requested.
        text: String,
    },
    /// Starts with `~`: the caller meant a home directory, and no tool expands it.
    Home {
        /// The path as requested.
        text: String,
    },
    /// No name that a tool accepts.
    Invalid {
        /// The path as requested.
        text: String,
        /// The reason, as the end of a sentence.
        why: &'static str,
    },
}

impl Target {
    /// Reads a path; every text has a target.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let owned = || text.to_owned();
        if let Some(why) = refusal(text) {
            return Self::Invalid { text: owned(), why };
        }
        if text.starts_with('~') {
            return Self::Home { text: owned() };
        }
        let scheme = text.split_once("://").is_some_and(|(scheme, _)| {
            !scheme.is_empty()
                && scheme
                    .chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || letter == '+')
        });
        if text.starts_with('/') || scheme {
            return Self::Outside { text: owned() };
        }
        let mut names: Vec<&str> = Vec::new();
        for name in text.split('/') {
            match name {
                "" | "." => {}
                ".." => {
                    if names.pop().is_none() {
                        return Self::Outside { text: owned() };
                    }
                }
                name => names.push(name),
            }
        }
        let joined = if names.is_empty() {
            ".".to_owned()
        } else {
            names.join("/")
        };
        // `./~` and `a/../C:/x` are what they look like once they are written plainly.
        if joined.starts_with('~') {
            return Self::Home { text: owned() };
        }
        if let Some(why) = refusal(&joined) {
            return Self::Invalid { text: owned(), why };
        }
        Self::Inside(WorkspacePath(joined))
    }

    /// Returns the normalised path, or the path as requested where it is not inside.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Inside(path) => path.as_str(),
            Self::Outside { text } | Self::Home { text } | Self::Invalid { text, .. } => text,
        }
    }

    /// Returns the path of `name` in this folder, for what is copied or moved into it.
    #[must_use]
    pub(crate) fn child(&self, name: &str) -> Self {
        Self::parse(&format!("{}/{name}", self.as_str()))
    }
}

fn refusal(text: &str) -> Option<&'static str> {
    let drive = {
        let mut chars = text.chars();
        chars.next().is_some_and(|letter| letter.is_ascii_alphabetic())
            && chars.next() == Some(':')
            && matches!(chars.next(), Some('/') | None)
    };
    if text.is_empty() {
        Some("is empty")
    } else if text.len() > MAX_PATH {
        Some("is longer than 4096 bytes")
    } else if text.chars().any(is_invisible) {
        Some("holds a control or invisible character")
    } else if text.contains('\\') || drive {
        Some("is written as on Windows; use `/`")
    } else if text.split('/').any(|name| name.starts_with('$')) {
        Some("looks like a variable, which no tool expands")
    } else {
        None
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_told_inside_or_outside_by_its_components() {
        let inside = |text: &str| Target::Inside(WorkspacePath(text.to_owned()));
        for (text, expected) in [
            ("src/main.rs", inside("src/main.rs")),
            ("./src//a/./b/", inside("src/a/b")),
            ("src/../secrets/k", inside("secrets/k")),
            ("a/..", inside(".")),
            (".", inside(".")),
            ("%2e%2e/x", inside("%2e%2e/x")),
            (" src/main.rs", inside(" src/main.rs")),
            ("café.txt", inside("café.txt")),
            (
                "..",
                Target::Outside {
                    text: "..".to_owned(),
                },
            ),
            (
                "a/../../b",
                Target::Outside {
                    text: "a/../../b".to_owned(),
                },
            ),
            (
                "/etc/passwd",
                Target::Outside {
                    text: "/etc/passwd".to_owned(),
                },
            ),
            (
                "file:///etc/passwd",
                Target::Outside {
                    text: "file:///etc/passwd".to_owned(),
                },
            ),
            (
                "~root/x",
                Target::Home {
                    text: "~root/x".to_owned(),
                },
            ),
        ] {
            assert_eq!(Target::parse(text), expected, "{text:?}");
        }
        for text in [
            "",
            "a\0b",
            "a\n",
            "src/\u{202e}x",
            "C:/x",
            "..\\x",
            "$HOME/x",
            &"x/".repeat(2049),
        ] {
            assert!(matches!(Target::parse(text), Target::Invalid { .. }), "{text:?}");
        }
    }
}
