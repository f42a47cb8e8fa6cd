//! Splits a script of plain words exactly as a shell would, or refuses it: nothing is ever guessed.
//!
//! A full shell parser comes later in front of this one. Until then the rule is that the words returned
//! here are the argument vector that is reviewed *and* the one that is executed, without a shell between
//! them, so no difference between two parsers can exist.

use thiserror::Error;

/// Longest script that is looked at, in bytes.
pub const MAX_SCRIPT: usize = 16 * 1024;

/// Words that mean something to a shell when they stand first and unquoted.
const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in",
    "select", "function", "time", "coproc",
];

/// Why a script is not a list of plain words; columns count characters from 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlainWordsError {
    /// There is no word at all, or the program's name is the empty string.
    #[error("the script names no program")]
    Empty,
    /// The script is longer than [`MAX_SCRIPT`].
    #[error("the script has {bytes} bytes, more than {MAX_SCRIPT}")]
    TooLong {
        /// Size of the script in bytes.
        bytes: usize,
    },
    /// A character that a shell may give a meaning to stands where it would have one.
    #[error("column {column}: {found:?} needs a shell parser")]
    Special {
        /// The character.
        found: char,
        /// Its place.
        column: usize,
    },
    /// A quote is opened and never closed.
    #[error("column {column}: the quote is never closed")]
    Unterminated {
        /// Where it was opened.
        column: usize,
    },
    /// The first word sets a variable.
    #[error("`{word}` is an assignment, not a program")]
    Assignment {
        /// The word as written.
        word: String,
    },
    /// The first word is a word of the shell's grammar.
    #[error("`{word}` is a word of the shell's grammar, not a program")]
    Reserved {
        /// The word as written.
        word: String,
    },
}

/// Returns the decoded words of a script that needs no shell: letters, digits, `_./:=@%+,-` and quoted
/// strings without `$`, backtick and backslash, separated by blanks.
///
/// # Errors
/// Everything else is refused: operators, redirections, globs, newlines, assignments, `~`, `#`, `!`,
/// control and invisible characters, unterminated quotes, grammar words, an empty or an oversized script.
pub fn plain_words(script: &str) -> Result<Vec<String>, PlainWordsError> {
    if script.len() > MAX_SCRIPT {
        return Err(PlainWordsError::TooLong { bytes: script.len() });
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    // Only the first word can be an assignment or a grammar word, and only where it was not quoted.
    let mut first_is_bare = true;
    let mut chars = script.chars().enumerate();
    while let Some((index, found)) = chars.next() {
        let column = index + 1;
        match found {
            ' ' | '\t' => words.extend(word.take()),
            '\'' | '"' => {
                if words.is_empty() {
                    first_is_bare = first_is_bare && word.as_ref().is_some_and(|word| word.contains('='));
                }
                let into = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        None => return Err(PlainWordsError::Unterminated { column }),
                        Some((_, close)) if close == found => break,
                        Some((index, inner)) if is_special_in_quotes(inner) => {
                            return Err(PlainWordsError::Special {
                                found: inner,
                                column: index + 1,
                            });
                        }
                        Some((_, inner)) => into.push(inner),
                    }
                }
            }
            plain if plain.is_ascii_alphanumeric() || "_./:=@%+,-".contains(plain) => {
                word.get_or_insert_default().push(plain);
            }
            special => {
                return Err(PlainWordsError::Special {
                    found: special,
                    column,
                });
            }
        }
    }
    words.extend(word.take());
    let Some(first) = words.first().filter(|first| !first.is_empty()) else {
        return Err(PlainWordsError::Empty);
    };
    if first_is_bare {
        if is_assignment(first) {
            return Err(PlainWordsError::Assignment { word: first.clone() });
        }
        if RESERVED.contains(&first.as_str()) {
            return Err(PlainWordsError::Reserved { word: first.clone() });
        }
    }
    Ok(words)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        let starts = name
            .chars()
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
        starts
            && name
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    })
}

/// Backslash is refused in single quotes too, where it means itself: one rule for both kinds is easier to
/// trust than two, and the cost is only a refusal.
fn is_special_in_quotes(found: char) -> bool {
    matches!(found, '$' | '`' | '\\') || is_invisible(found) || (!found.is_ascii() && found.is_whitespace())
}

/// Is this a control character or one of Unicode's format characters (bidi controls, zero width, tags)?
///
/// They make what a person reads differ from what runs, so no name and no command may hold one. The ranges
/// are the general category Cf plus the control characters.
#[must_use]
pub fn is_invisible(found: char) -> bool {
    found.is_control()
        || matches!(
            found,
            '\u{ad}'
                | '\u{600}'..='\u{605}'
                | '\u{61c}'
                | '\u{6dd}'
                | '\u{70f}'
                | '\u{890}'..='\u{891}'
                | '\u{8e2}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{110bd}'
                | '\u{110cd}'
                | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, expected: Result<&[&str], PlainWordsError>) {
        let expected = expected.map(|words| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(plain_words(script), expected, "script {script:?}");
    }

    #[test]
    fn plain_scripts_become_the_words_a_shell_would_pass() {
        for (script, words) in [
            ("npm test", &["npm", "test"][..]),
            ("  ls\t-la  src ", &["ls", "-la", "src"]),
            ("echo 'rm -rf /' \"a b\"", &["echo", "rm -rf /", "a b"]),
            ("echo a'b c'\"d\"e", &["echo", "ab cde"]),
            ("echo ''", &["echo", ""]),
            ("'time' ls", &["time", "ls"]),
            ("env FOO=1 ls", &["env", "FOO=1", "ls"]),
            ("./a=b", &["./a=b"]),
            ("echo 'grüße | > *'", &["echo", "grüße | > *"]),
        ] {
            check(script, Ok(words));
        }
    }

    #[test]
    fn whatever_a_shell_could_read_otherwise_is_refused() {
        use PlainWordsError as E;
        let special = |found, column| Err(E::Special { found, column });
        for (script, refusal) in [
            ("", Err(E::Empty)),
            (" \t", Err(E::Empty)),
            ("'' x", Err(E::Empty)),
            ("ls; rm x", special(';', 3)),
            ("ls | sh", special('|', 4)),
            ("ls > x", special('>', 4)),
            ("ls\nrm x", special('\n', 3)),
            ("ls *", special('*', 4)),
            ("ls ~", special('~', 4)),
            ("ls #x", special('#', 4)),
            ("! ls", special('!', 1)),
            ("ls $X", special('$', 4)),
            ("ls \"$X\"", special('$', 5)),
            ("ls '`'", special('`', 5)),
            ("ls '\\'", special('\\', 5)),
            ("ls '\u{202e}'", special('\u{202e}', 5)),
            ("ls\u{a0}x", special('\u{a0}', 3)),
            ("ls \"x", Err(E::Unterminated { column: 4 })),
            (
                "PATH=. ls",
                Err(E::Assignment {
                    word: "PATH=.".to_owned(),
                }),
            ),
            (
                "PATH='.' ls",
                Err(E::Assignment {
                    word: "PATH=.".to_owned(),
                }),
            ),
            (
                "A+=1 ls",
                Err(E::Assignment {
                    word: "A+=1".to_owned(),
                }),
            ),
            (
                "time ls",
                Err(E::Reserved {
                    word: "time".to_owned(),
                }),
            ),
        ] {
            check(script, refusal);
        }
        let long = "x".repeat(MAX_SCRIPT + 1);
        check(
            &long,
            Err(E::TooLong {
                bytes: MAX_SCRIPT + 1,
            }),
        );
    }
}
