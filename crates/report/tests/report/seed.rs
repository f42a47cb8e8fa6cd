//! Seed 003: the failed run and its fixed twin, every text compared whole.

use crate::{
    logs::{fixed, seed},
    support::{Log, SEED, USUAL},
};
use tracegate_report::{Holder, Language, Width, attribution, evidence, postmortem, summary};

fn all_texts(log: &Log, language: Language) -> String {
    let view = log.view();
    let width = Width::default();
    [
        summary::render(&summary::summarise(&view, Holder::Nobody), width),
        evidence::render(&evidence::rows(&view, Holder::Nobody), width),
        attribution::render(&attribution::explain(&view, Holder::Nobody, language), width),
        postmortem::render(&postmortem::write(&view, Holder::Nobody, language), width),
    ]
    .join("\n")
}

#[test]
fn the_failed_run_explains_itself() {
    insta::assert_snapshot!(all_texts(&seed(SEED), Language::En), @"");
}

#[test]
fn the_failed_run_explains_itself_in_chinese() {
    insta::assert_snapshot!(all_texts(&seed(SEED), Language::Zh), @"");
}

#[test]
fn the_fixed_run_has_no_direct_failure() {
    insta::assert_snapshot!(all_texts(&fixed(), Language::En), @"");
}

#[test]
fn push_backs_change_the_words_about_the_gate() {
    let view = seed(USUAL).view();
    insta::assert_snapshot!(
        attribution::render(&attribution::explain(&view, Holder::Nobody, Language::En), Width::new(72)),
        @""
    );
}

#[test]
fn the_same_log_as_json() {
    let view = seed(SEED).view();
    let json = serde_json::json!({
        "summary": summary::summarise(&view, Holder::Nobody),
        "evidence": evidence::rows(&view, Holder::Nobody).last(),
        "attribution": attribution::explain(&view, Holder::Nobody, Language::En),
        "postmortem": postmortem::write(&view, Holder::Nobody, Language::Zh),
    });
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap(), @"");
}
