//! A gate that breaks makes the ruling stricter: the action is denied, nothing more is done, and the run says that it was the gate.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise, and rules that break are what is tested"
)]

mod rig;

use rig::{Rig, answer, calls};
use serde_json::json;
use tracegate::{
    agent::{Parts, drive},
    gate::Rules,
    model::scripted::ScriptedModel,
};
use tracegate_core::{
    fact::{
        Data as _,
        gate::{PermissionReviewFinished, Verb},
        tool::ToolExecuteStarted,
    },
    stop::StopReason,
};
use tracegate_policy::{Decision, PolicyLimits, Request};

/// Rules with a defect.
#[derive(Debug)]
struct Broken<'a>(&'a PolicyLimits);

impl Rules for Broken<'_> {
    fn decide(&self, request: &Request) -> Decision {
        panic!("no rule for {}", request.tool)
    }

    fn limits(&self) -> &PolicyLimits {
        self.0
    }
}

#[test]
fn a_gate_that_breaks_denies_and_ends_the_run_as_gate_failed() {
    let rig = Rig::new();
    rig.write("a.txt", "old");
    let script = [
        calls(&[
            ("write_text", json!({"path": "a.txt", "content": "new"})),
            ("read_file", json!({"path": "a.txt"})),
        ]),
        answer("done"),
    ]
    .concat();
    let model = ScriptedModel::parse("cassette.jsonl", &script).unwrap();
    let session = rig.start(&model).unwrap();
    let rules = Broken(rig.policy.limits());
    let parts = Parts {
        model: &model,
        user: None,
        policy: &rules,
        cancel: &rig.cancel,
    };
    let ending = rig::block_on(drive(session, &parts)).unwrap();
    assert_eq!(ending.stop_reason, StopReason::GateFailed);
    assert_eq!(rig.read("a.txt").as_deref(), Some("old"));
    let events = rig.events();
    assert!(
        events
            .iter()
            .all(|event| ToolExecuteStarted::of(&event.fact).is_none())
    );
    let review = events
        .iter()
        .find_map(|event| PermissionReviewFinished::of(&event.fact))
        .unwrap();
    let kind = review.error.as_ref().map(|error| error.kind.as_str());
    assert_eq!(
        (review.decision, review.reason_code.as_str(), kind),
        (Verb::Deny, "gate_failed", Some("gate_failed"))
    );
    assert!(rig.state().open_spans.is_empty());
}
