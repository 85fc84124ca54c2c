//! The bytes of revision 1 of each encoder. They never change: what has to change gets a new revision.

use stele_core::{Config, Dialect, Header, Message, PromptOrder, SystemRole, Wire};
use stele_provider::{Encoder, revision};

use crate::support::{assistant, call, config, encoder, header, reasoning, result, say, session, shown, text, user};

fn body(config: &Config, header: &Header, messages: &[Message]) -> String {
    String::from_utf8(encoder(config, header, messages).body().to_vec()).unwrap()
}

#[test]
fn revisions() {
    assert_eq!(Wire::ALL.map(revision), ["anthropic-messages/1", "openai-responses/1", "openai-chat/1", "gemini/1"]);
}

#[test]
fn anthropic_messages() {
    let config = config(Wire::AnthropicMessages);
    let mut encoder = encoder(&config, &header(), &session()[..5]);
    encoder.set_earlier(&[encoder.items().len()]);
    for message in &session()[5..] {
        encoder.push(message);
    }
    insta::assert_snapshot!("anthropic", String::from_utf8(encoder.body().to_vec()).unwrap());
}

#[test]
fn anthropic_thinking_with_effort() {
    let mut config = config(Wire::AnthropicMessages);
    config.parameters.effort = Some("high".to_owned());
    config.parameters.top_p = Some(0.95);
    config.cache.marks = false;
    let thought = r#"{"type":"thinking","thinking":"é \/ x","signature":"S="}"#;
    let messages = [
        user(vec![say("go")]),
        assistant(vec![
            reasoning("é / x", Some(thought)),
            reasoning("", Some(r#"{"type":"redacted_thinking","data":"zz"}"#)),
            reasoning("not ours", None),
            text("\n"),
            call(1, "toolu_1", "bash", r#"["ls"]"#),
        ]),
        user(vec![result(1, "toolu_1", "bash", " \n", false)]),
        assistant(vec![reasoning("cut", Some(thought))]),
        user(vec![say("and?")]),
    ];
    insta::assert_snapshot!("anthropic_thinking", body(&config, &Header::default(), &messages));
}

#[test]
fn openai_responses() {
    let mut config = config(Wire::OpenaiResponses);
    config.parameters.effort = Some("low".to_owned());
    config.cache.key = Some("lineage-1".to_owned());
    let mut messages = session();
    let thought = r#"{"id":"rs_1","type":"reasoning","encrypted_content":"A\/b=","summary":[ ]}"#;
    let words = r#"{"id":"msg_1","type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Hm."}]}"#;
    messages.push(assistant(vec![
        reasoning("", Some(thought)),
        stele_core::AssistantBlock::Text { text: "Hm.".into(), native: Some(words.into()) },
        call(4, "call_4", "read", "{}"),
        reasoning("trailing", Some(thought)),
    ]));
    messages.push(user(vec![result(4, "call_4", "read", "x", false)]));
    insta::assert_snapshot!("responses", body(&config, &header(), &messages));
}

#[test]
fn openai_chat() {
    let mut config = config(Wire::OpenaiChat);
    config.parameters.temperature = Some(0.2);
    config.cache.key = Some("lineage-1".to_owned());
    insta::assert_snapshot!("chat", body(&config, &header(), &session()));
}

#[test]
fn openai_chat_in_a_dialect() {
    let mut config = config(Wire::OpenaiChat);
    config.dialect = Some(Dialect {
        name: "odd".to_owned(),
        prompt_order: PromptOrder::ToolsSystemMessages,
        system_role: SystemRole::Developer,
        max_tokens_field: "max_completion_tokens".to_owned(),
        reasoning_field: Some("reasoning_content".to_owned()),
        stream_usage: false,
        user_after_tool: false,
        short_call_ids: true,
        effort_field: Some("reasoning_effort".to_owned()),
        verbosity_field: None,
        marked_models: Vec::new(),
    });
    config.parameters.effort = Some("medium".to_owned());
    let mut messages = session();
    messages.push(assistant(vec![reasoning("because", None), text("So.")]));
    messages.push(user(vec![say("go on")]));
    let encoder = encoder(&config, &header(), &messages);
    let labels: Vec<_> = encoder.items().iter().map(|item| item.label()).collect();
    assert_eq!(labels[..4], ["bash", "read", "system", "preface"]);
    insta::assert_snapshot!("chat_dialect", String::from_utf8(encoder.body().to_vec()).unwrap());
}

#[test]
fn gemini() {
    let mut config = config(Wire::Gemini);
    config.parameters.effort = Some("low".to_owned());
    let mut messages = session();
    let native = r#"{"functionCall":{"name":"read","args":{"path":"b"}},"thoughtSignature":"SIG"}"#;
    messages.push(assistant(vec![
        reasoning("unsigned", None),
        stele_core::AssistantBlock::Call {
            call: stele_core::CallId(4),
            wire_id: "c4".to_owned(),
            name: "read".to_owned(),
            arguments: r#"{"path":"b"}"#.into(),
            native: Some(native.into()),
        },
        reasoning("", Some(r#"{"text":"","thoughtSignature":"END"}"#)),
    ]));
    messages.push(user(vec![result(4, "c4", "read", "B", true)]));
    insta::assert_snapshot!("gemini", body(&config, &header(), &messages));
}

#[test]
fn images_of_results() {
    let messages = [
        user(vec![say("look")]),
        assistant(vec![
            call(1, "toolu_1", "read", "{}"),
            call(2, "toolu_2", "read", "{}"),
            call(3, "toolu_3", "read", "{}"),
        ]),
        user(vec![
            shown(1, "toolu_1", "read", "a.png"),
            result(2, "toolu_2", "read", "b.txt", false),
            shown(3, "toolu_3", "read", "c.png"),
            say("A notice."),
        ]),
    ];
    let bodies = Wire::ALL.map(|wire| body(&config(wire), &Header::default(), &messages));
    insta::assert_snapshot!("images", bodies.join("\n"));
}

#[test]
fn what_is_empty_is_absent() {
    let bare = |wire| {
        let mut config = config(wire);
        if wire != Wire::AnthropicMessages {
            config.parameters.max_output_tokens = None;
        }
        body(&config, &Header::default(), &[user(vec![say("hi")])])
    };
    insta::assert_snapshot!("empty", Wire::ALL.map(bare).join("\n"));
}

#[test]
fn what_a_wire_cannot_express_is_refused_before_sending() {
    let refused = |change: &dyn Fn(&mut Config), wire| {
        let mut config = config(wire);
        change(&mut config);
        let failure = Encoder::new(&header(), &config).unwrap_err();
        assert_eq!(failure.code, stele_core::FailureCode::Unsupported);
        failure.message.as_str().to_owned()
    };
    let message = refused(&|config| config.parameters.max_output_tokens = None, Wire::AnthropicMessages);
    assert!(message.contains("max_output_tokens"), "{message}");
    let message = refused(
        &|config| {
            config.parameters.effort = Some("high".to_owned());
            config.parameters.temperature = Some(0.5);
        },
        Wire::AnthropicMessages,
    );
    assert!(message.contains("temperature"), "{message}");
    let message = refused(&|config| config.parameters.effort = Some("high".to_owned()), Wire::OpenaiChat);
    assert!(message.contains("default dialect"), "{message}");
    let message = refused(&|config| config.parameters.top_p = Some(f64::NAN), Wire::Gemini);
    assert!(message.contains("top_p"), "{message}");
    let message = refused(&|config| config.encoder = "gemini/0".to_owned(), Wire::Gemini);
    assert!(message.contains("gemini/0"), "{message}");
}
