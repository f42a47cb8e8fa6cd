//! Killing a run at every event of a clean one: another process sends SIGKILL, a third goes on, and nothing is lost or done twice.

mod asking;

use crate::support::clean;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::json;
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Child, Output, Stdio},
};
use tempfile::TempDir;
use tracegate_core::{
    event::Event,
    fact::{Data as _, Edge, Fact, SpanKind, run::RunFinished, tool::Observation, tool::Outcome},
    ids::RunId,
    span::project,
    state::RunState,
    stop::Status,
};
use tracegate_store::{LogReader, Store, Tail, Verdict, fsck};

/// A workspace whose commands count how often they ran, and a script that reads, writes, runs and is refused.
struct Stage {
    dir: TempDir,
}

const POLICY: &str = r#"version = 1
[defaults]
read = "allow"
write = "allow"
shell = "deny"
[[rule]]
id = "count"
effect = "allow"
command = ["sh count.sh"]
[[rule]]
id = "never"
effect = "deny"
command = ["rm **"]
"#;

impl Stage {
    fn set() -> Self {
        let call = |name: &str, input: serde_json::Value| json!({ "name": name, "input": input });
        Self::with(
            POLICY,
            &[
                json!({ "reply": { "text": "look, then change", "tool_calls": [
                    call("read_file", json!({ "path": "a.txt" })),
                    call("write_text", json!({ "path": "a.txt", "content": "new\n" })),
                ] } }),
                json!({ "reply": { "text": "run", "tool_calls": [
                    call("shell", json!({ "command": "sh count.sh" })),
                    call("shell", json!({ "command": "rm a.txt" })),
                ] } }),
                json!({ "reply": { "text": "done" } }),
            ],
        )
    }

    fn with(policy: &str, replies: &[serde_json::Value]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        fs::create_dir(dir.path().join("workspace")).unwrap();
        write("workspace/a.txt", "old\n");
        write("workspace/count.sh", "echo ran >> count.log\n");
        write("workspace/.gitignore", "count.log\n");
        write("policy.toml", policy);
        let lines: Vec<String> = replies.iter().map(ToString::to_string).collect();
        write("script.jsonl", &lines.join("\n"));
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn start(&self, pause_at: Option<usize>) -> Child {
        let mut command = clean("tracegate");
        command.args(["run", "change and count", "--quiet", "--json"]);
        for (flag, name) in [
            ("--dir", "workspace"),
            ("--policy", "policy.toml"),
            ("--script", "script.jsonl"),
            ("--store", "store"),
        ] {
            command.arg(flag).arg(self.path(name));
        }
        command.envs(pause_at.map(|at| ("TRACEGATE_PAUSE_AT", at.to_string())));
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn resume(&self) -> Output {
        let mut command = clean("tracegate");
        command
            .args(["resume", "@last", "--quiet", "--json", "--store"])
            .arg(self.path("store"));
        command.output().unwrap()
    }

    /// Returns the verified events of the one run.
    fn events(&self) -> (RunId, Vec<Event>) {
        let store = Store::read(&self.path("store")).unwrap();
        let runs = store.runs().unwrap();
        let [dir] = runs.as_slice() else {
            panic!("{} runs", runs.len())
        };
        let (events, tail) = LogReader::open(dir).unwrap().read_all().unwrap();
        assert_eq!(tail, Tail::Clean);
        (dir.id().clone(), events)
    }

    fn count(&self) -> usize {
        let lines = fs::read_to_string(self.path("workspace/count.log")).unwrap_or_default();
        lines.lines().count()
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path("workspace/a.txt")).unwrap()
    }
}

/// Kills a run right after its event number `at`; the process that sends the signal is not the one that dies.
fn kill_after(stage: &Stage, at: usize) {
    let mut child = stage.start(Some(at));
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped(), "event {at} was not reached");
    kill_process(pid, Signal::KILL).unwrap();
    child.wait().unwrap();
}

/// What a log says when the marks of an interruption are taken away (design 16 (11)): which things happened, and in which order those
/// that the agent or its reader can tell apart.
fn course(events: &[Event]) -> (BTreeSet<String>, Vec<String>) {
    let cut_off: BTreeSet<_> = events
        .iter()
        .filter(|event| matches!(&event.fact, Fact::SpanHealed(..)))
        .filter_map(|event| event.span)
        .collect();
    let mut all = BTreeSet::new();
    let mut order: Vec<String> = Vec::new();
    for event in events {
        let interruption = matches!(event.fact, Fact::StatusChanged(_) | Fact::LogRecovered(_))
            || matches!(event.fact.edge(), Some((SpanKind::Segment, _)))
            || event
                .span
                .is_some_and(|span| event.fact.edge().is_some() && cut_off.contains(&span));
        if interruption {
            continue;
        }
        let phase = Observation::of(&event.fact).map(|observation| (observation.kind, observation.phase));
        let key = format!(
            "{} {:?} {:?} {phase:?}",
            event.fact.name(),
            event.step,
            event.action
        );
        let told = matches!(
            event.fact,
            Fact::Action(_) | Fact::Observation(_) | Fact::UserMessage(_) | Fact::RunFinished(_)
        );
        let effect = matches!(event.fact.edge(), Some((SpanKind::ToolExecute, _)));
        let ruling = matches!(
            event.fact.edge(),
            Some((SpanKind::PermissionReview, Edge::Finished))
        );
        if told || effect || ruling {
            // What was begun again without having had an effect counts where it came to its end.
            order.retain(|before| *before != key);
            order.push(key.clone());
        }
        all.insert(key);
    }
    (all, order)
}

fn outcomes(events: &[Event]) -> Vec<Outcome> {
    events
        .iter()
        .filter_map(|event| Observation::of(&event.fact)?.outcome)
        .collect()
}

#[test]
fn a_run_killed_at_any_event_ends_as_the_uninterrupted_one() {
    let stage = Stage::set();
    let ended = stage.start(None).wait_with_output().unwrap();
    assert_eq!(
        ended.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    let (_, clean) = stage.events();
    assert_eq!((stage.count(), stage.text().as_str()), (1, "new\n"));
    let mut unknown = 0;
    for at in 1..=clean.len() {
        let stage = Stage::set();
        kill_after(&stage, at);
        let resumed = stage.resume();
        let killed_in = clean[at - 1].fact.name();
        let shown = format!(
            "killed after event {at} ({killed_in}): {}",
            String::from_utf8_lossy(&resumed.stderr)
        );
        // After its last event there is nothing to go on with, and the command says so.
        assert_eq!(
            resumed.status.code(),
            Some(if at == clean.len() { 2 } else { 0 }),
            "{shown}"
        );
        let (run, events) = stage.events();
        let state = RunState::fold(&events).unwrap();
        assert_eq!(
            (state.status, state.finished, state.open_spans.len()),
            (Status::Completed, true, 0),
            "{shown}"
        );
        assert_eq!(
            events
                .iter()
                .filter(|event| RunFinished::of(&event.fact).is_some())
                .count(),
            1,
            "{shown}"
        );
        let begun = events
            .iter()
            .filter(|event| matches!(event.fact.edge(), Some((_, Edge::Started))))
            .count();
        assert_eq!(
            project(&run, &events).spans.len(),
            begun,
            "every span that began is projected: {shown}"
        );
        if killed_in == "tool.execute.started" {
            // Nobody knows whether it happened: exactly one action says so, and none was done a second time.
            unknown += 1;
            let of_this = outcomes(&events)
                .into_iter()
                .filter(|outcome| *outcome == Outcome::Unknown)
                .count();
            assert_eq!(of_this, 1, "{shown}");
            assert!(stage.count() <= 1, "{shown}");
        } else {
            assert_eq!(course(&events), course(&clean), "{shown}");
            assert_eq!(outcomes(&events), outcomes(&clean), "{shown}");
            assert_eq!((stage.count(), stage.text().as_str()), (1, "new\n"), "{shown}");
        }
    }
    assert_eq!(
        unknown, 3,
        "read, write and command were each killed in their middle"
    );
}

#[test]
fn a_run_that_is_killed_again_and_again_still_ends() {
    let stage = Stage::set();
    kill_after(&stage, 12);
    let store = stage.path("store");
    // Each resume writes at least a segment and a status before it gets on; it is killed a little later each time.
    let mut kills = 0;
    for more in 8.. {
        let at = stage.events().1.len() + more;
        let mut command = clean("tracegate");
        command
            .args(["resume", "@last", "--quiet", "--json", "--store"])
            .arg(&store);
        let paused = command
            .env("TRACEGATE_PAUSE_AT", at.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = paused.spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
        if !status.stopped() {
            assert_eq!(
                status.exit_status(),
                Some(0),
                "the run came to its end before the next kill"
            );
            break;
        }
        kill_process(pid, Signal::KILL).unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(kills >= 3, "{kills}");
    let (_, events) = stage.events();
    assert!(RunState::fold(&events).unwrap().finished);
    assert!(stage.count() <= 1, "the command ran {} times", stage.count());
}

#[test]
fn a_second_writer_is_told_who_the_first_is() {
    let stage = Stage::set();
    let mut child = stage.start(Some(20));
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
    assert!(status.stopped());
    let second = stage.resume();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(16), "{said}");
    assert!(said.contains(&format!("(pid {})", child.id())), "{said}");
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(stage.count(), 1);
}

fn ask_script(dir: &Path) -> PathBuf {
    let path = dir.join("ask.jsonl");
    let replies = [
        json!({ "reply": { "text": "ask, then look", "tool_calls": [
            { "name": "ask_user", "input": { "question": "From which city?" } },
            { "name": "list_files", "input": {} },
        ] } }),
        json!({ "reply": { "text": "a trip from there" } }),
    ];
    fs::write(&path, replies.map(|reply| reply.to_string()).join("\n")).unwrap();
    path
}

#[test]
fn a_question_is_answered_from_another_process_and_the_trace_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("workspace")).unwrap();
    let (script, store) = (ask_script(dir.path()), dir.path().join("store"));
    let tracegate = |args: &[&str]| {
        let output = clean("tracegate")
            .args(args)
            .args(["--quiet", "--store"])
            .arg(&store)
            .output()
            .unwrap();
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        (output.status.code().unwrap(), said)
    };
    let workspace = dir.path().join("workspace").display().to_string();
    let (code, said) = tracegate(&[
        "run",
        "plan a trip",
        "--dir",
        &workspace,
        "--script",
        &script.display().to_string(),
    ]);
    assert_eq!(code, 14, "{said}");
    assert!(
        said.contains("From which city?") && said.contains("tracegate answer run_"),
        "{said}"
    );
    let (code, said) = tracegate(&["resume", "@last"]);
    assert_eq!(
        code, 14,
        "without an answer there is nothing to go on with: {said}"
    );
    let (code, said) = tracegate(&["answer", "@last", "x", "--question", "q9"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("question q9 is not open"), "{said}");
    fs::write(dir.path().join("workspace/new.txt"), "written meanwhile").unwrap();
    let (code, said) = tracegate(&["answer", "@last", "San Francisco"]);
    assert_eq!(code, 0, "{said}");
    let (code, said) = tracegate(&["answer", "@last", "again"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("waits for no answer"), "{said}");
    let store = Store::read(&store).unwrap();
    let run = store.runs().unwrap().remove(0);
    let (events, _) = LogReader::open(&run).unwrap().read_all().unwrap();
    let spans = project(run.id(), &events).spans;
    assert_eq!(
        spans
            .iter()
            .map(|span| span.trace_id)
            .collect::<BTreeSet<_>>()
            .len(),
        1
    );
    let roots: Vec<_> = spans
        .iter()
        .filter(|span| span.parent.span_id().is_none())
        .collect();
    assert_eq!(roots.len(), 1, "later segments hang under the first");
    let told: Vec<String> = events
        .iter()
        .filter_map(|event| Some(Observation::of(&event.fact)?.content.as_ref()?.preview()))
        .collect();
    assert!(
        told.contains(&"The user answers: San Francisco".to_owned()),
        "{told:?}"
    );
    assert!(
        told.iter()
            .any(|text| text.contains("the workspace changed: new.txt")),
        "{told:?}"
    );
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// How many effects the loop below has, and how many random courses it takes.
const EFFECTS: usize = 40;
const SEEDS: u64 = 5;

/// A script of [`EFFECTS`] commands, two a step, each of which counts in a file of its own.
fn effects(stage: &Stage) {
    fs::write(stage.path("workspace/count.sh"), "echo ran >> counts/$1.log\n").unwrap();
    fs::create_dir(stage.path("workspace/counts")).unwrap();
    fs::write(stage.path("workspace/.gitignore"), "counts/\n").unwrap();
    let policy = POLICY.replace("sh count.sh", "sh count.sh **");
    fs::write(stage.path("policy.toml"), policy).unwrap();
    let call =
        |number: usize| json!({ "name": "shell", "input": { "command": format!("sh count.sh {number}") } });
    let mut replies: Vec<String> = (0..EFFECTS / 2)
        .map(|step| json!({ "reply": { "text": "on", "tool_calls": [call(2 * step + 1), call(2 * step + 2)] } }))
        .map(|reply| reply.to_string())
        .collect();
    replies.push(json!({ "reply": { "text": "done" } }).to_string());
    fs::write(stage.path("script.jsonl"), replies.join("\n")).unwrap();
}

#[test]
fn a_run_killed_at_random_until_it_ends_does_every_effect_once_or_says_that_it_does_not_know() {
    let (mut kills, mut unknown, mut ended) = (0, 0, 0);
    for seed in 1..=SEEDS {
        let stage = Stage::set();
        effects(&stage);
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut first = true;
        loop {
            let more = 6 + usize::try_from(dice.below(110)).unwrap();
            let at = if first {
                more
            } else {
                stage.events().1.len() + more
            };
            let mut child = if std::mem::take(&mut first) {
                stage.start(Some(at))
            } else {
                let mut command = clean("tracegate");
                command
                    .args(["resume", "@last", "--quiet", "--json", "--store"])
                    .arg(stage.path("store"))
                    .env("TRACEGATE_PAUSE_AT", at.to_string())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null());
                command.spawn().unwrap()
            };
            let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
            let (_, status) = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap();
            if !status.stopped() {
                assert_eq!(status.exit_status(), Some(0), "seed {seed}, after {kills} kills");
                break;
            }
            kill_process(pid, Signal::KILL).unwrap();
            child.wait().unwrap();
            kills += 1;
        }
        let store = Store::read(&stage.path("store")).unwrap();
        let run = store.runs().unwrap().remove(0);
        let report = fsck(&store, &run).unwrap();
        assert_eq!(
            (report.verdict, report.findings),
            (Verdict::Whole, Vec::new()),
            "seed {seed}"
        );
        let (_, events) = stage.events();
        let state = RunState::fold(&events).unwrap();
        assert_eq!(
            (state.finished, state.actions),
            (true, EFFECTS as u64),
            "seed {seed}"
        );
        for number in 1..=EFFECTS {
            let settled: Vec<Outcome> = events
                .iter()
                .filter(|event| event.action.is_some_and(|action| action.0 == number as u64))
                .filter_map(|event| Observation::of(&event.fact)?.outcome)
                .collect();
            let done = fs::read_to_string(stage.path(&format!("workspace/counts/{number}.log")));
            let done = done.unwrap_or_default().lines().count();
            match settled.as_slice() {
                [Outcome::Ok] => assert_eq!(done, 1, "seed {seed}, action {number}"),
                [Outcome::Unknown] => {
                    assert!(done <= 1, "seed {seed}, action {number} was done {done} times");
                    unknown += 1;
                }
                other => panic!("seed {seed}, action {number}: {other:?}"),
            }
        }
        ended += 1;
    }
    println!(
        "kill loops: {ended} of {SEEDS} runs of {EFFECTS} effects ended after {kills} kills; {} effects done once, {unknown} unknown",
        EFFECTS as u64 * SEEDS - unknown
    );
}
