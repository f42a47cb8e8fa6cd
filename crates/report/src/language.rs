//! The languages of fixed text. What a run recorded is never translated.

use serde::{Deserialize, Serialize};

/// In which language titles and sentences are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// English.
    #[default]
    En,
    /// Chinese, the language of the seed documents.
    Zh,
}

impl Language {
    /// Returns the text of this language.
    pub(crate) fn pick<T>(self, en: T, zh: T) -> T {
        match self {
            Self::En => en,
            Self::Zh => zh,
        }
    }
}
