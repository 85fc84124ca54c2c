//! What a command waits in.

use crate::error::{CommandError, Result};

/// The one runtime of a process.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::usage("system.runtime", format!("cannot start: {error}")))
}
