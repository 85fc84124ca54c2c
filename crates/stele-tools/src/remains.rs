//! What commands left running: it goes on until it ends by itself or the agent does.

use std::sync::{Arc, Weak};

use rustix::process::Pid;

use crate::supervise::{Left, beneath_supervisor};

/// The line of a command, and whoever still runs of it.
#[derive(Clone, Debug)]
pub(crate) struct Remains {
    /// Gone as soon as nothing is left.
    held: Weak<()>,
    /// Everything descends from it; absent where only a process group is followed.
    supervisor: Option<Pid>,
    /// What was seen when the command ended.
    left: Left,
}

impl Remains {
    /// Of a command that has ended; whoever watches what it left keeps the other value for as long.
    pub(crate) fn of(supervisor: Option<Pid>, left: &Left) -> (Self, Arc<()>) {
        let held = Arc::new(());
        (Self { held: Arc::downgrade(&held), supervisor, left: left.clone() }, held)
    }

    /// True while whoever watches it has not seen it gone.
    pub(crate) fn is_held(&self) -> bool {
        self.held.strong_count() > 0
    }

    /// Who still runs now, in words; `None` where nobody does.
    pub(crate) fn named(&self) -> Option<String> {
        // The number of a supervisor that is held is nobody else's.
        let _held = self.held.upgrade()?;
        let now = self.supervisor.map_or_else(|| self.left.clone(), beneath_supervisor);
        now.named()
    }
}
