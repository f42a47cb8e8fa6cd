//! Keeping a conversation inside the model's window: old turns give way to a summary that names them; what the user said never does.

use super::{Conversation, Message};
use crate::{
    context::estimate_tokens,
    recorder::{Place, RecorderError},
    session::Session,
};
use tracegate_core::{
    fact::model::{ContextCompacted, Role},
    payload::clip,
};

/// Standing instructions and goal: the messages that no compaction touches.
const OPENING: usize = 2;
/// The summary may take this part of the window.
const SUMMARY_SHARE: u64 = 8;
/// What stands between what the user said and what the turns were. Entries are single lines, so the last one is ours.
const ENTRIES: &str = "\nWhat was said and done there, oldest first:\n";
/// How the first entry begins where even the summary would be too long.
const FORGOTTEN: &str = "- earlier entries left out: ";
const HEADER: &str = "[tracegate] Earlier turns are left out here because the conversation outgrew the model's window. The log of the run \
                      keeps them whole under the names of their actions. Files may have changed since: look again before you rely on them.";

/// Which messages give way, and to what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compaction {
    /// How many messages before them stand unchanged.
    pub keep: usize,
    /// How many give way.
    pub dropped: usize,
    /// The message in their place.
    pub summary: String,
}

impl Conversation {
    /// Says which old turns give way so that the conversation and `reserve` tokens besides fit into `window` tokens.
    ///
    /// About half of what is free is filled by the newest turns, so that the next compaction is as far away as possible; the last
    /// turn stays even if it is larger. None if everything fits, or nothing could give way.
    #[must_use]
    pub fn compaction(&self, window: u64, reserve: u64) -> Option<Compaction> {
        let all: u64 = self.weights.iter().sum();
        if all.saturating_add(reserve) <= window {
            return None;
        }
        let mut room = window.saturating_sub(reserve) / 2;
        let last = self
            .messages
            .iter()
            .rposition(|message| message.role == Role::Assistant)?;
        // A turn begins with what the model said; its results stay with it.
        let mut cut = last;
        for (at, weight) in self.weights.iter().enumerate().skip(OPENING).rev() {
            if at < last {
                room = room.saturating_sub(*weight);
                if room == 0 {
                    break;
                }
            }
            if at < cut && self.messages.get(at)?.role == Role::Assistant {
                cut = at;
            }
        }
        let cut = cut.min(self.sent);
        let old = self.messages.get(OPENING..cut)?;
        let summaries = old.iter().filter(|message| is_summary(message)).count();
        if old.len() <= summaries {
            return None;
        }
        Some(Compaction {
            keep: OPENING,
            dropped: old.len(),
            summary: summarise(old, &self.answers, window / SUMMARY_SHARE),
        })
    }

    /// Carries a compaction out. False if there are no such messages among those that the model was sent.
    pub(super) fn compact(&mut self, keep: usize, dropped: usize, summary: String) -> bool {
        let end = keep.saturating_add(dropped);
        if end > self.sent || end > self.messages.len() {
            return false;
        }
        let tail = self.messages.split_off(end);
        self.truncate(keep);
        self.push(Message::plain(Role::User, summary));
        for message in tail {
            self.push(message);
        }
        self.sent = self.sent + 1 - dropped;
        true
    }
}

fn is_summary(message: &Message) -> bool {
    message.role == Role::User && message.content.starts_with(HEADER)
}

/// Writes the message that stands for `old`: what the user answered, word for word, then a line for each message, newest kept.
fn summarise(old: &[Message], answers: &[String], most: u64) -> String {
    let mut text = HEADER.to_owned();
    for answer in answers {
        text.push_str("\n\n");
        text.push_str(answer);
    }
    text.push('\n');
    let (mut forgotten, mut entries) = (0_u64, Vec::new());
    for message in old {
        if is_summary(message) {
            let (_, before) = message.content.rsplit_once(ENTRIES).unwrap_or_default();
            for entry in before.lines() {
                match entry.strip_prefix(FORGOTTEN) {
                    Some(count) => forgotten += count.parse().unwrap_or(0),
                    None => entries.push(entry.to_owned()),
                }
            }
        } else {
            entries.push(entry(message));
        }
    }
    let mut tokens = 0;
    let kept = entries
        .iter()
        .rev()
        .take_while(|entry| {
            tokens += estimate_tokens(entry);
            tokens <= most
        })
        .count();
    let cut = entries.len() - kept;
    forgotten += cut as u64;
    text.push_str(ENTRIES);
    if forgotten > 0 {
        text.push_str(FORGOTTEN);
        text.push_str(&forgotten.to_string());
        text.push('\n');
    }
    text.push_str(&entries.get(cut..).unwrap_or_default().join("\n"));
    text
}

/// One line for one message.
fn entry(message: &Message) -> String {
    let first = message
        .content
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("(nothing)");
    let said = clip(first.trim(), 160);
    match (message.role, message.action) {
        (Role::Assistant, _) if message.calls.is_empty() => format!("- you answered: {said}"),
        (Role::Assistant, _) => {
            let calls: Vec<String> = message.calls.iter().map(ToString::to_string).collect();
            format!("- you asked for {}: {said}", calls.join(", "))
        }
        (Role::Tool, Some(action)) => {
            let lines = message.content.lines().count();
            format!("- {action} gave {lines} lines: {said}")
        }
        (Role::Tool | Role::User | Role::System, _) => format!("- you were told: {said}"),
    }
}

impl Session {
    /// Compacts the conversation if it and `reserve` tokens besides no longer fit into the model's window, and records that.
    ///
    /// # Errors
    /// When the run cannot be recorded.
    pub(crate) fn compact(&mut self, reserve: u64) -> Result<(), RecorderError> {
        let Some(compaction) = self.conversation.compaction(self.window, reserve) else {
            return Ok(());
        };
        let Compaction {
            keep,
            dropped,
            summary,
        } = compaction;
        let summary = self.recorder.redactor().scrub_text(summary).into_inner();
        let event = ContextCompacted {
            summary: self.recorder.message_payload(&summary)?,
            keep: keep as u64,
            dropped: dropped as u64,
        };
        self.recorder.record(Place::default(), event)?;
        self.conversation.compact(keep, dropped, summary);
        Ok(())
    }
}
