//! What holds for all input: fixed points, registered values that never survive, JSON that stays JSON, digests that stay.

#![expect(clippy::string_slice, reason = "a wrong cut fails the test")]

use super::tests::{knowing, letters, redactor};
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
