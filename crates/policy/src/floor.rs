//! The floor: what no policy, grant or answer opens. A table by operation, compared before everything else.
//!
//! Names are compared after NFKC, case folding and without final dots, because some file systems take
//! `.GIT`, `.ｇit` and `.git.` for `.git`. Rows (read, write, delete): `.git` may be read, never changed, in
//! nested and in not yet existing repositories too; `.tracegate` neither; `.env*` except examples, private
//! keys and `.ssh` neither; `.npmrc` is secret to read and may be written (the shipped policy asks).

use crate::path::Target;
use std::fmt;
use unicode_normalization::UnicodeNormalization as _;

/// What is done to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Its names are listed; no content is read.
    List,
    /// Its content is read.
    Read,
    /// It is made or changed.
    Write,
    /// It is removed or moved away.
    Delete,
}

impl Operation {
    /// Does this change the workspace?
    #[must_use]
    pub fn changes(self) -> bool {
        match self {
            Self::List | Self::Read => false,
            Self::Write | Self::Delete => true,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List => "list",
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
        })
    }
}

/// A row of the floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FloorRule {
    /// A change beneath `.git/hooks`.
    GitHooks,
    /// Any other change of `.git`.
    GitDir,
    /// Anything at all with `.tracegate`.
    TracegateDir,
    /// The content of a secret. The only row that an org or user policy can `unlock`, file by file.
    SecretRead,
    /// A change of a secret.
    SecretWrite,
    /// A change of a policy file in force.
    PolicyFile,
    /// A start-up file of a shell, outside the workspace.
    HomeStartup,
    /// Anything outside the workspace.
    Workspace,
    /// A program that gains privileges.
    Privilege,
    /// A metadata service or a link-local address.
    Metadata,
    /// A script that is not understood.
    Unparsed,
}

impl FloorRule {
    /// Every row, in the order in which they are compared.
    pub const ALL: [Self; 11] = [
        Self::TracegateDir,
        Self::GitHooks,
        Self::GitDir,
        Self::SecretRead,
        Self::SecretWrite,
        Self::PolicyFile,
        Self::HomeStartup,
        Self::Workspace,
        Self::Privilege,
        Self::Metadata,
        Self::Unparsed,
    ];

    /// Returns the row's name, as in `floor:NAME` and `unlock = ["NAME"]`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::GitHooks => "git-hooks",
            Self::GitDir => "git-dir",
            Self::TracegateDir => "tracegate-dir",
            Self::SecretRead => "secret-read",
            Self::SecretWrite => "secret-write",
            Self::PolicyFile => "policy-file",
            Self::HomeStartup => "home-startup",
            Self::Workspace => "workspace",
            Self::Privilege => "privilege",
            Self::Metadata => "metadata",
            Self::Unparsed => "unparsed",
        }
    }

    /// Returns why the row exists, as the end of a sentence.
    #[must_use]
    pub fn why(self) -> &'static str {
        match self {
            Self::GitHooks => "a git hook runs later, outside the trace",
            Self::GitDir => "the repository's own data is changed by git alone",
            Self::TracegateDir => "the records of runs are not for the agent",
            Self::SecretRead => "the file is where secrets are kept",
            Self::SecretWrite => "the file is where secrets are kept, and it is not the agent's to change",
            Self::PolicyFile => "the policy in force does not change under its own run",
            Self::HomeStartup => "a start-up file runs later, outside the trace",
            Self::Workspace => "it lies outside the workspace",
            Self::Privilege => "the program gains privileges",
            Self::Metadata => "link-local and metadata addresses hand out credentials",
            Self::Unparsed => "what is not understood is not run",
        }
    }
}

/// Patterns of names that are floor-denied to read at any depth: a recursive read must not meet them.
pub(crate) const MASKS: &[&str] = &[
    "**/.tracegate/**",
    "**/.env",
    "**/.env.*",
    "**/.npmrc",
    "**/.ssh/**",
    "**/id_rsa",
    "**/id_dsa",
    "**/id_ecdsa",
    "**/id_ed25519",
];

/// Returns the first row that forbids the operation, also for what lies outside; the resolver of the
/// runtime asks this again for the resolved name.
#[must_use]
pub fn of_path(operation: Operation, target: &Target) -> Option<FloorRule> {
    let outside = match target {
        Target::Inside(_) => false,
        // `~` is refused before its names are looked at: it was never expanded, so they name nothing.
        Target::Home { .. } => return Some(FloorRule::Workspace),
        Target::Outside { .. } => true,
        Target::Invalid { .. } => return None,
    };
    let names: Vec<String> = target
        .as_str()
        .split('/')
        .filter(|name| !matches!(*name, "" | "."))
        .map(fold)
        .collect();
    let is = |wanted: &str| names.iter().any(|name| name == wanted);
    if is(".tracegate") {
        return Some(FloorRule::TracegateDir);
    }
    if operation.changes()
        && let Some(rule) = git(&names)
    {
        return Some(rule);
    }
    let last = names.last().map(String::as_str).unwrap_or_default();
    let secret = is(".ssh") || names.iter().any(|name| is_secret_name(name));
    match operation {
        Operation::List if is(".ssh") => return Some(FloorRule::SecretRead),
        Operation::Read if secret || last == ".npmrc" => return Some(FloorRule::SecretRead),
        Operation::Write | Operation::Delete if secret => return Some(FloorRule::SecretWrite),
        Operation::Write | Operation::Delete if outside && is_startup(last) => {
            return Some(FloorRule::HomeStartup);
        }
        Operation::List | Operation::Read | Operation::Write | Operation::Delete => {}
    }
    outside.then_some(FloorRule::Workspace)
}

/// A folder `x.git` is a bare repository's usual name, so its dangerous entries count as well.
fn git(names: &[String]) -> Option<FloorRule> {
    let mut names = names.iter().peekable();
    while let Some(name) = names.next() {
        let next = names.peek().map(|next| next.as_str());
        let own = name == ".git" || name == "git~1";
        let bare = name.ends_with(".git") && matches!(next, Some("hooks" | "config" | "info" | "modules"));
        if own || bare {
            return Some(if next == Some("hooks") {
                FloorRule::GitHooks
            } else {
                FloorRule::GitDir
            });
        }
    }
    None
}

fn is_secret_name(name: &str) -> bool {
    let env = name == ".env"
        || name.strip_prefix(".env.").is_some_and(|rest| {
            let last = rest.rsplit('.').next().unwrap_or_default();
            !matches!(last, "example" | "sample" | "template" | "dist")
        });
    env || matches!(name, "id_rsa" | "id_dsa" | "id_ecdsa" | "id_ed25519")
}

fn is_startup(name: &str) -> bool {
    matches!(
        name,
        ".bashrc"
            | ".bash_profile"
            | ".bash_login"
            | ".bash_logout"
            | ".profile"
            | ".zshrc"
            | ".zshenv"
            | ".zprofile"
            | ".zlogin"
            | ".gitconfig"
            | ".envrc"
            | ".inputrc"
    )
}

fn fold(name: &str) -> String {
    // Upper case first: it folds `ſ` to `s` and `ı` to `i`, which lower case alone does not.
    let folded: String = name
        .nfkc()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect();
    let kept = folded.trim_end_matches(['.', ' ']);
    if kept.is_empty() { folded } else { kept.to_owned() }
}

/// Does the program gain privileges, whatever its arguments? The base name of any path counts.
#[must_use]
pub fn gains_privileges(program: &str) -> bool {
    let base = program.rsplit('/').next().unwrap_or_default();
    matches!(
        base,
        "sudo" | "sudoedit" | "doas" | "su" | "pkexec" | "setpriv" | "runuser" | "run0"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_a_table_by_operation() {
        use FloorRule as F;
        for (path, read, write) in [
            (".git/config", None, Some(F::GitDir)),
            (".git/hooks/pre-commit", None, Some(F::GitHooks)),
            (".Git/Hooks/post-checkout", None, Some(F::GitHooks)),
            (".git./config", None, Some(F::GitDir)),
            (".ｇit/config", None, Some(F::GitDir)),
            ("vendor/sub/.git/config", None, Some(F::GitDir)),
            (".git", None, Some(F::GitDir)),
            ("../main.git/hooks/x", Some(F::Workspace), Some(F::GitHooks)),
            (".gitignore", None, None),
            (".github/workflows/ci.yml", None, None),
            (".tracegate/runs/r1", Some(F::TracegateDir), Some(F::TracegateDir)),
            (".env", Some(F::SecretRead), Some(F::SecretWrite)),
            ("a/.env.local", Some(F::SecretRead), Some(F::SecretWrite)),
            (".env.example", None, None),
            (".envrc", None, None),
            (".npmrc", Some(F::SecretRead), None),
            (
                "/home/u/.ssh/id_ed25519",
                Some(F::SecretRead),
                Some(F::SecretWrite),
            ),
            ("/home/u/.bashrc", Some(F::Workspace), Some(F::HomeStartup)),
            ("~/.ssh/id_rsa", Some(F::Workspace), Some(F::Workspace)),
            ("/etc/passwd", Some(F::Workspace), Some(F::Workspace)),
            ("src/a.rs", None, None),
        ] {
            let target = Target::parse(path);
            assert_eq!(of_path(Operation::Read, &target), read, "read {path}");
            assert_eq!(of_path(Operation::Write, &target), write, "write {path}");
            assert_eq!(of_path(Operation::Delete, &target), write, "delete {path}");
        }
    }
}
