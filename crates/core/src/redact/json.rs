//! Structured data: secrets in leaves, in keys, under names, in numbers, and in JSON that is a string of JSON.

use super::engine::{Engine, Failed, Layers};
use super::findings::Findings;
use super::names::{self, Sensitive};
use super::{rules, value};
use serde_json::{Map, Value};

/// Strings that hold JSON are opened this many times; below, they are text like any other.
pub(super) const NESTED: usize = 4;

/// Deeper structures are replaced instead of walked, so that no input exhausts the stack.
pub(super) const DEEPEST: usize = 128;

/// Which fields of our own records are never payload.
///
/// The value under a key for which `keep` holds is an id, an enum, a digest or a time that this program wrote: it is left alone, so
/// that a registered value cannot damage a record's structure. Beneath a key for which `free` holds the form is somebody else's
/// (arguments of a tool, say), and `keep` does not count there.
#[derive(Debug, Clone, Copy)]
pub struct Schema {
    /// The value under this key is written by us and holds no payload.
    pub keep: fn(&str) -> bool,
    /// Everything beneath this key is free-form.
    pub free: fn(&str) -> bool,
}

/// Where a walk is.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) depth: usize,
    pub(super) nested: usize,
    /// In a record of ours: its schema. Absent in free-form data.
    pub(super) schema: Option<&'a Schema>,
}

impl<'a> Place<'a> {
    /// Where a walk begins.
    pub(super) const fn top(schema: Option<&'a Schema>) -> Self {
        Self {
            depth: 0,
            nested: 0,
            schema,
        }
    }
}

/// Redacts a JSON value in place.
pub(super) fn redact(
    engine: &Engine,
    value: &mut Value,
    schema: Option<&Schema>,
) -> Result<Findings, Failed> {
    let mut findings = Findings::empty();
    walk(engine, value, Place::top(schema), &mut findings)?;
    Ok(findings)
}

fn walk(engine: &Engine, value: &mut Value, place: Place<'_>, findings: &mut Findings) -> Result<(), Failed> {
    if place.depth > DEEPEST {
        return Err(Failed);
    }
    let below = Place {
        depth: place.depth + 1,
        ..place
    };
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => {
            // A number of our own record has a type that no placeholder fits, and is a count or a time.
            if place.schema.is_none()
                && let Some(known) = engine.known.exactly(&number.to_string())
            {
                findings.count(rules::KNOWN);
                *value =
                    Value::String(engine.placeholder(rules::KNOWN, engine.known.value(known).as_bytes()));
            }
        }
        Value::String(text) => leaf(engine, text, place, findings)?,
        Value::Array(items) => {
            for item in items {
                walk(engine, item, below, findings)?;
            }
        }
        Value::Object(fields) => object(engine, fields, below, findings)?,
    }
    Ok(())
}

fn object(
    engine: &Engine,
    fields: &mut Map<String, Value>,
    place: Place<'_>,
    findings: &mut Findings,
) -> Result<(), Failed> {
    // `{"name": "DB_PASSWORD", "value": "…"}`: the name is a value itself.
    let named = ["name", "key", "Name", "Key"]
        .iter()
        .find_map(|key| fields.get(*key)?.as_str())
        .and_then(names::sensitive);
    let mut renamed = false;
    for (key, value) in fields.iter_mut() {
        let kept = place.schema.is_some_and(|schema| (schema.keep)(key));
        if kept && holds_no_record(value) {
            continue;
        }
        let free = place.schema.is_some_and(|schema| (schema.free)(key));
        let inside = if free {
            Place {
                schema: None,
                ..place
            }
        } else {
            place
        };
        let sensitive =
            names::sensitive(key).or_else(|| named.filter(|_| matches!(key.as_str(), "value" | "Value")));
        let settled = match (sensitive, &mut *value) {
            (Some(Sensitive::Whole(rule)), Value::String(text)) => whole(engine, rule, text, findings)?,
            (Some(Sensitive::IfRandom), Value::String(text)) if random(text) => {
                whole(engine, rules::ASSIGNED, text, findings)?
            }
            (Some(Sensitive::Cookies), Value::String(text)) => {
                cookies(engine, text, findings)?;
                false
            }
            _ => false,
        };
        if !settled {
            walk(engine, value, inside, findings)?;
        }
        renamed |= place.schema.is_none() && engine.settle(key.as_bytes(), Layers::WithoutNames)?.is_some();
    }
    if renamed {
        rename(engine, fields, findings)?;
    }
    Ok(())
}

/// Scalars and lists of scalars; a record under a kept key is walked, because its fields speak for themselves.
fn holds_no_record(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        Value::Array(items) => items.iter().all(holds_no_record),
        Value::Object(_) => false,
    }
}

/// Replaces keys that are secrets themselves. Equal tags of different keys are numbered, so that no entry is lost.
fn rename(engine: &Engine, fields: &mut Map<String, Value>, findings: &mut Findings) -> Result<(), Failed> {
    for (key, value) in std::mem::take(fields) {
        let key = match engine.settle(key.as_bytes(), Layers::WithoutNames)? {
            None => key,
            Some((redacted, found)) => {
                findings.merge(&found);
                String::from_utf8(redacted).map_err(|_| Failed)?
            }
        };
        let mut unique = key.clone();
        let mut number = 2;
        while fields.contains_key(&unique) {
            unique = format!("{key}#{number}");
            number += 1;
        }
        fields.insert(unique, value);
    }
    Ok(())
}

/// Replaces a whole leaf that stands under the name of a secret. Says whether the leaf is settled.
fn whole(
    engine: &Engine,
    rule: &'static str,
    text: &mut String,
    findings: &mut Findings,
) -> Result<bool, Failed> {
    let scheme = if rule == rules::AUTH_HEADER {
        names::scheme_length(text.as_bytes())
    } else {
        0
    };
    let Some((scheme, secret)) = text.split_at_checked(scheme) else {
        return Ok(false);
    };
    let ordinary = matches!(
        secret,
        "true" | "false" | "null" | "none" | "None" | "undefined" | "bearer" | "Bearer"
    );
    if secret.len() < 4 || ordinary || value::reference(secret.as_bytes()) {
        return Ok(false);
    }
    // A rule that knows the whole leaf names it better.
    let known = engine.settle(secret.as_bytes(), Layers::WithoutNames)?;
    if let Some((redacted, found)) = known
        && rules::is_placeholder(&redacted)
    {
        findings.merge(&found);
        *text = format!("{scheme}{}", String::from_utf8(redacted).map_err(|_| Failed)?);
        return Ok(true);
    }
    findings.count(rule);
    *text = format!("{scheme}{}", engine.placeholder(rule, secret.as_bytes()));
    Ok(true)
}

fn random(text: &str) -> bool {
    text.len() >= 16 && value::looks_secret(text.as_bytes())
}

/// Reads a leaf as the value of the header that its key names.
fn cookies(engine: &Engine, text: &mut String, findings: &mut Findings) -> Result<(), Failed> {
    const HEADER: &str = "Cookie: ";
    if let Some((redacted, found)) = engine.settle(format!("{HEADER}{text}").as_bytes(), Layers::All)? {
        let redacted = String::from_utf8(redacted).map_err(|_| Failed)?;
        findings.merge(&found);
        text.clear();
        text.push_str(redacted.strip_prefix(HEADER).ok_or(Failed)?);
    }
    Ok(())
}

fn leaf(engine: &Engine, text: &mut String, place: Place<'_>, findings: &mut Findings) -> Result<(), Failed> {
    if place.nested < NESTED
        && text.trim_start().starts_with(['{', '['])
        && let Ok(mut value) = serde_json::from_str::<Value>(text)
    {
        let mut found = Findings::empty();
        walk(
            engine,
            &mut value,
            Place {
                depth: place.depth,
                nested: place.nested + 1,
                schema: None,
            },
            &mut found,
        )?;
        if !found.is_empty() {
            findings.merge(&found);
            *text = value.to_string();
        }
    }
    if let Some((redacted, found)) = engine.settle(text.as_bytes(), Layers::All)? {
        findings.merge(&found);
        *text = String::from_utf8(redacted).map_err(|_| Failed)?;
    }
    Ok(())
}
