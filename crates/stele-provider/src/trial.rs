//! A trial of an endpoint: two or three small requests that differ where it matters, and what their answers show.
//!
//! A prefix that is long enough to be cached goes out twice. Where the wire has a field that goes out by evidence
//! only, the first request leaves it out and the later two carry it. What counts is what the answers report: a field
//! that was merely accepted proves nothing.

use stele_core::{
    Config, Failure, FailureCode, Header, Message, Micros, OptionalField, Parameters, Price, SessionId, Stop,
    SystemBlock, Usage, UserBlock, Wire,
};

use crate::ledger::{Capability, Finding, Ledger, Lesson, seen};
use crate::{Answer, Client, Encoder, Marks, Route, catalogue};

/// Most tokens of a trial's answer: the fewest that every vendor accepts.
const OUTPUT: u64 = 16;

/// Bytes of the prefix for each token of the endpoint's minimum: more than English has, so that it is surely reached.
const BYTES_PER_TOKEN: u64 = 5;

/// A rough number of tokens for a price that is told before anything is sent; English has more bytes a token.
const ROUGH_BYTES_PER_TOKEN: u64 = 4;

/// What a trial will send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialPlan {
    /// How many requests are answered, at most.
    pub requests: u64,
    /// Roughly how many tokens each has.
    pub tokens: u64,
    /// Most tokens of each answer.
    pub output: u64,
    /// What all of them cost at most; absent when the model is unpriced.
    pub cost: Option<Micros>,
}

/// One request of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialRequest {
    /// The optional fields that it carried.
    pub fields: Vec<OptionalField>,
    /// What its answer reported, or how it failed.
    pub outcome: Result<Option<Usage>, Failure>,
}

/// What a trial has shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trial {
    /// What was sent, in order.
    pub requests: Vec<TrialRequest>,
    /// What it taught.
    pub lessons: Vec<Lesson>,
    /// Why it ended before its last request, if it did.
    pub failure: Option<Failure>,
}

impl Trial {
    /// What the answers cost; absent when that is not known in full.
    #[must_use]
    pub fn cost(&self, price: Option<Price>) -> Option<Micros> {
        let mut sum = 0_u64;
        for request in &self.requests {
            match &request.outcome {
                Ok(usage) => sum = sum.saturating_add(price?.of(&(*usage)?)?.0),
                Err(failure) if failure.output => return None,
                // A request that was refused is not billed.
                Err(_) => {}
            }
        }
        Some(Micros(sum))
    }
}

/// What a trial of this route would send, and cost at most.
#[must_use]
pub fn plan(route: &Route) -> TrialPlan {
    let requests = if has_key(route.wire) { 3 } else { 2 };
    let tokens = prefix_bytes(route) / ROUGH_BYTES_PER_TOKEN + 64;
    let each = route.price().and_then(|price| price.at_most(tokens, OUTPUT));
    let cost = each.map(|each| Micros(each.0.saturating_mul(requests)));
    TrialPlan { requests, tokens, output: OUTPUT, cost }
}

/// Sends a trial's requests, one after the other. `nonce` makes the prefix one that no cache can hold yet.
pub async fn run(client: &Client, route: &Route, nonce: &SessionId) -> Trial {
    let mut trial = Trial::default();
    let mut config = configuration(route, nonce);
    let key = config.cache.key.take();
    let Some(first) = trial.ask(client, route, &mut config, nonce).await else { return trial };
    let mut answered = vec![first];
    if has_key(route.wire) {
        config.cache.key = key;
        let Some(second) = trial.ask(client, route, &mut config, nonce).await else { return trial };
        answered.push(second);
    }
    let Some(last) = trial.ask(client, route, &mut config, nonce).await else { return trial };
    answered.push(last);
    trial.judge(&config, &answered);
    trial
}

impl Trial {
    /// Sends a request until no field of it is refused any more; `None` when it fails for another reason.
    async fn ask(&mut self, client: &Client, route: &Route, config: &mut Config, nonce: &SessionId) -> Option<Answer> {
        loop {
            let fields = config.optional_fields();
            let outcome = attempt(client, route, config, nonce).await;
            let reported = outcome.as_ref().map(|answer| answer.usage).map_err(Clone::clone);
            self.requests.push(TrialRequest { fields: fields.clone(), outcome: reported });
            let failure = match outcome {
                Ok(answer) => {
                    for lesson in seen(config, &answer) {
                        if !self.knows(lesson.capability) {
                            self.lessons.push(lesson);
                        }
                    }
                    return Some(answer);
                }
                Err(failure) => failure,
            };
            let kept: Vec<_> = fields.iter().copied().filter(|field| !failure.refused.contains(field)).collect();
            for field in fields.iter().filter(|field| failure.refused.contains(field)) {
                let says = failure.message.as_str().to_owned();
                self.lessons.push(Lesson { capability: (*field).into(), finding: Finding::Refused, says });
            }
            if kept.len() == fields.len() || failure.code != FailureCode::InvalidRequest {
                self.failure = Some(failure);
                return None;
            }
            config.keep_fields(&kept);
        }
    }

    fn knows(&self, capability: Capability) -> bool {
        self.lessons.iter().any(|known| known.capability == capability)
    }

    /// What the answers show together: which fields had an effect, and what is not reported.
    fn judge(&mut self, config: &Config, answers: &[Answer]) {
        let last = answers.last().and_then(|answer| answer.usage).unwrap_or_default();
        let read = match last.cache_read {
            Some(0) => "the repeated prefix was not read from a cache".to_owned(),
            Some(read) => format!("{read} tokens of the repeated prefix were read from the cache"),
            None => "no figure for cached tokens is reported".to_owned(),
        };
        if config.sends(OptionalField::PromptCacheKey) {
            let finding = if last.cache_read.is_some_and(|read| read > 0) { Finding::Works } else { Finding::NoEffect };
            let says = format!("sent with it twice: {read}");
            self.lessons.push(Lesson { capability: Capability::PromptCacheKey, finding, says });
        }
        let mut nothing = |capability, says: &str| {
            if !self.knows(capability) {
                self.lessons.push(Lesson { capability, finding: Finding::NoEffect, says: says.to_owned() });
            }
        };
        if config.sends(OptionalField::CacheControl) {
            nothing(Capability::CacheControl, &format!("taken, without effect: {read}"));
        }
        if config.sends(OptionalField::StreamOptions) {
            nothing(Capability::StreamOptions, "taken, without effect: the stream reports no tokens");
        }
        if config.sends(OptionalField::Store) {
            nothing(Capability::Store, "taken; whether it is heeded cannot be seen");
        }
        nothing(Capability::Usage, "no tokens are reported");
        nothing(Capability::CacheRead, &read);
        if Capability::of(config.wire).any(|capability| capability == Capability::CacheWrite) {
            let says = match answers.iter().filter_map(|answer| answer.usage?.writes()).max() {
                Some(_) => "nothing was written to the cache, as far as is reported",
                None => "no figure for tokens written is reported",
            };
            nothing(Capability::CacheWrite, says);
        }
    }
}

async fn attempt(client: &Client, route: &Route, config: &Config, nonce: &SessionId) -> Result<Answer, Failure> {
    let header = Header { system: vec![prefix(route, nonce)], ..Header::default() };
    let mut encoder = Encoder::new(&header, config)?;
    encoder.push(&Message::User(vec![UserBlock::Text("Answer with the word OK.".into())]));
    let credential = route.credential(config)?;
    match client.send(config, credential.as_ref(), encoder.body().pieces, &mut |_| ()).await {
        // An answer that is cut at its few tokens may have no text yet; what it reports counts all the same.
        Err(failure) if failure.usage.is_some() && failure.code == FailureCode::Empty => {
            Ok(Answer { blocks: Vec::new(), stop: Stop::Cut, usage: failure.usage, usage_raw: None })
        }
        outcome => outcome,
    }
}

/// The configuration of the requests, with every optional field that the wire has.
fn configuration(route: &Route, nonce: &SessionId) -> Config {
    // What was refused once is tried again: an endpoint may have changed.
    let route = Route { marks: Marks::Auto, ..route.clone() };
    let mut config = route.config(nonce, &Ledger::default());
    config.parameters = Parameters { max_output_tokens: Some(OUTPUT), ..Parameters::default() };
    config.cache.key = has_key(route.wire).then(|| nonce.to_string());
    config
}

fn has_key(wire: Wire) -> bool {
    matches!(wire, Wire::OpenaiResponses | Wire::OpenaiChat)
}

fn prefix_bytes(route: &Route) -> u64 {
    let known = catalogue::model(&route.model).and_then(|model| model.min_cache_tokens);
    // The largest minimum of each wire's vendors (Anthropic, OpenAI, Gemini, prompt caching, 2026-11).
    let minimum = known.unwrap_or(match route.wire {
        Wire::AnthropicMessages | Wire::Gemini => 4_096,
        Wire::OpenaiResponses | Wire::OpenaiChat => 1_024,
    });
    minimum * BYTES_PER_TOKEN
}

/// A text that no request had before, and that has no other meaning.
fn prefix(route: &Route, nonce: &SessionId) -> SystemBlock {
    let mut text = format!("This is a test of a cache, number {nonce}. Nothing below has a meaning.\n");
    let bytes = usize::try_from(prefix_bytes(route)).unwrap_or(usize::MAX);
    let mut line = 1_u64;
    while text.len() < bytes {
        text.push_str(&format!("Line {line}: the river runs past the mill and under the old stone bridge.\n"));
        line += 1;
    }
    SystemBlock { name: "probe".to_owned(), text }
}
