//! Registered values: the secrets that the user has, found in every spelling in which programs print them.

use super::encodings::{self, Alphabet};
use super::grams::Grams;
use super::value;
use aho_corasick::{AhoCorasick, MatchKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Shortest registered value, line or spelling that is looked for: shorter ones occur by chance.
const SHORTEST: usize = 8;

/// A secret that is known beforehand, and where it comes from.
#[derive(Clone, PartialEq, Eq)]
pub struct Registered {
    /// The name of the environment variable or setting.
    pub name: String,
    /// The value to remove wherever it appears.
    pub value: String,
}

impl std::fmt::Debug for Registered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registered")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Registered {
    /// Takes an environment variable if it holds a secret: by its name, or because it is a URL with a password.
    #[must_use]
    pub fn from_env(name: &str, value: &str) -> Option<Self> {
        (secret_env_name(name) || value::url_password(value).is_some()).then(|| Self {
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }
}

/// Says whether an environment variable of this name holds a secret.
///
/// The words stand between underscores (`GITHUB_TOKEN`, `DB_PASS`), in any case; names that end in `_FILE`, `_PATH`, `_SOCK`, `_ID`,
/// `_NAME` or `_TTL` point at a secret or describe it and hold none.
#[must_use]
pub fn secret_env_name(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "TOKEN",
        "KEY",
        "APIKEY",
        "SECRET",
        "SECRETS",
        "PASS",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "PWD",
        "PAT",
        "CRED",
        "CREDS",
        "CREDENTIAL",
        "CREDENTIALS",
        "AUTH",
        "COOKIE",
        "DSN",
        "WEBHOOK",
        "PRIVATE",
        "SIGNING",
        "SALT",
    ];
    const NOT_AT_THE_END: &[&str] = &["FILE", "PATH", "SOCK", "ID", "NAME", "TTL"];
    let name = name.to_ascii_uppercase();
    if matches!(name.as_str(), "PWD" | "OLDPWD" | "SSH_AUTH_SOCK" | "XAUTHORITY") || name.contains("KEYBOARD")
    {
        return false;
    }
    let mut words = name.split('_');
    if words
        .next_back()
        .is_some_and(|last| NOT_AT_THE_END.contains(&last))
    {
        return false;
    }
    name.split('_').any(|word| WORDS.contains(&word)) || name.contains("CONNECTION_STRING")
}

/// A text is asked at every fourth place for a gram of five bytes: a spelling of eight bytes or more covers one such gram whole.
const STRIDE: usize = 4;
/// Mixes the fifth byte into the other four.
const FIFTH: u32 = 0x85eb_ca6b;

/// All spellings of all registered values, ready to search.
#[derive(Default)]
pub(super) struct Known {
    spellings: Vec<Spelling>,
    /// The first grams of each spelling, one for each way in which it may lie across the places that are asked. Absent if there is
    /// no spelling.
    grams: Option<Grams<Announced>>,
    /// Finds the same, in linear time whatever the text; made when a text needs it, because making it takes milliseconds.
    automaton: OnceLock<Option<AhoCorasick>>,
    values: Vec<String>,
    refused: Vec<String>,
}

/// One way to write a registered value.
struct Spelling {
    text: Vec<u8>,
    /// The value's number.
    owner: usize,
}

/// A spelling that a gram announces, and how many bytes of it stand before the gram.
#[derive(Debug, Clone, Copy)]
struct Announced {
    spelling: usize,
    before: usize,
}

/// The automaton could not be built: nothing may be written.
#[derive(Debug)]
pub(super) struct TooManyValues;

impl Known {
    /// Derives the spellings. Values that would hide ordinary text are left out, and their names kept in [`Known::refused`].
    pub(super) fn new(registered: &[Registered]) -> Self {
        let mut spellings: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
        let mut known = Self::default();
        for one in registered {
            let parts = parts(one);
            if parts.is_empty() {
                known.refused.push(one.name.clone());
            }
            for (value, secrets) in parts {
                let owner = known.values.len();
                known.values.push(value);
                for secret in secrets {
                    for spelling in spellings_of(&secret) {
                        spellings.entry(spelling).or_insert(owner);
                    }
                }
            }
        }
        if spellings.is_empty() {
            return known;
        }
        known.spellings = spellings
            .into_iter()
            .map(|(text, owner)| Spelling { text, owner })
            .collect();
        let announced = known.spellings.iter().enumerate().flat_map(|(spelling, one)| {
            (0..STRIDE).filter_map(move |before| {
                let gram = one.text.get(before..).and_then(gram_of)?;
                Some((gram, Announced { spelling, before }))
            })
        });
        known.grams = Some(Grams::new(announced.collect()));
        known
    }

    /// Calls `found` with start, end and the number of the value, for each occurrence of each spelling.
    pub(super) fn search(
        &self,
        text: &[u8],
        found: impl FnMut(usize, usize, usize),
    ) -> Result<(), TooManyValues> {
        match self.occurrences(text) {
            Some(occurrences) => {
                self.report(occurrences.into_iter(), found);
                Ok(())
            }
            None => self.search_all(text, found),
        }
    }

    /// Values whose automaton cannot be made.
    #[cfg(test)]
    pub(super) fn broken() -> Self {
        Self {
            automaton: OnceLock::from(None),
            ..Self::default()
        }
    }

    fn report(
        &self,
        occurrences: impl Iterator<Item = (usize, usize)>,
        mut found: impl FnMut(usize, usize, usize),
    ) {
        for (start, spelling) in occurrences {
            if let Some(one) = self.spellings.get(spelling) {
                found(start, start + one.text.len(), one.owner);
            }
        }
    }

    /// As [`Known::search`], looking at every byte.
    pub(super) fn search_all(
        &self,
        text: &[u8],
        found: impl FnMut(usize, usize, usize),
    ) -> Result<(), TooManyValues> {
        // Overlapping matches need the standard kind: one value may be the beginning of another.
        let build = || {
            AhoCorasick::builder()
                .match_kind(MatchKind::Standard)
                .build(self.spellings.iter().map(|spelling| &spelling.text))
                .ok()
        };
        let automaton = self.automaton.get_or_init(build).as_ref().ok_or(TooManyValues)?;
        let matches = automaton
            .try_find_overlapping_iter(text)
            .map_err(|_| TooManyValues)?;
        self.report(matches.map(|one| (one.start(), one.pattern().as_usize())), found);
        Ok(())
    }

    /// Returns where which spellings begin; nothing if the text resembles them so much that comparing takes too long.
    fn occurrences(&self, text: &[u8]) -> Option<Vec<(usize, usize)>> {
        let mut occurrences = Vec::new();
        let Some(grams) = &self.grams else {
            return Some(occurrences);
        };
        // Comparisons may look at as many bytes as the text has, and a little more in a short one.
        let mut allowed = text.len() + 4096;
        let mut judge = |at: usize, gram: u32| {
            for one in grams.of(gram) {
                let spelling = self.spellings.get(one.spelling)?;
                let Some(start) = at.checked_sub(one.before) else {
                    continue;
                };
                let rest = text.get(start..).unwrap_or_default();
                let mut work = 1;
                if rest.first_chunk::<8>() == spelling.text.first_chunk::<8>() {
                    work += spelling.text.len();
                    if rest.starts_with(&spelling.text) {
                        occurrences.push((start, one.spelling));
                    }
                }
                allowed = allowed.checked_sub(work)?;
            }
            Some(())
        };
        let (words, _) = text.as_chunks::<STRIDE>();
        let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
        let mut at = 0;
        if let Some(mut low) = words.next() {
            for word in words {
                let gram = gram(low, word);
                if grams.may_hold(gram) & 1 != 0 {
                    judge(at, gram)?;
                }
                low = word;
                at += STRIDE;
            }
        }
        while let Some(gram) = text.get(at..).and_then(gram_of) {
            judge(at, gram)?;
            at += STRIDE;
        }
        Some(occurrences)
    }

    /// Returns a value by its number.
    pub(super) fn value(&self, number: usize) -> &str {
        self.values.get(number).map_or("", String::as_str)
    }

    /// Returns the number of the value that is spelled exactly like this.
    pub(super) fn exactly(&self, text: &str) -> Option<usize> {
        if text.len() < SHORTEST {
            return None;
        }
        self.values.iter().position(|value| value == text)
    }

    /// Returns the names of registered values that are too short or too ordinary to look for.
    pub(super) fn refused(&self) -> &[String] {
        &self.refused
    }
}

/// Splits a registered value into what gets a tag of its own, each with the texts to look for.
fn parts(registered: &Registered) -> Vec<(String, Vec<String>)> {
    let whole = registered.value.trim();
    if let Some(password) = value::url_password(whole) {
        // Host and database are evidence; only the password is secret. It is looked for as written and as meant.
        let decoded = value::percent_decoded(password);
        return if usable(password) {
            vec![(password.to_owned(), vec![password.to_owned(), decoded])]
        } else {
            Vec::new()
        };
    }
    let webhook = registered.name.to_ascii_uppercase().contains("WEBHOOK");
    if !usable(whole) || (value::plain_location(whole.as_bytes()) && !webhook) {
        return Vec::new();
    }
    let mut secrets = vec![registered.value.clone(), whole.to_owned()];
    let mut parts = Vec::new();
    if let Ok(json) = serde_json::from_str::<serde_json::Value>(whole)
        && (json.is_object() || json.is_array())
    {
        // Lines of a JSON document are braces and field names; its random leaves are the secrets.
        let mut leaves = Vec::new();
        random_leaves(&json, 0, &mut leaves);
        for leaf in leaves {
            let lines = lines_of(&leaf);
            parts.push((leaf.clone(), [vec![leaf], lines].concat()));
        }
    } else {
        secrets.extend(lines_of(whole));
    }
    parts.insert(0, (whole.to_owned(), secrets));
    parts
}

fn lines_of(text: &str) -> Vec<String> {
    if !text.contains('\n') {
        return Vec::new();
    }
    text.lines()
        .map(str::trim)
        .filter(|line| usable(line) && !line.starts_with("-----"))
        .map(str::to_owned)
        .collect()
}

fn random_leaves(json: &serde_json::Value, depth: usize, leaves: &mut Vec<String>) {
    match json {
        serde_json::Value::String(text) if text.len() >= 16 => {
            let secret = value::looks_secret(text.as_bytes()) || text.contains("PRIVATE KEY");
            if secret && !value::plain_location(text.as_bytes()) {
                leaves.push(text.clone());
            }
        }
        serde_json::Value::Array(items) if depth < 16 => {
            for item in items {
                random_leaves(item, depth + 1, leaves);
            }
        }
        serde_json::Value::Object(fields) if depth < 16 => {
            for item in fields.values() {
                random_leaves(item, depth + 1, leaves);
            }
        }
        serde_json::Value::String(_)
        | serde_json::Value::Array(_)
        | serde_json::Value::Object(_)
        | serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_) => {}
    }
}

/// Says whether a value can be looked for without hiding ordinary words, our own placeholders or references to secrets.
fn usable(value: &str) -> bool {
    const ORDINARY: &[&str] = &[
        "undefined",
        "localhost",
        "127.0.0.1",
        "postgres",
        "postgresql",
        "password",
        "passw0rd",
        "changeme",
        "change-me",
        "change_me",
        "secret123",
        "default",
        "development",
        "production",
        "staging",
        "anonymous",
        "username",
        "database",
        "enabled",
        "disabled",
        "required",
        "optional",
        "redacted",
        "known-value",
        "placeholder",
        "credentials",
        "dummy-value",
        "test-token",
        "test-key",
    ];
    let lower = value.to_ascii_lowercase();
    let first = value.chars().next();
    value.len() >= SHORTEST
        && value.chars().any(|character| Some(character) != first)
        && !ORDINARY.contains(&lower.as_str())
        && !value::reference(value.as_bytes())
        && !super::rules::inside_placeholder(value)
}

/// The five bytes at the beginning of a text.
fn gram_of(text: &[u8]) -> Option<u32> {
    let [four @ .., fifth] = *text.first_chunk::<5>()?;
    Some(gram(u32::from_le_bytes(four), u32::from(fifth)))
}

/// A number for four bytes and the lowest byte of `next`.
#[inline]
const fn gram(four: u32, next: u32) -> u32 {
    four ^ (next & 0xff).wrapping_mul(FIFTH)
}

fn spellings_of(secret: &str) -> BTreeSet<Vec<u8>> {
    let bytes = secret.as_bytes();
    let mut texts = vec![secret.to_owned()];
    for (ascii, slash) in [(false, false), (true, false), (false, true), (true, true)] {
        let once = encodings::json(secret, ascii, slash);
        texts.push(encodings::json(&once, false, false));
        texts.push(encodings::json(&once, ascii, slash));
        texts.push(once);
    }
    for upper in [false, true] {
        texts.push(encodings::hex(bytes, upper));
        for kept in [b"".as_slice(), b"/", b"!'()*", b"!'()*;,/?:@&=+$#"] {
            texts.push(encodings::percent(bytes, kept, upper, false));
            texts.push(encodings::percent(bytes, kept, upper, true));
        }
    }
    for alphabet in [Alphabet::Standard, Alphabet::Url] {
        let plain = encodings::base64(bytes, alphabet);
        texts.push(format!("{plain}{}", "=".repeat((4 - plain.len() % 4) % 4)));
        texts.push(plain);
        for before in 0..3 {
            texts.push(encodings::base64_inside(bytes, before, alphabet));
        }
    }
    texts.push(encodings::shell(secret));
    for apostrophe in ["'", "&#39;", "&#x27;"] {
        texts.push(encodings::html(secret, apostrophe));
    }
    texts
        .into_iter()
        .map(String::into_bytes)
        .filter(|text| text.len() >= SHORTEST)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secret_variables_are_told_from_those_that_describe_or_locate_one() {
        let secret = [
            "TOKEN",
            "GITHUB_TOKEN",
            "db_pass",
            "DB_PASSWORD",
            "AWS_SECRET_ACCESS_KEY",
            "NPM_AUTH",
            "SENTRY_DSN",
            "SLACK_WEBHOOK_URL",
            "DB_CONNECTION_STRING",
            "DB_PWD",
            "GH_PAT",
            "PRIVATE_PEM",
            "SIGNING_CERT",
            "HASH_SALT",
            "MY_CREDS",
            "API_KEY_2",
        ];
        let plain = [
            "PATH",
            "PWD",
            "OLDPWD",
            "SSH_AUTH_SOCK",
            "XAUTHORITY",
            "TOKEN_FILE",
            "KEY_PATH",
            "AWS_ACCESS_KEY_ID",
            "SECRET_NAME",
            "TOKEN_TTL",
            "KEYBOARD_LAYOUT",
            "MONKEY",
            "TOKENIZER",
            "AUTHOR",
            "PATTERN",
            "COMPASS",
            "",
        ];
        assert_eq!(secret.map(secret_env_name), [true; 16]);
        assert_eq!(plain.map(secret_env_name), [false; 17]);
    }

    #[test]
    fn ordinary_values_are_refused_by_name() {
        let rows = [
            "short",
            "password",
            "aaaaaaaaaaaa",
            "/usr/share/thing",
            "https://example.com/index",
            "${OTHER_TOKEN}",
            "github-token",
        ];
        let registered: Vec<_> = rows
            .iter()
            .map(|value| Registered {
                name: format!("N_{value}"),
                value: (*value).to_owned(),
            })
            .collect();
        let known = Known::new(&registered);
        let wanted: Vec<_> = rows.iter().map(|value| format!("N_{value}")).collect();
        assert_eq!(known.refused(), wanted);
    }

    #[test]
    fn only_the_password_of_a_url_is_secret_and_debug_shows_no_value() {
        let one = Registered::from_env("DATABASE_URL", "postgres://app:pa%2Bss-w0rd9@db/main")
            .expect("has a password");
        assert_eq!(
            parts(&one),
            vec![(
                "pa%2Bss-w0rd9".to_owned(),
                vec!["pa%2Bss-w0rd9".to_owned(), "pa+ss-w0rd9".to_owned()]
            )]
        );
        assert_eq!(Registered::from_env("HOME_URL", "https://example.com/"), None);
        assert_eq!(format!("{one:?}"), "Registered { name: \"DATABASE_URL\", .. }");
    }

    #[test]
    fn lines_of_a_json_secret_are_not_looked_for_but_its_random_leaves_are() {
        let leaf = format!("x9{}", "K3v7Qm2Rt8Lp4Z");
        let value = format!("{{\n  \"type\": \"service_account\",\n  \"id\": \"{leaf}\"\n}}");
        let one = Registered {
            name: "CREDS".to_owned(),
            value: value.clone(),
        };
        assert_eq!(
            parts(&one),
            vec![
                (value.clone(), vec![value.clone(), value]),
                (leaf.clone(), vec![leaf])
            ]
        );
    }
}
