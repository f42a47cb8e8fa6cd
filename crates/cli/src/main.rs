//! The `tracegate` command.
fn main() {}
