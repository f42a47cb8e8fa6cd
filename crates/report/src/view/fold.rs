//! The fold: what each kind of event adds to the view of a run.

use super::{
    ActionView, ContextView, End, FinishedView, Problem, QuestionView, ReadError, ReplyView, Review, RunView,
    Started, ValidationView,
};
use std::collections::BTreeMap;
use tracegate_core::{
    event::Event,
    fact::{
        Fact, Healed, SpanKind,
        model::Usage,
        run::RunStarted,
        tool::{Action, Observation, ObservationKind, Outcome, ToolExecuteFinished},
        user::MessageKind,
    },
    ids::{ActionId, RunId, Seq},
    stop::Status,
};

/// The kind of failure that closes a span because the run waits for its user; every other one means that a process died.
const SUSPENDED: &str = "suspended";

pub(super) fn fold(run: RunId, events: &[Event]) -> Result<RunView, ReadError> {
    if events.is_empty() {
        return Err(ReadError::Empty { run });
    }
    let begin = events.iter().find_map(|event| match_start(&event.fact));
    let Some(begin) = begin else {
        return Err(ReadError::NotStarted {
            run,
            events: events.len(),
        });
    };
    let mut fold = Fold {
        view: empty(run, begin),
        index: BTreeMap::new(),
        begun: false,
    };
    let mut before: Option<Seq> = None;
    for event in events {
        if let Some(after) = before {
            if event.seq <= after {
                return Err(ReadError::OutOfOrder {
                    run: fold.view.run,
                    found: event.seq,
                    after,
                });
            }
            if event.seq.0 - after.0 > 1 {
                fold.problem(Problem::Gap {
                    after,
                    before: event.seq,
                });
            }
        }
        before = Some(event.through());
        fold.apply(event);
    }
    Ok(fold.view)
}

/// Returns the beginning of a run, if the event is one.
#[expect(clippy::wildcard_enum_match_arm, reason = "one kind is looked for among all")]
const fn match_start(fact: &Fact) -> Option<&RunStarted> {
    match fact {
        Fact::RunStarted(started) => Some(started),
        _ => None,
    }
}

fn empty(run: RunId, begin: &RunStarted) -> RunView {
    RunView {
        run,
        trace: begin.trace_id,
        goal: begin.goal.clone(),
        workspace: begin.workspace.trim_end_matches('/').to_owned(),
        limits: begin.limits,
        settings: begin.settings.clone(),
        status: Status::Running,
        stop: None,
        finished: None,
        validations: Vec::new(),
        contexts: Vec::new(),
        replies: Vec::new(),
        actions: Vec::new(),
        limit: None,
        questions: Vec::new(),
        problems: Vec::new(),
        usage: Usage::default(),
        segments: BTreeMap::new(),
        steps: 0,
        events: 0,
        last: Seq(0),
    }
}

struct Fold {
    view: RunView,
    index: BTreeMap<ActionId, usize>,
    begun: bool,
}

impl Fold {
    fn apply(&mut self, event: &Event) {
        let view = &mut self.view;
        view.events += 1;
        view.last = event.seq;
        view.steps = view.steps.max(event.step.map_or(0, |step| step.0));
        let longest = view.segments.entry(event.segment).or_default();
        *longest = (*longest).max(event.mono_ns);
        match &event.fact {
            Fact::RunStarted(_) => {
                if self.begun {
                    self.problem(Problem::StartedTwice { event: event.seq });
                }
                self.begun = true;
            }
            Fact::RunFinished(end) => {
                view.status = end.status;
                view.stop = Some(end.stop_reason);
                view.questions.clear();
                view.finished = Some(FinishedView {
                    seq: event.seq,
                    claim: end.claim.clone(),
                    evidence: end.evidence.clone(),
                    verdict: end.verdict.clone(),
                });
            }
            Fact::SegmentFinished(end) => {
                view.status = end.status;
                view.stop = Some(end.stop_reason);
            }
            Fact::StatusChanged(change) => {
                view.status = change.status;
                view.stop = change.stop_reason;
                if change.status == Status::Running {
                    // Gone on after a question, or reopened: what was said about the end no longer holds.
                    view.finished = None;
                    view.limit = None;
                }
            }
            Fact::ContextBuildFinished(built) => view.contexts.push(ContextView {
                seq: event.seq,
                step: event.step,
                built: built.clone(),
            }),
            Fact::ModelCompleteFinished(reply) => {
                view.usage.add(reply.usage);
                view.replies.push(ReplyView {
                    seq: event.seq,
                    step: event.step,
                    kind: reply.reply_kind,
                    text: reply.text.clone(),
                    error: reply.error.clone(),
                });
            }
            Fact::Subcall(call) => view.usage.add(call.usage),
            Fact::ValidationReviewFinished(review) => view.validations.push(ValidationView {
                seq: event.seq,
                verdict: review.verdict.clone(),
                ruling: review.ruling,
                pushed_back: review.pushed_back,
                error: review.error.clone(),
            }),
            Fact::LimitReached(limit) => view.limit = Some((event.seq, limit.clone())),
            Fact::UserQuestion(asked) => {
                view.questions.push(QuestionView {
                    question: asked.question,
                    kind: asked.kind,
                    action: event.action,
                    text: asked.text.clone(),
                });
            }
            Fact::UserMessage(message) => match message.kind {
                MessageKind::Answer => view
                    .questions
                    .retain(|asked| Some(asked.question) != message.question),
                MessageKind::Task | MessageKind::FollowupTask | MessageKind::RetryFeedback => {}
            },
            Fact::Action(action) => self.asked(event, action),
            Fact::PermissionReviewFinished(review) => {
                if let Some(action) = self.action(event) {
                    action.review = Some(Review {
                        seq: event.seq,
                        decision: review.decision,
                        reason: review.reason.clone(),
                        error: review.error.clone(),
                    });
                }
            }
            Fact::ToolExecuteStarted(start) => {
                if let Some(action) = self.action(event) {
                    action.suspended = None;
                    action.started = Some(Started {
                        seq: event.seq,
                        command: start.command.clone(),
                    });
                }
            }
            Fact::ToolExecuteFinished(end) => {
                if let Some(action) = self.action(event) {
                    action.end = Some(finished(event.seq, end));
                }
            }
            Fact::Observation(seen) => self.observed(event, seen),
            Fact::SpanHealed(kind, healed) => self.healed(event, *kind, healed),
            Fact::LogGap(gap) => {
                let before = Seq(gap.to.0.saturating_add(1));
                let after = Seq(gap.from.0.saturating_sub(1));
                self.problem(Problem::Gap { after, before });
            }
            Fact::SegmentStarted(segment) => {
                if let Some(limits) = segment.limits {
                    self.view.limits = limits;
                }
            }
            Fact::AgentStepStarted(_)
            | Fact::AgentStepFinished(_)
            | Fact::ContextBuildStarted(_)
            | Fact::ModelCompleteStarted(_)
            | Fact::PermissionReviewStarted(_)
            | Fact::CheckpointSaveStarted(_)
            | Fact::CheckpointSaveFinished(_)
            | Fact::ValidationReviewStarted(_)
            | Fact::SpanNoted(_)
            | Fact::PolicyGranted(_)
            | Fact::VerificationRecorded(_)
            | Fact::ReadinessWaited(_)
            | Fact::ContextCompacted(_)
            | Fact::RedactionNoted(_)
            | Fact::ArtifactDropped(_)
            | Fact::LogRecovered(_)
            | Fact::LogScrubbed(_)
            | Fact::Unknown { .. } => {}
        }
    }

    fn problem(&mut self, problem: Problem) {
        self.view.problems.push(problem);
    }

    /// Finds the action that an event is about; an event about none that was asked for is a problem, not a panic.
    fn action(&mut self, event: &Event) -> Option<&mut ActionView> {
        let Some(id) = event.action else {
            self.problem(Problem::NoAction { event: event.seq });
            return None;
        };
        let Some(place) = self.index.get(&id).copied() else {
            self.problem(Problem::UnknownAction {
                event: event.seq,
                action: id,
            });
            return None;
        };
        self.view.actions.get_mut(place)
    }

    fn asked(&mut self, event: &Event, action: &Action) {
        let Some(id) = event.action else {
            self.problem(Problem::NoAction { event: event.seq });
            return;
        };
        if self.index.contains_key(&id) {
            self.problem(Problem::RepeatedAction {
                event: event.seq,
                action: id,
            });
            return;
        }
        self.index.insert(id, self.view.actions.len());
        self.view.actions.push(ActionView {
            id,
            step: event.step,
            asked: event.seq,
            tool: action.tool.clone(),
            args: action.args.clone(),
            description: action.description.clone(),
            review: None,
            started: None,
            end: None,
            suspended: None,
        });
    }

    /// An observation settles an action only where no terminal event did: not reached, or unknown after a kill.
    fn observed(&mut self, event: &Event, seen: &Observation) {
        // An observation before an action, or of the workspace, names no action.
        if event.action.is_none() {
            return;
        }
        let Some(action) = self.action(event) else {
            return;
        };
        match seen.kind {
            ObservationKind::ToolOutput => {}
            ObservationKind::Environment | ObservationKind::External => return,
        }
        if let (None, Some(outcome)) = (&action.end, seen.outcome) {
            action.end = Some(End {
                output: seen.content.clone(),
                ..without_result(event.seq, outcome)
            });
        }
    }

    fn healed(&mut self, event: &Event, kind: SpanKind, healed: &Healed) {
        match kind {
            SpanKind::ToolExecute | SpanKind::PermissionReview => {}
            SpanKind::Segment
            | SpanKind::AgentStep
            | SpanKind::ContextBuild
            | SpanKind::ModelComplete
            | SpanKind::CheckpointSave
            | SpanKind::ValidationReview => return,
        }
        let Some(action) = self.action(event) else {
            return;
        };
        if healed.error.kind == SUSPENDED {
            action.suspended = Some(event.seq);
        } else if kind == SpanKind::ToolExecute && action.end.is_none() {
            action.end = Some(End {
                error: Some(healed.error.clone()),
                ..without_result(event.seq, Outcome::Unknown)
            });
        }
    }
}

fn finished(seq: Seq, end: &ToolExecuteFinished) -> End {
    End {
        seq,
        outcome: end.outcome,
        exit_code: end.exit_code,
        signal: end.signal,
        output: Some(end.output.clone()),
        duration_ms: Some(end.duration_ms),
        side_effects: end.side_effects.clone(),
        test: end.test.clone(),
        error: end.error.clone(),
    }
}

const fn without_result(seq: Seq, outcome: Outcome) -> End {
    End {
        seq,
        outcome,
        exit_code: None,
        signal: None,
        output: None,
        duration_ms: None,
        side_effects: Vec::new(),
        test: None,
        error: None,
    }
}
