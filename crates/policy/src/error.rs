//! Why a policy cannot be used: no run starts with one that does not load.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What kind of mistake a policy file holds; the spelling is stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// Not TOML, or not UTF-8.
    Syntax,
    /// A key that the format does not have.
    UnknownKey,
    /// A required key is absent.
    MissingKey,
    /// A value of the wrong type.
    BadType,
    /// A value of the right type that is none of the known ones.
    BadValue,
    /// `version` is a number that this program does not know.
    UnsupportedVersion,
    /// A rule without any condition.
    EmptyRule,
    /// A list without an entry.
    EmptyList,
    /// Two rules of a layer have the same id.
    DuplicateId,
    /// Conditions that cannot hold for one effect, such as `command` with `paths`.
    MixedRule,
    /// A path pattern that does not compile.
    BadGlob,
    /// A path pattern that leaves the workspace.
    BadPath,
    /// A command pattern that is not a list of words.
    BadPattern,
    /// A network pattern that is not `host:port`.
    BadNet,
    /// A tool that does not exist.
    UnknownTool,
    /// A variable that no policy may open, because it changes which program runs.
    ForbiddenEnv,
    /// A `match` or `not_match` example that does not hold.
    FailedExample,
    /// `unlock` of a floor rule that cannot be unlocked, or not from here.
    NotUnlockable,
    /// No policy was given.
    PolicyMissing,
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A mistake in a policy, with its place; displayed as `file:line:col: message`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{col}: {message}")]
pub struct PolicyError {
    /// The file's name as given in its source, or the flag of a grant.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub col: usize,
    /// The kind of mistake.
    pub code: ErrorCode,
    /// `layer:id` of the rule that holds it, where the rule has an id.
    pub rule: Option<String>,
    /// One sentence, lower case, no full stop.
    pub message: String,
    /// Advice, read through `help()`: it is printed apart from the message.
    pub(crate) help: Option<String>,
}

impl PolicyError {
    /// Returns what to do about it.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

/// Turns a byte offset into line and column, both from 1; an offset beyond the end is the end.
pub(crate) fn place(text: &str, offset: usize) -> (usize, usize) {
    let mut line = 1;
    let mut col = 1;
    for (at, letter) in text.char_indices() {
        if at >= offset {
            break;
        }
        if letter == '\n' {
            line += 1;
            col = 1;
        } else {
            col += 1;
        }
    }
    (line, col)
}
