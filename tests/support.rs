//! The real binary, built once, and the runs of its demo that several tests look at.

use regex::Regex;
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};
use tempfile::TempDir;
use tracegate_core::event::Event;
use tracegate_store::{LogReader, RunDir, Store, Tail};

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The directory of the built `tracegate`; cargo is asked, because a test of another package is not told.
fn binaries() -> &'static Path {
    static BINARIES: OnceLock<PathBuf> = OnceLock::new();
    BINARIES.get_or_init(|| {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--package", "tracegate-cli", "--message-format", "json"])
            .args(["--quiet", "--offline"])
            .current_dir(root())
            .output()
            .unwrap();
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        let messages = String::from_utf8(built.stdout).unwrap();
        let executable = messages
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .find_map(|message| message["executable"].as_str().map(PathBuf::from));
        executable.unwrap().parent().unwrap().to_owned()
    })
}

/// A command with `tracegate` on its path and nothing of this process's environment that would change a run.
///
/// Cargo's own variables go: they would make a `cargo test` inside a run build where this one does.
pub(crate) fn clean(program: &str) -> Command {
    let mut command = Command::new(program);
    let kept = [
        "HOME",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "RUSTUP_TOOLCHAIN",
        "LANG",
        "TMPDIR",
    ];
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .env_clear()
        .envs(
            kept.iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        )
        .env("PATH", format!("{}:{path}", binaries().display()));
    command
}

/// Runs `tracegate`.
pub(crate) fn tracegate(args: &[&str]) -> Output {
    clean("tracegate").args(args).output().unwrap()
}

/// Standard output of a process that must have succeeded.
pub(crate) fn stdout(output: Output) -> String {
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{:?}: {shown}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// In which language the demo's fixture is, and whether its one setting is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Demo {
    pub(crate) language: &'static str,
    pub(crate) fixed: bool,
}

impl Demo {
    pub(crate) const ALL: [Self; 4] = [
        Self::new("ts", false),
        Self::new("ts", true),
        Self::new("rust", false),
        Self::new("rust", true),
    ];

    const fn new(language: &'static str, fixed: bool) -> Self {
        Self { language, fixed }
    }

    /// Runs the demo into a directory of its own.
    pub(crate) fn run(self) -> Recorded {
        let dir = TempDir::new().unwrap();
        let (keep, store) = (dir.path().join("x"), dir.path().join("store"));
        let mut args = vec!["demo", "--quiet", "--language", self.language];
        args.extend(["--keep", keep.to_str().unwrap()]);
        args.extend(["--store", store.to_str().unwrap()]);
        args.extend(self.fixed.then_some("--fixed"));
        let answer = stdout(tracegate(&args));
        Recorded { dir, answer }
    }

    /// The demo that several tests look at, run once.
    pub(crate) fn shared(self) -> &'static Recorded {
        static RUNS: [OnceLock<Recorded>; 4] = [const { OnceLock::new() }; 4];
        let at = Self::ALL.iter().position(|demo| *demo == self).unwrap();
        RUNS[at].get_or_init(|| self.run())
    }
}

/// A demo that was run: what it printed, and its store.
#[derive(Debug)]
pub(crate) struct Recorded {
    dir: TempDir,
    pub(crate) answer: String,
}

impl Recorded {
    /// The runs in its store, oldest first.
    pub(crate) fn runs(&self) -> Vec<RunDir> {
        let store = Store::read(&self.dir.path().join("store")).unwrap();
        store.runs().unwrap()
    }

    /// The log of the demo itself, verified.
    pub(crate) fn events(&self) -> Vec<Event> {
        events(&self.runs()[0])
    }

    /// The command that it says is the same.
    pub(crate) fn as_a_command(&self) -> String {
        let line = Regex::new(r"(?m)^as a command: +(tracegate .+)$").unwrap();
        let found = line.captures(&self.answer).unwrap();
        found[1].to_owned()
    }
}

/// The log of a run, verified to its end.
pub(crate) fn events(run: &RunDir) -> Vec<Event> {
    let (events, tail) = LogReader::open(run).unwrap().read_all().unwrap();
    assert_eq!(tail, Tail::Clean);
    events
}

/// Whether goldens and generated tables are to be written instead of compared.
pub(crate) fn updates() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1")
}
