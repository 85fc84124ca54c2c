//! Configurations, messages and decoding in one go.

use std::sync::Arc;

use serde_json::value::RawValue;
use stele_core::{
    AssistantBlock, AssistantTurn, CacheMarks, CallId, Config, Dialect, Failure, Header, Image, MediaType, Message,
    Parameters, PrefaceBlock, SystemBlock, ToolSchema, UserBlock, Wire,
};
use stele_provider::{Answer, AnswerBlock, Decoder, Encoder, revision};

pub fn config(wire: Wire) -> Config {
    Config {
        route: "main".to_owned(),
        wire,
        base_url: "http://127.0.0.1:1".to_owned(),
        model: "model-a".to_owned(),
        encoder: revision(wire).to_owned(),
        derive_rev: 1,
        withheld: Default::default(),
        parameters: Parameters { max_output_tokens: Some(4096), ..Parameters::default() },
        cache: CacheMarks::default(),
        dialect: (wire == Wire::OpenaiChat).then(Dialect::default),
        images: Default::default(),
        headers: Default::default(),
    }
}

pub fn header() -> Header {
    let tool = |name: &str, description: &str, parameters: &str| ToolSchema {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: RawValue::from_string(parameters.to_owned()).unwrap(),
    };
    Header {
        tools: vec![
            tool("bash", "Runs a command.", r#"{"type":"object","properties":{"command":{"type":"string"}}}"#),
            tool("read", "Reads a file: \"é\".", r#"{"type":"object","properties":{"path":{"type":"string"}}}"#),
        ],
        system: vec![
            SystemBlock { name: "identity".to_owned(), text: "You are a coding agent.".to_owned() },
            SystemBlock { name: "tools".to_owned(), text: "Read before you edit.".to_owned() },
        ],
        preface: vec![
            PrefaceBlock { name: "AGENTS.md".to_owned(), text: "Use tabs.".to_owned() },
            PrefaceBlock { name: "folder".to_owned(), text: "cwd: /repo".to_owned() },
        ],
    }
}

pub fn say(text: &str) -> UserBlock {
    UserBlock::Text(Arc::from(text))
}

pub fn result(call: u64, wire_id: &str, name: &str, text: &str, error: bool) -> UserBlock {
    UserBlock::Result {
        call: CallId(call),
        wire_id: wire_id.to_owned(),
        name: name.to_owned(),
        text: text.into(),
        error,
        images: Vec::new(),
    }
}

/// A result with images: one of each kind.
pub fn shown(call: u64, wire_id: &str, name: &str, text: &str) -> UserBlock {
    let UserBlock::Result { call, wire_id, name, text, error, .. } = result(call, wire_id, name, text, false) else {
        unreachable!()
    };
    let images = vec![
        Image::new(MediaType::Png, "iVBORw0KGgo=".to_owned(), 2, 1),
        Image::new(MediaType::Jpeg, "/9j/+A==".to_owned(), 1, 1),
    ];
    UserBlock::Result { call, wire_id, name, text, error, images }
}

/// The same message with its results' texts kept as JSON, as a log gives them.
pub fn as_logged(message: &Message) -> Message {
    let mut message = message.clone();
    if let Message::User(blocks) = &mut message {
        for block in blocks {
            if let UserBlock::Result { text, .. } = block {
                *text = text.clone().quoted();
            }
        }
    }
    message
}

pub fn user(blocks: Vec<UserBlock>) -> Message {
    Message::User(blocks)
}

pub fn assistant(blocks: Vec<AssistantBlock>) -> Message {
    Message::Assistant(AssistantTurn { blocks })
}

pub fn text(text: &str) -> AssistantBlock {
    AssistantBlock::Text { text: Arc::from(text), native: None }
}

pub fn reasoning(text: &str, native: Option<&str>) -> AssistantBlock {
    AssistantBlock::Reasoning { text: Arc::from(text), native: native.map(Arc::from) }
}

pub fn call(id: u64, wire_id: &str, name: &str, arguments: &str) -> AssistantBlock {
    AssistantBlock::Call {
        call: CallId(id),
        wire_id: wire_id.to_owned(),
        name: name.to_owned(),
        arguments: Arc::from(arguments),
        native: None,
    }
}

/// A short session: two calls, a failed result, a notice, an answer, another prompt.
pub fn session() -> Vec<Message> {
    vec![
        user(vec![say("Fix the test 🙂.")]),
        assistant(vec![
            text("Let me look."),
            call(1, "toolu_1", "read", r#"{"path": "a.rs", "n": 1e2}"#),
            call(2, "c2", "bash", r#"{"command":"ls"#),
        ]),
        user(vec![
            result(1, "toolu_1", "read", "line one\nline \"two\"", false),
            result(2, "c2", "bash", "the arguments are no JSON", true),
            say("A notice."),
        ]),
        assistant(vec![call(3, "toolu_3", "bash", "")]),
        user(vec![result(3, "toolu_3", "bash", "done", false)]),
        assistant(vec![text("Fixed.")]),
        user(vec![say("Thanks, and now?"), say("One more thing.")]),
    ]
}

pub fn encoder(config: &Config, header: &Header, messages: &[Message]) -> Encoder {
    let mut encoder = Encoder::new(header, config).unwrap();
    for message in messages {
        encoder.push(message);
    }
    encoder
}

/// Decodes a body that comes in these pieces.
pub fn decode(config: &Config, chunks: &[&[u8]]) -> Result<Answer, Failure> {
    let mut decoder = Decoder::new(config);
    for chunk in chunks {
        decoder.feed(chunk);
        if decoder.is_done() {
            break;
        }
    }
    decoder.finish()
}

pub fn decode_whole(wire: Wire, body: &str) -> Result<Answer, Failure> {
    let whole = decode(&config(wire), &[body.as_bytes()]);
    let bytes: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
    assert_eq!(decode(&config(wire), &bytes), whole, "byte by byte");
    whole
}

/// All text of an answer.
pub fn text_of(answer: &Answer) -> String {
    let texts = answer.blocks.iter().filter_map(|block| match block {
        AnswerBlock::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Id, name and arguments of each call.
pub fn calls_of(answer: &Answer) -> Vec<(Option<&str>, &str, &str)> {
    let calls = answer.blocks.iter().filter_map(|block| match block {
        AnswerBlock::Call { vendor_id, name, arguments, .. } => {
            Some((vendor_id.as_deref(), name.as_str(), arguments.as_str()))
        }
        _ => None,
    });
    calls.collect()
}

/// `data:` lines from JSON documents.
pub fn stream(events: &[&str]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}
