//! Patterns of a case: over workspace paths, and over the text of the final answer.

use globset::{GlobBuilder, GlobMatcher};
use regex::{Regex, RegexBuilder};

/// The largest compiled regular expression, in bytes: a case is data, and data must not take the memory away.
const REGEX_LIMIT: usize = 1 << 20;

/// A path relative to the workspace, or a glob over such paths in which `*` stays inside a folder and `**` does not.
#[derive(Debug, Clone)]
pub struct PathPattern {
    text: String,
    matcher: GlobMatcher,
}

impl PathPattern {
    /// Compiles `text`.
    ///
    /// # Errors
    /// When it is no glob, with the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        let glob = GlobBuilder::new(plain(text))
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| error.kind().to_string())?;
        Ok(Self {
            text: text.to_owned(),
            matcher: glob.compile_matcher(),
        })
    }

    /// Returns the pattern as the case spells it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Tells whether `path` is meant. The pattern's own spelling always is, so that `src/[id].ts` can be named as it stands.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        let path = plain(path);
        path == plain(&self.text) || self.matcher.is_match(path)
    }
}

impl PartialEq for PathPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// Drops what does not change where a relative path leads.
fn plain(path: &str) -> &str {
    path.trim_start_matches("./")
}

/// A regular expression over the final answer.
#[derive(Debug, Clone)]
pub struct AnswerPattern(Regex);

impl AnswerPattern {
    /// Compiles `text`.
    ///
    /// # Errors
    /// When it is no regular expression, or too large a one, with the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        let built = RegexBuilder::new(text).size_limit(REGEX_LIMIT).build();
        built.map(Self).map_err(|error| {
            if let regex::Error::CompiledTooBig(limit) = error {
                return format!("compiled, it is larger than {limit} bytes");
            }
            // The message draws the pattern over several lines; the last one says why.
            let said = error.to_string();
            let last = said.lines().last().unwrap_or_default();
            last.trim_start_matches("error: ").to_owned()
        })
    }

    /// Returns the expression as the case spells it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the first match.
    #[must_use]
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.0.find(text).map(|found| found.as_str())
    }
}

impl PartialEq for AnswerPattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_means_its_own_spelling_and_what_its_glob_matches() {
        for (pattern, path, meant) in [
            ("src/math.ts", "src/math.ts", true),
            ("./src/math.ts", "src/math.ts", true),
            ("src/math.ts", "./src/math.ts", true),
            ("src/*.ts", "src/math.ts", true),
            ("src/*.ts", "src/deep/math.ts", false),
            ("src/**/*.ts", "src/deep/er/math.ts", true),
            ("src/[id].ts", "src/[id].ts", true),
            ("src/math.ts", "src/math.tsx", false),
            ("math.ts", "src/math.ts", false),
        ] {
            let parsed = PathPattern::parse(pattern).unwrap();
            assert_eq!(parsed.matches(path), meant, "{pattern} {path}");
        }
        assert!(PathPattern::parse("a[").is_err());
    }

    #[test]
    fn an_expression_that_is_none_says_why() {
        assert_eq!(AnswerPattern::parse("(").unwrap_err(), "unclosed group");
        assert!(AnswerPattern::parse("(((a{500}){500}){500})").is_err());
        assert_eq!(
            AnswerPattern::parse("(?i)all passed")
                .unwrap()
                .find("ALL PASSED!"),
            Some("ALL PASSED")
        );
    }
}
