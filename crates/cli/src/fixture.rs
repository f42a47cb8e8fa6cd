//! The bundled fixture of the demo: a small broken project in two languages, and what its scripted model says.
#![expect(clippy::disallowed_methods, reason = "the fixture is copied to disk")]

use crate::{args::Language, failure::Failure};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tracegate_core::stop::Exit;

/// A file of a fixture: its path and its bytes.
type File = (&'static str, &'static str);

macro_rules! files {
    ($base:literal: $($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../fixtures/", $base, "/", $path)))),*]
    };
}

const TS: &[File] = files!("ts": "README.md", "package.json", ".gitignore", "src/math.ts", "src/math.test.ts", "test-runner.mjs");
const RUST: &[File] = files!(
    "rust": "README.md", "Cargo.toml", "Cargo.lock", ".gitignore", ".cargo/config.toml", "src/lib.rs", "src/math.rs",
    "tests/math.rs",
);

/// Where a demo has put its things.
#[derive(Debug)]
pub(crate) struct Placed {
    /// The workspace of this demo.
    pub(crate) workspace: PathBuf,
    /// A second, untouched copy for whoever repeats the printed command.
    pub(crate) again: PathBuf,
    /// The scripted model.
    pub(crate) script: PathBuf,
    /// The policy.
    pub(crate) policy: PathBuf,
}

/// Returns the goal of the demo in this language.
pub(crate) const fn goal(language: Language) -> &'static str {
    match language {
        Language::Ts => "修复失败测试，让 npm test 通过。",
        Language::Rust => "修复失败测试，让 cargo test 通过。",
    }
}

/// Puts the fixture of `language` below `dir`, which must not exist.
pub(crate) fn place(language: Language, dir: &Path) -> Result<Placed, Failure> {
    let (files, script) = match language {
        Language::Ts => (TS, include_str!("../fixtures/ts.cassette.jsonl")),
        Language::Rust => (RUST, include_str!("../fixtures/rust.cassette.jsonl")),
    };
    let placed = Placed {
        workspace: dir.join("workspace"),
        again: dir.join("again"),
        script: dir.join("script.jsonl"),
        policy: dir.join("policy.toml"),
    };
    let write = || -> std::io::Result<()> {
        // Missing folders above are made, the folder itself must be new: nothing of the caller's is touched.
        fs::create_dir_all(dir.parent().unwrap_or(dir))?;
        fs::create_dir(dir)?;
        for workspace in [&placed.workspace, &placed.again] {
            for (path, text) in files {
                let path = workspace.join(path);
                fs::create_dir_all(path.parent().unwrap_or(workspace))?;
                fs::write(path, text)?;
            }
        }
        fs::write(&placed.script, script)?;
        fs::write(&placed.policy, crate::policy::BUILT_IN)
    };
    write().map_err(|error| {
        Failure::new(
            Exit::Usage,
            format!("cannot put the fixture into `{}`: {error}", dir.display()),
        )
        .help("name a directory that does not exist yet with --keep DIR")
    })?;
    Ok(placed)
}
