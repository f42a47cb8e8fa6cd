//! An eval case, format v1: a goal, a workspace, how to run it, and what the run must have done.
//!
//! The format is `schema/eval-case.v1`: a closed-key superset of the case of seed 003, JSON, `x-` keys free.
//! A key that nobody reads would be an assertion that nobody checks, so an unknown one is an error.

mod error;
mod expected;
mod fields;
mod json;
mod pattern;

pub use error::{CaseError, Place, Problem};
pub use expected::{
    By, ContextIncludes, CountBounds, Custom, Expected, FinalStatus, ReadBeforeWrite, SequenceMode, Severity,
    ToolSequence,
};
pub use pattern::{AnswerPattern, PathPattern};

use fields::{Choice, Extras, Fields, choice, chosen, different, filled, spelled, text_map, texts};
use json::{Node, Source};
use serde_json::Value;
use std::collections::BTreeMap;
use tracegate_core::{
    fact::run::Switch,
    ids::{Digest, Timestamp},
};

/// An eval case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Id: lower-case letters, digits, `.`, `_`, `-`, at most 128.
    pub id: String,
    /// One line for people.
    pub title: Option<String>,
    /// What kind of task it is; the suite of the case in JUnit reports.
    pub scenario: Option<String>,
    /// What the user asks for.
    pub user_goal: String,
    /// More about the case, for people.
    pub description: Option<String>,
    /// Words to choose cases by.
    pub tags: Vec<String>,
    /// Whether the case counts.
    pub status: CaseStatus,
    /// How often it has to pass.
    pub stability: Stability,
    /// Where it comes from.
    pub source: Option<Origin>,
    /// Where the agent works.
    pub workspace: Workspace,
    /// Where the model's replies come from.
    pub replay: Replay,
    /// How the agent is set up.
    pub run: RunSetup,
    /// How often it is tried.
    pub repeat: Repeat,
    /// Step counts at which the result is asked for.
    pub step_budgets: Vec<u64>,
    /// What the run must have done.
    pub expected: Expected,
    /// What stands below the `x-` keys.
    pub extra: BTreeMap<String, Value>,
}

choice! {
    /// Whether a case counts.
    CaseStatus {
        /// It decides about the suite.
        Active = "active",
        /// It is not finished: shown, decides nothing.
        Draft = "draft",
        /// It is known to be unreliable: run and shown, decides nothing.
        Quarantined = "quarantined",
    }
}

choice! {
    /// How often a case has to pass.
    Stability {
        /// In every suite.
        Always = "always",
        /// It is watched, and decides nothing.
        Usually = "usually",
    }
}

choice! {
    /// What a case was made from.
    OriginKind {
        /// A person wrote it.
        Manual = "manual",
        /// A run that failed.
        Incident = "incident",
        /// A case of another tool.
        Import = "import",
    }
}

choice! {
    /// Where the model's replies come from.
    ReplayMode {
        /// A recorded run is judged and nothing is run.
        Judge = "judge",
        /// From a cassette, with real tools.
        Recorded = "recorded",
        /// From the model.
        Live = "live",
    }
}

choice! {
    /// How a request finds its reply in a cassette.
    Match {
        /// The n-th request gets the n-th reply.
        Sequence = "sequence",
        /// By the digest of the request.
        Strict = "strict",
        /// By the digest of the request without what varies.
        Normalized = "normalized",
    }
}

choice! {
    /// What happens when a cassette has no reply.
    OnMiss {
        /// The trial fails.
        Fail = "fail",
        /// The trial ends there.
        Stop = "stop",
    }
}

choice! {
    /// Whether commands must be confined.
    Sandbox {
        /// A command that cannot be confined does not run.
        Require = "require",
        /// Confined where the machine can.
        Prefer = "prefer",
        /// Not confined.
        Off = "off",
    }
}

choice! {
    /// Whether commands of a trial reach other machines.
    Network {
        /// They do not.
        Deny = "deny",
        /// They do.
        Allow = "allow",
    }
}

/// Where a case comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// What it was made from.
    pub kind: OriginKind,
    /// The run.
    pub run_id: Option<String>,
    /// Its trace.
    pub trace_id: Option<String>,
    /// Name of the incident.
    pub incident: Option<String>,
    /// The attribution rules that fired, such as `R01`.
    pub rules: Vec<String>,
    /// When it was made.
    pub created_at: Option<Timestamp>,
}

/// Where the agent works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// Folder that is copied for each trial, relative to the case file.
    pub fixture: Option<String>,
    /// Digest that the folder must have.
    pub digest: Option<Digest>,
    /// Commands that prepare the copy.
    pub setup: Vec<String>,
    /// Commands that must fail before the run: the proof that the case can fail.
    pub expect_red: Vec<String>,
    /// Environment of the commands.
    pub env: BTreeMap<String, String>,
    /// Whether commands reach other machines.
    pub network: Network,
}

/// Where the model's replies come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// Which way.
    pub mode: ReplayMode,
    /// The recorded run that is judged.
    pub trace: Option<String>,
    /// The recorded replies.
    pub cassette: Option<String>,
    /// How a request finds its reply.
    pub matching: Match,
    /// What happens when there is none.
    pub on_miss: OnMiss,
}

/// How the agent is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSetup {
    /// Policy file.
    pub policy: Option<String>,
    /// Grants on top of it, as on the command line.
    pub grants: Vec<String>,
    /// Step limit.
    pub max_steps: Option<u32>,
    /// Whether linked tests may enter the context.
    pub context_tests: Switch,
    /// Token budget of the context.
    pub context_budget: Option<u64>,
    /// How often the validation gate sends the agent back.
    pub push_back: u32,
    /// Whether commands must be confined.
    pub sandbox: Option<Sandbox>,
}

/// How often a case is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    /// Trials, 1 to 100.
    pub k: u32,
    /// How many of them must pass; all, if it is not said.
    pub min_pass: Option<u32>,
}

const CASE: &[&str] = &[
    "$schema",
    "version",
    "id",
    "title",
    "scenario",
    "userGoal",
    "description",
    "tags",
    "status",
    "stability",
    "source",
    "workspace",
    "replay",
    "run",
    "repeat",
    "stepBudgets",
    "expected",
];
const SOURCE: &[&str] = &["kind", "runId", "traceId", "incident", "rules", "createdAt"];
const WORKSPACE: &[&str] = &["fixture", "digest", "setup", "expectRed", "env", "network"];
const REPLAY: &[&str] = &["mode", "trace", "cassette", "match", "onMiss"];
const RUN: &[&str] = &[
    "policy",
    "grants",
    "maxSteps",
    "contextTests",
    "contextBudget",
    "pushBack",
    "sandbox",
];
const REPEAT: &[&str] = &["k", "minPass"];

impl Case {
    /// Reads the case in `text`; `file_name` is used in errors alone.
    ///
    /// # Errors
    /// When it is no JSON, has a key that the format does not know (or one twice), lacks one that it needs, or has a
    /// value that the format does not permit. The error names line and column, and for a typo what was probably meant.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, CaseError> {
        let root = Source::parse(file_name, text)?;
        let fields = Fields::read(root, "a case", CASE, Extras::Free)?;
        fields.read_with("$schema", Node::string)?;
        fields.read_with("version", |node| node.integer(1, 1))?;
        Ok(Self {
            id: spelled(
                fields.need("id")?,
                "an id (a lower-case letter or digit, then up to 127 of those, `.`, `_` and `-`)",
                is_id,
            )?,
            title: fields.read_with("title", |node| {
                spelled(node, "a title (at most 200 characters)", |text| {
                    text.chars().count() <= 200
                })
            })?,
            scenario: fields.read_with("scenario", |node| {
                spelled(
                    node,
                    "a scenario (a lower-case letter, then those, digits and `-`)",
                    is_scenario,
                )
            })?,
            user_goal: filled(fields.need("userGoal")?)?,
            description: fields.read_with("description", Node::string)?,
            tags: fields.list("tags", different)?,
            status: fields
                .read_with("status", |node| chosen(node, "status"))?
                .unwrap_or(CaseStatus::Active),
            stability: fields
                .read_with("stability", |node| chosen(node, "stability"))?
                .unwrap_or(Stability::Always),
            source: fields.read_with("source", source)?,
            workspace: fields
                .read_with("workspace", workspace)?
                .unwrap_or_else(Workspace::empty),
            replay: fields
                .read_with("replay", replay)?
                .unwrap_or_else(Replay::recorded),
            run: fields.read_with("run", run)?.unwrap_or_else(RunSetup::usual),
            repeat: fields
                .read_with("repeat", repeat)?
                .unwrap_or(Repeat { k: 1, min_pass: None }),
            step_budgets: fields.list("stepBudgets", step_budgets)?,
            expected: Expected::read(fields.need("expected")?)?,
            extra: fields.extras()?,
        })
    }

    /// Tells whether the case decides about the suite: a draft, a quarantined or a usually stable one does not.
    #[must_use]
    pub const fn decides(&self) -> bool {
        matches!(self.status, CaseStatus::Active) && matches!(self.stability, Stability::Always)
    }
}

impl Workspace {
    const fn empty() -> Self {
        Self {
            fixture: None,
            digest: None,
            setup: Vec::new(),
            expect_red: Vec::new(),
            env: BTreeMap::new(),
            network: Network::Deny,
        }
    }
}

impl Replay {
    const fn recorded() -> Self {
        Self {
            mode: ReplayMode::Recorded,
            trace: None,
            cassette: None,
            matching: Match::Sequence,
            on_miss: OnMiss::Fail,
        }
    }
}

impl RunSetup {
    const fn usual() -> Self {
        Self {
            policy: None,
            grants: Vec::new(),
            max_steps: None,
            context_tests: Switch::On,
            context_budget: None,
            push_back: 2,
            sandbox: None,
        }
    }
}

fn is_id(text: &str) -> bool {
    let first = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(first)
        && text.len() <= 128
        && text.chars().all(|c| first(c) || matches!(c, '.' | '_' | '-'))
}

fn is_scenario(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn source(node: Node<'_>) -> Result<Origin, CaseError> {
    let fields = Fields::read(node, "`source`", SOURCE, Extras::Closed)?;
    Ok(Origin {
        kind: chosen(fields.need("kind")?, "kind")?,
        run_id: fields.read_with("runId", Node::string)?,
        trace_id: fields.read_with("traceId", Node::string)?,
        incident: fields.read_with("incident", Node::string)?,
        rules: fields.list("rules", texts)?,
        created_at: fields.read_with("createdAt", |node| {
            let value = node.string()?;
            value.parse().map_err(|_| {
                node.error(Problem::Spelling {
                    value,
                    wanted: "a time (RFC 3339)",
                })
            })
        })?,
    })
}

fn workspace(node: Node<'_>) -> Result<Workspace, CaseError> {
    let fields = Fields::read(node, "`workspace`", WORKSPACE, Extras::Closed)?;
    Ok(Workspace {
        fixture: fields.read_with("fixture", Node::string)?,
        digest: fields.read_with("digest", |node| {
            let value = node.string()?;
            value.parse().map_err(|_| {
                node.error(Problem::Spelling {
                    value,
                    wanted: "a digest (`b3:` and 64 lower-case hex digits)",
                })
            })
        })?,
        setup: fields.list("setup", texts)?,
        expect_red: fields.list("expectRed", texts)?,
        env: fields.read_with("env", text_map)?.unwrap_or_default(),
        network: fields
            .read_with("network", |node| chosen(node, "network"))?
            .unwrap_or(Network::Deny),
    })
}

fn replay(node: Node<'_>) -> Result<Replay, CaseError> {
    let fields = Fields::read(node, "`replay`", REPLAY, Extras::Closed)?;
    let usual = Replay::recorded();
    Ok(Replay {
        mode: fields
            .read_with("mode", |node| chosen(node, "mode"))?
            .unwrap_or(usual.mode),
        trace: fields.read_with("trace", Node::string)?,
        cassette: fields.read_with("cassette", Node::string)?,
        matching: fields
            .read_with("match", |node| chosen(node, "match"))?
            .unwrap_or(usual.matching),
        on_miss: fields
            .read_with("onMiss", |node| chosen(node, "onMiss"))?
            .unwrap_or(usual.on_miss),
    })
}

impl Choice for Switch {
    const KNOWN: &'static [&'static str] = &["on", "off"];

    fn of(text: &str) -> Option<Self> {
        match text {
            "on" => Some(Self::On),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

fn run(node: Node<'_>) -> Result<RunSetup, CaseError> {
    let fields = Fields::read(node, "`run`", RUN, Extras::Closed)?;
    let usual = RunSetup::usual();
    Ok(RunSetup {
        policy: fields.read_with("policy", Node::string)?,
        grants: fields.list("grants", texts)?,
        max_steps: fields.read_with("maxSteps", |node| small(node, 1, u32::MAX))?,
        context_tests: fields
            .read_with("contextTests", |node| chosen(node, "contextTests"))?
            .unwrap_or(usual.context_tests),
        context_budget: fields.read_with("contextBudget", |node| node.integer(1, u64::MAX))?,
        push_back: fields
            .read_with("pushBack", |node| small(node, 0, u32::MAX))?
            .unwrap_or(usual.push_back),
        sandbox: fields.read_with("sandbox", |node| chosen(node, "sandbox"))?,
    })
}

fn repeat(node: Node<'_>) -> Result<Repeat, CaseError> {
    let fields = Fields::read(node, "`repeat`", REPEAT, Extras::Closed)?;
    Ok(Repeat {
        k: fields.read_with("k", |node| small(node, 1, 100))?.unwrap_or(1),
        min_pass: fields.read_with("minPass", |node| small(node, 1, u32::MAX))?,
    })
}

fn step_budgets(node: Node<'_>) -> Result<Vec<u64>, CaseError> {
    let mut all = Vec::new();
    for element in node.array()? {
        let value = element.integer(1, u64::MAX)?;
        if all.contains(&value) {
            return Err(element.error(Problem::DuplicateElement(value.to_string())));
        }
        all.push(value);
    }
    Ok(all)
}

/// Reads an integer that fits into 32 bits.
fn small(node: Node<'_>, min: u32, max: u32) -> Result<u32, CaseError> {
    let value = node.integer(min.into(), max.into())?;
    // The bounds above are those of the type, so the fallback is never taken.
    Ok(u32::try_from(value).unwrap_or(max))
}

#[cfg(test)]
mod tests;
