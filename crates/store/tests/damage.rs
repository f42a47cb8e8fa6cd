//! Every byte of a recorded log: cut, flipped, moved, doubled, lost. What verifies is kept exactly, what does not is named, nothing is invented.
#![expect(
    clippy::disallowed_methods,
    reason = "a test damages files behind the store's back"
)]
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first surprise, and picks the findings that it is about"
)]

mod rig;

use rig::{Recorded, body, redactor};
use std::{collections::BTreeSet, fs, path::PathBuf};
use tracegate_core::{event::Event, fact::Data as _, fact::log::LogGap, ids::Seq, state::RunState};
use tracegate_store::{Finding, Head, LogError, LogReader, Recovery, Salvage, Tail, Verdict, fsck, salvage};

/// Reads `bytes`, which are the log from line `from` on, and returns how many events verify and how it ends.
fn read(log: &Recorded, from: usize, bytes: &[u8], head: Option<Head>) -> (usize, Tail) {
    let reader = LogReader::over(bytes, log.run.id(), head, PathBuf::from("memory"));
    let mut reader = reader.behind(log.before(from), log.start(from) as u64);
    let mut events = 0;
    while reader.next_event().unwrap().is_some() {
        events += 1;
    }
    (from + events, reader.tail())
}

/// How the log must end if `whole` lines verify, the good part ends at `good`, and `torn` bytes follow.
fn ending(log: &Recorded, whole: usize, good: usize, torn: usize, head: Option<usize>) -> Tail {
    let (offset, bytes) = (good as u64, torn as u64);
    match head {
        Some(head) if whole <= head => Tail::Damaged {
            seq: Seq(whole as u64 + 1),
            offset,
            why: format!("the log ends here, but event {} was synced", log.heads[head].seq),
        },
        _ if torn > 0 => Tail::Torn { offset, bytes },
        _ if good > 0 && !log.ends.contains(&good) => Tail::Unterminated,
        _ => Tail::Clean,
    }
}

#[test]
fn a_log_cut_at_any_byte_keeps_exactly_its_whole_records() {
    let log = Recorded::new(5);
    let lines = log.ends.len();
    let mut cuts = 0;
    for head in [None, Some(lines / 2)] {
        for cut in 0..=log.bytes.len() {
            let unterminated = log.ends.contains(&(cut + 1));
            let whole = log.line_at(cut) + usize::from(unterminated);
            let good = if unterminated { cut } else { log.start(whole) };
            let from = whole.saturating_sub(2);
            let bytes = &log.bytes[log.start(from)..cut];
            let found = read(&log, from, bytes, head.map(|head| log.heads[head]));
            let wanted = (whole, ending(&log, whole, good, cut - good, head));
            assert_eq!(found, wanted, "cut at {cut}, head {head:?}");
            cuts += 1;
        }
    }
    let all = 2 * (log.bytes.len() + 1);
    println!(
        "truncations: {cuts} of {all} recovered exactly ({} bytes, {lines} records, with and without a synced head)",
        log.bytes.len()
    );
}

#[test]
fn a_log_cut_near_any_record_is_mended_by_the_writer_as_the_check_says() {
    let log = Recorded::new(4);
    let lines = log.ends.len();
    let mut counts = (0, 0, 0);
    for head in [None, Some(lines / 2)] {
        log.set_head(head);
        for index in 0..lines {
            let (start, end) = (log.start(index), log.ends[index]);
            for cut in [start, start + 1, (start + end) / 2, end - 2, end - 1] {
                log.put(&log.bytes[..cut]);
                let before = fs::read(log.run.events()).unwrap();
                let report = fsck(&log.store, &log.run).unwrap();
                let whole = index + usize::from(cut == end - 1);
                assert_eq!(report.verified, whole as u64, "cut at {cut}");
                let salvaged = salvage(&log.run, &redactor(), 1);
                match log.resume() {
                    Ok((writer, events, recovery)) => {
                        if let Ok(Salvage::Done { gaps, .. }) = &salvaged {
                            // It had ended before its synced head: the numbers up to that are taken.
                            let head = log.heads[head.unwrap()].seq;
                            assert_eq!(gaps, &[(Seq(whole as u64 + 1), head)], "cut at {cut}");
                            assert_eq!(
                                (events.len(), recovery),
                                (whole + 1, Recovery::Clean),
                                "cut at {cut}"
                            );
                            assert_eq!(report.verdict, Verdict::Damaged, "cut at {cut}");
                            counts.2 += 1;
                            log.set_head(Some(lines / 2));
                        } else {
                            assert_eq!(events.len(), whole, "cut at {cut}");
                            let torn = matches!(recovery, Recovery::Quarantined { .. } | Recovery::Completed);
                            let wanted = if torn { Verdict::Mendable } else { Verdict::Whole };
                            assert_eq!(report.verdict, wanted, "cut at {cut}");
                            let wanted = if torn { Salvage::OnlyTorn } else { Salvage::Whole };
                            assert_eq!(salvaged.unwrap(), wanted, "cut at {cut}");
                            if torn {
                                counts.1 += 1;
                            } else {
                                counts.0 += 1;
                            }
                        }
                        drop(writer);
                    }
                    Err(error) => panic!("cut at {cut}: {error}"),
                }
                assert!(
                    fs::read(log.run.events())
                        .unwrap()
                        .starts_with(&before[..log.start(whole).min(cut)])
                );
                log.tidy();
            }
        }
    }
    println!(
        "cuts near records: {} whole, {} mended, {} salvaged",
        counts.0, counts.1, counts.2
    );
}

#[test]
fn a_flip_of_any_byte_is_placed_and_nothing_behind_it_is_taken() {
    const MASKS: [u8; 2] = [0x01, 0x80];
    let log = Recorded::new(5);
    let lines = log.ends.len();
    let mut flips = 0;
    for at in 0..log.bytes.len() {
        let index = log.line_at(at);
        let from = index.saturating_sub(1);
        // A line feed that is gone takes the next line with it.
        let hit = index + 1 + usize::from(log.bytes[at] == b'\n');
        let until = (hit + 1).min(lines);
        let start = log.start(from);
        for mask in MASKS {
            let mut bytes = log.bytes[start..log.ends[until - 1]].to_vec();
            bytes[at - start] ^= mask;
            let (events, tail) = read(&log, from, &bytes, None);
            assert_eq!(events, index, "byte {at} ^ {mask:#04x}");
            let offset = log.start(index) as u64;
            match tail {
                Tail::Damaged {
                    seq, offset: found, ..
                } => {
                    assert_eq!(
                        (seq, found, hit < lines),
                        (Seq(index as u64 + 1), offset, true),
                        "byte {at} ^ {mask:#04x}"
                    );
                }
                Tail::Torn { offset: found, .. } => {
                    assert_eq!((found, hit < lines), (offset, false), "byte {at} ^ {mask:#04x}");
                }
                Tail::Clean | Tail::Unterminated => panic!("byte {at} ^ {mask:#04x} is accepted: {tail:?}"),
            }
            flips += 1;
        }
    }
    let all = MASKS.len() * log.bytes.len();
    println!("flips: {flips} of {all} named with event and byte, no event taken behind one");
}

/// Salvages `harmed`, of which the lines `lost` (by index) were changed or are gone, and checks everything that must hold.
/// `hold` is the index of the line whose head is known to be synced.
fn check(log: &Recorded, harmed: &[u8], lost: &BTreeSet<usize>, hold: Option<usize>, what: &str) -> bool {
    log.set_head(hold);
    log.put(harmed);
    let report = fsck(&log.store, &log.run).unwrap();
    assert_eq!(
        fs::read(log.run.events()).unwrap(),
        harmed,
        "{what}: a check changes nothing"
    );
    // The writer and the check say the same about the same log.
    let resumed = log.resume();
    let first = report
        .findings
        .iter()
        .find(|found| found.verdict() != Verdict::Whole);
    let damaged = match &resumed {
        Err(LogError::Damaged { seq, offset, .. }) => {
            let named = Finding::Damaged {
                seq: *seq,
                offset: *offset,
                why: match first {
                    Some(Finding::Damaged { why, .. }) => why.clone(),
                    _ => String::new(),
                },
            };
            assert_eq!(first, Some(&named), "{what}");
            assert_eq!(
                fs::read(log.run.events()).unwrap(),
                harmed,
                "{what}: nothing is appended"
            );
            true
        }
        Ok((_, events, recovery)) => {
            assert_eq!(events.len() as u64, report.verified, "{what}");
            let wanted = if *recovery == Recovery::Clean {
                Verdict::Whole
            } else {
                Verdict::Mendable
            };
            assert_eq!(report.verdict, wanted, "{what}: {recovery:?}");
            false
        }
        Err(other) => panic!("{what}: {other}"),
    };
    assert_eq!(
        report.verdict == Verdict::Damaged && report.salvageable,
        damaged,
        "{what}"
    );
    drop(resumed);
    if !damaged {
        log.tidy();
        return false;
    }
    let Salvage::Done {
        gaps, damaged, kept, ..
    } = salvage(&log.run, &redactor(), 1).unwrap()
    else {
        panic!("{what}: not salvaged")
    };
    assert_eq!(
        fs::read(log.run.path().join(damaged)).unwrap(),
        harmed,
        "{what}: the old log is kept"
    );
    let (events, tail) = LogReader::open(&log.run).unwrap().read_all().unwrap();
    assert_eq!(tail, Tail::Clean, "{what}");
    let text = fs::read(log.run.events()).unwrap();
    let after: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let good: Vec<usize> = (0..log.ends.len())
        .filter(|index| !lost.contains(index))
        .collect();
    let bodies: Vec<&[u8]> = good.iter().map(|index| body(log.line(*index))).collect();
    let records = events
        .iter()
        .zip(&after)
        .filter(|(event, _)| LogGap::of(&event.fact).is_none());
    let found: Vec<&[u8]> = records.map(|(_, line)| body(line)).collect();
    assert_eq!(
        found, bodies,
        "{what}: every good record is there, in order, and nothing else"
    );
    assert_eq!(kept, bodies.len() as u64, "{what}");
    // Before the first gap every byte is the same.
    let first = gaps
        .first()
        .map_or(log.ends.len(), |(from, _)| usize::try_from(from.0).unwrap() - 1);
    let before = &log.bytes[..log.start(first)];
    assert_eq!(&text[..before.len()], before, "{what}");
    let numbers: Vec<u64> = gaps.iter().flat_map(|(from, to)| from.0..=to.0).collect();
    let last = events.last().map_or(0, |event| event.through().0);
    let wanted: Vec<u64> = lost
        .iter()
        .map(|index| *index as u64 + 1)
        .filter(|seq| *seq <= last)
        .collect();
    assert_eq!(numbers, wanted, "{what}: the gaps are what is lost");
    RunState::fold(&events).unwrap_or_else(|violation| panic!("{what}: {violation}"));
    assert!(
        events
            .windows(2)
            .all(|pair| pair[0].ts < pair[1].ts && pair[0].segment <= pair[1].segment)
    );
    let report = fsck(&log.store, &log.run).unwrap();
    let marked = |found: &Finding| matches!(found, Finding::Gap { .. });
    assert_eq!(report.verdict, Verdict::Whole, "{what}: {:?}", report.findings);
    assert_eq!(
        report.findings.iter().filter(|found| marked(found)).count(),
        gaps.len(),
        "{what}"
    );
    // The writer goes on behind it, and its head is the new one.
    let (mut writer, again, recovery) = log.resume().unwrap();
    assert_eq!((again.len(), recovery), (events.len(), Recovery::Clean), "{what}");
    assert_eq!(writer.synced().seq, Seq(last), "{what}");
    let mut next: Event = events.last().unwrap().clone();
    next.seq = Seq(last + 1);
    next.fact = tracegate_core::fact::log::LogRecovered {
        offset: 0,
        torn_bytes: 0,
        quarantine: String::new(),
    }
    .into();
    writer.append(&rig::scrub(&next)).unwrap();
    drop(writer);
    let (more, tail) = LogReader::open(&log.run).unwrap().read_all().unwrap();
    assert_eq!((more.len(), tail), (events.len() + 1, Tail::Clean), "{what}");
    log.tidy();
    true
}

#[test]
fn after_a_flip_a_salvage_keeps_every_other_record() {
    let log = Recorded::new(1);
    let lines = log.ends.len();
    let (mut salvaged, mut torn) = (0, 0);
    // Reading is proved at every byte above; a salvage reads and writes the log ten times, so here some bytes of every line stand for all.
    let feeds = log.ends.iter().map(|end| end - 1);
    let places: BTreeSet<usize> = (0..log.bytes.len()).step_by(23).chain(feeds).collect();
    for at in places.iter().copied() {
        let index = log.line_at(at);
        {
            let mask = [0x01, 0x80][at % 2];
            let mut harmed = log.bytes.clone();
            harmed[at] ^= mask;
            let mut lost = BTreeSet::from([index]);
            if log.bytes[at] == b'\n' && index + 1 < lines {
                lost.insert(index + 1);
            }
            let hold = at.is_multiple_of(3).then_some(lines - 1);
            let done = check(&log, &harmed, &lost, hold, &format!("byte {at} ^ {mask:#04x}"));
            if done {
                salvaged += 1;
            } else {
                torn += 1;
            }
        }
    }
    println!(
        "salvages after flips: {salvaged} kept every other record, {torn} were torn ends ({} of {})",
        salvaged + torn,
        places.len()
    );
}

#[test]
fn whatever_happens_to_lines_a_salvage_keeps_every_one_that_is_still_there() {
    let log = Recorded::new(1);
    let lines = log.ends.len();
    let join = |lines: &[&[u8]]| lines.concat();
    let none = BTreeSet::new();
    let mut done = 0;
    let mut cases = 0;
    for index in 0..lines {
        for hold in [None, Some(lines - 1)] {
            let all: Vec<&[u8]> = (0..lines).map(|index| log.line(index)).collect();
            let mut run = |what: &str, harmed: Vec<u8>, lost: &BTreeSet<usize>| {
                cases += 1;
                done += usize::from(check(
                    &log,
                    &harmed,
                    lost,
                    hold,
                    &format!("{what} at line {}, head {hold:?}", index + 1),
                ));
            };
            let mut removed = all.clone();
            removed.remove(index);
            run("removed", join(&removed), &BTreeSet::from([index]));
            let mut doubled = all.clone();
            doubled.insert(index, all[index]);
            run("doubled", join(&doubled), &none);
            if index + 1 < lines {
                let mut swapped = all.clone();
                swapped.swap(index, index + 1);
                // Without a line behind them that shows where they belong, the second one is a torn end.
                run("swapped", join(&swapped), &none);
            }
            let early: &[u8] = all[lines - 1 - index];
            let inserts: [(&str, &[u8]); 6] = [
                ("foreign", b"{\"v\":1}\n"),
                ("garbage", b"\xff\xfe garbage\n"),
                ("empty", b"\n"),
                ("nul", &[0; 700]),
                ("half", &all[index][..all[index].len() / 2]),
                ("moved", early),
            ];
            for (what, bytes) in inserts {
                let mut harmed = all.clone();
                harmed.insert(index, bytes);
                // Bytes without a line feed take the line that they stand before.
                let lost = if bytes.ends_with(b"\n") {
                    none.clone()
                } else {
                    BTreeSet::from([index])
                };
                run(what, join(&harmed), &lost);
            }
            if index + 2 < lines {
                let mut two = all.clone();
                two.drain(index..index + 2);
                run("two removed", join(&two), &BTreeSet::from([index, index + 1]));
                // Each is whole to look at; that the second one was changed shows only in the chain value of the first.
                let changed = |line: &[u8]| [b"{\"v\":3", &line[6..]].concat();
                let (one, other) = (changed(all[index]), changed(all[index + 1]));
                let mut both = all.clone();
                both[index] = &one;
                both[index + 1] = &other;
                run("two changed", join(&both), &BTreeSet::from([index, index + 1]));
                let mut garbled = all.clone();
                garbled[index] = b"{\n";
                garbled[index + 1] = b"}\n";
                run("garbled", join(&garbled), &BTreeSet::from([index, index + 1]));
            }
        }
    }
    println!(
        "lines removed, doubled, swapped, inserted: {cases} cases, {done} salvaged, the others torn ends"
    );
}

#[test]
fn a_log_salvaged_twice_holds_both_gaps() {
    let log = Recorded::new(3);
    let lines = log.ends.len();
    let mut harmed = log.bytes.clone();
    harmed[log.start(10) + 30] ^= 1;
    log.set_head(Some(lines - 1));
    log.put(&harmed);
    salvage(&log.run, &redactor(), 1).unwrap();
    let mut again = fs::read(log.run.events()).unwrap();
    let ends: Vec<usize> = again
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(at, _)| at + 1)
        .collect();
    again[ends[19] + 30] ^= 1;
    log.put(&again);
    match salvage(&log.run, &redactor(), 1).unwrap() {
        Salvage::Done { gaps, damaged, .. } => {
            assert_eq!(gaps, [(Seq(21), Seq(21))]);
            assert_eq!(damaged, "events.damaged-2.jsonl");
        }
        other @ (Salvage::Whole | Salvage::OnlyTorn) => panic!("{other:?}"),
    }
    let report = fsck(&log.store, &log.run).unwrap();
    let gaps: Vec<(Seq, Seq)> = report
        .findings
        .iter()
        .filter_map(|found| match found {
            Finding::Gap { from, to, .. } => Some((*from, *to)),
            _ => None,
        })
        .collect();
    assert_eq!(gaps, [(Seq(11), Seq(11)), (Seq(21), Seq(21))]);
    assert_eq!(report.verdict, Verdict::Whole);
}
