//! What the run has looked at so far, folded from its events: the context builder starts from here.

use std::collections::BTreeMap;
use tracegate_core::{
    event::Event,
    fact::{
        Fact,
        tool::{Outcome, SideEffectType, ToolExecuteFinished},
    },
    ids::ActionId,
    validation::Trust,
};

/// How a file was touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// Its text was read.
    Read,
    /// It was written.
    Written,
}

/// The files that a run has touched, and those that its last red test run named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attention {
    touched: BTreeMap<String, (Touch, u32)>,
    red_files: Vec<String>,
    /// Paths of reads under way; at most one per open action.
    reading: BTreeMap<ActionId, String>,
}

impl Attention {
    /// Returns the touched files with how and at which step, by path.
    pub fn touched(&self) -> impl Iterator<Item = (&str, Touch, u32)> {
        self.touched
            .iter()
            .map(|(path, (touch, step))| (path.as_str(), *touch, *step))
    }

    /// Returns the files that the last red test run named; none if a green one came after.
    #[must_use]
    pub fn red_files(&self) -> &[String] {
        &self.red_files
    }

    /// Takes in an event.
    pub fn apply(&mut self, event: &Event) {
        let step = event.step.map_or(0, |step| step.0);
        if let (Fact::ToolExecuteStarted(data), Some(action)) = (&event.fact, event.action)
            && data.tool == "read_file"
            && let Some(path) = data.args.get("path").and_then(|path| path.as_str())
        {
            self.reading.insert(action, path.to_owned());
        } else if let (Fact::ToolExecuteFinished(data), Some(action)) = (&event.fact, event.action) {
            self.finish(action, step, data);
        }
    }

    fn finish(&mut self, action: ActionId, step: u32, data: &ToolExecuteFinished) {
        if let Some(path) = self.reading.remove(&action)
            && data.outcome == Outcome::Ok
        {
            self.touched.entry(path).or_insert((Touch::Read, step));
        }
        for effect in &data.side_effects {
            match effect.effect {
                SideEffectType::WriteFile => {
                    self.touched
                        .insert(effect.relative_path.clone(), (Touch::Written, step));
                }
                SideEffectType::DeleteFile => {
                    self.touched.remove(&effect.relative_path);
                }
            }
        }
        if let Some(test) = &data.test {
            self.red_files = match test.reading.trust {
                Trust::Red => test.reading.named_files.clone(),
                Trust::Green | Trust::Unknown => Vec::new(),
            };
        }
    }
}
