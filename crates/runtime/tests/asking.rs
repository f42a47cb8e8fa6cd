//! Questions: the run stops at them with everything durable, and another process goes on with the answer, however much later.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test stops at the first surprise and picks the facts that it is about"
)]

mod rig;

use rig::{Rig, answer, calls, names, pytest};
use serde_json::{Value, json};
use tracegate::{
    asking::{Answering, User},
    resume::{Answer, Changes, ResumeError},
    session::Ending,
};
use tracegate_core::{
    event::Event,
    fact::{
        Data as _, Fact,
        gate::PermissionReviewFinished,
        run::OnAsk,
        tool::{Observation, Outcome},
        user::{MessageKind, Permission, UserMessage},
    },
    ids::QuestionId,
    stop::StopReason,
};

/// A workspace in which every write has to be asked for, and a run that is suspended by that.
fn careful() -> Rig {
    let mut rig = Rig::new();
    let text = "version = 1\n[defaults]\nread = \"allow\"\nwrite = \"ask\"\n\
                [[rule]]\nid = \"tests\"\neffect = \"allow\"\ncommand = [\"pytest **\"]\n";
    rig.policy = rig::policy(text);
    rig.config.settings.on_ask = OnAsk::Suspend;
    rig.config.goal = "Look after the files".to_owned();
    rig
}

fn write(path: &str) -> (&'static str, Value) {
    ("write_text", json!({"path": path, "content": "new"}))
}

fn ask(question: &str) -> (&'static str, Value) {
    ("ask_user", json!({ "question": question }))
}

fn say(question: u64, answer: Answer) -> Changes {
    Changes {
        answer: Some((QuestionId(question), answer)),
        ..Changes::default()
    }
}

fn allow(question: u64) -> Changes {
    say(question, Answer::Permission(Permission::Allow))
}

fn deny(question: u64) -> Changes {
    say(question, Answer::Permission(Permission::Deny))
}

fn words(question: u64, text: &str) -> Changes {
    say(question, Answer::Text(text.to_owned()))
}

fn ended(ending: &Ending) -> (StopReason, &str) {
    (ending.stop_reason, ending.evidence.as_str())
}

/// What became of each action, in the order of the log.
fn outcomes(events: &[Event]) -> Vec<(u64, Outcome)> {
    events
        .iter()
        .filter_map(|event| Some((event.action?.0, Observation::of(&event.fact)?.outcome?)))
        .collect()
}

#[test]
fn what_the_policy_asks_about_happens_after_a_yes_from_another_process() {
    let rig = careful();
    let cassette = [calls(&[write("a.txt"), pytest()]), answer("Written.")].concat();
    let ending = rig.run(&cassette);
    assert_eq!(
        ended(&ending),
        (StopReason::WaitingForUser, "the run waits for an answer to q1")
    );
    assert_eq!(rig.read("a.txt"), None);
    // What the reply asks for after it is not done: the answer may change what the agent wants.
    assert_eq!(outcomes(&rig.events()), [(2, Outcome::NotRun)]);
    let ending = rig.resume(&cassette, &allow(1)).unwrap();
    assert_eq!(ending.stop_reason, StopReason::Completed);
    assert_eq!(rig.read("a.txt").as_deref(), Some("new"));
    assert_eq!(outcomes(&rig.events()), [(2, Outcome::NotRun), (1, Outcome::Ok)]);
    let events = rig.events();
    let reviews: Vec<_> = events
        .iter()
        .filter(|event| event.action.is_some_and(|action| action.0 == 1))
        .filter_map(|event| PermissionReviewFinished::of(&event.fact))
        .map(|review| {
            (
                review.decision.to_string(),
                review.reason_code.clone(),
                review.approver.clone(),
            )
        })
        .collect();
    let row = |verb: &str, code: &str, who: Option<&str>| {
        (verb.to_owned(), code.to_owned(), who.map(str::to_owned))
    };
    assert_eq!(
        reviews,
        [
            row("ask", "class_default", None),
            row("allow", "ask_granted", Some("user"))
        ]
    );
}

#[test]
fn a_no_is_told_to_the_model_and_nothing_happens() {
    let rig = careful();
    let cassette = [calls(&[write("a.txt")]), answer("Not written.")].concat();
    rig.run(&cassette);
    let ending = rig.resume(&cassette, &deny(1)).unwrap();
    assert_eq!(ending.stop_reason, StopReason::Completed);
    assert_eq!(rig.read("a.txt"), None);
    let events = rig.events();
    assert_eq!(outcomes(&events), [(1, Outcome::Refused)]);
    let told = events
        .iter()
        .filter_map(|event| Observation::of(&event.fact)?.content.as_ref())
        .map(tracegate_core::payload::Payload::preview)
        .collect::<Vec<_>>()
        .join("\n");
    assert!(told.contains("a person said no"), "{told}");
}

#[test]
fn several_questions_of_one_reply_are_open_at_once_and_answered_in_any_order() {
    let rig = careful();
    let cassette = [
        calls(&[write("a.txt"), ask("Which colour?"), write("b.txt"), pytest()]),
        answer("Done."),
    ]
    .concat();
    let waits = |ending: Ending, questions: &str| {
        let why = format!("the run waits for an answer to {questions}");
        assert_eq!(ended(&ending), (StopReason::WaitingForUser, why.as_str()));
        assert_eq!(
            rig.state().model_calls,
            1,
            "the model is not asked before everything is answered"
        );
    };
    waits(rig.run(&cassette), "q1 and q2 and q3");
    waits(rig.resume(&cassette, &deny(3)).unwrap(), "q1 and q2");
    waits(rig.resume(&cassette, &words(2, "blue")).unwrap(), "q1");
    let ending = rig.resume(&cassette, &allow(1)).unwrap();
    assert_eq!(ending.stop_reason, StopReason::Completed);
    assert_eq!(
        (rig.read("a.txt").as_deref(), rig.read("b.txt")),
        (Some("new"), None)
    );
    assert_eq!(
        outcomes(&rig.events()),
        [
            (4, Outcome::NotRun),
            (1, Outcome::Ok),
            (2, Outcome::Ok),
            (3, Outcome::Refused)
        ]
    );
}

#[test]
fn an_answer_that_fits_no_open_question_is_refused_and_changes_nothing() {
    let rig = careful();
    let cassette = [calls(&[write("a.txt"), ask("Which?")]), answer("Done.")].concat();
    rig.run(&cassette);
    let check = |changes: &Changes, wanted: &str| {
        let before = rig.log_bytes();
        assert_eq!(rig.resume(&cassette, changes).unwrap_err().to_string(), wanted);
        assert_eq!(rig.log_bytes(), before);
    };
    check(
        &words(1, "yes"),
        "question q1 asks for a permission: it is answered by allow or deny, not by words",
    );
    check(&allow(2), "question q2 asks for words, not for a permission");
    check(
        &words(3, "x"),
        "question q3 is not open: it was answered already, or never asked",
    );
    check(&Changes::default(), "the run waits for an answer to q1");
    rig.resume(&cassette, &words(2, "this one")).unwrap();
    check(
        &words(2, "that one"),
        "question q2 is not open: it was answered already, or never asked",
    );
}

#[test]
fn what_holds_a_secret_cannot_wait_for_an_answer() {
    let rig = careful();
    let token = format!("gh{}_{}", 'p', "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
    let secret = ("write_text", json!({"path": "a.txt", "content": token}));
    let ending = rig.run(&[calls(&[secret]), answer("Not written.")].concat());
    assert_eq!(ending.stop_reason, StopReason::Completed);
    assert_eq!(outcomes(&rig.events()), [(1, Outcome::Refused)]);
    let codes: Vec<String> = rig
        .events()
        .iter()
        .filter_map(|event| Some(PermissionReviewFinished::of(&event.fact)?.reason_code.clone()))
        .collect();
    assert_eq!(codes, ["args_redacted"]);
}

/// Somebody at a terminal who says the same to everything; nothing, if that is nothing.
#[derive(Debug)]
struct Says(Option<&'static str>);

impl User for Says {
    fn ask<'a>(&'a self, _question: &'a str) -> Answering<'a> {
        Box::pin(std::future::ready(self.0.map(str::to_owned)))
    }

    fn permit<'a>(&'a self, question: &'a str) -> Answering<'a> {
        self.ask(question)
    }
}

#[test]
fn somebody_at_the_terminal_is_asked_in_place_and_the_log_says_the_same_as_if_they_had_been_waited_for() {
    let cassette = [calls(&[write("a.txt")]), calls(&[ask("Which?")]), answer("Done.")].concat();
    let mut here = careful();
    here.config.settings.on_ask = OnAsk::Terminal;
    here.user = Some(Box::new(Says(Some("allow"))));
    assert_eq!(here.run(&cassette).stop_reason, StopReason::Completed);
    let away = careful();
    away.run(&cassette);
    away.resume(&cassette, &allow(1)).unwrap();
    away.resume(&cassette, &words(2, "allow")).unwrap();
    let said = |rig: &Rig| {
        let of_asking = |event: &&Event| {
            matches!(
                event.fact,
                Fact::UserQuestion(_) | Fact::UserMessage(_) | Fact::Observation(_)
            ) && !matches!(&event.fact, Fact::Observation(data) if data.outcome.is_none())
        };
        let events: Vec<Event> = rig.events().iter().filter(of_asking).cloned().collect();
        names(&events)
    };
    assert_eq!(said(&here), said(&away));
    assert_eq!(here.state().segment.0, 1);
    assert_eq!(here.read("a.txt").as_deref(), Some("new"));
}

#[test]
fn somebody_who_goes_away_has_said_neither_yes_nor_no_and_is_waited_for() {
    let mut rig = careful();
    rig.config.settings.on_ask = OnAsk::Terminal;
    rig.user = Some(Box::new(Says(None)));
    let ending = rig.run(&[calls(&[write("a.txt"), ask("Which?")]), answer("Done.")].concat());
    assert_eq!(
        ended(&ending),
        (
            StopReason::WaitingForUser,
            "the run waits for an answer to q1 and q2"
        )
    );
    assert_eq!(outcomes(&rig.events()), []);
}

#[test]
fn nobody_at_the_terminal_is_a_refusal_at_once() {
    for on_ask in [OnAsk::Terminal, OnAsk::Deny] {
        let mut rig = careful();
        rig.config.settings.on_ask = on_ask;
        let ending = rig.run(&[calls(&[write("a.txt")]), answer("Not written.")].concat());
        assert_eq!(ending.stop_reason, StopReason::Completed);
        assert_eq!(outcomes(&rig.events()), [(1, Outcome::Refused)]);
        assert_eq!(rig.state().questions, 0);
    }
}

#[test]
fn an_answer_is_labelled_as_the_users_and_reaches_the_model_as_the_result_of_the_question() {
    let rig = careful();
    let cassette = [calls(&[ask("Which colour?")]), answer("Blue, then.")].concat();
    rig.run(&cassette);
    rig.resume(&cassette, &words(1, "blue")).unwrap();
    let events = rig.events();
    let message = events
        .iter()
        .filter_map(|event| UserMessage::of(&event.fact))
        .find(|message| message.kind == MessageKind::Answer)
        .unwrap();
    assert_eq!(
        (message.question, message.content.preview().as_str()),
        (Some(QuestionId(1)), "blue")
    );
    let requests = tracegate::conversation::rebuild(&events, rig.store.artifacts()).unwrap();
    let result = &requests[1][3];
    assert_eq!(
        (result.action.map(|action| action.0), result.content.as_str()),
        (Some(1), "The user answers: blue")
    );
}

#[test]
fn a_run_that_waits_costs_no_time_and_a_changed_policy_is_refused_before_the_answer_is_taken() {
    let mut rig = careful();
    rig.config.limits.max_ms = Some(2_000);
    let cassette = [
        calls(&[ask("Which?")]),
        calls(&[("list_files", json!({}))]),
        answer("Done."),
    ]
    .concat();
    rig.run(&cassette);
    rig.config.policy.digest = tracegate_core::ids::Digest::of(b"another one");
    let refused = rig.resume(&cassette, &words(1, "this")).unwrap_err();
    assert!(matches!(refused, ResumeError::PolicyChanged { .. }), "{refused}");
    let accepted = Changes {
        accept: true,
        ..words(1, "this")
    };
    // A day has passed, of which nobody worked on the run more than moments.
    assert_eq!(
        rig.resume(&cassette, &accepted).unwrap().stop_reason,
        StopReason::Completed
    );
    assert!(rig.state().elapsed_ms() < 2_000, "{}", rig.state().elapsed_ms());
}

/// Somebody at a terminal who stops the run instead of answering.
#[derive(Debug)]
struct Stops(std::sync::Arc<tokio::sync::Notify>);

impl User for Stops {
    fn ask<'a>(&'a self, _question: &'a str) -> Answering<'a> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }

    fn permit<'a>(&'a self, question: &'a str) -> Answering<'a> {
        self.ask(question)
    }
}

#[test]
fn a_run_that_is_stopped_instead_of_answered_takes_its_question_back_and_can_go_on() {
    for call in [ask("Which?"), write("a.txt")] {
        let mut rig = careful();
        rig.config.settings.on_ask = OnAsk::Terminal;
        rig.user = Some(Box::new(Stops(rig.cancel.clone())));
        let cassette = [calls(&[call]), answer("Done.")].concat();
        assert_eq!(rig.run(&cassette).stop_reason, StopReason::Cancelled);
        assert!(rig.state().open_questions.is_empty());
        assert_eq!(outcomes(&rig.events()), [(1, Outcome::NotRun)]);
        let refused = rig.resume(&cassette, &words(1, "this")).unwrap_err();
        assert!(matches!(refused, ResumeError::NotOpen(_)), "{refused}");
        assert_eq!(
            rig.resume(&cassette, &Changes::default()).unwrap().stop_reason,
            StopReason::Completed
        );
    }
}
