//! Records exchanges beside the streams: a thread of its own gets copies of what passes, reads prompts and usage from
//! them, and stores. The streams never wait for it; when it cannot keep up, copies are dropped, and it says so.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use hyper::body::Bytes;
use stele_core::{BodyDigest, Hash, Millis, Usage, Wire};

use crate::prompt::read_prompt;
use crate::record::{Ending, Recorded};
use crate::store::Store;
use crate::usage::{UsageReader, unpack_body};

/// Longest request body that is recorded, in bytes, packed and unpacked.
const BODY_MAX: usize = 128 * 1024 * 1024;
/// Bytes of answers that may wait for the thread.
const WAITING_MAX: usize = 16 * 1024 * 1024;

/// Something to tell the person who runs the proxy.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// A model request was recorded.
    Recorded {
        /// Its id in the store.
        id: u64,
        /// The protocol.
        wire: Wire,
        /// The model.
        model: String,
        /// The status of the answer.
        status: Option<u16>,
        /// How the exchange ended.
        ending: Ending,
        /// Bytes of the prompt.
        prompt_bytes: u64,
        /// What was reported.
        usage: Option<Usage>,
    },
    /// A model request was forwarded, but could not be recorded.
    NotRecorded {
        /// Why, and what to do.
        why: String,
    },
    /// A request could not be forwarded; the client got this as a 502.
    Refused {
        /// The stable code.
        code: &'static str,
        /// What happened, and what to do.
        message: String,
    },
}

/// What is known of a request when it begins.
#[derive(Debug)]
pub(crate) struct Began {
    pub(crate) wire: Wire,
    /// The model, where the path names it.
    pub(crate) model: Option<String>,
    pub(crate) base_url: String,
    pub(crate) agent: Option<String>,
    pub(crate) encoding: Option<String>,
}

enum Message {
    Began { exchange: u64, at: Millis, began: Began },
    Body { exchange: u64, bytes: Bytes },
    BodyTooLong { exchange: u64 },
    BodyWhole { exchange: u64 },
    Head { exchange: u64, status: u16, encoding: Option<String>, after_ms: u64 },
    Answer { exchange: u64, bytes: Bytes },
    AnswerLost { exchange: u64 },
    Ended { exchange: u64, ending: Ending, after_ms: u64 },
    Notice(Notice),
}

/// The way to the thread.
#[derive(Clone)]
pub(crate) struct Recorder {
    messages: Sender<Message>,
    waiting: Arc<AtomicUsize>,
    next: Arc<AtomicU64>,
}

impl Recorder {
    /// Starts the thread. It ends, with everything stored, once the last recorder and the last exchange are dropped.
    pub(crate) fn start(
        store: Store,
        on_notice: impl FnMut(Notice) + Send + 'static,
    ) -> std::io::Result<(Self, std::thread::JoinHandle<()>)> {
        let (messages, received) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let worker =
            Worker { store, on_notice: Box::new(on_notice), waiting: Arc::clone(&waiting), open: HashMap::new() };
        let thread = std::thread::Builder::new().name("recorder".to_owned()).spawn(move || worker.run(&received))?;
        Ok((Self { messages, waiting, next: Arc::default() }, thread))
    }

    pub(crate) fn begin(&self, began: Began) -> Exchange {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = Millis(i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
        let exchange = self.next.fetch_add(1, Ordering::Relaxed);
        self.send(Message::Began { exchange, at, began });
        Exchange {
            recorder: self.clone(),
            number: exchange,
            started: Instant::now(),
            copied: AtomicUsize::new(0),
            lost: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }

    pub(crate) fn notice(&self, notice: Notice) {
        self.send(Message::Notice(notice));
    }

    fn send(&self, message: Message) {
        // The thread is there as long as anybody can send; if it panicked, forwarding goes on.
        let _ = self.messages.send(message);
    }
}

/// One exchange that is being recorded. Dropping it unended means that the client left.
pub(crate) struct Exchange {
    recorder: Recorder,
    number: u64,
    started: Instant,
    copied: AtomicUsize,
    lost: AtomicBool,
    ended: AtomicBool,
}

impl Exchange {
    fn after_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn body(&self, bytes: &Bytes) {
        // What is over the limit is forwarded all the same.
        let before = self.copied.fetch_add(bytes.len(), Ordering::Relaxed);
        if before + bytes.len() <= BODY_MAX {
            self.recorder.send(Message::Body { exchange: self.number, bytes: bytes.clone() });
        } else if before <= BODY_MAX {
            self.recorder.send(Message::BodyTooLong { exchange: self.number });
        }
    }

    pub(crate) fn body_whole(&self) {
        self.recorder.send(Message::BodyWhole { exchange: self.number });
    }

    pub(crate) fn head(&self, status: u16, encoding: Option<String>) {
        let after_ms = self.after_ms();
        self.recorder.send(Message::Head { exchange: self.number, status, encoding, after_ms });
    }

    pub(crate) fn answer(&self, bytes: &Bytes) {
        if self.lost.load(Ordering::Relaxed) {
            return;
        }
        if self.recorder.waiting.fetch_add(bytes.len(), Ordering::Relaxed) > WAITING_MAX {
            self.recorder.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
            self.lost.store(true, Ordering::Relaxed);
            self.recorder.send(Message::AnswerLost { exchange: self.number });
            return;
        }
        self.recorder.send(Message::Answer { exchange: self.number, bytes: bytes.clone() });
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self, ending: Ending) {
        if !self.ended.swap(true, Ordering::Relaxed) {
            let after_ms = self.after_ms();
            self.recorder.send(Message::Ended { exchange: self.number, ending, after_ms });
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.end(Ending::ClientLeft);
    }
}

struct Open {
    at: Millis,
    began: Began,
    body: Vec<Bytes>,
    whole: bool,
    too_long: bool,
    status: Option<u16>,
    first_byte_ms: Option<u64>,
    usage: Option<UsageReader>,
    usage_lost: bool,
}

struct Worker {
    store: Store,
    on_notice: Box<dyn FnMut(Notice) + Send>,
    waiting: Arc<AtomicUsize>,
    open: HashMap<u64, Open>,
}

impl Worker {
    fn run(mut self, messages: &Receiver<Message>) {
        while let Ok(message) = messages.recv() {
            self.take(message);
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Began { exchange, at, began } => {
                let open = Open {
                    at,
                    began,
                    body: Vec::new(),
                    whole: false,
                    too_long: false,
                    status: None,
                    first_byte_ms: None,
                    usage: None,
                    usage_lost: false,
                };
                self.open.insert(exchange, open);
            }
            Message::Body { exchange, bytes } => {
                if let Some(open) = self.open.get_mut(&exchange) {
                    open.body.push(bytes);
                }
            }
            Message::BodyTooLong { exchange } => {
                if let Some(open) = self.open.get_mut(&exchange) {
                    open.too_long = true;
                    open.body.clear();
                }
            }
            Message::BodyWhole { exchange } => {
                if let Some(open) = self.open.get_mut(&exchange) {
                    open.whole = true;
                }
            }
            Message::Head { exchange, status, encoding, after_ms } => {
                if let Some(open) = self.open.get_mut(&exchange) {
                    open.status = Some(status);
                    open.first_byte_ms = Some(after_ms);
                    open.usage = Some(UsageReader::new(open.began.wire, &open.began.base_url, encoding.as_deref()));
                }
            }
            Message::Answer { exchange, bytes } => {
                self.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
                if let Some(usage) = self.open.get_mut(&exchange).and_then(|open| open.usage.as_mut()) {
                    usage.feed(&bytes);
                }
            }
            Message::AnswerLost { exchange } => {
                if let Some(open) = self.open.get_mut(&exchange) {
                    open.usage_lost = true;
                    open.usage = None;
                }
            }
            Message::Ended { exchange, ending, after_ms } => {
                if let Some(open) = self.open.remove(&exchange) {
                    self.store(open, ending, after_ms);
                }
            }
            Message::Notice(notice) => (self.on_notice)(notice),
        }
    }

    fn store(&mut self, open: Open, ending: Ending, total_ms: u64) {
        let not_recorded = |why: String| Notice::NotRecorded { why };
        let notice = match self.recorded(open, ending, total_ms) {
            Ok(request) => match self.store.add(&request) {
                Ok(id) => Notice::Recorded {
                    id,
                    wire: request.wire,
                    prompt_bytes: request.prompt_bytes(),
                    model: request.model,
                    status: request.status,
                    ending,
                    usage: request.usage,
                },
                Err(error) => not_recorded(format!("a request was forwarded but not recorded: {error}")),
            },
            Err(why) => not_recorded(why),
        };
        (self.on_notice)(notice);
    }

    fn recorded(&mut self, open: Open, ending: Ending, total_ms: u64) -> Result<Recorded, String> {
        let Open { at, began, body, whole, too_long, status, first_byte_ms, usage, usage_lost } = open;
        if too_long {
            return Err(format!(
                "a request of more than {} MB was forwarded, but is too long to record",
                BODY_MAX >> 20
            ));
        }
        if !whole {
            return Err("a client left in the middle of its request, which is not recorded".to_owned());
        }
        let sent = body.concat();
        let digest = BodyDigest { hash: Hash::of(&sent), len: sent.len() as u64 };
        let packed = began.encoding.as_deref();
        let plain = match packed {
            None => sent,
            Some(encoding) => unpack_body(Some(encoding), &sent, BODY_MAX).ok_or_else(|| {
                format!("a request in content encoding {encoding:?} was forwarded, but cannot be unpacked to record it")
            })?,
        };
        let prompt = read_prompt(began.wire, began.model, &plain)
            .map_err(|why| format!("a request was forwarded, but cannot be recorded: {why}"))?;
        if usage_lost {
            (self.on_notice)(Notice::NotRecorded {
                why: "an answer came faster than it could be read beside the stream: its usage is not known".to_owned(),
            });
        }
        let (usage, miss_reason) = usage.map(UsageReader::finish).unwrap_or_default();
        let usage = usage.map(|usage| usage.written_for(prompt.life_of_marks(began.wire)));
        Ok(Recorded {
            id: 0,
            at,
            first_byte_ms,
            total_ms: Some(total_ms),
            wire: began.wire,
            base_url: began.base_url,
            model: prompt.model,
            agent: began.agent,
            status,
            ending,
            body: digest,
            segments: prompt.segments,
            parameters: prompt.parameters,
            context: prompt.context,
            usage,
            miss_reason,
            cut: None,
            session: None,
        })
    }
}
