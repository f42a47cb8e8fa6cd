//! Texts with secrets that must go, and texts without that must stay as they are, byte for byte.
//!
//! A case is redacted as bytes where it has some, as text, and, where it is JSON, as a JSON value too. `secrets` and
//! `secrets_stretch` count the cases of their tiers; those that come in chunks are redacted joined, because nothing redacts
//! streams yet, and are counted apart as `secrets_chunked`.

use super::{Tally, cases};
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use tracegate_core::redact::{RedactionKey, Redactor, Registered};

#[derive(Deserialize)]
struct Case {
    id: String,
    #[serde(default)]
    tier: Tier,
    text: String,
    #[serde(default)]
    must_not_contain: Vec<String>,
    #[serde(default)]
    known_values: Vec<String>,
    chunks: Option<Vec<String>>,
    bytes_b64: Option<String>,
    same_tag: Option<usize>,
    #[serde(default)]
    json_decoded: bool,
    #[serde(default)]
    utf16: bool,
}

#[derive(Deserialize, Default, PartialEq, Eq, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Tier {
    #[default]
    Core,
    Hard,
    Stretch,
}

static ANSI: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[@-Z\\\\-_])").unwrap()
});
static PLACEHOLDER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\[REDACTED:[a-z0-9-]+:([0-9a-f]{6})\]").unwrap());

fn redactor(case: &Case) -> Redactor {
    let registered: Vec<Registered> = (1..)
        .zip(&case.known_values)
        .map(|(number, value)| Registered {
            name: format!("KNOWN_{number}"),
            value: value.clone(),
        })
        .collect();
    Redactor::new(RedactionKey::from_bytes([7; 32]), &registered)
}

/// Decodes base64 with padding.
fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<usize> = text
        .trim_end_matches('=')
        .chars()
        .map(|digit| DIGITS.find(digit).unwrap())
        .collect();
    let bits = |four: &[usize]| {
        (0..4).fold(0, |bits, at| {
            bits << 6 | four.get(at).copied().unwrap_or_default()
        })
    };
    let groups = digits.chunks(4).flat_map(|four| {
        let bytes = u32::try_from(bits(four)).unwrap().to_be_bytes();
        bytes[1..four.len()].to_vec()
    });
    groups.collect()
}

/// Every string of a JSON value, keys included, and JSON that stands in strings.
fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            found.push(text.clone());
            if let Ok(inner @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text) {
                strings(&inner, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Value::Object(map) => map.iter().for_each(|(key, item)| {
            found.push(key.clone());
            strings(item, found);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Tells whether `after` has the shape of `before`; a number that is a known value may have become a string.
fn same_shape(before: &Value, after: &Value, known: &[String]) -> bool {
    match (before, after) {
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len() && before.iter().zip(after).all(|(b, a)| same_shape(b, a, known))
        }
        (Value::Object(before), Value::Object(after)) => {
            let mut pairs = before.values().zip(after.values());
            before.len() == after.len() && pairs.all(|(b, a)| same_shape(b, a, known))
        }
        (Value::Number(number), Value::String(_)) => known.contains(&number.to_string()),
        (Value::String(_), Value::String(_)) => true,
        (before, after) => before == after,
    }
}

fn json(text: &str) -> Option<Value> {
    serde_json::from_str(text)
        .ok()
        .filter(|value: &Value| value.is_object() || value.is_array())
}

fn leaks(case: &Case, shown: &str, how: &str) -> Result<(), String> {
    let plain = ANSI.replace_all(shown, "");
    let leaked = |text: &str| {
        case.must_not_contain
            .iter()
            .position(|secret| text.contains(secret))
    };
    match leaked(shown).or_else(|| leaked(&plain)) {
        // Which one is enough: the case holds it, and a log of this test should not.
        Some(which) => Err(format!("must_not_contain[{which}] is in the output, {how}")),
        None => Ok(()),
    }
}

fn decoded(case: &Case, value: &Value, how: &str) -> Result<(), String> {
    let mut found = Vec::new();
    strings(value, &mut found);
    found.iter().try_for_each(|text| leaks(case, text, how))
}

fn check(case: &Case) -> Result<(), String> {
    let redactor = redactor(case);
    let input = case
        .bytes_b64
        .as_deref()
        .map_or_else(|| case.text.clone().into_bytes(), base64);
    let output = redactor.bytes(&input).0.into_owned();
    if redactor.bytes(&output).0 != output {
        return Err("the output is no fixed point".to_owned());
    }
    let shown = String::from_utf8_lossy(&output).into_owned();
    leaks(case, &shown, "as bytes")?;
    if case.utf16 {
        for read in [u16::from_le_bytes as fn([u8; 2]) -> u16, u16::from_be_bytes] {
            let units: Vec<u16> = output
                .chunks_exact(2)
                .map(|pair| read([pair[0], pair[1]]))
                .collect();
            leaks(case, &String::from_utf16_lossy(&units), "as UTF-16")?;
        }
    }
    if case.bytes_b64.is_none() {
        let (text, _) = redactor.text(&case.text);
        if text.as_bytes() != output {
            return Err("text and bytes are redacted differently".to_owned());
        }
    }
    if let Some(wanted) = case.same_tag {
        let tags: Vec<&str> = PLACEHOLDER
            .captures_iter(&shown)
            .map(|found| found.get(1).unwrap().as_str())
            .collect();
        if tags.len() != wanted || tags.iter().any(|tag| *tag != tags[0]) {
            return Err(format!("tags are {tags:?}, wanted {wanted} equal ones"));
        }
    }
    let Some(before) = json(&case.text) else {
        return if case.json_decoded {
            Err("the case says JSON and is none".to_owned())
        } else {
            Ok(())
        };
    };
    let after = json(&shown).ok_or("JSON is JSON no more")?;
    if !same_shape(&before, &after, &case.known_values) {
        return Err("the JSON has another shape".to_owned());
    }
    decoded(case, &after, "in a decoded string")?;
    let mut value = before.clone();
    redactor.json(&mut value);
    if !same_shape(&before, &value, &case.known_values) {
        return Err("the JSON value has another shape".to_owned());
    }
    leaks(case, &value.to_string(), "as a JSON value")?;
    decoded(case, &value, "in a string of the JSON value")?;
    let mut again = value.clone();
    redactor.json(&mut again);
    if again != value {
        return Err("the JSON value is no fixed point".to_owned());
    }
    Ok(())
}

#[test]
fn no_labelled_secret_is_left() {
    let Some(cases) = cases::<Case>("secrets.dev.jsonl.gz") else {
        return;
    };
    let mut gated = Tally::new("secrets");
    let mut stretch = Tally::new("secrets_stretch");
    let mut chunked = Tally::new("secrets_chunked");
    for case in &cases {
        if let Some(chunks) = &case.chunks {
            assert_eq!(
                chunks.concat(),
                case.text,
                "{}: chunks joined are the text",
                case.id
            );
            chunked.count(&case.id, check(case));
            continue;
        }
        match case.tier {
            Tier::Core | Tier::Hard => gated.count(&case.id, check(case)),
            Tier::Stretch => stretch.count(&case.id, check(case)),
        }
    }
    gated.print();
    stretch.print();
    chunked.print();
    assert_eq!(gated.failed, Vec::<String>::new(), "secrets are left");
}

fn unchanged(case: &Case) -> Result<(), String> {
    let redactor = redactor(case);
    let (text, _) = redactor.text(&case.text);
    if text != case.text {
        return Err("the text is changed".to_owned());
    }
    let Some(before) = json(&case.text) else {
        return Ok(());
    };
    let mut after = before.clone();
    redactor.json(&mut after);
    (before == after)
        .then_some(())
        .ok_or_else(|| "the JSON value is changed".to_owned())
}

#[test]
fn benign_text_stays_as_it_is() {
    let Some(cases) = cases::<Case>("benign.dev.jsonl.gz") else {
        return;
    };
    let mut tally = Tally::new("benign");
    for case in &cases {
        tally.count(&case.id, unchanged(case));
    }
    tally.print();
    assert_eq!(tally.failed, Vec::<String>::new(), "benign text is changed");
}

#[test]
fn the_checks_of_a_case_notice_what_is_left() {
    let case = |text: &str, secret: &str| Case {
        id: "x".to_owned(),
        tier: Tier::Core,
        text: text.to_owned(),
        must_not_contain: vec![secret.to_owned()],
        known_values: Vec::new(),
        chunks: None,
        bytes_b64: None,
        same_tag: None,
        json_decoded: false,
        utf16: false,
    };
    assert!(check(&case("no secret at all, left", "left")).is_err());
    assert!(check(&case("coloured: le\x1b[1mft", "left")).is_err());
    assert!(check(&case(r#"{"a":["le\u0066t"]}"#, "left")).is_err());
    assert!(check(&case("nothing here", "left")).is_ok());
    assert_eq!(base64("aGVsbG8="), b"hello");
}
