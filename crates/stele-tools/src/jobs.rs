//! Commands in the background: each belongs to a session, and ends with it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use stele_core::{CallSession, JobId, JobMeta, JobNotice, JobStatus, SessionId, ToolError};
use tokio::sync::{broadcast, oneshot, watch};

use crate::card;
use crate::error::{Error, Result};
use crate::remains::Remains;
use crate::shell::{self, Command, End, Follow, Outcome, Output};

/// Jobs that run at the same time in one session.
const RUNNING: usize = 16;

/// Ends that wait to be told to whoever watches.
const ENDS: usize = 64;

/// The jobs of all sessions of this process.
pub struct Jobs {
    all: Mutex<BTreeMap<(SessionId, JobId), Arc<Job>>>,
    /// What commands left running, with their first line.
    remains: Mutex<Vec<(SessionId, String, Remains)>>,
    ends: broadcast::Sender<String>,
}

impl Default for Jobs {
    fn default() -> Self {
        Self { all: Mutex::default(), remains: Mutex::default(), ends: broadcast::Sender::new(ENDS) }
    }
}

/// A job, for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobView {
    /// Its name, how far it is and what it runs, in one line.
    pub line: String,
    /// The end of what it printed, whether that was read before or not.
    pub tail: String,
}

/// What a person may look at and do. What the model reads of a job is not touched by it.
impl Jobs {
    /// The jobs of a session, in their order.
    #[must_use]
    pub fn list(&self, session: &SessionId) -> Vec<JobView> {
        self.of(session).iter().map(|job| job.view()).collect()
    }

    /// One of them, by its name.
    ///
    /// # Errors
    /// `jobs.unknown`
    pub fn look(&self, session: &SessionId, name: &str) -> Result<JobView, ToolError> {
        Ok(self.find(session, name)?.view())
    }

    /// Has a job stopped. Its end is told, to the model as well; `false` where it had ended before.
    ///
    /// # Errors
    /// `jobs.unknown`
    pub fn stop(&self, session: &SessionId, name: &str) -> Result<bool, ToolError> {
        let job = self.find(session, name)?;
        let runs = job.status() == JobStatus::Running;
        job.ask_to_stop();
        Ok(runs)
    }

    /// What commands of a session left running that still does, in a line for each command.
    #[must_use]
    pub fn left_running(&self, session: &SessionId) -> Vec<String> {
        let remains = self.remains.lock().unwrap_or_else(PoisonError::into_inner);
        let own = remains.iter().filter(|(owner, ..)| owner == session);
        own.filter_map(|(_, line, remains)| Some(format!("{}, left running by: {line}", remains.named()?))).collect()
    }

    /// Tells of each end that no call of the model waited for, in one line, from now on.
    #[must_use]
    pub fn ends(&self) -> broadcast::Receiver<String> {
        self.ends.subscribe()
    }
}

/// One job.
pub(crate) struct Job {
    pub(crate) id: JobId,
    /// What it runs, in one short line.
    title: String,
    began: Instant,
    output: Mutex<Output>,
    state: watch::Sender<State>,
}

/// How far a job is, and who waits for it.
#[derive(Clone, Default)]
struct State {
    /// The end, in words, with its duration.
    ended: Option<(JobStatus, String)>,
    /// Calls that will tell of the end themselves.
    waiting: usize,
    stop: bool,
}

/// What a job runs.
pub(crate) struct Task {
    pub(crate) line: String,
    pub(crate) title: String,
    pub(crate) cwd: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) supervisor: Option<Vec<OsString>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) output: Output,
}

impl Jobs {
    /// Starts a job, and returns once it runs or could not be started.
    pub(crate) async fn start(self: &Arc<Self>, session: CallSession, task: Task) -> Result<Arc<Job>> {
        let running = self.of(&session.id).iter().filter(|job| job.status() == JobStatus::Running).count();
        if running >= RUNNING {
            return Err(Error::Value(format!("{RUNNING} jobs run already; stop one first with the jobs tool")));
        }
        let CallSession { id: owner, next_job, notify, closed } = session;
        let mut output = task.output;
        output.spill_now();
        let job = Arc::new(Job {
            id: next_job,
            title: task.title,
            began: Instant::now(),
            output: Mutex::new(output),
            state: watch::Sender::default(),
        });
        let (tell, told) = oneshot::channel();
        let tell = Mutex::new(Some(tell));
        let (jobs, own) = (Arc::clone(self), Arc::clone(&job));
        self.lock().insert((owner.clone(), next_job), Arc::clone(&job));
        tokio::spawn(async move {
            let started = |result| {
                let tell = tell.lock().unwrap_or_else(PoisonError::into_inner).take();
                tell.map(|tell| tell.send(result).is_ok());
            };
            let command = Command {
                line: &task.line,
                cwd: &task.cwd,
                environment: &task.environment,
                supervisor: task.supervisor.as_deref(),
                timeout: task.timeout,
            };
            let mut stop = own.state.subscribe();
            let ending = Box::pin(async move {
                tokio::select! {
                    _ = stop.wait_for(|state| state.stop) => false,
                    () = closed => true,
                }
            });
            let (tell_closed, mut is_closed) = oneshot::channel();
            let cancelled = Box::pin(async move {
                let _ = tell_closed.send(ending.await);
            });
            let follow = Follow { output: &own.output, progress: &|_| {}, started: &|| started(Ok(())) };
            match shell::run(&command, cancelled, &follow).await {
                Ok(outcome) => {
                    // Also one that ended before it was reported as started.
                    started(Ok(()));
                    let waited = own.end(&command, &outcome);
                    jobs.keep(&owner, &task.line, outcome.remains);
                    if is_closed.try_recv() == Ok(true) {
                        jobs.lock().retain(|(session, _), _| *session != owner);
                    } else if !waited {
                        notify(JobNotice { job: own.meta(), text: own.notice() });
                        // Where nobody watches nobody is told.
                        let _ = jobs.ends.send(own.line());
                    }
                }
                Err(error) => {
                    jobs.lock().remove(&(owner, own.id));
                    started(Err(error));
                }
            }
        });
        match told.await {
            Ok(Ok(())) => Ok(job),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(Error::Spawn("the job ended before it was started".to_owned())),
        }
    }

    /// Keeps what a command left running in view.
    pub(crate) fn keep(&self, session: &SessionId, line: &str, remains: Option<Remains>) {
        let mut all = self.remains.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(.., remains)| remains.is_held());
        all.extend(remains.map(|remains| (session.clone(), card::title(line), remains)));
    }

    /// The jobs of a session that this process knows, in their order.
    pub(crate) fn of(&self, session: &SessionId) -> Vec<Arc<Job>> {
        self.lock().iter().filter(|((owner, _), _)| owner == session).map(|(_, job)| Arc::clone(job)).collect()
    }

    /// A job by the name the model writes.
    pub(crate) fn find(&self, session: &SessionId, name: &str) -> Result<Arc<Job>> {
        let known = self.of(session);
        known.iter().find(|job| job.id.to_string() == name).cloned().ok_or_else(|| {
            let names: Vec<String> = known.iter().map(|job| job.id.to_string()).collect();
            let known = if names.is_empty() { "there are none".to_owned() } else { names.join(", ") };
            Error::NoJob { job: name.to_owned(), known }
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(SessionId, JobId), Arc<Job>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    pub(crate) fn status(&self) -> JobStatus {
        self.state.borrow().ended.as_ref().map_or(JobStatus::Running, |(status, _)| *status)
    }

    /// The job as the log knows it.
    pub(crate) fn meta(&self) -> JobMeta {
        JobMeta { job: self.id, title: self.title.clone(), status: self.status() }
    }

    /// One line: its name, how far it is, what it runs.
    pub(crate) fn line(&self) -> String {
        let status = match &self.state.borrow().ended {
            None => format!("running, {:.1} s", self.began.elapsed().as_secs_f64()),
            Some((_, words)) => words.clone(),
        };
        format!("{}: {status}: {}", self.id, self.title)
    }

    /// What it printed since the last time.
    pub(crate) fn take_output(&self) -> String {
        let mut output = shell::lock(&self.output);
        if self.status() == JobStatus::Running { output.take() } else { output.finish() }
    }

    fn view(&self) -> JobView {
        JobView { line: self.line(), tail: shell::lock(&self.output).recent().to_owned() }
    }

    fn ask_to_stop(&self) {
        self.state.send_modify(|state| state.stop = true);
    }

    /// Asks it to stop and waits until it has.
    pub(crate) async fn stop(&self) {
        self.ask_to_stop();
        self.ended().await;
    }

    /// Waits for its end. Whoever waits tells of it, so that no notice is needed.
    pub(crate) async fn ended(&self) {
        self.state.send_modify(|state| state.waiting += 1);
        let _waiting = Waiting(self);
        // The sender lives in this very job.
        let _ = self.state.subscribe().wait_for(|state| state.ended.is_some()).await;
    }

    /// Takes note of the end. True when somebody waits for it.
    fn end(&self, command: &Command<'_>, outcome: &Outcome) -> bool {
        let status = match outcome.end {
            End::Itself => JobStatus::Ended { exit: outcome.ending.exit, signal: outcome.ending.signal },
            End::TimedOut | End::Cancelled => JobStatus::Stopped,
            End::Lost => JobStatus::Lost,
        };
        let words = shell::status(command, outcome);
        let mut waited = false;
        self.state.send_modify(|state| {
            state.ended = Some((status, words));
            waited = state.waiting > 0;
        });
        waited
    }

    fn notice(&self) -> String {
        let mut text = format!("<job-notice>\n{}", self.line());
        let _ = write!(text, "\nIts output: jobs {{\"action\":\"read\",\"job\":\"{}\"}}\n</job-notice>", self.id);
        text
    }
}

/// Counts one that waits, for as long as it does.
struct Waiting<'a>(&'a Job);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.waiting -= 1);
    }
}
