//! The policies that ship load, their examples hold, and they say what their first lines promise.
#![allow(clippy::unwrap_used, reason = "helpers of tests stop at the first surprise")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test reads the shipped files from the disk"
)]

use std::path::PathBuf;
use tracegate_policy::{
    Class, Decision, Grant, Layer, OnDeny, Policy, ReasonCode, Request, Sandbox, Source, Verb,
};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../policies")
}

fn load(name: &str, grants: &[Grant]) -> Policy {
    let text = std::fs::read_to_string(folder().join(name)).unwrap();
    Policy::load(
        &[Source::new(Layer::User, &format!("policies/{name}"), &text)],
        grants,
    )
    .unwrap()
}

#[test]
fn every_file_in_policies_loads() {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    names.sort();
    assert_eq!(names, ["ci.toml", "default.toml", "strict.toml"]);
    for name in names {
        load(&name, &[]);
    }
}

#[test]
fn the_default_policy_lets_a_granted_run_fix_and_test() {
    let policy = load("default.toml", &[Grant::Writes(None)]);
    let write = policy.decide(&Request::write("write_text", "src/math.ts"));
    let expected = Decision {
        verb: Verb::Allow,
        class: Class::Write,
        reason_code: ReasonCode::RuleAllow,
        rule: "session:allow-writes".to_owned(),
        reason: "the command line allows writes (--allow-writes)".to_owned(),
        matches: write.matches.clone(),
        masks: Vec::new(),
        sandbox: Sandbox::Prefer,
    };
    assert_eq!(write, expected);
    assert_eq!(write.matches.len(), 1);
    let test = policy.decide(&Request::command("shell_readonly", "npm test"));
    assert_eq!(
        (test.verb, test.class, test.rule.as_str()),
        (Verb::Allow, Class::Shell, "user:tests-js")
    );
}

#[test]
fn without_a_person_nothing_that_asks_runs() {
    use Verb::{Allow, Ask, Deny};
    for (request, default, strict, ci) in [
        (Request::read("read_file", "src/a.rs"), Allow, Allow, Allow),
        (Request::read("read_file", ".env"), Deny, Deny, Deny),
        (Request::read("read_file", ".git/config"), Ask, Deny, Deny),
        (Request::read("search_text", "."), Allow, Allow, Allow),
        (Request::command("shell", "rg foo"), Allow, Allow, Allow),
        (Request::write("write_text", "src/a.rs"), Ask, Ask, Deny),
        (
            Request::write("edit_text", ".github/workflows/ci.yml"),
            Ask,
            Deny,
            Deny,
        ),
        (Request::command("shell", "npm test"), Allow, Allow, Allow),
        (Request::command("shell", "cargo test"), Allow, Allow, Allow),
        (Request::command("shell", "npm run build"), Ask, Deny, Deny),
        (Request::command("shell", "npm install"), Deny, Deny, Deny),
        (Request::network("example.com", 443), Deny, Deny, Deny),
    ] {
        for (name, expected) in [
            ("default.toml", default),
            ("strict.toml", strict),
            ("ci.toml", ci),
        ] {
            let decision = load(name, &[]).decide(&request);
            assert_eq!(decision.verb, expected, "{name} {request:?}: {}", decision.reason);
            let alone = decision.resolve(None).verb;
            assert_eq!(alone == Allow, expected == Allow, "{name} {request:?}");
        }
    }
}

#[test]
fn the_limits_are_what_the_files_say() {
    let limits = |name: &str| (load(name, &[]).limits().on_deny, load(name, &[]).limits().sandbox);
    assert_eq!(limits("default.toml"), (OnDeny::Continue, Sandbox::Prefer));
    assert_eq!(limits("strict.toml"), (OnDeny::Stop, Sandbox::Require));
    assert_eq!(limits("ci.toml"), (OnDeny::Continue, Sandbox::Prefer));
}
