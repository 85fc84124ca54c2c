//! Images and PDF.

use std::fmt::Write as _;

use stele_core::{FileMeta, Hash, ImageInput, ResultMeta, ToolOutput};

use super::Reading;
use crate::document::Document;
use crate::error::{Error, Result};
use crate::path::Found;
use crate::picture::{self, Picture};
use crate::{file, pdf};

impl Reading {
    /// An image: shown where the model is sent images, else told by type, size and dimensions.
    pub(super) fn picture(&self, kind: picture::Kind, size: u64, found: &Found, asked: &str) -> Result<ToolOutput> {
        let damaged = |hint| Error::Binary { path: asked.to_owned(), kind: kind.name(), size, hint };
        if size > picture::LARGEST {
            return Err(damaged("; it is too large to be shown"));
        }
        let bytes = file::read(&found.path, asked)?;
        let Some(picture) = Picture::look(kind, &bytes) else { return Err(damaged("; it cannot be decoded")) };
        let mut content = format!("{asked}: {}, {} × {} px, {size} bytes", kind.name(), picture.width, picture.height);
        if let Some(name) = &found.instead {
            let _ = write!(content, "; opened {name}, the only name that looks like the one asked for");
        }
        let mut images = Vec::new();
        match self.images {
            ImageInput::Noted => content.push_str("; this model is sent no images"),
            ImageInput::Sent => match picture.fit() {
                Ok(image) => {
                    if (image.width, image.height) != (picture.width, picture.height) {
                        let _ = write!(content, "; shown at {} × {} px", image.width, image.height);
                    }
                    images.push(image);
                }
                Err(why) => {
                    let _ = write!(content, "; not shown: {why}");
                }
            },
        }
        let seen = FileMeta { hash: Some(Hash::of(&bytes)), ..file::seen(&found.path) };
        let meta = ResultMeta { files: vec![seen], ..ResultMeta::default() };
        Ok(ToolOutput { content, images, meta, ..ToolOutput::default() })
    }

    /// A PDF, as text.
    pub(super) fn pdf(&self, _: u64, found: &Found, asked: &str) -> Result<Document> {
        pdf::text(&found.path, asked, self.reader.as_deref(), &self.stop)
    }
}
