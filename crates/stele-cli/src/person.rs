//! The person at the terminal: lines as they are typed, and the questions that wait for one.

use std::collections::VecDeque;

use stele_core::CallId;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Duration, Instant, sleep_until};

use crate::background::Background;
use crate::command;
use crate::keyboard::Keyboard;
use crate::keyboard::editor::{Editor, Fed, Typed};
use crate::keyboard::history::Earlier;
use crate::render::input::Draft;

/// How long the rest of a key may be on its way behind an escape.
const ESCAPE: Duration = Duration::from_millis(100);

/// A question of the tool `ask`, and where its answer goes.
pub struct Question {
    pub text: String,
    pub answer: oneshot::Sender<Option<String>>,
}

/// Something that waits for a line.
pub enum Pending {
    Approval(CallId),
    Question(Question),
}

/// What answers a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A decision: it has to be typed.
    Decision,
    /// Any text, also a pasted one.
    Text,
}

impl Pending {
    /// What answers it.
    pub fn takes(&self) -> Takes {
        match self {
            Self::Approval(_) => Takes::Decision,
            Self::Question(_) => Takes::Text,
        }
    }
}

/// Whether lines that answer nothing reach the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typing {
    /// A line that answers nothing is dropped.
    Answers,
    /// It steers the running turn.
    Steers,
}

/// The person, if there is one.
pub struct Person {
    keyboard: Option<Keyboard>,
    editor: Editor,
    ready: VecDeque<PersonEvent>,
    questions: Option<mpsc::UnboundedReceiver<Question>>,
    /// The program goes on after it was stopped.
    continued: Option<Signal>,
    /// What runs in the background, where its ends are told.
    pub background: Option<Background>,
    pub pending: VecDeque<Pending>,
    /// Commands that were typed while a turn ran: they are carried out when it is over.
    pub later: VecDeque<String>,
    pub typing: Typing,
    /// The terminal knows how to mark what is pasted.
    marks: bool,
    /// When an escape that came alone is the key Esc.
    escape_due: Option<Instant>,
    /// Questions that were shown so far.
    asked: u64,
    present: bool,
    gone: bool,
}

impl Person {
    /// Nobody.
    pub fn nobody() -> Self {
        Self {
            keyboard: None,
            editor: Editor::default(),
            ready: VecDeque::new(),
            questions: None,
            continued: None,
            background: None,
            pending: VecDeque::new(),
            later: VecDeque::new(),
            typing: Typing::Answers,
            marks: false,
            escape_due: None,
            asked: 0,
            present: false,
            gone: false,
        }
    }

    /// Somebody at a terminal. Standard input is not read before the first question.
    pub fn present(questions: mpsc::UnboundedReceiver<Question>, typing: Typing, marks: bool) -> Self {
        Self { questions: Some(questions), typing, marks, present: true, ..Self::nobody() }
    }

    /// The same, with earlier prompts that can be had again.
    pub fn remembering(self, earlier: Earlier) -> Self {
        Self { editor: Editor::with(earlier), ..self }
    }

    /// True when there is, or was, somebody.
    pub fn is_present(&self) -> bool {
        self.present
    }

    /// What `/jobs` says, if it says anything now.
    pub fn jobs(&self, argument: Option<&str>) -> Option<String> {
        self.background.as_ref()?.command(argument)
    }

    /// True when somebody was there and no more lines come.
    pub fn is_gone(&self) -> bool {
        self.present && self.gone
    }

    /// True while a line stands there that was not sent.
    pub fn is_typing(&self) -> bool {
        self.editor.is_typing()
    }

    /// How the line stands that is being typed.
    pub fn draft(&self) -> Draft {
        self.editor.draft()
    }

    /// Throws away what was typed and not sent; true when there was something.
    pub fn forget(&mut self) -> bool {
        !self.drop_draft().is_empty()
    }

    /// Begins to read lines.
    pub fn listen(&mut self) {
        if self.present && self.keyboard.is_none() && !self.gone {
            self.keyboard = Some(Keyboard::listen(self.marks));
            self.continued = signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw())).ok();
        }
    }

    /// A question is about to be shown: what was typed up to now is no answer to it. Gives what stood in the line.
    pub fn asks(&mut self) -> Option<String> {
        self.listen();
        let pieces = self.keyboard.as_mut().map(Keyboard::so_far).unwrap_or_default();
        self.read(&pieces);
        self.asked += 1;
        self.editor.asked = true;
        Some(self.drop_draft()).filter(|text| !text.is_empty())
    }

    /// Nothing is asked any more. What was typed as an answer is none; true when something was asked.
    pub fn unask(&mut self) -> bool {
        self.pending.clear();
        let asked = std::mem::take(&mut self.editor.asked);
        if asked {
            self.drop_draft();
        }
        asked
    }

    /// Throws away what was typed and not sent, and gives it; it is not shown any more.
    fn drop_draft(&mut self) -> String {
        self.ready.retain(|event| !matches!(event, PersonEvent::Draft(_)));
        self.editor.forget()
    }

    /// True for a line that answers the question that stands there: it was sent after that was shown, and, unless any
    /// text will do, nothing of it was pasted.
    pub fn answers(&self, line: &Line, takes: Takes) -> bool {
        !line.is_early(self) && (takes == Takes::Text || !line.pasted)
    }

    /// The next thing that the person, or a tool that needs one, does. Waits for ever when there is nobody.
    pub async fn event(&mut self) -> PersonEvent {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.gone |= matches!(event, PersonEvent::Gone);
                return event;
            }
            let piece = async {
                match self.keyboard.as_mut().filter(|_| !self.gone) {
                    Some(keyboard) => keyboard.next().await,
                    None => std::future::pending().await,
                }
            };
            let question = async {
                match &mut self.questions {
                    Some(questions) => match questions.recv().await {
                        Some(question) => question,
                        None => std::future::pending().await,
                    },
                    None => std::future::pending().await,
                }
            };
            let continued = async {
                match &mut self.continued {
                    Some(continued) => continued.recv().await,
                    None => std::future::pending().await,
                }
            };
            let escape_due = self.escape_due;
            let escaped = async {
                match escape_due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            let ended = async {
                match &mut self.background {
                    Some(background) => background.ended().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                piece = piece => match piece {
                    Some(piece) => {
                        let mut pieces = vec![piece];
                        pieces.extend(self.keyboard.iter_mut().flat_map(Keyboard::waiting));
                        self.read(&pieces);
                    }
                    None => self.ready.push_back(PersonEvent::Gone),
                },
                question = question => return PersonEvent::Asked(question),
                ended = ended => return PersonEvent::Ended(ended),
                () = escaped => {
                    self.escape_due = None;
                    let heard = self.typing == Typing::Steers || self.editor.asked;
                    if self.editor.take_escape() && heard {
                        return PersonEvent::Escape;
                    }
                }
                _ = continued => {
                    if let Some(keyboard) = &mut self.keyboard {
                        keyboard.take();
                    }
                    return PersonEvent::Continued;
                }
            }
        }
    }

    /// Takes keys, piece by piece. How the line stands is only shown behind all that is there.
    fn read(&mut self, pieces: &[Vec<u8>]) {
        pieces.iter().for_each(|piece| self.feed(piece));
        self.escape_due = self.editor.escape_waits().then(|| Instant::now() + ESCAPE);
        if let Some(draft) = self.editor.changed() {
            self.ready.push_back(PersonEvent::Draft(draft));
        }
    }

    fn feed(&mut self, piece: &[u8]) {
        let heard = self.typing == Typing::Steers || self.editor.asked;
        for fed in self.editor.feed(piece) {
            match fed {
                Fed::Typed(Typed::Suspend) => {
                    if let Some(keyboard) = &mut self.keyboard {
                        keyboard.suspend();
                    }
                }
                _ if !heard => {}
                Fed::Draft(draft) => self.ready.push_back(PersonEvent::Draft(draft)),
                Fed::Typed(Typed::Line { text, pasted }) => {
                    self.editor.asked = false;
                    self.ready.push_back(PersonEvent::Line(Line { text, pasted, asked: self.asked }));
                }
                Fed::Typed(Typed::End) => self.ready.push_back(PersonEvent::Gone),
            }
        }
        if !heard {
            self.editor.forget();
        }
    }
}

/// What a person, or a tool that needs one, did.
pub enum PersonEvent {
    /// Pressed keys: the line stands like this now.
    Draft(Draft),
    /// Let the program go on after it was stopped: the terminal shows something else by now.
    Continued,
    /// Pressed Esc.
    Escape,
    /// Typed a line.
    Line(Line),
    /// Closed standard input.
    Gone,
    /// A tool asks.
    Asked(Question),
    /// Is told of the end of something in the background, in this line.
    Ended(String),
}

/// A line as it was typed or pasted.
pub struct Line {
    pub text: String,
    /// Some of it was pasted: it is text, never a command or an answer to a question about a call.
    pub pasted: bool,
    /// Questions that were shown before it was sent.
    asked: u64,
}

impl Line {
    /// What reaches the agent of it.
    pub fn text_meant(&self) -> &str {
        if self.pasted { &self.text } else { command::text(&self.text) }
    }

    /// True when it was sent before the question that stands there was shown.
    pub fn is_early(&self, person: &Person) -> bool {
        self.asked != person.asked
    }
}
