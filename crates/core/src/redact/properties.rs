//! What holds for all input: fixed points, registered values that never survive, JSON that stays JSON, digests that stay.

#![expect(clippy::string_slice, reason = "a wrong cut fails the test")]

use super::tests::{Record, SCHEMA, knowing, letters, redactor};
use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn secret_value() -> impl Strategy<Value = String> {
    "[A-Za-z0-9!#%&/+=_.~-]{10,40}"
        .prop_filter("random enough", |value| value::looks_secret(value.as_bytes()))
}

fn fragment() -> impl Strategy<Value = String> {
    let token = any::<u64>().prop_map(|seed| format!("gh{}_{}", 'p', letters(seed, 36)));
    let pieces = prop_oneof![
        Just("password="),
        Just("\"token\": \""),
        Just("\""),
        Just("\\\""),
        Just("\\"),
        Just("://u:"),
        Just("@h/"),
        Just("Authorization: Bearer "),
        Just("[REDACTED:jwt:0a1b2c]"),
        Just("[REDACTED:"),
        Just("\x1b[31m"),
        Just("\\u005f"),
        Just("\n"),
        Just(" "),
        Just("Cookie: a="),
        Just(";"),
        Just("eyJhbGciOiJub25lIn0."),
        Just("--secret "),
        Just("'"),
        Just("="),
        Just("sk-"),
        Just("LS0tLS1CRUdJTi"),
    ]
    .prop_map(str::to_owned);
    prop_oneof![3 => pieces, 1 => token, 2 => "[A-Za-z0-9._/-]{1,24}", 1 => "\\PC{0,4}"]
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::collection::vec(fragment(), 0..4).prop_map(|parts| Value::from(parts.concat())),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let key = prop_oneof![
            Just("password".to_owned()),
            Just("cookie".to_owned()),
            "[a-z]{1,6}"
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// The form of a document without its strings.
fn shape(value: &Value) -> Value {
    match value {
        Value::String(_) => json!("s"),
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), shape(value)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// What stands in texts where it matters what stands beside it: every key and name, the beginnings of secrets, escapes, noise.
fn piece() -> impl Strategy<Value = String> {
    let keys: Vec<_> = rules::RULES.iter().map(|rule| rule.key.to_owned()).collect();
    let names: Vec<_> = names::WORDS.iter().map(|(word, _)| (*word).to_owned()).collect();
    let around = [
        "=",
        ": ",
        ":",
        " ",
        "\t",
        "\n",
        "\"",
        "\\\"",
        "'",
        "\\",
        "\\n",
        "\\u005f",
        "\\u0065",
        "\\u001b[1m",
        "\x1b[m",
        "\0",
        "\0\0",
        "-",
        "_",
        ".",
        "/",
        "+",
        "?",
        "&",
        ";",
        ",",
        "%3D",
        "@",
        "(",
        "{",
        "a",
        "7",
        "u:",
        "curl",
        "login x ",
        "_prod",
        "max_",
        "é",
        "[REDACTED:",
        "[REDACTED:jwt:0a1b2c]",
        "Bearer ",
        "b3:",
        "PRIVATE KEY-----\n",
        "RSA ",
        "JhbGciOiJub25lIn0.",
    ]
    .map(str::to_owned);
    prop_oneof![
        3 => prop::sample::select(keys),
        3 => prop::sample::select(names).prop_flat_map(|name| prop_oneof![Just(name.clone()), Just(name.to_ascii_uppercase())]),
        4 => prop::sample::select(around.to_vec()),
        3 => (any::<u64>(), 1_usize..90).prop_map(|(seed, length)| letters(seed, length)),
        1 => (any::<u64>(), 1_usize..70).prop_map(|(seed, length)| encodings::hex(letters(seed, length).as_bytes(), false)),
        1 => any::<u64>().prop_map(|seed| encodings::base64(letters(seed, 33).as_bytes(), encodings::Alphabet::Standard)),
    ]
}

/// The same redactor without look ahead.
fn exact(redactor: &Redactor, values: &[String]) -> Redactor {
    let registered: Vec<_> = values
        .iter()
        .map(|value| Registered {
            name: "NAME".to_owned(),
            value: value.clone(),
        })
        .collect();
    Redactor {
        engine: Arc::new(Engine {
            key: redactor.engine.key.clone(),
            known: Known::new(&registered),
            exact: true,
        }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 768, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn looking_ahead_changes_neither_text_nor_findings(
        parts in prop::collection::vec(piece(), 0..14),
        pads in prop::sample::select(vec![0_usize, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3]),
    ) {
        // A block boundary of the walk lies somewhere in the text.
        let text = format!("{}{}", " ".repeat(pads * 32_768 - pads * 21), parts.concat());
        let fast = redactor();
        let slow = exact(&fast, &[]);
        prop_assert_eq!(fast.text(&text), slow.text(&text), "{:?}", parts);
        let wide: Vec<u8> = parts.concat().encode_utf16().flat_map(u16::to_le_bytes).collect();
        prop_assert_eq!(fast.bytes(&wide), slow.bytes(&wide));
        let (mut one, mut other) = (json!({text.clone(): [parts]}), json!({text: [parts]}));
        prop_assert_eq!(fast.json(&mut one), slow.json(&mut other));
        prop_assert_eq!(one, other);
    }

    #[test]
    fn keys_are_reported_in_the_order_in_which_automata_report_them(
        parts in prop::collection::vec(piece(), 0..40),
        before in 32_600_usize..32_800,
    ) {
        for text in [parts.concat(), format!("{}{}", " ".repeat(before), parts.concat())] {
            let (mut found, mut all) = (Vec::new(), Vec::new());
            anchors::ANCHORS.walk(text.as_bytes(), |hit| found.push(hit));
            exact::walk(text.as_bytes(), |hit| all.push(hit));
            // A short key is left out where no rule accepts what stands beside it.
            all.retain(|hit| hit.end - hit.start >= 4 || found.contains(hit));
            for shape in [true, false] {
                let of = |hits: &[anchors::Hit]| -> Vec<_> {
                    hits.iter().copied().filter(|hit| matches!(hit.row, anchors::Row::Shape(_)) == shape).collect()
                };
                prop_assert_eq!(of(&found), of(&all), "{:?}", parts);
            }
        }
    }

    #[test]
    fn a_record_that_is_called_clean_is_one_that_the_walk_leaves_alone(
        output in prop::collection::vec(piece(), 0..3),
        key in prop_oneof![piece(), Just("id".to_owned()), Just("name".to_owned()), Just("value".to_owned())],
        arguments in document(),
        token in document(),
        nested in 0_usize..3,
        digits in prop_oneof![Just("12345678901".to_owned()), Just("1234567890.5".to_owned())],
    ) {
        let redactor = knowing(&[&digits]);
        let number: Value = serde_json::from_str(&digits).unwrap();
        let mut inner = json!({key.clone(): output.concat(), "id": number, "other": arguments});
        for _ in 0..nested {
            inner = json!({"text": inner.to_string(), "list": [number, {key.clone(): key}]});
        }
        for (arguments, token) in [(inner.clone(), token), (arguments, Value::from(key)), (Value::Null, inner)] {
            let record = Record { id: digits.clone(), count: 7, output: output.concat(), arguments, token };
            let fast = redactor.scrub(&record, &SCHEMA);
            let slow = redactor.scrub_as_value(&record, &SCHEMA);
            prop_assert_eq!(fast, slow, "{:?}", record);
        }
    }

    #[test]
    fn registered_values_are_found_where_an_automaton_finds_them(
        values in prop::collection::vec(prop_oneof!["[a-z]{8,9}", "[ab]{8,20}", "[A-Za-z0-9+/\"\\\\ é]{8,30}", "(ab){4,20}"], 1..6),
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..12, 0_usize..9), 0..9),
    ) {
        let borrowed: Vec<_> = values.iter().map(String::as_str).collect();
        let fast = knowing(&borrowed);
        let slow = exact(&fast, &values);
        let mut bytes = Vec::new();
        for (index, form, cut) in picks {
            let value = index.get(&values);
            let spelled = match form {
                0 => encodings::hex(value.as_bytes(), true),
                1 => encodings::base64(format!("{}{value}", "x".repeat(cut)).as_bytes(), encodings::Alphabet::Url),
                2 => encodings::json(value, true, true),
                3 => encodings::percent(value.as_bytes(), b"", false, true),
                4 => value.bytes().skip(cut).map(char::from).collect(),
                5 => value.bytes().take(cut).map(char::from).collect(),
                6 => " ".repeat(cut),
                _ => value.clone(),
            };
            bytes.extend_from_slice(spelled.as_bytes());
        }
        prop_assert_eq!(fast.bytes(&bytes), slow.bytes(&bytes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn redaction_is_idempotent(parts in prop::collection::vec(fragment(), 0..12)) {
        let text = parts.concat();
        let redactor = redactor();
        let (once, findings) = redactor.text(&text);
        prop_assert!(findings.iter().all(|(rule, _)| rule != "redactor-error"), "{}", text);
        prop_assert_eq!(redactor.text(&once).0, once.as_ref(), "from {}", text);
    }

    #[test]
    fn arbitrary_bytes_are_never_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let (once, _) = redactor().bytes(&bytes).clone();
        let redactor = redactor();
        prop_assert_eq!(redactor.bytes(&once).0, once.as_ref());
    }

    #[test]
    fn a_registered_value_never_survives(value in secret_value(), before in "[a-z \"\\\\]{0,9}", after in "[a-z \"\\\\]{0,9}") {
        let redactor = knowing(&[&value]);
        prop_assume!(redactor.refused().is_empty());
        let text = format!("{before}{value}{after}");
        let spelled = [
            text.clone(),
            serde_json::to_string(&text).unwrap(),
            serde_json::to_string(&serde_json::to_string(&text).unwrap()).unwrap(),
            encodings::percent(text.as_bytes(), b"", true, false),
            encodings::hex(text.as_bytes(), false),
            encodings::base64(text.as_bytes(), encodings::Alphabet::Standard),
            encodings::base64(text.as_bytes(), encodings::Alphabet::Url),
        ];
        for spelling in &spelled {
            let (redacted, findings) = redactor.text(spelling);
            prop_assert!(!redacted.contains(&value));
            prop_assert!(!findings.is_empty(), "{}", spelling);
        }
        let (redacted, _) = redactor.text(&spelled[2]);
        let inner: String = serde_json::from_str(&redacted).unwrap();
        prop_assert!(serde_json::from_str::<String>(&inner).is_ok(), "{}", redacted);
    }

    #[test]
    fn json_keeps_its_shape_as_text_and_as_value(document in document()) {
        let redactor = redactor();
        let mut redacted = document.clone();
        redactor.json(&mut redacted);
        prop_assert_eq!(shape(&redacted), shape(&document));
        let mut again = redacted.clone();
        prop_assert!(redactor.json(&mut again).is_empty());
        prop_assert_eq!(&again, &redacted);
        for text in [document.to_string(), serde_json::to_string_pretty(&document).unwrap(), json!(document.to_string()).to_string()] {
            let (redacted, _) = redactor.text(&text);
            let parsed: Value = serde_json::from_str(&redacted).unwrap();
            let parsed = parsed.as_str().map_or_else(|| Ok(parsed.clone()), serde_json::from_str);
            if text.starts_with(['{', '[']) {
                prop_assert_eq!(shape(&parsed.unwrap()), shape(&document));
            }
        }
    }

    #[test]
    fn hex_digests_and_uuids_are_evidence(bytes in any::<[u8; 32]>(), length in prop::sample::select(vec![7_usize, 16, 32, 40, 64])) {
        let digest = &encodings::hex(&bytes, false)[..length];
        let uuid = format!("{}-{}-{}", &encodings::hex(&bytes, false)[..8], &encodings::hex(&bytes, false)[8..12], digest);
        for text in [format!("commit {digest}"), format!("b3:{digest}"), format!("\"id\": \"{digest}\""), format!("id={uuid}"), format!("x-{digest}")] {
            prop_assert_eq!(redactor().text(&text).0, text.as_str());
        }
    }
}
