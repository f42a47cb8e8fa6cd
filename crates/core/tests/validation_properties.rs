//! What holds of the recogniser, the reader and the gate for all input: no panic, one answer, bounded size, no green after a change.

use proptest::prelude::*;
use tracegate_core::{
    goal::Goal,
    ids::Seq,
    validation::{Ended, Evidence, Outcome, Policy, TestCommand, TestRun, judge, read_result, recognise},
};

/// Text that looks like shell, summaries and goals, so that the readers are exercised and not only refused.
fn shell() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "npm", "test", "cargo", "pytest", "|", "||", "&&", ";", "&", "$(", ")", "(", "`", "'", "\"", "\\",
        "\n", "if", "then", "fi", "do", "done", "while", "{", "}", "!", "<<EOF", "EOF", ">", "2>&1", "bash",
        "-c", "--", "-k", "cd", "..", "/", "X=1", "exit", "$?", "set", "-e", "for", "case", "in", "esac",
        "timeout", "find", "-exec", "eval", "t()", "[[", "]]", "go", "./...", "é", "测试", "-",
    ]);
    prop::collection::vec(word, 0..24).prop_map(|words| words.join(" "))
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        shell(),
        "[a-z0-9 :.,#=()\\[\\]/\u{1b}%\n]{0,200}"
    ]
}

fn run(command: TestCommand, output: &str, code: i32, started: u64) -> TestRun {
    let ended = Ended::Exited(code);
    let reading = read_result(&command, &ended, output);
    TestRun {
        started: Seq(started),
        finished: Seq(started + 1),
        command,
        script: "npm test".to_owned(),
        ended,
        reading,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_without_panic_and_always_the_same(script in text(), output in text(), goal in text(), code in -1_i32..200) {
        let command = recognise(&script);
        prop_assert_eq!(&command, &recognise(&script));
        let read = Goal::read(&goal);
        prop_assert_eq!(&read, &Goal::read(&goal));
        let command = command.or_else(|| recognise("npm test")).unwrap();
        let reading = read_result(&command, &Ended::Exited(code), &output);
        prop_assert_eq!(&reading, &read_result(&command, &Ended::Exited(code), &output));
        prop_assert!(reading.named_files.len() <= 20);
        prop_assert!(reading.first_failure.as_ref().is_none_or(|line| line.chars().count() <= 200));
        let mut evidence = Evidence::new(&read);
        evidence.test_run(run(command, &output, code, 1));
        let text = serde_json::to_string(&evidence).unwrap();
        prop_assert_eq!(&evidence, &serde_json::from_str::<Evidence>(&text).unwrap());
        for policy in [Policy::Off, Policy::Goal, Policy::Observed, Policy::Strict] {
            let verdict = judge(&read, policy, &evidence);
            prop_assert_eq!(&verdict, &judge(&read, policy, &evidence));
            let text = serde_json::to_string(&verdict).unwrap();
            prop_assert_eq!(&verdict, &serde_json::from_str(&text).unwrap());
        }
    }

    #[test]
    fn a_change_after_the_last_run_never_leaves_it_passed(output in text(), change in 2_u64..9) {
        let goal = Goal::read("make `npm test` pass");
        let mut evidence = Evidence::new(&goal);
        evidence.test_run(run(recognise("npm test").unwrap(), &output, 0, 1));
        evidence.changed(Seq(change), &["src/a.ts".to_owned()]);
        prop_assert!(judge(&goal, Policy::Goal, &evidence).outcome != Outcome::Passed);
    }

    #[test]
    fn evidence_stays_small_however_much_happens(count in 1_u64..200) {
        let goal = Goal::read("make the tests pass");
        let mut evidence = Evidence::new(&goal);
        for step in 0..count {
            evidence.test_started(Seq(3 * step), "npm test");
            let command = recognise(&format!("pytest tests/test_{step}.py")).unwrap();
            evidence.test_run(run(command, "1 passed in 0.1s", 0, 3 * step + 1));
            evidence.changed(Seq(3 * step + 2), &["src/a.py".to_owned()]);
        }
        prop_assert!(serde_json::to_string(&evidence).unwrap().len() < 64 * 1024);
    }
}
