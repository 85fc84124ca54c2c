//! Deriving messages from any surface, however broken.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use stele_core::{
    ANSWER_EMPTY, ANSWER_MISSING, AssistantBlock, Block, CallId, CallRecord, Config, ImageInput, Message, Part,
    Producer, RESULT_MISSING, SurfaceItem, Text, ToolError, ToolErrorClass, UserBlock, Wire, derive, derive_rev,
};

use crate::world::{config, image};

/// What every provider asks of a history.
pub fn assert_acceptable(messages: &[Message]) {
    let mut expected: Vec<CallId> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        match message {
            Message::User(blocks) => {
                assert_eq!(at % 2, 0, "roles alternate and the user begins");
                assert!(!blocks.is_empty());
                let results: Vec<CallId> = blocks
                    .iter()
                    .filter_map(|block| match block {
                        UserBlock::Result { call, text, name, .. } => {
                            assert!(!text.is_empty());
                            assert_sendable(name);
                            Some(*call)
                        }
                        UserBlock::Text(text) => {
                            assert!(!text.trim().is_empty());
                            None
                        }
                    })
                    .collect();
                assert_eq!(results, expected, "each call has one result, in the order of the calls");
                let first_text = blocks.iter().position(|block| matches!(block, UserBlock::Text(_)));
                assert!(first_text.is_none_or(|at| at >= results.len()), "results come first");
            }
            Message::Assistant(turn) => {
                assert_eq!(at % 2, 1);
                assert!(!turn.blocks.is_empty());
                assert!(!matches!(turn.blocks.last(), Some(AssistantBlock::Reasoning { .. })));
                expected = turn
                    .blocks
                    .iter()
                    .filter_map(|block| match block {
                        AssistantBlock::Call { call, name, .. } => {
                            assert_sendable(name);
                            Some(*call)
                        }
                        _ => None,
                    })
                    .collect();
                let unique: BTreeSet<_> = expected.iter().collect();
                assert_eq!(unique.len(), expected.len());
                continue;
            }
        }
        expected.clear();
    }
}

/// The pattern that the vendors ask of a tool's name.
fn assert_sendable(name: &str) {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    assert!((1..=64).contains(&name.len()) && name.chars().all(plain), "{name:?}");
}

fn user(text: &str) -> SurfaceItem {
    SurfaceItem::User(vec![Part::text(text)])
}

fn assistant(model: &str, content: Vec<Block>, interrupted: bool) -> SurfaceItem {
    SurfaceItem::Assistant {
        producer: Producer { wire: Wire::AnthropicMessages, model: model.into() },
        content,
        interrupted,
    }
}

fn text(text: &str) -> Block {
    Block::Text { text: text.into(), native: None }
}

fn reasoning(text: &str, native: Option<&str>) -> Block {
    Block::Reasoning { text: text.into(), native: native.map(Text::from) }
}

fn call(n: u64) -> Block {
    Block::Call { call: CallId(n), native: None }
}

fn result(n: u64, content: &str) -> SurfaceItem {
    SurfaceItem::Result { call: CallId(n), content: content.into(), error: None, images: Vec::new() }
}

fn calls() -> BTreeMap<CallId, CallRecord> {
    let record = |n: u64| CallRecord {
        wire: Wire::AnthropicMessages,
        vendor_id: None,
        name: match n {
            1 => "bash".into(),
            3 => "functions.bash:0".into(),
            4 => "\u{1b}\n".repeat(100),
            _ => "read".into(),
        },
        arguments: "{}".into(),
    };
    (1..9).map(|n| (CallId(n), record(n))).collect()
}

fn anthropic(model: &str) -> Config {
    let wire = Wire::AnthropicMessages;
    Config { wire, model: model.into(), derive_rev: derive_rev(wire), ..config() }
}

#[test]
fn a_call_that_was_killed_gets_a_fixed_result_in_the_order_of_the_calls() {
    let surface = [user("do both"), assistant("m", vec![call(1), call(2)], false), result(2, "A"), user("continue")];
    let messages = derive(&surface, 0, &calls(), &anthropic("m"));
    let Message::User(blocks) = &messages[2] else { panic!("{messages:?}") };
    let UserBlock::Result { call: first, text, error, .. } = &blocks[0] else { panic!("{blocks:?}") };
    assert_eq!((*first, text.as_str(), *error), (CallId(1), RESULT_MISSING, true));
    assert!(matches!(&blocks[1], UserBlock::Result { call: CallId(2), .. }));
    assert!(matches!(&blocks[2], UserBlock::Text(text) if text.as_ref() == "continue"));
    assert_eq!(messages, derive(&surface, 0, &calls(), &anthropic("m")));
}

#[test]
fn signed_reasoning_goes_back_byte_for_byte_or_not_at_all() {
    let signed = r#"{"type":"thinking","thinking":"because é","signature":"AAA="}"#;
    let emptied = r#"{"type":"thinking","thinking":"","signature":"BBB="}"#;
    let half = r#"{"type":"thinking","thinking":"half","signature":"CCC="}"#;
    let surface = [
        user("q"),
        assistant("model-a", vec![reasoning("because é", Some(signed)), call(2)], false),
        result(2, "P"),
        assistant("model-a", vec![reasoning("", Some(emptied)), text("ok")], false),
        user("go on"),
        assistant("model-a", vec![reasoning("half", None)], true),
        user("so?"),
        assistant("model-a", vec![reasoning("half", Some(half)), text("so")], true),
        user("more"),
    ];
    let messages = derive(&surface, 0, &calls(), &anthropic("model-a"));
    assert_acceptable(&messages);
    let kept: Vec<_> = messages
        .iter()
        .filter_map(|message| match message {
            Message::Assistant(turn) => Some(&turn.blocks),
            Message::User(_) => None,
        })
        .flatten()
        .filter_map(|block| match block {
            AssistantBlock::Reasoning { native, .. } => native.as_deref(),
            _ => None,
        })
        .collect();
    assert_eq!(kept, [signed, emptied]);
    let other = derive(&surface, 0, &calls(), &anthropic("model-b"));
    assert!(!format!("{other:?}").contains("Reasoning"));
}

#[test]
fn a_signature_on_a_last_part_without_text_goes_back_to_gemini() {
    let signs = r#"{"text":"","thoughtSignature":"S="}"#;
    let thinks = r#"{"text":"so","thought":true,"thoughtSignature":"T="}"#;
    let natives = |content: Vec<Block>, derive_rev: u32| -> Vec<String> {
        let wire = Wire::Gemini;
        let surface = [
            user("q"),
            SurfaceItem::Assistant { producer: Producer { wire, model: "m".into() }, content, interrupted: false },
        ];
        let config = Config { wire, model: "m".into(), derive_rev, ..config() };
        let messages = derive(&surface, 0, &calls(), &config);
        let Some(Message::Assistant(turn)) = messages.last() else { panic!("{messages:?}") };
        let native = |block: &AssistantBlock| match block {
            AssistantBlock::Reasoning { native, .. } => native.as_deref().map(str::to_owned),
            _ => None,
        };
        turn.blocks.iter().filter_map(native).collect()
    };
    assert_eq!(natives(vec![text("hi"), reasoning("", Some(signs))], 2), [signs]);
    assert_eq!(natives(vec![text("hi"), reasoning("", Some(signs))], 1).len(), 0, "as older sessions sent it");
    assert_eq!(natives(vec![text("hi"), reasoning("so", Some(thinks))], 2).len(), 0);
    assert_eq!(natives(vec![reasoning("", Some(signs))], 2).len(), 0);
}

#[test]
fn a_whole_answer_without_text_is_not_told_as_an_interrupted_one() {
    let last = |wire: Wire, content: Vec<Block>, interrupted: bool, derive_rev: u32| {
        let surface = [user("q"), assistant("m", content, interrupted)];
        let messages = derive(&surface, 0, &calls(), &Config { wire, model: "m".into(), derive_rev, ..config() });
        let Some(Message::Assistant(turn)) = messages.last() else { panic!("{messages:?}") };
        let [AssistantBlock::Text { text, native: None }] = turn.blocks.as_slice() else { panic!("{turn:?}") };
        text.to_string()
    };
    for wire in Wire::ALL {
        let rev = derive_rev(wire);
        for content in [vec![text("\n \t\n")], vec![]] {
            assert_eq!(last(wire, content.clone(), false, rev), ANSWER_EMPTY, "{wire}");
            assert_eq!(last(wire, content.clone(), true, rev), ANSWER_MISSING, "{wire}");
            let older = if wire == Wire::Gemini { 2 } else { 1 };
            assert_eq!(last(wire, content, false, older), ANSWER_MISSING, "{wire}: as older sessions sent it");
        }
    }
}

#[test]
fn reasoning_that_nobody_signed_is_not_sent_to_anthropics_own_host() {
    let wire = Wire::AnthropicMessages;
    let bare = r#"{"type":"thinking","thinking":"it says \"signature\":\"x\""}"#;
    let signed = r#"{"type":"thinking","thinking":"so","signature":"S="}"#;
    let redacted = r#"{"type":"redacted_thinking","data":"xx"}"#;
    let sent = |base_url: &str, derive_rev: u32| -> Vec<String> {
        let content =
            vec![reasoning("so", Some(bare)), reasoning("so", Some(signed)), reasoning("", Some(redacted)), text("hi")];
        let surface = [user("q"), assistant("m", content, false)];
        let config = Config { wire, model: "m".into(), base_url: base_url.into(), derive_rev, ..config() };
        let messages = derive(&surface, 0, &calls(), &config);
        let Some(Message::Assistant(turn)) = messages.last() else { panic!("{messages:?}") };
        let native = |block: &AssistantBlock| match block {
            AssistantBlock::Reasoning { native, .. } => native.as_deref().map(str::to_owned),
            _ => None,
        };
        turn.blocks.iter().filter_map(native).collect()
    };
    for own in ["https://api.anthropic.com", "https://api.anthropic.com/", "HTTPS://API.Anthropic.com:443/"] {
        assert_eq!(sent(own, 3), [signed, redacted], "{own}");
        assert_eq!(sent(own, 2), [signed, redacted], "{own}");
        assert_eq!(sent(own, 1), [bare, signed, redacted], "as older sessions sent it");
    }
    for other in ["https://api.anthropic.com.example", "http://127.0.0.1:8080"] {
        assert_eq!(sent(other, 3), [bare, signed, redacted], "{other}");
    }
}

#[test]
fn thinking_whose_text_was_left_out_goes_back_when_it_is_signed() {
    let wire = Wire::AnthropicMessages;
    let emptied = r#"{"type":"thinking","thinking":"","signature":"S="}"#;
    let unsigned = r#"{"type":"thinking","thinking":""}"#;
    let blank = r#"{"type":"thinking","thinking":"","signature":""}"#;
    let sent = |base_url: &str, derive_rev: u32| -> Vec<String> {
        let content =
            vec![reasoning("", Some(emptied)), reasoning("", Some(unsigned)), reasoning("", Some(blank)), call(1)];
        let surface = [user("q"), assistant("m", content, false), result(1, "P")];
        let config = Config { wire, model: "m".into(), base_url: base_url.into(), derive_rev, ..config() };
        let messages = derive(&surface, 0, &calls(), &config);
        let Message::Assistant(turn) = &messages[1] else { panic!("{messages:?}") };
        let native = |block: &AssistantBlock| match block {
            AssistantBlock::Reasoning { native, .. } => native.as_deref().map(str::to_owned),
            _ => None,
        };
        turn.blocks.iter().filter_map(native).collect()
    };
    for base_url in ["https://api.anthropic.com", "http://127.0.0.1:8080"] {
        assert_eq!(sent(base_url, 3), [emptied], "{base_url}");
        assert_eq!(sent(base_url, 2), [""; 0], "as older sessions sent it");
    }
}

#[test]
fn lone_surrogates_in_arguments_are_repaired_when_deriving() {
    let mut calls = calls();
    calls.get_mut(&CallId(1)).unwrap().arguments = r#"{"command":"ls \ud99c dir"}"#.into();
    let messages = derive(&[user("x"), assistant("m", vec![call(1)], false)], 0, &calls, &anthropic("m"));
    assert!(format!("{messages:?}").contains("ufffd"));
    assert!(!format!("{messages:?}").contains("ud99c"));
}

#[test]
fn a_route_that_takes_no_images_and_an_error_get_a_note_in_their_place() {
    let looked = |error: Option<ToolError>| {
        let result = SurfaceItem::Result { call: CallId(2), content: "a.png".into(), error, images: vec![image(7)] };
        [user("look"), assistant("m", vec![call(2)], false), result]
    };
    let told = |surface: &[SurfaceItem], images: ImageInput| {
        let messages = derive(surface, 0, &calls(), &Config { images, ..anthropic("m") });
        let Message::User(blocks) = &messages[2] else { panic!("{messages:?}") };
        let UserBlock::Result { text, images, .. } = &blocks[0] else { panic!("{blocks:?}") };
        (text.as_str().to_owned(), images.clone())
    };
    assert_eq!(told(&looked(None), ImageInput::Sent), ("a.png".to_owned(), vec![image(7)]));
    let note = "a.png\n[image left out (image/png, 640 × 480 px): this model is sent no images]".to_owned();
    assert_eq!(told(&looked(None), ImageInput::Noted), (note.clone(), Vec::new()));
    let error = ToolError::new("x", ToolErrorClass::Transient, "");
    assert_eq!(told(&looked(Some(error)), ImageInput::Sent).1, []);
}

fn item() -> impl Strategy<Value = SurfaceItem> {
    let block = prop_oneof![
        (0_u64..10).prop_map(call),
        "[a ]{0,3}".prop_map(|words| text(&words)),
        ("[a ]{0,2}", proptest::option::of("[a-z]{0,4}")).prop_map(|(words, raw)| reasoning(&words, raw.as_deref())),
    ];
    prop_oneof![
        "[a ]{0,3}".prop_map(|words| user(&words)),
        (0_u64..10, "[a]{0,2}").prop_map(|(n, words)| result(n, &words)),
        (proptest::collection::vec(block, 0..4), any::<bool>(), "m|n")
            .prop_map(|(content, interrupted, model)| assistant(&model, content, interrupted)),
    ]
}

proptest! {
    #[test]
    fn no_surface_gives_a_history_that_a_provider_refuses(
        surface in proptest::collection::vec(item(), 0..20),
        wire in prop_oneof![Just(Wire::AnthropicMessages), Just(Wire::OpenaiChat), Just(Wire::Gemini)],
    ) {
        let config = Config { wire, model: "m".into(), ..config() };
        assert_acceptable(&derive(&surface, 0, &calls(), &config));
    }
}
