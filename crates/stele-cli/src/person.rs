//! The person at the terminal: lines as they are typed, and the questions that wait for one.

use std::collections::VecDeque;
use std::io::BufRead;

use stele_core::CallId;
use tokio::sync::{mpsc, oneshot};

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
    lines: Option<mpsc::UnboundedReceiver<String>>,
    questions: Option<mpsc::UnboundedReceiver<Question>>,
    pub pending: VecDeque<Pending>,
    /// Commands that were typed while a turn ran: they are carried out when it is over.
    pub later: VecDeque<String>,
    pub typing: Typing,
    present: bool,
    gone: bool,
}

impl Person {
    /// Nobody.
    pub fn nobody() -> Self {
        Self {
            lines: None,
            questions: None,
            pending: VecDeque::new(),
            later: VecDeque::new(),
            typing: Typing::Answers,
            present: false,
            gone: false,
        }
    }

    /// Somebody at a terminal. Standard input is not read before the first question.
    pub fn present(questions: mpsc::UnboundedReceiver<Question>, typing: Typing) -> Self {
        Self { questions: Some(questions), typing, present: true, ..Self::nobody() }
    }

    /// True when there is, or was, somebody.
    pub fn is_present(&self) -> bool {
        self.present
    }

    /// True when somebody was there and no more lines come.
    pub fn is_gone(&self) -> bool {
        self.present && self.gone
    }

    /// Begins to read lines.
    pub fn listen(&mut self) {
        if self.present && self.lines.is_none() && !self.gone {
            self.lines = Some(stdin_lines());
        }
    }

    /// The next line, or the next question of the tool `ask`. Waits for ever when there is nobody.
    pub async fn event(&mut self) -> PersonEvent {
        let reads = self.lines.is_some() && !self.gone;
        let line = async {
            match self.lines.as_mut().filter(|_| reads) {
                Some(lines) => lines.recv().await,
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
        let event = tokio::select! {
            line = line => line.map_or(PersonEvent::Gone, PersonEvent::Line),
            question = question => PersonEvent::Asked(question),
        };
        self.gone |= matches!(event, PersonEvent::Gone);
        event
    }
}

/// What a person, or a tool that needs one, did.
pub enum PersonEvent {
    /// Typed a line.
    Line(String),
    /// Closed standard input.
    Gone,
    /// A tool asks.
    Asked(Question),
}

/// Lines of standard input, read on a thread of their own: a read cannot be given up, and the
/// terminal does the editing.
fn stdin_lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            match stdin.read_until(b'\n', &mut bytes) {
                Ok(0) | Err(_) => break,
                Ok(_) => {
                    let line = String::from_utf8_lossy(&bytes);
                    if sender.send(line.trim_end_matches(['\r', '\n']).to_owned()).is_err() {
                        break;
                    }
                }
            }
        }
    });
    lines
}
