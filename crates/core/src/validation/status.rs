//! Whose exit status is the line's: walks a script as a shell would and says whether a failing test can end in 0.

use super::{
    command::{Invocation, Meaning, Scope, Shown, base, is_build_directory, meaning},
    script::{Connector, Node, Simple, Statement, parse, parse_at},
    words::Word,
};

/// What a line amounts to.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) found: Vec<Invocation>,
    pub(super) masked: bool,
    pub(super) detached: bool,
    pub(super) shown: Shown,
}

/// At most this many test runs are kept of a line, and this many evaluated strings are followed.
const MAX_FOUND: usize = 16;
const MAX_SCRIPTS: usize = 64;

/// Reads a line.
pub(super) fn read(script: &str) -> Line {
    let mut walk = Walk::default();
    let mut shell = Shell::default();
    let fate = walk.list(&parse(script), &mut shell);
    let masked =
        fate != Fate::NoTest && !matches!(fate, Fate::Kept | Fate::Ends) || walk.masked || shell.trapped;
    let shown = if walk.prints_results {
        Shown::Mixed
    } else {
        walk.shown.unwrap_or(Shown::Whole)
    };
    Line {
        masked: masked && !walk.found.is_empty(),
        detached: fate == Fate::Background,
        found: walk.found,
        shown,
    }
}

/// What becomes of a failing test inside a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// There is no test inside.
    NoTest,
    /// The command fails too.
    Kept,
    /// The shell ends with a failure.
    Ends,
    /// The command can succeed.
    Lost,
    /// As `Lost`, but `PIPESTATUS` still knows.
    LostInPipe,
    /// Nobody waits for it.
    Background,
}

impl Fate {
    /// Both happen; the worse one decides.
    fn and(self, other: Self) -> Self {
        let rank = |fate| match fate {
            Self::NoTest => 0,
            Self::Ends => 1,
            Self::Kept => 2,
            Self::LostInPipe => 3,
            Self::Background => 4,
            Self::Lost => 5,
        };
        if rank(self) >= rank(other) { self } else { other }
    }

    /// Seen from outside of a subshell: its end is a status.
    fn outside(self) -> Self {
        if self == Self::Ends { Self::Kept } else { self }
    }

    /// The next command's status replaces this one's.
    fn overwritten(self) -> Self {
        match self {
            Self::NoTest | Self::Ends => self,
            Self::Kept | Self::Lost | Self::LostInPipe => Self::Lost,
            Self::Background => Self::Background,
        }
    }
}

/// The state of a shell that decides what a status does.
#[derive(Debug, Clone, Default)]
struct Shell {
    errexit: bool,
    pipefail: bool,
    /// True once `trap … EXIT` can end the shell with another status.
    trapped: bool,
    dir: Option<String>,
    functions: Vec<(String, Vec<Statement>)>,
}

#[derive(Debug, Default)]
struct Walk {
    found: Vec<Invocation>,
    masked: bool,
    prints_results: bool,
    shown: Option<Shown>,
    scripts: usize,
    depth: usize,
}

impl Walk {
    fn list(&mut self, list: &[Statement], shell: &mut Shell) -> Fate {
        if self.depth > 40 {
            return Fate::NoTest;
        }
        self.depth += 1;
        let fate = self.statements(list, shell);
        self.depth -= 1;
        fate
    }

    fn statements(&mut self, list: &[Statement], shell: &mut Shell) -> Fate {
        // What became of the tests so far; `Kept` here means that `$?` tells.
        let mut so_far = Fate::NoTest;
        let mut saved: Vec<String> = Vec::new();
        let mut in_variable = false;
        for statement in list {
            let simple = as_simple(&statement.node);
            if so_far != Fate::NoTest && so_far != Fate::Ends {
                let reads_status = mentions(&statement.node, &["$?", "${?}", "PIPESTATUS", "pipestatus"]);
                let reads_saved =
                    !saved.is_empty() && saved.iter().all(|name| mentions_variable(&statement.node, name));
                let told = (reads_status && matches!(so_far, Fate::Kept | Fate::LostInPipe))
                    || (reads_saved && in_variable);
                match simple.map(first_word) {
                    Some("exit" | "return")
                        if told || (so_far == Fate::Kept && simple.is_some_and(|s| s.words.len() == 1)) =>
                    {
                        return Fate::Kept;
                    }
                    Some("wait") if so_far == Fate::Background => {
                        let waits = simple.is_some_and(|s| s.words.len() > 1);
                        so_far = if waits { Fate::Kept } else { Fate::Lost };
                        continue;
                    }
                    Some("test" | "[" | "[[" | "((" | "let") if told => {
                        so_far = Fate::Kept;
                        in_variable = false;
                        continue;
                    }
                    Some("") if so_far != Fate::Background && reads_status => {
                        saved.extend(
                            simple
                                .into_iter()
                                .flat_map(|s| s.assignments.iter().map(|(name, _)| name.clone())),
                        );
                        in_variable = true;
                        continue;
                    }
                    Some("") if so_far == Fate::Background => continue,
                    Some("set" | "cd" | "shopt" | "trap") | None | Some(_)
                        if told && can_fail_shell(&statement.node) =>
                    {
                        so_far = Fate::Ends;
                        in_variable = false;
                        continue;
                    }
                    Some(_) | None => {}
                }
            }
            let fate = self.statement(statement, shell);
            if let Some(simple) = simple
                && matches!(first_word(simple), "exit" | "return")
            {
                return so_far.and(fate).overwritten();
            }
            if !(in_variable && so_far != Fate::NoTest) {
                so_far = so_far.overwritten();
            }
            let ends_shell = fate == Fate::Kept
                && shell.errexit
                && matches!(
                    statement.node,
                    Node::Simple(_) | Node::Pipeline { .. } | Node::Subshell(_) | Node::Group(_)
                );
            so_far = so_far.and(if ends_shell { Fate::Ends } else { fate });
            // A test that ran after others were saved has to be saved too: until then the variable does not tell.
            if fate != Fate::NoTest && fate != Fate::Ends && in_variable {
                in_variable = true;
            }
        }
        if in_variable && !matches!(so_far, Fate::NoTest | Fate::Ends) {
            return Fate::Lost;
        }
        if so_far == Fate::LostInPipe {
            Fate::Lost
        } else {
            so_far
        }
    }

    fn statement(&mut self, statement: &Statement, shell: &mut Shell) -> Fate {
        if !statement.background {
            return self.node(&statement.node, shell);
        }
        match self.node(&statement.node, &mut shell.clone()) {
            Fate::NoTest => Fate::NoTest,
            Fate::Kept | Fate::Ends | Fate::Background => Fate::Background,
            Fate::Lost | Fate::LostInPipe => Fate::Lost,
        }
    }

    fn node(&mut self, node: &Node, shell: &mut Shell) -> Fate {
        match node {
            Node::Simple(simple) => self.simple(simple, shell),
            Node::Pipeline { negated, stages } => self.pipeline(*negated, stages, shell),
            Node::AndOr { first, rest } => self.and_or(first, rest, shell),
            Node::Subshell(list) => self.list(list, &mut shell.clone()).outside(),
            Node::Group(list) => self.list(list, shell),
            Node::If { arms, otherwise } => self.branches(arms, otherwise.as_deref(), shell),
            Node::Loop { condition, body } => {
                let condition = self.list(
                    condition,
                    &mut Shell {
                        errexit: false,
                        ..shell.clone()
                    },
                );
                let body = self.list(body, shell);
                condition.overwritten().and(body.overwritten())
            }
            Node::Case(bodies) => bodies
                .iter()
                .fold(Fate::NoTest, |fate, body| fate.and(self.list(body, shell))),
            Node::Function { name, body } => {
                shell.functions.push((name.clone(), body.clone()));
                Fate::NoTest
            }
        }
    }

    fn branches(
        &mut self,
        arms: &[(Vec<Statement>, Vec<Statement>)],
        otherwise: Option<&[Statement]>,
        shell: &mut Shell,
    ) -> Fate {
        let mut fate = Fate::NoTest;
        for (condition, body) in arms {
            let found = self.list(
                condition,
                &mut Shell {
                    errexit: false,
                    ..shell.clone()
                },
            );
            let negated = matches!(
                condition.last().map(|last| &last.node),
                Some(Node::Pipeline { negated: true, .. })
            );
            let on_failure = if negated { Some(body.as_slice()) } else { otherwise };
            let handled = (found == Fate::Kept || negated && found != Fate::NoTest)
                && on_failure.is_some_and(|list| list.last().is_some_and(|last| fails(&last.node)));
            let found = if handled { Fate::Kept } else { found.overwritten() };
            fate = fate.and(found).and(self.list(body, shell));
        }
        fate.and(otherwise.map_or(Fate::NoTest, |list| self.list(list, shell)))
    }

    fn pipeline(&mut self, negated: bool, stages: &[Node], shell: &mut Shell) -> Fate {
        let mut fate = Fate::NoTest;
        let last = stages.len().saturating_sub(1);
        for (place, stage) in stages.iter().enumerate() {
            let found = if last == 0 {
                self.node(stage, shell)
            } else {
                self.node(stage, &mut shell.clone()).outside()
            };
            let lost_here = place < last && !shell.pipefail && found == Fate::Kept;
            if place < last && found != Fate::NoTest {
                self.show(stages.iter().skip(place + 1));
            }
            fate = fate.and(if lost_here { Fate::LostInPipe } else { found });
        }
        if negated { fate.overwritten() } else { fate }
    }

    /// What the stages behind a test let through.
    fn show<'a>(&mut self, stages: impl Iterator<Item = &'a Node>) {
        for stage in stages {
            let shown = match as_simple(stage).map(first_word) {
                Some(
                    "tee" | "cat" | "less" | "more" | "ts" | "sponge" | "nl" | "tap-spec" | "tap-dot"
                    | "stdbuf" | "pino-pretty" | "xcpretty" | "xcbeautify",
                ) => Shown::Whole,
                Some("tail") => Shown::Tail,
                Some(_) | None => Shown::Filtered,
            };
            self.shown = Some(match (self.shown, shown) {
                (Some(before), Shown::Whole) => before,
                (_, shown) => shown,
            });
        }
    }

    fn and_or(&mut self, first: &Node, rest: &[(Connector, Node)], shell: &mut Shell) -> Fate {
        // Inside an and-or list only the last command can trigger `errexit`; the list as a whole is judged by the caller.
        let mut fate = self.node(first, shell);
        for (connector, node) in rest {
            match connector {
                // A failure before skips this command and keeps its status.
                Connector::And => {
                    let next = self.node(node, shell);
                    fate = fate.and(next);
                }
                Connector::Or => {
                    let handled = fails(node) || exits_with_status(node);
                    let next = self.node(node, shell);
                    let before = if fate != Fate::Kept || !handled {
                        fate.overwritten()
                    } else if ends(node) {
                        Fate::Ends
                    } else {
                        Fate::Kept
                    };
                    fate = before.and(next);
                }
            }
        }
        fate
    }

    fn substitutions(&mut self, words: impl Iterator<Item = Word>, shell: &Shell) -> Fate {
        let mut fate = Fate::NoTest;
        for word in words {
            for sub in &word.subs {
                let inner = self.list(sub, &mut shell.clone());
                fate = fate.and(if inner == Fate::Ends { Fate::Kept } else { inner });
            }
        }
        fate
    }

    fn simple(&mut self, simple: &Simple, shell: &mut Shell) -> Fate {
        let assigned = self.substitutions(simple.assignments.iter().map(|(_, word)| word.clone()), shell);
        if simple.words.is_empty() {
            if assigned != Fate::NoTest {
                self.shown = Some(Shown::Elsewhere);
            }
            return assigned;
        }
        let targets = simple.redirects.iter().map(|redirect| redirect.target.clone());
        let inside = self
            .substitutions(simple.words.iter().cloned().chain(targets), shell)
            .and(assigned);
        let own = self.command(simple, shell);
        if own != Fate::NoTest {
            self.redirected(simple);
        }
        inside.overwritten().and(own)
    }

    /// Where the output of a test goes.
    fn redirected(&mut self, simple: &Simple) {
        for redirect in &simple.redirects {
            let out = matches!(redirect.fd.as_str(), "" | "1" | "&") && redirect.operator.starts_with('>');
            if out
                && !redirect.target.text.starts_with(">(")
                && !(redirect.operator == ">&" && redirect.target.text == "2")
            {
                self.shown = Some(Shown::Elsewhere);
            }
        }
    }

    fn command(&mut self, simple: &Simple, shell: &mut Shell) -> Fate {
        let argv: Vec<String> = simple.words.iter().map(|word| word.text.clone()).collect();
        let args = argv.get(1..).unwrap_or_default();
        match first_word(simple) {
            "set" => return shell.set(args),
            "trap" => {
                let (body, signals) = args
                    .split_first()
                    .map_or(("", &[][..]), |(body, signals)| (body.as_str(), signals));
                let ends = body.split([';', ' ']).any(|word| word == "exit") && !body.contains("exit $");
                shell.trapped |= ends
                    && signals
                        .iter()
                        .any(|signal| matches!(signal.as_str(), "EXIT" | "0" | "ERR"));
                return Fate::NoTest;
            }
            "cd" | "pushd" => {
                shell.change_directory(args.iter().find(|arg| !arg.starts_with('-')).map(String::as_str));
                return Fate::NoTest;
            }
            "popd" => {
                shell.dir = None;
                return Fate::NoTest;
            }
            "echo" | "printf" | "print" => {
                self.prints_results |= args.iter().any(|arg| reads_like_a_result(arg));
                return Fate::NoTest;
            }
            "find" | "fd"
                if args
                    .iter()
                    .any(|arg| arg == "-exec" || arg == "-execdir" || arg == "-x") =>
            {
                let inner: Vec<String> = args
                    .iter()
                    .skip_while(|arg| !matches!(arg.as_str(), "-exec" | "-execdir" | "-x"))
                    .skip(1)
                    .filter(|arg| !matches!(arg.as_str(), ";" | "+" | "{}"))
                    .cloned()
                    .collect();
                return self.argv(&inner, shell).overwritten();
            }
            name => {
                let called = shell.functions.iter().rev().find(|(known, _)| known == name);
                if let Some((_, body)) = called.cloned() {
                    // A function that calls itself ends at the depth limit of `list`.
                    shell.functions.retain(|(known, _)| known != name);
                    return self.list(&body, shell);
                }
            }
        }
        self.argv(&argv, shell)
    }

    fn argv(&mut self, argv: &[String], shell: &mut Shell) -> Fate {
        match meaning(argv) {
            Meaning::Other => Fate::NoTest,
            Meaning::Test(mut run) => {
                self.masked |= run.masks;
                let inside = run.dir.take();
                run.dir = match (&shell.dir, inside) {
                    (Some(dir), Some(inside)) => Some(join(dir, &inside)),
                    (dir, inside) => inside.or_else(|| dir.clone()),
                };
                if shell.dir.as_deref().is_some_and(|dir| {
                    !dir.starts_with('/') && !dir.starts_with("..") && !is_build_directory(dir)
                }) {
                    run.scope = Scope::Subset;
                }
                if self.found.len() < MAX_FOUND {
                    self.found.push(run);
                }
                Fate::Kept
            }
            Meaning::Script {
                text,
                options,
                masks,
                watch,
            } => {
                self.scripts += 1;
                if self.scripts > MAX_SCRIPTS || self.depth > 20 {
                    return Fate::NoTest;
                }
                let before = self.found.len();
                let mut inner = shell.clone();
                if argv.first().is_none_or(|program| base(program) != "eval") {
                    inner.errexit = false;
                    inner.pipefail = false;
                }
                inner.set(&options);
                let fate = self.list(&parse_at(&text, self.depth), &mut inner);
                if fate == Fate::NoTest {
                    return Fate::NoTest;
                }
                self.masked |= masks || (inner.trapped && !shell.trapped);
                self.found
                    .iter_mut()
                    .skip(before)
                    .for_each(|run| run.watch |= watch);
                if fate == Fate::Ends { Fate::Kept } else { fate }
            }
        }
    }
}

impl Shell {
    fn set(&mut self, args: &[String]) -> Fate {
        let mut words = args.iter();
        while let Some(arg) = words.next() {
            let on = arg.starts_with('-');
            if !on && !arg.starts_with('+') || arg.starts_with("--") {
                continue;
            }
            if arg.contains('e') {
                self.errexit = on;
            }
            if arg.contains('o') {
                match words.next().map(String::as_str) {
                    Some("pipefail") => self.pipefail = on,
                    Some("errexit") => self.errexit = on,
                    Some(_) | None => {}
                }
            }
        }
        Fate::NoTest
    }

    fn change_directory(&mut self, to: Option<&str>) {
        let Some(to) = to else {
            self.dir = None;
            return;
        };
        if to.contains(['$', '`', '~']) {
            self.dir = None;
            return;
        }
        let joined = match &self.dir {
            Some(dir) => join(dir, to),
            None => join("", to),
        };
        self.dir = (!joined.is_empty()).then_some(joined);
    }
}

/// Joins and folds `.` and `..`; a path that climbs out keeps its `..`.
fn join(dir: &str, to: &str) -> String {
    let absolute = to.starts_with('/') || dir.starts_with('/');
    let base = if to.starts_with('/') { "" } else { dir };
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(to.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if absolute => {}
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    if absolute { format!("/{path}") } else { path }
}

fn as_simple(node: &Node) -> Option<&Simple> {
    match node {
        Node::Simple(simple) => Some(simple),
        Node::Pipeline { .. }
        | Node::AndOr { .. }
        | Node::Subshell(_)
        | Node::Group(_)
        | Node::If { .. }
        | Node::Loop { .. }
        | Node::Case(_)
        | Node::Function { .. } => None,
    }
}

fn first_word(simple: &Simple) -> &str {
    simple.words.first().map_or("", |word| &word.text)
}

/// True for a command that always fails: `false`, `exit 1`, `{ echo x; exit 1; }`.
fn fails(node: &Node) -> bool {
    match node {
        Node::Simple(simple) => {
            let code = simple.words.get(1).map(|word| word.text.as_str());
            match first_word(simple) {
                "false" => true,
                "exit" | "return" => {
                    code.is_some_and(|code| code.parse::<u32>().is_ok_and(|code| code % 256 != 0))
                }
                _ => false,
            }
        }
        Node::Subshell(list) | Node::Group(list) => list.last().is_some_and(|last| fails(&last.node)),
        Node::Pipeline { .. }
        | Node::AndOr { .. }
        | Node::If { .. }
        | Node::Loop { .. }
        | Node::Case(_)
        | Node::Function { .. } => false,
    }
}

/// True for `exit` and `exit $?` behind `||`: they hand the status on.
fn exits_with_status(node: &Node) -> bool {
    as_simple(node).is_some_and(|simple| {
        matches!(first_word(simple), "exit" | "return")
            && simple.words.get(1).is_none_or(|word| word.text == "$?")
    })
}

/// True if a failing command also ends the shell.
fn ends(node: &Node) -> bool {
    match node {
        Node::Simple(simple) => matches!(first_word(simple), "exit" | "return"),
        Node::Group(list) => list.last().is_some_and(|last| ends(&last.node)),
        Node::Subshell(_)
        | Node::Pipeline { .. }
        | Node::AndOr { .. }
        | Node::If { .. }
        | Node::Loop { .. }
        | Node::Case(_)
        | Node::Function { .. } => false,
    }
}

/// True if some branch of the command ends the shell with a failure: `[ $? -eq 0 ] || exit 1`, `if … then exit 1; fi`.
fn can_fail_shell(node: &Node) -> bool {
    let list = |list: &[Statement]| {
        list.iter().any(|statement| {
            (fails(&statement.node) && ends(&statement.node)) || exits_with_any(&statement.node)
        })
    };
    match node {
        Node::AndOr { rest, .. } => rest
            .iter()
            .any(|(_, node)| (fails(node) && ends(node)) || exits_with_any(node)),
        Node::If { arms, otherwise } => {
            arms.iter().any(|(_, body)| list(body)) || otherwise.as_deref().is_some_and(list)
        }
        Node::Simple(_)
        | Node::Pipeline { .. }
        | Node::Subshell(_)
        | Node::Group(_)
        | Node::Loop { .. }
        | Node::Case(_)
        | Node::Function { .. } => false,
    }
}

fn exits_with_any(node: &Node) -> bool {
    as_simple(node).is_some_and(|simple| {
        matches!(first_word(simple), "exit" | "return")
            && simple.words.get(1).is_some_and(|word| word.text.starts_with('$'))
    })
}

fn texts<'a>(node: &'a Node, into: &mut Vec<&'a str>) {
    match node {
        Node::Simple(simple) => {
            into.extend(simple.words.iter().map(|word| word.text.as_str()));
            into.extend(simple.assignments.iter().map(|(_, word)| word.text.as_str()));
        }
        Node::AndOr { first, rest } => {
            texts(first, into);
            rest.iter().for_each(|(_, node)| texts(node, into));
        }
        Node::Pipeline { stages, .. } => stages.iter().for_each(|stage| texts(stage, into)),
        Node::If { arms, .. } => {
            for statement in arms.iter().flat_map(|(condition, _)| condition) {
                texts(&statement.node, into);
            }
        }
        Node::Subshell(list) | Node::Group(list) => {
            list.iter().for_each(|statement| texts(&statement.node, into));
        }
        Node::Loop { .. } | Node::Case(_) | Node::Function { .. } => {}
    }
}

fn mentions(node: &Node, what: &[&str]) -> bool {
    let mut found = Vec::new();
    texts(node, &mut found);
    found
        .iter()
        .any(|text| what.iter().any(|what| text.contains(what)))
}

fn mentions_variable(node: &Node, name: &str) -> bool {
    let mut found = Vec::new();
    texts(node, &mut found);
    found.iter().any(|text| {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .any(|word| word == name)
    })
}

/// True for a text that a reader of results could take for one: it has a digit or says that something passed.
fn reads_like_a_result(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.chars().any(|c| c.is_ascii_digit())
        || ["pass", "ok", "success", "green"]
            .iter()
            .any(|word| lower.contains(word))
}
