//! Commands that an agent runs: their output, their time, their changes, and what is never run at all.

use crate::e2e::{
    place::{Place, QUESTION, acts, answers, binary, call, said, shell},
    record::Record,
};
use serde_json::{Value, json};
use std::{fs, io::Read as _};

#[track_caller]
fn run_one(place: &Place, call: Value, more: &[&str]) -> Record {
    place
        .recorded(QUESTION, &[acts([call]), answers("done")], more, 0)
        .1
}

#[test]
fn a_command_that_is_not_plain_words_is_never_run() {
    let place = Place::new();
    let commands = [
        "npm test && rm notes.txt",
        "npm test; rm notes.txt",
        "npm test | tee out.txt",
        "echo $(rm notes.txt)",
        "echo `rm notes.txt`",
        "echo x > notes.txt",
        "rm notes.txt &",
        "echo \"unfinished",
        "",
    ];
    let calls: Vec<Value> = commands.iter().copied().map(shell).collect();
    let (_, record) = place.recorded(QUESTION, &[acts(calls), answers("done")], &[], 0);
    for (action, command) in record.actions().iter().zip(commands) {
        assert_eq!(action.outcome, "refused", "{command}: {}", action.text);
        assert!(action.done.is_none(), "{command}");
    }
    assert_eq!(place.read("notes.txt"), "remember the milk\n");
}

#[test]
fn a_failing_command_is_a_result_and_not_the_end() {
    let place = Place::new();
    place.file("fail.sh", "echo out\necho err >&2\nexit 7\n");
    place.file("killed.sh", "kill -9 $$\n");
    let calls = vec![
        shell("sh fail.sh"),
        shell("no-such-program"),
        shell("sh killed.sh"),
        shell("./notes.txt"),
    ];
    let (_, record) = place.recorded(QUESTION, &[acts(calls), answers("done")], &[], 0);
    let actions = record.actions();
    let told: Vec<_> = actions
        .iter()
        .map(|came| {
            let done = came.done.as_ref().unwrap();
            (came.outcome, came.error().unwrap(), done.exit_code, done.signal)
        })
        .collect();
    assert_eq!(
        told,
        [
            ("failed", "exit_code", Some(7), None),
            ("failed", "not_started", Some(127), None),
            ("failed", "signal", None, Some(9)),
            ("failed", "not_started", Some(126), None),
        ]
    );
    assert!(
        actions[0].text.contains("stdout:\nout\nstderr:\nerr\n"),
        "{}",
        actions[0].text
    );
}

#[test]
fn output_that_is_not_utf_8_is_shown_as_far_as_it_goes() {
    let place = Place::new();
    place.file("bytes.sh", "printf 'caf\\351 \\000\\033[31mred\\n'\n");
    let record = run_one(&place, shell("sh bytes.sh"), &[]);
    let came = &record.actions()[0];
    assert_eq!(came.outcome, "ok");
    assert!(
        came.text.contains("caf\u{fffd} \0\u{1b}[31mred"),
        "{:?}",
        came.text
    );
    // What a terminal would obey is not printed at it.
    let shown = place.tracegate(&["show", "@last"]);
    assert!(!shown.stdout.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn long_output_goes_to_an_artifact_whose_bytes_verify() {
    let place = Place::new();
    place.file(
        "lines.sh",
        "i=0\nwhile [ $i -lt 2000 ]; do echo \"line $i of the output\"; i=$((i+1)); done\n",
    );
    let record = run_one(&place, shell("sh lines.sh"), &[]);
    let done = record.actions()[0].done.clone().unwrap();
    let reference = done.output.reference().unwrap();
    assert!(reference.bytes > 4096 && reference.omitted > 0);
    let whole = record.whole(&done.output);
    assert_eq!(whole.len() as u64, reference.bytes);
    assert!(whole.contains("line 1000 of the output") && !done.truncated);
    assert!(reference.head.contains("line 0 of") && reference.tail.contains("line 1999 of"));
    let digest = reference.digest.to_string();
    assert!(record.text().contains(&digest));
    // One flipped bit is noticed.
    let (shard, rest) = digest.strip_prefix("b3:").unwrap().split_at(2);
    let path = record.store.root().join("artifacts/b3").join(shard).join(rest);
    let mut bytes = fs::read(&path).unwrap();
    bytes[10] ^= 1;
    fs::remove_file(&path).unwrap();
    fs::write(&path, bytes).unwrap();
    assert!(record.store.artifacts().get(reference).is_err());
}

/// A hundred million bytes: what is kept, what is logged and what it costs are bounded.
#[test]
fn endless_output_is_cut_and_marked() {
    let place = Place::new();
    place.file(
        "gen.sh",
        "head -c 100000000 /dev/zero | tr '\\000' x\necho the end\n",
    );
    place.script(&[acts([shell("sh gen.sh")]), answers("done")]);
    // Kilobytes of address space: with all the output in memory several times over, it would not do.
    let limited = "ulimit -v 600000; exec \"$0\" \"$@\"";
    let args = Place::run_args(QUESTION, &[]);
    let said = said(
        place
            .program("sh")
            .args(["-c", limited])
            .arg(binary())
            .args(&args),
    );
    assert_eq!(said.code, 0, "{said:?}");
    let record = place.last();
    let came = &record.actions()[0];
    let done = came.done.as_ref().unwrap();
    assert!(
        done.truncated && done.output.len() < 17 * 1024 * 1024,
        "{}",
        done.output.len()
    );
    assert!(
        record
            .whole(&done.output)
            .contains(" bytes omitted by tracegate]")
    );
    assert!(came.text.len() <= 32 * 1024 && came.text.contains(" bytes omitted by tracegate]"));
    assert!(came.text.ends_with("the end\n"));
    assert!(record.text().len() < 256 * 1024, "{}", record.text().len());
}

#[test]
fn a_command_that_takes_too_long_is_killed_with_everything_that_it_started() {
    let place = Place::new();
    let pipe = place.path("pipe");
    assert!(place.program("mkfifo").arg(&pipe).status().unwrap().success());
    // The grandchild ignores the request to end; both hold the pipe open, so it ends when both are gone.
    place.file(
        "slow.sh",
        "exec 3>../pipe\ntrap '' TERM\n(sleep 40; sleep 40; echo outlived >&3) &\necho begun >&3\nwait\n",
    );
    place.script(&[acts([shell("sh slow.sh")]), answers("done")]);
    let child = place
        .command(&Place::run_args(QUESTION, &["--command-timeout", "1"]))
        .spawn()
        .unwrap();
    let mut said = String::new();
    fs::File::open(pipe).unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "begun\n", "the grandchild outlived its command");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let record = place.last();
    let came = &record.actions()[0];
    assert_eq!((came.outcome, came.error()), ("timeout", Some("timeout")));
    assert_eq!(came.done.as_ref().unwrap().exit_code, None);
    assert!(came.text.contains("status: timeout"), "{}", came.text);
}

#[test]
fn a_command_does_not_wait_for_the_children_that_it_leaves_behind() {
    let place = Place::new();
    // Whoever waited for the child would run into the limit, and the outcome would be another one.
    place.file("leave.sh", "sleep 40 &\necho left\n");
    let record = run_one(&place, shell("sh leave.sh"), &["--command-timeout", "20"]);
    let came = &record.actions()[0];
    assert_eq!(came.outcome, "ok");
    assert!(came.text.contains("left"), "{}", came.text);
}

#[test]
fn a_readonly_command_that_changes_a_file_has_failed() {
    let place = Place::new();
    place.file("change.sh", "echo changed > notes.txt\n");
    let readonly = |command: &str| call("shell_readonly", json!({ "command": command }));
    let record = run_one(&place, readonly("sh change.sh"), &[]);
    let came = &record.actions()[0];
    assert_eq!(
        (came.outcome, came.error()),
        ("failed", Some("readonly_violation"))
    );
    assert!(
        came.text.contains("shell_readonly changed notes.txt"),
        "{}",
        came.text
    );
    let changed: Vec<String> = came
        .done
        .as_ref()
        .unwrap()
        .side_effects
        .iter()
        .map(|effect| effect.relative_path.clone())
        .collect();
    assert_eq!(changed, ["notes.txt"]);
    // What git ignores may change: tests write caches.
    place.file(".gitignore", "cache/\n");
    place.file("change.sh", "mkdir -p cache\necho changed > cache/notes.txt\n");
    let record = run_one(&place, readonly("sh change.sh"), &[]);
    assert_eq!(record.actions()[0].outcome, "ok");
}

#[test]
fn a_command_gets_a_short_environment_and_no_program_of_the_workspace() {
    let mut place = Place::new();
    place.variable("UNRELATED_SETTING", "not for children");
    let path = format!(
        "{}:{}",
        place.workspace().display(),
        std::env::var("PATH").unwrap()
    );
    place.variable("PATH", &path);
    place.file("env.sh", "env\n");
    let record = run_one(&place, shell("sh env.sh"), &[]);
    let text = record.actions()[0].text.clone();
    assert!(!text.contains("UNRELATED_SETTING"), "{text}");
    assert!(text.contains("TRACEPARENT=00-"), "{text}");
    let path = text.lines().find(|line| line.starts_with("PATH=")).unwrap();
    assert!(!path.contains("/workspace"), "{path}");
}
