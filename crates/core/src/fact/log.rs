//! Events about the record itself: checkpoints, notes, redactions, recovery.

use crate::{
    fact::Failure,
    ids::{Chain, Digest, Seq},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Saving a checkpoint began.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct CheckpointSaveStarted {}

/// The checkpoint is durable: a resume can go back to here.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CheckpointSaveFinished {
    /// Everything up to this event is covered.
    pub covers: Seq,
    /// Size of the log up to there.
    pub bytes: u64,
    /// Set if it could not be made durable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// A point inside the span that the envelope names: a retry, a kill signal, an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpanNoted {
    /// What happened, such as `retry`.
    pub name: String,
    /// More about it.
    #[serde(default)]
    pub attrs: BTreeMap<String, String>,
}

/// Secrets were removed from the event that the envelope's `cause` names.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RedactionNoted {
    /// How often each rule fired.
    pub rules: BTreeMap<String, u32>,
}

/// An artifact could not be kept; whatever needs it fails closed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ArtifactDropped {
    /// Its digest.
    pub digest: Digest,
    /// Its length.
    pub bytes: u64,
    /// Why.
    pub reason: String,
}

/// A damaged tail of the log was set aside.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LogRecovered {
    /// Where the good part ends.
    pub offset: u64,
    /// How many bytes were set aside.
    pub torn_bytes: u64,
    /// In which file.
    pub quarantine: String,
}

/// Records of the log are lost. The event takes the number of the first of them and stands for them all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogGap {
    /// The first number that is lost: that of this event.
    pub from: Seq,
    /// The last number that is lost: the next event follows it.
    pub to: Seq,
    /// Where in the damaged log the gap is.
    pub offset: u64,
    /// How many bytes of it could not be read there.
    pub bytes: u64,
    /// What was wrong with them.
    pub why: String,
    /// The last event that was there when the gap was marked. Up to it an event may refer to what is lost, after it none may.
    pub until: Seq,
    /// The chain after the last event known to be synced before the log was written anew; whoever still remembers it remembers the damaged log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded: Option<Chain>,
}

impl LogGap {
    /// Tells whether the numbers fit each other and the place of the event.
    #[must_use]
    pub const fn is_sound(&self, at: Seq) -> bool {
        // No log comes near this number; beyond it the next one could not be counted.
        const MOST: u64 = 1 << 62;
        self.from.0 == at.0 && self.from.0 <= self.to.0 && self.to.0 <= self.until.0 && self.until.0 < MOST
    }
}

/// The log was written anew without secrets that were registered too late.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LogScrubbed {
    /// Why.
    pub reason: String,
    /// Destinations that had already received the old spans.
    pub exported_to: Vec<String>,
}
