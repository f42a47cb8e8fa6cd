//! What must hold for every log: no panic on any prefix, no line wider than asked for, nothing that a terminal obeys.

use crate::{
    logs::{all, hostile},
    support::{Log, run_id},
};
use tracegate_core::{
    event::Event,
    steps::summary::{Keep, Summaries},
};
use tracegate_report::{
    Holder, Language, RunView, Width, attribution, evidence, postmortem, steps, summary, terminal,
};

/// The table of the steps of these events, the middle of a long run left out.
fn steps(events: &[Event], width: Width) -> String {
    let mut summaries = Summaries::new(Keep::Ends { first: 4, last: 4 });
    for event in events {
        summaries.push(event);
    }
    steps::render(&summaries.finish(), 4, width)
}

/// Every text about a view.
fn texts(view: &RunView, holder: Holder, width: Width) -> Vec<String> {
    let mut texts = vec![
        summary::render(&summary::summarise(view, holder), width),
        evidence::render(&evidence::rows(view, holder), width),
    ];
    for language in [Language::En, Language::Zh] {
        texts.push(attribution::render(
            &attribution::explain(view, holder, language),
            width,
        ));
        texts.push(postmortem::render(
            &postmortem::write(view, holder, language),
            width,
        ));
    }
    texts
}

fn check(log: &Log, end: usize, holder: Holder, columns: usize) {
    let Ok(view) = RunView::read(run_id(), &log.events[..end]) else {
        assert_eq!(end, 0, "only the empty prefix is no run");
        return;
    };
    let width = Width::new(columns);
    let steps = steps(&log.events[..end], width);
    for text in texts(&view, holder, width).into_iter().chain([steps]) {
        let most = if columns < 100 { 40 } else { 20 };
        assert!(
            text.ends_with('\n') && text.lines().count() <= most,
            "{columns}: {text}"
        );
        for line in text.lines() {
            assert!(terminal::width_of(line) <= width.columns(), "{columns}: {line:?}");
            let obeyed =
                |c: char| c.is_control() || ('\u{200b}'..='\u{200f}').contains(&c) || c == '\u{202e}';
            assert!(!line.chars().any(obeyed), "{line:?}");
        }
    }
}

#[test]
fn every_prefix_of_every_log_is_reported_within_its_width() {
    for log in all() {
        for end in 0..=log.events.len() {
            for holder in [Holder::Alive, Holder::Nobody] {
                check(&log, end, holder, 100);
            }
        }
    }
}

#[test]
fn hostile_content_stays_within_any_width() {
    let log = hostile();
    for columns in [0, 40, 41, 55, 69, 70, 80, 133, 300] {
        check(&log, log.events.len(), Holder::Nobody, columns);
    }
}

#[test]
fn hostile_content_is_shown_by_number() {
    let view = hostile().view();
    let rows = evidence::render(&evidence::rows(&view, Holder::Nobody), Width::new(200));
    let line = rows.lines().nth(1).unwrap();
    assert!(
        line.contains("‹U+001B›]0;x‹U+0007›‹U+202E›修复 [7142 bytes omitted] 长"),
        "{line}"
    );
    assert!(line.contains('…'), "{line}");
}
