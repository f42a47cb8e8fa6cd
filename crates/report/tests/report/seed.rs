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
    insta::assert_snapshot!(all_texts(&seed(SEED), Language::En), @r#"
    runId       run_repair_20260816_001
    traceId     d9c36ab1d61287b128634db7163cf493
    status      failed
    stopReason  validation_failed
    steps       4 of 8      15.3 s      10,144 in, 324 out      42 events
    claim       “已修复 add 函数。测试失败与 BigInt 类型断言有关，后续可以调整测试。”
    evidence    the last `npm test` failed with exit code 1 (event 34)

    Step  Tool            Status  Permission  Evidence                                     Took    Event
    1     list_files      ok      allow       README.md package.json src/math.test.ts sr…  41 ms   10
    1     read_file       ok      allow       src/math.ts return a - b                     12 ms   16
    2     write_text      ok      allow       wrote src/math.ts                            14 ms   25
    3     shell_readonly  error   allow       npm test exitCode=1                          2.45 s  34

    Direct failure   Tool             npm test exit code 1 (event 34)
    Root cause 1     Context Builder  linked test src/math.test.ts, first visible at step 2, never in
                                      context before src/math.ts was written; dropped: linking_off
                                      (R01, events 19, 25, decided)
                     change: let linked tests into the context (--context-tests on)
    Root cause 2     Validation Gate  claimed while red; the gate caught it, push-back was off (R05,
                                      events 34, 38, 39, decided)
                     change: let the gate send the agent back (--push-back 2)
    Observed         Model            gave its final answer in the step right after the red run (R27,
                                      events 34, 38, decided)
    Observed         Context Builder  src/math.test.ts was named by the red output and never read (R26,
                                      event 34, decided)

    User goal        修复 math.ts，让 npm test 通过。
    Execution path   list_files . -> read src/math.ts -> write src/math.ts -> npm test (exit 1) -> final
    Failure point    tool.execute(shell_readonly npm test) exitCode=1, event 34: add keeps number
                     return type: expected "number", received "bigint"
    Root causes      Context Builder: linked test src/math.test.ts, first visible at step 2, never in
                     context before src/math.ts was written; dropped: linking_off (R01, events 19, 25)
                     Validation Gate: claimed while red; the gate caught it, push-back was off (R05,
                     events 34, 38, 39)
    Regression plan  add an eval case that asserts: src/math.test.ts is read before src/math.ts is
                     written; npm test passes; the final status is completed
    "#);
}

#[test]
fn the_failed_run_explains_itself_in_chinese() {
    insta::assert_snapshot!(all_texts(&seed(SEED), Language::Zh), @r#"
    runId       run_repair_20260816_001
    traceId     d9c36ab1d61287b128634db7163cf493
    status      failed
    stopReason  validation_failed
    steps       4 of 8      15.3 s      10,144 in, 324 out      42 events
    claim       “已修复 add 函数。测试失败与 BigInt 类型断言有关，后续可以调整测试。”
    evidence    the last `npm test` failed with exit code 1 (event 34)

    Step  Tool            Status  Permission  Evidence                                     Took    Event
    1     list_files      ok      allow       README.md package.json src/math.test.ts sr…  41 ms   10
    1     read_file       ok      allow       src/math.ts return a - b                     12 ms   16
    2     write_text      ok      allow       wrote src/math.ts                            14 ms   25
    3     shell_readonly  error   allow       npm test exitCode=1                          2.45 s  34

    直接失败点       工具             npm test 退出码 1 (事件 34)
    根因 1           上下文构建       src/math.ts 写入前，关联测试 src/math.test.ts（首次可见于第 2
                                      步）从未进入上下文；丢弃原因：linking_off (R01, 事件 19, 25, 确定)
                     改进：允许关联测试进入上下文（--context-tests on）
    根因 2           验收门禁         测试为红时声称完成；门禁已拦截，但未开启退回 (R05, 事件 34, 38,
                                      39, 确定)
                     改进：允许门禁把 agent 退回继续（--push-back 2）
    观察             模型             测试变红后的下一步就给出了最终回答 (R27, 事件 34, 38, 确定)
    观察             上下文构建       失败输出提到 src/math.test.ts，但从未读取 (R26, 事件 34, 确定)

    用户目标  修复 math.ts，让 npm test 通过。
    执行路径  读目录 . -> 读 src/math.ts -> 写 src/math.ts -> 跑 npm test (exit 1) -> final
    失败点    tool.execute(shell_readonly npm test) exitCode=1，事件 34：add keeps number return type:
              expected "number", received "bigint"
    根因      上下文构建: src/math.ts 写入前，关联测试 src/math.test.ts（首次可见于第 2
              步）从未进入上下文；丢弃原因：linking_off (R01, 事件 19, 25)
              验收门禁: 测试为红时声称完成；门禁已拦截，但未开启退回 (R05, 事件 34, 38, 39)
    回归方案  新增 eval，断言：写 src/math.ts 之前必须读取 src/math.test.ts；npm test 通过；最终状态
              completed
    "#);
}

#[test]
fn the_fixed_run_has_no_direct_failure() {
    insta::assert_snapshot!(all_texts(&fixed(), Language::En), @r#"
    runId       run_repair_20260816_001
    traceId     d9c36ab1d61287b128634db7163cf493
    status      completed
    stopReason  completed
    steps       4 of 8      15.3 s      10,144 in, 324 out      40 events
    claim       “已修复。”
    evidence    `npm test` passed after the last change

    Step  Tool            Status  Permission  Evidence                                     Took    Event
    1     list_files      ok      allow       README.md package.json src/math.test.ts sr…  41 ms   10
    1     read_file       ok      allow       src/math.ts return a - b                     12 ms   16
    2     write_text      ok      allow       wrote src/math.ts                            14 ms   25
    3     shell_readonly  ok      allow       npm test exitCode=0                          2.45 s  33

    Direct failure   none: the run completed

    User goal        修复 math.ts，让 npm test 通过。
    Execution path   list_files . -> read src/math.ts -> write src/math.ts -> npm test -> final
    Failure point    none: the run completed
    Root causes      none
    Regression plan  none needed
    "#);
}

#[test]
fn push_backs_change_the_words_about_the_gate() {
    let view = seed(USUAL).view();
    insta::assert_snapshot!(
        attribution::render(&attribution::explain(&view, Holder::Nobody, Language::En), Width::new(72)),
        @r#"
    Direct failure   Tool             npm test exit code 1 (event 34)
    Root cause 1     Context Builder  linked test src/math.test.ts, first
                                      visible at step 2, never in context
                                      before src/math.ts was written;
                                      dropped: linking_off (R01, events 19,
                                      25, decided)
                     change: give linked tests priority in the context, or
                     raise its budget of 2800 tokens
    Root cause 2     Validation Gate  claimed while red; the gate caught it
                                      and had pushed back 0 of 2 times
                                      (R05, events 34, 38, 39, decided)
    Observed         Model            gave its final answer in the step
                                      right after the red run (R27, events
                                      34, 38, decided)
    Observed         Context Builder  src/math.test.ts was named by the red
                                      output and never read (R26, event 34,
                                      decided)
    "#
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
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap(), @r#"
    {
      "summary": {
        "runId": "run_repair_20260816_001",
        "traceId": "d9c36ab1d61287b128634db7163cf493",
        "status": "failed",
        "stopReason": "validation_failed",
        "steps": 4,
        "maxSteps": 8,
        "claim": "已修复 add 函数。测试失败与 BigInt 类型断言有关，后续可以调整测试。",
        "evidence": "the last `npm test` failed with exit code 1 (event 34)",
        "waitingFor": [],
        "usage": {
          "input": 10000,
          "output": 320,
          "reasoning": 4,
          "cacheRead": 144,
          "cacheWrite": 0,
          "total": 10468
        },
        "durationMs": 15357,
        "events": 42,
        "problems": []
      },
      "evidence": {
        "step": 3,
        "tool": "shell_readonly",
        "status": "error",
        "permission": "allow",
        "evidence": "npm test exitCode=1",
        "tookMs": 2450,
        "event": 34
      },
      "attribution": {
        "status": "failed",
        "rootCause": "determined",
        "findings": [
          {
            "rule": null,
            "layer": "tool",
            "kind": "direct_failure",
            "confidence": "decided",
            "sentence": "npm test exit code 1",
            "change": null,
            "events": [
              34
            ]
          },
          {
            "rule": "R01",
            "layer": "context",
            "kind": "root_cause",
            "confidence": "decided",
            "sentence": "linked test src/math.test.ts, first visible at step 2, never in context before src/math.ts was written; dropped: linking_off",
            "change": "let linked tests into the context (--context-tests on)",
            "events": [
              19,
              25
            ]
          },
          {
            "rule": "R05",
            "layer": "validation",
            "kind": "root_cause",
            "confidence": "decided",
            "sentence": "claimed while red; the gate caught it, push-back was off",
            "change": "let the gate send the agent back (--push-back 2)",
            "events": [
              34,
              38,
              39
            ]
          },
          {
            "rule": "R27",
            "layer": "model",
            "kind": "observed",
            "confidence": "decided",
            "sentence": "gave its final answer in the step right after the red run",
            "change": "let the gate send the agent back (--push-back 2)",
            "events": [
              34,
              38
            ]
          },
          {
            "rule": "R26",
            "layer": "context",
            "kind": "observed",
            "confidence": "decided",
            "sentence": "src/math.test.ts was named by the red output and never read",
            "change": "put files that red output names into the next context",
            "events": [
              34
            ]
          }
        ]
      },
      "postmortem": {
        "language": "zh",
        "userGoal": "修复 math.ts，让 npm test 通过。",
        "executionPath": "读目录 . -> 读 src/math.ts -> 写 src/math.ts -> 跑 npm test (exit 1) -> final",
        "failurePoint": "tool.execute(shell_readonly npm test) exitCode=1，事件 34：add keeps number return type: expected \"number\", received \"bigint\"",
        "rootCauses": [
          "上下文构建: src/math.ts 写入前，关联测试 src/math.test.ts（首次可见于第 2 步）从未进入上下文；丢弃原因：linking_off (R01, 事件 19, 25)",
          "验收门禁: 测试为红时声称完成；门禁已拦截，但未开启退回 (R05, 事件 34, 38, 39)"
        ],
        "regressionPlan": [
          "写 src/math.ts 之前必须读取 src/math.test.ts",
          "npm test 通过",
          "最终状态 completed"
        ]
      }
    }
    "#);
}
