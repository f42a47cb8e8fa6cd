//! The `expected` object of a case: every assertion of the format, read and checked, judged elsewhere.

use super::{
    error::{CaseError, Problem},
    fields::{Extras, Fields, choice, chosen, expressions, names, not_chosen, path, paths, texts},
    json::Node,
    pattern::{AnswerPattern, PathPattern},
};
use serde_json::Value;
use std::collections::BTreeMap;
use tracegate_core::stop::{Status, StopReason};

/// What a run must have done. A list that is empty asserts nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expected {
    /// Tools that must have done their work at least once.
    pub required_tools: Vec<String>,
    /// Tools, or risk classes, that must not have been asked for.
    pub forbidden_tools: Vec<String>,
    /// The order of the calls.
    pub tool_sequence: Option<ToolSequence>,
    /// How often each tool is called.
    pub tool_counts: BTreeMap<String, CountBounds>,
    /// How many calls may fail.
    pub max_tool_errors: Option<u64>,
    /// Files whose content must have reached the model.
    pub must_read_files: Vec<PathPattern>,
    /// Files that must be read before others are written.
    pub must_read_before_write: Vec<ReadBeforeWrite>,
    /// Files that must differ at the end.
    pub must_write_files: Vec<PathPattern>,
    /// The only files that may change; `None` where the case does not say.
    pub only_write_files: Option<Vec<PathPattern>>,
    /// Files that must not change.
    pub forbidden_write_files: Vec<PathPattern>,
    /// Commands whose newest run must be green.
    pub commands_pass: Vec<String>,
    /// Commands that must have run.
    pub commands_run: Vec<String>,
    /// How the run must have ended; empty where the case does not say.
    pub final_status: Vec<FinalStatus>,
    /// Whether no action may be refused.
    pub no_permission_denied: Option<bool>,
    /// Files that must be in the context.
    pub context_includes: Vec<ContextIncludes>,
    /// Whether no context may exceed its budget.
    pub context_budget_respected: Option<bool>,
    /// Kinds of span that must be there.
    pub spans_present: Vec<String>,
    /// Fewest steps.
    pub min_steps: Option<u64>,
    /// Most steps.
    pub max_steps: Option<u64>,
    /// Most tokens, input and output.
    pub max_tokens: Option<u64>,
    /// Most requests to the model.
    pub max_model_calls: Option<u64>,
    /// What the final answer should say; informs only.
    pub final_mentions: Vec<String>,
    /// What the final answer should not say; informs only.
    pub final_must_not_match: Vec<AnswerPattern>,
    /// Assertions that are part of the format and not yet judged, by key, in the order of the format.
    pub unsupported: Vec<&'static str>,
    /// The entries of `assertions`.
    pub custom: Vec<Custom>,
    /// What stands below the `x-` keys.
    pub extra: BTreeMap<String, Value>,
}

choice! {
    /// How the calls and a sequence must agree.
    SequenceMode {
        /// The calls contain the sequence, with others between.
        Subsequence = "subsequence",
        /// The calls are the sequence.
        Exact = "exact",
        /// The calls begin with the sequence.
        Prefix = "prefix",
    }
}

choice! {
    /// Whether an assertion decides about its case.
    Severity {
        /// It does.
        Gate = "gate",
        /// It informs.
        Info = "info",
    }
}

/// An order of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSequence {
    /// The tools, at least one.
    pub steps: Vec<String>,
    /// How the calls must agree with them.
    pub mode: SequenceMode,
}

/// Bounds of a count, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountBounds {
    /// Fewest.
    pub min: Option<u64>,
    /// Most.
    pub max: Option<u64>,
}

/// A file that must be read before another is written.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadBeforeWrite {
    /// What must be read.
    pub read: PathPattern,
    /// What is written.
    pub write: PathPattern,
}

/// A file that must be in the context.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextIncludes {
    /// The file.
    pub file: PathPattern,
    /// By when.
    pub by: By,
}

/// By when a file must be in the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// At any time: the default.
    Any,
    /// Before the agent first changes a file.
    FirstWrite,
    /// In this step at the latest, from 1.
    Step(u64),
}

/// How a run may end: by its status or by its stop reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinalStatus {
    /// Any stop reason that leaves this status.
    Status(Status),
    /// This stop reason.
    StopReason(StopReason),
}

impl FinalStatus {
    const KNOWN: &'static [&'static str] = &[
        "completed",
        "failed",
        "waiting_for_user",
        "cancelled",
        "validation_failed",
        "tool_error",
        "max_steps",
        "budget_exhausted",
        "permission_denied",
        "model_error",
        "recorder_failed",
        "gate_failed",
    ];

    fn of(text: &str) -> Option<Self> {
        let statuses = [
            Status::Completed,
            Status::Failed,
            Status::WaitingForUser,
            Status::Cancelled,
        ];
        let status = statuses
            .into_iter()
            .find(|status| status.to_string() == text)
            .map(Self::Status);
        status.or_else(|| {
            let reason = StopReason::ALL.into_iter().find(|reason| reason.as_str() == text);
            reason.map(Self::StopReason)
        })
    }

    /// Tells whether a run that stopped with `status` and `reason` ended like this.
    #[must_use]
    pub fn is(self, status: Status, reason: Option<StopReason>) -> bool {
        match self {
            Self::Status(wanted) => wanted == status,
            Self::StopReason(wanted) => Some(wanted) == reason,
        }
    }
}

impl std::fmt::Display for FinalStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status) => status.fmt(f),
            Self::StopReason(reason) => reason.fmt(f),
        }
    }
}

/// An entry of `assertions`: its type is any text, so this version cannot know what it asserts.
#[derive(Debug, Clone, PartialEq)]
pub struct Custom {
    /// What it asserts.
    pub kind: String,
    /// Its name, if it has one.
    pub id: Option<String>,
    /// Whether it decides.
    pub severity: Severity,
    /// Why it is there.
    pub because: Option<String>,
    /// All of it.
    pub value: Value,
}

const EXPECTED: &[&str] = &[
    "requiredTools",
    "forbiddenTools",
    "toolSequence",
    "toolCounts",
    "maxToolErrors",
    "maxRepeatedCalls",
    "mustReadFiles",
    "mustReadBeforeWrite",
    "mustWriteFiles",
    "onlyWriteFiles",
    "forbiddenWriteFiles",
    "filesUnchanged",
    "fileContains",
    "maxFilesChanged",
    "commandsPass",
    "commandsRun",
    "forbiddenCommands",
    "verifyCommands",
    "testsNotWeakened",
    "minTestsExecuted",
    "finalStatus",
    "noPermissionDenied",
    "contextIncludes",
    "contextBudgetRespected",
    "spansPresent",
    "traceComplete",
    "noSecretsInTrace",
    "minSteps",
    "maxSteps",
    "maxTokens",
    "maxCostUsd",
    "maxWallMs",
    "maxModelCalls",
    "finalMentions",
    "finalMustNotMatch",
    "claimsSupported",
    "assertions",
];

impl Expected {
    pub(super) fn read(node: Node<'_>) -> Result<Self, CaseError> {
        let fields = Fields::read(node, "`expected`", EXPECTED, Extras::Free)?;
        if fields.keys().next().is_none() {
            return Err(node.error(Problem::NoElements("`expected`")));
        }
        let at_least = |key: &str, min: u64| fields.read_with(key, |node| node.integer(min, u64::MAX));
        Ok(Self {
            required_tools: fields.list("requiredTools", names)?,
            forbidden_tools: fields.list("forbiddenTools", names)?,
            tool_sequence: fields.read_with("toolSequence", tool_sequence)?,
            tool_counts: fields.read_with("toolCounts", tool_counts)?.unwrap_or_default(),
            max_tool_errors: at_least("maxToolErrors", 0)?,
            must_read_files: fields.list("mustReadFiles", paths)?,
            must_read_before_write: fields.list("mustReadBeforeWrite", read_before_write)?,
            must_write_files: fields.list("mustWriteFiles", paths)?,
            only_write_files: fields.read_with("onlyWriteFiles", paths)?,
            forbidden_write_files: fields.list("forbiddenWriteFiles", paths)?,
            commands_pass: fields.list("commandsPass", names)?,
            commands_run: fields.list("commandsRun", names)?,
            final_status: fields.list("finalStatus", final_status)?,
            no_permission_denied: fields.read_with("noPermissionDenied", Node::boolean)?,
            context_includes: fields.list("contextIncludes", context_includes)?,
            context_budget_respected: fields.read_with("contextBudgetRespected", Node::boolean)?,
            spans_present: fields.list("spansPresent", names)?,
            min_steps: at_least("minSteps", 0)?,
            max_steps: at_least("maxSteps", 1)?,
            max_tokens: at_least("maxTokens", 1)?,
            max_model_calls: at_least("maxModelCalls", 1)?,
            final_mentions: fields.list("finalMentions", names)?,
            final_must_not_match: fields.list("finalMustNotMatch", expressions)?,
            unsupported: unsupported(&fields)?,
            custom: fields.list("assertions", custom)?,
            extra: fields.extras()?,
        })
    }
}

/// Checks the assertions that are read but not judged, and returns which of them stand there.
fn unsupported(fields: &Fields<'_>) -> Result<Vec<&'static str>, CaseError> {
    type Check = fn(Node<'_>) -> Result<(), CaseError>;

    let checks: [(&'static str, Check); 13] = [
        ("maxRepeatedCalls", |node| node.integer(1, u64::MAX).map(drop)),
        ("filesUnchanged", |node| paths(node).map(drop)),
        ("fileContains", file_contains),
        ("maxFilesChanged", |node| node.integer(0, u64::MAX).map(drop)),
        ("forbiddenCommands", |node| names(node).map(drop)),
        ("verifyCommands", |node| names(node).map(drop)),
        ("testsNotWeakened", |node| node.boolean().map(drop)),
        ("minTestsExecuted", |node| node.integer(0, u64::MAX).map(drop)),
        ("traceComplete", |node| node.boolean().map(drop)),
        ("noSecretsInTrace", |node| node.boolean().map(drop)),
        ("maxCostUsd", |node| node.number(0.0).map(drop)),
        ("maxWallMs", |node| node.integer(1, u64::MAX).map(drop)),
        ("claimsSupported", |node| node.boolean().map(drop)),
    ];
    let mut present = Vec::new();
    for (key, check) in checks {
        if fields.read_with(key, check)?.is_some() {
            present.push(key);
        }
    }
    Ok(present)
}

fn file_contains(node: Node<'_>) -> Result<(), CaseError> {
    for member in node.object()? {
        let text = member.value.string()?;
        AnswerPattern::parse(&text).map_err(|why| {
            member.value.error(Problem::Pattern {
                text,
                wanted: "a regular expression",
                why,
            })
        })?;
    }
    Ok(())
}

fn tool_sequence(node: Node<'_>) -> Result<ToolSequence, CaseError> {
    let fields = Fields::read(node, "`toolSequence`", &["steps", "mode"], Extras::Closed)?;
    let steps = fields.need("steps")?;
    let tools = texts(steps)?;
    if tools.is_empty() {
        return Err(steps.error(Problem::NoElements("`steps`")));
    }
    Ok(ToolSequence {
        steps: tools,
        mode: fields
            .read_with("mode", |node| chosen(node, "mode"))?
            .unwrap_or(SequenceMode::Subsequence),
    })
}

fn tool_counts(node: Node<'_>) -> Result<BTreeMap<String, CountBounds>, CaseError> {
    let bounds = |node| {
        let fields = Fields::read(node, "a count of `toolCounts`", &["min", "max"], Extras::Closed)?;
        Ok(CountBounds {
            min: fields.read_with("min", |node| node.integer(0, u64::MAX))?,
            max: fields.read_with("max", |node| node.integer(0, u64::MAX))?,
        })
    };
    node.object()?
        .into_iter()
        .map(|member| Ok((member.key.into_owned(), bounds(member.value)?)))
        .collect()
}

fn read_before_write(node: Node<'_>) -> Result<Vec<ReadBeforeWrite>, CaseError> {
    let pair = |node| {
        let fields = Fields::read(
            node,
            "an entry of `mustReadBeforeWrite`",
            &["read", "write"],
            Extras::Closed,
        )?;
        Ok(ReadBeforeWrite {
            read: path(fields.need("read")?)?,
            write: path(fields.need("write")?)?,
        })
    };
    node.array()?.into_iter().map(pair).collect()
}

fn final_status(node: Node<'_>) -> Result<Vec<FinalStatus>, CaseError> {
    let one = |node: Node<'_>| {
        let value = node.string()?;
        FinalStatus::of(&value).ok_or_else(|| not_chosen(node, value, "finalStatus", FinalStatus::KNOWN))
    };
    if let Ok(elements) = node.array() {
        names(node)?;
        return elements.into_iter().map(one).collect();
    }
    Ok(vec![one(node)?])
}

fn context_includes(node: Node<'_>) -> Result<Vec<ContextIncludes>, CaseError> {
    let by = |node: Node<'_>| match node.string() {
        Ok(text) => match text.as_str() {
            "any" => Ok(By::Any),
            "first-write" => Ok(By::FirstWrite),
            _ => Err(not_chosen(node, text, "by", &["any", "first-write"])),
        },
        Err(_) => Ok(By::Step(node.integer(1, u64::MAX)?)),
    };
    let entry = |node| {
        let fields = Fields::read(
            node,
            "an entry of `contextIncludes`",
            &["file", "by"],
            Extras::Closed,
        )?;
        Ok(ContextIncludes {
            file: path(fields.need("file")?)?,
            by: fields.read_with("by", by)?.unwrap_or(By::Any),
        })
    };
    node.array()?.into_iter().map(entry).collect()
}

/// Reads the entries of `assertions`, which may hold any keys beside the four that all have.
fn custom(node: Node<'_>) -> Result<Vec<Custom>, CaseError> {
    let entry = |node: Node<'_>| {
        let members = node.object()?;
        let get = |key: &str| {
            members
                .iter()
                .find(|member| member.key == key)
                .map(|member| member.value)
        };
        let kind = get("type").ok_or_else(|| {
            node.error(Problem::Missing {
                key: "type",
                object: "an entry of `assertions`",
            })
        })?;
        Ok(Custom {
            kind: kind.string()?,
            id: get("id").map(Node::string).transpose()?,
            severity: get("severity")
                .map(|node| chosen(node, "severity"))
                .transpose()?
                .unwrap_or(Severity::Gate),
            because: get("because").map(Node::string).transpose()?,
            value: node.free()?,
        })
    };
    node.array()?.into_iter().map(entry).collect()
}
