//! What a run left behind, seen from outside.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;
use stele_core::{Seq, SessionId};

use super::case::Undisturbed;
use crate::scripts::MARKERS;
use crate::stage::Stage;

/// How long a killed run's processes may take to go.
const GRACE: Duration = Duration::from_secs(5);

/// Every file beneath a folder with its content.
pub fn files(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                files.insert(entry.path().strip_prefix(folder)?.to_owned(), fs::read(entry.path())?);
            }
        }
    }
    Ok(files)
}

/// Waits until no process has to do with a folder; what still runs when it takes too long.
pub fn wait_for_nobody(folder: &Path) -> Result<(), String> {
    let begin = Instant::now();
    loop {
        let left = processes(folder);
        if left.is_empty() {
            return Ok(());
        }
        if begin.elapsed() > GRACE {
            return Err(left.join(", "));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Processes that work in a folder, or have it in their environment or arguments.
fn processes(folder: &Path) -> Vec<String> {
    let Ok(list) = fs::read_dir("/proc") else { return Vec::new() };
    let name = folder.to_string_lossy().into_owned();
    let mut found = Vec::new();
    for entry in list.flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        if pid == std::process::id() {
            continue;
        }
        let text = |file: &str| {
            let bytes = fs::read(entry.path().join(file)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).replace('\0', " ")
        };
        let here = fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        let arguments = text("cmdline");
        if here || arguments.contains(&name) || text("environ").contains(&name) {
            found.push(format!("{pid} ({})", arguments.chars().take(80).collect::<String>()));
        }
    }
    found
}

/// The records of the one session as JSON; none when there is no session.
pub fn records(stage: &Stage) -> Result<Vec<Value>> {
    let (Some(store), Some(id)) = (stage.store()?, stage.session()?) else { return Ok(Vec::new()) };
    let id = SessionId::new(id).map_err(|error| anyhow::anyhow!("{error}"))?;
    store.read(&id, Seq(0))?.map(|stored| Ok(serde_json::from_slice(&stored?.bytes)?)).collect()
}

/// Kind of the log's last record.
pub fn last_kind(stage: &Stage) -> Result<String> {
    let records = records(stage)?;
    let kind = records.last().and_then(|record| record["kind"].as_str());
    Ok(kind.unwrap_or("(no session)").to_owned())
}

/// Compares with the undisturbed run; gives the number of calls with an unknown outcome.
pub fn judge(stage: &Stage, outside: &Path, undisturbed: &Undisturbed, wrong: &mut Vec<String>) -> Result<usize> {
    let now = files(&stage.work())?;
    for (path, content) in &undisturbed.files {
        match now.get(path) {
            None => wrong.push(format!("{} is missing", path.display())),
            Some(other) if other != content => wrong.push(format!("{} has other content", path.display())),
            Some(_) => {}
        }
    }
    wrong.extend(
        now.keys()
            .filter(|path| !undisturbed.files.contains_key(*path))
            .map(|path| format!("{} is new", path.display())),
    );
    let unknown = unknown_outcomes(&records(stage)?);
    markers(&fs::read_to_string(outside.join("markers"))?, &unknown, wrong);
    let told = told(stage).context("no request arrived")?;
    if told != unknown.len() {
        wrong.push(format!("the log has {} unknown outcomes, the last request {told}", unknown.len()));
    }
    same_again(stage, wrong);
    if let Err(left) = wait_for_nobody(stage.root()) {
        wrong.push(format!("still running at the end: {left}"));
    }
    if let Err(error) = stage.complete(&mut stage.command(["verify", "--all"])) {
        wrong.push(format!("verify: {error:#}"));
    }
    Ok(unknown.len())
}

/// The arguments of the calls whose outcome is unknown.
fn unknown_outcomes(records: &[Value]) -> Vec<String> {
    let of_kind = |kind: &'static str| records.iter().filter(move |record| record["kind"] == kind);
    of_kind("tool/result")
        .filter(|record| record["data"]["error"]["code"] == "tool.outcome_unknown")
        .filter_map(|record| {
            let call = &record["data"]["call"];
            let called = of_kind("tool/called").find(|called| called["data"]["call"] == *call)?;
            Some(called["data"]["arguments"].as_str().unwrap_or_default().to_owned())
        })
        .collect()
}

/// Each marker is there, and more than once only as often as the model was told that an outcome is unknown.
fn markers(found: &str, unknown: &[String], wrong: &mut Vec<String>) {
    for marker in MARKERS {
        let times = found.lines().filter(|line| *line == marker).count();
        let allowed = 1 + unknown.iter().filter(|arguments| arguments.contains(&format!("echo {marker} >>"))).count();
        if times == 0 || times > allowed {
            wrong.push(format!("marker {marker} is there {times} times, at most {allowed} were due"));
        }
    }
}

/// How many results of the last request say that an outcome is unknown.
fn told(stage: &Stage) -> Option<usize> {
    let requests = stage.server.requests();
    let last = requests.iter().rev().find(|request| request.wire.is_some())?;
    Some(String::from_utf8_lossy(&last.body).matches("outcome_unknown: ").count())
}

/// A request that was sent again has the same bytes.
fn same_again(stage: &Stage, wrong: &mut Vec<String>) {
    let mut first: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for request in stage.server.requests() {
        let Some(step) = request.step else { continue };
        let before = first.entry(step).or_insert_with(|| request.body.to_vec());
        if before.as_slice() != &*request.body {
            wrong.push(format!("the request of step {step} was sent again with other bytes"));
        }
    }
}
