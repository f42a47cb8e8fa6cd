//! Hand-made logs for tests: the events of the seed's story, one call each.

use serde_json::{Value, json};
use tracegate_core::{
    event::Event,
    fact::{Fact, Failure, SpanKind, gate, model, run, tool, user},
    ids::{ActionId, Digest, RunId, SegmentNo, Seq, SpanId, StepNo, Timestamp, TraceId},
    payload::Payload,
    stop::StopReason,
    validation::{Ended, TestCommand, Trust, read_result, recognise},
};

/// A log that grows by what happens.
pub(crate) struct Log {
    pub(crate) events: Vec<Event>,
    run: RunId,
    step: u32,
    actions: u64,
}

pub(crate) fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

/// A test run as the runtime records it, whatever its output said.
fn test_record(command: &str, trust: Trust, masked: bool) -> tool::TestRunRecord {
    let mut command = recognise(command).unwrap_or_else(|| {
        let words: Vec<&str> = command.split_whitespace().collect();
        serde_json::from_value::<TestCommand>(json!({"runner": "npm", "normalised": words, "masked": masked}))
            .unwrap()
    });
    command.masked = masked;
    let mut reading = read_result(&command, &Ended::Exited(0), "");
    reading.trust = trust;
    tool::TestRunRecord { command, reading }
}

impl Log {
    pub(crate) fn new() -> Self {
        let run: RunId = "run_repair_20260816_001".parse().unwrap();
        let mut log = Self {
            events: Vec::new(),
            run,
            step: 0,
            actions: 0,
        };
        let started = run::RunStarted {
            grants: Vec::new(),
            goal: Payload::short("修复失败测试，让 npm test 通过。"),
            agent: run::Agent {
                name: "a".to_owned(),
                version: "1".to_owned(),
            },
            model: run::ModelInfo {
                provider: "scripted".to_owned(),
                name: "m".to_owned(),
                script: None,
            },
            trace_id: TraceId::derive(&log.run),
            remote_parent: None,
            trace_link: None,
            host_id: "h".to_owned(),
            resource: std::collections::BTreeMap::new(),
            semconv: "1".to_owned(),
            workspace: "/home/u/project".to_owned(),
            policy: run::PolicyRef {
                digest: digest("policy"),
                files: Vec::new(),
            },
            limits: run::Limits {
                max_steps: 30,
                max_tokens: None,
                max_ms: None,
                max_cost: None,
            },
            settings: run::Settings {
                context_tests: run::Switch::Off,
                context_budget: 2800,
                push_back: 0,
                redaction: run::RedactionMode::Masked,
                durability: run::Durability::Step,
                readiness_ms: 0,
                command_ms: 0,
                window: 128_000,
                on_ask: run::OnAsk::Deny,
                prices: None,
            },
        };
        log.push(started);
        log.push(run::SegmentStarted {
            limits: None,
            policy: None,
            goal: None,
            pid: 1,
            version: "1".to_owned(),
            resumed_from: None,
        });
        log.push(user::UserMessage {
            kind: user::MessageKind::Task,
            content: Payload::short("fix"),
            question: None,
        });
        log.observe(None, tool::Phase::Notice, &[]);
        log
    }

    pub(crate) fn push(&mut self, fact: impl Into<Fact>) -> &mut Event {
        let seq = self.events.len() as u64 + 1;
        let mut event = Event::new(
            &self.run,
            Seq(seq),
            SegmentNo(1),
            Timestamp(1_796_040_000_000_000_000 + seq),
            seq,
            fact.into(),
        );
        event.step = (self.step > 0).then_some(StepNo(self.step));
        self.events.push(event);
        self.events.last_mut().unwrap()
    }

    /// The number of the newest event.
    pub(crate) fn at(&self) -> Seq {
        Seq(self.events.len() as u64)
    }

    /// Begins a step: the context, then the request. Files are `path` or `path@level`.
    pub(crate) fn step(&mut self, files: &[&str]) -> &mut Self {
        self.step += 1;
        self.context(files, 2800, 2410);
        self.request()
    }

    pub(crate) fn context(&mut self, files: &[&str], budget: u64, used: u64) -> &mut Self {
        let item = |file: &&str| {
            let (path, level) = file.split_once('@').unwrap_or((file, "full"));
            model::ContextItem {
                path: path.to_owned(),
                level: level.to_owned(),
            }
        };
        self.push(model::ContextBuildStarted { budget });
        self.push(model::ContextBuildFinished {
            budget,
            used,
            included: files.iter().map(item).collect(),
            dropped: Vec::new(),
            included_total: files.len() as u64,
            dropped_total: 0,
            links: Vec::new(),
            report: "step-0001.json".to_owned(),
            digest: digest("report"),
            error: None,
        });
        self
    }

    pub(crate) fn request(&mut self) -> &mut Self {
        self.push(model::ModelCompleteStarted {
            provider: "scripted".to_owned(),
            model: "m".to_owned(),
            keep: 0,
            append: Vec::new(),
            digest: digest("request"),
            tools_digest: digest("tools"),
        });
        self
    }

    fn reply(
        &mut self,
        reply_kind: model::ReplyKind,
        tool_calls: u32,
        text: Payload,
        tokens: u64,
    ) -> &mut Self {
        self.push(model::ModelCompleteFinished {
            reply_kind,
            tool_calls,
            reply: Payload::short("{}"),
            text,
            reasoning: None,
            finish_reason: "stop".to_owned(),
            usage: model::Usage {
                input: tokens,
                ..model::Usage::default()
            },
            attempts: 1,
            error: None,
        });
        self
    }

    /// The model asks for `count` actions.
    pub(crate) fn asks(&mut self, count: u32) -> &mut Self {
        self.reply(model::ReplyKind::ToolCalls, count, Payload::short(""), 100)
    }

    /// No reply came.
    pub(crate) fn no_reply(&mut self) -> &mut Self {
        self.reply(model::ReplyKind::None, 0, Payload::short(""), 0)
    }

    /// A reply whose tokens nobody counted.
    pub(crate) fn asks_uncounted(&mut self) -> &mut Self {
        self.reply(model::ReplyKind::ToolCalls, 1, Payload::short(""), 0)
    }

    pub(crate) fn answers(&mut self, text: Payload) -> &mut Self {
        self.reply(model::ReplyKind::Final, 0, text, 100)
    }

    /// Records an action and its review; returns its id.
    pub(crate) fn ask(
        &mut self,
        name: &str,
        args: Value,
        class: gate::Class,
        decision: gate::Verb,
    ) -> ActionId {
        let id = self.request_action(name, args);
        self.push(gate::PermissionReviewFinished {
            tool: name.to_owned(),
            decision,
            class,
            reason_code: "rule".to_owned(),
            rule: "session:x".to_owned(),
            reason: "because".to_owned(),
            effects: Vec::new(),
            digest: digest("policy"),
            approver: None,
            error: None,
        })
        .action = Some(id);
        id
    }

    /// Records an action that no gate reviewed.
    pub(crate) fn request_action(&mut self, name: &str, args: Value) -> ActionId {
        self.actions += 1;
        let id = ActionId(self.actions);
        self.push(tool::Action {
            tool: name.to_owned(),
            args,
            call_id: "c".to_owned(),
            index: 0,
            description: name.to_owned(),
            args_redacted: false,
        })
        .action = Some(id);
        id
    }

    pub(crate) fn begin(
        &mut self,
        id: ActionId,
        name: &str,
        class: gate::Class,
        command: Option<&str>,
    ) -> SpanId {
        let span = SpanId::derive(&self.run, Seq(self.at().0 + 1));
        let event = self.push(tool::ToolExecuteStarted {
            tool: name.to_owned(),
            risk: class,
            args: json!({}),
            command: command.map(str::to_owned),
        });
        event.action = Some(id);
        event.span = Some(span);
        span
    }

    pub(crate) fn end(&mut self, id: ActionId, finished: tool::ToolExecuteFinished) -> Seq {
        self.push(finished).action = Some(id);
        self.at()
    }

    pub(crate) fn observe(
        &mut self,
        id: Option<ActionId>,
        phase: tool::Phase,
        changed: &[&str],
    ) -> &mut Self {
        let state = tool::WorkspaceState {
            digest: digest("workspace"),
            files: 4,
            head: None,
            changed: changed.iter().map(|path| (*path).to_owned()).collect(),
            changed_total: changed.len() as u64,
        };
        self.push(tool::Observation {
            kind: tool::ObservationKind::Environment,
            phase,
            content: None,
            outcome: None,
            workspace: Some(state),
        })
        .action = id;
        self
    }

    /// A whole call that ends with `finished`; nothing but the side effects changed. Returns where it ended.
    pub(crate) fn call(
        &mut self,
        name: &str,
        args: Value,
        class: gate::Class,
        command: Option<&str>,
        finished: tool::ToolExecuteFinished,
    ) -> Seq {
        let paths: Vec<String> = finished
            .side_effects
            .iter()
            .map(|effect| effect.relative_path.clone())
            .collect();
        let id = self.ask(name, args, class, gate::Verb::Allow);
        self.begin(id, name, class, command);
        let end = self.end(id, finished);
        let changed: Vec<&str> = paths.iter().map(String::as_str).collect();
        self.observe(Some(id), tool::Phase::After, &changed);
        end
    }

    pub(crate) fn list(&mut self) -> &mut Self {
        self.call(
            "list_files",
            json!({"path": ".", "depth": 3}),
            gate::Class::Read,
            None,
            ended(tool::Outcome::Ok, None),
        );
        self
    }

    pub(crate) fn read(&mut self, path: &str) -> &mut Self {
        self.call(
            "read_file",
            json!({ "path": path }),
            gate::Class::Read,
            None,
            ended(tool::Outcome::Ok, None),
        );
        self
    }

    /// Writes `path`, from one content to another; no content is no file.
    pub(crate) fn write(&mut self, path: &str, before: Option<&str>, after: Option<&str>) -> &mut Self {
        let mut finished = ended(tool::Outcome::Ok, None);
        finished.side_effects = vec![tool::SideEffect {
            effect: if after.is_some() {
                tool::SideEffectType::WriteFile
            } else {
                tool::SideEffectType::DeleteFile
            },
            relative_path: path.to_owned(),
            before: before.map(digest),
            after: after.map(digest),
        }];
        self.call(
            "write_text",
            json!({"path": path, "content": "x"}),
            gate::Class::Write,
            None,
            finished,
        );
        self
    }

    /// Runs a command with `shell_readonly`.
    pub(crate) fn shell(&mut self, command: &str, exit: i32) -> &mut Self {
        self.call(
            "shell_readonly",
            json!({ "command": command }),
            gate::Class::Shell,
            Some(command),
            exited(exit),
        );
        self
    }

    /// Runs a test command with `shell_readonly`; returns where it ended.
    pub(crate) fn test(&mut self, line: &str, exit: i32, trust: Trust, masked: bool) -> Seq {
        let mut finished = exited(exit);
        finished.test = Some(test_record("npm test", trust, masked));
        self.call(
            "shell_readonly",
            json!({ "command": line }),
            gate::Class::Shell,
            Some(line),
            finished,
        )
    }

    pub(crate) fn finish(&mut self, reason: StopReason, claim: Option<&str>) -> &mut Self {
        let steps = self.step;
        self.push(run::RunFinished {
            status: reason.status(),
            stop_reason: reason,
            claim: claim.map(Payload::short),
            evidence: String::new(),
            verdict: None,
            steps,
        });
        self.segment_end(reason)
    }

    pub(crate) fn segment_end(&mut self, reason: StopReason) -> &mut Self {
        self.push(run::SegmentFinished {
            status: reason.status(),
            stop_reason: reason,
            claim: None,
            gate_reason: None,
            error: None,
            usage: model::Usage::default(),
        });
        self
    }

    /// A process died in the middle of a call; the next one closed the span.
    pub(crate) fn healed(&mut self, id: ActionId, span: SpanId) -> &mut Self {
        let healed = tracegate_core::fact::Healed {
            error: Failure::new("process_killed", ""),
            end_ts: Timestamp(1_796_040_000_000_000_000),
            healed: true,
        };
        let event = self.push(Fact::SpanHealed(SpanKind::ToolExecute, healed));
        event.action = Some(id);
        event.span = Some(span);
        self
    }
}

pub(crate) fn ended(outcome: tool::Outcome, exit_code: Option<i32>) -> tool::ToolExecuteFinished {
    tool::ToolExecuteFinished {
        outcome,
        exit_code,
        signal: None,
        output: Payload::short("out"),
        output_chars: 3,
        truncated: false,
        duration_ms: 14,
        side_effects: Vec::new(),
        test: None,
        error: None,
    }
}

pub(crate) fn exited(code: i32) -> tool::ToolExecuteFinished {
    let outcome = if code == 0 {
        tool::Outcome::Ok
    } else {
        tool::Outcome::Failed
    };
    ended(outcome, Some(code))
}

/// The bad run of seed 003: the test is never read, `npm test` is red, success is claimed, the gate says no.
pub(crate) fn bad_run() -> Log {
    let mut log = Log::new();
    log.step(&["README.md", "package.json"])
        .asks(2)
        .list()
        .read("src/math.ts");
    log.step(&["README.md", "package.json", "src/math.ts"])
        .asks(1)
        .write("src/math.ts", Some("a - b"), Some("BigInt(a) + BigInt(b)"));
    log.step(&["src/math.ts", "src/math.test.ts@path"]).asks(1);
    log.test("npm test", 1, Trust::Red, false);
    log.step(&["src/math.ts"]);
    log.answers(Payload::short("已修复 add 函数。"));
    log.finish(StopReason::ValidationFailed, Some("已修复 add 函数。"));
    log
}

/// The same with the test in the context of step 2: it completes.
pub(crate) fn good_run() -> Log {
    let mut log = Log::new();
    log.step(&["README.md", "package.json"])
        .asks(2)
        .list()
        .read("src/math.ts");
    log.step(&["src/math.test.ts", "src/math.ts"])
        .asks(1)
        .write("src/math.ts", Some("a - b"), Some("a + b"));
    log.step(&["src/math.test.ts", "src/math.ts"]).asks(1);
    log.test("npm test", 0, Trust::Green, false);
    log.step(&["src/math.ts"]);
    log.answers(Payload::short("Fixed: npm test passes."));
    log.finish(StopReason::Completed, Some("Fixed: npm test passes."));
    log
}
