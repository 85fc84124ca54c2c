//! What is found out about one agent over one wire.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stele_core::Wire;
use stele_testkit::prompt;

use super::adapters::Adapter;
use super::scene::{Main, Run, STEPS, Scene};
use crate::figure::median;

/// The vendors by whose rules the same requests are counted.
pub const VENDORS: [&str; 4] = ["anthropic", "openai", "gemini", "deepseek"];

/// The figures of one agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Its name.
    pub name: String,
    /// What it says of its version.
    pub version: String,
    /// The wire.
    pub wire: Wire,
    /// Milliseconds from the start of the process to its first model request: the median.
    pub start_ms: f64,
    /// Processor milliseconds for each request of the conversation: the median.
    pub cpu_ms: f64,
    /// Peak memory of its largest process, in MB.
    pub peak_mb: f64,
    /// Bytes of the first request.
    pub first_bytes: usize,
    /// Tools that it offers.
    pub tools: usize,
    /// Model requests of both prompts, titles and the like included.
    pub requests: usize,
    /// Bytes of their bodies.
    pub sent_bytes: usize,
    /// The least share, of 1, of an earlier request that the next one of the same process begins with.
    pub within: f64,
    /// The same of the last request before and the first one after the resume; absent where it cannot be resumed
    /// without a person, so that every other figure is of the first prompt alone.
    pub resume: Option<f64>,
    /// The same of the first requests in two folders.
    pub elsewhere: f64,
    /// Input of both prompts that is not read from the cache, by each vendor's rules.
    pub uncached: Vec<Uncached>,
    /// Where its requests leave the ones before.
    pub breaks: Vec<Break>,
}

/// Input under a vendor's rules.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Uncached {
    /// The vendor.
    pub vendor: String,
    /// Tokens that were not read from the cache.
    pub tokens: u64,
    /// Tokens that were.
    #[serde(default)]
    pub read: u64,
    /// What all requests cost there, in millionths of a dollar, where there is a list price.
    pub cost: Option<u64>,
}

/// A request that leaves the one before it, as `stele proxy` names it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Break {
    /// When.
    pub phase: String,
    /// The segment.
    pub segment: String,
    /// What kind of change, if one is recognised.
    pub change: Option<String>,
    /// Bytes that both have in common, and bytes of the later prompt.
    pub shared: (u64, u64),
    /// What stood there, and what stands there now.
    pub differs: (String, String),
}

/// Runs one agent over one wire.
pub fn of(stele: &Path, adapter: &Adapter, program: &Path, wire: Wire, runs: usize) -> Result<Outcome> {
    let version = version(program)?;
    let mut scene = Scene::new(stele, adapter, program, wire)?;
    let began = scene.begin().context("the first prompt")?;
    let mains = began.mains();
    if mains.len() < STEPS.0 {
        bail!("the task has {} steps, and it asked for {} of them", STEPS.0, mains.len());
    }
    let mut breaks = Vec::from_iter(first_break(&scene, "inside a session", 0)?);
    let first = last_id(&scene)?;
    let resumed = scene.go_on().context("the second prompt, in the same session")?;
    if resumed.is_some() {
        breaks.extend(first_break(&scene, "at a resume", first)?);
    }
    let second = last_id(&scene)?;
    let uncached = VENDORS.iter().map(|vendor| uncached(&scene, vendor)).collect::<Result<_>>()?;
    let elsewhere = scene.elsewhere().context("the first prompt, in another folder")?;
    breaks.extend(first_break(&scene, "in another folder", second)?);

    let (mut starts, mut cpus) = (Vec::new(), Vec::new());
    for _ in 0..runs.max(1) {
        let run = scene.again()?;
        starts.push(ms(start(&run)?));
        cpus.push(ms(run.measured.cpu) / run.mains().len().max(1) as f64);
    }
    let all = || began.models().chain(resumed.iter().flat_map(Run::models));
    Ok(Outcome {
        name: adapter.name.to_owned(),
        version,
        wire,
        start_ms: middle(starts),
        cpu_ms: middle(cpus),
        peak_mb: scene.peak()?,
        first_bytes: mains.first().map_or(0, |main| main.bytes),
        tools: mains.first().map_or(0, |main| main.tools),
        requests: all().count(),
        sent_bytes: all().map(|request| request.body.len()).sum(),
        within: mains.windows(2).map(|pair| share(pair.first(), pair.last())).fold(1.0, f64::min),
        resume: resumed.map(|resumed| share(mains.last(), resumed.mains().first())),
        elsewhere: share(mains.first(), elsewhere.mains().first()),
        uncached,
        breaks,
    })
}

/// What part of one prompt another one begins with.
fn share(one: Option<&Main>, next: Option<&Main>) -> f64 {
    match (one, next) {
        (Some(one), Some(next)) => prompt::shared(&one.prompt, &next.prompt) as f64 / one.prompt.len().max(1) as f64,
        _ => 0.0,
    }
}

fn start(run: &Run) -> Result<Duration> {
    let first = run.models().next().context("no request arrived")?;
    Ok(first.at - run.measured.started)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    median(&values)
}

/// What a program says to `--version`, in a home that is thrown away.
fn version(program: &Path) -> Result<String> {
    let home = tempfile::tempdir()?;
    let output = std::process::Command::new(program)
        .arg("--version")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .env("XDG_CONFIG_HOME", home.path())
        .env("XDG_DATA_HOME", home.path())
        .env("XDG_CACHE_HOME", home.path())
        .env("XDG_STATE_HOME", home.path())
        .output()?;
    // Some say it on standard error.
    let text = format!("{} {}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let numbered = |word: &&str| word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.');
    let version = text.split_whitespace().find(numbered).unwrap_or_default();
    Ok(version.to_owned())
}

fn lines(report: &[Value]) -> impl Iterator<Item = &Value> {
    report.iter().filter(|row| row["type"] == "conversation").filter_map(|row| row["requests"].as_array()).flatten()
}

/// The greatest id that was recorded.
fn last_id(scene: &Scene<'_>) -> Result<u64> {
    let report = scene.ask_proxy(&["report"])?;
    Ok(lines(&report).filter_map(|line| line["id"].as_u64()).max().unwrap_or(0))
}

/// The first break after a request, as the proxy explains it; where none leaves its conversation, what parts the next
/// request from the conversation before.
fn first_break(scene: &Scene<'_>, phase: &str, after: u64) -> Result<Option<Break>> {
    let report = scene.ask_proxy(&["report"])?;
    let mut later: Vec<&Value> = lines(&report).filter(|line| line["id"].as_u64() > Some(after)).collect();
    later.sort_by_key(|line| line["id"].as_u64());
    let left = later.iter().find(|line| line["leaves"].is_object()).or(later.first());
    let Some(line) = left else { return Ok(None) };
    let id = line["id"].to_string();
    let explained = scene.ask_proxy(&["explain", &id])?;
    let explanation = explained.first().context("no explanation")?;
    let parting = &explanation["parting"];
    if !parting.is_object() {
        return Ok(None);
    }
    let excerpt = |side: &str| {
        let text = parting[side]["differs"].as_str().unwrap_or_default();
        text.chars().take(60).collect::<String>()
    };
    Ok(Some(Break {
        phase: phase.to_owned(),
        segment: parting["segment"].as_str().unwrap_or_default().to_owned(),
        change: explanation["change"]["kind"].as_str().map(str::to_owned),
        shared: (line["shared_bytes"].as_u64().unwrap_or(0), line["prompt_bytes"].as_u64().unwrap_or(0)),
        differs: (excerpt("before"), excerpt("after")),
    }))
}

fn uncached(scene: &Scene<'_>, vendor: &str) -> Result<Uncached> {
    let simulated = scene.ask_proxy(&["simulate", "--vendor", vendor])?;
    let simulation = simulated.first().context("no simulation")?;
    let bucket = |name: &str| simulation["usage"][name].as_u64().unwrap_or(0);
    let tokens = ["fresh", "cache_write", "cache_write_5m", "cache_write_1h"].into_iter().map(bucket).sum();
    let (read, cost) = (bucket("cache_read"), simulation["cost"].as_u64());
    Ok(Uncached { vendor: vendor.to_owned(), tokens, read, cost })
}
