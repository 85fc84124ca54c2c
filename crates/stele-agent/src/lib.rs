//! The driver of the loop: fold the log, ask what is owed, do it, append what happened.
