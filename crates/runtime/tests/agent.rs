//! The loop, run by a script in a fixed world: what it records, in which order, and how it ends.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at the first surprise and picks the facts that it is about"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "a test looks at the workspace and at the processes of this machine"
)]

mod rig;

use rig::{Did, Rig, answer, block_on, calls, fix, lines, names, policy_with, program, pytest, repair};
use serde_json::json;
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};
use tracegate::{
    config::default_settings,
    conversation::rebuild,
    model::scripted::ScriptedModel,
    recorder::RecorderError,
    session::{Ending, StartError},
};
use tracegate_core::{
    event::Event,
    fact::{
        Fact,
        gate::Verb,
        run::{Durability, Limits},
        tool::{ObservationKind, Outcome, Phase},
        user::MessageKind,
    },
    ids::TraceId,
    state::RunState,
    stop::StopReason,
};
use tracegate_store::{LogError, LogReader, LogWriter, RealDisk, Tail};

fn messages(events: &[Event], kind: MessageKind) -> Vec<String> {
    events
        .iter()
        .filter_map(|event| match &event.fact {
            Fact::UserMessage(data) if data.kind == kind => Some(data.content.preview()),
            _ => None,
        })
        .collect()
}

fn outcomes(events: &[Event]) -> Vec<(u64, Outcome)> {
    events
        .iter()
        .filter_map(|event| match (&event.fact, event.action) {
            (Fact::Observation(data), Some(action)) => Some((action.0, data.outcome?)),
            _ => None,
        })
        .collect()
}

fn ended(ending: &Ending) -> (StopReason, Option<&str>) {
    (ending.stop_reason, ending.claim.as_deref())
}

#[test]
fn equal_runs_in_equal_worlds_write_the_same_bytes() {
    let mut rig = Rig::new();
    let mut logs = Vec::new();
    for _ in 0..2 {
        assert_eq!(
            ended(&rig.run(&repair())),
            (StopReason::Completed, Some("Fixed."))
        );
        logs.push(String::from_utf8(rig.log_bytes()).unwrap());
        // The same place again, because paths stand in the log.
        rig = Rig::below(rig.into_dir());
    }
    assert_eq!(logs[0], logs[1]);
    assert!(logs[0].lines().count() > 60);
}

#[test]
fn a_step_looks_shows_asks_and_does_in_this_order() {
    let rig = Rig::new();
    rig.run(&repair());
    let events = rig.events();
    let first: Vec<Event> = events
        .iter()
        .filter(|event| event.step.is_some_and(|step| step.0 == 1))
        .cloned()
        .collect();
    let action = |id: u64, outcome: &str| {
        [
            format!("action a{id}"),
            format!("permission.review.started a{id}"),
            format!("permission.review.finished a{id} allow"),
            format!("tool.execute.started a{id}"),
            format!("tool.execute.finished a{id} {outcome}"),
            format!("observation a{id} {outcome}"),
        ]
    };
    let mut wanted: Vec<String> = [
        "agent.step.started",
        "observation before",
        "context.build.started",
        "context.build.finished",
        "model.complete.started",
        "model.complete.finished",
    ]
    .map(str::to_owned)
    .into();
    wanted.extend(action(1, "ok"));
    wanted.extend(action(2, "failed"));
    wanted.extend(
        [
            "checkpoint.save.started",
            "checkpoint.save.finished",
            "agent.step.finished",
        ]
        .map(str::to_owned),
    );
    assert_eq!(names(&first), wanted);
    let state = rig.state();
    assert!(state.open_spans.is_empty() && state.open_actions.is_empty());
    assert_eq!((state.step.0, state.actions, state.model_calls), (4, 4, 4));
}

#[test]
fn every_action_has_a_state_of_the_workspace_before_and_after_it() {
    let rig = Rig::new();
    let write = |name: &str| ("write_text", json!({"path": name, "content": name}));
    let refused = ("write_text", json!({"path": "secret/x", "content": "x"}));
    rig.run(
        &[
            calls(&[write("a"), refused, write("b"), pytest()]),
            answer("Done."),
        ]
        .concat(),
    );
    let events = rig.events();
    let mut last = None;
    let mut changes = Vec::new();
    for event in &events {
        match &event.fact {
            Fact::Observation(data) => {
                let changed = data.workspace.as_ref().map(|state| state.changed.clone());
                match data.phase {
                    Phase::Before => {
                        assert_eq!((data.kind, event.action), (ObservationKind::Environment, None));
                    }
                    Phase::After => changes.push((event.action.unwrap().0, changed)),
                    Phase::Notice => panic!("nobody notices anything here"),
                }
                last = Some(event.seq);
            }
            Fact::Action(_) => {
                assert!(last.take().is_some(), "{} follows no observation", event.seq);
            }
            _ => {}
        }
    }
    let changed = |name: &str| Some(vec![name.to_owned()]);
    assert_eq!(
        changes,
        [
            (1, changed("a")),
            (2, None),
            (3, changed("b")),
            (4, Some(Vec::new()))
        ]
    );
    assert_eq!(rig.state().open_actions.len(), 0);
}

#[test]
fn a_refused_action_never_reaches_a_tool() {
    let rig = Rig::new();
    let rows = [
        ("write_text", json!({"path": "secret/x", "content": "x"})),
        ("write_text", json!({"path": "../outside", "content": "x"})),
        ("shell", json!({"command": "make made"})),
        ("shell", json!({"command": "pytest; touch made"})),
        ("no_such_tool", json!({})),
        ("read_file", json!({"file": "app.py"})),
        ("write_text", json!({"path": ".git/config", "content": "x"})),
    ];
    rig.run(&[calls(&rows), answer("I give up.")].concat());
    let events = rig.events();
    let executed = events
        .iter()
        .filter(|event| event.fact.name().starts_with("tool.execute"));
    assert_eq!(executed.count(), 0);
    let (refused, failed) = (Outcome::Refused, Outcome::Failed);
    let wanted = [refused, refused, refused, refused, failed, failed, refused];
    assert_eq!(outcomes(&events), (1..).zip(wanted).collect::<Vec<_>>());
    let reviewed = events.iter().filter(
        |event| matches!(&event.fact, Fact::PermissionReviewFinished(data) if data.decision == Verb::Deny),
    );
    assert_eq!(reviewed.count(), 5);
    for name in ["made", "secret", ".git", "../outside"] {
        assert!(!rig.workspace().join(name).exists(), "{name}");
    }
    rig.state();
}

#[test]
fn the_log_holds_the_start_of_an_effect_before_it_happens() {
    let rig = Rig::new();
    let model = ScriptedModel::parse(
        "c",
        &[
            calls(&[("shell", json!({"command": "cp log.bin copy.bin"}))]),
            answer("Copied."),
        ]
        .concat(),
    )
    .unwrap();
    rig.write(".gitignore", "*.bin\n");
    let session = rig.start(&model).unwrap();
    // The log under a second name: a command of the run sees what is in the file at that moment.
    fs::hard_link(rig.run_dir().events(), rig.workspace().join("log.bin")).unwrap();
    block_on(rig.drive(session, &model)).unwrap();
    let copied = rig.read("copy.bin").unwrap();
    let last = Event::from_line_unverified(copied.lines().last().unwrap()).unwrap();
    assert!(copied.ends_with('\n'));
    match &last.fact {
        Fact::ToolExecuteStarted(data) => assert_eq!(data.command.as_deref(), Some("cp log.bin copy.bin")),
        other => panic!("the last event before the effect is {}", other.name()),
    }
}

#[test]
fn the_start_of_an_effect_is_synced_before_it_and_its_result_after_it() {
    let did = |durability: Durability| {
        let mut rig = Rig::new();
        rig.config.settings.durability = durability;
        rig.disk.watch = Some(rig.workspace().join("made"));
        let write = ("write_text", json!({"path": "made", "content": "x"}));
        rig.run(&[calls(&[write]), answer("Done.")].concat());
        let did = rig.disk.did.lock().unwrap().clone();
        let begun = did
            .iter()
            .position(|(did, _)| *did == Did::Append("tool.execute.started".to_owned()))
            .unwrap();
        did[begun..begun + 6].to_vec()
    };
    let append = |name: &str, there| (Did::Append(name.to_owned()), there);
    assert_eq!(
        did(Durability::Step),
        [
            append("tool.execute.started", false),
            (Did::Sync, false),
            append("tool.execute.finished", true),
            append("observation", true),
            (Did::Sync, true),
            append("checkpoint.save.started", true),
        ]
    );
    assert_eq!(
        did(Durability::Event)[..4],
        [
            append("tool.execute.started", false),
            (Did::Sync, false),
            (Did::Sync, false),
            append("tool.execute.finished", true),
        ]
    );
    assert!(did(Durability::Kill).iter().all(|(did, _)| *did != Did::Sync));
}

#[test]
fn a_question_is_synced_before_the_run_waits() {
    let rig = Rig::new();
    let ending = rig.run(&calls(&[
        ("ask_user", json!({"question": "Which one?"})),
        pytest(),
    ]));
    assert_eq!(ended(&ending), (StopReason::WaitingForUser, None));
    let did = rig.disk.did.lock().unwrap().clone();
    let asked = did
        .iter()
        .position(|(did, _)| *did == Did::Append("user.question".to_owned()))
        .unwrap();
    assert_eq!(did[asked + 1].0, Did::Sync);
    let state = rig.state();
    assert_eq!((state.open_questions.len(), state.finished), (1, false));
    assert!(state.open_spans.is_empty());
}

#[test]
fn a_log_that_fails_at_any_event_stops_the_run_and_still_verifies() {
    let cassette = [
        calls(&[
            pytest(),
            ("write_text", json!({"path": "secret/x", "content": ""})),
        ]),
        calls(&[fix(), pytest()]),
        answer("Fixed."),
    ]
    .concat();
    let clean = Rig::new();
    assert_eq!(clean.run(&cassette).stop_reason, StopReason::Completed);
    let whole = names(&clean.events());
    let fail = |at: usize| {
        let mut rig = Rig::new();
        rig.disk.fail_at = Some(at);
        rig.disk.short = at.is_multiple_of(2);
        let error = match rig.try_run(&cassette) {
            Err(StartError::Recorder(error)) | Ok(Err(error)) => error,
            other => panic!("event {at} failed and the run went on: {other:?}"),
        };
        assert!(
            matches!(
                &error,
                RecorderError::Log(LogError::Io {
                    doing: "append to",
                    ..
                })
            ),
            "event {at}: {error}"
        );
        // What is on disk is whole, in order, and all that anybody was told of.
        assert_eq!(names(&rig.events()), whole[..at - 1], "event {at}");
        let state = rig.state();
        // No effect without its start: the repair is there only if the log says that it began.
        let began = whole[..at - 1].contains(&"tool.execute.started a3".to_owned());
        assert_eq!(rig.read("app.py").unwrap().contains("fixed"), began, "event {at}");
        // Another process can go on from there.
        let mut found = Vec::new();
        LogWriter::resume(&rig.run_dir(), &RealDisk, rig.store.artifacts(), 2, |event| {
            found.push(event);
            Ok::<_, LogError>(())
        })
        .unwrap();
        assert_eq!(RunState::fold(&found).unwrap(), state);
    };
    // The runs mostly wait for the disk, so they share it.
    std::thread::scope(|scope| {
        for lane in 0..4 {
            let (whole, fail) = (&whole, &fail);
            scope.spawn(move || (1..=whole.len()).filter(|at| at % 4 == lane).for_each(fail));
        }
    });
}

#[test]
fn a_claim_against_the_evidence_is_pushed_back_twice_and_then_judged() {
    let cassette = [
        calls(&[pytest()]),
        answer("Done."),
        answer("Really done."),
        calls(&[fix(), pytest()]),
        answer("Fixed."),
    ]
    .concat();
    let rig = Rig::new();
    assert_eq!(
        ended(&rig.run(&cassette)),
        (StopReason::Completed, Some("Fixed."))
    );
    let events = rig.events();
    let feedback = messages(&events, MessageKind::RetryFeedback);
    assert_eq!(feedback.len(), 2);
    assert!(
        feedback
            .iter()
            .all(|text| text.contains("not accepted yet") && text.contains("pytest"))
    );
    assert_eq!(rig.state().pushed_back, 2);
    // The model reads them in order, after the claims that they answer.
    let requests = rebuild(&events, rig.store.artifacts()).unwrap();
    let said: Vec<&str> = requests[3]
        .iter()
        .filter(|message| message.action.is_none() && message.calls.is_empty())
        .map(|message| message.content.as_str())
        .collect();
    assert_eq!(said[2..6], ["Done.", &feedback[0], "Really done.", &feedback[1]]);
    let mut rig = Rig::new();
    rig.config.settings.push_back = 0;
    assert_eq!(
        ended(&rig.run(&cassette)),
        (StopReason::ValidationFailed, Some("Done."))
    );
    assert_eq!(
        messages(&rig.events(), MessageKind::RetryFeedback),
        Vec::<String>::new()
    );
    assert_eq!((rig.state().step.0, rig.state().pushed_back), (2, 0));
    let mut rig = Rig::new();
    rig.config.settings.push_back = 1;
    assert_eq!(
        ended(&rig.run(&cassette)),
        (StopReason::ValidationFailed, Some("Really done."))
    );
}

#[test]
fn a_red_answer_at_the_last_step_is_judged_and_a_run_without_one_is_at_its_limit() {
    let run = |max_steps: u32, cassette: &str| {
        let mut rig = Rig::new();
        rig.config.limits.max_steps = max_steps;
        let ending = rig.run(cassette);
        (ending.stop_reason, rig.state().pushed_back, rig.state().step.0)
    };
    let claims = [
        calls(&[pytest()]),
        answer("Done."),
        answer("Done."),
        answer("Done."),
    ]
    .concat();
    assert_eq!(run(2, &claims), (StopReason::ValidationFailed, 0, 2));
    assert_eq!(run(3, &claims), (StopReason::ValidationFailed, 1, 3));
    assert_eq!(run(1, &claims), (StopReason::MaxSteps, 0, 1));
    // A green run before the limit does not complete: nobody claimed anything.
    assert_eq!(run(3, &repair()), (StopReason::MaxSteps, 0, 3));
    assert_eq!(run(4, &repair()), (StopReason::Completed, 0, 4));
}

#[test]
fn limits_of_tokens_and_time_end_the_run_and_are_recorded() {
    let reply = json!({"reply": {"text": "", "tool_calls": [{"name": "list_files", "input": {}}],
        "usage": {"input": 30, "output": 10, "reasoning": 5, "cache_read": 5}}});
    let cassette = format!("{reply}\n").repeat(20);
    let run = |change: &dyn Fn(&mut Limits)| {
        let mut rig = Rig::new();
        change(&mut rig.config.limits);
        let ending = rig.run(&cassette);
        let reached = rig.events().into_iter().find_map(|event| match event.fact {
            Fact::LimitReached(data) => Some((data.which, data.value, data.limit)),
            _ => None,
        });
        (ending.stop_reason, reached.unwrap(), rig.state().step.0)
    };
    let exhausted = StopReason::BudgetExhausted;
    assert_eq!(
        run(&|limits| limits.max_tokens = Some(100)),
        (exhausted, ("tokens".to_owned(), 100, 100), 2)
    );
    assert_eq!(
        run(&|limits| limits.max_tokens = Some(101)),
        (exhausted, ("tokens".to_owned(), 150, 101), 3)
    );
    let (stop, (which, value, limit), steps) = run(&|limits| limits.max_ms = Some(60));
    assert_eq!((stop, which.as_str(), limit), (exhausted, "time", 60));
    assert!(
        value >= 60 && (1..20).contains(&steps),
        "{value} ms, {steps} steps"
    );
    assert_eq!(
        run(&|limits| limits.max_steps = 2),
        (StopReason::MaxSteps, ("steps".to_owned(), 2, 2), 2)
    );
}

#[test]
fn three_equal_refusals_running_end_the_run_and_other_actions_between_do_not() {
    let denied = |path: &str| calls(&[("write_text", json!({"path": path, "content": "x"}))]);
    let look = calls(&[("list_files", json!({}))]);
    let run = |parts: &[String]| {
        let mut rig = Rig::new();
        rig.config.settings.push_back = 0;
        let ending = rig.run(&[parts.concat(), answer("I give up.")].concat());
        let refused = outcomes(&rig.events());
        let refused = refused.iter().filter(|(_, outcome)| *outcome == Outcome::Refused);
        (ending.stop_reason, refused.count())
    };
    let (a, b) = (denied("secret/a"), denied("secret/b"));
    let stopped = StopReason::PermissionDenied;
    assert_eq!(
        run(&[a.clone(), a.clone(), a.clone(), look.clone()]),
        (stopped, 3)
    );
    let row = [a.clone(), a.clone(), b.clone(), a.clone(), b.clone()];
    assert_eq!(run(&row).0, StopReason::ValidationFailed);
    let row = [a.clone(), a.clone(), look, a.clone(), a];
    assert_eq!(run(&row).0, StopReason::ValidationFailed);
    let mut rig = Rig::new();
    rig.policy = policy_with("[limits]\non_deny = \"stop\"\n");
    let ending = rig.run(&[b, answer("I give up.")].concat());
    assert_eq!(ending.stop_reason, stopped);
}

#[test]
fn a_workspace_that_vanishes_is_a_tool_error_and_what_was_done_is_recorded() {
    let rig = Rig::new();
    program(
        &rig.workspace().join("wreck"),
        "#!/bin/sh\nexec rm -rf \"$PWD\"\n",
    );
    let ending = rig.run(
        &[
            calls(&[("shell", json!({"command": "./wreck it"})), pytest()]),
            answer("Hm."),
        ]
        .concat(),
    );
    assert_eq!(ending.stop_reason, StopReason::ToolError);
    assert_eq!(outcomes(&rig.events()), [(1, Outcome::Ok)]);
    assert!(rig.state().open_spans.is_empty());
}

#[test]
fn a_cassette_that_ends_is_a_model_error() {
    let rig = Rig::new();
    let ending = rig.run(&calls(&[pytest()]));
    assert_eq!(ended(&ending), (StopReason::ModelError, None));
    assert_eq!(
        ending.evidence,
        "the cassette `cassette.jsonl` has no reply for request 2"
    );
    assert!(rig.state().finished);
}

#[test]
fn a_limit_of_a_command_is_an_observation_not_an_end() {
    let mut rig = Rig::new();
    rig.config.settings.command_ms = 1;
    rig.config.settings.push_back = 0;
    let sleep = ("shell", json!({"command": "sleep 600"}));
    let ending = rig.run(&[calls(&[sleep]), answer("It hangs.")].concat());
    assert_eq!(ending.stop_reason, StopReason::ValidationFailed);
    assert_eq!(outcomes(&rig.events()), [(1, Outcome::Timeout)]);
}

/// Counts the processes that carry the trace of `rig`'s run in their environment.
fn children(rig: &Rig) -> usize {
    let trace = TraceId::derive(&rig.run).to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| {
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&trace)
        })
        .count()
}

/// How long a busy machine may take to start or end a process.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_cancelled_run_leaves_no_open_span_and_no_child() {
    let mut rig = Rig::new();
    rig.run = format!("run_cancel_{}", std::process::id()).parse().unwrap();
    program(
        &rig.workspace().join("wreck"),
        "#!/bin/sh\nsleep 600 &\nsleep 600 &\nwait\n",
    );
    let command = ("shell", json!({"command": "./wreck it"}));
    let model = ScriptedModel::parse("c", &[calls(&[command, pytest()]), answer("Never.")].concat()).unwrap();
    let session = rig.start(&model).unwrap();
    let (mut most, began) = (0, Instant::now());
    let ending = block_on(async {
        let watching = async {
            // The script and its two children are there before the run is stopped.
            while most < 3 {
                most = most.max(children(&rig));
                assert!(began.elapsed() < PATIENCE, "{most} processes after {PATIENCE:?}");
                tokio::task::yield_now().await;
            }
            rig.cancel.notify_one();
        };
        tokio::join!(rig.drive(session, &model), watching).0
    })
    .unwrap();
    assert_eq!(ended(&ending), (StopReason::Cancelled, None));
    // Killed processes are gone as soon as the kernel gets to them.
    while children(&rig) > 0 {
        assert!(began.elapsed() < PATIENCE, "children outlive the run");
        std::thread::yield_now();
    }
    let state = rig.state();
    assert!(state.open_spans.is_empty() && state.open_actions.is_empty() && state.finished);
    let events = rig.events();
    assert_eq!(outcomes(&events), [(1, Outcome::Unknown)]);
    let names = names(&events);
    let healed = [
        "tool.execute.finished a1 healed: cancelled",
        "agent.step.finished healed: cancelled",
    ];
    let at = names.iter().position(|name| name == healed[0]).unwrap();
    assert_eq!(names[at..at + 2], healed);
}

#[test]
fn a_run_that_is_cancelled_before_it_begins_does_nothing() {
    let rig = Rig::new();
    rig.cancel.notify_one();
    assert_eq!(ended(&rig.run(&repair())), (StopReason::Cancelled, None));
    assert_eq!(rig.state().model_calls, 0);
}

#[test]
fn what_readers_find_beside_the_log_agrees_with_it() {
    let rig = Rig::new();
    let ending = rig.run(&repair());
    let dir = rig.run_dir();
    let state: Option<RunState> = dir.read_json(&dir.state()).unwrap();
    assert_eq!(state.unwrap(), rig.state());
    let status: serde_json::Value = dir.read_json(&dir.status()).unwrap().unwrap();
    assert_eq!(
        (
            status["status"].as_str(),
            status["stopReason"].as_str(),
            status["claim"].as_str()
        ),
        (Some("completed"), Some("completed"), ending.claim.as_deref())
    );
    let last = lines(&rig.run, &rig.events()).pop().unwrap();
    let head = dir.head().unwrap();
    assert_eq!(head.seq, rig.state().seq);
    assert!(
        last.trim_end()
            .ends_with(&format!("\"chain\":\"{}\"}}", head.chain))
    );
    // With the head remembered, a dropped end is noticed.
    let bytes = rig.log_bytes();
    fs::write(dir.events(), &bytes[..bytes.len() - last.len()]).unwrap();
    let (_, tail) = LogReader::open(&dir).unwrap().read_all().unwrap();
    assert!(
        matches!(tail, Tail::Damaged { seq, .. } if seq == head.seq),
        "{tail:?}"
    );
    assert!(Path::new(&dir.context(tracegate_core::ids::StepNo(4))).exists());
    assert_eq!(default_settings().push_back, 2);
}
