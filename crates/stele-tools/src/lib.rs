//! The built-in tools: read, write, edit, bash, glob, grep, todo, ask.
