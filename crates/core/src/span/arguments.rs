//! A tool call's arguments as one attribute: small enough for a trace page, and still JSON after shortening.

use crate::payload::clip;
use serde_json::{Map, Value, json};

/// The longest text of the attribute, in bytes.
const MAX_ARGUMENTS: usize = 2 * 1024;
/// To what length strings are cut, tried in this order until the whole fits.
const STRING_LIMITS: [usize; 2] = [256, 64];

/// Returns `args` as JSON text of at most 2 KiB.
///
/// Strings are cut, never the text as a whole: a page that shows the attribute parses it. What is still too long keeps only the
/// leading members that fit; what has no members is replaced by its size.
pub(super) fn arguments(args: &Value) -> String {
    for limit in STRING_LIMITS {
        let text = shorten(args, limit).to_string();
        if text.len() <= MAX_ARGUMENTS {
            return text;
        }
    }
    let size = args.to_string().len();
    let mut kept = Map::new();
    kept.insert("omitted_bytes".to_owned(), json!(size));
    for (key, value) in args.as_object().into_iter().flatten() {
        let short = shorten(value, 64);
        let grown =
            Value::Object(kept.clone()).to_string().len() + key.len() * 6 + short.to_string().len() + 4;
        // The key is counted as if every byte of it needed an escape; `omitted_bytes` itself stays ours.
        if grown > MAX_ARGUMENTS || kept.contains_key(key) {
            break;
        }
        kept.insert(key.clone(), short);
    }
    Value::Object(kept).to_string()
}

fn shorten(value: &Value, limit: usize) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        Value::String(text) => Value::String(clip(text, limit)),
        Value::Array(items) => items.iter().map(|item| shorten(item, limit)).collect(),
        // An artifact reference says where the text is; its previews would only fill the attribute.
        Value::Object(members) if members.get("$ref").is_some_and(Value::is_string) => members
            .iter()
            .filter(|(key, _)| matches!(key.as_str(), "$ref" | "bytes"))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), shorten(value, limit)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stay_json_and_small_whatever_they_hold() {
        let check = |args: Value, wanted: &str| {
            let text = arguments(&args);
            assert!(text.len() <= MAX_ARGUMENTS, "{} bytes", text.len());
            serde_json::from_str::<Value>(&text).unwrap();
            assert!(text.contains(wanted), "`{wanted}` is not in {text}");
        };
        check(json!({"path": "src/math.ts"}), r#"{"path":"src/math.ts"}"#);
        check(json!({"content": "ä\"\n".repeat(5000)}), "bytes omitted]");
        check(
            json!({"path": "a", "content": {"$ref": "b3:00", "bytes": 9000, "head": "x".repeat(900)}}),
            r#"{"path":"a","content":{"$ref":"b3:00","bytes":9000}}"#,
        );
        check(json!({"a": 1, "many": vec!["word"; 4000]}), r#""a":1"#);
        check(json!(vec!["word"; 4000]), "omitted_bytes");
        check(json!({"\u{1}".repeat(3000): 1}), "omitted_bytes");
        check(
            json!({"omitted_bytes": "x".repeat(90), "many": vec![1; 4000]}),
            "omitted_bytes",
        );
        check(Value::Null, "null");
    }
}
