//! Spans as OTLP/JSON lines: the format of the OTLP file exporter, which Jaeger's page and the Collector's `otlpjsonfile` receiver read.

use crate::encode;
use tracegate_core::span::{Resource, SpanRecord};

/// Returns the line of one span, with its line feed: a whole request with resource and scope, so that any subset of lines is valid.
///
/// Ids are lower-case hex, 64-bit numbers decimal strings, enums numbers, as the OTLP specification says. The same record gives the
/// same bytes.
///
/// # Errors
/// When the request cannot be written as JSON; no record holds anything for which that is so.
pub fn to_json_line(resource: &Resource, record: SpanRecord) -> Result<String, serde_json::Error> {
    let request = encode::request(resource, vec![encode::span(record)]);
    let mut line = serde_json::to_string(&request)?;
    line.push('\n');
    Ok(line)
}
