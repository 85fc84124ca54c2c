//! `bash`: time limits, cancels, and the death of the agent. Nothing may be left.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{PROGRAM, Session, block_on, code, processes_in};

/// Children, a session of their own, a double fork, and one that ignores TERM.
const STUBBORN: &str = r#"
    sleep 301 &
    setsid sleep 302 &
    (setsid sh -c 'sleep 303 & sleep 304 & exit 0' &)
    sh -c 'trap "" TERM; while :; do sleep 305; done' &
    echo started; wait"#;

#[test]
fn a_time_limit_reaches_grandchildren() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("cases/grandchild.json")).unwrap();
    let session = Session::new();
    let started = Instant::now();
    let output = session.call("bash", json!({"command": cases[0]["command"], "timeout": 1}));
    assert!(started.elapsed() < Duration::from_secs(4));
    assert_eq!(code(&output), "bash.timeout");
    assert!(output.meta.process.as_ref().unwrap().timed_out);
    assert!(output.content.contains("the time limit of 1 s was reached"), "{}", output.content);
    assert_eq!(processes_in(&session.path()), Vec::<String>::new());
    assert!(session.call("bash", json!({"command": "echo works"})).content.starts_with("works\n"));
}

#[test]
fn a_time_limit_reaches_what_left_the_group() {
    let session = Session::new();
    let output = session.call("bash", json!({"command": STUBBORN, "timeout": 1}));
    assert!(output.content.starts_with("started\n"), "{}", output.content);
    assert!(output.content.contains("nothing of it is left running"), "{}", output.content);
    assert_eq!(processes_in(&session.path()), Vec::<String>::new());
}

#[test]
fn a_cancel_stops_everything_at_once() {
    let session = Session::new();
    let (cancel, cancelled) = oneshot::channel::<()>();
    let cancel = std::sync::Mutex::new(Some(cancel));
    let at = std::sync::Mutex::new(None);
    let progress = |text: &str| {
        if text.contains("started")
            && let Some(cancel) = cancel.lock().unwrap().take()
        {
            *at.lock().unwrap() = Some(Instant::now());
            cancel.send(()).unwrap();
        }
    };
    let cancelled = async move { cancelled.await.unwrap_or_default() };
    let output = block_on(session.start("bash", json!({"command": STUBBORN}), cancelled, &progress));
    assert_eq!(code(&output), "tool.cancelled");
    assert!(at.lock().unwrap().unwrap().elapsed() < Duration::from_secs(2));
    assert!(output.content.contains("started\n") && output.content.contains("nothing of it is left running"));
    assert_eq!(processes_in(&session.path()), Vec::<String>::new());
}

#[test]
fn a_command_that_cleans_up_on_term_may_do_so() {
    let session = Session::new();
    let command = "trap 'echo cleaned; exit 5' TERM; while :; do sleep 0.05; done";
    let output = session.call("bash", json!({"command": command, "timeout": 1}));
    assert!(output.content.contains("cleaned\n"), "{}", output.content);
    assert_eq!(output.meta.process.unwrap().exit, Some(5));
}

/// Starts an agent of its own whose command and all that descends from it hold a named pipe open.
/// Returns the agent, once everything runs, and the pipe, which ends when nothing is left.
fn agent(session: &Session, command: &str) -> (std::process::Child, BufReader<File>) {
    let pipe = session.path().join("held");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let command = format!("exec 9>held; echo ready >&9; {command}");
    let agent = Command::new(PROGRAM)
        .args(["bash", &json!({"command": command}).to_string()])
        .current_dir(session.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut held = BufReader::new(File::open(pipe).unwrap());
    let mut line = String::new();
    held.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    (agent, held)
}

/// Waits until the pipe ends.
#[track_caller]
fn ends(mut held: BufReader<File>) {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(held.read_to_end(&mut Vec::new()).is_ok()));
    assert!(told.recv_timeout(Duration::from_secs(5)).unwrap_or(false), "something still holds the pipe");
}

#[test]
fn nothing_outlives_an_agent_that_is_killed() {
    let session = Session::new();
    let (mut agent, mut held) = agent(&session, &format!("{{ {STUBBORN}\n}} >&9"));
    let mut line = String::new();
    // The last descendant tells when all are there.
    held.read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    agent.kill().unwrap();
    agent.wait().unwrap();
    ends(held);
    wait_for_none(&session);
}

#[test]
fn the_shell_dies_with_its_supervisor() {
    let session = Session::new();
    let (mut agent, held) = agent(&session, "exec sleep 300");
    // Both at once, as `killall -9` would: first the supervisor, so that it cannot act.
    let supervisor = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", agent.id())).unwrap();
    assert!(Command::new("kill").args(["-KILL", supervisor.trim()]).status().unwrap().success());
    ends(held);
    let status = agent.wait().unwrap();
    assert_eq!(status.code(), Some(1), "the agent tells that the supervisor was lost");
}

#[test]
fn a_polite_signal_does_not_end_the_supervisor() {
    let session = Session::new();
    let command = "for signal in TERM INT HUP QUIT USR1 USR2 ALRM; do kill -$signal $PPID; done; \
                   sh -c 'kill -TERM $$; echo not reached'; echo $?";
    let output = session.call("bash", json!({"command": command}));
    assert_eq!(output.error, None, "{}", output.content);
    assert!(output.content.contains("143\n[exit 0"), "the command itself hears them: {}", output.content);
}

#[test]
fn nothing_outlives_a_supervisor_that_is_killed() {
    let session = Session::new();
    // Neither in the session, nor with the environment, nor with the output of the command.
    let hidden = "env -i PATH=\"$PATH\" setsid sh -c 'trap \"\" TERM; echo > hidden; sleep 315' >/dev/null 2>&1 &";
    let command = format!(
        "sleep 311 & setsid sleep 312 & (setsid sh -c 'sleep 313 & echo > up' &); {hidden} \
         while [ ! -e up ] || [ ! -e hidden ]; do sleep 0.01; done; kill -KILL $PPID; sleep 314"
    );
    let output = session.call("bash", json!({"command": command}));
    assert_eq!(code(&output), "bash.unsupervised");
    assert!(output.content.contains("the supervisor of the command was lost"), "{}", output.content);
    assert!(output.content.contains("nothing of it was found running after that"), "{}", output.content);
    assert_eq!(processes_in(&session.path()), Vec::<String>::new());
}

#[test]
fn a_command_that_suspends_its_supervisor_or_itself_ends_by_itself() {
    let session = Session::new();
    for (command, says) in [
        ("kill -STOP $PPID; echo on", "on\n[exit 0"),
        ("kill -STOP $PPID; exit 3", "[exit 3"),
        ("for n in 1 2 3; do kill -STOP $PPID; sleep 0.1; done; echo on", "on\n[exit 0"),
        ("kill -STOP 0; echo on", "on\n[exit 0"),
        ("sleep 0.1 & kill -STOP 0; wait; echo on", "on\n[exit 0"),
        ("kill -STOP $PPID 0; echo on", "on\n[exit 0"),
        // Whoever is to wake it does.
        (
            "setsid sh -c 'until [ -e done ]; do sleep 0.05; done; kill -CONT '$$ & (sleep 0.5; touch done) & \
          setsid kill -STOP $$; [ -e done ] && echo on",
            "on\n[exit 0",
        ),
    ] {
        let started = Instant::now();
        let output = session.call("bash", json!({"command": command, "timeout": 60}));
        assert!(started.elapsed() < Duration::from_secs(60), "{command} took all its time");
        assert!(output.error.is_none() && output.content.contains(says), "{command}: {}", output.content);
    }
    assert_eq!(processes_in(&session.path()), Vec::<String>::new());
}

#[test]
fn a_job_that_suspends_its_supervisor_ends_by_itself() {
    let session = Session::new();
    block_on(async {
        let job = json!({"command": "kill -STOP $PPID; exit 4", "background": true});
        session.start("bash", job, std::future::pending(), &|_| {}).await;
        let wait = json!({"action": "wait", "job": "j1", "timeout": 60});
        let waited = session.start("jobs", wait, std::future::pending(), &|_| {}).await;
        assert!(waited.content.contains("j1: exit 4"), "{}", waited.content);
    });
}

#[test]
fn a_supervisor_that_hangs_is_ended_with_its_command() {
    let session = Session::new();
    let hidden = "env -i PATH=\"$PATH\" setsid sh -c 'trap \"\" TERM; sleep 323; sleep 323' >/dev/null 2>&1 &";
    // One that wakes up does its work; one that is suspended again and again is swept away.
    for again in ["", "trap 'kill -STOP $PPID' TERM;", "(trap '' TERM; while kill -STOP $PPID; do :; done) &"] {
        let command = format!("{again} setsid sleep 321 & {hidden} kill -STOP $PPID; while :; do sleep 322; done");
        let started = Instant::now();
        let output = session.call("bash", json!({"command": command, "timeout": 1}));
        assert!(started.elapsed() < Duration::from_secs(1 + 3), "{:?} for {again}", started.elapsed());
        assert_eq!(code(&output), "bash.timeout");
        assert!(output.content.contains("nothing of it is left running"), "{}", output.content);
        assert_eq!(processes_in(&session.path()), Vec::<String>::new(), "{again}");
    }
}

#[test]
fn a_cancel_does_not_wait_for_a_supervisor_that_hangs() {
    let session = Session::new();
    let (cancel, cancelled) = oneshot::channel::<()>();
    let cancel = std::sync::Mutex::new(Some(cancel));
    let at = std::sync::Mutex::new(None);
    let progress = |_: &str| {
        if let Some(cancel) = cancel.lock().unwrap().take() {
            *at.lock().unwrap() = Some(Instant::now());
            cancel.send(()).unwrap();
        }
    };
    let cancelled = async move { cancelled.await.unwrap_or_default() };
    let command = "trap 'kill -STOP $PPID' TERM; echo started; kill -STOP $PPID; while :; do sleep 324; done";
    let output = block_on(session.start("bash", json!({"command": command}), cancelled, &progress));
    assert_eq!(code(&output), "tool.cancelled");
    assert!(at.lock().unwrap().unwrap().elapsed() < Duration::from_secs(3));
    assert!(output.content.contains("nothing of it is left running"), "{}", output.content);
    assert_eq!(processes_in(&session.path()), Vec::<String>::new());
}

#[test]
fn nothing_outlives_an_agent_whose_supervisor_is_suspended() {
    let session = Session::new();
    let (mut agent, mut held) = agent(&session, "kill -STOP $PPID; echo stopped >&9; exec sleep 300");
    let mut line = String::new();
    held.read_line(&mut line).unwrap();
    assert_eq!(line, "stopped\n");
    agent.kill().unwrap();
    agent.wait().unwrap();
    ends(held);
    wait_for_none(&session);
}

#[test]
fn a_storm_of_forks_is_over_in_time() {
    let session = Session::new();
    let command = "trap '' TERM; for n in 1 2 3 4 5 6 7 8 9 10; do (while :; do (:); done) & \
                   setsid sh -c 'while :; do (:); done' & done; wait";
    let started = Instant::now();
    let output = session.call("bash", json!({"command": command, "timeout": 1}));
    assert!(started.elapsed() < Duration::from_secs(1 + 3), "{:?}", started.elapsed());
    assert_eq!(code(&output), "bash.timeout");
    assert!(output.content.contains("nothing of it is left running"), "{}", output.content);
    assert_eq!(processes_in(&session.path()), Vec::<String>::new());
}

#[test]
fn the_rest_of_many_is_counted_and_can_be_stopped() {
    let session = Session::new();
    let command = "for n in $(seq 60); do setsid sh -c 'echo >> up; exec sleep 300' >/dev/null 2>&1 & done; \
                   until [ \"$(cat up 2>/dev/null | wc -l)\" = 60 ]; do sleep 0.05; done";
    block_on(async {
        let output = session.start("bash", json!({"command": command}), std::future::pending(), &|_| {}).await;
        assert!(output.content.contains("; still running: "), "{}", output.content);
        assert!(output.content.contains(" and 55 more; stop with: "), "{}", output.content);
        assert!(output.content.len() < 500, "{}", output.content);
        let stop = output.content.rsplit_once("stop with: ").unwrap().1.trim_end_matches(']').to_owned();
        let after = session.start("bash", json!({"command": stop}), std::future::pending(), &|_| {}).await;
        assert_eq!(after.meta.process.unwrap().exit, Some(0), "{}", after.content);
        // The supervisor ends by itself when nothing is left, while the agent lives.
        wait_for_none(&session);
    });
}

#[test]
fn what_was_left_running_ends_with_the_agent() {
    let session = Session::new();
    let (mut agent, held) = agent(&session, "sleep 300 & disown; exit 0");
    assert_eq!(agent.wait().unwrap().code(), Some(0));
    ends(held);
    wait_for_none(&session);
}

/// The supervisor ends right after what it supervised.
fn wait_for_none(session: &Session) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !processes_in(&session.path()).is_empty() && Instant::now() < deadline {
        thread::yield_now();
    }
    assert_eq!(processes_in(&session.path()), Vec::<String>::new());
}
