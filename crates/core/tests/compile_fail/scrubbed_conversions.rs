//! No conversion and no default makes a `Scrubbed`.
use tracegate_core::redact::Scrubbed;

fn main() {
    let _: Scrubbed<String> = "raw".to_owned().into();
    let _ = Scrubbed::<String>::default();
}
