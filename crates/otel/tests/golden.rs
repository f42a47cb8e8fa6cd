//! The bytes of `traces.otlp.jsonl`, compared as a whole file.
#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]
#![expect(
    clippy::disallowed_methods,
    reason = "a differing file is put where a person can look at it"
)]

#[path = "../../core/tests/recorded/mod.rs"]
mod recorded;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use recorded::{events, run};
use std::{fs, path::Path};
use tracegate_core::span::{Projected, project};
use tracegate_otel::jsonl::to_json_line;

const GOLDEN: &str = include_str!("golden/repair.otlp.jsonl");

fn lines(projected: Projected) -> String {
    let resource = projected.resource.as_ref().unwrap();
    let lines = projected
        .spans
        .into_iter()
        .map(|span| to_json_line(resource, span).unwrap());
    lines.collect()
}

#[test]
fn the_file_of_a_recorded_run_is_the_golden_one_byte_for_byte() {
    let found = lines(project(&run(), &events()));
    if found != GOLDEN {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("repair.otlp.jsonl");
        fs::write(&path, &found).unwrap();
        panic!(
            "differs from tests/golden/repair.otlp.jsonl; if it should, take {}",
            path.display()
        );
    }
}

#[test]
fn every_line_is_a_whole_request_with_resource_scope_and_one_span() {
    for line in GOLDEN.lines() {
        let request: ExportTraceServiceRequest = serde_json::from_str(line).unwrap();
        let [resource] = request.resource_spans.as_slice() else {
            panic!("one resource a line: {line}");
        };
        let keys: Vec<&str> = resource
            .resource
            .iter()
            .flat_map(|it| &it.attributes)
            .map(|it| it.key.as_str())
            .collect();
        assert!(keys.is_sorted() && keys.contains(&"service.name"), "{keys:?}");
        let [scope] = resource.scope_spans.as_slice() else {
            panic!("one scope a line: {line}");
        };
        assert_eq!(scope.scope.as_ref().map(|it| it.name.as_str()), Some("tracegate"));
        assert_eq!(scope.spans.len(), 1);
    }
    assert_eq!(GOLDEN.lines().count(), 10);
    assert!(GOLDEN.ends_with('\n'));
}
