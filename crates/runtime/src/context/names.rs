//! What a path says by its name alone: ecosystem, kind of file, words of its stem and of its folders.
//!
//! Pure. The linker compares these words, the inventory keeps the kind. All tables of naming conventions live here.

/// Languages whose tests are written in the same language; a test never links across two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ecosystem {
    /// JavaScript, TypeScript and what compiles to them.
    Js,
    /// Python.
    Python,
    /// Rust.
    Rust,
    /// Go.
    Go,
    /// Java, Kotlin, Scala, Groovy: they share build layouts and test each other.
    Jvm,
    /// C#, F#, Visual Basic.
    DotNet,
    /// Ruby.
    Ruby,
    /// PHP.
    Php,
    /// C, C++ and Objective-C.
    C,
    /// Swift.
    Swift,
    /// Elixir.
    Elixir,
    /// Dart.
    Dart,
}

impl Ecosystem {
    /// Returns the ecosystem of a file name extension without its dot, in any case.
    #[must_use]
    pub fn of_extension(extension: &str) -> Option<Self> {
        let extension = extension.to_ascii_lowercase();
        Some(match extension.as_str() {
            "js" | "jsx" | "ts" | "tsx" | "mjs" | "cjs" | "mts" | "cts" | "vue" | "svelte" => Self::Js,
            "py" | "pyi" => Self::Python,
            "rs" => Self::Rust,
            "go" => Self::Go,
            "java" | "kt" | "kts" | "scala" | "groovy" => Self::Jvm,
            "cs" | "fs" | "vb" => Self::DotNet,
            "rb" => Self::Ruby,
            "php" => Self::Php,
            "c" | "cc" | "cpp" | "cxx" | "h" | "hh" | "hpp" | "hxx" | "m" | "mm" => Self::C,
            "swift" => Self::Swift,
            "ex" | "exs" => Self::Elixir,
            "dart" => Self::Dart,
            _ => return None,
        })
    }

    /// Words that end the stem of a test in this ecosystem.
    fn test_suffixes(self) -> &'static [&'static str] {
        match self {
            Self::Js => &["test", "tests", "spec", "specs"],
            Self::Python | Self::Rust => &["test", "tests"],
            Self::Go | Self::Elixir | Self::Dart => &["test"],
            Self::Jvm => &["test", "tests", "it", "spec", "specs", "suite", "testcase"],
            Self::DotNet => &["test", "tests", "spec", "specs", "testcase"],
            Self::Ruby => &["spec", "test"],
            Self::Php => &["test", "spec", "cest", "testcase"],
            Self::C => &["test", "tests", "unittest", "unittests"],
            Self::Swift => &["test", "tests", "spec", "specs", "testcase"],
        }
    }

    /// Words that begin the stem of a test in this ecosystem.
    fn test_prefixes(self) -> &'static [&'static str] {
        match self {
            Self::Python | Self::Rust | Self::C => &["test"],
            Self::Ruby => &["test", "spec"],
            Self::Jvm => &["test"],
            Self::Js | Self::Go | Self::DotNet | Self::Php | Self::Swift | Self::Elixir | Self::Dart => &[],
        }
    }

    /// Whether lying in a folder of tests is enough to be a test: so where runners collect by folder.
    ///
    /// Elsewhere runners collect by name, and files without the name are helpers.
    fn folder_makes_test(self) -> bool {
        match self {
            Self::Js | Self::Rust | Self::C => true,
            Self::Python
            | Self::Go
            | Self::Jvm
            | Self::DotNet
            | Self::Ruby
            | Self::Php
            | Self::Swift
            | Self::Elixir
            | Self::Dart => false,
        }
    }

    /// Stems that stand for their folder.
    fn index_stems(self) -> &'static [&'static str] {
        match self {
            Self::Js => &["index", "mod", "main"],
            Self::Python => &["__init__", "__main__"],
            Self::Rust => &["mod", "lib", "main"],
            Self::Go | Self::Jvm | Self::DotNet | Self::Ruby | Self::Php | Self::C => &[],
            Self::Swift | Self::Elixir | Self::Dart => &[],
        }
    }
}

/// What kind of file a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// Code that is not a test.
    Source,
    /// A test.
    Test,
    /// Data or a recording that tests use.
    Fixture,
    /// It says how the project is built and tested.
    Manifest,
    /// It says what the project or a folder of it is.
    Readme,
    /// Other prose.
    Doc,
    /// A program writes it.
    Generated,
    /// Anything else.
    Other,
}

const MANIFESTS: &[&str] = &[
    "package.json",
    "deno.json",
    "cargo.toml",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "tox.ini",
    "pytest.ini",
    "requirements.txt",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "build.sbt",
    "gemfile",
    "rakefile",
    "composer.json",
    "phpunit.xml",
    "phpunit.xml.dist",
    "cmakelists.txt",
    "meson.build",
    "makefile",
    "justfile",
    "package.swift",
    "mix.exs",
    "pubspec.yaml",
];

const MANIFEST_EXTENSIONS: &[&str] = &["csproj", "fsproj", "vbproj", "sln", "gemspec"];

const GENERATED: &[&str] = &[
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "cargo.lock",
    "poetry.lock",
    "uv.lock",
    "pipfile.lock",
    "go.sum",
    "gemfile.lock",
    "composer.lock",
    "package.resolved",
    "mix.lock",
    "pubspec.lock",
];

const GENERATED_ENDINGS: &[&str] = &[
    ".min.js",
    ".min.css",
    ".map",
    ".snap",
    ".pb.go",
    "_pb2.py",
    ".g.dart",
    ".freezed.dart",
    ".designer.cs",
];

/// Folders whose files serve tests and are none, compared in lower case.
const FIXTURE_FOLDERS: &[&str] = &[
    "fixtures",
    "fixture",
    "__fixtures__",
    "testdata",
    "test-data",
    "test_data",
    "snapshots",
    "__snapshots__",
    "mocks",
    "__mocks__",
    "vendor",
    "third_party",
];

/// Folders that hold tests, compared in lower case.
const TEST_FOLDERS: &[&str] = &[
    "test",
    "tests",
    "__tests__",
    "spec",
    "specs",
    "e2e",
    "androidtest",
    "unittests",
    "testing",
];

/// Words of folders that say nothing about what a file is for: they are dropped before two places are compared.
const LAYOUT_WORDS: &[&str] = &[
    "src",
    "source",
    "sources",
    "lib",
    "libs",
    "test",
    "tests",
    "spec",
    "specs",
    "main",
    "java",
    "kotlin",
    "scala",
    "groovy",
    "unit",
    "integration",
    "e2e",
    "functional",
    "android",
    "packages",
    "crates",
    "include",
    "app",
    "it",
];

/// Words between the subject and the affix of a test's name: they say what kind of test it is.
const QUALIFIERS: &[&str] = &[
    "unit",
    "integration",
    "e2e",
    "functional",
    "internal",
    "external",
    "acceptance",
];

/// What the linker compares of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name<'a> {
    pub(crate) path: &'a str,
    pub(crate) ecosystem: Ecosystem,
    pub(crate) kind: FileKind,
    /// The folder, without a trailing `/`; empty at the root.
    pub(crate) folder: &'a str,
    /// Words of the stem without test affixes; empty if the stem is nothing but affixes (`tests.rs`).
    pub(crate) stem: Vec<String>,
    /// The stem stands for its folder (`index`, `mod`); its words are still in `stem`.
    pub(crate) index: bool,
    /// Distinct words of the folders without those of layout, sorted.
    pub(crate) place: Vec<String>,
    /// Words of the last folder that is not one of layout: what an index file is called.
    pub(crate) folder_stem: Vec<String>,
}

impl<'a> Name<'a> {
    /// Reads a path; `None` if its language is none of ours.
    pub(crate) fn of(path: &'a str) -> Option<Self> {
        let (folder, file) = split_folder(path);
        let (stem, extension) = file.rsplit_once('.')?;
        let ecosystem = Ecosystem::of_extension(extension)?;
        let (words, affixes) = strip_affixes(ecosystem, words(stem));
        let kind = kind_of_code(path, folder, affixes);
        let bare = words.join("_");
        let index = ecosystem
            .index_stems()
            .iter()
            .any(|index| bare == index.trim_matches('_'));
        let mut place: Vec<String> = folder
            .split('/')
            .flat_map(self::words)
            .filter(|word| !LAYOUT_WORDS.contains(&word.as_str()))
            .collect();
        place.sort_unstable();
        place.dedup();
        let folder_stem = folder
            .rsplit('/')
            .filter(|part| !part.is_empty())
            .map(|part| strip_affixes(ecosystem, self::words(part)).0)
            .find(|words| !words.iter().all(|word| LAYOUT_WORDS.contains(&word.as_str())))
            .unwrap_or_default();
        let singular = |words: Vec<String>| words.into_iter().map(singular).collect::<Vec<_>>();
        let (words, folder_stem) = (singular(words), singular(folder_stem));
        Some(Self {
            path,
            ecosystem,
            kind,
            folder,
            stem: words,
            index,
            place,
            folder_stem,
        })
    }
}

impl FileKind {
    /// Returns what `path` names, by its name alone.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let (folder, file) = split_folder(path);
        let lower = file.to_ascii_lowercase();
        let extension = lower.rsplit_once('.').map_or("", |(_, extension)| extension);
        if GENERATED.contains(&lower.as_str()) || GENERATED_ENDINGS.iter().any(|end| lower.ends_with(end)) {
            return Self::Generated;
        }
        if has_folder(folder, FIXTURE_FOLDERS) {
            return Self::Fixture;
        }
        if MANIFESTS.contains(&lower.as_str()) || MANIFEST_EXTENSIONS.contains(&extension) {
            return Self::Manifest;
        }
        if lower == "readme" || lower.starts_with("readme.") {
            return Self::Readme;
        }
        match Name::of(path) {
            Some(name) => name.kind,
            None if matches!(extension, "md" | "rst" | "adoc" | "txt") => Self::Doc,
            None => Self::Other,
        }
    }
}

/// How a stem is marked as a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Affixes {
    /// It has the affix of a test.
    Test,
    /// It says that it helps tests (`conftest`, `setup`, `helpers`).
    Helper,
    /// Neither.
    None,
}

fn kind_of_code(path: &str, folder: &str, affixes: Affixes) -> FileKind {
    if has_folder(folder, FIXTURE_FOLDERS) {
        return FileKind::Fixture;
    }
    match affixes {
        Affixes::Test => FileKind::Test,
        Affixes::Helper if has_folder(folder, TEST_FOLDERS) => FileKind::Fixture,
        Affixes::Helper => FileKind::Source,
        Affixes::None if has_folder(folder, TEST_FOLDERS) && folder_makes_test(path) => FileKind::Test,
        Affixes::None => FileKind::Source,
    }
}

fn folder_makes_test(path: &str) -> bool {
    path.rsplit_once('.')
        .and_then(|(_, extension)| Ecosystem::of_extension(extension))
        .is_some_and(Ecosystem::folder_makes_test)
}

fn has_folder(folder: &str, names: &[&str]) -> bool {
    folder
        .split('/')
        .any(|part| names.iter().any(|name| part.eq_ignore_ascii_case(name)))
}

/// Splits a path into its folder (empty at the root) and its file name.
pub(crate) fn split_folder(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Takes the affixes of a test off the words of a stem and says what they were.
fn strip_affixes(ecosystem: Ecosystem, mut words: Vec<String>) -> (Vec<String>, Affixes) {
    let helper = [
        "conftest", "setup", "helper", "helpers", "fixture", "fixtures", "util", "utils", "support",
    ];
    let found = |list: &[&str], word: Option<&String>| word.is_some_and(|word| list.contains(&word.as_str()));
    let mut affixes = Affixes::None;
    // `foo.test-d.ts` tests types; `FooTestCase` is two words.
    let ends_in_pair = |last: &str| words.len() >= 2 && words.last().is_some_and(|word| word == last);
    if (ecosystem == Ecosystem::Js && ends_in_pair("d") || ends_in_pair("case"))
        && found(&["test"], words.get(words.len().saturating_sub(2)))
    {
        words.pop();
    }
    if found(ecosystem.test_suffixes(), words.last()) {
        words.pop();
        affixes = Affixes::Test;
    } else if found(ecosystem.test_prefixes(), words.first()) && !found(&helper, words.last()) {
        words.remove(0);
        affixes = Affixes::Test;
    } else if found(&helper, words.last()) {
        affixes = Affixes::Helper;
    }
    if affixes == Affixes::Test && words.len() > 1 {
        if found(QUALIFIERS, words.last()) {
            words.pop();
        } else if let Some(kept) = words.len().checked_sub(3)
            && kept > 0
            && words.iter().skip(kept).eq(["end", "to", "end"])
        {
            words.truncate(kept);
        }
    }
    (words, affixes)
}

/// Splits a name into lower-case words at everything but letters and digits, and where camel case begins a new one.
///
/// `HTTPServer2` is `http`, `server2`: an abbreviation stays whole, digits stay with their word.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut chars = name.chars().peekable();
    let mut before: Option<char> = None;
    while let Some(c) = chars.next() {
        if !c.is_alphanumeric() {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            before = None;
            continue;
        }
        let next_is_lower = chars.peek().is_some_and(|next| next.is_lowercase());
        let begins = match before {
            Some(before) if c.is_uppercase() => !before.is_uppercase() || next_is_lower,
            Some(_) | None => false,
        };
        if begins && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        word.extend(c.to_lowercase());
        before = Some(c);
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Takes the plural off a word of at least four letters: `Flag.swift` is tested by `FlagsTests.swift`.
fn singular(mut word: String) -> String {
    if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_splits_into_its_words() {
        for (name, wanted) in [
            ("JsonValueFormatter", "json value formatter"),
            ("HTTPServer2", "http server2"),
            ("_termui_impl", "termui impl"),
            ("res.send", "res send"),
            ("trailing-slash", "trailing slash"),
            ("FooIT", "foo it"),
            ("", ""),
            ("测试", "测试"),
        ] {
            assert_eq!(words(name).join(" "), wanted, "{name}");
        }
    }

    #[test]
    fn a_path_says_what_kind_of_file_it_names() {
        use FileKind::{Doc, Fixture, Generated, Manifest, Other, Readme, Source, Test};
        for (path, wanted) in [
            ("src/math.ts", Source),
            ("src/math.test.ts", Test),
            ("src/types.test-d.ts", Test),
            ("src/__tests__/math.ts", Test),
            ("test/setup.ts", Fixture),
            ("e2e/login.spec.ts", Test),
            ("src/contest.ts", Source),
            ("src/latest.py", Source),
            ("tests/test_core.py", Test),
            ("tests/conftest.py", Fixture),
            ("tests/models.py", Source),
            ("src/foo/tests.rs", Test),
            ("tests/regression.rs", Test),
            ("benches/buf.rs", Source),
            ("auth_test.go", Test),
            ("testing.go", Source),
            ("src/test/java/a/FooTest.java", Test),
            ("src/test/java/a/FooIT.java", Test),
            ("src/test/java/a/MoreAsserts.java", Source),
            ("src/main/java/a/Profit.java", Source),
            ("test/Serilog.Tests/LogTests.cs", Test),
            ("spec/foo_spec.rb", Test),
            ("test/spec_foo.rb", Test),
            ("spec/spec_helper.rb", Fixture),
            ("spec/fixtures/foo_spec.rb", Fixture),
            ("tests/FooTest.php", Test),
            ("db/log_test.cc", Test),
            ("tests/log.cpp", Test),
            ("Tests/FooTests/BarTests.swift", Test),
            ("test/foo_test.exs", Test),
            ("test/foo_test.dart", Test),
            ("src/test/scala/FooSuite.scala", Test),
            ("pkg/testdata/x.go", Fixture),
            ("package.json", Manifest),
            ("a/Cargo.toml", Manifest),
            ("src/App.csproj", Manifest),
            ("package-lock.json", Generated),
            ("a/b.min.js", Generated),
            ("README.md", Readme),
            ("readme", Readme),
            ("docs/advanced.md", Doc),
            (".gitignore", Other),
            ("", Other),
        ] {
            assert_eq!(FileKind::of(path), wanted, "{path}");
        }
    }
}
