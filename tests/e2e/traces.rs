//! The trace around a run: what `TRACEPARENT` makes of it, and what the commands of its tools get.

use crate::e2e::{
    place::{Place, QUESTION, acts, answers, shell},
    record::Record,
};
use tracegate_core::span::{Parent, SpanRecord, Value, names};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

/// Runs a command that shows its environment, inside the trace around.
fn run(more: &[&str]) -> Record {
    let mut place = Place::new();
    place.variable("TRACEPARENT", &format!("00-{TRACE}-{SPAN}-01"));
    place.file("env.sh", "env\n");
    let replies = [acts([shell("sh env.sh")]), answers("done")];
    place.recorded(QUESTION, &replies, more, 0).1
}

fn of<'a>(record: &'a Record, name: &str) -> &'a SpanRecord {
    record.spans.iter().find(|span| span.name == name).unwrap()
}

/// Where a run's root hangs, what it links to and why, and whether all its spans and its command have the trace of its root.
fn shape(record: &Record) -> (String, Parent, Vec<String>, bool) {
    let (root, tool) = (of(record, "invoke_agent tracegate"), of(record, "tool.execute"));
    let links = root.links.iter().map(|link| {
        let relation = root.attrs.get(names::LINK_RELATION);
        assert_eq!(relation, link.attrs.get(names::LINK_RELATION));
        let Some(Value::Str(relation)) = relation else {
            panic!("{relation:?}");
        };
        format!("{relation} {}-{}", link.trace_id, link.span_id)
    });
    let handed = format!("TRACEPARENT=00-{}-{}-01", root.trace_id, tool.span_id);
    let one = record.spans.iter().all(|span| span.trace_id == root.trace_id);
    let command = &record.actions()[0].text;
    let joined = one && command.lines().any(|line| line == handed);
    (root.trace_id.to_string(), root.parent, links.collect(), joined)
}

#[test]
fn a_run_is_part_of_the_trace_around_it_and_its_commands_are_part_of_its_own() {
    let around = SPAN.parse().unwrap();
    assert_eq!(
        shape(&run(&[])),
        (TRACE.to_owned(), Parent::Remote(around), vec![], true)
    );
}

#[test]
fn a_run_that_only_links_to_the_trace_around_it_has_a_root_of_its_own() {
    let (trace, parent, links, joined) = shape(&run(&["--trace-link"]));
    assert_ne!(trace, TRACE);
    let wanted = vec![format!("started_by {TRACE}-{SPAN}")];
    assert_eq!((parent, links, joined), (Parent::Root, wanted, true));
}
