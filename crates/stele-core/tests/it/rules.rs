//! The rules for context that hold of messages before a wire encodes them (`docs/rules.md`).

use std::collections::BTreeMap;

use proptest::prelude::*;
use stele_core::{
    ANSWER_EMPTY, ANSWER_MISSING, AssistantBlock, Block, CallId, CallRecord, Config, Message, Part, Producer,
    SurfaceItem, Text, USER_MISSING, UserBlock, Wire, derive,
};

use crate::world::config;

/// Who says a piece of the surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    User,
    Assistant,
}

fn anthropic() -> Config {
    Config { wire: Wire::AnthropicMessages, model: "m".into(), ..config() }
}

fn user(texts: &[String]) -> SurfaceItem {
    SurfaceItem::User(texts.iter().map(|text| Part::text(text.as_str())).collect())
}

fn assistant(content: Vec<Block>) -> SurfaceItem {
    let producer = Producer { wire: Wire::AnthropicMessages, model: "m".into() };
    SurfaceItem::Assistant { producer, content, interrupted: false }
}

fn text(text: &str) -> Block {
    Block::Text { text: text.into(), native: None }
}

fn result_of(call: u64, content: &str) -> SurfaceItem {
    SurfaceItem::Result { call: CallId(call), content: content.into(), images: Vec::new(), error: None }
}

/// Reasoning as this wire signs it.
fn reasoning(text: &str) -> Block {
    let native = format!(r#"{{"type":"thinking","thinking":"{text}","signature":"{text}="}}"#);
    Block::Reasoning { text: text.into(), native: Some(Text::from(native)) }
}

fn calls(arguments: &str) -> BTreeMap<CallId, CallRecord> {
    let record = |_| CallRecord {
        wire: Wire::AnthropicMessages,
        vendor_id: None,
        name: "read".into(),
        arguments: arguments.into(),
    };
    (1..200).map(|n| (CallId(n), record(n))).collect()
}

/// Everything that is said in these messages, in order, without what stands for something that is missing.
fn said(messages: &[Message]) -> Vec<(Who, String)> {
    let mut said = Vec::new();
    for message in messages {
        match message {
            Message::User(blocks) => said.extend(blocks.iter().map(|block| match block {
                UserBlock::Text(text) => (Who::User, text.to_string()),
                UserBlock::Result { call, text, .. } => (Who::User, format!("{call}: {}", text.as_str())),
            })),
            Message::Assistant(turn) => said.extend(turn.blocks.iter().map(|block| match block {
                AssistantBlock::Text { text, .. } => (Who::Assistant, text.to_string()),
                AssistantBlock::Reasoning { text, .. } => (Who::Assistant, format!("({text})")),
                AssistantBlock::Call { call, .. } => (Who::Assistant, format!("{call}?")),
            })),
        }
    }
    said.retain(|(_, text)| ![ANSWER_EMPTY, ANSWER_MISSING, USER_MISSING].contains(&text.as_str()));
    said
}

/// What a piece of a conversation is made of.
#[derive(Clone, Debug)]
enum Piece {
    /// So many texts of a user.
    User(usize),
    /// Blocks of an answer, with the results of its calls right after it.
    Answer(Vec<u8>),
}

/// A surface with words that are in no order, and what has to be said of it, in order.
fn conversation(pieces: &[Piece], words: &[u32]) -> (Vec<SurfaceItem>, Vec<(Who, String)>) {
    let (mut surface, mut expected, mut count, mut call) = (Vec::new(), Vec::new(), 0, 0);
    let mut word = || {
        count += 1;
        // No two are the same, and neither the alphabet nor their length orders them.
        format!("{}-{count}", words.get(count % words.len().max(1)).copied().unwrap_or(0))
    };
    for piece in pieces {
        match piece {
            Piece::User(texts) => {
                let texts: Vec<String> = (0..*texts).map(|_| word()).collect();
                expected.extend(texts.iter().map(|text| (Who::User, text.clone())));
                surface.push(user(&texts));
            }
            Piece::Answer(kinds) => {
                let (mut content, mut results) = (Vec::new(), Vec::new());
                for kind in kinds {
                    let word = word();
                    match kind % 3 {
                        0 => {
                            content.push(text(&word));
                            expected.push((Who::Assistant, word));
                        }
                        1 => {
                            content.push(reasoning(&word));
                            expected.push((Who::Assistant, format!("({word})")));
                        }
                        _ => {
                            call += 1;
                            let id = CallId(call);
                            content.push(Block::Call { call: id, native: None });
                            expected.push((Who::Assistant, format!("{id}?")));
                            results.push((id, word));
                        }
                    }
                }
                // An answer that ends in reasoning is taken by no wire.
                let end = word();
                content.push(text(&end));
                expected.push((Who::Assistant, end));
                surface.push(assistant(content));
                for (id, result) in results {
                    expected.push((Who::User, format!("{id}: {result}")));
                    surface.push(result_of(id.0, &result));
                }
            }
        }
    }
    (surface, expected)
}

fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        (1_usize..4).prop_map(Piece::User),
        proptest::collection::vec(any::<u8>(), 0..5).prop_map(Piece::Answer),
    ]
}

proptest! {
    #[test]
    fn ctx_02_roles_and_order_are_those_of_the_surface(
        pieces in proptest::collection::vec(piece(), 0..12),
        words in proptest::collection::vec(any::<u32>(), 1..20),
    ) {
        let (surface, expected) = conversation(&pieces, &words);
        let messages = derive(&surface, 0, &calls("{}"), &anthropic());
        prop_assert_eq!(said(&messages), expected);
    }

    #[test]
    fn never_02_white_space_is_kept_as_it_came(
        before in "[ \t\r\n]{0,3}",
        after in "[ \t\r\n]{0,3}",
    ) {
        let words = format!("{before}code \t  here{after}");
        let arguments = format!("{{\"content\": \"{0}\" }}", words.escape_default());
        let surface = [
            user(std::slice::from_ref(&words)),
            assistant(vec![text(&words), Block::Call { call: CallId(1), native: None }]),
            result_of(1, &words),
            user(std::slice::from_ref(&words)),
        ];
        let messages = derive(&surface, 0, &calls(&arguments), &anthropic());
        let all: Vec<String> = said(&messages).into_iter().map(|(_, text)| text).collect();
        prop_assert_eq!(all, [words.clone(), words.clone(), "c1?".into(), format!("c1: {words}"), words]);
        let Message::Assistant(turn) = &messages[1] else { panic!("{messages:?}") };
        let AssistantBlock::Call { arguments: kept, .. } = &turn.blocks[1] else { panic!("{turn:?}") };
        prop_assert_eq!(kept.as_ref(), arguments);
    }
}

#[test]
fn never_01_neither_messages_nor_reasoning_are_sorted() {
    let call = |n| Block::Call { call: CallId(n), native: None };
    let surface = [
        user(&["z".into(), "b".into(), "m".into()]),
        assistant(vec![reasoning("y"), text("x"), reasoning("a"), call(9), reasoning("k"), call(3)]),
        result_of(9, "w"),
        result_of(3, "c"),
        user(&["a".into()]),
        assistant(vec![text("v"), reasoning("d"), text("u")]),
        user(&["t".into(), "t".into()]),
    ];
    let messages = derive(&surface, 0, &calls("{}"), &anthropic());
    let all: Vec<String> = said(&messages).into_iter().map(|(_, text)| text).collect();
    let expected = "z b m (y) x (a) c9? (k) c3? c9:|w c3:|c a v (d) u t t";
    assert_eq!(all, expected.split(' ').map(|word| word.replace('|', " ")).collect::<Vec<_>>());
}
