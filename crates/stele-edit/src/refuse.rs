//! Why an edit was not made.

/// Nothing was changed. The message says what was expected and what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    /// Stable code, one of [`CODES`].
    pub code: &'static str,
    /// For the model or the person who wrote the edit.
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code: code.as_str(), message: message.into() }
    }

    /// The same refusal; where nothing was found, with how the input was read, which may be why.
    pub(crate) fn read_as(mut self, notes: &[String]) -> Self {
        if self.code == Code::NotFound.as_str() {
            notes.iter().for_each(|note| self.message.extend(["\n", note]));
        }
        self
    }

    /// The same refusal, with what it is about in front.
    pub(crate) fn about(self, what: &str) -> Self {
        if what.is_empty() { self } else { Self { code: self.code, message: format!("{what}: {}", self.message) } }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $meaning:literal;)*) => {
        /// Why, as a closed set.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Code { $($(#[$doc])* $name),* }

        impl Code {
            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code),* }
            }
        }

        /// Every code that a refusal may carry, with its meaning.
        pub const CODES: &[(&str, &str)] = &[$(($code, $meaning)),*];
    };
}

codes! {
    Ambiguous = "edit.ambiguous", "the old text is at more than one place";
    NotFound = "edit.not_found", "the old text is at no place";
    Stale = "edit.stale", "the file is not what was read";
    Overlap = "edit.overlap", "two edits touch the same text";
    NoChange = "edit.no_change", "an edit changes nothing";
    Unparsed = "edit.unparsed", "the input is cut, contradicts itself or is in no known dialect";
    Mixed = "edit.mixed", "the input mixes two dialects";
    EscapeSlip = "edit.escape_slip", "old and new text carry the same escape slips";
    Exists = "edit.exists", "the file to create is there already";
    Missing = "edit.missing", "the file to change is not there";
    Outside = "edit.outside", "the input reaches beyond the file or folder it may change";
    Link = "edit.link", "a symbolic link is moved where only a file can be";
    Encoding = "edit.encoding", "the file's encoding cannot take the new text";
    Binary = "edit.binary", "the file is not text";
    TooLarge = "edit.too_large", "the file, the input or the number of places is over a limit";
}
