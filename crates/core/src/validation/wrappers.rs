//! Programs that run another program, as data: what they take before the inner command, and whether its status survives.

/// How the inner command is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Inner {
    /// The rest of the argument vector.
    Argv,
    /// A shell script in the value of one of these options.
    Script(&'static [&'static str]),
    /// The remaining arguments, joined and given to a shell.
    Joined,
}

/// One row of the table.
#[derive(Debug)]
pub(super) struct Wrapper {
    pub(super) programs: &'static [&'static str],
    /// Operands before the inner command, such as `run` of `uv run`; tried in order, the first that fits.
    pub(super) verbs: &'static [&'static str],
    /// Options that take a separate value.
    pub(super) values: &'static [&'static str],
    /// Operands between verb and inner command: an image, a service, a duration.
    pub(super) operands: usize,
    pub(super) inner: Inner,
    /// True if the inner status is lost.
    pub(super) masks: bool,
    pub(super) watch: bool,
}

const ROW: Wrapper = Wrapper {
    programs: &[],
    verbs: &[""],
    values: &[],
    operands: 0,
    inner: Inner::Argv,
    masks: false,
    watch: false,
};

const IN_CONTAINER: &[&str] = &[
    "-v",
    "--volume",
    "-w",
    "--workdir",
    "-e",
    "--env",
    "--env-file",
    "--name",
    "-u",
    "--user",
    "-p",
    "--publish",
    "--network",
    "--net",
    "--entrypoint",
    "--mount",
    "-m",
    "--memory",
    "--cpus",
    "--platform",
    "-l",
    "--label",
    "--add-host",
    "-h",
    "--hostname",
    "--shm-size",
    "--gpus",
    "--pull",
    "--cap-add",
    "--security-opt",
    "--ulimit",
    "--tmpfs",
    "-f",
    "--file",
    "--project-name",
    "--profile",
    "--index",
    "--link",
    "--device",
    "--ipc",
    "--pid",
    "--volumes-from",
    "-n",
    "--namespace",
    "-c",
    "--container",
    "--context",
];

#[rustfmt::skip]
static WRAPPERS: &[Wrapper] = &[
    Wrapper { programs: &["nohup", "setsid", "command", "builtin", "noglob", "chronic", "unbuffer", "winpty", "catchsegv", "caffeinate", "dbus-run-session", "dbus-launch", "busybox", "rlwrap"], ..ROW },
    Wrapper { programs: &["exec"], values: &["-a"], ..ROW },
    Wrapper { programs: &["time", "gtime"], values: &["-f", "-o", "--format", "--output"], ..ROW },
    Wrapper { programs: &["timeout", "gtimeout"], values: &["-k", "-s", "--kill-after", "--signal"], operands: 1, ..ROW },
    Wrapper { programs: &["nice", "ionice", "chrt", "taskset", "cpulimit"], values: &["-n", "--adjustment", "-c", "-p", "-l"], ..ROW },
    Wrapper { programs: &["env", "cross-env", "cross-env-shell", "env-cmd", "dotenv", "dotenvx"], verbs: &["run", ""], values: &["-u", "--unset", "-C", "--chdir", "-S", "-f", "--file", "-e", "--env"], ..ROW },
    Wrapper { programs: &["sudo", "doas"], values: &["-u", "-g", "-C", "-h", "-p", "-U", "-r", "-t", "-D", "--user", "--group", "--chdir"], ..ROW },
    Wrapper { programs: &["gosu", "su-exec", "chroot", "faketime", "proot"], operands: 1, ..ROW },
    Wrapper { programs: &["runuser", "systemd-run", "firejail", "bwrap", "prlimit", "numactl", "unshare", "nsenter"], values: &["-u", "--user", "-p", "--property", "--bind", "--ro-bind"], ..ROW },
    Wrapper { programs: &["su"], inner: Inner::Script(&["-c", "--command"]), ..ROW },
    Wrapper { programs: &["stdbuf"], values: &["-o", "-e", "-i", "--output", "--error", "--input"], ..ROW },
    Wrapper { programs: &["xvfb-run", "weston-run"], values: &["-s", "--server-args", "-n", "--server-num", "-e", "--error-file", "-f", "-w", "--wait"], ..ROW },
    Wrapper { programs: &["script"], inner: Inner::Script(&["-c", "--command"]), masks: true, ..ROW },
    Wrapper { programs: &["watch", "viddy"], values: &["-n", "--interval"], inner: Inner::Joined, masks: true, watch: true, ..ROW },
    Wrapper { programs: &["entr"], values: &["-c", "-r"], masks: true, watch: true, ..ROW },
    Wrapper { programs: &["watchexec", "reflex", "chokidar", "onchange", "modd", "fswatch", "watchman-make"], values: &["-w", "--watch", "-e", "--exts", "-i", "--ignore", "-d", "-r", "-g"], masks: true, watch: true, ..ROW },
    Wrapper { programs: &["nodemon", "chokidar"], inner: Inner::Script(&["-x", "--exec", "-c", "--command"]), masks: true, watch: true, ..ROW },
    Wrapper { programs: &["cargo"], verbs: &["watch"], inner: Inner::Script(&["-s", "--shell"]), masks: true, watch: true, ..ROW },
    Wrapper { programs: &["eval"], inner: Inner::Joined, ..ROW },
    Wrapper { programs: &["flock"], values: &["-w", "-E", "--timeout"], operands: 1, ..ROW },
    Wrapper { programs: &["ssh"], values: &["-p", "-i", "-l", "-o", "-F", "-J"], operands: 1, inner: Inner::Joined, ..ROW },
    Wrapper { programs: &["xargs", "parallel"], values: &["-n", "-P", "-I", "-d", "-L", "-s", "-j", "--max-args", "--max-procs"], ..ROW },
    Wrapper { programs: &["retry"], values: &["-t", "--times", "-d", "--delay", "--tries", "-n"], ..ROW },
    Wrapper { programs: &["docker", "podman", "nerdctl"], verbs: &["compose run", "compose exec", "container exec", "container run", "run", "exec"], values: IN_CONTAINER, operands: 1, ..ROW },
    Wrapper { programs: &["docker-compose", "podman-compose"], verbs: &["run", "exec"], values: IN_CONTAINER, operands: 1, ..ROW },
    Wrapper { programs: &["kubectl", "oc", "k"], verbs: &["exec", "run"], values: IN_CONTAINER, operands: 1, ..ROW },
    Wrapper { programs: &["devcontainer"], verbs: &["exec"], values: &["--workspace-folder"], ..ROW },
    Wrapper { programs: &["sail"], verbs: &[""], ..ROW },
    Wrapper { programs: &["npx", "bunx", "pnpx", "uvx", "pipx"], verbs: &["run", ""], values: &["-p", "--package", "--spec", "--with", "--from", "--python"], ..ROW },
    Wrapper { programs: &["npx", "npm"], verbs: &["exec", "x", ""], inner: Inner::Script(&["-c", "--call"]), ..ROW },
    Wrapper { programs: &["npm"], verbs: &["exec", "x"], values: &["-p", "--package", "-w", "--workspace"], ..ROW },
    Wrapper { programs: &["pnpm"], verbs: &["exec", "dlx"], values: &["--package", "--filter", "-F", "-C", "--dir"], ..ROW },
    Wrapper { programs: &["yarn"], verbs: &["exec", "dlx"], values: &["-p", "--package"], ..ROW },
    Wrapper { programs: &["bun"], verbs: &["x"], ..ROW },
    Wrapper { programs: &["corepack"], ..ROW },
    Wrapper { programs: &["uv"], verbs: &["run", "tool run"], values: &["--with", "--python", "-p", "--extra", "--group", "--project", "--directory", "--package", "--env-file", "--index-url", "--with-requirements", "--only-group"], ..ROW },
    Wrapper { programs: &["poetry", "pipenv", "pdm", "rye", "pixi", "hatch"], verbs: &["run"], values: &["-C", "--directory", "-p", "--project", "-e", "--environment", "--manifest-path"], ..ROW },
    Wrapper { programs: &["hatch"], verbs: &["-e test run"], ..ROW },
    Wrapper { programs: &["conda", "mamba", "micromamba"], verbs: &["run"], values: &["-n", "--name", "-p", "--prefix", "--cwd"], ..ROW },
    Wrapper { programs: &["bundle", "bundler"], verbs: &["exec"], ..ROW },
    Wrapper { programs: &["spring", "zeus", "dip"], ..ROW },
    Wrapper { programs: &["c8", "nyc", "istanbul"], values: &["-r", "--reporter", "-n", "--include", "-x", "--exclude", "--report-dir", "--temp-dir", "-o"], ..ROW },
    Wrapper { programs: &["kcov"], operands: 1, ..ROW },
    Wrapper { programs: &["valgrind", "strace", "ltrace", "rr", "perf", "qemu-x86_64", "wine", "arch", "heaptrack"], verbs: &["record", "stat", ""], values: &["-o", "-e", "-p"], ..ROW },
    Wrapper { programs: &["direnv"], verbs: &["exec"], operands: 1, ..ROW },
    Wrapper { programs: &["mise", "rtx", "asdf", "volta", "fnm", "rbenv", "pyenv"], verbs: &["exec", "x"], values: &["--using", "--node"], ..ROW },
    Wrapper { programs: &["rustup"], verbs: &["run"], operands: 1, ..ROW },
    Wrapper { programs: &["nix"], verbs: &["develop", "shell", "run"], inner: Inner::Argv, values: &["-c", "--command", "-f"], ..ROW },
    Wrapper { programs: &["nix-shell"], inner: Inner::Script(&["--run", "--command"]), ..ROW },
    Wrapper { programs: &["devbox", "devenv", "flox", "guix"], verbs: &["run", "shell", "activate"], ..ROW },
    Wrapper { programs: &["doppler", "op", "infisical", "chamber", "vault", "teller", "sops"], verbs: &["run", "exec-env", "exec"], values: &["--env-file", "--env", "-p", "-c", "--path"], ..ROW },
    Wrapper { programs: &["heroku", "fly", "vagrant", "lando", "ddev", "wsl", "multipass"], verbs: &["run", "exec", "ssh", ""], inner: Inner::Joined, values: &["-a", "-d"], ..ROW },
    Wrapper { programs: &["bash", "sh", "zsh", "dash", "ksh", "fish", "ash"], values: &["-o", "+o", "-O", "--rcfile", "--init-file"], inner: Inner::Script(&["-c"]), ..ROW },
    Wrapper { programs: &["cmd"], inner: Inner::Script(&["/c", "/C"]), ..ROW },
    Wrapper { programs: &["pwsh", "powershell"], inner: Inner::Script(&["-c", "-Command", "-command"]), ..ROW },
];

/// True if `program` is in the table.
pub(super) fn knows(program: &str) -> bool {
    WRAPPERS.iter().any(|row| row.programs.contains(&program))
}

/// What a wrapped command turns out to be.
#[derive(Debug, PartialEq)]
pub(super) enum Unwrapped {
    Argv(Vec<String>),
    Script(String),
}

/// An inner command and what its wrapper does to it.
#[derive(Debug, PartialEq)]
pub(super) struct Inside {
    pub(super) command: Unwrapped,
    pub(super) masks: bool,
    pub(super) watch: bool,
    /// The options of the wrapper, for `bash -eo pipefail -c`.
    pub(super) options: Vec<String>,
    /// True for a remote or container file system, where a `cd` says nothing about this workspace.
    pub(super) elsewhere: bool,
}

/// Takes one wrapper off, if `argv` starts with one.
pub(super) fn unwrap(program: &str, argv: &[String]) -> Option<Inside> {
    WRAPPERS
        .iter()
        .filter(|row| row.programs.contains(&program))
        .find_map(|row| row.verbs.iter().find_map(|verb| apply(row, verb, program, argv)))
}

fn apply(row: &Wrapper, verb: &str, program: &str, argv: &[String]) -> Option<Inside> {
    let mut wanted: Vec<&str> = verb.split(' ').filter(|word| !word.is_empty()).collect();
    wanted.reverse();
    let mut operands = row.operands;
    let mut options = Vec::new();
    let mut script = None;
    let mut words = argv.iter().skip(1).peekable();
    let mut rest: Vec<String> = Vec::new();
    let is_script_flag = |arg: &str| match row.inner {
        Inner::Script(flags) => flags.contains(&arg) || shell_cluster(arg, flags),
        Inner::Argv | Inner::Joined => false,
    };
    while let Some(arg) = words.next() {
        if arg == "--" && wanted.is_empty() {
            rest.extend(words.by_ref().cloned());
            break;
        }
        if is_script_flag(arg) {
            options.push(arg.clone());
            // `bash -c -o pipefail 'script'` is legal, if unusual.
            while let Some(option) = words.next_if(|next| next.starts_with('-') && next.len() <= 3) {
                options.push(option.clone());
                if option == "-o" {
                    options.extend(words.next().cloned());
                }
            }
            script = words.next().cloned();
            continue;
        }
        if let (Inner::Script(flags), Some((name, value))) = (row.inner, arg.split_once('='))
            && flags.contains(&name)
        {
            script = Some(value.to_owned());
            continue;
        }
        // `nix develop -c CMD`: the option is followed by the command itself.
        if program == "nix" && (arg == "-c" || arg == "--command") {
            rest.extend(words.by_ref().cloned());
            break;
        }
        if arg.starts_with('-') && arg.len() > 1 || arg.starts_with("+o") {
            options.push(arg.clone());
            if row.values.contains(&arg.as_str()) && !takes_none(program, arg) {
                options.extend(words.next().cloned());
            }
            continue;
        }
        if let Some(next) = wanted.pop() {
            if next != arg {
                return None;
            }
            continue;
        }
        if is_assignment(arg) && matches!(row.inner, Inner::Argv) && operands == 0 {
            continue;
        }
        if operands > 0 {
            operands -= 1;
            continue;
        }
        if matches!(row.inner, Inner::Script(_)) {
            // `bash run.sh`: no script on the line.
            return script.map(|text| inside(row, program, options, Unwrapped::Script(text)));
        }
        rest.push(arg.clone());
        rest.extend(words.by_ref().cloned());
        break;
    }
    if !wanted.is_empty() {
        return None;
    }
    let command = match row.inner {
        Inner::Script(_) => Unwrapped::Script(script?),
        Inner::Joined if !rest.is_empty() => Unwrapped::Script(rest.join(" ")),
        Inner::Argv if !rest.is_empty() => Unwrapped::Argv(rest),
        Inner::Joined | Inner::Argv => return None,
    };
    Some(inside(row, program, options, command))
}

fn inside(row: &Wrapper, program: &str, options: Vec<String>, command: Unwrapped) -> Inside {
    let returns = options.iter().any(|option| {
        option == "--return" || (option.starts_with('-') && !option.starts_with("--") && option.contains('e'))
    });
    Inside {
        command,
        masks: row.masks && !(program == "script" && returns),
        watch: row.watch,
        elsewhere: row.operands > 0 && std::ptr::eq(row.values, IN_CONTAINER) || program == "ssh",
        options,
    }
}

/// `-lc`, `-ec`, `-qec`: a cluster of short options that ends in the one that takes the script.
fn shell_cluster(arg: &str, flags: &[&str]) -> bool {
    flags.contains(&"-c")
        && arg.starts_with('-')
        && !arg.starts_with("--")
        && arg.len() <= 6
        && arg.ends_with('c')
        && arg.chars().skip(1).all(|c| c.is_ascii_alphabetic())
}

/// `entr -c` and `watchexec -c` clear the screen, `nice -n10` carries its value.
fn takes_none(program: &str, option: &str) -> bool {
    matches!(
        (program, option),
        ("entr", "-c" | "-r") | ("docker" | "podman" | "kubectl" | "oc", "-it")
    )
}

fn is_assignment(arg: &str) -> bool {
    arg.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}
