//! The flat view: one line per action, from whatever the log says about it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::needless_pass_by_value,
    reason = "a test stops at the first surprise, and a log built by hand reads best without ceremony"
)]

#[path = "recorded/mod.rs"]
mod recorded;

use proptest::prelude::*;
use recorded::Recording;
use serde_json::{Value, json};
use tracegate_core::{
    event::Event,
    ids::{ActionId, Digest, Seq},
    steps::{
        StepProblem, step_summaries,
        summary::{Keep, Summaries, Summarised},
    },
};

/// A log that is written down shortly.
struct Log(Recording);

impl Log {
    fn new() -> Self {
        let mut log = Recording::new();
        log.step = Some(1);
        Self(log)
    }

    /// Pushes an event about action `action`, or about none for 0.
    fn push(mut self, name: &str, action: u64, data: Value) -> Self {
        self.0.action = (action > 0).then_some(action);
        self.0.push(name, &data);
        self
    }

    fn reply(self, calls: u32, input: u64) -> Self {
        let data = json!({"reply_kind": "tool_calls", "tool_calls": calls, "reply": "", "text": "",
            "finish_reason": "", "usage": {"input": input}, "attempts": 1});
        self.push("model.complete.finished", 0, data)
    }

    fn asks(self, action: u64, index: u32) -> Self {
        let data = json!({"tool": "shell", "args": {"command": "make"}, "call_id": "c", "index": index,
            "description": "shell make"});
        self.push("action", action, data)
    }

    fn ruled(self, action: u64, decision: &str) -> Self {
        let data = json!({"tool": "shell", "decision": decision, "class": "shell", "reason_code": "rule_deny",
            "rule": "user:make", "reason": "no building here", "effects": [], "digest": digest("p")});
        self.push("permission.review.finished", action, data)
    }

    fn ended(self, action: u64, more: Value) -> Self {
        let mut data = json!({"outcome": "ok", "output": "", "output_chars": 0, "truncated": false, "duration_ms": 7,
            "sideEffects": []});
        merge(&mut data, more);
        self.push("tool.execute.finished", action, data)
    }

    fn seen(self, action: u64, more: Value) -> Self {
        let mut data = json!({"kind": "tool_output", "phase": "after", "outcome": "ok"});
        merge(&mut data, more);
        self.push("observation", action, data)
    }

    fn looked(self, state: &str) -> Self {
        let data = json!({"kind": "environment", "phase": "before", "workspace": workspace(state, &[])});
        self.push("observation", 0, data)
    }

    fn said(self, action: u64, kind: &str, text: &str) -> Self {
        self.push("user.message", action, json!({"kind": kind, "content": text}))
    }

    fn summaries(&self) -> Value {
        serde_json::to_value(step_summaries(&self.0.events)).unwrap()
    }
}

fn merge(data: &mut Value, more: Value) {
    if let (Value::Object(data), Value::Object(more)) = (data, more) {
        data.extend(more);
    }
}

fn digest(state: &str) -> String {
    Digest::of(state.as_bytes()).to_string()
}

fn workspace(state: &str, changed: &[&str]) -> Value {
    json!({"digest": digest(state), "files": 1, "changed": changed, "changed_total": changed.len()})
}

/// The summary of an action about which the log says nothing more, and `more`.
fn summary(index: u32, event: u64, more: Value) -> Value {
    let mut summary = json!({
        "index": index, "step": 1, "action": format!("a{index}"), "batch": {"index": 0, "size": 1}, "tool": "shell",
        "args": {"command": "make"}, "description": "shell make", "permission": null, "outcome": null, "exitCode": null,
        "durationMs": null, "output": null, "evidence": null, "error": null, "workspaceBefore": null,
        "workspaceAfter": null, "changedAnything": null, "changed": [], "changedTotal": 0, "subcalls": 0, "usage": null,
        "userMessagesBefore": [], "event": event,
    });
    merge(&mut summary, more);
    summary
}

#[track_caller]
fn check(log: &Log, wanted: &[Value]) {
    let found = log.summaries();
    assert_eq!(found, json!(wanted), "{found:#}");
}

#[test]
fn everything_that_the_log_says_about_an_action_is_on_its_line() {
    let usage =
        |input: u64| json!({"input": input, "output": 0, "reasoning": 0, "cache_read": 0, "cache_write": 0});
    let log = Log::new()
        .said(0, "task", "build it")
        .looked("a")
        .reply(3, 100)
        .asks(1, 0)
        .ruled(1, "allow")
        .push("subcall", 1, json!({"tool": "reader", "request": "q", "reply": "a"}))
        .ended(
            1,
            json!({"outcome": "failed", "exit_code": 2, "output": "\n  no rule\nstop\n",
                "sideEffects": [{"type": "write_file", "relativePath": "out.o"}, {"type": "delete_file", "relativePath": "old.o"}],
                "error": {"type": "exit_code", "message": "exited 2"}}),
        )
        .seen(1, json!({"outcome": "failed", "content": "\n  no rule\nstop\n", "workspace": workspace("b", &["x", "y", "z"])}))
        .asks(2, 1)
        .ruled(2, "deny")
        .seen(2, json!({"outcome": "refused", "content": "refused: no building here"}))
        .said(0, "retry_feedback", "it is red")
        .said(0, "answer", "the old one")
        .looked("b")
        .reply(1, 200)
        .asks(3, 0)
        .seen(3, json!({"content": "done", "workspace": workspace("c", &["x"])}));
    check(
        &log,
        &[
            summary(
                1,
                7,
                json!({"batch": {"index": 0, "size": 3}, "permission": {"decision": "allow", "rule": "user:make"},
                    "outcome": "failed", "exitCode": 2, "durationMs": 7, "output": "\n  no rule\nstop\n", "evidence": "no rule",
                    "error": {"type": "exit_code", "message": "exited 2"}, "workspaceBefore": digest("a"),
                    "workspaceAfter": digest("b"), "changedAnything": true, "changed": ["out.o", "old.o"], "changedTotal": 2,
                    "subcalls": 1, "usage": usage(100)}),
            ),
            summary(
                2,
                10,
                json!({"batch": {"index": 1, "size": 3}, "permission": {"decision": "deny", "rule": "user:make"},
                    "outcome": "refused", "output": "refused: no building here", "evidence": "refused: no building here",
                    "error": {"type": "rule_deny", "message": "no building here"}, "workspaceBefore": digest("b"),
                    "workspaceAfter": digest("b"), "changedAnything": false}),
            ),
            summary(
                3,
                17,
                json!({"outcome": "ok", "output": "done", "evidence": "done", "workspaceBefore": digest("b"),
                    "workspaceAfter": digest("c"), "changedAnything": true, "changed": ["x"], "changedTotal": 1,
                    "usage": usage(200), "userMessagesBefore": [{"kind": "retry_feedback", "text": "it is red"},
                        {"kind": "answer", "text": "the old one"}]}),
            ),
        ],
    );
}

#[test]
fn late_observations_and_what_stands_after_the_last_action_count_for_their_own_action() {
    // The output of a1 is joined at a1 and leaks into nobody else's; its late look says nothing about what a1 changed.
    let log = Log::new()
        .looked("a")
        .asks(1, 0)
        .seen(1, json!({"content": "one", "workspace": workspace("a", &[])}))
        .asks(2, 0)
        .seen(2, json!({"content": "two"}))
        .seen(
            1,
            json!({"outcome": "failed", "content": "late", "workspace": workspace("c", &["x"])}),
        )
        .looked("b");
    check(
        &log,
        &[
            summary(
                1,
                6,
                json!({"outcome": "failed", "output": "one\nlate", "evidence": "one",
                    "error": {"type": "failed", "message": "one"}, "workspaceBefore": digest("a"),
                    "workspaceAfter": digest("a"), "changedAnything": false}),
            ),
            // What was only looked at before the next action, or at the end, still says what the last one changed.
            summary(
                2,
                5,
                json!({"outcome": "ok", "output": "two", "evidence": "two", "workspaceBefore": digest("a"),
                    "workspaceAfter": digest("b"), "changedAnything": true}),
            ),
        ],
    );
}

#[test]
fn a_batch_without_looks_between_its_actions_says_what_is_known_and_no_more() {
    let wrote = json!({"sideEffects": [{"type": "write_file", "relativePath": "x"}]});
    let log = Log::new()
        .looked("a")
        .asks(1, 0)
        .asks(2, 1)
        .asks(3, 2)
        .ended(2, wrote)
        .seen(2, json!({"workspace": workspace("b", &["x"])}))
        .seen(1, json!({"workspace": workspace("b", &[])}))
        .seen(3, json!({"workspace": workspace("c", &["y"])}));
    let batch = |index: u32| json!({"index": index, "size": 3});
    check(
        &log,
        &[
            summary(
                1,
                7,
                json!({"batch": batch(0), "outcome": "ok", "workspaceBefore": digest("a")}),
            ),
            // The tool says itself what it changed.
            summary(
                2,
                5,
                json!({"batch": batch(1), "outcome": "ok", "durationMs": 7, "changedAnything": true, "changed": ["x"],
                    "changedTotal": 1}),
            ),
            summary(
                3,
                8,
                json!({"batch": batch(2), "outcome": "ok", "workspaceAfter": digest("c")}),
            ),
        ],
    );
}

#[test]
fn messages_arguments_and_errors_are_shown_however_odd() {
    let action =
        |args: Value| json!({"tool": "t", "args": args, "call_id": "c", "index": 0, "description": "t"});
    let odd = |index: u32, event: u64, args: Value, more: Value| {
        let mut summary = summary(
            index,
            event,
            json!({"tool": "t", "description": "t", "args": args}),
        );
        merge(&mut summary, more);
        summary
    };
    // A message that names an action is heard all the same; `null` is an argument like any other.
    let log = Log::new()
        .push("action", 1, action(Value::Null))
        .said(1, "answer", "yes")
        .push("action", 2, action(json!([1])))
        .seen(2, json!({"outcome": "failed", "content": "there is no tool `t`\nthe tools are …"}))
        .push("action", 3, action(json!({"text": "x".repeat(300)})))
        .ended(3, json!({"outcome": "timeout", "error": {"type": "timeout", "message": "killed"}}))
        .push("action", 4, action(json!(vec!["y".repeat(200); 9])))
        .push(
            "tool.execute.finished",
            4,
            json!({"healed": true, "end_ts": "2026-11-30T12:00:00.000000000Z", "error": {"type": "process_killed"}}),
        )
        .push("action", 5, action(json!({})))
        .push(
            "tool.execute.finished",
            5,
            json!({"healed": true, "end_ts": "2026-11-30T12:00:00.000000000Z", "error": {"type": "suspended"}}),
        );
    let cut = format!("{} [84 bytes omitted]", "x".repeat(216));
    let text = json!(vec!["y".repeat(200); 9]).to_string();
    let long = format!("{} [{} bytes omitted]", &text[..984], text.len() - 984);
    check(
        &log,
        &[
            odd(1, 1, Value::Null, json!({})),
            odd(
                2,
                4,
                json!([1]),
                json!({"outcome": "failed", "output": "there is no tool `t`\nthe tools are …",
                    "evidence": "there is no tool `t`", "error": {"type": "failed", "message": "there is no tool `t`"},
                    "userMessagesBefore": [{"kind": "answer", "text": "yes"}]}),
            ),
            odd(
                3,
                6,
                json!({ "text": cut }),
                json!({"outcome": "timeout", "durationMs": 7, "error": {"type": "timeout", "message": "killed"}}),
            ),
            odd(
                4,
                8,
                json!(long),
                json!({"outcome": "unknown", "error": {"type": "process_killed"}}),
            ),
            odd(5, 9, json!({}), json!({})),
        ],
    );
}

#[test]
fn what_stands_before_its_action_or_names_none_is_neither_lost_nor_given_away() {
    let log = Log::new()
        .seen(
            1,
            json!({"content": "early", "workspace": workspace("a", &["x"])}),
        )
        .asks(1, 0)
        .seen(9, json!({"content": "nobody's"}))
        .ended(9, json!({}))
        .asks(1, 0)
        .seen(1, json!({"content": "again"}));
    let mut second = summary(
        2,
        6,
        json!({"outcome": "ok", "output": "again", "evidence": "again"}),
    );
    second["action"] = json!("a1");
    check(
        &log,
        &[
            summary(
                1,
                1,
                json!({"outcome": "ok", "output": "early", "evidence": "early", "workspaceBefore": digest("a")}),
            ),
            second,
        ],
    );
    let problems = kept(&log.0.events, Keep::All).problems;
    let wanted = [
        StepProblem::UnknownAction {
            seq: Seq(3),
            action: ActionId(9),
        },
        StepProblem::RepeatedAction {
            seq: Seq(5),
            action: ActionId(1),
        },
    ];
    assert_eq!(problems, wanted);
}

fn kept(events: &[Event], keep: Keep) -> Summarised {
    let mut summaries = Summaries::new(keep);
    for event in events {
        summaries.push(event);
    }
    summaries.finish()
}

#[test]
fn a_summary_is_small_whatever_the_log_holds() {
    let long = "z".repeat(4000);
    let log = Log::new()
        .said(0, "retry_feedback", &long)
        .push(
            "action",
            1,
            json!({"tool": long, "args": {"a": long, "b": [long, long, long, long, long]}, "call_id": "c", "index": 0,
                "description": long}),
        )
        .ended(
            1,
            json!({"outcome": "failed", "output": long, "error": {"type": long, "message": long},
                "sideEffects": vec![json!({"type": "write_file", "relativePath": "f"}); 400]}),
        )
        .seen(1, json!({"outcome": "failed", "content": long}));
    let text = log.summaries()[0].to_string();
    assert!(text.len() < 4096, "{}", text.len());
    assert_eq!(log.summaries()[0]["changedTotal"], 400);
}

proptest! {
    #[test]
    fn the_ends_of_a_log_are_the_ends_of_all_its_summaries(
        words in prop::collection::vec(("[arlmes]", 1..12_u64), 0..60), first in 0..4_usize, last in 0..4_usize
    ) {
        let mut log = Log::new();
        for (word, action) in words {
            log = match word.as_str() {
                "a" => log.asks(action, 0),
                "r" => log.seen(action, json!({"content": "r"})),
                "l" => log.looked("a"),
                "m" => log.reply(2, action),
                "e" => log.ended(action, json!({})),
                _ => log.said(0, "answer", "s"),
            };
        }
        let all = kept(&log.0.events, Keep::All);
        let ends = kept(&log.0.events, Keep::Ends { first, last });
        let shown = |index: usize| index < first || index + last >= all.total;
        let wanted: Vec<_> = all.steps.iter().enumerate().filter(|(at, _)| shown(*at)).map(|(_, step)| step.clone()).collect();
        prop_assert_eq!(ends.steps, wanted);
        prop_assert_eq!((ends.total, ends.problems), (all.steps.len(), all.problems));
    }
}
