//! Faults that users of coding agents reported in public, and the behaviour that is right.

use stele_edit::{apply, edit_input, parse_structured, plan};

/// The edits of a recorded tool call.
fn call(json: &str) -> Vec<stele_edit::Edit> {
    parse_structured(json).unwrap()
}

#[test]
fn line_feeds_match_a_file_with_carriage_returns() {
    let edits = call(include_str!("cases/crlf/input.call.json"));
    let applied = apply(include_bytes!("cases/crlf/input.file"), &edits).unwrap();
    assert_eq!(applied.bytes, include_bytes!("cases/crlf/expected.file"));
}

#[test]
fn a_patch_leaves_the_end_of_the_file_alone() {
    let file = include_bytes!("cases/no-final-newline/input.file");
    let patch = include_str!("cases/no-final-newline/input.patch");
    let changes = plan(patch, &mut |path| (path == "input.file").then(|| file.to_vec())).unwrap();
    let expected = include_bytes!("cases/no-final-newline/expected.file");
    assert_eq!(changes[0].after.as_deref(), Some(&expected[..]));
    assert_eq!(edit_input(Some("input.file"), Some(file), patch).unwrap().bytes, expected);
}

#[test]
fn bytes_that_are_not_utf8_stay() {
    let edits = call(include_str!("cases/latin1/input.call.json"));
    let applied = apply(include_bytes!("cases/latin1/input.file"), &edits).unwrap();
    assert_eq!(applied.bytes, include_bytes!("cases/latin1/expected.file"));
}

#[test]
fn a_replacement_is_put_in_as_it_is() {
    let edits = call(include_str!("cases/dollar/input.call.json"));
    let applied = apply(include_bytes!("cases/dollar/input.file"), &edits).unwrap();
    assert_eq!(applied.bytes, include_bytes!("cases/dollar/expected.file"));
}

#[test]
fn two_distant_fragments_are_no_place() {
    let edits = call(include_str!("cases/two-anchors/input.call.json"));
    let refusal = apply(include_bytes!("cases/two-anchors/input.file"), &edits).unwrap_err();
    assert_eq!(refusal.code, "edit.not_found");
    let fuzzy = stele_edit::Options { fuzzy: true, ..Default::default() };
    assert_eq!(fuzzy.apply(include_bytes!("cases/two-anchors/input.file"), &edits).unwrap_err().code, "edit.not_found");
}

#[test]
fn two_look_alike_blocks_are_ambiguous() {
    let file = include_bytes!("cases/lookalike-hunk/input.file");
    let patch = include_str!("cases/lookalike-hunk/input.patch");
    let refusal = edit_input(Some("input.file"), Some(file), patch).unwrap_err();
    assert_eq!(refusal.code, "edit.ambiguous");
    assert!(refusal.message.contains("2 places (lines 3, 10)"), "{}", refusal.message);
}

#[test]
fn escapes_of_the_language_are_not_decoded_again() {
    let edits = call(include_str!("cases/escapes/input.call.json"));
    let applied = apply(include_bytes!("cases/escapes/input.file"), &edits).unwrap();
    assert_eq!(applied.bytes, include_bytes!("cases/escapes/expected.file"));
}

#[test]
fn a_hunk_with_a_right_line_number_and_wrong_context_is_refused() {
    let file = b"one\ntwo\nthree\n";
    let patch = "--- a/f\n+++ b/f\n@@ -2,2 +2,2 @@\n wrong\n-context\n+x\n";
    assert_eq!(edit_input(Some("f"), Some(file), patch).unwrap_err().code, "edit.not_found");
}
