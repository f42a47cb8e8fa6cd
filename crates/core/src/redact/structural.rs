//! Secrets that are structures and not tokens: private keys, JWTs, passwords in URLs, signatures in queries.
//!
//! Each parser looks at a constant number of bytes before it fails, or consumes what it returns: the scan stays linear.

use super::encodings::base64_decode;
use super::scan::{Scan, Set};
use super::value;
use memchr::memmem;
use regex::bytes::{Regex, RegexBuilder};
use std::sync::LazyLock;

/// Gets the offsets of the key in the view; returns the range of the secret.
pub(super) type Parser = fn(&mut Scan<'_>, usize, usize) -> Option<(usize, usize)>;

struct Forms {
    pem_begin: Regex,
    pem_end: Regex,
    pem_header: Regex,
}

/// Nothing if an expression does not compile, which the tests exclude; then each header counts as one of a key.
static FORMS: LazyLock<Option<Forms>> = LazyLock::new(|| {
    let compile = |form: &str| RegexBuilder::new(form).unicode(false).build().ok();
    Some(Forms {
        pem_begin: compile(r"^-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")?,
        pem_end: compile(r"^-----END [A-Z0-9 ]{0,60}-----")?,
        pem_header: compile(r"^[A-Za-z][A-Za-z-]{2,20}: [^\r\n\\]{0,160}")?,
    })
});

/// A PEM private key: with real or escaped newlines, indented, in a diff, with or without its END line.
pub(super) fn pem(scan: &mut Scan<'_>, start: usize, _: usize) -> Option<(usize, usize)> {
    let forms = FORMS.as_ref()?;
    let mut at = start + forms.pem_begin.find(scan.window(start, 96))?.end();
    let (mut body, mut headers, mut end) = (0_usize, 0, at);
    loop {
        at = skip_line_ends(scan, at);
        let rest = scan.window(at, 256);
        if rest.starts_with(b"-----END") {
            end = at + forms.pem_end.find(rest).map_or(8, |found| found.end());
            break;
        }
        if body == 0
            && headers < 8
            && let Some(header) = forms.pem_header.find(rest)
        {
            headers += 1;
            at += header.end();
            continue;
        }
        let token = scan.run_end(Set::Base64, at);
        let text = scan.cut(at, token);
        if text.len() >= 16 {
            body += text.len();
        } else {
            // The last line is short. A word of the text that follows a key that was cut off is short too.
            let after = skip_line_ends(scan, token);
            let closes = scan.window(after, 8) == b"-----END";
            let random = text
                .iter()
                .any(|byte| byte.is_ascii_digit() || b"+/=".contains(byte));
            if text.is_empty() || body == 0 || !(closes || random) {
                break;
            }
        }
        end = token;
        at = token;
    }
    (body >= 16).then_some((start, end))
}

/// Skips white space, escaped newlines at any level of escaping, line continuations and the `-` of a diff line.
fn skip_line_ends(scan: &Scan<'_>, from: usize) -> usize {
    let mut at = from;
    loop {
        match scan.at(at) {
            b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            b'\\' => {
                let backslashes = scan
                    .window(at, 16)
                    .iter()
                    .take_while(|byte| **byte == b'\\')
                    .count();
                match scan.at(at + backslashes) {
                    b'n' | b'r' | b't' | b'\n' => at += backslashes + 1,
                    _ => return at,
                }
            }
            b'-' if scan.before(at, 1) == b'\n' && scan.at(at + 1) != b'-' => at += 1,
            _ => return at,
        }
    }
}

/// A private key that is base64 once more, as in kubeconfig files; certificates look alike and stay.
pub(super) fn base64_pem(scan: &mut Scan<'_>, start: usize, _: usize) -> Option<(usize, usize)> {
    let decoded = base64_decode(scan.window(start, 96));
    if !decoded.windows(11).any(|window| window == b"PRIVATE KEY") {
        return None;
    }
    let mut at = start;
    loop {
        let end = scan.run_end(Set::AnyBase64, at);
        let next = skip_line_ends(scan, end);
        let wrapped = end - at >= 60 && next > end && Set::Base64.contains(scan.at(next));
        if !wrapped {
            return Some((start, end));
        }
        at = next;
    }
}

/// A JWT: dot-separated base64url whose first part decodes to a JOSE header.
pub(super) fn jwt(scan: &mut Scan<'_>, start: usize, _: usize) -> Option<(usize, usize)> {
    if !scan.boundary(start, true) {
        return None;
    }
    let end = scan.run_end(Set::Dotted, start);
    let head = scan.cut(start, end.min(start + 1024));
    let header = head.iter().position(|byte| *byte == b'.')?;
    let payload = head
        .get(header + 1..)?
        .iter()
        .take_while(|byte| **byte != b'.')
        .count();
    let decoded = base64_decode(head.get(..header)?);
    let jose = [b"\"alg\"".as_slice(), b"\"typ\"", b"\"enc\"", b"\"kid\""]
        .iter()
        .any(|name| decoded.windows(name.len()).any(|window| window == *name));
    (jose && payload >= 4).then(|| (start, trimmed(scan, start, end)))
}

/// Leaves the full stop of a sentence out of a token.
pub(super) fn trimmed(scan: &Scan<'_>, start: usize, end: usize) -> usize {
    let dots = scan
        .cut(start, end)
        .iter()
        .rev()
        .take_while(|byte| **byte == b'.')
        .count();
    end - dots
}

/// The password in `scheme://user:password@host`, also where it holds an unencoded `/`.
pub(super) fn userinfo(scan: &mut Scan<'_>, start: usize, end: usize) -> Option<(usize, usize)> {
    if !scan.before(start, 1).is_ascii_alphanumeric() {
        return None;
    }
    let limit = scan.run_end(Set::Location, end);
    let head = scan.cut(end, limit.min(end + 4096));
    let authority = head
        .iter()
        .position(|byte| b"/?#".contains(byte))
        .unwrap_or(head.len());
    let colon = head.get(..authority)?.iter().position(|byte| *byte == b':')?;
    let at = match head.get(..authority)?.iter().rposition(|byte| *byte == b'@') {
        Some(at) => at,
        None => {
            // `user:pa/ss@host` is not a URL, but people write it; `host:8080/@scope` is one.
            let rest = head.get(colon + 1..)?;
            let port = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if port > 0 && rest.get(port).is_none_or(|byte| b"/?#".contains(byte)) {
                return None;
            }
            authority
                + head
                    .get(authority..)?
                    .iter()
                    .take(256)
                    .position(|byte| *byte == b'@')?
        }
    };
    let password = head.get(colon + 1..at)?;
    let documentation = [
        b"pass".as_slice(),
        b"password",
        b"passwd",
        b"pwd",
        b"secret",
        b"token",
        b"PASSWORD",
        b"PASS",
    ];
    if password.is_empty() || value::reference(password) || documentation.contains(&password) {
        return None;
    }
    Some((end + colon + 1, end + at))
}

/// The signature of a shared access URL.
pub(super) fn query_signature(scan: &mut Scan<'_>, start: usize, end: usize) -> Option<(usize, usize)> {
    if !matches!(scan.before(start, 1), b'?' | b'&' | b';') {
        return None;
    }
    let stop = scan.run_end(Set::Query, end);
    (stop - end >= 30 && value::random_body(scan.cut(end, stop))).then_some((end, stop))
}

/// The password in `curl -u user:password`.
pub(super) fn curl_user(scan: &mut Scan<'_>, start: usize, end: usize) -> Option<(usize, usize)> {
    let mut from = scan.skip_blanks(end, 8);
    from += usize::from(matches!(scan.at(from), b'"' | b'\''));
    let colon = scan
        .window(from, 128)
        .iter()
        .take_while(|byte| Set::Word.contains(**byte))
        .position(|byte| *byte == b':')?;
    // The command's name is looked for only where everything else fits, and not far: this may happen at every option.
    let line = scan.cut(start.saturating_sub(160), start);
    let command = line.rsplit(|byte| *byte == b'\n').next()?;
    let named = memmem::find(command, b"curl").is_some() || memmem::find(command, b"wget").is_some();
    if !named || !matches!(scan.before(start, 1), b' ' | b'\t') {
        return None;
    }
    let stop = scan.run_end(Set::Word, from);
    let password = scan.cut(from + colon + 1, stop);
    (password.len() >= 4 && !value::reference(password)).then_some((from + colon + 1, stop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expressions_compile() {
        assert!(FORMS.is_some());
    }
}
