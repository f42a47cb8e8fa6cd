//! Which files were read and changed: rows that pass, fail and cannot be judged.

use super::*;

#[test]
fn a_file_is_read_when_its_content_reached_the_model() {
    let expected = json!({"mustReadFiles": ["src/*.test.ts"]});
    let row = |happens: &dyn Fn(&mut Log), status, message| {
        check(
            &run_of(happens),
            &expected,
            &[("mustReadFiles:src/*.test.ts", status, message)],
        );
    };
    let never = "src/*.test.ts never read";
    row(&|_| {}, Fail, never);
    row(
        &|log| done(log.read("src/a.test.ts")),
        Pass,
        "read by read_file (event 12)",
    );
    row(
        &|log| done(log.read("/home/u/project/src/a.test.ts")),
        Pass,
        "read by read_file (event 12)",
    );
    row(&|log| done(log.read("/elsewhere/src/a.test.ts")), Fail, never);
    row(&|log| done(log.read("src/b/a.test.ts")), Fail, never);
    let failed = |log: &mut Log| {
        let args = json!({"path": "src/a.test.ts"});
        log.call("read_file", args, Class::Read, None, ended(Outcome::Failed, None));
    };
    row(&failed, Fail, never);
    row(
        &|log| done(log.step(&["src/a.test.ts"])),
        Pass,
        "read by context.build (event 10)",
    );
    row(
        &|log| done(log.step(&["src/a.test.ts@slice"])),
        Pass,
        "read by context.build (event 10)",
    );
    row(&|log| done(log.step(&["src/a.test.ts@outline"])), Fail, never);
    row(&|log| done(log.step(&["src/a.test.ts@path"])), Fail, never);
    row(
        &|log| done(log.shell("cat src/a.test.ts", 0)),
        Pass,
        "read by shell_readonly (event 12)",
    );
    row(
        &|log| done(log.shell("cd src && head -n 5 a.test.ts", 0)),
        Pass,
        "read by shell_readonly (event 12)",
    );
    row(&|log| done(log.shell("cat src/a.test.ts", 1)), Fail, never);
    row(
        &|log| done(log.shell("cat src/a.test.ts | wc -l", 0)),
        Fail,
        never,
    );
    row(&|log| done(log.shell("ls src/a.test.ts", 0)), Fail, never);
    let silent = |log: &mut Log| {
        let mut finished = exited(0);
        finished.output_chars = 0;
        log.call(
            "shell",
            json!({}),
            Class::Shell,
            Some("cat src/a.test.ts"),
            finished,
        );
    };
    row(&silent, Fail, never);
}

#[test]
fn what_was_read_after_the_last_request_never_reached_the_model() {
    let mut log = Log::new();
    log.step(&[]).asks(1).read("a").finish(StopReason::MaxSteps, None);
    let late = "a was read after the last request to the model (event 12)";
    check(
        &log,
        &json!({"mustReadFiles": ["a"]}),
        &[("mustReadFiles:a", Fail, late)],
    );
}

#[test]
fn a_context_list_that_was_cut_proves_nothing_absent() {
    let mut log = run_of(|_| {});
    for event in &mut log.events {
        if let Fact::ContextBuildFinished(report) = &mut event.fact {
            report.included_total = 70;
        }
    }
    let expected = json!({"mustReadFiles": ["a", "README.md"], "contextIncludes": [{"file": "a"}]});
    let cut = "the log lists 1 of 70 files of a context, a not among them (event 6)";
    check(
        &log,
        &expected,
        &[
            ("mustReadFiles:a", Error, cut),
            ("mustReadFiles:README.md", Pass, "read by context.build (event 6)"),
            ("contextIncludes:a", Error, cut),
        ],
    );
}

#[test]
fn what_counts_as_reading_can_be_narrowed() {
    let log = run_of(|log| {
        log.read("a");
    });
    let row = |sources: Value, status, message| {
        let expected = json!({"mustReadFiles": ["a"], "x-readSources": sources});
        check(&log, &expected, &[("mustReadFiles:a", status, message)]);
    };
    row(json!(["tool"]), Pass, "read by read_file (event 12)");
    row(json!(["context", "shell"]), Fail, "a never read");
    let bad = "`x-readSources` is no list of `tool`, `context` and `shell`";
    row(json!(["tol"]), Error, bad);
    row(json!("tool"), Error, bad);
}

#[test]
fn a_file_is_read_before_another_is_written() {
    let expected = json!({"mustReadBeforeWrite": [{"read": "t", "write": "s"}]});
    let row = |log: &Log, status, message| {
        check(
            log,
            &expected,
            &[("mustReadBeforeWrite:t before s", status, message)],
        );
    };
    let write = |log: &mut Log| done(log.write("s", Some("1"), Some("2")));
    let first = |log: &mut Log| {
        log.read("t").step(&[]).asks(1);
        write(log);
    };
    row(&run_of(first), Pass, "read (event 12), then changed (event 18)");
    // Both in one reply: when the model asked for the change it had not seen the file.
    let at_once = |log: &mut Log| {
        log.read("t");
        write(log);
    };
    row(
        &run_of(at_once),
        Fail,
        "s changed before the model had read t (event 14)",
    );
    row(
        &run_of(write),
        Fail,
        "s changed before the model had read t (event 9)",
    );
    row(&run_of(|log| done(log.read("t"))), Skip, "s never changed");
}

#[test]
fn a_written_file_differs_at_the_end() {
    let row = |happens: &dyn Fn(&mut Log), status, message| {
        check(
            &run_of(happens),
            &json!({"mustWriteFiles": ["s"]}),
            &[("mustWriteFiles:s", status, message)],
        );
    };
    row(
        &|log| done(log.write("s", Some("1"), Some("2"))),
        Pass,
        "s differs",
    );
    row(&|log| done(log.write("s", None, Some("2"))), Pass, "s differs");
    row(&|_| {}, Fail, "s never written");
    let back = |log: &mut Log| {
        done(
            log.write("s", Some("1"), Some("2"))
                .write("s", Some("2"), Some("1")),
        );
    };
    row(&back, Fail, "s is as it was");
    row(
        &|log| done(log.write("s", Some("1"), None)),
        Fail,
        "s was deleted",
    );
    // The seed's own side effects have no digests.
    let bare = |log: &mut Log| {
        let mut finished = ended(Outcome::Ok, None);
        finished.side_effects = vec![tool::SideEffect {
            effect: tool::SideEffectType::WriteFile,
            relative_path: "s".to_owned(),
            before: None,
            after: None,
        }];
        log.call("write_text", json!({}), Class::Write, None, finished);
    };
    row(&bare, Error, "s changed, its content is not recorded");
    let by_shell = |log: &mut Log| done(log.shell("x", 0).observe(None, Phase::Notice, &["s"]));
    row(&by_shell, Error, "s changed, its content is not recorded");
}

#[test]
fn digests_of_the_trial_decide_where_they_were_taken() {
    let log = run_of(|log| {
        log.shell("make", 0);
    });
    let files = |rows: &[(&str, &str)]| -> BTreeMap<String, Digest> {
        rows.iter()
            .map(|(path, text)| ((*path).to_owned(), digest(text)))
            .collect()
    };
    let start = files(&[("a", "1"), ("b", "1")]);
    let end = files(&[("a", "2"), ("b", "1"), ("c", "1")]);
    let recorded = Recorded {
        events: &log.events,
        start_files: Some(&start),
        final_files: Some(&end),
    };
    let expected =
        json!({"mustWriteFiles": ["a", "b", "c"], "onlyWriteFiles": ["a"], "forbiddenWriteFiles": ["b"]});
    let results = judge(&case(&expected), &recorded);
    let got: Vec<_> = results
        .iter()
        .map(|result| (result.id.as_str(), result.status))
        .collect();
    assert_eq!(
        got,
        [
            ("mustWriteFiles:a", Pass),
            ("mustWriteFiles:b", Fail),
            ("mustWriteFiles:c", Pass),
            ("onlyWriteFiles", Fail),
            ("forbiddenWriteFiles:b", Pass),
        ]
    );
}

#[test]
fn only_the_named_files_change() {
    let row =
        |happens: &dyn Fn(&mut Log), only: (AssertionStatus, &str), forbidden: (AssertionStatus, &str)| {
            check(
                &run_of(happens),
                &json!({"onlyWriteFiles": ["src/**"], "forbiddenWriteFiles": ["*.json"]}),
                &[
                    ("onlyWriteFiles", only.0, only.1),
                    ("forbiddenWriteFiles:*.json", forbidden.0, forbidden.1),
                ],
            );
        };
    let good = (Pass, "not changed");
    row(&|log| done(log.write("src/a", None, Some("1"))), good, good);
    row(
        &|log| done(log.write("package.json", Some("1"), Some("2"))),
        (Fail, "package.json changed (event 12)"),
        (Fail, "package.json changed (event 12)"),
    );
    let back = |log: &mut Log| {
        log.write("package.json", Some("1"), Some("2"))
            .write("package.json", Some("2"), Some("1"));
    };
    row(
        &back,
        (Fail, "package.json changed (event 12)"),
        (Fail, "package.json changed (event 12)"),
    );
    row(
        &|log| done(log.shell("make", 0).observe(None, Phase::Before, &["out"])),
        (Fail, "out changed (event 14)"),
        good,
    );
    // A command ran and nobody looked at the workspace afterwards.
    let unseen = |log: &mut Log| {
        let id = log.ask("shell", json!({}), Class::Shell, Verb::Allow);
        log.begin(id, "shell", Class::Shell, Some("make"));
        log.end(id, exited(0));
    };
    let why = "the workspace was not observed before and after shell (event 9)";
    row(&unseen, (Error, why), (Error, why));
    let cut = |log: &mut Log| {
        log.shell("make", 0).observe(None, Phase::Notice, &["src/a"]);
        if let Some(Fact::Observation(seen)) = log.events.last_mut().map(|event| &mut event.fact) {
            seen.workspace.as_mut().unwrap().changed_total = 300;
        }
    };
    let why = "event 14 lists 1 of 300 changed files";
    row(&cut, (Error, why), (Error, why));
}
