//! stub
use crate::goal::Goal;
use crate::ids::Seq;
use serde::{Deserialize, Serialize};
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestCommand {
    pub runner: String,
    pub normalised: Vec<String>,
    pub masked: bool,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    Green,
    Red,
    Unknown,
}
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestReading {
    pub trust: Trust,
    pub passed: Option<u64>,
    pub failed: Option<u64>,
    pub named_files: Vec<String>,
    pub first_failure: Option<String>,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Passed,
    Failed,
    Inconclusive,
}
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    pub outcome: Outcome,
    pub armed: bool,
    pub reason: String,
    pub evidence: Vec<Seq>,
    pub explanation: String,
}
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Evidence {}
pub enum Ended {
    Exited(i32),
    Signalled(i32),
    TimedOut,
    NotFinished,
}
pub struct TestRun {
    pub started: Seq,
    pub finished: Seq,
    pub command: TestCommand,
    pub script: String,
    pub reading: TestReading,
}
impl Evidence {
    pub fn new(_: &Goal) -> Self {
        Self {}
    }
    pub fn changed(&mut self, _: Seq, _: &[String]) {}
    pub fn test_run(&mut self, _: TestRun) {}
}
pub enum Policy {
    Goal,
}
pub fn recognise(_: &str) -> Option<TestCommand> {
    None
}
pub fn read_result(_: &TestCommand, _: &Ended, _: &str) -> TestReading {
    TestReading {
        trust: Trust::Unknown,
        passed: None,
        failed: None,
        named_files: vec![],
        first_failure: None,
    }
}
pub fn judge(_: &Goal, _: Policy, _: &Evidence) -> Verdict {
    Verdict {
        outcome: Outcome::Failed,
        armed: true,
        reason: String::new(),
        evidence: vec![],
        explanation: String::new(),
    }
}
