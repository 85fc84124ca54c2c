//! Signals, as requests to stop.

use stele_core::By;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{CommandError, Result};
use crate::runtime::runtime;

/// The signals that end a run: the first one cleanly, the second one at once.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    /// A file beyond the limit (`ulimit -f`) is an error like any other. Commands have the signal as it was.
    _too_large: Signal,
    end: bool,
}

/// Holds the signals that end a program until what is being written is whole: files are changed together or not at all,
/// and a command that changes them says what it did. This process is not ended by them any more.
pub fn hold() -> Result<()> {
    let runtime = runtime()?;
    let _within = runtime.enter();
    // What was listened to once stays caught: also when the listener, and the runtime it needs, are gone.
    Signals::new().map(drop)
}

impl Signals {
    /// Listens from here on.
    pub fn new() -> Result<Self> {
        let listen = |kind| {
            let failed = |error| CommandError::usage("system.signals", format!("cannot listen to signals: {error}"));
            signal(kind).map_err(failed)
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
            _too_large: listen(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
            end: false,
        })
    }

    /// Waits for the next one; gives who asks for the stop, as the log names it.
    pub async fn next(&mut self) -> By {
        let by = tokio::select! {
            _ = self.interrupt.recv() => return By::person("cli"),
            _ = self.terminate.recv() => By("signal:term".to_owned()),
            _ = self.hang_up.recv() => By("signal:hup".to_owned()),
        };
        self.end = true;
        by
    }

    /// True once the program, not only what it is doing, was told to end: by TERM or HUP.
    pub fn told_to_end(&self) -> bool {
        self.end
    }
}
