//! Every dialect against one file.

use stele_edit::{Dialect, edit_input};

/// Applies an input to `src/f`; the dialect and the result as text, or the code of the refusal.
fn run(file: &str, input: &str) -> String {
    let original = (file != "(none)").then_some(file.as_bytes());
    match edit_input(Some("src/f"), original, input) {
        Ok(applied) => format!("{}|{}", applied.dialect.as_str(), String::from_utf8(applied.bytes).unwrap()),
        Err(refusal) => refusal.code.to_owned(),
    }
}

#[track_caller]
fn check(file: &str, input: &str, expected: &str) {
    let found = run(file, input);
    let why = edit_input(Some("src/f"), Some(file.as_bytes()), input).err().map(|refusal| refusal.message);
    assert_eq!(found, expected, "file {file:?}, input {input:?}, {why:?}");
}

#[test]
fn structured() {
    check("a\nb\n", r#"{"edits":[{"old":"a","new":"x"},{"old":"b","new":"y"}]}"#, "structured|x\ny\n");
    check("a\na\n", r#"{"edits":[{"old":"a","new":"x","all":true}]}"#, "structured|x\nx\n");
    check("a\na\n", "```json\n{\"edits\":[{\"old\":\"a\",\"new\":\"x\",\"near_line\":1}]}\n```", "structured|x\na\n");
    check("a\n", r#"{"edits":[{"old":"a"}]}"#, "edit.unparsed");
    check("a\n", r#"{"edits":[{"old":"","new":"b"}]}"#, "edit.exists");
    check("", r#"{"edits":[{"old":"","new":"b"}]}"#, "structured|b");
    check("(none)", r#"{"edits":[{"old":"","new":"b\n"}]}"#, "structured|b\n");
    check("(none)", r#"{"edits":[{"old":"a","new":"b\n"}]}"#, "edit.missing");
    check("a\n", r#"{"path":"src/g","edits":[{"old":"a","new":"b"}]}"#, "edit.outside");
}

#[test]
fn conflict_blocks() {
    let block = |search: &str, replace: &str| format!("<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n");
    check("a = 1\na = 10\n", &block("a = 1\n", "a = 2\n"), "conflict|a = 2\na = 10\n");
    check("a\r\nb\r\n", &block("a\n", "x\ny\n"), "conflict|x\r\ny\r\nb\r\n");
    check("a\r\nb\r\n", &block("a\r\n", "x\r\n").replace("SEARCH\n", "SEARCH\r\n"), "conflict|x\r\nb\r\n");
    check("a\nb\nc\n", &block("b\n", ""), "conflict|a\nc\n");
    check("a\nb", &block("b\n", ""), "conflict|a");
    check("a\nb", &block("b\n", "c\nd\n"), "conflict|a\nc\nd");
    check("b", &block("b\n", ""), "conflict|");
    check("a\nb", &(block("a\n", "x\n") + &block("b\n", "")), "conflict|x");
    check("a\n", &block("", "b\n"), "conflict|a\nb\n");
    check("a", &block("", "b\n"), "conflict|a\nb");
    check("a\r\n", &block("", "b\nc\n"), "conflict|a\r\nb\r\nc\r\n");
    check("(none)", &block("", "b\n"), "conflict|b\n");
    check("(none)", &block("a\n", "b\n"), "edit.missing");
    check("a\nb\n", &(block("a\n", "x\n") + "\nand\n" + &block("b\n", "y\n")), "conflict|x\ny\n");
    check("a\nb\n", &(block("a\n", "x\n") + &block("c\n", "y\n")), "edit.not_found");
    check("a\n", &block("a\n", "a\n"), "edit.no_change");
    check("a\nb\n", "<<<<<<< SEARCH\na\n=======\nx\n", "edit.unparsed");
    check("a\nb\n", "<<< \na\n===\nx\n>>>", "conflict|x\nb\n");
    check("a\nTitle\n=====\nb\n", "<<<<<<<\nTitle\n=====\n=======\nName\n====\n>>>>>>>", "conflict|a\nName\n====\nb\n");
    check("x\n  a\n  b\n", &block("a\nb\n", "a\nc\n"), "conflict|x\n  a\n  c\n");
    // A name above a block or its fence says which file it is for.
    for name in ["src/f\n```\n", "**src/f**\n", "```\n./src/f:\n"] {
        let closed = if name.contains("```") { "```\n" } else { "" };
        check("a\n", &format!("{name}{}{closed}", block("a\n", "b\n")), "conflict|b\n");
    }
    for name in ["g.py\n```python\n", "### `src/g`\n\n```\n"] {
        check("a\n", &format!("{name}{}```\n", block("a\n", "b\n")), "edit.outside");
    }
    let second = format!("src/f\n{}src/g\n{}", block("a\n", "b\n"), block("c\n", "d\n"));
    check("a\nc\n", &second, "edit.outside");
    check("a\n", &format!("As in version 2.1:\n2.1\n{}", block("a\n", "b\n")), "conflict|b\n");
    check("m\nm\n", "<<<<<<< SEARCH\n:start_line:2\n-------\nm\n=======\nn\n>>>>>>> REPLACE", "conflict|m\nn\n");
    let far = format!("m\n{}m\n", "x\n".repeat(40));
    let near = "<<<<<<< SEARCH\n:start_line:40\n-------\nm\n=======\nn\n>>>>>>> REPLACE";
    check(&far, near, &format!("conflict|m\n{}n\n", "x\n".repeat(40)));
}

#[test]
fn unified_diffs() {
    let file = "one\ntwo\nthree\nfour\n";
    for header in [
        "--- a/src/f\n+++ b/src/f\n@@ -2,2 +2,2 @@\n",
        "@@ -2,2 +2,2 @@\n",
        "@@\n",
        "--- f\n+++ f\n@@ -9,7 +9,1 @@ fn x\n",
    ] {
        check(file, &format!("{header} two\n-three\n+THREE\n"), "unified|one\ntwo\nTHREE\nfour\n");
    }
    check(file, "```diff\n@@ -1 +1 @@\n-one\n+ONE\n```\n", "unified|ONE\ntwo\nthree\nfour\n");
    check(file, "@@ -2,0 +3,1 @@\n+new\n", "unified|one\ntwo\nnew\nthree\nfour\n");
    check(file, "@@ -4,0 +5,1 @@\n+new\n", "unified|one\ntwo\nthree\nfour\nnew\n");
    check(file, "@@ -9,0 +10,1 @@\n+new\n", "edit.not_found");
    check(file, "@@\n+new\n", "edit.not_found");
    check(file, "@@ two @@\n+new\n", "unified|one\ntwo\nnew\nthree\nfour\n");
    check(file, "@@ -0,0 +1,1 @@\n+new\n", "edit.exists");
    check(file, "--- /dev/null\n+++ b/src/f\n@@ -0,0 +1 @@\n+new\n", "edit.exists");
    check("(none)", "--- /dev/null\n+++ b/src/f\n@@ -0,0 +1 @@\n+new\n", "unified|new\n");
    check("(none)", "--- /dev/null\n+++ b/src/f\n@@ -0,0 +1 @@\n+new\n\\ No newline at end of file\n", "unified|new");
    check("(none)", "@@ -1 +1 @@\n-a\n+b\n", "edit.missing");
    check(file, "--- a/other\n+++ b/other\n@@ -1 +1 @@\n-one\n+ONE\n", "unified|ONE\ntwo\nthree\nfour\n");
    check(file, "--- a/other\n+++ b/other\n@@ -1 +1 @@\n-uno\n+ONE\n", "edit.not_found");
    check(file, "--- a/other\n+++ b/other\n@@ -2,0 +3 @@\n+new\n", "edit.outside");
    check("(none)", "--- /dev/null\n+++ b/other\n@@ -0,0 +1 @@\n+new\n", "edit.outside");
    check(file, "--- a/src/f\n+++ /dev/null\n@@ -1,4 +0,0 @@\n-one\n-two\n-three\n-four\n", "edit.outside");
    check(file, "diff --git a/src/f b/src/f\nold mode 100644\nnew mode 100755\n", "edit.outside");
    check(file, "--- a/src/f\n+++ b/src/f\n", "edit.unparsed");
    check(file, "@@ -1,2 +1,2 @@\n one\n two\n", "edit.no_change");
    // Two hunks that share context, and one place of several by its number.
    check(
        "a\nb\nc\nd\ne\n",
        "@@ -1,4 +1,4 @@\n a\n-b\n+B\n c\n d\n@@ -2,4 +2,4 @@\n b\n c\n-d\n+D\n e\n",
        "unified|a\nB\nc\nD\ne\n",
    );
    let far = format!("m\n{}m\n", "x\n".repeat(40));
    check(&far, "@@ -40 +40 @@\n-m\n+n\n", &format!("unified|m\n{}n\n", "x\n".repeat(40)));
    // The ends of lines and of the file.
    check("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "unified|a\r\nc\r\n");
    check("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "unified|a\nc");
    check("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n", "unified|a\nb\n");
    check("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n", "unified|a\nb");
    check("a\nb", "@@ -1,2 +1 @@\n a\n-b\n\\ No newline at end of file\n", "unified|a\n");
    check("a\nb", "@@ -1 +1,2 @@\n a\n b\n\\ No newline at end of file\n+c\n", "unified|a\nb\nc\n");
    check("a\n", "@@ -1 +0,0 @@\n-a\n", "unified|");
    // Context keeps the bytes of the file.
    check("a  \n\tb\nc\n", "@@ -1,3 +1,3 @@\n a\n \tb\n-c\n+d\n", "unified|a  \n\tb\nd\n");
}

#[test]
fn envelopes() {
    let patch = |body: &str| format!("*** Begin Patch\n*** Update File: src/f\n{body}*** End Patch\n");
    check("a\nb\nc\n", &patch("@@\n a\n-b\n+B\n c\n"), "envelope|a\nB\nc\n");
    check("a\nb\nc\n", &patch(" a\n-b\n c\n"), "envelope|a\nc\n");
    check("a\nb", &patch("-b\n"), "envelope|a");
    check("a\n", &patch("+b\n"), "envelope|a\nb\n");
    check("a", &patch("@@\n+b\n"), "envelope|a\nb");
    check("a\nb\na\n", &patch("@@\n-a\n+A\n*** End of File\n"), "envelope|a\nb\nA\n");
    check("a\nb\n", &patch("@@\n-a\n+A\n*** End of File\n"), "edit.not_found");
    let twice = "def f():\n    x\n\ndef g():\n    x\n";
    check(twice, &patch("@@ def g():\n-    x\n+    y\n"), "envelope|def f():\n    x\n\ndef g():\n    y\n");
    check(twice, &patch("@@\n-    x\n+    y\n"), "edit.ambiguous");
    check(twice, &patch("@@ def h():\n-    x\n+    y\n"), "edit.not_found");
    check(twice, &patch("@@ def g():\n+    z\n"), "envelope|def f():\n    x\n\ndef g():\n    z\n    x\n");
    check("a\n", &patch("-wrong\n+x\n"), "edit.not_found");
    check("a\n", &patch("@@\n-a\n+b\n").replace("src/f", "src/g"), "edit.outside");
    check("a\n", "*** Begin Patch\n*** Delete File: src/f\n*** End Patch", "edit.outside");
    check("a\n", "*** Begin Patch\n*** Add File: src/f\n+b\n*** End Patch", "edit.exists");
    check("(none)", "*** Begin Patch\n*** Add File: src/f\n+b\n*** End Patch", "envelope|b\n");
    check("a\n", "*** Begin Patch\n*** Update File: src/f\n-a\n+b\n", "edit.unparsed");
    check("a\n", &patch(""), "edit.no_change");
    check("a\n", &patch("--- a/src/f\n+++ b/src/f\n@@ -1 +1 @@\n-a\n+b\n"), "edit.mixed");
}

#[test]
fn xml() {
    check("a\nb\n", "<old_text>\na\n</old_text>\n<new_text>\nx\n</new_text>\n", "xml|x\nb\n");
    check("a\nb\n", "<edits><old_text>a</old_text><new_text></new_text></edits>", "xml|\nb\n");
    check("if a < b:\n", "<old_text>if a &lt; b:</old_text><new_text>if a &gt; b:</new_text>", "xml|if a > b:\n");
    check("a\n", "<old_text>a</old_text>", "edit.unparsed");
    check("a\n", "&lt;old_text&gt;a&lt;/old_text&gt;&lt;new_text&gt;b&lt;/new_text&gt;", "xml|b\n");
    check("a\n", "<old_text></old_text><new_text>b</new_text>", "edit.exists");
}

#[test]
fn json() {
    check("a\nb\n", r#"{"search":"a\n","replace":"x\n"}"#, "json|x\nb\n");
    check("a\nb\n", "[{'search': 'a', replace: `x`,}, {search: \"b\", replace: \"y\"},]", "json|x\ny\n");
    check("a\nb\n", "search=\"a\nb\"\nreplace=\"c\"", "json|c\n");
    check("a\n", r#"{"search":"a","replace":"b""#, "edit.unparsed");
    check(
        "a\n",
        "{\"search\":\"a\",\"replace\":\"b\"}\n\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
        "edit.mixed",
    );
}

#[test]
fn sed() {
    check("a b a\n", "s/b/c/", "sed|a c a\n");
    check("a b a\n", "s/a/c/", "edit.ambiguous");
    check("a b a\n", "s/a/c/g", "sed|c b c\n");
    check("a.b axb\n", "s/a.b/c/", "sed|c axb\n");
    check("axb\n", "s/a.b/c/", "sed|c\n");
    check("foo() fo\n", "s/foo()/bar(\\&)/", "sed|bar(&) fo\n");
    check("c++ c\n", "s/c++/rust/", "sed|rust c\n");
    check("let x = 1;\n", "s/let \\(.\\) = \\([0-9]\\)/let \\2 = \\1/", "sed|let 1 = x;\n");
    check("let x = 1;\n", "s/let (.) = ([0-9])/[&] \\2/", "sed|[let x = 1] 1;\n");
    check("price\n", "s/price/$1 $name/", "sed|$1 $name\n");
    check("a\nb\n", "s/^/# /g", "sed|# a\n# b\n");
    check("a\r\nb\r\n", "s/$/;/g", "sed|a;\r\nb;\r\n");
    check("a/b\n", "s|a/b|c|", "sed|c\n");
    check("a b\n", "s/a/b/; s/b/a/", "sed|b a\n");
    check("ab\n", "s/ab/x/; s/b/y/", "edit.overlap");
    check("f(x) g\n", "s/f(x)/&\\1/", "sed|&\\1 g\n");
    check("say(\u{201c}x\u{201d})\n", "s/say(\"x\")/y/", "sed|y\n");
    check("Foo foo\n", "s/foo/x/gi", "sed|x x\n");
    check("a\n", "s/b*//g", "edit.not_found");
    check("a\n", "s/a/x\\ny/", "edit.unparsed");
    check("p(\"a\\n\")\n", "s/p(\"a\\n\")/p(\"b\\n\")/", "sed|p(\"b\\n\")\n");
    check("a\n", "sed -i 's/a/b/' src/f", "sed|b\n");
    check("a\n", "sed -i 's/a/b/' src/g", "edit.outside");
    check("a\n", "s/a/b", "edit.unparsed");
    check("a\n", "s/(/x/", "edit.not_found");
    check("a\n", "s/a/a/", "edit.no_change");
    check("x y\n", "s/[xy]/x/", "edit.ambiguous");
    check("x y\n", "s/[xy]/x/g", "sed|x x\n");
    check("(foo)\n", "s/\\(fooo*x\\)/\\1bar/", "edit.not_found");
    check("say(\u{201c}x\u{201d})\n", "s/say(\"x\")/y\\n/", "edit.unparsed");
}

#[test]
fn whole_files() {
    check("a\nb\n", "```\nx\ny\n```\n", "whole|x\ny\n");
    check("a\r\nb\r\n", "```rust\nx\ny\n```", "whole|x\r\ny\r\n");
    check("\u{feff}a\nb", "```\nx\n```", "whole|\u{feff}x");
    check("(none)", "```\nx\n```", "whole|x\n");
    check("a\n", "Here it is:\n```\nx\n```\n", "edit.unparsed");
    check("a\n", "```\nx\n", "edit.unparsed");
    check("a\n", "```\na\n```", "edit.no_change");
    check("a\n", "```\n<<<<<<< SEARCH\na\n=======\nb\n```", "edit.unparsed");
}

#[test]
fn what_is_no_dialect_or_two() {
    check("a\n", "", "edit.unparsed");
    check("a\n", " \n", "edit.unparsed");
    check("a\n", "please change a to b", "edit.unparsed");
    let block = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n";
    check("a\n", &format!("{block}--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"), "edit.mixed");
    check("a\n", &format!("*** Begin Patch\n*** Update File: src/f\n{block}*** End Patch\n"), "edit.mixed");
    check("a\n", &format!("@@ -1 +1 @@\n-a\n+b\n\n{block}"), "edit.mixed");
    check("a\n", &format!("<old_text>a</old_text><new_text>b</new_text>\n{block}"), "edit.mixed");
    // Marks of another dialect inside a block are its text.
    check(
        "@@ -1 +1 @@\nx\n",
        "<<<<<<< SEARCH\n@@ -1 +1 @@\n=======\n@@ -2 +2 @@\n>>>>>>> REPLACE\n",
        "conflict|@@ -2 +2 @@\nx\n",
    );
    let refusal =
        edit_input(None, Some(b"a\n"), &format!("{block}<old_text>a</old_text><new_text>b</new_text>")).unwrap_err();
    assert!(refusal.message.contains("conflict markers") && refusal.message.contains("XML"), "{}", refusal.message);
    assert_eq!(Dialect::Whole.as_str(), "whole");
}
