//! Policy files and grants become rules, or an error with a line.

use crate::{
    decision::{Class, Verb},
    error::{ErrorCode, PolicyError, place},
    floor::FloorRule,
    host::Host,
    path::Target,
    pattern::{CommandPattern, NetPattern, PathPattern, PatternError, ProgramName},
    policy::{OnDeny, Policy, Sandbox},
    request::Tool,
    rule::{Condition, Patterns, Rule, Standing},
    suggest::did_you_mean,
    toml_file::{At, File, Section},
    words::plain_words,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where rules come from, from the strongest owner to the most fleeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The organisation's file.
    Org,
    /// The user's file, or one typed as `--policy FILE`.
    User,
    /// A file found in the workspace; it may only tighten until it is trusted.
    Project,
    /// Answers remembered in this run.
    Session,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A policy file that somebody has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Whose file it is.
    pub layer: Layer,
    /// The file's name for messages; if it is a path inside the workspace, the floor protects it.
    pub name: String,
    /// The file's content.
    pub text: String,
    /// Only for [`Layer::Project`]: has the user trusted this content? Then its allow rules count.
    pub trusted: bool,
}

impl Source {
    /// A file that is not a trusted project file.
    #[must_use]
    pub fn new(layer: Layer, name: &str, text: &str) -> Self {
        Self {
            layer,
            name: name.to_owned(),
            text: text.to_owned(),
            trusted: false,
        }
    }

    /// As [`Source::new`], from bytes.
    ///
    /// # Errors
    /// Bytes that are not UTF-8 are `syntax`, with their place.
    pub fn from_bytes(layer: Layer, name: &str, bytes: &[u8]) -> Result<Self, PolicyError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(layer, name, text)),
            Err(error) => {
                let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
                let (line, col) = place(&String::from_utf8_lossy(good), usize::MAX);
                let message = "the file is not UTF-8".to_owned();
                Err(PolicyError {
                    file: name.to_owned(),
                    line,
                    col,
                    code: ErrorCode::Syntax,
                    rule: None,
                    message,
                    help: None,
                })
            }
        }
    }
}

/// What the command line grants for one run. A grant beats a class default; it lifts neither ask nor deny.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grant {
    /// `--allow-writes [GLOB]`: changes of files, all or those of a path pattern.
    Writes(Option<String>),
    /// `--allow-shell RULE`: commands of a command pattern.
    Shell(String),
    /// `--allow-network`: every connection that the floor does not forbid.
    Network,
}

const FILE_KEYS: &[&str] = &["version", "description", "rule", "defaults", "limits", "env"];
const RULE_KEYS: &[&str] = &[
    "id",
    "effect",
    "tools",
    "command",
    "paths",
    "net",
    "except",
    "match",
    "not_match",
    "dynamic",
    "sandbox",
    "unlock",
    "reason",
];

/// Variables that decide which program runs or what a program loads; no policy opens them.
const FORBIDDEN_ENV: &[&str] = &[
    "PATH",
    "IFS",
    "ENV",
    "BASH_ENV",
    "SHELL",
    "SHELLOPTS",
    "BASHOPTS",
    "CDPATH",
    "PS4",
    "PROMPT_COMMAND",
    "HOME",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "BROWSER",
    "NODE_OPTIONS",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PERL5LIB",
    "PERL5OPT",
    "RUBYOPT",
    "RUBYLIB",
    "JAVA_TOOL_OPTIONS",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "CC",
    "CXX",
    "LD",
    "MAKEFLAGS",
];

/// Prefixes of such variables.
const FORBIDDEN_ENV_PREFIXES: &[&str] = &["LD_", "DYLD_", "GIT_", "BASH_FUNC_"];

impl Policy {
    /// Compiles the layers of a run.
    ///
    /// # Errors
    /// No file at all is `policy_missing`; everything else is the first mistake of the first file that has one,
    /// examples (`match`, `not_match`) that do not hold included.
    pub fn load(sources: &[Source], grants: &[Grant]) -> Result<Self, PolicyError> {
        if sources.is_empty() {
            return Err(PolicyError {
                file: "policy".to_owned(),
                line: 1,
                col: 1,
                code: ErrorCode::PolicyMissing,
                rule: None,
                message: "there is no policy file, and without one nothing runs".to_owned(),
                help: Some("tracegate policy init".to_owned()),
            });
        }
        let mut policy = Self::empty();
        // Layers in their own order, files of a layer in the caller's: the first match of a verb is the one named.
        let mut ordered: Vec<&Source> = sources.iter().collect();
        ordered.sort_by_key(|source| source.layer);
        for source in ordered {
            if let Target::Inside(path) = Target::parse(&source.name) {
                policy.protected.push(path);
            }
            load_file(&mut policy, source)?;
        }
        for grant in grants {
            policy.rules.push(grant_rule(grant)?);
        }
        policy.settle_defaults();
        Ok(policy)
    }
}

fn grant_rule(grant: &Grant) -> Result<Rule, PolicyError> {
    let (flag, condition, what) = match grant {
        Grant::Writes(None) => ("--allow-writes", Condition::Writes, "writes"),
        Grant::Writes(Some(glob)) => {
            let pattern = PathPattern::parse(glob).map_err(|error| grant_error("--allow-writes", error))?;
            (
                "--allow-writes",
                Condition::Paths(Patterns {
                    include: vec![pattern],
                    except: Vec::new(),
                }),
                "writes",
            )
        }
        Grant::Shell(command) => {
            let pattern =
                CommandPattern::parse(command).map_err(|error| grant_error("--allow-shell", error))?;
            (
                "--allow-shell",
                Condition::Command(Patterns {
                    include: vec![pattern],
                    except: Vec::new(),
                }),
                "commands",
            )
        }
        Grant::Network => ("--allow-network", Condition::Network, "network"),
    };
    let shown = match grant {
        Grant::Writes(None) | Grant::Network => flag.to_owned(),
        Grant::Writes(Some(text)) | Grant::Shell(text) => format!("{flag} {text}"),
    };
    let tools = match grant {
        Grant::Writes(Some(_)) => vec![Tool::WriteText, Tool::EditText],
        Grant::Writes(None) | Grant::Shell(_) | Grant::Network => Vec::new(),
    };
    Ok(Rule {
        name: format!("session:{}", flag.trim_start_matches('-')),
        verb: Verb::Allow,
        standing: Standing::Grant,
        condition,
        tools,
        dynamic: false,
        sandbox: Sandbox::Off,
        unlocks_secrets: false,
        reason: Some(format!("the command line allows {what} ({shown})")),
        place: flag.to_owned(),
    })
}

fn grant_error(flag: &str, error: PatternError) -> PolicyError {
    let PatternError { code, message, help } = error;
    PolicyError {
        file: flag.to_owned(),
        line: 1,
        col: 1,
        code,
        rule: None,
        message,
        help,
    }
}

fn load_file(policy: &mut Policy, source: &Source) -> Result<(), PolicyError> {
    let file = File {
        name: &source.name,
        text: &source.text,
    };
    let table = file.parse()?;
    let top = Section {
        file,
        table: &table,
        what: "a policy file",
        offset: 0,
    };
    top.close(FILE_KEYS)?;
    let version = top.number("version")?.ok_or_else(|| top.missing("version"))?;
    if version.value != 1 {
        let message = format!(
            "`version` {} is not known; this program reads version 1",
            version.value
        );
        return Err(file.error(version.offset, ErrorCode::UnsupportedVersion, message, None));
    }
    top.text("description")?;
    let binding = source.layer != Layer::Project || source.trusted;
    if let Some(defaults) = top.section("defaults", "`defaults`")? {
        defaults.close(&["read", "write", "shell", "network"])?;
        for class in [Class::Read, Class::Write, Class::Shell, Class::Network] {
            if let Some(verb) = defaults.text(&class.to_string())? {
                policy.add_default(class, parse_verb(file, &verb)?, source.layer, binding);
            }
        }
    }
    if let Some(limits) = top.section("limits", "`limits`")? {
        limits.close(&["on_deny", "sandbox"])?;
        let on_deny = limits.text("on_deny")?;
        let on_deny = on_deny.map(|text| {
            parse_name(
                file,
                &text,
                &["continue", "stop"],
                &[OnDeny::Continue, OnDeny::Stop],
            )
        });
        let sandbox = limits.text("sandbox")?.map(|text| parse_sandbox(file, &text));
        policy.add_limits(on_deny.transpose()?, sandbox.transpose()?, binding);
    }
    if let Some(env) = top.section("env", "`env`")? {
        env.close(&["allow"])?;
        for name in env.list("allow")?.unwrap_or_default() {
            let upper = name.value.to_ascii_uppercase();
            let odd = !upper
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            let forbidden = FORBIDDEN_ENV.contains(&upper.as_str())
                || FORBIDDEN_ENV_PREFIXES
                    .iter()
                    .any(|prefix| upper.starts_with(prefix));
            if odd || forbidden {
                let message = format!("`{}` cannot be opened by a policy", name.value);
                let help = Some("list names of harmless variables, such as LC_ALL or CI".to_owned());
                return Err(file.error(name.offset, ErrorCode::ForbiddenEnv, message, help));
            }
            if binding {
                policy.env.insert(name.value.to_owned());
            }
        }
    }
    for section in top.sections("rule", "a rule")? {
        let rule = load_rule(source, section).map_err(|mut error| {
            error.rule = section
                .text("id")
                .ok()
                .flatten()
                .map(|id| format!("{}:{}", source.layer, id.value));
            error
        })?;
        if policy.rules.iter().any(|known| known.name == rule.name) {
            let offset = section.text("id")?.map_or(section.offset, |id| id.offset);
            let message = format!("the id of `{}` is used twice", rule.name);
            return Err(file.error(offset, ErrorCode::DuplicateId, message, None));
        }
        policy.rules.push(rule);
    }
    Ok(())
}

/// A verb in a file; the parse functions name the known words when one is misspelt.
fn parse_verb(file: File<'_>, text: &At<&str>) -> Result<Verb, PolicyError> {
    parse_name(
        file,
        text,
        &["allow", "ask", "deny"],
        &[Verb::Allow, Verb::Ask, Verb::Deny],
    )
}

fn parse_sandbox(file: File<'_>, text: &At<&str>) -> Result<Sandbox, PolicyError> {
    parse_name(
        file,
        text,
        &["off", "prefer", "require"],
        &[Sandbox::Off, Sandbox::Prefer, Sandbox::Require],
    )
}

fn parse_name<T: Copy>(
    file: File<'_>,
    text: &At<&str>,
    names: &[&str],
    values: &[T],
) -> Result<T, PolicyError> {
    let found = names.iter().zip(values).find(|(name, _)| **name == text.value);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let message = format!("`{}` is not one of {}", text.value, names.join(", "));
        file.error(
            text.offset,
            ErrorCode::BadValue,
            message,
            did_you_mean(text.value, names),
        )
    })
}

fn compile<P>(
    file: File<'_>,
    texts: &[At<&str>],
    parse: impl Fn(&str) -> Result<P, PatternError>,
) -> Result<Vec<P>, PolicyError> {
    texts
        .iter()
        .map(|text| {
            parse(text.value)
                .map_err(|PatternError { code, message, help }| file.error(text.offset, code, message, help))
        })
        .collect()
}

fn load_rule(source: &Source, section: Section<'_>) -> Result<Rule, PolicyError> {
    let file = section.file;
    section.close(RULE_KEYS)?;
    let id = section.text("id")?.ok_or_else(|| section.missing("id"))?;
    let word = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    if id.value.is_empty() || !id.value.chars().all(word) {
        let message = format!(
            "the id `{}` is not made of letters, digits, `-`, `_` and `.`",
            id.value
        );
        return Err(file.error(id.offset, ErrorCode::BadValue, message, None));
    }
    let verb = section.text("effect")?.ok_or_else(|| section.missing("effect"))?;
    let verb = parse_verb(file, &verb)?;
    let mut tools = Vec::new();
    for name in section.list("tools")?.unwrap_or_default() {
        tools.push(Tool::parse(name.value).ok_or_else(|| {
            let help = Tool::suggestion(name.value)
                .or_else(|| Some(format!("the tools are {}", Tool::NAMES.join(", "))));
            file.error(
                name.offset,
                ErrorCode::UnknownTool,
                format!("`{}` is not a tool", name.value),
                help,
            )
        })?);
    }
    let condition = load_condition(&section, id.value, &tools)?;
    check_examples(&section, &condition)?;
    let unlocks_secrets = check_unlock(source, &section, verb, &condition)?;
    let sandbox = section
        .text("sandbox")?
        .map(|text| parse_sandbox(file, &text))
        .transpose()?;
    let standing = match source.layer {
        Layer::Session => Standing::Answer,
        Layer::Project if !source.trusted && verb == Verb::Allow => Standing::Ignored,
        Layer::Org | Layer::User | Layer::Project => Standing::Rule,
    };
    Ok(Rule {
        name: format!("{}:{}", source.layer, id.value),
        verb,
        standing,
        condition,
        tools,
        dynamic: section.flag("dynamic")?,
        sandbox: sandbox.unwrap_or(Sandbox::Off),
        unlocks_secrets,
        reason: section.text("reason")?.map(|reason| reason.value.to_owned()),
        place: format!("{}:{}", file.name, place(file.text, section.offset).0),
    })
}

fn load_condition(section: &Section<'_>, id: &str, tools: &[Tool]) -> Result<Condition, PolicyError> {
    let file = section.file;
    let command = section.list("command")?;
    let paths = section.list("paths")?;
    let net = section.list("net")?;
    let except = section.list("except")?.unwrap_or_default();
    match (command, paths, net) {
        (Some(command), None, None) => Ok(Condition::Command(Patterns {
            include: compile(file, &command, CommandPattern::parse)?,
            except: compile(file, &except, CommandPattern::parse)?,
        })),
        (None, Some(paths), None) => Ok(Condition::Paths(Patterns {
            include: compile(file, &paths, PathPattern::parse)?,
            except: compile(file, &except, PathPattern::parse)?,
        })),
        (None, None, Some(net)) => Ok(Condition::Net(Patterns {
            include: compile(file, &net, NetPattern::parse)?,
            except: compile(file, &except, NetPattern::parse)?,
        })),
        (None, None, None) if tools.is_empty() => {
            let message = format!("rule `{id}` has no condition and would match everything");
            let help =
                "add `command`, `paths`, `net` or `tools`; for a whole class use `[defaults]`".to_owned();
            Err(file.error(section.offset, ErrorCode::EmptyRule, message, Some(help)))
        }
        (None, None, None) => match except.first() {
            None => Ok(Condition::ToolsAlone),
            Some(except) => {
                let message = format!("rule `{id}` has `except` without `command`, `paths` or `net`");
                Err(file.error(except.offset, ErrorCode::MixedRule, message, None))
            }
        },
        (Some(_), Some(_), _) | (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => {
            let message =
                format!("rule `{id}` mixes `command`, `paths` and `net`, which never hold for one effect");
            let help = "write one rule for each".to_owned();
            Err(file.error(section.offset, ErrorCode::MixedRule, message, Some(help)))
        }
    }
}

/// Does the example match? An example that is not understood is refused before any rule, so it does not.
fn example_matches(condition: &Condition, example: &str) -> bool {
    match condition {
        Condition::Command(patterns) => plain_words(example).is_ok_and(|argv| {
            let matches = |pattern: &CommandPattern| pattern.matches(&argv, ProgramName::Exact);
            patterns.include.iter().any(matches) && !patterns.except.iter().any(matches)
        }),
        Condition::Paths(patterns) => match Target::parse(example) {
            Target::Inside(path) => {
                let matches = |pattern: &PathPattern| pattern.matches(&path);
                patterns.include.iter().any(matches) && !patterns.except.iter().any(matches)
            }
            Target::Outside { .. } | Target::Home { .. } | Target::Invalid { .. } => false,
        },
        Condition::Net(patterns) => example.rsplit_once(':').is_some_and(|(host, port)| {
            let (Ok(host), Ok(port)) = (Host::parse(host), port.parse()) else {
                return false;
            };
            let matches = |pattern: &NetPattern| pattern.matches(&host, port);
            patterns.include.iter().any(matches) && !patterns.except.iter().any(matches)
        }),
        Condition::ToolsAlone | Condition::Writes | Condition::Network => true,
    }
}

fn check_examples(section: &Section<'_>, condition: &Condition) -> Result<(), PolicyError> {
    for (key, wanted) in [("match", true), ("not_match", false)] {
        for example in section.list(key)?.unwrap_or_default() {
            if example_matches(condition, example.value) != wanted {
                let how = if wanted { "does not match" } else { "matches" };
                let message = format!("the example `{}` in `{key}` {how} the rule", example.value);
                return Err(section
                    .file
                    .error(example.offset, ErrorCode::FailedExample, message, None));
            }
        }
    }
    Ok(())
}

fn check_unlock(
    source: &Source,
    section: &Section<'_>,
    verb: Verb,
    condition: &Condition,
) -> Result<bool, PolicyError> {
    let mut unlocks = false;
    for name in section.list("unlock")?.unwrap_or_default() {
        let error = |code, message: String, help: Option<String>| {
            Err(section.file.error(name.offset, code, message, help))
        };
        let known: Vec<&str> = FloorRule::ALL.iter().map(|rule| rule.name()).collect();
        if !known.contains(&name.value) {
            let help = did_you_mean(name.value, &known);
            return error(
                ErrorCode::NotUnlockable,
                format!("`{}` is not a rule of the floor", name.value),
                help,
            );
        }
        if name.value != FloorRule::SecretRead.name() {
            let help = Some("only `secret-read` can be unlocked".to_owned());
            return error(
                ErrorCode::NotUnlockable,
                format!("`{}` cannot be unlocked", name.value),
                help,
            );
        }
        if !matches!(source.layer, Layer::Org | Layer::User) {
            let message = format!("a {} policy cannot unlock `secret-read`", source.layer);
            return error(
                ErrorCode::NotUnlockable,
                message,
                Some("put the rule into your own policy".to_owned()),
            );
        }
        let by_name = match condition {
            Condition::Paths(patterns) => patterns.include.iter().all(PathPattern::names_a_file),
            Condition::Command(_)
            | Condition::Net(_)
            | Condition::ToolsAlone
            | Condition::Writes
            | Condition::Network => false,
        };
        if verb != Verb::Allow || !by_name {
            let message = "`secret-read` is unlocked by an allow rule whose `paths` name files".to_owned();
            return error(
                ErrorCode::NotUnlockable,
                message,
                Some("write `paths = [\".env.test\"]`".to_owned()),
            );
        }
        unlocks = true;
    }
    Ok(unlocks)
}
