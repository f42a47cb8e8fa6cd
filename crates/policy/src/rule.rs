//! One rule, compiled: a verb, what it is about, and where it stands.

use crate::{
    decision::{Class, Verb},
    floor::Operation,
    host::Host,
    path::WorkspacePath,
    pattern::{CommandPattern, NetPattern, PathPattern, ProgramName, TreeMeeting},
    policy::Sandbox,
    request::{Known, Reach, Tool},
};

/// Patterns of one kind and the exceptions that are written on the rule.
#[derive(Debug, Clone)]
pub(crate) struct Patterns<P> {
    pub(crate) include: Vec<P>,
    pub(crate) except: Vec<P>,
}

impl<P> Patterns<P> {
    fn any(&self, mut matches: impl FnMut(&P) -> bool) -> bool {
        self.include.iter().any(&mut matches) && !self.except.iter().any(matches)
    }
}

/// What a rule is about.
#[derive(Debug, Clone)]
pub(crate) enum Condition {
    Command(Patterns<CommandPattern>),
    Paths(Patterns<PathPattern>),
    Net(Patterns<NetPattern>),
    /// Everything that its tools do.
    ToolsAlone,
    /// Everything of a class: only a grant of the command line.
    Writes,
    /// As above.
    Network,
}

/// Where a rule came from decides what it can lift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// A rule of a policy file.
    Rule,
    /// An allow rule that does not count: an untrusted project file may only tighten.
    Ignored,
    /// A remembered answer, which also lifts an ask (design 16, 19a).
    Answer,
    /// A flag of the command line, which does not.
    Grant,
}

#[derive(Debug, Clone)]
pub(crate) struct Rule {
    /// `layer:id`.
    pub(crate) name: String,
    pub(crate) verb: Verb,
    pub(crate) standing: Standing,
    pub(crate) condition: Condition,
    pub(crate) tools: Vec<Tool>,
    pub(crate) dynamic: bool,
    pub(crate) sandbox: Sandbox,
    pub(crate) unlocks_secrets: bool,
    pub(crate) reason: Option<String>,
    /// `file:line`, or the flag.
    pub(crate) place: String,
}

/// How a rule on paths meets an effect on files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileMatch {
    No,
    Yes,
    /// A recursive read may meet these names anywhere: allowed if they are hidden (design 16, 19d).
    Mask(Vec<String>),
}

impl Rule {
    pub(crate) fn matches_command(&self, tool: Tool, argv: &[String], known: Known) -> bool {
        let program = match self.verb {
            Verb::Allow => ProgramName::Exact,
            Verb::Ask | Verb::Deny => ProgramName::Base,
        };
        // An operand that is not known before the run could be anything, so an exact allow says nothing about it.
        if self.verb == Verb::Allow && known != Known::All && !(self.dynamic && known == Known::Program) {
            return false;
        }
        let tool_fits = self.tools.is_empty() || self.tools.contains(&tool);
        match &self.condition {
            Condition::Command(patterns) => {
                tool_fits && patterns.any(|pattern| pattern.matches(argv, program))
            }
            Condition::ToolsAlone => self.tools.contains(&tool),
            Condition::Paths(_) | Condition::Net(_) | Condition::Writes | Condition::Network => false,
        }
    }

    pub(crate) fn matches_net(&self, tool: Tool, host: &Host, port: u16) -> bool {
        let tool_fits = self.tools.is_empty() || self.tools.contains(&tool);
        match &self.condition {
            Condition::Net(patterns) => tool_fits && patterns.any(|pattern| pattern.matches(host, port)),
            Condition::ToolsAlone => self.tools.contains(&tool),
            Condition::Network => true,
            Condition::Command(_) | Condition::Paths(_) | Condition::Writes => false,
        }
    }

    pub(crate) fn matches_file(
        &self,
        tool: Tool,
        operation: Operation,
        path: &WorkspacePath,
        reach: Reach,
    ) -> FileMatch {
        let yes = |matched: bool| if matched { FileMatch::Yes } else { FileMatch::No };
        match &self.condition {
            Condition::Paths(patterns) if self.tools.is_empty() || self.covers(tool, operation) => {
                self.matches_paths(patterns, operation, path, reach)
            }
            Condition::ToolsAlone => yes(self.covers(tool, operation)),
            Condition::Writes => yes(operation.changes()),
            Condition::Paths(_) | Condition::Command(_) | Condition::Net(_) | Condition::Network => {
                FileMatch::No
            }
        }
    }

    fn matches_paths(
        &self,
        patterns: &Patterns<PathPattern>,
        operation: Operation,
        path: &WorkspacePath,
        reach: Reach,
    ) -> FileMatch {
        let whole = match reach {
            Reach::File => {
                return if patterns.any(|pattern| pattern.matches(path)) {
                    FileMatch::Yes
                } else {
                    FileMatch::No
                };
            }
            Reach::Tree => path,
        };
        if self.verb == Verb::Allow {
            // An exception may lie in the tree, so it must be certain that none does.
            let covered = patterns.include.iter().any(|pattern| pattern.covers_tree(whole))
                && patterns
                    .except
                    .iter()
                    .all(|pattern| pattern.meets_tree(whole) == TreeMeeting::Never);
            return if covered { FileMatch::Yes } else { FileMatch::No };
        }
        let mut masks = Vec::new();
        for pattern in &patterns.include {
            match pattern.meets_tree(whole) {
                TreeMeeting::Never => {}
                // An exception takes the match away only if it covers the whole tree.
                TreeMeeting::Surely | TreeMeeting::AtAnyDepth
                    if patterns.except.iter().any(|except| except.covers_tree(whole)) => {}
                TreeMeeting::AtAnyDepth if !operation.changes() && self.verb == Verb::Deny => {
                    masks.push(pattern.text().to_owned());
                }
                // A name at any depth does not make every recursive read a question.
                TreeMeeting::AtAnyDepth if !operation.changes() => {}
                // What is removed or changed cannot be hidden from the change.
                TreeMeeting::Surely | TreeMeeting::AtAnyDepth => return FileMatch::Yes,
            }
        }
        if masks.is_empty() {
            FileMatch::No
        } else {
            FileMatch::Mask(masks)
        }
    }

    /// Is this a grant of a whole class, which answers for a command of that class too?
    pub(crate) fn grants_class(&self, class: Class) -> bool {
        match self.condition {
            Condition::Writes => class == Class::Write,
            Condition::Network => class == Class::Network,
            Condition::Command(_) | Condition::Paths(_) | Condition::Net(_) | Condition::ToolsAlone => false,
        }
    }

    /// Does the rule's list of tools cover this operation of this tool? For shell commands the file tools stand
    /// for their operation. Between file tools an allow is taken at its word, while a deny or ask of one
    /// writing tool covers the other (and of `read_file` covers `search_text`), so that it cannot be dodged.
    fn covers(&self, tool: Tool, operation: Operation) -> bool {
        let from_shell = matches!(tool, Tool::Shell | Tool::ShellReadonly);
        let loose = from_shell || self.verb != Verb::Allow;
        self.tools.iter().any(|listed| {
            *listed == tool
                || (loose
                    && match listed {
                        Tool::ReadFile => operation == Operation::Read,
                        Tool::SearchText => operation == Operation::Read && from_shell,
                        Tool::ListFiles => operation == Operation::List,
                        Tool::WriteText | Tool::EditText => operation.changes(),
                        Tool::ShellReadonly | Tool::Shell | Tool::AskUser | Tool::Network => false,
                    })
        })
    }
}
