//! Bodies on their way through: each frame goes on as it comes, and a copy to the recorder.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};

use crate::record::Ending;
use crate::recorder::Exchange;

/// A request's body.
pub(crate) struct RequestBody {
    inner: Incoming,
    exchange: Option<Arc<Exchange>>,
    client_left: Arc<AtomicBool>,
}

impl RequestBody {
    pub(crate) fn new(inner: Incoming, exchange: Option<Arc<Exchange>>) -> Self {
        if inner.is_end_stream()
            && let Some(exchange) = &exchange
        {
            exchange.body_whole();
        }
        Self { inner, exchange, client_left: Arc::default() }
    }

    /// True once the client has broken off in the middle of it.
    pub(crate) fn client_left(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.client_left)
    }

    /// Reads what is left of it.
    pub(crate) async fn drain(mut self) {
        while let Some(Ok(_)) = poll_fn(|cx| Pin::new(&mut self).poll_frame(cx)).await {}
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if let Poll::Ready(Some(Err(_))) = &polled {
            self.client_left.store(true, Ordering::Relaxed);
        }
        if let Some(exchange) = &self.exchange {
            if let Poll::Ready(Some(Ok(frame))) = &polled
                && let Some(bytes) = frame.data_ref()
            {
                exchange.body(bytes);
            }
            let ended = match &polled {
                Poll::Ready(None) => true,
                Poll::Ready(Some(Ok(_))) => self.inner.is_end_stream(),
                Poll::Ready(Some(Err(_))) => {
                    exchange.end(Ending::ClientLeft);
                    false
                }
                Poll::Pending => false,
            };
            if ended {
                exchange.body_whole();
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The body of what the client is answered.
pub(crate) enum AnswerBody {
    /// The server's, as it comes.
    Forwarded(Forwarded),
    /// The proxy's own words.
    Own(Option<Bytes>),
}

/// A server's answer on its way to the client.
pub(crate) struct Forwarded {
    inner: Incoming,
    exchange: Option<Arc<Exchange>>,
    flushes: Arc<Flushes>,
    /// Flushes of the client's connection when the last frame was handed over.
    handed: u64,
    /// The server broke off; it is passed on once what came before has been written.
    broken: Option<hyper::Error>,
}

impl Forwarded {
    pub(crate) fn new(inner: Incoming, exchange: Option<Arc<Exchange>>, flushes: Arc<Flushes>) -> Self {
        let handed = flushes.count();
        Self { inner, exchange, flushes, handed, broken: None }
    }

    fn end(&self, ending: Ending) {
        if let Some(exchange) = &self.exchange {
            exchange.end(ending);
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let forwarded = match &mut *self {
            Self::Own(bytes) => return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Forwarded(forwarded) => forwarded,
        };
        if forwarded.broken.is_none() {
            match Pin::new(&mut forwarded.inner).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => {
                    if let (Some(exchange), Some(bytes)) = (&forwarded.exchange, frame.data_ref()) {
                        exchange.answer(bytes);
                    }
                    forwarded.handed = forwarded.flushes.count();
                    return Poll::Ready(Some(Ok(frame)));
                }
                Poll::Ready(None) => {
                    forwarded.end(Ending::Whole);
                    return Poll::Ready(None);
                }
                Poll::Ready(Some(Err(error))) => {
                    forwarded.end(Ending::ServerBroke);
                    forwarded.broken = Some(error);
                }
            }
        }
        // An error makes hyper close at once, and what it had not written yet would be lost to the client.
        if forwarded.flushes.is_past(forwarded.handed, cx.waker()) {
            Poll::Ready(forwarded.broken.take().map(Err))
        } else {
            Poll::Pending
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(bytes) => bytes.is_none(),
            Self::Forwarded(forwarded) => forwarded.broken.is_none() && forwarded.inner.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Forwarded(forwarded) => forwarded.inner.size_hint(),
        }
    }
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        // A body of a known length is dropped with its last byte, without being asked for its end.
        if self.inner.is_end_stream() {
            self.end(Ending::Whole);
        }
    }
}

/// Counts how often everything that was given to a connection has been written.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    count: AtomicU64,
    waiting: Mutex<Option<Waker>>,
}

impl Flushes {
    fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Whether there was a flush since; else the waker is woken by the next one.
    fn is_past(&self, count: u64, waker: &Waker) -> bool {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        self.count() > count
    }

    fn add(&self) {
        self.count.fetch_add(1, Ordering::Release);
        if let Some(waker) = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take() {
            waker.wake();
        }
    }
}

/// A connection that counts its flushes. hyper asks for one only when its own buffer is empty.
pub(crate) struct Counted<I> {
    inner: I,
    flushes: Arc<Flushes>,
}

impl<I> Counted<I> {
    pub(crate) fn new(inner: I, flushes: Arc<Flushes>) -> Self {
        Self { inner, flushes }
    }
}

impl<I: Read + Unpin> Read for Counted<I> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<I: Write + Unpin> Write for Counted<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        if let Poll::Ready(Ok(())) = flushed {
            self.flushes.add();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }
}
