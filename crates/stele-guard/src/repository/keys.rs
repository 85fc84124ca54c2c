//! Settings that make git run nothing when it only reads.
//!
//! Every one is named: a later git may run programs for one that is not. Programs for the network, for editing and for
//! printing on a terminal are named too, since the subcommands that are known to read have no use for them; what fetches
//! by itself (`remote.*.promisor`) is not.

use super::config::Setting;

/// What a setting does where git only reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It runs nothing.
    Nothing,
    /// It may run a program.
    Program,
    /// It reads another file of settings.
    Include(String),
    /// It says where hooks are.
    Hooks(String),
    /// It says where the files are.
    Worktree(String),
    /// It says how long the names of objects are.
    Hashes {
        /// True when they are not the usual ones.
        wide: bool,
    },
}

pub(super) fn effect(setting: &Setting) -> Effect {
    let value = setting.value.clone().unwrap_or_default();
    let section = setting.section.as_str();
    match (section, &setting.subsection, setting.key.as_str()) {
        ("include", None, "path") | ("includeif", Some(_), "path") => Effect::Include(value),
        ("core", None, "hookspath") => Effect::Hooks(value),
        ("core", None, "worktree") => Effect::Worktree(value),
        ("extensions", None, "objectformat") => Effect::Hashes { wide: value != "sha1" },
        // True starts git's own watcher.
        ("core", None, "fsmonitor") if setting.value.is_none() || is_boolean(&value) => Effect::Nothing,
        (_, subsection, key) => {
            let listed = |(name, keys): &(&str, &[&str])| *name == section && keys.contains(&key);
            let keys = if subsection.is_some() { NAMED_KEYS } else { KEYS };
            if SECTIONS.contains(&section) || keys.iter().any(listed) { Effect::Nothing } else { Effect::Program }
        }
    }
}

fn is_boolean(value: &str) -> bool {
    ["true", "yes", "on", "1", "false", "no", "off", "0", ""].iter().any(|known| value.eq_ignore_ascii_case(known))
}

/// Sections of which nothing is run.
const SECTIONS: &[&str] = &[
    "add",
    "advice",
    "alias",
    "am",
    "apply",
    "author",
    "blame",
    "branch",
    "browser",
    "checkout",
    "clean",
    "clone",
    "codespaces",
    "color",
    "column",
    "commit",
    "commitgraph",
    "committer",
    "credential",
    "difftool",
    "feature",
    "fetch",
    "fsck",
    "gc",
    "gerrit",
    "git-town",
    "gitflow",
    "github",
    "gitlab",
    "gitreview",
    "grep",
    "gui",
    "help",
    "http",
    "hub",
    "i18n",
    "index",
    "init",
    "instaweb",
    "interactive",
    "maintenance",
    "man",
    "merge",
    "mergetool",
    "notes",
    "pack",
    "pager",
    "pretty",
    "pull",
    "push",
    "rebase",
    "receive",
    "rerere",
    "safe",
    "sendemail",
    "sequence",
    "stash",
    "submodule",
    "svn",
    "svn-remote",
    "tag",
    "tar",
    "transfer",
    "uploadpack",
    "url",
    "user",
    "versionsort",
    "web",
    "worktree",
];

/// Keys that stand in a section without a name.
const KEYS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "abbrev",
            "askpass",
            "attributesfile",
            "autocrlf",
            "bare",
            "bigfilethreshold",
            "checkstat",
            "commentchar",
            "commentstring",
            "commitgraph",
            "compression",
            "deltabasecachelimit",
            "editor",
            "eol",
            "excludesfile",
            "filemode",
            "fscache",
            "fsync",
            "fsyncmethod",
            "fsyncobjectfiles",
            "ignorecase",
            "ignorestat",
            "logallrefupdates",
            "longpaths",
            "loosecompression",
            "multipackindex",
            "notesref",
            "packedgitlimit",
            "packedgitwindowsize",
            "pager",
            "precomposeunicode",
            "preloadindex",
            "protecthfs",
            "protectntfs",
            "quotepath",
            "repositoryformatversion",
            "safecrlf",
            "sharedrepository",
            "sparsecheckout",
            "sparsecheckoutcone",
            "splitindex",
            "sshcommand",
            "symlinks",
            "trustctime",
            "untrackedcache",
            "usereplacerefs",
            "warnambiguousrefs",
            "whitespace",
        ],
    ),
    (
        "diff",
        &[
            "algorithm",
            "autorefreshindex",
            "colormoved",
            "colormovedws",
            "context",
            "dirstat",
            "dstprefix",
            "guitool",
            "ignoresubmodules",
            "indentheuristic",
            "interhunkcontext",
            "mnemonicprefix",
            "noprefix",
            "orderfile",
            "relative",
            "renamelimit",
            "renames",
            "srcprefix",
            "statgraphwidth",
            "statnamewidth",
            "suppressblankempty",
            "tool",
            "wordregex",
            "wserrorhighlight",
        ],
    ),
    (
        "extensions",
        &["compatobjectformat", "noop", "preciousobjects", "refstorage", "relativeworktrees", "worktreeconfig"],
    ),
    ("format", &["pretty", "signoff", "suffix", "thread"]),
    ("gpg", &["format", "mintrustlevel"]),
    ("lfs", &["activitytimeout", "fetchexclude", "fetchinclude", "repositoryformatversion", "url"]),
    ("log", &["abbrevcommit", "date", "decorate", "follow", "graphcolors", "mailmap", "showroot", "showsignature"]),
    ("mailmap", &["blob", "file"]),
    ("remote", &["pushdefault"]),
    ("status", &["aheadbehind", "branch", "relativepaths", "renames", "short", "showstash", "showuntrackedfiles"]),
];

/// Keys that stand in a section with a name, such as a remote's.
const NAMED_KEYS: &[(&str, &[&str])] = &[
    ("diff", &["algorithm", "binary", "cachetextconv", "funcname", "wordregex", "xfuncname"]),
    ("gpg", &["allowedsignersfile", "revocationfile"]),
    ("lfs", &["access", "locksverify"]),
    (
        "remote",
        &[
            "fetch",
            "gh-resolved",
            "mirror",
            "prune",
            "prunetags",
            "push",
            "pushurl",
            "skipdefaultupdate",
            "skipfetchall",
            "tagopt",
            "url",
        ],
    ),
];
