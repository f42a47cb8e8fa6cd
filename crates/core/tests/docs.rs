//! What the documentation promises about the format is what the code does: every event type is in `docs/events.md`, and its vector holds.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use serde_json::value::RawValue;
use tracegate_core::{
    event::Event,
    fact::Fact,
    ids::{Chain, Seq},
};

const EVENTS: &str = include_str!("../../../docs/events.md");
/// The one place where event types are declared.
const FACTS: &str = include_str!("../src/fact.rs");

/// Returns the names that the `facts!` declaration gives to event types.
fn declared() -> Vec<&'static str> {
    let (_, declaration) = FACTS.split_once("\nfacts! {").unwrap();
    let (declaration, _) = declaration.split_once("\n}\n").unwrap();
    let rows = declaration
        .lines()
        .map(str::trim_start)
        .filter(|line| !line.is_empty() && !line.starts_with("//"));
    rows.map(|row| row.split('"').nth(1).unwrap()).collect()
}

/// Returns the types that have a row in a table of the documentation.
fn documented() -> Vec<&'static str> {
    let (_, types) = EVENTS.split_once("\n## Event types\n").unwrap();
    let (types, _) = types.split_once("\n## ").unwrap();
    types
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|row| row.split('`').next())
        .collect()
}

#[test]
fn every_event_type_is_documented_and_nothing_else_is() {
    let (mut declared, mut documented) = (declared(), documented());
    declared.sort_unstable();
    documented.sort_unstable();
    assert_eq!(declared, documented);
    // The reading of the declaration above is right: the code knows these names and no others.
    let data = RawValue::from_string("{}".to_owned()).unwrap();
    for name in declared {
        let known = !matches!(Fact::from_json(name, &data), Ok(Fact::Unknown { .. }));
        assert!(known, "{name}");
    }
    assert!(matches!(
        Fact::from_json("moon.rose", &data),
        Ok(Fact::Unknown { .. })
    ));
}

#[test]
fn the_vector_of_the_documentation_holds() {
    let after = |label: &str| {
        let line = EVENTS
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(label));
        line.unwrap().trim()
    };
    let run = "run_x_20261130_00000000".parse().unwrap();
    let genesis = Chain::genesis(&run);
    assert_eq!(genesis.to_string(), after("chain(0)  "));
    let (event, _) = Event::from_line(after("line 1 "), genesis, Seq(1)).unwrap();
    assert_eq!(event.to_line(genesis).unwrap().0.trim_end(), after("line 1 "));
}

#[test]
fn the_line_of_the_documentation_is_an_event() {
    let line = EVENTS
        .lines()
        .find_map(|line| line.strip_prefix("    {\"v\":1"))
        .unwrap();
    let event = Event::from_line_unverified(&format!("{{\"v\":1{line}")).unwrap();
    assert!(matches!(event.fact, Fact::ToolExecuteStarted(_)));
}
