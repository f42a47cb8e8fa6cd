//! What of the candidates fits into the budget, and the context and its report made from that. Pure: contents come loaded.
//!
//! Integers only, sorted collections only, no clock, no randomness: equal input gives equal bytes, text and report.

use crate::context::candidates::{Candidate, Candidates, Refused, candidates};
use crate::context::inventory::Inventory;
use crate::context::render::{Block, Document, HEADROOM_PCT, estimator};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tracegate_core::context_report::{
    ContextReport, Determinism, DropReason, Dropped, GoalFacts, Included, Level, ReasonCode, Reserved, Tier,
    VERSION,
};
use tracegate_core::goal::Goal;
use tracegate_core::ids::{Digest, RunId, SpanId, StepNo, TraceId};

/// Share of the room that one item may take, in per cent.
const ITEM_CAP_PCT: u64 = 40;
/// The same for an item that must not be dropped.
const MANDATORY_CAP_PCT: u64 = 60;
/// Tokens of the slice that is kept free for each item that must not be dropped.
const FLOOR: u64 = 400;

/// Whether tests are brought in because they belong to what the run touched, or because red output names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linking {
    /// They are.
    On,
    /// They are found and recorded, but stay out.
    Off,
}

/// What a run did with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// It read it.
    Read,
    /// It wrote it.
    Written,
}

/// A file that the run read or wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// Path relative to the workspace, with `/`.
    pub path: String,
    /// What was done.
    pub how: How,
    /// The step that did it.
    pub step: u32,
}

/// Whose context it is; decides nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The run.
    pub run: RunId,
    /// The step whose model request will read the context.
    pub step: StepNo,
    /// The run's trace.
    pub trace: TraceId,
    /// The `context.build` span.
    pub span: SpanId,
}

/// Everything that decides a context, but for the contents of the files.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Whose context it is.
    pub identity: &'a Identity,
    /// What the goal says.
    pub goal: &'a Goal,
    /// Tokens for files, headroom included.
    pub budget: u64,
    /// Tokens that were set aside before `budget`; only reported.
    pub reserved: Reserved,
    /// Whether linked tests come in.
    pub linking: Linking,
    /// What the run has touched so far, in any order.
    pub touched: &'a [Touched],
    /// Files that the last red test output names, most telling first; stay out where linking is off.
    pub red_files: &'a [String],
    /// What the workspace holds.
    pub inventory: &'a Inventory,
}

/// A file's text cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the file cannot be read as text")]
pub struct Unreadable;

/// Where the builder gets texts from. They must be redacted already: what is loaded is what the model reads.
pub trait Contents {
    /// Returns the redacted text of a file of the inventory.
    ///
    /// # Errors
    /// If it is gone, no longer a file, or no text.
    fn load(&self, path: &str) -> Result<String, Unreadable>;
}

/// Contents from a function of the caller that reads and redacts.
#[derive(Clone, Copy)]
pub struct LoadedBy<'a>(pub &'a dyn Fn(&str) -> Option<String>);

impl std::fmt::Debug for LoadedBy<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LoadedBy(..)")
    }
}

impl Contents for LoadedBy<'_> {
    fn load(&self, path: &str) -> Result<String, Unreadable> {
        (self.0)(path).ok_or(Unreadable)
    }
}

/// A context: what the model reads, and how it came about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// One block per included item; empty if there is none.
    pub text: String,
    /// What was considered and what became of it.
    pub report: ContextReport,
}

/// Builds the context of one step.
///
/// Items go in by tier, score and path, each as full as the room and its cap allow: whole, else its head, else its name. One that
/// does not fit does not stop later, smaller ones; only when an item of the tiers 0 to 2 found no room, nothing of a higher tier is
/// let in. Every item considered is in the report, included or dropped.
pub fn pack(request: &Request<'_>, contents: &dyn Contents) -> Built {
    let Candidates {
        wanted,
        refused,
        links,
    } = candidates(request);
    let mut outcome = Outcome::default();
    outcome.refuse(request.inventory, refused);
    let mut loaded = Vec::new();
    for candidate in wanted {
        match contents.load(&candidate.path) {
            Ok(text) => loaded.push((candidate, text)),
            Err(Unreadable) => outcome.drop_unread(request.inventory, &candidate),
        }
    }
    let documents: Vec<Item<'_>> = loaded
        .iter()
        .map(|(candidate, text)| {
            let document = Document::new(&candidate.path, text);
            Item {
                candidate,
                full: document.full(),
                document,
            }
        })
        .collect();
    let inputs_digest = inputs_digest(request, &documents);
    outcome.pack(&documents, capacity(request.budget));
    let placed = in_reading_order(outcome.placed);
    let mut dropped = outcome.dropped;
    dropped.sort_by(|(a, one), (b, other)| (a, &one.path).cmp(&(b, &other.path)));
    let included: Vec<Included> = placed.iter().map(Placed::report).collect();
    let report = ContextReport {
        version: VERSION,
        run_id: request.identity.run.clone(),
        step: request.identity.step,
        trace_id: request.identity.trace,
        span_id: request.identity.span,
        goal: GoalFacts {
            mentions_tests: request.goal.mentions_tests,
            matched: request.goal.matched.clone(),
            named_commands: request.goal.named_commands.clone(),
            named_paths: request.goal.named_paths.clone(),
        },
        estimator: estimator(),
        budget: request.budget,
        reserved: request.reserved,
        used: included.iter().map(|item| item.tokens).sum(),
        considered: (included.len() + dropped.len()) as u64,
        dropped: dropped.into_iter().map(|(_, dropped)| dropped).collect(),
        ignored: request.inventory.ignored(),
        links,
        included_files: included
            .iter()
            .filter(|item| match item.level {
                Level::Full | Level::Slice | Level::Outline => true,
                Level::Path => false,
            })
            .map(|item| item.path.clone())
            .collect(),
        reasons: included
            .iter()
            .filter_map(|item| Some((item.path.clone(), item.reasons.first()?.text.clone())))
            .collect(),
        included,
        determinism: Determinism { inputs_digest },
    };
    Built {
        text: placed.iter().map(|placed| placed.block.text.as_str()).collect(),
        report,
    }
}

/// A candidate with its text.
struct Item<'a> {
    candidate: &'a Candidate,
    document: Document<'a>,
    full: Block,
}

impl Item<'_> {
    /// Whether the item may be degraded, but not left out in favour of one of a higher tier.
    fn is_mandatory(&self) -> bool {
        self.candidate.tier <= Tier::StrongLink
    }

    /// Returns the fullest form that takes at most `limit` tokens.
    fn fit(&self, limit: u64) -> Option<Block> {
        if self.full.tokens <= limit {
            return Some(self.full.clone());
        }
        self.document
            .head(limit)
            .or_else(|| Some(self.document.name_only()).filter(|name| name.tokens <= limit))
    }
}

/// An item with its form in the context.
struct Placed<'a> {
    item: &'a Item<'a>,
    block: Block,
}

impl Placed<'_> {
    fn report(&self) -> Included {
        let candidate = self.item.candidate;
        Included {
            path: candidate.path.clone(),
            kind: candidate.kind,
            tier: candidate.tier,
            score: candidate.score,
            level: self.block.level,
            tokens: self.block.tokens,
            lines: self.block.lines,
            total_lines: self.item.document.total_lines(),
            omitted: self.block.omitted.clone(),
            digest: self.item.document.digest(),
            reasons: candidate.reasons.clone(),
        }
    }
}

/// The order of importance: tier, then score from the highest.
type Key = (Tier, Reverse<i64>);

fn key(candidate: &Candidate) -> Key {
    (candidate.tier, Reverse(candidate.score))
}

/// What has become of the items so far.
#[derive(Default)]
struct Outcome<'a> {
    placed: Vec<Placed<'a>>,
    dropped: Vec<(Key, Dropped)>,
}

impl<'a> Outcome<'a> {
    fn refuse(&mut self, inventory: &Inventory, refused: Vec<Refused>) {
        for refused in refused {
            let dropped = Dropped {
                tokens: tokens_on_disk(inventory, &refused.path),
                path: refused.path,
                kind: refused.kind,
                tier: refused.tier,
                reason: refused.reason,
                would_need: None,
                remaining: None,
            };
            self.dropped
                .push(((refused.tier, Reverse(refused.score)), dropped));
        }
    }

    fn drop_unread(&mut self, inventory: &Inventory, candidate: &Candidate) {
        let tokens = tokens_on_disk(inventory, &candidate.path);
        self.drop(candidate, tokens, DropReason::Unreadable, None);
    }

    /// `room` is what the smallest form needed and what was left for it.
    fn drop(&mut self, candidate: &Candidate, tokens: u64, reason: DropReason, room: Option<(u64, u64)>) {
        let dropped = Dropped {
            path: candidate.path.clone(),
            kind: candidate.kind,
            tier: candidate.tier,
            tokens,
            reason,
            would_need: room.map(|(need, _)| need),
            remaining: room.map(|(_, remaining)| remaining),
        };
        self.dropped.push((key(candidate), dropped));
    }

    /// Places `items`, which come in order of importance, into `capacity` tokens.
    fn pack(&mut self, items: &'a [Item<'a>], capacity: u64) {
        let floors = floors(items, capacity);
        let mut kept_free: u64 = floors.iter().sum();
        let mut remaining = capacity;
        let mut whole: BTreeSet<Digest> = BTreeSet::new();
        let mut mandatory_out = false;
        for (item, floor) in items.iter().zip(floors) {
            kept_free -= floor;
            let room = remaining.saturating_sub(kept_free);
            let cap = percent(
                capacity,
                if item.is_mandatory() {
                    MANDATORY_CAP_PCT
                } else {
                    ITEM_CAP_PCT
                },
            );
            let background = item.candidate.tier >= Tier::Manifest;
            if background && whole.contains(&item.document.digest()) {
                self.drop(item.candidate, item.full.tokens, DropReason::Duplicate, None);
                continue;
            }
            let limit = room.min(cap);
            let barred = mandatory_out && !item.is_mandatory();
            match item.fit(limit).filter(|_| !barred) {
                Some(block) => {
                    remaining = remaining.saturating_sub(block.tokens);
                    if block.level == Level::Full {
                        whole.insert(item.document.digest());
                    }
                    self.placed.push(Placed { item, block });
                }
                None => {
                    mandatory_out |= item.is_mandatory();
                    let reason = if cap < room && !barred {
                        DropReason::ItemCap
                    } else {
                        DropReason::BudgetExhausted
                    };
                    let need = item.document.name_only().tokens.min(item.full.tokens);
                    let left = if barred { 0 } else { limit };
                    self.drop(item.candidate, item.full.tokens, reason, Some((need, left)));
                }
            }
        }
    }
}

/// Returns the tokens kept free for each item: for those that must not be dropped a slice, else a name, as far as all of them fit.
fn floors(items: &[Item<'_>], capacity: u64) -> Vec<u64> {
    let for_each = |floor: &dyn Fn(&Item<'_>) -> u64| -> Vec<u64> {
        items
            .iter()
            .map(|item| if item.is_mandatory() { floor(item) } else { 0 })
            .collect()
    };
    let name = |item: &Item<'_>| item.document.name_only().tokens.min(item.full.tokens);
    let slice = |item: &Item<'_>| item.fit(FLOOR).map_or_else(|| name(item), |block| block.tokens);
    [for_each(&slice), for_each(&name)]
        .into_iter()
        .find(|floors| floors.iter().sum::<u64>() <= capacity)
        .unwrap_or_else(|| vec![0; items.len()])
}

/// Orders the placed items for reading: by importance, but each linked test directly before the source that brought it in.
fn in_reading_order<'a>(placed: Vec<Placed<'a>>) -> Vec<Placed<'a>> {
    let positions: BTreeMap<&str, usize> = placed
        .iter()
        .enumerate()
        .map(|(position, placed)| (placed.item.candidate.path.as_str(), position))
        .collect();
    // The position of the source of a linked test; of itself for everything else.
    let anchor: Vec<usize> = placed
        .iter()
        .enumerate()
        .map(|(position, placed)| {
            let reasons = &placed.item.candidate.reasons;
            reasons
                .iter()
                .filter(|reason| reason.code == ReasonCode::LinkedTest)
                .find_map(|reason| positions.get(reason.source.as_deref()?).copied())
                .unwrap_or(position)
        })
        .collect();
    // A group is as important as its most important member.
    let mut importance: BTreeMap<usize, usize> = BTreeMap::new();
    for (position, anchor) in anchor.iter().enumerate() {
        importance.entry(*anchor).or_insert(position);
    }
    let mut ordered: Vec<((usize, bool, usize), Placed<'a>)> = placed
        .into_iter()
        .zip(anchor)
        .enumerate()
        .map(|(position, (placed, anchor))| {
            let group = importance.get(&anchor).copied().unwrap_or(position);
            ((group, anchor == position, position), placed)
        })
        .collect();
    ordered.sort_by_key(|(place, _)| *place);
    ordered.into_iter().map(|(_, placed)| placed).collect()
}

/// Room for items: the budget without its headroom.
fn capacity(budget: u64) -> u64 {
    percent(budget, 100 - HEADROOM_PCT)
}

/// `per_cent` of `whole`, rounded down, without overflow for shares up to 100.
fn percent(whole: u64, per_cent: u64) -> u64 {
    whole / 100 * per_cent + whole % 100 * per_cent / 100
}

/// What a file that was not loaded would take, taken for ASCII.
fn tokens_on_disk(inventory: &Inventory, path: &str) -> u64 {
    inventory.get(path).map_or(0, |file| file.bytes.div_ceil(3))
}

/// Digests everything that decides the selection; lengths come first, so that no two inputs read the same.
fn inputs_digest(request: &Request<'_>, items: &[Item<'_>]) -> Digest {
    let mut bytes = Vec::new();
    let mut feed = |piece: &[u8]| {
        bytes.extend_from_slice(&(piece.len() as u64).to_be_bytes());
        bytes.extend_from_slice(piece);
    };
    let Goal {
        mentions_tests,
        matched,
        named_commands,
        named_paths,
        ..
    } = request.goal;
    feed(b"tracegate context inputs v1");
    feed(&[
        u8::from(*mentions_tests),
        u8::from(request.linking == Linking::On),
    ]);
    feed(&request.budget.to_be_bytes());
    for list in [matched.as_slice(), named_commands, named_paths, request.red_files] {
        feed(&(list.len() as u64).to_be_bytes());
        list.iter().for_each(|text| feed(text.as_bytes()));
    }
    let touched: BTreeSet<(&str, How, u32)> = request
        .touched
        .iter()
        .map(|touched| (touched.path.as_str(), touched.how, touched.step))
        .collect();
    feed(&(touched.len() as u64).to_be_bytes());
    for (path, how, step) in touched {
        feed(path.as_bytes());
        feed(&[u8::from(how == How::Written)]);
        feed(&step.to_be_bytes());
    }
    feed(&request.inventory.digest().to_bytes());
    for item in items {
        feed(item.candidate.path.as_bytes());
        feed(&item.document.digest().to_bytes());
    }
    Digest::of(&bytes)
}

#[cfg(test)]
mod tests;
