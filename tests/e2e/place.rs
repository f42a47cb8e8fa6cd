//! A workspace and a store of their own for one test, the replies of its model, and the command run in them.

use crate::e2e::record::Record;
use serde_json::{Value, json};
use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};
use tempfile::TempDir;
use tracegate_store::Store;

/// A policy that allows everything below the floor, for tests that are not about rules.
pub(crate) const OPEN_POLICY: &str = "\
version = 1
[defaults]
read = \"allow\"
write = \"allow\"
shell = \"allow\"
network = \"deny\"
";

/// A goal that asks for no test to pass, so that the validation gate stays open.
pub(crate) const QUESTION: &str = "Say what notes.txt holds.";

/// Returns the command, built once for all tests.
pub(crate) fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let root = repository();
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "-p", "tracegate-cli", "--bin", "tracegate"])
            .args(["--message-format", "json"])
            .current_dir(&root)
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(built.status.success(), "the command does not build");
        // Cargo says where it put the program: the target directory may lie anywhere.
        let text = String::from_utf8(built.stdout).unwrap();
        text.lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)))
            .unwrap()
    })
}

/// Returns the root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap()
}

/// What a command said and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    /// Returns the answer as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that the command refused: its exit code, what standard error says first, and the advice after it.
    #[track_caller]
    pub(crate) fn refuses(&self, code: i32, error: &str, help: &str) {
        assert_eq!(self.code, code, "{self:?}");
        let lines: Vec<&str> = self.stderr.lines().collect();
        let says = |start: &str, text: &str| {
            lines
                .iter()
                .any(|line| line.starts_with(start) && line.contains(text))
        };
        assert!(says("error: ", error), "no `error: …{error}…` in {self:?}");
        assert!(says("help: ", help), "no `help: …{help}…` in {self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
    }
}

/// One call of a tool.
pub(crate) fn call(tool: &str, input: Value) -> Value {
    let mut call = json!({ "name": tool });
    call["input"] = input;
    call
}

/// A shell command.
pub(crate) fn shell(command: &str) -> Value {
    call("shell", json!({ "command": command }))
}

/// A reply that asks for `calls`, in this order.
pub(crate) fn acts(calls: impl Into<Vec<Value>>) -> Value {
    json!({ "reply": { "tool_calls": calls.into() } })
}

/// A reply that is the agent's answer.
pub(crate) fn answers(text: &str) -> Value {
    json!({ "reply": { "text": text } })
}

/// A directory of one test: `workspace`, `store`, `script.jsonl`, `policy.toml`.
#[derive(Debug)]
pub(crate) struct Place {
    dir: TempDir,
    variables: Vec<(String, String)>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("workspace")).unwrap();
        fs::create_dir(dir.path().join("home")).unwrap();
        fs::write(dir.path().join("policy.toml"), OPEN_POLICY).unwrap();
        let place = Self {
            dir,
            variables: Vec::new(),
        };
        place.file("notes.txt", "remember the milk\n");
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    pub(crate) fn store(&self) -> Store {
        Store::read(&self.path("store")).unwrap()
    }

    /// Writes a file of the workspace.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.workspace().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.workspace().join(name)).unwrap()
    }

    pub(crate) fn policy(&self, text: &str) {
        fs::write(self.path("policy.toml"), text).unwrap();
    }

    /// Sets a variable of the command's otherwise empty environment.
    pub(crate) fn variable(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn script(&self, replies: &[Value]) {
        let lines: String = replies.iter().map(|reply| format!("{reply}\n")).collect();
        fs::write(self.path("script.jsonl"), lines).unwrap();
    }

    /// Returns `program` with this place's environment and nothing of the test's own.
    pub(crate) fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.workspace())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("TRACEGATE_STORE", self.path("store"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Returns the command with `args`.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.program(binary());
        command.args(args);
        command
    }

    /// Returns what `run GOAL` needs here, and `more`.
    pub(crate) fn run_args<'a>(goal: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let mut args = vec![
            "run",
            goal,
            "--script",
            "../script.jsonl",
            "--policy",
            "../policy.toml",
        ];
        args.extend(["--push-back", "0"]);
        args.extend(more);
        args
    }

    pub(crate) fn tracegate(&self, args: &[&str]) -> Said {
        said(&mut self.command(args))
    }

    /// Runs the agent on `goal` with `replies`.
    pub(crate) fn run(&self, goal: &str, replies: &[Value], more: &[&str]) -> Said {
        self.script(replies);
        self.tracegate(&Self::run_args(goal, more))
    }

    /// Runs the agent and returns what was recorded, verified; `code` is how the command must end.
    #[track_caller]
    pub(crate) fn recorded(&self, goal: &str, replies: &[Value], more: &[&str], code: i32) -> (Said, Record) {
        let said = self.run(goal, replies, more);
        assert_eq!(said.code, code, "{said:?}");
        (said, self.last())
    }

    /// Returns the last run, verified.
    #[track_caller]
    pub(crate) fn last(&self) -> Record {
        let runs = self.store().runs().unwrap();
        Record::verified(self.store(), runs.last().unwrap().clone())
    }

    /// Returns how many runs there are; none if there is no store.
    pub(crate) fn runs(&self) -> usize {
        Store::read(&self.path("store")).map_or(0, |store| store.runs().unwrap().len())
    }
}

/// Runs a command to its end.
pub(crate) fn said(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
