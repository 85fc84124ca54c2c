//! The environment of a shell command: an allow-list, so that no key of a provider is in it.

use std::ffi::OsString;

/// Variables that are passed on; a `*` at the end stands for any rest.
const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "XDG_*",
    "HOSTNAME",
    // Proxies and certificates.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    // Where tools and toolchains live.
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUSTFLAGS",
    "GOPATH",
    "GOROOT",
    "GOPROXY",
    "GOFLAGS",
    "GOCACHE",
    "GOMODCACHE",
    "JAVA_HOME",
    "MAVEN_OPTS",
    "GRADLE_USER_HOME",
    "ANDROID_HOME",
    "NVM_DIR",
    "NODE_PATH",
    "NODE_OPTIONS",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "VOLTA_HOME",
    "VIRTUAL_ENV",
    "CONDA_*",
    "PYENV_ROOT",
    "PYTHONPATH",
    "PIP_INDEX_URL",
    "UV_*",
    "POETRY_HOME",
    "RBENV_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "BUNDLE_PATH",
    "DOTNET_ROOT",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "MISE_*",
    "NIX_*",
    "PKG_CONFIG_PATH",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "CPATH",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
    // Agents that hold keys, but not the keys.
    "SSH_AUTH_SOCK",
    "GPG_AGENT_INFO",
    "GNUPGHOME",
    "DOCKER_HOST",
    "KUBECONFIG",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
    "CI",
];

/// Variables that are set: nothing pages, nothing colours, nothing prompts, nothing opens an editor.
const SET: &[(&str, &str)] = &[
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    // An editor that leaves the text as it is: git then takes the default or gives up.
    ("EDITOR", "true"),
    ("VISUAL", "true"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
];

/// The environment of a command, from the agent's own and the names a person added.
pub(crate) fn environment(inherited: &[(OsString, OsString)], pass: &[String]) -> Vec<(OsString, OsString)> {
    let passes = |name: &str| {
        let matches = |pattern: &str| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == pattern,
        };
        pass.iter().any(|pattern| matches(pattern))
            || (ALLOWED.iter().any(|pattern| matches(pattern)) && !carries_secret(name))
    };
    let mut kept: Vec<(OsString, OsString)> = inherited
        .iter()
        .filter(|(name, _)| name.to_str().is_some_and(|name| passes(name) && SET.iter().all(|(set, _)| *set != name)))
        .cloned()
        .collect();
    kept.extend(SET.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))));
    kept
}

/// A name that an allowed prefix must not let through, such as `UV_PUBLISH_TOKEN`.
fn carries_secret(name: &str) -> bool {
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"].iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_allowed_is_passed_on() {
        let inherited: Vec<(OsString, OsString)> = [
            "PATH",
            "ANTHROPIC_API_KEY",
            "LC_ALL",
            "UV_PUBLISH_TOKEN",
            "UV_CACHE_DIR",
            "TERM",
            "MY_APP",
            "MY_KEY",
            "EDITOR",
        ]
        .iter()
        .map(|name| (OsString::from(name), OsString::from("x")))
        .collect();
        let names = |pass: &[String]| -> Vec<String> {
            environment(&inherited, pass)
                .into_iter()
                .filter(|(_, value)| value == "x")
                .map(|(name, _)| name.into_string().unwrap())
                .collect()
        };
        assert_eq!(names(&[]), ["PATH", "LC_ALL", "UV_CACHE_DIR"]);
        assert_eq!(names(&["MY_*".to_owned()]), ["PATH", "LC_ALL", "UV_CACHE_DIR", "MY_APP", "MY_KEY"]);
    }

    #[test]
    fn nothing_pages_or_prompts() {
        let set = environment(&[], &[]);
        assert!(set.contains(&("TERM".into(), "dumb".into())));
        assert!(set.contains(&("GIT_TERMINAL_PROMPT".into(), "0".into())));
    }
}
