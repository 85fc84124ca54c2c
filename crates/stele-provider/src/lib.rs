//! The four wires: encode, decode, usage, errors, model catalogue and prices.

mod catalogue;
mod fault;
mod http;
mod local;
mod proxy;
mod route;
mod secret;

pub use catalogue::{ListPrice, Model, list_price, model, models};
pub use http::{Client, ClientSettings};
pub use local::{Found, probe, probe_local};
pub use proxy::Proxies;
pub use route::{
    CacheConfig, KeySource, LocalServer, Marks, Route, RouteConfig, RouteError, Vendor, dialect, local_servers, routes,
    vendors,
};
pub use secret::Secret;

fn revision(wire: stele_core::Wire) -> String {
    format!("{wire}/1")
}
