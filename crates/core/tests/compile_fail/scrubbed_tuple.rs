//! `Scrubbed` is no tuple struct that anybody could fill.
use tracegate_core::redact::Scrubbed;

fn main() {
    let _: Scrubbed<String> = Scrubbed("raw".to_owned());
}
