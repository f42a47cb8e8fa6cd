//! The flat view of the steps: one line per action with what it was allowed, did and changed; seed 000's step summary for a coding agent.

use super::{ActionStep, Placed, Reading, StepProblem, Steps};
use crate::{
    event::Event,
    fact::{
        Fact, Failure, Healed, SpanKind,
        gate::{PermissionReviewFinished, Verb},
        model::{ModelCompleteFinished, Usage},
        tool::{Action, Observation, Outcome, ToolExecuteFinished},
        user::{MessageKind, UserMessage},
    },
    ids::{ActionId, Digest, Seq},
    payload::{Payload, brief, clip},
};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The longest output of a summary, in bytes.
const OUTPUT: usize = 512;
/// The longest description, message and error, in bytes.
const TEXT: usize = 256;
/// The longest line of evidence, in bytes.
const LINE: usize = 160;
/// The longest arguments, as JSON in bytes; longer ones are shown as the beginning of that text.
const ARGS: usize = 1024;
/// How many changed files are named.
const FILES: usize = 16;
/// How many messages of the user are kept before one action.
const MESSAGES: usize = 16;

/// The kind of failure that closes a span because the run waits for its user; the action is not over.
const SUSPENDED: &str = "suspended";

/// One action on one line, for tables and analysis. Texts are cut: the log has them whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepSummary {
    /// Position among the actions, from 1.
    pub index: u32,
    /// The turn of the loop.
    pub step: u32,
    /// The action.
    pub action: ActionId,
    /// Its place among the actions of the same reply.
    pub batch: Batch,
    /// The tool that it wanted.
    pub tool: String,
    /// Its arguments, strings above 256 bytes cut; text if they are longer than 1 KiB all the same.
    pub args: Value,
    /// One line for people.
    pub description: String,
    /// What the permission gate ruled last; none if it did not.
    pub permission: Option<Permission>,
    /// How it ended; none while it is open.
    pub outcome: Option<Outcome>,
    /// A command's exit code.
    pub exit_code: Option<i32>,
    /// How long it took, in milliseconds; none if it was not done or its end is not known.
    pub duration_ms: Option<u64>,
    /// What the model read of it, all observations joined, at most 512 bytes.
    pub output: Option<String>,
    /// The first line of that.
    pub evidence: Option<String>,
    /// Why it did not do what it should.
    pub error: Option<Failure>,
    /// The workspace as last observed before it.
    pub workspace_before: Option<Digest>,
    /// The workspace as observed after it.
    pub workspace_after: Option<Digest>,
    /// Whether it changed anything; none where nobody looked.
    pub changed_anything: Option<bool>,
    /// The first 16 files that it changed.
    pub changed: Vec<String>,
    /// How many it changed.
    pub changed_total: u64,
    /// Calls inside it.
    pub subcalls: u32,
    /// Tokens of the request that asked for it, on the first action of a batch only, so that a sum counts each request once.
    pub usage: Option<Usage>,
    /// What the user said since the action before, the task left out: the first 16 messages.
    pub user_messages_before: Vec<Said>,
    /// The event that shows how it ended, or how far it came.
    pub event: Seq,
}

/// The place of an action among those of one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Batch {
    /// Which of them, from 0.
    pub index: u32,
    /// How many the reply asked for, whether or not they were reached.
    pub size: u32,
}

/// What the permission gate ruled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Permission {
    /// The ruling.
    pub decision: Verb,
    /// The rule that decided, `layer:id`.
    pub rule: String,
}

/// A message of the user, or of a gate on the user's behalf.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Said {
    /// What kind of message.
    pub kind: MessageKind,
    /// Its text, cut.
    pub text: String,
}

/// Which summaries are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// All of them: memory grows with the number of actions.
    All,
    /// The first and the last so many.
    Ends {
        /// From the beginning.
        first: usize,
        /// From the end.
        last: usize,
    },
}

/// The summaries that were kept, and what did not fit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summarised {
    /// In the order of the actions.
    pub steps: Vec<StepSummary>,
    /// How many actions there are.
    pub total: usize,
    /// In the order of the log.
    pub problems: Vec<StepProblem>,
}

/// The summaries so far: a fold over the events of a log, in its order.
#[derive(Debug)]
pub struct Summaries {
    keep: Keep,
    steps: Steps,
    drafts: BTreeMap<usize, Draft>,
    total: usize,
    /// How many actions each reply asked for.
    batches: Vec<u32>,
    reply: Option<Reply>,
    said: Vec<Said>,
    /// What was observed of actions that had not been asked for yet.
    early: Vec<(ActionId, Seen)>,
}

/// The reply that the next actions come from.
#[derive(Debug)]
struct Reply {
    usage: Option<Usage>,
    /// The index of its last action so far.
    last: Option<u32>,
}

/// A summary that is not finished.
#[derive(Debug)]
struct Draft {
    summary: StepSummary,
    batch: usize,
    /// The ruling that refused it.
    denied: Option<Failure>,
    /// Whether it is known what it changed: then observations of the workspace have nothing to add.
    effects: bool,
    ended: bool,
}

/// What an observation or a message of an action says, cut.
#[derive(Debug)]
struct Seen {
    seq: Seq,
    /// Whether it stands where its workspace says nothing about the action.
    apart: bool,
    outcome: Option<Outcome>,
    text: Option<String>,
    changed: Option<(Vec<String>, u64)>,
}

impl Seen {
    fn new(seq: Seq, apart: bool, observation: &Observation) -> Self {
        let changed = observation.workspace.as_ref();
        Self {
            seq,
            apart,
            outcome: observation.outcome,
            text: observation.content.as_ref().map(|text| start(text, OUTPUT)),
            changed: changed.map(|workspace| {
                let named = workspace.changed.iter().take(FILES);
                (named.cloned().collect(), workspace.changed_total)
            }),
        }
    }
}

impl Draft {
    fn new(index: usize, event: &Event, id: ActionId, action: &Action, batch: usize) -> Self {
        let args = brief(&action.args);
        let text = args.to_string();
        let summary = StepSummary {
            index: u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1),
            step: event.step.map_or(0, |step| step.0),
            action: id,
            batch: Batch {
                index: action.index,
                size: 0,
            },
            tool: clip(&action.tool, TEXT),
            args: if text.len() > ARGS {
                Value::String(clip(&text, ARGS))
            } else {
                args
            },
            description: clip(&action.description, TEXT),
            permission: None,
            outcome: None,
            exit_code: None,
            duration_ms: None,
            output: None,
            evidence: None,
            error: None,
            workspace_before: None,
            workspace_after: None,
            changed_anything: None,
            changed: Vec::new(),
            changed_total: 0,
            subcalls: 0,
            usage: None,
            user_messages_before: Vec::new(),
            event: event.seq,
        };
        Self {
            summary,
            batch,
            denied: None,
            effects: false,
            ended: false,
        }
    }

    fn reviewed(&mut self, seq: Seq, review: &PermissionReviewFinished) {
        let summary = &mut self.summary;
        summary.permission = Some(Permission {
            decision: review.decision,
            rule: clip(&review.rule, TEXT),
        });
        let refusal = || Failure::new(&clip(&review.reason_code, LINE), clip(&review.reason, TEXT));
        self.denied = (review.decision == Verb::Deny).then(refusal);
        if let Some(broken) = &review.error {
            summary.error = Some(cut(broken));
        }
        if !self.ended {
            summary.event = seq;
        }
    }

    fn finished(&mut self, seq: Seq, end: &ToolExecuteFinished) {
        let summary = &mut self.summary;
        summary.outcome = Some(end.outcome);
        summary.exit_code = end.exit_code;
        summary.duration_ms = Some(end.duration_ms);
        summary.error = end.error.as_ref().map(cut);
        summary.event = seq;
        let paths = end.side_effects.iter().take(FILES);
        summary.changed = paths.map(|effect| clip(&effect.relative_path, TEXT)).collect();
        summary.changed_total = end.side_effects.len() as u64;
        self.effects = true;
        self.ended = true;
    }

    fn healed(&mut self, seq: Seq, healed: &Healed) {
        if healed.error.kind != SUSPENDED && !self.ended {
            self.summary.error = Some(cut(&healed.error));
            self.summary.outcome = Some(Outcome::Unknown);
            self.summary.event = seq;
            self.ended = true;
        }
    }

    fn seen(&mut self, seen: Seen) {
        let summary = &mut self.summary;
        if let Some(outcome) = seen.outcome {
            summary.outcome = Some(outcome);
            let refused = outcome == Outcome::Refused && self.denied.is_some();
            if !self.ended && !refused {
                summary.event = seen.seq;
            }
        }
        if let Some(text) = seen.text {
            let joined = match summary.output.take() {
                Some(before) => format!("{before}\n{text}"),
                None => text,
            };
            summary.output = Some(clip(&joined, OUTPUT));
        }
        if let (Some((changed, total)), false, false) = (seen.changed, self.effects, seen.apart) {
            summary.changed = changed;
            summary.changed_total = total;
        }
    }

    /// Adds what only the whole log says.
    fn finish(mut self, step: Option<&ActionStep>, batches: &[u32]) -> StepSummary {
        let summary = &mut self.summary;
        if let Some(step) = step {
            summary.workspace_before = step.workspace_before;
            summary.workspace_after = step.workspace_after;
            summary.changed_anything = step.changed();
            summary.subcalls = u32::try_from(step.subcalls.len()).unwrap_or(u32::MAX);
        }
        if self.effects {
            // What the tool itself found stands, also where the actions of one reply cannot be told apart by looks at the workspace.
            if summary.changed_total > 0 {
                summary.changed_anything = Some(true);
            }
        } else if summary.workspace_before.is_none() {
            // The list says what changed since somebody looked, which was before an earlier action.
            summary.changed = Vec::new();
            summary.changed_total = 0;
        }
        let asked = batches.get(self.batch).copied().unwrap_or(1);
        summary.batch.size = asked.max(summary.batch.index.saturating_add(1));
        let output = summary.output.as_deref().unwrap_or_default();
        summary.evidence = first_line(output);
        let wrong = summary.outcome.filter(|outcome| *outcome != Outcome::Ok);
        let said = wrong.map(|outcome| {
            let line = summary.evidence.clone().unwrap_or_default();
            self.denied
                .unwrap_or_else(|| Failure::new(outcome.as_str(), line))
        });
        summary.error = summary.error.take().or(said);
        self.summary
    }
}

impl Summaries {
    /// Begins before the first event.
    #[must_use]
    pub fn new(keep: Keep) -> Self {
        Self {
            keep,
            steps: Steps::new(),
            drafts: BTreeMap::new(),
            total: 0,
            batches: Vec::new(),
            reply: None,
            said: Vec::new(),
            early: Vec::new(),
        }
    }

    /// Takes in the next event of the log.
    pub fn push(&mut self, event: &Event) {
        let (seq, id) = (event.seq, event.action);
        match (&event.fact, self.steps.place(event)) {
            (Fact::Action(action), Placed::Action(at)) => self.asked(event, action, at),
            (Fact::Observation(seen), Placed::After { at, late }) => {
                if let Some(draft) = self.drafts.get_mut(&at) {
                    draft.seen(Seen::new(seq, late, seen));
                }
            }
            (Fact::Observation(seen), Placed::Early(action)) => {
                // It stands before the action: what it says about the workspace is not the action's doing.
                self.early.push((action, Seen::new(seq, true, seen)));
            }
            (Fact::UserMessage(message), _) => self.heard(message),
            (Fact::ModelCompleteFinished(reply), _) => self.replied(reply),
            (Fact::PermissionReviewFinished(review), _) => {
                if let Some(draft) = self.draft(id) {
                    draft.reviewed(seq, review);
                }
            }
            (Fact::ToolExecuteFinished(end), _) => {
                if let Some(draft) = self.draft(id) {
                    draft.finished(seq, end);
                }
            }
            (Fact::SpanHealed(SpanKind::ToolExecute, healed), _) => {
                if let Some(draft) = self.draft(id) {
                    draft.healed(seq, healed);
                }
            }
            _ => {}
        }
    }

    /// Ends the fold; what does not fit is listed, as [`Reading::Salvage`] does.
    #[must_use]
    pub fn finish(self) -> Summarised {
        let steps = self.steps.finish(Reading::Salvage).unwrap_or_default();
        let drafts = self.drafts.into_iter();
        Summarised {
            steps: drafts
                .map(|(at, draft)| draft.finish(steps.steps.get(at), &self.batches))
                .collect(),
            total: self.total,
            problems: steps.problems,
        }
    }

    fn draft(&mut self, action: Option<ActionId>) -> Option<&mut Draft> {
        let at = self.steps.owner(action)?;
        self.drafts.get_mut(&at)
    }

    fn asked(&mut self, event: &Event, action: &Action, at: usize) {
        let Some(id) = event.action else { return };
        // An index that does not rise is of another reply, one that the log does not hold.
        let other = self
            .reply
            .as_ref()
            .is_none_or(|reply| reply.last.is_some_and(|last| action.index <= last));
        if other {
            self.batches.push(0);
            self.reply = Some(Reply {
                usage: None,
                last: None,
            });
        }
        let batch = self.batches.len().saturating_sub(1);
        let mut draft = Draft::new(at, event, id, action, batch);
        if let Some(reply) = &mut self.reply {
            draft.summary.usage = reply.usage.take();
            reply.last = Some(action.index);
        }
        if let Some(asked) = self.batches.last_mut() {
            *asked = (*asked).max(action.index.saturating_add(1));
        }
        draft.summary.user_messages_before = std::mem::take(&mut self.said);
        for (_, seen) in self.early.extract_if(.., |(early, _)| *early == id) {
            draft.seen(seen);
        }
        self.total += 1;
        self.drafts.insert(at, draft);
        if let Keep::Ends { first, last } = self.keep
            && let Some(gone) = at.checked_sub(last).filter(|gone| *gone >= first)
        {
            self.drafts.remove(&gone);
        }
    }

    fn heard(&mut self, message: &UserMessage) {
        if message.kind != MessageKind::Task && self.said.len() < MESSAGES {
            self.said.push(Said {
                kind: message.kind,
                text: start(&message.content, TEXT),
            });
        }
    }

    fn replied(&mut self, reply: &ModelCompleteFinished) {
        self.batches.push(reply.tool_calls);
        self.reply = Some(Reply {
            usage: Some(reply.usage),
            last: None,
        });
    }
}

/// Returns the beginning of a text, as far as it can be shown without the artifact store.
fn start(text: &Payload, max: usize) -> String {
    match text {
        Payload::Inline(text) => clip(text, max),
        Payload::Ref(_) => clip(&text.preview(), max),
    }
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(clip(line, LINE))
}

fn cut(failure: &Failure) -> Failure {
    Failure::new(&clip(&failure.kind, LINE), clip(&failure.message, TEXT))
}

/// Flattens the steps of a log that is in memory; [`Summaries`] does it event by event.
#[must_use]
pub fn step_summaries(events: &[Event]) -> Vec<StepSummary> {
    let mut summaries = Summaries::new(Keep::All);
    for event in events {
        summaries.push(event);
    }
    summaries.finish().steps
}
