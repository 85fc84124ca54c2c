//! A scripted model server on a local port: what stands in for a provider in tests and in the demonstration.
//!
//! It speaks four wires on one port (Anthropic Messages, OpenAI Responses, OpenAI Chat Completions, Gemini), streaming
//! and not, over a small HTTP/1.1 of its own. What the model says is a [`Script`], or a function of the request. It
//! refuses what the vendors refuse, counts tokens and prompt-cache reads by the vendors' rules, keeps every request
//! byte for byte, and breaks on demand ([`Fault`]).
//!
//! ```no_run
//! use serde_json::json;
//! use stele_core::Wire;
//! use stele_testkit::{Say, Script, Server};
//!
//! # fn main() -> std::io::Result<()> {
//! let script = Script::new([Say::call("read", &json!({"path": "README.md"})), Say::text("It is a library.")]);
//! let server = Server::start(script)?;
//! let base_url = server.base_url(Wire::AnthropicMessages);
//! // … run an agent against `base_url` …
//! for received in server.requests() {
//!     assert_eq!(received.status, 200);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! **Invariant:** it shares no code with the encoders and decoders of the product; of the shared vocabulary it takes
//! the names of the wires and of the stop reasons. What a request holds is read here from its JSON, so that it can
//! be used as a judge.
//!
//! **Invariant:** a script's step is read from the request's history, not from the server's state, so that an agent
//! may be killed and started again, and the server too.

mod answer;
mod behaviour;
mod cache;
mod connection;
mod deed;
mod fault;
#[cfg(feature = "terminal")]
pub mod fifty;
mod http;
mod id;
mod killing;
mod pace;
mod parsed;
pub mod prompt;
mod refusal;
mod script;
mod server;
mod strict;
#[cfg(feature = "terminal")]
mod terminal;
mod wire;

pub use behaviour::{Behaviour, Reply};
pub use cache::{Counted, cache_minimum};
pub use deed::{Deed, Deeds, is_aside};
pub use fault::{Cut, Fault, FaultKind};
pub use killing::{Kills, Left, remove_leftovers};
pub use pace::{Chunks, Pace};
pub use parsed::{Exchange, ParsedCall, ParsedMessage, ParsedRequest, ParsedResult, Role};
pub use script::{Part, Say, SayCall, Script};
pub use server::{Received, Server};
pub use strict::Wording;
#[cfg(feature = "terminal")]
pub use terminal::Terminal;
