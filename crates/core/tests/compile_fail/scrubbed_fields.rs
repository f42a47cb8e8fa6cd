//! The fields of `Scrubbed` are private.
use tracegate_core::redact::{Findings, Scrubbed};

fn main() {
    let _ = Scrubbed { value: "raw".to_owned(), findings: Findings::empty() };
}
