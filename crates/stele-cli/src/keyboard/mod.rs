//! The keyboard: the terminal hands over every key as it comes, and is left as it was found.

pub mod editor;
pub mod history;
pub mod line;

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

/// Read at once.
const READ: usize = 16 * 1024;

/// Longest piece; a longer paste comes in several.
const PIECE_MAX: usize = 1024 * 1024;

/// Longest wait of the reading thread, after which it looks whether it is still wanted.
const WAIT_SECONDS: i64 = 3600;

/// The terminal of standard input, read key by key. Dropping it gives the terminal back as it was.
pub struct Keyboard {
    pieces: mpsc::UnboundedReceiver<Vec<u8>>,
    source: Arc<Mutex<Source>>,
    before: Option<Termios>,
    /// The terminal is asked to mark what is pasted.
    marks: bool,
}

/// Where pieces come from. Whoever reads holds it, so that what was read before a moment is known to be sent by then.
struct Source {
    /// None at the end of input.
    sender: Option<mpsc::UnboundedSender<Vec<u8>>>,
}

impl Source {
    /// Reads what is there now.
    fn read(&mut self) {
        let mut piece = Vec::new();
        let mut ended = false;
        while !ended && piece.len() < PIECE_MAX && is_ready(0) {
            let begun = piece.len();
            piece.resize(begun + READ, 0);
            let read = rustix::io::read(io::stdin(), &mut piece[begun..]);
            piece.truncate(begun + *read.as_ref().unwrap_or(&0));
            ended = !matches!(read, Ok(1..) | Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN));
        }
        let taken = self.sender.as_ref().is_some_and(|sender| piece.is_empty() || sender.send(piece).is_ok());
        if ended || !taken {
            self.sender = None;
        }
    }
}

/// True when standard input has something, or has ended.
fn is_ready(seconds: i64) -> bool {
    let stdin = io::stdin();
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    matches!(poll(&mut ready, Some(&Timespec { tv_sec: seconds, tv_nsec: 0 })), Ok(ready) if ready > 0)
}

impl Keyboard {
    /// Takes the terminal over. Keys are read on a thread of their own: a read cannot be given up.
    pub fn listen(marks: bool) -> Self {
        let (sender, pieces) = mpsc::unbounded_channel();
        let source = Arc::new(Mutex::new(Source { sender: Some(sender) }));
        let mut keyboard = Self { pieces, source: Arc::clone(&source), before: None, marks };
        keyboard.take();
        // It reads nothing for anybody who has left.
        let source = Arc::downgrade(&source);
        std::thread::spawn(move || {
            loop {
                let ready = is_ready(WAIT_SECONDS);
                let Some(source) = source.upgrade() else { return };
                let mut source = source.lock().unwrap_or_else(PoisonError::into_inner);
                if ready {
                    source.read();
                }
                if source.sender.is_none() {
                    return;
                }
            }
        });
        keyboard
    }

    /// The next bytes; `None` at the end of input.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        self.pieces.recv().await
    }

    /// What was typed up to now and not yet given.
    pub fn so_far(&mut self) -> Vec<Vec<u8>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).read();
        self.waiting()
    }

    /// What was read by now and not yet given.
    pub fn waiting(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.pieces.try_recv().ok()).collect()
    }

    /// Takes the terminal: no echo, key by key. Signals stay the terminal's.
    pub fn take(&mut self) {
        // Keys are shown on standard error; where that leads elsewhere the terminal goes on showing them.
        let Ok(now) = tcgetattr(io::stdin()) else { return };
        if !io::stderr().is_terminal() {
            return;
        }
        let mut keys = now.clone();
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
        keys.input_modes.remove(InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR);
        keys.special_codes[SpecialCodeIndex::VMIN] = 1;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        // Ctrl-Z is a key: before the program stops, the terminal has to be given back.
        keys.special_codes[SpecialCodeIndex::VSUSP] = 0;
        if tcsetattr(io::stdin(), OptionalActions::Now, &keys).is_ok() {
            self.before.get_or_insert(now);
            self.mark(true);
        }
    }

    /// Gives the terminal back as it was.
    pub fn give_back(&mut self) {
        if let Some(before) = self.before.take() {
            self.mark(false);
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
        }
    }

    /// Gives the terminal back, and stops this program and what runs in its group, as Ctrl-Z does.
    pub fn suspend(&mut self) {
        // Without a shell nobody could let it go on, and the system would not stop it.
        if !stele_tools::leads_session() {
            self.give_back();
            let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
        }
    }

    fn mark(&self, on: bool) {
        if self.marks {
            let _ = io::stderr().write_all(if on { b"\x1b[?2004h" } else { b"\x1b[?2004l" });
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.give_back();
    }
}
