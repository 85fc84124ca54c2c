//! The one error of the binary: what a person reads, its stable code, and the exit code it maps to.

use std::fmt;
use std::io;

use serde::Serialize;

/// Which exit code an error maps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Usage or configuration is wrong, or a session cannot be opened: nothing ran.
    Usage,
    /// Something ran, and failed.
    Failed,
    /// Whoever read standard output is gone, which is no fault.
    Closed,
}

impl Kind {
    /// The exit code.
    pub fn exit(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::Failed => 1,
            Self::Closed => 0,
        }
    }
}

/// Why a command ended without doing what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    pub kind: Kind,
    /// The stable code, such as `log.locked`.
    pub code: String,
    /// What happened and what to do, without the code.
    pub message: String,
    /// Further things to try, one sentence each.
    pub hints: Vec<String>,
}

/// Result of a command.
pub type Result<T, E = CommandError> = std::result::Result<T, E>;

/// An error as `--json` writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorJson {
    pub code: String,
    pub message: String,
}

impl CommandError {
    /// Wrong usage or configuration.
    pub fn usage(code: &str, message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, code, message)
    }

    /// Something ran, and failed.
    pub fn failed(code: &str, message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, code, message)
    }

    fn new(kind: Kind, code: &str, message: impl Into<String>) -> Self {
        Self { kind, code: code.to_owned(), message: strip_code(&message.into(), code), hints: Vec::new() }
    }

    /// Adds something to try.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The same error where something had already run.
    pub fn after_work(mut self) -> Self {
        if self.kind == Kind::Usage {
            self.kind = Kind::Failed;
        }
        self
    }

    /// As `--json` writes it.
    pub fn json(&self) -> ErrorJson {
        ErrorJson { code: self.code.clone(), message: self.message.clone() }
    }
}

/// What to do once a turn has failed with this code, where the provider's own words do not say.
pub fn advice(code: &str) -> Option<&'static str> {
    match code {
        "provider.server"
        | "provider.overloaded"
        | "provider.rate_limited"
        | "provider.idle_timeout"
        | "provider.incomplete"
        | "provider.malformed"
        | "provider.empty" => Some("the session is whole; try again later, or with another model"),
        // Nobody was reached: another model of the same server would not be either.
        "provider.connect_timeout" | "provider.transport" => {
            Some("the session is whole; try again once the server can be reached at the address of the route")
        }
        _ => None,
    }
}

/// The libraries' messages begin with the code; here it stands apart.
fn strip_code(message: &str, code: &str) -> String {
    let rest = message.strip_prefix(code).and_then(|rest| rest.strip_prefix(": "));
    rest.unwrap_or(message).to_owned()
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl From<stele_agent::Error> for CommandError {
    fn from(error: stele_agent::Error) -> Self {
        Self::usage(error.code(), error.to_string())
    }
}

impl From<stele_store::Error> for CommandError {
    fn from(error: stele_store::Error) -> Self {
        Self::usage(error.code(), error.to_string())
    }
}

impl From<stele_core::Error> for CommandError {
    fn from(error: stele_core::Error) -> Self {
        Self::usage(error.code(), error.to_string())
    }
}

impl From<stele_guard::Error> for CommandError {
    fn from(error: stele_guard::Error) -> Self {
        Self::usage(error.code(), error.to_string())
    }
}

impl From<crate::config::ConfigError> for CommandError {
    fn from(error: crate::config::ConfigError) -> Self {
        Self::usage(error.code(), error.to_string())
    }
}

impl From<stele_provider::RouteError> for CommandError {
    fn from(error: stele_provider::RouteError) -> Self {
        let found = Self::usage(error.code(), error.to_string());
        error.advice().into_iter().fold(found, Self::hint)
    }
}

impl From<stele_proxy::Error> for CommandError {
    fn from(error: stele_proxy::Error) -> Self {
        let (code, message) = (error.code(), error.to_string());
        let found = Self::usage(code, message);
        match error {
            stele_proxy::Error::Exposed(_) => found.hint("--allow-remote lets other machines connect"),
            _ => found,
        }
    }
}

/// What writing to standard output met.
impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Kind::Closed, "output.closed", "nobody reads the output any more");
        }
        Self::failed("output.write_failed", format!("cannot write the output: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_in_a_librarys_message_is_not_said_twice() {
        let error = CommandError::usage("log.locked", "log.locked: session x is being written");
        assert_eq!(error.message, "session x is being written");
        assert_eq!(error.to_string(), "log.locked: session x is being written");
    }

    #[test]
    fn another_model_is_advised_where_it_may_help() {
        assert!(advice("provider.overloaded").unwrap().contains("another model"));
        assert!(!advice("provider.transport").unwrap().contains("another model"));
        assert_eq!(advice("provider.auth"), None);
    }

    #[test]
    fn a_reader_that_is_gone_is_no_fault() {
        let error = CommandError::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(error.kind.exit(), 0);
        assert_eq!(CommandError::usage("a.b", "c").after_work().kind.exit(), 1);
    }
}
