//! Builds logs by hand, in the order in which the runtime writes them.

use serde_json::{Value, json};
use tracegate_core::{
    event::Event,
    fact::{
        Fact, Failure, Healed, SpanKind,
        gate::{
            Class, PermissionReviewFinished, PermissionReviewStarted, ValidationReviewFinished,
            ValidationRuling, Verb,
        },
        model::{
            ContextBuildFinished, ContextDrop, ContextItem, ContextLink, ModelCompleteFinished, ReplyKind,
            Usage,
        },
        run::{
            Agent, AgentStepStarted, Durability, LimitReached, Limits, ModelInfo, PolicyRef, RedactionMode,
            RunFinished, RunStarted, SegmentFinished, SegmentStarted, Settings, StatusChanged, Switch,
        },
        tool::{
            Action, Observation, ObservationKind, Outcome, Phase, SideEffect, SideEffectType, TestRunRecord,
            ToolExecuteFinished, ToolExecuteStarted,
        },
        user::{MessageKind, UserMessage, UserQuestion},
    },
    ids::{ActionId, Digest, QuestionId, RunId, SegmentNo, Seq, StepNo, Timestamp, TraceId},
    payload::{ArtifactRef, INLINE_STRING, Payload},
    stop::StopReason,
    validation::Verdict,
};
use tracegate_report::RunView;

/// The run that all tests build.
pub(crate) fn run_id() -> RunId {
    "run_repair_20260816_001".parse().unwrap()
}

/// How a log begins, where it matters.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) context_tests: Switch,
    pub(crate) push_back: u32,
}

/// As the seed's agent was built.
pub(crate) const SEED: Setup = Setup {
    context_tests: Switch::Off,
    push_back: 0,
};
/// As `tracegate run` is.
pub(crate) const USUAL: Setup = Setup {
    context_tests: Switch::On,
    push_back: 2,
};

/// A log under construction.
pub(crate) struct Log {
    pub(crate) events: Vec<Event>,
    step: Option<StepNo>,
    segment: u32,
    /// Milliseconds since the segment began.
    clock: u64,
    actions: u64,
}

impl Log {
    pub(crate) fn new(goal: &str, setup: Setup) -> Self {
        let mut log = Self {
            events: Vec::new(),
            step: None,
            segment: 1,
            clock: 0,
            actions: 0,
        };
        log.push(RunStarted {
            goal: text(goal),
            agent: Agent {
                name: "tracegate".to_owned(),
                version: "0.1.0".to_owned(),
            },
            model: ModelInfo {
                provider: "scripted".to_owned(),
                name: "seed-003".to_owned(),
                script: None,
            },
            trace_id: TraceId::derive(&run_id()),
            remote_parent: None,
            trace_link: None,
            host_id: "h".to_owned(),
            resource: std::collections::BTreeMap::new(),
            semconv: "1".to_owned(),
            workspace: "/srv/repo".to_owned(),
            policy: PolicyRef {
                digest: digest(),
                files: vec!["builtin".to_owned()],
            },
            grants: Vec::new(),
            limits: Limits {
                max_steps: 8,
                max_tokens: None,
                max_ms: None,
                max_cost: None,
            },
            settings: Settings {
                context_tests: setup.context_tests,
                context_budget: 2800,
                push_back: setup.push_back,
                redaction: RedactionMode::Masked,
                durability: Durability::Step,
                readiness_ms: 0,
                command_ms: 60_000,
                window: 128_000,
                on_ask: tracegate_core::fact::run::OnAsk::Deny,
                prices: None,
            },
        });
        log.segment_started();
        log
    }

    pub(crate) fn push(&mut self, fact: impl Into<Fact>) -> Seq {
        self.put(fact, None)
    }

    fn put(&mut self, fact: impl Into<Fact>, action: Option<ActionId>) -> Seq {
        let seq = Seq(self.events.len() as u64 + 1);
        let mut event = Event::new(
            &run_id(),
            seq,
            SegmentNo(self.segment),
            Timestamp(1_796_040_000_000_000_000 + seq.0),
            self.clock * 1_000_000,
            fact.into(),
        );
        event.step = self.step;
        event.action = action;
        self.events.push(event);
        seq
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.clock += ms;
    }

    fn segment_started(&mut self) {
        self.push(SegmentStarted {
            limits: None,
            policy: None,
            goal: None,
            pid: 1,
            version: "0.1.0".to_owned(),
            resumed_from: None,
        });
    }

    /// Begins the next process life.
    pub(crate) fn resume(&mut self) {
        self.segment += 1;
        self.clock = 0;
        self.segment_started();
        self.push(StatusChanged {
            status: tracegate_core::stop::Status::Running,
            stop_reason: None,
        });
    }

    pub(crate) fn step(&mut self, step: u32) {
        self.step = Some(StepNo(step));
        self.push(AgentStepStarted {});
    }

    /// Builds a context of whole files.
    pub(crate) fn context(
        &mut self,
        included: &[&str],
        dropped: &[(&str, &str)],
        links: &[ContextLink],
    ) -> Seq {
        let item = |path: &&str| ContextItem {
            path: (*path).to_owned(),
            level: "full".to_owned(),
        };
        let drop = |(path, reason): &(&str, &str)| ContextDrop {
            path: (*path).to_owned(),
            reason: (*reason).to_owned(),
        };
        self.push(ContextBuildFinished {
            budget: 2800,
            used: 2410,
            included: included.iter().map(item).collect(),
            dropped: dropped.iter().map(drop).collect(),
            included_total: included.len() as u64,
            dropped_total: dropped.len() as u64,
            links: links.to_vec(),
            report: "step.json".to_owned(),
            digest: digest(),
            error: None,
        })
    }

    pub(crate) fn reply(&mut self, kind: ReplyKind, said: &str, error: Option<Failure>) -> Seq {
        self.pass(3_210);
        self.push(ModelCompleteFinished {
            reply_kind: kind,
            tool_calls: 0,
            reply: text("{}"),
            text: text(said),
            reasoning: None,
            finish_reason: "stop".to_owned(),
            usage: Usage {
                input: 2_500,
                output: 80,
                reasoning: 1,
                cache_read: 36,
                cache_write: 0,
            },
            attempts: 1,
            error,
        })
    }

    pub(crate) fn calls(&mut self) {
        self.reply(ReplyKind::ToolCalls, "", None);
    }

    pub(crate) fn answer(&mut self, said: &str) {
        self.reply(ReplyKind::Final, said, None);
    }

    pub(crate) fn ask(&mut self, tool: &str, args: Value) -> ActionId {
        self.actions += 1;
        let id = ActionId(self.actions);
        let description = format!("{tool} {args}");
        let action = Action {
            tool: tool.to_owned(),
            args,
            call_id: format!("call_{}", id.0),
            index: 0,
            description,
            args_redacted: false,
        };
        self.put(action, Some(id));
        id
    }

    pub(crate) fn review(&mut self, id: ActionId, tool: &str, decision: Verb, reason: &str) {
        let started = PermissionReviewStarted {
            tool: tool.to_owned(),
        };
        self.put(started, Some(id));
        let finished = PermissionReviewFinished {
            tool: tool.to_owned(),
            decision,
            class: Class::Read,
            reason_code: "rule".to_owned(),
            rule: "builtin:x".to_owned(),
            reason: reason.to_owned(),
            effects: Vec::new(),
            digest: digest(),
            approver: None,
            error: None,
        };
        self.put(finished, Some(id));
    }

    pub(crate) fn begin(&mut self, id: ActionId, tool: &str, args: Value) {
        let command = args.get("command").and_then(Value::as_str).map(str::to_owned);
        let started = ToolExecuteStarted {
            tool: tool.to_owned(),
            risk: Class::Read,
            args,
            command,
        };
        self.put(started, Some(id));
    }

    pub(crate) fn end(&mut self, id: ActionId, end: ToolExecuteFinished) -> Seq {
        self.pass(end.duration_ms);
        let outcome = end.outcome;
        let content = end.output.clone();
        let seq = self.put(end, Some(id));
        self.observe(id, outcome, Some(content));
        seq
    }

    pub(crate) fn observe(&mut self, id: ActionId, outcome: Outcome, content: Option<Payload>) {
        let observation = Observation {
            kind: ObservationKind::ToolOutput,
            phase: Phase::After,
            content,
            outcome: Some(outcome),
            workspace: None,
        };
        self.put(observation, Some(id));
    }

    /// Asks, permits, does.
    pub(crate) fn act(&mut self, tool: &str, args: Value, end: ToolExecuteFinished) -> Seq {
        let id = self.ask(tool, args.clone());
        self.review(id, tool, Verb::Allow, "allowed");
        self.begin(id, tool, args);
        self.end(id, end)
    }

    pub(crate) fn heal(&mut self, kind: SpanKind, error: &str, action: Option<ActionId>) {
        let healed = Healed {
            error: Failure::new(error, ""),
            end_ts: Timestamp(1),
            healed: true,
        };
        self.put(Fact::SpanHealed(kind, healed), action);
    }

    pub(crate) fn question(&mut self, id: ActionId, question: &str) {
        let asked = UserQuestion {
            question: QuestionId(1),
            text: text(question),
            kind: tracegate_core::fact::user::QuestionKind::Text,
            choices: Vec::new(),
        };
        self.put(asked, Some(id));
    }

    pub(crate) fn user_answers(&mut self, said: &str) {
        self.push(UserMessage {
            kind: MessageKind::Answer,
            content: text(said),
            question: Some(QuestionId(1)),
        });
    }

    pub(crate) fn limit(&mut self, which: &str, value: u64, limit: u64) {
        self.push(LimitReached {
            which: which.to_owned(),
            value,
            limit,
        });
    }

    pub(crate) fn judge(&mut self, verdict: &Verdict, ruling: ValidationRuling, pushed_back: u32) {
        self.push(ValidationReviewFinished {
            verdict: verdict.clone(),
            ruling,
            pushed_back,
            error: None,
        });
    }

    /// Leaves the run in the status that `reason` gives it.
    pub(crate) fn leave(&mut self, reason: StopReason) {
        self.push(StatusChanged {
            status: reason.status(),
            stop_reason: Some(reason),
        });
        self.push(SegmentFinished {
            status: reason.status(),
            stop_reason: reason,
            claim: None,
            gate_reason: None,
            error: None,
            usage: Usage::default(),
        });
    }

    pub(crate) fn finish(
        &mut self,
        reason: StopReason,
        claim: Option<&str>,
        evidence: &str,
        verdict: Option<Verdict>,
    ) {
        self.step = None;
        self.push(RunFinished {
            status: reason.status(),
            stop_reason: reason,
            claim: claim.map(text),
            evidence: evidence.to_owned(),
            verdict,
            steps: 4,
        });
        self.leave(reason);
    }

    pub(crate) fn view(&self) -> RunView {
        RunView::read(run_id(), &self.events).unwrap()
    }
}

pub(crate) fn text(text: &str) -> Payload {
    if text.len() > INLINE_STRING {
        return Payload::Ref(Box::new(ArtifactRef::describe(text.as_bytes(), "text/plain")));
    }
    Payload::short(text)
}

pub(crate) fn digest() -> Digest {
    Digest::of(b"")
}

pub(crate) fn link(source: &str, test: &str, included: bool) -> ContextLink {
    ContextLink {
        source: source.to_owned(),
        test: test.to_owned(),
        score: 90,
        strong: true,
        included,
    }
}

/// An action that did what it should.
pub(crate) fn ok(output: &str, duration_ms: u64) -> ToolExecuteFinished {
    ToolExecuteFinished {
        outcome: Outcome::Ok,
        exit_code: None,
        signal: None,
        output: text(output),
        output_chars: 0,
        truncated: false,
        duration_ms,
        side_effects: Vec::new(),
        test: None,
        error: None,
    }
}

pub(crate) fn failed(kind: &str, message: &str) -> ToolExecuteFinished {
    ToolExecuteFinished {
        outcome: Outcome::Failed,
        error: Some(Failure::new(kind, message)),
        ..ok("", 5)
    }
}

pub(crate) fn wrote(path: &str, duration_ms: u64) -> ToolExecuteFinished {
    ToolExecuteFinished {
        side_effects: vec![SideEffect {
            effect: SideEffectType::WriteFile,
            relative_path: path.to_owned(),
            before: None,
            after: Some(digest()),
        }],
        ..ok("written", duration_ms)
    }
}

pub(crate) fn exited(code: i32, output: &str, duration_ms: u64) -> ToolExecuteFinished {
    ToolExecuteFinished {
        outcome: if code == 0 { Outcome::Ok } else { Outcome::Failed },
        exit_code: Some(code),
        error: (code != 0).then(|| Failure::new("exit_code", "")),
        ..ok(output, duration_ms)
    }
}

/// A test run: `trust` is `red`, `green` or `unknown`.
pub(crate) fn tested(trust: &str, code: i32, named: &[&str], first: Option<&str>) -> ToolExecuteFinished {
    let reason = match trust {
        "red" => "failed",
        "green" => "passed",
        _ => "exit_code_masked",
    };
    let record = json!({
        "command": {
            "runner": "npm", "normalised": ["npm", "test"], "scope": "all", "masked": false, "zero_ok": false, "watch": false,
            "detached": false, "shown": "whole", "dir": null, "also": [],
        },
        "reading": {
            "trust": trust, "reason": reason, "passed": 0, "failed": 1, "skipped": 0, "named_files": named,
            "first_failure": first,
        },
    });
    ToolExecuteFinished {
        test: Some(serde_json::from_value::<TestRunRecord>(record).unwrap()),
        ..exited(code, "FAIL", 2_450)
    }
}

pub(crate) fn verdict(outcome: &str, armed: bool, reason: &str, explanation: &str) -> Verdict {
    let verdict = json!({
        "outcome": outcome, "armed": armed, "reason": reason, "alternatives": [], "warnings": [], "evidence": [], "required": [],
        "explanation": explanation,
    });
    serde_json::from_value(verdict).unwrap()
}
