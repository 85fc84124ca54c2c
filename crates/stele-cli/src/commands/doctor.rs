//! `stele doctor`: what is wrong here.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use stele_provider::{KeySource, Route, Status};
use stele_store::Store;

use crate::args::{Global, ListArgs};
use crate::commands::probe;
use crate::error::{CommandError, Result};
use crate::output;
use crate::render::inert::one_line;
use crate::render::json;
use crate::render::money::plural;
use crate::runtime::runtime;
use crate::setup::{Environment, Setup};

/// Longest wait for a server of this machine.
const CONNECT: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Health {
    Good,
    /// Not needed, and worth knowing.
    Note,
    Wrong,
}

#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    health: Health,
    says: String,
}

/// Looks at everything a run needs.
pub fn main(environment: Environment, global: &Global, args: &ListArgs) -> Result<u8> {
    let look = environment.look(global.color);
    let mut findings = Vec::new();
    match Setup::for_logs(environment, global) {
        Ok((setup, wrong)) => examine(&setup, wrong, &mut findings)?,
        // Nothing says where anything is.
        Err(error) => add(&mut findings, "configuration", Health::Wrong, error.to_string()),
    }
    let style = look.stdout();
    let lines: Vec<String> = findings
        .iter()
        .map(|finding| {
            if args.json {
                return json::line(finding);
            }
            let mark = match finding.health {
                Health::Good => style.green("✓"),
                Health::Note => style.yellow("!"),
                Health::Wrong => style.red("✗"),
            };
            format!("{mark} {:<14}{}", finding.what, one_line(&finding.says))
        })
        .collect();
    output::print(&lines.join("\n"))?;
    Ok(u8::from(findings.iter().any(|finding| finding.health == Health::Wrong)))
}

fn add(findings: &mut Vec<Finding>, what: &'static str, health: Health, says: impl Into<String>) {
    findings.push(Finding { what, health, says: says.into() });
}

/// The version, and the features that the build has or lacks.
fn version() -> String {
    let features = |there: bool| -> Vec<&str> {
        stele_tools::FEATURES.into_iter().filter(|(_, has)| *has == there).map(|(name, _)| name).collect()
    };
    let mut text = env!("CARGO_PKG_VERSION").to_owned();
    for (word, names) in [("with", features(true)), ("without", features(false))] {
        if !names.is_empty() {
            let _ = write!(text, ", {word} {}", names.join(", "));
        }
    }
    text
}

fn examine(setup: &Setup, wrong: Option<CommandError>, findings: &mut Vec<Finding>) -> Result<()> {
    add(findings, "version", Health::Good, version());
    let file = setup.config.home.join("config.toml");
    match wrong {
        Some(error) => add(findings, "configuration", Health::Wrong, error.to_string()),
        None if file.exists() => add(findings, "configuration", Health::Good, file.display().to_string()),
        None => {
            add(findings, "configuration", Health::Good, format!("(none; defaults; {} would be it)", file.display()));
        }
    }
    for skipped in &setup.config.skipped {
        add(findings, "skipped", Health::Note, skipped);
    }
    for line in crate::unfinished::lines(&setup.config.data) {
        add(findings, "unfinished", Health::Wrong, line);
    }
    logs(&setup.config.data, findings);
    let routes = routes(setup, findings);
    evidence(setup, routes.first(), findings);
    let runtime = runtime()?;
    for found in runtime.block_on(stele_provider::probe_local()) {
        let models = if found.models.is_empty() { "no model".to_owned() } else { found.models.join(", ") };
        add(findings, "local server", Health::Good, format!("{} at {}: {models}", found.name, found.base_url));
    }
    runtime.shutdown_background();
    if routes.is_empty() && !findings.iter().any(|finding| finding.what == "routes") {
        let error = setup.no_route(Vec::new());
        let hints = error.hints.iter().map(|hint| format!("; {hint}")).collect::<String>();
        add(findings, "routes", Health::Wrong, format!("{error}{hints}"));
    }
    let path = setup.environment.get("PATH").unwrap_or_default();
    match ["bash", "sh"].into_iter().find_map(|shell| on_path(path, shell)) {
        Some(shell) => add(findings, "shell", Health::Good, shell),
        None => add(findings, "shell", Health::Wrong, "neither bash nor sh is on PATH; commands cannot run"),
    }
    let terminal = match (io::stdin().is_terminal(), io::stdout().is_terminal()) {
        (true, true) => format!("yes, TERM={}", setup.environment.get("TERM").unwrap_or("(not set)")),
        _ => "no: calls that would ask are refused".to_owned(),
    };
    add(findings, "terminal", Health::Good, terminal);
    Ok(())
}

/// What the endpoint that is used by default refused, or was never seen to do.
fn evidence(setup: &Setup, route: Option<&Route>, findings: &mut Vec<Finding>) {
    let reading = setup.ledger().read();
    if let Some(error) = &reading.trouble {
        add(findings, "evidence", Health::Note, error.to_string());
    }
    if let Some((worst, says)) = route.and_then(|route| probe::gaps(&reading.ledger, route)) {
        let health = if worst == Status::Rejected { Health::Note } else { Health::Good };
        add(findings, "evidence", health, says);
    }
}

fn logs(data: &Path, findings: &mut Vec<Finding>) {
    let store = match Store::inspect(data) {
        Ok(Some(store)) => store,
        Ok(None) => {
            return match can_be_made(data) {
                Ok(()) => add(findings, "logs", Health::Good, format!("no session yet in {}", data.display())),
                Err(problem) => {
                    let says = format!(
                        "log.unwritable: {} cannot be made: {problem}; set STELE_HOME to another folder",
                        data.display()
                    );
                    add(findings, "logs", Health::Wrong, says);
                }
            };
        }
        Err(error) => return add(findings, "logs", Health::Wrong, error.to_string()),
    };
    let mut writable = Health::Good;
    for path in [data, store.path()] {
        if rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_err() {
            let says =
                format!("log.unwritable: {} may not be written; give it back its write permission", path.display());
            add(findings, "logs", Health::Wrong, says);
            writable = Health::Note;
        }
    }
    let sessions = store.sessions(&stele_store::Filter::default()).map(|rows| rows.len());
    match sessions {
        Ok(number) => {
            add(
                findings,
                "logs",
                writable,
                format!("{} ({})", store.path().display(), plural(number as u64, "session")),
            );
        }
        Err(error) => add(findings, "logs", Health::Wrong, error.to_string()),
    }
    let (health, says) = match store.locks_work() {
        Ok(true) => (Health::Good, "keep a second writer out".to_owned()),
        Ok(false) => (
            Health::Wrong,
            "log.no_locks: locks do not keep a second writer out on this file system; put STELE_HOME on a local disk"
                .to_owned(),
        ),
        Err(error) => (Health::Note, format!("could not be tried: {error}")),
    };
    add(findings, "locks", health, says);
}

/// Whether a folder is there, or could be made, and written. Nothing is made.
fn can_be_made(folder: &Path) -> io::Result<()> {
    // A link that leads nowhere is there too, and in the way.
    let there = folder.ancestors().find(|above| above.symlink_metadata().is_ok()).unwrap_or(folder);
    if !std::fs::metadata(there)?.is_dir() {
        return Err(io::Error::other(format!("{} is not a folder", there.display())));
    }
    let needed = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(there, needed)
        .map_err(|error| io::Error::other(format!("{} may not be written ({error})", there.display())))
}

fn routes(setup: &Setup, findings: &mut Vec<Finding>) -> Vec<Route> {
    let routes = match setup.routes() {
        Ok(routes) => routes,
        Err(error) => {
            add(findings, "routes", Health::Wrong, error.to_string());
            return Vec::new();
        }
    };
    for remark in routes.iter().flat_map(|route| [route.ignored(), route.missing_price()]).flatten() {
        add(findings, "route", Health::Note, remark);
    }
    for route in &routes {
        let place = format!("{}: {} at {}", route.name, route.model, route.base_url);
        if let Some(Err(problem)) = loopback(&route.base_url).map(|place| connects(&place)) {
            let says = format!("{place}: nothing answers there ({problem}); start the server, or name another one");
            add(findings, "route", Health::Wrong, says);
            continue;
        }
        match &route.key {
            KeySource::None => add(findings, "route", Health::Good, format!("{place}, no key needed")),
            KeySource::Env(name) if setup.environment.get(name).is_some() => {
                add(findings, "route", Health::Good, format!("{place}, key in {name}"));
            }
            KeySource::Env(name) => {
                add(findings, "route", Health::Wrong, format!("{place}: its key is not there; set {name}"));
            }
        }
    }
    routes
}

/// Host and port of a server of this machine; `None` for one elsewhere, which is not asked.
fn loopback(base_url: &str) -> Option<(String, u16)> {
    let (scheme, rest) = base_url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let port = if scheme == "https" { 443 } else { 80 };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, number)) if !number.ends_with(']') => (host, number.parse().ok()?),
        _ => (authority, port),
    };
    let host = host.trim_matches(['[', ']']);
    let here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    here.then(|| (host.to_owned(), port))
}

/// Connects, and no more.
fn connects((host, port): &(String, u16)) -> io::Result<()> {
    let mut problem = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in (host.as_str(), *port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(_) => return Ok(()),
            Err(error) => problem = error,
        }
    }
    Err(problem)
}

fn on_path(path: &str, program: &str) -> Option<String> {
    std::env::split_paths(path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .map(|file| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_for_the_logs_is_there_or_can_be_made() {
        let scratch = tempfile::tempdir().unwrap();
        assert!(can_be_made(scratch.path()).is_ok());
        assert!(can_be_made(&scratch.path().join("a/b")).is_ok());
        std::fs::write(scratch.path().join("file"), "").unwrap();
        let problem = can_be_made(&scratch.path().join("file/data")).unwrap_err().to_string();
        assert!(problem.ends_with("file is not a folder"), "{problem}");
        std::os::unix::fs::symlink(scratch.path().join("nowhere"), scratch.path().join("link")).unwrap();
        assert!(can_be_made(&scratch.path().join("link/data")).is_err());
    }

    #[test]
    fn only_servers_of_this_machine_are_asked() {
        let local = |url| loopback(url).map(|(host, port)| format!("{host} {port}"));
        assert_eq!(local("http://127.0.0.1:9/v1").as_deref(), Some("127.0.0.1 9"));
        assert_eq!(local("http://[::1]:8080").as_deref(), Some("::1 8080"));
        assert_eq!(local("http://[::1]/v1").as_deref(), Some("::1 80"));
        assert_eq!(local("https://localhost/v1").as_deref(), Some("localhost 443"));
        assert_eq!(local("https://models.example:443/v1"), None);
        assert_eq!(local("http://192.168.0.2:11434/v1"), None);
    }
}
