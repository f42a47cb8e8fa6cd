//! What the model asked for, as the effects that it would have.

use crate::{floor::Operation, path::Target, suggest::did_you_mean, words::plain_words};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The closed set of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// Lists names.
    ListFiles,
    /// Reads a file.
    ReadFile,
    /// Reads the content of many files.
    SearchText,
    /// Makes or replaces a file.
    WriteText,
    /// Changes a file.
    EditText,
    /// Runs a command that must not change files.
    ShellReadonly,
    /// Runs a command.
    Shell,
    /// Asks the user a question.
    AskUser,
    /// Connects to a host.
    Network,
}

impl Tool {
    /// Every tool's name.
    pub const NAMES: [&'static str; 9] = [
        "list_files",
        "read_file",
        "search_text",
        "write_text",
        "edit_text",
        "shell_readonly",
        "shell",
        "ask_user",
        "network",
    ];

    /// Finds a tool by its name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "list_files" => Self::ListFiles,
            "read_file" => Self::ReadFile,
            "search_text" => Self::SearchText,
            "write_text" => Self::WriteText,
            "edit_text" => Self::EditText,
            "shell_readonly" => Self::ShellReadonly,
            "shell" => Self::Shell,
            "ask_user" => Self::AskUser,
            "network" => Self::Network,
            _ => return None,
        })
    }

    pub(crate) fn suggestion(name: &str) -> Option<String> {
        did_you_mean(name, &Self::NAMES)
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// How much of a path an effect touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// The path itself.
    File,
    /// Everything beneath it.
    Tree,
}

/// Which words of a command are known before the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Known {
    /// All of them.
    All,
    /// The program and not every operand.
    Program,
    /// Not even the program.
    Nothing,
}

/// One thing that a request does; each is decided alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// A program runs. What it reads, writes and connects to is derived from its profile.
    Exec {
        /// Program and arguments, decoded.
        argv: Vec<String>,
        /// How much of it is known.
        known: Known,
    },
    /// Names of a folder are listed.
    List {
        /// The folder.
        path: Target,
    },
    /// Content is read.
    Read {
        /// The file or the folder.
        path: Target,
        /// How much of it.
        reach: Reach,
    },
    /// A file is made or changed.
    Write {
        /// The file or the folder.
        path: Target,
        /// How much of it.
        reach: Reach,
    },
    /// A file is removed or moved away.
    Delete {
        /// The file or the folder.
        path: Target,
        /// How much of it.
        reach: Reach,
    },
    /// A connection is opened.
    Net {
        /// The host as written; it is parsed when it is decided.
        host: String,
        /// The port.
        port: u16,
    },
    /// A variable is set for a program.
    Env {
        /// The variable's name.
        name: String,
    },
}

impl Effect {
    /// Returns operation, path and reach of an effect on files.
    pub(crate) fn file(&self) -> Option<(Operation, &Target, Reach)> {
        match self {
            Self::List { path } => Some((Operation::List, path, Reach::File)),
            Self::Read { path, reach } => Some((Operation::Read, path, *reach)),
            Self::Write { path, reach } => Some((Operation::Write, path, *reach)),
            Self::Delete { path, reach } => Some((Operation::Delete, path, *reach)),
            Self::Exec { .. } | Self::Net { .. } | Self::Env { .. } => None,
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((operation, path, reach)) = self.file() {
            let tail = match reach {
                Reach::File => "",
                Reach::Tree => " and everything beneath",
            };
            return write!(f, "{operation} {path}{tail}");
        }
        match self {
            Self::Exec { argv, .. } => write!(f, "run {}", argv.join(" ")),
            Self::Net { host, port } => write!(f, "connect to {host}:{port}"),
            Self::Env { name } => write!(f, "set {name}"),
            Self::List { .. } | Self::Read { .. } | Self::Write { .. } | Self::Delete { .. } => Ok(()),
        }
    }
}

/// A tool call as its effects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The tool's name as the model wrote it.
    pub tool: String,
    /// What it would do. Empty is only right for a tool that does nothing, such as `ask_user`.
    pub effects: Vec<Effect>,
    /// Why the arguments are not understood, if they are not; then nothing else counts.
    pub unparsed: Option<String>,
}

impl Request {
    fn of(tool: &str, effects: Vec<Effect>) -> Self {
        Self {
            tool: tool.to_owned(),
            effects,
            unparsed: None,
        }
    }

    /// A read of one file; a listing for `list_files`, of a whole tree for `search_text`.
    #[must_use]
    pub fn read(tool: &str, path: &str) -> Self {
        let path = Target::parse(path);
        let effect = match Tool::parse(tool) {
            Some(Tool::ListFiles) => Effect::List { path },
            Some(Tool::SearchText) => Effect::Read {
                path,
                reach: Reach::Tree,
            },
            Some(_) | None => Effect::Read {
                path,
                reach: Reach::File,
            },
        };
        Self::of(tool, vec![effect])
    }

    /// A change of one file.
    #[must_use]
    pub fn write(tool: &str, path: &str) -> Self {
        Self::of(
            tool,
            vec![Effect::Write {
                path: Target::parse(path),
                reach: Reach::File,
            }],
        )
    }

    /// A shell command of plain words ([`plain_words`]); any other script is not understood, so it is refused.
    #[must_use]
    pub fn command(tool: &str, script: &str) -> Self {
        match script_effects(script) {
            Ok(effects) => Self::of(tool, effects),
            Err(why) => Self {
                tool: tool.to_owned(),
                effects: Vec::new(),
                unparsed: Some(why),
            },
        }
    }

    /// A connection.
    #[must_use]
    pub fn network(host: &str, port: u16) -> Self {
        Self::of(
            "network",
            vec![Effect::Net {
                host: host.to_owned(),
                port,
            }],
        )
    }

    /// A question to the user, which has no effect.
    #[must_use]
    pub fn question() -> Self {
        Self::of("ask_user", Vec::new())
    }
}

/// The one place where a script becomes effects: a parser of the whole language replaces this body.
fn script_effects(script: &str) -> Result<Vec<Effect>, String> {
    match plain_words(script) {
        Ok(argv) => Ok(vec![Effect::Exec {
            argv,
            known: Known::All,
        }]),
        Err(why) => Err(why.to_string()),
    }
}
