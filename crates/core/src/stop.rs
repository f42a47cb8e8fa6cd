//! Why a run stopped, what status that leaves, and with which code a process says so.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What state a run is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A segment is at work; with nobody holding the lock, readers show `interrupted`.
    Running,
    /// The validation gate passed. Nothing else ends here.
    Completed,
    /// The run ended without reaching its goal.
    Failed,
    /// The agent asked and nobody has answered yet.
    WaitingForUser,
    /// A person stopped the run.
    Cancelled,
}

impl Status {
    /// Tells whether a run in this state is over.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Cancelled => true,
            Self::Running | Self::WaitingForUser => false,
        }
    }
}

/// Why the loop ended; not to be confused with a model's finish reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The agent gave its answer and the validation gate let it pass.
    Completed,
    /// The agent gave its answer and the evidence is against it.
    ValidationFailed,
    /// The runtime could not execute actions; a command's non-zero exit is never this.
    ToolError,
    /// The step limit was reached.
    MaxSteps,
    /// A limit of tokens, cost or time was reached.
    BudgetExhausted,
    /// A refusal ended the run: the policy says so, or the same effect was refused three times running.
    PermissionDenied,
    /// The agent asked its user.
    WaitingForUser,
    /// The model could not be reached, or gave nothing that could be used.
    ModelError,
    /// The log could not be written.
    RecorderFailed,
    /// The gate itself broke.
    GateFailed,
    /// A person stopped the run.
    Cancelled,
}

impl StopReason {
    /// Every stop reason, in the order of the table.
    pub const ALL: [Self; 11] = [
        Self::Completed,
        Self::ValidationFailed,
        Self::ToolError,
        Self::MaxSteps,
        Self::BudgetExhausted,
        Self::PermissionDenied,
        Self::WaitingForUser,
        Self::ModelError,
        Self::RecorderFailed,
        Self::GateFailed,
        Self::Cancelled,
    ];

    /// Returns the status that a run has after stopping for this reason.
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            Self::Completed => Status::Completed,
            Self::WaitingForUser => Status::WaitingForUser,
            Self::Cancelled => Status::Cancelled,
            Self::ValidationFailed
            | Self::ToolError
            | Self::MaxSteps
            | Self::BudgetExhausted
            | Self::PermissionDenied
            | Self::ModelError
            | Self::RecorderFailed
            | Self::GateFailed => Status::Failed,
        }
    }

    /// Returns the exit code that a process ends with.
    #[must_use]
    pub const fn exit(self) -> Exit {
        match self {
            Self::Completed => Exit::Ok,
            Self::ValidationFailed => Exit::ValidationFailed,
            Self::ToolError => Exit::ToolError,
            Self::MaxSteps | Self::BudgetExhausted => Exit::Exhausted,
            Self::PermissionDenied => Exit::PermissionDenied,
            Self::WaitingForUser => Exit::WaitingForUser,
            Self::ModelError => Exit::ModelError,
            Self::RecorderFailed => Exit::RecorderFailed,
            Self::GateFailed => Exit::GateFailed,
            Self::Cancelled => Exit::Cancelled,
        }
    }

    /// Returns the spelling used in events, spans and files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::ValidationFailed => "validation_failed",
            Self::ToolError => "tool_error",
            Self::MaxSteps => "max_steps",
            Self::BudgetExhausted => "budget_exhausted",
            Self::PermissionDenied => "permission_denied",
            Self::WaitingForUser => "waiting_for_user",
            Self::ModelError => "model_error",
            Self::RecorderFailed => "recorder_failed",
            Self::GateFailed => "gate_failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::WaitingForUser => "waiting_for_user",
            Self::Cancelled => "cancelled",
        })
    }
}

/// Every code that a `tracegate` process can end with: one enum, one table, shown by `--help` and the README.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// Done; for a run: completed.
    Ok,
    /// A bug, or an I/O error outside a run.
    Internal,
    /// Wrong arguments; a configuration, policy, cassette or case that does not parse.
    Usage,
    /// No such run, artifact or case.
    NotFound,
    /// Nothing matched.
    Nothing,
    /// The agent ended and the evidence is against it.
    ValidationFailed,
    /// The runtime could not execute actions.
    ToolError,
    /// Steps, tokens, cost or time used up.
    Exhausted,
    /// A refusal ended the run.
    PermissionDenied,
    /// The agent asked its user.
    WaitingForUser,
    /// The model failed.
    ModelError,
    /// The log could not be written.
    RecorderFailed,
    /// The gate itself broke.
    GateFailed,
    /// An eval case failed.
    EvalFailed,
    /// An eval case could not be judged.
    EvalNoVerdict,
    /// `policy check` says deny.
    PolicyDeny,
    /// Policy tests failed.
    PolicyTestsFailed,
    /// A log or artifact is damaged.
    Integrity,
    /// `doctor` found a blocking problem.
    Doctor,
    /// `redact --check` found secrets.
    SecretsFound,
    /// A person stopped it.
    Cancelled,
}

impl Exit {
    /// The table: every exit, in the order of its code.
    pub const ALL: [Self; 21] = [
        Self::Ok,
        Self::Internal,
        Self::Usage,
        Self::NotFound,
        Self::Nothing,
        Self::ValidationFailed,
        Self::ToolError,
        Self::Exhausted,
        Self::PermissionDenied,
        Self::WaitingForUser,
        Self::ModelError,
        Self::RecorderFailed,
        Self::GateFailed,
        Self::EvalFailed,
        Self::EvalNoVerdict,
        Self::PolicyDeny,
        Self::PolicyTestsFailed,
        Self::Integrity,
        Self::Doctor,
        Self::SecretsFound,
        Self::Cancelled,
    ];

    /// Returns the code, the name and when it is used.
    #[must_use]
    pub const fn row(self) -> (u8, &'static str, &'static str) {
        match self {
            Self::Ok => (0, "ok", "done; for a run: completed"),
            Self::Internal => (1, "internal", "a bug, or an I/O error outside a run"),
            Self::Usage => (
                2,
                "usage",
                "wrong arguments; a policy, cassette, case or configuration that does not parse",
            ),
            Self::NotFound => (3, "not_found", "no such run, artifact or case"),
            Self::Nothing => (4, "nothing", "nothing matched"),
            Self::ValidationFailed => (
                10,
                "validation_failed",
                "the agent ended and the evidence is against it",
            ),
            Self::ToolError => (11, "tool_error", "the runtime could not execute actions"),
            Self::Exhausted => (
                12,
                "max_steps, budget_exhausted",
                "steps, tokens, cost or time used up",
            ),
            Self::PermissionDenied => (13, "permission_denied", "a refusal ended the run"),
            Self::WaitingForUser => (14, "waiting_for_user", "the agent asked its user"),
            Self::ModelError => (15, "model_error", "the model failed"),
            Self::RecorderFailed => (16, "recorder_failed", "the log could not be written"),
            Self::GateFailed => (17, "gate_failed", "the gate itself broke"),
            Self::EvalFailed => (20, "eval_failed", "an eval case failed"),
            Self::EvalNoVerdict => (21, "eval_no_verdict", "an eval case could not be judged"),
            Self::PolicyDeny => (22, "policy_deny", "`policy check` says deny"),
            Self::PolicyTestsFailed => (23, "policy_tests_failed", "policy tests failed"),
            Self::Integrity => (24, "integrity", "a log or artifact is damaged"),
            Self::Doctor => (25, "doctor", "`doctor` found a blocking problem"),
            Self::SecretsFound => (26, "secrets_found", "`redact --check` found secrets"),
            Self::Cancelled => (130, "cancelled", "a person stopped it"),
        }
    }

    /// Returns the code alone.
    #[must_use]
    pub const fn code(self) -> u8 {
        self.row().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_completed_ends_completed_with_zero() {
        for reason in StopReason::ALL {
            let completed = reason == StopReason::Completed;
            assert_eq!(reason.status() == Status::Completed, completed, "{reason}");
            assert_eq!(reason.exit().code() == 0, completed, "{reason}");
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
    }

    #[test]
    fn exit_codes_are_unique_and_in_order() {
        let codes: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
    }
}
