//! Watching a command: its end, what it leaves behind, and how everything is stopped.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};

use super::processes::{self, Row, descendants};
use super::{Control, Ending, Left, Report};

/// How long what a command started may go on after it before that is worth a word. Long enough for
/// the last stage of a substitution, too short to be noticed.
const STRAGGLERS: Duration = Duration::from_millis(100);
/// How long a kill is repeated before what is left is told: it hangs in the kernel then, or the machine is very busy.
/// Somebody waits, so it is short; it goes on after that.
const KILLING: Duration = Duration::from_millis(500);
/// How long a kill is repeated where nobody waits.
const KILLING_ABANDONED: Duration = Duration::from_secs(3);
/// Between two looks at what is left, where nothing tells.
const LOOK: Duration = Duration::from_millis(10);
/// Before a command that was suspended is looked at: whoever suspends it may be about to wake it.
const SUSPENDED_LOOK: Duration = Duration::from_millis(100);
/// The same while nobody waits.
const IDLE_LOOK: Duration = Duration::from_secs(1);

/// What can be found of a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reach {
    /// Every descendant: this process reaps them all.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    Descendants,
    /// Its process group.
    Group,
}

/// What happens to a watched command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The command ended.
    Ended(Ending),
    /// The command was suspended, or goes on.
    Suspended(bool),
    /// Nothing is left beneath this process.
    Gone,
    /// The agent wants something.
    Control(Control),
    /// The agent is gone.
    Abandoned,
}

/// Waits for the command, and with [`Reach::Descendants`] for everything else, telling of it.
pub(crate) fn wait(command: Pid, reach: Reach, events: &Sender<Event>) {
    let options = WaitOptions::UNTRACED | WaitOptions::CONTINUED;
    loop {
        let waited = match reach {
            Reach::Descendants => rustix::process::wait(options),
            Reach::Group => rustix::process::waitpid(Some(command), options),
        };
        match waited {
            Ok(Some((pid, status))) if pid == command && (status.stopped() || status.continued()) => {
                if events.send(Event::Suspended(status.stopped())).is_err() {
                    return;
                }
            }
            Ok(Some((pid, status))) if pid == command => {
                let ending = Ending { exit: status.exit_status(), signal: status.terminating_signal() };
                if events.send(Event::Ended(ending)).is_err() || reach == Reach::Group {
                    return;
                }
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // No child is left, and nobody is left who could make one.
            Err(_) => {
                let _ = events.send(Event::Gone);
                return;
            }
        }
    }
}

/// Watches a command until nothing of it is left, or until the agent is gone.
pub(crate) fn watch(group: Pid, reach: Reach, events: &Receiver<Event>, report: &mut dyn FnMut(Report)) {
    let mut watched = Watched {
        group,
        reach,
        events,
        ending: None,
        suspended: false,
        gone: false,
        abandoned: false,
        stop: None,
        reported: false,
        seen: Vec::new(),
    };
    let mut stopped = false;
    loop {
        if watched.abandoned {
            watched.stop(Duration::ZERO, KILLING_ABANDONED);
            return;
        }
        if let Some(grace) = watched.stop.take() {
            watched.stop(grace, KILLING);
            watched.reported = true;
            stopped = true;
            report(Report::Stopped { ending: watched.ending.unwrap_or_default(), left: watched.left() });
        }
        if let (Some(ending), false) = (watched.ending, watched.reported) {
            watched.until_gone(STRAGGLERS);
            // Stopped or abandoned meanwhile: that is what gets told.
            if watched.abandoned || watched.stop.is_some() {
                continue;
            }
            watched.reported = true;
            report(Report::Ended { ending, left: watched.left(), after: None });
        }
        if watched.gone() {
            return;
        }
        // Nothing tells when a group becomes empty, nor what a process that outlived a kill does next.
        let looks = stopped || reach == Reach::Group && watched.ending.is_some();
        let was_suspended = watched.suspended;
        watched.take(if was_suspended { Some(SUSPENDED_LOOK) } else { looks.then_some(IDLE_LOOK) });
        if stopped {
            watched.signal(&[Signal::KILL]);
        } else if was_suspended && watched.suspended {
            watched.wake();
        }
    }
}

struct Watched<'a> {
    group: Pid,
    reach: Reach,
    events: &'a Receiver<Event>,
    ending: Option<Ending>,
    /// The command's shell was suspended.
    suspended: bool,
    gone: bool,
    abandoned: bool,
    stop: Option<Duration>,
    /// The end of the command was told.
    reported: bool,
    /// What was there when it was last signalled.
    seen: Vec<Row>,
}

impl Watched<'_> {
    /// Takes one event, waiting for it as long as is said.
    fn take(&mut self, wait: Option<Duration>) {
        let event = match wait {
            Some(wait) => self.events.recv_timeout(wait),
            None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(Event::Ended(ending)) => {
                self.ending = Some(ending);
                self.suspended = false;
            }
            Ok(Event::Suspended(suspended)) => self.suspended = suspended,
            Ok(Event::Gone) => self.gone = true,
            Ok(Event::Control(Control::Stop { grace_ms })) => self.stop = Some(Duration::from_millis(grace_ms)),
            Ok(Event::Abandoned) => self.abandoned = true,
            Err(RecvTimeoutError::Disconnected) => {
                self.abandoned = true;
                // Nothing will ever come again: the wait is still a wait.
                std::thread::sleep(wait.unwrap_or_default());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }

    /// Waits until nothing is left, at most as long as is said; less when it has to stop at once.
    fn until_gone(&mut self, wait: Duration) {
        let deadline = Instant::now() + wait;
        let mut abandoned = self.abandoned;
        while !self.gone() && abandoned == self.abandoned {
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return;
            }
            abandoned = self.abandoned;
            self.take(Some(if self.reach == Reach::Group { rest.min(LOOK) } else { rest }));
        }
    }

    fn gone(&self) -> bool {
        match self.reach {
            Reach::Descendants => self.gone,
            Reach::Group => self.ending.is_some() && !processes::group_lives(self.group),
        }
    }

    fn left(&self) -> Left {
        if self.gone() {
            return Left::default();
        }
        Left { any: true, ..processes::left(self.living()) }
    }

    /// What lives of the command, as far as the table shows it.
    fn living(&self) -> Vec<Row> {
        match self.reach {
            Reach::Descendants => descendants(rustix::process::getpid()),
            Reach::Group => processes::members(self.group),
        }
    }

    /// Lets a command go on that suspended itself, once nothing of it is left that could.
    fn wake(&mut self) {
        if self.living().iter().all(|row| row.suspended) {
            self.signal(&[Signal::CONT]);
        }
    }

    /// TERM to everything, and after the grace KILL until nothing is left, at most as long as is said.
    fn stop(&mut self, grace: Duration, killing: Duration) {
        if !grace.is_zero() {
            // Before the signals: to send them takes long on a busy machine.
            let deadline = Instant::now() + grace;
            // What is suspended has to wake up to see it.
            self.signal(&[Signal::TERM, Signal::CONT]);
            self.until_gone(deadline.saturating_duration_since(Instant::now()));
        }
        let deadline = Instant::now() + killing;
        while !self.gone() && Instant::now() < deadline {
            self.signal(&[Signal::KILL]);
            let round = Instant::now() + LOOK;
            while !self.gone() && Instant::now() < round {
                self.take(Some(LOOK));
            }
        }
    }

    fn signal(&mut self, signals: &[Signal]) {
        // A group's number can be given away once its leader was waited for and it is empty.
        let is_held = self.ending.is_none() || self.reach == Reach::Group;
        if is_held {
            for signal in signals {
                let _ = rustix::process::kill_process_group(self.group, *signal);
            }
        }
        if self.reach == Reach::Group {
            return;
        }
        // A group lies in one session, and the sessions beneath this process' own hold only what descends from it.
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let leads = processes::own_session() == Some(own);
        let mixed = |row: &Row| !leads || row.process.group == own;
        // What is known already comes before the look, which takes long where many processes fork.
        let mut seen = std::mem::take(&mut self.seen);
        seen.retain(Row::lives);
        processes::signal(&seen, mixed, signals);
        let group = self.group.as_raw_nonzero().get();
        self.seen = descendants(rustix::process::getpid());
        self.seen.retain(|row| !is_held || row.process.group != group);
        processes::signal(&self.seen, mixed, signals);
    }
}

/// Waits for one command that is a child of this process, telling of its end.
pub(crate) fn watch_child(command: Pid, events: &Sender<Event>) {
    wait(command, Reach::Group, events);
}
