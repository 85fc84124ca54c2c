//! The provider's prompt cache, request by request: what should have been read, and what was reported.

use serde::Serialize;

use crate::{Event, Millis, Record, Reuse, Usage};

/// How an endpoint's cache works, as far as it bounds what can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CacheRules {
    /// Fewest tokens that are cached at all.
    pub minimum: u64,
    /// Reads come in multiples of this many tokens.
    pub granularity: u64,
    /// How long an entry lives after its last use, in milliseconds; absent when it is not known.
    pub lifetime_ms: Option<u64>,
}

/// Every request of a session with its cache figures.
#[derive(Clone, Debug, Serialize)]
pub struct CacheReport {
    /// The rules that the predictions follow.
    pub rules: CacheRules,
    /// The requests that were answered, in order.
    pub requests: Vec<CacheLine>,
    /// Tokens of all of them.
    pub usage: Usage,
    /// Results that were pointed at instead of sent again: no part of the provider's cache.
    #[serde(skip_serializing_if = "Reuse::is_none")]
    pub local_reuse: Reuse,
    #[serde(skip)]
    open: Option<Open>,
    #[serde(skip)]
    cut: Option<String>,
    #[serde(skip)]
    last_sent: Option<Millis>,
    #[serde(skip)]
    broken: bool,
}

/// A request that is not answered yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    step: u64,
    at: Millis,
    since_last_ms: Option<u64>,
    shared: u64,
    len: u64,
}

/// One answered request.
#[derive(Clone, Debug, Serialize)]
pub struct CacheLine {
    /// Its step.
    pub step: u64,
    /// Bytes of its prompt.
    pub prompt_bytes: u64,
    /// Bytes it shares with the request before.
    pub shared_bytes: u64,
    /// Tokens that should have been read; absent when the input was not reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<u64>,
    /// Tokens the provider reported as read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<u64>,
    /// All input tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// What to make of it.
    pub verdict: CacheVerdict,
}

/// What to make of a request's cache figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CacheVerdict {
    /// The session's first request: nothing of this session could be read.
    First,
    /// What was predicted was read, or more.
    Hit,
    /// Less was read than predicted.
    Partial,
    /// The shared part is shorter than the endpoint caches.
    BelowMinimum,
    /// The entry had outlived its lifetime.
    Expired,
    /// A declared cut stands before this request.
    Cut {
        /// Its reason.
        reason: String,
    },
    /// Inside an epoch an item changed: a defect.
    Broken,
    /// The provider reported no cached tokens.
    NotReported,
    /// Nothing known explains it.
    Unexplained,
}

impl CacheReport {
    /// A report under an endpoint's rules.
    #[must_use]
    pub fn new(rules: CacheRules) -> Self {
        Self {
            rules,
            requests: Vec::new(),
            usage: Usage::default(),
            local_reuse: Reuse::default(),
            open: None,
            cut: None,
            last_sent: None,
            broken: false,
        }
    }

    /// Folds the next record in.
    pub fn fold(&mut self, record: &Record) {
        self.local_reuse.fold(&record.event);
        match &record.event {
            Event::EpochOpened(opened) => {
                self.cut = (opened.n > 1).then(|| opened.reason.name().to_owned());
            }
            Event::PrefixBroken(_) => self.broken = true,
            Event::RequestSent(sent) => {
                let since = self.last_sent.and_then(|last| u64::try_from(record.ts.0 - last.0).ok());
                self.last_sent = Some(record.ts);
                self.open = Some(Open {
                    step: record.step.unwrap_or(0),
                    at: record.ts,
                    since_last_ms: since,
                    shared: sent.prompt.shared,
                    len: sent.prompt.len,
                });
            }
            Event::AssistantMessage(message) if !message.interrupted => {
                if let Some(open) = self.open.take() {
                    let usage = message.usage.unwrap_or_default();
                    self.usage.add(&usage);
                    self.close(open, &usage);
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, open: Open, usage: &Usage) {
        let input = usage.input();
        // The provider's own count tells how many bytes a token of this prompt has.
        let predicted = input.and_then(|tokens| {
            let read = u128::from(open.shared) * u128::from(tokens);
            u64::try_from(read.checked_div(u128::from(open.len))?).ok()
        });
        let predicted = predicted.map(|tokens| {
            let whole = tokens / self.rules.granularity.max(1) * self.rules.granularity.max(1);
            if whole < self.rules.minimum { 0 } else { whole }
        });
        let cut = self.cut.take();
        let broken = std::mem::take(&mut self.broken);
        let verdict = match (predicted, usage.cache_read) {
            _ if broken => CacheVerdict::Broken,
            _ if self.requests.is_empty() => CacheVerdict::First,
            (_, None) | (None, _) => CacheVerdict::NotReported,
            (Some(predicted), Some(reported)) if reported > 0 && self.is_near(reported, predicted) => CacheVerdict::Hit,
            _ if cut.is_some() => CacheVerdict::Cut { reason: cut.unwrap_or_default() },
            (Some(0), Some(_)) => CacheVerdict::BelowMinimum,
            _ if self.outlived(open.since_last_ms) => CacheVerdict::Expired,
            (_, Some(0)) => CacheVerdict::Unexplained,
            _ => CacheVerdict::Partial,
        };
        self.last_sent = Some(open.at);
        self.requests.push(CacheLine {
            step: open.step,
            prompt_bytes: open.len,
            shared_bytes: open.shared,
            predicted,
            reported: usage.cache_read,
            input,
            verdict,
        });
    }

    /// A prediction is an estimate: 2 % and one unit of the endpoint's granularity are its error.
    fn is_near(&self, reported: u64, predicted: u64) -> bool {
        reported + self.rules.granularity + predicted / 50 >= predicted
    }

    fn outlived(&self, since_last_ms: Option<u64>) -> bool {
        matches!((since_last_ms, self.rules.lifetime_ms), (Some(since), Some(lifetime)) if since > lifetime)
    }
}
