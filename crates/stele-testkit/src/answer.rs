//! From a request to the bytes of its answer and the plan by which they are sent.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use stele_core::Wire;

use crate::behaviour::{Content, Reply, Source, Strictness};
use crate::cache::{Counted, PrefixCache, prompt_tokens};
use crate::connection::{Break, Place, Plan};
use crate::fault::{Cut, FaultKind};
use crate::http::{Head, Response};
use crate::parsed::ParsedRequest;
use crate::refusal::Refusal;
use crate::server::{Received, Shared};
use crate::wire;

/// What is remembered from request to request.
#[derive(Debug, Default)]
pub(crate) struct State {
    cache: PrefixCache,
    /// Requests by step.
    attempts: HashMap<usize, u32>,
    /// Answers that were not spoilt, which is the next step when steps are played in the order of arrival.
    given: usize,
    /// Model requests.
    number: usize,
}

/// Where a request goes.
struct Route {
    wire: Wire,
    /// The model in the path.
    model: Option<String>,
    /// Whether the path asks for a stream; absent where the body says so.
    streams: Option<bool>,
}

fn route(head: &Head) -> Option<Route> {
    let plain = |wire| Some(Route { wire, model: None, streams: None });
    match head.path() {
        "/v1/messages" => plain(Wire::AnthropicMessages),
        "/v1/responses" => plain(Wire::OpenaiResponses),
        "/v1/chat/completions" => plain(Wire::OpenaiChat),
        path => {
            let (model, method) = path.strip_prefix("/v1beta/models/")?.split_once(':')?;
            let streams = match method {
                "streamGenerateContent" => true,
                "generateContent" => false,
                _ => return None,
            };
            Some(Route { wire: Wire::Gemini, model: Some(model.to_owned()), streams: Some(streams) })
        }
    }
}

/// What becomes of a model request.
struct Outcome {
    response: Response,
    plan: Plan,
    step: Option<usize>,
    attempt: u32,
    counted: Option<Counted>,
}

impl Outcome {
    fn refused(wire: Wire, refusal: &Refusal) -> Self {
        let response = json_response(refusal.status, &refusal.body(wire));
        Self { response, plan: Plan::default(), step: None, attempt: 0, counted: None }
    }
}

impl Shared {
    /// Answers a request, and keeps it before a byte of the answer is sent.
    pub(crate) fn answer(&self, head: Head, body: Vec<u8>) -> (Response, Plan) {
        let at = Instant::now();
        let route = route(&head).filter(|_| head.method == "POST");
        let wire = route.as_ref().map(|route| route.wire);
        let outcome = match &route {
            Some(route) => self.model_request(route, &head, &body),
            None => {
                let response = self.other_request(&head);
                Outcome { response, plan: Plan::default(), step: None, attempt: 0, counted: None }
            }
        };
        self.keep(Received {
            method: head.method,
            path: head.target,
            headers: head.headers,
            body: Arc::from(body),
            wire,
            step: outcome.step,
            attempt: outcome.attempt,
            status: outcome.response.status,
            counted: outcome.counted,
            at,
        });
        (outcome.response, outcome.plan)
    }

    /// The list of models, or nothing.
    fn other_request(&self, head: &Head) -> Response {
        let models = &self.behaviour.models;
        let models = if models.is_empty() { vec!["scripted".to_owned()] } else { models.clone() };
        match (head.method.as_str(), head.path()) {
            ("GET", "/v1/models") => {
                let list: Vec<Value> = models
                    .iter()
                    .map(|id| json!({"id": id, "object": "model", "type": "model", "display_name": id, "owned_by": "scripted"}))
                    .collect();
                json_response(200, &json!({"object": "list", "data": list, "has_more": false}))
            }
            ("GET", "/v1beta/models") => {
                let list: Vec<Value> = models
                    .iter()
                    .map(
                        |id| json!({"name": format!("models/{id}"), "supportedGenerationMethods": ["generateContent"]}),
                    )
                    .collect();
                json_response(200, &json!({"models": list}))
            }
            _ => json_response(404, &json!({"error": {"type": "not_found_error", "message": "Not Found"}})),
        }
    }

    fn model_request(&self, route: &Route, head: &Head, body: &[u8]) -> Outcome {
        let number = {
            let mut state = self.state();
            state.number += 1;
            state.number - 1
        };
        let request = match self.read(route, head, body, number) {
            Ok(request) => request,
            Err(refusal) => return Outcome::refused(route.wire, &refusal),
        };
        let (step, reply) = match &self.behaviour.source {
            Source::Script(script) => {
                let (step, say) = script.position(&request);
                (step, Reply::from(say))
            }
            Source::Arrival(script) => {
                let step = self.state().given;
                (step, Reply::from(script.step(step)))
            }
            // Not under the lock: it is a test's own function.
            Source::Function(answer) => (request.answers(), answer(&request)),
        };
        let mut state = self.state();
        let attempt = state.attempts.entry(step).or_default();
        *attempt += 1;
        let attempt = *attempt;
        let planned = || self.behaviour.faults.iter().find_map(|fault| fault.strikes(step, attempt)).cloned();
        let fault = reply.fault.clone().or_else(planned);
        if !fault.as_ref().is_some_and(FaultKind::spoils) {
            state.given += 1;
        }
        let pace = reply.pace.clone().unwrap_or_else(|| self.behaviour.pace.clone());
        let mut plan = Plan { pace, ..Plan::default() };
        if let Some(FaultKind::Status { status, headers, body }) = fault {
            let mut response = json_response(status, &Refusal::of_status(route.wire, status).body(route.wire));
            response.headers.extend(headers);
            response.body = body.map_or(response.body, String::into_bytes);
            return Outcome { response, plan, step: Some(step), attempt, counted: None };
        }
        let (mut response, counted) = match &reply.content {
            Content::Raw { content_type, body } => (raw_response(content_type, body), None),
            Content::Say(say) => {
                let mut counted = state.cache.count(route.wire, &request.model, &request.raw);
                (counted.output, counted.reasoning) = wire::output_tokens(say);
                let usage = match &fault {
                    Some(FaultKind::NoUsage) => None,
                    Some(FaultKind::Usage(usage)) => Some(usage.clone()),
                    _ => Some(wire::usage(route.wire, &counted)),
                };
                let answer = wire::Answer { request: &request, say, step, usage };
                (said_response(&answer, head), Some(counted))
            }
        };
        drop(state);
        if let Some(fault) = fault {
            apply(fault, &request, &mut response, &mut plan);
        }
        Outcome { response, plan, step: Some(step), attempt, counted }
    }

    /// Reads a request, or says why the vendor would not take it.
    fn read(&self, route: &Route, head: &Head, body: &[u8], number: usize) -> Result<ParsedRequest, Refusal> {
        if let Some(key) = &self.behaviour.key
            && sent_key(route.wire, head) != Some(key)
        {
            return Err(Refusal::of_status(route.wire, 401));
        }
        // Strict as the vendors' own parsers: valid UTF-8, no lone surrogate, nothing after the end.
        let raw: Value = serde_json::from_slice(body)
            .map_err(|error| Refusal::invalid(format!("We could not parse the JSON body of your request: {error}")))?;
        if !raw.is_object() {
            return Err(Refusal::invalid("the body is not a JSON object"));
        }
        if let Some((fields, wording)) = &self.behaviour.unknown
            && let Some(refusal) = wording.refuse(&raw, fields)
        {
            return Err(refusal);
        }
        let streams = route.streams.unwrap_or(raw["stream"] == true);
        let request = ParsedRequest::read(route.wire, route.model.as_deref(), streams, number, raw);
        if self.behaviour.strictness == Strictness::Vendor {
            wire::check(&request, head)?;
        }
        let models = &self.behaviour.models;
        if !models.is_empty() && !models.contains(&request.model) {
            let message = format!("The model `{}` does not exist or you do not have access to it.", request.model);
            return Err(Refusal { message, ..Refusal::of_status(route.wire, 404) });
        }
        if let Some(window) = self.behaviour.window {
            let tokens = prompt_tokens(route.wire, &request.raw);
            if tokens > window {
                return Err(Refusal::too_long(route.wire, tokens, window));
            }
        }
        Ok(request)
    }
}

/// The key, where the wire's vendor takes it.
fn sent_key(wire: Wire, head: &Head) -> Option<&str> {
    match wire {
        Wire::AnthropicMessages => head.header("x-api-key"),
        Wire::OpenaiResponses | Wire::OpenaiChat => head.header("authorization")?.strip_prefix("Bearer "),
        Wire::Gemini => head.header("x-goog-api-key").or_else(|| head.query("key")),
    }
}

fn json_response(status: u16, body: &Value) -> Response {
    Response::plain(status, "application/json", body.to_string().into_bytes())
}

/// The answer of the model.
fn said_response(answer: &wire::Answer<'_>, head: &Head) -> Response {
    if !answer.request.stream {
        return json_response(200, &wire::whole(answer));
    }
    let frames = wire::stream(answer);
    if answer.request.wire == Wire::Gemini && head.query("alt") != Some("sse") {
        return json_response(200, &wire::gemini::array(&frames));
    }
    let mut body = Vec::new();
    let mut events = Vec::with_capacity(frames.len());
    for frame in frames {
        frame.write(&mut body);
        events.push(body.len());
    }
    Response::stream("text/event-stream; charset=utf-8", body, events)
}

/// A body as it is; when it is a stream, its events end with empty lines.
fn raw_response(content_type: &str, body: &[u8]) -> Response {
    if !content_type.starts_with("text/event-stream") {
        return Response::plain(200, content_type, body.to_vec());
    }
    let ends = body.windows(2).enumerate().filter(|(_, pair)| *pair == b"\n\n").map(|(at, _)| at + 2);
    Response::stream(content_type, body.to_vec(), ends.collect())
}

/// Changes an answer, or how it is sent, by a fault.
fn apply(fault: FaultKind, request: &ParsedRequest, response: &mut Response, plan: &mut Plan) {
    let place = |at: Cut, response: &Response| match at {
        Cut::Start => Place::Start,
        Cut::Bytes(bytes) => Place::Body(bytes.min(response.body.len())),
        Cut::Events(0) => Place::Body(0),
        Cut::Events(count) => Place::Body(response.events.get(count - 1).copied().unwrap_or(response.body.len())),
    };
    let offset = |at: Cut, response: &Response| match place(at, response) {
        Place::Start => 0,
        Place::Body(offset) => offset,
    };
    match fault {
        FaultKind::Stall { at } => plan.at = Some((place(at, response), Break::Stall)),
        FaultKind::Reset { at } => plan.at = Some((place(at, response), Break::Reset)),
        FaultKind::Close { at } => plan.at = Some((place(at, response), Break::Close)),
        FaultKind::Truncate { at } => plan.at = Some((place(at, response), Break::Truncate)),
        FaultKind::LeftOpen => plan.left_open = true,
        FaultKind::Garbage { at, bytes } => {
            let offset = offset(at, response);
            let length = bytes.len();
            response.body.splice(offset..offset, bytes);
            response.events.iter_mut().filter(|end| **end > offset).for_each(|end| *end += length);
        }
        FaultKind::ErrorEvent { at, status, message } => {
            let offset = offset(at, response);
            response.body.truncate(offset);
            response.events.retain(|end| *end <= offset);
            let refusal = Refusal { message, ..Refusal::of_status(request.wire, status) };
            wire::error(request, &refusal, response.events.len()).write(&mut response.body);
            response.events.push(response.body.len());
        }
        // These were taken care of before there was an answer.
        FaultKind::Status { .. } | FaultKind::NoUsage | FaultKind::Usage(_) => {}
    }
}
