//! Which of the two views is written to, and what both have in common.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use stele_agent::{Logged, Notice};

use crate::args::ColorChoice;
use crate::error::{CommandError, Result};
use crate::feed::Seen;
use crate::person::PersonEvent;
use crate::render::json::{self, Line, Piece, RunResult};
use crate::render::screen::{Screen, Terminals};
use crate::render::style::{Style, Surroundings};
use crate::render::text::TextView;

/// What of an environment decides about colours.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    pub color: ColorChoice,
    pub no_color: bool,
    pub dumb: bool,
}

impl Look {
    /// The style of a stream.
    pub fn style(self, terminal: bool) -> Style {
        Style::choose(self.color, Surroundings { no_color: self.no_color, dumb: self.dumb, terminal })
    }

    /// The style of standard output.
    pub fn stdout(self) -> Style {
        self.style(io::stdout().is_terminal())
    }

    /// The style of standard error.
    pub fn stderr(self) -> Style {
        self.style(io::stderr().is_terminal())
    }

    /// The screen of this process.
    pub fn screen(self) -> Screen {
        let terminals = Terminals { out: io::stdout().is_terminal(), err: io::stderr().is_terminal() && !self.dumb };
        Screen::new(Box::new(io::stdout()), Box::new(io::stderr()), self.stderr(), terminals).of_size(Box::new(size))
    }
}

/// Columns of the terminal that standard error is, if it is one.
pub fn columns() -> Option<usize> {
    size().map(|(columns, _)| columns).filter(|columns| *columns > 0 && io::stderr().is_terminal())
}

/// Columns and rows of the terminal that standard error leads to.
fn size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    Some((usize::from(size.ws_col), usize::from(size.ws_row)))
}

/// JSON lines on standard output.
pub struct JsonView {
    out: Box<dyn Write>,
    deltas: bool,
    fault: Option<io::Error>,
}

impl JsonView {
    pub fn new(out: Box<dyn Write>, deltas: bool) -> Self {
        Self { out, deltas, fault: None }
    }

    fn line(&mut self, line: &str) {
        if self.fault.is_none()
            && let Err(error) = self
                .out
                .write_all(line.as_bytes())
                .and_then(|()| self.out.write_all(b"\n"))
                .and_then(|()| self.out.flush())
        {
            self.fault = Some(error);
        }
    }

    fn record(&mut self, logged: &Logged) {
        let line = json::inline_blobs(&logged.stored.bytes, &mut |hash| {
            logged.stored.blobs.iter().find(|(name, _)| name == hash).map(|(_, text)| Arc::clone(text))
        });
        self.line(&line);
    }
}

/// The view of a run.
pub enum View {
    Text(Box<TextView>),
    Json(JsonView),
}

impl View {
    /// Shows what happened.
    pub fn show(&mut self, seen: &Seen) {
        match self {
            Self::Text(view) => match seen {
                Seen::Notice(Notice::Event(logged)) => view.record(&logged.record),
                Seen::Notice(Notice::Delta { step, attempt, delta }) => view.delta(*step, *attempt, delta),
                Seen::Notice(Notice::Output { call, text }) => view.output(*call, text),
                Seen::Notice(Notice::Warning { text, .. }) => view.warning(text),
                Seen::Lag(_) => view.lag(),
            },
            Self::Json(view) => match seen {
                Seen::Notice(Notice::Event(logged)) => view.record(logged),
                Seen::Notice(Notice::Warning { code, text }) => view.line(&json::line(&Line::Warning { code, text })),
                _ if !view.deltas => {}
                Seen::Notice(Notice::Delta { step, attempt, delta }) => {
                    let line = Line::Delta { step: *step, attempt: *attempt, piece: Piece::from(&**delta) };
                    view.line(&json::line(&line));
                }
                Seen::Notice(Notice::Output { call, text }) => {
                    view.line(&json::line(&Line::Output { call: *call, text }));
                }
                Seen::Lag(skipped) => view.line(&json::line(&Line::Lag { skipped: *skipped })),
            },
        }
    }

    /// The last line of `--json`.
    pub fn result(&mut self, result: RunResult) {
        if let Self::Json(view) = self {
            view.line(&json::line(&Line::Result(Box::new(result))));
        }
    }

    /// The text view, when it is that.
    pub fn text(&mut self) -> Option<&mut TextView> {
        match self {
            Self::Text(view) => Some(view),
            Self::Json(_) => None,
        }
    }

    /// Time passed.
    pub fn tick(&mut self) {
        if let Self::Text(view) = self {
            view.tick();
        }
    }

    /// What writing to standard output met since it was asked last.
    pub fn check(&mut self) -> Result<()> {
        let fault = match self {
            Self::Text(view) => view.screen.take_fault(),
            Self::Json(view) => view.fault.take(),
        };
        fault.map_or(Ok(()), |error| Err(CommandError::from(error)))
    }

    /// True when a progress line may be wanted.
    pub fn ticks(&self) -> bool {
        matches!(self, Self::Text(view) if view.ticks())
    }

    /// Shows what a person does, or is told, that is no line.
    pub fn meanwhile(&mut self, event: PersonEvent) {
        let Self::Text(view) = self else { return };
        match event {
            PersonEvent::Draft(draft) => view.screen.typed(draft),
            PersonEvent::Continued => view.screen.show(),
            PersonEvent::Ended(line) => {
                let line = view.screen.style.dim(&line);
                view.warn(&line);
            }
            // Lines and the end are heard elsewhere; between two turns nothing runs that could ask, or be stopped.
            PersonEvent::Escape | PersonEvent::Line(_) | PersonEvent::Gone | PersonEvent::Asked(_) => {}
        }
    }
}

/// Writes lines to standard output for commands that only list.
pub fn print(text: &str) -> Result<()> {
    write(text.as_bytes())?;
    if !text.ends_with('\n') && !text.is_empty() {
        write(b"\n")?;
    }
    Ok(())
}

/// Writes bytes to standard output as they are.
pub fn write(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}
