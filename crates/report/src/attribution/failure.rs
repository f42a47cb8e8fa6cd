//! The failure point: the last event that made the run fail, read off its end.

use super::{Assertion, Confidence, Finding, Kind, Layer};
use crate::{
    language::Language,
    terminal::one_line,
    view::{Holder, RunView, ShownStatus},
};
use tracegate_core::{fact::tool::Outcome, ids::Seq, stop::StopReason};

/// How wide recorded text may be inside a sentence.
const PIECE: usize = 80;

/// What made a run fail in the end.
#[derive(Debug, Clone)]
pub(crate) enum FailurePoint {
    /// A test command whose tests failed, after which nothing was green.
    RedTest {
        seq: Seq,
        tool: String,
        command: String,
        exit_code: Option<i32>,
        first_failure: Option<String>,
    },
    /// The validation gate said no for another reason.
    Verdict {
        seq: Seq,
        reason: String,
        explanation: String,
    },
    /// A limit was reached.
    Limit {
        seq: Seq,
        which: String,
        value: u64,
        limit: u64,
    },
    /// A refusal ended the run.
    Refused {
        seq: Seq,
        tool: String,
        target: String,
        reason: String,
    },
    /// The model gave nothing that could be used.
    Model { seq: Seq, error: String },
    /// A tool could not be executed.
    Tool {
        seq: Seq,
        tool: String,
        target: String,
        error: String,
    },
    /// A gate itself broke.
    Gate {
        seq: Seq,
        layer: Layer,
        span: &'static str,
        error: String,
    },
    /// The process died.
    Died { last: Seq, during: Option<String> },
    /// The log names the reason and no event shows it.
    Stopped { seq: Seq, reason: Option<StopReason> },
}

impl FailurePoint {
    /// Reads the failure point off the end of a run; none if the run has not failed.
    pub(crate) fn of(view: &RunView, holder: Holder) -> Option<Self> {
        match view.status(holder) {
            ShownStatus::Completed
            | ShownStatus::Cancelled
            | ShownStatus::Running
            | ShownStatus::WaitingForUser => None,
            ShownStatus::Interrupted => Some(Self::died(view)),
            ShownStatus::Failed => {
                let end = view.finished.as_ref().map_or(view.last, |end| end.seq);
                let found = view.stop.and_then(|reason| Self::for_reason(view, reason));
                Some(found.unwrap_or(Self::Stopped {
                    seq: end,
                    reason: view.stop,
                }))
            }
        }
    }

    fn died(view: &RunView) -> Self {
        let open = view
            .actions
            .iter()
            .rev()
            .find(|action| action.started.is_some() && action.end.is_none());
        Self::Died {
            last: view.last,
            during: open.map(|action| format!("{} {}", one_line(&action.tool, PIECE), action.target())),
        }
    }

    fn for_reason(view: &RunView, reason: StopReason) -> Option<Self> {
        match reason {
            StopReason::ValidationFailed => Self::red(view).or_else(|| Self::verdict(view)),
            StopReason::MaxSteps | StopReason::BudgetExhausted => {
                view.limit.as_ref().map(|(seq, limit)| Self::Limit {
                    seq: *seq,
                    which: one_line(&limit.which, PIECE),
                    value: limit.value,
                    limit: limit.limit,
                })
            }
            StopReason::PermissionDenied => {
                let refused = view.actions.iter().rev().find(|action| action.is_refused())?;
                let review = refused.review.as_ref()?;
                Some(Self::Refused {
                    seq: review.seq,
                    tool: one_line(&refused.tool, PIECE),
                    target: refused.target(),
                    reason: one_line(&review.reason, PIECE),
                })
            }
            StopReason::ModelError => {
                let reply = view.replies.iter().rev().find(|reply| reply.error.is_some())?;
                Some(Self::Model {
                    seq: reply.seq,
                    error: describe(reply.error.as_ref()?),
                })
            }
            StopReason::ToolError => view.actions.iter().rev().find_map(|action| {
                let end = action.end.as_ref()?;
                let broke = end.outcome == Outcome::Failed && end.exit_code.is_none();
                let error = end.error.as_ref().filter(|_| broke)?;
                Some(Self::Tool {
                    seq: end.seq,
                    tool: one_line(&action.tool, PIECE),
                    target: action.target(),
                    error: describe(error),
                })
            }),
            StopReason::GateFailed => Self::gate(view),
            StopReason::RecorderFailed
            | StopReason::Completed
            | StopReason::WaitingForUser
            | StopReason::Cancelled => None,
        }
    }

    /// The newest trusted run is red, and the gate, if it ruled, ruled for that reason.
    fn red(view: &RunView) -> Option<Self> {
        if view.verdict().is_some() && !view.judged_red() {
            return None;
        }
        let runs = view.trusted_runs();
        let run = runs.last().filter(|run| run.is_red())?;
        let end = run.action.end.as_ref();
        Some(Self::RedTest {
            seq: run.seq,
            tool: one_line(&run.action.tool, PIECE),
            command: one_line(&run.command(), PIECE),
            exit_code: end.and_then(|end| end.exit_code),
            first_failure: run
                .record
                .reading
                .first_failure
                .as_deref()
                .map(|text| one_line(text, 2 * PIECE)),
        })
    }

    fn verdict(view: &RunView) -> Option<Self> {
        let verdict = view.verdict()?;
        let ruled = view.validations.last().map(|review| review.seq);
        Some(Self::Verdict {
            seq: ruled.or(view.finished.as_ref().map(|end| end.seq))?,
            reason: one_line(&verdict.reason.to_string(), PIECE),
            explanation: one_line(&verdict.explanation, 2 * PIECE),
        })
    }

    fn gate(view: &RunView) -> Option<Self> {
        let permission = view.actions.iter().rev().find_map(|action| {
            let review = action.review.as_ref()?;
            Some((
                review.seq,
                Layer::Permission,
                "permission.review",
                review.error.as_ref()?,
            ))
        });
        let validation = view.validations.iter().rev().find_map(|review| {
            Some((
                review.seq,
                Layer::Validation,
                "validation.review",
                review.error.as_ref()?,
            ))
        });
        let (seq, layer, span, error) = permission
            .into_iter()
            .chain(validation)
            .max_by_key(|(seq, ..)| *seq)?;
        Some(Self::Gate {
            seq,
            layer,
            span,
            error: describe(error),
        })
    }

    /// Returns the event.
    pub(crate) const fn seq(&self) -> Seq {
        match self {
            Self::RedTest { seq, .. }
            | Self::Verdict { seq, .. }
            | Self::Limit { seq, .. }
            | Self::Refused { seq, .. }
            | Self::Model { seq, .. }
            | Self::Tool { seq, .. }
            | Self::Gate { seq, .. }
            | Self::Died { last: seq, .. }
            | Self::Stopped { seq, .. } => *seq,
        }
    }

    const fn layer(&self) -> Layer {
        match self {
            Self::RedTest { .. } | Self::Tool { .. } => Layer::Tool,
            Self::Verdict { .. } => Layer::Validation,
            Self::Refused { .. } => Layer::Permission,
            Self::Model { .. } => Layer::Model,
            Self::Gate { layer, .. } => *layer,
            Self::Limit { .. } | Self::Died { .. } | Self::Stopped { .. } => Layer::Runtime,
        }
    }

    /// Returns what happened, as the attribution says it.
    pub(crate) fn sentence(&self, language: Language) -> String {
        match self {
            Self::RedTest {
                command, exit_code, ..
            } => {
                let code = exit_code.map_or_else(
                    || language.pick("tests failed", "测试失败").to_owned(),
                    |code| language.pick(format!("exit code {code}"), format!("退出码 {code}")),
                );
                format!("{command} {code}")
            }
            Self::Verdict {
                reason, explanation, ..
            } => format!("{reason}: {explanation}"),
            Self::Limit {
                which, value, limit, ..
            } => language.pick(
                format!("limit of {which} reached: {value} of {limit}"),
                format!("达到上限 {which}：{value} / {limit}"),
            ),
            Self::Refused {
                tool, target, reason, ..
            } => language.pick(
                format!("{tool} {target} was refused: {reason}"),
                format!("{tool} {target} 被拒绝：{reason}"),
            ),
            Self::Model { error, .. } => language.pick(
                format!("no usable reply: {error}"),
                format!("没有可用的回复：{error}"),
            ),
            Self::Tool {
                tool, target, error, ..
            } => language.pick(
                format!("{tool} {target} could not be executed: {error}"),
                format!("{tool} {target} 无法执行：{error}"),
            ),
            Self::Gate { error, .. } => language.pick(
                format!("the gate itself broke: {error}"),
                format!("门禁自身出错：{error}"),
            ),
            Self::Died {
                during: Some(during), ..
            } => language.pick(
                format!("the process died during {during}; nobody knows whether it took effect"),
                format!("进程在执行 {during} 时中断，是否生效未知"),
            ),
            Self::Died { during: None, .. } => language
                .pick("the process died between two actions", "进程在两次动作之间中断")
                .to_owned(),
            Self::Stopped {
                reason: Some(reason), ..
            } => language.pick(
                format!("the run stopped with {reason}; no event shows why"),
                format!("运行以 {reason} 结束，没有事件说明原因"),
            ),
            Self::Stopped { reason: None, .. } => language
                .pick("the run failed; no event shows why", "运行失败，没有事件说明原因")
                .to_owned(),
        }
    }

    /// Returns where it happened, as the post-mortem says it: `tool.execute(shell_readonly npm test) exitCode=1, event 21`.
    pub(crate) fn point(&self, language: Language) -> String {
        let what = match self {
            Self::RedTest {
                tool,
                command,
                exit_code,
                ..
            } => {
                let code = exit_code.map_or_else(|| "failed".to_owned(), |code| format!("exitCode={code}"));
                format!("tool.execute({tool} {command}) {code}")
            }
            Self::Verdict { reason, .. } => format!("validation.review {reason}"),
            Self::Limit {
                which, value, limit, ..
            } => format!("limit.reached({which}) {value}/{limit}"),
            Self::Refused { tool, target, .. } => format!("permission.review({tool} {target}) deny"),
            Self::Model { error, .. } => format!("model.complete {error}"),
            Self::Tool {
                tool, target, error, ..
            } => format!("tool.execute({tool} {target}) {error}"),
            Self::Gate { span, error, .. } => format!("{span} {error}"),
            Self::Died {
                during: Some(during), ..
            } => format!("tool.execute({during}) process_killed"),
            Self::Died { during: None, .. } => "segment process_killed".to_owned(),
            Self::Stopped { reason, .. } => {
                let reason = reason.map_or("failed", StopReason::as_str);
                format!("run.finished {reason}")
            }
        };
        let seq = self.seq();
        let place = language.pick(format!("{what}, event {seq}"), format!("{what}，事件 {seq}"));
        match self {
            Self::RedTest {
                first_failure: Some(said),
                ..
            }
            | Self::Verdict {
                explanation: said, ..
            } if !said.is_empty() => language.pick(format!("{place}: {said}"), format!("{place}：{said}")),
            Self::RedTest { .. }
            | Self::Verdict { .. }
            | Self::Limit { .. }
            | Self::Refused { .. }
            | Self::Model { .. }
            | Self::Tool { .. }
            | Self::Gate { .. }
            | Self::Died { .. }
            | Self::Stopped { .. } => place,
        }
    }

    /// Returns the point as the first finding.
    pub(super) fn finding(&self, language: Language) -> Finding {
        Finding {
            rule: None,
            layer: self.layer(),
            kind: Kind::DirectFailure,
            confidence: Confidence::Decided,
            sentence: self.sentence(language),
            change: None,
            events: vec![self.seq()],
            asserts: match self {
                Self::RedTest { command, .. } => {
                    vec![Assertion::CommandPasses(command.clone()), Assertion::Completed]
                }
                Self::Verdict { .. }
                | Self::Limit { .. }
                | Self::Refused { .. }
                | Self::Model { .. }
                | Self::Tool { .. }
                | Self::Gate { .. }
                | Self::Died { .. }
                | Self::Stopped { .. } => vec![Assertion::Completed],
            },
        }
    }
}

fn describe(failure: &tracegate_core::fact::Failure) -> String {
    let text = if failure.message.is_empty() {
        failure.kind.clone()
    } else {
        format!("{}: {}", failure.kind, failure.message)
    };
    one_line(&text, PIECE)
}
