//! A shell line as words, pipelines and lists: enough structure to say which commands run and whose exit status is kept.
//!
//! This is a reader, not a permission check: it guesses at nothing and never fails. What it cannot read it leaves out,
//! and a command that was left out is not a test run, which is the strict answer.

use super::words::{Token, Word, tokens};

/// Nested substitutions and compound commands deeper than this are left out, so that no input exhausts the stack.
const MAX_DEPTH: usize = 24;
/// More of a script is not read: a person's command line is short, and a file's content is no command line.
const MAX_CHARS: usize = 32_768;

/// A redirection: `2>&1` is fd `2`, operator `>&`, target `1`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Redirect {
    pub(super) fd: String,
    pub(super) operator: String,
    pub(super) target: Word,
}

/// A command of assignments, words and redirections.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Simple {
    pub(super) assignments: Vec<(String, Word)>,
    pub(super) words: Vec<Word>,
    pub(super) redirects: Vec<Redirect>,
}

/// How the next command of an and-or list depends on the status so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Connector {
    And,
    Or,
}

/// A command of any kind.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Simple(Simple),
    Pipeline {
        negated: bool,
        stages: Vec<Self>,
    },
    AndOr {
        first: Box<Self>,
        rest: Vec<(Connector, Self)>,
    },
    Subshell(Vec<Statement>),
    Group(Vec<Statement>),
    If {
        arms: Vec<(Vec<Statement>, Vec<Statement>)>,
        otherwise: Option<Vec<Statement>>,
    },
    Loop {
        condition: Vec<Statement>,
        body: Vec<Statement>,
    },
    Case(Vec<Vec<Statement>>),
    Function {
        name: String,
        body: Vec<Statement>,
    },
}

/// One command of a list and whether it goes to the background.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Statement {
    pub(super) node: Node,
    pub(super) background: bool,
}

/// Reads a script; an empty list if there is nothing to run in it.
pub(super) fn parse(text: &str) -> Vec<Statement> {
    let end = text
        .char_indices()
        .nth(MAX_CHARS)
        .map_or(text.len(), |(at, _)| at);
    parse_at(text.get(..end).unwrap_or(text), 0)
}

/// As [`parse`], for text found at `depth` levels of nesting.
pub(super) fn parse_at(text: &str, depth: usize) -> Vec<Statement> {
    if depth > MAX_DEPTH {
        return Vec::new();
    }
    let mut parser = Parser {
        tokens: tokens(text, depth),
        at: 0,
        depth,
    };
    let mut list = Vec::new();
    loop {
        list.extend(parser.list(&[]));
        // A stray `)` or `done` ends a list early; the rest is still read.
        if parser.next().is_none() {
            return list;
        }
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn at_operator(&self, text: &str) -> bool {
        matches!(self.peek(), Some(Token::Operator(op)) if *op == text)
    }

    fn take_operator(&mut self, text: &str) -> bool {
        let here = self.at_operator(text);
        if here {
            self.at += 1;
        }
        here
    }

    /// The reserved word here, if the next token is an unquoted word.
    fn reserved(&self) -> Option<&str> {
        match self.peek() {
            Some(Token::Word(word)) if !word.quoted => Some(&word.text),
            Some(Token::Word(_) | Token::Operator(_) | Token::Redirect { .. }) | None => None,
        }
    }

    fn take_reserved(&mut self, text: &str) -> bool {
        let here = self.reserved() == Some(text);
        if here {
            self.at += 1;
        }
        here
    }

    fn list(&mut self, ends: &[&str]) -> Vec<Statement> {
        let mut list = Vec::new();
        loop {
            while ["\n", ";"].iter().any(|op| self.take_operator(op)) {}
            let ended = self.reserved().is_some_and(|word| ends.contains(&word));
            if self.peek().is_none()
                || ended
                || [")", ";;", ";&", ";;&"].iter().any(|op| self.at_operator(op))
            {
                return list;
            }
            let before = self.at;
            if let Some(node) = self.and_or() {
                let background = self.take_operator("&");
                list.push(Statement { node, background });
            }
            if self.at == before {
                // An operator where a command should be: a syntax error. Step over it.
                self.at += 1;
            }
        }
    }

    fn and_or(&mut self) -> Option<Node> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            let connector = if self.take_operator("&&") {
                Connector::And
            } else if self.take_operator("||") {
                Connector::Or
            } else {
                break;
            };
            while self.take_operator("\n") {}
            match self.pipeline() {
                Some(node) => rest.push((connector, node)),
                None => break,
            }
        }
        Some(if rest.is_empty() {
            first
        } else {
            Node::AndOr {
                first: Box::new(first),
                rest,
            }
        })
    }

    fn pipeline(&mut self) -> Option<Node> {
        let mut negated = false;
        while self.take_reserved("!") {
            negated = !negated;
        }
        let mut stages = vec![self.command()?];
        while self.take_operator("|") || self.take_operator("|&") {
            while self.take_operator("\n") {}
            match self.command() {
                Some(stage) => stages.push(stage),
                None => break,
            }
        }
        if negated || stages.len() > 1 {
            return Some(Node::Pipeline { negated, stages });
        }
        stages.pop()
    }

    fn nested(&mut self, ends: &[&str]) -> Vec<Statement> {
        if self.depth > MAX_DEPTH {
            self.at = self.tokens.len();
            return Vec::new();
        }
        self.depth += 1;
        let list = self.list(ends);
        self.depth -= 1;
        list
    }

    fn command(&mut self) -> Option<Node> {
        if self.take_operator("(") {
            let body = self.nested(&[]);
            self.take_operator(")");
            self.skip_redirects();
            return Some(Node::Subshell(body));
        }
        let compound = match self.reserved().map(str::to_owned).as_deref() {
            Some("{") => {
                self.at += 1;
                let body = self.nested(&["}"]);
                self.take_reserved("}");
                Node::Group(body)
            }
            Some("if") => self.if_command(),
            Some("while" | "until") => {
                self.at += 1;
                let condition = self.nested(&["do"]);
                self.take_reserved("do");
                let body = self.nested(&["done"]);
                self.take_reserved("done");
                Node::Loop { condition, body }
            }
            Some("for" | "select") => {
                while !matches!(self.reserved(), Some("do")) && self.next().is_some() {}
                self.take_reserved("do");
                let body = self.nested(&["done"]);
                self.take_reserved("done");
                Node::Loop {
                    condition: Vec::new(),
                    body,
                }
            }
            Some("case") => self.case_command(),
            Some("function") => {
                self.at += 1;
                let Some(Token::Word(name)) = self.next() else {
                    return None;
                };
                if self.take_operator("(") {
                    self.take_operator(")");
                }
                return Some(self.function(name.text));
            }
            Some(_) | None => return self.simple(),
        };
        self.skip_redirects();
        Some(compound)
    }

    fn if_command(&mut self) -> Node {
        let mut arms = Vec::new();
        let mut otherwise = None;
        while self.take_reserved("if") || self.take_reserved("elif") {
            let condition = self.nested(&["then"]);
            self.take_reserved("then");
            arms.push((condition, self.nested(&["elif", "else", "fi"])));
        }
        if self.take_reserved("else") {
            otherwise = Some(self.nested(&["fi"]));
        }
        self.take_reserved("fi");
        Node::If { arms, otherwise }
    }

    fn case_command(&mut self) -> Node {
        while !matches!(self.reserved(), Some("in")) && self.next().is_some() {}
        self.take_reserved("in");
        let mut bodies = Vec::new();
        while self.peek().is_some() && !self.take_reserved("esac") {
            while !self.at_operator(")") && self.next().is_some() {}
            self.take_operator(")");
            bodies.push(self.nested(&["esac"]));
            for op in [";;", ";&", ";;&", "\n", ")"] {
                while self.take_operator(op) {}
            }
        }
        Node::Case(bodies)
    }

    fn function(&mut self, name: String) -> Node {
        while self.take_operator("\n") {}
        let body = if self.depth > MAX_DEPTH {
            Vec::new()
        } else {
            self.depth += 1;
            let body = self.command();
            self.depth -= 1;
            body.into_iter()
                .map(|node| Statement {
                    node,
                    background: false,
                })
                .collect()
        };
        Node::Function { name, body }
    }

    fn skip_redirects(&mut self) {
        while matches!(self.peek(), Some(Token::Redirect { .. })) {
            self.at += 2;
        }
    }

    fn simple(&mut self) -> Option<Node> {
        let mut simple = Simple::default();
        let start = self.at;
        loop {
            match self.peek().cloned() {
                Some(Token::Word(word)) => {
                    self.at += 1;
                    match assignment(&word) {
                        Some((name, value)) if simple.words.is_empty() => {
                            simple.assignments.push((name, value));
                        }
                        Some(_) | None => simple.words.push(word),
                    }
                }
                Some(Token::Redirect { fd, operator }) => {
                    self.at += 1;
                    if let Some(Token::Word(target)) = self.peek().cloned() {
                        self.at += 1;
                        simple.redirects.push(Redirect { fd, operator, target });
                    }
                }
                // Inside `[[ … ]]` these are no operators of the shell.
                Some(Token::Operator(op)) if op != "\n" && op != ";" && in_double_bracket(&simple) => {
                    self.at += 1;
                }
                Some(Token::Operator("(")) if simple.words.len() == 1 && simple.assignments.is_empty() => {
                    self.at += 1;
                    self.take_operator(")");
                    let name = simple.words.pop().map(|word| word.text).unwrap_or_default();
                    return Some(self.function(name));
                }
                Some(Token::Operator(_)) | None => break,
            }
        }
        (self.at > start).then_some(Node::Simple(simple))
    }
}

fn in_double_bracket(simple: &Simple) -> bool {
    let is = |word: Option<&Word>, text: &str| word.is_some_and(|word| word.text == text && !word.quoted);
    is(simple.words.first(), "[[") && !is(simple.words.last(), "]]")
}

/// Splits `NAME=value` or `NAME+=value`.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let (name, value) = word.text.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let mut chars = name.chars();
    let head = chars.next()?;
    let named =
        (head.is_ascii_alphabetic() || head == '_') && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    named.then(|| {
        let value = Word {
            text: value.to_owned(),
            quoted: word.quoted,
            subs: word.subs.clone(),
        };
        (name.to_owned(), value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(script: &str) -> Vec<String> {
        fn walk(list: &[Statement], into: &mut Vec<String>) {
            for statement in list {
                node(&statement.node, into);
            }
        }
        fn node(node_: &Node, into: &mut Vec<String>) {
            match node_ {
                Node::Simple(simple) => {
                    let words: Vec<_> = simple.words.iter().map(|word| word.text.clone()).collect();
                    into.push(words.join("|"));
                }
                Node::Pipeline { stages, .. } => stages.iter().for_each(|stage| node(stage, into)),
                Node::AndOr { first, rest } => {
                    node(first, into);
                    rest.iter().for_each(|(_, next)| node(next, into));
                }
                Node::Subshell(list) | Node::Group(list) | Node::Function { body: list, .. } => {
                    walk(list, into);
                }
                Node::If { arms, otherwise } => {
                    for (condition, body) in arms {
                        walk(condition, into);
                        walk(body, into);
                    }
                    walk(otherwise.as_deref().unwrap_or_default(), into);
                }
                Node::Loop { condition, body } => {
                    walk(condition, into);
                    walk(body, into);
                }
                Node::Case(bodies) => bodies.iter().for_each(|body| walk(body, into)),
            }
        }
        let mut into = Vec::new();
        walk(&parse(script), &mut into);
        into
    }

    #[test]
    fn a_script_splits_into_the_commands_a_shell_would_run() {
        let check = |script: &str, wanted: &[&str]| assert_eq!(words(script), wanted, "{script}");
        check("a 'b c' \"d e\" f\\ g", &["a|b c|d e|f g"]);
        check("a && b || c; d & e", &["a", "b", "c", "d", "e"]);
        check("a 2>&1 | tail -5 >x", &["a", "tail|-5"]);
        check("X=1 a <<EOF\nnpm test\nEOF\nb", &["a", "b"]);
        check("if a; then b; else c; fi", &["a", "b", "c"]);
        check("for i in 1 2; do a; done; b", &["a", "b"]);
        check("case $x in a) b;; *) c;; esac; d", &["b", "c", "d"]);
        check("[[ $a == b && -f c ]] && d", &["[[|$a|==|b|-f|c|]]", "d"]);
        check("(cd x && a) # npm test", &["cd|x", "a"]);
        check("t() { a; }; t", &["a", "t"]);
        check("a \"$(b 'c)')\" d", &["a|$(b 'c)')|d"]);
        check("&& ) a ;; b", &["a", "b"]);
    }
}
