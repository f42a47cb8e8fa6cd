//! The phase that builds a step's context: takes the inventory, packs, writes the report, records the summary.

use crate::{
    agent::StepError,
    attention::Touch,
    context::{
        How, Identity, Linking, LoadedBy, Request, Touched,
        inventory::{LARGEST_FILE, take_inventory},
        pack,
    },
    gate::Rules,
    session::Session,
};
use tracegate_core::{
    context_report::{Confidence, ContextReport, Level, Reserved},
    fact::{
        model::{ContextBuildFinished, ContextBuildStarted, ContextDrop, ContextItem, ContextLink},
        run::Switch,
    },
    ids::Digest,
    payload::encoded_len,
};
use tracegate_store::RunDir;

/// How many entries of each list the event holds; the report has them all.
const LISTED: usize = 64;
/// How many bytes of paths each of those lists may hold.
const LISTED_BYTES: usize = 12 * 1024;

/// What the model gets to see in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The message.
    pub text: String,
    /// The files whose text is in it.
    pub files: Vec<String>,
}

/// Builds the context of the step at work, writes its report and records its summary.
///
/// # Errors
/// When the workspace cannot be read or the run cannot be recorded.
pub fn build(session: &mut Session, rules: &dyn Rules) -> Result<Context, StepError> {
    let budget = session.context_budget;
    let span = session.recorder.begin(None, ContextBuildStarted { budget })?;
    let live = span.live();
    let built = live.in_scope(|| -> Result<_, StepError> {
        let inventory = take_inventory(session.root.path()).map_err(std::io::Error::other)?;
        let attention = session.recorder.attention();
        let touched: Vec<Touched> = attention
            .touched()
            .map(|(path, touch, step)| Touched {
                path: path.to_owned(),
                how: match touch {
                    Touch::Read => How::Read,
                    Touch::Written => How::Written,
                },
                step,
            })
            .collect();
        let identity = Identity {
            run: session.recorder.run().clone(),
            step: session.step(),
            trace: session.recorder.trace(),
            span: span.ids().span,
        };
        let request = Request {
            identity: &identity,
            goal: &session.state().goal,
            budget,
            reserved: Reserved::default(),
            linking: match session.context_tests {
                Switch::On => Linking::On,
                Switch::Off => Linking::Off,
            },
            touched: &touched,
            red_files: attention.red_files(),
            inventory: &inventory,
        };
        Ok(pack(&request, &LoadedBy(&|path| load(session, rules, path))))
    })?;
    let report = session.recorder.scrub_report(&built.report)?;
    let digest = Digest::of(&serde_json::to_vec(report.get()).unwrap_or_default());
    session
        .recorder
        .dir()
        .write_context(session.step(), &report)
        .map_err(crate::recorder::RecorderError::from)?;
    let finished = summary(report.get(), budget, digest);
    let files = with_text(report.get());
    session.recorder.end(span, finished)?;
    let text = if built.text.is_empty() {
        "(no files of the workspace are shown)".to_owned()
    } else {
        built.text
    };
    Ok(Context {
        text: format!("Files of the workspace, as they are now:\n\n{text}"),
        files,
    })
}

/// Reads a file as the model may see it: if the policy lets it read the file, redacted, lossy where it is no UTF-8.
fn load(session: &Session, rules: &dyn Rules, path: &str) -> Option<String> {
    // The context is no way around the gate: what a rule denies or would ask about is not shown.
    if !crate::gate::may_read(rules, path) {
        return None;
    }
    let (bytes, _) = session.root.read(path, LARGEST_FILE).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Some(session.recorder.redactor().scrub_text(text).into_inner())
}

fn with_text(report: &ContextReport) -> Vec<String> {
    let shown = report
        .included
        .iter()
        .filter(|item| matches!(item.level, Level::Full | Level::Slice));
    shown.map(|item| item.path.clone()).collect()
}

fn spelled<T: serde::Serialize>(value: &T) -> String {
    // A closed list spells its entries as JSON strings; anything else would be a defect that shows as its JSON.
    serde_json::to_value(value).map_or_else(
        |_| String::new(),
        |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    )
}

fn summary(report: &ContextReport, budget: u64, digest: Digest) -> ContextBuildFinished {
    let shown = with_text(report);
    let included = report.included.iter().map(|item| ContextItem {
        path: item.path.clone(),
        level: spelled(&item.level),
    });
    let dropped = report.dropped.iter().map(|item| ContextDrop {
        path: item.path.clone(),
        reason: spelled(&item.reason),
    });
    let links = report.links.iter().flat_map(|link| {
        link.tests.iter().map(|test| ContextLink {
            source: link.source.clone(),
            test: test.path.clone(),
            score: test.score,
            strong: Confidence::of_score(test.score) == Confidence::Strong,
            included: shown.contains(&test.path),
        })
    });
    ContextBuildFinished {
        budget,
        used: report.used,
        included: first(included, |item| encoded_len(&item.path)),
        dropped: first(dropped, |item| encoded_len(&item.path)),
        included_total: report.included.len() as u64,
        dropped_total: report.dropped.len() as u64,
        links: first(links, |link| encoded_len(&link.source) + encoded_len(&link.test)),
        report: RunDir::context_name(report.step),
        digest,
        error: None,
    }
}

/// Keeps the first items, as many as the event can hold.
fn first<T>(items: impl Iterator<Item = T>, bytes_of: impl Fn(&T) -> usize) -> Vec<T> {
    let mut bytes = 0;
    items
        .take(LISTED)
        .take_while(|item| {
            bytes += bytes_of(item);
            bytes <= LISTED_BYTES
        })
        .collect()
}
