//! Permission modes and rules, on parsed shell commands and resolved paths.
