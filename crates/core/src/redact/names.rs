//! Values under the name of a secret: `password=…`, `"api_key": "…"`, `Authorization: Bearer …`, `--token …`.

use super::rules::{ASSIGNED, AUTH_HEADER, CLI_ARG, COOKIE, NETRC};
use super::scan::{Scan, Set};
use super::value;
use aho_corasick::{AhoCorasick, AhoCorasickKind};
use std::sync::LazyLock;

/// What kind of value a name announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A password, token or key.
    Secret,
    /// `auth`, which is secret only where a quoted, random value follows at once (`"auth": "…"` of container registries).
    Auth,
    /// A header whose credentials follow a scheme.
    Authorization,
    /// A header with named cookies.
    Cookie,
}

/// The words that end the name of a secret, without case.
pub(super) const WORDS: &[(&str, Kind)] = &[
    ("password", Kind::Secret),
    ("passwd", Kind::Secret),
    ("passphrase", Kind::Secret),
    ("passcode", Kind::Secret),
    ("pwd", Kind::Secret),
    ("secret", Kind::Secret),
    ("token", Kind::Secret),
    ("apikey", Kind::Secret),
    ("api_key", Kind::Secret),
    ("api-key", Kind::Secret),
    ("access_key", Kind::Secret),
    ("access-key", Kind::Secret),
    ("accesskey", Kind::Secret),
    ("secret_key", Kind::Secret),
    ("secret-key", Kind::Secret),
    ("secretkey", Kind::Secret),
    ("private_key", Kind::Secret),
    ("private-key", Kind::Secret),
    ("privatekey", Kind::Secret),
    ("presharedkey", Kind::Secret),
    ("signing_key", Kind::Secret),
    ("signingkey", Kind::Secret),
    ("encryption_key", Kind::Secret),
    ("encryptionkey", Kind::Secret),
    ("master_key", Kind::Secret),
    ("masterkey", Kind::Secret),
    ("account_key", Kind::Secret),
    ("accountkey", Kind::Secret),
    ("auth_key", Kind::Secret),
    ("authkey", Kind::Secret),
    ("application_key", Kind::Secret),
    ("app_key", Kind::Secret),
    ("credential", Kind::Secret),
    ("credentials", Kind::Secret),
    ("auth", Kind::Auth),
    ("authorization", Kind::Authorization),
    ("cookie", Kind::Cookie),
];

/// What may follow the word and still be the name of a secret.
const TAILS: &[&[u8]] = &[
    b"",
    b"_value",
    b"_b64",
    b"_base64",
    b"_prod",
    b"_production",
    b"_staging",
    b"_dev",
    b"_test",
    b"_live",
    b"_old",
    b"_new",
    b"_raw",
    b"_plain",
    b"_primary",
    b"_secondary",
    b"value",
    b"plain",
];

/// What, before the word, makes the name one of a count, a mark or something public.
const HEADS: &[&[u8]] = &[
    b"max_",
    b"min_",
    b"num_",
    b"total_",
    b"prompt_",
    b"completion_",
    b"input_",
    b"output_",
    b"eos_",
    b"bos_",
    b"unk_",
    b"pad_",
    b"sep_",
    b"cls_",
    b"mask_",
    b"public_",
    b"public-",
    b"public",
    b"publishable_",
    b"next_",
    b"nextpage",
    b"page_",
    b"next_page_",
    b"continuation_",
    b"no_",
    b"has_",
    b"is_",
    b"use_",
];

/// The words, to search in one name; nothing if they do not compile, in which case nothing may be written.
pub(super) static NAMES: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .ascii_case_insensitive(true)
        .build(WORDS.iter().map(|(word, _)| *word))
        .ok()
});

/// A value that was found: where, and under which rule.
pub(super) type Found = (usize, usize, &'static str);

/// What the key of a JSON object says about its string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sensitive {
    /// The whole string is secret, under this rule.
    Whole(&'static str),
    /// The string is secret if it looks random: the name also names settings.
    IfRandom,
    /// The string is a cookie header.
    Cookies,
}

/// Says whether a whole name, such as the key of a JSON object, is one of a secret.
pub(super) fn sensitive(name: &str) -> Option<Sensitive> {
    let bytes = name.as_bytes();
    if !NAMES.as_ref()?.is_match(bytes) {
        return None;
    }
    let view = super::view::View::new(bytes, super::view::Reading::Plain, |_| false);
    let scan = Scan::new(&view);
    let words = NAMES.as_ref()?.try_find_overlapping_iter(bytes).ok()?;
    words
        .filter(|word| name_end(&scan, word.start(), word.end()) == Some(bytes.len()))
        .filter_map(|word| {
            WORDS
                .get(word.pattern().as_usize())
                .map(|(_, kind)| (word.start(), *kind))
        })
        .filter_map(|(start, kind)| match kind {
            Kind::Secret => Some(Sensitive::Whole(ASSIGNED)),
            Kind::Authorization => Some(Sensitive::Whole(AUTH_HEADER)),
            Kind::Cookie => Some(Sensitive::Cookies),
            Kind::Auth => (start == 0 || bytes.get(start - 1) == Some(&b'_')).then_some(Sensitive::IfRandom),
        })
        .last()
}

/// Finds the values that belong to the word at `start..end`, whose row in the table is `row`.
pub(super) fn values(scan: &mut Scan<'_>, row: usize, start: usize, end: usize, found: &mut Vec<Found>) {
    let Some((_, kind)) = WORDS.get(row) else {
        return;
    };
    let Some(after) = name_end(scan, start, end) else {
        return;
    };
    match kind {
        Kind::Secret => assigned(scan, start, after, found),
        Kind::Auth => container_auth(scan, start, after, found),
        Kind::Authorization => authorization(scan, start, after, found),
        Kind::Cookie => cookies(scan, after, found),
    }
}

/// Returns where the name ends that contains the word, or nothing if it is not one of a secret.
fn name_end(scan: &Scan<'_>, start: usize, end: usize) -> Option<usize> {
    let tail = scan.window(end, 24);
    // No tail begins with another letter: most words that only begin like a name (`tokens`, `author`) end here.
    if tail
        .first()
        .is_some_and(|byte| byte.is_ascii_alphabetic() && !matches!(byte, b'v' | b'V' | b'p' | b'P'))
    {
        return None;
    }
    let length = tail
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        .count();
    let tail = tail.get(..length)?;
    let digits = tail.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let word = tail.get(..tail.len() - digits)?;
    let word = if digits > 0 {
        word.strip_suffix(b"_").unwrap_or(word)
    } else {
        word
    };
    // `token.expired` and `password.label` are names of texts.
    let dotted = scan.at(end + length) == b'.' && scan.at(end + length + 1).is_ascii_alphabetic();
    let tailed = word.is_empty() || TAILS.iter().any(|one| one.eq_ignore_ascii_case(word));
    if digits > 3 || dotted || !tailed {
        return None;
    }
    let headed = HEADS.iter().any(|one| {
        let head = scan.cut(start.saturating_sub(one.len()), start);
        head.eq_ignore_ascii_case(one)
    });
    (!headed).then_some(end + length)
}

/// What stands between a name and its value.
struct Separator {
    /// Where the value or its opening quote begins.
    end: usize,
    /// `=`, `:=` or `=>`, and not `:`.
    equals: bool,
    /// The name was quoted, as in JSON.
    quoted_name: bool,
}

fn separator(scan: &Scan<'_>, after: usize) -> Option<Separator> {
    let backslashes = scan
        .window(after, 8)
        .iter()
        .take_while(|byte| **byte == b'\\')
        .count();
    let quoted_name = matches!(scan.at(after + backslashes), b'"' | b'\'' | b'`');
    let mut at = if quoted_name {
        after + backslashes + 1
    } else {
        after
    };
    at += usize::from(scan.at(at) == b']');
    at = scan.skip_blanks(at, 24);
    let (length, equals) = match (scan.at(at), scan.at(at + 1), scan.at(at + 2)) {
        (b'=', b'=' | b'~', _) | (b':', b':', _) => return None,
        (b'=', b'>', _) | (b':', b'=', _) => (2, true),
        // `?=` and `+=` of makefiles and shells.
        (b'?' | b'+', b'=', _) => (2, true),
        (b'=', _, _) => (1, true),
        (b':', _, _) => (1, false),
        // `%3D` in an encoded query.
        (b'%', b'3', b'D' | b'd') => (3, true),
        _ => return None,
    };
    Some(Separator {
        end: scan.skip_blanks(at + length, 24),
        equals,
        quoted_name,
    })
}

/// Returns the offset after an opening quote, the quote and its level.
fn opening(scan: &Scan<'_>, at: usize) -> Option<(usize, u8, usize)> {
    // `b"…"`, `r"…"`, `@"…"` of several languages.
    let at = if matches!(scan.at(at), b'b' | b'r' | b'u' | b'f' | b'@')
        && matches!(scan.at(at + 1), b'"' | b'\'')
    {
        at + 1
    } else {
        at
    };
    let level = scan
        .window(at, 16)
        .iter()
        .take_while(|byte| **byte == b'\\')
        .count();
    let quote = scan.at(at + level);
    matches!(quote, b'"' | b'\'' | b'`').then_some((at + level + 1, quote, level))
}

/// Says whether only white space, a list mark or `export` stands between the beginning of the line and the name.
fn owns_line(scan: &Scan<'_>, word: usize) -> bool {
    let name = scan.run_back(Set::Dotted, word, 64);
    let head = scan.cut(word.saturating_sub(name + 32), word - name);
    let line = head
        .rsplit(|byte| matches!(byte, b'\n' | b'\r'))
        .next()
        .unwrap_or_default();
    let reaches_start = line.len() < head.len() || word <= name + 32;
    let mut rest = line.trim_ascii();
    for word in [b"export".as_slice(), b"set", b"-", b"+", b"ENV", b"ARG"] {
        rest = rest.strip_prefix(word).unwrap_or(rest).trim_ascii_start();
    }
    reaches_start && rest.is_empty()
}

fn assigned(scan: &mut Scan<'_>, word: usize, after: usize, found: &mut Vec<Found>) {
    let Some(separator) = separator(scan, after) else {
        separated_by_blank(scan, word, after, found);
        return;
    };
    if let Some((from, quote, level)) = opening(scan, separator.end) {
        if let Some(end) = scan.quoted_end(from, quote, level) {
            if value::looks_secret(scan.cut(from, end)) {
                found.push((from, end, ASSIGNED));
            }
            return;
        }
        // The quotation does not close on this line (a truncated text): the rest of the word is the value.
        let end = scan.run_end(Set::Word, from);
        if value::looks_secret(scan.cut(from, end)) {
            found.push((from, end, ASSIGNED));
        }
        return;
    }
    let from = separator.end;
    if separator.quoted_name && !separator.equals {
        // An unquoted JSON value is a number, a word or an object.
        return;
    }
    let end = if owns_line(scan, word) {
        scan.line_value_end(from)
    } else {
        scan.run_end(Set::Bare, from)
    };
    let called = matches!(scan.at(end), b'(' | b'[' | b'<' | b'{');
    if !called && value::looks_secret(scan.cut(from, end)) {
        found.push((from, end, ASSIGNED));
    }
}

/// `--password VALUE` on a command line and `password VALUE` in a netrc file.
fn separated_by_blank(scan: &mut Scan<'_>, word: usize, after: usize, found: &mut Vec<Found>) {
    if !matches!(scan.at(after), b' ' | b'\t') {
        return;
    }
    let name = scan.run_back(Set::Dotted, word, 64);
    let option = scan.cut(word - name, word).starts_with(b"--");
    let netrc = name == 0 && after_login(scan, word);
    if !option && !netrc {
        return;
    }
    let mut from = scan.skip_blanks(after, 24);
    from += usize::from(matches!(scan.at(from), b'"' | b'\''));
    let end = scan.run_end(Set::Word, from);
    let text = scan.cut(from, end);
    // In JSON text the option may end its string: what follows is punctuation of the document, not a value.
    if matches!(text.first(), Some(b',' | b']' | b'}' | b')' | b':' | b';')) {
        return;
    }
    let secret = if netrc {
        text.len() >= 4 && !value::reference(text)
    } else {
        value::looks_secret(text)
    };
    if secret {
        found.push((from, end, if netrc { NETRC } else { CLI_ARG }));
    }
}

/// Says whether `login USER` stands just before.
fn after_login(scan: &Scan<'_>, word: usize) -> bool {
    let near = scan.cut(word.saturating_sub(128), word);
    let mut words = near
        .rsplit(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    words.next().is_some() && words.next() == Some(b"login")
}

/// `"auth": "…"` in the configuration of a container client.
fn container_auth(scan: &mut Scan<'_>, word: usize, after: usize, found: &mut Vec<Found>) {
    let whole = matches!(scan.before(word, 1), b'"' | b'\'' | b'_');
    let Some(separator) = separator(scan, after) else {
        return;
    };
    if !whole {
        return;
    }
    let (from, end) = match opening(scan, separator.end) {
        Some((from, quote, level)) => (from, scan.quoted_end(from, quote, level)),
        None if separator.equals => (separator.end, Some(scan.run_end(Set::Word, separator.end))),
        None => return,
    };
    if let Some(end) = end
        && end.saturating_sub(from) >= 16
        && value::looks_secret(scan.cut(from, end))
    {
        found.push((from, end, ASSIGNED));
    }
}

/// The schemes before credentials in an authorization header.
const SCHEMES: [&[u8]; 7] = [
    b"bearer",
    b"basic",
    b"token",
    b"bot",
    b"apikey",
    b"negotiate",
    b"splunk",
];

/// Returns how many bytes at the beginning of a header's value are the scheme and the space after it.
pub(super) fn scheme_length(value: &[u8]) -> usize {
    let head = value
        .get(..value.len().min(16))
        .unwrap_or_default()
        .to_ascii_lowercase();
    SCHEMES
        .iter()
        .find(|scheme| head.starts_with(scheme))
        .and_then(|scheme| {
            let rest = head.get(scheme.len()..)?;
            let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
            let encoded = if rest.starts_with(b"%20") {
                3
            } else {
                usize::from(rest.starts_with(b"+"))
            };
            (blanks + encoded > 0).then_some(scheme.len() + blanks.max(encoded))
        })
        .unwrap_or(0)
}

fn authorization(scan: &mut Scan<'_>, word: usize, after: usize, found: &mut Vec<Found>) {
    let Some(separator) = separator(scan, after) else {
        return;
    };
    let opened = opening(scan, separator.end);
    let from = opened.map_or(separator.end, |(from, _, _)| from);
    let scheme = scheme_length(scan.window(from, 16));
    if scheme == 0 {
        // Without a scheme it is an assignment like any other.
        assigned(scan, word, after, found);
        return;
    }
    let from = from + scheme;
    let end = scan.run_end(Set::Word, from);
    let kept = scan
        .cut(from, end)
        .iter()
        .rev()
        .take(8)
        .take_while(|byte| matches!(byte, b',' | b';' | b')' | b'}' | b']'))
        .count();
    if value::credentials(scan.cut(from, end - kept)) {
        found.push((from, end - kept, AUTH_HEADER));
    }
}

/// `Cookie: name=value; name=value`, as far as the text has that form.
fn cookies(scan: &mut Scan<'_>, after: usize, found: &mut Vec<Found>) {
    let Some(separator) = separator(scan, after) else {
        return;
    };
    if separator.equals {
        return;
    }
    let mut at = opening(scan, separator.end).map_or(separator.end, |(from, _, _)| from);
    loop {
        let name = scan.run_end(Set::Dotted, at);
        if name == at || scan.at(name) != b'=' {
            return;
        }
        let end = scan.run_end(Set::Cookie, name + 1);
        if value::looks_secret(scan.cut(name + 1, end)) {
            found.push((name + 1, end, COOKIE));
        }
        if scan.at(end) != b';' {
            return;
        }
        at = scan.skip_blanks(end + 1, 8);
    }
}
