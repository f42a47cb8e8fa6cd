//! A session: one process's work on a run, from its first event to its last.

use crate::{
    agent::Unfinished,
    asking::Answered,
    attention::Attention,
    config::{Origin, RunConfig},
    conversation::{Conversation, Message},
    live::LiveSpans,
    recorder::{Parts, Place, Recorder, RecorderError, Sink, Span},
    workspace::{Fingerprint, Fingerprints, Root, UnusableWorkspace, enter},
    world::World,
};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use tracegate_core::{
    fact::{
        Failure,
        gate::PolicyGranted,
        log::{CheckpointSaveFinished, CheckpointSaveStarted},
        model::Role,
        run::{
            ModelInfo, OnAsk, RemoteParent, RunFinished, RunStarted, SegmentFinished, SegmentStarted,
            Settings, StatusChanged, Switch,
        },
        tool::{Observation, ObservationKind, Outcome, Phase, WorkspaceState},
        user::{MessageKind, UserMessage},
    },
    ids::{ActionId, Digest, RunId, StepNo},
    payload::{Payload, clip},
    redact::Redactor,
    state::{Progress, RunState},
    stop::{Status, StopReason},
};
use tracegate_store::{Disk, LogWriter, Store};

/// The version that events and spans name.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The GenAI conventions that spans follow.
pub const SEMCONV: &str = "gen-ai/1.42.0";

/// A run cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The goal says nothing.
    #[error("the goal is empty")]
    EmptyGoal,
    /// The workspace cannot be used.
    #[error(transparent)]
    Workspace(#[from] UnusableWorkspace),
    /// The run cannot be recorded.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
}

impl From<tracegate_store::StoreError> for StartError {
    fn from(error: tracegate_store::StoreError) -> Self {
        Self::Recorder(error.into())
    }
}

impl From<tracegate_store::LogError> for StartError {
    fn from(error: tracegate_store::LogError) -> Self {
        Self::Recorder(error.into())
    }
}

/// What a session needs from outside.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// Where runs are kept.
    pub store: &'a Store,
    /// How log files are opened.
    pub disk: &'a dyn Disk,
    /// Removes secrets.
    pub redactor: Redactor,
    /// Time and chance.
    pub world: Box<dyn World>,
    /// Who is told of events.
    pub sinks: Vec<Box<dyn Sink>>,
    /// Who opens live spans.
    pub live: Box<dyn LiveSpans>,
}

/// One process's work on a run.
#[derive(Debug)]
pub struct Session {
    pub(crate) recorder: Recorder,
    pub(crate) root: Root,
    pub(crate) conversation: Conversation,
    pub(crate) policy_digest: Digest,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) observed: Fingerprint,
    pub(crate) push_back: u32,
    pub(crate) context_tests: Switch,
    pub(crate) context_budget: u64,
    pub(crate) readiness_ms: u64,
    pub(crate) command_ms: u64,
    pub(crate) window: u64,
    pub(crate) on_ask: OnAsk,
    /// Whether another process began the run: then every request is read back from disk before it is sent.
    pub(crate) resumed: bool,
    /// Whether a question of the turn at work had suspended the run: what the same reply asks for after it is not done.
    pub(crate) suspended: bool,
    /// The actions of the turn at work that the user was asked about.
    pub(crate) asked: BTreeSet<ActionId>,
    /// What the user said to the questions of the turn at work, until the action that asked has its result.
    pub(crate) answered: BTreeMap<ActionId, Answered>,
    fingerprints: Fingerprints,
    last_state: Option<WorkspaceState>,
    /// The workspace that lies beside the log.
    remembered: Option<Digest>,
    segment: Option<Span>,
    pub(crate) claim: Option<String>,
    /// What a resumed run has to finish before its next turn.
    pub(crate) unfinished: Unfinished,
}

/// How a run ended, for whoever started it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// The run.
    pub run: RunId,
    /// Its status.
    pub status: Status,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// What the agent said at the end.
    pub claim: Option<String>,
    /// What the evidence says.
    pub evidence: String,
    /// Whether the validation gate had anything to hold the agent's answer against.
    pub armed: bool,
}

/// Names a new run after its goal, the day and chance. The goal is scrubbed first: a secret must not get into a file name.
#[must_use]
pub fn name_run(goal: &str, redactor: &Redactor, world: &dyn World) -> RunId {
    let random = world.random().first_chunk().copied().unwrap_or_default();
    RunId::build(redactor.scrub_text(goal.to_owned()).get(), world.wall(), random)
}

impl Session {
    /// Starts a run: creates its directory, its log and its first events.
    ///
    /// # Errors
    /// When the goal is empty, the workspace cannot be used or the run cannot be recorded.
    pub fn start(
        around: Surroundings<'_>,
        run: &RunId,
        config: &RunConfig,
        model: ModelInfo,
    ) -> Result<Self, StartError> {
        if config.goal.trim().is_empty() {
            return Err(StartError::EmptyGoal);
        }
        let (root, fingerprints, observed) = enter(&config.workspace, &around.redactor)?;
        let Surroundings {
            store,
            disk,
            redactor,
            world,
            sinks,
            live,
        } = around;
        let goal = redactor.scrub_text(config.goal.clone()).into_inner();
        let trace = config.origin.trace(run);
        let dir = store.create_run(run)?;
        let log = LogWriter::create(&dir, disk, store.artifacts(), world.pid())?;
        let pid = world.pid();
        let durability = config.settings.durability;
        let parts = Parts {
            dir,
            log,
            artifacts: store.artifacts().clone(),
            redactor,
            world,
            sinks,
            live,
            trace,
            durability,
        };
        let recorder = Recorder::new(parts, RunState::default(), Attention::default());
        let (conversation, settings) = (Conversation::default(), &config.settings);
        let mut session = Self::assemble(
            recorder,
            root,
            conversation,
            config,
            settings,
            fingerprints,
            observed,
        );
        session.open(config, model, store.host_id(), pid, &goal)?;
        Ok(session)
    }

    /// Puts a session together; how the run was set up comes from its first event if it is resumed.
    pub(crate) fn assemble(
        recorder: Recorder,
        root: Root,
        conversation: Conversation,
        config: &RunConfig,
        settings: &Settings,
        fingerprints: Fingerprints,
        observed: Fingerprint,
    ) -> Self {
        Self {
            recorder,
            root,
            conversation,
            policy_digest: config.policy.digest,
            environment: config.environment.clone(),
            observed,
            push_back: settings.push_back,
            context_tests: settings.context_tests,
            context_budget: settings.context_budget,
            readiness_ms: settings.readiness_ms,
            command_ms: settings.command_ms,
            window: settings.window,
            on_ask: settings.on_ask,
            resumed: false,
            suspended: false,
            asked: BTreeSet::new(),
            answered: BTreeMap::new(),
            fingerprints,
            last_state: None,
            remembered: None,
            segment: None,
            claim: None,
            unfinished: Unfinished::Nothing,
        }
    }

    /// Begins the segment of this process.
    pub(crate) fn begin_segment(&mut self, started: SegmentStarted) -> Result<(), RecorderError> {
        self.segment = Some(self.recorder.begin(None, started)?);
        Ok(())
    }

    /// Records what a run begins with, and writes the files that are written once.
    fn open(
        &mut self,
        config: &RunConfig,
        model: ModelInfo,
        host_id: &str,
        pid: u32,
        goal: &str,
    ) -> Result<(), RecorderError> {
        let mut resource = config.resource.clone();
        resource.insert("service.name".to_owned(), config.agent.name.clone());
        resource.insert("service.version".to_owned(), config.agent.version.clone());
        resource.insert("host.id".to_owned(), host_id.to_owned());
        let started = RunStarted {
            goal: self.recorder.payload(goal)?,
            agent: config.agent.clone(),
            model,
            trace_id: self.recorder.trace(),
            remote_parent: match config.origin {
                Origin::Joins(remote) => Some(RemoteParent {
                    span_id: remote.span_id,
                }),
                Origin::Alone | Origin::Links(_) => None,
            },
            trace_link: match config.origin {
                Origin::Links(remote) => Some(remote),
                Origin::Alone | Origin::Joins(_) => None,
            },
            host_id: host_id.to_owned(),
            resource,
            semconv: SEMCONV.to_owned(),
            workspace: self.root.path().display().to_string(),
            policy: config.policy.clone(),
            grants: config.grants.clone(),
            limits: config.limits,
            settings: config.settings.clone(),
        };
        self.write_once(&started)?;
        self.remember_workspace()?;
        self.recorder.record(Place::default(), started)?;
        let version = VERSION.to_owned();
        self.begin_segment(SegmentStarted {
            pid,
            version,
            resumed_from: None,
            limits: None,
            policy: None,
            goal: None,
        })?;
        self.set_out(&config.grants, goal)?;
        self.conversation
            .open(crate::context::INSTRUCTIONS, goal.to_owned());
        self.recorder.sync()?;
        self.write_status(Status::Running, None, None)
    }

    /// Records what the command line granted, and the task.
    pub(crate) fn set_out(&mut self, grants: &[PolicyGranted], goal: &str) -> Result<(), RecorderError> {
        for grant in grants {
            self.recorder.record(Place::default(), grant.clone())?;
        }
        let content = self.recorder.payload(goal)?;
        self.recorder.record(
            Place::default(),
            UserMessage {
                kind: MessageKind::Task,
                content,
                question: None,
            },
        )?;
        Ok(())
    }

    /// Records that the user wants something else now.
    pub(crate) fn follow_up(&mut self, goal: &str) -> Result<(), RecorderError> {
        let text = format!("The user has changed the task. It is now: {goal}");
        let text = self.recorder.redactor().scrub_text(text).into_inner();
        let content = self.recorder.payload(&text)?;
        self.recorder.record(
            Place::default(),
            UserMessage {
                kind: MessageKind::FollowupTask,
                content,
                question: None,
            },
        )?;
        self.conversation.push(Message::plain(Role::User, text));
        Ok(())
    }

    fn write_once(&self, started: &RunStarted) -> Result<(), RecorderError> {
        let dir = self.recorder.dir();
        let redactor = self.recorder.redactor();
        dir.create_json(&dir.task(), &self.recorder.scrub(started)?)?;
        let metadata = json!({
            "schemaVersion": tracegate_core::event::FORMAT,
            "runId": self.recorder.run(),
            "traceId": self.recorder.trace(),
            "version": VERSION,
        });
        dir.create_json(&dir.metadata(), &redactor.scrub_json(metadata))?;
        Ok(dir.touch_verification()?)
    }

    /// Returns the fold of the log.
    #[must_use]
    pub const fn state(&self) -> &RunState {
        self.recorder.state()
    }

    /// Returns the run's id.
    #[must_use]
    pub const fn run(&self) -> &RunId {
        self.recorder.run()
    }

    /// Gives the model the result of an action.
    pub(crate) fn answer(&mut self, action: ActionId, content: String) {
        let message = Message {
            role: Role::Tool,
            content,
            action: Some(action),
            calls: Vec::new(),
        };
        self.conversation.push(message);
    }

    /// Looks at the workspace; what changed since the last look goes into the next observation.
    ///
    /// # Errors
    /// When the workspace is gone.
    pub(crate) fn observe(&mut self) -> std::io::Result<Fingerprint> {
        let now = self.fingerprints.take(self.root.path())?;
        self.last_state = Some(now.state_since(Some(&self.observed)));
        self.observed = now.clone();
        Ok(now)
    }

    /// Returns the workspace as it was last looked at.
    pub(crate) fn workspace_state(&self) -> WorkspaceState {
        self.last_state
            .clone()
            .unwrap_or_else(|| self.observed.state_since(None))
    }

    /// Records how the workspace is before a step.
    pub(crate) fn observe_before(&mut self) -> Result<(), crate::agent::StepError> {
        self.observe()?;
        let observation = Observation {
            kind: ObservationKind::Environment,
            phase: Phase::Before,
            content: None,
            outcome: None,
            workspace: Some(self.workspace_state()),
        };
        self.recorder.record(Place::default(), observation)?;
        Ok(())
    }

    /// Makes everything so far durable; costs the same at every step.
    ///
    /// # Errors
    /// When the run cannot be recorded.
    pub(crate) fn checkpoint(&mut self) -> Result<(), RecorderError> {
        let span = self.recorder.begin(None, CheckpointSaveStarted {})?;
        self.recorder.sync()?;
        let dir = self.recorder.dir().clone();
        dir.replace_json(&dir.state(), &self.recorder.scrub(self.recorder.state())?)?;
        self.remember_workspace()?;
        let covers = self.recorder.state().seq;
        let bytes = self.recorder.log_bytes();
        self.recorder.end(
            span,
            CheckpointSaveFinished {
                covers,
                bytes,
                error: None,
            },
        )?;
        self.write_status(Status::Running, None, None)
    }

    /// Keeps the files' digests beside the log whenever they changed, so that a resume can say which ones are different.
    fn remember_workspace(&mut self) -> Result<(), RecorderError> {
        let digest = self.observed.digest();
        if self.remembered != Some(digest) {
            let dir = self.recorder.dir();
            let files = self.recorder.redactor().scrub_json(json!(self.observed));
            dir.replace_json(&dir.workspace(), &files)?;
            self.remembered = Some(digest);
        }
        Ok(())
    }

    pub(crate) fn write_status(
        &self,
        status: Status,
        reason: Option<StopReason>,
        evidence: Option<&str>,
    ) -> Result<(), RecorderError> {
        let dir = self.recorder.dir();
        let state = self.recorder.state();
        let value = json!({
            "runId": self.recorder.run(),
            "status": status,
            "stopReason": reason,
            "steps": state.step,
            "claim": self.claim,
            "evidence": evidence,
            "updatedAt": state.ts,
            "head": self.recorder.synced(),
        });
        dir.replace_json(&dir.status(), &self.recorder.redactor().scrub_json(value))?;
        Ok(())
    }

    /// Brings the record into a state that can end: cut-off spans are closed, actions that were not reached get a result.
    ///
    /// A run that waits for its user keeps its open actions: the resume settles them.
    ///
    /// # Errors
    /// When the run cannot be recorded.
    pub(crate) fn settle(&mut self, stop: StopReason) -> Result<(), RecorderError> {
        let kind = if stop == StopReason::Cancelled {
            "cancelled"
        } else {
            "abandoned"
        };
        self.recorder
            .abandon(&Failure::new(kind, format!("the run stopped: {stop}")))?;
        if !stop.status().is_terminal() {
            return Ok(());
        }
        let open: Vec<_> = self
            .recorder
            .state()
            .open_actions
            .iter()
            .map(|(id, progress)| (*id, *progress))
            .collect();
        for (action, progress) in open {
            let (outcome, text) = match progress {
                Progress::Asked | Progress::Permitted | Progress::Refused => {
                    (Outcome::NotRun, "the run stopped before it")
                }
                Progress::Begun | Progress::Done => {
                    (Outcome::Unknown, "the run stopped while it was being done")
                }
            };
            let observation = Observation {
                kind: ObservationKind::ToolOutput,
                phase: Phase::After,
                content: Some(Payload::short(text)),
                outcome: Some(outcome),
                workspace: None,
            };
            self.recorder.record(Place::at(action), observation)?;
        }
        Ok(())
    }

    /// Ends the session: records how, and writes the files for readers.
    ///
    /// # Errors
    /// When the run cannot be recorded.
    pub fn finish(&mut self, stop: StopReason, why: &str) -> Result<Ending, RecorderError> {
        let status = stop.status();
        let evidence = self.evidence(stop, why);
        let failed = status == Status::Failed;
        let state = self.recorder.state();
        let verdict = state.verdict.clone();
        let armed = verdict.as_ref().is_some_and(|verdict| verdict.armed);
        let (usage, steps) = (state.usage, state.step.0);
        let claim = self.claim.clone();
        if !status.is_terminal() {
            self.recorder.record(
                Place::default(),
                StatusChanged {
                    status,
                    stop_reason: Some(stop),
                },
            )?;
        }
        if let Some(segment) = self.segment.take() {
            let finished = SegmentFinished {
                status,
                stop_reason: stop,
                claim: claim.as_deref().map(|claim| clip(claim, 512)),
                gate_reason: verdict.as_ref().map(|verdict| verdict.reason.to_string()),
                error: failed.then(|| Failure::new(stop.as_str(), clip(&evidence, 512))),
                usage,
            };
            self.recorder.end(segment, finished)?;
        }
        if status.is_terminal() {
            let finished = RunFinished {
                status,
                stop_reason: stop,
                claim: claim
                    .as_deref()
                    .map(|claim| self.recorder.payload(claim))
                    .transpose()?,
                evidence: clip(&evidence, 1024),
                verdict,
                steps,
            };
            self.recorder.record(Place::default(), finished)?;
        }
        self.recorder.sync()?;
        self.write_status(status, Some(stop), Some(&evidence))?;
        let dir = self.recorder.dir().clone();
        dir.replace_json(&dir.state(), &self.recorder.scrub(self.recorder.state())?)?;
        crate::snapshot::write(&self.recorder, &evidence)?;
        Ok(Ending {
            run: self.recorder.run().clone(),
            status,
            stop_reason: stop,
            claim,
            evidence,
            armed,
        })
    }

    /// Says in `status.json`, if that can still be written, that the log could not be.
    pub(crate) fn give_up(&self, error: &RecorderError) {
        self.write_status(
            Status::Failed,
            Some(StopReason::RecorderFailed),
            Some(&error.to_string()),
        )
        .ok();
    }

    /// Says in one sentence what there is to go by.
    fn evidence(&self, stop: StopReason, why: &str) -> String {
        let verdict = self.recorder.state().verdict.as_ref();
        match stop {
            StopReason::Completed | StopReason::ValidationFailed => {
                verdict.map_or_else(|| why.to_owned(), |verdict| verdict.explanation.clone())
            }
            StopReason::ToolError
            | StopReason::MaxSteps
            | StopReason::BudgetExhausted
            | StopReason::PermissionDenied
            | StopReason::WaitingForUser
            | StopReason::ModelError
            | StopReason::RecorderFailed
            | StopReason::GateFailed
            | StopReason::Cancelled => why.to_owned(),
        }
    }

    /// Returns the step at work.
    #[must_use]
    pub const fn step(&self) -> StepNo {
        self.recorder.state().step
    }
}
