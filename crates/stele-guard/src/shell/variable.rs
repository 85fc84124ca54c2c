//! Variables that change which program runs, or what a harmless program does.

/// Names that are exactly this.
const NAMES: &[&str] = &[
    "BASHOPTS",
    "BROWSER",
    "CC",
    "CXX",
    "ENV",
    "GREP_OPTIONS",
    "HOME",
    "IFS",
    "LD",
    "LESS",
    "LESSCLOSE",
    "LESSOPEN",
    "PATH",
    "PROMPT_COMMAND",
    "PS4",
    "SHELL",
    "SHELLOPTS",
    "TMPDIR",
];

/// Names that begin with this.
const STARTS: &[&str] = &[
    "BASH_",
    "CARGO_",
    "CLASSPATH",
    "DOCKER_",
    "DYLD_",
    "GCONV_",
    "GIT_",
    "GLIBC_",
    "JAVA_",
    "LD_",
    "MALLOC_",
    "NODE_",
    "NPM_",
    "PERL",
    "PIP_",
    "PYTHON",
    "RUBY",
    "RUSTC",
    "SSH_",
];

/// Names that end with this.
const ENDS: &[&str] = &[
    "COMMAND",
    "COMPILER",
    "CONFIG",
    "CONFIG_FILE",
    "DIR",
    "EDITOR",
    "EXEC",
    "FLAGS",
    "HOME",
    "LINKER",
    "OPTIONS",
    "OPTS",
    "PAGER",
    "PATH",
    "RUNNER",
    "SHELL",
    "WRAPPER",
];

/// Names that would be caught above and do no harm.
const HARMLESS: &[&str] = &[
    "CARGO_INCREMENTAL",
    "CARGO_TERM_COLOR",
    "CARGO_TERM_QUIET",
    "NODE_ENV",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONUNBUFFERED",
];

/// True for loaders, search paths, pagers, editors, wrappers and the like. Case is not looked at:
/// some programs read both spellings.
pub(crate) fn is_risky(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let name = name.as_str();
    if HARMLESS.contains(&name) {
        return false;
    }
    NAMES.contains(&name)
        || STARTS.iter().any(|start| name.starts_with(start))
        || ENDS.iter().any(|end| name.ends_with(end))
        || name.ends_with("_PROXY")
        || name == "VISUAL"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaders_and_pagers_are_risky_and_switches_are_not() {
        for name in [
            "LD_PRELOAD",
            "PATH",
            "GIT_PAGER",
            "GIT_SSH_COMMAND",
            "BASH_ENV",
            "ENV",
            "IFS",
            "PYTHONPATH",
            "PAGER",
            "MANPAGER",
            "VISUAL",
            "EDITOR",
            "RUSTC_WRAPPER",
            "CARGO_HOME",
            "NODE_OPTIONS",
            "PERL5LIB",
            "http_proxy",
            "RIPGREP_CONFIG_PATH",
            "CDPATH",
            "DYLD_INSERT_LIBRARIES",
            "RUSTFLAGS",
        ] {
            assert!(is_risky(name), "{name}");
        }
        for name in ["CI", "DEBUG", "RUST_LOG", "RUST_BACKTRACE", "TERM", "LANG", "TZ", "NODE_ENV", "x", "NO_COLOR"] {
            assert!(!is_risky(name), "{name}");
        }
    }
}
