//! The catalogue of events in `docs/` is generated; `STELE_UPDATE_DOCS=1 cargo test --workspace catalogue` writes it.

use std::fmt::Write as _;
use std::path::PathBuf;

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};
use stele_core::Event;

/// What each kind is for, from the enum's documentation, in one line each.
fn generated() -> (String, String) {
    let mut generator = SchemaGenerator::default();
    let kinds = Event::catalogue(&mut generator);
    let definitions = generator.take_definitions(true);
    let mut page = String::from(
        "# Events\n\nA record is one JSON object `{v, seq, ts, kind, turn?, step?, cites?, ignorable?, data}` in this order; \
         `ts` is UTC\nmilliseconds, `cites` lists the blobs that the record needs. The kinds that this version writes, with \
         their `data`;\nthe same as JSON Schema is in [events.schema.json](events.schema.json).\n",
    );
    for (kind, schema) in &kinds {
        let name = schema.as_value()["$ref"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        let definition = &definitions[name];
        write!(page, "\n## `{kind}`\n\n").unwrap();
        let required = definition["required"].as_array().cloned().unwrap_or_default();
        let empty = Map::new();
        let fields = definition["properties"].as_object().unwrap_or(&empty);
        if fields.is_empty() {
            page.push_str("No data.\n");
            continue;
        }
        page.push_str("| field | what it says |\n|---|---|\n");
        for (field, shape) in fields {
            let optional = if required.contains(&Value::from(field.as_str())) { "" } else { "?" };
            let says = shape["description"].as_str().unwrap_or("").replace(['\n', '|'], " ");
            writeln!(page, "| `{field}{optional}` | {says} |").unwrap();
        }
    }
    page.push_str(
        "\n- **What the model sees:** the surface events alone: `user/message`, `assistant/message`, `tool/result`, and the \
         header in `epoch/opened`.\n- **What it costs in tokens:** nothing beyond those.\n- **What it does to the cache:** \
         nothing; a change of the header is an `epoch/opened` with its reason.\n",
    );
    let one_of: Vec<Value> = kinds
        .iter()
        .map(|(kind, schema)| {
            json!({
                "properties": { "kind": { "const": kind }, "data": schema.as_value() },
                "required": ["kind", "data"]
            })
        })
        .collect();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "stele record",
        "type": "object",
        "required": ["v", "seq", "ts", "kind", "data"],
        "properties": {
            "v": { "type": "integer" },
            "seq": { "type": "integer", "minimum": 0 },
            "ts": { "type": "integer", "description": "UTC milliseconds" },
            "turn": { "type": "integer" },
            "step": { "type": "integer" },
            "cites": { "type": "array", "items": { "type": "string" } },
            "ignorable": { "type": "boolean" }
        },
        "oneOf": one_of,
        "$defs": definitions
    });
    (page, format!("{}\n", serde_json::to_string_pretty(&schema).unwrap()))
}

#[test]
fn the_documents_describe_what_this_build_writes() {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let (page, schema) = generated();
    for (file, content) in [("events.md", page), ("events.schema.json", schema)] {
        let path = docs.join(file);
        if std::env::var_os("STELE_UPDATE_DOCS").is_some() {
            std::fs::write(&path, &content).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == content,
            "docs/{file} is not up to date: run STELE_UPDATE_DOCS=1 cargo test --workspace catalogue"
        );
    }
}
