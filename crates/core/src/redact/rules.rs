//! The rule table: which prefixes begin a token, which bytes follow, and what makes it certain. Data, not code.
//!
//! Lengths are minima. A token that is longer than its vendor's present format is swallowed whole: exact lengths in other tools
//! left the tails of new formats behind. A maximum is given only where the prefix is so short that the length is the evidence.

use super::anchors::Beside;
use super::scan::Set;
use super::structural;
use regex::bytes::{Regex, RegexBuilder};
use std::sync::LazyLock;

/// The rule id of a registered value.
pub(super) const KNOWN: &str = "known-value";
/// The rule id of a value that stands under the name of a secret.
pub(super) const ASSIGNED: &str = "assigned-secret";
/// The rule id of credentials in an authorization header.
pub(super) const AUTH_HEADER: &str = "auth-header";
/// The rule id of a cookie's value.
pub(super) const COOKIE: &str = "cookie";
/// The rule id of the password in a URL.
pub(super) const USERINFO: &str = "url-userinfo";
/// The rule id of a secret that follows a command line option.
pub(super) const CLI_ARG: &str = "cli-secret-arg";
/// The rule id of a password in a netrc file.
pub(super) const NETRC: &str = "netrc";
/// The id of the placeholder that replaces a whole payload when redaction itself failed.
pub(super) const ERROR: &str = "redactor-error";

/// How a rule recognises its secret once its key has been seen.
#[derive(Clone, Copy)]
pub(super) enum How {
    /// A prefix and a run of bytes.
    Token(Token),
    /// A parser of its own: gets the scan and the offsets of the key, returns the secret's range.
    Parser(structural::Parser),
    /// The same, for what is secret by its place: a token found there names the secret better.
    Context(structural::Parser),
}

/// A token: where it may begin and how long its body is.
#[derive(Clone, Copy)]
pub(super) struct Token {
    pub(super) body: Set,
    pub(super) min: usize,
    pub(super) max: usize,
    /// Bytes before the key that belong to the token: which, and how many at least and at most.
    pub(super) behind: Option<(Set, usize, usize)>,
    /// The prefix also ends ordinary words.
    pub(super) strict: bool,
    /// The prefix is not secret and stays (`https://hooks.example/`).
    pub(super) keep_key: bool,
    /// A regular expression that the beginning of the token must match.
    pub(super) form: Option<&'static str>,
}

/// One row of the table.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) id: &'static str,
    pub(super) key: &'static str,
    pub(super) how: How,
    /// What the rule wants beside a key of less than four bytes, if it is not the body of a token.
    pub(super) beside: Option<Beside>,
}

const fn token(id: &'static str, key: &'static str, body: Set, min: usize) -> Rule {
    let token = Token {
        body,
        min,
        max: usize::MAX,
        behind: None,
        strict: false,
        keep_key: false,
        form: None,
    };
    Rule {
        id,
        key,
        how: How::Token(token),
        beside: None,
    }
}

const fn parser(id: &'static str, key: &'static str, parser: structural::Parser) -> Rule {
    Rule {
        id,
        key,
        how: How::Parser(parser),
        beside: None,
    }
}

const fn context(id: &'static str, key: &'static str, parser: structural::Parser) -> Rule {
    Rule {
        id,
        key,
        how: How::Context(parser),
        beside: None,
    }
}

impl Rule {
    const fn with(self, change: Token) -> Self {
        Self {
            how: How::Token(change),
            ..self
        }
    }

    const fn token(&self) -> Token {
        match self.how {
            How::Token(token) => token,
            How::Parser(_) | How::Context(_) => Token {
                body: Set::Alnum,
                min: 0,
                max: 0,
                behind: None,
                strict: false,
                keep_key: false,
                form: None,
            },
        }
    }

    const fn exactly(self) -> Self {
        let token = self.token();
        self.with(Token {
            max: token.min,
            strict: true,
            ..token
        })
    }

    const fn strict(self) -> Self {
        self.with(Token {
            strict: true,
            ..self.token()
        })
    }

    const fn form(self, form: &'static str) -> Self {
        self.with(Token {
            form: Some(form),
            strict: true,
            ..self.token()
        })
    }

    const fn behind(self, set: Set, min: usize, max: usize) -> Self {
        self.with(Token {
            behind: Some((set, min, max)),
            ..self.token()
        })
    }

    const fn keep_key(self) -> Self {
        self.with(Token {
            keep_key: true,
            ..self.token()
        })
    }

    const fn beside(self, beside: Beside) -> Self {
        Self {
            beside: Some(beside),
            ..self
        }
    }
}

const fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

const fn is_letter_or_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// All shapes. Sources: the vendors' documentation and the public rule sets that the reference page names; ids are stable.
pub(super) const RULES: &[Rule] = &[
    // Forges
    token("github-token", "ghp_", Set::Alnum, 30),
    token("github-token", "gho_", Set::Alnum, 30),
    token("github-token", "ghu_", Set::Alnum, 30),
    token("github-token", "ghr_", Set::Alnum, 30),
    token("github-app-token", "ghs_", Set::Dotted, 30),
    token("github-fine-grained-pat", "github_pat_", Set::Url, 50),
    token("gitlab-token", "glpat-", Set::Dotted, 18),
    token("gitlab-token", "gldt-", Set::Dotted, 18),
    token("gitlab-token", "glrt-", Set::Dotted, 18),
    token("gitlab-token", "glptt-", Set::Dotted, 18),
    token("gitlab-token", "glft-", Set::Dotted, 18),
    token("gitlab-token", "glimt-", Set::Dotted, 18),
    token("gitlab-token", "glagent-", Set::Dotted, 18),
    token("gitlab-token", "gloas-", Set::Dotted, 18),
    token("gitlab-token", "glsoat-", Set::Dotted, 18),
    token("gitlab-token", "glcbt-", Set::Dotted, 18),
    token("gitlab-token", "glffct-", Set::Dotted, 18),
    token("gitlab-runner-registration", "GR1348941", Set::Url, 18),
    token("atlassian-token", "ATATT3", Set::AnyBase64, 60),
    token("atlassian-token", "ATCTT3", Set::AnyBase64, 60),
    token("atlassian-token", "ATBB", Set::Alnum, 28).strict(),
    token("sourcegraph-token", "sgp_", Set::Url, 40),
    // Clouds
    token("aws-access-key-id", "AKIA", Set::Upper, 16).exactly(),
    token("aws-access-key-id", "ASIA", Set::Upper, 16).exactly(),
    token("aws-access-key-id", "ABIA", Set::Upper, 16).exactly(),
    token("aws-access-key-id", "ACCA", Set::Upper, 16).exactly(),
    token("aws-bedrock-key", "ABSK", Set::Base64, 100),
    token("aws-bedrock-key", "bedrock-api-key-", Set::AnyBase64, 20),
    token("google-api-key", "AIza", Set::Url, 35),
    token("google-oauth-secret", "GOCSPX-", Set::Url, 24),
    token("google-access-token", "ya29.", Set::Dotted, 30),
    token("google-refresh-token", "1//0", Set::Url, 38).strict(),
    token("azure-client-secret", "Q~", Set::Tilde, 31)
        .behind(Set::Tilde, 4, 4)
        .form(r"^[A-Za-z0-9_~.-]{3}[0-9]Q~")
        .beside(Beside::Around(is_digit, Set::Tilde)),
    context("azure-sas", "sig=", structural::query_signature),
    token("digitalocean-token", "dop_v1_", Set::Hex, 60),
    token("digitalocean-token", "doo_v1_", Set::Hex, 60),
    token("digitalocean-token", "dor_v1_", Set::Hex, 60),
    token("heroku-key", "HRKU-AA", Set::Url, 40),
    token("fly-token", "fo1_", Set::AnyBase64, 36).strict(),
    token("fly-token", "fm1r_", Set::AnyBase64, 36).strict(),
    token("fly-token", "fm2_", Set::AnyBase64, 36).strict(),
    token("netlify-token", "nfp_", Set::Alnum, 36),
    token("render-key", "rnd_", Set::Alnum, 28).strict(),
    // Models
    token("anthropic-key", "sk-ant-", Set::Url, 40),
    token("openai-key", "sk-proj-", Set::Url, 40),
    token("openai-key", "sk-svcacct-", Set::Url, 40),
    token("openai-key", "sk-admin-", Set::Url, 40),
    token("openrouter-key", "sk-or-v1-", Set::Hex, 40),
    token("langfuse-key", "sk-lf-", Set::Url, 32),
    token("sk-key", "sk-", Set::Alnum, 20).strict(),
    token("groq-key", "gsk_", Set::Alnum, 40),
    token("xai-key", "xai-", Set::Alnum, 60),
    token("huggingface-token", "hf_", Set::Alnum, 30).strict(),
    token("perplexity-key", "pplx-", Set::Alnum, 40),
    token("replicate-token", "r8_", Set::Alnum, 30).strict(),
    token("langsmith-key", "lsv2_pt_", Set::Url, 32),
    token("langsmith-key", "lsv2_sk_", Set::Url, 32),
    token("tavily-key", "tvly-", Set::Url, 24),
    token("e2b-key", "e2b_", Set::Hex, 36),
    // Chat, mail, payment
    token("slack-token", "xoxa-", Set::Url, 20),
    token("slack-token", "xoxb-", Set::Url, 20),
    token("slack-token", "xoxc-", Set::Url, 20),
    token("slack-token", "xoxd-", Set::Query, 20),
    token("slack-token", "xoxe-", Set::Url, 20),
    token("slack-token", "xoxe.xox", Set::Url, 20),
    token("slack-token", "xoxo-", Set::Url, 20),
    token("slack-token", "xoxp-", Set::Url, 20),
    token("slack-token", "xoxr-", Set::Url, 20),
    token("slack-token", "xoxs-", Set::Url, 20),
    token("slack-token", "xapp-", Set::Url, 30),
    token("slack-webhook", "hooks.slack.com/services/", Set::Path, 20).keep_key(),
    token("slack-webhook", "hooks.slack.com/workflows/", Set::Path, 20).keep_key(),
    token("discord-webhook", "discord.com/api/webhooks/", Set::Path, 40).keep_key(),
    token("discord-webhook", "discordapp.com/api/webhooks/", Set::Path, 40).keep_key(),
    token("telegram-token", ":AA", Set::Url, 30)
        .behind(Set::Digit, 8, 10)
        .form(r"^[0-9]{8,10}:")
        .beside(Beside::Before(is_digit)),
    token("stripe-key", "sk_live_", Set::Alnum, 16),
    token("stripe-key", "sk_test_", Set::Alnum, 16),
    token("stripe-key", "rk_live_", Set::Alnum, 16),
    token("stripe-key", "rk_test_", Set::Alnum, 16),
    token("stripe-webhook-secret", "whsec_", Set::Base64, 24),
    token("square-token", "sq0atp-", Set::Url, 20),
    token("square-token", "sq0csp-", Set::Url, 20),
    token("shopify-token", "shpat_", Set::Hex, 32),
    token("shopify-token", "shpca_", Set::Hex, 32),
    token("shopify-token", "shppa_", Set::Hex, 32),
    token("shopify-token", "shpss_", Set::Hex, 32),
    token("braintree-token", "access_token$production$", Set::Dollar, 40),
    token("twilio-key", "SK", Set::Hex, 32).exactly(),
    token("sendgrid-key", "SG.", Set::Dotted, 50).form(r"^SG\.[A-Za-z0-9_-]{16,}\."),
    token("mailgun-key", "key-", Set::Hex, 32).exactly(),
    token("brevo-key", "xkeysib-", Set::Url, 60),
    token("resend-key", "re_", Set::Url, 28).form(r"^re_[A-Za-z0-9]{6,12}_[A-Za-z0-9]{20}"),
    token("postman-key", "PMAK-", Set::Url, 40),
    // Registries
    token("npm-token", "npm_", Set::Alnum, 30),
    token("pypi-token", "pypi-AgE", Set::Url, 50),
    token("rubygems-key", "rubygems_", Set::Hex, 40),
    token("crates-io-token", "cio", Set::Alnum, 32).exactly(),
    token("nuget-key", "oy2", Set::Alnum, 43).exactly(),
    token("clojars-token", "CLOJARS_", Set::Alnum, 50),
    token("docker-token", "dckr_pat_", Set::Url, 20),
    token("docker-token", "dckr_oat_", Set::Url, 20),
    // Infrastructure and services
    token("vault-token", "hvs.", Set::Dotted, 24),
    token("vault-token", "hvb.", Set::Dotted, 24),
    token("vault-token", "hvr.", Set::Dotted, 24),
    token("terraform-token", ".atlasv1.", Set::Url, 50).behind(Set::Alnum, 14, 14),
    token("doppler-token", "dp.pt.", Set::Dotted, 38),
    token("doppler-token", "dp.st.", Set::Dotted, 38),
    token("doppler-token", "dp.ct.", Set::Dotted, 38),
    token("doppler-token", "dp.sa.", Set::Dotted, 38),
    token("pulumi-token", "pul-", Set::Hex, 40).exactly(),
    token("databricks-token", "dapi", Set::Url, 32).form(r"^dapi[0-9a-f]{32}"),
    token("dynatrace-token", "dt0c01.", Set::Dotted, 80),
    token("newrelic-key", "NRAK-", Set::Alnum, 24),
    token("grafana-token", "glsa_", Set::Url, 36),
    token("grafana-token", "glc_", Set::Base64, 40),
    token("sentry-token", "sntryu_", Set::Hex, 60),
    token("sentry-token", "sntrys_", Set::AnyBase64, 60),
    token("posthog-key", "phx_", Set::Alnum, 40),
    token("linear-key", "lin_api_", Set::Alnum, 36),
    token("linear-key", "lin_oauth_", Set::Alnum, 36),
    token("notion-token", "ntn_", Set::Alnum, 40),
    token("figma-token", "figd_", Set::Url, 36),
    token("airtable-token", "pat", Set::Dotted, 70).form(r"^pat[A-Za-z0-9]{14}\.[0-9a-f]{56}"),
    token("supabase-token", "sbp_", Set::Hex, 36),
    token("supabase-token", "sb_secret_", Set::Url, 24),
    token("planetscale-token", "pscale_tkn_", Set::Url, 30),
    token("planetscale-token", "pscale_pw_", Set::Url, 30),
    token("planetscale-token", "pscale_oauth_", Set::Url, 30),
    token("onepassword-token", "ops_eyJ", Set::Url, 80),
    token("age-key", "AGE-SECRET-KEY-1", Set::Upper, 50),
    // Structures
    token("password-hash", "$2a$", Set::Crypt, 50),
    token("password-hash", "$2b$", Set::Crypt, 50),
    token("password-hash", "$2y$", Set::Crypt, 50),
    token("password-hash", "$5$", Set::Crypt, 40),
    token("password-hash", "$6$", Set::Crypt, 80),
    token("password-hash", "$y$", Set::Crypt, 40),
    token("password-hash", "$argon2", Set::Crypt, 40),
    parser("private-key", "-----BEGIN ", structural::pem),
    parser("base64-private-key", "LS0tLS1CRUdJTi", structural::base64_pem),
    // With a full stop after `eyJ` the header is no object.
    parser("jwt", "eyJ", structural::jwt).beside(Beside::Body(Set::Url)),
    context(USERINFO, "://", structural::userinfo).beside(Beside::Before(is_letter_or_digit)),
    context(USERINFO, ":\\/\\/", structural::userinfo),
    context("curl-user", "-u ", structural::curl_user).beside(Beside::Before(is_blank)),
    context("curl-user", "--user ", structural::curl_user),
];

const OTHER_IDS: &[&str] = &[KNOWN, ASSIGNED, AUTH_HEADER, COOKIE, CLI_ARG, NETRC, ERROR];

/// All rule ids: the closed set that makes a placeholder a placeholder.
fn ids() -> impl Iterator<Item = &'static str> {
    RULES.iter().map(|rule| rule.id).chain(OTHER_IDS.iter().copied())
}

/// Says whether this is the id of a rule.
pub(super) fn is_rule(id: &[u8]) -> bool {
    ids().any(|rule| rule.as_bytes() == id)
}

/// Says whether the whole text is one placeholder.
pub(super) fn is_placeholder(text: &[u8]) -> bool {
    super::view::placeholder(text, is_rule) == text.len()
}

/// Says whether a text occurs in placeholders themselves, so that removing it everywhere is impossible.
pub(super) fn inside_placeholder(text: &str) -> bool {
    "[REDACTED:".contains(text) || ids().any(|id| format!("[REDACTED:{id}:").contains(text))
}

/// The compiled forms of [`RULES`], by row; nothing if one does not compile, in which case nothing may be written.
pub(super) static FORMS: LazyLock<Option<Vec<Option<Regex>>>> = LazyLock::new(|| {
    RULES
        .iter()
        .map(|rule| match rule.token().form {
            None => Some(None),
            Some(form) => RegexBuilder::new(form).unicode(false).build().ok().map(Some),
        })
        .collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_compiles_and_its_ids_fit_into_a_placeholder() {
        assert!(FORMS.is_some());
        for id in ids() {
            assert!(
                id.len() <= 32
                    && id
                        .bytes()
                        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
                "{id}"
            );
        }
    }

    #[test]
    fn no_key_occurs_twice() {
        let mut keys: Vec<_> = RULES.iter().map(|rule| rule.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), RULES.len());
    }
}
