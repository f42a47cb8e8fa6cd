//! The corpora of labelled command lines and labelled runs, judged by the real recogniser, reader and gate.
#![expect(
    clippy::disallowed_methods,
    reason = "a test reads its corpus from disk, and TRACEGATE_CORPUS says which"
)]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a corpus that does not parse fails its test, and the scores are printed"
)]

use serde::Deserialize;
use std::path::PathBuf;
use tracegate_core::{
    goal::Goal,
    ids::Seq,
    validation::{
        CommandRun, Ended, Evidence, Outcome, Policy, Scope, TestRun, judge, read_result, recognise,
    },
};

/// Reads a corpus file; `None` if another corpus directory was named and the file is absent there.
fn corpus<T: for<'de> Deserialize<'de>>(file: &str) -> Option<Vec<T>> {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus");
    let named = std::env::var_os("TRACEGATE_CORPUS").map(PathBuf::from);
    let path = named.clone().unwrap_or(own).join(file);
    if named.is_some() && !path.exists() {
        println!("{file}: skipped");
        return None;
    }
    let text = std::fs::read_to_string(&path).unwrap();
    Some(
        text.lines()
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    )
}

#[derive(Deserialize)]
struct CommandCase {
    id: String,
    command: String,
    is_test: bool,
    masks_exit_code: bool,
    scope: Option<Scope>,
}

#[derive(Default)]
struct Score {
    hit: u32,
    false_alarm: u32,
    missed: u32,
}

impl Score {
    fn add(&mut self, wanted: bool, got: bool) {
        match (wanted, got) {
            (true, true) => self.hit += 1,
            (false, true) => self.false_alarm += 1,
            (true, false) => self.missed += 1,
            (false, false) => {}
        }
    }

    fn precision(&self) -> f64 {
        f64::from(self.hit) / f64::from((self.hit + self.false_alarm).max(1))
    }

    fn recall(&self) -> f64 {
        f64::from(self.hit) / f64::from((self.hit + self.missed).max(1))
    }

    fn f1(&self) -> f64 {
        2.0 * self.precision() * self.recall() / (self.precision() + self.recall()).max(f64::EPSILON)
    }
}

#[test]
fn test_commands_are_recognised_with_their_masks_and_scopes() {
    let Some(cases) = corpus::<CommandCase>("test_commands.dev.jsonl") else {
        return;
    };
    let (mut is_test, mut masks) = (Score::default(), Score::default());
    let (mut scopes, mut scoped, mut passed) = (0_u32, 0_u32, 0_u32);
    let mut failed = Vec::new();
    for case in &cases {
        let got = recognise(&case.command);
        is_test.add(case.is_test, got.is_some());
        masks.add(case.masks_exit_code, got.as_ref().is_some_and(|got| got.masked));
        let mut wrong = Vec::new();
        if got.is_some() != case.is_test {
            wrong.push(format!("is_test {}", got.is_some()));
        }
        if got.as_ref().is_some_and(|got| got.masked) != case.masks_exit_code {
            wrong.push(format!("masks {}", !case.masks_exit_code));
        }
        if let Some(scope) = case.scope {
            scoped += 1;
            let same = got.as_ref().map(|got| got.scope) == Some(scope);
            scopes += u32::from(same);
            if !same {
                wrong.push(format!("scope {:?}", got.as_ref().map(|got| got.scope)));
            }
        }
        if wrong.is_empty() {
            passed += 1;
        } else {
            failed.push(format!("{} `{}`: {}", case.id, case.command, wrong.join(", ")));
        }
    }
    println!("test_commands: {passed} passed, {} failed", failed.len());
    failed.iter().for_each(|line| println!("  {line}"));
    let scope = f64::from(scopes) / f64::from(scoped.max(1));
    println!(
        "  is_test P {:.3} R {:.3}; masks F1 {:.3}; scope {scope:.3}",
        is_test.precision(),
        is_test.recall(),
        masks.f1()
    );
    assert!(is_test.precision() >= 0.99 && is_test.recall() >= 0.97, "is_test");
    assert!(masks.f1() >= 0.95, "masks");
    assert!(scope >= 0.90, "scope");
}

#[derive(Deserialize)]
struct RunCase {
    id: String,
    goal: String,
    events: Vec<Event>,
    expected_stop: String,
    reason: String,
    alt_reasons: Vec<String>,
    group: String,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    Read {},
    Write {
        path: String,
    },
    Command(Command),
    CommandStart {
        id: String,
        command: String,
    },
    CommandEnd {
        id: String,
        exit_code: Option<i32>,
        #[serde(default)]
        output: String,
    },
    AskUser {},
    StepLimit {},
    Cancelled {},
    Resume {},
    CheckpointRestore {},
    Final {},
}

#[derive(Deserialize)]
struct Command {
    command: String,
    exit_code: Option<i32>,
    #[serde(default)]
    output: String,
    #[serde(default)]
    changed: Vec<String>,
    #[serde(default)]
    timed_out: bool,
    #[serde(default)]
    denied: bool,
    signal: Option<String>,
}

/// Weakening of tests and runners is judged by a later version of the gate; these groups say so and are not scored here.
const LATER: &[&str] = &[
    "tests_deleted",
    "tests_skipped",
    "assertions_weakened",
    "snapshots_updated",
    "runner_tampered",
    "special_casing",
    "test_count_dropped",
];

struct Fold {
    evidence: Evidence,
    seq: u64,
    open: Vec<(String, String, Seq)>,
}

impl Fold {
    fn next(&mut self) -> Seq {
        self.seq += 1;
        Seq(self.seq)
    }

    fn finished(&mut self, script: &str, started: Seq, ended: Ended, output: &str) {
        let finished = self.next();
        match recognise(script) {
            Some(command) => {
                let reading = read_result(&command, &ended, output);
                self.evidence.test_run(TestRun {
                    started,
                    finished,
                    command,
                    script: script.to_owned(),
                    ended,
                    reading,
                });
            }
            None => self.evidence.command_run(&CommandRun {
                started,
                finished,
                script: script.to_owned(),
                ended,
            }),
        }
    }

    fn command(&mut self, command: &Command) {
        if command.denied {
            return;
        }
        let started = self.next();
        let ended = match (command.timed_out, &command.signal, command.exit_code) {
            (true, _, _) => Ended::TimedOut,
            (false, Some(_), _) => Ended::Signalled(9),
            (false, None, Some(code)) => Ended::Exited(code),
            (false, None, None) => Ended::NotFinished,
        };
        self.finished(&command.command, started, ended, &command.output);
        if !command.changed.is_empty() {
            let at = self.next();
            self.evidence.changed(at, &command.changed);
        }
    }
}

/// Plays the events and returns stop reason and gate reason.
fn play(case: &RunCase) -> (String, String) {
    let goal = Goal::read(&case.goal);
    let mut fold = Fold {
        evidence: Evidence::new(&goal),
        seq: 0,
        open: Vec::new(),
    };
    for event in &case.events {
        match event {
            Event::Read {} | Event::Resume {} => {}
            Event::Write { path } => {
                let at = fold.next();
                fold.evidence.changed(at, std::slice::from_ref(path));
            }
            Event::CheckpointRestore {} => {
                let at = fold.next();
                fold.evidence.changed(at, &[]);
            }
            Event::Command(command) => fold.command(command),
            Event::CommandStart { id, command } => {
                let started = fold.next();
                if recognise(command).is_some() {
                    fold.evidence.test_started(started, command);
                }
                fold.open.push((id.clone(), command.clone(), started));
            }
            Event::CommandEnd {
                id,
                exit_code,
                output,
            } => {
                if let Some(place) = fold.open.iter().position(|(open, _, _)| open == id) {
                    let (_, command, started) = fold.open.remove(place);
                    fold.finished(
                        &command,
                        started,
                        exit_code.map_or(Ended::NotFinished, Ended::Exited),
                        output,
                    );
                }
            }
            Event::AskUser {} => return ("waiting_for_user".to_owned(), "needs_user".to_owned()),
            Event::StepLimit {} => return ("max_steps".to_owned(), "step_limit".to_owned()),
            Event::Cancelled {} => return ("cancelled".to_owned(), "cancelled".to_owned()),
            Event::Final {} => break,
        }
    }
    let verdict = judge(&goal, Policy::Goal, &fold.evidence);
    let stop = if verdict.outcome == Outcome::Passed {
        "completed"
    } else {
        "validation_failed"
    };
    let reason = serde_json::to_value(verdict.reason).unwrap();
    (stop.to_owned(), reason.as_str().unwrap().to_owned())
}

#[test]
fn runs_end_as_their_evidence_says() {
    let Some(cases) = corpus::<RunCase>("validation_cases.dev.jsonl") else {
        return;
    };
    let (mut stops, mut reasons, mut scored, mut later, mut later_right) =
        (0_u32, 0_u32, 0_u32, 0_u32, 0_u32);
    let mut false_completed = Vec::new();
    let mut failed = Vec::new();
    for case in &cases {
        let (stop, reason) = play(case);
        if LATER.contains(&case.group.as_str()) {
            later += 1;
            later_right += u32::from(stop == case.expected_stop);
            continue;
        }
        scored += 1;
        let stop_right = stop == case.expected_stop;
        let reason_right = reason == case.reason || case.alt_reasons.contains(&reason);
        stops += u32::from(stop_right);
        reasons += u32::from(reason_right);
        if stop == "completed" && !stop_right {
            false_completed.push(case.id.clone());
        }
        if !stop_right || !reason_right {
            failed.push(format!(
                "{} wanted {} {}, got {stop} {reason}",
                case.id, case.expected_stop, case.reason
            ));
        }
    }
    println!("validation_cases: {stops} passed, {} failed", scored - stops);
    failed.iter().for_each(|line| println!("  {line}"));
    println!(
        "  of {scored} scored: stop {stops}, reason {reasons}; weakening groups, later: {later_right} of {later} stops"
    );
    assert_eq!(
        false_completed,
        Vec::<String>::new(),
        "a run was called completed without evidence"
    );
    assert_eq!(stops, scored, "stop reasons");
    assert!(f64::from(reasons) >= 0.9 * f64::from(scored), "gate reasons");
}

mod properties {
    use super::*;
    use proptest::prelude::*;
    use tracegate_core::validation::TestCommand;

    /// Text that looks like shell, summaries and goals, so that the readers are exercised and not only refused.
    fn shell() -> impl Strategy<Value = String> {
        let word = prop::sample::select(vec![
            "npm", "test", "cargo", "pytest", "|", "||", "&&", ";", "&", "$(", ")", "(", "`", "'", "\"",
            "\\", "\n", "if", "then", "fi", "do", "done", "while", "{", "}", "!", "<<EOF", "EOF", ">",
            "2>&1", "bash", "-c", "--", "-k", "cd", "..", "/", "X=1", "exit", "$?", "set", "-e", "for",
            "case", "in", "esac", "timeout", "find", "-exec", "eval", "t()", "[[", "]]", "go", "./...", "é",
            "测试", "-",
        ]);
        prop::collection::vec(word, 0..24).prop_map(|words| words.join(" "))
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            shell(),
            "[a-z0-9 :.,#=()\\[\\]/\u{1b}%\n]{0,200}"
        ]
    }

    fn run(command: TestCommand, output: &str, code: i32, started: u64) -> TestRun {
        let ended = Ended::Exited(code);
        let reading = read_result(&command, &ended, output);
        TestRun {
            started: Seq(started),
            finished: Seq(started + 1),
            command,
            script: "npm test".to_owned(),
            ended,
            reading,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 256, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_read_without_panic_and_always_the_same(script in text(), output in text(), goal in text(), code in -1_i32..200) {
            let command = recognise(&script);
            prop_assert_eq!(&command, &recognise(&script));
            let read = Goal::read(&goal);
            prop_assert_eq!(&read, &Goal::read(&goal));
            let command = command.or_else(|| recognise("npm test")).unwrap();
            let reading = read_result(&command, &Ended::Exited(code), &output);
            prop_assert_eq!(&reading, &read_result(&command, &Ended::Exited(code), &output));
            prop_assert!(reading.named_files.len() <= 20);
            prop_assert!(reading.first_failure.as_ref().is_none_or(|line| line.chars().count() <= 200));
            let mut evidence = Evidence::new(&read);
            evidence.test_run(run(command, &output, code, 1));
            let text = serde_json::to_string(&evidence).unwrap();
            prop_assert_eq!(&evidence, &serde_json::from_str::<Evidence>(&text).unwrap());
            for policy in [Policy::Off, Policy::Goal, Policy::Observed, Policy::Strict] {
                let verdict = judge(&read, policy, &evidence);
                prop_assert_eq!(&verdict, &judge(&read, policy, &evidence));
                let text = serde_json::to_string(&verdict).unwrap();
                prop_assert_eq!(&verdict, &serde_json::from_str(&text).unwrap());
            }
        }

        #[test]
        fn a_change_after_the_last_run_never_leaves_it_passed(output in text(), change in 2_u64..9) {
            let goal = Goal::read("make `npm test` pass");
            let mut evidence = Evidence::new(&goal);
            evidence.test_run(run(recognise("npm test").unwrap(), &output, 0, 1));
            evidence.changed(Seq(change), &["src/a.ts".to_owned()]);
            prop_assert!(judge(&goal, Policy::Goal, &evidence).outcome != Outcome::Passed);
        }

        #[test]
        fn evidence_stays_small_however_much_happens(count in 1_u64..200) {
            let goal = Goal::read("make the tests pass");
            let mut evidence = Evidence::new(&goal);
            for step in 0..count {
                evidence.test_started(Seq(3 * step), "npm test");
                let command = recognise(&format!("pytest tests/test_{step}.py")).unwrap();
                evidence.test_run(run(command, "1 passed in 0.1s", 0, 3 * step + 1));
                evidence.changed(Seq(3 * step + 2), &["src/a.py".to_owned()]);
            }
            prop_assert!(serde_json::to_string(&evidence).unwrap().len() < 64 * 1024);
        }
    }
}
