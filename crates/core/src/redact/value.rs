//! Is this text a secret, a reference to one, or an ordinary word? Judged from the text alone.

/// Only the beginning of a long value is judged, so that judging takes constant time; what is redacted is always the whole.
const JUDGED: usize = 128;

/// Returns the password of a URL with userinfo, as written.
pub(super) fn url_password(text: &str) -> Option<&str> {
    let (scheme, rest) = text.trim().split_once("://")?;
    if scheme.is_empty()
        || !scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let (userinfo, _) = authority.rsplit_once('@')?;
    let (_, password) = userinfo.split_once(':')?;
    (!password.is_empty()).then_some(password)
}

/// Decodes `%XX`; what is not valid afterwards is replaced.
pub(super) fn percent_decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let decoded = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let (b'%', Some(byte)) = (first, decoded) {
            out.push(byte);
            rest = tail.get(2..).unwrap_or_default();
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Shannon entropy in bits for each byte.
pub(super) fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in bytes {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let total = f64::from(u32::try_from(bytes.len()).unwrap_or(u32::MAX).max(1));
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / total)
        .map(|share| -share * share.log2())
        .sum()
}

/// Says whether the text stands for a secret instead of being one: `$X`, `${{ … }}`, `<token>`, `***`, `xxxx`, `…EXAMPLE`.
pub(super) fn reference(value: &[u8]) -> bool {
    let head = value.get(..value.len().min(JUDGED)).unwrap_or_default();
    let Some(first) = head.first() else {
        return true;
    };
    // A NUL is a placeholder of an earlier pass. Crypt hashes also begin with a dollar sign, but with another one soon after.
    let crypt = *first == b'$' && head.get(1..6).is_some_and(|next| next.contains(&b'$'));
    let template = head.starts_with(b"{{")
        || (*first == b'{'
            && head
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || b"{}_.!:-".contains(byte)));
    if template {
        return true;
    }
    if matches!(first, b'<' | b'%' | b'*' | b'\0') || (*first == b'$' && !crypt) {
        return *first != b'%'
            || head
                .get(1..3)
                .is_none_or(|next| !next.iter().all(u8::is_ascii_hexdigit));
    }
    let masked = head.iter().all(|byte| b"*xX.-_#?0\0 ".contains(byte))
        || head.ends_with(b"...")
        || head.ends_with("…".as_bytes());
    if masked {
        return true;
    }
    let upper = head.to_ascii_uppercase();
    let has = |word: &[u8]| upper.windows(word.len()).any(|window| window == word);
    let environment = [
        b"PROCESS.ENV".as_slice(),
        b"OS.ENVIRON",
        b"OS.GETENV",
        b"ENV::VAR",
        b"ENV[",
        b"SECRETS.",
        b"VAR.",
        b"VAULT:",
    ];
    has(b"EXAMPLE")
        || has(b"XXXXXX")
        || upper.starts_with(b"YOUR_")
        || upper.starts_with(b"YOUR-")
        || upper.starts_with(b"[REDACTED")
        || environment.iter().any(|word| upper.starts_with(word))
}

/// Says whether the text is a path or a plain URL without anything random in it.
pub(super) fn plain_location(value: &[u8]) -> bool {
    let path = value.starts_with(b"/")
        || value.starts_with(b"./")
        || value.starts_with(b"../")
        || value.starts_with(b"~/");
    let url = value.windows(3).take(16).any(|window| window == b"://");
    (path || url)
        && value.split(|byte| b"/?&=#@:".contains(byte)).all(|segment| {
            segment.len() < 12 || identifier(segment) || !segment.iter().any(u8::is_ascii_digit)
        })
}

/// Says whether the text is shaped like names in code: words, with digits only as a short suffix of a word.
///
/// `MI_UserCredentials_0` and `deny_non_finite_f64_79` are, `kU-k33rv5Ak4` is not.
pub(super) fn identifier(value: &[u8]) -> bool {
    value.split(|byte| b"_-.:/+ ".contains(byte)).all(|segment| {
        let letters = segment
            .iter()
            .take_while(|byte| byte.is_ascii_alphabetic())
            .count();
        let digits = segment.get(letters..).unwrap_or_default();
        digits.len() <= 4 && digits.iter().all(u8::is_ascii_digit)
    })
}

/// Says whether the text is a digest that names its own kind, which is evidence and no secret.
fn digest(value: &[u8]) -> bool {
    [
        b"sha256".as_slice(),
        b"sha512",
        b"sha384",
        b"sha1",
        b"md5",
        b"blake3",
        b"b3:",
        b"h1:",
        b"SHA256:",
    ]
    .iter()
    .any(|kind| {
        value.starts_with(kind)
            && value
                .get(kind.len() - 1..)
                .is_some_and(|rest| rest.iter().take(2).any(|byte| b":-".contains(byte)))
    })
}

const DIGIT: u8 = 1;
const LETTER: u8 = 2;
const SYMBOL: u8 = 4;
/// `(` and `{`, which secrets seldom have and code often.
const OPEN: u8 = 8;

/// The kind of each byte.
const KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut rest: &mut [u8] = &mut kinds;
    let mut byte = 0_u8;
    while let Some((kind, tail)) = rest.split_first_mut() {
        *kind = match byte {
            b'0'..=b'9' => DIGIT,
            b'A'..=b'Z' | b'a'..=b'z' => LETTER,
            b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'*' | b'?' | b'~' | b'|' | 0x80.. => SYMBOL,
            b'(' | b'{' => OPEN,
            _ => 0,
        };
        rest = tail;
        byte = byte.wrapping_add(1);
    }
    kinds
};

/// Says whether a value that stands under a secret's name is one: long and mixed enough, and no word, reference, path or digest.
pub(super) fn looks_secret(value: &[u8]) -> bool {
    // Looking for a space in the whole of a long value, at each of the names inside it, would take quadratic time.
    let words = value.get(..value.len().min(4 * JUDGED)).unwrap_or_default();
    if words.contains(&b' ') {
        // Prose under the name of a secret ("Password must be …") is told from a pass phrase by its words.
        return words
            .split(|byte| *byte == b' ')
            .any(|word| word.len() < words.len() && looks_secret(word));
    }
    let head = value.get(..value.len().min(JUDGED)).unwrap_or_default();
    // One pass and one table: this is asked at every name of a secret.
    let seen = head.iter().fold(0, |seen, byte| {
        seen | KINDS.get(usize::from(*byte)).copied().unwrap_or_default()
    });
    let has = |kind: u8| seen & kind != 0;
    let symbol = has(SYMBOL);
    if head.len() < 8 || !has(LETTER) || !(has(DIGIT) || symbol) || has(OPEN) {
        return false;
    }
    // `Token![type]` and the like are code.
    let macro_call = head.windows(2).any(|window| window == b"![");
    let word = macro_call || identifier(head) && !symbol && head.len() < JUDGED;
    !word && entropy(head) >= 2.5 && !reference(value) && !digest(head) && !plain_location(head)
}

/// Says whether the body after a vendor's prefix is random and not `xxxx` or a word: two bits a byte, and a digit or both cases.
pub(super) fn random_body(body: &[u8]) -> bool {
    let head = body.get(..body.len().min(JUDGED)).unwrap_or_default();
    let digit = head.iter().any(u8::is_ascii_digit);
    let cases = head.iter().any(u8::is_ascii_lowercase) && head.iter().any(u8::is_ascii_uppercase);
    (digit || cases) && entropy(head) >= 2.5 && !head.windows(7).any(|window| window == b"EXAMPLE")
}

/// Says whether credentials in a header are real: no reference, and more than a short word.
pub(super) fn credentials(value: &[u8]) -> bool {
    let head = value.get(..value.len().min(JUDGED)).unwrap_or_default();
    let mixed = head.iter().any(|byte| !byte.is_ascii_lowercase());
    head.len() >= 8
        && !reference(value)
        && !head.contains(&b'(')
        && entropy(head) >= 2.0
        && (mixed || head.len() >= 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_from_words_references_paths_and_digests() {
        let secret = [
            "eUo5.Vi.W45f",
            "c21e449c8d94261777e09899b2f14f9a",
            "Summer2024!",
            "bv5kj1fybBJ.u7eO3HHtQ",
            "my pass w0rd9x1z23",
        ];
        let other = [
            "",
            "Password",
            "100",
            "4096",
            "AccessToken",
            "QUORUM_OFFLOAD_TOKEN_79_0",
            "deny_non_finite_f64_79",
            "$TOKEN",
            "${X}",
            "${{ secrets.A1b2c3d4 }}",
            "<token>",
            "***",
            "xxxxxxxxxxxx1",
            concat!("AKIA", "IOSFODNN7EXAMPLE"),
            "/run/secrets/db_1",
            "getToken1(x)",
            "Password must be at least 8 characters",
            "sha256:0a1b2c3d4e5f",
            "https://example.com/v1/me",
            "process.env.API_KEY1",
            "Token![type]",
        ];
        for text in secret {
            assert!(looks_secret(text.as_bytes()), "{text}");
        }
        for text in other {
            assert!(!looks_secret(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn a_url_password_is_cut_at_the_last_at_sign() {
        let rows = [
            ("postgres://u:p%40x@h/db", Some("p%40x")),
            ("redis://:secret9@cache:6379/0", Some("secret9")),
            ("https://u:p@ss@h/", Some("p@ss")),
            ("https://user@h:8443/a:b@c", None),
            ("u:p@h", None),
        ];
        for (url, wanted) in rows {
            assert_eq!(url_password(url), wanted, "{url}");
        }
    }
}
