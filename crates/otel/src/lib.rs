//! Spans to OTLP files and collectors, and the live tracing bridge.
