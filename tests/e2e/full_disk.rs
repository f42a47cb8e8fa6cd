//! A disk that fills up while a run is recorded, and one that has room again: a small file system of its own, where that is permitted.

use crate::e2e::place::{Place, QUESTION, acts, answers, binary, call, shell};
use serde_json::{Value, json};
use std::fs;

/// Run until the disk is full, look, make room, go on. `$0` is the command; each result goes into a file of the directory `out`.
const SCRIPT: &str = r#"
mkdir -p ../store || exit 90
mount -t tmpfs -o size=192k tracegate-test ../store 2>../out/mount || exit 77
try() { name=$1; shift; "$@" >../out/$name.stdout 2>../out/$name.stderr; echo $? >../out/$name.code; }
try run "$0" "$@"
wc -l <count.log >../out/effects
try full "$0" fsck @last
mount -o remount,size=64m ../store || exit 91
try checked "$0" fsck @last
try resumed "$0" resume @last --max-steps 99
try last "$0" fsck @last
"#;

#[test]
fn a_full_disk_stops_the_run_and_with_room_again_it_goes_on_to_its_end() {
    let place = Place::new();
    fs::create_dir(place.path("out")).unwrap();
    place.file("count.sh", "echo ran >> count.log\n");
    place.file("big.txt", "a line that is long enough\n".repeat(200));
    let steps = 40;
    let mut replies: Vec<Value> = (0..steps)
        .map(|_| {
            acts([
                shell("sh count.sh"),
                call("read_file", json!({ "path": "big.txt" })),
            ])
        })
        .collect();
    replies.push(answers("done"));
    place.script(&replies);
    let args = Place::run_args(QUESTION, &["--max-steps", "99"]);
    let output = place
        .program("unshare")
        .args(["--mount", "sh", "-c", SCRIPT])
        .arg(binary())
        .args(&args)
        .output()
        .unwrap();
    let code = output.status.code();
    if code == Some(77) || code == Some(1) && !place.path("out/run.code").exists() {
        eprintln!(
            "skipped (cannot mount): {}",
            String::from_utf8_lossy(&output.stderr)
        );
        return;
    }
    assert_eq!(code, Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| fs::read_to_string(place.path("out").join(name)).unwrap();
    let code = |name: &str| read(&format!("{name}.code")).trim().parse::<i32>().unwrap();
    let said = read("run.stderr");
    assert_eq!(code("run"), 16, "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert!(said.contains("help: ") && said.contains("make room"), "{said}");
    for name in ["full", "checked"] {
        assert_eq!(
            code(name),
            0,
            "{name}: {}{}",
            read(&format!("{name}.stdout")),
            read(&format!("{name}.stderr"))
        );
    }
    let before: usize = read("effects").trim().parse().unwrap();
    assert!(
        before > 2 && before < steps,
        "{before} effects before the disk was full"
    );
    assert_eq!(code("resumed"), 0, "{}", read("resumed.stderr"));
    assert_eq!(code("last"), 0, "{}", read("last.stdout"));
    assert!(
        read("last.stdout").starts_with("whole: "),
        "{}",
        read("last.stdout")
    );
    let done = place.read("count.log").lines().count();
    // The effect that the full disk interrupted may be unknown; it is not done again.
    assert!(done == steps || done + 1 == steps, "{done} of {steps}");
    eprintln!("full disk: {before} effects until it was full, {done} of {steps} at the end");
}

#[test]
fn an_answer_that_cannot_be_written_is_no_success() {
    let place = Place::new();
    place.recorded(QUESTION, &[answers("done")], &[], 0);
    for args in [
        &["show", "@last"][..],
        &["show", "@last", "--json"],
        &["explain", "@last"],
        &["runs", "list"],
        &["export", "@last", "--to", "otlp-json"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = place.command(args).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("cannot write the answer: "), "{args:?}: {said}");
    }
}
