//! The built-in tools on real files and real processes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails")]

mod contract;
mod edit_and_write;
mod names;
mod read;
mod search;
mod shell;
mod shell_stops;
mod talk;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stele_core::{CallId, Hash, Invocation, Tool, ToolOutput};
use stele_tools::{Options, builtin};
use tempfile::TempDir;

/// A program that is its own supervisor.
const PROGRAM: &str = env!("CARGO_BIN_EXE_stele-tool");

fn options() -> Options {
    Options {
        environment: std::env::vars_os().collect(),
        supervisor: Some(vec![PROGRAM.into(), "__supervise".into()]),
        ..Options::default()
    }
}

fn tool(options: &Options, name: &str) -> Arc<dyn Tool> {
    builtin(options).into_iter().find(|tool| tool.spec().name == name).unwrap()
}

/// A session's folder with what the model has seen in it.
struct Session {
    folder: TempDir,
    options: Options,
    seen: Mutex<BTreeMap<PathBuf, Hash>>,
}

impl Session {
    fn new() -> Self {
        Self::with(options())
    }

    fn with(options: Options) -> Self {
        Self { folder: TempDir::new().unwrap(), options, seen: Mutex::default() }
    }

    /// The folder, without symbolic links.
    fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    fn content(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// Runs one call to its end.
    fn call(&self, name: &str, arguments: serde_json::Value) -> ToolOutput {
        block_on(self.start(name, arguments, std::future::pending(), &|_| {}))
    }

    /// Runs one call; it is cancelled when `cancelled` ends.
    async fn start(
        &self,
        name: &str,
        arguments: serde_json::Value,
        cancelled: impl Future<Output = ()> + Send,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> ToolOutput {
        let seen = self.seen.lock().unwrap().clone();
        let output = tool(&self.options, name)
            .run(Invocation {
                call: CallId(1),
                arguments: &arguments.to_string(),
                cwd: &self.path(),
                read_files: Arc::new(seen),
                cancelled: Box::pin(cancelled),
                progress,
            })
            .await;
        for file in &output.meta.files {
            if let Some(hash) = file.hash {
                self.seen.lock().unwrap().insert(PathBuf::from(&file.path), hash);
            }
        }
        output
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let value = runtime.block_on(future);
    runtime.shutdown_timeout(Duration::from_secs(1));
    value
}

#[track_caller]
fn code(output: &ToolOutput) -> &str {
    &output.error.as_ref().unwrap_or_else(|| panic!("no error: {}", output.content)).code
}

/// Processes whose folder is this one or one beneath it, looked at from outside.
fn processes_in(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        if std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if !line.is_empty() {
                found.push(String::from_utf8_lossy(&line).replace('\0', " "));
            }
        }
    }
    found
}
