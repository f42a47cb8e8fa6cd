//! A recorded run as Fara's directory, read back as Fara does: the same steps, nothing lost, and nothing written over.

use crate::e2e::{
    place::{Place, QUESTION, acts, answers, call},
    record::Record,
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::Path};
use tracegate_adapters::fara::{
    Directory, read,
    schema::{
        Action, ComputerObservation, DataPoint, Event as Line, Observation, SolverStatus, UserMessageType,
    },
};
use tracegate_core::{
    event::Event,
    fact::{Data as _, Fact, tool, user::UserMessage},
    ids::{ActionId, Chain, EventId, RunId, SegmentNo, Seq, Timestamp},
    steps::{ActionStep, Reading, action_steps},
};

/// Reads a directory back, strictly; `data_point.json` must say the same as the parts.
#[track_caller]
fn read_back(dir: &Path) -> DataPoint {
    let text = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let wanted = [
        "data_point.json",
        "metadata.json",
        "solver_log",
        "task.json",
        "verification.jsonl",
    ];
    assert_eq!(names, wanted);
    let read = read(&Directory {
        task: &text("task.json"),
        metadata: &text("metadata.json"),
        events: &text("solver_log/events.jsonl"),
        status: &text("solver_log/status.json"),
        verification: &text("verification.jsonl"),
    })
    .unwrap();
    let whole: DataPoint = serde_json::from_str(&text("data_point.json")).unwrap();
    assert_eq!(whole, read);
    read
}

/// A step as Fara rebuilds it; observations by their place among the events.
#[derive(Debug, Default)]
struct Step<'a> {
    action: Option<&'a Action>,
    pre: Vec<usize>,
    pre_late: Vec<usize>,
    post: Vec<usize>,
    post_late: Vec<usize>,
}

fn about(seen: &Observation) -> (Option<&str>, &serde_json::Map<String, Value>) {
    let (action, metadata) = match seen {
        Observation::Environment(seen) => (&seen.action_id, &seen.metadata),
        Observation::ToolOutput(seen) => (&seen.action_id, &seen.metadata),
        Observation::UserMessage(seen) => (&seen.action_id, &seen.metadata),
    };
    (action.as_deref(), metadata)
}

/// Fara's three passes: one over the events, one over the observations that name an action; the third only links steps.
fn steps_of(events: &[Line]) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let (mut pre, mut post) = (Vec::new(), Vec::new());
    for (at, event) in events.iter().enumerate() {
        match event {
            Line::Action(action) => steps.push(Step {
                action: Some(action),
                pre: std::mem::take(&mut pre),
                ..Step::default()
            }),
            Line::Observation(seen) => match about(seen).0 {
                None => pre.push(at),
                Some(action) => post.push((at, action, steps.len())),
            },
        }
    }
    if !pre.is_empty() {
        steps.push(Step {
            pre,
            ..Step::default()
        });
    }
    let owner: BTreeMap<&str, usize> = steps
        .iter()
        .enumerate()
        .filter_map(|(at, step)| Some((step.action?.id.as_deref()?, at)))
        .collect();
    for (at, action, seen_at) in post {
        let own = owner[action];
        steps[own].post.push(at);
        if seen_at > own + 1 {
            steps[own].post_late.push(at);
            if let Some(step) = steps.get_mut(seen_at) {
                step.pre_late.push(at);
            }
        }
    }
    steps
}

/// Our events among Fara's: what was inserted goes, so do the second halves of observations, and the task, which our steps leave out.
fn ours(events: &[Line], places: &[usize]) -> Vec<Seq> {
    let seqs = places.iter().filter_map(|at| {
        let Line::Observation(seen) = &events[*at] else {
            panic!("{at} is no observation");
        };
        let about = &about(seen).1["tracegate"];
        let task =
            matches!(&**seen, Observation::UserMessage(said) if said.message_type == UserMessageType::Task);
        (!task && about.get("part").is_none())
            .then(|| about.get("seq").and_then(Value::as_u64))
            .flatten()
    });
    seqs.map(Seq).collect()
}

/// Checks that Fara rebuilds the steps that we do.
#[track_caller]
fn same_steps(read: &DataPoint, events: &[Event]) {
    let lines = &read.solver_log.events;
    let places = |places: &[usize]| ours(lines, places);
    let found: Vec<_> = steps_of(lines)
        .iter()
        .map(|step| {
            let action = step.action.map(|action| {
                let id: ActionId = action.id.as_deref().unwrap().parse().unwrap();
                (id, action.tool_sub_calls.len())
            });
            let (pre, pre_late) = (places(&step.pre), places(&step.pre_late));
            (action, pre, pre_late, places(&step.post), places(&step.post_late))
        })
        .filter(|(action, pre, ..)| action.is_some() || !pre.is_empty())
        .collect();
    let wanted: Vec<_> = action_steps(events, Reading::Strict)
        .unwrap()
        .steps
        .iter()
        .map(|step: &ActionStep| {
            let action = step.action.map(|(id, _)| (id, step.subcalls.len()));
            let (pre, pre_late) = (step.before.to_vec(), step.late_before.to_vec());
            (action, pre, pre_late, step.after.to_vec(), step.late.to_vec())
        })
        .collect();
    assert!(!wanted.is_empty());
    assert_eq!(found, wanted);
}

fn actions(read: &DataPoint) -> Vec<&Action> {
    let events = read.solver_log.events.iter();
    events
        .filter_map(|event| match event {
            Line::Action(action) => Some(&**action),
            Line::Observation(_) => None,
        })
        .collect()
}

/// Output and error of the observations that say how an action ended.
fn outputs(read: &DataPoint) -> Vec<(&str, &str)> {
    let events = read.solver_log.events.iter();
    events
        .filter_map(|event| match event {
            Line::Observation(seen) => match &**seen {
                Observation::ToolOutput(output) => Some((output.output.as_str(), output.error.as_str())),
                Observation::Environment(_) | Observation::UserMessage(_) => None,
            },
            Line::Action(_) => None,
        })
        .collect()
}

#[track_caller]
fn export(place: &Place, run: &str, name: &str) -> DataPoint {
    let dir = place.path(name);
    let said = place.tracegate(&["export", run, "--to", "fara", "-o", dir.to_str().unwrap()]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stdout.contains(" actions and "), "{said:?}");
    read_back(&dir)
}

/// A run with calls of one reply, a long and an odd text, a refusal, a question and its answer.
fn recorded(place: &Place) -> (DataPoint, Record) {
    place.file("笔记.txt", "别忘了牛奶\n");
    place.file("long.txt", "line of a long file\n".repeat(1000));
    let long = "y".repeat(9000);
    let replies = [
        json!({ "reply": { "text": "先看笔记。", "reasoning": "两个文件", "usage": {"input": 90, "output": 7, "reasoning": 3, "cache_read": 10},
            "tool_calls": [call("read_file", json!({ "path": "笔记.txt" })), call("read_file", json!({ "path": "long.txt" })),
                call("write_text", json!({ "path": "out.txt", "content": long }))] } }),
        acts([
            call("write_text", json!({ "path": ".env", "content": "A=1" })),
            call("read_file", Value::Null),
            call("list_files", json!({ "other": vec![&long; 3] })),
        ]),
        acts([call("ask_user", json!({ "question": "Which notes?" }))]),
        answers("牛奶"),
    ];
    place.recorded(QUESTION, &replies, &[], 14);
    let waiting = export(place, "@last", "waiting");
    assert_eq!(waiting.solver_log.status, SolverStatus::WaitingForUser);
    assert_eq!(waiting.solver_log.outcome, None);
    let record = Record::prefix(place.store(), place.store().runs().unwrap().remove(0));
    same_steps(&waiting, &record.events);
    let said = place.tracegate(&["answer", "@last", "新的 notes"]);
    assert_eq!(said.code, 0, "{said:?}");
    (export(place, "@last", "done"), place.last())
}

#[test]
fn a_run_reads_back_from_faras_directory_with_the_same_steps_and_whole_texts() {
    let place = Place::new();
    let (read, record) = recorded(&place);
    same_steps(&read, &record.events);
    assert_eq!(read.task.task_id, record.dir.id().as_str());
    assert_eq!(read.task.instruction, QUESTION);
    assert_eq!(read.metadata.run_id.as_deref(), Some(record.dir.id().as_str()));
    assert_eq!(read.solver_log.status, SolverStatus::Complete);
    assert_eq!(read.solver_log.outcome.as_ref().unwrap().answer, "牛奶");
    let gate = &read.verification["tracegate.validation_gate"];
    assert_eq!((gate.result_type.as_str(), read.verification.len()), ("base", 1));
    // Every action, whole: arguments that lie in artifacts, `null` as no arguments.
    let long = "y".repeat(9000);
    let actions = actions(&read);
    let contents: Vec<Value> = actions
        .iter()
        .map(|action| json!([action.content["action"], action.content["arguments"]]))
        .collect();
    let wanted = [
        json!(["read_file", { "path": "笔记.txt" }]),
        json!(["read_file", { "path": "long.txt" }]),
        json!(["write_text", { "path": "out.txt", "content": long }]),
        json!(["write_text", { "path": ".env", "content": "A=1" }]),
        json!(["read_file", {}]),
        json!(["list_files", { "other": vec![&long; 3] }]),
        json!(["ask_user", { "question": "Which notes?" }]),
    ];
    assert_eq!(contents, wanted);
    let state = &actions[0].agent_state;
    assert_eq!(state.agent, "tracegate");
    assert!(
        state.tools_available.contains(&"ask_user".to_owned()),
        "{state:?}"
    );
    assert_eq!(state.facts[0], "in view: notes.txt (full)");
    // The reply stands on the first of its actions, whole, and nowhere else.
    let said: Vec<usize> = actions
        .iter()
        .map(|action| action.llm_conversation.messages.len())
        .collect();
    assert_eq!(said, [1, 0, 0, 1, 0, 0, 1]);
    let message = &actions[0].llm_conversation.messages[0];
    assert!(message.raw_response.contains("先看笔记。"), "{message:?}");
    let usage = (
        message.usage.prompt_tokens,
        message.usage.completion_tokens,
        message.usage.reasoning_tokens,
    );
    assert_eq!((message.reasoning.as_str(), usage), ("两个文件", (100, 10, 3)));
    assert_eq!(actions[0].action_nl_description, "先看笔记。\nread_file 笔记.txt");
    let loose = &read.metadata.stats["tracegate"]["replies_without_action"];
    assert!(
        loose[0]["message"]["raw_response"]
            .as_str()
            .unwrap()
            .contains("牛奶")
    );
    // Every result, whole, and why it is none.
    let outputs = outputs(&read);
    let whole: Vec<String> = record.actions().iter().map(|came| came.text.clone()).collect();
    assert_eq!(
        outputs.iter().map(|(output, _)| *output).collect::<Vec<_>>(),
        whole
    );
    assert_eq!((outputs[0].0, outputs[1].0.len()), ("别忘了牛奶\n", 20_000));
    assert!(outputs[3].1.starts_with("refused by floor"), "{}", outputs[3].1);
    assert_eq!((outputs[0].1, outputs[4].1), ("", "failed"));
    assert_eq!(actions[4].content["other_state"]["previous_error"], outputs[3].1);
    let messages: Vec<_> = read
        .solver_log
        .events
        .iter()
        .filter_map(|event| match event {
            Line::Observation(seen) => match &**seen {
                Observation::UserMessage(said) => Some((
                    said.message_type,
                    said.content.as_str(),
                    said.action_id.as_deref(),
                )),
                Observation::Environment(_) | Observation::ToolOutput(_) => None,
            },
            Line::Action(_) => None,
        })
        .collect();
    let wanted = [
        (UserMessageType::Task, QUESTION, None),
        (UserMessageType::CriticalPointResponse, "新的 notes", None),
    ];
    assert_eq!(messages, wanted);
    // The state of the workspace after an action stands beside its output.
    let after = read.solver_log.events.iter().find_map(|event| match event {
        Line::Observation(seen) => match &**seen {
            Observation::Environment(seen) if seen.action_id.as_deref() == Some("a3") => Some(seen),
            Observation::Environment(_) | Observation::ToolOutput(_) | Observation::UserMessage(_) => None,
        },
        Line::Action(_) => None,
    });
    let ComputerObservation { page_info, .. } = after.unwrap();
    assert!(page_info.ends_with("\nchanged: out.txt"), "{page_info}");
}

/// Writes a log of another writer into the store: like `record`'s, but two calls of a reply follow each other, a result comes late,
/// a call stands inside an action, and verifiers of confusing names have spoken.
fn foreign(place: &Place, record: &Record) -> (RunId, Vec<Event>) {
    let id: RunId = "run_foreign_20261130_00000001".parse().unwrap();
    let fact = |name: &str, data: Value| {
        Fact::from_json(name, &serde_json::value::to_raw_value(&data).unwrap()).unwrap()
    };
    let mut facts: Vec<(Option<ActionId>, Fact)> = Vec::new();
    let mut late = Vec::new();
    for event in &record.events {
        let result = tool::Observation::of(&event.fact).is_some() && event.action == Some(ActionId(1));
        if result {
            late.push((event.action, event.fact.clone()));
            continue;
        }
        facts.push((event.action, event.fact.clone()));
        if tool::Action::of(&event.fact).is_some() && event.action == Some(ActionId(2)) {
            let call = json!({"tool": "读者", "request": "what is it?", "reply": "ein Text", "usage": {"input": 5, "output": 2},
                "extra": {"depth": 1}});
            facts.push((event.action, fact("subcall", call)));
        }
        if event.action == Some(ActionId(3)) && tool::Observation::of(&event.fact).is_some() {
            facts.append(&mut late);
        }
        if UserMessage::of(&event.fact).is_some() && facts.len() > 10 {
            let state = json!({"kind": "external", "phase": "notice", "content": "the clock struck"});
            facts.push((None, fact("observation", state)));
        }
    }
    for (verifier, instance, passed) in [
        ("judge", 0, Some(true)),
        ("judge_1", 0, Some(false)),
        ("judge", 1, None),
        ("judge", 1, Some(true)),
    ] {
        let result =
            json!({"verifier": verifier, "instance": instance, "passed": passed, "reasoning": "seen"});
        facts.push((None, fact("verification.recorded", result)));
    }
    let dir = place.store().create_run(&id).unwrap();
    let (mut chain, mut text, mut events) = (Chain::genesis(&id), String::new(), Vec::new());
    for ((action, fact), seq) in facts.into_iter().zip(1..) {
        let ts = Timestamp(1_796_000_000_000_000_000 + seq);
        let mut event = Event::new(&id, Seq(seq), SegmentNo(1), ts, seq, fact);
        event.id = EventId::derive(&id, Seq(seq));
        event.action = action;
        let (line, next) = event.to_line(chain).unwrap();
        chain = next;
        text.push_str(&line);
        events.push(event);
    }
    fs::write(dir.events(), text).unwrap();
    (id, events)
}

#[test]
fn late_results_calls_in_a_row_and_calls_inside_actions_of_a_foreign_log_are_kept_apart() {
    let place = Place::new();
    let (_, record) = recorded(&place);
    let (id, events) = foreign(&place, &record);
    let read = export(&place, id.as_str(), "foreign");
    same_steps(&read, &events);
    let late: usize = action_steps(&events, Reading::Strict)
        .unwrap()
        .steps
        .iter()
        .map(|step| step.late.len())
        .sum();
    assert_eq!(late, 1, "the log has a late result");
    // Between a1 and a2 nothing was observed: what Fara needs there is derived and says so.
    assert_eq!(read.metadata.stats["tracegate"]["inserted"], 1);
    let call = &actions(&read)[1].tool_sub_calls[0];
    assert_eq!(
        (call.tool_name.as_str(), call.conversation.messages.len()),
        ("读者", 1)
    );
    assert_eq!(call.conversation.messages[0].raw_response, "ein Text");
    assert_eq!(
        call.extra["tracegate"],
        json!({ "request": "what is it?", "extra": { "depth": 1 } })
    );
    // Results of the same name stand side by side, whatever other verifiers are called.
    let scores: Vec<(&str, Option<f64>)> = read
        .verification
        .iter()
        .map(|(name, result)| (name.as_str(), result.score))
        .collect();
    let wanted = [
        ("judge", Some(1.0)),
        ("judge_1", Some(0.0)),
        ("judge_2", None),
        ("judge_3", Some(1.0)),
        ("tracegate.validation_gate", scores[4].1),
    ];
    assert_eq!(scores, wanted);
}

#[test]
fn an_export_that_cannot_be_done_says_why_and_leaves_nothing_behind() {
    let place = Place::new();
    place.recorded(QUESTION, &[answers("milk")], &[], 0);
    let dir = place.path("out");
    let out = dir.to_str().unwrap();
    let usage = "tracegate export @last --to fara -o DIR";
    let check = |args: &[&str], error: &str, help: &str| {
        let all = [&["export"], args, &["--to", "fara"]].concat();
        place.tracegate(&all).refuses(2, error, help);
    };
    check(
        &["@last", "@last", "-o", out],
        "Fara's directory holds one run, not 2",
        usage,
    );
    check(
        &["@last"],
        "Fara's format is a directory: name it with -o DIR",
        usage,
    );
    fs::create_dir(&dir).unwrap();
    let help = "name a directory that does not exist yet with -o DIR";
    check(&["@last", "-o", out], "cannot write `", help);
    fs::remove_dir(&dir).unwrap();
    fs::write(&dir, "mine").unwrap();
    check(&["@last", "-o", out], "it exists already", help);
    assert_eq!(fs::read_to_string(&dir).unwrap(), "mine");
    let absent = place.path("absent/out");
    let said = place.tracegate(&["export", "@last", "--to", "fara", "-o", absent.to_str().unwrap()]);
    said.refuses(1, "cannot write `", "name a new directory below one that exists");
    // An edited log whose events do not fit would read as nonsense, or not at all.
    let (_, mut events) = foreign(&place, &place.last());
    let looked = |event: &Event| tool::Observation::of(&event.fact).is_some();
    let at = events.iter().position(looked).unwrap();
    events[at].action = Some(ActionId(9));
    let run = place
        .store()
        .run(&"run_foreign_20261130_00000001".parse().unwrap())
        .unwrap();
    let (mut chain, mut text) = (Chain::genesis(run.id()), String::new());
    for event in &events {
        let (line, next) = event.to_line(chain).unwrap();
        chain = next;
        text.push_str(&line);
    }
    fs::write(run.events(), text).unwrap();
    let odd = place.tracegate(&[
        "export",
        run.id().as_str(),
        "--to",
        "fara",
        "-o",
        place.path("odd").to_str().unwrap(),
    ]);
    let why = format!("event {} is about action a9, which the log does not hold", at + 1);
    odd.refuses(
        24,
        &why,
        "tracegate show run_foreign_20261130_00000001 --view steps",
    );
    let left: Vec<_> = fs::read_dir(place.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(
        left.iter()
            .all(|name| !name.to_string_lossy().starts_with(".tmp")),
        "{left:?}"
    );
}
