//! One connection: requests are read, answers are sent in the pieces, at the times and with the faults that were
//! planned for them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::http::{Bad, Framing, Response, read_body, read_head};
use crate::pace::{Pace, ends};
use crate::server::Shared;

/// What happens at a place of an answer, in place of going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// Wait until released, then go on.
    Stall,
    /// Reset the connection.
    Reset,
    /// Close the connection.
    Close,
    /// End the body properly, here.
    Truncate,
}

/// A place in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Before the status line.
    Start,
    /// At an offset of the body.
    Body(usize),
}

/// How an answer is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) pace: Pace,
    pub(crate) at: Option<(Place, Break)>,
    /// True when the body's end is held back until released.
    pub(crate) left_open: bool,
}

/// Whether another request may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Request,
    Nothing,
}

struct Connection {
    stream: BufReader<TcpStream>,
    releases: Arc<Semaphore>,
}

/// Serves a connection until either side closes it.
pub(crate) async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let mut connection = Connection { stream: BufReader::new(stream), releases: Arc::clone(&shared.releases) };
    // An error means that the client is gone: there is nobody to tell.
    while let Ok(Next::Request) = connection.exchange(&shared).await {}
}

impl Connection {
    /// One request and its answer.
    async fn exchange(&mut self, shared: &Shared) -> io::Result<Next> {
        let (head, body) = match self.read().await {
            Ok(request) => request,
            Err(Bad::Gone) => return Ok(Next::Nothing),
            Err(Bad::Status(status, message)) => {
                let response = Response::plain(status, "text/plain", message.as_bytes().to_vec());
                self.send(&response, &Plan::default(), true).await?;
                return Ok(Next::Nothing);
            }
        };
        let closes = head.closes;
        let (response, plan) = shared.answer(head, body);
        let next = self.send(&response, &plan, closes).await?;
        Ok(if closes { Next::Nothing } else { next })
    }

    async fn read(&mut self) -> Result<(crate::http::Head, Vec<u8>), Bad> {
        let head = read_head(&mut self.stream).await?;
        if head.expects_continue() {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let body = read_body(&mut self.stream, &head).await?;
        Ok((head, body))
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes).await
    }

    /// Waits until released; an error when the client leaves before.
    async fn hold(&mut self) -> io::Result<()> {
        let released = self.releases.acquire();
        tokio::pin!(released);
        let permit = tokio::select! {
            permit = &mut released => permit,
            sent = self.stream.fill_buf() => {
                if sent?.is_empty() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                // The client has sent its next request already; it waits.
                released.await
            }
        };
        permit.map_err(io::Error::other)?.forget();
        Ok(())
    }

    /// Does what breaks an answer off, or waits and lets it go on.
    async fn break_off(&mut self, how: Break, framing: Framing) -> io::Result<Option<Next>> {
        match how {
            Break::Stall => {
                self.hold().await?;
                Ok(None)
            }
            Break::Reset => {
                self.stream.get_ref().set_zero_linger()?;
                Ok(Some(Next::Nothing))
            }
            Break::Truncate if framing == Framing::Chunked => {
                self.write(b"0\r\n\r\n").await?;
                Ok(Some(Next::Request))
            }
            Break::Close | Break::Truncate => {
                self.stream.get_mut().shutdown().await?;
                Ok(Some(Next::Nothing))
            }
        }
    }

    async fn send(&mut self, response: &Response, plan: &Plan, closes: bool) -> io::Result<Next> {
        wait(plan.pace.first).await;
        if let Some((Place::Start, how)) = plan.at
            // There is no body yet that could end properly.
            && let Some(next) = self.break_off(how, Framing::Length).await?
        {
            return Ok(next);
        }
        self.write(&response.head(closes)).await?;
        let place = match plan.at {
            Some((Place::Body(offset), how)) => Some((offset.min(response.body.len()), how)),
            _ => None,
        };
        let mut pieces = ends(&plan.pace.chunks, response.body.len(), &response.events);
        if let Some((offset, _)) = place
            && let Err(index) = pieces.binary_search(&offset)
            && offset > 0
        {
            pieces.insert(index, offset);
        }
        let mut sent = 0;
        for end in pieces {
            if let Some((offset, how)) = place
                && offset == sent
                && let Some(next) = self.break_off(how, response.framing).await?
            {
                return Ok(next);
            }
            if sent > 0 {
                wait(plan.pace.between).await;
            }
            let piece = response.body.get(sent..end).unwrap_or_default();
            self.write(&framed(piece, response.framing)).await?;
            sent = end;
        }
        if let Some((offset, how)) = place
            && offset == sent
            && let Some(next) = self.break_off(how, response.framing).await?
        {
            return Ok(next);
        }
        if plan.left_open {
            self.hold().await?;
        }
        if response.framing == Framing::Chunked {
            self.write(b"0\r\n\r\n").await?;
        }
        Ok(Next::Request)
    }
}

fn framed(piece: &[u8], framing: Framing) -> Vec<u8> {
    match framing {
        Framing::Length => piece.to_vec(),
        Framing::Chunked => [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat(),
    }
}

async fn wait(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}
