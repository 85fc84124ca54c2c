//! `bash`: a shell command, with its output and how it ended, as numbers; in the background, a job.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use stele_core::{
    CallCard, CardKind, Effects, Future, Invocation, ProcessMeta, ResultCard, ResultMeta, SessionId, Subject, Tool,
    ToolError, ToolOutput, ToolSpec, Watch, limits,
};

use crate::declare::{Declared, blocking, finish};
use crate::error::{Error, Result};
use crate::jobs::{Jobs, Task};
use crate::path::Roots;
use crate::shell::{self, Command, End, Follow, Outcome, Output};
use crate::snapshot::{Differences, Snapshot};
use crate::{Options, card, sanitise};

/// Bytes kept free for the line that says how the command ended.
const STATUS: usize = 2 * 1024;
/// Bytes of a job's title.
const TITLE: usize = 60;

/// Arguments of `bash`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    command: String,
    /// Seconds, at most 600; 120 by default, but none in the background.
    timeout: Option<u64>,
    cwd: Option<String>,
    /// Run as a job.
    background: Option<bool>,
    description: Option<String>,
}

impl Arguments {
    fn background(&self) -> bool {
        self.background.unwrap_or(false)
    }

    /// The command line as it has to be judged: what it does depends on its folder.
    fn judged(&self, roots: &Roots) -> String {
        match &self.cwd {
            Some(cwd) => format!("cd -- '{}'\n{}", roots.for_the_shell(cwd).replace('\'', r"'\''"), self.command),
            None => self.command.clone(),
        }
    }
}

/// The tool.
pub(crate) struct Bash {
    declared: Declared<Arguments>,
    environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    supervisor: Option<Vec<std::ffi::OsString>>,
    roots: Roots,
    jobs: Arc<Jobs>,
    /// What the workspace was after the last command.
    last_look: Mutex<Option<Snapshot>>,
    default_ms: u64,
    limit: usize,
}

impl Bash {
    pub(crate) fn new(options: &Options, jobs: &Arc<Jobs>) -> Self {
        Self {
            declared: Declared::new("bash", include_str!("bash.md"), ""),
            environment: shell::environment::environment(&options.environment, &options.pass),
            supervisor: options.supervisor.clone(),
            roots: options.roots(),
            jobs: Arc::clone(jobs),
            last_look: Mutex::default(),
            default_ms: options.limits.shell_ms,
            limit: options.limits.result_bytes,
        }
    }

    fn timeout(&self, arguments: &Arguments) -> Result<Option<Duration>> {
        let Some(seconds) = arguments.timeout else {
            return Ok((!arguments.background()).then(|| Duration::from_millis(self.default_ms)));
        };
        let most = limits::SHELL_MS.hard / 1000;
        if seconds == 0 || seconds > most {
            return Err(Error::Value(format!(
                "timeout = {seconds} is out of bounds: at least 1, at most {most} seconds"
            )));
        }
        Ok(Some(Duration::from_secs(seconds)))
    }

    /// The folder that a call asks for, if it does.
    fn folder(&self, arguments: &Arguments, invocation: &Invocation<'_>) -> Result<Option<PathBuf>> {
        let place = self.roots.place(invocation.cwd, &invocation.session.id);
        arguments.cwd.as_deref().map(|asked| place.folder(asked)).transpose()
    }

    fn output(&self, session: &SessionId, id: &str) -> Output {
        let spill = self.roots.spill(session, id);
        Output::new(self.limit.saturating_sub(STATUS), spill)
    }

    async fn run_here(&self, arguments: &Arguments, invocation: Invocation<'_>) -> Result<ToolOutput> {
        let own = self.folder(arguments, &invocation)?;
        let command = Command {
            line: &arguments.command,
            cwd: own.as_deref().unwrap_or(invocation.cwd),
            environment: &self.environment,
            supervisor: self.supervisor.as_deref(),
            timeout: self.timeout(arguments)?,
        };
        let output = Mutex::new(self.output(&invocation.session.id, &invocation.call.to_string()));
        let follow = Follow { output: &output, progress: invocation.progress, started: &|| {} };
        let watched = self.look(invocation.watch, invocation.workspace).await?;
        let mut outcome = shell::run(&command, invocation.cancelled, &follow).await?;
        self.jobs.keep(&invocation.session.id, &arguments.command, outcome.remains.take());
        let seen = self.compare(watched).await?;
        let after = outcome.after.as_ref().filter(|_| outcome.end == End::Itself && own.is_none());
        let moved = moved(after.map(|after| Path::new(&after.cwd)), invocation.cwd, invocation.workspace);
        let mut result = told(&command, &outcome, &moved, &mut shell::lock(&output));
        result.changed = seen.changed;
        result.meta.not_covered = seen.not_covered;
        Ok(result)
    }

    /// Looks at the workspace before a command that may change it; what did not change since the last look is not
    /// read again.
    async fn look(&self, watch: Watch, workspace: &Path) -> Result<Option<Snapshot>> {
        if watch == Watch::Nothing {
            return Ok(None);
        }
        let last = shell::lock(&self.last_look).take();
        let root = workspace.to_owned();
        blocking(move || Ok(Snapshot::take(&root, last.as_ref()))).await.map(Some)
    }

    async fn compare(&self, before: Option<Snapshot>) -> Result<Differences> {
        let Some(before) = before else { return Ok(Differences::default()) };
        let (after, seen) = blocking(move || Ok(before.compare())).await?;
        *shell::lock(&self.last_look) = Some(after);
        Ok(seen)
    }

    async fn run_behind(&self, arguments: Arguments, invocation: Invocation<'_>) -> Result<ToolOutput> {
        let own = self.folder(&arguments, &invocation)?;
        let said = arguments.description.as_deref().filter(|text| !text.trim().is_empty());
        let title = card::title(said.unwrap_or(&arguments.command));
        let task = Task {
            title: title[..sanitise::floor(&title, TITLE)].to_owned(),
            cwd: own.unwrap_or_else(|| invocation.cwd.to_owned()),
            environment: self.environment.clone(),
            supervisor: self.supervisor.clone(),
            timeout: self.timeout(&arguments)?,
            output: self.output(&invocation.session.id, &invocation.session.next_job.to_string()),
            line: arguments.command,
        };
        let job = self.jobs.start(invocation.session, task).await?;
        let content = format!("started {0} in the background; see it with jobs, a notice tells of its end", job.id);
        let not_covered = vec![format!("what {} did in the background", job.id)];
        let meta = ResultMeta { jobs: vec![job.meta()], not_covered, ..ResultMeta::default() };
        Ok(ToolOutput { content, meta, ..ToolOutput::default() })
    }
}

impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &self.declared.spec
    }

    fn effects(&self) -> Effects {
        Effects::Local
    }

    fn parallel(&self, _: &str) -> bool {
        false
    }

    fn subjects(&self, arguments: &str) -> Result<Vec<Subject>, ToolError> {
        let arguments = self.declared.parse(arguments)?;
        self.timeout(&arguments)?;
        Ok(vec![Subject::Command(arguments.judged(&self.roots))])
    }

    fn call_card(&self, arguments: &str, _: &Path) -> CallCard {
        let Ok(arguments) = self.declared.parse(arguments) else { return self.declared.plain_card(CardKind::Execute) };
        let title = arguments.description.as_ref().filter(|text| !text.trim().is_empty());
        let title = card::title(title.unwrap_or(&arguments.command));
        CallCard::Terminal { title, command: arguments.command, cwd: arguments.cwd }
    }

    fn result_card(&self, _: &str, content: &str, meta: &ResultMeta) -> ResultCard {
        match &meta.process {
            Some(process) => {
                ResultCard::Terminal { output: content.to_owned(), exit: process.exit, signal: process.signal }
            }
            None => ResultCard::Generic { content: content.to_owned() },
        }
    }

    fn run<'a>(&'a self, invocation: Invocation<'a>) -> Future<'a, ToolOutput> {
        Box::pin(async move {
            let result = async {
                let arguments = self.declared.parse(invocation.arguments)?;
                if arguments.command.contains('\0') {
                    return Err(Error::Value("command holds a NUL character, which no shell can take".to_owned()));
                }
                match arguments.background() {
                    true => self.run_behind(arguments, invocation).await,
                    false => self.run_here(&arguments, invocation).await,
                }
            };
            finish(result.await, Some(self.limit))
        })
    }
}

/// Where a command left the session.
#[derive(Debug, PartialEq)]
enum Moved {
    /// Where it was.
    Not,
    /// In another folder of the workspace.
    To(PathBuf),
    /// Where it was, since the command ended outside of the workspace.
    Outside,
    /// Where it was, since the folder that the command ended in is gone.
    Vanished,
    /// In this folder, since the one where it was is gone.
    Gone(PathBuf),
}

/// `ended` is what the shell calls its last folder, where that counts: it may lead through links, or be gone.
fn moved(ended: Option<&Path>, from: &Path, workspace: &Path) -> Moved {
    let here = from.canonicalize().ok().filter(|here| here.is_dir());
    let ended = ended.map(|ended| ended.canonicalize().ok().filter(|now| now.is_dir()));
    match (ended, here) {
        (Some(Some(now)), here) if now.starts_with(workspace) && here.as_ref() != Some(&now) => Moved::To(now),
        (_, None) if workspace.is_dir() => Moved::Gone(workspace.to_owned()),
        (None, _) | (_, None) => Moved::Not,
        (Some(Some(now)), Some(here)) if now == here => Moved::Not,
        (Some(Some(_)), _) => Moved::Outside,
        (Some(None), _) => Moved::Vanished,
    }
}

fn told(command: &Command<'_>, outcome: &Outcome, moved: &Moved, output: &mut Output) -> ToolOutput {
    let text = output.finish();
    let text = if text.is_empty() { "(no output)" } else { &text };
    let error = match outcome.end {
        End::Itself => None,
        End::TimedOut => Some(Error::TimedOut),
        End::Cancelled => Some(Error::Cancelled),
        End::Lost => Some(Error::Unsupervised),
    };
    let mut content = format!("{text}\n[{}", shell::status(command, outcome));
    let cwd = match moved {
        Moved::Not => None,
        Moved::To(folder) => {
            let folder = folder.display().to_string();
            let _ = write!(content, "; now in {folder}");
            Some(folder)
        }
        Moved::Outside => {
            let _ = write!(content, "; back in {}, since it ended outside of the workspace", command.cwd.display());
            None
        }
        Moved::Vanished => {
            let _ = write!(content, "; back in {}, since the folder it ended in is gone", command.cwd.display());
            None
        }
        Moved::Gone(folder) => {
            let folder = folder.display().to_string();
            let _ = write!(content, "; its folder is gone, now in {folder}");
            Some(folder)
        }
    };
    content.push(']');
    ToolOutput {
        content,
        error: error.map(ToolError::from),
        meta: ResultMeta {
            process: Some(ProcessMeta {
                exit: outcome.ending.exit,
                signal: outcome.ending.signal,
                timed_out: outcome.end == End::TimedOut,
                output_bytes: output.printed,
                left: outcome.left.named(),
            }),
            duration_ms: Some(u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX)),
            cwd,
            spill: output.spill(),
            ..ResultMeta::default()
        },
        ..ToolOutput::default()
    }
}
