//! How fast secrets are looked for: one table, CPU time of this thread, the best of several rounds.
//!
//! `cargo bench -p tracegate-core --bench redaction`; a word after `--` keeps the rows that contain it. Texts are generated, the
//! same each time; what looks like a secret is put together at run time.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a bench reports on standard output and may fail"
)]

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json, value::to_raw_value};
use std::fmt::Write as _;
use std::hint::black_box;
use tracegate_core::{
    event::Event,
    fact::{Fact, is_free_key, is_schema_key},
    ids::{Chain, SegmentNo, Seq, Timestamp},
    redact::{RedactionKey, Redactor, Registered, Schema},
};

/// A generator of numbers, the same ones each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }

    fn letters(&mut self, alphabet: &str, length: usize) -> String {
        (0..length)
            .map(|_| char::from(alphabet.as_bytes()[self.roll(alphabet.len())]))
            .collect()
    }
}

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";

/// Names as code has them. One in twenty ends like the name of a secret or begins like a token: more than in code that people write.
const NAMES: &[&str] = &[
    "alpha",
    "beam",
    "cache",
    "diff",
    "edge",
    "field",
    "graph",
    "header",
    "inner",
    "journal",
    "kind",
    "label",
    "merge",
    "node",
    "order",
    "piece",
    "query",
    "range",
    "scope",
    "table",
    "unit",
    "vertex",
    "width",
    "zone",
    "above",
    "below",
    "column",
    "deadline",
    "effect",
    "folder",
    "global",
    "hook",
    "import",
    "join",
    "known",
    "level",
    "margin",
    "number",
    "output",
    "parent",
    "quota",
    "region",
    "segment",
    "total",
    "update",
    "version",
    "window",
    "yield",
    "anchor",
    "branch",
    "cursor",
    "driver",
    "engine",
    "filter",
    "index",
    "path",
    "token",
    "core_id",
    "config",
    "is_empty",
    "store",
    "writer",
    "author",
    "pattern",
    "request",
    "response",
    "key",
    "cookie_jar",
    "buffer",
    "offset",
    "len",
    "next",
    "state",
    "secret_name",
    "max_tokens",
    "result",
    "handle",
    "parse_header",
    "task",
    "risk_level",
    "session",
    "precision",
    "special",
    "value",
    "map",
    "items",
    "password_field",
    "entry",
    "child",
    "visit",
    "walk",
    "resolve",
    "encode",
    "stream",
    "desk",
    "auth",
];
const TYPES: &[&str] = &[
    "usize",
    "String",
    "Option<Seq>",
    "&str",
    "Vec<Row>",
    "Token",
    "Result<(), Error>",
    "PathBuf",
];
const COMMENTS: &[&str] = &[
    "The order matters: the caller has taken the lock already.",
    "See https://example.com/docs/rfc/9110#section-5.6 for the grammar.",
    "A token is returned to the pool when the last reader is gone.",
    "Falls back to the path of the manifest, as the tool itself does.",
    "Keys are compared without case; `authorization: none` is a special one.",
];

fn source(size: usize) -> String {
    let mut dice = Dice(1);
    let mut text = String::new();
    while text.len() < size {
        let depth = "    ".repeat(dice.roll(5));
        let (a, b, c) = (dice.pick(NAMES), dice.pick(NAMES), dice.pick(NAMES));
        let line = match dice.roll(9) {
            0 => format!("{depth}/// {}", dice.pick(COMMENTS)),
            1 => format!(
                "{depth}pub fn {a}_{b}(&self, {c}: {}) -> {} {{",
                dice.pick(TYPES),
                dice.pick(TYPES)
            ),
            2 => format!("{depth}if self.{a}.{b}() > {c} && !{a}[{b}..].is_empty() {{"),
            3 => format!("{depth}let {a} = self.{b}.iter().map(|{c}| {c}.{a}).collect::<Vec<_>>();"),
            4 => format!("{depth}{a}: {},", dice.pick(TYPES)),
            5 => format!("{depth}return Err(Error::{a}(format!(\"cannot read `{{}}`: {b} {c}\", {a})));"),
            6 => format!("{depth}}}"),
            7 => format!(
                "{depth}assert_eq!({a}({b}, {}), Some(\"{c}\"));",
                dice.roll(10_000)
            ),
            _ => String::new(),
        };
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn log(size: usize, coloured: bool) -> String {
    let mut dice = Dice(2);
    let mut text = String::new();
    while text.len() < size {
        let level = dice.pick(&["INFO", "WARN", "DEBUG", "ERROR"]);
        let level = if coloured {
            format!("\x1b[32m{level}\x1b[0m")
        } else {
            level.to_owned()
        };
        write!(
            text,
            "2026-11-{:02}T{:02}:{:02}:07.{:06}Z {level} [{}::{}] ",
            dice.roll(30) + 1,
            dice.roll(24),
            dice.roll(60),
            dice.roll(1_000_000),
            dice.pick(NAMES),
            dice.pick(NAMES)
        )
        .unwrap();
        let line = match dice.roll(6) {
            0 => format!(
                "GET /api/v1/{}/{}?page={} HTTP/1.1 200 {}ms",
                dice.pick(NAMES),
                dice.roll(9999),
                dice.roll(99),
                dice.roll(500)
            ),
            1 => format!(
                "request_id={} took={}us peer=10.0.{}.{}:443",
                dice.letters(HEX, 32),
                dice.roll(99999),
                dice.roll(256),
                dice.roll(256)
            ),
            2 => format!(
                "Compiling {} v1.{}.{} (registry+https://example.com/index)",
                dice.pick(NAMES),
                dice.roll(40),
                dice.roll(9)
            ),
            3 => format!(
                "checked out {} into /var/lib/{}/{}",
                dice.letters(HEX, 40),
                dice.pick(NAMES),
                dice.pick(NAMES)
            ),
            4 => format!(
                "{} of {} items done, {} tokens used",
                dice.roll(100),
                dice.roll(1000),
                dice.roll(100_000)
            ),
            _ => format!("worker {} is idle; {}", dice.roll(64), dice.pick(COMMENTS)),
        };
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn documents(size: usize) -> String {
    let mut dice = Dice(3);
    let mut text = String::new();
    while text.len() < size {
        let line = json!({
            "id": dice.letters(HEX, 16),
            "trace": dice.letters(HEX, 32),
            "name": dice.pick(NAMES),
            "usage": {"input_tokens": dice.roll(100_000), "output_tokens": dice.roll(4000), "cached": dice.roll(2) == 0},
            "args": {"path": format!("src/{}/{}.rs", dice.pick(NAMES), dice.pick(NAMES)), "range": [dice.roll(100), dice.roll(900)]},
            "output": format!("{}\n\tfn {}() {{ \"{}\" }}\n", dice.pick(COMMENTS), dice.pick(NAMES), dice.pick(NAMES)),
            "digest": format!("b3:{}", dice.letters(HEX, 64)),
            "ok": true,
            "error": Value::Null,
        });
        writeln!(text, "{line}").unwrap();
    }
    text
}

fn registered() -> Vec<Registered> {
    let mut dice = Dice(4);
    let one = |number: usize| {
        let length = 16 + dice.roll(48);
        let value = match number % 5 {
            0 => format!("gh{}_{}", 'p', dice.letters(ALNUM, 36)),
            1 => format!("{}/+{}==", dice.letters(ALNUM, length), dice.letters(ALNUM, 8)),
            2 => format!(
                "{}\"{}\\&{}",
                dice.letters(ALNUM, 9),
                dice.letters(ALNUM, 7),
                dice.letters(ALNUM, 5)
            ),
            3 => dice.letters(HEX, 40),
            _ => dice.letters(ALNUM, length),
        };
        Registered {
            name: format!("TOKEN_{number}"),
            value,
        }
    };
    (0..50).map(one).collect()
}

/// Texts whose parts begin like secrets all the time.
fn adversarial() -> Vec<(String, String)> {
    let mut dice = Dice(5);
    let begin = format!("-----BEGIN RSA {} KEY-----\n", "PRIVATE");
    let mut rows: Vec<_> = [
        "password=",
        "password=\"",
        "password='x\"",
        "secret=\\\"",
        "Cookie: ",
        "Cookie: a=b; ",
        "cookie:a=",
        "authorization:bearer+",
        "://a:",
        "://a:b@",
        "sk-",
        "eyJ",
        "eyJ-",
        "ghp_",
        "-u a:bcde ",
        "login a password ",
        "AKIA",
        "LS0tLS1CRUdJTi",
        "[REDACTED:",
        "\\u00",
        "\\u0041",
        "\x1b[",
        "\x1b[m",
        "password=;",
        "token ",
        "pat",
        "re_",
        "Q~",
        "a1Q~",
        "SK",
        ":AA",
        "12345678:AA",
        " ",
        "\\",
        "\"",
        "[",
        "path",
        "auth: ",
    ]
    .into_iter()
    .map(str::to_owned)
    .chain([begin])
    .map(|unit| (format!("adversarial {unit:?}"), unit.repeat(SIZE / unit.len())))
    .collect();
    let noise: String = dice.letters(ALNUM, SIZE);
    rows.push(("adversarial letters".to_owned(), noise));
    // The beginning of a registered value, again and again.
    let values = registered();
    let head = &values[1].value[..15];
    rows.push((
        "adversarial nearly registered".to_owned(),
        head.repeat(SIZE / head.len()),
    ));
    let wide = log(SIZE / 2, false)
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .map(char::from)
        .collect();
    rows.push(("adversarial UTF-16".to_owned(), wide));
    let token = format!("gh{}_{} ", 'p', dice.letters(ALNUM, 36));
    rows.push((
        "adversarial all tokens".to_owned(),
        token.repeat(SIZE / token.len()),
    ));
    rows
}

const SIZE: usize = 1 << 20;

fn seconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    #[expect(clippy::cast_precision_loss, reason = "a duration to print")]
    let (whole, rest) = (now.tv_sec as f64, now.tv_nsec as f64);
    rest.mul_add(1e-9, whole)
}

/// Seconds that one call takes, the best of several rounds.
fn best<T>(calls: u32, mut call: impl FnMut() -> T) -> f64 {
    let round = |_| {
        let before = seconds();
        for _ in 0..calls {
            drop(black_box(call()));
        }
        (seconds() - before) / f64::from(calls)
    };
    (0..7).map(round).fold(f64::INFINITY, f64::min)
}

fn event() -> Event {
    let run = "run_x_20261130_00000000".parse().unwrap();
    let mut dice = Dice(6);
    let data = json!({
        "outcome": "ok",
        "exit_code": 0,
        "output": source(560),
        "output_chars": 560,
        "truncated": false,
        "duration_ms": 1234,
        "sideEffects": [{
            "type": "write_file",
            "relativePath": "src/token/path.rs",
            "before": format!("b3:{}", dice.letters(HEX, 64)),
            "after": format!("b3:{}", dice.letters(HEX, 64)),
        }],
    });
    let fact = Fact::from_json("tool.execute.finished", &to_raw_value(&data).unwrap()).unwrap();
    assert!(!matches!(fact, Fact::Unknown { .. }));
    Event::new(
        &run,
        Seq(77),
        SegmentNo(1),
        Timestamp(1_796_040_000_000_000_000),
        5_000_000,
        fact,
    )
}

fn main() {
    let filter = std::env::args()
        .skip(1)
        .find(|word| !word.starts_with('-'))
        .unwrap_or_default();
    let redactor = Redactor::new(RedactionKey::from_bytes([7; 32]), &registered());
    let rate = |name: &str, text: &str| {
        if !name.contains(&filter) {
            return;
        }
        let bytes = if name.ends_with("UTF-16") {
            text.chars().map(|byte| u8::try_from(byte).unwrap()).collect()
        } else {
            text.as_bytes().to_vec()
        };
        #[expect(clippy::cast_precision_loss, reason = "a rate to print")]
        let size = bytes.len() as f64;
        let found = redactor.bytes(&bytes).1.total();
        let rate = size / 1e6 / best(1, || redactor.bytes(&bytes).1.total());
        println!("{name:<45} {rate:>8.1} MB/s   {found} found");
    };
    let micros =
        |name: &str, found: u64, taken: f64| println!("{name:<45} {:>8.2} µs     {found} found", taken * 1e6);
    for (name, text) in [
        ("source", source(4 * SIZE)),
        ("log", log(4 * SIZE, false)),
        ("log, coloured", log(4 * SIZE, true)),
        ("JSON", documents(4 * SIZE)),
    ] {
        rate(name, &text);
        let short = &text[..4096];
        if name.contains(&filter) {
            micros(
                &format!("{name}, 4 KiB"),
                redactor.text(short).1.total(),
                best(200, || redactor.text(short)),
            );
        }
    }
    if "event".contains(&filter) {
        let schema = Schema {
            keep: is_schema_key,
            free: is_free_key,
        };
        let event = event();
        let scrubbed = redactor.scrub(&event, &schema).unwrap();
        let chain = Chain::genesis(&"run_x_20261130_00000000".parse().unwrap());
        let length = event.to_line(chain).unwrap().0.len();
        let found = scrubbed.findings().total();
        micros(
            &format!("event of {length} bytes: scrub"),
            found,
            best(200, || redactor.scrub(&event, &schema)),
        );
        micros(
            "event: line and chain",
            0,
            best(200, || scrubbed.get().to_line(chain)),
        );
    }
    if filter.is_empty() || filter.starts_with("adv") {
        for (name, text) in adversarial() {
            rate(&name, &text);
        }
    }
    if "engine".contains(&filter) {
        let values = registered();
        micros(
            "engine with 50 values: build",
            0,
            best(1, || Redactor::new(RedactionKey::from_bytes([7; 32]), &values)),
        );
    }
}
