//! The surface: the events that become messages, and how they do.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{
    AssistantBlock, AssistantTurn, Block, CallId, Config, Image, ImageInput, Message, Part, Producer, Text, ToolError,
    UserBlock, Wire, repair_surrogates,
};

/// Revision of these rules for a wire, and of what else of a request follows from the log, logged with each epoch.
/// Histories go on as their epoch says.
///
/// Since 2 an answer of Gemini keeps a signature that stands on a last part without text. Since 3 of Gemini, and 2 of
/// the others, a whole answer without text is not told as an interrupted one, and reasoning that nobody signed is not
/// sent to Anthropic's own host. Since 3 of Anthropic signed thinking goes back although its text was left out, and the
/// marks keep to what was answered; since 3 of OpenAI's Responses encrypted reasoning is asked for without an effort too.
#[must_use]
pub fn derive_rev(wire: Wire) -> u32 {
    match wire {
        Wire::AnthropicMessages | Wire::OpenaiResponses | Wire::Gemini => 3,
        Wire::OpenaiChat => 2,
    }
}

/// What a call without a recorded result is answered with.
pub const RESULT_MISSING: &str =
    "(interrupted: this call has no recorded result; check its effects before repeating it)";
/// What stands for an empty result.
pub const RESULT_EMPTY: &str = "(no output)";
/// What stands for an answer of which nothing arrived.
pub const ANSWER_MISSING: &str = "(interrupted)";
/// What stands for a whole answer without text: Anthropic takes no block of white space back (Messages API, 2026-11).
pub const ANSWER_EMPTY: &str = "(no text)";
/// What stands between two answers without anything from the user.
pub const USER_MISSING: &str = "(continue)";

/// Anthropic's own host.
const ANTHROPIC: &str = "https://api.anthropic.com";

/// Why an image is left out.
const IMAGES_NOT_TAKEN: &str = "this model is sent no images";

/// What stands for a tool's name that no provider takes back.
pub const NAME_UNSENDABLE: &str = "unknown_tool";
/// Longest tool name that every provider takes (OpenAI, function calling, 2026-11).
const NAME_MAX: usize = 64;

/// The name as a request may hold it: models make up names that their own vendor refuses in a history.
fn sendable(name: &str) -> Option<&str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (!name.is_empty() && name.len() <= NAME_MAX && name.bytes().all(plain)).then_some(name)
}

/// Whether a thinking block has a signature. Inside its text a quotation mark is escaped.
fn is_signed(raw: &Text) -> bool {
    raw.as_str().contains("\"signature\":\"") && !raw.as_str().contains("\"signature\":\"\"")
}

/// One event on the surface.
#[derive(Clone, Debug, PartialEq)]
pub enum SurfaceItem {
    /// A prompt or a notice.
    User(Vec<Part>),
    /// An answer.
    Assistant {
        /// Who made it.
        producer: Producer,
        /// Its blocks.
        content: Vec<Block>,
        /// True when it was cut.
        interrupted: bool,
    },
    /// The result of a call.
    Result {
        /// The call.
        call: CallId,
        /// Its text.
        content: Text,
        /// How it failed, if it did.
        error: Option<ToolError>,
        /// What is shown beside it.
        images: Vec<Image>,
    },
}

/// What a call asked for, kept for replay.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRecord {
    /// The wire it came on.
    pub wire: Wire,
    /// The vendor's id.
    pub vendor_id: Option<String>,
    /// Name of the tool.
    pub name: String,
    /// Raw arguments.
    pub arguments: Text,
}

/// Turns surface events into the messages of a request. Pure and total: whatever the log holds, the
/// messages alternate, begin with the user, and each call has exactly one result right after it.
///
/// `from` is where to begin: 0, or the place of an answer that directly follows what was sent.
/// Messages are closed, so deriving in pieces gives the same as deriving at once.
#[must_use]
pub fn derive(
    surface: &[SurfaceItem],
    from: usize,
    calls: &BTreeMap<CallId, CallRecord>,
    config: &Config,
) -> Vec<Message> {
    let mut messages = Vec::new();
    derive_each(surface, from, calls, config, &mut |message| messages.push(message));
    messages
}

/// As [`derive`], one message after the other: those of a long history need not be there all at once.
pub(crate) fn derive_each(
    surface: &[SurfaceItem],
    from: usize,
    calls: &BTreeMap<CallId, CallRecord>,
    config: &Config,
    take: &mut dyn FnMut(Message),
) {
    let mut deriver = Deriver { calls, config, take, open: UserGroup::default(), user_sent: from > 0 };
    for item in surface.get(from..).unwrap_or_default() {
        match item {
            SurfaceItem::User(parts) => {
                let texts = parts.iter().map(|Part::Text { text }| text.shared());
                deriver.open.texts.extend(texts.filter(|text| !text.trim().is_empty()));
            }
            SurfaceItem::Result { call, content, error, images } => {
                deriver.open.results.entry(*call).or_insert_with(|| Answered {
                    text: content.clone(),
                    error: error.is_some(),
                    images,
                });
            }
            SurfaceItem::Assistant { producer, content, interrupted } => {
                deriver.close_user();
                deriver.assistant(producer, content, *interrupted);
            }
        }
    }
    if !deriver.open.is_empty() {
        deriver.close_user();
    }
}

/// What has come in since the last answer.
#[derive(Default)]
struct UserGroup<'a> {
    /// The calls of the last answer, in order.
    expected: Vec<CallId>,
    results: BTreeMap<CallId, Answered<'a>>,
    texts: Vec<Arc<str>>,
}

/// A result that has come in.
struct Answered<'a> {
    text: Text,
    error: bool,
    images: &'a [Image],
}

impl UserGroup<'_> {
    fn is_empty(&self) -> bool {
        self.expected.is_empty() && self.texts.is_empty()
    }
}

struct Deriver<'a> {
    calls: &'a BTreeMap<CallId, CallRecord>,
    config: &'a Config,
    take: &'a mut dyn FnMut(Message),
    open: UserGroup<'a>,
    /// True when the message before the first one derived here is the user's and was sent already.
    user_sent: bool,
}

impl Deriver<'_> {
    fn close_user(&mut self) {
        let mut group = std::mem::take(&mut self.open);
        let mut blocks = Vec::with_capacity(group.expected.len() + group.texts.len());
        for call in group.expected {
            let Some(record) = self.calls.get(&call) else { continue };
            let missing = || Answered { text: Text::from(RESULT_MISSING), error: true, images: &[] };
            let Answered { mut text, error, images } = group.results.remove(&call).unwrap_or_else(missing);
            // An error may be text only (Anthropic, tool results, 2026-11).
            let sent = self.config.images == ImageInput::Sent && !error;
            if !sent {
                for image in images {
                    text = format!("{}\n{}", text.as_str(), image.note(IMAGES_NOT_TAKEN)).into();
                }
            }
            let text = if text.is_empty() { Text::from(RESULT_EMPTY) } else { text };
            blocks.push(UserBlock::Result {
                call,
                wire_id: self.wire_id(call, record),
                name: sendable(&record.name).unwrap_or(NAME_UNSENDABLE).to_owned(),
                text,
                error,
                images: if sent { images.to_vec() } else { Vec::new() },
            });
        }
        blocks.extend(group.texts.into_iter().map(UserBlock::Text));
        if blocks.is_empty() && !std::mem::take(&mut self.user_sent) {
            blocks.push(UserBlock::Text(Arc::from(USER_MISSING)));
        }
        if !blocks.is_empty() {
            (self.take)(Message::User(blocks));
        }
    }

    fn assistant(&mut self, producer: &Producer, content: &[Block], interrupted: bool) {
        let native = producer.wire == self.config.wire && producer.model == self.config.model;
        let replay = |raw: &Option<Text>| if native { raw.as_ref().map(Text::shared) } else { None };
        let mut blocks = Vec::with_capacity(content.len());
        for block in content {
            match block {
                Block::Text { text, .. } if text.as_str().trim().is_empty() => {}
                Block::Text { text, native } => {
                    blocks.push(AssistantBlock::Text { text: text.shared(), native: replay(native) })
                }
                Block::Reasoning { text, native: raw } => {
                    if native && !interrupted && self.replays(text, raw.as_ref()) {
                        blocks.push(AssistantBlock::Reasoning { text: text.shared(), native: replay(raw) });
                    }
                }
                Block::Call { call, native } => {
                    if let Some(record) = self.calls.get(call)
                        && !self.open.expected.contains(call)
                    {
                        self.open.expected.push(*call);
                        blocks.push(AssistantBlock::Call {
                            call: *call,
                            wire_id: self.wire_id(*call, record),
                            name: sendable(&record.name).unwrap_or(NAME_UNSENDABLE).to_owned(),
                            arguments: match repair_surrogates(record.arguments.as_str()) {
                                Cow::Borrowed(_) => record.arguments.shared(),
                                Cow::Owned(repaired) => repaired.into(),
                            },
                            native: replay(native).filter(|_| sendable(&record.name).is_some()),
                        });
                    }
                }
            }
        }
        // No wire accepts an answer that ends in reasoning; a signature alone is none.
        while let [before @ .., AssistantBlock::Reasoning { text, .. }] = blocks.as_slice() {
            let signs =
                text.is_empty() && before.iter().any(|block| !matches!(block, AssistantBlock::Reasoning { .. }));
            if signs && self.config.wire == Wire::Gemini && self.config.derive_rev >= 2 {
                break;
            }
            blocks.pop();
        }
        if blocks.is_empty() {
            let whole = !interrupted && self.config.derive_rev >= if self.config.wire == Wire::Gemini { 3 } else { 2 };
            let text = if whole { ANSWER_EMPTY } else { ANSWER_MISSING };
            blocks.push(AssistantBlock::Text { text: Arc::from(text), native: None });
        }
        (self.take)(Message::Assistant(AssistantTurn { blocks }));
    }

    /// Whether reasoning may go back as it is. Signed reasoning goes back whole or not at all.
    fn replays(&self, text: &Text, raw: Option<&Text>) -> bool {
        match (self.config.wire, raw) {
            (Wire::OpenaiChat, None) => !text.is_empty(),
            (_, None) => false,
            (Wire::AnthropicMessages, Some(raw)) if raw.as_str().contains("\"redacted_thinking\"") => true,
            // Newer models leave the text out and send the signature all the same, which is what they go on from
            // (Anthropic, adaptive thinking, 2026-11).
            (Wire::AnthropicMessages, Some(raw)) if text.is_empty() => self.config.derive_rev >= 3 && is_signed(raw),
            (Wire::AnthropicMessages, Some(raw)) => is_signed(raw) || !self.asks_for_signatures(),
            (_, Some(_)) => true,
        }
    }

    /// Anthropic signs all thinking and refuses what is not (extended thinking, 2026-11); compatible servers do neither.
    fn asks_for_signatures(&self) -> bool {
        // The address is as it was typed, and a host is the same in whatever case.
        let typed = self.config.base_url.split_at_checked(ANTHROPIC.len());
        let path = typed.filter(|(host, _)| host.eq_ignore_ascii_case(ANTHROPIC)).map(|(_, path)| path);
        self.config.derive_rev >= 2 && path.is_some_and(|path| path.is_empty() || path.starts_with(['/', ':']))
    }

    fn wire_id(&self, call: CallId, record: &CallRecord) -> String {
        match &record.vendor_id {
            Some(id) if record.wire == self.config.wire => id.clone(),
            _ => call.to_string(),
        }
    }
}
