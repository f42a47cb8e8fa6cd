//! Reading a damaged log past its damage: which records are still good, and what lies between them.
//!
//! The chain proves a record by the one before it. Behind damage that one may be gone, so two more things count: the chain value that the
//! line before claims, and the one that follows from its bytes. A record that follows from either is proved as far as it can be. One whose
//! predecessor is missing altogether cannot be proved; it is taken at its word if it is whole and its id is that of its number.

use crate::{
    files::Head,
    lines::{next_line, split},
};
use std::{collections::VecDeque, io, io::BufRead};
use tracegate_core::{
    event::Event,
    fact::{Data as _, log::LogGap},
    ids::{Chain, EventId, RunId, Seq},
};

/// Numbers of which no good record is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) from: Seq,
    pub(crate) to: Seq,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) why: String,
}

/// What stands in a log, in the order in which it belongs there.
#[derive(Debug)]
pub(crate) enum Piece {
    /// A record; its line feed is missing if it was.
    Record(Box<Record>),
    /// Records are missing here.
    Hole(Hole),
    /// Bytes that are no record, where none is missing.
    Foreign { offset: u64, bytes: u64 },
    /// Bytes at the end that are no record.
    Torn { offset: u64, bytes: u64 },
}

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) event: Event,
    pub(crate) line: Vec<u8>,
    /// Whether it follows from what stands before it.
    pub(crate) proved: bool,
    chain: Chain,
}

/// A line that was not accepted: what it claims to be.
#[derive(Debug, Default)]
struct Rejected {
    /// The chain value that it ends with.
    claimed: Option<Chain>,
    /// The one that its bytes lead to.
    computed: Option<Chain>,
    seq: Option<Seq>,
}

#[derive(Debug)]
struct Damage {
    offset: u64,
    bytes: u64,
    why: String,
}

/// Reads the log of a run to its end, over any damage; memory does not grow with its length.
#[derive(Debug)]
pub(crate) struct Scan<'a, R> {
    run: &'a RunId,
    file: R,
    head: Option<Head>,
    offset: u64,
    /// The last record given out.
    seq: Seq,
    chain: Chain,
    /// The line before the one that is read, unless it was accepted.
    before: Option<Rejected>,
    damage: Option<Damage>,
    /// A record whose predecessor is missing: the next line shows whether that only stands in another place.
    held: Option<Box<Record>>,
    /// The greatest number that a rejected record bears.
    named: Seq,
    ready: VecDeque<Piece>,
    ended: bool,
}

impl<'a, R: BufRead> Scan<'a, R> {
    pub(crate) fn new(file: R, run: &'a RunId, head: Option<Head>) -> Self {
        Self {
            run,
            file,
            head,
            offset: 0,
            seq: Seq(0),
            chain: Chain::genesis(run),
            before: None,
            damage: None,
            held: None,
            named: Seq(0),
            ready: VecDeque::new(),
            ended: false,
        }
    }

    pub(crate) fn next_piece(&mut self) -> io::Result<Option<Piece>> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Ok(Some(piece));
            }
            if self.ended {
                return Ok(None);
            }
            let mut line = Vec::new();
            let read = next_line(&mut self.file, &mut line)?;
            if read == 0 {
                self.end();
            } else {
                self.take(line, read);
            }
            self.offset += read;
        }
    }

    fn take(&mut self, line: Vec<u8>, read: u64) {
        let wanted = Seq(self.seq.0 + 1);
        let why = match follow(&line, self.chain, wanted) {
            Ok((event, chain)) if self.head.is_none_or(|head| !head.contradicts(&event, chain)) => {
                return self.go_on(event, line, chain);
            }
            Ok(_) => format!("another event {wanted} was synced"),
            Err(why) => why,
        };
        if let Some(held) = self.held.take() {
            let next = Seq(held.event.through().0 + 1);
            if let Ok((event, chain)) = follow(&line, held.chain, next) {
                self.at_its_word(held);
                return self.give(event, line, chain, true);
            }
            self.held = Some(held);
        }
        let stated = self.stated(&line).filter(|event| event.through() > self.seq);
        let (body, claimed) = split(&line);
        if let Some(event) = &stated
            && event.seq > wanted
        {
            let before = self.before.take();
            let claims = before
                .iter()
                .flat_map(|before| [before.claimed, before.computed])
                .chain(self.held.as_ref().map(|held| Some(held.chain)));
            let anchored = claims
                .flatten()
                .find_map(|claim| follow(&line, claim, event.seq).ok());
            if let Some((event, chain)) = anchored {
                self.release(event.seq);
                return self.give(event, line, chain, true);
            }
            // If the line before it is there and it does not follow from that, it is not what was written.
            let disproved = before.as_ref().is_some_and(|before| {
                before.claimed.is_some()
                    && before
                        .seq
                        .is_none_or(|seq| seq.0.saturating_add(1) == event.seq.0)
            });
            if let (false, Some(chain)) = (disproved, claimed) {
                self.release(event.seq);
                self.damage.get_or_insert(Damage {
                    offset: self.offset,
                    bytes: 0,
                    why,
                });
                self.named = self.named.max(event.through());
                let (event, proved) = (event.clone(), false);
                self.held = Some(Box::new(Record {
                    event,
                    line,
                    proved,
                    chain,
                }));
                return;
            }
            self.before = before;
        }
        let computed = self
            .before
            .as_ref()
            .map_or(Some(self.chain), |before| before.claimed.or(before.computed));
        let seq = stated.as_ref().map(Event::through);
        self.named = self.named.max(seq.unwrap_or(Seq(0)));
        self.before = Some(Rejected {
            claimed,
            computed: computed.map(|chain| chain.next(body)),
            seq,
        });
        let damage = self.damage.get_or_insert(Damage {
            offset: self.offset,
            bytes: 0,
            why,
        });
        damage.bytes += read;
    }

    /// Reads a line for the event of this run that it says it is.
    fn stated(&self, line: &[u8]) -> Option<Event> {
        let event = Event::from_line_unverified(std::str::from_utf8(line).ok()?.trim_end()).ok()?;
        let sound = LogGap::of(&event.fact).is_none_or(|gap| gap.is_sound(event.seq));
        (sound && event.seq.0 < u64::MAX && event.id == EventId::derive(self.run, event.seq)).then_some(event)
    }

    /// Takes the record that follows the last one: whatever lay between them is no part of the log.
    fn go_on(&mut self, event: Event, line: Vec<u8>, chain: Chain) {
        self.give(event, line, chain, true);
        // A record that stood before the one that it follows was only out of place.
        while let Some(held) = self.held.take_if(|held| held.event.seq.0 == self.seq.0 + 1) {
            let Ok((event, chain)) = follow(&held.line, self.chain, held.event.seq) else {
                break;
            };
            self.give(event, held.line, chain, true);
        }
        self.held = self.held.take().filter(|held| held.event.seq > self.seq);
    }

    /// Gives out the record that is held, if it belongs before number `seq`.
    fn release(&mut self, seq: Seq) {
        if let Some(held) = self.held.take_if(|held| held.event.seq < seq) {
            self.at_its_word(held);
        }
    }

    fn at_its_word(&mut self, held: Box<Record>) {
        let Record {
            event,
            line,
            proved,
            chain,
        } = *held;
        self.give(event, line, chain, proved);
    }

    fn give(&mut self, event: Event, line: Vec<u8>, chain: Chain, proved: bool) {
        self.close(Seq(event.seq.0.saturating_sub(1)), proved);
        self.head = self.head.filter(|head| !head.is_superseded_by(&event));
        self.seq = event.through();
        self.chain = chain;
        self.before = None;
        self.ready.push_back(Piece::Record(Box::new(Record {
            event,
            line,
            proved,
            chain,
        })));
    }

    /// Says what lay between the last record and the one after number `to`.
    fn close(&mut self, to: Seq, proved: bool) {
        let damage = self.damage.take();
        let from = Seq(self.seq.0 + 1);
        if from <= to {
            let damage = damage.unwrap_or_else(|| Damage {
                offset: self.offset,
                bytes: 0,
                why: format!("event {to} is not there"),
            });
            let Damage { offset, bytes, why } = damage;
            let why = if proved {
                why
            } else {
                format!(
                    "{why}; event {} is taken at its word, what it followed is gone",
                    to.0 + 1
                )
            };
            self.ready.push_back(Piece::Hole(Hole {
                from,
                to,
                offset,
                bytes,
                why,
            }));
        } else if let Some(Damage { offset, bytes, .. }) = damage.filter(|damage| damage.bytes > 0) {
            self.ready.push_back(Piece::Foreign { offset, bytes });
        }
    }

    fn end(&mut self) {
        self.ended = true;
        if let Some(held) = self.held.take() {
            self.at_its_word(held);
        }
        let synced = self.head.map_or(Seq(0), |head| head.seq).max(self.named);
        if synced > self.seq && synced.0 < u64::MAX {
            self.damage.get_or_insert_with(|| Damage {
                offset: self.offset,
                bytes: 0,
                why: format!("the log ends here, but event {synced} was synced"),
            });
            self.close(synced, true);
        } else if let Some(Damage { offset, bytes, .. }) =
            self.damage.take().filter(|damage| damage.bytes > 0)
        {
            self.ready.push_back(Piece::Torn { offset, bytes });
        }
    }
}

fn follow(line: &[u8], before: Chain, wanted: Seq) -> Result<(Event, Chain), String> {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let text = std::str::from_utf8(text).map_err(|_| "not UTF-8".to_owned())?;
    Event::from_line(text, before, wanted).map_err(|error| error.to_string())
}
