//! A request's bytes, one message after the other.
//!
//! The body is a head that is constant in an epoch, then the history, then its closers. A message's bytes depend on
//! itself and the configuration only (and on being the first, where the wire puts the preface into it), so a longer
//! history never changes the bytes of a shorter one. Cache marks are put in when the body is asked for: they are no
//! part of an item.

mod anthropic;
mod chat;
mod choice;
mod gemini;
mod marks;
mod pieces;
mod responses;
mod writer;

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use stele_core::{BodyDigest, Config, Failure, FailureCode, Hash, Header, Message, PromptDigest, Wire, Zone};

use marks::{ROLLED, Rolled, Stretch};
use writer::{PromptHash, Writer};

/// Wire and revision of the encoder that this build has. The bytes of a revision never change: a change gets a new one.
#[must_use]
pub fn revision(wire: Wire) -> &'static str {
    match wire {
        Wire::AnthropicMessages => "anthropic-messages/1",
        Wire::OpenaiResponses => "openai-responses/1",
        Wire::OpenaiChat => "openai-chat/1",
        Wire::Gemini => "gemini/1",
    }
}

/// One unit of the prompt, in the wire's order. Its bytes are [`Encoder::item_bytes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The part of the request it belongs to.
    pub zone: Zone,
    name: Name,
    /// Where its bytes are in the unmarked body.
    range: Range<usize>,
    /// False for a block that takes no cache mark.
    markable: bool,
}

/// What an item is called. A long history has very many of them, so a place is not written out before it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Given(Box<str>),
    Place { role: &'static str, message: usize, block: usize },
}

impl Item {
    /// Name in the header (of a tool, or of the sections), or role and place in the history, such as `user 3.1`.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.name {
            Name::Given(name) => name.to_string(),
            Name::Place { role, message, block } => format!("{role} {message}.{block}"),
        }
    }
}

/// A request as it goes over the wire.
#[derive(Clone, Debug)]
pub struct Body {
    /// Exactly the bytes to send, one piece after the other. Most of them are the encoder's own.
    pub pieces: Vec<Bytes>,
    /// Items that carry a cache mark, by index.
    pub marks: Vec<u64>,
}

impl Body {
    /// The bytes as one.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.pieces.concat()
    }
}

/// Encodes the requests of one epoch.
///
/// # Example
/// Give it each new message once, then ask for the body; before the next request, say where this one ended:
///
/// ```ignore
/// let mut encoder = Encoder::new(&header, &config)?;
/// encoder.push(&prompt);
/// let body = encoder.body();
/// encoder.keep_digest_at(encoder.items().len());
/// encoder.set_earlier(&[encoder.items().len()]);
/// encoder.push(&answer);
/// encoder.push(&results);
/// ```
#[derive(Clone)]
pub struct Encoder {
    config: Config,
    writer: Writer,
    /// Where a prompt can end, in items: after the header, and after each message.
    boundaries: Vec<usize>,
    /// Where the hash of what stands before is to be kept.
    awaited: Option<usize>,
    /// The last place where it was.
    kept: Option<PromptHash>,
    /// Items of the header that always carry a mark.
    fixed_marks: Vec<usize>,
    /// Numbers of items with which earlier requests ended, in order.
    earlier: Vec<usize>,
    /// True while the first message holds the preface alone and waits for the first prompt.
    open: bool,
    rolled: Rolled,
}

impl Encoder {
    /// Writes the head of the epoch's requests.
    ///
    /// # Errors
    /// `provider.unsupported`: the wire cannot express a parameter, or the configuration was made for another revision
    /// of the encoder.
    pub fn new(header: &Header, config: &Config) -> Result<Self, Failure> {
        let revision = revision(config.wire);
        if config.encoder != revision {
            return Err(unsupported(format!(
                "these requests were written by encoder {:?} and this build has {revision:?}; open the session with \
                 the version of stele that wrote it",
                config.encoder
            )));
        }
        for (name, value) in [("temperature", config.parameters.temperature), ("top_p", config.parameters.top_p)] {
            if value.is_some_and(|value| !value.is_finite()) {
                return Err(unsupported(format!("{name} must be a finite number")));
            }
        }
        let mut writer = Writer::new();
        let open = match config.wire {
            Wire::AnthropicMessages => anthropic::head(&mut writer, header, config)?,
            Wire::OpenaiResponses => responses::head(&mut writer, header, config)?,
            Wire::OpenaiChat => chat::head(&mut writer, header, config)?,
            Wire::Gemini => gemini::head(&mut writer, header, config)?,
        };
        let mut encoder = Self {
            config: config.clone(),
            writer,
            boundaries: Vec::new(),
            awaited: None,
            kept: None,
            fixed_marks: Vec::new(),
            earlier: Vec::new(),
            open,
            rolled: Rolled::default(),
        };
        encoder.fixed_marks = encoder.fixed_marks();
        encoder.close_message();
        Ok(encoder)
    }

    /// Appends one message.
    pub fn push(&mut self, message: &Message) {
        self.writer.message += 1;
        self.writer.block = 1;
        let continues = std::mem::take(&mut self.open);
        let (writer, config) = (&mut self.writer, &self.config);
        match config.wire {
            Wire::AnthropicMessages => anthropic::message(writer, message, continues),
            Wire::OpenaiResponses => responses::message(writer, message),
            Wire::OpenaiChat => chat::message(writer, message, config),
            Wire::Gemini => gemini::message(writer, message, continues),
        }
        self.close_message();
    }

    /// Number of messages so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.writer.message
    }

    /// True when no message was appended yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The items in prompt order.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.writer.items
    }

    /// The bytes of an item, without cache marks. The first block of a message includes the message's opening, which
    /// names the role.
    #[must_use]
    pub fn item_bytes(&self, item: &Item) -> Cow<'_, [u8]> {
        self.writer.bytes.get(&item.range)
    }

    /// Keeps the hash of the prompt that ends after `items` items, now or once they are there, for
    /// [`Encoder::digest_at`].
    pub fn keep_digest_at(&mut self, items: usize) {
        self.awaited = Some(items);
        self.keep_digest();
    }

    fn keep_digest(&mut self) {
        let items = self.writer.items.len();
        if self.awaited == Some(items) && self.kept.as_ref().is_none_or(|kept| kept.items() != items) {
            self.kept = Some(self.writer.prompt.clone());
        }
    }

    /// The request, exactly as it is sent.
    #[must_use]
    pub fn body(&self) -> Body {
        let marks = self.block_marks();
        let mut pieces = Vec::new();
        self.lay_out(0, &marks, &mut |stretch| match stretch {
            Stretch::Own(range) => self.writer.bytes.share(range, &mut pieces),
            Stretch::Fixed(text) => pieces.push(Bytes::from_static(text.as_bytes())),
        });
        Body { pieces, marks: self.marks().into_iter().map(|item| item as u64).collect() }
    }

    /// Hash and length of [`Encoder::body`], in time linear in what was added since the request before.
    #[must_use]
    pub fn body_digest(&self) -> BodyDigest {
        let marks = self.block_marks();
        let mut hasher = self.rolled.hasher.clone();
        self.lay_out(self.rolled.at, &marks, &mut |stretch| match stretch {
            Stretch::Own(range) => self.writer.bytes.hash(range, &mut hasher),
            Stretch::Fixed(text) => {
                hasher.update(text.as_bytes());
            }
        });
        let len = self.writer.bytes.len() + self.mark_bytes(&marks) + self.closer().len();
        BodyDigest { hash: Hash::from(&hasher), len: len as u64 }
    }

    /// The prompt as it is logged; `shared` is the number of item bytes that the request before had as well.
    #[must_use]
    pub fn prompt_digest(&self, shared: u64) -> PromptDigest {
        PromptDigest {
            hash: self.writer.prompt_hash(),
            len: self.writer.prompt_len,
            items: self.writer.items.len() as u64,
            shared,
        }
    }

    /// Hash of the prompt that consists of the first `items` items; `None` where no message ends. Where it was not
    /// kept, those items are hashed again.
    #[must_use]
    pub fn digest_at(&self, items: usize) -> Option<Hash> {
        self.boundaries.binary_search(&items).ok()?;
        match &self.kept {
            Some(kept) if kept.items() == items => Some(self.writer.hash_of(kept)),
            _ => Some(self.writer.prompt_hash_of(self.writer.items.get(..items)?)),
        }
    }

    /// Notes that the prompt could end here.
    fn close_message(&mut self) {
        self.boundaries.push(self.writer.items.len());
        self.keep_digest();
        self.writer.bytes.close_full();
        if !self.marked() && self.writer.bytes.closed() >= self.rolled.at + ROLLED {
            self.roll(self.writer.bytes.closed());
        }
    }

    /// The JSON of the messages from an item on, which is the first of one, as it stands in the list of messages.
    #[must_use]
    pub fn messages_from(&self, item: usize) -> Vec<u8> {
        let end = self.writer.bytes.len();
        let start = self.writer.items.get(item).map_or(end, |item| item.range.start);
        let mut messages = Vec::with_capacity(end - start);
        self.writer.bytes.each(start..end, &mut |part| messages.extend_from_slice(part));
        messages
    }

    fn closer(&self) -> &'static str {
        if self.open { "]}]}" } else { "]}" }
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoder")
            .field("wire", &self.config.wire)
            .field("messages", &self.len())
            .field("items", &self.writer.items.len())
            .field("bytes", &self.writer.bytes.len())
            .finish_non_exhaustive()
    }
}

fn unsupported(what: impl Into<String>) -> Failure {
    Failure::new(FailureCode::Unsupported, what.into())
}

/// The sections of the system, or of the preface, as one text.
fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// What stands for an answer of which nothing can be sent back on this wire.
const NO_ANSWER: &str = "(no answer)";
