//! Artifacts, the small files of a run, and the store around them.
#![expect(
    clippy::disallowed_methods,
    reason = "a test damages files behind the store's back"
)]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

use serde_json::{Value, json};
use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU8, Ordering},
};
use tempfile::TempDir;
use tracegate_core::{
    ids::{Digest, RunId, StepNo},
    payload::{ArtifactRef, Payload},
    redact::{RedactionKey, Redactor, Scrubbed},
};
use tracegate_store::{ArtifactError, Store, StoreError};

fn open() -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), || [7; 32]).unwrap();
    (dir, store)
}

fn redactor() -> Redactor {
    Redactor::new(RedactionKey::from_bytes([7; 32]), &[])
}

fn bytes(text: &str) -> Scrubbed<Vec<u8>> {
    redactor().scrub_bytes(text.as_bytes().to_vec())
}

fn file(store: &Store, digest: Digest) -> PathBuf {
    let hex = digest.to_string()[3..].to_owned();
    store.root().join("artifacts/b3").join(&hex[..2]).join(&hex[2..])
}

fn count(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| {
            let path = entry.path();
            if path.is_dir() { count(&path) } else { 1 }
        })
        .sum()
}

/// Puts other bytes where an artifact is: artifacts are read-only, even for us.
fn overwrite(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn an_artifact_is_given_back_as_it_was_put_in_and_kept_once() {
    let (_dir, store) = open();
    let artifacts = store.artifacts();
    for text in ["", "x", "one\ntwo", &"long line\n".repeat(5000)] {
        let reference = artifacts.put(&bytes(text), "text/plain; charset=utf-8").unwrap();
        let described = ArtifactRef::describe(text.as_bytes(), "text/plain; charset=utf-8");
        assert_eq!(reference, described);
        assert_eq!(artifacts.get(&reference).unwrap(), text.as_bytes());
        assert_eq!(artifacts.text(&Payload::Ref(Box::new(reference))).unwrap(), text);
    }
    assert_eq!(
        artifacts.text(&Payload::Inline("here".to_owned())).unwrap(),
        "here"
    );
    let kept = count(&store.root().join("artifacts"));
    let again = artifacts.put(&bytes("x"), "text/plain").unwrap();
    assert_eq!((kept, count(&store.root().join("artifacts"))), (4, 4));
    let mode = fs::metadata(file(&store, again.digest))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o400, "nobody changes an artifact by accident");
}

#[test]
fn an_artifact_says_what_redaction_removed() {
    let (_dir, store) = open();
    let token = format!("gh{}_{}", 'p', "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
    let scrubbed = bytes(&format!("token {token}"));
    let reference = store.artifacts().put(&scrubbed, "text/plain").unwrap();
    let fired: Vec<(String, u32)> = scrubbed
        .findings()
        .iter()
        .map(|(rule, count)| (rule.to_owned(), count))
        .collect();
    assert_eq!(reference.redactions.into_iter().collect::<Vec<_>>(), fired);
    assert_eq!(fired.len(), 1);
    let kept = fs::read_to_string(file(&store, reference.digest)).unwrap();
    assert!(!kept.contains(&token), "{kept}");
}

#[test]
fn an_artifact_with_any_byte_changed_or_another_length_is_refused() {
    let (_dir, store) = open();
    let artifacts = store.artifacts();
    let text = "what the tests said";
    let reference = artifacts.put(&bytes(text), "text/plain").unwrap();
    let path = file(&store, reference.digest);
    let mut harmed: Vec<Vec<u8>> = (0..text.len())
        .map(|at| {
            let mut harmed = text.as_bytes().to_vec();
            harmed[at] ^= 1;
            harmed
        })
        .collect();
    harmed.push(Vec::new());
    harmed.push(text.as_bytes()[1..].to_vec());
    harmed.push(format!("{text}.").into_bytes());
    for wrong in harmed {
        overwrite(&path, &wrong);
        match artifacts.get(&reference) {
            Err(ArtifactError::Corrupt(digest)) => assert_eq!(digest, reference.digest),
            other => panic!("{wrong:?}: {other:?}"),
        }
    }
    // A reference that lies about the length is not believed either.
    overwrite(&path, text.as_bytes());
    let mut lying = reference.clone();
    lying.bytes -= 1;
    assert!(matches!(artifacts.get(&lying), Err(ArtifactError::Corrupt(_))));
    assert_eq!(artifacts.get(&reference).unwrap(), text.as_bytes());
}

#[test]
fn an_artifact_that_is_not_there_is_missing() {
    let (_dir, store) = open();
    let reference = ArtifactRef::describe(b"never put", "text/plain");
    match store.artifacts().get(&reference) {
        Err(ArtifactError::Missing(digest)) => assert_eq!(digest, reference.digest),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_torn_leftover_of_another_length_is_replaced() {
    let (_dir, store) = open();
    let artifacts = store.artifacts();
    let reference = artifacts.put(&bytes("whole text"), "text/plain").unwrap();
    for leftover in ["", "whole", "whole text and more"] {
        overwrite(&file(&store, reference.digest), leftover.as_bytes());
        assert_eq!(
            artifacts.put(&bytes("whole text"), "text/plain").unwrap(),
            reference
        );
        assert_eq!(artifacts.get(&reference).unwrap(), b"whole text");
    }
    assert_eq!(
        count(&store.root().join("artifacts")),
        1,
        "no temporary file stays behind"
    );
}

#[test]
fn the_barrier_covers_what_another_process_put_and_did_not_sync() {
    let (_dir, store) = open();
    // The same directory through another handle: as another process, which died before it synced.
    let other = Store::read(store.root()).unwrap();
    let reference = other.artifacts().put(&bytes("shared"), "text/plain").unwrap();
    store.artifacts().put(&bytes("shared"), "text/plain").unwrap();
    fs::remove_file(file(&store, reference.digest)).unwrap();
    let refused = store.artifacts().barrier().unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::NotFound);
    store.artifacts().put(&bytes("shared"), "text/plain").unwrap();
    store.artifacts().barrier().unwrap();
    // What was synced is not looked at again.
    fs::remove_file(file(&store, reference.digest)).unwrap();
    store.artifacts().barrier().unwrap();
}

#[test]
fn a_reader_of_a_replaced_file_sees_the_old_or_the_new_one() {
    let (_dir, store) = open();
    let run = store
        .create_run(&"run_x_20261130_00000001".parse().unwrap())
        .unwrap();
    let value = |n: u64| json!({ "n": n, "filler": if n.is_multiple_of(2) { String::new() } else { "x".repeat(20_000) } });
    let write = |n: u64| {
        let scrubbed = redactor().scrub_json(value(n));
        run.replace_json(&run.status(), &scrubbed).unwrap();
    };
    write(0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (1..300).for_each(write));
        let mut last = 0;
        while !writer.is_finished() {
            let read: Value = run.read_json(&run.status()).unwrap().unwrap();
            let n = read["n"].as_u64().unwrap();
            assert_eq!(read, value(n));
            assert!(n >= last, "{n} after {last}");
            last = n;
        }
    });
    assert_eq!(run.read_json::<Value>(&run.status()).unwrap(), Some(value(299)));
    assert_eq!(count(run.path()), 1, "no temporary file stays behind");
}

#[test]
fn a_file_that_is_written_once_is_never_written_again() {
    let (_dir, store) = open();
    let run = store
        .create_run(&"run_x_20261130_00000001".parse().unwrap())
        .unwrap();
    let write = |n: u32| run.create_json(&run.task(), &redactor().scrub_json(json!({ "n": n })));
    write(1).unwrap();
    match write(2) {
        Err(StoreError::Write { path, error }) => {
            assert_eq!((path, error.kind()), (run.task(), io::ErrorKind::AlreadyExists));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        run.read_json::<Value>(&run.task()).unwrap(),
        Some(json!({ "n": 1 }))
    );
    assert_eq!(run.read_json::<Value>(&run.metadata()).unwrap(), None);
    fs::write(run.metadata(), "{").unwrap();
    assert!(matches!(
        run.read_json::<Value>(&run.metadata()),
        Err(StoreError::Read { .. })
    ));
}

#[test]
fn a_context_report_has_a_file_of_its_step() {
    let (_dir, store) = open();
    let run = store
        .create_run(&"run_x_20261130_00000001".parse().unwrap())
        .unwrap();
    run.write_context(StepNo(12), &redactor().scrub_json(json!({ "step": 12 })))
        .unwrap();
    let read: Option<Value> = run.read_json(&run.path().join("context/step-0012.json")).unwrap();
    assert_eq!(read, Some(json!({ "step": 12 })));
}

#[test]
fn a_store_keeps_its_key_and_id_and_hides_the_key() {
    let dir = tempfile::tempdir().unwrap();
    let drawn = AtomicU8::new(1);
    let random = || [drawn.fetch_add(1, Ordering::SeqCst); 32];
    let first = Store::open(dir.path(), random).unwrap();
    let second = Store::open(dir.path(), random).unwrap();
    assert_eq!(first.host_id(), second.host_id());
    assert_eq!(first.registered_key().value, second.registered_key().value);
    assert_ne!(first.registered_key().value.get(..32), Some(first.host_id()));
    let mode = fs::metadata(dir.path().join("redaction.key"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_to_string(dir.path().join(".gitignore")).unwrap(), "*\n");
    assert!(!format!("{first:?}").contains(&first.registered_key().value));
}

#[test]
fn runs_are_found_by_id_and_listed() {
    let (_dir, store) = open();
    let ids: Vec<RunId> = ["run_b_20261130_00000001", "run_a_20261130_00000002"]
        .iter()
        .map(|id| id.parse().unwrap())
        .collect();
    for id in &ids {
        let run = store.create_run(id).unwrap();
        fs::write(run.metadata(), "{}").unwrap();
        assert!(matches!(store.create_run(id), Err(StoreError::Write { .. })));
        assert!(
            matches!(store.run(id), Err(StoreError::NoRun { .. })),
            "a run begins with its log"
        );
        fs::write(run.events(), "").unwrap();
        assert_eq!(store.run(id).unwrap(), run);
    }
    fs::create_dir(store.root().join("runs/not a run")).unwrap();
    let mut listed: Vec<RunId> = store.runs().unwrap().iter().map(|run| run.id().clone()).collect();
    listed.sort_unstable();
    assert_eq!(listed, [ids[1].clone(), ids[0].clone()]);
    assert!(matches!(
        Store::read(&store.root().join("elsewhere")),
        Err(StoreError::Read { .. })
    ));
}
