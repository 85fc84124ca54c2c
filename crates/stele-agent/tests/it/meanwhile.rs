//! Somebody changes a file after a call has logged what it is about to change, and before it does.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use stele_agent::ChangedSince;
use stele_core::{
    By, CallCard, Effects, Future, Invocation, ResultCard, ResultMeta, Subject, Tool, ToolError, ToolOutput, ToolSpec,
    Wire,
};
use stele_testkit::{Say, Script};

use crate::stage::{Stage, ask};

/// A tool beside which somebody writes to a file, once.
struct Beside {
    tool: Arc<dyn Tool>,
    file: PathBuf,
    done: Arc<AtomicBool>,
}

impl Tool for Beside {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn effects(&self) -> Effects {
        self.tool.effects()
    }

    fn parallel(&self, arguments: &str) -> bool {
        self.tool.parallel(arguments)
    }

    fn subjects(&self, arguments: &str) -> Result<Vec<Subject>, ToolError> {
        self.tool.subjects(arguments)
    }

    fn call_card(&self, arguments: &str, cwd: &Path) -> CallCard {
        self.tool.call_card(arguments, cwd)
    }

    fn result_card(&self, arguments: &str, content: &str, meta: &ResultMeta) -> ResultCard {
        self.tool.result_card(arguments, content, meta)
    }

    fn run<'a>(&'a self, mut invocation: Invocation<'a>) -> Future<'a, ToolOutput> {
        let (log, file, done) = (Arc::clone(&invocation.ahead), self.file.clone(), Arc::clone(&self.done));
        invocation.ahead = Arc::new(move |changes| {
            log(changes)?;
            if !done.swap(true, Ordering::Relaxed) {
                fs::write(&file, "theirs\nold\n").unwrap();
            }
            Ok(())
        });
        self.tool.run(invocation)
    }
}

/// Runs the calls, and takes the turn back; what the file was after the one and the other.
async fn undone(calls: Vec<Say>) -> (String, String) {
    let mut says = calls;
    says.push(Say::text("Done."));
    let stage = Stage::new(Wire::OpenaiChat, Script::new(says));
    stage.write("f", "old\n");
    let agent = stage.agent_with(|options| {
        let done = Arc::new(AtomicBool::new(false));
        for tool in &mut options.tools {
            *tool = Arc::new(Beside { tool: Arc::clone(tool), file: stage.path("f"), done: Arc::clone(&done) });
        }
    });
    let mut driver = stele_agent::Driver::create(&agent, &stage.start()).unwrap();
    ask(&mut driver, "go").await;
    let after = stage.read("f");
    let restored = driver.undo(By::person("test"), ChangedSince::Leave).await.unwrap();
    assert_eq!(restored.left, []);
    (after, stage.read("f"))
}

#[tokio::test]
async fn an_undo_goes_back_to_what_was_truly_replaced() {
    let edit = Say::call("edit", &json!({"path": "f", "old": "old", "new": "new"}));
    assert_eq!(undone(vec![edit]).await, ("theirs\nnew\n".to_owned(), "theirs\nold\n".to_owned()));
}

#[tokio::test]
async fn an_undo_has_nothing_to_do_with_a_call_that_gave_up() {
    let read = Say::call("read", &json!({"path": "f"}));
    let write = Say::call("write", &json!({"path": "f", "content": "new\n"}));
    let theirs = "theirs\nold\n".to_owned();
    assert_eq!(undone(vec![read, write]).await, (theirs.clone(), theirs));
}
