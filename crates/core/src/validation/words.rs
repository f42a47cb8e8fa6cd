//! A shell line as words and operators: quotes, expansions, here documents.

use super::script::{Statement, parse_at};

/// One word of a command after quote removal.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Word {
    /// The text with quotes removed; expansions stay as written (`$X`, `$(…)`).
    pub(super) text: String,
    /// True if any part was quoted: a quoted word is never a reserved word.
    pub(super) quoted: bool,
    /// The command substitutions and process substitutions inside.
    pub(super) subs: Vec<Vec<Statement>>,
}

/// What a shell line is made of.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Word(Word),
    Operator(&'static str),
    Redirect { fd: String, operator: String },
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    heredocs: Vec<String>,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at.saturating_add(ahead)).copied()
    }

    fn starts(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(i, c)| self.peek(i) == Some(c))
    }

    fn tokens(mut self) -> Vec<Token> {
        const OPERATORS: [&str; 11] = [";;&", ";;", ";&", ";", "&&", "||", "|&", "|", "(", ")", "&"];
        const REDIRECTS: [&str; 11] = ["<<<", "<<-", "<<", "<&", "<>", ">>", ">&", ">|", "&>>", "<", ">"];
        let mut tokens: Vec<Token> = Vec::new();
        while let Some(c) = self.peek(0) {
            if c == '\n' {
                self.at += 1;
                tokens.push(Token::Operator("\n"));
                self.skip_heredocs();
            } else if c.is_whitespace() {
                self.at += 1;
            } else if c == '\\' && self.peek(1) == Some('\n') {
                self.at += 2;
            } else if c == '#' {
                while self.peek(0).is_some_and(|c| c != '\n') {
                    self.at += 1;
                }
            } else if self.starts("&>") {
                self.at += 2;
                if self.peek(0) == Some('>') {
                    self.at += 1;
                }
                tokens.push(Token::Redirect {
                    fd: "&".to_owned(),
                    operator: ">".to_owned(),
                });
            } else if (c == '<' || c == '>')
                && self.peek(1) != Some('(')
                && let Some(operator) = REDIRECTS.iter().find(|op| self.starts(op))
            {
                self.redirect(operator, &mut tokens, String::new());
            } else if let Some(operator) = OPERATORS.iter().find(|op| self.starts(op)) {
                self.at += operator.len();
                tokens.push(Token::Operator(operator));
            } else {
                let word = self.word();
                let is_fd = !word.quoted
                    && !word.text.is_empty()
                    && word.text.chars().all(|c| c.is_ascii_digit())
                    && matches!(self.peek(0), Some('<' | '>'));
                match REDIRECTS.iter().find(|op| is_fd && self.starts(op)) {
                    Some(operator) => self.redirect(operator, &mut tokens, word.text),
                    None => tokens.push(Token::Word(word)),
                }
            }
        }
        tokens
    }

    fn redirect(&mut self, operator: &str, tokens: &mut Vec<Token>, fd: String) {
        self.at += operator.len();
        if operator == "<<" || operator == "<<-" {
            while self.peek(0).is_some_and(|c| c == ' ' || c == '\t') {
                self.at += 1;
            }
            let delimiter = self.word();
            self.heredocs.push(delimiter.text);
            return;
        }
        tokens.push(Token::Redirect {
            fd,
            operator: operator.to_owned(),
        });
    }

    /// The bodies of here documents are data: what stands in them does not run here.
    fn skip_heredocs(&mut self) {
        for delimiter in std::mem::take(&mut self.heredocs) {
            while self.at < self.chars.len() {
                let mut line = String::new();
                while let Some(c) = self.peek(0) {
                    self.at += 1;
                    if c == '\n' {
                        break;
                    }
                    line.push(c);
                }
                if line.trim_start_matches('\t').trim_end_matches('\r') == delimiter {
                    break;
                }
            }
        }
    }

    fn word(&mut self) -> Word {
        let mut word = Word::default();
        let start = self.at;
        while let Some(c) = self.peek(0) {
            match c {
                '\'' => {
                    self.at += 1;
                    word.quoted = true;
                    self.until_quote('\'', &mut word.text);
                }
                '"' => {
                    self.at += 1;
                    word.quoted = true;
                    self.double_quoted(&mut word);
                }
                '\\' => {
                    self.at += 1;
                    if let Some(next) = self.peek(0) {
                        self.at += 1;
                        if next != '\n' {
                            word.quoted = true;
                            word.text.push(next);
                        }
                    }
                }
                '$' | '`' => self.expansion(&mut word),
                '<' | '>' if self.peek(1) == Some('(') => {
                    self.at += 1;
                    word.text.push(c);
                    self.substitution('(', ')', &mut word);
                }
                ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                c if c.is_whitespace() => break,
                c => {
                    self.at += 1;
                    word.text.push(c);
                }
            }
        }
        // Progress is certain: a caller comes here only at a character that is no operator, but be sure of it.
        if self.at == start {
            self.at += 1;
        }
        word
    }

    fn until_quote(&mut self, quote: char, into: &mut String) {
        while let Some(c) = self.peek(0) {
            self.at += 1;
            if c == quote {
                return;
            }
            into.push(c);
        }
    }

    fn double_quoted(&mut self, word: &mut Word) {
        while let Some(c) = self.peek(0) {
            match c {
                '"' => {
                    self.at += 1;
                    return;
                }
                '\\' => {
                    self.at += 1;
                    if let Some(next) = self.peek(0) {
                        self.at += 1;
                        if !matches!(next, '"' | '\\' | '$' | '`' | '\n') {
                            word.text.push('\\');
                        }
                        if next != '\n' {
                            word.text.push(next);
                        }
                    }
                }
                '$' | '`' => self.expansion(word),
                c => {
                    self.at += 1;
                    word.text.push(c);
                }
            }
        }
    }

    /// Reads `$X`, `${X}`, `$(…)`, `$((…))` or a backquoted command; the text is kept as written.
    fn expansion(&mut self, word: &mut Word) {
        if self.peek(0) == Some('`') {
            self.at += 1;
            let mut inner = String::new();
            self.until_quote('`', &mut inner);
            word.subs.push(parse_at(&inner, self.depth + 1));
            word.text.push('`');
            word.text.push_str(&inner);
            word.text.push('`');
            return;
        }
        self.at += 1;
        match self.peek(0) {
            Some('(') => {
                word.text.push('$');
                let arithmetic = self.peek(1) == Some('(');
                let before = word.subs.len();
                self.substitution('(', ')', word);
                if arithmetic {
                    word.subs.truncate(before);
                }
            }
            Some('{') => {
                word.text.push('$');
                let before = word.subs.len();
                self.substitution('{', '}', word);
                word.subs.truncate(before);
            }
            Some('\'') => {
                self.at += 1;
                word.quoted = true;
                self.until_quote('\'', &mut word.text);
            }
            Some('"') | None | Some(_) => word.text.push('$'),
        }
    }

    /// Reads a bracketed text, quotes inside respected, and parses it as a script.
    fn substitution(&mut self, open: char, close: char, word: &mut Word) {
        let mut inner = String::new();
        let mut depth = 0_usize;
        let mut quote = None;
        while let Some(c) = self.peek(0) {
            self.at += 1;
            if c == '\\' && quote != Some('\'') {
                inner.push(c);
                if let Some(next) = self.peek(0) {
                    self.at += 1;
                    inner.push(next);
                }
                continue;
            }
            match quote {
                Some(q) if q == c => quote = None,
                Some(_) => {}
                None if c == '\'' || c == '"' => quote = Some(c),
                None if c == open => {
                    depth += 1;
                    if depth == 1 {
                        continue;
                    }
                }
                None if c == close => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        break;
                    }
                }
                None => {}
            }
            inner.push(c);
        }
        word.subs.push(parse_at(&inner, self.depth + 1));
        word.text.push(open);
        word.text.push_str(&inner);
        word.text.push(close);
    }
}

/// Splits a text found at `depth` levels of nesting.
pub(super) fn tokens(text: &str, depth: usize) -> Vec<Token> {
    let lexer = Lexer {
        chars: text.chars().collect(),
        at: 0,
        depth,
        heredocs: Vec::new(),
    };
    lexer.tokens()
}
