//! Programs that run other programs: what they are given to run is judged too.

use crate::glob::Unit;
use crate::shell::{Word, is_reserved, is_risky_variable};

/// What a command runs besides itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Inner {
    /// Another simple command.
    Command {
        /// Its words.
        words: Vec<Word>,
        /// True when running it this way is no more than running it.
        transparent: bool,
        /// A variable set for it that changes how programs are found or behave.
        risky: Option<String>,
    },
    /// A command line.
    Script {
        /// The text.
        text: String,
        /// True when running it this way is no more than running it.
        transparent: bool,
    },
    /// Something that cannot be read from here.
    Opaque,
    /// A program that runs a part of its words, who knows which.
    Launcher,
}

/// A program whose options are followed by a command.
struct Prefix {
    name: &'static str,
    /// Options without a value.
    flags: &'static str,
    /// Options whose value is the rest of the word or the next word.
    valued: &'static str,
    /// Long options; with a value they are written with `=`.
    long: &'static [&'static str],
    /// Long options whose value may be the next word.
    long_valued: &'static [&'static str],
    /// Words between the options and the command.
    operands: usize,
    /// True when it takes `NAME=value` before the command.
    assigns: bool,
    transparent: bool,
}

const fn prefix(name: &'static str, flags: &'static str, valued: &'static str) -> Prefix {
    Prefix { name, flags, valued, long: &[], long_valued: &[], operands: 0, assigns: false, transparent: true }
}

/// Options as in GNU coreutils 9 and findutils 4, sudo 1.9, and bash 5 for its own.
const PREFIXES: &[Prefix] = &[
    Prefix { assigns: true, ..prefix("time", "p", "") },
    prefix("nohup", "", ""),
    prefix("command", "p", ""),
    prefix("builtin", "", ""),
    Prefix { long: &["--adjustment"], ..prefix("nice", "0123456789", "n") },
    prefix("setsid", "cfw", ""),
    prefix("stdbuf", "", "ioe"),
    prefix("ionice", "t", "cn"),
    Prefix {
        long: &["--foreground", "--preserve-status", "--verbose", "--signal", "--kill-after"],
        long_valued: &["--signal", "--kill-after"],
        operands: 1,
        ..prefix("timeout", "v", "sk")
    },
    Prefix {
        long: &["--ignore-environment", "--unset", "--null"],
        long_valued: &["--unset"],
        assigns: true,
        ..prefix("env", "i0", "u")
    },
    Prefix {
        long: &["--null", "--no-run-if-empty", "--verbose", "--max-args", "--max-procs", "--max-lines", "--delimiter"],
        long_valued: &["--max-args", "--max-procs", "--delimiter"],
        ..prefix("xargs", "0rtx", "nPLdIE")
    },
    Prefix { transparent: false, ..prefix("exec", "cl", "a") },
    Prefix { assigns: true, transparent: false, ..prefix("sudo", "AbEHiKknPSs", "CDgphRrTtUu") },
    Prefix { transparent: false, ..prefix("doas", "Lns", "Cu") },
];

/// Shells that take a command line after `-c`; only those of the first list speak the parsed language.
const SHELLS: &[&str] = &["bash", "sh", "dash", "ash"];
const OTHER_SHELLS: &[&str] = &["zsh", "ksh", "mksh", "fish", "yash"];

/// Programs that run some of their words as a command in ways that are not followed.
const LAUNCHERS: &[&str] = &[
    "asdf",
    "bunx",
    "busybox",
    "bwrap",
    "chroot",
    "chrt",
    "coproc",
    "dbus-run-session",
    "direnv",
    "docker",
    "entr",
    "expect",
    "fakeroot",
    "fd",
    "fdfind",
    "firejail",
    "flock",
    "gdb",
    "kubectl",
    "lldb",
    "ltrace",
    "mise",
    "nix",
    "npx",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pkexec",
    "pnpm",
    "podman",
    "poetry",
    "prlimit",
    "rlwrap",
    "runuser",
    "script",
    "setarch",
    "setpriv",
    "ssh",
    "strace",
    "su",
    "systemd-run",
    "taskset",
    "toybox",
    "unbuffer",
    "unshare",
    "uv",
    "uvx",
    "valgrind",
    "watch",
    "watchexec",
    "xvfb-run",
];

/// What the words run besides the program they name.
pub(crate) fn inner(words: &[Word]) -> Vec<Inner> {
    let Some(name) = words.first().and_then(Word::literal) else {
        return Vec::new();
    };
    let bare = !name.contains('/');
    let base = name.rsplit('/').next().unwrap_or_default();
    if let Some(prefix) = PREFIXES.iter().find(|prefix| prefix.name == base) {
        return prefixed(prefix, words, bare);
    }
    // The built-in commands take `--` as the end of their options.
    let operands = match &words[1..] {
        [first, rest @ ..] if first.literal().as_deref() == Some("--") => rest,
        operands => operands,
    };
    match base {
        "eval" => vec![match operands.iter().map(Word::literal).collect::<Option<Vec<_>>>() {
            Some(words) => Inner::Script { text: words.join(" "), transparent: true },
            None => Inner::Opaque,
        }],
        "." | "source" => vec![Inner::Opaque],
        "trap" => match operands.first().map(Word::literal) {
            None => Vec::new(),
            Some(Some(text)) if text.is_empty() || text.starts_with('-') => Vec::new(),
            Some(Some(text)) => vec![Inner::Script { text, transparent: false }],
            Some(None) => vec![Inner::Opaque],
        },
        "find" => find(words),
        "git" => git(words),
        _ if SHELLS.contains(&base) || OTHER_SHELLS.contains(&base) => {
            shell(words, bare && SHELLS.contains(&base)).into_iter().collect()
        }
        _ if LAUNCHERS.contains(&base) => vec![Inner::Launcher],
        _ => Vec::new(),
    }
}

fn prefixed(prefix: &Prefix, words: &[Word], bare: bool) -> Vec<Inner> {
    let mut at = 1;
    let mut replaced = None;
    while let Some(word) = words.get(at) {
        let start = word.literal_start();
        if word.literal().is_none() && (start.is_empty() || start.starts_with('-')) {
            // It may be an option, several words or nothing.
            return vec![Inner::Opaque];
        }
        if start == "--" {
            at += 1;
            break;
        }
        if start.starts_with("--") {
            let (option, value) = start.split_once('=').map_or((start.as_str(), false), |(option, _)| (option, true));
            if !prefix.long.contains(&option) {
                return vec![Inner::Opaque];
            }
            at += if !value && prefix.long_valued.contains(&option) { 2 } else { 1 };
            continue;
        }
        let Some(cluster) = start.strip_prefix('-').filter(|cluster| !cluster.is_empty()) else {
            break;
        };
        if prefix.name == "command" && cluster.contains(['v', 'V']) {
            return Vec::new();
        }
        let mut taken = 1;
        for (index, option) in cluster.char_indices() {
            if prefix.valued.contains(option) {
                let rest = &cluster[index + option.len_utf8()..];
                let value = if rest.is_empty() {
                    taken = 2;
                    words.get(at + 1).and_then(Word::literal)
                } else {
                    Some(rest.to_owned())
                };
                if (prefix.name, option) == ("xargs", 'I') {
                    match value {
                        Some(value) if !value.is_empty() => replaced = Some(value),
                        _ => return vec![Inner::Opaque],
                    }
                }
                break;
            }
            if !prefix.flags.contains(option) {
                return vec![Inner::Opaque];
            }
        }
        at += taken;
    }
    at += prefix.operands;
    // `time` is a word of the shell's grammar, which the parser takes for a program.
    while prefix.name == "time" && words.get(at).and_then(Word::literal).as_deref() == Some("!") {
        at += 1;
    }
    let mut risky = None;
    while let Some(word) = words.get(at).filter(|_| prefix.assigns) {
        let start = word.literal_start();
        match start.split_once('=') {
            Some((name, _)) if is_risky_variable(name) => risky = Some(name.to_owned()),
            Some(_) => {}
            None if word.literal().is_none() => return vec![Inner::Opaque],
            None => break,
        }
        at += 1;
    }
    let mut words: Vec<Word> = words.get(at..).unwrap_or_default().to_vec();
    if prefix.name == "xargs" {
        if words.is_empty() {
            words.push(Word::certain("echo"));
        }
        if let Some(token) = replaced {
            replace(&mut words, &token);
        }
        words.push(Word::unknown());
    }
    if words.is_empty() {
        return Vec::new();
    }
    if prefix.name == "time" && words[0].literal().is_some_and(|word| is_reserved(&word)) {
        return vec![Inner::Opaque];
    }
    vec![Inner::Command { words, transparent: prefix.transparent && bare, risky }]
}

/// Words that hold the token are only known when the command runs.
fn replace(words: &mut [Word], token: &str) {
    for word in words {
        if word.literal().is_some_and(|text| text.contains(token)) {
            *word = Word(vec![Unit::Unknown]);
        }
    }
}

/// `sh -c TEXT`, or a shell that reads its commands from elsewhere.
fn shell(words: &[Word], understood: bool) -> Option<Inner> {
    let mut command = false;
    let mut at = 1;
    let mut transparent = understood;
    while let Some(word) = words.get(at) {
        let Some(text) = word.literal() else { return Some(Inner::Opaque) };
        if text == "--" || text == "-" {
            at += 1;
            break;
        }
        if text.starts_with("--") {
            if !matches!(text.as_str(), "--norc" | "--noprofile" | "--posix") {
                return Some(Inner::Opaque);
            }
        } else if let Some(cluster) = text.strip_prefix(['-', '+']) {
            command |= text.starts_with('-') && cluster.contains('c');
            transparent &= cluster.chars().all(|option| "ceuxo".contains(option));
            // The name of an option follows.
            at += cluster.matches(['o', 'O']).count();
        } else {
            break;
        }
        at += 1;
    }
    match (command, words.get(at)) {
        (true, Some(word)) => Some(match word.literal() {
            Some(text) => Inner::Script { text, transparent },
            None => Inner::Opaque,
        }),
        // A script file is a program like any other; without one the commands come from the input.
        (false, Some(word)) => word.literal().is_none().then_some(Inner::Opaque),
        (_, None) => Some(Inner::Opaque),
    }
}

/// `find … -exec COMMAND ;`
fn find(words: &[Word]) -> Vec<Inner> {
    let mut found = Vec::new();
    let mut rest = words;
    while let Some(at) = rest.iter().position(|word| {
        word.literal().is_some_and(|text| matches!(text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir"))
    }) {
        rest = &rest[at + 1..];
        let end = rest
            .iter()
            .position(|word| word.literal().is_some_and(|text| text == ";" || text == "+"))
            .unwrap_or(rest.len());
        let mut command = rest[..end].to_vec();
        replace(&mut command, "{}");
        if !command.is_empty() {
            found.push(Inner::Command { words: command, transparent: false, risky: None });
        }
        rest = &rest[end..];
    }
    found
}

/// git runs commands that its configuration names; configuration on the command line is not read.
fn git(words: &[Word]) -> Vec<Inner> {
    let mut hidden = Vec::new();
    let globals = git_globals(words);
    if globals.configures {
        hidden.push(Inner::Opaque);
    }
    if let [subcommand, rest @ ..] = globals.rest.and_then(|at| words.get(at..)).unwrap_or_default() {
        match subcommand.literal().as_deref() {
            Some("bisect") if rest.first().and_then(Word::literal).as_deref() == Some("run") => {
                hidden.push(Inner::Command { words: rest[1..].to_vec(), transparent: false, risky: None });
            }
            Some("submodule" | "rebase" | "filter-branch" | "difftool" | "mergetool") => hidden.push(Inner::Launcher),
            _ => {}
        }
    }
    hidden
}

/// What stands between `git` and its subcommand.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct GitGlobals {
    /// Index of the subcommand; `None` when an option is not known or not certain.
    pub(crate) rest: Option<usize>,
    /// Folders given with `-C`.
    pub(crate) folders: Vec<String>,
    /// True when options set configuration or say which programs git runs.
    pub(crate) configures: bool,
    /// True when options point git at another repository than the folder's.
    pub(crate) elsewhere: bool,
}

/// Reads git's global options (git 2.51, `git(1)`).
pub(crate) fn git_globals(words: &[Word]) -> GitGlobals {
    let mut globals = GitGlobals::default();
    let mut at = 1;
    loop {
        let Some(word) = words.get(at) else {
            globals.rest = Some(at);
            return globals;
        };
        let Some(text) = word.literal() else {
            // An unknown word may be an option; one that begins like a subcommand is none.
            globals.rest = (!word.literal_start().is_empty() && !word.literal_start().starts_with('-')).then_some(at);
            return globals;
        };
        let option = text.split('=').next().unwrap_or_default();
        at += match option {
            "-C" => {
                match words.get(at + 1).and_then(Word::literal) {
                    Some(folder) => globals.folders.push(folder),
                    None => globals.elsewhere = true,
                }
                2
            }
            "-c" => {
                globals.configures = true;
                2
            }
            "--exec-path" | "--config-env" => {
                globals.configures = true;
                if option == "--config-env" && !text.contains('=') { 2 } else { 1 }
            }
            "--git-dir" | "--work-tree" | "--namespace" | "--super-prefix" | "--attr-source" => {
                globals.elsewhere = true;
                if text.contains('=') { 1 } else { 2 }
            }
            "-P"
            | "--no-pager"
            | "--no-optional-locks"
            | "--literal-pathspecs"
            | "--glob-pathspecs"
            | "--noglob-pathspecs"
            | "--icase-pathspecs"
            | "--no-replace-objects"
            | "--no-lazy-fetch"
            | "--no-advice" => 1,
            "-p" | "--paginate" | "--bare" => {
                globals.elsewhere = true;
                1
            }
            _ if text.starts_with('-') => {
                // `git --version` and the like, or an option that is not known.
                globals.configures |= !matches!(option, "--version" | "-v" | "--help" | "-h" | "--html-path");
                return globals;
            }
            _ => {
                globals.rest = Some(at);
                return globals;
            }
        };
    }
}

/// The words without what stands between `git` and its subcommand.
pub(crate) fn git_without_globals(words: &[Word]) -> Option<Vec<Word>> {
    let name = words.first()?.literal()?;
    if name.rsplit('/').next() != Some("git") {
        return None;
    }
    let rest = git_globals(words).rest.filter(|rest| *rest > 1)?;
    let mut stripped = vec![words[0].clone()];
    stripped.extend_from_slice(words.get(rest..).unwrap_or_default());
    Some(stripped)
}
