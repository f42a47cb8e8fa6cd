//! Links of a workspace: what a command would touch behind one is not what its words say, so it does not run.

use crate::e2e::{
    place::{Place, QUESTION, acts, answers, shell},
    record::Record,
};
use serde_json::Value;
use std::{fs, os::unix::fs::symlink};

const EVERYTHING: &str = "version = 1\n[defaults]\nread = \"allow\"\nwrite = \"allow\"\nshell = \"allow\"\n";

fn run(place: &Place, commands: &[&str]) -> Record {
    place.policy(EVERYTHING);
    let calls: Vec<Value> = commands.iter().map(|command| shell(command)).collect();
    place
        .recorded(QUESTION, &[acts(calls), answers("done")], &[], 0)
        .1
}

#[test]
fn no_command_reads_or_writes_through_a_link() {
    let place = Place::new();
    let outside = place.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "not for the agent").unwrap();
    let link = |to: &str, at: &str| symlink(to, place.workspace().join(at)).unwrap();
    link("../outside", "out");
    link("../outside/secret", "file");
    link("../outside/new", "dangling");
    let commands = [
        "cat file",
        "cat out/secret",
        "find out/ -type f",
        "cp notes.txt out",
        "touch dangling",
        "cp --target-directory=out notes.txt",
        "cat ./out/../out/secret",
    ];
    let record = run(&place, &commands);
    for (command, came) in commands.iter().zip(record.actions()) {
        assert_eq!(came.outcome, "refused", "{command}: {}", came.text);
        assert!(came.text.contains("through a link"), "{command}: {}", came.text);
    }
    let left: Vec<_> = fs::read_dir(&outside)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["secret"]);
}

#[test]
fn a_repository_that_was_written_file_by_file_runs_no_program() {
    let place = Place::new();
    let marker = place.path("ran");
    place.file("HEAD", "ref: refs/heads/main\n");
    place.file("objects/keep", "");
    place.file("refs/keep", "");
    let monitor = format!("touch {}; false", marker.display());
    let config = format!(
        "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\nfsmonitor = \"{monitor}\"\n"
    );
    place.file("config", config);
    let record = run(&place, &["git status", "git diff"]);
    assert_eq!(record.actions().len(), 2);
    assert!(!marker.exists());
}
