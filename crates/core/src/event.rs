//! The envelope of an event, format v1: what stands in every line of a log, and how a line is written and read.

use crate::{
    fact::{Data as _, Fact, log::LogGap},
    ids::{ActionId, Chain, EventId, RunId, SegmentNo, Seq, SpanId, StepNo, Timestamp},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The version of the format that this program writes. Lines of a newer one are read, but nothing is appended after them.
pub const FORMAT: u32 = 1;

/// What separates the hashed part of a line from its chain value.
const CHAIN_KEY: &str = ",\"chain\":\"";

/// One immutable record that something happened.
#[derive(Debug, Clone)]
pub struct Event {
    /// Format version, [`FORMAT`] when written by this program.
    pub v: u32,
    /// Position in the log.
    pub seq: Seq,
    /// Derived from run and position.
    pub id: EventId,
    /// When, UTC; strictly increasing inside a segment whatever the clock does.
    pub ts: Timestamp,
    /// Nanoseconds since the segment began, from a monotonic clock.
    pub mono_ns: u64,
    /// The process life that wrote it.
    pub segment: SegmentNo,
    /// The turn of the loop, if any.
    pub step: Option<StepNo>,
    /// The action that this is about.
    pub action: Option<ActionId>,
    /// The span that this begins or ends, or lies in.
    pub span: Option<SpanId>,
    /// The parent of a span that this begins.
    pub parent: Option<SpanId>,
    /// The event that this answers.
    pub cause: Option<Seq>,
    /// Whether a reader that does not know the type must not append.
    pub must: bool,
    /// What happened.
    pub fact: Fact,
}

/// The envelope as it stands in a line, in this order.
#[derive(Serialize, Deserialize)]
struct Line<'a, D> {
    v: u32,
    seq: Seq,
    id: EventId,
    ts: Timestamp,
    mono_ns: u64,
    segment: SegmentNo,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    step: Option<StepNo>,
    #[serde(rename = "type")]
    name: std::borrow::Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    action: Option<ActionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    span: Option<SpanId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<SpanId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<Seq>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    must: bool,
    data: D,
}

/// The data of a line that is written.
struct Written<'a>(&'a Fact);

impl Serialize for Written<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize_data(serializer)
    }
}

/// A line that is not an event.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It is no JSON, or lacks a part of the envelope, or its data has another shape.
    #[error("not an event: {0}")]
    Json(#[from] serde_json::Error),
    /// It does not end in a chain value.
    #[error("no chain value at the end")]
    NoChain,
    /// Its chain value does not follow from the line before.
    #[error("chain is `{found}`, the line before leads to `{wanted}`")]
    BrokenChain {
        /// What stands there.
        found: Chain,
        /// What should.
        wanted: Chain,
    },
    /// Its sequence number is not the next one.
    #[error("sequence number is {found}, not {wanted}")]
    BrokenSeq {
        /// What stands there.
        found: Seq,
        /// What should.
        wanted: Seq,
    },
    /// It marks a gap whose numbers do not fit.
    #[error("a gap from {from} to {to} cannot stand at event {seq}")]
    BrokenGap {
        /// Where it stands.
        seq: Seq,
        /// The first number it names.
        from: Seq,
        /// The last.
        to: Seq,
    },
}

impl Event {
    /// Returns the line of this event, with its line feed, and the chain value after it.
    ///
    /// # Errors
    /// When the data cannot be written as JSON.
    pub fn to_line(&self, before: Chain) -> Result<(String, Chain), serde_json::Error> {
        // Most records fit: growing from nothing would copy each of them some times.
        let mut bytes = Vec::with_capacity(2048);
        serde_json::to_writer(&mut bytes, self)?;
        let mut text = String::from_utf8(bytes).map_err(serde::ser::Error::custom)?;
        // The closing brace goes: the chain value is the last member, over everything before it.
        text.pop();
        let chain = before.next(text.as_bytes());
        text.push_str(CHAIN_KEY);
        text.push_str(&chain.to_string());
        text.push_str("\"}\n");
        Ok((text, chain))
    }

    /// Reads a line without its line feed, checking that it is event `wanted` and follows `before`.
    ///
    /// # Errors
    /// As [`LineError`] lists; the line is damaged, or not of this log.
    pub fn from_line(line: &str, before: Chain, wanted: Seq) -> Result<(Self, Chain), LineError> {
        let (body, chain) = line.rsplit_once(CHAIN_KEY).ok_or(LineError::NoChain)?;
        let found: Chain = chain
            .strip_suffix("\"}")
            .and_then(|hex| hex.parse().ok())
            .ok_or(LineError::NoChain)?;
        let follows = before.next(body.as_bytes());
        if found != follows {
            return Err(LineError::BrokenChain {
                found,
                wanted: follows,
            });
        }
        let event = Self::from_line_unverified(line)?;
        if event.seq != wanted {
            return Err(LineError::BrokenSeq {
                found: event.seq,
                wanted,
            });
        }
        if let Fact::LogGap(gap) = &event.fact
            && !gap.is_sound(event.seq)
        {
            return Err(LineError::BrokenGap {
                seq: event.seq,
                from: gap.from,
                to: gap.to,
            });
        }
        Ok((event, found))
    }

    /// Returns the last number that this event stands for: its own, or the last lost one of a gap.
    #[must_use]
    pub fn through(&self) -> Seq {
        LogGap::of(&self.fact).map_or(self.seq, |gap| gap.to)
    }

    /// Reads a line for what it says, whatever its chain value; used on what is damaged anyway.
    ///
    /// # Errors
    /// [`LineError::Json`].
    pub fn from_line_unverified(line: &str) -> Result<Self, LineError> {
        let line: Line<'_, &RawValue> = serde_json::from_str(line)?;
        Ok(Self {
            v: line.v,
            seq: line.seq,
            id: line.id,
            ts: line.ts,
            mono_ns: line.mono_ns,
            segment: line.segment,
            step: line.step,
            action: line.action,
            span: line.span,
            parent: line.parent,
            cause: line.cause,
            must: line.must,
            fact: Fact::from_json(&line.name, line.data)?,
        })
    }

    /// Tells whether a program of this version may append after this event.
    #[must_use]
    pub const fn permits_append(&self) -> bool {
        self.v <= FORMAT && !(self.must && matches!(self.fact, Fact::Unknown { .. }))
    }

    /// Builds an event of `run` with nothing but its place and content; the recorder fills in the rest.
    #[must_use]
    pub fn new(run: &RunId, seq: Seq, segment: SegmentNo, ts: Timestamp, mono_ns: u64, fact: Fact) -> Self {
        Self {
            v: FORMAT,
            seq,
            id: EventId::derive(run, seq),
            ts,
            mono_ns,
            segment,
            step: None,
            action: None,
            span: None,
            parent: None,
            cause: None,
            must: false,
            fact,
        }
    }
}

impl Serialize for Event {
    /// Writes the envelope without its chain value, which depends on the line before.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let line = Line {
            v: self.v,
            seq: self.seq,
            id: self.id,
            ts: self.ts,
            mono_ns: self.mono_ns,
            segment: self.segment,
            step: self.step,
            name: self.fact.name().into(),
            action: self.action,
            span: self.span,
            parent: self.parent,
            cause: self.cause,
            must: self.must,
            data: Written(&self.fact),
        };
        line.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Through text, because raw data can only be borrowed from text.
        let value = serde_json::Value::deserialize(deserializer)?;
        Self::from_line_unverified(&value.to_string()).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::run::StatusChanged;
    use crate::stop::Status;

    fn run() -> RunId {
        "run_x_20261130_00000000".parse().unwrap()
    }

    fn event(seq: u64) -> Event {
        let fact = StatusChanged {
            status: Status::Running,
            stop_reason: None,
        }
        .into();
        Event::new(
            &run(),
            Seq(seq),
            SegmentNo(1),
            Timestamp(1_796_040_000_000_000_000),
            5,
            fact,
        )
    }

    #[test]
    fn the_documented_vector_holds() {
        let (line, chain) = event(1).to_line(Chain::genesis(&run())).unwrap();
        assert_eq!(Chain::genesis(&run()).to_string(), GENESIS);
        assert_eq!(line.trim_end(), LINE);
        assert!(line.ends_with(&format!("{chain}\"}}\n")));
    }

    const GENESIS: &str = "d09ddcd98e1a2d82dfe582ef24ff3787";
    const LINE: &str = r#"{"v":1,"seq":1,"id":"329746858e6ddaf0","ts":"2026-11-30T12:00:00.000000000Z","mono_ns":5,"segment":1,"type":"status.changed","data":{"status":"running"},"chain":"df2b6c967d0cfff78fb739ea49ecefbf"}"#;

    #[test]
    fn a_changed_byte_anywhere_is_noticed() {
        let genesis = Chain::genesis(&run());
        let (line, _) = event(1).to_line(genesis).unwrap();
        let line = line.trim_end();
        assert!(Event::from_line(line, genesis, Seq(1)).is_ok());
        for at in 0..line.len() {
            let mut bytes = line.as_bytes().to_vec();
            bytes[at] ^= 1;
            if let Ok(text) = String::from_utf8(bytes) {
                assert!(Event::from_line(&text, genesis, Seq(1)).is_err(), "offset {at}");
            }
        }
    }

    #[test]
    fn an_unknown_type_and_unknown_fields_are_written_back_unchanged() {
        let genesis = Chain::genesis(&run());
        let (line, _) = event(1).to_line(genesis).unwrap();
        let body = line
            .split(",\"chain\"")
            .next()
            .unwrap()
            .replace("status.changed", "moon.rose");
        let body = body.replace(
            "\"status\":\"running\"",
            "\"status\":\"running\",\"n\":1.50e2,\"x\":[ null ]",
        );
        let line = format!("{body},\"chain\":\"{}\"}}", genesis.next(body.as_bytes()));
        let (event, _) = Event::from_line(&line, genesis, Seq(1)).unwrap();
        assert!(matches!(event.fact, Fact::Unknown { .. }) && event.permits_append());
        assert_eq!(event.to_line(genesis).unwrap().0.trim_end(), line);
    }

    #[test]
    fn a_newer_format_is_read_but_not_appended_to() {
        let mut newer = event(1);
        newer.v = FORMAT + 1;
        let (line, _) = newer.to_line(Chain::genesis(&run())).unwrap();
        let (read, _) = Event::from_line(line.trim_end(), Chain::genesis(&run()), Seq(1)).unwrap();
        assert!(!read.permits_append());
    }
}
