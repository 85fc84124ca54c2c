//! A folder to work in, a home for the agent, and commands of the binary in them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Result, bail};
use stele_core::Wire;
use stele_store::Store;
use stele_testkit::{Behaviour, Server};
use tempfile::TempDir;

use crate::process::{Measured, measure};
use crate::scripts;

/// The binary, a server, a home and a workspace: everything of one or more runs.
pub struct Stage {
    stele: PathBuf,
    wire: Wire,
    base_url: String,
    folder: TempDir,
    /// What stands in for the provider.
    pub server: Server,
}

impl Stage {
    /// Sets up a stage whose workspace holds the fixture.
    pub fn new(stele: &Path, wire: Wire, behaviour: impl Into<Behaviour>) -> Result<Self> {
        let server = Server::start(behaviour)?;
        Self::with_folder(stele, wire, server, tempfile::Builder::new().prefix("stele-xtask-").tempdir()?)
    }

    /// Sets up a stage in a folder that is there, with a server that runs.
    pub fn with_folder(stele: &Path, wire: Wire, server: Server, folder: TempDir) -> Result<Self> {
        fs::create_dir_all(folder.path().join("home"))?;
        scripts::lay_out(&folder.path().join("work"))?;
        let base_url = server.base_url(wire);
        Ok(Self { stele: stele.to_owned(), wire, base_url, folder, server })
    }

    /// The folder of everything.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// The folder that the agent works in.
    pub fn work(&self) -> PathBuf {
        self.root().join("work")
    }

    /// Where the logs are.
    pub fn data(&self) -> PathBuf {
        self.root().join("home").join("data")
    }

    /// The logs; nothing when there are none yet.
    pub fn store(&self) -> Result<Option<Store>> {
        Ok(Store::inspect(&self.data())?)
    }

    /// The one session.
    pub fn session(&self) -> Result<Option<String>> {
        let Some(store) = self.store()? else { return Ok(None) };
        let rows = store.sessions(&stele_store::Filter::default())?;
        if rows.len() > 1 {
            bail!("there are {} sessions where one was expected", rows.len());
        }
        Ok(rows.first().map(|row| row.id.to_string()))
    }

    /// A command of the binary in the workspace, with an environment of its own.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(&self.stele);
        command
            .args(arguments)
            .current_dir(self.work())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root())
            .env("TZ", "UTC")
            .env("STELE_HOME", self.root().join("home"))
            .env("STELE_WIRE", self.wire.name())
            .env("STELE_BASE_URL", &self.base_url)
            .env("STELE_MODEL", "scripted")
            .env("STELE_API_KEY", "none")
            .stdin(Stdio::null());
        command
    }

    /// `stele run` with JSON lines.
    pub fn run(&self, arguments: &[&str]) -> Command {
        self.command(["run", "--json", "--mode", "full"].iter().chain(arguments))
    }

    /// Measures a command, which must end well; its output goes to a file. Nothing else may run meanwhile.
    pub fn measure(&self, command: &mut Command) -> Result<Measured> {
        self.measure_with(command, |_| {})
    }

    /// As [`Stage::measure`]; `begun` is told the process's number.
    pub fn measure_with(&self, command: &mut Command, begun: impl FnOnce(u32)) -> Result<Measured> {
        command.stdout(File::create(self.out())?).stderr(File::create(self.err())?);
        let measured = measure(command, begun)?;
        self.check(command, measured.status)?;
        Ok(measured)
    }

    /// Runs a command to its end, which must be a good one.
    pub fn complete(&self, command: &mut Command) -> Result<()> {
        let status = command.stdout(File::create(self.out())?).stderr(File::create(self.err())?).status()?;
        self.check(command, status)
    }

    fn out(&self) -> PathBuf {
        self.root().join("out")
    }

    fn err(&self) -> PathBuf {
        self.root().join("err")
    }

    fn check(&self, command: &Command, status: ExitStatus) -> Result<()> {
        if status.success() {
            return Ok(());
        }
        let tail = |path: &Path| -> String {
            let text = fs::read_to_string(path).unwrap_or_default();
            text.chars().skip(text.chars().count().saturating_sub(2_000)).collect()
        };
        bail!("{command:?} ended with {status}:\n{}\n{}", tail(&self.out()), tail(&self.err()));
    }

    /// What the last command printed.
    pub fn printed(&self) -> Result<String> {
        Ok(fs::read_to_string(self.out())?)
    }
}
