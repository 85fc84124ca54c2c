//! Why an edit was not made.

/// Nothing was changed. The message says what was expected and what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    /// Stable code, such as `edit.ambiguous`.
    pub code: &'static str,
    /// For the model or the person who wrote the edit.
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}
