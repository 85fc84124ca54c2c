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
mod pieces;
mod responses;
mod writer;

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use stele_core::{
    BodyDigest, CacheTtl, Config, Failure, FailureCode, Hash, Hasher, Header, Message, OptionalField, PromptDigest,
    Wire, Zone,
};

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

/// A stretch of a body.
enum Stretch {
    /// Bytes of the unmarked body.
    Own(Range<usize>),
    /// A mark or the closer.
    Fixed(&'static str),
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

/// Hash of the body up to a byte that no later request of the epoch can change.
#[derive(Clone, Default)]
struct Rolled {
    hasher: Hasher,
    at: usize,
}

/// Bytes of a body that are hashed at once, at least: fewer are too short for the hash's own speed.
const ROLLED: usize = 8 << 10;

/// Anthropic, prompt caching, 2026-11: five minutes is the default lifetime.
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;
/// The same page: so many marks, at most.
const MARKS_MAX: usize = 4;
/// The same page: an hour where it is asked for; such marks have to stand before those of five minutes.
const HOUR_MARK: &str = r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#;

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

    /// Says that earlier requests, two at most, consisted of the first so many items: their last blocks keep their marks.
    pub fn set_earlier(&mut self, ends: &[usize]) {
        let mut ends: Vec<usize> = ends.iter().map(|items| (*items).min(self.writer.items.len())).collect();
        ends.sort_unstable();
        ends.dedup();
        self.earlier = ends;
        if !self.marked() {
            return;
        }
        let first = self.earlier.iter().find_map(|items| self.markable(*items)).map(|first| self.mark_at(first));
        // Beside two of them the preface's mark may be missing, and no mark may stand in what was taken.
        if self.earlier.len() > 1 || first.is_some_and(|first| first < self.rolled.at) {
            self.rolled = Rolled::default();
        } else if let Some(first) = first.filter(|first| *first >= self.rolled.at + ROLLED) {
            self.roll(first);
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

    /// Indices of the items that carry a cache mark, or for which one at the top of the body stands.
    #[must_use]
    pub fn marks(&self) -> Vec<usize> {
        if !self.marked() && self.config.sends(OptionalField::CacheControl) {
            return self.writer.items.len().checked_sub(1).into_iter().collect();
        }
        self.block_marks()
    }

    /// Indices of the items that carry a cache mark.
    fn block_marks(&self) -> Vec<usize> {
        if !self.marked() {
            return Vec::new();
        }
        let mut marks = self.fixed_marks.clone();
        marks.extend(self.earlier.iter().filter_map(|items| self.markable(*items)));
        marks.extend(self.markable(self.writer.items.len()));
        marks.sort_unstable();
        marks.dedup();
        if let (true, [_, preface]) = (marks.len() > MARKS_MAX, self.fixed_marks.as_slice()) {
            marks.retain(|mark| mark != preface);
        }
        marks
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

    /// True when this wire has marks on blocks, the route wants them and the endpoint takes them.
    fn marked(&self) -> bool {
        self.config.marks_blocks() && self.config.sends(OptionalField::CacheControl)
    }

    /// End of the system (of the tools when there is none), which covers what stands before it, and end of the preface.
    fn fixed_marks(&self) -> Vec<usize> {
        let last = |zones: &[Zone]| self.writer.items.iter().rposition(|item| zones.contains(&item.zone));
        [last(&[Zone::Tools, Zone::System]), last(&[Zone::Preface])].into_iter().flatten().collect()
    }

    /// The last of the first `items` items, when it is history, or the nearest before it that takes a mark.
    ///
    /// The mark on the end of an answered request needs no help of the vendor's look-back (20 blocks, Anthropic, prompt
    /// caching, 2026-11): it stands exactly where that request wrote its entry, however many blocks a step added, so
    /// that no further mark is needed in between.
    fn markable(&self, items: usize) -> Option<usize> {
        let history = self.writer.items.get(..items)?.iter().enumerate().rev();
        history.take_while(|(_, item)| item.zone == Zone::History).find(|(_, item)| item.markable).map(|(at, _)| at)
    }

    /// How long what a mark on this item covers is asked to be kept: longer lives stand before shorter ones, so that they
    /// are for what stands before the history.
    #[must_use]
    pub fn mark_ttl(&self, item: usize) -> CacheTtl {
        let history = self.writer.items.get(item).is_none_or(|item| item.zone == Zone::History);
        let hour = !history && self.config.sends(OptionalField::CacheTtl);
        if hour { CacheTtl::Hour } else { CacheTtl::FiveMinutes }
    }

    fn mark(&self, item: usize) -> &'static str {
        match self.mark_ttl(item) {
            CacheTtl::FiveMinutes => MARK,
            CacheTtl::Hour => HOUR_MARK,
        }
    }

    fn mark_bytes(&self, marks: &[usize]) -> usize {
        marks.iter().map(|mark| self.mark(*mark).len()).sum()
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

    /// Where a mark goes into an item: before the brace that ends its block.
    fn mark_at(&self, item: usize) -> usize {
        self.writer.items[item].range.end - 1
    }

    /// Gives the stretches of the body from a byte of the unmarked body on.
    fn lay_out(&self, from: usize, marks: &[usize], take: &mut dyn FnMut(Stretch)) {
        let mut at = from;
        for &mark in marks {
            let end = self.mark_at(mark);
            if end >= from {
                take(Stretch::Own(at..end));
                take(Stretch::Fixed(self.mark(mark)));
                at = end;
            }
        }
        take(Stretch::Own(at..self.writer.bytes.len()));
        take(Stretch::Fixed(self.closer()));
    }

    /// Takes the hash of the body up to `to`, where no mark can move any more.
    fn roll(&mut self, to: usize) {
        if self.marked() {
            for mark in 0..self.fixed_marks.len() {
                let end = self.mark_at(self.fixed_marks[mark]);
                if (self.rolled.at..to).contains(&end) {
                    self.roll_plain(end);
                    self.rolled.hasher.update(self.mark(self.fixed_marks[mark]).as_bytes());
                }
            }
        }
        self.roll_plain(to);
    }

    fn roll_plain(&mut self, to: usize) {
        if self.rolled.at < to {
            self.writer.bytes.hash(self.rolled.at..to, &mut self.rolled.hasher);
            self.rolled.at = to;
        }
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
