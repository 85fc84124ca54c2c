//! A proxy that runs, as a process of its own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// How long it may take to say something; reached only when something is wrong.
const PATIENCE: Duration = Duration::from_secs(30);

/// `stele proxy` on a port of its own. Dropping it ends the process.
pub struct Proxied {
    child: Child,
    lines: Receiver<Value>,
    /// Where it listens, as `http://127.0.0.1:PORT`.
    pub origin: String,
    recorded: usize,
}

impl Proxied {
    /// Starts it before a server, with its recordings in a home of its own.
    pub fn start(stele: &Path, server: &str, home: &Path) -> Result<Self> {
        let mut child = Command::new(stele)
            .args(["proxy", "--json", "--listen", "127.0.0.1:0", "--to", server])
            .env_clear()
            .env("HOME", home)
            .env("STELE_HOME", home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", stele.display()))?;
        let out = child.stdout.take().context("the proxy has no output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or_default();
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut proxied = Self { child, lines, origin: String::new(), recorded: 0 };
        let first = proxied.line()?;
        let url = first["base_url"].as_str().context("the proxy does not say where it listens")?;
        let end = url.match_indices('/').nth(2).map_or(url.len(), |(at, _)| at);
        proxied.origin = url.get(..end).unwrap_or(url).to_owned();
        Ok(proxied)
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn line(&mut self) -> Result<Value> {
        self.lines.recv_timeout(PATIENCE).context("the proxy says nothing")
    }

    /// Waits until so many model requests are recorded since the start.
    pub fn wait_for(&mut self, requests: usize) -> Result<()> {
        while self.recorded < requests {
            let line = self.line()?;
            match line["type"].as_str() {
                Some("recorded") => self.recorded += 1,
                Some("not_recorded" | "refused") => bail!("the proxy: {line}"),
                _ => {}
            }
        }
        Ok(())
    }

    /// Ends it in good order.
    pub fn stop(mut self) -> Result<()> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).context("a process without a number")?;
        kill_process(id, Signal::INT)?;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the proxy ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Proxied {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
