//! Errors of this crate: what keeps a session from being opened or going on.

/// Result of driving a session.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a session could not be opened or could not go on. What was appended before stays.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The log could not be opened, read or written.
    #[error(transparent)]
    Store(#[from] stele_store::Error),
    /// A record could not be understood.
    #[error(transparent)]
    Log(#[from] stele_core::Error),
    /// The session's route is not configured here.
    #[error(
        "config.unknown_route: this session uses the route {name:?}, which is not configured here; configured: {known}. Choose another with --model, or add [routes.{name}]"
    )]
    UnknownRoute {
        /// The route's name.
        name: String,
        /// The routes there are.
        known: String,
    },
    /// The wire cannot express what the configuration asks for.
    #[error("{}: {}", .0.code.code(), .0.message.as_str())]
    Request(stele_core::Failure),
    /// The folder cannot be resolved.
    #[error(transparent)]
    Guard(#[from] stele_guard::Error),
    /// The folder's name cannot be written into a log.
    #[error(
        "session.folder_name: the name of the folder {0} is not valid UTF-8, so a session in it could not be found again; work in a folder with another name"
    )]
    FolderName(String),
    /// The session's folder is gone.
    #[error(
        "session.folder_gone: the folder {0} is not there any more; create it again, or go where the project is now and resume the session there by its id"
    )]
    FolderGone(String),
    /// The key of the session's route is not there.
    #[error(
        "provider.no_credential: route {route} needs a key in {variable}, which is not set; set it, or choose another model with --model"
    )]
    NoKey {
        /// The route's name.
        route: String,
        /// The variable that holds its key.
        variable: String,
    },
    /// There is no turn to take back or to do again.
    #[error("undo.nothing: there is nothing to {0}")]
    NothingTo(&'static str),
    /// Turns are taken back between turns.
    #[error("undo.turn_open: a turn is open; wait until it is over, or stop it")]
    TurnOpen,
    /// An undo or redo that was cut off is not finished without being asked for.
    #[error(
        "undo.foreign: the log came from a file, and such a log changes no file by itself; ask for the same undo or redo again to have it done"
    )]
    NotByItself,
    /// Files could not be restored; all of them are as they were.
    #[error("{}: {}; no file was changed", .0.code, .0.message)]
    Restore(stele_core::ToolError),
    /// Some of the files could be neither restored nor left as they were.
    #[error("{}: {}", .0.code, .0.message)]
    HalfRestored(stele_core::ToolError),
}

impl Error {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Store(error) => error.code(),
            Self::Log(error) => error.code(),
            Self::UnknownRoute { .. } => "config.unknown_route",
            Self::Guard(error) => error.code(),
            Self::Request(failure) => failure.code.code(),
            Self::FolderName(_) => "session.folder_name",
            Self::FolderGone(_) => "session.folder_gone",
            Self::NoKey { .. } => "provider.no_credential",
            Self::NothingTo(_) => "undo.nothing",
            Self::TurnOpen => "undo.turn_open",
            Self::NotByItself => "undo.foreign",
            Self::Restore(error) | Self::HalfRestored(error) => &error.code,
        }
    }
}

impl From<stele_core::Failure> for Error {
    fn from(failure: stele_core::Failure) -> Self {
        Self::Request(failure)
    }
}
