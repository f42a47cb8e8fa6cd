//! The tools that run a command: exactly the words that were reviewed, in a process group of its own that a timeout kills whole.
#![expect(clippy::disallowed_methods, reason = "children are started here")]

use crate::{live::SpanIds, session::Session, tools::Done};
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Command,
    time::timeout,
};
use tracegate_core::{
    fact::{
        Failure,
        tool::{Outcome, TestRunRecord},
    },
    validation::{Ended, read_result, recognise},
};

/// Bytes kept of each stream: the first and the last half of this.
const KEPT: usize = 16 * 1024 * 1024;
/// How long a process group may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// Variables that a child gets; everything else, secrets above all, stays here.
const PASSED: [&str; 22] = [
    "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN",
    "GOPATH", "GOCACHE", "GOMODCACHE", "JAVA_HOME", "NVM_DIR", "NODE_PATH", "PYENV_ROOT", "VIRTUAL_ENV", "XDG_CACHE_HOME",
    "npm_config_cache", "SSL_CERT_FILE",
];

/// Runs `words` in the workspace.
pub(super) async fn run(session: &Session, words: &[String], script: &str, ids: &SpanIds) -> Done {
    let Some((program, operands)) = words.split_first() else {
        return Done::failed("invalid_argument", "the command is empty".to_owned());
    };
    let mut command = Command::new(program);
    command
        .args(operands)
        .current_dir(session.root.path())
        .env_clear()
        .envs(environment(&session.environment, session.root.path()))
        .env("TRACEPARENT", ids.traceparent())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return unstarted(script, 127, &format!("there is no program `{program}` on the path"));
        }
        Err(error) => return unstarted(script, 126, &format!("`{program}` cannot be started: {error}")),
    };
    let group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let reading = async { tokio::join!(capture(stdout), capture(stderr)) };
    tokio::pin!(reading);
    let limit = Duration::from_millis(session.command_ms);
    // The streams are read while the command runs: a full pipe must not stop it.
    let ended = timeout(limit, async {
        tokio::select! {
            biased;
            status = child.wait() => (status, None),
            streams = &mut reading => (child.wait().await, Some(streams)),
        }
    })
    .await;
    let (status, streams) = match ended {
        Ok((status, streams)) => (status.ok(), streams),
        Err(_) => (None, None),
    };
    let timed_out = status.is_none();
    if timed_out {
        group.signal(Signal::TERM);
        if timeout(GRACE, child.wait()).await.is_err() {
            group.signal(Signal::KILL);
            let _ = child.wait().await;
        }
    }
    // Children that outlived their parent would go on unseen, and would keep the pipes open.
    group.signal(Signal::KILL);
    let (stdout, stderr) = match streams {
        Some(streams) => streams,
        None => timeout(GRACE, reading).await.unwrap_or_default(),
    };
    report(script, status, stdout, stderr, session.command_ms)
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
fn environment(all: &BTreeMap<String, String>, workspace: &Path) -> BTreeMap<String, String> {
    let mut passed: BTreeMap<String, String> =
        all.iter().filter(|(name, _)| PASSED.contains(&name.as_str())).map(|(n, v)| (n.clone(), v.clone())).collect();
    let path = all.get("PATH").map_or("/usr/local/bin:/usr/bin:/bin", String::as_str);
    let outside = |dir: &&str| dir.starts_with('/') && !Path::new(dir).starts_with(workspace);
    passed.insert("PATH".to_owned(), path.split(':').filter(outside).collect::<Vec<_>>().join(":"));
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

fn unstarted(script: &str, code: i32, why: &str) -> Done {
    let output = render(script, Outcome::Failed, Some(code), "", why);
    Done {
        outcome: Some(Outcome::Failed),
        exit_code: Some(code),
        test: read_test(script, &Ended::Exited(code), &output),
        error: Some(Failure::new("not_started", why)),
        output,
        ..Done::default()
    }
}

fn report(script: &str, status: Option<ExitStatus>, stdout: Captured, stderr: Captured, limit_ms: u64) -> Done {
    let truncated = stdout.omitted + stderr.omitted > 0;
    let (exit_code, signal) = (status.and_then(|status| status.code()), status.and_then(|status| status.signal()));
    let (outcome, ended, error) = match (exit_code, signal) {
        (Some(0), _) => (Outcome::Ok, Ended::Exited(0), None),
        (Some(code), _) => {
            (Outcome::Failed, Ended::Exited(code), Some(Failure::new("exit_code", format!("`{script}` exited with {code}"))))
        }
        (None, Some(signal)) => {
            let error = Failure::new("signal", format!("`{script}` was ended by signal {signal}"));
            (Outcome::Failed, Ended::Signalled(signal), Some(error))
        }
        (None, None) => {
            let error = Failure::new("timeout", format!("`{script}` was killed after {limit_ms} ms"));
            (Outcome::Timeout, Ended::TimedOut, Some(error))
        }
    };
    let (stdout, stderr) = (stdout.into_text(), stderr.into_text());
    let test = read_test(script, &ended, &format!("{stdout}\n{stderr}"));
    let output = render(script, outcome, exit_code, &stdout, &stderr);
    Done { outcome: Some(outcome), output, exit_code, signal, truncated, test, error, ..Done::default() }
}

/// The result is read from the whole output, before anything is cut for the log or the model.
fn read_test(script: &str, ended: &Ended, output: &str) -> Option<TestRunRecord> {
    let command = recognise(script)?;
    let reading = read_result(&command, ended, output);
    Some(TestRunRecord { command, reading })
}

fn render(script: &str, outcome: Outcome, exit_code: Option<i32>, stdout: &str, stderr: &str) -> String {
    let status = if outcome == Outcome::Failed { "error" } else { outcome.as_str() };
    let mut text = format!("command: {script}\nstatus: {status}\n");
    if let Some(code) = exit_code {
        let _ = writeln!(text, "exitCode: {code}");
    }
    for (name, stream) in [("stdout", stdout), ("stderr", stderr)] {
        if !stream.trim().is_empty() {
            let _ = writeln!(text, "{name}:\n{}", stream.trim_end());
        }
    }
    text
}
