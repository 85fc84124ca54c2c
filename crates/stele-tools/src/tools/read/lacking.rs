//! Images and PDF in a build without them: what they are is said, and what the build lacks.

use stele_core::{ImageInput, ToolOutput};

use super::Reading;
use crate::document::{self, Document};
use crate::error::{Error, Result};
use crate::path::Found;
use crate::picture;

const LACKING: &str = "; this build of Stele cannot show it: it lacks the cargo feature documents";

impl Reading {
    pub(super) fn picture(&self, kind: picture::Kind, size: u64, _: &Found, asked: &str) -> Result<ToolOutput> {
        let hint = match self.images {
            ImageInput::Sent => LACKING,
            ImageInput::Noted => "; this model is sent no images",
        };
        Err(Error::Binary { path: asked.to_owned(), kind: kind.name(), size, hint })
    }

    #[expect(clippy::unused_self, reason = "the same call in every build")]
    pub(super) fn pdf(&self, size: u64, _: &Found, asked: &str) -> Result<Document> {
        Err(Error::Binary { path: asked.to_owned(), kind: document::PDF, size, hint: LACKING })
    }
}
