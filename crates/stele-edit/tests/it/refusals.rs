//! What a refusal tells the model.

use stele_edit::{CODES, Edit, apply, edit_input, limits, parse_structured, plan, stale};

fn refused(file: &str, old: &str) -> String {
    let edit = Edit { old: old.into(), new: "x".into(), ..Edit::default() };
    apply(file.as_bytes(), &[edit]).unwrap_err().to_string()
}

#[test]
fn the_closest_region_is_shown_as_a_difference() {
    let file = "fn a() {\n    one();\n}\n\nfn b() {\n\tlet total = sum(values);\n    print(total);\n}\n";
    insta::assert_snapshot!(refused(file, "    let total = sum(value);\n    print(total);\n"), @r"
    edit.not_found: the old text is not in the file; the closest is lines 6-7, 98 % the same (`-` was looked for, `+` is there). Copy the lines from the file:
    -    let total = sum(value);
    +⇥	let total = sum(values);
         print(total);
    ");
    insta::assert_snapshot!(refused("one\nline 77\n", "lime 77"), @r"
    edit.not_found: the old text is not in the file; the closest is line 2, 85 % the same (`-` was looked for, `+` is there). Copy the lines from the file:
    -lime 77
    +line 77
    ");
    insta::assert_snapshot!(refused(file, "something else entirely"), @"edit.not_found: the old text is not in the file; nothing there comes near it: read the file again, or check the path");
}

#[test]
fn every_place_is_shown() {
    let file = "if a:\n    return 1\nif b:\n    return 1\n";
    insta::assert_snapshot!(refused(file, "return 1"), @r"
    edit.ambiguous: the old text is at 2 places (lines 2, 4); add lines around it until only one fits, or name one with `near_line`, or take all with `all`

         1→if a:
         2→    return 1
         3→if b:

         3→if b:
         4→    return 1
    ");
}

#[test]
fn what_a_refusal_shows_can_be_copied() {
    let file = "if a:\n\treturn 1\nif b:\n\treturn 1\n";
    let shown = refused(file, "return 1");
    let lines: Vec<&str> = shown.lines().filter(|line| line.contains('\u{2192}')).collect();
    let edit = Edit { old: lines[3..5].join("\n"), new: "x".into(), ..Edit::default() };
    assert_eq!(apply(file.as_bytes(), &[edit]).unwrap().bytes, b"if a:\n\treturn 1\nx\n");
}

#[test]
fn numbers_that_do_not_fit_are_told_from_the_text() {
    let file: String = (1..90).map(|line| format!("line {line}\n")).collect();
    let stale = refused(&file, "70\u{2192}line 10\n71\u{2192}line 11");
    assert!(stale.contains("lines 10-11, the same but for the line numbers"), "{stale}");
    assert!(stale.contains("Leave the line numbers out"), "{stale}");
    let gap = refused(&file, "10: line 10\n12: line 12");
    assert!(gap.contains("Leave the line numbers out"), "{gap}");
}

#[test]
fn half_a_character_is_the_reason() {
    let refusal = edit_input(None, Some(b"a\n"), "{\"edits\":[{\"old\":\"a\",\"new\":\"\\ud800\"}]}").unwrap_err();
    assert!(
        refusal.code == "edit.unparsed" && refusal.message.contains("`\\ud800` is half of a surrogate pair"),
        "{refusal}"
    );
}

#[test]
fn a_line_that_lost_its_mark_is_named() {
    let diff = "--- a/f\n+++ b/f\n@@ -1,5 +1,6 @@\n a\n+x = 1\ny = 2\n";
    let refusal = edit_input(Some("f"), Some(b"a\nfoo\n"), diff).unwrap_err();
    let named = "line 6 of the input has no mark and was taken as context: y = 2";
    assert!(refusal.code == "edit.not_found" && refusal.message.contains(named), "{refusal}");
    let refusal = plan(diff, &mut |_| Some(b"a\nfoo\n".to_vec())).unwrap_err();
    assert!(refusal.message.contains(named), "{refusal}");
    // Where it is context, that is said too.
    assert_eq!(edit_input(Some("f"), Some(b"a\ny = 2\n"), diff).unwrap().notes, [named]);
}

#[test]
fn lines_that_were_left_out_are_named() {
    let diff = "@@ -1 +1 @@\n-a\n+b\nThat is all.\n";
    let notes = edit_input(Some("f"), Some(b"a\n"), diff).unwrap().notes;
    assert_eq!(notes, ["line 4 of the input is in no hunk and was left out: That is all."]);
    let patch = format!("--- a/f\n+++ b/f\n{diff}");
    let plan = plan(&patch, &mut |_| Some(b"a\n".to_vec())).unwrap();
    assert_eq!(plan[0].notes.len(), 1, "{plan:?}");
}

#[test]
fn the_encoding_is_named() {
    let edit = Edit { old: "d\u{e9}j\u{e0}".into(), new: "x".into(), ..Edit::default() };
    let refusal = apply(b"a\nd\xe9j\xe0 vu\n", &[edit]).unwrap_err();
    assert!(refusal.message.contains("ISO-8859-1"), "{}", refusal.message);
}

#[test]
fn a_changed_file_is_stale() {
    assert_eq!(stale("a", Some(b"x"), b"x"), None);
    let refusal = stale("a", Some(b"x\n"), b"y\n").unwrap();
    assert_eq!(refusal.code, "edit.stale");
    assert!(refusal.message.contains("-x\n+y\n"), "{}", refusal.message);
    assert_eq!(stale("a", None, b"y").unwrap().code, "edit.stale");
}

#[test]
fn too_much_is_refused_with_the_number() {
    let many = vec![Edit { old: "a".into(), new: "b".into(), ..Edit::default() }; limits::MAX_EDITS + 1];
    let refusal = apply(b"a", &many).unwrap_err();
    assert_eq!(refusal.code, "edit.too_large");
    assert!(refusal.message.contains("5000"), "{}", refusal.message);
    let large = vec![b'a'; limits::MAX_FILE + 1];
    assert_eq!(apply(&large, &many[..1]).unwrap_err().code, "edit.too_large");
    let long = Edit { old: "a".repeat(limits::MAX_INPUT), new: "b".into(), ..Edit::default() };
    assert_eq!(apply(b"a", &[long]).unwrap_err().code, "edit.too_large");
}

#[test]
fn messages_stay_short() {
    let file = "x".repeat(100_000) + "\n" + &"line\n".repeat(10_000);
    for old in ["line".to_owned(), "x".repeat(90_000) + "y", "lin\n".repeat(5_000)] {
        let message = refused(&file, &old);
        assert!(message.len() < 40_000, "{} bytes", message.len());
    }
}

#[test]
fn every_code_has_a_meaning() {
    let mut codes: Vec<&str> = CODES.iter().map(|(code, _)| *code).collect();
    assert!(CODES.iter().all(|(code, meaning)| code.starts_with("edit.") && !meaning.is_empty()));
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), 15);
    let page = include_str!("../../../../docs/edit.md");
    for code in codes {
        assert!(page.contains(&format!("`{code}`")), "docs/edit.md does not explain {code}");
    }
}

#[test]
fn what_would_end_text_or_changes_nothing_is_refused() {
    let code = |file: Option<&[u8]>, input: &str| edit_input(Some("f"), file, input).unwrap_err().code;
    let nul = r#"{"edits": [{"old": "a", "new": "b\u0000"}]}"#;
    assert_eq!(code(Some(b"a\n"), nul), "edit.binary");
    let created = r#"{"edits": [{"old": "", "new": "b\u0000"}]}"#;
    assert_eq!(code(None, created), "edit.binary");
    let added = "*** Begin Patch\n*** Add File: f\n+a\0b\n*** End Patch\n";
    assert_eq!(code(None, added), "edit.binary");
    assert_eq!(plan(added, &mut |_| None).unwrap_err().code, "edit.binary");
    let empty = "<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n";
    for file in [Some(&b"a\n"[..]), Some(b"a"), Some(b""), None] {
        assert_eq!(code(file, empty), "edit.no_change", "{file:?}");
    }
    let twice = r#"{"edits":[{"old":"a","new":"A"}],"edits":[{"old":"b","new":"B"}]}"#;
    assert_eq!(code(Some(b"a\nb\n"), twice), "edit.unparsed");
    assert!(parse_structured(twice).unwrap_err().message.contains("`edits` is given twice"));
}
