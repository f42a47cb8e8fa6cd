//! The context report: what a step's context was built from, what went in, what stayed out, and why.
//!
//! The builder in the runtime fills it, the store keeps it as `context/step-0001.json`, reports and evals read it.
//! Field names are the format (version 1); every closed list is an enum here, so a reason nobody declared cannot be written.

use crate::ids::{Digest, EventId, RunId, SpanId, StepNo, TraceId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version that this code writes in [`ContextReport::version`].
pub const VERSION: u32 = 1;

/// Everything that the context builder considered in one step, and what became of it.
///
/// Holds for every report the builder makes: `used <= budget`; the paths of `included` and `dropped` are disjoint
/// and together number `considered`; equal inputs give equal bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextReport {
    /// The format's version, [`VERSION`].
    pub version: u32,
    /// The run that the context was built for.
    pub run_id: RunId,
    /// The step whose model request reads the context.
    pub step: StepNo,
    /// The trace of the run.
    pub trace_id: TraceId,
    /// The `context.build` span.
    pub span_id: SpanId,
    /// What the builder took from the goal.
    pub goal: GoalFacts,
    /// How tokens were counted.
    pub estimator: Estimator,
    /// Tokens granted to files in this step, headroom included.
    pub budget: u64,
    /// Tokens that the caller had set aside for other things before it arrived at `budget`.
    pub reserved: Reserved,
    /// Tokens of what the model reads; the sum over `included`.
    pub used: u64,
    /// The items that went in, in the order in which the model reads them.
    pub included: Vec<Included>,
    /// The items that stayed out, most important first.
    pub dropped: Vec<Dropped>,
    /// Number of items considered.
    pub considered: u64,
    /// Paths that were never candidates, counted by reason.
    pub ignored: IgnoredCounts,
    /// The tests found for each file that the run touched, also where linking is off.
    pub links: Vec<SourceLinks>,
    /// Paths of the items whose content the model reads: level `path` merely names a file and does not count.
    pub included_files: Vec<String>,
    /// For each included path the text of its first reason.
    pub reasons: BTreeMap<String, String>,
    /// What makes two builds comparable.
    pub determinism: Determinism,
}

/// What the builder took from the goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GoalFacts {
    /// Whether the goal is about tests, so that linked tests are armed.
    pub mentions_tests: bool,
    /// The spans of the goal that said so.
    pub matched: Vec<String>,
    /// Commands that the goal names.
    pub named_commands: Vec<String>,
    /// Paths that the goal names, as written.
    pub named_paths: Vec<String>,
}

/// How tokens were counted: an estimate that errs upward, since the tokenizers of most models are not public.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Estimator {
    /// The method's name.
    pub name: String,
    /// The method's version.
    pub version: u32,
    /// Per cent of `budget` that stays free because the count is an estimate.
    pub headroom_pct: u64,
}

/// Tokens that are not for files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reserved {
    /// For the system prompt and the tool descriptions.
    pub system: u64,
    /// For the conversation so far.
    pub history: u64,
}

/// One item that the model reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Included {
    /// Path relative to the workspace, with `/`.
    pub path: String,
    /// What made it a candidate; of several, the most important.
    pub kind: ItemKind,
    /// Its rank class.
    pub tier: Tier,
    /// Its rank within the tier, higher first.
    pub score: i64,
    /// How much of it is there.
    pub level: Level,
    /// Tokens of what was really rendered, header and marks included.
    pub tokens: u64,
    /// First and last line shown, from 1; `[0, 0]` if none is.
    pub lines: [u64; 2],
    /// Lines of the whole file.
    pub total_lines: u64,
    /// Line ranges, first and last, that are not shown though the content is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<[u64; 2]>,
    /// Digest of the whole redacted text as it was at build time.
    pub digest: Digest,
    /// Why it is here, most important reason first; never empty.
    pub reasons: Vec<Reason>,
}

/// One item that the model does not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dropped {
    /// Path relative to the workspace, with `/`; for a path outside of it, as it was named.
    pub path: String,
    /// What made it a candidate; of several, the most important.
    pub kind: ItemKind,
    /// Its rank class.
    pub tier: Tier,
    /// Tokens of the whole item; by its size on disk where the content was not loaded.
    pub tokens: u64,
    /// Why it stayed out.
    pub reason: DropReason,
    /// For want of room: tokens that the smallest form of the item would have taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_need: Option<u64>,
    /// For want of room: tokens that were left for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<u64>,
}

/// What made a file a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// The goal names it.
    GoalNamed,
    /// The last red test output names it.
    RedOutput,
    /// It is a test of a file that the run touched.
    LinkedTest,
    /// The run read it.
    ReadInRun,
    /// The run wrote it.
    WrittenInRun,
    /// It says how the project is built and tested.
    Manifest,
    /// It says what the project is.
    Readme,
}

/// The rank class of an item, lower is more important; spelled as its number.
///
/// Number 5, direct imports of touched files, has no variant until something finds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
pub enum Tier {
    /// 0: named by the goal.
    GoalNamed,
    /// 1: named by the last red test output.
    RedOutput,
    /// 2: strong test links of touched files, if the goal mentions tests.
    StrongLink,
    /// 3: touched by the run.
    Touched,
    /// 4: medium test links of touched files.
    MediumLink,
    /// 6: manifests.
    Manifest,
    /// 7: readmes.
    Readme,
}

impl From<Tier> for u8 {
    fn from(tier: Tier) -> Self {
        match tier {
            Tier::GoalNamed => 0,
            Tier::RedOutput => 1,
            Tier::StrongLink => 2,
            Tier::Touched => 3,
            Tier::MediumLink => 4,
            Tier::Manifest => 6,
            Tier::Readme => 7,
        }
    }
}

/// A tier number that stands for no tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a context tier (0 to 4, 6, 7)")]
pub struct UnknownTier(u8);

impl TryFrom<u8> for Tier {
    type Error = UnknownTier;

    fn try_from(number: u8) -> Result<Self, UnknownTier> {
        match number {
            0 => Ok(Self::GoalNamed),
            1 => Ok(Self::RedOutput),
            2 => Ok(Self::StrongLink),
            3 => Ok(Self::Touched),
            4 => Ok(Self::MediumLink),
            6 => Ok(Self::Manifest),
            7 => Ok(Self::Readme),
            other => Err(UnknownTier(other)),
        }
    }
}

/// How much of an item the model reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// All of it.
    Full,
    /// Some line ranges, each gap marked in place.
    Slice,
    /// Its definitions only.
    Outline,
    /// Its name only.
    Path,
}

/// Why a considered item stayed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// Not even its name fitted into what was left, or nothing was left for it because a more important item had found no room.
    BudgetExhausted,
    /// Not even its name fitted into the share that one item may take.
    ItemCap,
    /// An included item has the same content.
    Duplicate,
    /// The conversation holds a newer read of it.
    SupersededByNewerRead,
    /// It is a linked test, and the goal does not mention tests.
    NotArmed,
    /// It is a linked test by a weak rule only, or a name that fits too many files.
    LowConfidence,
    /// A `.gitignore` names it.
    IgnoredByGitignore,
    /// It holds a NUL byte near its beginning.
    Binary,
    /// It is larger than the inventory's limit.
    TooLarge,
    /// A program writes it (lock file, snapshot, minified bundle).
    Generated,
    /// Its name says that it holds a secret.
    Secret,
    /// It lies outside the workspace.
    OutsideRoot,
    /// It does not exist or cannot be read as text.
    Unreadable,
    /// Linking is switched off.
    LinkingOff,
}

/// One reason for which an item is in the context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// The kind of reason.
    pub code: ReasonCode,
    /// For a linked test: the file whose test it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// For a linked test: the best rule that found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleId>,
    /// For a linked test: how far that rule can be trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// For a touched file: the last step that touched it in this way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepNo>,
    /// For a touched file: the event that did, where the caller knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<EventId>,
    /// The reason as a person reads it.
    pub text: String,
}

/// The kinds of reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// The goal names the file.
    NamedInGoal,
    /// The last red test output names the file.
    NamedByRedOutput,
    /// The file is a test of a touched file.
    LinkedTest,
    /// The run read the file.
    ReadAtStep,
    /// The run wrote the file.
    WrittenAtStep,
    /// The file is a manifest.
    Manifest,
    /// The file is a readme.
    Readme,
}

/// How far a link can be trusted, by its score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// 100 and more.
    Strong,
    /// 60 to 99.
    Medium,
    /// Less: recorded, never included for itself.
    Weak,
}

impl Confidence {
    /// Returns what a linker's score is worth.
    #[must_use]
    pub const fn of_score(score: i64) -> Self {
        match score {
            100.. => Self::Strong,
            60..100 => Self::Medium,
            _ => Self::Weak,
        }
    }
}

/// A rule that links a test to its source by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleId {
    /// Same folder, same stem (`math.ts`, `math.test.ts`).
    SameDirStem,
    /// Same folder, both stand for the folder (`index.ts`, `index.test.ts`).
    DirIndex,
    /// The test's folder or file name says only "tests of this" (`foo/tests.rs`, `__tests__/foo.ts`).
    DirNamedTest,
    /// Same stem, mirrored folders (`lib/a/b.rb`, `spec/a/b_spec.rb`).
    MirrorStem,
    /// Same stem somewhere else.
    StemElsewhere,
    /// Every word of the test is in the source's path, the source's own name included.
    PathTokens,
    /// One stem begins with the other (`foo`, `foo_bar_test`).
    StemPrefix,
    /// The words of one stem are among the words of the other.
    TokensSubset,
    /// One stem's first word abbreviates the other's (`app`, `application`).
    Abbrev,
    /// The same or mirrored folder, nothing else in common.
    DirTest,
    /// The same Go package: any test in it may test any file of it.
    SamePackage,
}

/// Paths that were never candidates, counted by reason. A folder that is left out as a whole counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IgnoredCounts {
    /// Named by a `.gitignore`.
    pub gitignored: u64,
    /// Binary.
    pub binary: u64,
    /// Over the size limit.
    pub too_large: u64,
    /// Symbolic links that lead out of the workspace.
    pub outside_root: u64,
    /// Secret by name.
    pub secret: u64,
    /// Not readable, or a name that is no clean Unicode.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreadable: u64,
    /// Folders of installed packages and caches that no `.gitignore` names.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub generated: u64,
    /// Files beyond the inventory's limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub over_cap: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes the field by reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The tests of one touched file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceLinks {
    /// The touched file.
    pub source: String,
    /// Its tests, best first.
    pub tests: Vec<LinkedTest>,
}

/// One test of a touched file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkedTest {
    /// The test file.
    pub path: String,
    /// The link's score.
    pub score: i64,
    /// The rules that found it, best first.
    pub rules: Vec<RuleId>,
}

/// What makes two builds comparable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Determinism {
    /// Digest of everything that decided the selection; run, step and span ids are not part of it.
    pub inputs_digest: Digest,
}

/// Tells whether the value under `key` of a report is an id, digest or entry of a closed list, and never text of the workspace.
#[must_use]
pub fn is_report_key(key: &str) -> bool {
    matches!(
        key,
        "runId"
            | "traceId"
            | "spanId"
            | "eventId"
            | "inputsDigest"
            | "digest"
            | "kind"
            | "level"
            | "reason"
            | "code"
            | "rule"
            | "rules"
            | "confidence"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documented example with real ids and without the rule that only content can find.
    const EXAMPLE: &str = r#"{"version":1,"runId":"run_repair_20260816_001","step":2,"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","goal":{"mentionsTests":true,"matched":["修复失败测试","npm test"],"namedCommands":["npm test"],"namedPaths":[]},"estimator":{"name":"bytes3","version":1,"headroomPct":10},"budget":2800,"reserved":{"system":600,"history":900},"used":508,"included":[{"path":"src/math.test.ts","kind":"linked_test","tier":2,"score":130,"level":"full","tokens":412,"lines":[1,38],"totalLines":38,"digest":"b3:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262","reasons":[{"code":"linked_test","source":"src/math.ts","rule":"same-dir-stem","confidence":"strong","text":"linked test file for src/math.ts and user goal mentions test"}]},{"path":"src/math.ts","kind":"read_in_run","tier":3,"score":2,"level":"slice","tokens":96,"lines":[1,9],"totalLines":12,"omitted":[[10,12]],"digest":"b3:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262","reasons":[{"code":"read_at_step","step":1,"eventId":"00000000000000ff","text":"read at step 1"}]}],"dropped":[{"path":"README.md","kind":"readme","tier":7,"tokens":820,"reason":"budget_exhausted","wouldNeed":12,"remaining":9},{"path":".env","kind":"goal_named","tier":0,"tokens":0,"reason":"secret"}],"considered":4,"ignored":{"gitignored":3,"binary":1,"tooLarge":1,"outsideRoot":0,"secret":0},"links":[{"source":"src/math.ts","tests":[{"path":"src/math.test.ts","score":130,"rules":["same-dir-stem"]}]}],"includedFiles":["src/math.test.ts","src/math.ts"],"reasons":{"src/math.test.ts":"linked test file for src/math.ts and user goal mentions test","src/math.ts":"read at step 1"},"determinism":{"inputsDigest":"b3:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"}}"#;

    #[test]
    fn the_documented_form_reads_and_writes_back_byte_for_byte() {
        let report: ContextReport = serde_json::from_str(EXAMPLE).unwrap();
        assert_eq!(serde_json::to_string(&report).unwrap(), EXAMPLE);
    }

    #[test]
    fn a_word_outside_a_closed_list_is_refused() {
        for (known, unknown) in [
            (r#""level":"full""#, r#""level":"most""#),
            (r#""reason":"secret""#, r#""reason":"forgotten""#),
            (r#""tier":7"#, r#""tier":5"#),
            (r#""kind":"readme""#, r#""kind":"hunch""#),
            (r#""rule":"same-dir-stem""#, r#""rule":"vibes""#),
        ] {
            let text = EXAMPLE.replace(known, unknown);
            assert_ne!(text, EXAMPLE, "{known}");
            assert!(serde_json::from_str::<ContextReport>(&text).is_err(), "{unknown}");
        }
    }

    #[test]
    fn tiers_and_their_numbers_agree() {
        let tiers: Vec<(Tier, u8)> = (0..=u8::MAX)
            .filter_map(|number| Tier::try_from(number).ok().map(|tier| (tier, number)))
            .collect();
        assert_eq!(tiers.len(), 7);
        for (tier, number) in &tiers {
            assert_eq!(u8::from(*tier), *number);
        }
        assert!(
            tiers.is_sorted(),
            "the order of the tiers is the order of their numbers"
        );
    }
}
