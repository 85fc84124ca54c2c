//! `jobs`: what runs in the background.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use stele_core::{
    CallCard, CardKind, Effects, Future, Invocation, ResultMeta, SessionId, Subject, Tool, ToolError, ToolOutput,
    ToolSpec, limits,
};

use crate::Options;
use crate::declare::{Declared, finish};
use crate::error::{Error, Result};
use crate::jobs::{Job, Jobs};

/// Arguments of `jobs`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    action: Action,
    /// `j1`; without it `wait` takes the first to end.
    job: Option<String>,
    /// Seconds: 120 by default, at most 600.
    timeout: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Read,
    Wait,
    Stop,
}

/// The tool.
pub(crate) struct JobsTool {
    declared: Declared<Arguments>,
    jobs: Arc<Jobs>,
    default_ms: u64,
    limit: usize,
}

impl JobsTool {
    pub(crate) fn new(options: &Options, jobs: &Arc<Jobs>) -> Self {
        Self {
            declared: Declared::new("jobs", include_str!("jobs.md"), ""),
            jobs: Arc::clone(jobs),
            default_ms: options.limits.shell_ms,
            limit: options.limits.result_bytes,
        }
    }

    async fn act(&self, arguments: &Arguments, session: &SessionId) -> Result<ToolOutput> {
        match (arguments.action, &arguments.job) {
            (Action::List, _) => Ok(list(&self.jobs.of(session))),
            (Action::Wait, None) => self.wait_for_any(session, arguments).await,
            (_, None) => Err(Error::Value("job is missing: say which, such as \"j1\"".to_owned())),
            (action, Some(name)) => {
                let job = self.jobs.find(session, name)?;
                match action {
                    Action::Wait => {
                        let _ = tokio::time::timeout(self.timeout(arguments)?, job.ended()).await;
                    }
                    Action::Stop => job.stop().await,
                    Action::Read | Action::List => {}
                }
                Ok(shown(&job))
            }
        }
    }

    async fn wait_for_any(&self, session: &SessionId, arguments: &Arguments) -> Result<ToolOutput> {
        let known = self.jobs.of(session);
        let running: Vec<_> = known.iter().filter(|job| job.status() == stele_core::JobStatus::Running).collect();
        if running.is_empty() {
            return Ok(list(&known));
        }
        let mut ends: Vec<_> = running.iter().map(|job| Box::pin(job.ended())).collect();
        let first = std::future::poll_fn(|context| {
            let ended = ends.iter_mut().position(|end| end.as_mut().poll(context).is_ready());
            ended.map_or(std::task::Poll::Pending, std::task::Poll::Ready)
        });
        match tokio::time::timeout(self.timeout(arguments)?, first).await {
            Ok(at) => Ok(shown(running[at])),
            Err(_) => Ok(list(&known)),
        }
    }

    fn timeout(&self, arguments: &Arguments) -> Result<Duration> {
        let most = limits::SHELL_MS.hard / 1000;
        match arguments.timeout {
            None => Ok(Duration::from_millis(self.default_ms)),
            Some(seconds) if seconds <= most => Ok(Duration::from_secs(seconds)),
            Some(seconds) => Err(Error::Value(format!("timeout = {seconds} is out of bounds: at most {most} seconds"))),
        }
    }
}

impl Tool for JobsTool {
    fn spec(&self) -> &ToolSpec {
        &self.declared.spec
    }

    // What a job changes was allowed when it was started; after a crash there are no jobs to stop.
    fn effects(&self) -> Effects {
        Effects::None
    }

    // What one read shows the next one does not.
    fn parallel(&self, _: &str) -> bool {
        false
    }

    fn subjects(&self, arguments: &str) -> Result<Vec<Subject>, ToolError> {
        let arguments = self.declared.parse(arguments)?;
        self.timeout(&arguments)?;
        Ok(Vec::new())
    }

    fn call_card(&self, arguments: &str, _: &Path) -> CallCard {
        let Ok(arguments) = self.declared.parse(arguments) else { return self.declared.plain_card(CardKind::Execute) };
        let verb = match arguments.action {
            Action::List => "List",
            Action::Read => "Read",
            Action::Wait => "Wait for",
            Action::Stop => "Stop",
        };
        let title = format!("{verb} {}", arguments.job.as_deref().unwrap_or("jobs"));
        CallCard::Generic { title, kind: CardKind::Execute, locations: Vec::new() }
    }

    fn run<'a>(&'a self, invocation: Invocation<'a>) -> Future<'a, ToolOutput> {
        Box::pin(async move {
            let result = async {
                let arguments = self.declared.parse(invocation.arguments)?;
                tokio::select! {
                    biased;
                    () = invocation.cancelled => Err(Error::Cancelled),
                    output = self.act(&arguments, &invocation.session.id) => output,
                }
            };
            finish(result.await, Some(self.limit))
        })
    }
}

fn list(jobs: &[Arc<Job>]) -> ToolOutput {
    let lines: Vec<String> = jobs.iter().map(|job| job.line()).collect();
    let content = if lines.is_empty() { "no jobs".to_owned() } else { lines.join("\n") };
    let meta = ResultMeta { jobs: jobs.iter().map(|job| job.meta()).collect(), ..ResultMeta::default() };
    ToolOutput { content, meta, ..ToolOutput::default() }
}

fn shown(job: &Job) -> ToolOutput {
    let output = job.take_output();
    let output = if output.is_empty() { "(no new output)" } else { &output };
    let meta = ResultMeta { jobs: vec![job.meta()], ..ResultMeta::default() };
    ToolOutput { content: format!("{output}\n[{}]", job.line()), meta, ..ToolOutput::default() }
}
