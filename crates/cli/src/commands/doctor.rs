//! `tracegate doctor`: whether what a run needs is there, and whether its spans would arrive.

use crate::{
    Outcome,
    args::{Doctor, Global},
    commands::{export, show::store_of},
    environment::Environment,
    policy, print,
};
use serde::Serialize;
use std::path::Path;
use tracegate::world::{RealWorld, World as _};
use tracegate_core::stop::Exit;
use tracegate_otel::{
    doctor::{Health, probe},
    endpoint::{Compression, Endpoint},
};

/// From how many seconds on two clocks differ enough to make a trace look wrong.
const SKEW: u64 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Warn,
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    state: State,
    what: &'static str,
    found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    next: String,
}

fn check(state: State, what: &'static str, found: impl Into<String>, next: impl Into<String>) -> Check {
    Check {
        state,
        what,
        found: found.into(),
        next: next.into(),
    }
}

pub(crate) fn doctor(environment: &Environment, global: &Global, args: &Doctor) -> Outcome {
    let mut checks = endpoint(environment, args);
    checks.push(store(&store_of(environment, global)));
    checks.push(policy(environment, args));
    checks.extend(tools(environment));
    let failed = checks.iter().any(|check| check.state == State::Fail);
    let text = if args.json {
        serde_json::json!({ "ok": !failed, "checks": checks }).to_string()
    } else {
        checks.iter().map(render).collect::<Vec<_>>().join("\n")
    };
    print::answer(&print::stand_in(environment).scrub_text(text));
    Ok(if failed { Exit::Doctor } else { Exit::Ok })
}

fn render(check: &Check) -> String {
    let state = match check.state {
        State::Ok => "ok  ",
        State::Warn => "warn",
        State::Fail => "fail",
    };
    let next = if check.next.is_empty() {
        String::new()
    } else {
        format!("; next: {}", check.next)
    };
    format!("{state}  {:<8}  {}{next}", check.what, check.found)
}

/// Whether the endpoint takes spans, what would be sent to it, and whether its clock agrees.
fn endpoint(environment: &Environment, args: &Doctor) -> Vec<Check> {
    let endpoint = match export::endpoint(environment, &args.receiver.typed()) {
        Err(failure) => {
            let next = "correct the option or the variable";
            return vec![check(State::Fail, "endpoint", failure.to_string(), next)];
        }
        Ok(Err(silence)) => {
            let found = format!("{silence}: nothing is sent");
            return vec![check(State::Ok, "endpoint", found, "")];
        }
        Ok(Ok(endpoint)) => endpoint,
    };
    let named = args.receiver.endpoint.is_some()
        || [
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        ]
        .into_iter()
        .any(|name| environment.var(name).is_some());
    let url = endpoint.url();
    let probe = match probe(&endpoint) {
        Ok(probe) => probe,
        Err(error) => return vec![check(State::Fail, "endpoint", error.to_string(), "")],
    };
    let mut checks = vec![match probe.health {
        Health::Accepts => check(
            State::Ok,
            "endpoint",
            format!("{url} accepts spans"),
            format!("tracegate export @last {}", endpoint.options()),
        ),
        Health::Unreachable(why) => {
            // Nobody asked for this one: runs work without it.
            let state = if named { State::Fail } else { State::Warn };
            let next = "start a Collector there (docs/export.md), or name another with --endpoint URL";
            check(state, "endpoint", format!("{url}: {why}"), next)
        }
        Health::Refuses(why) => {
            let found = format!("{url} answers, but takes no spans: {why}");
            let next = "check address, --protocol and OTEL_EXPORTER_OTLP_HEADERS";
            check(State::Fail, "endpoint", found, next)
        }
    }];
    checks.push(sent(environment, &endpoint));
    if let Some(theirs) = probe.clock {
        let ours = i64::try_from(RealWorld::default().wall().0 / 1_000_000_000).unwrap_or(i64::MAX);
        let skew = ours.abs_diff(theirs);
        checks.push(if skew > SKEW {
            let found = format!("the endpoint's clock differs by {skew} s");
            let next = "set both clocks by NTP, or spans of both machines will not line up";
            check(State::Warn, "clock", found, next)
        } else {
            check(State::Ok, "clock", "the endpoint's clock agrees", "")
        });
    }
    checks
}

/// What goes with the spans. Of headers only the names: their values may be credentials.
fn sent(environment: &Environment, endpoint: &Endpoint) -> Check {
    let names: Vec<&str> = endpoint.headers().keys().map(String::as_str).collect();
    let headers = if names.is_empty() {
        "no headers".to_owned()
    } else {
        format!("headers {}", names.join(", "))
    };
    let compression = match endpoint.compression() {
        Compression::None => "",
        Compression::Gzip => ", gzip",
    };
    let name = environment.var("OTEL_SERVICE_NAME").unwrap_or("tracegate");
    let tls = if endpoint.is_tls() { " over TLS" } else { "" };
    let found = format!(
        "service {name}, {}{tls}, {headers}{compression}",
        endpoint.protocol()
    );
    check(State::Ok, "sent", found, "")
}

/// Whether a run could be kept there. Nothing stays behind.
fn store(store: &Path) -> Check {
    // What is not there is made by the first run, in the nearest directory that is.
    let existing = store.ancestors().find(|dir| dir.is_dir()).unwrap_or(store);
    let shown = store.display();
    match tempfile::tempfile_in(existing) {
        Ok(_) if existing == store => check(State::Ok, "store", format!("{shown} is writable"), ""),
        Ok(_) => check(
            State::Ok,
            "store",
            format!("{shown} is made by the first run"),
            "tracegate demo",
        ),
        Err(error) => {
            let next = "name a writable one with --store DIR or TRACEGATE_STORE";
            check(State::Fail, "store", format!("{shown}: {error}"), next)
        }
    }
}

fn policy(environment: &Environment, args: &Doctor) -> Check {
    match policy::load(&environment.dir, &args.policy, None, &environment.dir) {
        Ok(loaded) => {
            let files = loaded.reference.files.join(", ");
            check(State::Ok, "policy", format!("{files} parses"), "")
        }
        Err(failure) => {
            let next = "correct that line; nothing runs under a policy that does not parse";
            check(State::Fail, "policy", failure.to_string(), next)
        }
    }
}

fn tools(environment: &Environment) -> Vec<Check> {
    let has = |name: &str| environment.has_program(name);
    let shell = if has("sh") {
        check(State::Ok, "sh", "found", "")
    } else {
        check(State::Fail, "sh", "not on PATH", "agents run commands through it")
    };
    let git = if has("git") {
        check(State::Ok, "git", "found", "")
    } else {
        let next = "install it: without it all files of a workspace are compared one by one";
        check(State::Warn, "git", "not on PATH", next)
    };
    let demo = if has("node") && has("npm") {
        check(State::Ok, "demo", "Node found", "tracegate demo")
    } else if has("cargo") {
        check(State::Ok, "demo", "cargo found", "tracegate demo")
    } else {
        check(
            State::Warn,
            "demo",
            "neither Node nor cargo on PATH",
            "install Node 18 or later",
        )
    };
    vec![shell, git, demo]
}
