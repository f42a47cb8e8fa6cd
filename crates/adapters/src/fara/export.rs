//! A run of ours as Fara's trajectory. Pure: texts that lie in artifacts are asked for.

use super::{
    actions::{Known, gather},
    files,
    schema::{
        Action, AgentState, ComputerObservation, DataPoint, DataPointMetadata, Event as Line,
        LlmConversation, LlmMessage, LlmUsage, Observation as Seen, Outcome, SolverConfig, SolverLog,
        SolverStatus, StatusFile, Task, ToolOutput, ToolSubCall, UserMessage as Said, UserMessageType,
        VerificationResult, VerifierConfig,
    },
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tracegate_core::{
    event::Event,
    fact::{
        Fact,
        model::{ContextBuildFinished, ModelCompleteFinished, ModelCompleteStarted, Usage},
        run::{RunFinished, RunStarted},
        tool::{self, Observation, ObservationKind, Subcall, WorkspaceState},
        user::{MessageKind, UserMessage},
    },
    ids::{ActionId, Digest, RunId, Seq, Timestamp},
    payload::Payload,
    steps::{Reading, StepProblem, action_steps},
    stop::{Status, StopReason},
    validation,
};

/// The name under which the validation gate's verdicts stand among those of verifiers.
const GATE: &str = "tracegate.validation_gate";

/// Where a log's texts and tools are found.
#[expect(missing_debug_implementations, reason = "it holds closures")]
pub struct Sources<'a, E> {
    /// Returns the whole text of a payload.
    pub text: &'a dyn Fn(&Payload) -> Result<String, E>,
    /// Returns the names of the tools whose definitions have this digest; none if it is not known.
    pub tools: &'a dyn Fn(Digest) -> Vec<String>,
}

/// A log that Fara could not read.
#[derive(Debug, thiserror::Error)]
pub enum ExportError<E: std::error::Error + 'static> {
    /// It has no beginning.
    #[error("none of the events of run `{0}` is `run.started`")]
    NotStarted(RunId),
    /// An event does not fit: Fara would misattribute it, or read nothing at all.
    #[error(transparent)]
    Steps(#[from] StepProblem),
    /// A text is not to be had.
    #[error("event {seq}: {error}")]
    Text {
        /// Which event holds it.
        seq: Seq,
        /// Why not.
        error: E,
    },
}

/// The trajectory, and what of it is not in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
    /// The trajectory.
    pub data_point: DataPoint,
    /// How many observations were inserted between actions.
    pub inserted: usize,
}

impl DataPoint {
    /// Returns the files of the directory: name, and text.
    ///
    /// # Errors
    /// When a number is not finite; no log of ours holds such.
    pub fn files(&self) -> Result<Vec<(&'static str, String)>, serde_json::Error> {
        let log = &self.solver_log;
        let status = StatusFile {
            status: log.status,
            outcome: log.outcome.clone(),
        };
        let mut events = String::new();
        for event in &log.events {
            events.push_str(&serde_json::to_string(event)?);
            events.push('\n');
        }
        let mut verification = String::new();
        for result in self.verification.values() {
            verification.push_str(&serde_json::to_string(result)?);
            verification.push('\n');
        }
        Ok(vec![
            (files::TASK, serde_json::to_string_pretty(&self.task)?),
            (files::METADATA, serde_json::to_string_pretty(&self.metadata)?),
            (files::EVENTS, events),
            (files::STATUS, serde_json::to_string_pretty(&status)?),
            (files::VERIFICATION, verification),
            (files::DATA_POINT, serde_json::to_string_pretty(self)?),
        ])
    }
}

/// Maps a run.
///
/// # Errors
/// As [`ExportError`] lists: what Fara could not read is not written.
pub fn export<E: std::error::Error>(
    run: &RunId,
    events: &[Event],
    sources: &Sources<'_, E>,
) -> Result<Exported, ExportError<E>> {
    action_steps(events, Reading::Strict)?;
    let started = events.iter().find_map(|event| {
        let Fact::RunStarted(started) = &event.fact else {
            return None;
        };
        Some((event, started))
    });
    let (first, started) = started.ok_or_else(|| ExportError::NotStarted(run.clone()))?;
    let mut export = Export {
        sources,
        agent: &started.agent.name,
        known: gather(events),
        lines: Vec::new(),
        inserted: 0,
        acted: false,
        request: None,
        reply: None,
        loose: Vec::new(),
        context: None,
        workspace: None,
        error: String::new(),
        ending: Ending::default(),
        verification: BTreeMap::new(),
        judged: 0,
        usage: Usage::default(),
    };
    for event in events {
        export.take(event)?;
    }
    export.drop_reply();
    let instruction = export.text(first.seq, &started.goal)?;
    let outcome = match export.ending.finished {
        Some((seq, end)) => end
            .claim
            .as_ref()
            .map(|claim| export.text(seq, claim))
            .transpose()?,
        None => None,
    };
    let ending = &export.ending;
    let about = json!({
        "trace_id": started.trace_id,
        "status": ending.status,
        "stop_reason": ending.stop,
        "evidence": ending.finished.map(|(_, end)| &end.evidence),
        "steps": ending.finished.map(|(_, end)| end.steps),
        "events": events.len(),
        "inserted": export.inserted,
        "usage": export.usage,
        "replies_without_action": export.loose,
    });
    Ok(Exported {
        inserted: export.inserted,
        data_point: DataPoint {
            task: task(run, started, instruction),
            solver_log: SolverLog {
                status: ending.solver_status(),
                events: export.lines,
                outcome: outcome.map(|answer| Outcome { answer }),
            },
            verification: export.verification,
            metadata: DataPointMetadata {
                stats: ours(about),
                run_id: Some(run.to_string()),
                created_at: Some(naive(first.ts)),
            },
        },
    })
}

fn task(run: &RunId, started: &RunStarted, instruction: String) -> Task {
    let about = json!({ "agent": started.agent, "model": started.model, "settings": started.settings });
    let place = json!({ "workspace": started.workspace, "policy": started.policy, "limits": started.limits });
    Task {
        task_id: run.to_string(),
        instruction,
        images: Vec::new(),
        environment_config: ours(place),
        solver: SolverConfig::default(),
        verifier: VerifierConfig::default(),
        metadata: ours(about),
    }
}

/// What of ours has no field in Fara's types lies under one key.
fn ours(about: Value) -> Map<String, Value> {
    Map::from_iter([("tracegate".to_owned(), about)])
}

/// Spells a time as Fara does, without an offset; it is UTC, where Fara writes local time.
fn naive(ts: Timestamp) -> String {
    // Nanoseconds and the `Z` go: Python reads six decimals.
    ts.to_string().chars().take(26).collect()
}

/// How the run stands.
#[derive(Debug, Default)]
struct Ending<'a> {
    status: Option<Status>,
    stop: Option<StopReason>,
    finished: Option<(Seq, &'a RunFinished)>,
    /// The limit that was reached last.
    limit: Option<&'a str>,
}

impl Ending<'_> {
    fn solver_status(&self) -> SolverStatus {
        match (self.status.unwrap_or(Status::Running), self.stop) {
            (Status::Running, _) => SolverStatus::Running,
            (Status::Completed, _) => SolverStatus::Complete,
            (Status::WaitingForUser, _) => SolverStatus::WaitingForUser,
            (Status::Failed, Some(StopReason::MaxSteps)) => SolverStatus::MaxRounds,
            (Status::Failed, Some(StopReason::BudgetExhausted)) if self.limit == Some("time") => {
                SolverStatus::TimedOut
            }
            (Status::Failed | Status::Cancelled, _) => SolverStatus::Aborted,
        }
    }
}

/// A reply whose first action has not come yet.
#[derive(Debug)]
struct Reply {
    seq: Seq,
    message: LlmMessage,
    thought: String,
}

/// The mapping at work.
struct Export<'a, E> {
    sources: &'a Sources<'a, E>,
    agent: &'a str,
    known: BTreeMap<ActionId, Known<'a>>,
    lines: Vec<Line>,
    inserted: usize,
    /// Whether the last line is an action.
    acted: bool,
    request: Option<&'a ModelCompleteStarted>,
    reply: Option<Reply>,
    /// Replies that asked for no action: Fara has no line for them.
    loose: Vec<Value>,
    context: Option<&'a ContextBuildFinished>,
    workspace: Option<&'a WorkspaceState>,
    /// Why the last action did not do what it should.
    error: String,
    ending: Ending<'a>,
    verification: BTreeMap<String, VerificationResult>,
    /// How often the validation gate has ruled.
    judged: u32,
    usage: Usage,
}

impl<'a, E: std::error::Error> Export<'a, E> {
    fn take(&mut self, event: &'a Event) -> Result<(), ExportError<E>> {
        match (&event.fact, event.action) {
            (Fact::Action(action), Some(id)) => self.act(event, id, action)?,
            (Fact::Observation(seen), _) => self.observe(event, seen)?,
            (Fact::UserMessage(message), _) => self.hear(event, message)?,
            (Fact::ContextBuildFinished(built), _) => self.context = Some(built),
            (Fact::ModelCompleteStarted(request), _) => self.request = Some(request),
            (Fact::ModelCompleteFinished(reply), _) => self.reply(event.seq, reply)?,
            (Fact::LimitReached(limit), _) => self.ending.limit = Some(&limit.which),
            (Fact::StatusChanged(change), _) => {
                self.ending.status = Some(change.status);
                self.ending.stop = change.stop_reason;
                if change.status == Status::Running {
                    self.ending.finished = None;
                }
            }
            (Fact::SegmentFinished(end), _) => {
                self.ending.status = Some(end.status);
                self.ending.stop = Some(end.stop_reason);
            }
            (Fact::RunFinished(end), _) => {
                self.ending.status = Some(end.status);
                self.ending.stop = Some(end.stop_reason);
                self.ending.finished = Some((event.seq, end));
            }
            (Fact::VerificationRecorded(result), _) => {
                let score = result
                    .score
                    .or(result.passed.map(|passed| f64::from(u8::from(passed))));
                let about = json!({ "seq": event.seq, "verifier": result.verifier, "instance": result.instance,
                    "passed": result.passed });
                self.verify(&result.verifier, result.instance, score, &result.reasoning, about);
            }
            (Fact::ValidationReviewFinished(review), _) => {
                let score = match review.verdict.outcome {
                    validation::Outcome::Passed => Some(1.0),
                    validation::Outcome::Failed => Some(0.0),
                    validation::Outcome::Inconclusive => None,
                };
                let about = json!({ "seq": event.seq, "ruling": review.ruling, "verdict": review.verdict });
                let instance = self.judged;
                self.judged += 1;
                self.verify(GATE, instance, score, &review.verdict.explanation, about);
            }
            _ => {}
        }
        Ok(())
    }

    fn text(&self, seq: Seq, payload: &Payload) -> Result<String, ExportError<E>> {
        (self.sources.text)(payload).map_err(|error| ExportError::Text { seq, error })
    }

    fn see(&mut self, seen: Seen) {
        self.lines.push(Line::Observation(Box::new(seen)));
        self.acted = false;
    }

    fn act(&mut self, event: &'a Event, id: ActionId, action: &tool::Action) -> Result<(), ExportError<E>> {
        if self.acted {
            // Fara never reads a log again that holds two actions without an observation between them.
            let page_info = self.workspace.map_or_else(|| "not observed".to_owned(), describe);
            self.see(Seen::Environment(ComputerObservation {
                id: Some(format!("{}-before", event.id)),
                metadata: ours(json!({ "inserted": true, "workspace": self.workspace })),
                timestamp: Some(naive(event.ts)),
                page_info,
                ..ComputerObservation::default()
            }));
            self.inserted += 1;
        }
        let arguments = self.arguments(&action.args);
        let mut content = Map::new();
        content.insert("action".to_owned(), json!(action.tool));
        content.insert("arguments".to_owned(), Value::Object(arguments));
        let error = std::mem::take(&mut self.error);
        if !error.is_empty() {
            // The one place where Fara's summaries look for errors.
            content.insert("other_state".to_owned(), json!({ "previous_error": error }));
        }
        let mut description = action.description.clone();
        let mut conversation = LlmConversation::default();
        if let Some(reply) = self.reply.take() {
            if !reply.thought.is_empty() {
                description = format!("{}\n{description}", reply.thought);
            }
            conversation.messages.push(reply.message);
        }
        let calls = self
            .known
            .get(&id)
            .map(|known| known.subcalls.clone())
            .unwrap_or_default();
        let calls: Result<Vec<_>, _> = calls.iter().map(|call| self.subcall(event.seq, call)).collect();
        self.lines.push(Line::Action(Box::new(Action {
            id: Some(id.to_string()),
            timestamp: Some(naive(event.ts)),
            action_name: action.tool.clone(),
            agent_state: self.agent_state(),
            llm_conversation: conversation,
            content,
            action_nl_description: description,
            grounding: None,
            tool_sub_calls: calls?,
        })));
        self.acted = true;
        Ok(())
    }

    /// Returns the arguments as an object: Fara looks things up in them, and fails on anything else.
    fn arguments(&self, args: &Value) -> Map<String, Value> {
        let resolved = self.resolve(args);
        // Long arguments are an artifact as a whole: its text is their JSON.
        let whole = match (args, &resolved) {
            (Value::Object(_), Value::String(text)) => serde_json::from_str(text).unwrap_or(resolved),
            _ => resolved,
        };
        match whole {
            Value::Object(arguments) => arguments,
            Value::Null => Map::new(),
            value @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                Map::from_iter([("value".to_owned(), value)])
            }
        }
    }

    /// Puts texts in the place of their references. What only looks like a reference, because the model wrote it so, stays.
    fn resolve(&self, args: &Value) -> Value {
        match args {
            Value::Object(map) if map.contains_key("$ref") => {
                let payload = serde_json::from_value::<Payload>(args.clone()).ok();
                let text = payload.and_then(|payload| (self.sources.text)(&payload).ok());
                text.map_or_else(|| args.clone(), Value::String)
            }
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| (key.clone(), self.resolve(value)))
                .collect(),
            Value::Array(items) => items.iter().map(|item| self.resolve(item)).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => args.clone(),
        }
    }

    fn agent_state(&self) -> AgentState {
        let files = self.context.iter().flat_map(|built| &built.included);
        AgentState {
            agent: self.agent.to_owned(),
            tools_available: self
                .request
                .map(|request| (self.sources.tools)(request.tools_digest))
                .unwrap_or_default(),
            plan: Vec::new(),
            facts: files
                .map(|file| format!("in view: {} ({})", file.path, file.level))
                .collect(),
        }
    }

    fn subcall(&self, seq: Seq, call: &Subcall) -> Result<ToolSubCall, ExportError<E>> {
        let message = LlmMessage {
            label: call.tool.clone(),
            raw_response: self.text(seq, &call.reply)?,
            usage: usage(call.usage),
            ..LlmMessage::default()
        };
        let about = json!({ "request": self.text(seq, &call.request)?, "extra": call.extra });
        Ok(ToolSubCall {
            tool_name: call.tool.clone(),
            conversation: LlmConversation {
                messages: vec![message],
            },
            extra: ours(about),
        })
    }

    fn observe(&mut self, event: &'a Event, seen: &'a Observation) -> Result<(), ExportError<E>> {
        self.workspace = seen.workspace.as_ref().or(self.workspace);
        let (id, timestamp) = (event.id.to_string(), Some(naive(event.ts)));
        let action_id = event.action.map(|action| action.to_string());
        let content = seen
            .content
            .as_ref()
            .map(|text| self.text(event.seq, text))
            .transpose()?;
        let mut about =
            json!({ "seq": event.seq, "kind": seen.kind, "phase": seen.phase, "outcome": seen.outcome });
        let state = seen.workspace.as_ref();
        match seen.kind {
            ObservationKind::ToolOutput => {
                let known = event.action.and_then(|action| self.known.get(&action));
                let error = known.map(|known| known.error(seen.outcome)).unwrap_or_default();
                if let (Some(known), Value::Object(about)) = (known, &mut about) {
                    about.extend(execution(known));
                }
                self.error.clone_from(&error);
                self.see(Seen::ToolOutput(ToolOutput {
                    id: Some(id.clone()),
                    metadata: ours(about),
                    timestamp: timestamp.clone(),
                    action_id: action_id.clone(),
                    output: content.unwrap_or_default(),
                    error,
                }));
                if let Some(state) = state {
                    // Fara records the state of the environment after an action beside its output.
                    let about = json!({ "seq": event.seq, "part": "workspace", "workspace": state });
                    self.see(Seen::Environment(ComputerObservation {
                        id: Some(format!("{id}-workspace")),
                        metadata: ours(about),
                        timestamp,
                        action_id,
                        page_info: describe(state),
                        ..ComputerObservation::default()
                    }));
                }
            }
            ObservationKind::Environment | ObservationKind::External => {
                if let Value::Object(about) = &mut about {
                    about.insert("workspace".to_owned(), json!(state));
                }
                let parts: Vec<String> = content.into_iter().chain(state.map(describe)).collect();
                self.see(Seen::Environment(ComputerObservation {
                    id: Some(id),
                    metadata: ours(about),
                    timestamp,
                    action_id,
                    page_info: parts.join("\n"),
                    ..ComputerObservation::default()
                }));
            }
        }
        Ok(())
    }

    /// A message names no action, even where ours does: Fara's summaries do not show one that does.
    fn hear(&mut self, event: &Event, message: &UserMessage) -> Result<(), ExportError<E>> {
        let about = json!({ "seq": event.seq, "kind": message.kind, "question": message.question, "action": event.action });
        let content = self.text(event.seq, &message.content)?;
        self.see(Seen::UserMessage(Said {
            id: Some(event.id.to_string()),
            metadata: ours(about),
            timestamp: Some(naive(event.ts)),
            action_id: None,
            content,
            message_type: match message.kind {
                MessageKind::Task => UserMessageType::Task,
                MessageKind::FollowupTask => UserMessageType::FollowupTask,
                MessageKind::Answer => UserMessageType::CriticalPointResponse,
                MessageKind::RetryFeedback => UserMessageType::RetryFeedback,
            },
        }));
        Ok(())
    }

    fn reply(&mut self, seq: Seq, reply: &ModelCompleteFinished) -> Result<(), ExportError<E>> {
        self.drop_reply();
        self.usage.add(reply.usage);
        let reasoning = reply.reasoning.as_ref().map(|text| self.text(seq, text));
        self.reply = Some(Reply {
            seq,
            message: LlmMessage {
                model: self.request.map(|request| request.model.clone()),
                label: "agent".to_owned(),
                raw_response: self.text(seq, &reply.reply)?,
                reasoning: reasoning.transpose()?.unwrap_or_default(),
                finish_reason: reply.finish_reason.clone(),
                usage: usage(reply.usage),
            },
            thought: self.text(seq, &reply.text)?,
        });
        Ok(())
    }

    /// Keeps a reply that asked for nothing, or whose actions were never reached.
    fn drop_reply(&mut self) {
        if let Some(reply) = self.reply.take() {
            self.loose
                .push(json!({ "seq": reply.seq, "message": reply.message }));
        }
    }

    /// Adds a result under a name that no other one has.
    fn verify(&mut self, verifier: &str, instance: u32, score: Option<f64>, reasoning: &str, about: Value) {
        let named = |number: u32| match number {
            0 => verifier.to_owned(),
            number => format!("{verifier}_{number}"),
        };
        // Another verifier may be called like a numbered result of this one.
        let name = (instance..=u32::MAX)
            .map(named)
            .find(|name| !self.verification.contains_key(name))
            .unwrap_or_else(|| verifier.to_owned());
        let result = VerificationResult {
            result_type: "base".to_owned(),
            score,
            reasoning: Some(reasoning.to_owned()),
            verifier_name: name.clone(),
            metadata: ours(about),
            llm_conversation: LlmConversation::default(),
        };
        self.verification.insert(name, result);
    }
}

/// Says in words how the workspace is.
fn describe(state: &WorkspaceState) -> String {
    let (digest, files, changed) = (state.digest, state.files, state.changed.join(", "));
    match state.changed_total.saturating_sub(state.changed.len() as u64) {
        0 if changed.is_empty() => format!("workspace {digest}, {files} files"),
        0 => format!("workspace {digest}, {files} files\nchanged: {changed}"),
        more => format!("workspace {digest}, {files} files\nchanged: {changed} and {more} more"),
    }
}

/// What Fara's output of a tool has no field for.
fn execution(known: &Known<'_>) -> Map<String, Value> {
    let mut about = Map::new();
    if let Some(end) = known.end {
        let end = [
            ("exit_code", json!(end.exit_code)),
            ("signal", json!(end.signal)),
            ("duration_ms", json!(end.duration_ms)),
            ("truncated", json!(end.truncated)),
            ("side_effects", json!(end.side_effects)),
            ("test", json!(end.test)),
        ];
        about.extend(end.map(|(key, value)| (key.to_owned(), value)));
    }
    if let Some(review) = known.review {
        let ruled = json!({ "decision": review.decision, "rule": review.rule, "reason": review.reason,
            "approver": review.approver });
        about.insert("permission".to_owned(), ruled);
    }
    about
}

fn usage(usage: Usage) -> LlmUsage {
    LlmUsage {
        prompt_tokens: usage.total_input(),
        completion_tokens: usage.total_output(),
        reasoning_tokens: usage.reasoning,
    }
}
