//! The words that goals are read by, per language: data, so that a language is added without touching a rule.

/// Words that mean tests. CJK entries are matched as substrings, since those languages do not space their words.
#[rustfmt::skip]
pub(super) const TEST_WORDS: &[&str] = &[
    // en
    "test", "tests", "tested", "testing", "unittest", "unittests", "testsuite", "testcase", "testcases",
    "unit-test", "unit-tests",
    "test-suite",     // es, pt
    "prueba", "pruebas", "teste", "testes", "testear", "testar",
    // de
    "testen", "testfall", "testfälle", "testlauf", "unittests", "modultest", "modultests",
    "komponententests", "integrationstest", "integrationstests", "unit-tests", "testsuiten",
    // fr
    "essais", "tester",
];
/// Names that mean tests only together with an outcome: "follow the specs" is no test, "fix the specs" is.
#[rustfmt::skip]
pub(super) const TEST_NAMES: &[&str] = &[
    "specs", "pytest", "jest", "vitest", "mocha", "rspec", "phpunit", "junit", "ctest", "nextest", "unittest",
];
#[rustfmt::skip]
pub(super) const TEST_CJK: &[&str] = &[
    "测试", "測試", "单测", "單測", "用例", "テスト", "試験", "테스트", "시험",
];

/// Words after `test` that make it the name of a thing: a test account is no test.
#[rustfmt::skip]
pub(super) const ATTRIBUTIVE: &[&str] = &[
    "mode", "flag", "option", "account", "accounts", "server", "environment", "env", "page", "user",
    "users", "button", "key", "token", "card", "drive", "id", "strip", "kit", "bed", "bench", "plan",
    "score", "scores", "center", "centre", "tube", "pilot", "net", "testnet",
];

/// Outcome words: the goal wants a state of the tests, not a text about them.
#[rustfmt::skip]
pub(super) const OUTCOME: &[&str] = &[
    "pass", "passes", "passing", "passed", "green", "fix", "fixes", "fixed", "repair", "succeed",
    "succeeds", "work", "works", "broken", "flaky", "unbreak", "pasar", "pasen", "pase", "arregla",
    "arreglar", "corrige", "corregir", "verde", "grün", "bestehen", "repariere", "behebe", "beheben",
    "korrigiere", "durchlaufen", "passer", "passent", "réparer", "répare", "corriger", "vert", "passem",
    "passar", "conserte", "consertar", "corrija", "corrigir",
];
#[rustfmt::skip]
pub(super) const OUTCOME_CJK: &[&str] = &[
    "通过", "通過", "修复", "修復", "修好", "修正", "跑通", "变绿", "直し", "直す", "直して", "通る", "通す", "パス", "통과", "고쳐", "고치",
    "수정",
];

/// Words that mean every test there is.
#[rustfmt::skip]
pub(super) const WHOLE: &[&str] = &[
    "all", "suite", "every", "entire", "whole", "todas", "todos", "alle", "tous", "toutes",
];
#[rustfmt::skip]
pub(super) const WHOLE_CJK: &[&str] = &[
    "所有", "全部", "全て", "すべて", "모든",
];

/// Words that turn "run the tests" into "leave them".
#[rustfmt::skip]
pub(super) const NEGATION: &[&str] = &[
    "not", "don't", "dont", "don’t", "never", "without", "no", "skip", "avoid", "nicht", "keine", "ohne",
    "no", "sin", "sans", "pas", "não", "nao", "sem", "nunca", "jamais",
];
#[rustfmt::skip]
pub(super) const RUN: &[&str] = &[
    "run", "running", "execute", "executing", "start", "launch", "need", "needed", "necessary", "require",
    "bother", "führe", "aus", "starte", "ausführen", "laufen", "ejecutes", "ejecutar", "corras", "lance", "lancer", "exécute", "n'exécute", "n'exécutez",
    "exécuter", "rode", "rodar", "execute", "executar", "for", "any", "with",
];
#[rustfmt::skip]
pub(super) const WAIVED_CJK: &[&str] = &[
    "不要运行测试", "不要跑测试", "别跑测试", "别运行测试", "不用跑测试", "不用测试", "无需测试", "不需要测试", "不必测试", "不運行測試", "テストは実行しない",
    "テストを実行しない", "テストは不要", "テストしない", "테스트를 실행하지", "테스트는 실행하지", "테스트 실행하지", "테스트하지",
];

#[rustfmt::skip]
pub(super) const FAILING: &[&str] = &[
    "failing", "red", "fails", "fail", "broken", "falla", "falle", "fallida", "fehlschlagenden",
    "fehlschlagender", "fehlschlägt", "échoue", "échouant", "falha", "falhando",
];
#[rustfmt::skip]
pub(super) const WRITE: &[&str] = &[
    "write", "add", "create", "produce", "provide", "commit", "escribe", "añade", "agrega", "crea",
    "schreibe", "schreib", "erstelle", "ergänze", "écris", "ajoute", "crée", "escreva", "adicione", "crie",
];
#[rustfmt::skip]
pub(super) const DIAGNOSE: &[&str] = &[
    "explain", "why", "diagnose", "investigate", "analyze", "analyse", "understand", "explica",
    "explicar", "porqué", "erkläre", "warum", "explique", "expliquer", "pourquoi", "explica", "porque",
];
#[rustfmt::skip]
pub(super) const DIAGNOSE_CJK: &[&str] = &[
    "为什么", "為什麼", "解释", "解釋", "说明", "分析", "なぜ", "原因", "説明", "왜", "설명",
];
#[rustfmt::skip]
pub(super) const RED_TEST_CJK: &[&str] = &[
    "写一个失败的测试", "写个失败的测试", "添加一个失败的测试", "编写一个失败的测试", "新增一个失败的测试", "失敗するテストを書", "失敗するテストを追加",
    "실패하는 테스트를 작성", "실패하는 테스트를 추가",
];

/// Goals about texts.
#[rustfmt::skip]
pub(super) const DOCS: &[&str] = &[
    "readme", "readme.md", "docs", "documentation", "document", "changelog", "docstring", "docstrings",
    "guide", "tutorial", "contributing.md", "contributing", "wiki", "documenta",
    "documentación", "dokumentation", "dokumentiere", "documentação",
];
#[rustfmt::skip]
pub(super) const DOCS_CJK: &[&str] = &[
    "文档", "文檔", "说明书", "注释", "ドキュメント", "문서",
];
/// Goals that only look.
#[rustfmt::skip]
pub(super) const LOOK: &[&str] = &[
    "list", "count", "show", "summarize", "summarise", "which", "what", "where", "how", "find",
    "print",
];

/// Programs that are also English words: followed by prose they are no command.
#[rustfmt::skip]
pub(super) const PROSE: &[&str] = &[
    "the", "a", "an", "it", "this", "that", "my", "our", "your", "these", "those", "whether", "if", "all",
    "every", "each", "me", "you", "us", "in", "on", "of", "coverage", "cases", "files", "suite", "suites",
    "runner",
];

/// Verbs that change code: a goal with one of them is no text and no question.
#[rustfmt::skip]
pub(super) const CODE_VERBS: &[&str] = &[
    "refactor", "implement", "rename", "remove", "migrate", "optimize", "optimise", "rewrite", "port", "keep", "ensure",
    "delete", "replace", "convert", "upgrade", "bump", "extract", "move", "introduce", "handle", "support", "change",
    "update", "add", "build", "make", "fix", "write", "create", "improve", "simplify", "clean",
];
/// Those of them that a text is made with.
#[rustfmt::skip]
pub(super) const TEXT_VERBS: &[&str] = &["update", "add", "write", "create", "improve", "fix", "clean"];

/// Kinds of testing that people do: "A/B testing", "load testing".
#[rustfmt::skip]
pub(super) const OTHER_TESTING: &[&str] = &["a/b", "load", "user", "usability", "penetration", "beta", "multivariate", "split"];

/// Words before a bare program name that speak of the tool: "migrate from mocha".
#[rustfmt::skip]
pub(super) const BARE_BEFORE: &[&str] = &[
    "from", "to", "with", "using", "use", "of", "upgrade", "install", "add", "replace", "remove", "drop", "by", "via", "import",
];
/// Words after a bare program name that speak of its result: "pytest must be green".
#[rustfmt::skip]
pub(super) const BARE_AFTER: &[&str] = &[
    "", "suite", "suites", "pass", "passes", "passing", "green", "must", "should", "succeed", "succeeds", "is", "to", "again", "run", "runs",
    "tests", "fails", "failing", "red", "and", "for", "in", "on", "clean",
];
