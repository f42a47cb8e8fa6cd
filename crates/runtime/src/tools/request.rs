//! What a model can ask for: the closed set of tools, and their arguments parsed once.

use crate::workspace::Root;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::fmt;
use tracegate_core::payload::{INLINE_STRING, clip};
use tracegate_policy::{Request as Review, plain_words};

/// The tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// Lists a directory.
    ListFiles,
    /// Reads a file.
    ReadFile,
    /// Searches files.
    SearchText,
    /// Writes a whole file.
    WriteText,
    /// Replaces one passage of a file.
    EditText,
    /// Runs a command that changes nothing.
    ShellReadonly,
    /// Runs a command.
    Shell,
    /// Asks the user.
    AskUser,
}

impl Tool {
    /// Every tool.
    pub const ALL: [Self; 8] = [
        Self::ListFiles,
        Self::ReadFile,
        Self::SearchText,
        Self::WriteText,
        Self::EditText,
        Self::ShellReadonly,
        Self::Shell,
        Self::AskUser,
    ];

    /// Returns its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ListFiles => "list_files",
            Self::ReadFile => "read_file",
            Self::SearchText => "search_text",
            Self::WriteText => "write_text",
            Self::EditText => "edit_text",
            Self::ShellReadonly => "shell_readonly",
            Self::Shell => "shell",
            Self::AskUser => "ask_user",
        }
    }
}

/// A request for a tool, its arguments understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Lists the directory `path`, `depth` levels deep.
    List {
        /// The directory.
        path: String,
        /// Levels, from 1.
        depth: u32,
    },
    /// Reads lines `from` to `to` of the file `path`.
    Read {
        /// The file.
        path: String,
        /// First line, from 1.
        from: u32,
        /// Last line; none for the end.
        to: Option<u32>,
    },
    /// Finds the lines that hold `pattern` in the files below `path`.
    Search {
        /// A regular expression.
        pattern: String,
        /// File or directory.
        path: String,
    },
    /// Writes `content` to the file `path`.
    Write {
        /// The file.
        path: String,
        /// Its new text.
        content: String,
    },
    /// Replaces the one place where `old` stands in the file `path` by `new`.
    Edit {
        /// The file.
        path: String,
        /// What stands there.
        old: String,
        /// What should.
        new: String,
    },
    /// Runs a command.
    Shell {
        /// `shell` or `shell_readonly`.
        tool: Tool,
        /// The command as given.
        script: String,
        /// Its words, if it consists of plain words; else the gate refuses it.
        words: Vec<String>,
    },
    /// Asks the user.
    Ask {
        /// The question.
        question: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArgs {
    #[serde(default = "here")]
    path: String,
    #[serde(default = "one")]
    depth: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArgs {
    path: String,
    #[serde(default = "one")]
    from: u32,
    #[serde(default)]
    to: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArgs {
    pattern: String,
    #[serde(default = "here")]
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteArgs {
    path: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EditArgs {
    path: String,
    old: String,
    new: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShellArgs {
    command: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskArgs {
    question: String,
}

fn here() -> String {
    ".".to_owned()
}

const fn one() -> u32 {
    1
}

impl Request {
    /// Parses the arguments of a tool call.
    ///
    /// # Errors
    /// What the model is told: which tool or argument is wrong, and what would be right.
    pub fn parse(name: &str, input: &Value) -> Result<Self, String> {
        let Some(tool) = Tool::ALL.into_iter().find(|tool| tool.as_str() == name) else {
            let names: Vec<&str> = Tool::ALL.into_iter().map(Tool::as_str).collect();
            return Err(format!(
                "there is no tool `{}`; the tools are {}",
                clip(name, 80),
                names.join(", ")
            ));
        };
        Ok(match tool {
            Tool::ListFiles => {
                let ListArgs { path, depth } = args(tool, input)?;
                Self::List {
                    path,
                    depth: depth.clamp(1, 16),
                }
            }
            Tool::ReadFile => {
                let ReadArgs { path, from, to } = args(tool, input)?;
                Self::Read {
                    path,
                    from: from.max(1),
                    to,
                }
            }
            Tool::SearchText => {
                let SearchArgs { pattern, path } = args(tool, input)?;
                Self::Search { pattern, path }
            }
            Tool::WriteText => {
                let WriteArgs { path, content } = args(tool, input)?;
                Self::Write { path, content }
            }
            Tool::EditText => {
                let EditArgs { path, old, new } = args(tool, input)?;
                Self::Edit { path, old, new }
            }
            Tool::ShellReadonly | Tool::Shell => {
                let ShellArgs { command } = args(tool, input)?;
                if command.len() > INLINE_STRING {
                    // The log holds command lines whole: what was reviewed, what was run and what a test run is judged by are one text.
                    return Err(format!(
                        "the command has {} bytes, more than {INLINE_STRING}: write it to a file and run that",
                        command.len()
                    ));
                }
                let words = plain_words(&command).unwrap_or_default();
                Self::Shell {
                    tool,
                    script: command,
                    words,
                }
            }
            Tool::AskUser => {
                let AskArgs { question } = args(tool, input)?;
                if question.trim().is_empty() {
                    return Err("`question` is empty".to_owned());
                }
                Self::Ask { question }
            }
        })
    }

    /// Returns the tool.
    #[must_use]
    pub const fn tool(&self) -> &Tool {
        match self {
            Self::List { .. } => &Tool::ListFiles,
            Self::Read { .. } => &Tool::ReadFile,
            Self::Search { .. } => &Tool::SearchText,
            Self::Write { .. } => &Tool::WriteText,
            Self::Edit { .. } => &Tool::EditText,
            Self::Shell { tool, .. } => tool,
            Self::Ask { .. } => &Tool::AskUser,
        }
    }

    /// Returns the command line of a shell tool.
    #[must_use]
    pub fn command(&self) -> Option<&str> {
        match self {
            Self::Shell { script, .. } => Some(script),
            Self::List { .. }
            | Self::Read { .. }
            | Self::Search { .. }
            | Self::Write { .. }
            | Self::Edit { .. }
            | Self::Ask { .. } => None,
        }
    }

    /// Returns the words of a shell tool's command; none of the others.
    #[must_use]
    pub fn words(&self) -> &[String] {
        match self {
            Self::Shell { words, .. } => words,
            Self::List { .. }
            | Self::Read { .. }
            | Self::Search { .. }
            | Self::Write { .. }
            | Self::Edit { .. }
            | Self::Ask { .. } => &[],
        }
    }

    /// Tells whether it asks the user for words.
    #[must_use]
    pub const fn is_question(&self) -> bool {
        matches!(self, Self::Ask { .. })
    }

    /// Tells whether it can change anything outside this process.
    #[must_use]
    pub const fn has_side_effects(&self) -> bool {
        match self {
            Self::Write { .. } | Self::Edit { .. } | Self::Shell { .. } => true,
            Self::List { .. } | Self::Read { .. } | Self::Search { .. } | Self::Ask { .. } => false,
        }
    }

    fn path(&self) -> Option<&str> {
        match self {
            Self::List { path, .. }
            | Self::Read { path, .. }
            | Self::Search { path, .. }
            | Self::Write { path, .. }
            | Self::Edit { path, .. } => Some(path),
            Self::Shell { .. } | Self::Ask { .. } => None,
        }
    }

    /// Returns what the policy is asked about. Paths are those that the kernel resolves; one that leads out stays as it is and is refused.
    pub(crate) fn review(&self, root: &Root) -> Review {
        let tool = self.tool().as_str();
        let path = self
            .path()
            .map(|path| root.resolve(path).unwrap_or_else(|_| outside(path)));
        let path = path.as_deref().unwrap_or(".");
        match self {
            Self::List { .. } | Self::Read { .. } | Self::Search { .. } => Review::read(tool, path),
            Self::Write { .. } | Self::Edit { .. } => Review::write(tool, path),
            Self::Shell { script, .. } => Review::command(tool, script),
            Self::Ask { .. } => Review::question(),
        }
    }

    /// Returns the effects under review, one line each.
    pub(crate) fn effects(&self, root: &Root) -> Vec<String> {
        let review = self.review(root);
        let effects = review.effects.iter().take(16);
        let lines: Vec<String> = effects.map(|effect| clip(&effect.to_string(), 200)).collect();
        match self.command() {
            // A command that is not understood has no effects to name, but two of them are not the same.
            Some(script) if lines.is_empty() => vec![clip(&format!("run {script}"), 200)],
            Some(_) | None => lines,
        }
    }

    /// Returns the arguments as they will be used: paths resolved.
    pub(crate) fn args(&self, root: &Root) -> Value {
        let path = |path: &str| root.resolve(path).unwrap_or_else(|_| path.to_owned());
        match self {
            Self::List { path: dir, depth } => json!({ "path": path(dir), "depth": depth }),
            Self::Read {
                path: file,
                from,
                to: None,
            } => json!({ "path": path(file), "from": from }),
            Self::Read { path: file, from, to } => json!({ "path": path(file), "from": from, "to": to }),
            Self::Search { pattern, path: below } => json!({ "pattern": pattern, "path": path(below) }),
            Self::Write { path: file, content } => json!({ "path": path(file), "content": content }),
            Self::Edit { path: file, old, new } => json!({ "path": path(file), "old": old, "new": new }),
            Self::Shell { script, .. } => json!({ "command": script }),
            Self::Ask { question } => json!({ "question": question }),
        }
    }
}

/// A path that the kernel refuses to resolve is judged as given, but never as one inside.
fn outside(path: &str) -> String {
    if path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..") {
        path.to_owned()
    } else {
        format!("../{path}")
    }
}

fn args<T: DeserializeOwned>(tool: Tool, input: &Value) -> Result<T, String> {
    let input = if input.is_null() { &json!({}) } else { input };
    T::deserialize(input).map_err(|error| format!("the arguments of `{}` are wrong: {error}", tool.as_str()))
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::List { path, .. }
            | Self::Read { path, .. }
            | Self::Write { path, .. }
            | Self::Edit { path, .. } => path,
            Self::Search { pattern, .. } => pattern,
            Self::Shell { script, .. } => script,
            Self::Ask { question } => question,
        };
        write!(f, "{} {}", self.tool().as_str(), clip(what, 160))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_parsed_or_explained() {
        let check = |name: &str, input: Value, wanted: Result<&str, &str>| {
            let parsed = Request::parse(name, &input).map(|request| request.to_string());
            assert_eq!(parsed.as_deref().map_err(String::as_str), wanted);
        };
        check("read_file", json!({"path": "a"}), Ok("read_file a"));
        check("list_files", Value::Null, Ok("list_files ."));
        check("shell", json!({"command": "npm test"}), Ok("shell npm test"));
        check(
            "read_file",
            json!({}),
            Err("the arguments of `read_file` are wrong: missing field `path`"),
        );
        check(
            "read_file",
            json!({"path": 1}),
            Err("the arguments of `read_file` are wrong: invalid type: integer `1`, expected a string"),
        );
        check(
            "write_text",
            json!({"path": "a", "content": "b", "mode": 1}),
            Err(
                "the arguments of `write_text` are wrong: unknown field `mode`, expected `path` or `content`",
            ),
        );
        check(
            "readfile",
            json!({}),
            Err(concat!(
                "there is no tool `readfile`; the tools are list_files, read_file, search_text, write_text, ",
                "edit_text, shell_readonly, shell, ask_user"
            )),
        );
        check("ask_user", json!({"question": " "}), Err("`question` is empty"));
    }
}
