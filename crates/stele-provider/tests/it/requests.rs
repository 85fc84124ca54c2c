//! Properties of requests, whatever was said in them.

use proptest::prelude::*;
use serde_json::{Value, json};
use stele_core::{
    AssistantBlock, CacheTtl, Config, Dialect, FailureCode, Hash, Hasher, Header, Message, Parameters, PromptOrder,
    ToolChoice, UserBlock, Wire, Zone,
};
use stele_provider::Encoder;

use crate::support::{
    as_logged, assistant, call, config, encoder, header, reasoning, result, say, session, shown, text, user,
};

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z \"\\\\é🙂\u{2028}\n\u{0}\u{7f}<]{1,12}",
        1 => Just(" \n".to_owned()),
        1 => Just(r#"","cache_control":{"type":"ephemeral"}"#.to_owned()),
    ]
}

fn any_arguments() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(r#"{"path": "a\/b", "n": 1e2}"#.to_owned()),
        Just(r#"{"command":"ls \ud99c dir","k\udc00":"\ud83d\ude00"}"#.to_owned()),
        Just(r#"{"n":1e999}"#.to_owned()),
        Just("{".repeat(300)),
        Just(format!(r#"{}1{}"#, r#"{"a":"#.repeat(200), "}".repeat(200))),
        Just("[1,2]".to_owned()),
        Just(String::new()),
        any_text(),
        r#"\{"[a-z]{0,3}": ?("[a-z\\u]{0,6}"|[0-9.e]{0,6}|true|\[)\}?"#,
    ]
}

fn any_native() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        Just(None),
        Just(Some(r#"{"type":"thinking","thinking":"x \ud83d","signature":"s"}"#.to_owned())),
        Just(Some(r#"{"type":"reasoning","id":"rs","encrypted_content":"e","summary":[]}"#.to_owned())),
        Just(Some(r#"{"text":"","thoughtSignature":"s"}"#.to_owned())),
        any_arguments().prop_map(Some),
    ]
}

fn any_block() -> impl Strategy<Value = AssistantBlock> {
    prop_oneof![
        any_text().prop_map(|content| text(&content)),
        (any_text(), any_native()).prop_map(|(content, native)| reasoning(&content, native.as_deref())),
        (1_u64..9, any_text(), any_arguments(), any_native()).prop_map(|(id, wire_id, arguments, native)| {
            match call(id, &wire_id, "bash", &arguments) {
                AssistantBlock::Call { call, wire_id, name, arguments, .. } => {
                    AssistantBlock::Call { call, wire_id, name, arguments, native: native.map(Into::into) }
                }
                block => block,
            }
        }),
    ]
}

fn any_user_block() -> impl Strategy<Value = UserBlock> {
    prop_oneof![
        any_text().prop_map(|content| say(&content)),
        (1_u64..9, any_text(), any_text(), prop_oneof![4 => Just(1), 1 => 100..2_000_usize], any::<bool>()).prop_map(
            |(id, wire_id, content, times, error)| result(id, &wire_id, "bash", &content.repeat(times), error)
        ),
        (1_u64..9, any_text(), any_text()).prop_map(|(id, wire_id, content)| shown(id, &wire_id, "read", &content)),
    ]
}

/// Closed messages that alternate, the user's first.
fn any_messages() -> impl Strategy<Value = Vec<Message>> {
    let pair = (prop::collection::vec(any_user_block(), 1..4), prop::collection::vec(any_block(), 1..30));
    (prop::collection::vec(pair, 0..4), prop::collection::vec(any_user_block(), 1..30)).prop_map(|(pairs, last)| {
        let mut messages = Vec::new();
        for (blocks, answer) in pairs {
            messages.push(user(blocks));
            messages.push(assistant(answer));
        }
        messages.push(user(last));
        messages
    })
}

fn any_config() -> impl Strategy<Value = Config> {
    (prop::sample::select(Wire::ALL.to_vec()), any::<[bool; 5]>()).prop_map(
        |(wire, [marks, one, two, three, effort])| {
            let mut config = config(wire);
            config.cache.marks = marks;
            config.cache.key = one.then(|| "key".to_owned());
            config.parameters.effort = effort.then(|| "high".to_owned());
            if wire == Wire::OpenaiChat {
                config.dialect = Some(Dialect {
                    prompt_order: if one { PromptOrder::ToolsSystemMessages } else { PromptOrder::SystemToolsMessages },
                    reasoning_field: two.then(|| "reasoning_content".to_owned()),
                    user_after_tool: three,
                    short_call_ids: two,
                    effort_field: Some("reasoning_effort".to_owned()),
                    ..Dialect::default()
                });
            }
            config
        },
    )
}

fn any_header() -> impl Strategy<Value = Header> {
    any::<[bool; 3]>().prop_map(|[tools, system, preface]| {
        let mut header = header();
        if !tools {
            header.tools.clear();
        }
        if !system {
            header.system.clear();
        }
        if !preface {
            header.preface.clear();
        }
        header
    })
}

fn item_bytes(encoder: &Encoder) -> Vec<Vec<u8>> {
    encoder.items().iter().map(|item| encoder.item_bytes(item).to_vec()).collect()
}

fn without_marks(value: &mut Value) -> usize {
    match value {
        Value::Object(fields) => {
            let mark = usize::from(fields.shift_remove("cache_control").is_some());
            mark + fields.values_mut().map(without_marks).sum::<usize>()
        }
        Value::Array(list) => list.iter_mut().map(without_marks).sum(),
        _ => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_longer_list_never_changes_what_stands_before(
        config in any_config(),
        header in any_header(),
        messages in any_messages(),
    ) {
        let mut encoder = Encoder::new(&header, &config).unwrap();
        let mut before = item_bytes(&encoder);
        for (at, message) in messages.iter().enumerate() {
            encoder.push(message);
            let now = item_bytes(&encoder);
            prop_assert!(now.len() > before.len() || encoder.len() == 1);
            prop_assert_eq!(&now[..before.len()], &before[..]);
            // Incremental and from the start are the same.
            let mut fresh = crate::support::encoder(&config, &header, &messages[..=at]);
            if at > 0 {
                fresh.set_earlier(&[before.len()]);
            }
            prop_assert_eq!(item_bytes(&fresh), now.clone());
            let (body, expect) = (fresh.body(), encoder.body());
            prop_assert_eq!((body.to_vec(), body.marks), (expect.to_vec(), expect.marks));
            encoder.set_earlier(&[now.len()]);
            prop_assert_eq!(item_bytes(&encoder), now.clone());
            before = now;
        }
    }

    #[test]
    fn a_text_that_is_json_already_gives_the_bytes_that_writing_it_gives(
        config in any_config(),
        header in any_header(),
        messages in any_messages(),
    ) {
        let logged: Vec<_> = messages.iter().map(as_logged).collect();
        let [written, shared] =
            [&messages, &logged].map(|messages| crate::support::encoder(&config, &header, messages));
        prop_assert_eq!(item_bytes(&written), item_bytes(&shared));
        prop_assert_eq!(written.body().to_vec(), shared.body().to_vec());
        prop_assert_eq!(written.body_digest(), shared.body_digest());
        prop_assert_eq!(written.prompt_digest(0), shared.prompt_digest(0));
    }

    #[test]
    fn a_body_is_strict_json_and_its_digest_is_the_hash_of_its_bytes(
        config in any_config(),
        header in any_header(),
        messages in any_messages(),
        ends in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..3), 0..4),
    ) {
        let mut encoder = Encoder::new(&header, &config).unwrap();
        for message in &messages {
            encoder.push(message);
            for ends in &ends {
                let ends: Vec<usize> = ends.iter().map(|end| end.index(encoder.items().len() + 1)).collect();
                encoder.set_earlier(&ends);
                let body = encoder.body();
                let bytes = body.to_vec();
                let text = std::str::from_utf8(&bytes).unwrap();
                let parsed = serde_json::from_str::<Value>(text);
                prop_assert!(parsed.is_ok(), "{:?} in {text}", parsed);
                let digest = encoder.body_digest();
                prop_assert_eq!(digest.hash, Hash::of(&bytes));
                prop_assert_eq!(digest.len, bytes.len() as u64);
            }
            // The ordinary course: the request before ended here.
            prop_assert_eq!(encoder.body_digest().hash, Hash::of(&encoder.body().to_vec()));
            encoder.set_earlier(&[encoder.items().len()]);
            prop_assert_eq!(encoder.body_digest().hash, Hash::of(&encoder.body().to_vec()));
        }
    }

    #[test]
    fn marks_are_few_and_change_nothing_else(
        header in any_header(),
        messages in any_messages(),
        ends in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let marked = config(Wire::AnthropicMessages);
        let mut plain = marked.clone();
        plain.cache.marks = false;
        let mut encoder = crate::support::encoder(&marked, &header, &messages);
        let ends: Vec<usize> = ends.iter().map(|end| end.index(encoder.items().len() + 1)).collect();
        encoder.set_earlier(&ends);
        let body = encoder.body();
        prop_assert!(body.marks.len() <= 4);
        let mut value: Value = serde_json::from_slice(&body.to_vec()).unwrap();
        prop_assert_eq!(without_marks(&mut value), body.marks.len());
        let plain = crate::support::encoder(&plain, &header, &messages);
        prop_assert_eq!(plain.body().marks, Vec::<u64>::new());
        let expect: Value = serde_json::from_slice(&plain.body().to_vec()).unwrap();
        prop_assert_eq!(value, expect);
    }

    #[test]
    fn the_prompt_hash_is_over_the_items(config in any_config(), header in any_header(), messages in any_messages()) {
        let encoder = encoder(&config, &header, &messages);
        let mut hasher = Hasher::new();
        let mut len = 0;
        for bytes in item_bytes(&encoder) {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(&bytes);
            len += bytes.len() as u64;
        }
        let digest = encoder.prompt_digest(7);
        prop_assert_eq!((digest.hash, digest.len, digest.shared), (Hash::from(&hasher), len, 7));
        prop_assert_eq!(digest.items, encoder.items().len() as u64);
        // Where a message ends the hash of what stands before is known.
        let shorter = crate::support::encoder(&config, &header, &messages[..messages.len() - 1]);
        let items = shorter.items().len();
        prop_assert_eq!(encoder.digest_at(items), Some(shorter.prompt_digest(0).hash));
        prop_assert_eq!(encoder.digest_at(encoder.items().len() + 1), None);
    }
}

#[test]
fn a_long_history_is_in_pieces_and_its_hashes_are_those_of_the_whole() {
    for wire in Wire::ALL {
        let config = config(wire);
        let mut encoder = Encoder::new(&header(), &config).unwrap();
        let (mut sent, mut before) = (0, None::<Vec<u8>>);
        for turn in 0..12_u64 {
            // As before each request: the hash of the last one is kept while what is new is appended.
            encoder.keep_digest_at(sent);
            let told: String = format!("{turn} said \"so\"\n").repeat(3_000);
            encoder.push(&user(vec![say(&told)]));
            encoder.set_earlier(&[sent]);
            if let Some(before) = before.replace(encoder.body().to_vec()) {
                let kept = encoder.digest_at(sent);
                let mut fresh = Encoder::new(&header(), &config).unwrap();
                assert_eq!(fresh.digest_at(sent), None);
                fresh.keep_digest_at(sent);
                for turn in 0..turn {
                    fresh.push(&user(vec![say(&format!("{turn} said \"so\"\n").repeat(3_000))]));
                    fresh.push(&assistant(vec![text("Yes.")]));
                }
                assert!(kept.is_some() && kept == fresh.digest_at(sent));
                assert!(before.len() < encoder.body().to_vec().len());
            }
            let body = encoder.body();
            assert!(turn < 11 || body.pieces.len() > 4);
            assert_eq!(encoder.body_digest().hash, Hash::of(&body.to_vec()));
            assert_eq!(encoder.body_digest().len, body.to_vec().len() as u64);
            let mut hasher = Hasher::new();
            for bytes in item_bytes(&encoder) {
                hasher.update(&(bytes.len() as u64).to_le_bytes());
                hasher.update(&bytes);
            }
            assert_eq!(encoder.prompt_digest(0).hash, Hash::from(&hasher));
            serde_json::from_slice::<Value>(&body.to_vec()).unwrap();
            sent = encoder.items().len();
            encoder.push(&assistant(vec![text("Yes.")]));
        }
    }
}

/// Marked items by label.
fn marked(encoder: &Encoder) -> Vec<String> {
    encoder.marks().into_iter().map(|item| encoder.items()[item].label()).collect()
}

#[test]
fn marks_stand_at_the_ends_of_what_is_read_again() {
    let config = config(Wire::AnthropicMessages);
    let mut encoder = encoder(&config, &header(), &session()[..1]);
    assert_eq!(marked(&encoder), ["system", "folder", "user 1.1"]);
    encoder.set_earlier(&[encoder.items().len()]);
    for message in &session()[1..3] {
        encoder.push(message);
    }
    assert_eq!(marked(&encoder), ["system", "folder", "user 1.1", "user 3.3"]);
    let mut without_system = header();
    without_system.system.clear();
    without_system.preface.clear();
    let encoder = crate::support::encoder(&config, &without_system, &session()[..1]);
    assert_eq!(marked(&encoder), ["read", "user 1.1"]);
}

#[test]
fn a_step_of_many_blocks_keeps_the_mark_where_the_request_before_ended() {
    let config = config(Wire::AnthropicMessages);
    let mut encoder = encoder(&config, &header(), &session()[..1]);
    encoder.set_earlier(&[encoder.items().len()]);
    encoder.push(&assistant((1..=30).map(|id| call(id, &format!("t{id}"), "bash", "{}")).collect()));
    encoder.push(&user((1..=30).map(|id| result(id, &format!("t{id}"), "bash", "x", false)).collect()));
    assert_eq!(marked(&encoder), ["system", "folder", "user 1.1", "user 3.30"]);
}

#[test]
fn beside_the_ends_of_two_requests_the_preface_has_no_mark_and_gets_it_back() {
    let config = config(Wire::AnthropicMessages);
    let mut encoder = encoder(&config, &header(), &session()[..1]);
    let answered = encoder.items().len();
    for message in &session()[1..3] {
        encoder.push(message);
    }
    let failed = encoder.items().len();
    // Long enough that the hash of what does not change any more is kept.
    encoder.push(&user(vec![say(&"and now? ".repeat(2_000))]));
    for (ends, expect) in [
        (vec![answered], vec!["system", "folder", "user 1.1", "user 4.1"]),
        (vec![answered, failed], vec!["system", "user 1.1", "user 3.3", "user 4.1"]),
        (vec![encoder.items().len()], vec!["system", "folder", "user 4.1"]),
        (vec![encoder.items().len(), failed], vec!["system", "folder", "user 3.3", "user 4.1"]),
        (vec![], vec!["system", "folder", "user 4.1"]),
    ] {
        encoder.set_earlier(&ends);
        assert_eq!(marked(&encoder), expect, "{ends:?}");
        assert_eq!(encoder.body_digest().hash, Hash::of(&encoder.body().to_vec()), "{ends:?}");
    }
    // Of what was hashed with the preface's mark nothing is kept once that is missing, though all of it came before.
    let answered = encoder.items().len();
    encoder.set_earlier(&[answered]);
    encoder.push(&assistant(vec![text("so")]));
    encoder.push(&user(vec![say("and then?")]));
    let failed = encoder.items().len();
    encoder.push(&user(vec![say("go on")]));
    encoder.set_earlier(&[answered, failed]);
    assert_eq!(marked(&encoder), ["system", "user 4.1", "user 6.1", "user 7.1"]);
    assert_eq!(encoder.body_digest().hash, Hash::of(&encoder.body().to_vec()));
}

#[test]
fn thinking_takes_no_mark() {
    let config = config(Wire::AnthropicMessages);
    let thought = r#"{"type":"thinking","thinking":"t","signature":"s"}"#;
    let answer = assistant(vec![reasoning("t", Some(thought)), call(1, "t1", "bash", "{}")]);
    let mut encoder = encoder(&config, &header(), &[user(vec![say("go")]), answer]);
    // A request that ends in the thinking itself never occurs; its mark would fall back to the block before.
    encoder.set_earlier(&[encoder.items().len() - 1]);
    assert_eq!(marked(&encoder), ["system", "folder", "user 1.1", "assistant 2.2"]);
}

#[test]
fn items_are_named_and_stand_in_prompt_order() {
    let labels = |wire| {
        let encoder = encoder(&config(wire), &header(), &session()[..3]);
        let items = encoder.items().iter().map(|item| (item.zone, item.label())).collect::<Vec<_>>();
        assert_eq!(encoder.len(), 3);
        items
    };
    let anthropic = labels(Wire::AnthropicMessages);
    let zones: Vec<_> = anthropic.iter().map(|(zone, _)| *zone).collect();
    assert!(zones.is_sorted() && zones.contains(&Zone::Preface));
    let names =
        |items: &[(Zone, String)]| items.iter().map(|(_, label)| label.as_str()).collect::<Vec<_>>().join(" | ");
    insta::assert_snapshot!(
        [anthropic, labels(Wire::OpenaiResponses), labels(Wire::OpenaiChat), labels(Wire::Gemini)]
            .map(|items| names(&items))
            .join("\n"),
        @r"
    bash | read | system | AGENTS.md | folder | user 1.1 | assistant 2.1 | assistant 2.2 | assistant 2.3 | user 3.1 | user 3.2 | user 3.3
    system | bash | read | preface | user 1.1 | assistant 2.1 | assistant 2.2 | assistant 2.3 | result 3.1 | result 3.2 | user 3.3
    system | bash | read | preface | user 1.1 | assistant 2.1 | tool 3.1 | tool 3.2 | user 3.3
    system | bash | read | AGENTS.md | folder | user 1.1 | model 2.1 | model 2.2 | model 2.3 | user 3.1 | user 3.2 | user 3.3
    "
    );
}

#[test]
fn a_field_that_is_withheld_is_left_out_and_nothing_else_changes() {
    use stele_core::OptionalField as Field;
    let mark = r#","cache_control":{"type":"ephemeral"}"#;
    for (wire, field, bytes) in [
        (Wire::AnthropicMessages, Field::CacheControl, mark),
        (Wire::AnthropicMessages, Field::CacheTtl, r#","ttl":"1h""#),
        (Wire::OpenaiChat, Field::PromptCacheKey, r#","prompt_cache_key":"key-1""#),
        (Wire::OpenaiChat, Field::StreamOptions, r#","stream_options":{"include_usage":true}"#),
        (Wire::OpenaiResponses, Field::PromptCacheKey, r#","prompt_cache_key":"key-1""#),
        (Wire::OpenaiResponses, Field::Store, r#","store":false"#),
        (Wire::OpenaiResponses, Field::Include, r#","include":["reasoning.encrypted_content"]"#),
    ] {
        let mut config = config(wire);
        config.cache.key = Some("key-1".to_owned());
        config.cache.ttl = if field == Field::CacheTtl { CacheTtl::Hour } else { CacheTtl::FiveMinutes };
        config.parameters.effort = (wire == Wire::OpenaiResponses).then(|| "high".to_owned());
        assert!(config.sends(field));
        let with = encoder(&config, &header(), &session());
        config.withheld.insert(field);
        let without = encoder(&config, &header(), &session());
        let body = String::from_utf8(with.body().to_vec()).unwrap();
        assert!(body.contains(bytes), "{wire} {field:?}");
        let expected = body.replace(bytes, "");
        assert_eq!(String::from_utf8(without.body().to_vec()).unwrap(), expected, "{wire} {field:?}");
        assert_eq!(without.body_digest().len, expected.len() as u64);
        assert_eq!(with.prompt_digest(0), without.prompt_digest(0), "{wire} {field:?}");
    }
}

#[test]
fn a_parameter_goes_where_its_wire_has_it_or_is_refused_by_name() {
    let body = |wire: Wire, parameters: Parameters, tools: bool| {
        let parameters = Parameters { max_output_tokens: Some(9), ..parameters };
        let mut config = Config { parameters, ..config(wire) };
        if wire == Wire::OpenaiChat {
            config.dialect = Some(Dialect { verbosity_field: Some("verbosity".into()), ..Dialect::default() });
        }
        let header = if tools { header() } else { Header::default() };
        Encoder::new(&header, &config).map(|encoder| encoder.body().to_vec())
    };
    let stop = || Parameters { stop: Some(vec!["END".into(), "\n\n".into()]), ..Parameters::default() };
    let verbose = || Parameters { verbosity: Some("low".into()), ..Parameters::default() };
    let choice = |choice| Parameters { tool_choice: Some(choice), ..Parameters::default() };
    let named = || choice(ToolChoice::Tool("read".into()));
    let has = |wire, parameters: Parameters, pointer: &str, expect: Value| {
        let body: Value = serde_json::from_slice(&body(wire, parameters, true).unwrap()).unwrap();
        assert_eq!(body.pointer(pointer), Some(&expect), "{wire}");
    };
    let refused = |wire, parameters: Parameters, tools, word: &str| {
        let failure = body(wire, parameters, tools).unwrap_err();
        assert_eq!(failure.code, FailureCode::Unsupported, "{wire}");
        assert!(failure.message.as_str().contains(word), "{wire}: {}", failure.message.as_str());
    };
    has(Wire::AnthropicMessages, stop(), "/stop_sequences", json!(["END", "\n\n"]));
    has(Wire::OpenaiChat, stop(), "/stop", json!(["END", "\n\n"]));
    has(Wire::Gemini, stop(), "/generationConfig/stopSequences", json!(["END", "\n\n"]));
    refused(Wire::OpenaiResponses, stop(), true, "stop");

    has(Wire::OpenaiResponses, verbose(), "/text/verbosity", json!("low"));
    has(Wire::OpenaiChat, verbose(), "/verbosity", json!("low"));
    refused(Wire::AnthropicMessages, verbose(), true, "verbosity");
    refused(Wire::Gemini, verbose(), true, "verbosity");

    has(Wire::AnthropicMessages, choice(ToolChoice::Required), "/tool_choice", json!({"type": "any"}));
    has(Wire::AnthropicMessages, named(), "/tool_choice", json!({"type": "tool", "name": "read"}));
    has(Wire::OpenaiResponses, choice(ToolChoice::Required), "/tool_choice", json!("required"));
    has(Wire::OpenaiResponses, named(), "/tool_choice", json!({"type": "function", "name": "read"}));
    has(Wire::OpenaiChat, choice(ToolChoice::None), "/tool_choice", json!("none"));
    has(Wire::OpenaiChat, named(), "/tool_choice", json!({"type": "function", "function": {"name": "read"}}));
    let calling = "/toolConfig/functionCallingConfig";
    has(Wire::Gemini, choice(ToolChoice::Auto), calling, json!({"mode": "AUTO"}));
    has(Wire::Gemini, named(), calling, json!({"mode": "ANY", "allowedFunctionNames": ["read"]}));
    let thinking = Parameters { effort: Some("high".into()), ..choice(ToolChoice::Required) };
    refused(Wire::AnthropicMessages, thinking, true, "effort");
    for wire in Wire::ALL {
        refused(wire, choice(ToolChoice::Tool("fly".into())), true, "fly");
        refused(wire, choice(ToolChoice::Required), false, "no tool");
        // Without tools there is nothing to choose.
        let plain = body(wire, Parameters::default(), false).unwrap();
        assert_eq!(body(wire, choice(ToolChoice::None), false).unwrap(), plain, "{wire}");
    }
}

#[test]
fn one_mark_at_the_top_stands_for_the_last_block() {
    let mut config = config(Wire::OpenaiChat);
    config.model = "anthropic/claude".into();
    let plain = encoder(&config, &header(), &session()[..3]);
    config.dialect = Some(Dialect { marked_models: vec!["anthropic/".into()], ..Dialect::default() });
    let marked = encoder(&config, &header(), &session()[..3]);
    assert_eq!(marked.marks(), [marked.items().len() - 1]);
    let body = marked.body();
    assert_eq!(body.marks, [marked.items().len() as u64 - 1]);
    assert_eq!(marked.body_digest().hash, Hash::of(&body.to_vec()));
    let mut value: Value = serde_json::from_slice(&body.to_vec()).unwrap();
    assert_eq!(value.as_object_mut().unwrap().remove("cache_control"), Some(json!({"type": "ephemeral"})));
    assert_eq!(value, serde_json::from_slice::<Value>(&plain.body().to_vec()).unwrap(), "nothing else changes");
    assert_eq!(marked.prompt_digest(0), plain.prompt_digest(0));
}

#[test]
fn encrypted_reasoning_is_asked_for_whatever_the_effort_is() {
    let include = |derive_rev: u32, effort: Option<&str>| {
        let mut config = Config { derive_rev, ..config(Wire::OpenaiResponses) };
        config.parameters.effort = effort.map(str::to_owned);
        String::from_utf8(encoder(&config, &header(), &[]).body().to_vec()).unwrap().contains("encrypted_content")
    };
    assert!(include(3, None) && include(3, Some("low")) && include(2, Some("low")));
    assert!(!include(2, None), "as older sessions sent it");
}
