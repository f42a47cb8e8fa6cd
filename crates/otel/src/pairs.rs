//! Lists of `name=value` with percent-encoding, as `OTEL_RESOURCE_ATTRIBUTES` and the variables of headers have them.

use std::collections::BTreeMap;

/// Returns the pairs of a list with commas; an entry that is not `name=value` makes all of them void, as OpenTelemetry asks of
/// resource attributes. Empty entries are passed over; of two with one name the last counts.
#[must_use]
pub fn parse_pairs(text: &str) -> Option<BTreeMap<String, String>> {
    let entries = text.split(',').filter(|entry| !entry.trim().is_empty());
    entries
        .map(|entry| {
            let (name, value) = entry.split_once('=')?;
            let name = decode_percent(name.trim())?;
            (!name.is_empty()).then_some((name, decode_percent(value.trim())?))
        })
        .collect()
}

/// Undoes percent-encoding; nothing if it is none, or no UTF-8.
pub(crate) fn decode_percent(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded_or_void() {
        let check = |text: &str, wanted: Option<&[(&str, &str)]>| {
            let wanted = wanted.map(|pairs| {
                let owned = pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
                owned.collect::<BTreeMap<_, _>>()
            });
            assert_eq!(parse_pairs(text), wanted, "{text}");
        };
        check(
            "deployment.environment=ci, team=a%2Cb%3D,",
            Some(&[("deployment.environment", "ci"), ("team", "a,b=")]),
        );
        check("a=%E4%B8%AD", Some(&[("a", "中")]));
        check("", Some(&[]));
        for void in ["a", "=b", "a=%", "a=%zz", "a=%ff", "a=1,b"] {
            check(void, None);
        }
    }
}
