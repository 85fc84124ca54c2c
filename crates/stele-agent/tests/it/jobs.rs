//! Commands in the background, and the folder that commands leave the session in.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::json;
use serde_json::value::RawValue;
use stele_agent::{ChangedSince, Driver, Notice, OpenPolicy, Opening, Place, Until};
use stele_core::{
    By, CallCard, CardKind, Effects, EndReason, Event, Invocation, JobId, JobMeta, JobNotice, JobStatus, ResultCard,
    ResultMeta, Source, Subject, Tool, ToolError, ToolOutput, ToolSpec, Wire,
};
use stele_testkit::{Behaviour, ParsedRequest, Say, Script};
use tokio::sync::mpsc;

use crate::stage::{Stage, ask, bash, idle, prompt, prompt_items};

#[tokio::test]
async fn the_end_of_a_job_joins_the_open_turn() {
    // The model does other things until it is told.
    let behaviour = Behaviour::answering(|request: &ParsedRequest| {
        let all = request.raw.to_string();
        match (all.contains("started j1"), all.contains("job-notice")) {
            (false, _) => Say::call("bash", &json!({"command": "exit 3", "background": true})).into(),
            (true, false) => Say::call("bash", &bash(&format!("sleep 0.1; : {}", all.len()))).into(),
            (true, true) => Say::text("It failed.").into(),
        }
    });
    let stage = Stage::new(Wire::AnthropicMessages, behaviour);
    let mut driver = stage.create();
    assert_eq!(ask(&mut driver, "test it").await, EndReason::Completed);
    let items = prompt_items(stage.requests().last().unwrap());
    let notices: Vec<&String> = items.iter().filter(|item| item.contains("job-notice")).collect();
    assert_eq!(notices.len(), 1);
    assert!(notices[0].contains("j1: exit 3"), "{}", notices[0]);
    assert_eq!(driver.state().open_jobs().count(), 0);
    assert_eq!(driver.state().counters().turns, 1);
}

#[tokio::test]
async fn a_job_that_ends_between_turns_wakes_nobody_and_is_told_with_the_next_prompt() {
    let script = Script::new([
        Say::call("bash", &json!({"command": "until [ -e gate ]; do sleep 0.01; done", "background": true})),
        Say::text("It runs."),
        Say::text("I see."),
    ]);
    let stage = Stage::new(Wire::OpenaiChat, script);
    let mut driver = stage.create();
    ask(&mut driver, "run it").await;
    assert_eq!(driver.state().open_jobs().map(|job| job.job.to_string()).collect::<Vec<_>>(), ["j1"]);

    stage.write("gate", "");
    let mut notices = driver.subscribe();
    let (send, mut commands) = mpsc::unbounded_channel();
    let until_told = async {
        while let Ok(notice) = notices.recv().await {
            if let Notice::Event(logged) = notice
                && let Event::InboxQueued(queued) = &logged.record.event
                && queued.source == Source::Job
            {
                break;
            }
        }
        drop(send);
    };
    let (_, ran) = tokio::join!(until_told, driver.run(&mut commands, Until::Closed));
    ran.unwrap();
    assert_eq!(stage.requests().len(), 2, "nothing was asked of the model");
    assert!(driver.state().turn().is_none());

    assert_eq!(ask(&mut driver, "and?").await, EndReason::Completed);
    let last = prompt_items(&stage.requests()[2]);
    assert!(last[last.len() - 2].contains("job-notice") || last[last.len() - 1].contains("job-notice"), "{last:?}");
}

#[tokio::test]
async fn a_job_that_ends_during_the_last_answer_costs_no_request_and_is_told_with_the_next_prompt() {
    let (told, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let work = tempfile::tempdir().unwrap();
    let gate = work.path().join("gate");
    let opened = gate.clone();
    let command = format!("until [ -e {} ]; do sleep 0.01; done", gate.display());
    let behaviour = Behaviour::answering(move |request: &ParsedRequest| match request.answers() {
        0 => Say::call("bash", &json!({"command": command, "background": true})).into(),
        1 => {
            // The job ends, and its end is logged, while this answer is on its way.
            std::fs::write(&opened, "").unwrap();
            wait.lock().unwrap().recv().unwrap();
            Say::text("The answer.").into()
        }
        _ => Say::text("I see.").into(),
    });
    let stage = Stage::new(Wire::AnthropicMessages, behaviour);
    let mut driver = stage.create();
    let mut notices = driver.subscribe();
    let until_told = async {
        while let Ok(notice) = notices.recv().await {
            if let Notice::Event(logged) = notice
                && matches!(&logged.record.event, Event::InboxQueued(queued) if queued.source == Source::Job)
            {
                break;
            }
        }
        told.send(()).unwrap();
    };
    let (_, ended) = tokio::join!(until_told, ask(&mut driver, "run it"));
    assert_eq!(ended, EndReason::Completed);
    assert_eq!((stage.requests().len(), driver.state().last_text().as_str()), (2, "The answer."));

    ask(&mut driver, "and?").await;
    assert_eq!(stage.requests().len(), 3);
    let last = prompt_items(&stage.requests()[2]);
    assert!(last[last.len() - 2].contains("job-notice") && last[last.len() - 1].contains("and?"), "{last:?}");
    let titles: Vec<&str> = driver.state().history().done().iter().map(|turn| turn.title.as_str()).collect();
    assert_eq!(titles, ["run it", "and?"]);
    let session = driver.session().clone();
    drop(driver);
    assert!(stele_agent::verify(&stage.store(), &session).unwrap().is_clean());
}

/// Gives the test what a call may tell its session with.
struct Telling {
    spec: ToolSpec,
    give: mpsc::UnboundedSender<Arc<dyn Fn(JobNotice) + Send + Sync>>,
}

impl Tool for Telling {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effects(&self) -> Effects {
        Effects::None
    }

    fn parallel(&self, _: &str) -> bool {
        false
    }

    fn subjects(&self, _: &str) -> Result<Vec<Subject>, ToolError> {
        Ok(Vec::new())
    }

    fn call_card(&self, _: &str, _: &Path) -> CallCard {
        CallCard::Generic { title: "tell".into(), kind: CardKind::Other, locations: Vec::new() }
    }

    fn result_card(&self, _: &str, content: &str, _: &ResultMeta) -> ResultCard {
        ResultCard::Generic { content: content.into() }
    }

    fn run<'a>(&'a self, invocation: Invocation<'a>) -> stele_core::Future<'a, ToolOutput> {
        self.give.send(invocation.session.notify).unwrap();
        Box::pin(async { ToolOutput::text("told") })
    }
}

#[tokio::test]
async fn what_has_come_is_known_before_a_request_is_built() {
    let script = Script::new([Say::call("tell", &json!({})), Say::text("Done."), Say::text("I see.")]);
    let stage = Stage::new(Wire::OpenaiChat, script);
    let (give, mut given) = mpsc::unbounded_channel();
    let spec = ToolSpec {
        group: 9,
        name: "tell".into(),
        description: "Tells.".into(),
        parameters: RawValue::from_string(r#"{"type":"object","properties":{}}"#.into()).unwrap(),
        guidance: String::new(),
    };
    let agent = stage.agent_with(|options| options.tools.push(Arc::new(Telling { spec, give })));
    let mut driver = Driver::create(&agent, &stage.start()).unwrap();
    ask(&mut driver, "go").await;
    let notify = given.recv().await.unwrap();
    let job = JobMeta { job: JobId(1), title: "job".into(), status: JobStatus::Stopped };
    notify(JobNotice { job, text: "<job-notice>\nj1 ended\n</job-notice>".into() });
    ask(&mut driver, "and?").await;
    let requests = stage.requests();
    assert_eq!(requests.len(), 3);
    assert!(prompt_items(&requests[2]).iter().any(|item| item.contains("job-notice")));
}

#[tokio::test]
async fn what_became_of_folder_and_jobs_is_known_after_an_undo_and_stands_in_its_place_after_a_redo() {
    let script = Script::new([
        Say::call("bash", &json!({"command": "sleep 300", "background": true, "description": "Serve"})),
        Say::text("It runs."),
        Say::text("Moved."),
        Say::text("I see."),
    ]);
    let stage = Stage::new(Wire::AnthropicMessages, script);
    let mut driver = stage.create();
    ask(&mut driver, "first").await;
    let session = driver.session().clone();
    drop(driver);
    let other = tempfile::tempdir().unwrap();
    let folder = other.path().canonicalize().unwrap();
    let opening = Opening { place: Place::MovedTo(folder), ..Opening::default() };
    let mut driver = Driver::open_with(&stage.agent(), &session, OpenPolicy::Close, &opening).unwrap();
    ask(&mut driver, "second").await;
    let whole = driver.state().messages(0);
    let by = || By::person("test");
    assert_eq!(driver.undo(by(), ChangedSince::Leave).await.unwrap().title, "second");
    assert_eq!(driver.redo(by(), ChangedSince::Leave).await.unwrap().title, "second");
    assert_eq!(driver.state().messages(0), whole);
    driver.undo(by(), ChangedSince::Leave).await.unwrap();
    drop(driver);

    let mut driver = stage.open(&session, OpenPolicy::Close);
    ask(&mut driver, "third").await;
    let last = prompt_items(stage.requests().last().unwrap()).join("\n");
    assert_eq!((last.matches("folder-notice>").count(), last.matches("job-notice>").count()), (2, 2), "{last}");
    assert!(last.contains("j1 (Serve)") && !last.contains("second") && !last.contains("Moved."), "{last}");
    // Without the turn that began the job nobody has to know of it; where the session is still holds.
    driver.undo(by(), ChangedSince::Leave).await.unwrap();
    driver.undo(by(), ChangedSince::Leave).await.unwrap();
    let left = format!("{:?}", driver.state().messages(0));
    assert!(left.contains("folder-notice") && !left.contains("job-notice"), "{left}");
    assert_eq!(driver.state().first_prompt(), None);
    drop(driver);
    assert!(stele_agent::verify(&stage.store(), &session).unwrap().is_clean());
}

#[tokio::test]
async fn jobs_are_gone_with_their_process_and_the_model_is_told() {
    for policy in [OpenPolicy::Close, OpenPolicy::Continue] {
        let script = Script::new([
            Say::call("bash", &json!({"command": "sleep 300", "background": true, "description": "Serve"})),
            Say::text("It runs."),
            Say::call("bash", &json!({"command": "sleep 300", "background": true})),
            Say::text("I see."),
        ]);
        let stage = Stage::new(Wire::Gemini, script);
        let mut driver = stage.create();
        ask(&mut driver, "run it").await;
        let session = driver.session().clone();
        drop(driver);

        let mut driver = stage.open(&session, policy);
        assert_eq!(driver.state().open_jobs().count(), 0);
        driver.command(prompt("and?")).unwrap();
        assert_eq!(idle(&mut driver).await, EndReason::Completed);
        let told = prompt_items(&stage.requests()[2]).join("\n");
        assert!(told.contains("No longer running") && told.contains("j1 (Serve)"), "{told}");
        let open: Vec<_> = driver.state().open_jobs().cloned().collect();
        assert_eq!((open.len(), open[0].job.to_string().as_str()), (1, "j2"), "a number is never used twice");
        assert_eq!(open[0].status, JobStatus::Running);
        drop(driver);
        assert!(stele_agent::verify(&stage.store(), &session).unwrap().is_clean());
    }
}

#[tokio::test]
async fn a_change_of_folder_is_logged_and_taken_up_by_another_process() {
    let script = Script::new([
        Say::call("bash", &bash("mkdir -p deep/er && cd deep/er")),
        Say::text("ok"),
        Say::call("bash", &bash("pwd > where")),
        Say::call("write", &json!({"path": "here.txt", "content": "x"})),
        Say::text("ok"),
        Say::call("bash", &bash("pwd > was_meant_for_there")),
        Say::call("bash", &bash("pwd > where")),
        Say::text("ok"),
    ]);
    let stage = Stage::new(Wire::OpenaiResponses, script);
    let mut driver = stage.create();
    ask(&mut driver, "go").await;
    let session = driver.session().clone();
    drop(driver);
    let mut driver = stage.open(&session, OpenPolicy::Close);
    ask(&mut driver, "go on").await;
    let inner = stage.path("deep/er");
    assert_eq!(stage.read("deep/er/where").trim(), inner.to_str().unwrap());
    assert_eq!(stage.read("deep/er/here.txt"), "x");
    // A folder that is gone is no prison.
    std::fs::remove_dir_all(stage.path("deep")).unwrap();
    ask(&mut driver, "go on").await;
    assert!(!stage.path("was_meant_for_there").exists());
    assert_eq!(stage.read("where").trim(), stage.folder.to_str().unwrap());
}
