//! What a run is started with, resolved: nothing here is read from the environment or the disk.

use std::{collections::BTreeMap, path::PathBuf};
use tracegate_core::{
    fact::{
        gate::PolicyGranted,
        run::{Agent, Durability, Limits, OnAsk, PolicyRef, RedactionMode, RemoteSpan, Settings, Switch},
    },
    ids::{RunId, TraceId},
};

/// The configuration of a run.
#[derive(Debug, Clone)]
pub struct RunConfig {
    /// The goal.
    pub goal: String,
    /// The workspace.
    pub workspace: PathBuf,
    /// The policy's digest and files.
    pub policy: PolicyRef,
    /// What the command line grants on top.
    pub grants: Vec<PolicyGranted>,
    /// Where the run ends on its own.
    pub limits: Limits,
    /// How it is set up.
    pub settings: Settings,
    /// Who works.
    pub agent: Agent,
    /// The span of another program that started the run.
    pub origin: Origin,
    /// Resource attributes beyond name and version.
    pub resource: BTreeMap<String, String>,
    /// The environment of this process; children get a short list of it.
    pub environment: BTreeMap<String, String>,
}

/// How a run relates to the trace of the program that started it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// Not at all: nobody named one.
    #[default]
    Alone,
    /// Its spans are part of that trace, below this span.
    Joins(RemoteSpan),
    /// It has a trace of its own, whose root refers to this span.
    Links(RemoteSpan),
}

impl Origin {
    /// Returns the trace that the spans of `run` belong to.
    #[must_use]
    pub fn trace(self, run: &RunId) -> TraceId {
        match self {
            Self::Joins(remote) => remote.trace_id,
            Self::Alone | Self::Links(_) => TraceId::derive(run),
        }
    }
}

/// Returns the limits of a run that names none.
#[must_use]
pub const fn default_limits() -> Limits {
    Limits {
        max_steps: 30,
        max_tokens: None,
        max_ms: None,
        max_cost: None,
    }
}

/// Returns the settings of a run that names none.
#[must_use]
pub const fn default_settings() -> Settings {
    Settings {
        context_tests: Switch::On,
        context_budget: 2800,
        push_back: 2,
        redaction: RedactionMode::Masked,
        durability: Durability::Step,
        readiness_ms: 10_000,
        command_ms: 600_000,
        window: 128_000,
        on_ask: OnAsk::Terminal,
        prices: None,
    }
}
