//! Logs whose end is torn or whose middle is damaged: what can be verified is shown, what is wrong is said, good bytes are kept.

use crate::e2e::{
    place::{Place, QUESTION, acts, answers, call},
    record::Record,
};
use serde_json::json;
use std::fs;
use tracegate_store::{LogError, LogReader, LogWriter, RealDisk, Recovery, RunDir, Tail};

fn recorded() -> (Place, Record) {
    let place = Place::new();
    let look = acts([call("read_file", json!({ "path": "notes.txt" }))]);
    let (_, record) = place.recorded(QUESTION, &[look, answers("milk")], &[], 0);
    (place, record)
}

fn resume(place: &Place, dir: &RunDir) -> Result<(usize, Recovery), LogError> {
    let store = place.store();
    let mut events = 0;
    let opened = LogWriter::resume(dir, &RealDisk, store.artifacts(), 1, |_| {
        events += 1;
        Ok::<_, LogError>(())
    });
    opened.map(|(_, recovery)| (events, recovery))
}

#[test]
fn torn_bytes_at_the_end_are_shown_around_and_set_aside() {
    let torn: [&[u8]; 5] = [
        b"{\"v\":1,\"seq\":99,\"id\":\"half a li",
        b"\0\0\0\0\0\0\0\0",
        b"{\"v\":1}\n",
        b"\xff\xfe\n\n",
        b"\n",
    ];
    for bytes in torn {
        let (place, record) = recorded();
        let good = fs::read(record.dir.events()).unwrap();
        fs::write(record.dir.events(), [&good, bytes].concat()).unwrap();
        for command in ["show", "explain"] {
            let said = place.tracegate(&[command, "@last"]);
            assert_eq!(said.code, 0, "{said:?}");
            let warning = format!(
                "warning: {} torn bytes at the end, from byte {}",
                bytes.len(),
                good.len()
            );
            assert_eq!(said.stderr.trim_end(), warning, "{said:?}");
            assert!(said.stdout.contains("completed"), "{said:?}");
        }
        let json = place.tracegate(&["show", "@last", "--json"]).json();
        assert!(json["log"].as_str().unwrap().contains("torn"), "{json}");
        let (events, recovery) = resume(&place, &record.dir).unwrap();
        assert_eq!(events, record.events.len());
        let file = format!("events.torn-{}.bin", good.len());
        let (offset, length) = (good.len() as u64, bytes.len() as u64);
        assert_eq!(
            recovery,
            Recovery::Quarantined {
                offset,
                bytes: length,
                file: file.clone()
            }
        );
        assert_eq!(fs::read(record.dir.events()).unwrap(), good);
        assert_eq!(fs::read(record.dir.path().join(file)).unwrap(), bytes);
        assert_eq!(place.tracegate(&["show", "@last"]).stderr, "");
    }
}

/// A crash can cut anything that was written after the last sync; `status.json` knows how far that was.
#[test]
fn a_record_cut_in_the_middle_is_torn_after_the_synced_head_and_damage_before_it() {
    let (place, record) = recorded();
    let good = fs::read(record.dir.events()).unwrap();
    let cut = &good[..good.len() - 40];
    fs::write(record.dir.events(), cut).unwrap();
    let said = place.tracegate(&["show", "@last"]);
    assert_eq!(said.code, 24, "{said:?}");
    assert!(said.stderr.contains("was synced"), "{said:?}");
    assert!(matches!(
        resume(&place, &record.dir),
        Err(LogError::Damaged { .. })
    ));
    assert_eq!(
        fs::read(record.dir.events()).unwrap(),
        cut,
        "a damaged log is left as it is"
    );
    // Without that knowledge, as at durability `kill`, it is an unfinished write.
    fs::remove_file(record.dir.status()).unwrap();
    let said = place.tracegate(&["show", "@last"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.stderr.starts_with("warning: ") && said.stderr.contains("torn bytes"),
        "{said:?}"
    );
    let (events, recovery) = resume(&place, &record.dir).unwrap();
    assert_eq!(events, record.events.len() - 1);
    assert!(matches!(recovery, Recovery::Quarantined { .. }));
    let (_, tail) = LogReader::open(&record.dir).unwrap().read_all().unwrap();
    assert_eq!(tail, Tail::Clean);
}

#[test]
fn a_missing_last_line_feed_is_completed() {
    let (place, record) = recorded();
    let good = fs::read(record.dir.events()).unwrap();
    fs::write(record.dir.events(), &good[..good.len() - 1]).unwrap();
    let said = place.tracegate(&["show", "@last"]);
    assert_eq!(
        (said.code, said.stderr.as_str()),
        (0, "warning: the last record lacks its line feed\n")
    );
    assert_eq!(
        resume(&place, &record.dir).unwrap(),
        (record.events.len(), Recovery::Completed)
    );
    assert_eq!(fs::read(record.dir.events()).unwrap(), good);
}

#[test]
fn damage_in_the_middle_is_placed_and_what_comes_before_it_is_shown() {
    let (place, record) = recorded();
    let good = record.text();
    let lines: Vec<&str> = good.lines().collect();
    let middle = lines.len() / 2;
    let offset: usize = lines[..middle].iter().map(|line| line.len() + 1).sum();
    let flipped = lines[middle].replacen("\"v\":1", "\"v\":2", 1);
    let swapped = {
        let mut lines = lines.clone();
        lines.swap(middle, middle + 1);
        lines.join("\n") + "\n"
    };
    let replaced = |line: &str| {
        let mut lines = lines.clone();
        lines[middle] = line;
        lines.join("\n") + "\n"
    };
    let without = {
        let mut lines = lines.clone();
        lines.remove(middle);
        lines.join("\n") + "\n"
    };
    for damaged in [
        replaced(&flipped),
        replaced("garbage"),
        replaced(""),
        swapped,
        without,
    ] {
        fs::write(record.dir.events(), &damaged).unwrap();
        for command in ["show", "explain"] {
            let said = place.tracegate(&[command, "@last"]);
            assert_eq!(said.code, 24, "{said:?}");
            let warning = format!("warning: damaged at event {}, byte {offset}: ", middle + 1);
            assert!(said.stderr.starts_with(&warning), "{said:?}");
            assert!(said.stdout.contains("notes.txt"), "{said:?}");
        }
        let list = place.tracegate(&["runs", "list"]);
        assert_eq!(list.code, 0, "{list:?}");
        assert!(
            list.stdout.contains("cannot be read: damaged at event"),
            "{list:?}"
        );
        let sent = place.tracegate(&["export", "@last", "--to", "otlp-json"]);
        assert_eq!(sent.code, 24, "{sent:?}");
        let answer = place.tracegate(&["answer", "@last", "x"]);
        assert_eq!(answer.code, 24, "{answer:?}");
        assert!(matches!(
            resume(&place, &record.dir),
            Err(LogError::Damaged { .. })
        ));
        assert_eq!(
            fs::read_to_string(record.dir.events()).unwrap(),
            damaged,
            "a damaged log is left as it is"
        );
    }
}

#[test]
fn a_log_without_a_good_event_is_an_integrity_failure() {
    let (place, record) = recorded();
    for text in ["", "garbage\n", "\0\0\0"] {
        fs::write(record.dir.events(), text).unwrap();
        fs::remove_file(record.dir.status()).ok();
        let said = place.tracegate(&["show", "@last"]);
        assert_eq!(said.code, 24, "{said:?}");
        assert!(said.stderr.starts_with("error: "), "{said:?}");
    }
}
