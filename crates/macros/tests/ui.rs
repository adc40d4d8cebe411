//! What the compiler says to a wrong `#[locked]`: `ui/*.rs`, with its words beside each.
//!
//! After a change of words: `TRYBUILD=overwrite cargo test -p bandog-macros --test ui`, and read what changed.

#[test]
fn wrong_attributes_are_told_what_to_write() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

#[test]
fn right_ones_make_the_compiler_say_nothing() {
    trybuild::TestCases::new().pass("tests/quiet/*.rs");
}
