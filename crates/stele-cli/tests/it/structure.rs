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
    ("stele-guard", &["stele-core"]),
    ("stele-tools", &["stele-core", "stele-edit"]),
    ("stele-agent", &["stele-core", "stele-guard", "stele-provider", "stele-store", "stele-tools"]),
    ("stele-proxy", &["stele-core", "stele-provider", "stele-store"]),
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
