//! The one place where events come from: stamp, scrub, append, apply, hand on.

use crate::{
    attention::Attention,
    conversation::ConversationError,
    live::{LiveSpans, SpanIds},
    world::World,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tracegate_core::{
    context_report::{ContextReport, is_report_key},
    event::Event,
    fact::{
        Fact, Failure, Healed, SpanKind, is_free_key, is_schema_key,
        log::{LogRecovered, RedactionNoted},
        run::Durability,
    },
    ids::{ActionId, RunId, SegmentNo, Seq, SpanId, StepNo, Timestamp, TraceId},
    payload::{ArtifactRef, INLINE_STRING, Payload, encoded_len},
    redact::{Redactor, Schema, ScrubError, Scrubbed},
    state::{RunState, Violation},
};
use tracegate_store::{ArtifactError, Artifacts, Head, LogError, LogWriter, Recovery, RunDir, StoreError};

/// The run cannot be recorded, so it stops.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The log refuses.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A small file refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An artifact refuses.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// What is about to be sent to the model is not what the log holds.
    #[error(transparent)]
    Conversation(#[from] ConversationError),
    /// The event must not follow; a defect of this program.
    #[error("the event is out of order: {0}")]
    Violation(#[from] Violation),
    /// Redaction could not be applied; nothing was written.
    #[error("the event could not be scrubbed: {0}")]
    Scrub(#[from] ScrubError),
}

/// Receives every event after it was written.
pub trait Sink: Send + std::fmt::Debug {
    /// Takes notice of an event. Cannot fail: no collector, no problem.
    fn on_event(&mut self, event: &Scrubbed<Event>);
}

/// Where in a run an event belongs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    /// The action that it is about.
    pub action: Option<ActionId>,
    /// The span that it begins, ends or lies in.
    pub span: Option<SpanId>,
    /// The parent of the span that it begins.
    pub parent: Option<SpanId>,
    /// The event that it answers.
    pub cause: Option<Seq>,
}

impl Place {
    /// A place at `action`.
    #[must_use]
    pub fn at(action: ActionId) -> Self {
        Self {
            action: Some(action),
            ..Self::default()
        }
    }
}

/// A span that has begun: must be given back to [`Recorder::end`].
#[derive(Debug)]
#[must_use = "a span that is not ended stays open in the log"]
pub struct Span {
    ids: SpanIds,
    kind: SpanKind,
    started: Seq,
    action: Option<ActionId>,
    live: tracing::Span,
}

impl Span {
    /// Returns its ids.
    #[must_use]
    pub const fn ids(&self) -> SpanIds {
        self.ids
    }

    /// Returns the event that began it.
    #[must_use]
    pub const fn started(&self) -> Seq {
        self.started
    }

    /// Returns the live span, to run the phase inside.
    #[must_use]
    pub fn live(&self) -> tracing::Span {
        self.live.clone()
    }
}

/// What a recorder is made of.
#[derive(Debug)]
pub struct Parts {
    /// The run's directory.
    pub dir: RunDir,
    /// Its log.
    pub log: LogWriter,
    /// Where large payloads go.
    pub artifacts: Artifacts,
    /// Removes secrets.
    pub redactor: Redactor,
    /// Time and chance.
    pub world: Box<dyn World>,
    /// Who is told.
    pub sinks: Vec<Box<dyn Sink>>,
    /// Who opens live spans.
    pub live: Box<dyn LiveSpans>,
    /// The trace.
    pub trace: TraceId,
    /// When the log is synced.
    pub durability: Durability,
}

/// The recorder of one segment of a run.
#[derive(Debug)]
pub struct Recorder {
    parts: Parts,
    state: RunState,
    attention: Attention,
    segment: SegmentNo,
    /// Spans begun and not ended, innermost last: parents of what begins next.
    nesting: Vec<SpanId>,
    /// Whether the step that begins is one that a dead process had begun.
    repeats_step: bool,
    wall: Timestamp,
    mono: u64,
}

impl Recorder {
    /// Creates the recorder of the segment after those in `state`.
    #[must_use]
    pub fn new(parts: Parts, state: RunState, attention: Attention) -> Self {
        // A clock that was set back between segments must not make events go back in time.
        let wall = parts.world.wall().max(Timestamp(state.ts.0 + 1));
        let mono = parts.world.monotonic_ns();
        let segment = SegmentNo(state.segment.0 + 1);
        Self {
            parts,
            state,
            attention,
            segment,
            nesting: Vec::new(),
            repeats_step: false,
            wall,
            mono,
        }
    }

    /// Returns the fold of the log.
    #[must_use]
    pub const fn state(&self) -> &RunState {
        &self.state
    }

    /// Returns what the run has looked at.
    #[must_use]
    pub const fn attention(&self) -> &Attention {
        &self.attention
    }

    /// Returns the run's id.
    #[must_use]
    pub const fn run(&self) -> &RunId {
        self.parts.dir.id()
    }

    /// Returns the run's directory.
    #[must_use]
    pub const fn dir(&self) -> &RunDir {
        &self.parts.dir
    }

    /// Returns the artifacts.
    #[must_use]
    pub const fn artifacts(&self) -> &Artifacts {
        &self.parts.artifacts
    }

    /// Returns the redactor.
    #[must_use]
    pub const fn redactor(&self) -> &Redactor {
        &self.parts.redactor
    }

    /// Returns the trace.
    #[must_use]
    pub const fn trace(&self) -> TraceId {
        self.parts.trace
    }

    /// Returns how long processes have worked on the run, in milliseconds, up to now.
    #[must_use]
    pub fn worked_ms(&self) -> u64 {
        let here = self.parts.world.monotonic_ns().saturating_sub(self.mono);
        let before = if self.state.writer == self.segment {
            self.state.worked_before_ns
        } else {
            self.state.worked_before_ns.saturating_add(self.state.worked_ns)
        };
        before.saturating_add(here) / 1_000_000
    }

    /// Completes once `ms` milliseconds have passed.
    #[must_use]
    pub fn sleep(&self, ms: u64) -> crate::world::Sleeping {
        self.parts.world.sleep(ms)
    }

    /// Returns milliseconds of the monotonic clock.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.parts.world.monotonic_ns() / 1_000_000
    }

    /// Returns the size of the log in bytes.
    #[must_use]
    pub const fn log_bytes(&self) -> u64 {
        self.parts.log.len()
    }

    /// Records that something happened. The only way into the log.
    ///
    /// # Errors
    /// When the event must not follow, cannot be scrubbed or cannot be written; then nothing was changed and the run must stop.
    pub fn record(&mut self, place: Place, fact: impl Into<Fact>) -> Result<Seq, RecorderError> {
        let seq = Seq(self.state.seq.0 + 1);
        let mono_ns = self.parts.world.monotonic_ns().saturating_sub(self.mono);
        // Wall time at the segment's start plus monotonic time since: a clock that steps changes nothing.
        let ts = Timestamp(self.wall.0.saturating_add(mono_ns)).max(Timestamp(self.state.ts.0 + 1));
        let mut event = Event::new(self.run(), seq, self.segment, ts, mono_ns, fact.into());
        event.step = self.step(&event.fact);
        event.action = place.action;
        event.span = place.span;
        event.parent = place.parent;
        event.cause = place.cause;
        let event = self.scrub(&event)?;
        self.state.check(event.get())?;
        self.parts.log.append(&event)?;
        self.state.apply(event.get())?;
        self.attention.apply(event.get());
        if self.parts.durability == Durability::Event {
            self.parts.log.sync()?;
        }
        for sink in &mut self.parts.sinks {
            sink.on_event(&event);
        }
        if event.findings().total() > 0 {
            self.note_redaction(seq, &event)?;
        }
        Ok(seq)
    }

    /// Says which rules fired on event `seq`; such a note holds nothing that could be redacted, so this ends.
    fn note_redaction(&mut self, seq: Seq, event: &Scrubbed<Event>) -> Result<(), RecorderError> {
        let rules = event
            .findings()
            .iter()
            .map(|(rule, count)| (rule.to_owned(), count))
            .collect();
        let place = Place {
            span: event.get().span.or(self.nesting.last().copied()),
            cause: Some(seq),
            ..Place::default()
        };
        self.record(place, RedactionNoted { rules }).map(drop)
    }

    /// Returns the step that an event belongs to; the event that begins a step belongs to that one.
    fn step(&self, fact: &Fact) -> Option<StepNo> {
        let begins = u32::from(matches!(fact, Fact::AgentStepStarted(_)) && !self.repeats_step);
        let step = StepNo(self.state.step.0 + begins);
        (step.0 > 0).then_some(step)
    }

    /// Begins a span under the innermost open one and records its first event.
    ///
    /// # Errors
    /// As [`Recorder::record`].
    pub fn begin(&mut self, action: Option<ActionId>, fact: impl Into<Fact>) -> Result<Span, RecorderError> {
        let fact = fact.into();
        let kind = fact.edge().map_or(SpanKind::Segment, |(kind, _)| kind);
        let seq = Seq(self.state.seq.0 + 1);
        let parent = self.nesting.last().copied().or(self.state.root);
        let ids = SpanIds {
            trace: self.parts.trace,
            span: SpanId::derive(self.run(), seq),
            parent,
        };
        let place = Place {
            action,
            span: Some(ids.span),
            parent,
            cause: None,
        };
        let started = self.record(place, fact)?;
        self.nesting.push(ids.span);
        let live = self.parts.live.open(ids, kind);
        Ok(Span {
            ids,
            kind,
            started,
            action,
            live,
        })
    }

    /// Ends a span and records its last event.
    ///
    /// # Errors
    /// As [`Recorder::record`].
    pub fn end(&mut self, span: Span, fact: impl Into<Fact>) -> Result<Seq, RecorderError> {
        let Span {
            ids,
            kind,
            started,
            action,
            live,
        } = span;
        // The live span ends with its last clone: before the event, so that nothing of it can come later.
        drop(live);
        let fact = fact.into();
        debug_assert_eq!(
            fact.edge().map(|(kind, _)| kind),
            Some(kind),
            "a span ends as what it began"
        );
        self.nesting.retain(|open| *open != ids.span);
        self.record(
            Place {
                action,
                span: Some(ids.span),
                parent: None,
                cause: Some(started),
            },
            fact,
        )
    }

    /// Makes everything recorded so far durable, if the run's durability asks for it.
    ///
    /// # Errors
    /// When the file system refuses; the run must stop then.
    pub fn sync(&mut self) -> Result<Head, RecorderError> {
        match self.parts.durability {
            Durability::Kill => Ok(self.parts.log.synced()),
            Durability::Step | Durability::Event => Ok(self.parts.log.sync()?),
        }
    }

    /// Scrubs text and keeps it inline or as an artifact.
    ///
    /// # Errors
    /// When the artifact store refuses.
    pub fn payload(&self, text: &str) -> Result<Payload, RecorderError> {
        self.payload_within(text, INLINE_STRING)
    }

    /// Like [`Recorder::payload`], for events that hold many texts: small ones inline, references without previews.
    ///
    /// # Errors
    /// When the artifact store refuses.
    pub fn message_payload(&self, text: &str) -> Result<Payload, RecorderError> {
        // A request can have 65 new messages: with 64 actions in the reply before.
        const INLINE_MESSAGE: usize = 320;
        Ok(match self.payload_within(text, INLINE_MESSAGE)? {
            Payload::Ref(reference) => {
                let omitted = reference.bytes;
                let bare = ArtifactRef {
                    head: String::new(),
                    tail: String::new(),
                    omitted,
                    ..*reference
                };
                Payload::Ref(Box::new(bare))
            }
            inline @ Payload::Inline(_) => inline,
        })
    }

    /// Makes `value` fit into an event: long strings become references, and so does the whole of what is long all the same.
    ///
    /// # Errors
    /// When the artifact store refuses.
    pub fn fit(&self, value: &mut Value) -> Result<(), RecorderError> {
        self.shorten(value)?;
        let text = value.to_string();
        if text.len() > 4 * INLINE_STRING
            && let Payload::Ref(reference) = self.payload(&text)?
        {
            *value = json!(reference);
        }
        Ok(())
    }

    fn shorten(&self, value: &mut Value) -> Result<(), RecorderError> {
        match value {
            Value::String(text) if text.len() > INLINE_STRING => {
                if let Payload::Ref(reference) = self.payload(text)? {
                    *value = json!(reference);
                }
            }
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.shorten(item))?,
            Value::Object(map) => map.values_mut().try_for_each(|item| self.shorten(item))?,
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Ok(())
    }

    /// Returns the innermost open span.
    #[must_use]
    pub fn innermost(&self) -> Option<SpanId> {
        self.nesting.last().copied()
    }

    /// Returns the last event known to be synced.
    #[must_use]
    pub const fn synced(&self) -> Head {
        self.parts.log.synced()
    }

    /// Ends every span inside the segment that something cut short, innermost first.
    ///
    /// # Errors
    /// As [`Recorder::record`].
    pub fn abandon(&mut self, failure: &Failure) -> Result<(), RecorderError> {
        let segment = self.nesting.first().copied();
        self.nesting.truncate(1);
        self.close(failure, self.state.ts, segment)
    }

    /// Writes what a process begins with that takes over from a dead one: what had to be mended at the end of the log, and an end for
    /// every span that was left open, innermost first, at the time of the dead one's last event.
    ///
    /// # Errors
    /// As [`Recorder::record`].
    pub fn take_over(&mut self, recovery: &Recovery, died: Timestamp) -> Result<(), RecorderError> {
        if let Recovery::Quarantined { offset, bytes, file } = recovery {
            let recovered = LogRecovered {
                offset: *offset,
                torn_bytes: *bytes,
                quarantine: file.clone(),
            };
            self.record(Place::default(), recovered)?;
        }
        let killed = Failure::new("process_killed", "the process ended before the operation did");
        self.close(&killed, died, None)
    }

    fn close(
        &mut self,
        failure: &Failure,
        end_ts: Timestamp,
        keep: Option<SpanId>,
    ) -> Result<(), RecorderError> {
        let mut open: Vec<_> = self
            .state
            .open_spans
            .iter()
            .map(|(span, open)| (*span, open.clone()))
            .collect();
        open.sort_by_key(|(_, open)| std::cmp::Reverse(open.started));
        for (span, open) in open.into_iter().filter(|(span, _)| Some(*span) != keep) {
            let kind = SpanKind::ALL.into_iter().find(|kind| kind.as_str() == open.kind);
            let healed = Healed {
                error: failure.clone(),
                end_ts,
                healed: true,
            };
            let place = Place {
                action: open.action,
                span: Some(span),
                parent: None,
                cause: Some(open.started),
            };
            if let Some(kind) = kind {
                self.record(place, Fact::SpanHealed(kind, healed))?;
            }
        }
        Ok(())
    }

    /// Begins the step at work once more, after the process that began it had died.
    ///
    /// # Errors
    /// As [`Recorder::record`].
    pub fn begin_again(&mut self, fact: impl Into<Fact>) -> Result<Span, RecorderError> {
        self.repeats_step = true;
        let begun = self.begin(None, fact);
        self.repeats_step = false;
        begun
    }

    fn payload_within(&self, text: &str, inline: usize) -> Result<Payload, RecorderError> {
        let scrubbed = self.parts.redactor.scrub_text(text.to_owned());
        // Text of control characters grows sixfold in a record, which a few of them could fill.
        if scrubbed.get().len() <= inline && encoded_len(scrubbed.get()) <= 2 * inline {
            return Ok(Payload::Inline(scrubbed.into_inner()));
        }
        let bytes = self
            .parts
            .redactor
            .scrub_bytes(scrubbed.into_inner().into_bytes());
        let reference = self.parts.artifacts.put(&bytes, "text/plain; charset=utf-8")?;
        Ok(Payload::Ref(Box::new(reference)))
    }

    /// Scrubs a value of ours, leaving ids, enums and digests alone.
    ///
    /// # Errors
    /// When the scrubbed value no longer has its shape.
    pub fn scrub<T: Serialize + DeserializeOwned + Clone>(
        &self,
        value: &T,
    ) -> Result<Scrubbed<T>, RecorderError> {
        Ok(self.parts.redactor.scrub(
            value,
            &Schema {
                keep: is_schema_key,
                free: is_free_key,
            },
        )?)
    }

    /// Scrubs a context report.
    ///
    /// # Errors
    /// When the scrubbed report no longer has its shape.
    pub fn scrub_report(&self, report: &ContextReport) -> Result<Scrubbed<ContextReport>, RecorderError> {
        Ok(self.parts.redactor.scrub(
            report,
            &Schema {
                keep: is_report_key,
                free: |_| false,
            },
        )?)
    }
}
