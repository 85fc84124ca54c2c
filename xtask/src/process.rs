//! One process, measured from outside: when it started and ended, its CPU, its peak memory, and whether it started
//! other programs.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// What was seen of a process.
#[derive(Debug)]
pub struct Measured {
    /// Just before it was started.
    pub started: Instant,
    /// When it was gone.
    pub ended: Instant,
    /// How.
    pub status: ExitStatus,
    /// User and system time of it and of every process it waited for.
    pub cpu: Duration,
    /// Page faults of the processes it started and waited for. A program cannot be executed without any, so 0 says
    /// that it waited for none.
    pub child_faults: u64,
    /// Processes that it left behind: they became ours.
    pub left_behind: bool,
}

/// Runs a command to its end; `begun` is told its number. Nothing else may be started and waited for at the same time.
pub fn measure(command: &mut Command, begun: impl FnOnce(u32)) -> Result<Measured> {
    // What a process leaves behind becomes ours and can be seen.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).context("cannot become a subreaper")?;
    let before = children_cpu()?;
    let started = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    begun(child.id());
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("a process without a number")?;
    // It stays a zombie until it was looked at.
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let ended = Instant::now();
    let child_faults = faults_of_children(pid)?;
    let status = child.wait()?;
    let cpu = children_cpu()?.saturating_sub(before);
    let left_behind =
        waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT).is_ok();
    Ok(Measured { started, ended, status, cpu, child_faults, left_behind })
}

/// Time of all processes that this one has waited for.
fn children_cpu() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let time = |time: nix::sys::time::TimeVal| {
        let (seconds, micros) = (time.tv_sec(), time.tv_usec());
        Duration::from_secs(seconds.unsigned_abs()) + Duration::from_micros(micros.unsigned_abs())
    };
    Ok(time(usage.user_time()) + time(usage.system_time()))
}

/// `cminflt` and `cmajflt` of `/proc/PID/stat` (proc_pid_stat(5)): faults of children that were waited for.
fn faults_of_children(pid: Pid) -> Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))?;
    // The second field is a name in brackets, which may hold anything.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).and_then(|field| field.parse::<u64>().ok());
    match (field(11), field(13)) {
        (Some(minor), Some(major)) => Ok(minor + major),
        _ => bail!("/proc/{}/stat has another form than expected", pid.as_raw_nonzero()),
    }
}

/// The body of `xtask peak`: a small process whose only child is the command, so that the peak of its children is the
/// command's own. (The kernel counts what a child was before it executed its program; this process is a few MB.)
pub fn peak(file: &Path, command: &[OsString]) -> ExitCode {
    let Some((program, arguments)) = command.split_first() else { return ExitCode::from(2) };
    let Ok(status) = Command::new(program).args(arguments).status() else { return ExitCode::from(2) };
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return ExitCode::from(2) };
    if std::fs::write(file, usage.max_rss().to_string()).is_err() {
        return ExitCode::from(2);
    }
    ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2))
}

/// Runs a command, with this standard input, and gives its peak memory in KiB.
pub fn peak_of(command: &Command, input: Stdio, folder: &Path) -> Result<u64> {
    let file = folder.join("peak");
    let mut wrapped = Command::new(std::env::current_exe()?);
    // Nothing but what the command was given: whether it was cleared cannot be asked.
    wrapped.env_clear();
    wrapped.arg("peak").arg(&file).arg("--").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        wrapped.current_dir(folder);
    }
    let (out, error) = (File::create(folder.join("peak.out"))?, File::create(folder.join("peak.err"))?);
    let status = wrapped.stdin(input).stdout(out).stderr(error).status()?;
    if !status.success() {
        bail!("{command:?} ended with {status}; its output is in {}", folder.display());
    }
    Ok(std::fs::read_to_string(&file)?.trim().parse()?)
}
