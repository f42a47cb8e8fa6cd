//! A log folded into what assertions ask about: calls, reads, changes of files, requests, replies, contexts, the end.

use super::Recorded;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use tracegate_core::{
    event::Event,
    fact::{
        Edge, Fact, SpanKind,
        gate::{Class, Verb},
        model::{ContextBuildFinished, ModelCompleteFinished, ReplyKind},
        tool::{Observation, Outcome, SideEffect, SideEffectType, TestRunRecord, WorkspaceState},
    },
    ids::{ActionId, Digest, Seq, SpanId, StepNo},
    payload::Payload,
    stop::{Status, StopReason},
};

/// A recorded run, ready to be asked.
pub(super) struct Record<'a> {
    /// What the model asked for, in order, and what became of it.
    pub(super) calls: Vec<Call<'a>>,
    /// Where requests to the model began.
    pub(super) requests: Vec<Seq>,
    /// What the model replied.
    pub(super) replies: Vec<(Seq, &'a ModelCompleteFinished)>,
    /// Tokens of calls inside actions, such as of another model.
    pub(super) subcall_tokens: u64,
    /// What the model got to see.
    pub(super) contexts: Vec<(Seq, Option<StepNo>, &'a ContextBuildFinished)>,
    /// How the workspace was, with the action that the observation follows.
    pub(super) observations: Vec<(Seq, Option<ActionId>, &'a WorkspaceState)>,
    /// Ends of spans, first of each kind.
    pub(super) spans: BTreeMap<SpanKind, Seq>,
    /// How the run ended, if it has.
    pub(super) end: Option<End>,
    /// The final answer.
    pub(super) answer: Option<(Seq, &'a Payload)>,
    /// The workspace's directory.
    pub(super) directory: Option<&'a str>,
    pub(super) start_files: Option<&'a BTreeMap<String, Digest>>,
    pub(super) final_files: Option<&'a BTreeMap<String, Digest>>,
}

/// How a run ended.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) seq: Seq,
    pub(super) status: Status,
    pub(super) reason: Option<StopReason>,
}

/// One action and what became of it.
pub(super) struct Call<'a> {
    /// Its id.
    pub(super) action: Option<ActionId>,
    pub(super) tool: &'a str,
    /// The first event about it: the request, or in a log without requests the execution.
    pub(super) seq: Seq,
    args: Option<&'a Value>,
    /// The gravest class of its effects, as reviewed or as executed.
    pub(super) class: Option<Class>,
    /// Where it was refused.
    pub(super) refused: Option<Seq>,
    /// Where its execution began.
    pub(super) started: Option<Seq>,
    /// Its command line.
    pub(super) command: Option<&'a str>,
    /// Where it ended.
    pub(super) finished: Option<Seq>,
    pub(super) outcome: Option<Outcome>,
    pub(super) exit_code: Option<i32>,
    pub(super) output_chars: u64,
    pub(super) side_effects: &'a [SideEffect],
    pub(super) test: Option<&'a TestRunRecord>,
}

/// A file whose content was obtained.
pub(super) struct Read<'a> {
    /// Path, relative to the workspace.
    pub(super) path: String,
    /// From when on the next request holds it.
    pub(super) seq: Seq,
    pub(super) how: ReadBy,
    /// Ties a read to its call, for messages.
    pub(super) by: &'a str,
}

/// How content was obtained.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadBy {
    Tool,
    Context,
    Shell,
}

/// A file that was changed.
pub(super) struct Change<'a> {
    pub(super) path: &'a str,
    /// Where the change is recorded.
    pub(super) seq: Seq,
    /// Where the change was asked for, or where it was noticed if nobody asked.
    pub(super) asked: Seq,
    /// The side effect, unless only an observation shows the change.
    pub(super) effect: Option<&'a SideEffect>,
}

/// Names that other agents' logs use for tools of ours.
const ALIASES: &[(&str, &[&str])] = &[
    ("list_files", &["LS", "Glob"]),
    ("read_file", &["Read"]),
    ("search_text", &["Grep"]),
    ("write_text", &["Write"]),
    ("edit_text", &["Edit", "MultiEdit"]),
    ("shell", &["Bash"]),
    ("ask_user", &["AskUserQuestion"]),
];

/// Returns our name of a tool.
fn canonical(tool: &str) -> &str {
    let known = ALIASES.iter().find(|(_, aliases)| aliases.contains(&tool));
    known.map_or(tool, |(name, _)| name)
}

/// Tells whether two names mean one tool.
pub(super) fn same_tool(left: &str, right: &str) -> bool {
    canonical(left) == canonical(right)
}

impl<'a> Call<'a> {
    fn new(seq: Seq, action: Option<ActionId>, tool: &'a str) -> Self {
        Self {
            action,
            tool,
            seq,
            args: None,
            class: None,
            refused: None,
            started: None,
            command: None,
            finished: None,
            outcome: None,
            exit_code: None,
            output_chars: 0,
            side_effects: &[],
            test: None,
        }
    }

    /// Tells whether the tool was really set to work.
    pub(super) fn executed(&self) -> bool {
        match self.outcome {
            Some(Outcome::Refused | Outcome::NotRun) => false,
            Some(
                Outcome::Ok | Outcome::Failed | Outcome::Timeout | Outcome::Cancelled | Outcome::Unknown,
            ) => true,
            None => self.started.is_some(),
        }
    }

    /// Tells whether the tool did its work: a command that ran to a non-zero exit code did, its tool is not at fault.
    pub(super) fn worked(&self) -> bool {
        self.executed()
            && match self.outcome {
                Some(Outcome::Ok) => true,
                Some(Outcome::Failed) => self.exit_code.is_some(),
                Some(
                    Outcome::Refused
                    | Outcome::Timeout
                    | Outcome::Cancelled
                    | Outcome::Unknown
                    | Outcome::NotRun,
                )
                | None => false,
            }
    }

    /// Returns the class of what it can do, as recorded, or as it follows from a tool of ours that can do one thing only.
    pub(super) fn class(&self) -> Option<Class> {
        self.class.or_else(|| match canonical(self.tool) {
            "list_files" | "read_file" | "search_text" | "ask_user" => Some(Class::Read),
            "write_text" | "edit_text" => Some(Class::Write),
            _ => None,
        })
    }

    /// Tells whether the tool can change files that its side effects do not list.
    fn is_opaque(&self) -> bool {
        !matches!(
            canonical(self.tool),
            "list_files" | "read_file" | "search_text" | "ask_user" | "write_text" | "edit_text"
        )
    }
}

impl<'a> Record<'a> {
    /// Folds the events.
    pub(super) fn read(recorded: &Recorded<'a>) -> Self {
        let mut fold = Fold {
            record: Self {
                calls: Vec::new(),
                requests: Vec::new(),
                replies: Vec::new(),
                subcall_tokens: 0,
                contexts: Vec::new(),
                observations: Vec::new(),
                spans: BTreeMap::new(),
                end: None,
                answer: None,
                directory: None,
                start_files: recorded.start_files,
                final_files: recorded.final_files,
            },
            by_action: HashMap::new(),
            by_span: HashMap::new(),
        };
        for event in recorded.events {
            fold.event(event);
        }
        fold.record
    }

    /// Returns a path as the case spells paths: relative to the workspace.
    fn relative(&self, path: &str) -> String {
        let inside = self
            .directory
            .and_then(|directory| path.strip_prefix(directory.trim_end_matches('/')))
            .and_then(|rest| rest.strip_prefix('/'))
            .unwrap_or(path);
        join("", inside)
    }

    /// Lists what was read, in the order in which it became available to the model.
    pub(super) fn reads(&self) -> Vec<Read<'a>> {
        let mut reads = Vec::new();
        for (seq, _, report) in &self.contexts {
            for item in &report.included {
                if matches!(item.level.as_str(), "full" | "slice") {
                    reads.push(Read {
                        path: self.relative(&item.path),
                        seq: *seq,
                        how: ReadBy::Context,
                        by: "context.build",
                    });
                }
            }
        }
        for call in &self.calls {
            let (Some(seq), Some(Outcome::Ok)) = (call.finished, call.outcome) else {
                continue;
            };
            if canonical(call.tool) == "read_file" {
                let path = call
                    .args
                    .and_then(|args| args.get("path").or_else(|| args.get("file_path")));
                if let Some(path) = path.and_then(Value::as_str) {
                    reads.push(Read {
                        path: self.relative(path),
                        seq,
                        how: ReadBy::Tool,
                        by: call.tool,
                    });
                }
            }
            // An exit code other than 0, or no output, and nothing was shown.
            if let Some(command) = call.command
                && call.exit_code == Some(0)
                && call.output_chars > 0
            {
                for path in super::command::shown_files(command) {
                    reads.push(Read {
                        path: self.relative(&path),
                        seq,
                        how: ReadBy::Shell,
                        by: call.tool,
                    });
                }
            }
        }
        reads.sort_by_key(|read| read.seq);
        reads
    }

    /// Returns the first request to the model after `seq`: from then on the model knows what was obtained there.
    pub(super) fn request_after(&self, seq: Seq) -> Option<Seq> {
        self.requests.iter().copied().find(|request| *request > seq)
    }

    /// Lists what changed, in order. What an observation shows after an action whose side effects list it is one change.
    pub(super) fn changes(&self) -> Vec<Change<'a>> {
        let mut changes = Vec::new();
        for call in &self.calls {
            for effect in call.side_effects {
                changes.push(Change {
                    path: &effect.relative_path,
                    seq: call.finished.unwrap_or(call.seq),
                    asked: call.seq,
                    effect: Some(effect),
                });
            }
        }
        // The first observation has none before it, so that nothing in it is a change.
        let mut last_seen = self.observations.first().map(|(seq, _, _)| *seq);
        for (seq, action, state) in self.observations.iter().skip(1) {
            let from = last_seen.replace(*seq);
            let call = action.and_then(|action| self.calls.iter().find(|call| call.action == Some(action)));
            for path in &state.changed {
                let listed = self.calls.iter().any(|call| {
                    let between = call.finished.is_some_and(|end| Some(end) > from && end < *seq);
                    between
                        && call
                            .side_effects
                            .iter()
                            .any(|effect| effect.relative_path == *path)
                });
                if !listed {
                    changes.push(Change {
                        path,
                        seq: *seq,
                        asked: call.map_or(*seq, |call| call.seq),
                        effect: None,
                    });
                }
            }
        }
        changes.sort_by_key(|change| change.seq);
        changes
    }

    /// Says why the changes after `from` may be more than [`Record::changes`] lists, if they may.
    pub(super) fn unseen_changes(&self, from: Seq) -> Option<String> {
        let cut = self
            .observations
            .iter()
            .skip(1)
            .find(|(seq, _, state)| *seq > from && state.changed_total > state.changed.len() as u64);
        if let Some((seq, _, state)) = cut {
            return Some(format!(
                "event {seq} lists {} of {} changed files",
                state.changed.len(),
                state.changed_total
            ));
        }
        let mut opaque = self
            .calls
            .iter()
            .filter(|call| call.executed() && call.is_opaque())
            .filter(|call| call.finished.unwrap_or(call.seq) > from);
        let unseen = opaque.find(|call| {
            let begin = call.started.unwrap_or(call.seq);
            let end = call.finished.unwrap_or(begin);
            let before = self.observations.iter().any(|(seq, _, _)| *seq < begin);
            let after = self.observations.iter().any(|(seq, _, _)| *seq > end);
            !before || !after
        })?;
        Some(format!(
            "the workspace was not observed before and after {} (event {})",
            unseen.tool, unseen.seq
        ))
    }
}

/// Resolves `path` against `base`, both relative, without leaving text for `.` and `..`.
pub(super) fn join(base: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

struct Fold<'a> {
    record: Record<'a>,
    by_action: HashMap<ActionId, usize>,
    by_span: HashMap<SpanId, usize>,
}

impl<'a> Fold<'a> {
    fn event(&mut self, event: &'a Event) {
        let seq = event.seq;
        if let Some((kind, Edge::Finished)) = event.fact.edge() {
            self.record.spans.entry(kind).or_insert(seq);
        }
        if let Fact::RunStarted(data) = &event.fact {
            self.record.directory = Some(&data.workspace);
        } else if let Fact::ContextBuildFinished(data) = &event.fact {
            self.record.contexts.push((seq, event.step, data));
        } else if let Fact::ModelCompleteStarted(_) = &event.fact {
            self.record.requests.push(seq);
        } else if let Fact::ModelCompleteFinished(data) = &event.fact {
            if data.reply_kind == ReplyKind::Final {
                self.record.answer = Some((seq, &data.text));
            }
            self.record.replies.push((seq, data));
        } else if let Fact::Subcall(data) = &event.fact {
            let tokens = &mut self.record.subcall_tokens;
            *tokens = tokens.saturating_add(data.usage.total());
        } else {
            self.about_calls(event);
            self.about_the_end(event);
        }
    }

    /// Finds the call that an event is about, by action or by span.
    fn call(&mut self, event: &Event) -> Option<&mut Call<'a>> {
        let by_action = event.action.and_then(|action| self.by_action.get(&action));
        let index = by_action.or_else(|| event.span.and_then(|span| self.by_span.get(&span)))?;
        self.record.calls.get_mut(*index)
    }

    /// Begins a call for an event that belongs to none: in some imported logs nobody asks.
    fn new_call(&mut self, event: &'a Event, tool: &'a str) {
        let index = self.record.calls.len();
        self.record.calls.push(Call::new(event.seq, event.action, tool));
        if let Some(action) = event.action {
            self.by_action.insert(action, index);
        }
    }

    fn about_calls(&mut self, event: &'a Event) {
        let seq = event.seq;
        if let Fact::Action(data) = &event.fact {
            self.new_call(event, &data.tool);
            if let Some(call) = self.record.calls.last_mut() {
                call.args = Some(&data.args);
            }
        } else if let Fact::PermissionReviewFinished(data) = &event.fact {
            if self.call(event).is_none() {
                self.new_call(event, &data.tool);
            }
            if let Some(call) = self.call_or_last(event) {
                call.class = call.class.max(Some(data.class));
                match data.decision {
                    Verb::Deny => call.refused = Some(seq),
                    Verb::Allow | Verb::Ask => {}
                }
            }
        } else if let Fact::ToolExecuteStarted(data) = &event.fact {
            if self.call(event).is_none() {
                self.new_call(event, &data.tool);
            }
            if let Some(span) = event.span {
                let by_action = event.action.and_then(|action| self.by_action.get(&action));
                let last = self.record.calls.len().saturating_sub(1);
                self.by_span.insert(span, by_action.copied().unwrap_or(last));
            }
            if let Some(call) = self.call_or_last(event) {
                call.args = call.args.or(Some(&data.args));
                call.class = call.class.max(Some(data.risk));
                call.started = Some(seq);
                call.command = data.command.as_deref();
            }
        } else if let Fact::ToolExecuteFinished(data) = &event.fact {
            if let Some(call) = self.call(event) {
                call.finished = Some(seq);
                call.outcome = Some(data.outcome);
                call.exit_code = data.exit_code;
                call.output_chars = data.output_chars;
                call.side_effects = &data.side_effects;
                call.test = data.test.as_ref();
                if data.outcome == Outcome::Refused {
                    call.refused = call.refused.or(Some(seq));
                }
            }
        } else if let Fact::SpanHealed(SpanKind::ToolExecute, _) = &event.fact {
            if let Some(call) = self.call(event) {
                call.finished = Some(seq);
                call.outcome = Some(Outcome::Unknown);
            }
        } else if let Fact::Observation(data) = &event.fact {
            self.observation(event, data);
        }
    }

    /// Returns the call of the event, or the one just begun for it.
    fn call_or_last(&mut self, event: &Event) -> Option<&mut Call<'a>> {
        if self.call(event).is_some() {
            return self.call(event);
        }
        self.record.calls.last_mut()
    }

    fn observation(&mut self, event: &Event, data: &'a Observation) {
        if let Some(state) = &data.workspace {
            self.record.observations.push((event.seq, event.action, state));
        }
        // A refused or never reached action has no execution: the observation settles it.
        if let Some(outcome) = data.outcome
            && let Some(call) = self.call(event)
            && call.outcome.is_none()
        {
            call.outcome = Some(outcome);
            call.finished = Some(event.seq);
            if outcome == Outcome::Refused {
                call.refused = call.refused.or(Some(event.seq));
            }
        }
    }

    fn about_the_end(&mut self, event: &'a Event) {
        let seq = event.seq;
        let record = &mut self.record;
        if let Fact::RunFinished(data) = &event.fact {
            record.end = Some(End {
                seq,
                status: data.status,
                reason: Some(data.stop_reason),
            });
            if let Some(claim) = &data.claim {
                record.answer = Some((seq, claim));
            }
        } else if let Fact::SegmentFinished(data) = &event.fact {
            // A run that waits for its user has no `run.finished`; the segment that left it waiting ends what there is.
            if record.end.is_none() && data.status != Status::Running {
                record.end = Some(End {
                    seq,
                    status: data.status,
                    reason: Some(data.stop_reason),
                });
            }
        } else if let Fact::SegmentStarted(_) = &event.fact {
            record.end = None;
        } else if let Fact::StatusChanged(data) = &event.fact
            && data.status == Status::Running
        {
            record.end = None;
        }
    }
}

/// Tells whether a side effect leaves a file.
pub(super) const fn leaves_file(effect: &SideEffect) -> bool {
    match effect.effect {
        SideEffectType::WriteFile => true,
        SideEffectType::DeleteFile => false,
    }
}
