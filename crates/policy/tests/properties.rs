//! What must hold for every policy, script and request.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests stop at the first surprise"
)]

use proptest::prelude::*;
use tracegate_policy::{Answer, Grant, Layer, Policy, Request, Source, Target, Verb, plain_words};

const VERBS: [&str; 3] = ["allow", "ask", "deny"];

/// The condition of a rule, over a small world in which rules and requests often meet.
fn condition() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "cat", "rm", "cp", "git", "curl", "timeout", "sh", "make", "**", "a", "src", "*",
    ]);
    let command = prop::collection::vec(words, 1..3).prop_filter_map("`**` is last", |words| {
        let early = words.iter().rev().skip(1).any(|word| *word == "**");
        (!early).then(|| format!("command = [\"{}\"]\n", words.join(" ")))
    });
    let paths = prop::sample::select(vec!["**", "src/**", "src/a", "**/a", "*", "secret/**"]);
    let tools = prop::sample::select(vec![
        "",
        "tools = [\"read_file\"]\n",
        "tools = [\"write_text\"]\n",
        "tools = [\"shell\"]\n",
    ]);
    let except = prop::sample::select(vec!["", "except = [\"src/a\"]\n", "except = [\"src/**\"]\n"]);
    let paths = (paths, tools, except)
        .prop_map(|(path, tools, except)| format!("paths = [\"{path}\"]\n{tools}{except}"));
    let net = prop::sample::select(vec!["net = [\"*.example:443\"]\n", "net = [\"a.example:*\"]\n"])
        .prop_map(str::to_owned);
    let tools_alone = prop::sample::select(vec!["tools = [\"shell\"]\n", "tools = [\"edit_text\"]\n"])
        .prop_map(str::to_owned);
    prop_oneof![3 => command, 3 => paths, 1 => net, 1 => tools_alone]
}

fn rule(id: usize, verb: &str, condition: &str) -> String {
    format!("[[rule]]\nid = \"r{id}\"\neffect = \"{verb}\"\n{condition}")
}

fn policy_text() -> impl Strategy<Value = String> {
    let defaults = prop::collection::vec(prop::option::of(0_usize..3), 4);
    let rules = prop::collection::vec((0_usize..3, condition()), 0..5);
    (defaults, rules).prop_map(|(defaults, rules)| {
        let mut text = "version = 1\n[defaults]\n".to_owned();
        for (class, verb) in ["read", "write", "shell", "network"].iter().zip(defaults) {
            if let Some(verb) = verb {
                text = text + class + " = \"" + VERBS[verb] + "\"\n";
            }
        }
        for (id, (verb, condition)) in rules.iter().enumerate() {
            text += &rule(id, VERBS[*verb], condition);
        }
        text
    })
}

fn request() -> impl Strategy<Value = Request> {
    let path = || {
        prop::sample::select(vec![
            "src/a",
            "a",
            "src/../secret/k",
            ".",
            ".git/hooks/x",
            ".env",
            "../x",
            "secret",
            "a\nb",
        ])
    };
    let word = prop::sample::select(vec![
        "cat",
        "rm",
        "cp",
        "git",
        "curl",
        "timeout",
        "sh",
        "make",
        "src/a",
        "a",
        "secret/k",
        "-r",
        "-c",
        "'rm a'",
        "5",
        "diff",
        "http://a.example/x",
        ".git",
    ]);
    prop_oneof![
        path().prop_map(|path| Request::read("read_file", path)),
        path().prop_map(|path| Request::read("search_text", path)),
        path().prop_map(|path| Request::write("write_text", path)),
        path().prop_map(|path| Request::write("edit_text", path)),
        prop::collection::vec(word, 1..5).prop_map(|words| Request::command("shell", &words.join(" "))),
        prop::sample::select(vec!["a.example", "b.example", "169.254.169.254", "x"])
            .prop_map(|host| Request::network(host, 443)),
    ]
}

fn load(sources: &[(Layer, &str)], grants: &[Grant]) -> Policy {
    let sources: Vec<Source> = sources
        .iter()
        .enumerate()
        .map(|(index, (layer, text))| Source::new(*layer, &format!("/p{index}"), text))
        .collect();
    Policy::load(&sources, grants).unwrap()
}

fn grants(all: bool) -> Vec<Grant> {
    if all {
        vec![
            Grant::Writes(None),
            Grant::Shell("make **".to_owned()),
            Grant::Network,
        ]
    } else {
        Vec::new()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_deny_rule_never_makes_a_decision_laxer(
        text in policy_text(), denied in condition(), request in request(), granted in any::<bool>(), first in any::<bool>()
    ) {
        let before = load(&[(Layer::User, &text)], &grants(granted)).decide(&request);
        let added = if first {
            text.replacen("[[rule]]", &(rule(99, "deny", &denied) + "[[rule]]"), 1)
        } else {
            text + &rule(99, "deny", &denied)
        };
        let after = load(&[(Layer::User, &added)], &grants(granted)).decide(&request);
        prop_assert!(after.verb >= before.verb, "{} then {}", before.reason, after.reason);
    }

    #[test]
    fn an_untrusted_project_file_never_makes_a_decision_laxer_than_ask_rules_can(
        text in policy_text(), theirs in policy_text(), request in request()
    ) {
        // An ask rule speaks where nothing spoke, which turns a default deny into a question: never into an allow.
        let before = load(&[(Layer::User, &text)], &[]).decide(&request);
        let after = load(&[(Layer::User, &text), (Layer::Project, &theirs)], &[]).decide(&request);
        prop_assert!(after.verb != Verb::Allow || before.verb == Verb::Allow, "{} then {}", before.reason, after.reason);
        prop_assert!(after.resolve(None).verb >= before.resolve(None).verb);
    }

    #[test]
    fn the_order_of_rules_never_changes_the_verb(
        defaults in policy_text(), rules in prop::collection::vec((0_usize..3, condition()), 0..5), request in request()
    ) {
        let head = defaults.split("[[rule]]").next().unwrap().to_owned();
        let texts: Vec<String> = rules.iter().enumerate().map(|(id, (verb, what))| rule(id, VERBS[*verb], what)).collect();
        let forward = head.clone() + &texts.concat();
        let backward = head + &texts.iter().rev().cloned().collect::<String>();
        let verb = |text: &str| load(&[(Layer::User, text)], &[]).decide(&request).verb;
        prop_assert_eq!(verb(&forward), verb(&backward));
    }

    #[test]
    fn no_answer_lifts_a_deny_and_nothing_stays_open(text in policy_text(), request in request()) {
        let decision = load(&[(Layer::User, &text)], &[]).decide(&request);
        for answer in [None, Some(Answer::Yes), Some(Answer::No), Some(Answer::Timeout)] {
            let settled = decision.clone().resolve(answer);
            prop_assert_ne!(settled.verb, Verb::Ask);
            let lifted = decision.verb == Verb::Ask && answer == Some(Answer::Yes);
            prop_assert_eq!(settled.verb == Verb::Allow, decision.verb == Verb::Allow || lifted);
        }
    }

    #[test]
    fn any_text_is_loaded_or_refused_with_a_place(text in any::<String>(), policy in policy_text(), at in any::<prop::sample::Index>()) {
        let mut damaged: Vec<char> = policy.chars().collect();
        let index = at.index(damaged.len());
        damaged.splice(index..index, text.chars());
        for text in [text, damaged.into_iter().collect()] {
            if let Err(error) = Policy::load(&[Source::new(Layer::User, "p", &text)], &[]) {
                prop_assert!(error.line >= 1 && error.col >= 1 && error.line <= text.matches('\n').count() + 1);
            }
        }
    }

    #[test]
    fn any_request_is_decided_and_whatever_is_not_plain_words_is_denied(
        tool in prop::sample::select(vec!["shell", "shell_readonly", "x"]), script in "[ -~\t\n]{0,60}|\\PC{0,40}", text in any::<String>()
    ) {
        let all = "version = 1\n[defaults]\nread = \"allow\"\nwrite = \"allow\"\nshell = \"allow\"\nnetwork = \"allow\"\n";
        let policy = load(&[(Layer::User, all)], &[]);
        let decision = policy.decide(&Request::command(tool, &script));
        prop_assert!(plain_words(&script).is_ok() || decision.verb == Verb::Deny);
        for request in [Request::read("read_file", &text), Request::network(&text, 1)] {
            let decision = policy.decide(&request);
            prop_assert!(!decision.reason.is_empty() && !decision.rule.is_empty());
        }
    }

    #[test]
    fn plain_words_quoted_again_are_the_same_words(words in prop::collection::vec("[a-zA-Z0-9_./:=@%+,-]{1,8}|[ -#%-&(-\\[\\]-_a-~]{0,8}", 1..5)) {
        let script: String = words.iter().map(|word| format!("'{word}' ")).collect();
        let expected = if words[0].is_empty() { None } else { Some(words) };
        prop_assert_eq!(plain_words(&script).ok(), expected);
    }

    #[test]
    fn a_path_inside_stays_inside_when_read_again(text in "([a.~/$C: ]|C:/|\\./){0,20}") {
        if let Target::Inside(path) = Target::parse(&text) {
            prop_assert_eq!(Target::parse(path.as_str()), Target::Inside(path.clone()));
            prop_assert!(!path.as_str().starts_with('/') && !path.as_str().split('/').any(|name| name == ".."));
        }
    }
}
