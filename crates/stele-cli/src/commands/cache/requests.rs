//! The requests of one of our own sessions, taken from its log in the form in which the analyses take them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use stele_agent::Rebuilt;
use stele_core::{CacheTtl, Event, Millis, Price, Record, Reuse, Seq, SessionId, Usage, Wire};
use stele_proxy::{Context, Cut, Ending, Mark, Recorded, Segment, read_prompt};
use stele_store::Store;

use crate::error::Result;

/// Requests of a session, by the numbers of their records.
#[derive(Debug, Default)]
pub struct Requests {
    pub requests: Vec<Recorded>,
    /// What each route cost when its request was sent.
    prices: BTreeMap<u64, Option<Price>>,
    /// Requests that an encoder wrote which is not in this build.
    pub left_out: u64,
    /// Results that were pointed at instead of sent again: no part of the provider's cache.
    pub reused: Vec<Reused>,
}

/// A result that was pointed at.
#[derive(Debug)]
pub struct Reused {
    /// Its record.
    pub id: u64,
    pub at: Millis,
    pub reuse: Reuse,
}

impl Requests {
    /// Reads a session's log.
    pub fn of(store: &Store, session: &SessionId) -> Result<Self> {
        let mut reader = Reader { session: session.to_string(), ..Reader::default() };
        stele_agent::replay(store, session, &mut |record, rebuilt| reader.take(record, rebuilt))?;
        Ok(reader.found)
    }

    /// All results that were pointed at.
    pub fn local_reuse(&self) -> Reuse {
        total(self.reused.iter().map(|part| part.reuse))
    }

    /// What a request's route cost when it was sent.
    pub fn price(&self, request: &Recorded) -> Option<Price> {
        self.prices.get(&request.id).copied().flatten()
    }

    /// What keeps requests from having a price, and where they get one.
    pub fn unpriced(&self) -> Vec<String> {
        let mut reasons: Vec<String> = self
            .requests
            .iter()
            .filter_map(|request| {
                let (usage, model) = (request.usage?, &request.model);
                match self.price(request) {
                    None => Some(format!("{model} has no known price (`prices` in config.toml)")),
                    Some(price) => price
                        .missing_for(&usage)
                        .map(|key| format!("the price of {model} has no {key} (`prices` in config.toml)")),
                }
            })
            .collect();
        reasons.sort();
        reasons.dedup();
        reasons
    }
}

#[derive(Default)]
struct Reader {
    session: String,
    found: Requests,
    /// The cut before the next request that is answered.
    cut: Option<Cut>,
    /// The last request of the open epoch.
    before: Option<Before>,
    /// True while the last request is not answered.
    open: bool,
}

/// What the next request of an epoch begins with.
struct Before {
    segments: Vec<Segment>,
    parameters: Map<String, Value>,
    items: usize,
}

impl Reader {
    fn take(&mut self, record: &Record, rebuilt: Option<Rebuilt<'_>>) {
        let mut reuse = Reuse::default();
        reuse.fold(&record.event);
        if !reuse.is_none() {
            self.found.reused.push(Reused { id: record.seq.0, at: record.ts, reuse });
        }
        match &record.event {
            Event::EpochOpened(opened) => {
                self.cut = (opened.n > 1).then(|| Cut { reason: opened.reason.clone(), cost: opened.cost });
                self.before = None;
            }
            Event::RequestSent(_) => match rebuilt {
                Some(rebuilt) => self.sent(record, &rebuilt),
                None => {
                    self.found.left_out += 1;
                    self.open = false;
                }
            },
            Event::AssistantMessage(message) => {
                let ending = if message.interrupted { Ending::ClientLeft } else { Ending::Whole };
                self.answered(record.ts, message.usage, ending, !message.interrupted);
                let raw = message.usage_raw.as_ref().and_then(|raw| stele_proxy::miss_reason(raw.as_str()));
                if let (Some(reason), Some(request)) = (raw, self.found.requests.last_mut()) {
                    request.miss_reason = Some(reason);
                }
            }
            Event::RequestFailed(failed) => {
                let ending = if failed.failure.output { Ending::ServerBroke } else { Ending::Unreachable };
                self.answered(record.ts, failed.failure.usage, ending, failed.failure.output);
            }
            _ => {}
        }
    }

    fn sent(&mut self, record: &Record, rebuilt: &Rebuilt<'_>) {
        let Rebuilt { sent, config, encoder, .. } = rebuilt;
        let items = encoder.items();
        let grown = self.before.take().and_then(|before| {
            let mut segments = before.segments;
            segments.extend(messages(config.wire, &encoder.messages_from(before.items))?);
            (segments.len() == items.len()).then_some((segments, before.parameters))
        });
        let (mut segments, parameters) = grown.unwrap_or_else(|| {
            let prompt = read_prompt(config.wire, Some(config.model.clone()), &encoder.body().to_vec());
            prompt.map(|prompt| (prompt.segments, prompt.parameters)).unwrap_or_default()
        });
        // The log knows more of a header than its bytes tell.
        if segments.len() == items.len() {
            for (at, (segment, item)) in segments.iter_mut().zip(items).enumerate() {
                segment.zone = item.zone;
                segment.label = label(item);
                let hour = encoder.mark_ttl(at) == CacheTtl::Hour;
                let mark = if hour { Mark::Hour } else { Mark::FiveMinutes };
                segment.mark = sent.marks.contains(&(at as u64)).then_some(mark);
            }
        }
        self.before = Some(Before { segments: segments.clone(), parameters: parameters.clone(), items: items.len() });
        self.found.prices.insert(record.seq.0, rebuilt.price);
        self.found.requests.push(Recorded {
            id: record.seq.0,
            at: record.ts,
            first_byte_ms: None,
            total_ms: None,
            wire: config.wire,
            base_url: config.base_url.clone(),
            model: config.model.clone(),
            agent: Some("stele".to_owned()),
            status: None,
            ending: Ending::Unreachable,
            body: sent.body,
            segments,
            parameters,
            context: Context::Whole,
            usage: None,
            miss_reason: None,
            cut: self.cut.clone(),
            session: Some(self.session.clone()),
        });
        self.open = true;
    }

    fn answered(&mut self, at: Millis, usage: Option<Usage>, ending: Ending, output: bool) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        let usage = usage.filter(|usage| !usage.is_unknown());
        if let Some(request) = self.found.requests.last_mut() {
            request.total_ms = u64::try_from(at.0 - request.at.0).ok();
            request.ending = ending;
            request.usage = usage;
            if output || usage.is_some() {
                request.status = Some(200);
                self.cut = None;
            }
        }
    }
}

fn label(item: &stele_provider::Item) -> String {
    match item.zone {
        stele_core::Zone::Tools => format!("tool[{}]", item.label()),
        stele_core::Zone::Preface => format!("preface[{}]", item.label()),
        stele_core::Zone::System | stele_core::Zone::History => item.label(),
    }
}

/// Messages that were added to a request, as segments.
fn messages(wire: Wire, list: &[u8]) -> Option<Vec<Segment>> {
    let field = match wire {
        Wire::AnthropicMessages | Wire::OpenaiChat => "messages",
        Wire::OpenaiResponses => "input",
        Wire::Gemini => "contents",
    };
    let body = [format!("{{\"{field}\":[").as_bytes(), list, b"]}"].concat();
    read_prompt(wire, None, &body).ok().map(|prompt| prompt.segments)
}

/// All of it.
pub fn total(reused: impl IntoIterator<Item = Reuse>) -> Reuse {
    reused.into_iter().fold(Reuse::default(), |mut sum, reuse| {
        sum.times += reuse.times;
        sum.bytes = sum.bytes.saturating_add(reuse.bytes);
        sum
    })
}

/// Records that a session made itself, and not the one it was forked from.
pub fn own(parent: Option<Seq>) -> impl Fn(u64) -> bool {
    move |id| parent.is_none_or(|parent| id > parent.0)
}
