//! What a configuration is made from.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use stele_core::Mode;

use super::ConfigError;
use crate::given;

/// The machine's policy.
const MANAGED: &str = "/etc/stele/policy.toml";

/// Largest configuration file, in bytes.
const FILE_MAX: u64 = 1024 * 1024;

/// Where configuration and data live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Configuration and a person's instructions.
    pub config: PathBuf,
    /// The logs.
    pub data: PathBuf,
}

impl Places {
    /// `STELE_HOME` moves both, else the XDG base directories (version 0.8: relative paths are ignored).
    ///
    /// # Errors
    /// `config.home` when nothing says where.
    pub fn find(env: &BTreeMap<String, String>) -> Result<Self, ConfigError> {
        let absolute = |name: &str| env.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        match env.get("STELE_HOME").filter(|home| !home.is_empty()) {
            Some(home) if Path::new(home).is_absolute() => {
                return Ok(Self { config: PathBuf::from(home), data: Path::new(home).join("data") });
            }
            Some(home) => return Err(ConfigError::RelativeHome(home.clone())),
            None => {}
        }
        let below = |variable: &str, default: &str| {
            absolute(variable)
                .or_else(|| absolute("HOME").map(|home| home.join(default)))
                .map(|folder| folder.join("stele"))
                .ok_or(ConfigError::Home)
        };
        Ok(Self { config: below("XDG_CONFIG_HOME", ".config")?, data: below("XDG_DATA_HOME", ".local/share")? })
    }
}

/// A file and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileText {
    /// Where it is.
    pub path: PathBuf,
    /// What it holds.
    pub text: String,
}

/// What the command line says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--mode`
    pub mode: Option<Mode>,
    /// `--model`
    pub model: Option<String>,
    /// `--max-steps`
    pub steps: Option<u64>,
    /// `--allow`, in order.
    pub allow: Vec<String>,
    /// `--deny`, in order.
    pub deny: Vec<String>,
}

/// Everything a configuration is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inputs {
    /// Variables that are text.
    pub env: BTreeMap<String, String>,
    /// Where things live.
    pub places: Places,
    /// The machine's policy.
    pub managed: Option<FileText>,
    /// The user's configuration.
    pub user: Option<FileText>,
    /// A project's configuration that was found and is not read.
    pub project: Option<PathBuf>,
    /// The command line.
    pub flags: Flags,
}

impl Inputs {
    /// Reads the files for a folder.
    ///
    /// # Errors
    /// A file is there and cannot be read, or nothing says where they are.
    pub fn read(env: &BTreeMap<String, String>, folder: &Path, flags: Flags) -> Result<Self, ConfigError> {
        let places = Places::find(env)?;
        let user = places.config.join("config.toml");
        Ok(Self {
            env: env.clone(),
            managed: read(Path::new(MANAGED))?,
            project: project(folder).filter(|project| *project != user),
            user: read(&user)?,
            places,
            flags,
        })
    }

    /// The defaults alone, where what is set cannot be read: the logs stay where they are.
    ///
    /// # Errors
    /// Nothing says where they are.
    pub fn defaults(env: &BTreeMap<String, String>) -> Result<Self, ConfigError> {
        let places = Places::find(env)?;
        let env = env.iter().filter(|(name, _)| !name.starts_with("STELE_"));
        let env = env.map(|(name, value)| (name.clone(), value.clone())).collect();
        Ok(Self { env, places, managed: None, user: None, project: None, flags: Flags::default() })
    }

    /// What was found and not loaded.
    pub(super) fn skipped(&self) -> Vec<String> {
        self.project
            .iter()
            .map(|path| format!("{}: not loaded, since folders cannot be trusted yet", path.display()))
            .collect()
    }
}

/// A file's text; `None` when there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<FileText>, ConfigError> {
    let unreadable = |problem: String| ConfigError::Unreadable { path: path.to_owned(), problem };
    let file = match given::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error.to_string())),
    };
    let mut bytes = Vec::new();
    file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(unreadable(format!("it is larger than {FILE_MAX} bytes")));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(FileText { path: path.to_owned(), text })),
        Err(error) => Err(unreadable(format!("byte {} is not UTF-8", error.utf8_error().valid_up_to()))),
    }
}

/// A project's configuration: in the folder, or above it up to the repository's root.
fn project(folder: &Path) -> Option<PathBuf> {
    let repository = folder.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(folder);
    folder
        .ancestors()
        .take_while(|above| above.starts_with(repository))
        .map(|above| above.join(".stele/config.toml"))
        .find(|path| path.exists())
}
