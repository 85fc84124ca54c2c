//! A session of fifty steps with everything that could move a byte of an earlier request: a list of things to do, modes
//! switched, a word while the agent works, jobs in the background and what is told of them, a turn taken back, and two
//! resumes in other processes with another language and time zone.
//!
//! [`play`] drives a binary through it, from outside. [`Session::judge`] reads what the *server* received, and what the
//! log says of it.

use std::fs;
use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use stele_core::Wire;

use crate::behaviour::Behaviour;
use crate::fault::{Cut, Fault, FaultKind};
use crate::parsed::list;
use crate::prompt;
use crate::script::{Say, Script};
use crate::server::{Received, Server};
use crate::terminal::Terminal;

/// Requests of the session.
pub const STEPS: usize = 50;
/// What the person says in the middle of the first turn.
const STEERING: &str = "Mind the edge cases.";
/// The step, from 0, in whose answer the person says it.
const STEERED: usize = 6;

/// What was left behind.
#[derive(Debug)]
pub struct Session {
    /// The wire.
    pub wire: Wire,
    /// What the server received.
    pub requests: Vec<Received>,
    /// The records of its log, as `sessions show --json` gives them.
    pub log: Vec<Value>,
    /// The requests of `cache report --json`.
    pub report: Vec<Value>,
}

/// What was found in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// The least share of an earlier request, of 1, that the next one inside the same epoch begins with.
    pub kept: f64,
    /// Pairs that this was looked at for.
    pub pairs: usize,
    /// The reasons of the epochs, in order.
    pub cuts: Vec<String>,
    /// Epochs whose record does not say what the route costs or, after the first, what leaving the last one costs.
    pub unpriced: usize,
    /// Share of the input, of 1, that was read from the cache after the first step.
    pub read: f64,
    /// Requests that read something else than was predicted, to 2 % and one unit of the vendor's counting.
    pub unlike: Vec<String>,
    /// How often each kind of record that the session is about is in the log.
    pub happened: Vec<(&'static str, usize)>,
}

fn say(tool: &str, arguments: &Value) -> Say {
    Say::call(tool, arguments)
}

fn read(path: &str, offset: usize) -> Say {
    say("read", &json!({"path": path, "offset": offset, "limit": 12}))
}

fn bash(command: &str) -> Say {
    say("bash", &json!({"command": command}))
}

fn todo(items: &[(&str, &str)]) -> Say {
    let items: Vec<Value> = items.iter().map(|(text, status)| json!({"text": text, "status": status})).collect();
    say("todo", &json!({"items": items}))
}

fn edit(path: &str, old: &str, new: &str) -> Say {
    say("edit", &json!({"path": path, "edits": [{"old": old, "new": new}]}))
}

fn script() -> Vec<Say> {
    let mut says = vec![
        // A first turn, in which a job is started, the person speaks, and the job ends.
        todo(&[("look", "in_progress"), ("add a function", "pending"), ("test", "pending")]),
        say("read", &json!({"path": "src/lib.rs"})).and_call("read", &json!({"path": "notes.txt", "limit": 140})),
        bash("mkfifo pipe && ls"),
        say("bash", &json!({"command": "cat pipe", "background": true})),
        say("bash", &json!({"command": "sleep 1000", "background": true})),
        Say::reasoning("The set is sorted.").and_call("grep", &json!({"pattern": "pub fn", "path": "src"})),
        read("notes.txt", 61),
        todo(&[("look", "done"), ("add a function", "in_progress"), ("test", "pending")]),
        bash("echo built > pipe"),
        read("src/lib.rs", 3),
        say("write", &json!({"path": "src/id.rs", "content": "pub fn id(x: i64) -> i64 {\n    x\n}\n"})),
        say("jobs", &json!({"action": "list"})),
        bash("sh run_tests.sh"),
        Say::text("The function is there."),
        // A second one in another mode.
        todo(&[("look", "done"), ("add a function", "done"), ("test", "in_progress")]),
        read("src/id.rs", 1),
        edit("src/id.rs", "pub fn id(x: i64)", "/// Gives back what it is given.\npub fn id(x: i64)"),
    ];
    says.extend((1..7).map(|step| read("notes.txt", 70 + 9 * step)));
    says.push(Say::text("It has a comment now."));
    // A third one, which is taken back.
    says.extend([
        bash("printf 'wrong\\n' > wrong.txt"),
        edit("src/id.rs", "    x\n", "    x + 1\n"),
        todo(&[("something else", "in_progress")]),
        bash("sh run_tests.sh"),
        Say::text("It adds one now."),
    ]);
    // A fourth one in its place.
    says.extend((1..7).map(|step| say("grep", &json!({"pattern": format!("note {step:02}4"), "path": "notes.txt"}))));
    says.push(Say::text("The notes are read."));
    // A fifth and a sixth one, in processes of their own.
    says.extend((1..7).map(|step| read("notes.txt", 5 + 7 * step)));
    says.push(Say::text("Those too."));
    while says.len() < STEPS - 1 {
        says.push(read("src/lib.rs", 2 + says.len() % 9));
    }
    says.push(Say::text("Everything is done."));
    says
}

fn lay_out(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder.join("src"))?;
    // Long enough that one read brings the prompt from below every vendor's minimum to above all of them.
    let functions: String = [
        "insert",
        "remove",
        "contains",
        "rank",
        "first",
        "last",
        "floor",
        "ceiling",
        "next",
        "previous",
        "split",
        "merge",
        "drain",
        "retain",
        "union",
        "difference",
        "sum",
        "product",
        "median",
        "mode",
    ]
    .iter()
    .map(|name| {
        format!(
            "    /// See the README: {name}.\n    pub fn {name}(&mut self, x: i64) -> bool {{\n        \
                 let found = self.values.binary_search(&x);\n        found.is_ok() // {name}\n    }}\n\n"
        )
    })
    .collect();
    let source = format!("//! A set.\n\npub struct Set {{\n    values: Vec<i64>,\n}}\n\nimpl Set {{\n{functions}}}\n");
    fs::write(folder.join("src").join("lib.rs"), source)?;
    let notes: String =
        (1..=140).map(|n| format!("note {n:03}: alpha beta gamma delta, see item {}\n", n * 13)).collect();
    fs::write(folder.join("notes.txt"), notes)?;
    fs::write(folder.join("run_tests.sh"), "for i in 1 2 3 4 5 6; do echo \"test t$i ... ok\"; done\n")?;
    fs::write(folder.join("AGENTS.md"), "Keep functions short.\n")
}

/// Plays the session with a binary, in a folder that is there and empty.
///
/// # Errors
/// The binary ended otherwise than it should have; the message has what it said.
pub fn play(stele: &Path, wire: Wire, folder: &Path) -> io::Result<Session> {
    let work = folder.join("work");
    lay_out(&work)?;
    let behaviour = Behaviour::in_order(Script::new(script())).fault(Fault::at(
        STEERED,
        1..=1,
        FaultKind::Stall { at: Cut::Start },
    ));
    let server = Server::start(behaviour)?;
    let stage = Stage { stele: stele.to_owned(), folder: folder.to_owned(), work };
    stage.configure(wire, &server.base_url(wire))?;

    let mut command = stage.command(&["--mode", "full"], "C", "UTC");
    command.env("NO_COLOR", "1");
    let mut terminal = Terminal::start(command)?;
    terminal.wait_for("> ")?;
    terminal.type_line("Add an identity function to the crate.")?;
    server.wait_for(STEERED + 1, Duration::from_secs(60)).ok_or_else(|| Error::other("the first turn stopped"))?;
    terminal.type_line(STEERING)?;
    terminal.wait_for("at its next step")?;
    server.release();
    let mut turn = |typed: Option<&str>, answer: &str| {
        if let Some(typed) = typed {
            terminal.type_line(typed)?;
        }
        terminal.wait_for(answer)?;
        terminal.wait_for("> ")
    };
    turn(None, "The function is there.")?;
    turn(Some("/mode edit"), "mode edit")?;
    turn(Some("Write a comment for it."), "It has a comment now.")?;
    turn(Some("/mode full"), "mode full")?;
    turn(Some("Make it add one."), "It adds one now.")?;
    turn(Some("/undo"), "new cache prefix")?;
    turn(Some("Rather read the notes."), "The notes are read.")?;
    terminal.type_line("/quit")?;
    let (status, seen) = terminal.end()?;
    if !status.success() {
        return Err(Error::other(format!("the first process ended with {status}:\n{seen}")));
    }

    stage.output(&["run", "--continue", "--mode", "full", "Read the others too."], "de_DE.UTF-8", "Asia/Tokyo")?;
    let sessions = stage.output(&["sessions", "list", "--json"], "C", "UTC")?;
    let id = sessions.first().and_then(|row| row["session"].as_str()).ok_or_else(|| Error::other("no session"))?;
    stage.output(
        &["run", "--resume", id, "--mode", "ask", "And what is left."],
        "tr_TR.UTF-8",
        "Pacific/Kiritimati",
    )?;
    stage.output(&["verify", id, "--json"], "C", "UTC")?;
    if work_differs(&stage.work) {
        return Err(Error::other("the files are not those of a session whose third turn was taken back"));
    }
    let mut report = stage.output(&["cache", "report", id, "--json"], "C", "UTC")?;
    report.retain(|line| line["type"] == "request");
    Ok(Session {
        wire,
        requests: server.requests(),
        log: stage.output(&["sessions", "show", id, "--json"], "C", "UTC")?,
        report,
    })
}

/// Whether the undo left something of the third turn.
fn work_differs(work: &Path) -> bool {
    let id = fs::read_to_string(work.join("src").join("id.rs")).unwrap_or_default();
    work.join("wrong.txt").exists() || id != "/// Gives back what it is given.\npub fn id(x: i64) -> i64 {\n    x\n}\n"
}

struct Stage {
    stele: PathBuf,
    folder: PathBuf,
    work: PathBuf,
}

impl Stage {
    /// A route with a price, so that cuts can be priced.
    fn configure(&self, wire: Wire, base_url: &str) -> io::Result<()> {
        let home = self.folder.join("home");
        fs::create_dir_all(&home)?;
        let route = format!(
            "[routes.scripted]\nwire = \"{}\"\nbase_url = \"{base_url}\"\nmodel = \"scripted\"\nprice = {{ input = 3_000_000, \
             output = 15_000_000, cache_read = 300_000, cache_write_5m = 3_750_000, cache_write_1h = 6_000_000 }}\n",
            wire.name()
        );
        fs::write(home.join("config.toml"), route)
    }

    fn command(&self, arguments: &[&str], language: &str, zone: &str) -> Command {
        let mut command = Command::new(&self.stele);
        command
            .args(arguments)
            .current_dir(&self.work)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.folder)
            .env("TMPDIR", &self.folder)
            .env("STELE_HOME", self.folder.join("home"))
            .env("LANG", language)
            .env("LC_ALL", language)
            .env("TZ", zone)
            .stdin(Stdio::null());
        command
    }

    /// The JSON lines that a command prints.
    fn output(&self, arguments: &[&str], language: &str, zone: &str) -> io::Result<Vec<Value>> {
        let output = self.command(arguments, language, zone).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(Error::other(format!("{arguments:?} ended with {}:\n{text}\n{error}", output.status)));
        }
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }
}

impl Session {
    /// Holds what arrived against what the log says.
    ///
    /// # Errors
    /// The requests of the log are not those that arrived.
    pub fn judge(&self) -> Result<Findings, String> {
        let arrived: Vec<&Received> = self.requests.iter().filter(|request| request.wire.is_some()).collect();
        let epochs = self.epochs();
        if arrived.len() != STEPS || epochs.len() != STEPS || self.report.len() != STEPS {
            let (sent, reported) = (epochs.len(), self.report.len());
            return Err(format!("{} requests arrived, {sent} are in the log, {reported} in the report", arrived.len()));
        }
        let prompts: Vec<String> =
            arrived.iter().map(|request| prompt::joined(&prompt::pieces(self.wire, &request.json()))).collect();
        let shares: Vec<f64> = prompts
            .windows(2)
            .zip(epochs.windows(2))
            .filter(|(_, epochs)| epochs.first() == epochs.last())
            .filter_map(|(pair, _)| match pair {
                [one, next] => Some(prompt::shared(one, next) as f64 / one.len() as f64),
                _ => None,
            })
            .collect();
        let counted: Vec<_> = arrived.iter().filter_map(|request| request.counted).skip(1).collect();
        let sum = |of: fn(&crate::cache::Counted) -> u64| counted.iter().map(of).sum::<u64>() as f64;
        let opened = self.records("epoch/opened");
        Ok(Findings {
            kept: shares.iter().copied().fold(1.0, f64::min),
            pairs: shares.len(),
            cuts: opened.iter().map(|record| reason(&record["data"]["reason"])).collect(),
            unpriced: opened.iter().enumerate().filter(|(index, record)| is_unpriced(*index, &record["data"])).count(),
            read: sum(|counted| counted.cache_read) / sum(|counted| counted.input),
            unlike: self.unlike(&arrived),
            happened: self.happened(&arrived),
        })
    }

    fn records(&self, kind: &str) -> Vec<&Value> {
        self.log.iter().filter(|record| record["kind"] == kind).collect()
    }

    /// The epoch of each request in the log.
    fn epochs(&self) -> Vec<u64> {
        let mut epoch = 0;
        let mut epochs = Vec::new();
        for record in &self.log {
            match record["kind"].as_str() {
                Some("epoch/opened") => epoch += 1,
                Some("request/sent") => epochs.push(epoch),
                _ => {}
            }
        }
        epochs
    }

    /// What the cache of the server read, beside what the report says should have been read.
    fn unlike(&self, arrived: &[&Received]) -> Vec<String> {
        let step = if matches!(self.wire, Wire::OpenaiChat | Wire::OpenaiResponses) { 128 } else { 1 };
        let mut unlike = Vec::new();
        for (index, (request, line)) in arrived.iter().zip(&self.report).enumerate().skip(1) {
            let read = request.counted.map_or(0, |counted| counted.cache_read);
            let predicted = line["predicted"].as_u64().unwrap_or(u64::MAX);
            if read.abs_diff(predicted) > step + predicted / 50 {
                unlike.push(format!("step {}: {predicted} predicted, {read} read, {}", index + 1, line["verdict"]));
            }
        }
        unlike
    }

    fn happened(&self, arrived: &[&Received]) -> Vec<(&'static str, usize)> {
        let last = arrived.last().map(|request| request.json().to_string()).unwrap_or_default();
        let counted = |kind: &'static str| (kind, self.records(kind).len());
        vec![
            counted("todo/set"),
            counted("mode/set"),
            counted("undo/applied"),
            counted("turn/started"),
            ("steering", usize::from(last.contains(STEERING))),
            (
                "notices of jobs",
                self.records("inbox/queued").iter().filter(|record| !list(&record["data"], "jobs").is_empty()).count(),
            ),
        ]
    }
}

fn is_unpriced(index: usize, opened: &Value) -> bool {
    opened["price"].is_null() || (index > 0 && opened["cost"].is_null())
}

fn reason(reason: &Value) -> String {
    // A reason with particulars is an object whose only key, or whose kind, is its name.
    let named = reason.as_str().or_else(|| reason["kind"].as_str());
    let key = || reason.as_object().and_then(|object| object.keys().next().map(String::as_str));
    named.or_else(key).unwrap_or_default().to_owned()
}
