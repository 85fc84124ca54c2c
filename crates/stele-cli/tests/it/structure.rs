//! The shape of the workspace: which crate may know which, and what the pure ones must not touch.

use std::collections::BTreeMap;
use std::path::Path;

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Normal dependencies among our own crates, and no others.
const ALLOWED: &[(&str, &[&str])] = &[
    ("stele-core", &[]),
    ("stele-edit", &[]),
    ("stele-store", &["stele-core"]),
    ("stele-provider", &["stele-core"]),
    ("stele-path", &["stele-core"]),
    ("stele-guard", &["stele-core", "stele-path"]),
    ("stele-tools", &["stele-core", "stele-edit", "stele-path"]),
    ("stele-agent", &["stele-core", "stele-guard", "stele-path", "stele-provider", "stele-store", "stele-tools"]),
    ("stele-proxy", &["stele-core", "stele-provider"]),
    ("stele-testkit", &["stele-core"]),
];

/// Crates that may know all others.
const TOP: &[&str] = &["stele-cli", "xtask"];

/// What the pure crates must not even have within reach.
const IMPURE: &[&str] = &["tokio", "reqwest", "rusqlite", "uuid", "tempfile", "jiff", "rustix"];

#[test]
fn dependencies_point_down() {
    let metadata = MetadataCommand::new()
        .manifest_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    for package in &metadata.packages {
        let name = package.name.as_str();
        let normal: Vec<&str> = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind == DependencyKind::Normal)
            .map(|dependency| dependency.name.as_str())
            .collect();
        if TOP.contains(&name) {
            continue;
        }
        let known = allowed.get(name).unwrap_or_else(|| panic!("{name} has no place in the table"));
        for dependency in normal.iter().filter(|dependency| dependency.starts_with("stele-")) {
            assert!(known.contains(dependency), "{name} must not depend on {dependency}");
        }
        if ["stele-core", "stele-edit"].contains(&name) {
            for dependency in &normal {
                assert!(!IMPURE.contains(dependency), "{name} is pure and must not depend on {dependency}");
            }
        }
    }
}

#[test]
fn no_module_of_the_integration_tests_is_forgotten() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for entry in std::fs::read_dir(crates).unwrap() {
        let tests = entry.unwrap().path().join("tests/it");
        let Ok(main) = std::fs::read_to_string(tests.join("main.rs")) else { continue };
        for file in std::fs::read_dir(&tests).unwrap() {
            let path = file.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap();
            if path.extension().is_some_and(|extension| extension == "rs") && stem != "main" {
                assert!(main.contains(&format!("mod {stem};")), "{} is not part of the tests", path.display());
            }
        }
    }
}

/// Literals of the sources that look like a code and are none.
const NO_CODES: &[&str] = &["config.worktree", "reasoning.encrypted_content", "system.posix_acl_access"];

/// What code literals do not begin or end with: limits and events of a wire, names of files.
const NO_FAMILIES: &[&str] = &["limits.", "response."];
const NO_ENDINGS: &[&str] = &[".md", ".toml", ".sh", ".db", ".jsonl", ".json"];

#[test]
fn error_codes_and_pages_agree() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages: String =
        files(&root.join("docs"), "md").iter().map(|page| std::fs::read_to_string(page).unwrap()).collect();
    let keys = std::fs::read_to_string(root.join("docs/configuration.md")).unwrap();
    // `"family.code"`, or a message that begins with it.
    let literal = regex::Regex::new(r#""([a-z]+\.[a-z_]+)(?:: [^"]*)?""#).unwrap();
    let mut missing = std::collections::BTreeSet::new();
    let mut found = 0;
    let mut sources = String::new();
    for entry in std::fs::read_dir(root.join("crates")).unwrap() {
        let package = entry.unwrap().path();
        if package.ends_with("stele-testkit") {
            continue;
        }
        for file in files(&package.join("src"), "rs").iter().filter(|file| !file.ends_with("tests.rs")) {
            let source = std::fs::read_to_string(file).unwrap();
            let source = ["mod tests {", "pub mod tests {"]
                .iter()
                .find_map(|tests| source.split_once(&format!("#[cfg(test)]\n{tests}")))
                .map_or(source.as_str(), |(source, _)| source);
            sources.push_str(source);
            for code in literal.captures_iter(source).map(|found| found[1].to_owned()) {
                let is_key = keys.contains(&format!("`{code}`")) || keys.contains(&format!(".{code}`"));
                if is_key
                    || NO_CODES.contains(&code.as_str())
                    || NO_FAMILIES.iter().any(|family| code.starts_with(family))
                    || NO_ENDINGS.iter().any(|ending| code.ends_with(ending))
                {
                    continue;
                }
                found += 1;
                if !pages.contains(&format!("`{code}`")) {
                    missing.insert(code);
                }
            }
        }
    }
    assert!(found > 100, "only {found} codes were found: is it still looked for in the right way?");
    assert!(missing.is_empty(), "in no page of docs/: {missing:?}; docs/errors.md is the place for what has no other");
    let page = std::fs::read_to_string(root.join("docs/errors.md")).unwrap();
    let named = regex::Regex::new(r"`([a-z]+\.[a-z_]+)`").unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let codes = rows.flat_map(|row| named.captures_iter(row).map(|found| found.get(1).unwrap().as_str()));
    let unknown: Vec<&str> = codes.filter(|code| !sources.contains(&format!("\"{code}"))).collect();
    assert!(unknown.is_empty(), "in docs/errors.md, and no source gives them: {unknown:?}");
}

/// The files of a folder and of those in it that end so.
fn files(folder: &Path, ending: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    for path in entries {
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
    found
}
