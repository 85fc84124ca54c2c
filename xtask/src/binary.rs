//! Building what is measured.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// A build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// What the README builds.
    Release,
    /// What is shipped.
    Dist,
}

/// What a build has beyond the main job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Features {
    /// Nothing.
    Plain,
    /// Everything.
    Complete,
}

impl Features {
    /// Cargo's arguments for them.
    pub fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &[],
            Self::Complete => &["--features", "complete"],
        }
    }
}

impl Profile {
    fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Dist => "dist",
        }
    }
}

/// The binary that was named, or one built now.
pub fn find(named: Option<PathBuf>) -> Result<PathBuf> {
    match named {
        Some(path) => path.canonicalize().with_context(|| format!("there is no binary {}", path.display())),
        None => build(Profile::Release, Features::Plain),
    }
}

/// Builds the binary.
pub fn build(profile: Profile, features: Features) -> Result<PathBuf> {
    let root = crate::workspace()?;
    crate::say(&format!("building stele ({})", profile.name()));
    let mut command = cargo();
    command.args(["build", "--quiet", "--package", "stele-cli", "--profile", profile.name()]);
    let status = command.args(features.arguments()).status()?;
    if !status.success() {
        bail!("stele does not build");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join(profile.name()).join("stele"))
}

/// Cargo, in the workspace.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo
}
