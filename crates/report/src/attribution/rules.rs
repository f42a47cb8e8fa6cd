//! The rules: each reads the events for one symptom and fires with the events that prove it.

use super::{Assertion, Confidence, Finding, Kind, Layer, Rule};
use crate::{
    language::Language,
    terminal::one_line,
    view::{ActionView, RunView, TrustedRun},
};
use std::collections::BTreeMap;
use tracegate_core::{
    fact::{
        gate::ValidationRuling,
        model::ContextLink,
        run::Switch,
        tool::{Outcome, SideEffectType},
    },
    ids::{Seq, StepNo},
    stop::Status,
};

/// How wide a path may be inside a sentence.
const PATH: usize = 60;

/// Lets every rule look at the run. `red` says that its direct failure is a red test run: only then can these rules name root causes.
pub(super) fn fire(view: &RunView, red: bool, language: Language) -> Vec<Finding> {
    let blame = if red { Kind::RootCause } else { Kind::Observed };
    let mut findings = unseen_tests(view, blame, language);
    let context_explains = !findings.is_empty();
    findings.extend(claimed_while_red(view, blame, language));
    // A model that was shown too little is not to blame for giving up on it.
    let gave_up = if context_explains { Kind::Observed } else { blame };
    findings.extend(gave_up_on_red(view, gave_up, language));
    findings.extend(named_and_not_read(view, language));
    findings
}

/// A write of a file: who did it, and when.
#[derive(Clone, Copy)]
struct Write<'a> {
    action: &'a ActionView,
    seq: Seq,
}

/// R01: the goal is about tests, and no strong linked test of a written file had reached the model when it asked for the first write.
///
/// What reached the model is what stood in a context or what a tool had brought back before the reply that asked for the write: a
/// read in the same reply came too late. Where some of a file's linked tests were seen, the others count only if red output names them.
fn unseen_tests(view: &RunView, kind: Kind, language: Language) -> Vec<Finding> {
    if !view.verdict().is_some_and(|verdict| verdict.armed) {
        return Vec::new();
    }
    let named: Vec<&str> = red_runs(view)
        .flat_map(|run| run.record.reading.named_files.iter())
        .map(|path| view.relative(path))
        .collect();
    first_writes(view)
        .into_iter()
        .filter_map(|(source, write)| {
            let links = links_of(view, source);
            let (seen, unseen): (Vec<_>, Vec<_>) = links
                .into_iter()
                .partition(|(test, _)| reached_model(view, test, write.action.asked));
            let unseen: Vec<(&str, FirstLink)> = unseen
                .into_iter()
                .filter(|(test, _)| seen.is_empty() || named.contains(test))
                .collect();
            unseen_finding(view, source, write, &unseen, kind, language)
        })
        .collect()
}

fn unseen_finding(
    view: &RunView,
    source: &str,
    write: Write<'_>,
    unseen: &[(&str, FirstLink)],
    kind: Kind,
    language: Language,
) -> Option<Finding> {
    let (test, link) = unseen.first()?;
    let shown = one_line(test, PATH);
    let others = match unseen.len() {
        1 => String::new(),
        all => language.pick(
            format!(" (and {} more)", all - 1),
            format!("（另有 {} 个）", all - 1),
        ),
    };
    let source_shown = one_line(source, PATH);
    let visible = link.step.map_or_else(String::new, |step| {
        language.pick(
            format!(", first visible at step {step},"),
            format!("（首次可见于第 {step} 步）"),
        )
    });
    let dropped = dropped_reason(view, test, link.seq).map_or_else(String::new, |reason| {
        let reason = one_line(reason, PATH);
        language.pick(format!("; dropped: {reason}"), format!("；丢弃原因：{reason}"))
    });
    let change = match view.settings.context_tests {
        Switch::Off => language
            .pick(
                "let linked tests into the context (--context-tests on)",
                "允许关联测试进入上下文（--context-tests on）",
            )
            .to_owned(),
        Switch::On => language.pick(
            format!(
                "give linked tests priority in the context, or raise its budget of {} tokens",
                view.settings.context_budget
            ),
            format!(
                "提高关联测试的上下文优先级，或增大 {} token 的预算",
                view.settings.context_budget
            ),
        ),
    };
    let mut events = vec![link.seq, write.seq];
    events.sort();
    Some(Finding {
        rule: Some(Rule::R01),
        layer: Layer::Context,
        kind,
        confidence: if contexts_listed_in_full(view, write.action.asked) {
            Confidence::Decided
        } else {
            Confidence::Likely
        },
        sentence: language.pick(
            format!("linked test {shown}{others}{visible} never in context before {source_shown} was written{dropped}"),
            format!("{source_shown} 写入前，关联测试 {shown}{others}{visible}从未进入上下文{dropped}"),
        ),
        change: Some(change),
        events,
        asserts: unseen
            .iter()
            .map(|(test, _)| Assertion::ReadBeforeWrite {
                read: (*test).to_owned(),
                write: source.to_owned(),
            })
            .collect(),
    })
}

/// Returns the first write of each file.
fn first_writes(view: &RunView) -> BTreeMap<&str, Write<'_>> {
    let mut writes: BTreeMap<&str, Write<'_>> = BTreeMap::new();
    for action in &view.actions {
        let Some(end) = &action.end else { continue };
        for effect in &end.side_effects {
            match effect.effect {
                SideEffectType::WriteFile | SideEffectType::DeleteFile => {}
            }
            let write = Write { action, seq: end.seq };
            let first = writes
                .entry(view.relative(&effect.relative_path))
                .or_insert(write);
            if write.seq < first.seq {
                *first = write;
            }
        }
    }
    writes
}

/// Where a link was first recorded.
#[derive(Clone, Copy)]
struct FirstLink {
    seq: Seq,
    step: Option<StepNo>,
}

/// Returns the strong linked tests of a file, each with the context build that first recorded the link.
fn links_of<'a>(view: &'a RunView, source: &str) -> Vec<(&'a str, FirstLink)> {
    let mut links: Vec<(&str, FirstLink)> = Vec::new();
    for context in &view.contexts {
        let strong = |link: &&ContextLink| link.strong && view.relative(&link.source) == source;
        for link in context.built.links.iter().filter(strong) {
            let test = view.relative(&link.test);
            if !links.iter().any(|(known, _)| *known == test) {
                let first = FirstLink {
                    seq: context.seq,
                    step: context.step,
                };
                links.push((test, first));
            }
        }
    }
    links
}

/// Tells whether the text of a file had reached the model before event `by`: in a context, or through a tool.
fn reached_model(view: &RunView, path: &str, by: Seq) -> bool {
    stood_in_context(view, path, by)
        || view.actions.iter().any(|action| {
            action.end.as_ref().is_some_and(|end| end.seq < by) && brought_back(view, action, path)
        })
}

/// Tells whether a context held the file's text; an outline or a mere path is not its text.
fn stood_in_context(view: &RunView, path: &str, by: Seq) -> bool {
    view.contexts
        .iter()
        .filter(|context| context.seq < by)
        .any(|context| {
            let items = context.built.included.iter();
            let links = context.built.links.iter();
            items
                .filter(|item| matches!(item.level.as_str(), "full" | "slice"))
                .map(|item| &item.path)
                .chain(links.filter(|link| link.included).map(|link| &link.test))
                .any(|shown| view.relative(shown) == path)
        })
}

/// Tells whether an action brought back a file's text. A command or a search that names the file counts: it may have shown it.
fn brought_back(view: &RunView, action: &ActionView, path: &str) -> bool {
    match action.tool.as_str() {
        "list_files" | "write_text" => false,
        "search_text" => {
            let found = action.end.as_ref().and_then(|end| end.output.as_ref());
            found.is_some_and(|output| output.preview().contains(path))
        }
        "shell" | "shell_readonly" => action.command().is_some_and(|command| command.contains(path)),
        _ => {
            action.outcome() == Some(Outcome::Ok)
                && action.path().is_some_and(|read| view.relative(read) == path)
        }
    }
}

/// An event lists the first 64 files of a context; beyond that, absence from the list proves nothing.
fn contexts_listed_in_full(view: &RunView, by: Seq) -> bool {
    view.contexts
        .iter()
        .filter(|context| context.seq < by)
        .all(|context| context.built.included_total <= context.built.included.len() as u64)
}

/// Returns why a file did not get into the context of event `seq`.
fn dropped_reason<'a>(view: &'a RunView, path: &str, seq: Seq) -> Option<&'a str> {
    let context = view.contexts.iter().find(|context| context.seq == seq)?;
    let dropped = context.built.dropped.iter();
    dropped
        .filter(|drop| view.relative(&drop.path) == path)
        .map(|drop| drop.reason.as_str())
        .next()
}

/// Returns the trusted test runs that were red.
fn red_runs(view: &RunView) -> impl Iterator<Item = TrustedRun<'_>> {
    view.trusted_runs().into_iter().filter(TrustedRun::is_red)
}

/// R05: the final answer came after the last trusted test run, and that one was red.
fn claimed_while_red(view: &RunView, kind: Kind, language: Language) -> Option<Finding> {
    let answer = view.finals().last()?;
    let runs = view.trusted_runs();
    let red = runs
        .iter()
        .rfind(|run| run.seq < answer.seq)
        .filter(|run| run.is_red());
    let judged = view.validations.last().filter(|_| view.judged_red());
    if red.is_none() && judged.is_none() {
        return None;
    }
    let caught = view
        .validations
        .iter()
        .rev()
        .find(|review| review.ruling != ValidationRuling::Complete);
    let (sentence, change) = match caught {
        Some(_) if view.settings.push_back == 0 => (
            language
                .pick(
                    "claimed while red; the gate caught it, push-back was off",
                    "测试为红时声称完成；门禁已拦截，但未开启退回",
                )
                .to_owned(),
            Some(
                language
                    .pick(
                        "let the gate send the agent back (--push-back 2)",
                        "允许门禁把 agent 退回继续（--push-back 2）",
                    )
                    .to_owned(),
            ),
        ),
        Some(review) => {
            let (done, allowed) = (review.pushed_back, view.settings.push_back);
            let sentence = language.pick(
                format!(
                    "claimed while red; the gate caught it and had pushed back {done} of {allowed} times"
                ),
                format!("测试为红时声称完成；门禁已拦截，此前退回 {done}/{allowed} 次"),
            );
            (sentence, None)
        }
        None => (
            language
                .pick(
                    "claimed while red; no gate stopped it",
                    "测试为红时声称完成；没有门禁拦截",
                )
                .to_owned(),
            Some(
                language
                    .pick(
                        "let the validation gate review the end of the run",
                        "让验收门禁审查运行的结束",
                    )
                    .to_owned(),
            ),
        ),
    };
    let mut events: Vec<Seq> = red.map(|run| run.seq).into_iter().collect();
    events.push(answer.seq);
    events.extend(caught.map(|review| review.seq));
    let command = red.map(TrustedRun::command);
    Some(Finding {
        rule: Some(Rule::R05),
        layer: Layer::Validation,
        kind,
        confidence: Confidence::Decided,
        sentence,
        change,
        events,
        asserts: command
            .map(Assertion::CommandPasses)
            .into_iter()
            .chain([Assertion::Completed])
            .collect(),
    })
}

/// R27: after the last red run the model gave its final answer in the very next step.
fn gave_up_on_red(view: &RunView, kind: Kind, language: Language) -> Option<Finding> {
    let runs = view.trusted_runs();
    let red = runs.last().filter(|run| run.is_red())?;
    let answer = view.finals().find(|reply| reply.seq > red.seq)?;
    let (StepNo(red_step), StepNo(step)) = (red.action.step?, answer.step?);
    if red_step.checked_add(1) != Some(step) {
        return None;
    }
    Some(Finding {
        rule: Some(Rule::R27),
        layer: Layer::Model,
        kind,
        confidence: Confidence::Decided,
        sentence: language
            .pick(
                "gave its final answer in the step right after the red run",
                "测试变红后的下一步就给出了最终回答",
            )
            .to_owned(),
        change: (view.settings.push_back == 0).then(|| {
            language
                .pick(
                    "let the gate send the agent back (--push-back 2)",
                    "允许门禁把 agent 退回继续（--push-back 2）",
                )
                .to_owned()
        }),
        events: vec![red.seq, answer.seq],
        asserts: vec![Assertion::Completed],
    })
}

/// R26, as an observation: the last red output named a file that was neither shown, read nor changed afterwards.
fn named_and_not_read(view: &RunView, language: Language) -> Option<Finding> {
    if view
        .stop
        .is_some_and(|reason| reason.status() == Status::Completed)
    {
        return None;
    }
    let runs = view.trusted_runs();
    let red = runs.last().filter(|run| run.is_red())?;
    let writes = |action: &ActionView, path: &str| {
        let effects = action.end.iter().flat_map(|end| &end.side_effects);
        effects
            .into_iter()
            .any(|effect| view.relative(&effect.relative_path) == path)
    };
    let later = |action: &&ActionView| action.asked > red.seq;
    let named = red.record.reading.named_files.iter();
    let missed = named.map(|path| view.relative(path)).find(|path| {
        let touched = view
            .actions
            .iter()
            .filter(later)
            .any(|action| writes(action, path) || brought_back(view, action, path));
        !touched && !reached_model(view, path, Seq(u64::MAX))
    })?;
    let shown = one_line(missed, PATH);
    Some(Finding {
        rule: Some(Rule::R26),
        layer: Layer::Context,
        kind: Kind::Observed,
        confidence: Confidence::Decided,
        sentence: language.pick(
            format!("{shown} was named by the red output and never read"),
            format!("失败输出提到 {shown}，但从未读取"),
        ),
        change: Some(
            language
                .pick(
                    "put files that red output names into the next context",
                    "把失败输出提到的文件放入下一次上下文",
                )
                .to_owned(),
        ),
        events: vec![red.seq],
        asserts: vec![Assertion::MustRead(missed.to_owned())],
    })
}
