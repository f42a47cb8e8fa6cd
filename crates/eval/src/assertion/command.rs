//! Assertions about commands, and the reading of command lines that they and `mustReadFiles` need.

use super::{
    Finding, Results,
    record::{Call, Record, join},
};
use crate::case::Expected;
use tracegate_core::{
    fact::tool::{Outcome, TestRunRecord},
    validation::{Trust, recognise},
};

/// Returns what a command line is compared by: for a test command what the recogniser makes of it (so that `npm t`,
/// `npm test` and `npm run test` are one), otherwise its words, without the quotes of plain ones.
#[must_use]
pub fn normalise_command(command: &str) -> Vec<String> {
    if let Some(test) = recognise(command) {
        return test.normalised;
    }
    let plain = plain_words(command).and_then(|commands| <[Vec<String>; 1]>::try_from(commands).ok());
    match plain {
        Some([words]) => words,
        None => command.split_whitespace().map(str::to_owned).collect(),
    }
}

pub(super) fn judge(expected: &Expected, results: &mut Results<'_, '_>) {
    let record = results.record;
    for command in &expected.commands_pass {
        let kind = match recognise(command) {
            Some(_) => CommandKind::Test,
            None => CommandKind::Other,
        };
        let finding = passes(record, command, kind);
        results.gate(
            "commandsPass",
            command,
            format!("newest run of `{command}` green, nothing changed since"),
            finding,
        );
    }
    for command in &expected.commands_run {
        results.gate(
            "commandsRun",
            command,
            format!("`{command}` run"),
            ran(record, command),
        );
    }
}

/// What proves that a command was green.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandKind {
    /// A reading of its output: tests can be green because there were none.
    Test,
    /// Its exit code.
    Other,
}

/// Judges the newest run of `command`.
pub(super) fn passes(record: &Record<'_>, command: &str, kind: CommandKind) -> Finding {
    let wanted = normalise_command(command);
    let newest = record
        .calls
        .iter()
        .filter(|call| call.executed() && may_have_run(call, &wanted))
        .max_by_key(|call| call.started.unwrap_or(call.seq));
    let Some(call) = newest else {
        return Finding::fail("never run", format!("{command} never run"));
    };
    let begin = call.started.unwrap_or(call.seq);
    let Some(end) = call.finished else {
        let message = format!("{command} did not finish (event {begin})");
        return Finding::fail("not finished", message).with([begin]);
    };
    let red =
        |observed: &str| Finding::fail(observed, format!("{command} {observed} (event {end})")).with([end]);
    match call.outcome {
        Some(Outcome::Timeout) => return red("timed out"),
        Some(Outcome::Cancelled) => return red("was cancelled"),
        Some(Outcome::Unknown | Outcome::Refused | Outcome::NotRun) | None => {
            return red("has no known end");
        }
        Some(Outcome::Ok | Outcome::Failed) => {}
    }
    match (reading_of(call, &wanted), kind) {
        (Some(test), CommandKind::Test | CommandKind::Other) => {
            let exit = call.exit_code.filter(|code| *code != 0);
            match (test.reading.trust, exit) {
                (Trust::Red, Some(code)) => return red(&format!("exit {code}")),
                (Trust::Red, None) => return red("is red"),
                (Trust::Unknown, _) => return red("gave no result that can be trusted"),
                (Trust::Green, Some(code)) => return red(&format!("exit {code}")),
                (Trust::Green, None) => {}
            }
            if test.command.masked {
                return red("ran with its exit code masked");
            }
        }
        (None, kind) => match (call.exit_code, kind) {
            (Some(0), CommandKind::Test) => {
                return Finding::error(format!("no reading of {command} was recorded (event {end})"))
                    .with([end]);
            }
            (Some(0), CommandKind::Other) if shows_exit_code(call, &wanted) => {}
            (Some(0), CommandKind::Other) => return red("ran where its exit code cannot be seen"),
            (Some(code), _) => return red(&format!("exit {code}")),
            (None, _) => {
                return Finding::error(format!("no exit code of {command} was recorded (event {end})"))
                    .with([end]);
            }
        },
    }
    if let Some(change) = record.changes().iter().find(|change| change.seq > begin) {
        return Finding::fail(
            format!("green, then {} changed", change.path),
            format!(
                "{command} was green, but {} changed after it began (event {})",
                change.path, change.seq
            ),
        )
        .with([end, change.seq]);
    }
    if let Some(why) = record.unseen_changes(begin) {
        return Finding::error(format!(
            "whether anything changed after {command} is not known: {why}"
        ))
        .with([end]);
    }
    Finding::pass(format!("green (event {end})")).with([end])
}

/// Judges whether `command` ran at all.
fn ran(record: &Record<'_>, command: &str) -> Finding {
    let wanted = normalise_command(command);
    let run = record
        .calls
        .iter()
        .find(|call| call.executed() && surely_ran(call, &wanted));
    match run {
        Some(call) => {
            let seq = call.started.unwrap_or(call.seq);
            Finding::pass(format!("run (event {seq})")).with([seq])
        }
        None => Finding::fail("never run", format!("{command} never run")),
    }
}

/// Returns the reading of this command's output, if the call has one.
fn reading_of<'a>(call: &Call<'a>, wanted: &[String]) -> Option<&'a TestRunRecord> {
    call.test.filter(|test| test.command.normalised == wanted)
}

/// Tells whether the whole line of a call is this command.
fn is_line(call: &Call<'_>, wanted: &[String]) -> bool {
    reading_of(call, wanted).is_some() || call.command.is_some_and(|line| normalise_command(line) == wanted)
}

/// Tells whether the command is a part of the call's line, run or not: a red chain may be red because of it.
fn may_have_run(call: &Call<'_>, wanted: &[String]) -> bool {
    let mut parts = call.command.map(chain).unwrap_or_default().into_iter();
    is_line(call, wanted) || parts.any(|part| part.words == wanted)
}

/// Tells whether the command ran: in a chain that failed, only the first part surely did.
fn surely_ran(call: &Call<'_>, wanted: &[String]) -> bool {
    let parts = call.command.map(chain).unwrap_or_default();
    let meant = |part: &Part| part.words == wanted;
    is_line(call, wanted)
        || match call.exit_code {
            Some(0) => parts.iter().any(meant),
            // Behind a `cd`, even the first did not run if the folder was not there.
            Some(_) | None => parts
                .first()
                .is_some_and(|part| part.folder.is_empty() && meant(part)),
        }
}

/// Tells whether an exit code of 0 is the command's own: every part of a chain that succeeded did. One that ran in another
/// folder is another command.
fn shows_exit_code(call: &Call<'_>, wanted: &[String]) -> bool {
    let mut parts = call.command.map(chain).unwrap_or_default().into_iter();
    parts.any(|part| part.folder.is_empty() && part.words == wanted)
}

/// One command of a chain, and the folder that it runs in, relative to the workspace.
struct Part {
    folder: String,
    words: Vec<String>,
}

/// Takes a command line of plain words, joined by `&&` at most, apart. Anything that only a shell can read gives nothing.
fn chain(line: &str) -> Vec<Part> {
    let Some(commands) = plain_words(line) else {
        return Vec::new();
    };
    let mut folder = String::new();
    let mut parts = Vec::new();
    for words in commands {
        if let [first, rest @ ..] = words.as_slice()
            && first == "cd"
        {
            match rest {
                [to] if to != "-" => folder = join(&folder, to),
                // `cd` alone or with options: nobody knows where what follows runs.
                [] | [_] | [_, _, ..] => break,
            }
        } else {
            parts.push(Part {
                folder: folder.clone(),
                words,
            });
        }
    }
    parts
}

/// Splits a line into commands joined by `&&` and their words, if it holds nothing that a shell would expand, redirect or
/// run otherwise. Quotes may hold anything literal.
fn plain_words(line: &str) -> Option<Vec<Vec<String>>> {
    let mut commands = Vec::new();
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.trim().chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    let inner = rest.next()?;
                    if inner == c {
                        break;
                    }
                    if c == '"' && matches!(inner, '$' | '`' | '\\' | '!') {
                        return None;
                    }
                    word.push(inner);
                }
            }
            ' ' | '\t' => words.extend(word.take()),
            '&' => {
                rest.next_if_eq(&'&')?;
                words.extend(word.take());
                if words.is_empty() {
                    return None;
                }
                commands.push(std::mem::take(&mut words));
            }
            '|' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '\\' | '*' | '?' | '[' | ']' | '{' | '}'
            | '~' | '!' | '#' | '\n' | '\r' | '\0' => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if words.is_empty() {
        return None;
    }
    commands.push(words);
    Some(commands)
}

/// Lists the files whose content a command line puts out when it succeeds: operands of `cat`, `head`, `tail`, `sed -n`,
/// `grep` and `rg`, relative to the workspace.
pub(super) fn shown_files(line: &str) -> Vec<String> {
    let mut files = Vec::new();
    for part in chain(line) {
        if let [program, arguments @ ..] = part.words.as_slice() {
            let shown = shown_by(program, arguments).unwrap_or_default();
            files.extend(shown.into_iter().map(|file| join(&part.folder, file)));
        }
    }
    files
}

/// Which options of a program matter, by its name.
struct Reader {
    /// Options whose next word is theirs.
    with_value: &'static [&'static str],
    /// Options after which the first operand is no script or pattern.
    names_script: &'static [&'static str],
    /// Options with which the content is not shown.
    silent: &'static [&'static str],
    /// Whether the first operand is a script or pattern.
    script: bool,
    /// An option that must be there.
    needs: Option<&'static str>,
}

const PLAIN: Reader = Reader {
    with_value: &[],
    names_script: &[],
    silent: &["--help", "--version"],
    script: false,
    needs: None,
};
const HEAD: Reader = Reader {
    with_value: &["-n", "-c", "--lines", "--bytes"],
    ..PLAIN
};
const SED: Reader = Reader {
    with_value: &["-e", "--expression"],
    names_script: &["-e", "--expression"],
    silent: &["-i", "--in-place", "-f", "--file", "--help", "--version"],
    script: true,
    needs: Some("-n"),
};
const GREP: Reader = Reader {
    with_value: &["-e", "-A", "-B", "-C", "-m", "--regexp", "--max-count"],
    names_script: &["-e", "--regexp"],
    silent: &[
        "-l",
        "-L",
        "-c",
        "-q",
        "-f",
        "-v",
        "--files-with-matches",
        "--files-without-match",
        "--files",
        "--count",
        "--count-matches",
        "--quiet",
        "--silent",
        "--help",
        "--version",
    ],
    script: true,
    needs: None,
};

fn shown_by<'w>(program: &str, arguments: &'w [String]) -> Option<Vec<&'w str>> {
    let reader = match program {
        "cat" => &PLAIN,
        "head" | "tail" => &HEAD,
        "sed" => &SED,
        "grep" | "rg" => &GREP,
        _ => return None,
    };
    let mut operands = Vec::new();
    let mut script = reader.script;
    let mut needed = reader.needs.is_none();
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(word) = rest.next() {
        if word == "--" {
            operands.extend(rest.by_ref());
        } else if word.len() > 1 && word.starts_with('-') {
            let name = word.split('=').next().unwrap_or(word);
            // `-rl` holds `-l`; a number (`-20`) is no option of interest.
            let holds = |option: &str| {
                let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
                name == option
                    || (!word.starts_with("--") && letter.is_some_and(|letter| word.contains(letter)))
            };
            if reader.silent.iter().any(|option| holds(option)) {
                return None;
            }
            needed |= reader.needs.is_some_and(holds);
            script &= !reader.names_script.iter().any(|option| holds(option));
            if reader.with_value.contains(&word) {
                rest.next();
            }
        } else {
            operands.push(word);
        }
    }
    if !needed {
        return None;
    }
    let files = operands.get(usize::from(script)..).unwrap_or_default();
    Some(files.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_words_are_taken_apart() {
        let check = |line: &str, wanted: Option<&[&[&str]]>| {
            let wanted: Option<Vec<Vec<String>>> = wanted.map(|commands| {
                let words = |words: &&[&str]| words.iter().map(|word| (*word).to_owned()).collect();
                commands.iter().map(words).collect()
            });
            assert_eq!(plain_words(line), wanted, "{line}");
        };
        check("cat a b", Some(&[&["cat", "a", "b"]]));
        check(" cd src && cat 'a b' ", Some(&[&["cd", "src"], &["cat", "a b"]]));
        check("grep \"a|b\" f", Some(&[&["grep", "a|b", "f"]]));
        check("printf ''", Some(&[&["printf", ""]]));
        for line in [
            "",
            "cat a | head",
            "cat a; b",
            "cat a > b",
            "cat $A",
            "cat `a`",
            "cat 'a",
            "cat \"$a\"",
            "cat a &",
            "&& cat a",
            "cat a &&",
            "cat *.ts",
            "cat a\ncat b",
            "cat a || b",
            "cat ~/a",
            "cat \\a",
        ] {
            check(line, None);
        }
    }

    #[test]
    fn a_shell_read_shows_the_files_that_it_names() {
        let check = |line: &str, wanted: &[&str]| assert_eq!(shown_files(line), wanted, "{line}");
        check("cat src/math.ts", &["src/math.ts"]);
        check("cat -n ./src/math.ts b", &["src/math.ts", "b"]);
        check("head -n 20 a", &["a"]);
        check("head -20 a", &["a"]);
        check("tail -c 5 a", &["a"]);
        check("sed -n '1,20p' a", &["a"]);
        check("sed -n -e 1p a", &["a"]);
        check("grep -n add src/math.ts", &["src/math.ts"]);
        check("grep -e add src/math.ts", &["src/math.ts"]);
        check("rg add -- src/math.ts", &["src/math.ts"]);
        check("cd src && cat math.ts ../b", &["src/math.ts", "b"]);
        // What follows shows no content, or nobody knows of which file.
        for line in [
            "sed 's/a/b/' a",
            "sed -i -n p a",
            "grep -l add a",
            "grep -rl add a",
            "rg --files a",
            "grep -c add a",
            "grep a",
            "echo a",
            "cat a | wc",
            "cd && cat a",
            "cd -P src && cat a",
            "ls src/math.ts",
            "wc -l a",
            "cat --help a",
        ] {
            check(line, &[]);
        }
    }
}
