//! The server: a thread with a small runtime, stopped when it is dropped.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use stele_core::Wire;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};

use crate::answer::State;
use crate::behaviour::Behaviour;
use crate::cache::Counted;
use crate::connection::serve;

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Received {
    /// The method.
    pub method: String,
    /// Path and query, as sent.
    pub path: String,
    /// The headers in their order; names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte.
    pub body: Arc<[u8]>,
    /// The wire; absent when it was no model request.
    pub wire: Option<Wire>,
    /// The step that was played, from 0; absent when none was.
    pub step: Option<usize>,
    /// Which request for this step it was, from 1; 0 when no step was played.
    pub attempt: u32,
    /// The status of the answer.
    pub status: u16,
    /// The tokens as the vendor would count them, whatever a fault made of the report; absent when the model did not
    /// answer.
    pub counted: Option<Counted>,
    /// When it was there, whole.
    pub at: Instant,
}

impl Received {
    /// The first header of this name, in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; `null` when it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// What the connections share.
pub(crate) struct Shared {
    pub(crate) behaviour: Behaviour,
    pub(crate) releases: Arc<Semaphore>,
    state: Mutex<State>,
    received: Mutex<Vec<Received>>,
    arrived: Condvar,
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Keeps a request, and wakes who waits for it.
    pub(crate) fn keep(&self, received: Received) {
        lock(&self.received).push(received);
        self.arrived.notify_all();
    }
}

/// A thread that panicked while it held the lock has left whole values behind: they are only pushed and counted.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A scripted model server on a port of its own on 127.0.0.1. Dropping it closes all connections.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server. It can be called when this returns.
    ///
    /// # Errors
    ///
    /// When no local port or no thread can be had.
    pub fn start(behaviour: impl Into<Behaviour>) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let shared = Arc::new(Shared {
            behaviour: behaviour.into(),
            releases: Arc::new(Semaphore::new(0)),
            state: Mutex::default(),
            received: Mutex::default(),
            arrived: Condvar::new(),
        });
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("scripted-model".to_owned()).spawn(move || {
            runtime.block_on(async move {
                tokio::select! {
                    // Dropping the sender stops it too.
                    _ = stopped => {}
                    () = accept(listener, serving) => {}
                }
            });
        })?;
        Ok(Self { address, shared, stop: Some(stop), thread: Some(thread) })
    }

    /// What the vendor's own SDK takes as the base URL: with `/v1` on the OpenAI wires, without a path on the others.
    #[must_use]
    pub fn base_url(&self, wire: Wire) -> String {
        match wire {
            Wire::AnthropicMessages | Wire::Gemini => format!("http://{}", self.address),
            Wire::OpenaiResponses | Wire::OpenaiChat => format!("http://{}/v1", self.address),
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every HTTP request that arrived whole, in the order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<Received> {
        lock(&self.shared.received).clone()
    }

    /// Waits until `count` requests have arrived, and returns the last of them; nothing when the time is over first.
    #[must_use]
    pub fn wait_for(&self, count: usize, time: Duration) -> Option<Received> {
        let received = lock(&self.shared.received);
        let waited = self.shared.arrived.wait_timeout_while(received, time, |received| received.len() < count);
        let (received, _) = waited.unwrap_or_else(PoisonError::into_inner);
        received.get(count.checked_sub(1)?).cloned()
    }

    /// Lets one answer go on that is stalled or left open, now or as soon as there is one.
    pub fn release(&self) {
        self.shared.releases.add_permits(1);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in a test's own function has been reported where it happened.
            let _ = thread.join();
        }
    }
}

async fn accept(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
            // Out of descriptors, or the client left while it was let in: the others go on.
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}
