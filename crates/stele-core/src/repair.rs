//! A history that a provider refused because of an image: the image is replaced by a note, once a step.

use crate::state::State;
use crate::surface::SurfaceItem;
use crate::{
    CallId, CutReason, Failure, FailureCode, Image, Message, Replacement, ResultStub, Seq, Span, SpanRange,
    SurfaceReplaced, Text, UserBlock,
};

/// Why an image is left out that a provider did not take.
const REFUSED: &str = "the provider did not take it";

/// How servers name an image (Anthropic `image.source`, OpenAI `image_url`, Gemini `inline_data`, 2026-11).
const NAMES: [&str; 3] = ["image", "inline_data", "inlinedata"];

/// The cut that lets the conversation go on; `None` when the failure names no image, or none is on the surface.
///
/// Where the server says which image it was, that one goes. Where it does not, all of them go: the request is tried
/// again only once. Of a request that is too large in bytes (413) the last image stays, if there are others.
pub(crate) fn images(state: &State, failure: &Failure) -> Option<SurfaceReplaced> {
    let said = failure.message.as_str().to_ascii_lowercase();
    let named = failure.code == FailureCode::InvalidRequest && NAMES.iter().any(|name| said.contains(name));
    let too_large = failure.status == Some(413);
    if !named && !too_large {
        return None;
    }
    let place = if named { place(state, &said) } else { None };
    let mut spans: Vec<Span> = Vec::new();
    let shown = state.surface.iter().zip(&state.marks).filter_map(|(item, mark)| match item {
        SurfaceItem::Result { call, content, error, images } if !images.is_empty() => {
            Some((mark.seq, *call, content, error, images))
        }
        _ => None,
    });
    let shown: Vec<_> = shown.collect();
    for (at, (seq, call, content, error, images)) in shown.iter().enumerate() {
        let last = too_large && shown.len() > 1 && at + 1 == shown.len();
        let kept = |index: usize| match place {
            Some((refused, which)) => refused != *call || which.is_some_and(|which| which != index),
            None => last,
        };
        if (0..images.len()).all(kept) {
            continue;
        }
        let mut text = content.as_str().to_owned();
        let mut left: Vec<Image> = Vec::new();
        for (index, image) in images.iter().enumerate() {
            if kept(index) {
                left.push(image.clone());
            } else {
                text.push('\n');
                text.push_str(&image.note(REFUSED));
            }
        }
        let stub =
            ResultStub { of: *seq, call: *call, content: Text::from(text), error: (*error).clone(), images: left };
        spans.push(Span {
            range: Some(SpanRange { first: *seq, last: *seq }),
            with: vec![Replacement::Result { result: stub }],
        });
    }
    (!spans.is_empty()).then_some(SurfaceReplaced { reason: CutReason::Repair, spans })
}

/// The call, and which of its images, that a place such as `messages.4.content.1.tool_result.content.2.image` names
/// (Anthropic, errors, 2026-11). The other wires count items that only their encoders know.
fn place(state: &State, said: &str) -> Option<(CallId, Option<usize>)> {
    let mut parts = said[said.find("messages.")?..].split(|letter: char| !letter.is_ascii_alphanumeric());
    let mut after = |name: &str| {
        let _ = parts.find(|part| *part == name)?;
        parts.next()?.parse::<usize>().ok()
    };
    let (message, block) = (after("messages")?, after("content")?);
    let Message::User(blocks) = state.messages(0).into_iter().nth(message)? else { return None };
    let Some(UserBlock::Result { call, images, .. }) = blocks.get(block) else { return None };
    // The result's text stands before its images.
    let which = after("content").and_then(|part| part.checked_sub(1)).filter(|which| *which < images.len());
    (!images.is_empty()).then_some((*call, which))
}

/// What a stub stands for.
impl ResultStub {
    /// The record whose place on the surface it takes.
    pub(crate) fn seq(&self) -> Seq {
        self.of
    }

    pub(crate) fn item(&self) -> SurfaceItem {
        SurfaceItem::Result {
            call: self.call,
            content: self.content.clone(),
            error: self.error.clone(),
            images: self.images.clone(),
        }
    }
}
