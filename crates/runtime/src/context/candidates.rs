//! Which files a step's context could hold, why, and in which order of importance. Pure: names only, no contents.

use crate::context::inventory::{FileEntry, Inventory};
use crate::context::links::{Link, Linker};
use crate::context::names::{FileKind, split_folder};
use crate::context::pack::{How, Linking, Request, Touched};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tracegate_core::context_report::{
    Confidence, DropReason, ItemKind, LinkedTest, Reason, ReasonCode, SourceLinks, Tier,
};
use tracegate_core::ids::StepNo;

/// Most files that one name without its folders may stand for.
const MOST_NAMESAKES: usize = 3;

/// A file that wants to be in the context.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) path: String,
    pub(crate) kind: ItemKind,
    pub(crate) tier: Tier,
    pub(crate) score: i64,
    /// Most important first; never empty.
    pub(crate) reasons: Vec<Reason>,
}

/// A file that was considered by its name and is no candidate.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub(crate) path: String,
    pub(crate) kind: ItemKind,
    pub(crate) tier: Tier,
    pub(crate) score: i64,
    pub(crate) reason: DropReason,
}

/// Everything that was considered; no path is in it twice.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// In order of importance: tier, then score, then path.
    pub(crate) wanted: Vec<Candidate>,
    pub(crate) refused: Vec<Refused>,
    pub(crate) links: Vec<SourceLinks>,
}

/// One ground on which a file is wanted.
struct Ground {
    kind: ItemKind,
    tier: Tier,
    score: i64,
    reason: Reason,
}

/// Collects what is wanted and what is refused; a path that is wanted on any ground is not refused.
struct Collector<'a> {
    inventory: &'a Inventory,
    wanted: BTreeMap<String, Vec<Ground>>,
    refused: BTreeMap<String, Refused>,
}

/// Returns what the request makes worth considering.
pub(crate) fn candidates(request: &Request<'_>) -> Candidates {
    let mut collector = Collector {
        inventory: request.inventory,
        wanted: BTreeMap::new(),
        refused: BTreeMap::new(),
    };
    collector.named_in_goal(&request.goal.named_paths);
    collector.named_by_red_output(request.red_files, request.linking);
    collector.touched(request.touched);
    let links = links_of_touched(request);
    collector.linked(&links, request);
    collector.surroundings();
    collector.finish(
        links
            .into_iter()
            .map(|(source, links)| recorded(source, links))
            .collect(),
    )
}

fn recorded(source: &str, links: Vec<Link>) -> SourceLinks {
    SourceLinks {
        source: source.to_owned(),
        tests: links
            .into_iter()
            .map(|link| LinkedTest {
                path: link.test,
                score: link.score,
                rules: link.rules,
            })
            .collect(),
    }
}

/// Finds the tests of each source that the run touched, by path.
fn links_of_touched<'r>(request: &Request<'r>) -> Vec<(&'r str, Vec<Link>)> {
    let sources: BTreeSet<&'r str> = request
        .touched
        .iter()
        .filter_map(|touched| request.inventory.get(&touched.path))
        .filter(|file| file.kind == FileKind::Source)
        .map(|file| file.path.as_str())
        .collect();
    if sources.is_empty() {
        return Vec::new();
    }
    let linker = Linker::new(request.inventory.files().iter().map(|file| file.path.as_str()));
    sources
        .into_iter()
        .map(|source| (source, linker.tests_of(source)))
        .collect()
}

fn plain(code: ReasonCode, text: impl Into<String>) -> Reason {
    Reason {
        code,
        source: None,
        rule: None,
        confidence: None,
        step: None,
        event_id: None,
        text: text.into(),
    }
}

/// Ranks what was named first above what was named later.
fn rank(best: i64, position: usize) -> i64 {
    best.saturating_sub(i64::try_from(position).unwrap_or(i64::MAX))
}

impl Collector<'_> {
    fn want(&mut self, path: &str, ground: Ground) {
        self.wanted.entry(path.to_owned()).or_default().push(ground);
    }

    /// The first refusal of a path stays: the callers come in order of importance.
    fn refuse(&mut self, path: &str, kind: ItemKind, tier: Tier, score: i64, reason: DropReason) {
        self.refused.entry(path.to_owned()).or_insert_with(|| Refused {
            path: path.to_owned(),
            kind,
            tier,
            score,
            reason,
        });
    }

    fn named_in_goal(&mut self, named: &[String]) {
        self.named(named, ItemKind::GoalNamed, Tier::GoalNamed, |name, _| {
            Ok(plain(
                ReasonCode::NamedInGoal,
                format!("user goal names `{name}`"),
            ))
        });
    }

    fn named_by_red_output(&mut self, named: &[String], linking: Linking) {
        self.named(named, ItemKind::RedOutput, Tier::RedOutput, |_, file| {
            match (linking, file.kind) {
                (Linking::Off, _) => Err(DropReason::LinkingOff),
                (Linking::On, FileKind::Generated) => Err(DropReason::Generated),
                (Linking::On, _) => Ok(plain(
                    ReasonCode::NamedByRedOutput,
                    "named by the last red test output",
                )),
            }
        });
    }

    /// The files that a text names, the first name first; `reason` says why each is wanted, or why it is not.
    fn named(
        &mut self,
        named: &[String],
        kind: ItemKind,
        tier: Tier,
        reason: impl Fn(&str, &FileEntry) -> Result<Reason, DropReason>,
    ) {
        for (position, name) in named.iter().enumerate() {
            let score = rank(100, position);
            match resolve(self.inventory, name) {
                Resolved::Folder => {}
                Resolved::Refused(path, reason) => self.refuse(&path, kind, tier, score, reason),
                Resolved::Files(files) => {
                    for file in files {
                        match reason(name, file) {
                            Ok(reason) => self.want(
                                &file.path,
                                Ground {
                                    kind,
                                    tier,
                                    score,
                                    reason,
                                },
                            ),
                            Err(reason) => self.refuse(&file.path, kind, tier, score, reason),
                        }
                    }
                }
            }
        }
    }

    /// The last read and the last write of each file: what happened later counts more, and a write more than a read.
    fn touched(&mut self, touched: &[Touched]) {
        let mut last: BTreeMap<(&str, How), u32> = BTreeMap::new();
        for touch in touched {
            let step = last.entry((&touch.path, touch.how)).or_default();
            *step = touch.step.max(*step);
        }
        for ((path, how), step) in last {
            let (kind, code, verb, bonus) = match how {
                How::Read => (ItemKind::ReadInRun, ReasonCode::ReadAtStep, "read", 0),
                How::Written => (ItemKind::WrittenInRun, ReasonCode::WrittenAtStep, "written", 1),
            };
            let (tier, score) = (Tier::Touched, 2 * i64::from(step) + bonus);
            if self.inventory.get(path).is_none() {
                let reason = self.inventory.why_not(path);
                self.refuse(path, kind, tier, score, reason);
                continue;
            }
            let reason = Reason {
                step: Some(StepNo(step)),
                ..plain(code, format!("{verb} at step {step}"))
            };
            self.want(
                path,
                Ground {
                    kind,
                    tier,
                    score,
                    reason,
                },
            );
        }
    }

    fn linked(&mut self, links: &[(&str, Vec<Link>)], request: &Request<'_>) {
        let kind = ItemKind::LinkedTest;
        for (source, links) in links {
            for link in links {
                let confidence = link.confidence();
                let (tier, how) = match confidence {
                    Confidence::Strong => (Tier::StrongLink, "linked"),
                    Confidence::Medium | Confidence::Weak => (Tier::MediumLink, "possibly linked"),
                };
                let refusal = match (request.linking, request.goal.mentions_tests, confidence) {
                    (Linking::Off, _, _) => Some(DropReason::LinkingOff),
                    (Linking::On, false, _) => Some(DropReason::NotArmed),
                    (Linking::On, true, Confidence::Weak) => Some(DropReason::LowConfidence),
                    (Linking::On, true, Confidence::Strong | Confidence::Medium) => None,
                };
                if let Some(reason) = refusal {
                    self.refuse(&link.test, kind, tier, link.score, reason);
                    continue;
                }
                let reason = Reason {
                    source: Some((*source).to_owned()),
                    rule: link.rules.first().copied(),
                    confidence: Some(confidence),
                    ..plain(
                        ReasonCode::LinkedTest,
                        format!("{how} test file for {source} and user goal mentions test"),
                    )
                };
                self.want(
                    &link.test,
                    Ground {
                        kind,
                        tier,
                        score: link.score,
                        reason,
                    },
                );
            }
        }
    }

    /// Manifests and readmes of the root and of every folder above a file that is wanted so far.
    fn surroundings(&mut self) {
        let mut folders = BTreeSet::from([String::new()]);
        for path in self.wanted.keys() {
            let mut folder = split_folder(path).0;
            while !folder.is_empty() && folders.insert(folder.to_owned()) {
                folder = split_folder(folder).0;
            }
        }
        let inventory = self.inventory;
        for file in inventory.files() {
            let (kind, tier, code, text) = match file.kind {
                FileKind::Manifest => (
                    ItemKind::Manifest,
                    Tier::Manifest,
                    ReasonCode::Manifest,
                    "project manifest",
                ),
                FileKind::Readme => (
                    ItemKind::Readme,
                    Tier::Readme,
                    ReasonCode::Readme,
                    "project readme",
                ),
                FileKind::Source
                | FileKind::Test
                | FileKind::Fixture
                | FileKind::Doc
                | FileKind::Generated
                | FileKind::Other => continue,
            };
            if folders.contains(split_folder(&file.path).0) {
                let score = rank(100, file.path.matches('/').count());
                let reason = plain(code, text);
                self.want(
                    &file.path,
                    Ground {
                        kind,
                        tier,
                        score,
                        reason,
                    },
                );
            }
        }
    }

    fn finish(self, links: Vec<SourceLinks>) -> Candidates {
        let refused = self
            .refused
            .into_values()
            .filter(|refused| !self.wanted.contains_key(&refused.path))
            .collect();
        let mut wanted: Vec<Candidate> = self
            .wanted
            .into_iter()
            .filter_map(|(path, mut grounds)| {
                grounds.sort_by_key(|ground| (ground.tier, Reverse(ground.score)));
                let &Ground {
                    kind, tier, score, ..
                } = grounds.first()?;
                let mut reasons: Vec<Reason> = grounds.into_iter().map(|ground| ground.reason).collect();
                reasons.dedup();
                Some(Candidate {
                    path,
                    kind,
                    tier,
                    score,
                    reasons,
                })
            })
            .collect();
        // The paths are in order already, and the sort is stable.
        wanted.sort_by_key(|candidate| (candidate.tier, Reverse(candidate.score)));
        Candidates {
            wanted,
            refused,
            links,
        }
    }
}

/// What a name in a goal or in a runner's output stands for.
enum Resolved<'a> {
    /// These files.
    Files(Vec<&'a FileEntry>),
    /// A folder: not an item, the model lists it if it wants to.
    Folder,
    /// No file that can be a candidate.
    Refused(String, DropReason),
}

/// Finds the file of exactly this path, else the few files whose paths end in it.
fn resolve<'a>(inventory: &'a Inventory, name: &str) -> Resolved<'a> {
    let name = name.replace('\\', "/");
    let name = name.strip_prefix("./").unwrap_or(&name).trim_end_matches('/');
    if let Some(file) = inventory.get(name) {
        return Resolved::Files(vec![file]);
    }
    let folder = format!("{name}/");
    if name.is_empty()
        || name == "."
        || inventory
            .files()
            .iter()
            .any(|file| file.path.starts_with(&folder))
    {
        return Resolved::Folder;
    }
    let ending = format!("/{name}");
    let namesakes: Vec<&FileEntry> = inventory
        .files()
        .iter()
        .filter(|file| file.path.ends_with(&ending))
        .collect();
    match namesakes.len() {
        0 => Resolved::Refused(name.to_owned(), inventory.why_not(name)),
        1..=MOST_NAMESAKES => Resolved::Files(namesakes),
        _ => Resolved::Refused(name.to_owned(), DropReason::LowConfidence),
    }
}
