//! Programs in many languages, made from a seed: the files that the corpus edits.

/// A small generator of pseudo-random numbers (SplitMix64), so that the corpus never depends on a crate's version.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// How a language looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language {
    pub name: &'static str,
    pub extension: &'static str,
    pub indent: &'static str,
    braces: bool,
    comment: &'static str,
    end: &'static str,
}

const fn language(
    name: &'static str,
    extension: &'static str,
    indent: &'static str,
    braces: bool,
    comment: &'static str,
    end: &'static str,
) -> Language {
    Language { name, extension, indent, braces, comment, end }
}

pub const LANGUAGES: [Language; 10] = [
    language("rust", "rs", "    ", true, "//", ";"),
    language("python", "py", "    ", false, "#", ""),
    language("javascript", "js", "  ", true, "//", ";"),
    language("typescript", "ts", "  ", true, "//", ";"),
    language("go", "go", "\t", true, "//", ""),
    language("c", "c", "\t", true, "//", ";"),
    language("java", "java", "    ", true, "//", ";"),
    language("ruby", "rb", "  ", false, "#", ""),
    language("php", "php", "    ", true, "//", ";"),
    language("kotlin", "kt", "    ", true, "//", ""),
];

const NOUNS: [&str; 24] = [
    "total", "count", "index", "buffer", "cache", "token", "session", "record", "header", "payload", "window",
    "offset", "branch", "cursor", "queue", "worker", "budget", "prefix", "digest", "account", "invoice", "vector",
    "matrix", "signal",
];
const VERBS: [&str; 16] = [
    "load", "store", "parse", "render", "merge", "split", "count", "check", "apply", "reset", "flush", "resolve",
    "encode", "decode", "update", "collect",
];

/// A file, as lines without their ends.
#[derive(Clone, Debug)]
pub struct Program {
    pub language: Language,
    pub path: String,
    pub lines: Vec<String>,
    /// First line and line after the last of each function.
    pub functions: Vec<(usize, usize)>,
    /// Statements that are at one place only, outside nested blocks.
    pub statements: Vec<usize>,
}

impl Program {
    pub fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }
}

/// A name that is used once.
fn name(random: &mut Random, serial: &mut usize) -> String {
    *serial += 1;
    format!("{}_{}", random.pick(&NOUNS), *serial + 10)
}

fn signature(random: &mut Random, language: Language, serial: &mut usize) -> String {
    let function = format!("{}_{}", random.pick(&VERBS), name(random, serial));
    let argument = name(random, serial);
    match language.name {
        "rust" => format!("fn {function}({argument}: u64) -> u64 {{"),
        "python" => format!("def {function}({argument}, *, limit=None):"),
        "javascript" => format!("function {function}({argument}, limit) {{"),
        "typescript" => format!("export function {function}({argument}: number): number {{"),
        "go" => format!("func {function}({argument} int) int {{"),
        "c" => format!("static int {function}(int {argument})\n{{"),
        "java" => format!("int {function}(int {argument}) {{"),
        "ruby" => format!("def {function}({argument}, limit: nil)"),
        "php" => format!("function {function}(int ${argument}): int {{"),
        _ => format!("fun {function}({argument}: Int): Int {{"),
    }
}

fn assignment(random: &mut Random, language: Language, serial: &mut usize) -> String {
    let (to, from, number) = (name(random, serial), random.pick(&NOUNS), random.below(900) + 100);
    let keyword = match language.name {
        "rust" => "let ",
        "javascript" | "typescript" => "const ",
        "java" | "c" => "int ",
        "kotlin" => "val ",
        "php" => "$",
        _ => "",
    };
    let operator = if language.name == "go" { ":=" } else { "=" };
    let text = match random.below(4) {
        0 => format!("{keyword}{to} {operator} {from} + {number}"),
        1 => format!("{keyword}{to} {operator} {}({from}, {number})", random.pick(&VERBS)),
        2 => format!("{keyword}{to} {operator} \"{} - '{from}' #{number}\"", random.pick(&VERBS)),
        _ => format!("{keyword}{to} {operator} {from}[{number}] * ({from} - {})", random.below(9) + 1),
    };
    text + language.end
}

fn condition(random: &mut Random, language: Language, serial: &mut usize) -> (String, Option<String>) {
    let (left, number) = (name(random, serial), random.below(90) + 10);
    match language.name {
        "python" => (format!("if {left} > {number}:"), None),
        "ruby" => (format!("if {left} > {number}"), Some("end".into())),
        "rust" | "go" => (format!("if {left} > {number} {{"), Some("}".into())),
        "php" => (format!("if (${left} > {number}) {{"), Some("}".into())),
        _ => (format!("if ({left} > {number}) {{"), Some("}".into())),
    }
}

/// A program of so many functions. Every second one ends with the same statement, as programs do.
pub fn program(random: &mut Random, language: Language, functions: usize) -> Program {
    let mut serial = random.below(50);
    let mut made = Program {
        language,
        path: format!("src/{}_{}.{}", random.pick(&VERBS), random.pick(&NOUNS), language.extension),
        lines: vec![
            format!("{} {} of the {}.", language.comment, random.pick(&VERBS), random.pick(&NOUNS)),
            String::new(),
        ],
        functions: Vec::new(),
        statements: Vec::new(),
    };
    let indent = language.indent;
    for number in 0..functions {
        let first = made.lines.len();
        made.lines.extend(signature(random, language, &mut serial).split('\n').map(str::to_owned));
        for _ in 0..random.below(4) + 3 {
            if random.chance(25) {
                let (open, close) = condition(random, language, &mut serial);
                made.lines.push(format!("{indent}{open}"));
                for _ in 0..random.below(2) + 1 {
                    let text = assignment(random, language, &mut serial);
                    made.lines.push(format!("{indent}{indent}{text}"));
                }
                made.lines.extend(close.map(|close| format!("{indent}{close}")));
            } else {
                made.statements.push(made.lines.len());
                let text = assignment(random, language, &mut serial);
                made.lines.push(format!("{indent}{text}"));
            }
            if random.chance(15) {
                made.lines.push(String::new());
            }
        }
        if number % 2 == 0 {
            made.lines.push(format!("{indent}return limit{}", language.end));
        }
        while made.lines.last().is_some_and(String::is_empty) {
            made.lines.pop();
        }
        match (language.braces, language.name) {
            (true, _) => made.lines.push("}".into()),
            (false, "ruby") => made.lines.push("end".into()),
            _ => {}
        }
        made.functions.push((first, made.lines.len()));
        if number + 1 < functions {
            made.lines.push(String::new());
        }
    }
    made
}
