//! A trial of an endpoint: two or three small requests that differ where it matters, and what their answers show.
//!
//! A prefix that is long enough to be cached goes out twice. Where the wire has a field that goes out by evidence
//! only, the first request leaves it out and the later two carry it. What counts is what the answers report: a field
//! that was merely accepted proves nothing.

use std::future::Future;
use std::pin::{Pin, pin};

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
    /// What came of it.
    pub outcome: TrialOutcome,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum TrialOutcome {
    /// It was answered, with what the answer reported.
    Answered(Option<Usage>),
    /// It failed.
    Failed(Failure),
    /// It was given up when somebody stopped the trial: what it cost is not known.
    Stopped,
}

/// What a trial has shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trial {
    /// What was sent, in order.
    pub requests: Vec<TrialRequest>,
    /// What it taught.
    pub lessons: Vec<Lesson>,
    /// How it ended.
    pub end: TrialEnd,
}

/// How a trial ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum TrialEnd {
    /// All of its requests were answered.
    #[default]
    Complete,
    /// A request failed, so that those after it were not sent.
    Failed(Box<Failure>),
    /// Somebody stopped it.
    Stopped,
}

impl Trial {
    /// What the answers cost; absent when that is not known in full.
    #[must_use]
    pub fn cost(&self, price: Option<Price>) -> Option<Micros> {
        let mut sum = 0_u64;
        for request in &self.requests {
            match &request.outcome {
                TrialOutcome::Answered(usage) => sum = sum.saturating_add(price?.of(&(*usage)?)?.0),
                TrialOutcome::Stopped => return None,
                TrialOutcome::Failed(failure) if failure.may_be_billed() => return None,
                // A request that was refused is not billed.
                TrialOutcome::Failed(_) => {}
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
    let longest = route.ttl.unwrap_or_default();
    let each = route.price().and_then(|price| price.at_most(tokens, OUTPUT, longest));
    let cost = each.map(|each| Micros(each.0.saturating_mul(requests)));
    TrialPlan { requests, tokens, output: OUTPUT, cost }
}

/// The optional fields that a trial of this route tries.
#[must_use]
pub fn fields(route: &Route, nonce: &SessionId) -> Vec<OptionalField> {
    configuration(route, nonce).optional_fields()
}

/// Sends a trial's requests, one after the other. `nonce` makes the prefix one that no cache can hold yet. Each request is
/// reported as soon as it is over. Once `stop` is ready nothing more is sent or waited for; what was seen by then is there.
pub async fn run(
    client: &Client,
    route: &Route,
    nonce: &SessionId,
    stop: impl Future<Output = ()>,
    on_request: &mut dyn FnMut(&TrialRequest),
) -> Trial {
    let stop = pin!(stop);
    let mut run = Run { client, route, nonce, stop, on_request, trial: Trial::default() };
    let mut config = configuration(route, nonce);
    if let Err(end) = run.all(&mut config).await {
        run.trial.end = end;
    }
    run.trial
}

/// A trial that is under way.
struct Run<'a, S> {
    client: &'a Client,
    route: &'a Route,
    nonce: &'a SessionId,
    stop: Pin<&'a mut S>,
    on_request: &'a mut dyn FnMut(&TrialRequest),
    trial: Trial,
}

impl<S: Future<Output = ()>> Run<'_, S> {
    async fn all(&mut self, config: &mut Config) -> Result<(), TrialEnd> {
        let key = config.cache.key.take();
        let mut answered = vec![self.ask(config).await?];
        if has_key(self.route.wire) {
            config.cache.key = key;
            answered.push(self.ask(config).await?);
        }
        answered.push(self.ask(config).await?);
        self.trial.judge(config, &answered);
        Ok(())
    }

    /// Sends a request until no field of it is refused any more.
    async fn ask(&mut self, config: &mut Config) -> Result<Answer, TrialEnd> {
        loop {
            let fields = config.optional_fields();
            let attempt = attempt(self.client, self.route, config, self.nonce);
            let outcome = until(self.stop.as_mut(), attempt).await;
            let came = match &outcome {
                Some(Ok(answer)) => TrialOutcome::Answered(answer.usage),
                Some(Err(failure)) => TrialOutcome::Failed(failure.clone()),
                None => TrialOutcome::Stopped,
            };
            let request = TrialRequest { fields: fields.clone(), outcome: came };
            (self.on_request)(&request);
            self.trial.requests.push(request);
            let failure = match outcome {
                Some(Ok(answer)) => {
                    self.trial.sees(config, &answer);
                    return Ok(answer);
                }
                Some(Err(failure)) => failure,
                None => return Err(TrialEnd::Stopped),
            };
            let kept: Vec<_> = fields.iter().copied().filter(|field| !failure.refused.contains(field)).collect();
            for field in fields.iter().filter(|field| failure.refused.contains(field)) {
                let says = failure.message.as_str().to_owned();
                self.trial.lessons.push(Lesson { capability: (*field).into(), finding: Finding::Refused, says });
            }
            if kept.len() == fields.len() || failure.code != FailureCode::InvalidRequest {
                return Err(TrialEnd::Failed(Box::new(failure)));
            }
            config.keep_fields(&kept);
        }
    }
}

/// What a future gives, or nothing when the other one is ready first.
async fn until<T>(mut stop: Pin<&mut impl Future<Output = ()>>, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| {
        // What has arrived was paid for: it counts, though somebody stops at the same moment.
        if let std::task::Poll::Ready(done) = work.as_mut().poll(context) {
            return std::task::Poll::Ready(Some(done));
        }
        stop.as_mut().poll(context).map(|()| None)
    })
    .await
}

impl Trial {
    /// Takes in what an answer shows by itself.
    fn sees(&mut self, config: &Config, answer: &Answer) {
        for lesson in seen(config, answer) {
            if !self.knows(lesson.capability) {
                self.lessons.push(lesson);
            }
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
        if config.sends(OptionalField::CacheTtl) {
            nothing(Capability::CacheTtl, "taken, without effect: nothing was written for an hour");
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
