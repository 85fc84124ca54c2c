//! What holds for every input.

use proptest::prelude::*;
use proptest::sample::select;
use stele_edit::{Edit, OnAmbiguous, Options, edit_input, plan, unified_diff};

use crate::strict::patched;

/// Parts that files and texts are made of: few enough that they meet, odd enough that levels matter.
const PARTS: &[&str] = &[
    "a",
    "b",
    "foo(",
    ")",
    "\"",
    "\u{201c}",
    "'",
    "\u{2019}",
    " ",
    "  ",
    "    ",
    "\t",
    "\n",
    "\n",
    "\n",
    "\r\n",
    "\r",
    "\\n",
    "\\\"",
    "\\",
    "-",
    "\u{2014}",
    "\u{a0}",
    "e\u{301}",
    "\u{e9}",
    "{",
    "}",
    "0, 0",
    "\u{feff}",
    "&lt;",
    "<",
    "1\u{2192}",
    "2\t",
    "1: ",
    "2- ",
    "```",
    "\u{1f600}",
    "\u{ac01}",
    "\u{1100}\u{1161}",
];

/// What dialects are made of.
const MARKS: &[&str] = &[
    "<<<<<<< SEARCH\n",
    "=======\n",
    ">>>>>>> REPLACE\n",
    "<<<\n",
    "===\n",
    ">>>\n",
    "--- a/f\n",
    "+++ b/f\n",
    "@@ -1,2 +1,2 @@\n",
    "@@\n",
    "@@ a\n",
    "@@ -0,0 +1 @@\n",
    "+a\n",
    "-a\n",
    " a\n",
    "+b\n",
    "-b\n",
    "\n",
    "\\ No newline at end of file\n",
    "*** Begin Patch\n",
    "*** End Patch\n",
    "*** Update File: f\n",
    "*** Add File: g\n",
    "*** Delete File: f\n",
    "*** Move to: h\n",
    "*** End of File\n",
    "diff --git a/f b/f\n",
    "rename from f\n",
    "rename to g\n",
    "new file mode 100644\n",
    "old mode 100644\n",
    "new mode 100755\n",
    "@@ -1,1 +1,3 @@\n",
    "--- /dev/null\n",
    "+++ /dev/null\n",
    "<old_text>",
    "</old_text>",
    "<new_text>",
    "</new_text>",
    "{\"edits\":[",
    "{\"old\":\"a\",\"new\":\"b\"}",
    "]}",
    "{search: 'a',",
    " replace: \"b\"}",
    "search=\"a\" ",
    "replace='b'",
    "s/a/b/",
    "s/\\(a\\)/\\1&/g",
    ";",
    "```\n",
    "```diff\n",
    "a\n",
    "b\n",
    "a",
    "prose \n",
    ":start_line:1\n-------\n",
    "sed -i 's/a/b/' f",
];

fn text(parts: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(select(parts), 0..most).prop_map(|parts| parts.concat())
}

fn file() -> impl Strategy<Value = Vec<u8>> {
    let odd = prop::collection::vec(any::<u8>(), 0..4);
    (text(PARTS, 40), any::<prop::sample::Index>(), odd, any::<bool>()).prop_map(|(text, at, odd, put)| {
        let mut bytes = text.into_bytes();
        if put {
            let at = at.index(bytes.len() + 1);
            bytes.splice(at..at, odd);
        }
        bytes
    })
}

/// A text that may well be in the file: a stretch of it, perhaps with line feeds only.
fn old(file: &[u8], from: prop::sample::Index, length: usize, plain: bool) -> String {
    let from = from.index(file.len() + 1);
    let text = String::from_utf8_lossy(&file[from..(from + length).min(file.len())]).into_owned();
    if plain { text.replace("\r\n", "\n").replace(['\t', '\u{a0}'], " ") } else { text }
}

fn options(odd: u8) -> Options {
    let on_ambiguous = if odd & 1 == 0 { OnAmbiguous::Refuse } else { OnAmbiguous::Last };
    Options { fuzzy: odd & 2 == 0, on_ambiguous, root: None }
}

#[track_caller]
fn reported(before: &[u8], after: &[u8]) {
    let diff = unified_diff("f", before, after);
    assert_eq!(patched(before, diff.bytes()).as_deref(), Some(after), "{}", diff.text);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_reported_difference_is_all_that_changes(before in file(), after in file()) {
        reported(&before, &after);
    }

    #[test]
    fn edits_change_what_they_name(
        file in file(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..30_usize, any::<bool>(), text(PARTS, 8), any::<bool>(), prop::option::of(1..9_u64)), 1..4),
        odd in any::<u8>(),
    ) {
        let edits: Vec<Edit> = edits
            .into_iter()
            .map(|(from, length, plain, new, all, near_line)| Edit { old: old(&file, from, length, plain), new, all, near_line })
            .collect();
        if let Ok(applied) = options(odd).apply(&file, &edits) {
            prop_assert_ne!(&applied.bytes, &file);
            prop_assert!(applied.places.len() >= edits.len());
            reported(&file, &applied.bytes);
            // Everything that is new comes from the new texts or is a line end or indentation.
            let new: usize = edits.iter().map(|edit| edit.new.len() * 4 + 64).sum();
            prop_assert!(applied.bytes.len() <= file.len() + new * applied.places.len());
        }
    }

    #[test]
    fn one_exact_edit_touches_nothing_else(
        before in text(PARTS, 20),
        after in text(PARTS, 20),
        new in text(PARTS, 6),
        odd in any::<u8>(),
    ) {
        let file = format!("{before}<the place>{after}");
        let edit = Edit { old: "<the place>".into(), new, ..Edit::default() };
        let applied = options(odd).apply(file.as_bytes(), &[edit]).unwrap();
        prop_assert!(applied.bytes.starts_with(before.as_bytes()) && applied.bytes.ends_with(after.as_bytes()));
    }

    #[test]
    fn a_slip_changes_nothing_else(
        lines in prop::collection::vec("[a-z]{1,4}( = [0-9]{1,3};?)?", 3..12),
        crlf in any::<bool>(),
        space in prop::collection::vec(select(vec!["", "", " ", "\t"]), 12),
        first in any::<prop::sample::Index>(),
        count in 1..4_usize,
    ) {
        // Whole lines are replaced; the old text has other line ends and no trailing space. No line is there twice.
        let lines: Vec<String> = lines.iter().enumerate().map(|(index, line)| format!("{line} [{index}]")).collect();
        let end = if crlf { "\r\n" } else { "\n" };
        let file: Vec<String> = lines.iter().zip(&space).map(|(line, space)| format!("{line}{space}{end}")).collect();
        let first = first.index(lines.len());
        let last = (first + count).min(lines.len());
        let old = lines[first..last].join("\n") + "\n";
        let edit = Edit { old, new: "NEW 1\nNEW 2\n".into(), ..Edit::default() };
        let applied = stele_edit::apply(file.concat().as_bytes(), &[edit]).unwrap();
        let new = format!("NEW 1{end}NEW 2{end}");
        prop_assert_eq!(
            String::from_utf8(applied.bytes).unwrap(),
            file[..first].concat() + &new + &file[last..].concat()
        );
    }

    #[test]
    fn no_line_of_a_hunk_is_dropped(
        context in 1..4_usize,
        added in prop::collection::vec((select(vec!["", "  ", "    "]), any::<bool>(), any::<bool>()), 1..6),
        numbers in any::<bool>(),
        rest in any::<bool>(),
    ) {
        // Some of the added lines have lost their mark, some have a blank line before them.
        let file: Vec<String> = (0..6).map(|line| format!("line {line}")).collect();
        let mut hunk: Vec<String> = file[..context].iter().map(|line| format!(" {line}")).collect();
        let mut new = file[..context].to_vec();
        for (number, (indent, marked, blank)) in added.iter().enumerate() {
            let mark = if *marked { "+" } else { "" };
            if *blank {
                new.push(String::new());
                hunk.push(mark.to_owned());
            }
            new.push(format!("{indent}new {number}"));
            hunk.push(format!("{mark}{indent}new {number}"));
        }
        new.extend_from_slice(&file[context..]);
        let end = if rest { file.len() } else { context };
        hunk.extend(file[context..end].iter().map(|line| format!(" {line}")));
        let header = if numbers { format!("@@ -1,{end} +1,{} @@", end + new.len() - file.len()) } else { "@@".to_owned() };
        let input = format!("--- a/f\n+++ b/f\n{header}\n{}\n", hunk.join("\n"));
        let (file, new) = (file.join("\n") + "\n", new.join("\n") + "\n");
        match edit_input(Some("f"), Some(file.as_bytes()), &input) {
            Ok(applied) => {
                // Without numbers nobody can tell prose after a blank line from lines of the hunk; then it is said.
                let all = String::from_utf8(applied.bytes).unwrap() == new;
                prop_assert!(all || applied.notes.iter().any(|note| note.contains("left out")), "{}", input);
                prop_assert!(all || !numbers && !rest, "{}", input);
            }
            Err(refusal) => prop_assert!(added.iter().any(|(_, marked, _)| !marked), "{} in {}", refusal, input),
        }
    }

    #[test]
    fn no_form_beside_another_is_dropped(
        forms in prop::sample::subsequence((0..7_usize).collect::<Vec<_>>(), 2),
        swap in any::<bool>(),
        between in select(vec!["", "\n", "\nThen:\n\n", "\n\n"]),
    ) {
        let form = |kind: usize, line: &str| match kind {
            0 => format!("<<<<<<< SEARCH\n{line}\n=======\nnew {line}\n>>>>>>> REPLACE\n"),
            1 => format!("--- a/f\n+++ b/f\n@@\n-{line}\n+new {line}\n"),
            2 => format!("*** Begin Patch\n*** Update File: f\n@@\n-{line}\n+new {line}\n*** End Patch\n"),
            3 => format!("<old_text>{line}</old_text>\n<new_text>new {line}</new_text>\n"),
            4 => format!("{{\"search\": \"{line}\", \"replace\": \"new {line}\"}}\n"),
            5 => format!("s/{line}/new {line}/\n"),
            _ => format!("```\nnew {line}\n```\n"),
        };
        let (first, second) = if swap { (forms[1], forms[0]) } else { (forms[0], forms[1]) };
        let input = form(first, "one") + between + &form(second, "two");
        let applied = edit_input(Some("f"), Some(b"one\ntwo\n"), &input);
        let code = applied.as_ref().err().map(|refusal| refusal.code);
        prop_assert!(matches!(code, Some("edit.mixed" | "edit.unparsed" | "edit.not_found")), "{applied:?} of {input}");
    }

    #[test]
    fn what_looks_the_same_keeps_its_bytes(
        words in prop::collection::vec((select(vec!["\u{201c}", "\u{2019}", "\u{2014}", "\u{a0}", "e\u{301}", "\"", "-"]), "[a-z]{1,3}"), 1..8),
        at in any::<prop::sample::Index>(),
    ) {
        let plain = |text: &str| {
            text.replace('\u{201c}', "\"").replace('\u{2019}', "'").replace('\u{2014}', "-").replace('\u{a0}', " ").replace("e\u{301}", "\u{e9}")
        };
        // One word becomes another; what is between the words looks the same on both sides.
        let line = |changed: Option<usize>| -> String {
            let word = |(number, (mark, word)): (usize, &(&str, String))| match changed {
                Some(at) if at == number => format!("{mark} NEW "),
                _ => format!("{mark} {word} "),
            };
            "=".to_owned() + &words.iter().enumerate().map(word).collect::<String>() + "="
        };
        let (before, after) = (line(None), line(Some(at.index(words.len()))));
        let edit = Edit { old: plain(&before), new: plain(&after), ..Edit::default() };
        let applied = stele_edit::apply(format!("a\n{before}\nb\n").as_bytes(), &[edit]).unwrap();
        prop_assert_eq!(String::from_utf8(applied.bytes).unwrap(), format!("a\n{after}\nb\n"));
    }

    #[test]
    fn inputs_of_marks(file in file(), input in text(MARKS, 24), there in any::<bool>(), odd in any::<u8>()) {
        let original = there.then_some(&file[..]);
        if let Ok(applied) = options(odd).edit_input(Some("f"), original, &input) {
            reported(&file[..if there { file.len() } else { 0 }], &applied.bytes);
        }
        let _ = options(odd).plan(&input, &mut |path| (path == "f").then(|| file.clone()));
    }

    #[test]
    fn inputs_of_anything(input in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = edit_input(None, Some(&bytes), &input);
        let _ = edit_input(None, None, &String::from_utf8_lossy(&bytes));
        let _ = plan(&input, &mut |_| Some(bytes.clone()));
        for start in ["<<<<<<< SEARCH\n", "--- a\n+++ b\n@@ -1 +1 @@\n", "*** Begin Patch\n", "<old_text>", "{\"search\":\"", "s/", "```\n"] {
            let _ = edit_input(None, Some(&bytes), &format!("{start}{input}"));
        }
    }

    #[test]
    fn own_differences_apply(before in text(PARTS, 30), after in text(PARTS, 30)) {
        // A difference of the engine, read as a dialect, gives the same file; a lone carriage return is no line end there.
        let (before, after) = (before.replace('\r', ""), after.replace('\r', ""));
        let plain = |text: &str| !text.contains('\u{feff}');
        if before != after && !before.is_empty() && plain(&before) && plain(&after) {
            let diff = unified_diff("f", before.as_bytes(), after.as_bytes());
            match edit_input(Some("f"), Some(before.as_bytes()), &diff.text) {
                Ok(applied) => prop_assert_eq!(String::from_utf8(applied.bytes).unwrap(), after),
                // Two hunks may fit in several places, or an addition may be the only line there.
                Err(refusal) => prop_assert!(
                    matches!(refusal.code, "edit.ambiguous" | "edit.exists" | "edit.mixed" | "edit.unparsed" | "edit.no_change"),
                    "{} in\n{}", refusal, diff.text
                ),
            }
        }
    }
}

#[test]
fn repetition_stays_bounded() {
    let line = "aaaa aaaa\n".repeat(3_000);
    for (old, new) in [
        ("aaaa aaaa\n".repeat(1_500) + "b", "x"),
        ("aaaa  aaaa\n".repeat(1_500), "x"),
        ("\taaaa aaaa\n".repeat(800), "x"),
        ("a".repeat(20_000), "b"),
    ] {
        let edit = Edit { old, new: new.into(), ..Edit::default() };
        assert!(stele_edit::apply(line.as_bytes(), &[edit]).is_err());
    }
    for part in [
        "<<<<<\n",
        "@@\n",
        "*** End Patch\n",
        "+\n",
        "\n",
        "{",
        "[",
        "\"",
        "<old_text>",
        "s/",
        "```\n",
        "--- a\n+++ b\n",
        " \n",
        "\\",
    ] {
        let _ = edit_input(None, Some(line.as_bytes()), &part.repeat(3_000));
        let _ = edit_input(
            None,
            Some(line.as_bytes()),
            &format!("*** Begin Patch\n*** Add File: a\n+\n{}", part.repeat(3_000)),
        );
        let _ = edit_input(None, Some(line.as_bytes()), &format!("@@ -1,9 +1,9 @@\n-a\n{}", part.repeat(3_000)));
    }
}
