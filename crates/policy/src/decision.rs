//! What the rules answer: a verb, the rule that gave it, and why.

use crate::policy::Sandbox;
use serde::{Deserialize, Serialize};
use std::fmt;

pub use tracegate_core::fact::gate::{Class, Verb};

/// Why a decision is what it is; the spelling is stable and the corpus' own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// An allow rule, a grant included.
    RuleAllow,
    /// A deny rule.
    RuleDeny,
    /// An ask rule.
    RuleAsk,
    /// No rule matched; the class has a default.
    ClassDefault,
    /// The built-in floor, which no policy opens.
    Floor,
    /// No rule matched and the class has no default.
    NoMatch,
    /// The script is not understood.
    Unparsed,
    /// A person would have to be asked and none is there.
    AskNoninteractive,
    /// A person said no.
    AskRefused,
    /// A person did not answer in time.
    AskTimeout,
    /// A person said yes.
    AskGranted,
    /// A person said yes to exactly this before.
    AskRemembered,
    /// A person would have to be waited for, and the arguments hold a secret that is not kept meanwhile.
    ArgsRedacted,
    /// A variable that `env.allow` does not list.
    EnvNotAllowed,
    /// An operand is not known before the run.
    DynamicOperand,
    /// The program is not known before the run.
    DynamicProgram,
    /// An argument that means nothing safe: a bad path, host or tool name.
    InvalidArgument,
    /// A tool that must not change files was asked to.
    ReadonlyTool,
    /// The rule wants a stronger sandbox than there is.
    SandboxUnavailable,
    /// The gate itself broke.
    GateFailed,
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One rule that matched one effect, whether or not it decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Match {
    /// `layer:id`.
    pub rule: String,
    /// What the rule says.
    pub verb: Verb,
    /// The effect, as in `write src/a.rs`.
    pub effect: String,
    /// `file:line` of the rule; a grant has its flag here.
    pub place: String,
    /// False for an allow rule of an untrusted project file, which is shown and does not count.
    pub counts: bool,
}

/// The rules' answer to one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The strictest answer of all effects.
    pub verb: Verb,
    /// The widest class of all effects.
    pub class: Class,
    /// Why, for programs.
    pub reason_code: ReasonCode,
    /// Who said so: `user:id`, `session:allow-writes`, `default:write`, `floor:git-hooks`, `builtin:…`, `default`.
    pub rule: String,
    /// Why, for people: one sentence without full stop.
    pub reason: String,
    /// Every rule that matched any effect, strictest or not, in order of effects, layers and files.
    pub matches: Vec<Match>,
    /// Path patterns that must be hidden while this runs, because a recursive read may meet them
    /// (design 16, 19d). Whoever cannot hide them must refuse if such a file exists under the tree.
    pub masks: Vec<String>,
    /// The strongest sandbox demand of the policy and of the rules that allowed.
    pub sandbox: Sandbox,
}

/// What a person said, or did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Go on.
    Yes,
    /// Do not.
    No,
    /// Nobody answered in time.
    Timeout,
}

impl Decision {
    /// Turns an ask into allow or deny; `None` means that nobody is there. Allow and deny stay as they are:
    /// the question is never put.
    #[must_use]
    pub fn resolve(self, answer: Option<Answer>) -> Self {
        if self.verb != Verb::Ask {
            return self;
        }
        let (verb, reason_code, said) = match answer {
            None => (
                Verb::Deny,
                ReasonCode::AskNoninteractive,
                "nobody is there to be asked",
            ),
            Some(Answer::Yes) => (Verb::Allow, ReasonCode::AskGranted, "a person said yes"),
            Some(Answer::No) => (Verb::Deny, ReasonCode::AskRefused, "a person said no"),
            Some(Answer::Timeout) => (Verb::Deny, ReasonCode::AskTimeout, "nobody answered in time"),
        };
        let reason = format!("{}; {said}", self.reason);
        Self {
            verb,
            reason_code,
            reason,
            ..self
        }
    }
}
