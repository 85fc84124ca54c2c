//! Finds model servers on this machine. Nothing is asked unless `doctor` runs or there is no route.

use std::time::Duration;

use serde::Deserialize;
use stele_core::Wire;

use crate::route::{LocalServer, Route, local_servers};
use crate::{Client, ClientSettings};

/// How long a server on this machine may take to name its models.
const PROBE_LIMIT: Duration = Duration::from_millis(300);

/// Bytes of the list that are read.
const LIST_MAX: usize = 1024 * 1024;

/// A server that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What usually runs at this port.
    pub name: String,
    /// Its base URL.
    pub base_url: String,
    /// Its models, as it names them.
    pub models: Vec<String>,
}

impl Found {
    /// The route to its first model, when it has one.
    #[must_use]
    pub fn route(&self) -> Option<Route> {
        Some(Route::new("local", Wire::OpenaiChat, &self.base_url, self.models.first()?))
    }
}

#[derive(Deserialize)]
struct List {
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
}

/// Asks the servers on their usual ports for their models, all at once, each for at most 300 ms.
pub async fn probe_local() -> Vec<Found> {
    probe(local_servers(), PROBE_LIMIT).await
}

/// Asks these servers, in this order of the answer.
pub async fn probe(servers: &[LocalServer], limit: Duration) -> Vec<Found> {
    let client = Client::new(ClientSettings { connect: limit, idle: limit, ..ClientSettings::default() });
    let client = std::sync::Arc::new(client);
    let tasks: Vec<_> = servers
        .iter()
        .cloned()
        .map(|server| {
            let client = std::sync::Arc::clone(&client);
            tokio::spawn(async move { tokio::time::timeout(limit, ask(&client, server)).await.ok().flatten() })
        })
        .collect();
    let mut found = Vec::new();
    for task in tasks {
        found.extend(task.await.ok().flatten());
    }
    found
}

async fn ask(client: &Client, server: LocalServer) -> Option<Found> {
    let body = client.fetch(&format!("{}/models", server.base_url), LIST_MAX).await?;
    let list: List = stele_core::parse_lenient(&body).ok()?;
    let models = list.data.into_iter().map(|entry| entry.id).collect();
    Some(Found { name: server.name, base_url: server.base_url, models })
}
