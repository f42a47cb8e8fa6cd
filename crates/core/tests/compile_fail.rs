//! Proof that only the redactor makes `Scrubbed` values: what another crate could try does not compile.
#[test]
fn scrubbed_values_cannot_be_made_outside_the_redactor() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/scrubbed_*.rs");
}
