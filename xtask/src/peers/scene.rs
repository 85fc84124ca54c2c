//! One agent over one wire: a home, two folders, a server, a proxy, and runs of it.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use stele_core::Wire;
use stele_testkit::{Deed, Deeds, Received, Server, is_aside, prompt};
use tempfile::TempDir;

use super::adapters::{Adapter, Place};
use crate::process::{Measured, measure, peak_of};
use crate::proxied::Proxied;
use crate::scripts;

/// How long one run may take.
const PATIENCE: Duration = Duration::from_secs(180);
/// What every agent is asked, and what it is asked afterwards.
const PROMPT: &str = scripts::PROMPT;
const SECOND_PROMPT: &str = scripts::SECOND_PROMPT;

/// Twelve steps, and three more for the second prompt.
fn task() -> Vec<Deed> {
    let run = |command: &str| Deed::Run(command.to_owned());
    vec![
        Deed::Read("README.md".to_owned()),
        Deed::Read("src/lib.rs".to_owned()),
        run("ls -la"),
        run("cat data/notes.txt"),
        run("sh gen.sh"),
        run("printf 'pub fn id(x: i64) -> i64 { x }\\n' > src/id.rs"),
        run("sh run_tests.sh"),
        run("wc -l src/lib.rs src/id.rs"),
        run("git status --short"),
        run("grep -n 'pub fn' src/lib.rs"),
        run("head -5 data/notes.txt"),
        Deed::Answer("I read the crate, added src/id.rs and ran the tests: 12 passed.".to_owned()),
        run("cat src/id.rs"),
        run("sh run_tests.sh"),
        Deed::Answer("The new file is as expected and the tests still pass.".to_owned()),
    ]
}

/// Steps of the first prompt, and of the second.
pub const STEPS: (usize, usize) = (12, 3);

/// Everything of one agent over one wire.
pub struct Scene<'a> {
    adapter: &'a Adapter,
    program: PathBuf,
    stele: PathBuf,
    place: Place,
    folder: TempDir,
    server: Server,
    proxied: Proxied,
}

/// A request that belongs to the conversation.
pub struct Main {
    /// Bytes of its body.
    pub bytes: usize,
    /// Tools that it offers.
    pub tools: usize,
    /// Its prompt, in the vendor's order.
    pub prompt: String,
}

impl<'a> Scene<'a> {
    /// Sets everything up.
    pub fn new(stele: &Path, adapter: &'a Adapter, program: &Path, wire: Wire) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("stele-peers-").tempdir()?;
        let root = folder.path().canonicalize()?;
        let folders = [root.join("work"), root.join("elsewhere").join("another name")];
        for folder in &folders {
            scripts::lay_out(folder)?;
            repository(folder, &root)?;
        }
        let server = Server::start(Deeds::new(task()).in_folders(folders))?;
        let proxied = Proxied::start(stele, &format!("http://{}", server.address()), &root.join("proxy"))?;
        let place = Place { home: root.join("home"), origin: proxied.origin.clone(), wire };
        fs::create_dir_all(place.home.join("tmp"))?;
        (adapter.configure)(&place)?;
        let (program, stele) = (program.to_owned(), stele.to_owned());
        Ok(Self { adapter, program, stele, place, folder, server, proxied })
    }

    fn root(&self) -> Result<PathBuf> {
        Ok(self.folder.path().canonicalize()?)
    }

    /// Whether the agent's home is where its program keeps everything: all of it is thrown away.
    fn command(&self, arguments: &[String], folder: &Path) -> Result<Command> {
        let home = &self.place.home;
        // Its own folder first, so that a program beside it (an interpreter, a helper) is found.
        let beside = self.program.parent().map(Path::to_owned);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(beside.into_iter().chain(std::env::split_paths(&path)))?;
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .env("PATH", path)
            .env("HOME", home)
            .env("XDG_CONFIG_HOME", home.join(".config"))
            .env("XDG_DATA_HOME", home.join(".local").join("share"))
            .env("XDG_STATE_HOME", home.join(".local").join("state"))
            .env("XDG_CACHE_HOME", home.join(".cache"))
            .env("TMPDIR", home.join("tmp"))
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .env("TERM", "dumb")
            .env("NO_COLOR", "1")
            .envs((self.adapter.variables)(&self.place))
            .stdin(Stdio::null());
        Ok(command)
    }

    fn work(&self) -> Result<PathBuf> {
        Ok(self.root()?.join("work"))
    }

    /// The first prompt, in a session of its own.
    pub fn begin(&mut self) -> Result<Run> {
        self.run(&(self.adapter.begin)(&self.place, PROMPT), &self.work()?)
    }

    /// The second prompt, in the same session but another process; nothing where the agent cannot be asked for that.
    pub fn go_on(&mut self) -> Result<Option<Run>> {
        let Some(go_on) = self.adapter.go_on else { return Ok(None) };
        self.run(&go_on(&self.place, SECOND_PROMPT), &self.work()?).map(Some)
    }

    /// The first prompt, in another folder.
    pub fn elsewhere(&mut self) -> Result<Run> {
        let folder = self.root()?.join("elsewhere").join("another name");
        self.run(&(self.adapter.begin)(&self.place, PROMPT), &folder)
    }

    /// Peak memory of the first prompt's process and the programs it starts, whichever has most, in MB.
    pub fn peak(&mut self) -> Result<f64> {
        self.reset()?;
        let command = self.command(&(self.adapter.begin)(&self.place, PROMPT), &self.work()?)?;
        Ok(peak_of(&command, Stdio::null(), self.folder.path())? as f64 * 1024.0 / 1e6)
    }

    /// What an earlier run of the task made.
    fn reset(&self) -> Result<()> {
        match fs::remove_file(self.work()?.join("src").join("id.rs")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Another session of the first prompt, for its times.
    pub fn again(&mut self) -> Result<Run> {
        self.reset()?;
        self.begin()
    }

    fn run(&mut self, arguments: &[String], folder: &Path) -> Result<Run> {
        let (out, error) = (self.folder.path().join("out"), self.folder.path().join("err"));
        let before = self.server.requests().len();
        let mut command = self.command(arguments, folder)?;
        command.process_group(0).stdout(File::create(&out)?).stderr(File::create(&error)?);
        let (done, finished) = channel::<()>();
        let mut group = None;
        let measured = measure(&mut command, |id| {
            group = i32::try_from(id).ok().and_then(Pid::from_raw);
            std::thread::spawn(move || {
                if finished.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    end_group(group);
                }
            });
        })?;
        let _ = done.send(());
        // What it left running is of no use to anybody.
        end_group(group);
        let requests = self.server.requests().split_off(before);
        if !measured.status.success() {
            let tail = |path: &Path| -> String {
                let text = fs::read_to_string(path).unwrap_or_default();
                text.chars().skip(text.chars().count().saturating_sub(1_500)).collect()
            };
            bail!(
                "it ended with {} after {} requests:\n{}\n{}",
                measured.status,
                requests.len(),
                tail(&out),
                tail(&error)
            );
        }
        let models = self.server.requests().iter().filter(|request| request.wire.is_some()).count();
        self.proxied.wait_for(models)?;
        Ok(Run { measured, requests })
    }

    /// What a command of the proxy says of everything recorded so far.
    pub fn ask_proxy(&self, arguments: &[&str]) -> Result<Vec<Value>> {
        let home = self.root()?.join("proxy");
        let output = Command::new(&self.stele)
            .arg("proxy")
            .args(arguments)
            .arg("--json")
            .env_clear()
            .env("HOME", &home)
            .env("STELE_HOME", &home)
            .output()?;
        if !output.status.success() {
            bail!(
                "stele proxy {arguments:?} ended with {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        let text = String::from_utf8(output.stdout)?;
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }
}

fn end_group(group: Option<Pid>) {
    if let Some(group) = group {
        // Usually nobody is left in it.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Makes a repository with one commit; its folder is as it was laid out when there is no git.
fn repository(folder: &Path, root: &Path) -> Result<()> {
    let git = |arguments: &[&str]| -> Result<()> {
        let output = Command::new("git")
            .args(["-c", "user.name=bench", "-c", "user.email=bench@example.invalid"])
            .args(arguments)
            .current_dir(folder)
            .env("HOME", root)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z")
            .env("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z")
            .output()
            .context("git is needed for the repository that agents work in")?;
        if !output.status.success() {
            bail!("git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    };
    git(&["init", "-q", "-b", "main"])?;
    git(&["add", "-A"])?;
    git(&["commit", "-q", "-m", "Add tinyset"])
}

/// One process of the agent.
pub struct Run {
    /// What was seen of it from outside.
    pub measured: Measured,
    /// What the server received meanwhile.
    pub requests: Vec<Received>,
}

impl Run {
    /// Model requests.
    pub fn models(&self) -> impl Iterator<Item = &Received> {
        self.requests.iter().filter(|request| request.wire.is_some())
    }

    /// The requests of the conversation.
    pub fn mains(&self) -> Vec<Main> {
        let main = |request: &Received| {
            let (wire, body) = (request.wire?, request.json());
            if is_aside(wire, &body) {
                return None;
            }
            let tools = body["tools"].as_array().map_or(0, |tools| {
                let of = |tool: &Value| tool["functionDeclarations"].as_array().map_or(1, Vec::len);
                tools.iter().map(of).sum()
            });
            Some(Main { bytes: request.body.len(), tools, prompt: prompt::joined(&prompt::pieces(wire, &body)) })
        };
        self.requests.iter().filter_map(main).collect()
    }
}
