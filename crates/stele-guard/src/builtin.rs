//! Programs that only read, with the options that keep them so.
//!
//! Every option is named: one that is not known here, or that is only known when the command
//! runs, makes the command ask. Options as in GNU coreutils 9, grep 3.11, findutils 4.10,
//! ripgrep 14 and git 2.51 (their manual pages, 2026-11).

use crate::shell::Word;
use crate::wrapper::git_globals;

/// What a program that only reads looks at.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Paths it may read, as they are written.
    pub(crate) paths: Vec<String>,
    /// Folders it starts in, one after the other (`git -C`).
    pub(crate) folders: Vec<String>,
}

/// What stands behind the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operands {
    /// Nothing may.
    None,
    /// Text that is only printed or compared.
    Text,
    /// Files and folders that are read.
    Paths,
    /// One pattern, unless an option gave it, then files and folders.
    PatternThenPaths,
}

struct Program {
    name: &'static str,
    flags: &'static str,
    /// Options with a value that names no file.
    valued: &'static str,
    long: &'static [&'static str],
    operands: Operands,
}

const fn program(name: &'static str, flags: &'static str, valued: &'static str, operands: Operands) -> Program {
    Program { name, flags, valued, long: &[], operands }
}

const PROGRAMS: &[Program] = &[
    program(":", "", "", Operands::Text),
    program("basename", "az", "s", Operands::Text),
    Program { long: &["--color", "--number"], ..program("cat", "AbeEnstTuv", "", Operands::Paths) },
    program("cmp", "bls", "in", Operands::Paths),
    program("comm", "123z", "", Operands::Paths),
    program("cut", "snz", "bcdf", Operands::Paths),
    program("date", "uR", "", Operands::Text),
    Program {
        long: &["--brief", "--color", "--side-by-side", "--unified", "--width"],
        ..program("diff", "0123456789abBcdeEipqstuwyZ", "IUW", Operands::Paths)
    },
    program("dirname", "z", "", Operands::Text),
    Program {
        long: &["--human-readable", "--max-depth", "--summarize", "--total"],
        ..program("du", "0abchklmSsx", "dt", Operands::Paths)
    },
    program("echo", "neE", "", Operands::Text),
    program("exit", "", "", Operands::Text),
    program("export", "", "", Operands::Text),
    program("false", "", "", Operands::Text),
    program("file", "bhikNprz", "", Operands::Paths),
    Program {
        long: &[
            "--after-context",
            "--before-context",
            "--binary-files",
            "--color",
            "--colour",
            "--context",
            "--count",
            "--exclude",
            "--exclude-dir",
            "--extended-regexp",
            "--files-with-matches",
            "--files-without-match",
            "--fixed-strings",
            "--ignore-case",
            "--include",
            "--invert-match",
            "--line-number",
            "--max-count",
            "--no-filename",
            "--null",
            "--only-matching",
            "--perl-regexp",
            "--quiet",
            "--recursive",
            "--text",
            "--with-filename",
            "--word-regexp",
        ],
        ..program("grep", "0123456789abcEFGHhiILlnoPqrsTUvwxyZz", "ABCDdem", Operands::PatternThenPaths)
    },
    Program { long: &["--bytes", "--lines"], ..program("head", "0123456789cnqvz", "", Operands::Paths) },
    program("id", "Ggnruz", "", Operands::Text),
    program("local", "", "", Operands::Text),
    Program {
        long: &["--all", "--almost-all", "--color", "--human-readable", "--recursive", "--sort", "--time-style"],
        ..program("ls", "1aABbCcdfFghiklmnNopqQrRsStuUvxXZ", "Iw", Operands::Paths)
    },
    program("md5sum", "bt", "", Operands::Paths),
    program("nl", "p", "bdfhilnsvw", Operands::Paths),
    program("nproc", "", "", Operands::None),
    program("printf", "", "", Operands::Text),
    program("pwd", "LP", "", Operands::None),
    program("readlink", "efmnqsvz", "", Operands::Paths),
    program("readonly", "", "", Operands::Text),
    program("realpath", "eLmPqsz", "", Operands::Paths),
    program("return", "", "", Operands::Text),
    Program {
        long: &[
            "--after-context",
            "--before-context",
            "--color",
            "--column",
            "--context",
            "--count",
            "--files",
            "--files-with-matches",
            "--fixed-strings",
            "--glob",
            "--heading",
            "--hidden",
            "--ignore-case",
            "--json",
            "--line-number",
            "--max-columns",
            "--max-count",
            "--max-depth",
            "--multiline",
            "--no-heading",
            "--no-ignore",
            "--no-filename",
            "--no-line-number",
            "--only-matching",
            "--pcre2",
            "--pretty",
            "--replace",
            "--smart-case",
            "--sort",
            "--stats",
            "--type",
            "--type-not",
            "--vimgrep",
            "--with-filename",
            "--word-regexp",
        ],
        ..program("rg", "acFHiIlnNopPqsSuUvwx0", "ABCdegjMmrtT", Operands::PatternThenPaths)
    },
    program("seq", "w", "fs", Operands::Text),
    program("sha1sum", "bt", "", Operands::Paths),
    program("sha256sum", "bt", "", Operands::Paths),
    program("sleep", "", "", Operands::Text),
    Program {
        long: &["--numeric-sort", "--reverse", "--unique", "--version-sort"],
        ..program("sort", "bcdfghiMmnRrsuVz", "kt", Operands::Paths)
    },
    program("stat", "fLt", "c", Operands::Paths),
    program("tac", "br", "s", Operands::Paths),
    Program { long: &["--bytes", "--lines"], ..program("tail", "0123456789cnqvz", "", Operands::Paths) },
    program("test", "", "", Operands::Text),
    program("tr", "cCdst", "", Operands::Text),
    Program { long: &["--dirsfirst", "--noreport"], ..program("tree", "aCdfhinpsS", "ILP", Operands::Paths) },
    program("true", "", "", Operands::Text),
    Program { long: &["--count"], ..program("uniq", "cdDiuz", "fsw", Operands::None) },
    program("uname", "aimnoprsv", "", Operands::None),
    Program { long: &["--bytes", "--chars", "--lines", "--words"], ..program("wc", "cLlmw", "", Operands::Paths) },
    program("which", "as", "", Operands::Text),
    program("whoami", "", "", Operands::None),
];

/// Expressions of `find` that only select and print; those of the second list take a value.
const FIND: &[&str] = &[
    "-depth",
    "-d",
    "-xdev",
    "-mount",
    "-noleaf",
    "-daystart",
    "-empty",
    "-executable",
    "-readable",
    "-writable",
    "-nouser",
    "-nogroup",
    "-prune",
    "-print",
    "-print0",
    "-quit",
    "-true",
    "-false",
    "-not",
    "-a",
    "-and",
    "-o",
    "-or",
    "!",
    "(",
    ")",
];
const FIND_VALUED: &[&str] = &[
    "-maxdepth",
    "-mindepth",
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-iwholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-size",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-user",
    "-group",
    "-perm",
    "-links",
    "-inum",
    "-lname",
    "-printf",
];

/// Options of the git subcommands that print history and differences.
const GIT_LOG: &[&str] = &[
    "--abbrev-commit",
    "--after",
    "--all",
    "--author",
    "--before",
    "--branches",
    "--cached",
    "--check",
    "--color",
    "--committer",
    "--date",
    "--decorate",
    "--diff-filter",
    "--exit-code",
    "--first-parent",
    "--follow",
    "--format",
    "--full-index",
    "--function-context",
    "--graph",
    "--grep",
    "--ignore-all-space",
    "--ignore-space-change",
    "--left-right",
    "--max-count",
    "--merges",
    "--minimal",
    "--name-only",
    "--name-status",
    "--no-abbrev-commit",
    "--no-color",
    "--no-decorate",
    "--no-ext-diff",
    "--no-merges",
    "--no-patch",
    "--no-renames",
    "--no-textconv",
    "--numstat",
    "--oneline",
    "--patch",
    "--patience",
    "--pickaxe-regex",
    "--pretty",
    "--quiet",
    "--raw",
    "--relative-date",
    "--remotes",
    "--reverse",
    "--shortstat",
    "--show-signature",
    "--since",
    "--skip",
    "--staged",
    "--stat",
    "--summary",
    "--tags",
    "--topo-order",
    "--unified",
    "--until",
    "--word-diff",
    "--word-diff-regex",
    "--merge-base",
];

struct Subcommand {
    name: &'static str,
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    operands: Operands,
}

const fn subcommand(
    name: &'static str,
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    operands: Operands,
) -> Subcommand {
    Subcommand { name, flags, valued, long, operands }
}

const GIT: &[Subcommand] = &[
    subcommand("blame", "befklnpstw", "CLM", &["--date", "--line-porcelain", "--porcelain"], Operands::Paths),
    subcommand(
        "branch",
        "arvi",
        "",
        &["--all", "--color", "--no-color", "--remotes", "--show-current", "--verbose"],
        Operands::None,
    ),
    subcommand("cat-file", "petsz", "", &[], Operands::Paths),
    subcommand("count-objects", "vH", "", &[], Operands::None),
    subcommand(
        "describe",
        "",
        "",
        &["--abbrev", "--all", "--always", "--dirty", "--exact-match", "--long", "--tags"],
        Operands::Paths,
    ),
    subcommand("diff", "0123456789abcmpRswuzW", "GlMCSU", GIT_LOG, Operands::Paths),
    subcommand("log", "0123456789abcgimpRsuwzEFPW", "GLMCnSU", GIT_LOG, Operands::Paths),
    subcommand(
        "ls-files",
        "cdkmostuvz",
        "x",
        &["--cached", "--deleted", "--exclude-standard", "--modified", "--others", "--stage", "--unmerged"],
        Operands::Paths,
    ),
    subcommand(
        "ls-tree",
        "dlrtz",
        "",
        &["--full-name", "--full-tree", "--long", "--name-only", "--object-only"],
        Operands::Paths,
    ),
    subcommand("merge-base", "a", "", &["--all", "--fork-point", "--is-ancestor", "--octopus"], Operands::Paths),
    subcommand("reflog", "0123456789", "n", &["--date", "--format", "--oneline"], Operands::None),
    subcommand("remote", "v", "", &["--verbose"], Operands::None),
    subcommand(
        "rev-list",
        "0123456789",
        "n",
        &[
            "--all",
            "--count",
            "--first-parent",
            "--left-right",
            "--max-count",
            "--merges",
            "--no-merges",
            "--oneline",
            "--reverse",
        ],
        Operands::Paths,
    ),
    subcommand(
        "rev-parse",
        "q",
        "",
        &[
            "--abbrev-ref",
            "--git-dir",
            "--is-inside-work-tree",
            "--quiet",
            "--short",
            "--show-prefix",
            "--show-toplevel",
            "--verify",
        ],
        Operands::Paths,
    ),
    subcommand(
        "shortlog",
        "0123456789cens",
        "",
        &["--all", "--email", "--no-merges", "--numbered", "--since", "--summary", "--until"],
        Operands::Paths,
    ),
    subcommand("show", "0123456789abcmpRsuwzW", "GMCSU", GIT_LOG, Operands::Paths),
    subcommand(
        "status",
        "bsuvz",
        "",
        &[
            "--branch",
            "--ignored",
            "--long",
            "--porcelain",
            "--short",
            "--show-stash",
            "--untracked-files",
            "--verbose",
        ],
        Operands::Paths,
    ),
];

/// What the command reads, when all it does is read.
pub(crate) fn reading(words: &[Word]) -> Option<Reading> {
    let name = words.first()?.literal()?;
    let arguments = &words[1..];
    match name.as_str() {
        "git" => git(words),
        "find" => find(arguments),
        "sed" => sed(arguments),
        "set" => set(arguments),
        "command" => match arguments {
            [option, name] if matches!(option.literal()?.as_str(), "-v" | "-V") => {
                name.literal()?;
                Some(Reading::default())
            }
            _ => None,
        },
        // `printf -v` sets a variable.
        "printf" if matches!(arguments.first()?.literal_start().chars().next(), None | Some('-')) => None,
        "test" => arguments.iter().all(|word| word.literal().is_some_and(|text| text != "-v")).then(Reading::default),
        "echo" => Some(Reading::default()),
        // `date` with a plain operand sets the clock.
        "date" => {
            let program = PROGRAMS.iter().find(|program| program.name == "date")?;
            let prints = arguments.iter().all(|word| word.literal_start().starts_with(['-', '+']));
            prints.then(|| options(program.flags, program.valued, program.long, program.operands, arguments))?
        }
        name => {
            let program = PROGRAMS.iter().find(|program| program.name == name)?;
            options(program.flags, program.valued, program.long, program.operands, arguments)
        }
    }
}

/// True when the program only prints its words: they name no files.
pub(crate) fn prints_its_words(words: &[Word]) -> bool {
    let name = words.first().and_then(Word::literal);
    name.is_some_and(|name| PROGRAMS.iter().any(|program| program.name == name && program.operands == Operands::Text))
}

fn options(flags: &str, valued: &str, long: &[&str], operands: Operands, words: &[Word]) -> Option<Reading> {
    let mut reading = Reading::default();
    let mut pattern = operands == Operands::PatternThenPaths;
    let mut plain = false;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let start = word.literal_start();
        if !plain && start == "--" && word.literal().is_some() {
            plain = true;
            continue;
        }
        if !plain && (start.starts_with('-') && start.len() > 1) {
            let text = word.literal()?;
            if text.starts_with("--") {
                let name = text.split('=').next().unwrap_or_default();
                if !long.contains(&name) {
                    return None;
                }
                // `rg --files` takes no pattern.
                pattern &= name != "--files";
                continue;
            }
            for (index, option) in text.char_indices().skip(1) {
                if valued.contains(option) {
                    if operands == Operands::PatternThenPaths && option == 'e' {
                        pattern = false;
                    }
                    if index + option.len_utf8() == text.len() {
                        words.get(at)?;
                        at += 1;
                    }
                    break;
                }
                if !flags.contains(option) {
                    return None;
                }
            }
            continue;
        }
        // An unknown word may turn out to be an option.
        if !plain && start.is_empty() && word.literal().is_none() && operands != Operands::Text {
            return None;
        }
        match operands {
            Operands::None => return None,
            Operands::Text => {}
            Operands::PatternThenPaths if pattern => pattern = false,
            Operands::Paths | Operands::PatternThenPaths => {
                let path = word.literal()?;
                if path != "-" {
                    reading.paths.push(path);
                }
            }
        }
    }
    Some(reading)
}

fn git(words: &[Word]) -> Option<Reading> {
    let globals = git_globals(words);
    if globals.configures || globals.elsewhere {
        return None;
    }
    let rest = words.get(globals.rest?..)?;
    let name = rest.first()?.literal()?;
    let listed = match (name.as_str(), &rest[1..]) {
        ("branch" | "tag", [option, patterns @ ..]) if matches!(option.literal()?.as_str(), "--list" | "-l") => {
            patterns.iter().all(|word| !word.literal_start().starts_with('-') && word.literal().is_some())
        }
        ("tag", []) => true,
        ("stash" | "worktree", [word]) => word.literal()? == "list",
        ("remote", [word, name]) => word.literal()? == "get-url" && name.literal().is_some(),
        _ => false,
    };
    let mut reading = if listed {
        Reading::default()
    } else {
        let known = GIT.iter().find(|known| known.name == name)?;
        options(known.flags, known.valued, known.long, known.operands, &rest[1..])?
    };
    reading.folders = globals.folders;
    Some(reading)
}

fn find(words: &[Word]) -> Option<Reading> {
    let mut reading = Reading::default();
    let mut at = 0;
    // Paths come first; an expression begins with the first word that looks like one.
    while let Some(word) = words.get(at) {
        let text = word.literal()?;
        if text.starts_with(['-', '(', '!']) {
            break;
        }
        reading.paths.push(text);
        at += 1;
    }
    while let Some(word) = words.get(at) {
        let text = word.literal()?;
        at += 1;
        if FIND_VALUED.contains(&text.as_str()) {
            words.get(at)?;
            at += 1;
        } else if !FIND.contains(&text.as_str()) {
            return None;
        }
    }
    Some(reading)
}

/// `sed -n 12,40p FILE`: prints lines and nothing else.
fn sed(words: &[Word]) -> Option<Reading> {
    let [option, script, files @ ..] = words else { return None };
    if option.literal()? != "-n" {
        return None;
    }
    let script = script.literal()?;
    let lines = script.strip_suffix('p')?;
    if lines.is_empty() || !lines.chars().all(|character| character.is_ascii_digit() || matches!(character, ',' | '$'))
    {
        return None;
    }
    options("", "", &[], Operands::Paths, files)
}

/// `set -euo pipefail`
fn set(words: &[Word]) -> Option<Reading> {
    let known = |word: &Word| {
        word.literal().is_some_and(|text| {
            text == "pipefail"
                || text.strip_prefix(['-', '+']).is_some_and(|set| set.chars().all(|c| "euxo".contains(c)))
        })
    };
    (!words.is_empty() && words.iter().all(known)).then(Reading::default)
}
