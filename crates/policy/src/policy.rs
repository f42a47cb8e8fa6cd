//! Decides: floor > deny > ask > allow > class default > deny, effect by effect, the strictest wins.

use crate::{
    decision::{Class, Decision, Match, ReasonCode, Verb},
    floor::{self, FloorRule, Operation},
    host::Host,
    load::Layer,
    path::{Target, WorkspacePath},
    profile::Profile,
    request::{Effect, Known, Reach, Request, Tool},
    rule::{FileMatch, Rule, Standing},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// What a refusal does to the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum OnDeny {
    /// The model is told and goes on.
    #[default]
    Continue,
    /// The run ends as `permission_denied`.
    Stop,
}

/// How much confinement a command needs; ordered so that the strictest is the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sandbox {
    /// None.
    Off,
    /// The best that the machine has.
    Prefer,
    /// The full one, or the command does not run.
    Require,
}

impl fmt::Display for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The `[limits]` of all layers; the strictest value of any layer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PolicyLimits {
    /// What a refusal does; `continue` if no file says otherwise.
    pub on_deny: OnDeny,
    /// Confinement of commands; `prefer` if no file says otherwise.
    pub sandbox: Sandbox,
}

/// A default and whether a layer that may grant has said it.
#[derive(Debug, Clone, Copy)]
struct ClassDefault {
    verb: Verb,
    layer: Layer,
    binding: bool,
}

/// The compiled layers of a run.
#[derive(Debug, Clone)]
pub struct Policy {
    pub(crate) rules: Vec<Rule>,
    pub(crate) env: BTreeSet<String>,
    /// Policy files in force that lie in the workspace.
    pub(crate) protected: Vec<WorkspacePath>,
    said: BTreeMap<Class, Vec<ClassDefault>>,
    defaults: BTreeMap<Class, (Verb, Layer)>,
    on_deny: OnDeny,
    sandbox: Option<Sandbox>,
    limits: PolicyLimits,
}

/// The answer for one effect.
#[derive(Debug, Clone)]
struct Ruling {
    verb: Verb,
    code: ReasonCode,
    rule: String,
    reason: String,
}

/// May an effect fall through to the class default, or has the command around it been answered for?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cover {
    Alone,
    /// A command rule answers for it; only floor, deny and ask still speak (design 16, 19b).
    ByCommand,
}

/// What is collected while the effects of a request are judged.
#[derive(Debug, Default)]
struct Review {
    rulings: Vec<Ruling>,
    matches: Vec<Match>,
    masks: BTreeSet<String>,
    class: Option<Class>,
    sandbox: Option<Sandbox>,
}

impl Review {
    fn widen(&mut self, class: Class) {
        self.class = self.class.max(Some(class));
    }

    fn deny(&mut self, code: ReasonCode, rule: &str, reason: String) {
        self.rulings.push(Ruling {
            verb: Verb::Deny,
            code,
            rule: rule.to_owned(),
            reason,
        });
    }

    fn floor(&mut self, rule: FloorRule, what: &str) {
        let code = if rule == FloorRule::Unparsed {
            ReasonCode::Unparsed
        } else {
            ReasonCode::Floor
        };
        self.deny(
            code,
            &format!("floor:{}", rule.name()),
            format!("`{what}` is never allowed: {}", rule.why()),
        );
    }
}

impl Policy {
    pub(crate) fn empty() -> Self {
        Self {
            rules: Vec::new(),
            env: BTreeSet::new(),
            protected: Vec::new(),
            said: BTreeMap::new(),
            defaults: BTreeMap::new(),
            on_deny: OnDeny::Continue,
            sandbox: None,
            limits: PolicyLimits {
                on_deny: OnDeny::Continue,
                sandbox: Sandbox::Prefer,
            },
        }
    }

    pub(crate) fn add_default(&mut self, class: Class, verb: Verb, layer: Layer, binding: bool) {
        self.said
            .entry(class)
            .or_default()
            .push(ClassDefault { verb, layer, binding });
    }

    pub(crate) fn add_limits(&mut self, on_deny: Option<OnDeny>, sandbox: Option<Sandbox>, binding: bool) {
        self.on_deny = self.on_deny.max(on_deny.unwrap_or_default());
        // An untrusted file cannot be the one that turns the preference off.
        let floor = if binding { Sandbox::Off } else { Sandbox::Prefer };
        self.sandbox = self.sandbox.max(sandbox.map(|sandbox| sandbox.max(floor)));
    }

    /// The strictest default that any layer sets holds. A default that only an untrusted file sets is none,
    /// because without it the class would be denied.
    pub(crate) fn settle_defaults(&mut self) {
        for (class, said) in &self.said {
            if said.iter().any(|default| default.binding)
                && let Some(strictest) = said.iter().rev().max_by_key(|default| default.verb)
            {
                self.defaults.insert(*class, (strictest.verb, strictest.layer));
            }
        }
        self.limits = PolicyLimits {
            on_deny: self.on_deny,
            sandbox: self.sandbox.unwrap_or(Sandbox::Prefer),
        };
    }

    /// Returns the limits of all layers.
    #[must_use]
    pub fn limits(&self) -> &PolicyLimits {
        &self.limits
    }

    /// Decides a request. The same policy and request always give the same decision; whatever is not
    /// understood is denied.
    #[must_use]
    pub fn decide(&self, request: &Request) -> Decision {
        let mut review = Review::default();
        match Tool::parse(&request.tool) {
            None => {
                let advice = Tool::suggestion(&request.tool)
                    .map(|advice| format!("; {advice}"))
                    .unwrap_or_default();
                let reason = format!("there is no tool `{}`{advice}", request.tool);
                review.deny(ReasonCode::InvalidArgument, "builtin:unknown-tool", reason);
                review.widen(Class::Shell);
            }
            Some(tool) => self.review(tool, request, &mut review),
        }
        self.conclude(review)
    }

    fn review(&self, tool: Tool, request: &Request, review: &mut Review) {
        if let Some(why) = &request.unparsed {
            review.widen(Class::Shell);
            let reason = format!("the command is not understood, so it is not run: {why}");
            review.deny(ReasonCode::Unparsed, "floor:unparsed", reason);
            return;
        }
        if request.effects.is_empty() {
            self.review_no_effect(tool, review);
        }
        for effect in &request.effects {
            match effect {
                Effect::Exec { argv, known } => self.review_exec(tool, argv, *known, review),
                Effect::List { .. } | Effect::Read { .. } | Effect::Write { .. } | Effect::Delete { .. } => {
                    self.review_file(tool, effect, Cover::Alone, review);
                }
                Effect::Net { host, port } => {
                    self.review_net(tool, effect, host, *port, Cover::Alone, review);
                }
                Effect::Env { name } => self.review_env(name, review),
            }
        }
    }

    /// Asking the user changes nothing and needs no permission; any other request without an effect is one
    /// that was not understood.
    fn review_no_effect(&self, tool: Tool, review: &mut Review) {
        if tool != Tool::AskUser {
            review.widen(Class::Shell);
            review.floor(FloorRule::Unparsed, "a request without an effect");
            return;
        }
        review.widen(Class::Read);
        let matched = self.rules.iter().filter(|rule| rule.tools.contains(&tool));
        let ruling = self.weigh(matched, "ask the user", review);
        review.rulings.push(ruling.unwrap_or_else(|| Ruling {
            verb: Verb::Allow,
            code: ReasonCode::RuleAllow,
            rule: "builtin:ask-user".to_owned(),
            reason: "a question to the user changes nothing".to_owned(),
        }));
    }

    fn review_env(&self, name: &str, review: &mut Review) {
        review.widen(Class::Read);
        if self.env.contains(name) {
            review.rulings.push(Ruling {
                verb: Verb::Allow,
                code: ReasonCode::RuleAllow,
                rule: "builtin:env".to_owned(),
                reason: format!("`env.allow` lists `{name}`"),
            });
        } else {
            let reason = format!("`env.allow` does not list the variable `{name}`");
            review.deny(ReasonCode::EnvNotAllowed, "builtin:env", reason);
        }
    }

    fn review_exec(&self, tool: Tool, argv: &[String], known: Known, review: &mut Review) {
        let shown = argv.join(" ");
        if known == Known::Nothing || argv.is_empty() {
            review.widen(Class::Shell);
            let reason = format!("which program `{shown}` runs is not known before it runs");
            review.deny(ReasonCode::DynamicProgram, "builtin:dynamic", reason);
            return;
        }
        let profile = Profile::of(argv);
        review.widen(profile.class);
        if let Some(why) = &profile.unparsed {
            let reason = format!("a command in the command is not understood, so it is not run: {why}");
            review.deny(ReasonCode::Unparsed, "floor:unparsed", reason);
        }
        for inner in &profile.inner {
            self.review_inner(tool, inner, review);
        }
        let answered = self.review_outer(tool, argv, known, &shown, review);
        let cover = if answered { Cover::ByCommand } else { Cover::Alone };
        for effect in &profile.effects {
            // An operand that is not known yet is no path; the rules on dynamic operands speak for it.
            let unknown = matches!(effect.file(), Some((_, Target::Invalid { .. }, _)));
            if known == Known::Program && unknown {
                continue;
            }
            match effect {
                Effect::Net { host, port } => {
                    self.review_net(tool, effect, host, *port, cover, review);
                }
                Effect::List { .. } | Effect::Read { .. } | Effect::Write { .. } | Effect::Delete { .. } => {
                    self.review_file(tool, effect, cover, review);
                }
                Effect::Exec { .. } | Effect::Env { .. } => {}
            }
        }
        // The class default of a program that reads or writes is asked for its files, so that a path rule can
        // answer; a program without files, or one that runs other code, is asked for itself.
        let spoken_for = match profile.class {
            Class::Read => !profile.effects.is_empty(),
            Class::Write => profile
                .effects
                .iter()
                .any(|effect| effect.file().is_some_and(|(op, ..)| op.changes())),
            Class::Shell | Class::Network => false,
        };
        if !answered {
            if known != Known::All {
                let reason = format!("an operand of `{shown}` is not known before it runs");
                review.deny(ReasonCode::DynamicOperand, "builtin:dynamic", reason);
            } else if !spoken_for {
                self.review_default(tool, profile.class, &shown, review);
            }
        }
    }

    /// An inner command is held to the floor, to denies and to asks; the allow is the outer command's to have.
    fn review_inner(&self, tool: Tool, argv: &[String], review: &mut Review) {
        let shown = argv.join(" ");
        if argv
            .first()
            .is_some_and(|program| floor::gains_privileges(program))
        {
            review.floor(FloorRule::Privilege, &shown);
        }
        let matched = self
            .rules
            .iter()
            .filter(|rule| rule.verb != Verb::Allow && rule.matches_command(tool, argv, Known::All));
        let ruling = self.weigh(matched, &format!("run {shown}"), review);
        review.rulings.extend(ruling);
    }

    /// Judges the command itself; true if a rule answered for it.
    fn review_outer(
        &self,
        tool: Tool,
        argv: &[String],
        known: Known,
        shown: &str,
        review: &mut Review,
    ) -> bool {
        if argv
            .first()
            .is_some_and(|program| floor::gains_privileges(program))
        {
            review.floor(FloorRule::Privilege, shown);
        }
        let matched = self
            .rules
            .iter()
            .filter(|rule| rule.matches_command(tool, argv, known));
        let ruling = self.weigh(matched, &format!("run {shown}"), review);
        let answered = ruling.is_some();
        review.rulings.extend(ruling);
        answered
    }

    fn review_file(&self, tool: Tool, effect: &Effect, cover: Cover, review: &mut Review) {
        let Some((operation, target, reach)) = effect.file() else {
            return;
        };
        let class = if operation.changes() {
            Class::Write
        } else {
            Class::Read
        };
        review.widen(class);
        let shown = effect.to_string();
        if tool == Tool::ShellReadonly && operation.changes() {
            let reason = format!("`shell_readonly` must not change files: {shown}");
            review.deny(ReasonCode::ReadonlyTool, "builtin:shell-readonly", reason);
        }
        if let Target::Invalid { text, why } = target {
            let reason = format!("the path `{}` {why}", text.escape_debug());
            review.deny(ReasonCode::InvalidArgument, "builtin:bad-path", reason);
            return;
        }
        if let Some(rule) = self.floor_of(operation, target, reach) {
            let unlocked = rule == FloorRule::SecretRead && self.unlocks(target);
            if !unlocked {
                review.floor(rule, &shown);
                return;
            }
        }
        let Target::Inside(path) = target else {
            return;
        };
        if reach == Reach::Tree && !operation.changes() {
            review
                .masks
                .extend(floor::MASKS.iter().map(|mask| (*mask).to_owned()));
        }
        let mut matched = Vec::new();
        for rule in &self.rules {
            match rule.matches_file(tool, operation, path, reach) {
                FileMatch::No => {}
                FileMatch::Yes => matched.push(rule),
                FileMatch::Mask(masks) => review.masks.extend(masks),
            }
        }
        self.settle(matched, class, &shown, cover, review);
    }

    fn review_net(
        &self,
        tool: Tool,
        effect: &Effect,
        host: &str,
        port: u16,
        cover: Cover,
        review: &mut Review,
    ) {
        review.widen(Class::Network);
        let parsed = match Host::parse(host) {
            Ok(parsed) => parsed,
            Err(why) => {
                let reason = format!("`{}` is not a host: {why}", host.escape_debug());
                review.deny(ReasonCode::InvalidArgument, "builtin:bad-host", reason);
                return;
            }
        };
        let shown = effect.to_string();
        if parsed.is_metadata() {
            review.floor(FloorRule::Metadata, &shown);
            return;
        }
        let matched = self
            .rules
            .iter()
            .filter(|rule| rule.matches_net(tool, &parsed, port))
            .collect();
        self.settle(matched, Class::Network, &shown, cover, review);
    }

    fn settle(&self, matched: Vec<&Rule>, class: Class, shown: &str, cover: Cover, review: &mut Review) {
        let ruling = self.weigh(matched.into_iter(), shown, review);
        match (ruling, cover) {
            (Some(ruling), _) => review.rulings.push(ruling),
            (None, Cover::Alone) => {
                let ruling = self.default_of(class, shown);
                review.rulings.push(ruling);
            }
            (None, Cover::ByCommand) => {}
        }
    }

    fn review_default(&self, tool: Tool, class: Class, shown: &str, review: &mut Review) {
        if tool == Tool::ShellReadonly && class == Class::Write {
            let reason = format!("`shell_readonly` must not change files: {shown}");
            review.deny(ReasonCode::ReadonlyTool, "builtin:shell-readonly", reason);
        }
        // A grant of a whole class answers for a command of that class.
        let granted = self.rules.iter().filter(|rule| rule.grants_class(class));
        let ruling = self.weigh(granted, &format!("run {shown}"), review);
        let ruling = ruling.unwrap_or_else(|| self.default_of(class, &format!("run {shown}")));
        review.rulings.push(ruling);
    }

    fn default_of(&self, class: Class, shown: &str) -> Ruling {
        match self.defaults.get(&class) {
            Some((verb, layer)) => Ruling {
                verb: *verb,
                code: ReasonCode::ClassDefault,
                rule: format!("default:{class}"),
                reason: format!(
                    "no rule is about `{shown}`, and the {layer} default for class {class} is {verb}"
                ),
            },
            None => Ruling {
                verb: Verb::Deny,
                code: ReasonCode::NoMatch,
                rule: "default".to_owned(),
                reason: format!("no rule is about `{shown}`, and class {class} has no default"),
            },
        }
    }

    /// Picks among the rules that match one effect: deny, then ask (unless a remembered answer lifts it), then
    /// allow; of equals the first in layers and files. Every match is kept.
    fn weigh<'a>(
        &self,
        matched: impl Iterator<Item = &'a Rule>,
        effect: &str,
        review: &mut Review,
    ) -> Option<Ruling> {
        let mut first: BTreeMap<Verb, &Rule> = BTreeMap::new();
        let mut answer: Option<&Rule> = None;
        let mut sandbox = None;
        for rule in matched {
            let counts = rule.standing != Standing::Ignored;
            review.matches.push(Match {
                rule: rule.name.clone(),
                verb: rule.verb,
                effect: effect.to_owned(),
                place: rule.place.clone(),
                counts,
            });
            if counts {
                first.entry(rule.verb).or_insert(rule);
                if rule.standing == Standing::Answer && rule.verb == Verb::Allow {
                    answer = answer.or(Some(rule));
                }
                if rule.verb == Verb::Allow {
                    sandbox = sandbox.max(Some(rule.sandbox));
                }
            }
        }
        review.sandbox = review.sandbox.max(sandbox);
        let (code, rule) = if let Some(rule) = first.get(&Verb::Deny) {
            (ReasonCode::RuleDeny, *rule)
        } else if let Some(asking) = first.get(&Verb::Ask) {
            answer.map_or((ReasonCode::RuleAsk, *asking), |answer| {
                (ReasonCode::AskRemembered, answer)
            })
        } else {
            (ReasonCode::RuleAllow, *first.get(&Verb::Allow)?)
        };
        let reason = rule.reason.clone().unwrap_or_else(|| {
            if code == ReasonCode::AskRemembered {
                format!("a person said yes to exactly this before ({})", rule.name)
            } else {
                format!(
                    "rule `{}` ({}) says {} to `{effect}`",
                    rule.name, rule.place, rule.verb
                )
            }
        });
        Some(Ruling {
            verb: rule.verb,
            code,
            rule: rule.name.clone(),
            reason,
        })
    }

    fn conclude(&self, review: Review) -> Decision {
        let verb = review.rulings.iter().map(|ruling| ruling.verb).max();
        let strictest = review
            .rulings
            .into_iter()
            .find(|ruling| Some(ruling.verb) == verb);
        // No ruling at all would be an effect that nobody spoke for: denied, never passed over.
        let Ruling {
            verb,
            code,
            rule,
            reason,
        } = strictest.unwrap_or_else(|| Ruling {
            verb: Verb::Deny,
            code: ReasonCode::NoMatch,
            rule: "default".to_owned(),
            reason: "no rule is about this request".to_owned(),
        });
        Decision {
            verb,
            class: review.class.unwrap_or(Class::Shell),
            reason_code: code,
            rule,
            reason,
            matches: review.matches,
            masks: review.masks.into_iter().collect(),
            sandbox: review
                .sandbox
                .max(Some(self.limits.sandbox))
                .unwrap_or(Sandbox::Prefer),
        }
    }

    /// The floor of a path, with the rows that depend on this run: its own policy files, and trees that hold
    /// the repository. The runtime asks this again for the name that a path resolves to.
    #[must_use]
    pub fn floor_of(&self, operation: Operation, target: &Target, reach: Reach) -> Option<FloorRule> {
        let by_name = floor::of_path(operation, target);
        let Target::Inside(path) = target else {
            return by_name;
        };
        let changes_tree = operation.changes() && reach == Reach::Tree;
        let protected = operation.changes()
            && self
                .protected
                .iter()
                .any(|file| file == path || (changes_tree && file.is_within(path.as_str())));
        by_name
            .or_else(|| (changes_tree && path.is_root()).then_some(FloorRule::GitDir))
            .or_else(|| protected.then_some(FloorRule::PolicyFile))
    }

    fn unlocks(&self, target: &Target) -> bool {
        match target {
            Target::Inside(path) => self.rules.iter().any(|rule| {
                rule.unlocks_secrets
                    && rule.matches_file(Tool::ReadFile, Operation::Read, path, Reach::File) == FileMatch::Yes
            }),
            Target::Outside { .. } | Target::Home { .. } | Target::Invalid { .. } => false,
        }
    }
}
