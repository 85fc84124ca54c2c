//! The small repository that every run works in, and what the scripted model says.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use stele_testkit::{Say, Script};

/// What every script is asked.
pub const PROMPT: &str = "Add an identity function to the crate and run the tests.";
/// The second prompt of [`twelve_and_three`].
pub const SECOND_PROMPT: &str = "Look at the new file again and check the tests.";

/// Writes the repository: a README, a source file, notes, a program that prints a lot, and tests.
pub fn lay_out(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder.join("src"))?;
    fs::create_dir_all(folder.join("data"))?;
    fs::create_dir_all(folder.join(".git"))?;
    fs::write(folder.join("README.md"), README)?;
    let mut source = String::from("//! Integer set kept in a sorted vector.\n\npub struct Set { v: Vec<i64> }\n\n");
    for name in ["insert", "remove", "contains", "rank"] {
        source.push_str(&format!(
            "impl Set {{\n    /// See the README.\n    pub fn {name}(&mut self, x: i64) -> bool {{\n        \
             self.v.binary_search(&x).is_ok()\n    }}\n}}\n\n"
        ));
    }
    fs::write(folder.join("src").join("lib.rs"), source)?;
    let notes: String = (0..160).map(|n| format!("note {n:03}: alpha beta gamma, see item {}\n", n * 13)).collect();
    fs::write(folder.join("data").join("notes.txt"), notes)?;
    fs::write(folder.join("gen.sh"), GENERATE)?;
    fs::write(folder.join("run_tests.sh"), TESTS)?;
    Ok(())
}

const README: &str = "# tinyset\n\nA tiny crate to try things on. `src/lib.rs` holds an integer set on a sorted vector. \
Run `sh run_tests.sh` to check it; `gen.sh` prints about 20 KB.\n";

const GENERATE: &str = "i=0; while [ $i -lt 368 ]; do echo \"row $i value $((i * 7919 % 10007)) checksum \
$((i * 104729 % 65521)) status ok and stable\"; i=$((i + 1)); done\n";

const TESTS: &str = "echo 'running 12 tests'; for i in 00 01 02 03 04 05 06 07 08 09 10 11; do \
echo \"test tests::t$i ... ok\"; done; echo; echo 'test result: ok. 12 passed; 0 failed'\n";

fn read(path: &str, offset: usize) -> Say {
    Say::call("read", &json!({"path": path, "offset": offset, "limit": 20}))
}

/// So many steps that only read, the last of which is a text.
pub fn read_only(steps: usize) -> Script {
    turns_of_reading(1, steps)
}

/// Turns of so many steps that only read, the last of which is a text. Neighbouring calls are never the same.
pub fn turns_of_reading(turns: usize, steps: usize) -> Script {
    let call = |step: usize| match step % 4 {
        0 => Say::call("grep", &json!({"pattern": format!("note {:03}", step % 160), "path": "data"})),
        1 => read("README.md", 1 + step % 3),
        2 => read("src/lib.rs", 1 + step % 25),
        _ => read("data/notes.txt", 1 + step % 140),
    };
    let turn = |turn: usize| {
        let first = turn * steps;
        (first + 1..first + steps).map(call).chain([Say::text(format!("Part {} is read.", turn + 1))])
    };
    Script::new((0..turns).flat_map(turn))
}

/// Steps that read, write and edit, but start no program.
pub fn read_and_edit(steps: usize) -> Script {
    let mut says: Vec<Say> = (1..steps)
        .map(|step| match step % 4 {
            0 => Say::call("write", &json!({"path": format!("src/new{step}.rs"), "content": "pub fn a() {}\n"})),
            1 => read("src/lib.rs", 1 + step % 3),
            2 => {
                let (old, new) = (format!("//! Integer set{}", "!".repeat(step / 4)), "//! Integer set".to_owned());
                let edit = json!({"old": old, "new": new + &"!".repeat(step / 4 + 1)});
                Say::call("edit", &json!({"path": "src/lib.rs", "edits": [edit]}))
            }
            _ => Say::call("glob", &json!({"pattern": format!("src/*{}.rs", step % 10)})),
        })
        .collect();
    says.push(Say::text("I have edited everything."));
    Script::new(says)
}

/// Twelve steps for the first prompt and three for the second.
pub fn twelve_and_three() -> Script {
    let bash = |command: &str| Say::call("bash", &json!({"command": command}));
    Script::new([
        read("README.md", 1),
        read("src/lib.rs", 1),
        bash("ls"),
        bash("cat data/notes.txt"),
        bash("sh gen.sh"),
        bash("printf 'pub fn id(x: i64) -> i64 { x }\\n' > src/id.rs"),
        bash("sh run_tests.sh"),
        bash("wc -l src/lib.rs src/id.rs"),
        Say::call("todo", &json!({"items": [{"text": "add id", "status": "done"}]})),
        bash("grep -n 'pub fn' src/lib.rs").and_call("read", &json!({"path": "src/id.rs"})),
        Say::reasoning("Everything is there.").and_call("bash", &json!({"command": "head -5 data/notes.txt"})),
        Say::text("I added src/id.rs and ran the tests: 12 passed."),
        bash("cat src/id.rs"),
        bash("sh run_tests.sh"),
        Say::text("src/id.rs is as expected and the tests still pass."),
    ])
}

/// The lines that the kill script's commands append to the file of markers, in order.
pub const MARKERS: [&str; 4] = ["one", "two", "three", "four"];

/// Twelve steps that read, edit and run commands with effects. Each command appends its marker to `outside/markers`;
/// before that it stops where the file `outside/gate.MARKER` says, until somebody writes into `outside/pipe`.
///
/// To a call whose outcome is unknown the model reacts as it is told to: it looks first, then it repeats the call.
pub fn with_effects(outside: &Path) -> Script {
    let markers = outside.join("markers").display().to_string();
    let command = |marker: &str, work: &str| {
        let outside = outside.display();
        let stop = |place: &str| {
            format!(
                "if [ -e '{outside}/gate.{marker}.{place}' ]; then : > '{outside}/inside'; cat '{outside}/pipe'; fi"
            )
        };
        let (before, after) = (stop("before"), stop("after"));
        let line = format!("{before}; {work} && echo {marker} >> '{markers}'; {after}");
        Say::call("bash", &json!({"command": line}))
    };
    let edit =
        |old: &str, new: &str| Say::call("edit", &json!({"path": "src/lib.rs", "edits": [{"old": old, "new": new}]}));
    let [one, two, three, four] = MARKERS;
    let steps = [
        read("README.md", 1).and_call("grep", &json!({"pattern": "binary_search", "path": "src"})),
        Say::call("read", &json!({"path": "src/lib.rs"})),
        edit("pub struct Set { v: Vec<i64> }", "pub struct Set { pub values: Vec<i64> }"),
        command(one, "printf 'pub fn id(x: i64) -> i64 { x }\\n' > src/id.rs"),
        Say::text("Now a file of its own.")
            .and_call("write", &json!({"path": "src/two.rs", "content": "pub fn two() -> i64 {\n    2\n}\n"})),
        command(two, "sh run_tests.sh > tests.log"),
        Say::call("todo", &json!({"items": [{"text": "edit", "status": "done"}, {"text": "test", "status": "pending"}]})),
        command(three, "sh gen.sh > data/rows.txt && wc -c data/rows.txt"),
        Say::reasoning("One more edit.").and_call(
            "edit",
            &json!({"path": "src/lib.rs", "edits": [{"old": "//! Integer set kept", "new": "//! A set of integers, kept"}]}),
        ),
        command(four, "mkdir -p out && cp src/id.rs out/id.rs"),
        read("src/two.rs", 1).and_call("read", &json!({"path": "src/id.rs"})),
        Say::text("The crate has an identity function, and its 12 tests pass. ".repeat(12)),
    ];
    Script::new(steps).reacting(move |exchanges| {
        let mut says = Vec::new();
        for exchange in exchanges.iter().filter(|exchange| exchange.result.text.contains("outcome_unknown")) {
            let Some(call) = exchange.call else { continue };
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
            says.push(Say::call("read", &json!({"path": arguments["path"].as_str().unwrap_or(&markers)})));
            says.push(Say::raw_call(call.name.as_str(), call.arguments.as_str()));
        }
        says
    })
}
