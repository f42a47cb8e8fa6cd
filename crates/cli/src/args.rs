//! What was typed.

use crate::environment::Environment;
use clap::{Args, Parser, Subcommand, ValueEnum, error::ErrorKind};
use std::path::PathBuf;
use tracegate_core::{fact::run::Prices, stop::Exit};
use tracegate_otel::endpoint::{Protocol, Typed};

/// Runs coding agents so that afterwards nobody has to believe them.
///
/// Records what an agent saw, planned, was allowed and did, and never calls a run completed while its tests fail.
#[derive(Debug, Parser)]
#[command(
    name = "tracegate",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Work in DIR: the workspace of a run, and where its store is looked for [default: the current directory]
    #[arg(short = 'C', long, global = true, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Where runs are kept [env: TRACEGATE_STORE] [default: the nearest .tracegate, else DIR/.tracegate]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// Say less: only the answer
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Replay a failed repair: a scripted model, real tools and gates, no key, no network
    Demo(Demo),
    /// Run an agent on a goal
    Run(Run),
    /// Go on with a run that was cut off or reached a limit
    Resume(Resume),
    /// Answer a question of a waiting run, and go on with it
    Answer(Answer),
    /// Show a run: its summary and what each tool did
    Show(Show),
    /// List runs
    #[command(subcommand)]
    Runs(Runs),
    /// Explain a run: why it failed, as a table and as a post-mortem
    Explain(Explain),
    /// Export the spans of runs, or a run in another agent's format
    Export(Export),
    /// Check what a run needs: endpoint, store, policy, tools
    Doctor(Doctor),
    /// Check a run: every event, every artifact, every file; mark what is lost
    Fsck(Fsck),
    /// Judge runs by eval cases
    #[command(subcommand)]
    Eval(Eval),
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Let the linked test into the context: the one setting that decides the outcome
    #[arg(long)]
    pub(crate) fixed: bool,
    /// Put the fixture into DIR, which must not exist [default: a new temporary directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Use the twin of the fixture in this language [default: ts where Node is found, else rust]
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) language: Option<Language>,
    #[command(flatten)]
    pub(crate) export: Endpoint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    Ts,
    Rust,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// What the agent is to reach; `-` reads it from standard input
    pub(crate) goal: String,
    #[command(flatten)]
    pub(crate) how: How,
    /// Print the ending as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) export: Endpoint,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// A run, as for `show`
    #[arg(default_value = "@last")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) how: Again,
}

#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// A run, as for `show`
    pub(crate) run: String,
    /// The answer to a question of the agent; `-` reads it from standard input
    #[arg(required_unless_present_any = ["allow", "deny"], conflicts_with_all = ["allow", "deny"])]
    pub(crate) text: Option<String>,
    /// Permit the action that the policy asks about
    #[arg(long, conflicts_with = "deny")]
    pub(crate) allow: bool,
    /// Refuse it: the agent is told and goes on
    #[arg(long)]
    pub(crate) deny: bool,
    /// Which question, if several are open
    #[arg(long, value_name = "ID")]
    pub(crate) question: Option<String>,
    #[command(flatten)]
    pub(crate) how: Again,
}

/// What may differ from how a run was started.
#[derive(Debug, Clone, Args)]
pub(crate) struct Again {
    /// Replies of the scripted model [default: where they came from]
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// A new step limit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_steps: Option<u32>,
    #[command(flatten)]
    pub(crate) budget: Budget,
    /// Go on although policy or task have changed since; that you accepted it is recorded
    #[arg(long)]
    pub(crate) accept_changes: bool,
    /// Print the ending as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) export: Endpoint,
}

/// How a run is set up.
#[derive(Debug, Clone, Args)]
pub(crate) struct How {
    /// Policy file, may be repeated [default: the built-in policies/default.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Vec<PathBuf>,
    /// Replies of a scripted model, one JSON object a line (docs/evals.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) script: PathBuf,
    /// Allow the agent to write files, all of them or those that GLOB matches
    #[arg(long, value_name = "GLOB", num_args = 0..=1, require_equals = true, default_missing_value = "**")]
    pub(crate) allow_writes: Option<String>,
    /// Stop after N steps
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_steps: u32,
    #[command(flatten)]
    pub(crate) budget: Budget,
    /// What a million tokens cost in USD: input, output and, where they differ from input, cache reads and writes
    #[arg(long, value_name = "IN,OUT[,READ,WRITE]", value_parser = prices)]
    pub(crate) prices: Option<Prices>,
    /// How many tokens the model takes in; older turns give way to a summary when the conversation outgrows it
    #[arg(long, value_name = "TOKENS", default_value_t = 128_000, value_parser = clap::value_parser!(u64).range(8192..))]
    pub(crate) window: u64,
    /// Refer to the span in TRACEPARENT from a trace of its own, instead of being part of that trace
    #[arg(long)]
    pub(crate) trace_link: bool,
    /// Where the policy asks: refuse, or suspend the run until `tracegate answer` [default: ask at a terminal, else refuse]
    #[arg(long, value_name = "deny|suspend")]
    pub(crate) on_ask: Option<OnAsk>,
    /// Whether tests linked to what the agent touches enter the context
    #[arg(long, value_name = "on|off", default_value = "on")]
    pub(crate) context_tests: OnOff,
    /// Token budget of the context
    #[arg(long, value_name = "TOKENS", default_value_t = 2800)]
    pub(crate) context_budget: u64,
    /// How often an answer that the evidence contradicts is sent back
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) push_back: u32,
    /// How long a command may run
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub(crate) command_timeout: u64,
    /// How long a step waits for a workspace that is half-way through something
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) ready_timeout: u64,
    /// When the log is synced to disk
    #[arg(long, value_name = "kill|step|event", default_value = "step")]
    pub(crate) durability: Durability,
}

/// What a run may use up; each limit is a stop of its own.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct Budget {
    /// Stop once N tokens, input and output together, are used
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// Stop once the tokens cost this much; needs --prices
    #[arg(long, value_name = "USD", value_parser = millionths)]
    pub(crate) max_cost: Option<u64>,
    /// Stop after this much work, in the middle of whatever is being done; waiting for an answer is no work
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=u64::MAX / 1000))]
    pub(crate) max_time: Option<u64>,
}

impl Budget {
    /// Returns the time limit in milliseconds.
    pub(crate) fn max_ms(&self) -> Option<u64> {
        self.max_time.map(|seconds| seconds.saturating_mul(1000))
    }
}

/// Reads dollars as millionths of a dollar: up to six decimals, no sign, no exponent.
fn millionths(text: &str) -> Result<u64, String> {
    let wrong = || "an amount in USD has at most six decimals, as in 0.25".to_owned();
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 6 {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let part: u64 = format!("{part:0<6}").parse().map_err(|_| wrong())?;
    whole
        .checked_mul(1_000_000)
        .and_then(|whole| whole.checked_add(part))
        .ok_or_else(wrong)
}

fn prices(text: &str) -> Result<Prices, String> {
    let amounts: Vec<u64> = text
        .split(',')
        .map(|amount| millionths(amount.trim()))
        .collect::<Result<_, _>>()?;
    let (input, output, cache_read, cache_write) = match *amounts.as_slice() {
        [input, output] => (input, output, input, input),
        [input, output, read, write] => (input, output, read, write),
        _ => {
            return Err(
                "two or four amounts are wanted: input and output, or also cache reads and writes".to_owned(),
            );
        }
    };
    Ok(Prices {
        input,
        output,
        cache_read,
        cache_write,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnAsk {
    Deny,
    Suspend,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Durability {
    Kill,
    Step,
    Event,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Endpoint {
    /// Send spans to an OTLP endpoint while the run goes on, such as http://localhost:4318 [env: OTEL_EXPORTER_OTLP_ENDPOINT]
    #[arg(long = "export", value_name = "URL")]
    pub(crate) url: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Fsck {
    /// A run, as for `show`
    #[arg(default_value = "@last")]
    pub(crate) run: String,
    /// Write a damaged log anew: good records stay, lost ones are marked, the damaged file is kept
    #[arg(long)]
    pub(crate) salvage: bool,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// A run: its id, a unique beginning of it, @last, @-2, or a path
    #[arg(default_value = "@last")]
    pub(crate) run: String,
    /// The run on one screen, or one line for each action and whether it changed anything
    #[arg(long, value_name = "summary|steps", default_value = "summary")]
    pub(crate) view: View,
    /// Every action of a long run, with --view steps
    #[arg(long)]
    pub(crate) all: bool,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum View {
    Summary,
    Steps,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// List the runs of the store, newest first
    List {
        /// At most N
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A run, as for `show`
    #[arg(default_value = "@last")]
    pub(crate) run: String,
    #[arg(long)]
    pub(crate) json: bool,
    /// Language of headings; what was recorded is never translated
    #[arg(long, value_name = "en|zh", default_value = "en")]
    pub(crate) lang: Lang,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lang {
    En,
    Zh,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Runs, as for `show`
    #[arg(required = true)]
    pub(crate) run: Vec<String>,
    /// Send over OTLP, write OTLP/JSON lines, or write one run as Fara's trajectory directory (docs/fara.md)
    #[arg(long, value_name = "otlp|otlp-json|fara", default_value = "otlp")]
    pub(crate) to: Target,
    #[command(flatten)]
    pub(crate) receiver: Receiver,
    /// Send everything, also what the endpoint has acknowledged before; harmless, as the spans are the same
    #[arg(long)]
    pub(crate) again: bool,
    /// Write to FILE instead of standard output (otlp-json), or to the new directory DIR (fara)
    #[arg(short, long, value_name = "FILE|DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// A receiver of spans; what is not typed comes from the `OTEL_*` variables (docs/export.md).
#[derive(Debug, Args)]
pub(crate) struct Receiver {
    /// OTLP endpoint [env: OTEL_EXPORTER_OTLP_ENDPOINT] [default: http://localhost:4318]
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// How to send [env: OTEL_EXPORTER_OTLP_PROTOCOL] [default: grpc for port 4317, else http/protobuf]
    #[arg(long, value_name = "grpc|http/protobuf")]
    pub(crate) protocol: Option<Protocol>,
    /// A header of every request, may be repeated; secrets belong into OTEL_EXPORTER_OTLP_HEADERS
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) header: Vec<String>,
}

impl Receiver {
    pub(crate) fn typed(&self) -> Typed<'_> {
        Typed {
            url: self.endpoint.as_deref(),
            protocol: self.protocol,
            headers: &self.header,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) receiver: Receiver,
    /// Policy file to check, may be repeated [default: the built-in one]
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Vec<PathBuf>,
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    Otlp,
    OtlpJson,
    Fara,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Eval {
    /// Run eval cases with their recorded replies
    Run(EvalRun),
}

#[derive(Debug, Args)]
pub(crate) struct EvalRun {
    /// Case files, or directories of them
    #[arg(default_value = "evals")]
    pub(crate) paths: Vec<PathBuf>,
    /// Only cases whose id contains PATTERN
    #[arg(short = 'k', value_name = "PATTERN")]
    pub(crate) pattern: Option<String>,
    /// Use these replies instead of the case's
    #[arg(long, value_name = "FILE")]
    pub(crate) cassette: Option<PathBuf>,
    /// Override whether linked tests enter the context
    #[arg(long, value_name = "on|off")]
    pub(crate) context_tests: Option<OnOff>,
    #[arg(long)]
    pub(crate) json: bool,
}

/// The table that `--help` and the README show.
pub(crate) fn exit_codes() -> String {
    let row = |exit: &Exit| {
        let (code, name, when) = exit.row();
        format!("  {code:>3}  {name:<27}  {when}\n")
    };
    format!("Exit codes:\n{}", Exit::ALL.iter().map(row).collect::<String>())
}

/// Parses the arguments; help and wrong ones are answered here.
pub(crate) fn parse(environment: &Environment) -> Result<Cli, Exit> {
    use clap::{CommandFactory as _, FromArgMatches as _};
    let command = Cli::command().after_long_help(exit_codes());
    let parsed = command
        .try_get_matches_from(&environment.args)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map_err(|error| {
        // Clap's own printing goes to the right stream; if that is closed, nobody is left to be told.
        error.print().ok();
        let answered = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        if answered { Exit::Ok } else { Exit::Usage }
    })
}
