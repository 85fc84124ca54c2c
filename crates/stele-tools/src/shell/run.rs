//! Runs one command: starts it beneath its supervisor, collects its output, enforces its time.

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use stele_core::Future;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::output::Output;
use crate::error::{Error, Result};
use crate::remains::Remains;
use crate::supervise::{
    After, Asked, BASH_ENV, Control, Ending, Event, Left, MARK, MARKS, Reach, Report, SWEEPING, WATCH, direct, sweep,
    watch, watch_child,
};

/// From TERM to KILL when the time is up.
const GRACE_TIMEOUT: Duration = Duration::from_secs(2);
/// From TERM to KILL when the call is cancelled.
const GRACE_CANCEL: Duration = Duration::from_millis(150);
/// How long the supervisor may need for a stop beyond the grace; it tells what is left a little before. With
/// [`SWEEPING`] and [`SETTLE_STOPPED`] a stop takes less than a second more than its grace.
const STOPPING: Duration = Duration::from_millis(600);
/// How long the rest of the output and the end of the supervisor are waited for, after a stop.
const SETTLE_STOPPED: Duration = Duration::from_millis(100);
/// The same where the command ended by itself.
const SETTLE: Duration = Duration::from_secs(1);
/// How long output is read after the command ended while something else may still write.
const DRAIN: Duration = Duration::from_millis(200);
/// A pause in the output after which it counts as drained.
const DRAIN_PAUSE: Duration = Duration::from_millis(30);
/// From a change of a child to the look whether the supervisor was suspended: a command that suspends it over and over
/// keeps nobody busy.
const WAKE: Duration = Duration::from_millis(20);
/// Between two pieces of the live view.
const LIVE: Duration = Duration::from_millis(100);

/// A command to run.
pub(crate) struct Command<'a> {
    pub(crate) line: &'a str,
    pub(crate) cwd: &'a Path,
    pub(crate) environment: &'a [(OsString, OsString)],
    pub(crate) supervisor: Option<&'a [OsString]>,
    /// Absent: it may run as long as its session.
    pub(crate) timeout: Option<Duration>,
}

/// What follows a command while it runs.
pub(crate) struct Follow<'a> {
    /// Its output, so far.
    pub(crate) output: &'a Mutex<Output>,
    /// Takes pieces of the output for people.
    pub(crate) progress: &'a (dyn Fn(&str) + Send + Sync),
    /// Told once it was started.
    pub(crate) started: &'a (dyn Fn() + Send + Sync),
}

/// What ended a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    Itself,
    TimedOut,
    Cancelled,
    /// The supervisor was lost.
    Lost,
}

/// What became of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) end: End,
    pub(crate) ending: Ending,
    pub(crate) left: Left,
    /// The process group it ran in.
    pub(crate) group: i32,
    /// The limit that all it started has (see [`crate::supervise`]), where that is so.
    pub(crate) mark: Option<String>,
    pub(crate) duration: Duration,
    /// How its shell was left, where that is known.
    pub(crate) after: Option<After>,
    /// What of it goes on, where something does.
    pub(crate) remains: Option<Remains>,
}

/// Runs a command to its end, to its time limit or until it is cancelled. Always returns within the
/// limit and the time a stop takes, which is less than 3 s.
pub(crate) async fn run(command: &Command<'_>, mut cancelled: Future<'_, ()>, follow: &Follow<'_>) -> Result<Outcome> {
    if !command.cwd.is_dir() {
        let gone = command.cwd.display();
        return Err(Error::Spawn(format!("the folder {gone} is gone; give cwd, a folder that is there, to go on")));
    }
    let started = Instant::now();
    // From before the supervisor is there.
    let mut children = signal(SignalKind::child()).map_err(|error| spawn_error(&error))?;
    let mut running = match command.supervisor {
        Some(supervisor) => Running::supervised(supervisor, command)?,
        None => Running::direct(command)?,
    };
    let mut buffer = vec![0; 64 * 1024];
    let (mut group, mut open, mut end) = (0, true, End::Itself);
    let mut mark = None;
    let mut ended = None;
    let mut deadline = command.timeout.map(|timeout| started + timeout);
    // When a call that is stopped has to return.
    let mut until: Option<Instant> = None;
    let stopping = |grace| {
        let deadline = Instant::now() + grace + STOPPING;
        (Some(deadline), Some(deadline + SWEEPING + SETTLE_STOPPED))
    };
    let mut live_at: Option<Instant> = None;
    let mut wake_at: Option<Instant> = None;

    let (ending, left, after) = loop {
        tokio::select! {
            count = running.output.read(&mut buffer), if open => match count.unwrap_or(0) {
                0 => open = false,
                count => {
                    lock(follow.output).push(&buffer[..count]);
                    live_at.get_or_insert_with(|| Instant::now() + LIVE);
                }
            },
            () = sleep_until(live_at.unwrap_or(started)), if live_at.is_some() => {
                live_at = None;
                let live = lock(follow.output).take_live();
                if let Some(live) = live {
                    (follow.progress)(&live);
                }
            }
            _ = children.recv() => {
                wake_at.get_or_insert_with(|| Instant::now() + WAKE);
            }
            () = sleep_until(wake_at.unwrap_or(started)), if wake_at.is_some() => {
                wake_at = None;
                running.wake();
            }
            report = running.reports.recv() => match report {
                Some(Report::Started { group: number, marked }) => {
                    group = number;
                    mark = running.supervisor.as_ref().filter(|_| marked).map(|supervisor| supervisor.mark.clone());
                    (follow.started)();
                }
                Some(Report::Failed { message }) => return Err(Error::Spawn(message)),
                // It ended while it was being told to stop: what it left is stopped nevertheless.
                Some(Report::Ended { ending, left, after }) if end != End::Itself && left.any => {
                    ended = Some((ending, after));
                }
                Some(Report::Ended { ending, left, after }) => {
                    end = End::Itself;
                    break (ending, left, after);
                }
                Some(Report::Stopped { ending, left }) => break (ending, left, None),
                None => {
                    let left = running.sweep(group).await;
                    // With an end it was told before, the supervisor may be gone since nothing was left to stop.
                    end = if ended.is_some() { End::Itself } else { End::Lost };
                    let (ending, after) = ended.unwrap_or_default();
                    break (ending, left, after);
                }
            },
            () = &mut cancelled, if end == End::Itself => {
                end = End::Cancelled;
                (deadline, until) = stopping(GRACE_CANCEL);
                running.stop(GRACE_CANCEL).await;
            }
            () = sleep_until(deadline.unwrap_or(started)), if deadline.is_some() => match end {
                End::Itself => {
                    end = End::TimedOut;
                    (deadline, until) = stopping(GRACE_TIMEOUT);
                    running.stop(GRACE_TIMEOUT).await;
                }
                // The supervisor itself hangs.
                _ => {
                    let left = running.sweep(group).await;
                    break (ended.map(|(ending, _)| ending).unwrap_or_default(), left, None);
                }
            },
        }
    };

    let duration = started.elapsed();
    let until = until.unwrap_or_else(|| Instant::now() + SETTLE);
    if open {
        running.drain(follow.output, &mut buffer, left.any, until).await;
    }
    let live = lock(follow.output).take_live();
    if let Some(live) = live {
        (follow.progress)(&live);
    }
    let remains = running.leave(&left, until).await;
    Ok(Outcome { end, ending, left, group, mark, duration, after, remains })
}

/// The output; one that panicked while it held the lock left nothing half done.
pub(crate) fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is left of a process group after it was killed.
fn kill_group(group: i32) -> Left {
    let Some(group) = Pid::from_raw(group) else { return Left::default() };
    let gone = |result| result == Err(rustix::io::Errno::SRCH);
    let killed = rustix::process::kill_process_group(group, Signal::KILL);
    Left { any: !gone(killed) && !gone(rustix::process::test_kill_process_group(group)), ..Left::default() }
}

/// A mark that no other command has: a number of 19 digits, drawn by chance, process, time and count.
fn new_mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let drawn =
        RandomState::new().hash_one((std::process::id(), since.as_nanos(), COUNT.fetch_add(1, Ordering::Relaxed)));
    (drawn >> 2 | MARKS).to_string()
}

/// A command that was started.
struct Running {
    output: ChildStdout,
    reports: UnboundedReceiver<Report>,
    controls: Controls,
    supervisor: Option<Supervisor>,
}

/// The process that watches a command, and what is known of the command should it be lost.
struct Supervisor {
    child: Child,
    /// Its number, which is that of its session.
    number: Option<Pid>,
    mark: String,
    /// Ends with the thread that kills what is left in its place, where there is one.
    swept: Option<oneshot::Receiver<()>>,
}

/// The way to whoever watches the command. Dropping it says that the agent is gone.
enum Controls {
    Process(ChildStdin),
    Thread(mpsc::Sender<Event>),
}

impl Controls {
    async fn stop(&mut self, grace: Duration) {
        let control = Control::Stop { grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX) };
        // Where this fails the watcher is gone, and its reports end.
        match self {
            Self::Process(stdin) => {
                let mut line = serde_json::to_vec(&control).unwrap_or_default();
                line.push(b'\n');
                let _ = stdin.write_all(&line).await;
                let _ = stdin.flush().await;
            }
            Self::Thread(events) => {
                let _ = events.send(Event::Control(control));
            }
        }
    }
}

impl Drop for Controls {
    fn drop(&mut self) {
        if let Self::Thread(events) = self {
            let _ = events.send(Event::Abandoned);
        }
    }
}

impl Running {
    fn supervised(supervisor: &[OsString], command: &Command<'_>) -> Result<Self> {
        let Some((program, leading)) = supervisor.split_first() else {
            return Err(Error::Spawn("the supervisor's program is not named".to_owned()));
        };
        let mark = new_mark();
        let mut child = tokio::process::Command::new(program)
            .args(leading)
            .arg(WATCH)
            .arg(command.line)
            .current_dir(command.cwd)
            .env_clear()
            .envs(command.environment.iter().map(|(name, value)| (name, value)))
            .env(MARK, &mark)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| spawn_error(&error))?;
        let (Some(stdin), Some(output), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Error::Spawn("the supervisor has no pipes".to_owned()));
        };
        let (tell, reports) = unbounded_channel();
        tokio::spawn(async move {
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if let Ok(report) = serde_json::from_str(&line)
                    && tell.send(report).is_err()
                {
                    return;
                }
            }
        });
        let number = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let supervisor = Some(Supervisor { child, number, mark, swept: None });
        Ok(Self { output, reports, controls: Controls::Process(stdin), supervisor })
    }

    /// Without a supervisor process: a thread watches the command's group.
    fn direct(command: &Command<'_>) -> Result<Self> {
        let asked = Asked::new().ok();
        let spawn = || -> io::Result<(ChildStdout, std::process::Child)> {
            let (reader, writer) = io::pipe()?;
            let mut shell = direct(OsStr::new(command.line));
            shell.env_clear();
            if let Some(asked) = &asked {
                asked
                    .ask(&mut shell, command.environment.iter().find(|(name, _)| name == BASH_ENV).map(|(_, own)| own));
            }
            let child = shell
                .current_dir(command.cwd)
                .envs(
                    command.environment.iter().filter(|(name, _)| name != BASH_ENV).map(|(name, value)| (name, value)),
                )
                .stdout(writer.try_clone()?)
                .stderr(writer)
                .spawn()?;
            let reader = std::process::ChildStdout::from(OwnedFd::from(reader));
            Ok((ChildStdout::from_std(reader)?, child))
        };
        let (output, child) = spawn().map_err(|error| spawn_error(&error))?;
        let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
            return Err(Error::Spawn("the shell has no process id".to_owned()));
        };
        let (events, incoming) = mpsc::channel();
        let (tell, reports) = unbounded_channel();
        let waits = events.clone();
        thread::spawn(move || watch_child(group, &waits));
        thread::spawn(move || {
            let _ = tell.send(Report::Started { group: group.as_raw_nonzero().get(), marked: false });
            watch(group, Reach::Group, &incoming, &mut |mut report| {
                if let (Report::Ended { after, .. }, Some(asked)) = (&mut report, &asked) {
                    *after = asked.answer();
                }
                let _ = tell.send(report);
            });
        });
        Ok(Self { output, reports, controls: Controls::Thread(events), supervisor: None })
    }

    /// The supervisor's number. It is not waited for before its reports end, so that this is nobody else's until then.
    fn number(&self) -> Option<Pid> {
        self.supervisor.as_ref()?.number
    }

    /// Lets the supervisor go on where the command suspended it.
    fn wake(&self) {
        let Some(number) = self.number() else { return };
        if let Ok(Some(_)) = waitid(WaitId::Pid(number), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG) {
            let _ = rustix::process::kill_process(number, Signal::CONT);
        }
    }

    /// Has everything of the command stopped.
    async fn stop(&mut self, grace: Duration) {
        // The command may have suspended its supervisor just now.
        if let Some(number) = self.number() {
            let _ = rustix::process::kill_process(number, Signal::CONT);
        }
        self.controls.stop(grace).await;
    }

    /// The last resort where no supervisor answers: everything of the command is killed, and then it.
    async fn sweep(&mut self, group: i32) -> Left {
        let Some(supervisor) = &mut self.supervisor else { return kill_group(group) };
        let Some(number) = supervisor.number.filter(|_| cfg!(target_os = "linux")) else {
            let _ = supervisor.child.start_kill();
            return kill_group(group);
        };
        let mark = supervisor.mark.clone();
        let (tell, told) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        thread::spawn(move || {
            sweep(number, &mark, |left| drop(tell.send(left)));
            drop(end);
        });
        // While it was not waited for, its number and its session's are nobody else's.
        supervisor.swept = Some(ended);
        told.await.unwrap_or_else(|_| kill_group(group))
    }

    /// Reads what the command had printed when it ended. Where something still holds the pipe its
    /// end never comes, and a pause has to do.
    async fn drain(&mut self, output: &Mutex<Output>, buffer: &mut [u8], held: bool, until: Instant) {
        let deadline = if held { until.min(Instant::now() + DRAIN) } else { until };
        while Instant::now() < deadline {
            let rest = deadline - Instant::now();
            let wait = if held { rest.min(DRAIN_PAUSE) } else { rest };
            match timeout(wait, self.output.read(buffer)).await {
                Ok(Ok(count)) if count > 0 => lock(output).push(&buffer[..count]),
                _ => return,
            }
        }
    }

    /// Leaves the command. What still runs is kept on its life line: it goes on until it ends, or
    /// until the agent does, and what it prints is read, so that it does not block or fail.
    async fn leave(mut self, left: &Left, until: Instant) -> Option<Remains> {
        if !left.any {
            if let Some(supervisor) = &mut self.supervisor {
                let _ = timeout_at(until, supervisor.child.wait()).await;
            }
            return None;
        }
        let supervisor = self.supervisor.as_ref().and_then(|supervisor| supervisor.number);
        let (remains, held) = Remains::of(supervisor.filter(|_| cfg!(target_os = "linux")), left);
        tokio::spawn(async move {
            // Moved in as a whole: the life line hangs on the controls.
            let mut this = self;
            let mut buffer = vec![0; 16 * 1024];
            while matches!(this.output.read(&mut buffer).await, Ok(count) if count > 0) {}
            while this.reports.recv().await.is_some() {}
            if let Some(supervisor) = &mut this.supervisor {
                if let Some(swept) = supervisor.swept.take() {
                    let _ = swept.await;
                }
                // From here on its number may be another one's.
                drop(held);
                let _ = supervisor.child.wait().await;
            }
            drop(this);
        });
        Some(remains)
    }
}

fn spawn_error(error: &io::Error) -> Error {
    Error::Spawn(match error.kind() {
        io::ErrorKind::ArgumentListTooLong => {
            "it is too long for the system; put long text into a file with write".to_owned()
        }
        _ => error.to_string(),
    })
}
