//! The log of a run under every kind of harm: torn, flipped, cut, half written, written by two, written by a newer version.
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

use serde_json::{json, value::to_raw_value};
use std::{
    fs,
    io::{self, Write as _},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tempfile::TempDir;
use tracegate_core::{
    event::{Event, FORMAT},
    fact::{Fact, is_free_key, is_schema_key},
    ids::{Chain, SegmentNo, Seq, Timestamp},
    redact::{RedactionKey, Redactor, Schema, Scrubbed},
};
use tracegate_store::{
    Disk, Head, LockError, LogError, LogFile, LogReader, LogWriter, RealDisk, Recovery, RunDir, Store, Tail,
};

/// A store with one run in it.
struct Bench {
    _dir: TempDir,
    store: Store,
    run: RunDir,
    redactor: Redactor,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("store"), || [7; 32]).unwrap();
        let run = store
            .create_run(&"run_log_20261130_00000001".parse().unwrap())
            .unwrap();
        Self {
            _dir: dir,
            store,
            run,
            redactor: Redactor::new(RedactionKey::from_bytes([7; 32]), &[]),
        }
    }

    fn create(&self, disk: &dyn Disk) -> LogWriter {
        LogWriter::create(&self.run, disk, self.store.artifacts(), 4711).unwrap()
    }

    fn resume(&self) -> Result<(LogWriter, Vec<Event>, Recovery), LogError> {
        let mut events = Vec::new();
        let opened = LogWriter::resume(&self.run, &RealDisk, self.store.artifacts(), 4712, |event| {
            events.push(event);
            Ok::<_, LogError>(())
        });
        opened.map(|(writer, recovery)| (writer, events, recovery))
    }

    fn read(&self) -> (Vec<String>, Tail) {
        let (events, tail) = LogReader::open(&self.run).unwrap().read_all().unwrap();
        (self.lines(&events), tail)
    }

    /// The lines that `events` came from; equal lines, equal events, field by field.
    fn lines(&self, events: &[Event]) -> Vec<String> {
        let mut chain = Chain::genesis(self.run.id());
        let line = |event: &Event| {
            let (line, next) = event.to_line(chain).unwrap();
            chain = next;
            line
        };
        events.iter().map(line).collect()
    }

    fn event(&self, seq: u64, name: &str, data: &serde_json::Value) -> Scrubbed<Event> {
        let fact = Fact::from_json(name, &to_raw_value(data).unwrap()).unwrap();
        let ts = Timestamp(1_796_000_000_000_000_000 + seq);
        self.scrub(&Event::new(self.run.id(), Seq(seq), SegmentNo(1), ts, seq, fact))
    }

    fn scrub(&self, event: &Event) -> Scrubbed<Event> {
        let schema = Schema {
            keep: is_schema_key,
            free: is_free_key,
        };
        self.redactor.scrub(event, &schema).unwrap()
    }

    /// A short event; the chain over them makes each line different.
    fn small(&self, seq: u64) -> Scrubbed<Event> {
        let name = match seq % 3 {
            0 => "span.noted",
            1 => "moon.rose",
            _ => "user.message",
        };
        self.event(
            seq,
            name,
            &json!({"name": "ä", "kind": "task", "content": "x\ny"}),
        )
    }

    /// Writes a log of `count` events and returns its bytes and the offset after each line.
    fn write(&self, count: u64) -> (Vec<u8>, Vec<usize>) {
        let mut log = self.create(&RealDisk);
        for seq in 1..=count {
            log.append(&self.small(seq)).unwrap();
        }
        drop(log);
        let bytes = fs::read(self.run.events()).unwrap();
        let feeds = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let ends = feeds.map(|(at, _)| at + 1).collect();
        (bytes, ends)
    }

    /// Puts other bytes into the log, in place: emptying the file first would make the file system flush it every time.
    fn put(&self, bytes: &[u8]) {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .open(self.run.events())
            .unwrap();
        file.write_all(bytes).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
    }

    fn set_head(&self, head: &Head) {
        let status = self.redactor.scrub_json(json!({ "head": head }));
        self.run.replace_json(&self.run.status(), &status).unwrap();
    }
}

#[test]
fn what_is_appended_is_read_back_and_goes_on_after_it() {
    let bench = Bench::new();
    let mut log = bench.create(&RealDisk);
    assert!(log.is_empty());
    let mut events: Vec<Event> = Vec::new();
    for seq in 1..=7 {
        let event = bench.small(seq);
        log.append(&event).unwrap();
        events.push(event.into_inner());
        assert_eq!(log.len(), fs::metadata(bench.run.events()).unwrap().len());
    }
    let head = log.sync().unwrap();
    assert_eq!((head.seq, log.synced()), (Seq(7), head));
    assert_eq!(bench.read(), (bench.lines(&events), Tail::Clean));
    drop(log);
    bench.set_head(&head);
    let (mut log, found, recovery) = bench.resume().unwrap();
    assert_eq!(
        (bench.lines(&found), recovery, log.synced()),
        (bench.lines(&events), Recovery::Clean, head)
    );
    let next = bench.small(8);
    log.append(&next).unwrap();
    events.push(next.into_inner());
    assert_eq!(bench.read(), (bench.lines(&events), Tail::Clean));
}

#[test]
fn a_second_log_of_a_run_is_refused_and_the_first_stays() {
    let bench = Bench::new();
    let (bytes, _) = bench.write(2);
    let refused = LogWriter::create(&bench.run, &RealDisk, bench.store.artifacts(), 1).unwrap_err();
    assert!(
        matches!(&refused, LogError::Io { doing: "create", error, .. } if error.kind() == io::ErrorKind::AlreadyExists),
        "{refused}"
    );
    assert_eq!(fs::read(bench.run.events()).unwrap(), bytes);
}

#[test]
fn a_log_cut_anywhere_keeps_its_whole_records_and_can_be_continued() {
    let bench = Bench::new();
    let (bytes, ends) = bench.write(2);
    let all = bench.read().0;
    for cut in 0..=bytes.len() {
        bench.put(&bytes[..cut]);
        let unterminated = ends.contains(&(cut + 1));
        let whole = ends.iter().filter(|end| **end <= cut).count() + usize::from(unterminated);
        let good = if unterminated {
            cut
        } else {
            whole.checked_sub(1).map_or(0, |last| ends[last])
        };
        let torn = (cut - good) as u64;
        let (offset, quarantine) = (good as u64, bench.run.quarantine(good as u64, 0));
        let (tail, recovery) = if unterminated {
            (Tail::Unterminated, Recovery::Completed)
        } else if torn == 0 {
            (Tail::Clean, Recovery::Clean)
        } else {
            let file = format!("events.torn-{good}.bin");
            let quarantined = Recovery::Quarantined {
                offset,
                bytes: torn,
                file,
            };
            (Tail::Torn { offset, bytes: torn }, quarantined)
        };
        assert_eq!(bench.read(), (all[..whole].to_vec(), tail), "cut at {cut}");
        // Mending costs three syncs: inside the first record a few places stand for all.
        if cut > 2 && cut + 2 < ends[0] && cut % 16 != 0 {
            continue;
        }
        let (mut log, found, mended) = bench.resume().unwrap();
        assert_eq!(
            (bench.lines(&found), mended),
            (all[..whole].to_vec(), recovery),
            "cut at {cut}"
        );
        if torn > 0 {
            assert_eq!(fs::read(&quarantine).unwrap(), bytes[good..cut], "cut at {cut}");
            fs::remove_file(&quarantine).unwrap();
        }
        log.append(&bench.small(whole as u64 + 1)).unwrap();
        assert_eq!(
            log.len(),
            fs::metadata(bench.run.events()).unwrap().len(),
            "cut at {cut}"
        );
        drop(log);
        let (read, tail) = bench.read();
        assert_eq!((read.len(), tail), (whole + 1, Tail::Clean), "cut at {cut}");
    }
}

#[test]
fn a_flipped_byte_is_never_taken_for_an_event() {
    let bench = Bench::new();
    let (bytes, ends) = bench.write(3);
    let all = bench.read().0;
    for at in 0..bytes.len() {
        let before = ends.iter().filter(|end| **end <= at).count();
        let flips = [1, 32, 128].map(|bit| bytes[at] ^ bit).into_iter().chain([b'\n']);
        for byte in flips.filter(|byte| *byte != bytes[at]) {
            let mut harmed = bytes.clone();
            harmed[at] = byte;
            bench.put(&harmed);
            let (read, tail) = bench.read();
            assert_eq!(read, all[..before], "byte {at} is {byte:#04x}");
            let offset = before.checked_sub(1).map_or(0, |last| ends[last]) as u64;
            let named = match tail {
                Tail::Torn { offset, .. } => offset,
                Tail::Damaged { seq, offset, .. } => {
                    assert_eq!(seq, Seq(before as u64 + 1), "byte {at} is {byte:#04x}");
                    offset
                }
                Tail::Clean | Tail::Unterminated => panic!("byte {at} as {byte:#04x} is accepted: {tail:?}"),
            };
            assert_eq!(named, offset, "byte {at} is {byte:#04x}");
        }
    }
}

#[test]
fn what_stands_after_the_last_record_is_set_aside_whatever_it_is() {
    let bench = Bench::new();
    let (bytes, ends) = bench.write(3);
    let good = bytes.len();
    let nul = vec![0; 4096];
    let mut feeds = nul.clone();
    feeds[7] = b'\n';
    let half = bytes[ends[1]..good - 40].to_vec();
    let not_utf8 = b"{\"v\":1,\xff\xfe}\n".to_vec();
    let foreign = b"{\"v\":1}\n{}\nnull\n".to_vec();
    // The record before, once more: a retry that did not truncate. Its number was there already, so nothing new is lost.
    let again = bytes[ends[1]..].to_vec();
    for rest in [b"\n".to_vec(), nul, feeds, half, not_utf8, foreign, again] {
        bench.put(&[bytes.clone(), rest.clone()].concat());
        let (log, found, recovery) = bench.resume().unwrap();
        let wanted = Recovery::Quarantined {
            offset: good as u64,
            bytes: rest.len() as u64,
            file: format!("events.torn-{good}.bin"),
        };
        assert_eq!((found.len(), recovery), (3, wanted), "{rest:?}");
        assert_eq!(fs::read(bench.run.quarantine(good as u64, 0)).unwrap(), rest);
        assert_eq!(fs::read(bench.run.events()).unwrap(), bytes);
        drop(log);
        fs::remove_file(bench.run.quarantine(good as u64, 0)).unwrap();
    }
}

#[test]
fn torn_bytes_that_were_set_aside_are_never_overwritten() {
    let bench = Bench::new();
    let (bytes, _) = bench.write(2);
    let mut kept = Vec::new();
    for rest in ["first", "second", "third"] {
        bench.put(&[bytes.as_slice(), rest.as_bytes()].concat());
        match bench.resume().unwrap().2 {
            Recovery::Quarantined { file, .. } => kept.push((file, rest)),
            other @ (Recovery::Clean | Recovery::Completed) => panic!("{other:?}"),
        }
    }
    for (file, rest) in kept {
        assert_eq!(
            fs::read_to_string(bench.run.path().join(&file)).unwrap(),
            rest,
            "{file}"
        );
    }
}

#[test]
fn damage_before_the_end_refuses_to_append_and_is_named() {
    let bench = Bench::new();
    let (bytes, ends) = bench.write(5);
    let line =
        |index: usize| bytes[index.checked_sub(1).map_or(0, |before| ends[before])..ends[index]].to_vec();
    let with = |lines: &[Vec<u8>]| lines.concat();
    let mut wrong = line(2);
    wrong[30] ^= 1;
    let rows: [(&str, Vec<u8>, u64, usize); 5] = [
        (
            "a changed byte",
            with(&[line(0), line(1), wrong, line(3), line(4)]),
            3,
            1,
        ),
        ("a lost record", with(&[line(0), line(1), line(3), line(4)]), 3, 1),
        (
            "swapped records",
            with(&[line(0), line(2), line(1), line(3)]),
            2,
            0,
        ),
        (
            "a foreign line",
            with(&[line(0), b"{}\n".to_vec(), line(1)]),
            2,
            0,
        ),
        ("no beginning", with(&[line(1), line(2)]), 1, usize::MAX),
    ];
    for (what, harmed, seq, after) in rows {
        bench.put(&harmed);
        let offset = if after == usize::MAX { 0 } else { ends[after] } as u64;
        match bench.resume() {
            Err(LogError::Damaged {
                seq: found,
                offset: at,
                path,
                ..
            }) => assert_eq!(
                (found, at, path),
                (Seq(seq), offset, bench.run.events()),
                "{what}"
            ),
            other => panic!("{what}: {other:?}"),
        }
        assert_eq!(
            fs::read(bench.run.events()).unwrap(),
            harmed,
            "{what}: nothing was touched"
        );
    }
}

#[test]
fn a_log_that_ends_before_its_synced_head_is_damaged_not_short() {
    let bench = Bench::new();
    let mut log = bench.create(&RealDisk);
    for seq in 1..=2 {
        log.append(&bench.small(seq)).unwrap();
    }
    let head = log.sync().unwrap();
    log.append(&bench.small(3)).unwrap();
    drop(log);
    bench.set_head(&head);
    let bytes = fs::read(bench.run.events()).unwrap();
    let feeds = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let ends: Vec<usize> = feeds.map(|(at, _)| at + 1).collect();
    for cut in 0..=ends[1] + 3 {
        bench.put(&bytes[..cut]);
        // The record without its line feed is whole.
        if cut >= ends[1] - 1 {
            assert!(bench.resume().is_ok(), "cut at {cut}");
            continue;
        }
        let whole = ends.iter().filter(|end| **end <= cut + 1).count() as u64;
        match bench.resume() {
            Err(LogError::Damaged { seq, .. }) => assert_eq!(seq, Seq(whole + 1), "cut at {cut}"),
            other => panic!("cut at {cut}: {other:?}"),
        }
        assert_eq!(
            fs::read(bench.run.events()).unwrap(),
            bytes[..cut],
            "cut at {cut}"
        );
    }
}

#[test]
fn a_log_that_was_rewritten_below_its_synced_head_is_damaged() {
    let bench = Bench::new();
    let mut log = bench.create(&RealDisk);
    for seq in 1..=3 {
        log.append(&bench.small(seq)).unwrap();
    }
    let head = log.sync().unwrap();
    drop(log);
    bench.set_head(&head);
    // Another log of the same run, whole in itself: only the remembered chain tells that it is not the one that was synced.
    fs::remove_file(bench.run.events()).unwrap();
    let mut log = bench.create(&RealDisk);
    log.append(&bench.event(1, "span.noted", &json!({"name": "other"})))
        .unwrap();
    for seq in 2..=5 {
        log.append(&bench.small(seq)).unwrap();
    }
    drop(log);
    match bench.resume() {
        Err(LogError::Damaged { seq, .. }) => assert_eq!(seq, Seq(3)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_second_writer_is_told_who_the_first_is() {
    let bench = Bench::new();
    let log = bench.create(&RealDisk);
    match bench.resume() {
        Err(LogError::Lock(LockError::Held { run, pid })) => {
            assert_eq!((run.as_path(), pid), (bench.run.path(), Some(4711)));
        }
        other => panic!("{other:?}"),
    }
    drop(log);
    assert!(bench.resume().is_ok(), "the lock goes with its holder");
}

#[test]
fn what_a_newer_version_wrote_is_read_but_not_continued() {
    let check = |change: fn(&mut Event), continued: bool| {
        let bench = Bench::new();
        let mut log = bench.create(&RealDisk);
        log.append(&bench.small(1)).unwrap();
        let mut event = bench
            .event(2, "moon.rose", &json!({"phase": "full", "n": 1.50, "x": [null]}))
            .into_inner();
        change(&mut event);
        log.append(&bench.scrub(&event)).unwrap();
        log.append(&bench.small(3)).unwrap();
        drop(log);
        let (read, tail) = bench.read();
        assert_eq!((read.len(), tail), (3, Tail::Clean));
        assert!(
            read[1].contains(r#""type":"moon.rose""#)
                && read[1].contains(r#""data":{"phase":"full","n":1.5,"x":[null]}"#)
        );
        let bytes = fs::read(bench.run.events()).unwrap();
        match bench.resume() {
            Ok((_, events, recovery)) => {
                assert!(continued, "an event that forbids appending was passed over");
                assert_eq!((bench.lines(&events), recovery), (read, Recovery::Clean));
            }
            Err(LogError::Newer { seq, path }) => {
                assert!(!continued, "an event that may be passed over forbids appending");
                assert_eq!((seq, path), (Seq(2), bench.run.events()));
            }
            Err(other) => panic!("{other}"),
        }
        assert_eq!(fs::read(bench.run.events()).unwrap(), bytes);
    };
    check(|_| {}, true);
    check(|event| event.must = true, false);
    check(|event| event.v = FORMAT + 1, false);
}

#[test]
fn a_record_that_is_too_long_is_refused_whole() {
    let bench = Bench::new();
    let mut log = bench.create(&RealDisk);
    log.append(&bench.small(1)).unwrap();
    let before = fs::read(bench.run.events()).unwrap();
    let long = bench.event(2, "moon.rose", &json!({"text": "word ".repeat(20_000)}));
    match log.append(&long) {
        Err(LogError::TooLong { seq, name, bytes }) => {
            assert_eq!((seq, name.as_str(), bytes > 100_000), (Seq(2), "moon.rose", true));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read(bench.run.events()).unwrap(), before);
    log.append(&bench.small(2)).unwrap();
    assert_eq!((bench.read().0.len(), bench.read().1), (2, Tail::Clean));
}

/// What a file does wrong at its n-th append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Nothing is written.
    Refused,
    /// Half of the record is written.
    Short,
    /// Half of it is written, and cutting it off fails once as well.
    ShortAndStuck,
}

/// A disk that fails once.
#[derive(Debug)]
struct Faulty {
    at: u64,
    fault: Fault,
}

#[derive(Debug)]
struct FaultyFile {
    inner: Box<dyn LogFile>,
    left: u64,
    fault: Fault,
    stuck: bool,
}

fn full() -> io::Error {
    io::Error::from(io::ErrorKind::StorageFull)
}

impl Disk for Faulty {
    fn open_log(&self, path: &Path, create: bool) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(FaultyFile {
            inner: RealDisk.open_log(path, create)?,
            left: self.at,
            fault: self.fault,
            stuck: false,
        }))
    }
}

impl LogFile for FaultyFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.left = self.left.wrapping_sub(1);
        if self.left != 0 {
            return self.inner.append(bytes);
        }
        if self.fault != Fault::Refused {
            self.inner.append(&bytes[..bytes.len() / 2])?;
        }
        self.stuck = self.fault == Fault::ShortAndStuck;
        Err(full())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.inner.sync()
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        if std::mem::take(&mut self.stuck) {
            return Err(full());
        }
        self.inner.truncate(len)
    }
}

#[test]
fn a_disk_that_fails_at_any_append_leaves_a_log_that_verifies() {
    const EVENTS: u64 = 6;
    for fault in [Fault::Refused, Fault::Short, Fault::ShortAndStuck] {
        for at in 1..=EVENTS {
            let bench = Bench::new();
            let disk = Faulty { at, fault };
            let mut log = bench.create(&disk);
            let mut kept = Vec::new();
            for seq in 1..at {
                let event = bench.small(seq);
                log.append(&event).unwrap();
                kept.push(event.into_inner());
            }
            match log.append(&bench.small(at)) {
                Err(LogError::Io { doing, error, .. }) => {
                    assert_eq!((doing, error.kind()), ("append to", io::ErrorKind::StorageFull));
                }
                other => panic!("{fault:?} at {at}: {other:?}"),
            }
            let (read, tail) = bench.read();
            assert_eq!(read, bench.lines(&kept), "{fault:?} at {at}");
            assert_eq!(
                matches!(tail, Tail::Torn { .. }),
                fault == Fault::ShortAndStuck,
                "{fault:?} at {at}: {tail:?}"
            );
            // Whoever tries again, in this process or in another, continues a whole log.
            if at % 2 == 0 {
                drop(log);
                log = bench.resume().unwrap().0;
            }
            for seq in at..=EVENTS {
                let event = bench.small(seq);
                log.append(&event).unwrap();
                kept.push(event.into_inner());
            }
            assert_eq!(
                bench.read(),
                (bench.lines(&kept), Tail::Clean),
                "{fault:?} at {at}"
            );
        }
    }
}

/// A disk that counts syncs.
#[derive(Debug, Default)]
struct Counting(Arc<AtomicUsize>);

#[derive(Debug)]
struct CountingFile(Box<dyn LogFile>, Arc<AtomicUsize>);

impl Disk for Counting {
    fn open_log(&self, path: &Path, create: bool) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(CountingFile(
            RealDisk.open_log(path, create)?,
            Arc::clone(&self.0),
        )))
    }
}

impl LogFile for CountingFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.sync()
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }
}

#[test]
fn the_log_is_not_synced_before_the_artifacts_that_it_names() {
    let bench = Bench::new();
    let disk = Counting::default();
    let mut log = bench.create(&disk);
    log.append(&bench.small(1)).unwrap();
    let artifacts = bench.store.artifacts();
    let bytes = bench.redactor.scrub_bytes(b"payload".to_vec());
    let reference = artifacts.put(&bytes, "text/plain").unwrap();
    // An artifact that vanished cannot be made durable: that is where the order shows.
    let hex = reference.digest.to_string()[3..].to_owned();
    let file = bench
        .store
        .root()
        .join("artifacts/b3")
        .join(&hex[..2])
        .join(&hex[2..]);
    fs::remove_file(&file).unwrap();
    let refused = log.sync().unwrap_err();
    assert!(
        matches!(&refused, LogError::Io { doing: "sync", error, .. } if error.kind() == io::ErrorKind::NotFound),
        "{refused}"
    );
    assert_eq!((disk.0.load(Ordering::SeqCst), log.synced().seq), (0, Seq(0)));
    artifacts.put(&bytes, "text/plain").unwrap();
    assert_eq!(log.sync().unwrap().seq, Seq(1));
    assert_eq!(disk.0.load(Ordering::SeqCst), 1);
}

#[test]
fn a_reader_beside_the_writer_sees_whole_events_only() {
    let bench = Bench::new();
    let mut log = bench.create(&RealDisk);
    log.append(&bench.small(1)).unwrap();
    let seen = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for seq in 2..=200 {
                log.append(&bench.small(seq)).unwrap();
            }
        });
        while !writer.is_finished() {
            let (read, tail) = bench.read();
            seen.lock().unwrap().push(read.len());
            assert_eq!(tail, Tail::Clean);
        }
    });
    assert_eq!(bench.read().0.len(), 200);
    assert!(seen.into_inner().unwrap().is_sorted());
}
