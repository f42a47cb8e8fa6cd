//! A registered secret, wherever it comes up in a run: it reaches neither the store nor the terminal nor an export.

use crate::e2e::place::{Place, Said, acts, answers, call, shell};
use serde_json::json;
use std::{
    collections::hash_map::RandomState,
    fs,
    hash::{BuildHasher as _, Hasher as _},
    path::{Path, PathBuf},
};

/// A value that nobody has seen before.
fn random() -> String {
    (0..3)
        .map(|_| format!("{:016x}", RandomState::new().build_hasher().finish()))
        .collect()
}

fn files(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, into);
        } else {
            into.push(path);
        }
    }
}

/// The value and how it looks in base64 and hexadecimal.
fn forms(secret: &str) -> Vec<String> {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    vec![secret.to_owned(), hex]
}

#[test]
fn a_registered_secret_is_nowhere() {
    let mut place = Place::new();
    let (secret, in_file) = (random(), random());
    place.variable("MY_API_TOKEN", &secret);
    place.file("config.txt", format!("token: {secret}\n"));
    place.file(".env", format!("DATABASE_PASSWORD={in_file}\n"));
    place.file(
        "print.sh",
        format!("echo {secret} {in_file}\necho {secret} >&2\n"),
    );
    let long: String = (0..500)
        .map(|line| format!("{line}: {secret} {in_file}\n"))
        .collect();
    place.file("long.txt", &long);
    let hex = &forms(&secret)[1];
    place.file("hex.txt", format!("{hex}\n"));
    let goal = format!("Say what {secret} is for.");
    let replies = [
        acts([
            call("read_file", json!({ "path": "config.txt" })),
            call("read_file", json!({ "path": "long.txt" })),
            call("read_file", json!({ "path": "hex.txt" })),
            call("search_text", json!({ "pattern": secret })),
            call(
                "write_text",
                json!({ "path": format!("{secret}.txt"), "content": format!("{secret} {in_file}") }),
            ),
            call("list_files", json!({})),
            call(
                &format!("tool_{secret}"),
                json!({ "path": secret, secret.as_str(): [in_file] }),
            ),
        ]),
        json!({ "reply": {
            "text": format!("with {secret}"), "reasoning": format!("about {in_file}"), "finish_reason": secret,
            "tool_calls": [json!({ "id": secret, "name": "shell", "input": { "command": "sh print.sh" } })],
        }}),
        acts([
            shell(&format!("echo {secret}")),
            shell(&format!("echo {secret} && ls")),
            shell(&secret),
        ]),
        answers(&format!("it is {secret}, and the other is {in_file}")),
    ];
    let fara = place.path("store/fara").display().to_string();
    let mut everything: Vec<Said> = vec![place.run(&goal, &replies, &[])];
    assert_eq!(
        everything[0].code,
        0,
        "{:?}",
        everything[0].stderr.replace(&secret, "<secret>")
    );
    let record = place.last();
    let actions = record.actions();
    assert!(
        actions[0].text.contains("[REDACTED:"),
        "the test reached the secret"
    );
    for args in [
        &["show", "@last"][..],
        &["show", "@last", "--json"],
        &["explain", "@last"],
        &["explain", "@last", "--json"],
        &["runs", "list"],
        &["runs", "list", "--json"],
        &["show", "@last", "--view", "steps"],
        &["show", "@last", "--view", "steps", "--json"],
        &["export", "@last", "--to", "otlp-json"],
        &["export", "@last", "--to", "fara", "-o", &fara],
        &["show", &secret],
    ] {
        everything.push(place.tracegate(args));
    }
    everything.push(place.run(&goal, &replies, &["--json"]));
    assert!(Path::new(&fara).join("data_point.json").is_file());
    let mut stored = Vec::new();
    files(&place.path("store"), &mut stored);
    assert!(stored.len() > 10);
    let needles: Vec<String> = [forms(&secret), forms(&in_file)].concat();
    for needle in &needles {
        for path in &stored {
            let bytes = fs::read(path).unwrap();
            let found = bytes
                .windows(needle.len())
                .any(|window| window == needle.as_bytes());
            assert!(!found, "a secret is in {}", path.display());
            assert!(
                !path.display().to_string().contains(needle.as_str()),
                "a secret is in a file name"
            );
        }
    }
    for (index, said) in everything.iter().enumerate() {
        for needle in [&secret, &in_file] {
            // Values of `.env` are registered for runs; a reader has the scrubbed log.
            assert!(
                !said.stdout.contains(needle.as_str()),
                "a secret is in the answer of command {index}"
            );
            assert!(
                !said.stderr.contains(needle.as_str()),
                "a secret is in the talk of command {index}"
            );
        }
    }
}
