//! The post-mortem: the five parts of seed 003, in English or Chinese, always the same for the same log.

use crate::{
    attribution::{Assertion, Attribution, FailurePoint, Kind, RootCause, events, explain},
    language::Language,
    terminal::{Width, beside, one_line, width_of},
    view::{Holder, RunView},
};
use serde::Serialize;
use tracegate_core::payload::clip;

/// The longest goal in a post-mortem, in bytes.
const LONGEST_GOAL: usize = 4 * 1024;
/// How wide a path or command may be inside a plan.
const PIECE: usize = 60;
/// How many lines a part may take on a terminal.
const PART_LINES: usize = 3;
/// How many root causes a text shows; JSON has all.
const SHOWN_CAUSES: usize = 2;

/// A post-mortem of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PostMortem {
    /// The language of the fixed text.
    pub language: Language,
    /// What the user wanted, in the user's words.
    pub user_goal: String,
    /// What was done, in order.
    pub execution_path: String,
    /// Where it failed, or that it did not.
    pub failure_point: String,
    /// Why, one sentence a cause; empty if nothing failed.
    pub root_causes: Vec<String>,
    /// What an eval case would assert; empty if there is nothing to assert.
    pub regression_plan: Vec<String>,
    /// Whether a root cause is known.
    #[serde(skip)]
    cause: RootCause,
}

/// Writes the post-mortem of a run.
#[must_use]
pub fn write(view: &RunView, holder: Holder, language: Language) -> PostMortem {
    let attribution = explain(view, holder, language);
    let point = FailurePoint::of(view, holder);
    PostMortem {
        language,
        user_goal: clip(&view.goal.preview(), LONGEST_GOAL),
        execution_path: view.execution_path(language),
        failure_point: point.map_or_else(
            || attribution.no_failure().to_owned(),
            |point| point.point(language),
        ),
        root_causes: root_causes(&attribution, language),
        regression_plan: plan(&attribution, language),
        cause: attribution.root_cause,
    }
}

fn root_causes(attribution: &Attribution, language: Language) -> Vec<String> {
    if attribution.root_cause == RootCause::Undetermined {
        return vec![attribution.undetermined().to_owned()];
    }
    attribution
        .of_kind(Kind::RootCause)
        .map(|finding| {
            let proof: Vec<String> = finding
                .rule
                .map(|rule| rule.to_string())
                .into_iter()
                .chain(events(&finding.events, language))
                .collect();
            format!(
                "{}: {} ({})",
                finding.layer.title(language),
                finding.sentence,
                proof.join(", ")
            )
        })
        .collect()
}

/// Collects what the findings would assert, each once: what must be read first, which command must pass, how the run must end.
fn plan(attribution: &Attribution, language: Language) -> Vec<String> {
    if attribution.root_cause == RootCause::None {
        return Vec::new();
    }
    let all = || attribution.findings.iter().flat_map(|finding| &finding.asserts);
    let mut plan: Vec<String> = Vec::new();
    let mut add = |assertion: &Assertion| {
        let text = spell(assertion, language);
        if !plan.contains(&text) {
            plan.push(text);
        }
    };
    let first = |assertion: &Assertion| match assertion {
        Assertion::ReadBeforeWrite { .. } => 0,
        Assertion::MustRead(_) => 1,
        Assertion::CommandPasses(_) => 2,
        Assertion::Completed => 3,
    };
    let mut ordered: Vec<&Assertion> = all()
        .filter(|assertion| match assertion {
            // Reading before writing says more than reading.
            Assertion::MustRead(path) => !all().any(|other| match other {
                Assertion::ReadBeforeWrite { read, .. } => read == path,
                Assertion::MustRead(_) | Assertion::CommandPasses(_) | Assertion::Completed => false,
            }),
            Assertion::ReadBeforeWrite { .. } | Assertion::CommandPasses(_) | Assertion::Completed => true,
        })
        .collect();
    ordered.sort_by_key(|assertion| first(assertion));
    for assertion in ordered {
        add(assertion);
    }
    plan
}

fn spell(assertion: &Assertion, language: Language) -> String {
    match assertion {
        Assertion::ReadBeforeWrite { read, write } => {
            let (read, write) = (one_line(read, PIECE), one_line(write, PIECE));
            language.pick(
                format!("{read} is read before {write} is written"),
                format!("写 {write} 之前必须读取 {read}"),
            )
        }
        Assertion::MustRead(path) => {
            let path = one_line(path, PIECE);
            language.pick(format!("{path} is read"), format!("必须读取 {path}"))
        }
        Assertion::CommandPasses(command) => {
            let command = one_line(command, PIECE);
            language.pick(format!("{command} passes"), format!("{command} 通过"))
        }
        Assertion::Completed => language
            .pick("the final status is completed", "最终状态 completed")
            .to_owned(),
    }
}

/// Writes a post-mortem for a terminal: five parts, each beside its title.
#[must_use]
pub fn render(report: &PostMortem, width: Width) -> String {
    let language = report.language;
    let plan = match (report.cause, report.regression_plan.as_slice()) {
        (RootCause::None, _) | (_, []) => language.pick("none needed", "无需").to_owned(),
        (RootCause::Determined | RootCause::Undetermined, assertions) => {
            let joined = assertions.join(language.pick("; ", "；"));
            let draft = match report.cause {
                RootCause::Undetermined => language.pick(
                    "add a draft eval case until a person knows the cause: ",
                    "新增 eval 草稿，待人工确认根因：",
                ),
                RootCause::Determined | RootCause::None => {
                    language.pick("add an eval case that asserts: ", "新增 eval，断言：")
                }
            };
            format!("{draft}{joined}")
        }
    };
    let none = [language.pick("none", "无").to_owned()];
    let causes = match report.root_causes.as_slice() {
        [] => none.as_slice(),
        causes => causes,
    };
    // Each cause begins a line of its own; the others have one block each.
    let mut parts = vec![
        (language.pick("User goal", "用户目标"), report.user_goal.as_str()),
        (
            language.pick("Execution path", "执行路径"),
            report.execution_path.as_str(),
        ),
        (
            language.pick("Failure point", "失败点"),
            report.failure_point.as_str(),
        ),
    ];
    let mut title = language.pick("Root causes", "根因");
    for cause in causes.iter().take(SHOWN_CAUSES) {
        parts.push((title, cause.as_str()));
        title = "";
    }
    let more = match causes.len().saturating_sub(SHOWN_CAUSES) {
        0 => None,
        hidden => Some(language.pick(format!("and {hidden} more"), format!("另有 {hidden} 条"))),
    };
    parts.extend(more.iter().map(|more| ("", more.as_str())));
    parts.push((language.pick("Regression plan", "回归方案"), plan.as_str()));
    let indent = parts.iter().map(|(title, _)| width_of(title)).fold(0, usize::max) + 2;
    parts
        .iter()
        .map(|(title, text)| beside(title, indent, text, width, PART_LINES))
        .collect()
}
