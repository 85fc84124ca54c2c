//! An answer's bytes, as they come in, and what they amount to in the end.
//!
//! A wire's decoder reads one event after the other into a [`Draft`]; everything that holds for all wires (how an
//! answer ends, what is dropped, what counts as empty) is decided there.

mod anthropic;
mod chat;
mod draft;
mod error;
mod gemini;
mod refused;
mod responses;
mod usage;

use stele_core::{Config, Failure, FailureCode, Stop, Usage, Wire};

use crate::sse;
use draft::Draft;

pub use error::http_failure;
pub use gemini::without_call_id;

/// A piece of an answer as it arrives, for people to watch. What counts is the [`Answer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// More reasoning, as far as the provider shows it.
    Reasoning(String),
    /// A call begins.
    CallStarted {
        /// Which call of this answer, from 0.
        call: usize,
        /// Name of the tool.
        name: String,
    },
    /// More of a call's arguments.
    CallArguments {
        /// Which call of this answer, from 0.
        call: usize,
        /// A piece of the raw JSON.
        json: String,
    },
    /// What the provider has reported so far; never a count of the output, which is not over.
    Usage(Usage),
}

/// A complete answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The blocks, in the model's order. Empty only when it was cut, refused or filtered before the first one.
    pub blocks: Vec<AnswerBlock>,
    /// Why the model stopped.
    pub stop: Stop,
    /// What the provider reported.
    pub usage: Option<Usage>,
    /// The provider's own account as raw JSON; a list where it came in two parts.
    pub usage_raw: Option<String>,
}

/// A block of an answer. `native` is raw JSON that this wire wants back unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerBlock {
    /// Text; never empty.
    Text {
        /// The text.
        text: String,
        /// Raw block.
        native: Option<String>,
    },
    /// Reasoning; the text may be empty when `native` holds it encrypted.
    Reasoning {
        /// The text.
        text: String,
        /// Raw block.
        native: Option<String>,
    },
    /// A complete call.
    Call {
        /// The vendor's id; absent where it gave none or an empty one.
        vendor_id: Option<String>,
        /// Name of the tool; never empty.
        name: String,
        /// The arguments as the model wrote them, `{}` where it wrote nothing; perhaps no JSON at all.
        arguments: String,
        /// Raw block.
        native: Option<String>,
    },
}

/// Decodes one answer from bytes that may be cut anywhere.
///
/// It takes a stream of events, or the single JSON document of servers that do not stream.
///
/// # Example
/// ```ignore
/// let mut decoder = Decoder::new(&config);
/// while let Some(chunk) = response.chunk().await? {
///     show(decoder.feed(&chunk));
///     if decoder.is_done() { break; }
/// }
/// let answer = decoder.finish()?;
/// ```
#[derive(Debug)]
pub struct Decoder {
    wire: WireState,
    framing: Framing,
    draft: Draft,
}

/// How the answer is framed, which its first byte tells.
#[derive(Debug)]
enum Framing {
    Unknown,
    Events(sse::Parser),
    Document(Vec<u8>),
}

#[derive(Debug)]
enum WireState {
    Anthropic(anthropic::State),
    Responses(responses::State),
    Chat(chat::State),
    Gemini(gemini::State),
}

impl WireState {
    /// Reads one event.
    fn event(&mut self, name: Option<&str>, data: &str, draft: &mut Draft) -> serde_json::Result<()> {
        match self {
            Self::Anthropic(state) => state.event(name, data, draft),
            Self::Responses(state) => state.event(name, data, draft),
            Self::Chat(state) => state.event(data, draft),
            Self::Gemini(state) => state.event(data, draft),
        }
    }

    /// Reads an answer that came as one document.
    fn document(&mut self, json: &str, draft: &mut Draft) -> serde_json::Result<()> {
        match self {
            Self::Anthropic(state) => state.document(json, draft),
            Self::Responses(state) => state.document(json, draft),
            Self::Chat(state) => state.event(json, draft),
            Self::Gemini(state) => state.document(json, draft),
        }
    }

    fn name(&self) -> Wire {
        match self {
            Self::Anthropic(_) => Wire::AnthropicMessages,
            Self::Responses(_) => Wire::OpenaiResponses,
            Self::Chat(_) => Wire::OpenaiChat,
            Self::Gemini(_) => Wire::Gemini,
        }
    }

    /// The stream is over: hands over what is only known then.
    fn close(&mut self, draft: &mut Draft) {
        match self {
            Self::Anthropic(state) => state.close(draft),
            Self::Responses(state) => state.close(draft),
            Self::Chat(state) => state.close(draft),
            Self::Gemini(_) => {}
        }
    }
}

impl Decoder {
    /// A decoder for one answer on the configuration's wire.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let wire = match config.wire {
            Wire::AnthropicMessages => WireState::Anthropic(anthropic::State::new(config.life_of_marks())),
            Wire::OpenaiResponses => WireState::Responses(responses::State::default()),
            Wire::OpenaiChat => WireState::Chat(chat::State::default()),
            Wire::Gemini => WireState::Gemini(gemini::State::default()),
        };
        Self { wire, framing: Framing::Unknown, draft: Draft::default() }
    }

    /// Takes the next bytes of the body and gives what they complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Delta> {
        if matches!(self.framing, Framing::Unknown) {
            match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
                Some(b'{' | b'[') => self.framing = Framing::Document(Vec::new()),
                Some(b'<') => self.draft.fail(malformed(self.wire.name(), "a web page")),
                Some(_) => self.framing = Framing::Events(sse::Parser::default()),
                None => return Vec::new(),
            }
        }
        match &mut self.framing {
            Framing::Document(document) => document.extend_from_slice(bytes),
            Framing::Events(parser) => {
                let mut events = Vec::new();
                let fed = parser.feed(bytes, &mut events);
                self.read(&events, Completeness::Whole);
                if fed.is_err() {
                    self.draft.fail(malformed(self.wire.name(), "a line that does not end"));
                }
            }
            Framing::Unknown => {}
        }
        std::mem::take(&mut self.draft.deltas)
    }

    /// True once nothing that may still arrive matters: stop reading, even though the connection is open.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.draft.done
    }

    /// True once the provider said how the answer ended. A connection that breaks after that has lost nothing.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.draft.ended || self.draft.done
    }

    /// The stream is over: the answer, or why there is none.
    ///
    /// # Errors
    /// What the provider reported inside the stream, or `provider.incomplete`, `provider.malformed` or
    /// `provider.empty`. The failure holds what was reported about usage, and whether output had arrived.
    pub fn finish(mut self) -> Result<Answer, Failure> {
        match &mut self.framing {
            Framing::Unknown => {}
            Framing::Events(parser) => {
                let mut events = Vec::new();
                parser.finish(&mut events);
                self.read(&events, Completeness::PerhapsCut);
            }
            Framing::Document(document) => {
                let text = String::from_utf8_lossy(document);
                if let Some(reported) = document_error(&text) {
                    self.draft.fail(error::failure(self.wire.name(), None, reported));
                } else if let Err(error) =
                    self.wire.document(&stele_core::repair_surrogates(text.trim()), &mut self.draft)
                {
                    self.draft.fail(if error.is_eof() {
                        Failure::new(FailureCode::Incomplete, "the answer ended in mid-document").taken()
                    } else {
                        malformed(self.wire.name(), &error.to_string())
                    });
                }
            }
        }
        self.wire.close(&mut self.draft);
        self.draft.finish()
    }

    /// Adds to a failure of the connection what had arrived before it: whether there was output, and any usage.
    #[must_use]
    pub fn interrupted(&self, failure: Failure) -> Failure {
        self.draft.noted(failure)
    }

    fn read(&mut self, events: &[sse::Event], completeness: Completeness) {
        for event in events {
            if self.draft.done {
                return;
            }
            if event.data.trim().is_empty() {
                continue;
            }
            let data = stele_core::repair_surrogates(&event.data);
            if let Err(error) = self.wire.event(event.name.as_deref(), &data, &mut self.draft) {
                // The end of the stream may have cut this event: then it is missing, not wrong.
                if completeness == Completeness::Whole || !error.is_eof() {
                    self.draft.fail(malformed(self.wire.name(), &error.to_string()));
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Completeness {
    Whole,
    PerhapsCut,
}

/// An error that came with a success status and without a stream.
fn document_error(text: &str) -> Option<error::Reported> {
    #[derive(serde::Deserialize)]
    struct Probe<'a> {
        #[serde(borrow)]
        error: Option<&'a serde_json::value::RawValue>,
    }
    let text = stele_core::repair_surrogates(text.trim());
    let first = if text.starts_with('[') {
        serde_json::from_str::<Vec<Probe<'_>>>(&text).ok()?.into_iter().next()?
    } else {
        serde_json::from_str::<Probe<'_>>(&text).ok()?
    };
    first.error.filter(|error| error.get() != "null").and_then(|_| error::parse(&text))
}

fn malformed(wire: Wire, what: &str) -> Failure {
    let why =
        format!("the server sent something that {wire} does not have: {what}; check the route's wire and base URL");
    Failure::new(FailureCode::Malformed, why).taken()
}
