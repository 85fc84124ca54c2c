//! Find and apply an edit: pure, usable alone.
//!
//! A model names a text and what should take its place, in one of eight dialects and with small slips. This crate finds
//! the one place that is meant and changes exactly those bytes, or refuses and says why. It reads and writes no files:
//! bytes come in, bytes go out.
//!
//! ```
//! use stele_edit::{Edit, apply, edit_input, plan, unified_diff};
//!
//! // Structured edits: each is found in the original, all apply or none.
//! let file = b"fn main() {\r\n    let x = 1;\r\n}\r\n";
//! let edit = Edit { old: "let x = 1;\n}".into(), new: "let x = 2;\n}".into(), ..Edit::default() };
//! let applied = apply(file, &[edit])?;
//! assert_eq!(applied.bytes, b"fn main() {\r\n    let x = 2;\r\n}\r\n");
//! assert_eq!(applied.healed[0].as_str(), "line_ends");
//!
//! // Any dialect against one file.
//! let input = "<<<<<<< SEARCH\n    let x = 1;\n=======\n    let x = 3;\n>>>>>>> REPLACE\n";
//! assert!(edit_input(Some("src/main.rs"), Some(file), input).is_ok());
//!
//! // A patch over many files, worked out before anything is written.
//! let patch = "*** Begin Patch\n*** Update File: src/main.rs\n-    let x = 1;\n+    let x = 4;\n*** End Patch\n";
//! let changes = plan(patch, &mut |path| (path == "src/main.rs").then(|| file.to_vec()))?;
//! let after = changes[0].after.as_deref().unwrap_or_default();
//! assert!(unified_diff("src/main.rs", file, after).text.contains("+    let x = 4;"));
//!
//! // What is not clear is refused, with a code and a message for the model.
//! let twice = apply(b"a\nb\na\n", &[Edit { old: "a".into(), new: "c".into(), ..Edit::default() }]);
//! assert_eq!(twice.unwrap_err().code, "edit.ambiguous");
//! # Ok::<(), stele_edit::Refusal>(())
//! ```
//!
//! # How a place is found
//!
//! Levels are tried in order, each forgiving one more kind of slip and all those before it: exact bytes, line ends,
//! space at line ends, Unicode look-alikes, a uniform shift of indentation, escape slips, blank lines, and, only with
//! [`Options::fuzzy`], the first and last line with a body that is nearly the same. The first level that finds
//! anything decides, and it must find exactly one place (or [`Edit::all`], or [`Edit::near_line`] picks one).
//! [`Applied::healed`] names what was forgiven. Lines that old and new text share keep the file's own bytes; new lines
//! take the file's line ends and the shift of indentation that was found.
//!
//! # What it never does
//!
//! **Invariant:** no byte outside the reported difference changes: line ends, byte order mark, final newline, encoding,
//! stray bytes. **Invariant:** nothing is decoded twice and nothing in a replacement is expanded, except groups in a
//! `sed` command that was used as an expression. **Invariant:** work and memory are bounded by [`limits`], whatever the
//! input.

mod compare;
mod dialect;
mod diff;
mod edit;
mod find;
mod input;
pub mod limits;
mod once;
mod patch;
mod path;
mod perform;
mod refuse;
mod spot;
mod text;

/// The names by which models call the fields of an edit, the usual one first.
pub mod names {
    pub use crate::dialect::{ALL, NEAR, NEW, OLD, PATH};
}

pub use dialect::Dialect;
pub use diff::{Diff, Version, git_diff, unified_diff};
pub use edit::{Applied, Edit, Healed, OnAmbiguous, Options, Place, apply};
pub use find::wrapping::GUTTER;
pub use input::{edit_input, parse_structured, stale};
pub use once::Once;
pub use patch::{Entry, FileChange, paths, plan};
pub use refuse::{CODES, Refusal};
pub use spot::{Folder, Spot};
