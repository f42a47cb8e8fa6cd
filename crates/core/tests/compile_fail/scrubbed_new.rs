//! The constructor of `Scrubbed` belongs to the redactor.
use tracegate_core::redact::{Findings, Scrubbed};

fn main() {
    let _ = Scrubbed::new("raw".to_owned(), Findings::empty());
}
