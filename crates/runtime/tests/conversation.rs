//! The log gives back, bit by bit, what the model was asked.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at the first surprise and picks the facts that it is about"
)]
#![expect(clippy::disallowed_methods, reason = "a test damages the store")]

mod rig;

use rig::{Rig, answer, calls, fix, pytest, repair};
use serde_json::json;
use std::fs;
use tracegate::conversation::{ConversationError, Message, rebuild};
use tracegate_core::fact::{
    Fact,
    model::{ModelCompleteStarted, Role},
};

/// Every request as the log gives it back, checked against the digests recorded when they were sent.
fn requests(rig: &Rig) -> Vec<Vec<Message>> {
    let events = rig.events();
    let rebuilt = rebuild(&events, rig.store.artifacts()).unwrap();
    let sent = events
        .iter()
        .filter(|event| matches!(event.fact, Fact::ModelCompleteStarted(_)));
    assert_eq!(rebuilt.len(), sent.count());
    rebuilt
}

#[test]
fn the_log_gives_back_what_the_model_was_asked() {
    let rig = Rig::new();
    rig.write("long.txt", &"a line that is long enough\n".repeat(2000));
    let read = ("read_file", json!({"path": "long.txt"}));
    rig.run(
        &[
            calls(&[read, pytest()]),
            answer("Done."),
            calls(&[fix(), pytest()]),
            answer("Fixed."),
        ]
        .concat(),
    );
    let requests = requests(&rig);
    assert_eq!(requests.len(), 4);
    let roles = |request: &[Message]| request.iter().map(|message| message.role).collect::<Vec<_>>();
    let (system, user, model, tool) = (Role::System, Role::User, Role::Assistant, Role::Tool);
    assert_eq!(roles(&requests[0]), [system, user, user]);
    assert_eq!(roles(&requests[1]), [system, user, model, tool, tool, user]);
    assert_eq!(
        roles(&requests[2]),
        [system, user, model, tool, tool, model, user, user]
    );
    assert!(
        requests[1][3].content.len() > 30_000,
        "the result is whole, from the store"
    );
    assert_eq!(requests[0][1].content, "Fix app.py so that `pytest` passes");
}

#[test]
fn what_was_asked_can_be_given_back_when_secrets_were_in_it() {
    let mut rig = Rig::new();
    let token = format!("gh{}_{}", 'p', "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
    rig.config.goal = format!("Make `pytest` pass with {token}");
    rig.write("keys.py", &format!("KEY = \"{token}\"\n"));
    let rows = [
        ("read_file", json!({"path": "keys.py"})),
        (token.as_str(), json!({})),
        ("read_file", json!({ token.as_str(): 1 })),
        ("read_file", json!({ "path": format!("../{token}") })),
        ("shell", json!({ "command": format!("touch {token}") })),
        ("shell", json!({ "command": format!("pytest {token}") })),
    ];
    rig.run(
        &[
            calls(&rows),
            calls(&[pytest()]),
            answer(&format!("Done with {token}.")),
        ]
        .concat(),
    );
    let requests = requests(&rig);
    for message in requests.iter().flatten() {
        assert!(!message.content.contains(&token), "{}", message.content);
    }
    let log = String::from_utf8(rig.log_bytes()).unwrap();
    assert!(!log.contains(&token));
}

#[test]
fn a_request_that_is_not_as_it_was_sent_is_refused() {
    let rig = Rig::new();
    rig.run(&repair());
    let artifacts = rig.store.artifacts();
    let change = |change: &dyn Fn(&mut ModelCompleteStarted)| {
        let mut events = rig.events();
        let request = events
            .iter_mut()
            .filter_map(|event| match &mut event.fact {
                Fact::ModelCompleteStarted(data) => Some(data),
                _ => None,
            })
            .nth(1)
            .unwrap();
        change(request);
        rebuild(&events, artifacts)
    };
    assert!(change(&|_| {}).is_ok());
    assert!(matches!(
        change(&|data| data.keep += 9),
        Err(ConversationError::Keep { .. })
    ));
    assert!(matches!(
        change(&|data| data.keep -= 1),
        Err(ConversationError::Mismatch { .. })
    ));
    assert!(matches!(
        change(&|data| data.append.swap(0, 1)),
        Err(ConversationError::Mismatch { .. })
    ));
    assert!(matches!(
        change(&|data| data.append[0].calls.clear()),
        Err(ConversationError::Mismatch { .. })
    ));
    // Without its artifacts the log cannot say what was asked.
    fs::remove_dir_all(rig.store.root().join("artifacts")).unwrap();
    assert!(matches!(
        rebuild(&rig.events(), artifacts),
        Err(ConversationError::Artifact { .. })
    ));
}
