//! Commands in the background.

use std::time::Duration;

use serde_json::json;
use stele_core::{JobId, JobStatus};
use tempfile::TempDir;

use crate::{Session, block_on, code, options, processes_in};

/// Waits for the next notice.
fn notice(session: &Session) -> stele_core::JobNotice {
    session.notices.1.lock().unwrap().recv_timeout(Duration::from_secs(20)).unwrap()
}

async fn call(session: &Session, name: &str, arguments: serde_json::Value) -> stele_core::ToolOutput {
    session.start(name, arguments, std::future::pending(), &|_| {}).await
}

#[test]
fn a_job_returns_at_once_and_its_end_is_told() {
    let session = Session::new();
    block_on(async {
        let command = "echo begun; until [ -e gate ]; do sleep 0.01; done; echo ended; exit 3";
        let output = call(&session, "bash", json!({"command": command, "background": true})).await;
        assert!(output.content.starts_with("started j1 in the background"), "{}", output.content);
        assert_eq!(output.meta.jobs[0].status, JobStatus::Running);
        assert_eq!(call(&session, "jobs", json!({"action": "list"})).await.meta.jobs[0].job, JobId(1));

        session.file("gate", "");
        let told = tokio::task::block_in_place(|| notice(&session));
        assert_eq!(told.job.status, JobStatus::Ended { exit: Some(3), signal: None });
        assert!(told.text.contains("j1: exit 3"), "{}", told.text);

        let read = call(&session, "jobs", json!({"action": "read", "job": "j1"})).await;
        assert!(read.content.starts_with("begun\nended\n[j1: exit 3"), "{}", read.content);
        let again = call(&session, "jobs", json!({"action": "read", "job": "j1"})).await;
        assert!(again.content.starts_with("(no new output)\n[j1: exit 3"), "{}", again.content);

        let next = call(&session, "bash", json!({"command": "true", "background": true})).await;
        assert_eq!(next.meta.jobs[0].job, JobId(2), "a number is never used twice");
    });
}

#[test]
fn who_waits_or_stops_is_told_in_the_result_and_not_again() {
    let session = Session::new();
    block_on(async {
        call(&session, "bash", json!({"command": "sleep 0.2; exit 4", "background": true})).await;
        let waited = call(&session, "jobs", json!({"action": "wait"})).await;
        assert_eq!(waited.meta.jobs[0].status, JobStatus::Ended { exit: Some(4), signal: None });

        let stubborn = "setsid sleep 300 & trap '' TERM; echo up; while :; do sleep 1; done";
        call(&session, "bash", json!({"command": stubborn, "background": true})).await;
        let timed = call(&session, "jobs", json!({"action": "wait", "job": "j2", "timeout": 0})).await;
        assert!(timed.content.contains("[j2: running, "), "{}", timed.content);
        let stopped = call(&session, "jobs", json!({"action": "stop", "job": "j2"})).await;
        assert_eq!(stopped.meta.jobs[0].status, JobStatus::Stopped);
        assert!(stopped.content.contains("nothing of it is left running"), "{}", stopped.content);
        assert_eq!(processes_in(&session.path()), Vec::<String>::new());
    });
    assert!(session.notices.1.lock().unwrap().try_recv().is_err(), "nothing is told twice");
}

#[test]
fn a_job_ends_with_its_session_without_a_word() {
    let mut session = Session::new();
    block_on(async {
        let output = call(&session, "bash", json!({"command": "setsid sleep 300 & sleep 301", "background": true}));
        assert_eq!(output.await.error, None);
        while processes_in(&session.path()).len() < 3 {
            tokio::task::yield_now().await;
        }
        session.closed = tokio::sync::watch::Sender::default();
        while call(&session, "jobs", json!({"action": "list"})).await.content != "no jobs" {
            tokio::task::yield_now().await;
        }
        assert_eq!(processes_in(&session.path()), Vec::<String>::new());
    });
    assert!(session.notices.1.lock().unwrap().try_recv().is_err());
}

#[test]
fn a_job_that_cannot_start_and_one_that_is_not_there_are_errors() {
    let session = Session::new();
    let long = format!(": {}", "x".repeat(200_000));
    assert_eq!(code(&session.call("bash", json!({"command": long, "background": true}))), "bash.spawn");
    let unknown = session.call("jobs", json!({"action": "read", "job": "j9"}));
    assert_eq!(code(&unknown), "jobs.unknown");
    assert!(unknown.content.contains("there are none"), "{}", unknown.content);
    assert_eq!(code(&session.call("jobs", json!({"action": "stop"}))), "tool.value");
}

#[test]
fn all_that_a_job_prints_is_kept() {
    let spill = TempDir::new().unwrap();
    let session = Session::with(stele_tools::Options { spill: Some(spill.path().to_owned()), ..options() });
    block_on(async {
        call(&session, "bash", json!({"command": "seq 1 50000", "background": true})).await;
        let waited = call(&session, "jobs", json!({"action": "wait", "job": "j1"})).await;
        assert!(waited.content.contains("all of it is in spill:j1"), "{}", waited.content);
        let read = call(&session, "read", json!({"path": "spill:j1", "offset": 49_999})).await;
        assert!(read.content.starts_with("49999→49999\n50000→50000\n"), "{}", read.content);
    });
}

#[test]
fn the_time_limit_of_a_job_stops_it() {
    let session = Session::new();
    block_on(async {
        call(&session, "bash", json!({"command": "sleep 300", "background": true, "timeout": 1})).await;
        let waited = call(&session, "jobs", json!({"action": "wait", "job": "j1"})).await;
        assert_eq!(waited.meta.jobs[0].status, JobStatus::Stopped);
        assert!(waited.content.contains("the time limit of 1 s was reached"), "{}", waited.content);
    });
}

#[test]
fn a_person_looks_at_a_job_and_stops_it_and_the_model_is_told() {
    let session = Session::new();
    let jobs = std::sync::Arc::clone(&session.options.jobs);
    let id = stele_core::SessionId::new(crate::SESSION).unwrap();
    block_on(async {
        let mut ends = jobs.ends();
        call(&session, "bash", json!({"command": "echo one; echo two; touch up; sleep 300", "background": true})).await;
        call(&session, "bash", json!({"command": "until [ -e up ]; do sleep 0.01; done"})).await;
        let seen = || jobs.look(&id, "j1").unwrap();
        while seen().tail != "one\ntwo" {
            tokio::task::yield_now().await;
        }
        assert!(seen().line.starts_with("j1: running, "), "{}", seen().line);
        let read = call(&session, "jobs", json!({"action": "read", "job": "j1"})).await;
        assert!(read.content.starts_with("one\ntwo\n[j1"), "what a person saw the model reads: {}", read.content);
        assert_eq!(seen().tail, "one\ntwo", "and the other way round");
        assert_eq!(jobs.look(&id, "j9").unwrap_err().code, "jobs.unknown");

        assert!(jobs.stop(&id, "j1").unwrap());
        assert!(ends.recv().await.unwrap().starts_with("j1: stopped: cancelled"));
        let told = tokio::task::block_in_place(|| notice(&session));
        assert_eq!(told.job.status, JobStatus::Stopped);
        assert!(!jobs.stop(&id, "j1").unwrap(), "it has ended");
        assert_eq!(jobs.list(&id).len(), 1);
    });
}
