//! `glob` and `grep` on real trees.

use serde_json::json;
use stele_core::SearchMeta;
use stele_tools::{Offer, Options};

use crate::{PROGRAM, Session, block_on, code, options};

fn tree() -> Session {
    let session = Session::new();
    session.file("src/main.rs", "fn main() {\n    run();\n}\n\nfn run() {}\n");
    session.file("src/deep/lib.rs", "pub fn run_all() {}\n");
    session.file("README.md", "run it\n");
    session.file(".github/ci.yml", "run: test\n");
    session.file(".gitignore", "target\n*.log\n");
    session.file("target/out.rs", "fn run() {}\n");
    session.file("a.log", "run\n");
    session.file(".git/config", "run\n");
    session.file("data.bin", b"run\0run\n");
    session
}

#[test]
fn glob_lists_in_a_stable_order_what_git_would_see() {
    let session = tree();
    let glob = |arguments| session.call("glob", arguments).content;
    assert_eq!(glob(json!({"pattern": "*.rs"})), "src/deep/lib.rs\nsrc/main.rs\n[2 files]");
    assert_eq!(glob(json!({"pattern": "src/*.rs"})), "src/main.rs\n[1 file]");
    assert_eq!(glob(json!({"pattern": "**/*.{yml,md}"})), ".github/ci.yml\nREADME.md\n[2 files]");
    assert_eq!(glob(json!({"pattern": "*.rs", "path": "src/deep"})), "src/deep/lib.rs\n[1 file]");
    assert_eq!(glob(json!({"pattern": "*.py"})), "no file matches *.py");
    let absolute = session.path().join("src/*.rs");
    assert_eq!(glob(json!({"pattern": absolute})), "src/main.rs\n[1 file]");
    assert_eq!(code(&session.call("glob", json!({"pattern": "*.rs", "path": "none"}))), "file.missing");
    assert_eq!(code(&session.call("glob", json!({"pattern": "a["}))), "tool.value");
}

#[test]
fn a_name_is_one_line_and_is_read_by_what_is_shown() {
    let session = Session::with(Options { offer: vec![Offer::Ls], ..options() });
    session.file("two\nlines\u{1b}[31m.txt", "inside\n");
    let shown = "two\\nlines\\u{1b}[31m.txt";
    assert_eq!(session.call("glob", json!({"pattern": "*.txt"})).content, format!("{shown}\n[1 file]"));
    let found = session.call("grep", json!({"pattern": "inside"})).content;
    assert_eq!(found, format!("{shown}\n1: inside\n[1 match in 1 file]"));
    assert!(session.call("read", json!({"path": shown})).content.starts_with("1→inside"));
    let listed = session.call("read", json!({"path": "."})).content;
    assert_eq!(listed, format!(". is a folder with 1 entry:\n{shown}"));
    std::os::unix::fs::symlink("to\nit", session.path().join("link")).unwrap();
    let tree = session.call("ls", json!({})).content;
    assert!(tree.starts_with("link -> to\\nit\n"), "{tree}");
}

#[test]
fn a_pipe_is_neither_waited_for_nor_passed_over() {
    let session = Session::new();
    let pipe = session.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_eq!(code(&session.call("grep", json!({"pattern": "x", "path": "pipe"}))), "file.special");
    assert_eq!(session.call("grep", json!({"pattern": "x"})).content, "no match");
}

#[test]
fn glob_is_capped_with_a_hint() {
    let session = Session::new();
    for number in 0..510 {
        session.file(&format!("f{number:04}"), "");
    }
    let output = session.call("glob", json!({"pattern": "*"}));
    assert!(
        output.content.ends_with("f0499\n[500 of 510 files; narrow the pattern or the path]"),
        "{}",
        output.content
    );
    assert_eq!(output.meta.search, Some(SearchMeta { matches: 500, total: 510, truncated: true }));
}

#[test]
fn grep_shows_lines_by_file() {
    let session = tree();
    let grep = |arguments| session.call("grep", arguments).content;
    assert_eq!(
        grep(json!({"pattern": r"fn \w*run"})),
        "src/deep/lib.rs\n1: pub fn run_all() {}\n\nsrc/main.rs\n5: fn run() {}\n[2 matches in 2 files]"
    );
    assert_eq!(
        grep(json!({"pattern": "run\\(", "path": "src/main.rs", "context": 1})),
        "src/main.rs\n1- fn main() {\n2:     run();\n3- }\n4- \n5: fn run() {}\n[2 matches in 1 file]"
    );
    assert_eq!(
        grep(json!({"pattern": "RUN", "case_insensitive": true, "glob": "*.md"})),
        "README.md\n1: run it\n[1 match in 1 file]"
    );
    assert_eq!(grep(json!({"pattern": "absent"})), "no match");
    assert!(grep(json!({"pattern": "run"})).contains(".github/ci.yml\n1: run: test\n"));
    let output = session.call("grep", json!({"pattern": "a("}));
    assert_eq!(code(&output), "tool.value");
    assert!(output.content.contains("unclosed group"), "{}", output.content);
}

#[test]
fn grep_marks_a_gap_between_places() {
    let session = Session::new();
    session.file("a", "hit\n1\n2\n3\nhit\n");
    let output = session.call("grep", json!({"pattern": "hit", "context": 1}));
    assert_eq!(output.content, "a\n1: hit\n2- 1\n--\n4- 3\n5: hit\n[2 matches in 1 file]");
}

#[test]
fn grep_names_the_binary_files_that_match() {
    let session = Session::new();
    session.file("a.bin", b"\0\x01needle\0more\n");
    session.file("b.bin", b"\0\x01nothing\n");
    let grep = || session.call("grep", json!({"pattern": "needle", "context": 1})).content;
    assert_eq!(grep(), "no match in text\n[binary: 1 file matches, not shown: a.bin]");
    session.file("t", "a needle\n");
    // Text as far as the first look went, and no more.
    session.file("u", [b"a needle\n".as_slice(), &b"line\n".repeat(20_000), b"\0needle\n"].concat());
    let found = grep();
    assert!(found.contains("t\n1: a needle\n") && found.contains("u\n1: a needle\n"), "{found}");
    assert!(found.ends_with("[2 matches in 2 files]\n[binary: 2 files match, not shown: a.bin, u]"), "{found}");
    // What matches in the text that was looked at, and nowhere else, is shown and not named besides.
    session.file("v", [b"a needle\n".as_slice(), &b"line\n".repeat(20_000), b"\0nothing\n"].concat());
    let found = grep();
    assert!(found.contains("v\n1: a needle\n"), "{found}");
    assert!(found.ends_with("[3 matches in 3 files]\n[binary: 2 files match, not shown: a.bin, u]"), "{found}");
    for at in 0..9 {
        session.file(&format!("z{at}"), b"\0needle");
    }
    assert!(grep().ends_with("[binary: 11 files match, not shown: a.bin, u, z0, z1, z2, …]"), "{}", grep());
}

#[test]
fn grep_is_capped_and_counts_on() {
    let session = Session::new();
    session.file("a", "hit\n".repeat(150));
    session.file("b", "hit\n");
    let output = session.call("grep", json!({"pattern": "hit", "limit": 2}));
    assert_eq!(output.content, "a\n1: hit\n2: hit\n[2 of 151 matches in 2 files; narrow the pattern, path or glob]");
    assert_eq!(code(&session.call("grep", json!({"pattern": "hit", "limit": 1001}))), "tool.value");
    session.file("long", format!("{}needle{}\n", "x".repeat(5000), "y".repeat(5000)));
    let output = session.call("grep", json!({"pattern": "needle"}));
    assert!(output.content.contains("xneedley") && output.content.len() < 600, "{}", output.content);
}

#[test]
fn grep_of_large_files_is_bounded_by_its_window() {
    let session = Session::new();
    let line = format!("{}\n", "log entry ".repeat(9));
    let mut big = line.repeat(400_000);
    big.push_str("needle\n");
    session.file("a.txt", &big);
    // One line without an end, longer than any window.
    session.file("b.txt", "z".repeat(40 << 20));
    let script = r#"ulimit -v 300000; exec "$@""#;
    let arguments = json!({"pattern": "needle", "context": 2}).to_string();
    let output = std::process::Command::new("bash")
        .args(["-c", script, "bash", PROGRAM, "grep", &arguments])
        .current_dir(session.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("400001: needle\n[1 match in 1 file]"), "{text} {}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 file could not be searched to the end"), "{text}");
}

#[test]
fn a_cancelled_search_ends_at_once() {
    let session = tree();
    for (name, arguments) in
        [("grep", json!({"pattern": "run"})), ("glob", json!({"pattern": "*"})), ("read", json!({"path": "README.md"}))]
    {
        let output = block_on(session.start(name, arguments, std::future::ready(()), &|_| {}));
        assert_eq!(code(&output), "tool.cancelled");
    }
}

#[test]
fn many_files_give_the_same_result_each_time() {
    let session = Session::new();
    for folder in 0..12 {
        for file in 0..60 {
            session.file(&format!("d{folder}/f{file}.txt"), format!("needle {folder} {file}\nother\n").repeat(3));
        }
    }
    let call = || session.call("grep", json!({"pattern": "needle", "context": 1}));
    let first = call();
    assert!(first.content.ends_with("[100 of 2160 matches in 720 files; narrow the pattern, path or glob]"));
    // In the order of the names' bytes, folder by folder.
    assert!(first.content.starts_with("d0/f0.txt\n1: needle 0 0\n2- other\n3: needle 0 0\n"), "{}", first.content);
    let files: Vec<&str> = first.content.lines().filter(|line| line.starts_with('d')).collect();
    assert!(files.is_sorted() && files[..3] == ["d0/f0.txt", "d0/f1.txt", "d0/f10.txt"], "{files:?}");
    let listed = session.call("glob", json!({"pattern": "*.txt"}));
    assert!(listed.content.ends_with("[500 of 720 files; narrow the pattern or the path]"));
    for _ in 0..5 {
        assert_eq!(call().content, first.content);
        assert_eq!(session.call("glob", json!({"pattern": "*.txt"})).content, listed.content);
    }
}
