//! A recorded run, read back with everything that can be verified about it.

use serde_json::Value;
use std::{collections::BTreeMap, fs};
use tracegate_core::{
    event::Event,
    fact::{
        Edge, Fact,
        gate::PermissionReviewFinished,
        tool::{Observation, ObservationKind, Phase, ToolExecuteFinished},
    },
    ids::ActionId,
    payload::Payload,
    span::{SpanRecord, project},
    state::RunState,
    stop::{Status, StopReason},
};
use tracegate_store::{LogReader, RunDir, Store, Tail};

/// A run whose log verifies.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) store: Store,
    pub(crate) dir: RunDir,
    pub(crate) events: Vec<Event>,
    pub(crate) state: RunState,
    pub(crate) spans: Vec<SpanRecord>,
}

/// What came of one action.
#[derive(Debug)]
pub(crate) struct Came {
    /// `ok`, `failed`, `refused` and so on, from the observation that settled it.
    pub(crate) outcome: &'static str,
    /// What the model reads.
    pub(crate) text: String,
    /// The gate's ruling, if it was asked.
    pub(crate) review: Option<PermissionReviewFinished>,
    /// What the tool did, if it was reached.
    pub(crate) done: Option<ToolExecuteFinished>,
}

impl Came {
    /// Returns the kind of failure of what the tool did.
    pub(crate) fn error(&self) -> Option<&str> {
        Some(self.done.as_ref()?.error.as_ref()?.kind.as_str())
    }
}

impl Record {
    /// Reads a run. Its log must be whole, its events in order, every span that began must have ended, every span computed, every
    /// artifact that is named must hold the bytes that it is named for.
    #[track_caller]
    pub(crate) fn verified(store: Store, dir: RunDir) -> Self {
        let record = Self::prefix(store, dir);
        assert_eq!(
            record.state.open_spans,
            BTreeMap::new(),
            "spans are open at the end"
        );
        let begun = record
            .events
            .iter()
            .filter(|event| matches!(event.fact.edge(), Some((_, Edge::Started))));
        assert_eq!(record.spans.len(), begun.count(), "one span for each pair");
        record
    }

    /// Reads a run that could not be recorded to its end: as [`Record::verified`], but spans may be open.
    #[track_caller]
    pub(crate) fn prefix(store: Store, dir: RunDir) -> Self {
        let (events, tail) = LogReader::open(&dir).unwrap().read_all().unwrap();
        assert_eq!(tail, Tail::Clean);
        let state = RunState::fold(&events).unwrap();
        let spans = project(dir.id(), &events).spans;
        let record = Self {
            store,
            dir,
            events,
            state,
            spans,
        };
        for line in record.text().lines() {
            record.verify_references(&serde_json::from_str(line).unwrap());
        }
        record
    }

    fn verify_references(&self, value: &Value) {
        if value.get("$ref").is_some() {
            let reference = serde_json::from_value(value.clone()).unwrap();
            self.store.artifacts().get(&reference).unwrap();
        }
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.verify_references(item)),
            Value::Object(map) => map.values().for_each(|item| self.verify_references(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Returns the log's text.
    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.dir.events()).unwrap()
    }

    /// Reads a JSON file of the run's directory.
    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.dir.path().join(name)).unwrap()).unwrap()
    }

    /// Returns the types of the events.
    pub(crate) fn types(&self) -> Vec<&str> {
        self.events.iter().map(|event| event.fact.name()).collect()
    }

    /// Returns how the run ended: in the fold and in `status.json`, which must agree.
    #[track_caller]
    pub(crate) fn ended(&self) -> (Status, Option<StopReason>) {
        let status = self.json("status.json");
        assert_eq!(status["status"], self.state.status.to_string());
        let reason = self
            .state
            .stop_reason
            .map_or(Value::Null, |reason| reason.as_str().into());
        assert_eq!(status["stopReason"], reason);
        (self.state.status, self.state.stop_reason)
    }

    /// Returns what came of each action, in order.
    pub(crate) fn actions(&self) -> Vec<Came> {
        (1..=self.state.actions)
            .map(|id| self.came(ActionId(id)))
            .collect()
    }

    fn came(&self, action: ActionId) -> Came {
        let mut came = Came {
            outcome: "open",
            text: String::new(),
            review: None,
            done: None,
        };
        for event in self.events.iter().filter(|event| event.action == Some(action)) {
            if let Fact::PermissionReviewFinished(data) = &event.fact {
                came.review = Some(data.clone());
            } else if let Fact::ToolExecuteFinished(data) = &event.fact {
                came.done = Some(data.clone());
            } else if let Fact::Observation(data) = &event.fact
                && settles(data)
            {
                came.outcome = data.outcome.map_or("none", |outcome| outcome.as_str());
                came.text = data
                    .content
                    .as_ref()
                    .map_or_else(String::new, |text| self.whole(text));
            }
        }
        came
    }

    /// Returns the whole text of a payload.
    pub(crate) fn whole(&self, payload: &Payload) -> String {
        self.store.artifacts().text(payload).unwrap()
    }
}

fn settles(observation: &Observation) -> bool {
    observation.kind == ObservationKind::ToolOutput && observation.phase == Phase::After
}
