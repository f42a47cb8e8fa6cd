//! Events of the two gates: the permission gate's reviews and grants, the validation gate's reviews.

use crate::{fact::Failure, ids::Digest, validation::Verdict};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What an effect can do, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Reads inside the workspace.
    Read,
    /// Changes files.
    Write,
    /// Runs code that nobody reviewed.
    Shell,
    /// Talks to other machines.
    Network,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Shell => "shell",
            Self::Network => "network",
        })
    }
}

/// What rules say, in rising strictness, so that the strictest is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// It may happen.
    Allow,
    /// A person must say so.
    Ask,
    /// It may not happen.
    Deny,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// The permission gate began to review an action.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PermissionReviewStarted {
    /// The tool that the action wants.
    pub tool: String,
}

/// The permission gate ruled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionReviewFinished {
    /// The tool.
    pub tool: String,
    /// The ruling: after an answer, `allow` or `deny`; `ask` only where the run was suspended.
    pub decision: Verb,
    /// The gravest class among the effects.
    pub class: Class,
    /// Why, for programs; the policy's closed list.
    pub reason_code: String,
    /// The rule that decided, `layer:id`.
    pub rule: String,
    /// Why, for people.
    pub reason: String,
    /// The first 16 effects, one line each.
    pub effects: Vec<String>,
    /// Digest of the policy in force.
    pub digest: Digest,
    /// Who answered, where somebody was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approver: Option<String>,
    /// Set if the gate itself broke; a refusal is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// A grant or a remembered answer widened the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyGranted {
    /// What: `writes`, `shell` or `network`.
    pub grant: String,
    /// Which paths, command or host; empty for all.
    pub pattern: String,
    /// Who: `command line` or `answer`.
    pub source: String,
}

/// The validation gate began to review the end of the run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ValidationReviewStarted {}

/// The validation gate ruled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValidationReviewFinished {
    /// What it found.
    pub verdict: Verdict,
    /// What follows.
    pub ruling: ValidationRuling,
    /// How often the agent was sent back before.
    pub pushed_back: u32,
    /// Set if the gate itself broke; a failed verdict is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// What follows from a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValidationRuling {
    /// The run is completed.
    Complete,
    /// The agent is told why not and goes on.
    PushBack,
    /// The run ends as `validation_failed`.
    Fail,
}
