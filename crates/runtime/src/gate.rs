//! The permission gate: reviews an action against the policy before it happens. Nothing runs without what it hands out.

use crate::{
    agent::{Parts, StepError},
    recorder::{Place, RecorderError},
    session::Session,
    tools::Request,
};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::WalkBuilder;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};
use tracegate_core::{
    fact::{
        Failure,
        gate::{Class, PermissionReviewFinished, PermissionReviewStarted, Verb},
        run::OnAsk,
        tool::{Observation, ObservationKind, Outcome, Phase},
        user::{Permission, QuestionKind},
    },
    ids::ActionId,
    payload::clip,
};
use tracegate_policy::{Answer, Decision, Policy, PolicyLimits, ReasonCode, Sandbox};

/// An action that the model asked for, its arguments parsed, not yet allowed.
#[derive(Debug)]
pub struct PendingAction {
    /// Its id.
    pub id: ActionId,
    /// What it wants, or why its arguments cannot be understood.
    pub request: Result<Request, String>,
    /// Whether the log holds the arguments as they are.
    pub arguments: Arguments,
}

/// What the log holds of an action's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arguments {
    /// All of them.
    Whole,
    /// Redaction took a secret out: the action can be done now, and not by a process that goes on later.
    Redacted,
}

/// An action that the gate let pass.
///
/// INVARIANT: only [`review`] makes one, so whoever holds one knows that the policy permitted exactly this request.
///
/// Anybody can put together an action that waits for a ruling, nobody one that has passed:
///
/// ```
/// use tracegate::{gate::{Arguments, PendingAction}, tools::Request};
/// use tracegate_core::ids::ActionId;
/// fn wait(id: ActionId, request: Request) -> PendingAction {
///     PendingAction { id, request: Ok(request), arguments: Arguments::Whole }
/// }
/// ```
///
/// ```compile_fail,E0451
/// use tracegate::{gate::PermittedAction, tools::Request};
/// use tracegate_core::{fact::gate::Class, ids::ActionId};
/// fn forge(id: ActionId, request: Request, class: Class) -> PermittedAction {
///     PermittedAction { id, request, class, masks: Vec::new() }
/// }
/// ```
///
/// Only what has passed is executed, once:
///
/// ```
/// use tracegate::{gate::PermittedAction, session::Session, tools};
/// async fn run(session: &mut Session, action: PermittedAction) {
///     tools::execute(session, action, None).await.ok();
/// }
/// ```
///
/// ```compile_fail
/// use tracegate::{gate::PendingAction, session::Session, tools};
/// async fn run(session: &mut Session, action: PendingAction) {
///     tools::execute(session, action, None).await.ok();
/// }
/// ```
///
/// ```compile_fail
/// use tracegate::{gate::PermittedAction, session::Session, tools};
/// async fn run(session: &mut Session, action: PermittedAction) {
///     tools::execute(session, action, None).await.ok();
///     tools::execute(session, action, None).await.ok();
/// }
/// ```
#[derive(Debug)]
pub struct PermittedAction {
    id: ActionId,
    request: Request,
    class: Class,
    masks: Vec<String>,
}

impl PermittedAction {
    /// Returns the action's id.
    #[must_use]
    pub const fn id(&self) -> ActionId {
        self.id
    }

    /// Returns what was permitted.
    #[must_use]
    pub const fn request(&self) -> &Request {
        &self.request
    }

    /// Returns the gravest class among its effects.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.class
    }

    /// Returns the patterns of files that it was permitted without: a search that meets them passes over them.
    #[must_use]
    pub fn masks(&self) -> &[String] {
        &self.masks
    }
}

/// What the gate says of an action.
#[derive(Debug)]
pub enum Ruling {
    /// It may happen.
    Permitted(PermittedAction),
    /// It may not; the model is told why.
    Refused(Refusal),
    /// A person must say so, and the run waits until one does.
    Suspended,
}

/// Why an action may not happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The action.
    pub id: ActionId,
    /// How it counts: refused by the gate, or failed because it is no action at all.
    pub outcome: Outcome,
    /// What the model reads.
    pub message: String,
}

/// What rules on actions: a policy, or what a test puts in its place.
pub trait Rules: Send + Sync + std::fmt::Debug {
    /// Decides a request.
    fn decide(&self, request: &tracegate_policy::Request) -> Decision;

    /// Returns what the rules say about the run as a whole.
    fn limits(&self) -> &PolicyLimits;
}

impl Rules for Policy {
    fn decide(&self, request: &tracegate_policy::Request) -> Decision {
        Self::decide(self, request)
    }

    fn limits(&self) -> &PolicyLimits {
        Self::limits(self)
    }
}

/// Says whether the rules let the agent read a file, without recording a ruling; rules that break let nothing be read.
pub(crate) fn may_read(rules: &dyn Rules, path: &str) -> bool {
    let asked = tracegate_policy::Request::read("read_file", path);
    catch_unwind(AssertUnwindSafe(|| rules.decide(&asked))).is_ok_and(|decision| decision.verb == Verb::Allow)
}

/// Reviews an action and records the ruling.
///
/// An action that cannot be understood is refused without a review: there is nothing that a rule could judge. Where the policy asks,
/// the answer is the one that was given to a run that had waited for it, or the one of whoever can be asked now; else the run is
/// suspended or the action refused, as [`OnAsk`] says.
///
/// # Errors
/// When the run cannot be recorded, or the rules broke: then the action is denied and the run ends as `gate_failed`.
pub async fn review(
    session: &mut Session,
    parts: &Parts<'_>,
    action: PendingAction,
) -> Result<Ruling, StepError> {
    let PendingAction {
        id,
        request,
        arguments,
    } = action;
    let request = match request {
        Ok(request) => request,
        Err(message) => {
            return Ok(Ruling::Refused(Refusal {
                id,
                outcome: Outcome::Failed,
                message,
            }));
        }
    };
    let tool = request.tool().as_str().to_owned();
    let span = session
        .recorder
        .begin(Some(id), PermissionReviewStarted { tool: tool.clone() })?;
    let asked = request.review(&session.root);
    let decided = catch_unwind(AssertUnwindSafe(|| parts.policy.decide(&asked)));
    let broke = decided.is_err().then(|| Failure::new("gate_failed", BROKEN));
    let (decision, approver) = match decided {
        Ok(decision) if decision.verb == Verb::Ask => {
            session.put((id, arguments), &request, decision, parts).await?
        }
        Ok(decision) => (decision, None),
        Err(_) => (broken(), None),
    };
    let decision = oblige(decision, &request, session.root.path());
    let digest = session.policy_digest;
    session.recorder.end(
        span,
        PermissionReviewFinished {
            tool,
            decision: decision.verb,
            class: decision.class,
            reason_code: decision.reason_code.to_string(),
            rule: decision.rule.clone(),
            reason: clip(&decision.reason, 512),
            effects: request.effects(&session.root),
            digest,
            approver,
            error: broke.clone(),
        },
    )?;
    if let Some(failure) = broke {
        return Err(StepError::Gate(failure.message));
    }
    Ok(match decision.verb {
        Verb::Allow => Ruling::Permitted(PermittedAction {
            id,
            request,
            class: decision.class,
            masks: decision.masks,
        }),
        Verb::Ask => Ruling::Suspended,
        Verb::Deny => Ruling::Refused(Refusal {
            id,
            outcome: Outcome::Refused,
            message: explain(&decision),
        }),
    })
}

impl Session {
    /// Puts what the policy asks to a person: returns the decision that follows, and who made it. It still says `ask` if the run
    /// has to wait for that.
    async fn put(
        &mut self,
        (id, arguments): (ActionId, Arguments),
        request: &Request,
        decision: Decision,
        parts: &Parts<'_>,
    ) -> Result<(Decision, Option<String>), RecorderError> {
        let resolve = |permission| match permission {
            Some(Permission::Allow) => Some(Answer::Yes),
            Some(Permission::Deny) => Some(Answer::No),
            None => None,
        };
        if let Some(answered) = self.answered.get(&id) {
            let answer = resolve(answered.permission());
            return Ok((decision.resolve(answer), Some("user".to_owned())));
        }
        let question = format!("Allow {request}? {} (rule {})", decision.reason, decision.rule);
        if let (OnAsk::Terminal, Some(user)) = (self.on_ask, parts.user) {
            let question = self.recorder.redactor().scrub_text(question).into_inner();
            let asked = self.ask(id, QuestionKind::Permission, &question)?;
            let answer = user.permit(&question).await;
            let Some(answer) = answer.as_deref().and_then(Permission::parse) else {
                // Whoever goes away without a word has said neither yes nor no: the question stays open.
                return Ok((decision, None));
            };
            self.hear(asked, &question, answer.as_str())?;
            return Ok((decision.resolve(resolve(Some(answer))), Some("user".to_owned())));
        }
        match self.on_ask {
            OnAsk::Suspend if arguments == Arguments::Redacted => Ok((not_suspended(decision), None)),
            OnAsk::Suspend => {
                self.ask(id, QuestionKind::Permission, &question)?;
                Ok((decision, None))
            }
            OnAsk::Terminal | OnAsk::Deny => Ok((decision.resolve(None), None)),
        }
    }
}

/// Refuses what cannot wait: redaction took a secret out of its arguments, and whoever goes on with the run would not have it.
fn not_suspended(decision: Decision) -> Decision {
    Decision {
        verb: Verb::Deny,
        reason_code: ReasonCode::ArgsRedacted,
        reason: format!(
            "{}; its arguments hold a secret, which is not kept, so it cannot wait for an answer",
            decision.reason
        ),
        ..decision
    }
}

const BROKEN: &str = "the permission gate itself broke while it was reviewing";

/// What holds when the rules broke: nothing is allowed, and the reason is not a rule's.
fn broken() -> Decision {
    Decision {
        verb: Verb::Deny,
        class: Class::Network,
        reason_code: ReasonCode::GateFailed,
        rule: "builtin:gate".to_owned(),
        reason: BROKEN.to_owned(),
        matches: Vec::new(),
        masks: Vec::new(),
        sandbox: Sandbox::Off,
    }
}

/// Refuses what was allowed under a condition that cannot be met: there is no sandbox yet that could confine a command or hide a file.
fn oblige(decision: Decision, request: &Request, root: &Path) -> Decision {
    if decision.verb != Verb::Allow || request.command().is_none() {
        return decision;
    }
    let deny = |reason_code, reason| Decision {
        verb: Verb::Deny,
        reason_code,
        reason,
        ..decision.clone()
    };
    if decision.sandbox == Sandbox::Require {
        let reason = "the policy requires a sandbox and there is none".to_owned();
        return deny(ReasonCode::SandboxUnavailable, reason);
    }
    if let Some(word) = request
        .words()
        .iter()
        .skip(1)
        .find(|word| goes_through_link(root, word))
    {
        let reason = format!(
            "`{word}` goes through a link: what a command would touch there is not what its words say"
        );
        return deny(ReasonCode::InvalidArgument, reason);
    }
    match first_masked(root, &decision.masks) {
        Some(path) => {
            let reason = format!(
                "it would read everything, `{path}` included, which the policy denies and nothing can hide"
            );
            deny(ReasonCode::SandboxUnavailable, reason)
        }
        None => decision,
    }
}

/// Compiles patterns of files that must stay hidden, as the policy reads them.
///
/// # Errors
/// When one is no glob: then nothing is known to be outside of it, and whoever asks must fail closed.
pub(crate) fn compile_masks(masks: &[String]) -> Result<GlobSet, globset::Error> {
    let mut globs = GlobSetBuilder::new();
    for mask in masks {
        globs.add(
            GlobBuilder::new(mask)
                .literal_separator(true)
                .backslash_escape(false)
                .build()?,
        );
    }
    globs.build()
}

/// Tells whether a word of a command names a path of the workspace that is, or lies behind, a symbolic link.
///
/// File tools open what was resolved; a command resolves again by itself, so rules on its words would judge another file.
fn goes_through_link(root: &Path, word: &str) -> bool {
    let operand = word.split_once('=').map_or(word, |(_, value)| value);
    let mut path = root.to_owned();
    Path::new(operand).components().any(|part| {
        path.push(part);
        path.symlink_metadata().is_ok_and(|found| found.is_symlink())
    })
}

/// Finds a file below `root` that must stay hidden; what cannot be searched to its end counts as holding one.
fn first_masked(root: &Path, masks: &[String]) -> Option<String> {
    const MAX_ENTRIES: usize = 200_000;
    let Ok(globs) = compile_masks(masks) else {
        return masks.first().cloned();
    };
    if globs.is_empty() {
        return None;
    }
    let walk = WalkBuilder::new(root)
        .standard_filters(false)
        .follow_links(false)
        .build();
    for (count, entry) in walk.flatten().enumerate() {
        let name = entry.path().strip_prefix(root).unwrap_or(entry.path());
        if globs.is_match(name) || count >= MAX_ENTRIES {
            return Some(name.display().to_string());
        }
    }
    None
}

fn explain(decision: &Decision) -> String {
    format!(
        "refused by the permission gate: {} (rule {}). Nothing was done; find another way or say that you cannot go on.",
        decision.reason, decision.rule
    )
}

impl Session {
    /// Records a refusal as the action's observation.
    ///
    /// # Errors
    /// When the run cannot be recorded.
    pub(crate) fn refuse(&mut self, refusal: &Refusal) -> Result<(), RecorderError> {
        self.record_outcome(refusal.id, refusal.outcome, &refusal.message)
    }

    /// Records what became of an action that nothing was done for, and tells the model.
    ///
    /// # Errors
    /// When the run cannot be recorded.
    pub(crate) fn record_outcome(
        &mut self,
        id: ActionId,
        outcome: Outcome,
        text: &str,
    ) -> Result<(), RecorderError> {
        // The text may quote what the model asked for; what the model reads next is what the log holds.
        let text = self.recorder.redactor().scrub_text(text.to_owned());
        let content = self.recorder.payload(text.get())?;
        let observation = Observation {
            kind: ObservationKind::ToolOutput,
            phase: Phase::After,
            content: Some(content),
            outcome: Some(outcome),
            workspace: None,
        };
        self.recorder.record(Place::at(id), observation)?;
        self.answer(id, text.into_inner());
        Ok(())
    }
}
