//! Images that a tool shows the model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Text;

/// An image, as it is logged and sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Image {
    /// What its bytes are.
    pub media_type: MediaType,
    /// Its bytes as every wire takes them: standard base64 with padding (RFC 4648, section 4), always a blob. `len` of
    /// the blob counts the characters.
    pub data: Text,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

/// The kinds of images that every vendor takes; others become one of them before they are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MediaType {
    /// PNG.
    #[serde(rename = "image/png")]
    Png,
    /// JPEG.
    #[serde(rename = "image/jpeg")]
    Jpeg,
}

impl MediaType {
    /// The media type, as on the wires.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
        }
    }
}

/// Whether a route's model is sent images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImageInput {
    /// It is not: a note stands for each.
    #[default]
    Noted,
    /// It is.
    Sent,
}

impl ImageInput {
    /// True for a route whose model is sent none.
    #[must_use]
    pub fn is_noted(&self) -> bool {
        *self == Self::Noted
    }
}

/// Pixels of a token at most: vendors count a token for 750 (Anthropic, vision, 2026-11) or about 2,300 (Gemini,
/// 258 tokens for a tile of 768 by 768). A bound, not a price.
const PIXELS_OF_A_TOKEN: u64 = 512;

impl Image {
    /// An image whose bytes are base64 already; they are stored as a blob.
    #[must_use]
    pub fn new(media_type: MediaType, base64: String, width: u32, height: u32) -> Self {
        Self { media_type, data: Text::from(base64).sealed(), width, height }
    }

    /// What stands for an image that is not sent, and why it is not.
    #[must_use]
    pub fn note(&self, why: &str) -> String {
        format!("[image left out ({}, {} × {} px): {why}]", self.media_type.name(), self.width, self.height)
    }

    /// What it counts as in bytes of prompt: one for a token.
    pub(crate) fn prompt_bytes(&self) -> u64 {
        (u64::from(self.width) * u64::from(self.height)).div_ceil(PIXELS_OF_A_TOKEN)
    }
}
