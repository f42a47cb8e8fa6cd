//! Proof that nothing is executed without a ruling: what another crate could try does not compile.
#[test]
fn a_permitted_action_comes_from_the_gate_alone() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/permitted_*.rs");
}
