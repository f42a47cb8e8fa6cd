//! Labelled runs, judged by the real reader and gate: how the run must end, and for which reason.

use super::{Tally, cases};
use serde::Deserialize;
use tracegate_core::{
    goal::Goal,
    ids::Seq,
    validation::{CommandRun, Ended, Evidence, Outcome, Policy, TestRun, judge, read_result, recognise},
};

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
    let Some(cases) = cases::<RunCase>("validation_cases.dev.jsonl") else {
        return;
    };
    let (mut reasons, mut later, mut later_right) = (0_u32, 0_u32, 0_u32);
    let mut false_completed = Vec::new();
    let mut wrong_reasons = Vec::new();
    let mut tally = Tally::new("validation_cases");
    for case in &cases {
        let (stop, reason) = play(case);
        if LATER.contains(&case.group.as_str()) {
            later += 1;
            later_right += u32::from(stop == case.expected_stop);
            continue;
        }
        let got = format!(
            "wanted {} {}, got {stop} {reason}",
            case.expected_stop, case.reason
        );
        if reason == case.reason || case.alt_reasons.contains(&reason) {
            reasons += 1;
        } else {
            wrong_reasons.push(format!("{}: {got}", case.id));
        }
        if stop == "completed" && stop != case.expected_stop {
            false_completed.push(case.id.clone());
        }
        let right = stop == case.expected_stop;
        tally.count(&case.id, right.then_some(()).ok_or(got));
    }
    tally.print();
    let scored = tally.passed + u32::try_from(tally.failed.len()).unwrap();
    println!(
        "  of {scored} scored: reason {reasons}; weakening groups, later: {later_right} of {later} stops"
    );
    wrong_reasons
        .iter()
        .for_each(|wrong| println!("  reason of {wrong}"));
    assert_eq!(
        false_completed,
        Vec::<String>::new(),
        "a run was called completed without evidence"
    );
    assert_eq!(tally.failed, Vec::<String>::new(), "stop reasons");
    assert!(f64::from(reasons) >= 0.9 * f64::from(scored), "gate reasons");
}
