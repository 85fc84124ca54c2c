//! The supervisor of one shell command: a small process between the agent and the shell.
//!
//! It makes itself the reaper of everything the command leaves behind, so that a descendant that
//! changed its group or session, or whose parent ended, is still its child and can be found. It
//! holds a life line, its standard input: when that closes the agent is gone, and everything is
//! killed. Its standard error carries [`Report`]s; its standard output is the command's output.
//!
//! The shell itself dies with the supervisor, by a parent-death signal (`prctl(2)`,
//! `PR_SET_PDEATHSIG`), for the case that somebody kills the supervisor too. The agent's death is
//! *not* told by such a signal, since that fires when the thread that started the supervisor ends:
//! it only wakes a supervisor that somebody suspended, so that it sees its life line.
//!
//! What a command starts is known by a mark, should its supervisor be lost: a variable, and a limit
//! that limits nothing, which neither another environment nor another session takes off ([`limit`]).
//!
//! Outside Linux there is no such reaper: there only the command's process group is followed.

mod after;
mod processes;
mod watch;

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use crate::overwrite::{self, OVERWRITE};

pub(crate) use after::{Asked, BASH_ENV};
pub use processes::leads_session;
pub(crate) use watch::{Event, Reach, watch, watch_child};

/// The variable by which a command's processes are known, wherever they went. It has not the prefix of a setting, so
/// that a command may run `stele`.
pub(crate) const MARK: &str = "_STELE_COMMAND";
/// The least number that is a mark: as a limit in microseconds more than 100,000 years.
pub(crate) const MARKS: u64 = 1 << 62;
/// How long what is left of a command is killed whose supervisor is lost.
pub(crate) const SWEEPING: Duration = Duration::from_millis(250);
/// Between two looks at it.
const SWEEP_LOOK: Duration = Duration::from_millis(5);
/// The same where nobody waits any more.
const SWEEP_ON: Duration = Duration::from_secs(1);
/// Looks in a row that find nothing until nothing is there: one that forks and ends may slip through a single one.
const SWEEP_LOOKS: usize = 2;

/// The first argument of [`supervise`]: watch a command.
pub(crate) const WATCH: &str = "watch";
/// The first argument of [`supervise`]: become the command's shell.
const LAUNCH: &str = "launch";

/// What the supervisor tells the agent: one line of JSON each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub(crate) enum Report {
    /// The command runs in this process group; `marked` when everything it starts can be found by its limit.
    Started { group: i32, marked: bool },
    /// The command could not be started.
    Failed { message: String },
    /// The command ended by itself.
    Ended { ending: Ending, left: Left, after: Option<After> },
    /// Everything was told to stop; what is left could not be killed.
    Stopped { ending: Ending, left: Left },
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ending {
    pub(crate) exit: Option<i32>,
    pub(crate) signal: Option<i32>,
}

/// How a shell was left.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct After {
    /// Its folder.
    pub(crate) cwd: String,
    /// Exit codes of the stages of its last pipeline.
    pub(crate) stages: Vec<i32>,
}

/// What still runs beneath the supervisor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Left {
    /// True when something does, also when it could not be named.
    pub(crate) any: bool,
    /// How many, as far as they were found.
    pub(crate) total: usize,
    /// The process groups they are in.
    pub(crate) groups: Vec<i32>,
    /// The first few of them.
    pub(crate) processes: Vec<Process>,
}

impl Left {
    /// Who it is, in words; `None` where nothing is left.
    pub(crate) fn named(&self) -> Option<String> {
        let names: Vec<String> =
            self.processes.iter().map(|process| format!("{} ({})", process.name, process.pid)).collect();
        match (self.any, names.len()) {
            (false, _) => None,
            (true, 0) => Some("a process".to_owned()),
            (true, known) if self.total > known => {
                Some(format!("{} and {} more", names.join(", "), self.total - known))
            }
            (true, _) => Some(names.join(", ")),
        }
    }
}

/// What runs now beneath a supervisor that was not waited for yet.
pub(crate) fn beneath_supervisor(supervisor: Pid) -> Left {
    processes::left(processes::descendants(supervisor))
}

/// A process, by what a person needs to find it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) group: i32,
    pub(crate) name: String,
}

/// What the agent tells the supervisor: one line of JSON each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "control", rename_all = "snake_case")]
pub(crate) enum Control {
    /// TERM to everything now, KILL to what is left after this time.
    Stop { grace_ms: u64 },
}

/// The body of the hidden subcommand that supervises one shell command, reads one document, or writes one file. `arguments` are those after
/// the program and the leading arguments of [`crate::Options::supervisor`].
///
/// It speaks to the agent that started it and is of no use by hand: then it exits with 2.
#[must_use]
pub fn supervise(arguments: &[OsString]) -> ExitCode {
    let word = |at: usize| arguments.get(at).and_then(|argument| argument.to_str());
    match (word(0), arguments) {
        (Some(WATCH), [_, command]) => supervise_command(arguments.len(), command),
        (Some(LAUNCH), [_, _, command]) => match word(1).and_then(|parent| parent.parse().ok()) {
            Some(parent) => launch(parent, command),
            None => ExitCode::from(2),
        },
        #[cfg(feature = "documents")]
        (Some(crate::pdf::READ), [_]) => crate::pdf::serve(),
        (Some(OVERWRITE), [_, _, _, path, kept @ ..]) if kept.len() < 2 => {
            let kept = kept.first().map(Path::new);
            let given = word(1).zip(word(2));
            given.map_or(ExitCode::from(2), |(len, was)| overwrite::serve(len, was, Path::new(path), kept))
        }
        _ => ExitCode::from(2),
    }
}

/// Arguments of this process that come before those of [`supervise`].
fn leading(count: usize) -> Vec<OsString> {
    let all: Vec<OsString> = std::env::args_os().skip(1).collect();
    all[..all.len().saturating_sub(count)].to_vec()
}

fn supervise_command(count: usize, command: &OsStr) -> ExitCode {
    // No controlling terminal: a prompt on /dev/tty fails at once, and the terminal's signals do
    // not come here. It fails where this process leads a group, which is then just as good.
    let _ = rustix::process::setsid();
    // Without it the command can only end its supervisor, which the agent notices.
    let _ = stay();
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::CONT));
    let marked = std::env::var(MARK).is_ok_and(|mark| limit(&mark).is_some());
    let reach = reap();
    let report = |report: &Report| {
        let mut line = serde_json::to_vec(report).unwrap_or_default();
        line.push(b'\n');
        // Nobody listens any more when this fails, and the life line tells.
        let _ = io::stderr().write_all(&line);
    };

    let asked = Asked::new().ok();
    let mut shell = shell(leading(count), command);
    if let Some(asked) = &asked {
        asked.ask(&mut shell, std::env::var_os(BASH_ENV).as_ref());
    }
    let child = match output()
        .and_then(|output| Ok((output.try_clone()?, output)))
        .and_then(|(one, two)| shell.stdout(one).stderr(two).spawn())
    {
        Ok(child) => child,
        Err(error) => {
            report(&Report::Failed { message: error.to_string() });
            return ExitCode::FAILURE;
        }
    };
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return ExitCode::FAILURE };
    report(&Report::Started { group: group.as_raw_nonzero().get(), marked });

    let (events, incoming) = mpsc::channel();
    let life_line = events.clone();
    thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            let Ok(control) = serde_json::from_str(&line) else { break };
            if life_line.send(Event::Control(control)).is_err() {
                return;
            }
        }
        let _ = life_line.send(Event::Abandoned);
    });
    thread::spawn(move || watch::wait(group, reach, &events));
    watch(group, reach, &incoming, &mut |mut told| {
        if let (Report::Ended { after, .. }, Some(asked)) = (&mut told, &asked) {
            *after = asked.answer();
        }
        report(&told);
    });
    ExitCode::SUCCESS
}

/// Lives through the signals that a command sends its parent: this process ends by its own rules, when nothing of the
/// command is left or the agent is gone. They are caught, not ignored: what is ignored would stay so in the command.
/// They stay caught when the runtime, which is needed to ask for it, is gone.
fn stay() -> Option<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().ok()?;
    let _entered = runtime.enter();
    for kind in [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
        SignalKind::quit(),
        SignalKind::user_defined1(),
        SignalKind::user_defined2(),
        SignalKind::alarm(),
    ] {
        let _ = signal(kind).ok()?;
    }
    Some(())
}

/// Makes a command's mark this process' soft limit of real-time computing (`RLIMIT_RTTIME`, `getrlimit(2)`), in
/// microseconds: so many that it never matters. All that descends from here has it, and `/proc/PID/limits` shows it to
/// anybody; only who sets that very limit loses it.
#[cfg(target_os = "linux")]
fn limit(mark: &str) -> Option<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let mark = mark.parse().ok()?;
    let found = getrlimit(Resource::Rttime);
    // A limit that somebody set stays; a command beneath another one's gets a mark of its own.
    if found.current.is_some_and(|current| current < MARKS) {
        return None;
    }
    setrlimit(Resource::Rttime, Rlimit { current: Some(mark), ..found }).ok()
}

/// Elsewhere no process can be found by its limits.
#[cfg(not(target_os = "linux"))]
fn limit(_: &str) -> Option<()> {
    None
}

/// Kills what is left of a command whose supervisor is lost or hangs, until nothing is, and then the supervisor: as long
/// as it is there, what the command starts falls to it and is found. `tell` is told once, soon: what could not be killed
/// by then. The supervisor must not be waited for before this returns.
pub(crate) fn sweep(supervisor: Pid, mark: &str, tell: impl FnOnce(Left)) {
    let mut tell = Some(tell);
    let deadline = Instant::now() + SWEEPING;
    let number = supervisor.as_raw_nonzero().get();
    let own = processes::own_session();
    let mut quiet = 0;
    while quiet < SWEEP_LOOKS {
        let rows = processes::abandoned(number, mark);
        quiet = if rows.is_empty() { quiet + 1 } else { 0 };
        let mixed = |row: &processes::Row| row.process.group == number || Some(row.session) == own;
        processes::signal(&rows, mixed, &[Signal::KILL]);
        let late = Instant::now() >= deadline;
        if late && let Some(tell) = tell.take() {
            tell(processes::left(rows));
        }
        thread::sleep(if tell.is_none() { SWEEP_ON } else { SWEEP_LOOK });
    }
    let _ = rustix::process::kill_process(supervisor, Signal::KILL);
    if let Some(tell) = tell {
        tell(Left::default());
    }
}

/// This process' standard output, to be given to the command twice, so that what it writes to
/// standard output and standard error keeps its order.
fn output() -> io::Result<std::os::fd::OwnedFd> {
    rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3).map_err(io::Error::from)
}

/// Makes this process the reaper of what its descendants leave behind, where there is such a thing.
fn reap() -> Reach {
    #[cfg(target_os = "linux")]
    if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok() {
        return Reach::Descendants;
    }
    Reach::Group
}

/// The program that becomes the shell of a command.
#[cfg(target_os = "linux")]
fn shell(leading: Vec<OsString>, command: &OsStr) -> Command {
    // The program's own file, also when it was replaced on disk in the meantime.
    let mut shell = Command::new("/proc/self/exe");
    let parent = rustix::process::getpid().as_raw_nonzero().to_string();
    shell.args(leading).arg(LAUNCH).arg(parent).arg(command).stdin(Stdio::null()).process_group(0);
    shell
}

/// The program that becomes the shell of a command.
#[cfg(not(target_os = "linux"))]
fn shell(_: Vec<OsString>, command: &OsStr) -> Command {
    direct(command)
}

/// Becomes the shell, tied to the life of the supervisor.
fn launch(parent: i32, command: &OsStr) -> ExitCode {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    // The supervisor may have ended before the signal was asked for.
    if rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(parent) {
        return ExitCode::FAILURE;
    }
    let mut error = Command::new("bash").arg("-c").arg(command).exec();
    if error.kind() == io::ErrorKind::NotFound {
        error = Command::new("sh").arg("-c").arg(command).exec();
    }
    let _ = writeln!(io::stderr(), "stele: the shell cannot be started: {error}");
    // What a shell answers for a command it cannot run (POSIX, 2.8.2).
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 })
}

/// A shell for a command without a supervisor process, in its own process group.
pub(crate) fn direct(command: &OsStr) -> Command {
    let mut shell = Command::new("sh");
    // The first shell there is; the command is passed as data.
    shell
        .arg("-c")
        .arg(r#"command -v bash >/dev/null && exec bash -c "$1"; exec sh -c "$1""#)
        .arg("stele")
        .arg(command);
    shell.stdin(Stdio::null()).process_group(0);
    shell
}
