//! The levels, one by one, and what is kept of the file.

use stele_edit::{Edit, OnAmbiguous, Options, apply};

fn edit(old: &str, new: &str) -> Edit {
    Edit { old: old.into(), new: new.into(), ..Edit::default() }
}

/// Applies one edit; the result as text with the names of the levels in front, or the code of the refusal.
fn run(file: &str, old: &str, new: &str) -> String {
    match apply(file.as_bytes(), &[edit(old, new)]) {
        Ok(applied) => {
            let healed: Vec<&str> = applied.healed.iter().map(|healed| healed.as_str()).collect();
            format!("{}|{}", healed.join("+"), String::from_utf8(applied.bytes).unwrap())
        }
        Err(refusal) => refusal.code.to_owned(),
    }
}

#[track_caller]
fn check(file: &str, old: &str, new: &str, expected: &str) {
    assert_eq!(run(file, old, new), expected, "file {file:?}, old {old:?}, new {new:?}");
}

#[test]
fn exact() {
    check("a = 1\nb = 2\n", "a = 1", "a = 3", "|a = 3\nb = 2\n");
    check("a = 10\n", "a = 1", "a = 2", "|a = 20\n");
    check("x(0, 0, 0)", "0, 0", "1", "edit.ambiguous");
    check("a\n", "a\n", "", "|");
    check("a\nb\n", "", "c", "edit.exists");
    check("", "", "c\n", "|c\n");
    check("a\n", "a", "a", "edit.no_change");
    // New text takes the line ends of its place.
    check("a\r\nb\r\n", "a", "x\ny", "|x\r\ny\r\nb\r\n");
    check("a\nb\r\nc\r\n", "a", "x\ny", "|x\ny\nb\r\nc\r\n");
    check("a\nb\n", "a", "x\r\ny", "|x\ny\nb\n");
    check("a\rb\r", "a", "x\ny", "|x\ry\rb\r");
}

#[test]
fn line_ends() {
    check("a\r\nb\r\nc\r\n", "a\nb", "a\nB", "line_ends|a\r\nB\r\nc\r\n");
    check("a\nb\nc\n", "a\r\nb\r\n", "A\r\nb\r\n", "line_ends|A\nb\nc\n");
    // A mixed file keeps the ends of the lines that stay.
    check("a\r\nb\nc\r\nd\n", "a\nb\nc\nd", "a\nB\nc\nd", "line_ends|a\r\nB\r\nc\r\nd\n");
    // A line end too many at the end of the file.
    check("a\nb", "b\n", "c\n", "line_ends|a\nc");
    check("a\nb", "b\n", "c\nd\n", "line_ends|a\nc\nd");
    // A text that starts with a line feed does not split the line end of the file.
    check("a\r\nb\r\n", "\nb", "\nc", "line_ends|a\r\nc\r\n");
    check("a\r\nb\r\n", "a\r", "c", "trailing_space|c\r\nb\r\n");
    check("a\rb\r", "a\nb", "a\nc", "line_ends|a\rc\r");
}

#[test]
fn trailing_space() {
    check("a  \nb\n", "a\nb", "a\nc", "trailing_space|a  \nc\n");
    check("a\nb\n", "a \nb", "x\nb", "trailing_space|x\nb\n");
    check("a\t\r\nb\r\n", "a\nb\n", "a\nc\n", "trailing_space|a\t\r\nc\r\n");
    check("    x = 1  \n", "x = 1 \n", "x = 2\n", "trailing_space|    x = 2\n");
    // White space inside a line is no trailing space.
    check("foobar\n", "foo ", "baz ", "edit.not_found");
    check("foo   \nbar\n", "foo ", "baz", "|baz  \nbar\n");
    check("foo\n", "foo ", "baz", "trailing_space|baz\n");
}

#[test]
fn unicode() {
    check("say(\u{201c}hi\u{201d})\n", "say(\"hi\")", "say(\"ho\")", "unicode|say(\u{201c}ho\u{201d})\n");
    check("a \u{2013} b\nc\n", "a - b\nc", "a - b\nd", "unicode|a \u{2013} b\nd\n");
    check("x\u{a0}=\u{202f}1\n", "x = 1", "x = 2", "unicode|x\u{a0}=\u{202f}2\n");
    check("cafe\u{301} = 1\n", "caf\u{e9} = 1", "caf\u{e9} = 2", "unicode|cafe\u{301} = 2\n");
    check("caf\u{e9} = 1\n", "cafe\u{301} = 1", "x = 2", "unicode|x = 2\n");
    check("\u{2018}a\u{2019} 'a'\n", "\"a\"", "b", "edit.not_found");
    check("\u{2018}a\u{2019} \u{201b}a\u{2019}\n", "'a'", "b", "edit.ambiguous");
    // An accent is not cut off its letter.
    check("cafe\u{301}\u{a0}x\n", "cafe x", "y", "edit.not_found");
    check("\u{1100}\u{1161}\u{11a8} = 1\n", "\u{ac01} = 1", "x", "unicode|x\n");
}

#[test]
fn indentation() {
    check("\tif a:\n\t\tb()\n", "if a:\n    b()\n", "if a:\n    c()\n", "indentation|\tif a:\n\t\tc()\n");
    check(
        "    if a:\n      b()\n",
        "if a:\n  b()\n",
        "if a:\n  c()\n  d()\n",
        "indentation|    if a:\n      c()\n      d()\n",
    );
    check("if a:\n  b()\n", "    if a:\n      b()\n", "    if a:\n      c()\n", "indentation|if a:\n  c()\n");
    check("\ta\n\t\tb\n", "    a\n        b", "    a\n        c\n            d", "indentation|\ta\n\t\tc\n\t\t\td\n");
    check("    a\n        b\n", "\ta\n\t\tb", "\ta\n\t\t\tc", "indentation|    a\n            c\n");
    // Scaling is refused, and so is a shift that is not the same on every line.
    check("    a\n        b\n", "  a\n    b", "  a\n    c", "edit.not_found");
    check("  a\n    b\n", " a\n b", "x", "edit.not_found");
    // Two places at other depths are two places.
    check("  a()\n  b()\n\n    a()\n    b()\n", "a()\nb()\nc", "x", "edit.not_found");
    check("\t\ta()\n\t\tb()\n\t\t\ta()\n\t\t\tb()\n", "    a()\n    b()", "    c()", "edit.ambiguous");
    // What stays keeps its bytes, blank lines get no indentation, and the line ends are the file's.
    check(
        "\tx = [\r\n\t\t1,  \r\n\t]\r\n",
        "x = [\n\t1,\n]\n",
        "x = [\n\t1,\n\n\t2,\n]\n",
        "indentation|\tx = [\r\n\t\t1,  \r\n\r\n\t\t2,\r\n\t]\r\n",
    );
    // A new line with less than what has to come off cannot be placed.
    check("a\n  b\n", "  a\n    b", "c\n    b", "edit.not_found");
    // The text began inside its first line.
    check(
        "\tif a {\n\t\tb();\n\t}\n",
        "if a {\n        b();\n    }",
        "if a {\n        c();\n    }",
        "indentation|\tif a {\n\t\tc();\n\t}\n",
    );
    check("one\n\ttwo\n", "one\n    two", "one\n    two\n    three", "indentation|one\n\ttwo\n\tthree\n");
}

#[test]
fn escape_slips() {
    check("print(\"a\")\nx\n", "print(\\\"a\\\")", "print(1)", "escapes|print(1)\nx\n");
    check("a\nb\nc\n", "a\\nb", "d", "escapes|d\nc\n");
    check("v[0] = 1\n", "v\\[0\\] = 1", "v[0] = 2", "escapes|v[0] = 2\n");
    check("  p(\"a\\n\")\n", "p(\\\"a\\\\n\\\")", "p(1)", "escapes|  p(1)\n");
    check("print(\"a\")\n", "print(\\\"a\\\")", "print(\\\"b\\\")", "edit.escape_slip");
    // Other escapes in the new text are its own.
    check("print(\"a\")\n", "print(\\\"a\\\")", "print('b\\n')", "escapes|print('b\\n')\n");
    check("p(\"a\\n\")\n", "p(\"a\\n\")", "p(\"b\\n\\t\\0\")", "|p(\"b\\n\\t\\0\")\n");
    check("p(\"a\")\np(\"a\")\n", "p(\\\"a\\\")", "q", "edit.ambiguous");
}

#[test]
fn blank_lines() {
    check("a\n\n\nb\nc\n", "a\n\nb\n", "a\n\nB\n", "blank_lines|a\n\n\nB\nc\n");
    check("a\nb\nc\n", "a\n\nb\n", "a\n\nB\n", "blank_lines|a\nB\nc\n");
    check("a\n\nb\nc\n", "a\nb\nc", "a\nb\nC", "blank_lines|a\n\nb\nC\n");
    check("\ta\n\n\tb\n", "a\nb", "a\nB", "blank_lines|\ta\n\n\tB\n");
    check("x\n\na\nb\n", "\n\n\na\nb", "\n\n\na\nB", "blank_lines|x\n\na\nB\n");
    check("a\n\nb\na\n\n\nb\n", "a\nb", "c", "edit.ambiguous");
    check("a\n\nb\n", "a\n\n\n\nb\n", "a\nb\n", "blank_lines|a\nb\n");
    check("a\n \nb", "a\nb\n", "a\nc\n", "blank_lines|a\n \nc");
}

#[test]
fn wrappings() {
    check("fn a() {\n}\n", "```rust\nfn a() {\n}\n```", "```rust\nfn b() {\n}\n```", "fence|fn b() {\n}\n");
    check("a\nb\nc\n", "     2\u{2192}b\n     3\u{2192}c", "     2\u{2192}B\n     3\u{2192}c", "gutter|a\nB\nc\n");
    check("a\nb\nc\n", "2\u{2192}b\n3\u{2192}c\n", "B\nc\n", "gutter|a\nB\nc\n");
    check("if a < b && c {\n", "if a &lt; b &amp;&amp; c {", "if a &gt; b {", "html|if a > b {\n");
    check("a<b\n", "<![CDATA[a<b]]>", "<![CDATA[a<c]]>", "cdata|a<c\n");
    check("a<b\n", "<![CDATA[\na<b\n]]>", "a<c", "cdata|a<c\n");
    check("<![CDATA[a<b]]>\n", "<![CDATA[a<b]]>", "<![CDATA[a<c]]>", "|<![CDATA[a<c]]>\n");
    // Numbers that are not near the place, or are data, are no gutter.
    let far = format!("{}b\nc\n", "x\n".repeat(60));
    check(&far, "2\u{2192}b\n3\u{2192}c\n", "B\nc\n", "edit.not_found");
    check("2\u{2192}b\n", "2\u{2192}b", "2\u{2192}B", "|2\u{2192}B\n");
    check("a\nb\nc\n", "2\u{2192}b\n4\u{2192}c", "B\nc", "edit.not_found");
    check("a\nb\nc\n", "2\tb\n3\tc", "B\nc", "edit.not_found");
    check("a &lt; b\n", "a &lt; b", "a &gt; b", "|a &gt; b\n");
}

#[test]
fn the_last_level_only_on_demand() {
    let body: String = (0..20).map(|line| format!("    let value_{line} = compute({line});\n")).collect();
    let file = format!("fn a() {{\n{body}}}\n");
    let old = file.replace("compute(7)", "compte(7)");
    let new = old.replace("compute(3)", "compute(33)");
    assert_eq!(run(&file, &old, &new), "edit.not_found");
    let fuzzy = Options { fuzzy: true, ..Options::default() };
    let applied = fuzzy.apply(file.as_bytes(), &[edit(&old, &new)]).unwrap();
    assert_eq!(String::from_utf8(applied.bytes).unwrap(), file.replace("compute(3)", "compute(33)"));
    assert_eq!(applied.healed[0].as_str(), "anchored");
    let other = file.replace("compute", "something_else");
    assert_eq!(fuzzy.apply(file.as_bytes(), &[edit(&other, "x")]).unwrap_err().code, "edit.not_found");
}

#[test]
fn which_of_several() {
    let file: String =
        (1..=60).map(|line| if line % 20 == 0 { "mark\n".into() } else { format!("{line}\n") }).collect();
    let near = |line: u64| {
        let edit = Edit { near_line: Some(line), ..edit("mark", "here") };
        apply(file.as_bytes(), &[edit]).map(|applied| applied.places[0].line).map_err(|refusal| refusal.code)
    };
    assert_eq!(near(22), Ok(20));
    assert_eq!(near(33), Ok(40));
    assert_eq!(near(30), Err("edit.ambiguous"));
    assert_eq!(near(90), Err("edit.ambiguous"));
    let far = Edit { near_line: Some(1), ..edit("59", "x") };
    assert_eq!(apply(file.as_bytes(), &[far]).unwrap().places[0].line, 59);
    let all = Edit { all: true, ..edit("mark", "x\ny") };
    let applied = apply(file.as_bytes(), &[all]).unwrap();
    assert_eq!(applied.places.iter().map(|place| place.line).collect::<Vec<_>>(), [20, 40, 60]);
    let overlapping = Edit { all: true, ..edit("0, 0", "1") };
    assert_eq!(apply(b"0, 0, 0", &[overlapping]).unwrap_err().code, "edit.overlap");
    let both = Edit { all: true, near_line: Some(1), ..edit("mark", "x") };
    assert_eq!(apply(file.as_bytes(), &[both]).unwrap_err().code, "edit.unparsed");
    let last = Options { on_ambiguous: OnAmbiguous::Last, ..Options::default() };
    let applied = last.apply(file.as_bytes(), &[edit("mark", "x")]).unwrap();
    assert_eq!(applied.places[0].line, 60);
    assert!(applied.notes[0].contains("at 3 places"), "{:?}", applied.notes);
    // Of all places some may be as they should be already.
    let all = Edit { all: true, ..edit("\u{2018}a\u{2019}", "'a'") };
    assert_eq!(apply("'a' \u{2019}a'\n".as_bytes(), &[all]).unwrap().bytes, b"'a' 'a'\n");
    // Every place of `all` gets its own shift.
    let all = Edit { all: true, ..edit("a()\n  b()\n", "a()\n  c()\n") };
    let applied = apply(b"\ta()\n\t  b()\nx\n  a()\n    b()\n", &[all]).unwrap();
    assert_eq!(String::from_utf8_lossy(&applied.bytes), "\ta()\n\t  c()\nx\n  a()\n    c()\n");
}

#[test]
fn several_edits_are_found_in_the_original() {
    let edits = [edit("a", "b"), edit("b", "a")];
    assert_eq!(apply(b"a b", &edits).unwrap().bytes, b"b a");
    assert_eq!(apply(b"abc", &[edit("ab", "x"), edit("bc", "y")]).unwrap_err().code, "edit.overlap");
    assert_eq!(apply(b"a\nb\nc", &[edit("a\nb", "a\nx"), edit("b\nc", "b\ny")]).unwrap_err().code, "edit.overlap");
    assert_eq!(apply(b"ab", &[edit("a", "x"), edit("b", "y")]).unwrap().bytes, b"xy");
    let refusal = apply(b"a b", &[edit("a", "x"), edit("c", "y"), edit("d", "z")]).unwrap_err();
    assert_eq!(refusal.code, "edit.not_found");
    assert!(
        refusal.message.starts_with("edit 2 of 3:") && refusal.message.contains("edit 3 of 3:"),
        "{}",
        refusal.message
    );
    assert_eq!(apply(b"a b", &[edit("a", "x"), edit("b", "b")]).unwrap_err().code, "edit.no_change");
    assert_eq!(apply(b"a b", &[]).unwrap_err().code, "edit.unparsed");
}

#[test]
fn what_is_not_touched_stays() {
    check("\u{feff}a\nb\n", "a\nb", "a\nc", "|\u{feff}a\nc\n");
    check("\u{feff}  a\r\n  b\r\n", "a\nb", "a\nc", "indentation|\u{feff}  a\r\n  c\r\n");
    let applied = apply(b"x = 1\n\xff\xfe\x00"[..8].as_ref(), &[edit("x = 1", "x = 2")]).unwrap();
    assert_eq!(applied.bytes, b"x = 2\n\xff\xfe");
    assert_eq!(apply(b"d\xe9j\xe0 = 1\n", &[edit("= 1", "= \u{20ac}")]).unwrap_err().code, "edit.encoding");
    assert_eq!(apply(b"\xff\xfea\0\n\0", &[edit("a", "b")]).unwrap_err().code, "edit.encoding");
    assert_eq!(apply(b"a\0b", &[edit("a", "b")]).unwrap_err().code, "edit.binary");
}
