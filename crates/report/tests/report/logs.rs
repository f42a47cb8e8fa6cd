//! The runs that tests look at.

use crate::support::{Log, SEED, Setup, USUAL, exited, failed, link, ok, tested, verdict, wrote};
use serde_json::json;
use tracegate_core::{
    fact::{Failure, SpanKind, gate::ValidationRuling, gate::Verb, model::ReplyKind, tool::Outcome},
    stop::StopReason,
};

pub(crate) const GOAL: &str = "修复 math.ts，让 npm test 通过。";
pub(crate) const CLAIM: &str = "已修复 add 函数。测试失败与 BigInt 类型断言有关，后续可以调整测试。";
const SOURCE: &str = "export function add(a: number, b: number): number {\n  return a - b;\n}\n";
const LISTING: &str = "README.md\npackage.json\nsrc/math.test.ts\nsrc/math.ts\n";
const TEST: &str = "src/math.test.ts";

/// What both runs of the demo do in step 1.
fn look_around(log: &mut Log) {
    log.step(1);
    log.context(&["README.md", "package.json"], &[], &[]);
    log.calls();
    log.act("list_files", json!({"path": ".", "depth": 3}), ok(LISTING, 41));
    log.act("read_file", json!({"path": "src/math.ts"}), ok(SOURCE, 12));
}

/// The failed run of seed 003: four steps, red, claimed all the same.
pub(crate) fn seed(setup: Setup) -> Log {
    let mut log = Log::new(GOAL, setup);
    look_around(&mut log);
    log.step(2);
    let unseen = link("src/math.ts", TEST, false);
    log.context(
        &["src/math.ts"],
        &[(TEST, "linking_off")],
        std::slice::from_ref(&unseen),
    );
    log.calls();
    log.act(
        "write_text",
        json!({"path": "src/math.ts", "content": "…"}),
        wrote("src/math.ts", 14),
    );
    log.step(3);
    log.context(
        &["src/math.ts"],
        &[(TEST, "linking_off")],
        std::slice::from_ref(&unseen),
    );
    log.calls();
    let red = tested(
        "red",
        1,
        &[TEST],
        Some("add keeps number return type: expected \"number\", received \"bigint\""),
    );
    log.act("shell_readonly", json!({"command": "npm test"}), red);
    log.step(4);
    log.context(&["src/math.ts"], &[(TEST, "linking_off")], &[unseen]);
    log.answer(CLAIM);
    let judged = verdict(
        "failed",
        true,
        "last_test_failed",
        "the last `npm test` failed with exit code 1",
    );
    log.judge(&judged, ValidationRuling::Fail, 0);
    log.finish(
        StopReason::ValidationFailed,
        Some(CLAIM),
        "the last `npm test` failed with exit code 1 (event 34)",
        Some(judged),
    );
    log
}

/// The same with linked tests on: the test is in view at step 2, and the run completes.
pub(crate) fn fixed() -> Log {
    let mut log = Log::new(GOAL, USUAL);
    look_around(&mut log);
    log.step(2);
    log.context(&[TEST, "src/math.ts"], &[], &[link("src/math.ts", TEST, true)]);
    log.calls();
    log.act(
        "write_text",
        json!({"path": "src/math.ts", "content": "…"}),
        wrote("src/math.ts", 14),
    );
    log.step(3);
    log.calls();
    log.act(
        "shell_readonly",
        json!({"command": "npm test"}),
        tested("green", 0, &[], None),
    );
    log.step(4);
    log.answer("已修复。");
    let judged = verdict(
        "passed",
        true,
        "last_test_passed",
        "`npm test` passed after the last change",
    );
    log.judge(&judged, ValidationRuling::Complete, 0);
    log.finish(
        StopReason::Completed,
        Some("已修复。"),
        "`npm test` passed after the last change",
        Some(judged),
    );
    log
}

/// A refusal that the policy makes the end.
pub(crate) fn refused() -> Log {
    let mut log = Log::new("tidy up", USUAL);
    log.step(1);
    log.calls();
    let id = log.ask(
        "write_text",
        json!({"path": ".git/hooks/pre-commit", "content": "x"}),
    );
    log.review(id, "write_text", Verb::Deny, ".git may be read, never written");
    log.observe(id, Outcome::Refused, None);
    log.finish(StopReason::PermissionDenied, None, "", None);
    log
}

/// Killed while the tests ran; nobody has opened it since.
pub(crate) fn killed() -> Log {
    let mut log = Log::new(GOAL, USUAL);
    look_around(&mut log);
    log.step(2);
    log.calls();
    let id = log.ask("shell", json!({"command": "npm test"}));
    log.ask("read_file", json!({"path": TEST}));
    log.review(id, "shell", Verb::Allow, "allowed");
    log.begin(id, "shell", json!({"command": "npm test"}));
    log
}

/// The same, gone on with: healed, settled as unknown, then out of steps.
pub(crate) fn resumed() -> Log {
    let mut log = killed();
    log.resume();
    let (ran, read) = (tracegate_core::ids::ActionId(3), tracegate_core::ids::ActionId(4));
    log.heal(SpanKind::ToolExecute, "process_killed", Some(ran));
    log.heal(SpanKind::Segment, "process_killed", None);
    log.observe(ran, Outcome::Unknown, None);
    log.observe(read, Outcome::NotRun, None);
    log.pass(1_000);
    log.limit("steps", 8, 8);
    log.finish(StopReason::MaxSteps, None, "", None);
    log
}

pub(crate) fn without_step() -> Log {
    let mut log = Log::new("x", USUAL);
    log.finish(StopReason::Cancelled, None, "", None);
    log
}

/// Asks its user and waits.
pub(crate) fn waiting() -> Log {
    let mut log = Log::new("update the changelog", USUAL);
    log.step(1);
    log.calls();
    let question = json!({"question": "Keep the old heading?"});
    let id = log.ask("ask_user", question.clone());
    log.review(id, "ask_user", Verb::Allow, "allowed");
    log.begin(id, "ask_user", question);
    log.question(id, "Keep the old heading?");
    log.heal(SpanKind::ToolExecute, "suspended", Some(id));
    log.leave(StopReason::WaitingForUser);
    log
}

/// The same, answered and completed.
pub(crate) fn answered() -> Log {
    let mut log = waiting();
    log.pass(60_000);
    log.resume();
    log.user_answers("yes");
    let id = tracegate_core::ids::ActionId(1);
    log.begin(id, "ask_user", json!({"question": "Keep the old heading?"}));
    log.end(id, ok("yes", 3));
    log.step(2);
    log.answer("done");
    log.finish(
        StopReason::Completed,
        Some("done"),
        "nothing had to be proven",
        None,
    );
    log
}

/// Other ways to fail, each with what its direct failure must say.
pub(crate) fn other_failures() -> Vec<(Log, &'static str)> {
    let mut model = Log::new("x", USUAL);
    model.step(1);
    let error = Failure::new("rate_limit", "429 from the service");
    model.reply(ReplyKind::None, "", Some(error));
    model.finish(StopReason::ModelError, None, "", None);

    let mut tool = Log::new("x", USUAL);
    tool.step(1);
    tool.calls();
    tool.act(
        "shell",
        json!({"command": "make"}),
        failed("sandbox_unavailable", "tier T3 is required"),
    );
    tool.finish(StopReason::ToolError, None, "", None);

    let mut stale = Log::new("fix the tests", USUAL);
    stale.step(1);
    stale.act(
        "shell",
        json!({"command": "npm test"}),
        tested("green", 0, &[], None),
    );
    stale.act("edit_text", json!({"path": "a.ts"}), wrote("a.ts", 1));
    stale.answer("done");
    let judged = verdict(
        "failed",
        true,
        "stale_pass",
        "a.ts changed after the last green run",
    );
    stale.judge(&judged, ValidationRuling::Fail, 2);
    stale.finish(StopReason::ValidationFailed, Some("done"), "", Some(judged));

    let mut recorder = Log::new("x", USUAL);
    recorder.finish(StopReason::RecorderFailed, None, "", None);

    vec![
        (model, "no usable reply: rate_limit: 429 from the service"),
        (
            tool,
            "shell make could not be executed: sandbox_unavailable: tier T3 is required",
        ),
        (stale, "stale_pass: a.ts changed after the last green run"),
        (
            recorder,
            "the run stopped with recorder_failed; no event shows why",
        ),
        (resumed(), "limit of steps reached: 8 of 8"),
    ]
}

/// What a hostile workspace, model and policy could put into a log.
pub(crate) fn hostile() -> Log {
    let nasty = format!(
        "\u{1b}]0;x\u{7}\u{202e}修复\n\r\t{}\u{200b}{}",
        "长".repeat(3_400),
        "e\u{301}\u{301}\u{301}"
    );
    let mut log = Log::new(&nasty, SEED);
    log.step(1);
    log.context(
        &[&nasty],
        &[(&nasty, &nasty)],
        &[link(&nasty, "t\u{1b}[2J", false)],
    );
    log.calls();
    let path = json!({"path": nasty});
    log.act("list_files", path.clone(), ok(&nasty, 1));
    log.act("read_file", path.clone(), ok(&nasty, u64::MAX / 2_000_000_000));
    log.act("write_text", path.clone(), wrote(&nasty, 1));
    log.act(&nasty, path.clone(), failed(&nasty, &nasty));
    log.act(&nasty, json!([nasty]), ok(&nasty, 1));
    log.act("shell", json!({"command": nasty}), exited(i32::MIN, &nasty, 1));
    log.act(
        "shell",
        json!({"command": nasty}),
        tested("red", 1, &[&nasty, "\u{9b}31m"], Some(&nasty)),
    );
    let id = log.ask("write_text", path);
    log.review(id, "write_text", Verb::Deny, &nasty);
    log.question(id, &nasty);
    log.step(2);
    log.answer(&nasty);
    let judged = verdict("failed", true, "last_test_failed", &nasty);
    log.judge(&judged, ValidationRuling::Fail, 0);
    log.finish(StopReason::ValidationFailed, Some(&nasty), &nasty, Some(judged));
    log
}

/// Every log above.
pub(crate) fn all() -> Vec<Log> {
    let mut logs = vec![
        seed(SEED),
        seed(USUAL),
        fixed(),
        refused(),
        killed(),
        resumed(),
        without_step(),
        waiting(),
        answered(),
        hostile(),
    ];
    logs.extend(other_failures().into_iter().map(|(log, _)| log));
    logs
}
