//! `stele demo`: the ordinary run against a scripted model on a local port, in a small project of its own, which goes in
//! the end. Its session stays among all others, so that it can be looked at and verified; no configuration but the
//! machine's policy has a say in it, and what is learned of its endpoint is forgotten.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use stele_agent::Approvals;
use stele_core::limits::TurnLimits;
use stele_core::{Event, FileAction, Mode, SessionId, Wire};
use stele_provider::Route;
use stele_store::Store;
use stele_testkit::{Behaviour, Pace, Say, Script, Server};
use tempfile::TempDir;

use crate::args::{DemoArgs, Global, SessionArgs};
use crate::commands::{cache, run, sessions};
use crate::drive::Front;
use crate::error::{CommandError, Result};
use crate::feed::records;
use crate::front;
use crate::output;
use crate::person::Person;
use crate::prompt::Prompts;
use crate::render::inert::inert;
use crate::render::style::Style;
use crate::render::word::shell_word;
use crate::render::{card, diff};
use crate::runtime::runtime;
use crate::sessions::{DEMO_MODEL, Wanted, Which};
use crate::setup::{Environment, Setup};
use crate::signals::Signals;

/// The project, file by file.
const PROJECT: [(&str, &str); 3] = [
    ("README.md", include_str!("../../demo/README.md")),
    ("format.sh", include_str!("../../demo/format.sh")),
    ("test.sh", include_str!("../../demo/test.sh")),
];

const PROMPT: &str = "The test of this project fails. Find out why, fix it, and show that it passes.";

/// Time before an answer and between its pieces, for somebody who watches.
const FIRST: Duration = Duration::from_millis(150);
const BETWEEN: Duration = Duration::from_millis(12);

/// Makes a place for it, runs it there, and leaves its session.
pub fn main(environment: Environment, global: &Global, args: &DemoArgs) -> Result<u8> {
    if global.cwd.is_some() {
        let message = "the demonstration makes a folder of its own, so -C means nothing to it; set TMPDIR to say where";
        return Err(CommandError::usage("usage.folder", message));
    }
    let scratch = Scratch::new().map_err(|error| {
        CommandError::usage("demo.folder", format!("cannot make a folder for the demonstration: {error}; set TMPDIR"))
    })?;
    let flags = SessionArgs { allow: vec!["bash(sh test.sh)".to_owned()], ..SessionArgs::default() };
    let data = crate::setup::data(&environment);
    let environment = environment.with("STELE_HOME", &scratch.home());
    let global = Global { cwd: Some(scratch.project()), ..global.clone() };
    let mut setup = Setup::new(environment, &global, &flags)?;
    // Where nothing says where sessions are kept, this one is not.
    let kept = data.map(|data| setup.config.data = data).is_some();
    let exit = show(&setup, args, &scratch, kept)?;
    scratch.end(args.keep)?;
    Ok(exit)
}

/// Runs it, then shows what came of it.
fn show(setup: &Setup, args: &DemoArgs, scratch: &Scratch, kept: bool) -> Result<u8> {
    let pace = if std::io::stdout().is_terminal() {
        Pace { first: FIRST, between: BETWEEN, ..Pace::default() }
    } else {
        Pace::default()
    };
    let server = Server::start(Behaviour::from(script()).pace(pace)).map_err(|error| {
        CommandError::usage("demo.server", format!("cannot listen on a port of 127.0.0.1: {error}"))
    })?;
    let routes = vec![route(&server)];
    let runtime = runtime()?;
    let style = setup.look.stdout();
    let exit = runtime.block_on(async {
        let tools = setup.tools(None);
        let agent = setup.agent(routes, Approvals::Nobody, tools.clone())?;
        let plan = run::Plan {
            which: Which::New,
            wanted: Wanted::default(),
            mode: Mode::Edit,
            folder: setup.folder.clone(),
            prompts: Prompts::One(Some(PROMPT.to_owned())),
            limits: TurnLimits::default(),
            schema: None,
            warn_above: setup.config.warn_above,
            chosen: None,
            skipped: setup.skipped(None),
            jobs: Arc::clone(&setup.jobs),
        };
        let view = front::view(setup, &args.output, tools, false);
        let mut front = Front { view, person: Person::nobody(), signals: Signals::new()? };
        if let (Some(text), false) = (front.view.text(), args.output.quiet) {
            let end = if args.keep { "" } else { " (removed at the end, unless --keep is given)" };
            let folder = setup.folder.display();
            text.warn(&format!("{} {folder}{}\n{} {PROMPT}\n", style.dim("folder"), style.dim(end), style.bold(">")));
        }
        let mut outcome = run::execute(&agent, plan, &mut front).await;
        outcome.goes_on = false;
        let session = outcome.result.session.clone();
        if !kept {
            (outcome.result.session, outcome.result.head) = (None, None);
        }
        let exit = run::finish(setup, &args.output, &mut front.view, outcome)?;
        if let (false, Some(session)) = (args.output.quiet || args.output.json, session) {
            let session = agent.store().resolve(&session)?;
            let mut lines = report(agent.store(), &session, &setup.folder, style)?;
            heading(&mut lines, "What to type next", style);
            lines.extend(advice(kept.then_some(&session), args.keep.then_some(scratch), style));
            output::print(&lines.join("\n"))?;
        }
        Ok(exit)
    });
    runtime.shutdown_background();
    exit
}

/// A folder with a fresh copy of the project, and a home without any configuration. It goes with this value.
struct Scratch {
    folder: TempDir,
}

impl Scratch {
    fn new() -> std::io::Result<Self> {
        let scratch = Self { folder: tempfile::Builder::new().prefix("stele-demo-").tempdir()? };
        std::fs::create_dir(scratch.project())?;
        for (name, content) in PROJECT {
            std::fs::write(scratch.project().join(name), content)?;
        }
        Ok(scratch)
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// What `STELE_HOME` says while it runs.
    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn end(self, keep: bool) -> Result<()> {
        if keep {
            let _ = self.folder.keep();
            return Ok(());
        }
        let path = self.folder.path().to_owned();
        self.folder.close().map_err(|error| {
            CommandError::failed(
                "demo.folder",
                format!("cannot remove {}: {error}; remove it yourself", path.display()),
            )
        })
    }
}

fn route(server: &Server) -> Route {
    Route::new("demo", Wire::AnthropicMessages, &server.base_url(Wire::AnthropicMessages), DEMO_MODEL)
}

/// What the scripted model says.
fn script() -> Script {
    let todo = |done: usize| {
        let texts = ["find out why the test fails", "fix it", "run the test again"];
        let items = texts.iter().enumerate().map(|(at, text)| {
            let status = match at.cmp(&done) {
                std::cmp::Ordering::Less => "done",
                std::cmp::Ordering::Equal => "in_progress",
                std::cmp::Ordering::Greater => "pending",
            };
            json!({"text": text, "status": status})
        });
        json!({"items": items.collect::<Vec<_>>()})
    };
    let test = json!({"command": "sh test.sh", "description": "run the test"});
    let edit = json!({"path": "format.sh", "edits": [{
        "old": "minutes=$((seconds / 60))",
        "new": "minutes=$((seconds % 3600 / 60))",
    }]});
    Script::new([
        Say::text("I read the project and run its test first.")
            .and_call("todo", &todo(0))
            .and_call("read", &json!({"path": "README.md"}))
            .and_call("read", &json!({"path": "format.sh"}))
            .and_call("read", &json!({"path": "test.sh"})),
        Say::call("bash", &test),
        Say::text("`minutes` counts those of whole hours too: 3725 seconds have 62 of them.\nThe hours have to be taken off first.")
            .and_call("edit", &edit)
            .and_call("todo", &todo(2)),
        Say::call("bash", &test),
        Say::call("todo", &todo(3)),
        Say::text(
            "The test passes now. `format.sh` counted whole hours twice, as hours and as\n\
             minutes; now it takes the rest of an hour. One line changed.",
        ),
    ])
}

/// Everything that can be looked at afterwards, taken from the log.
fn report(store: &Store, session: &SessionId, folder: &Path, style: Style) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let mut test = String::new();
    heading(&mut lines, "What changed", style);
    for logged in records(store, session)? {
        let Event::ToolResult(result) = logged?.record.event else { continue };
        if result.meta.process.is_some() {
            test = inert(result.content.as_str());
        }
        for file in result.meta.files.iter().filter(|file| file.action != FileAction::Read) {
            lines.push(format!("{} {}", card::relative(&file.path, folder), card::change(file, style)));
            if let Some(text) = &file.diff {
                lines.extend(diff::lines(text.as_str(), style, diff::LINES));
            }
        }
    }
    heading(&mut lines, "The test now", style);
    lines.extend(test.lines().map(str::to_owned));
    heading(&mut lines, "Timeline", style);
    lines.push(sessions::timeline_text(store, session, false, style)?);
    heading(&mut lines, "Prompt cache, request by request", style);
    lines.extend(cache::figures(store, session, style)?);
    Ok(lines)
}

/// Commands for whoever liked it: about its session and its project where these stay.
fn advice(session: Option<&SessionId>, project: Option<&Scratch>, style: Style) -> Vec<String> {
    let mut commands = Vec::new();
    if let Some(session) = session {
        let short = &session.as_str()[..18];
        commands.extend([
            (format!("stele verify {short}"), "every request, byte for byte"),
            (format!("stele sessions show {short}"), "all of it again, from the log"),
            (format!("stele cache report {short}"), "what the prompt cache did"),
            (format!("stele sessions rm {short}"), "remove it; nothing else does"),
        ]);
    }
    if let Some(scratch) = project {
        let word = |path: &Path| shell_word(&path.display().to_string());
        commands.extend([
            (format!("cd {}", word(&scratch.project())), "the project"),
            (format!("rm -r {}", word(scratch.folder.path())), "remove it; nothing else does"),
        ]);
    } else {
        commands.push(("stele demo --keep".to_owned(), "the same; its project stays"));
    }
    commands.push(("stele doctor".to_owned(), "what a real model needs here"));
    commands.iter().map(|(command, what)| format!("  {command:<41} {}", style.dim(what))).collect()
}

fn heading(lines: &mut Vec<String>, text: &str, style: Style) {
    lines.push(String::new());
    lines.push(style.bold(text));
}
