//! Laws of the log: folding, deriving, what is owed, and the record format.

mod catalogue;
mod derive;
mod laws;
mod records;
mod world;
