//! Reads tables, lists and words of a policy file and keeps their places, so that every mistake has a line.

use crate::{
    error::{ErrorCode, PolicyError, place},
    suggest::did_you_mean,
};
use std::ops::Range;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// A file while it is read; makes errors that point into it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct File<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
}

/// A value with the offset at which it stands.
#[derive(Debug, Clone)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) offset: usize,
}

impl File<'_> {
    pub(crate) fn error(
        &self,
        offset: usize,
        code: ErrorCode,
        message: String,
        help: Option<String>,
    ) -> PolicyError {
        let (line, col) = place(self.text, offset);
        PolicyError {
            file: self.name.to_owned(),
            line,
            col,
            code,
            rule: None,
            message,
            help,
        }
    }

    /// Parses the text as TOML.
    pub(crate) fn parse(&self) -> Result<DeTable<'_>, PolicyError> {
        DeTable::parse(self.text)
            .map(Spanned::into_inner)
            .map_err(|error| {
                let span = error.span().unwrap_or(0..0);
                let found = self
                    .text
                    .get(Range {
                        start: span.start,
                        end: span.end,
                    })
                    .unwrap_or_default();
                let shown: String = found
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .chars()
                    .take(40)
                    .collect();
                let message = match shown.as_str() {
                    "" => error.message().to_owned(),
                    shown => format!("{} at `{shown}`", error.message()),
                };
                self.error(span.start, ErrorCode::Syntax, message, None)
            })
    }
}

/// A table and the file that it stands in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section<'a> {
    pub(crate) file: File<'a>,
    pub(crate) table: &'a DeTable<'a>,
    /// What messages call it, as in "a rule".
    pub(crate) what: &'static str,
    pub(crate) offset: usize,
}

impl<'a> Section<'a> {
    /// Refuses every key that is not known.
    pub(crate) fn close(&self, known: &[&str]) -> Result<(), PolicyError> {
        // The map is sorted by name; the first unknown key in the file is the one to name.
        let unknown = self
            .table
            .keys()
            .filter(|key| !known.contains(&key.get_ref().as_ref()))
            .min_by_key(|key| key.span().start);
        let Some(key) = unknown else {
            return Ok(());
        };
        let name = key.get_ref().as_ref();
        let help = did_you_mean(name, known).unwrap_or_else(|| format!("the keys are {}", known.join(", ")));
        let message = format!("`{name}` is not a key of {}", self.what);
        Err(self
            .file
            .error(key.span().start, ErrorCode::UnknownKey, message, Some(help)))
    }

    fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table
            .iter()
            .find(|(name, _)| name.get_ref().as_ref() == key)
            .map(|(_, value)| value)
    }

    pub(crate) fn missing(&self, key: &str) -> PolicyError {
        let message = format!("{} has no `{key}`", self.what);
        self.file.error(self.offset, ErrorCode::MissingKey, message, None)
    }

    fn bad_type(&self, key: &str, wanted: &str, found: &Spanned<DeValue<'_>>) -> PolicyError {
        let message = format!(
            "`{key}` must be {wanted}, not {}",
            article(found.get_ref().type_str())
        );
        self.file
            .error(found.span().start, ErrorCode::BadType, message, None)
    }

    pub(crate) fn text(&self, key: &str) -> Result<Option<At<&'a str>>, PolicyError> {
        self.get(key)
            .map(|found| {
                let value = found
                    .get_ref()
                    .as_str()
                    .ok_or_else(|| self.bad_type(key, "a string", found))?;
                Ok(At {
                    value,
                    offset: found.span().start,
                })
            })
            .transpose()
    }

    pub(crate) fn flag(&self, key: &str) -> Result<bool, PolicyError> {
        self.get(key).map_or(Ok(false), |found| {
            found
                .get_ref()
                .as_bool()
                .ok_or_else(|| self.bad_type(key, "true or false", found))
        })
    }

    pub(crate) fn number(&self, key: &str) -> Result<Option<At<i64>>, PolicyError> {
        self.get(key)
            .map(|found| {
                let number = found
                    .get_ref()
                    .as_integer()
                    .and_then(|number| i64::from_str_radix(number.as_str(), number.radix()).ok())
                    .ok_or_else(|| self.bad_type(key, "a number", found))?;
                Ok(At {
                    value: number,
                    offset: found.span().start,
                })
            })
            .transpose()
    }

    /// A list of strings; absent is `None`, empty is an error because it can only be a mistake.
    pub(crate) fn list(&self, key: &str) -> Result<Option<Vec<At<&'a str>>>, PolicyError> {
        let Some(found) = self.get(key) else {
            return Ok(None);
        };
        let array = found
            .get_ref()
            .as_array()
            .ok_or_else(|| self.bad_type(key, "a list of strings", found))?;
        let mut items = Vec::new();
        for item in array.iter() {
            let value = item
                .get_ref()
                .as_str()
                .ok_or_else(|| self.bad_type(key, "a list of strings", item))?;
            items.push(At {
                value,
                offset: item.span().start,
            });
        }
        if items.is_empty() {
            let message = format!("`{key}` is an empty list");
            let help = Some("leave the key out, or list something".to_owned());
            return Err(self
                .file
                .error(found.span().start, ErrorCode::EmptyList, message, help));
        }
        Ok(Some(items))
    }

    pub(crate) fn section(&self, key: &str, what: &'static str) -> Result<Option<Self>, PolicyError> {
        self.get(key)
            .map(|found| {
                let table = found
                    .get_ref()
                    .as_table()
                    .ok_or_else(|| self.bad_type(key, "a table", found))?;
                Ok(Self {
                    file: self.file,
                    table,
                    what,
                    offset: found.span().start,
                })
            })
            .transpose()
    }

    /// The tables of `[[key]]`.
    pub(crate) fn sections(&self, key: &str, what: &'static str) -> Result<Vec<Self>, PolicyError> {
        let Some(found) = self.get(key) else {
            return Ok(Vec::new());
        };
        let wanted = "a list of tables; write `[[rule]]`";
        let array = found
            .get_ref()
            .as_array()
            .ok_or_else(|| self.bad_type(key, wanted, found))?;
        array
            .iter()
            .map(|item| {
                let table = item
                    .get_ref()
                    .as_table()
                    .ok_or_else(|| self.bad_type(key, wanted, item))?;
                Ok(Self {
                    file: self.file,
                    table,
                    what,
                    offset: item.span().start,
                })
            })
            .collect()
    }
}

fn article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {kind}")
}
