//! Why a run failed: the direct failure and its root causes, by rules over events, never by a guess.
//!
//! The rules are R01, R05, R26 and R27 of the incident taxonomy. A rule that fires names the events that prove it. Where none fires
//! the root cause is `undetermined` and the report says so. Something a rule sees that did not cause the failure is `observed`.

mod failure;
mod rules;

pub(crate) use failure::FailurePoint;

use crate::{
    language::Language,
    terminal::{Width, beside},
    view::{Holder, RunView, ShownStatus},
};
use serde::Serialize;
use std::fmt;
use tracegate_core::ids::Seq;

/// A rule of the taxonomy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Rule {
    /// A strong linked test never reached the model before the first write of its source.
    R01,
    /// The final answer came after the last trusted red test run.
    R05,
    /// A file that red output named was neither read nor changed afterwards.
    R26,
    /// Red, then the final answer in the very next step.
    R27,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::R01 => "R01",
            Self::R05 => "R05",
            Self::R26 => "R26",
            Self::R27 => "R27",
        })
    }
}

/// The part of the system that a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// What the model got to see.
    Context,
    /// What the model decided.
    Model,
    /// What a tool did.
    Tool,
    /// What the permission gate ruled.
    Permission,
    /// What the validation gate ruled.
    Validation,
    /// The loop, its limits and its record.
    Runtime,
}

impl Layer {
    /// Returns the layer's name for people.
    #[must_use]
    pub fn title(self, language: Language) -> &'static str {
        let (en, zh) = match self {
            Self::Context => ("Context Builder", "上下文构建"),
            Self::Model => ("Model", "模型"),
            Self::Tool => ("Tool", "工具"),
            Self::Permission => ("Permission Gate", "权限门禁"),
            Self::Validation => ("Validation Gate", "验收门禁"),
            Self::Runtime => ("Runtime", "运行时"),
        };
        language.pick(en, zh)
    }
}

/// What a finding is in the story of the failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The last event that made the run fail.
    DirectFailure,
    /// Why it came to that.
    RootCause,
    /// True and worth knowing, but not shown to have caused it.
    Observed,
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The events prove it.
    Decided,
    /// The log lists only part of what would prove it.
    Likely,
}

/// One thing that the rules found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The rule; null for the direct failure, which is read off the end of the run.
    pub rule: Option<Rule>,
    /// The part of the system that it is about.
    pub layer: Layer,
    /// What it is in the story.
    pub kind: Kind,
    /// How sure it is.
    pub confidence: Confidence,
    /// What happened, in the language asked for; recorded text in it is not translated.
    pub sentence: String,
    /// What to change so that it does not happen again; null where there is nothing to change.
    pub change: Option<String>,
    /// The events that prove it, in order.
    pub events: Vec<Seq>,
    /// What an eval case would assert, in the fields of the eval case format.
    #[serde(skip)]
    pub(crate) asserts: Vec<Assertion>,
}

/// What an eval case can assert about a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Assertion {
    ReadBeforeWrite { read: String, write: String },
    MustRead(String),
    CommandPasses(String),
    Completed,
}

/// Whether a run has a root cause, and whether it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RootCause {
    /// The run has not failed, so there is none.
    None,
    /// At least one rule names it.
    Determined,
    /// No rule fires: a person has to look.
    Undetermined,
}

/// Everything that the rules have to say about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Attribution {
    /// The status of the run that this is about.
    pub status: ShownStatus,
    /// Whether the root cause is known.
    pub root_cause: RootCause,
    /// The direct failure, then root causes in the order of their events, then what else was observed.
    pub findings: Vec<Finding>,
    #[serde(skip)]
    language: Language,
}

/// Explains a run by the rules.
#[must_use]
pub fn explain(view: &RunView, holder: Holder, language: Language) -> Attribution {
    let status = view.status(holder);
    let failure = FailurePoint::of(view, holder);
    let red =
        matches!(failure, Some(FailurePoint::RedTest { .. })) || (failure.is_some() && view.judged_red());
    let mut findings: Vec<Finding> = failure.iter().map(|point| point.finding(language)).collect();
    findings.extend(rules::fire(view, red, language));
    findings.sort_by_key(|finding| (finding.kind, finding.events.first().copied()));
    let known = findings.iter().any(|finding| finding.kind == Kind::RootCause);
    Attribution {
        status,
        root_cause: match (failure.is_some(), known) {
            (false, _) => RootCause::None,
            (true, true) => RootCause::Determined,
            (true, false) => RootCause::Undetermined,
        },
        findings,
        language,
    }
}

impl Attribution {
    /// Returns the findings of one kind.
    pub(crate) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.kind == kind)
    }

    /// Says why there is no direct failure.
    pub(crate) fn no_failure(&self) -> &'static str {
        let (en, zh) = match self.status {
            ShownStatus::Completed => ("none: the run completed", "无：运行已完成"),
            ShownStatus::Cancelled => ("none: a person stopped the run", "无：运行被人为取消"),
            ShownStatus::Running => ("none so far: the run is under way", "暂无：运行仍在进行"),
            ShownStatus::WaitingForUser => {
                ("none so far: the run waits for its user", "暂无：运行在等待用户")
            }
            // Such runs have a direct failure; the sentence only has to be true.
            ShownStatus::Failed | ShownStatus::Interrupted => ("not recorded", "未记录"),
        };
        self.language.pick(en, zh)
    }

    /// Says that nobody knows the root cause.
    pub(crate) fn undetermined(&self) -> &'static str {
        self.language.pick(
            "undetermined: no rule fires; a person has to look",
            "未确定：没有规则命中，需要人工判断",
        )
    }
}

/// How many columns the kinds of findings take.
const KIND: usize = 17;
/// How many the layers take.
const LAYER: usize = 17;
/// How many root causes a text shows; JSON has all.
const SHOWN_CAUSES: usize = 3;
/// How many observations it shows.
const SHOWN_OBSERVED: usize = 2;

/// Writes an attribution for a terminal.
#[must_use]
pub fn render(attribution: &Attribution, width: Width) -> String {
    let language = attribution.language;
    let mut text = String::new();
    let direct = language.pick("Direct failure", "直接失败点");
    let mut failed = false;
    for finding in attribution.of_kind(Kind::DirectFailure) {
        failed = true;
        text.push_str(&paragraph(direct, finding, language, width));
    }
    if !failed {
        text.push_str(&beside(direct, KIND, attribution.no_failure(), width, 2));
    }
    let cause = language.pick("Root cause", "根因");
    for (place, finding) in attribution
        .of_kind(Kind::RootCause)
        .take(SHOWN_CAUSES)
        .enumerate()
    {
        text.push_str(&paragraph(
            &format!("{cause} {}", place + 1),
            finding,
            language,
            width,
        ));
        if let Some(change) = &finding.change {
            let change = format!("{}{change}", language.pick("change: ", "改进："));
            text.push_str(&beside("", KIND, &change, width, 2));
        }
    }
    if attribution.root_cause == RootCause::Undetermined {
        text.push_str(&beside(cause, KIND, attribution.undetermined(), width, 2));
    }
    let observed = language.pick("Observed", "观察");
    for finding in attribution.of_kind(Kind::Observed).take(SHOWN_OBSERVED) {
        text.push_str(&paragraph(observed, finding, language, width));
    }
    let hidden = attribution.of_kind(Kind::RootCause).skip(SHOWN_CAUSES).count()
        + attribution.of_kind(Kind::Observed).skip(SHOWN_OBSERVED).count();
    if hidden > 0 {
        let more = language.pick(format!("{hidden} more"), format!("另有 {hidden} 条"));
        text.push_str(&beside("", KIND, &more, width, 1));
    }
    text
}

/// Sets a finding beside its kind and layer, with rule, events and confidence behind the sentence.
fn paragraph(kind: &str, finding: &Finding, language: Language, width: Width) -> String {
    let proof = [
        finding.rule.map(|rule| rule.to_string()),
        events(&finding.events, language),
        finding.rule.map(|_| {
            match finding.confidence {
                Confidence::Decided => language.pick("decided", "确定"),
                Confidence::Likely => language.pick("likely", "很可能"),
            }
            .to_owned()
        }),
    ];
    let proof: Vec<String> = proof.into_iter().flatten().collect();
    let sentence = format!("{} ({})", finding.sentence, proof.join(", "));
    let layer = finding.layer.title(language);
    let label = format!("{}{layer}", crate::terminal::cell(kind, KIND));
    if width.columns() < NARROW {
        let sentence = beside("", NARROW_INDENT, &sentence, width, SENTENCE_LINES);
        return format!("{label}\n{sentence}");
    }
    let mut block = String::new();
    for (place, line) in crate::terminal::wrap(&sentence, width.beside(KIND + LAYER), SENTENCE_LINES)
        .iter()
        .enumerate()
    {
        let start = if place == 0 { label.as_str() } else { "" };
        let missing = (KIND + LAYER).saturating_sub(crate::terminal::width_of(start));
        block.push_str(format!("{start}{}{line}", " ".repeat(missing)).trim_end());
        block.push('\n');
    }
    block
}

/// Below this width the sentence stands under kind and layer, not beside them.
const NARROW: usize = 70;
/// How far it is indented there.
const NARROW_INDENT: usize = 2;
/// How many lines a sentence may take: enough for the longest one with its proof, which must not be cut.
const SENTENCE_LINES: usize = 9;

/// Names events: `event 21`, `events 2, 11`.
pub(crate) fn events(events: &[Seq], language: Language) -> Option<String> {
    let names: Vec<String> = events.iter().take(4).map(Seq::to_string).collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(language.pick(format!("event {one}"), format!("事件 {one}"))),
        [_, ..] => {
            let names = names.join(", ");
            Some(language.pick(format!("events {names}"), format!("事件 {names}")))
        }
    }
}
