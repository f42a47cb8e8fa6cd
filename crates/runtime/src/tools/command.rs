//! Running a command: exactly these words, in a process group of its own that nothing survives, with a short environment.

use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    collections::BTreeMap, fmt::Write as _, io, os::unix::process::ExitStatusExt as _, path::Path,
    process::Stdio, time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, Command},
    time::timeout,
};
use tracegate_core::validation::Ended;

/// Bytes kept of each stream: the first and the last half of this.
const KEPT: usize = 16 * 1024 * 1024;
/// How long a process group may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// Variables that a child gets; everything else, secrets above all, stays here.
const PASSED: [&str; 22] = [
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOCACHE",
    "GOMODCACHE",
    "JAVA_HOME",
    "NVM_DIR",
    "NODE_PATH",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
    "npm_config_cache",
    "SSL_CERT_FILE",
];

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// What it wrote to standard output; not redacted yet.
    pub stdout: String,
    /// What it wrote to standard error; not redacted yet.
    pub stderr: String,
    /// Whether it wrote more than was kept.
    pub truncated: bool,
}

/// Runs `words` in `dir` for at most `limit`, with the listed part of `environment` and `traceparent` if there is one.
///
/// # Errors
/// When the program cannot be started.
pub async fn run_command(
    words: &[String],
    dir: &Path,
    environment: &BTreeMap<String, String>,
    traceparent: Option<String>,
    limit: Duration,
) -> io::Result<Ran> {
    let (program, operands) = words
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"))?;
    let mut command = Command::new(program);
    command
        .args(operands)
        .current_dir(dir)
        .env_clear()
        .envs(child_environment(environment, dir))
        .envs(traceparent.map(|traceparent| ("TRACEPARENT", traceparent)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut child = command.spawn()?;
    let group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let reading = async { tokio::join!(capture(stdout), capture(stderr)) };
    tokio::pin!(reading);
    // The streams are read while the command runs: a full pipe must not stop it.
    let finished = timeout(limit, async {
        tokio::select! {
            biased;
            status = child.wait() => (status, None),
            streams = &mut reading => (child.wait().await, Some(streams)),
        }
    })
    .await;
    let (ended, streams) = match finished {
        Ok((status, streams)) => (status.map(|status| (status.code(), status.signal()))?, streams),
        Err(_) => {
            end(&group, &mut child).await;
            ((None, None), None)
        }
    };
    // Children that outlived their parent would go on unseen, and would keep the pipes open.
    group.signal(Signal::KILL);
    let (stdout, stderr) = match streams {
        Some(streams) => streams,
        None => timeout(GRACE, reading).await.unwrap_or_default(),
    };
    Ok(Ran {
        ended: match ended {
            (Some(code), _) => Ended::Exited(code),
            (None, Some(signal)) => Ended::Signalled(signal),
            (None, None) => Ended::TimedOut,
        },
        truncated: stdout.omitted + stderr.omitted > 0,
        stdout: stdout.into_text(),
        stderr: stderr.into_text(),
    })
}

/// Ends a group that has had its time: first asked, then killed.
async fn end(group: &Group, child: &mut Child) {
    group.signal(Signal::TERM);
    if timeout(GRACE, child.wait()).await.is_err() {
        group.signal(Signal::KILL);
        // Nothing waits for a process that was killed; an error would mean that it is gone already.
        child.wait().await.ok();
    }
}

/// The process group of a command; whatever drops it, such as a cancelled run, leaves nothing of it behind.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // An error means that the group is gone, which is what was wanted.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// The path has no directory of the workspace: a program that the agent wrote is never found by its bare name.
fn child_environment(all: &BTreeMap<String, String>, workspace: &Path) -> BTreeMap<String, String> {
    let mut passed: BTreeMap<String, String> = all
        .iter()
        .filter(|(name, _)| PASSED.contains(&name.as_str()))
        .map(|(n, v)| (n.clone(), v.clone()))
        .collect();
    let path = all
        .get("PATH")
        .map_or("/usr/local/bin:/usr/bin:/bin", String::as_str);
    let outside = |dir: &&str| dir.starts_with('/') && !Path::new(dir).starts_with(workspace);
    passed.insert(
        "PATH".to_owned(),
        path.split(':').filter(outside).collect::<Vec<_>>().join(":"),
    );
    // A repository that an agent wrote file by file must not make a git command that only looks run programs.
    let git = [
        ("safe.bareRepository", "explicit"),
        ("core.fsmonitor", "false"),
        ("core.hooksPath", "/dev/null"),
    ];
    passed.insert("GIT_CONFIG_COUNT".to_owned(), git.len().to_string());
    for (index, (key, value)) in git.into_iter().enumerate() {
        passed.insert(format!("GIT_CONFIG_KEY_{index}"), key.to_owned());
        passed.insert(format!("GIT_CONFIG_VALUE_{index}"), value.to_owned());
    }
    passed.insert("TERM".to_owned(), "dumb".to_owned());
    passed.insert("NO_COLOR".to_owned(), "1".to_owned());
    passed
}

/// The beginning and the end of a stream, and how much lay between.
#[derive(Debug, Default)]
struct Captured {
    head: Vec<u8>,
    tail: std::collections::VecDeque<u8>,
    omitted: u64,
}

async fn capture(stream: Option<impl AsyncRead + Unpin>) -> Captured {
    let mut kept = Captured::default();
    let Some(mut stream) = stream else {
        return kept;
    };
    let mut chunk = vec![0; 1 << 16];
    while let Ok(read @ 1..) = stream.read(&mut chunk).await {
        let bytes = chunk.get(..read).unwrap_or_default();
        let (head, rest) = bytes.split_at(bytes.len().min((KEPT / 2).saturating_sub(kept.head.len())));
        kept.head.extend_from_slice(head);
        kept.tail.extend(rest);
        let excess = kept.tail.len().saturating_sub(KEPT / 2);
        kept.tail.drain(..excess);
        kept.omitted += excess as u64;
    }
    kept
}

impl Captured {
    fn into_text(self) -> String {
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        if self.omitted > 0 {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n[{} bytes omitted by tracegate]\n", self.omitted);
        }
        text.push_str(&String::from_utf8_lossy(&Vec::from(self.tail)));
        text
    }
}
