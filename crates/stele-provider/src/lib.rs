//! The four wires: encode, decode, usage, errors, transport, routes, model catalogue and prices.
//!
//! [`Encoder`] turns header, configuration and messages into the bytes of a request, one message after the other;
//! [`Decoder`] turns the bytes of an answer into [`Delta`]s and, in the end, an [`Answer`]. Both are pure. [`Client`]
//! carries the bytes of one attempt there and back, and [`Route`] says where to. What is known of vendors, models,
//! prices and dialects is data, in the `.toml` files beside the code.
//!
//! **Invariant:** a request is written from typed values and raw text, never from a tree of JSON values, and what a
//! vendor's JSON looks like is known in `encode` and `decode` only.

mod cache;
mod catalogue;
mod decode;
mod encode;
mod fault;
mod http;
mod ledger;
mod local;
mod proxy;
mod route;
mod secret;
mod sse;
pub mod trial;

pub use cache::{CacheRules, Mechanism, WriteBucket, cache_rule_names, cache_rules, cache_rules_named};
pub use catalogue::{ListPrice, Model, list_price, model, models};
pub use decode::{Answer, AnswerBlock, Decoder, Delta, http_failure, without_call_id};
pub use encode::{Body, Encoder, Item, revision};
pub use http::{Client, ClientSettings};
pub use ledger::{
    Capability, Endpoint, Evidence, Finding, How, Ledger, LedgerError, LedgerFile, Lesson, Reading, Standing, Status,
    seen,
};
pub use local::{Found, probe, probe_local};
pub use proxy::{Hop, Proxies};
pub use route::{
    CacheConfig, KeySource, LocalServer, Marks, Route, RouteConfig, RouteError, Vendor, dialect, local_servers,
    own_host, routes, vendors,
};
pub use secret::Secret;
