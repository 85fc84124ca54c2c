//! The built-in tools on real files and real processes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails")]

mod closed;
mod contract;
#[cfg(feature = "documents")]
mod documents;
mod edit_and_write;
mod folder;
mod jobs;
mod judged;
mod killed;
#[cfg(not(any(feature = "documents", feature = "symbols", feature = "web")))]
mod lean;
mod meanwhile;
mod names;
mod offer;
mod patch;
mod read;
mod rules;
mod search;
mod shell;
mod shell_stops;
mod storm;
mod talk;
#[cfg(feature = "web")]
mod web;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stele_core::{
    Ahead, CallId, CallSession, ImageInput, Invocation, JobId, JobNotice, ReadFile, ReadFiles, SessionId, Shown,
    ShownFiles, Tool, ToolOutput, Watch,
};
use stele_tools::{Options, builtin};
use tempfile::TempDir;
use tokio::sync::watch;

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
    images: ImageInput,
    seen: Mutex<ReadFiles>,
    /// Is given what a call is about to change, between its plan and the change.
    ahead: Mutex<Ahead>,
    shown: Mutex<ShownFiles>,
    /// All calls of a session share the tools, since jobs outlive their call.
    tools: Vec<Arc<dyn Tool>>,
    calls: AtomicU64,
    cwd: Mutex<Option<PathBuf>>,
    next_job: AtomicU64,
    notices: (Sender<JobNotice>, Mutex<Receiver<JobNotice>>),
    closed: watch::Sender<()>,
}

/// The one session of these tests.
const SESSION: &str = "01890000-0000-7000-8000-000000000001";

impl Session {
    fn new() -> Self {
        Self::with(options())
    }

    fn with(options: Options) -> Self {
        let (send, receive) = channel();
        Self {
            folder: TempDir::new().unwrap(),
            tools: builtin(&options),
            options,
            images: ImageInput::Sent,
            seen: Mutex::default(),
            ahead: Mutex::new(Arc::new(|_| Ok(()))),
            shown: Mutex::default(),
            calls: AtomicU64::new(0),
            cwd: Mutex::default(),
            next_job: AtomicU64::new(1),
            notices: (send, Mutex::new(receive)),
            closed: watch::Sender::default(),
        }
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
        let shown = self.shown.lock().unwrap().clone();
        let cwd = self.cwd.lock().unwrap().clone().unwrap_or_else(|| self.path());
        let ahead = Arc::clone(&self.ahead.lock().unwrap());
        let notices = self.notices.0.clone();
        let mut closed = self.closed.subscribe();
        let output = self
            .tools
            .iter()
            .find(|tool| tool.spec().name == name)
            .unwrap()
            .run(Invocation {
                call: CallId(self.calls.fetch_add(1, Ordering::Relaxed) + 1),
                arguments: &arguments.to_string(),
                cwd: &cwd,
                workspace: &self.path(),
                session: CallSession {
                    id: SessionId::new(SESSION).unwrap(),
                    next_job: JobId(self.next_job.load(Ordering::Relaxed)),
                    notify: Arc::new(move |notice| notices.send(notice).unwrap()),
                    closed: Box::pin(async move { while closed.changed().await.is_ok() {} }),
                },
                read_files: Arc::new(seen),
                shown_files: Arc::new(shown),
                images: self.images,
                watch: Watch::Workspace,
                ahead,
                cancelled: Box::pin(cancelled),
                progress,
            })
            .await;
        for file in &output.meta.files {
            ReadFile::follow(&mut self.seen.lock().unwrap(), file);
        }
        if let (Some(read), [file]) = (&output.meta.read, output.meta.files.as_slice()) {
            let shown =
                Shown { hash: file.hash.unwrap(), offset: read.offset, lines: read.lines, pointed: read.unchanged };
            self.shown.lock().unwrap().insert(PathBuf::from(&file.path), shown);
        }
        if let Some(cwd) = &output.meta.cwd {
            *self.cwd.lock().unwrap() = Some(PathBuf::from(cwd));
        }
        for job in &output.meta.jobs {
            self.next_job.fetch_max(job.job.0 + 1, Ordering::Relaxed);
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
