//! Events to spans: a fold that gives out a span when its finished event comes, and the same span for the same events always.

use super::{
    attributes::{Actor, Sheet},
    names,
    record::{
        MAX_NAME, MAX_SPAN_EVENTS, Parent, RecordKind, Resource, SpanEvent, SpanLink, SpanRecord, SpanStatus,
        Value,
    },
    sorted::Attributes,
};
use crate::{
    event::Event,
    fact::{
        Edge, Fact, SpanKind,
        gate::ValidationReviewFinished,
        run::{RemoteParent, RemoteSpan, RunStarted},
    },
    ids::{ActionId, RunId, Seq, SpanId, TraceId},
    payload::clip,
};
use std::collections::BTreeMap;

/// The most attributes of a noted event: with the other limits it keeps every span below the 2 MiB of a batch.
const MAX_NOTE_ATTRS: usize = 8;
/// How a run relates to a span of the program that started it, from a trace of its own.
const STARTED_BY: &str = "started_by";

/// Computes spans from the events of one run, fed in the order of the log.
///
/// Live export, export after a crash and export from an old log all go through here, which is what makes them agree. Memory: the open
/// spans and one short string per action.
#[derive(Debug, Clone)]
pub struct Projector {
    actor: Actor,
    trace_id: TraceId,
    remote_parent: Option<RemoteParent>,
    /// What the first segment refers to; gone once it has begun.
    trace_link: Option<RemoteSpan>,
    resource: Option<Resource>,
    open: BTreeMap<SpanId, Building>,
    /// The model service's ids of calls, by action.
    calls: BTreeMap<ActionId, String>,
}

/// A span whose finished event has not come.
#[derive(Debug, Clone)]
struct Building {
    kind: SpanKind,
    started: Seq,
    start_ns: u64,
    parent: Parent,
    sheet: Sheet,
    events: Vec<SpanEvent>,
    dropped_events: u32,
    links: Vec<SpanLink>,
}

/// A span that has begun and not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenSpan {
    /// Its id.
    pub span_id: SpanId,
    /// Its kind.
    pub kind: SpanKind,
    /// The event that began it.
    pub started: Seq,
    /// What it hangs under.
    pub parent: Parent,
}

/// All that a log says about spans.
#[derive(Debug, Clone, PartialEq)]
pub struct Projected {
    /// What the spans have in common; absent if `run.started` is.
    pub resource: Option<Resource>,
    /// The finished spans, in the order of their finished events.
    pub spans: Vec<SpanRecord>,
}

/// Computes all finished spans of `run` from its events.
pub fn project<'a>(run: &RunId, events: impl IntoIterator<Item = &'a Event>) -> Projected {
    let mut projector = Projector::new(run);
    let spans = events
        .into_iter()
        .flat_map(|event| projector.feed(event))
        .collect();
    Projected {
        resource: projector.resource,
        spans,
    }
}

impl Projector {
    /// Starts with nothing known but the run's id, which no event repeats.
    #[must_use]
    pub fn new(run: &RunId) -> Self {
        Self {
            // What holds until `run.started`, and in a salvaged log that has lost it.
            actor: Actor {
                run: run.to_string(),
                agent: "tracegate".to_owned(),
                version: String::new(),
                provider: String::new(),
                model: String::new(),
            },
            trace_id: TraceId::derive(run),
            remote_parent: None,
            trace_link: None,
            resource: None,
            open: BTreeMap::new(),
            calls: BTreeMap::new(),
        }
    }

    /// Returns what all spans have in common, once `run.started` was fed.
    #[must_use]
    pub const fn resource(&self) -> Option<&Resource> {
        self.resource.as_ref()
    }

    /// Returns the trace of the run.
    #[must_use]
    pub const fn trace_id(&self) -> TraceId {
        self.trace_id
    }

    /// Returns the spans that have not ended, the latest begun first: the order in which to close them.
    #[must_use]
    pub fn open(&self) -> Vec<OpenSpan> {
        let mut open: Vec<OpenSpan> = self
            .open
            .iter()
            .map(|(span_id, span)| OpenSpan {
                span_id: *span_id,
                kind: span.kind,
                started: span.started,
                parent: span.parent,
            })
            .collect();
        open.sort_by_key(|span| std::cmp::Reverse(span.started));
        open
    }

    /// Takes in the next event and returns the spans that it finishes.
    ///
    /// An end without a begin, or of another kind than the begin, is passed over: it can only come from a damaged log.
    pub fn feed(&mut self, event: &Event) -> Vec<SpanRecord> {
        if let Fact::RunStarted(run) = &event.fact {
            self.run_started(run);
        }
        if let (Fact::Action(action), Some(id)) = (&event.fact, event.action) {
            self.calls.insert(id, action.call_id.clone());
        }
        let Some(span_id) = event.span else {
            return Vec::new();
        };
        match event.fact.edge() {
            Some((kind, Edge::Started)) => {
                self.begin(span_id, kind, event);
                Vec::new()
            }
            Some((kind, Edge::Finished)) => self.end(span_id, kind, event).into_iter().collect(),
            None => {
                self.note(span_id, event);
                Vec::new()
            }
        }
    }

    fn run_started(&mut self, run: &RunStarted) {
        self.trace_id = run.trace_id;
        self.remote_parent = run.remote_parent;
        self.trace_link = run.trace_link;
        self.actor.agent.clone_from(&run.agent.name);
        self.actor.version.clone_from(&run.agent.version);
        self.actor.provider.clone_from(&run.model.provider);
        self.actor.model.clone_from(&run.model.name);
        let ours = [
            (names::SERVICE_NAME, run.agent.name.as_str()),
            (names::SERVICE_VERSION, &run.agent.version),
            (names::HOST_ID, &run.host_id),
            (names::TELEMETRY_SDK_NAME, "tracegate"),
            (names::TELEMETRY_SDK_LANGUAGE, "rust"),
        ];
        let ours = ours
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        // What the run was started with wins: it has OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES in it.
        let given = run.resource.clone().into_iter();
        self.resource = Some(Resource::new(ours.chain(given)));
    }

    fn parent(&self, kind: SpanKind, event: &Event) -> Parent {
        let remote = self.remote_parent.map(|remote| remote.span_id);
        match (event.parent, remote) {
            (Some(parent), Some(remote)) if parent == remote => Parent::Remote(remote),
            (Some(parent), _) => Parent::Local(parent),
            (None, Some(remote)) if kind == SpanKind::Segment => Parent::Remote(remote),
            (None, _) => Parent::Root,
        }
    }

    fn begin(&mut self, span_id: SpanId, kind: SpanKind, event: &Event) {
        let mut sheet = Sheet::default();
        sheet.text(names::SESSION_ID, &self.actor.run);
        sheet.text(names::RUN_ID, &self.actor.run);
        sheet.count(names::SEGMENT, event.segment.0.into());
        sheet.count(names::BEGIN_SEQ, event.seq.0);
        if let Some(step) = event.step {
            sheet.count(names::STEP, step.0.into());
        }
        if let Some(action) = event.action {
            sheet.text(names::ACTION_ID, &action.to_string());
        }
        let call_id = event.action.and_then(|action| self.calls.get(&action));
        // A started event cannot fail, so there is no failure to look at.
        drop(sheet.add(&event.fact, &self.actor, call_id.map(String::as_str)));
        let links = self.links(&event.fact, &mut sheet);
        let building = Building {
            kind,
            started: event.seq,
            start_ns: event.ts.0,
            parent: self.parent(kind, event),
            sheet,
            events: Vec::new(),
            dropped_events: 0,
            links,
        };
        self.open.insert(span_id, building);
    }

    /// Returns what a segment refers to. The relation stands on the span too, because Jaeger's page drops attributes of links.
    fn links(&mut self, fact: &Fact, sheet: &mut Sheet) -> Vec<SpanLink> {
        let Fact::SegmentStarted(segment) = fact else {
            return Vec::new();
        };
        let before = segment
            .resumed_from
            .as_ref()
            .map(|before| (self.trace_id, before.span_id, before.relation.as_str()));
        let outside = self
            .trace_link
            .take()
            .map(|remote| (remote.trace_id, remote.span_id, STARTED_BY));
        let link = before.or(outside).map(|(trace_id, span_id, relation)| {
            sheet.text(names::LINK_RELATION, relation);
            SpanLink {
                trace_id,
                span_id,
                attrs: Attributes::from([(names::LINK_RELATION.into(), Value::text(relation))]),
            }
        });
        link.into_iter().collect()
    }

    fn end(&mut self, span_id: SpanId, kind: SpanKind, event: &Event) -> Option<SpanRecord> {
        if self.open.get(&span_id)?.kind != kind {
            return None;
        }
        let mut span = self.open.remove(&span_id)?;
        span.sheet.count(names::END_SEQ, event.seq.0);
        let failure = span.sheet.add(&event.fact, &self.actor, None);
        let status = match failure {
            // A step only groups: the red marks belong to what failed and to the run, or nobody finds it.
            Some(_) if kind == SpanKind::AgentStep => SpanStatus::Unset,
            Some(failure) => SpanStatus::Error(span.sheet.fail(&failure)),
            None => SpanStatus::Unset,
        };
        if let Fact::ValidationReviewFinished(review) = &event.fact {
            self.show_verdict(&span.sheet);
            span.point(evaluation(review, event.ts.0));
        }
        let end_ns = if let Fact::SpanHealed(_, healed) = &event.fact {
            // What began with the last event before a kill would take no time, and Jaeger warns about that. All healed spans get
            // the nanosecond, so that none ends after its parent.
            healed.end_ts.0.saturating_add(1)
        } else {
            event.ts.0
        };
        Some(SpanRecord {
            trace_id: self.trace_id,
            span_id,
            parent: span.parent,
            name: self.name(kind),
            kind: if kind == SpanKind::ModelComplete {
                RecordKind::Client
            } else {
                RecordKind::Internal
            },
            start_ns: span.start_ns,
            // A healed end lies before a begin only in a log that somebody edited; Jaeger warns about negative durations.
            end_ns: end_ns.max(span.start_ns),
            attrs: span.sheet.0,
            events: span.events,
            dropped_events: span.dropped_events,
            links: span.links,
            status,
        })
    }

    /// The last verdict stands on the segment too, which is where people look for it.
    fn show_verdict(&mut self, review: &Sheet) {
        let Some(verdict) = review.0.get(names::VERDICT) else {
            return;
        };
        for span in self.open.values_mut() {
            if span.kind == SpanKind::Segment {
                span.sheet.0.insert(names::VERDICT.into(), verdict.clone());
            }
        }
    }

    fn name(&self, kind: SpanKind) -> String {
        match kind {
            SpanKind::Segment => clip(&format!("{} {}", names::INVOKE_AGENT, self.actor.agent), MAX_NAME),
            SpanKind::AgentStep
            | SpanKind::ContextBuild
            | SpanKind::ModelComplete
            | SpanKind::PermissionReview
            | SpanKind::ToolExecute
            | SpanKind::CheckpointSave
            | SpanKind::ValidationReview => kind.as_str().to_owned(),
        }
    }

    /// Puts a point into an open span. A span that has ended was exported and does not change any more.
    fn note(&mut self, span_id: SpanId, event: &Event) {
        let Some(span) = self.open.get_mut(&span_id) else {
            return;
        };
        let mut sheet = Sheet::default();
        let name = if let Fact::SpanNoted(noted) = &event.fact {
            for (key, value) in noted.attrs.iter().take(MAX_NOTE_ATTRS) {
                sheet.0.insert(clip(key, MAX_NAME).into(), Value::text(value));
            }
            &noted.name
        } else if let Fact::RedactionNoted(noted) = &event.fact {
            let rules = noted.rules.iter().map(|(rule, times)| format!("{rule}={times}"));
            sheet.list(names::REDACTION_RULES, rules);
            event.fact.name()
        } else if let Fact::ReadinessWaited(waited) = &event.fact {
            sheet.count(names::READINESS_WAITED_MS, waited.waited_ms);
            sheet.list(names::READINESS_CONDITIONS, waited.conditions.iter().cloned());
            sheet.flag(names::READINESS_DEGRADED, waited.degraded);
            event.fact.name()
        } else {
            return;
        };
        span.point(SpanEvent {
            name: clip(name, MAX_NAME),
            at_ns: event.ts.0,
            attrs: sheet.0,
        });
    }
}

impl Building {
    fn point(&mut self, event: SpanEvent) {
        if self.events.len() < MAX_SPAN_EVENTS {
            self.events.push(event);
        } else {
            self.dropped_events = self.dropped_events.saturating_add(1);
        }
    }
}

/// Returns a verdict as the conventions have the result of an evaluation. On a span event: as attributes of the span they would make
/// it one of the GenAI operations, of which reviewing is none.
fn evaluation(review: &ValidationReviewFinished, at_ns: u64) -> SpanEvent {
    let mut sheet = Sheet::default();
    sheet.text(names::GEN_AI_EVALUATION_NAME, SpanKind::ValidationReview.as_str());
    sheet.spelled(names::GEN_AI_EVALUATION_SCORE_LABEL, &review.verdict.outcome);
    sheet.text(names::GEN_AI_EVALUATION_EXPLANATION, &review.verdict.explanation);
    SpanEvent {
        name: names::GEN_AI_EVALUATION_RESULT.to_owned(),
        at_ns,
        attrs: sheet.0,
    }
}
