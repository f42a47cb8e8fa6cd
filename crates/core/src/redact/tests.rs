//! What the redactor promises, as data rows and as properties. Literals that look like secrets are put together at run time.

#![expect(clippy::string_slice, reason = "a wrong cut fails the test")]

use super::*;
use serde_json::{Value, json};

/// Random-looking letters and digits, the same for the same seed.
pub(super) fn letters(seed: u64, length: usize) -> String {
    const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            char::from(ALPHABET[usize::try_from(state >> 33).unwrap() % 62])
        })
        .collect()
}

fn hex(seed: u64, length: usize) -> String {
    blake3::hash(&seed.to_le_bytes()).to_hex().as_str().repeat(4)[..length].to_owned()
}

fn key() -> RedactionKey {
    RedactionKey::from_bytes([7; 32])
}

pub(super) fn redactor() -> Redactor {
    Redactor::new(key(), &[])
}

pub(super) fn knowing(values: &[&str]) -> Redactor {
    let registered: Vec<_> = values
        .iter()
        .map(|value| Registered {
            name: "NAME".to_owned(),
            value: (*value).to_owned(),
        })
        .collect();
    Redactor::new(key(), &registered)
}

/// The placeholder of a secret under the tests' key.
fn placeholder(rule: &str, secret: &str) -> String {
    let hash = blake3::keyed_hash(&[7; 32], secret.as_bytes()).to_hex();
    format!("[REDACTED:{rule}:{}]", &hash.as_str()[..6])
}

fn check(redactor: &Redactor, input: &str, wanted: &str) {
    let (found, findings) = redactor.text(input);
    assert_eq!(found, wanted, "input: {input}");
    assert_eq!(findings.is_empty(), input == wanted);
    assert_eq!(
        redactor.text(wanted),
        (Cow::Borrowed(wanted), Findings::empty()),
        "not a fixed point"
    );
}

fn github() -> String {
    format!("gh{}_{}", 'p', letters(1, 36))
}

#[test]
fn a_token_is_replaced_in_every_surrounding() {
    let token = github();
    let found = placeholder("github-token", &token);
    for (before, after) in [
        ("", ""),
        ("A=", "\nB=1"),
        ("{\"v\": \"", "\"}"),
        ("{\"o\": \"a\\n", "\\n\"}"),
        ("url=x%3D", "%26y"),
        ("\u{30f3}", "\u{3092}"),
        ("\x1b[1m", "\x1b[0m"),
        ("https://ci:", "@example.com/r.git"),
        ("glued", "."),
        ("-", ""),
        ("Authorization: Bearer ", "\r\n"),
        ("password=", ";"),
        ("\x1b]8;;https://x.example/?t=", "\x1b\\link\x1b]8;;\x1b\\"),
    ] {
        check(
            &redactor(),
            &format!("{before}{token}{after}"),
            &format!("{before}{found}{after}"),
        );
    }
}

#[test]
fn a_colour_inside_a_token_does_not_hide_it_and_does_not_change_its_tag() {
    let token = github();
    let (head, tail) = token.split_at(10);
    check(
        &redactor(),
        &format!("x:\x1b[m{head}\x1b[01;31m\x1b[K{tail}\x1b[m!"),
        &format!("x:\x1b[m{}\x1b[m!", placeholder("github-token", &token)),
    );
}

#[test]
fn an_escape_inside_a_token_does_not_hide_it_and_json_stays_json() {
    let token = github();
    let input = format!("{{\"v\":\"{}\"}}", token.replace('_', "\\u005f"));
    check(
        &redactor(),
        &input,
        &format!("{{\"v\":\"{}\"}}", placeholder("github-token", &token)),
    );
}

#[test]
fn shapes_are_recognised() {
    let rows = [
        (
            "github-app-token",
            format!(
                "ghs_{}_{}.{}.{}",
                "12345",
                letters(2, 80),
                letters(3, 200),
                letters(4, 200)
            ),
        ),
        (
            "github-fine-grained-pat",
            format!("github_{}_{}_{}", "pat", letters(5, 22), letters(6, 59)),
        ),
        ("gitlab-token", format!("gl{}-{}", "pat", letters(7, 20))),
        (
            "aws-access-key-id",
            format!("AK{}{}", "IA", letters(8, 16).to_uppercase()),
        ),
        ("google-api-key", format!("AI{}{}", "za", letters(9, 35))),
        ("anthropic-key", format!("sk-{}-api03-{}", "ant", letters(10, 95))),
        ("openai-key", format!("sk-{}-{}", "proj", letters(11, 150))),
        ("sk-key", format!("sk-{}", hex(12, 32))),
        (
            "slack-token",
            format!("xox{}-{}-{}", 'b', "123456789012", letters(13, 24)),
        ),
        ("stripe-key", format!("sk_{}_{}", "live", letters(14, 24))),
        ("npm-token", format!("np{}_{}", 'm', letters(15, 36))),
        ("pypi-token", format!("pypi-{}{}", "AgE", letters(16, 100))),
        ("huggingface-token", format!("h{}_{}", 'f', letters(17, 34))),
        (
            "sendgrid-key",
            format!("S{}.{}.{}", 'G', letters(18, 22), letters(19, 43)),
        ),
        (
            "telegram-token",
            format!("8217481259:A{}{}", 'A', letters(20, 33)),
        ),
        ("azure-client-secret", format!("ab1{}Q~{}", '7', letters(21, 34))),
        (
            "jwt",
            format!(
                "ey{}.{}.{}",
                "JhbGciOiJIUzI1NiJ9",
                letters(22, 60),
                letters(23, 43)
            ),
        ),
    ];
    for (rule, token) in rows {
        check(
            &redactor(),
            &format!("see {token} here"),
            &format!("see {} here", placeholder(rule, &token)),
        );
    }
}

#[test]
fn a_private_key_is_replaced_whole_with_any_newline_and_without_its_end() {
    let lines: Vec<_> = (0..5).map(|line| letters(30 + line, 64)).collect();
    let (begin, end) = (
        format!("-----BEGIN RSA {} KEY-----", "PRIVATE"),
        format!("-----END RSA {} KEY-----", "PRIVATE"),
    );
    for newline in ["\n", "\r\n", "\\n", "\\\\n", "\n    ", "\n+"] {
        let body = lines.join(newline);
        let whole = format!("{begin}{newline}{body}{newline}q9=={newline}{end}");
        check(
            &redactor(),
            &format!("k: {whole}\nrest"),
            &format!("k: {}\nrest", placeholder("private-key", &whole)),
        );
        let cut = format!("{begin}{newline}{body}");
        check(
            &redactor(),
            &format!("k: {cut}\nDone building"),
            &format!("k: {}\nDone building", placeholder("private-key", &cut)),
        );
    }
    check(
        &redactor(),
        &format!("holding ONE `{begin}` header"),
        &format!("holding ONE `{begin}` header"),
    );
}

#[test]
fn values_under_the_name_of_a_secret_are_replaced() {
    let value = letters(40, 20);
    for (before, after) in [
        ("password=", "\n"),
        ("export DB_PASSWORD=", " && make"),
        ("{\"api_key\": \"", "\", \"n\": 1}"),
        ("{\"o\": \"client_secret = \\\"", "\\\"\"}"),
        ("api_key: '", "'"),
        ("config[\"auth_token\"] = \"", "\""),
        ("GET /?access_token=", "&page=2"),
        ("Server=x;Password=", ";Encrypt=true"),
        ("secretKey => `", "`"),
        ("services:\n  token: ", " # comment"),
    ] {
        check(
            &redactor(),
            &format!("{before}{value}{after}"),
            &format!("{before}{}{after}", placeholder("assigned-secret", &value)),
        );
    }
    let rows = [
        ("Authorization: Bearer ", "auth-header", ""),
        ("{\"authorization\": \"Basic ", "auth-header", "\"}"),
        ("Set-Cookie: session=", "cookie", "; Path=/"),
        ("postgres://app:", "url-userinfo", "@db:5432/main"),
        ("tool --token ", "cli-secret-arg", " x"),
        ("machine h\n  login ci\n  password ", "netrc", "\n"),
        ("curl -u ci:", "curl-user", " https://x.example"),
    ];
    for (before, rule, after) in rows {
        check(
            &redactor(),
            &format!("{before}{value}{after}"),
            &format!("{before}{}{after}", placeholder(rule, &value)),
        );
    }
}

#[test]
fn evidence_references_and_code_are_left_alone() {
    let (sha, long) = (hex(50, 40), hex(51, 64));
    let rows = [
        format!("commit {sha}"),
        format!("index {}..{} 100644", &sha[..7], &long[..7]),
        format!("checksum = \"{long}\""),
        format!("{{\"$ref\":\"b3:{long}\",\"bytes\":9}}"),
        format!(
            "sha256:{long} sha512-{}== h1:{}=",
            letters(52, 86),
            letters(53, 43)
        ),
        format!("traceparent: 00-{}-{}-01", &long[..32], &sha[..16]),
        format!("{{\"traceId\": \"{}\", \"max_tokens\": 4096}}", &long[..32]),
        "request_id=9ef4bfa9-bcaf-4830-b361-5a39a59bd379".to_owned(),
        format!(
            "data:image/png;base64,iVBORw0KGgo{}/AK{}{}/{}",
            letters(54, 60),
            "IA",
            letters(55, 16).to_uppercase(),
            letters(56, 40)
        ),
        format!("disk-{} ready, cache-key-{}", &long[..32], &long[..32]),
        format!("token {sha} is a commit"),
        format!("{{\"secret_sha256\": \"{long}\", \"token_hash\": \"{long}\"}}"),
        "max_tokens=100 token_count=48553 tokens: 12345678".to_owned(),
        "password=${DB_PASSWORD} token: ${{ secrets.TOKEN_1 }} api_key=<token>".to_owned(),
        "Authorization: Bearer $TOKEN".to_owned(),
        "Authorization: Bearer ***\npassword: ********".to_owned(),
        "ANTHROPIC_API_KEY=sk-ant-... OPENAI_API_KEY=sk-...".to_owned(),
        format!("GITHUB_TOKEN=gh{}_{}", 'p', "x".repeat(36)),
        format!("aws_access_key_id = AK{}IOSFODNN7EXAMPLE", "IA"),
        "let key = std::env::var(\"API_KEY\").unwrap();".to_owned(),
        "if token == \"abcdefgh12345678\" {".to_owned(),
        "pub credentials: MI_UserCredentials_0,\npub cookie: *mut c_void,".to_owned(),
        "export interface Auth { token: string; password?: string }".to_owned(),
        "INFO planner::private_key: deny_non_finite_f64_79".to_owned(),
        "{\"password.label\": \"Password\", \"token.expired\": \"Sign in again 2 times.\"}".to_owned(),
        "https://user@example.com:8443/session?page=2 ssh://git@github.com/a/b.git http://h:80/@scope"
            .to_owned(),
        format!("pk_{}_{}", "test", letters(57, 24)),
    ];
    for text in rows {
        check(&redactor(), &text, &text);
    }
}

#[test]
fn a_registered_value_is_found_in_every_spelling_under_one_tag() {
    let value = format!("{}\"/\\'&{}é", letters(60, 9), letters(61, 7));
    let redactor = knowing(&[&value]);
    let spelled = [
        value.clone(),
        encodings::json(&value, false, false),
        encodings::json(&encodings::json(&value, true, true), false, false),
        encodings::percent(value.as_bytes(), b"", true, false),
        encodings::percent(value.as_bytes(), b"/", false, true),
        encodings::hex(value.as_bytes(), false),
        encodings::hex(value.as_bytes(), true),
        encodings::base64(value.as_bytes(), encodings::Alphabet::Standard),
        encodings::base64(value.as_bytes(), encodings::Alphabet::Url),
        encodings::shell(&value),
        encodings::html(&value, "&#39;"),
    ];
    let found = placeholder("known-value", &value);
    for text in spelled {
        check(
            &redactor,
            &format!("value {text} end"),
            &format!("value {found} end"),
        );
    }
}

#[test]
fn a_value_that_begins_inside_an_escape_does_not_break_json() {
    let value = "n4Xq7Zt2Rb";
    let found = placeholder("known-value", value);
    check(
        &knowing(&[value]),
        &format!("{{\"a\":\"x\\{value}\"}}"),
        &format!("{{\"a\":\"x{found}\"}}"),
    );
}

#[test]
fn lines_of_a_registered_value_are_secret_and_the_longer_of_two_values_wins() {
    let (first, second) = (letters(62, 14), letters(63, 20));
    let value = format!("-----begin-----\n{first}\n{second}\n{{\n");
    let redactor = knowing(&[&value]);
    let found = placeholder("known-value", value.trim());
    check(
        &redactor,
        &format!("at {second} -----begin-----\n{{"),
        &format!("at {found} -----begin-----\n{{"),
    );
    let redactor = knowing(&[&second[..10], &second]);
    check(
        &redactor,
        &format!("v={second};"),
        &format!("v={};", placeholder("known-value", &second)),
    );
    check(
        &redactor,
        &format!("v={};", &second[..12]),
        &format!(
            "v={}{};",
            placeholder("known-value", &second[..10]),
            &second[10..12]
        ),
    );
}

#[test]
fn a_number_that_is_a_registered_value_becomes_a_string() {
    let redactor = knowing(&["963319724103"]);
    let found = placeholder("known-value", "963319724103");
    check(
        &redactor,
        "{\"pin\": 963319724103, \"n\": 3}",
        &format!("{{\"pin\": \"{found}\", \"n\": 3}}"),
    );
    check(
        &redactor,
        "{\"a\":1}\n{\"pin\":963319724103}\n",
        &format!("{{\"a\":1}}\n{{\"pin\":\"{found}\"}}\n"),
    );
    check(
        &redactor,
        "{\"t\": \"a,963319724103,b\"}",
        &format!("{{\"t\": \"a,{found},b\"}}"),
    );
    let mut value = json!({"pin": 963_319_724_103_u64, "n": 3});
    redactor.json(&mut value);
    assert_eq!(value, json!({"pin": found, "n": 3}));
}

#[test]
fn json_is_redacted_in_leaves_keys_and_nested_documents() {
    let (token, value) = (github(), letters(70, 16));
    let mut document = json!({
        "password": "hunter",
        "Authorization": format!("Bearer {value}"),
        "cookie": format!("theme=dark; session={value}"),
        "auth": format!("{value}=="),
        "max_tokens": 4096,
        "token": true,
        "secret": "${SECRET}",
        "nested": format!("{{\"n\": 1, \"api_key\": \"{value}\"}}"),
        "env": [{"name": "DB_PASSWORD", "value": "short"}],
        token.clone(): {"n": 1},
        "text": format!("export A={token}"),
    });
    let findings = redactor().json(&mut document);
    let (github, assigned) = (
        placeholder("github-token", &token),
        placeholder("assigned-secret", &value),
    );
    assert_eq!(
        document,
        json!({
            "password": placeholder("assigned-secret", "hunter"),
            "Authorization": format!("Bearer {}", placeholder("auth-header", &value)),
            "cookie": format!("theme=dark; session={}", placeholder("cookie", &value)),
            "auth": placeholder("assigned-secret", &format!("{value}==")),
            "max_tokens": 4096,
            "token": true,
            "secret": "${SECRET}",
            "nested": format!("{{\"n\":1,\"api_key\":\"{assigned}\"}}"),
            "env": [{"name": "DB_PASSWORD", "value": placeholder("assigned-secret", "short")}],
            github.clone(): {"n": 1},
            "text": format!("export A={github}"),
        })
    );
    let counts: Vec<_> = findings.iter().collect();
    assert_eq!(
        counts,
        [
            ("assigned-secret", 4),
            ("auth-header", 1),
            ("cookie", 1),
            ("github-token", 2)
        ]
    );
    assert_eq!(serde_json::to_value(&findings).unwrap()["github-token"], 2);
}

#[test]
fn keys_that_become_equal_lose_no_entry() {
    let known = [letters(71, 12), letters(72, 12)];
    let redactor = knowing(&[&known[0]]);
    let found = placeholder("known-value", &known[0]);
    let mut document = json!({known[0].clone(): 1, found.clone(): 2});
    redactor.json(&mut document);
    assert_eq!(document, json!({found.clone(): 1, format!("{found}#2"): 2}));
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) count: u64,
    pub(super) output: String,
    pub(super) arguments: Value,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(super) token: Value,
}

pub(super) const SCHEMA: Schema = Schema {
    keep: |key| key == "id",
    free: |key| key == "arguments",
};

#[test]
fn a_record_keeps_its_own_fields_and_loses_the_secrets_of_its_payload() {
    let value = "1234567890123";
    let record = Record {
        id: format!("x{value}"),
        count: 1_234_567_890_123,
        output: format!("is {value}"),
        arguments: json!({"id": value, "pin": 1_234_567_890_123_u64}),
        token: Value::Null,
    };
    let found = placeholder("known-value", value);
    let scrubbed = knowing(&[value]).scrub(&record, &SCHEMA).unwrap();
    assert_eq!(
        scrubbed.get(),
        &Record {
            id: record.id.clone(),
            count: record.count,
            output: format!("is {found}"),
            arguments: json!({"id": found, "pin": found}),
            token: Value::Null,
        }
    );
    assert_eq!(
        scrubbed.findings().iter().collect::<Vec<_>>(),
        [("known-value", 3)]
    );
}

#[test]
fn a_record_that_does_not_survive_is_refused_without_repeating_the_secret() {
    #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
    enum Mode {
        #[serde(rename = "s3cretmode99")]
        Only,
    }
    let error = knowing(&["s3cretmode99"])
        .scrub(&Mode::Only, &SCHEMA)
        .unwrap_err();
    assert!(matches!(error, ScrubError::FromJson { .. }));
    assert!(!error.to_string().contains("s3cretmode99"), "{error}");
}

#[test]
fn a_payload_too_deep_to_walk_is_replaced_whole() {
    let mut value = json!("leaf");
    for _ in 0..200 {
        value = json!([value]);
    }
    let scrubbed = redactor().scrub_json(value);
    assert_eq!(scrubbed.get(), &json!("[REDACTED:redactor-error:000000]"));
    assert_eq!(
        scrubbed.findings().iter().collect::<Vec<_>>(),
        [("redactor-error", 1)]
    );
}

#[test]
fn without_an_engine_every_payload_is_replaced() {
    let broken = Redactor {
        engine: Arc::new(Engine {
            key: key(),
            known: Known::broken(),
            exact: true,
        }),
    };
    assert_eq!(broken.scrub_text("plain".to_owned()).get(), FAILED);
    assert_eq!(broken.scrub_bytes(b"plain".to_vec()).get(), FAILED.as_bytes());
    assert_eq!(broken.scrub_json(json!({"a": 1})).get(), FAILED);
    assert!(matches!(
        broken.scrub(&"plain".to_owned(), &SCHEMA),
        Err(ScrubError::Engine { .. })
    ));
    assert_eq!(
        broken.text("").1.iter().collect::<Vec<_>>(),
        [("redactor-error", 1)]
    );
}

#[test]
fn text_that_holds_a_placeholder_is_recognised() {
    let check = |text: &str, wanted: bool| assert_eq!(Redactor::holds_placeholder(text), wanted, "{text}");
    let whole = placeholder("known-value", "anything");
    check(&whole, true);
    check(&format!("key = [x] {whole}\n"), true);
    check("[REDACTED:no-such-rule:1a2b3c]", false);
    check("[REDACTED:known-value:1a2b3]", false);
    check("[REDACTED]", false);
    check("", false);
}

#[test]
fn forged_placeholders_hide_nothing() {
    let token = github();
    let found = placeholder("github-token", &token);
    check(
        &redactor(),
        &format!("[REDACTED:{token}:000000]"),
        &format!("[REDACTED:{found}:000000]"),
    );
    check(
        &redactor(),
        &format!("[REDACTED:jwt:{token}]"),
        &format!("[REDACTED:jwt:{found}]"),
    );
}

#[test]
fn bytes_that_are_not_utf_8_and_utf_16_are_redacted_in_place() {
    let token = github();
    let found = placeholder("github-token", &token);
    let around = |text: &str| [b"\xff\xfe\x80(".as_slice(), text.as_bytes(), b")\x00\xc3"].concat();
    assert_eq!(redactor().bytes(&around(&token)).0, around(&found));
    let little = |text: &str| {
        format!("the token {text} end")
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect::<Vec<_>>()
    };
    let big = |text: &str| {
        format!("the token {text} end")
            .encode_utf16()
            .flat_map(u16::to_be_bytes)
            .collect::<Vec<_>>()
    };
    assert_eq!(redactor().bytes(&little(&token)).0, little(&found));
    assert_eq!(redactor().bytes(&big(&token)).0, big(&found));
    assert!(matches!(redactor().bytes(&little(&found)).0, Cow::Borrowed(_)));
}

#[test]
fn tags_depend_on_the_key_and_debug_shows_neither_key_nor_values() {
    let token = github();
    let other = Redactor::new(RedactionKey::from_bytes([8; 32]), &[]);
    assert_ne!(redactor().text(&token).0, other.text(&token).0);
    assert_eq!(
        format!("{:?} {:?}", knowing(&[&token]), key()),
        "Redactor { .. } RedactionKey(..)"
    );
}

#[test]
fn a_value_longer_than_any_window_is_swallowed_whole() {
    for length in [513, 5000, 70_000] {
        let value = letters(80, length);
        for (before, rule) in [
            ("password=", "assigned-secret"),
            ("token: \"", "assigned-secret"),
            ("Authorization: Bearer ", "auth-header"),
        ] {
            let after = if before.ends_with('"') { "\"" } else { "\n" };
            check(
                &redactor(),
                &format!("{before}{value}{after}"),
                &format!("{before}{}{after}", placeholder(rule, &value)),
            );
        }
        let token = format!("gh{}_{value}", 'p');
        check(
            &redactor(),
            &format!("a {token} b"),
            &format!("a {} b", placeholder("github-token", &token)),
        );
    }
}

/// The number of bytes that a scan looks at cannot be observed from outside; the run memory can: repeated names, prefixes and
/// quotes must not make the engine slower than linear. Quadratic behaviour takes very long here, linear a moment.
#[test]
fn repeated_keywords_take_linear_time() {
    let end = letters(81, 12);
    for unit in [
        "password=",
        "password=\"",
        "password='x\"",
        "secret=\\\"",
        "cookie:a=",
        "Cookie: a=b; ",
        "authorization:bearer+",
        "://a:",
        "sk-",
        "eyJ",
        "eyJ-",
        "ghp_",
        "-u a:bcde ",
        "login a password ",
        "AKIA",
        "LS0tLS1CRUdJTi",
        "[REDACTED:",
        "\\u00",
        "\x1b[",
        "password=;",
    ] {
        let text = unit.repeat(100_000 / unit.len());
        let (_, findings) = redactor().text(&text);
        assert!(
            findings.iter().all(|(rule, _)| rule != "redactor-error"),
            "{unit}"
        );
    }
    for name in ["-----BEGIN ", "-----BEGIN RSA "] {
        let begin = format!("{name}{} KEY-----\n", "PRIVATE");
        let text = begin.repeat(2_000);
        assert_eq!(redactor().text(&text).0, text);
    }
    let text = format!("{}{end}", "password=".repeat(50_000));
    let redactor = redactor();
    let (redacted, findings) = redactor.text(&text);
    assert!(!redacted.contains(&end) && findings.total() == 1);
}
