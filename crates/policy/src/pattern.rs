//! The three kinds of patterns that a rule can hold: commands, paths, hosts. None is a regular expression.

use crate::{
    error::ErrorCode,
    host::Host,
    path::{Target, WorkspacePath},
};
use globset::{GlobBuilder, GlobMatcher};

/// A pattern that does not parse: its code, what is wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PatternError {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

fn error<T>(code: ErrorCode, message: String, help: &str) -> Result<T, PatternError> {
    Err(PatternError {
        code,
        message,
        help: (!help.is_empty()).then(|| help.to_owned()),
    })
}

#[derive(Debug, Clone)]
enum Token {
    OneOf(Vec<String>),
    Any,
}

impl Token {
    fn accepts(&self, word: &str) -> bool {
        match self {
            Self::OneOf(words) => words.iter().any(|known| known == word),
            Self::Any => true,
        }
    }
}

/// How the program's name is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramName {
    /// Letter by letter, for allow: `./sed` is not `sed`.
    Exact,
    /// By base name as well, for ask and deny: `/usr/bin/rm` is `rm`.
    Base,
}

/// Words matched to an argument vector: literal, `{a,b}`, `*` for one argument, a final `**` for any rest.
#[derive(Debug, Clone)]
pub(crate) struct CommandPattern {
    tokens: Vec<Token>,
    rest: bool,
}

impl CommandPattern {
    pub(crate) fn parse(text: &str) -> Result<Self, PatternError> {
        let mut tokens = Vec::new();
        let mut rest = false;
        for word in text.split_ascii_whitespace() {
            if rest {
                return error(
                    ErrorCode::BadPattern,
                    format!("in `{text}`, `**` is not the last word"),
                    "use `*` for one argument",
                );
            }
            if word == "**" {
                rest = true;
            } else if word == "*" {
                tokens.push(Token::Any);
            } else {
                let inner = word.strip_prefix('{').and_then(|inner| inner.strip_suffix('}'));
                let words: Vec<String> = match inner {
                    Some(inner) => inner.split(',').map(str::to_owned).collect(),
                    None => vec![word.to_owned()],
                };
                let literal = |letter: char| {
                    letter.is_alphanumeric()
                        || "_./:=@%+-~^#".contains(letter)
                        || (letter == ',' && inner.is_none())
                };
                if let Some(odd) = words
                    .iter()
                    .flat_map(|word| word.chars())
                    .find(|letter| !literal(*letter))
                {
                    return error(
                        ErrorCode::BadPattern,
                        format!("`{odd}` in `{text}` is not part of a command's words"),
                        "a pattern is the words of one command: literals, `{a,b}`, `*` for one argument and a final `**`; write one rule for each command of a pipe",
                    );
                }
                if words.iter().any(String::is_empty) {
                    return error(
                        ErrorCode::BadPattern,
                        format!("`{word}` in `{text}` holds an empty word"),
                        "",
                    );
                }
                tokens.push(Token::OneOf(words));
            }
        }
        if tokens.is_empty() && !rest {
            return error(
                ErrorCode::BadPattern,
                "a command pattern has no word".to_owned(),
                "",
            );
        }
        Ok(Self { tokens, rest })
    }

    pub(crate) fn matches(&self, argv: &[String], program: ProgramName) -> bool {
        let long_enough = if self.rest {
            argv.len() >= self.tokens.len()
        } else {
            argv.len() == self.tokens.len()
        };
        long_enough
            && self
                .tokens
                .iter()
                .zip(argv)
                .enumerate()
                .all(|(index, (token, word))| {
                    token.accepts(word)
                        || (index == 0
                            && program == ProgramName::Base
                            && token.accepts(word.rsplit('/').next().unwrap_or_default()))
                })
    }
}

/// A glob relative to the workspace; `*` does not cross `/`, `**` does.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    glob: GlobMatcher,
    text: String,
    /// The literal folders it starts with, joined; empty if it starts with a wildcard.
    head: String,
    /// Is everything after the head exactly `**`, so that it covers the head's whole content?
    covers_head: bool,
}

impl PathPattern {
    pub(crate) fn parse(text: &str) -> Result<Self, PatternError> {
        let clean = text.strip_prefix("./").unwrap_or(text);
        if clean.starts_with('/') || clean.starts_with('~') || clean.split('/').any(|name| name == "..") {
            return error(
                ErrorCode::BadPath,
                format!("`{text}` leaves the workspace"),
                "patterns are relative to the workspace; what lies outside is closed by the floor",
            );
        }
        if clean.is_empty()
            || clean.contains('\\')
            || clean.ends_with('/')
            || clean
                .split('/')
                .any(|name| matches!(name, "" | ".") && clean != ".")
        {
            return error(
                ErrorCode::BadGlob,
                format!("`{text}` is not a path pattern"),
                "write `dir/**` for everything in a folder, names separated by `/`",
            );
        }
        let glob = GlobBuilder::new(clean)
            .literal_separator(true)
            .backslash_escape(false)
            .build();
        let glob = match glob {
            Ok(glob) => glob.compile_matcher(),
            Err(why) => {
                return error(
                    ErrorCode::BadGlob,
                    format!("`{text}` is not a glob: {}", why.kind()),
                    "",
                );
            }
        };
        let wild = |name: &str| name.contains(['*', '?', '[', '{']);
        let names: Vec<&str> = clean.split('/').collect();
        let literal = names.iter().take_while(|name| !wild(name)).count();
        let head = names.iter().take(literal).copied().collect::<Vec<_>>().join("/");
        let covers_head = names.iter().skip(literal).copied().eq(["**"]);
        Ok(Self {
            glob,
            text: text.to_owned(),
            head,
            covers_head,
        })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Does the pattern end in a literal name, so that it opens one file and not a kind of files?
    pub(crate) fn names_a_file(&self) -> bool {
        !self
            .text
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .contains(['*', '?', '[', '{'])
    }

    pub(crate) fn matches(&self, path: &WorkspacePath) -> bool {
        self.glob.is_match(path.as_str())
    }

    /// Does the pattern cover everything beneath `root`, for an allow of a recursive effect?
    pub(crate) fn covers_tree(&self, root: &WorkspacePath) -> bool {
        self.covers_head && (self.head.is_empty() || root.is_within(&self.head))
    }

    /// How a recursive effect on `root` meets this pattern, for ask and deny.
    pub(crate) fn meets_tree(&self, root: &WorkspacePath) -> TreeMeeting {
        if self.matches(root) || self.covers_tree(root) {
            return TreeMeeting::Surely;
        }
        if self.head.is_empty() {
            return TreeMeeting::AtAnyDepth;
        }
        let head = Target::parse(&self.head);
        match head {
            Target::Inside(head) if head.is_within(root.as_str()) => TreeMeeting::Surely,
            Target::Inside(head) if root.is_within(head.as_str()) => TreeMeeting::AtAnyDepth,
            Target::Inside(_) | Target::Outside { .. } | Target::Home { .. } | Target::Invalid { .. } => {
                TreeMeeting::Never
            }
        }
    }
}

/// Where a recursive effect meets a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TreeMeeting {
    /// The tree and the pattern have nothing in common.
    Never,
    /// The pattern's literal folder lies in the tree (or the tree's root is matched).
    Surely,
    /// The pattern names something that may lie anywhere in the tree.
    AtAnyDepth,
}

/// `host:port`: `*` is one whole label, or any port; addresses are only matched by literal addresses.
#[derive(Debug, Clone)]
pub(crate) struct NetPattern {
    host: NetHost,
    port: Option<u16>,
}

#[derive(Debug, Clone)]
enum NetHost {
    Literal(Host),
    Labels(Vec<Option<String>>),
}

impl NetPattern {
    pub(crate) fn parse(text: &str) -> Result<Self, PatternError> {
        let bad = |why: &str| {
            error(
                ErrorCode::BadNet,
                format!("`{text}` is not `host:port`: {why}"),
                "write `packages.example:443` or `*.example.com:443`",
            )
        };
        let Some((host, port)) = text.rsplit_once(':') else {
            return bad("the port is missing");
        };
        let port = match port {
            "*" => None,
            port => match port.parse::<u16>() {
                Ok(port) if port > 0 => Some(port),
                Ok(_) | Err(_) => return bad("the port is 1 to 65535 or `*`"),
            },
        };
        if !host.split('.').any(|label| label == "*") {
            return match Host::parse(host) {
                Ok(host) => Ok(Self {
                    host: NetHost::Literal(host),
                    port,
                }),
                Err(why) => bad(why),
            };
        }
        let filled = host
            .split('.')
            .map(|label| if label == "*" { "x" } else { label })
            .collect::<Vec<_>>()
            .join(".");
        match Host::parse(&filled) {
            Ok(Host::Name(_)) => {}
            Ok(Host::V4(_) | Host::V6(_)) => return bad("an address has no wildcard"),
            Err(why) => return bad(why),
        }
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let labels = host
            .split('.')
            .map(|label| (label != "*").then(|| label.to_owned()))
            .collect();
        Ok(Self {
            host: NetHost::Labels(labels),
            port,
        })
    }

    pub(crate) fn matches(&self, host: &Host, port: u16) -> bool {
        let same_host = match (&self.host, host) {
            (NetHost::Literal(known), host) => known == host,
            (NetHost::Labels(_), Host::V4(_) | Host::V6(_)) => false,
            (NetHost::Labels(labels), Host::Name(name)) => {
                let count = name.split('.').count();
                count == labels.len()
                    && name
                        .split('.')
                        .zip(labels)
                        .all(|(label, known)| known.as_ref().is_none_or(|known| known == label))
            }
        };
        same_host && self.port.is_none_or(|known| known == port)
    }
}
