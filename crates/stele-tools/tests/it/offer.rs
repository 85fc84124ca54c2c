//! Tools that are offered where the configuration says so.

use std::os::unix::fs::symlink;

use serde_json::json;
use stele_tools::{Offer, Options, Search, SearchKind, Web, builtin};

use crate::{Session, code, options};

fn session(offer: Offer) -> Session {
    Session::with(Options { offer: vec![offer], ..options() })
}

#[test]
fn nothing_more_is_offered_than_was_asked_for() {
    let names = |options: &Options| -> Vec<String> {
        builtin(options).iter().skip(9).map(|tool| tool.spec().name.clone()).collect()
    };
    assert_eq!(names(&options()), Vec::<String>::new());
    let all = Options { offer: Offer::ALL.into_iter().rev().collect(), ..options() };
    assert_eq!(names(&all), ["patch", "ls", "symbols", "web_fetch"], "a search needs a service");
    let search = Search { kind: SearchKind::Searxng, url: "http://127.0.0.1:1".into(), key: Some("secret".into()) };
    assert!(!format!("{search:?}").contains("secret"));
    let web = Web { search: Some(search), ..Web::default() };
    assert_eq!(names(&Options { web, ..all }), ["patch", "ls", "symbols", "web_fetch", "web_search"]);
    assert_eq!("symbols".parse(), Ok(Offer::Symbols));
    assert!("lss".parse::<Offer>().unwrap_err().contains("there are patch, ls, symbols, web_fetch, web_search"));
}

#[test]
fn offered_tools_are_described_shortly() {
    let web =
        Web { search: Some(Search { kind: SearchKind::Brave, url: "https://x".into(), key: None }), ..Web::default() };
    let menu: Vec<String> = builtin(&Options { offer: Offer::ALL.to_vec(), web, ..options() })
        .iter()
        .skip(9)
        .map(|tool| {
            let spec = tool.spec();
            format!("{}\n{}\n{}\n", spec.name, spec.description, spec.parameters.get())
        })
        .collect();
    insta::assert_snapshot!("offered", menu.join("\n"));
}

#[test]
fn a_tree_has_sizes_and_levels() {
    let session = session(Offer::Ls);
    session.file("src/a.rs", "x".repeat(2000));
    session.file("src/deep/er/b.rs", "");
    session.file(".gitignore", "target\n");
    session.file("target/out", "");
    symlink("src/a.rs", session.path().join("link")).unwrap();
    let output = session.call("ls", json!({}));
    assert_eq!(output.content, ".gitignore 7 B\nlink -> src/a.rs\nsrc/\n  a.rs 2.0 KiB\n  deep/\n[5 entries]");
    assert_eq!(
        session.call("ls", json!({"path": "src", "depth": 3})).content,
        "a.rs 2.0 KiB\ndeep/\n  er/\n    b.rs 0 B\n[4 entries]"
    );
    assert_eq!(code(&session.call("ls", json!({"depth": 11}))), "tool.value");
    assert_eq!(code(&session.call("ls", json!({"path": "none"}))), "file.missing");
}

#[test]
fn symbols_of_a_file_and_of_a_folder() {
    let session = session(Offer::Symbols);
    session.file("a.rs", "fn one() {}\nstruct Two;\n");
    session.file("b/c.py", "def three(): pass\n");
    session.file("b/d.txt", "def four(): pass\n");
    session.file("e.sh", "");
    assert_eq!(session.call("symbols", json!({"path": "a.rs"})).content, "1: fn one()\n2: struct Two");
    assert_eq!(session.call("symbols", json!({"path": "e.sh"})).content, "[no definitions]");
    let all = session.call("symbols", json!({"path": "."}));
    assert_eq!(all.content, "a.rs\n1: fn one()\n2: struct Two\n\nb/c.py\n1: def three():\n\ne.sh\n[3 files]");
    let other = session.call("symbols", json!({"path": "b/d.txt"}));
    assert_eq!(code(&other), "tool.value");
    assert!(other.content.contains("has no outline"), "{}", other.content);
}
