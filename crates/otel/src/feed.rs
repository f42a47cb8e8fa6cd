//! The log as a queue: read from where a receiver has everything, projected to spans, handed out in batches. Whatever the log holds, no
//! more than one batch of it is in memory.

use crate::{encode, exporter::Durable};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tracegate_core::{
    ids::Seq,
    span::{Projector, Resource},
};
use tracegate_store::{Cursor, LogError, LogReader, RunDir, Tail};

/// The most spans of one request.
pub const BATCH_SPANS: usize = 256;
/// The most bytes of the spans of one request: half of the 4 MiB above which gRPC receivers refuse a whole batch.
pub const BATCH_BYTES: usize = 2 * 1024 * 1024;
/// Tag and length of a span within a request.
const FRAME: usize = 8;
/// After how many events the runtime gets a chance to notice that the time is over.
const BREATH: u32 = 256;

/// A span on its way.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) span: Span,
    /// Its size in a request.
    pub(crate) bytes: usize,
    /// Where a receiver stands that has it and everything before it.
    pub(crate) cursor: Cursor,
}

/// The spans of a run that a receiver does not have, in the order of the log.
#[derive(Debug)]
pub(crate) struct Feed {
    dir: RunDir,
    durable: Durable,
    reader: LogReader,
    projector: Projector,
    /// The spans up to here are passed over; none once that place was reached.
    behind: Option<Cursor>,
    /// How many spans have ended so far.
    spans: u64,
    /// How many of them were handed out, or are held.
    fed: u64,
    /// One that did not fit into the last batch.
    held: Option<Ready>,
    restarted: bool,
    damage: Option<String>,
}

impl Feed {
    /// Opens the log of a run, to go on behind `cursor`.
    pub(crate) fn open(dir: RunDir, durable: Durable, cursor: Option<Cursor>) -> Result<Self, LogError> {
        let reader = LogReader::open(&dir)?;
        let projector = Projector::new(dir.id());
        Ok(Self {
            dir,
            durable,
            reader,
            projector,
            behind: cursor,
            spans: 0,
            fed: 0,
            held: None,
            restarted: false,
            damage: None,
        })
    }

    /// Adds the next spans to `batch` up to the bounds of a request, and makes the log durable up to them; adds none if there are none yet.
    pub(crate) async fn fill(&mut self, batch: &mut Vec<Ready>) -> Result<(), LogError> {
        let mut bytes: usize = batch.iter().map(|ready| ready.bytes).sum();
        while batch.len() < BATCH_SPANS {
            let Some(ready) = self.next().await? else {
                break;
            };
            bytes = bytes.saturating_add(ready.bytes);
            // The first one always goes: whatever its size, nothing may block the stream.
            if bytes > BATCH_BYTES && !batch.is_empty() {
                self.held = Some(ready);
                break;
            }
            batch.push(ready);
        }
        match &self.durable {
            Durable::Here(artifacts) if !batch.is_empty() => {
                let synced = artifacts.barrier();
                synced.map_err(|error| LogError::Io {
                    doing: "sync the artifacts of",
                    path: self.dir.events(),
                    error,
                })?;
                self.reader.sync()
            }
            Durable::Here(_) | Durable::UpTo(_) => Ok(()),
        }
    }

    /// Reads on to the end of the log to learn how many spans there are.
    pub(crate) async fn count_rest(&mut self) -> Result<(), LogError> {
        while self.next().await?.is_some() {}
        Ok(())
    }

    async fn next(&mut self) -> Result<Option<Ready>, LogError> {
        if let Some(ready) = self.held.take() {
            return Ok(Some(ready));
        }
        let mut breath = 0_u32;
        loop {
            breath += 1;
            if breath.is_multiple_of(BREATH) {
                tokio::task::yield_now().await;
            }
            if let Durable::UpTo(head) = &self.durable
                && self.reader.head().seq >= head.seq
            {
                return Ok(None);
            }
            let Some(event) = self.reader.next_event()? else {
                if let Tail::Damaged { seq, why, .. } = self.reader.tail() {
                    self.damage = Some(format!("the log is damaged at event {seq}: {why}"));
                }
                // A cursor beyond the end is one of another log.
                if self.behind.is_some() && self.damage.is_none() {
                    self.start_over()?;
                    continue;
                }
                self.reader.go_on()?;
                return Ok(None);
            };
            let ended = self.projector.feed(&event);
            self.spans += ended.len() as u64;
            let head = self.reader.head();
            if let Some(cursor) = self.behind {
                if head.seq >= cursor.head.seq {
                    self.behind = None;
                    if head != cursor.head {
                        self.start_over()?;
                    }
                }
                continue;
            }
            // An event ends one span or none.
            if let Some(record) = ended.into_iter().next() {
                let span = encode::span(record);
                self.fed += 1;
                return Ok(Some(Ready {
                    bytes: span.encoded_len() + FRAME,
                    span,
                    cursor: Cursor {
                        head,
                        spans: self.spans,
                    },
                }));
            }
        }
    }

    /// Reads from the beginning: the log is not the one that the cursor was made for.
    fn start_over(&mut self) -> Result<(), LogError> {
        self.reader = LogReader::open(&self.dir)?;
        self.projector = Projector::new(self.dir.id());
        self.behind = None;
        self.spans = 0;
        self.restarted = true;
        Ok(())
    }

    /// Returns what all spans have in common.
    pub(crate) fn resource(&self) -> Resource {
        self.projector.resource().cloned().unwrap_or_default()
    }

    /// Returns the last event that was read.
    pub(crate) const fn seq(&self) -> Seq {
        self.reader.head().seq
    }

    /// Returns how many spans were handed out.
    pub(crate) const fn fed(&self) -> u64 {
        self.fed
    }

    /// Returns how many of the spans that were read the receiver has had before.
    pub(crate) const fn passed(&self) -> u64 {
        self.spans.saturating_sub(self.fed)
    }

    /// Tells whether the cursor was of another log, so that everything is sent again.
    pub(crate) const fn restarted(&self) -> bool {
        self.restarted
    }

    /// Returns what keeps the rest of the log from being read.
    pub(crate) fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }
}
