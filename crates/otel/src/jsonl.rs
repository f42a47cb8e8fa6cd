//! Spans as OTLP/JSON lines: the format of the OTLP file exporter, which Jaeger's page and the Collector's `otlpjsonfile` receiver read.

use crate::convert::{resource_attributes, span_data};
use opentelemetry_proto::{
    tonic::collector::trace::v1::ExportTraceServiceRequest,
    transform::{
        common::tonic::{Attributes, ResourceAttributesWithSchema},
        trace::tonic::group_spans_by_resource_and_scope,
    },
};
use tracegate_core::span::{Resource, SpanRecord};

/// Returns the line of one span, with its line feed: a whole request with resource and scope, so that any subset of lines is valid.
///
/// Ids are lower-case hex, 64-bit numbers decimal strings, enums numbers, as the OTLP specification says. The same record gives the
/// same bytes.
///
/// # Errors
/// When the request cannot be written as JSON; no record holds anything for which that is so.
pub fn to_json_line(resource: &Resource, record: &SpanRecord) -> Result<String, serde_json::Error> {
    // Not through the SDK's resource, whose order of attributes changes from process to process.
    let resource = ResourceAttributesWithSchema {
        attributes: Attributes::from(resource_attributes(resource)),
        schema_url: None,
    };
    let resource_spans = group_spans_by_resource_and_scope(vec![span_data(record)], &resource);
    let mut line = serde_json::to_string(&ExportTraceServiceRequest { resource_spans })?;
    line.push('\n');
    Ok(line)
}
