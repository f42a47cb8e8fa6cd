//! What can be wrong with a case file, where it is, and what to do about it.

use std::fmt;

/// A case file that is no case: where and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{place}: {problem}")]
pub struct CaseError {
    file: String,
    place: Place,
    problem: Problem,
}

/// Line and column, both from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    line: usize,
    column: usize,
}

impl Place {
    pub(super) const fn of(line: usize, column: usize) -> Self {
        Self { line, column }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is no JSON.
    #[error("no JSON: {0}")]
    Syntax(String),
    /// A key that is not one of the format.
    #[error("unknown key `{key}` in {object}")]
    UnknownKey {
        /// The key.
        key: String,
        /// Which object it stands in.
        object: &'static str,
        /// The key that was probably meant.
        meant: Option<&'static str>,
        /// Every key that may stand there.
        known: &'static [&'static str],
    },
    /// A key stands twice in one object.
    #[error("key `{0}` stands here twice")]
    DuplicateKey(String),
    /// A key that must be there is not.
    #[error("{object} lacks the key `{key}`")]
    Missing {
        /// The key.
        key: &'static str,
        /// Which object lacks it.
        object: &'static str,
    },
    /// A value of another type.
    #[error("{found} stands where {wanted} is wanted")]
    Type {
        /// What may stand there.
        wanted: &'static str,
        /// What does.
        found: &'static str,
    },
    /// A number outside its bounds.
    #[error("{0}")]
    Range(String),
    /// A text that is not one of a closed list.
    #[error("`{value}` is none of the values of `{key}`")]
    Choice {
        /// The text.
        value: String,
        /// The key.
        key: &'static str,
        /// The value that was probably meant.
        meant: Option<&'static str>,
        /// Every value.
        known: &'static [&'static str],
    },
    /// A text that is not spelled as it must be.
    #[error("`{value}` is not {wanted}")]
    Spelling {
        /// The text.
        value: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// An empty text where one must say something.
    #[error("an empty text stands here")]
    Empty,
    /// An array or object without elements where one is needed.
    #[error("{0} is empty")]
    NoElements(&'static str),
    /// An element that the array has already.
    #[error("`{0}` stands in this list twice")]
    DuplicateElement(String),
    /// A path pattern or regular expression that cannot be compiled.
    #[error("`{text}` is not {wanted}: {why}")]
    Pattern {
        /// The pattern.
        text: String,
        /// What it must be.
        wanted: &'static str,
        /// Why it is not.
        why: String,
    },
}

impl CaseError {
    pub(super) fn new(file: &str, place: Place, problem: Problem) -> Self {
        Self {
            file: file.to_owned(),
            place,
            problem,
        }
    }

    /// Returns the line, from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.place.line
    }

    /// Returns the column in characters, from 1.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.place.column
    }

    /// Returns what is wrong, without the place.
    #[must_use]
    pub const fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Returns what to do about it, where that can be said.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match &self.problem {
            Problem::UnknownKey { meant, known, .. } | Problem::Choice { meant, known, .. } => {
                Some(match meant {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("known are {}", listed(known)),
                })
            }
            Problem::Syntax(_)
            | Problem::DuplicateKey(_)
            | Problem::Missing { .. }
            | Problem::Type { .. }
            | Problem::Range(_)
            | Problem::Spelling { .. }
            | Problem::Empty
            | Problem::NoElements(_)
            | Problem::DuplicateElement(_)
            | Problem::Pattern { .. } => None,
        }
    }
}

fn listed(known: &[&str]) -> String {
    let quoted: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

/// Returns the one of `known` that `text` is most likely a typo of, if it is near enough to any.
pub(super) fn nearest(text: &str, known: &[&'static str]) -> Option<&'static str> {
    // A key of any length is compared in time that grows with it; beyond this it is no typo of ours.
    if text.chars().count() > 64 {
        return None;
    }
    known
        .iter()
        .map(|word| (distance(&text.to_lowercase(), &word.to_lowercase()), *word))
        .filter(|(distance, word)| *distance <= allowed(word))
        .min()
        .map(|(_, word)| word)
}

/// How many edits may lie between a word and its typo: two swapped letters are two edits, and a word of three is soon another.
fn allowed(word: &str) -> usize {
    match word.chars().count() {
        0..=3 => 1,
        length => (length / 3).max(2),
    }
}

/// Edit distance: insertions, deletions and substitutions of characters.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, a) in left.chars().enumerate() {
        let mut diagonal = at;
        let mut before = at + 1;
        let mut next = vec![before];
        for (b, above) in right.iter().zip(row.iter().skip(1)) {
            let cost = (diagonal + usize::from(a != *b)).min(before + 1).min(above + 1);
            diagonal = *above;
            before = cost;
            next.push(cost);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_key_and_a_stranger_finds_none() {
        let known = ["requiredTools", "forbiddenTools", "maxSteps", "id"];
        for (typo, meant) in [
            ("requiredTool", Some("requiredTools")),
            ("RequiredTools", Some("requiredTools")),
            ("maxStep", Some("maxSteps")),
            ("max_steps", Some("maxSteps")),
            ("ids", Some("id")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(typo, &known), meant, "{typo}");
        }
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
