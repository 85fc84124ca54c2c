//! Outlines: what a file defines, by tree-sitter. Grammars are C code and parse any bytes; their trees
//! have errors where the text has.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{Node, ParseOptions, Parser};

use crate::sanitise;

/// Longest time to parse one file.
const PARSING: Duration = Duration::from_secs(2);
/// Bytes of a definition that are shown.
const HEADER: usize = 160;

/// A language that outlines are made of.
pub(crate) struct Language {
    /// Endings of its files' names.
    extensions: &'static [&'static str],
    grammar: fn() -> tree_sitter::Language,
    /// Nodes that define something and hold no further definitions worth showing.
    leaves: &'static [&'static str],
    /// Nodes that define something and are looked into.
    groups: &'static [&'static str],
}

/// Definitions of JavaScript; TypeScript has more.
const SCRIPT_LEAVES: &[&str] = &[
    "function_declaration",
    "generator_function_declaration",
    "method_definition",
    "function_signature",
    "method_signature",
    "abstract_method_signature",
    "type_alias_declaration",
];
const SCRIPT_GROUPS: &[&str] = &[
    "class_declaration",
    "abstract_class_declaration",
    "interface_declaration",
    "enum_declaration",
    "internal_module",
    "module",
];

/// The languages there are. Node names are those of each grammar's `node-types.json`.
const LANGUAGES: &[Language] = &[
    Language {
        extensions: &["rs"],
        grammar: || tree_sitter_rust::LANGUAGE.into(),
        leaves: &[
            "function_item",
            "function_signature_item",
            "struct_item",
            "enum_item",
            "union_item",
            "const_item",
            "static_item",
            "type_item",
            "macro_definition",
        ],
        groups: &["trait_item", "impl_item", "mod_item"],
    },
    Language {
        extensions: &["py", "pyi"],
        grammar: || tree_sitter_python::LANGUAGE.into(),
        leaves: &["function_definition"],
        groups: &["class_definition"],
    },
    Language {
        extensions: &["js", "jsx", "mjs", "cjs"],
        grammar: || tree_sitter_javascript::LANGUAGE.into(),
        leaves: SCRIPT_LEAVES,
        groups: SCRIPT_GROUPS,
    },
    Language {
        extensions: &["ts", "mts", "cts"],
        grammar: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        leaves: SCRIPT_LEAVES,
        groups: SCRIPT_GROUPS,
    },
    Language {
        extensions: &["tsx"],
        grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
        leaves: SCRIPT_LEAVES,
        groups: SCRIPT_GROUPS,
    },
    Language {
        extensions: &["go"],
        grammar: || tree_sitter_go::LANGUAGE.into(),
        leaves: &["function_declaration", "method_declaration", "type_spec", "type_alias"],
        groups: &[],
    },
    Language {
        extensions: &["java"],
        grammar: || tree_sitter_java::LANGUAGE.into(),
        leaves: &["method_declaration", "constructor_declaration"],
        groups: &[
            "class_declaration",
            "interface_declaration",
            "enum_declaration",
            "record_declaration",
            "annotation_type_declaration",
        ],
    },
    Language {
        extensions: &["c", "h"],
        grammar: || tree_sitter_c::LANGUAGE.into(),
        leaves: &["function_definition", "type_definition", "preproc_function_def"],
        groups: &[],
    },
    Language {
        extensions: &["sh", "bash"],
        grammar: || tree_sitter_bash::LANGUAGE.into(),
        leaves: &["function_definition"],
        groups: &[],
    },
];

/// The language of a file, by the ending of its name.
pub(crate) fn language(path: &std::path::Path) -> Option<&'static Language> {
    let extension = path.extension()?.to_str()?;
    LANGUAGES.iter().find(|language| language.extensions.contains(&extension))
}

/// Every ending, for a message.
pub(crate) fn extensions() -> String {
    let all: Vec<&str> = LANGUAGES.iter().flat_map(|language| language.extensions.iter().copied()).collect();
    all.join(", ")
}

/// The definitions of a text, a line each with its number; `None` when it took too long to parse.
pub(crate) fn outline(language: &Language, source: &[u8]) -> Option<String> {
    let mut parser = Parser::new();
    parser.set_language(&(language.grammar)()).ok()?;
    let deadline = Instant::now() + PARSING;
    let mut late = |_: &tree_sitter::ParseState| match Instant::now() > deadline {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    let options = ParseOptions::new().progress_callback(&mut late);
    let tree = parser.parse_with_options(&mut |at, _| source.get(at..).unwrap_or_default(), None, Some(options))?;
    let mut text = String::new();
    // A stack of its own: nesting in the text must not become nesting of calls.
    let mut rest = vec![(tree.root_node(), 0)];
    while let Some((node, depth)) = rest.pop() {
        let (leaf, group) = (language.leaves.contains(&node.kind()) || is_bound_function(node), {
            language.groups.contains(&node.kind()) && node.is_named()
        });
        if leaf || group {
            let number = node.start_position().row + 1;
            let _ = writeln!(text, "{number}: {}{}", "  ".repeat(depth), header(node, source));
        }
        if !leaf {
            // Not by index: to find one that way takes as long as there are others before it.
            let children: Vec<Node<'_>> = node.children(&mut node.walk()).collect();
            rest.extend(children.into_iter().rev().map(|child| (child, depth + usize::from(group))));
        }
    }
    Some(text)
}

/// `const f = () => …`, and types of C that are defined with a body.
fn is_bound_function(node: Node<'_>) -> bool {
    let field = |name: &str| node.child_by_field_name(name).map(|child| child.kind());
    match node.kind() {
        "variable_declarator" => {
            matches!(field("value"), Some("arrow_function" | "function_expression" | "generator_function" | "class"))
        }
        "struct_specifier" | "union_specifier" | "enum_specifier" => field("body").is_some() && field("name").is_some(),
        _ => false,
    }
}

/// A definition up to its body, in one line.
fn header(node: Node<'_>, source: &[u8]) -> String {
    let whole = node.byte_range();
    let body = node.child_by_field_name("body").map_or(whole.end, |body| body.start_byte());
    let text = String::from_utf8_lossy(source.get(whole.start..body).unwrap_or_default()).into_owned();
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // What has no body of its own may still hold one.
    if let Some(at) = line.find(['{', ';'])
        && at > 0
    {
        line.truncate(at);
    }
    if line.len() > HEADER {
        line.truncate(sanitise::floor(&line, HEADER));
        line.push('…');
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(name: &str, source: &str, expect: &[&str]) {
        let outline = outline(language(Path::new(name)).unwrap(), source.as_bytes()).unwrap();
        assert_eq!(outline.lines().collect::<Vec<_>>(), expect, "{name}");
    }

    #[test]
    fn definitions_of_each_language() {
        check(
            "a.rs",
            "use x;\npub struct A {\n  b: u8,\n}\nimpl A {\n    pub fn new(\n        b: u8,\n    ) -> Self { fn inner() {} todo!() }\n}\nmod m { const X: u8 = 1; trait T { fn f(&self); } }\nmacro_rules! q { () => {} }\n",
            &[
                "2: pub struct A",
                "5: impl A",
                "6:   pub fn new( b: u8, ) -> Self",
                "10: mod m",
                "10:   const X: u8 = 1",
                "10:   trait T",
                "10:     fn f(&self)",
                "11: macro_rules! q",
            ],
        );
        check(
            "a.py",
            "import x\n\n@d\nclass A(B):\n    def f(self, a: int) -> str:\n        def inner(): pass\n\nasync def g(): pass\n",
            &["4: class A(B):", "5:   def f(self, a: int) -> str:", "8: async def g():"],
        );
        let script = "export class A extends B {\n  f(a) { return 1 }\n}\nconst g = (a) => a\nlet x = 1\nexport default function h() {}\n";
        let expect = ["1: class A extends B", "2:   f(a)", "4: g = (a) => a", "6: function h()"];
        check("a.js", script, &expect);
        check("a.tsx", script, &expect);
        check(
            "a.ts",
            "interface I { f(a: number): void }\ntype T = string\nenum E { A }\nabstract class C { abstract g(): void }\nnamespace N { export function h(): void {} }\n",
            &[
                "1: interface I",
                "1:   f(a: number): void",
                "2: type T = string",
                "3: enum E",
                "4: abstract class C",
                "4:   abstract g(): void",
                "5: namespace N",
                "5:   function h(): void",
            ],
        );
        check(
            "a.go",
            "package p\ntype A struct { b int }\nfunc (a *A) F(x int) error { return nil }\nfunc G() {}\n",
            &["2: A struct", "3: func (a *A) F(x int) error", "4: func G()"],
        );
        check(
            "A.java",
            "package p;\npublic class A {\n  A() {}\n  int f(int x) { return x; }\n  interface I { void g(); }\n}\nrecord R(int x) {}\n",
            &[
                "2: public class A",
                "3:   A()",
                "4:   int f(int x)",
                "5:   interface I",
                "5:     void g()",
                "7: record R(int x)",
            ],
        );
        check(
            "a.c",
            "#include <x.h>\n#define M(a) a\nstruct s { int a; };\ntypedef struct { int b; } t;\nstatic int f(int a) { return a; }\n",
            &["2: #define M(a) a", "3: struct s", "4: typedef struct", "5: static int f(int a)"],
        );
        check("a.sh", "set -e\nf() { echo; }\nfunction g { f; }\n", &["2: f()", "3: function g"]);
    }

    #[test]
    fn nesting_is_no_danger() {
        let source = "(".repeat(20_000);
        for name in ["a.rs", "a.py", "a.js", "a.c"] {
            let _ = outline(language(Path::new(name)).unwrap(), source.as_bytes());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn any_bytes_have_some_outline(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for language in LANGUAGES {
                prop_assert!(outline(language, &bytes).is_some());
            }
        }
    }
}
