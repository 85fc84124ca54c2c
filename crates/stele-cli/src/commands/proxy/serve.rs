//! Forwards until a command ends or somebody stops it, with a line for each request.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process};
use stele_provider::ClientSettings;
use stele_proxy::{Exposure, Notice, Options, Proxy, Target};

use super::folder;
use crate::args::ServeArgs;
use crate::error::{CommandError, Result};
use crate::render::json;
use crate::render::served::{self, Served};
use crate::render::style::Style;
use crate::runtime::runtime;
use crate::setup::Setup;
use crate::signals::Signals;

/// Where it listens when nothing else is said.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8787);

/// Lines that are kept while a command has the terminal.
const HELD: usize = 20;

/// Serves.
pub fn main(setup: &Setup, args: &ServeArgs, as_json: bool) -> Result<u8> {
    let target = Target::parse(args.to.as_deref().unwrap_or_default())?;
    let settings = ClientSettings::from_environment(&setup.environment.lookup())
        .map_err(|problem| CommandError::usage("config.proxy", problem))?;
    let options = Options {
        target: target.clone(),
        listen: args.listen.unwrap_or(LISTEN),
        exposure: if args.allow_remote { Exposure::Network } else { Exposure::Loopback },
        folder: folder(setup),
        proxies: settings.proxies,
        ca_file: settings.ca_file,
    };
    let runtime = runtime()?;
    let exit = runtime.block_on(serve(setup, &target, options, &args.run, as_json));
    runtime.shutdown_background();
    exit
}

async fn serve(setup: &Setup, target: &Target, options: Options, run: &[OsString], as_json: bool) -> Result<u8> {
    let recordings = options.folder.clone();
    let mut signals = Signals::new()?;
    let proxy = Proxy::bind(options).await?;
    let address = reachable(proxy.address());
    let mut variables = target.environment(address);
    variables.extend(own_variable(setup.environment.get("STELE_BASE_URL"), target, address));
    let log = Arc::new(Mutex::new(Log {
        voice: if as_json { Voice::Json } else { Voice::Text(setup.look.stderr()) },
        to: if as_json && run.is_empty() { To::Out } else { To::Err },
        // What is written while a command draws on the terminal would spoil its screen.
        holds: !run.is_empty() && io::stderr().is_terminal(),
        held: VecDeque::new(),
        recorded: 0,
        hidden: 0,
    }));
    let lock =
        |log: &Arc<Mutex<Log>>, tell: &dyn Fn(&mut Log)| tell(&mut log.lock().unwrap_or_else(PoisonError::into_inner));
    let configuration = target.configuration(address);
    lock(&log, &|log| {
        let shown = if run.is_empty() { configuration.as_str() } else { "" };
        log.write(&Served::Listening {
            base_url: target.base_url(address),
            to: target.origin(),
            folder: &recordings,
            variables: variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            configuration: shown.lines().collect(),
        });
    });
    let mut exit = Ok(0);
    let stop = async {
        exit = match run.split_first() {
            Some((program, arguments)) => command(program, arguments, &variables, &setup.folder, &mut signals).await,
            None => {
                signals.next().await;
                Ok(0)
            }
        };
    };
    let heard = Arc::clone(&log);
    proxy.serve(stop, move |notice| lock(&heard, &|log| log.notice(&notice))).await?;
    let exit = exit?;
    lock(&log, &|log| log.end(exit, if run.is_empty() { "" } else { &configuration }));
    Ok(exit)
}

/// The address for clients of this machine.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Stele's own variable comes before the vendors', so it is led here as well when it names this server.
fn own_variable(set: Option<&str>, target: &Target, address: SocketAddr) -> Option<(String, String)> {
    let path = set?.strip_prefix(&target.origin())?;
    let whole = path.is_empty() || path.starts_with('/');
    whole.then(|| ("STELE_BASE_URL".to_owned(), format!("http://{address}{path}")))
}

/// Runs a command to its end; gives its exit code, or as a shell does 128 and the signal that ended it.
async fn command(
    program: &OsString,
    arguments: &[OsString],
    variables: &[(String, String)],
    folder: &Path,
    signals: &mut Signals,
) -> Result<u8> {
    let started = tokio::process::Command::new(program)
        .args(arguments)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .current_dir(folder)
        .spawn();
    let mut child = started.map_err(|cause| {
        let message = format!("cannot run {}: {cause}", Path::new(program).display());
        CommandError::usage("proxy.command", message).hint("give the command's whole path after --")
    })?;
    loop {
        tokio::select! {
            status = child.wait() => return status.map(code).map_err(|cause| {
                CommandError::failed("proxy.command", format!("cannot wait for the command: {cause}"))
            }),
            by = signals.next() => {
                let signal = match by.0.as_str() {
                    "signal:term" => Signal::TERM,
                    "signal:hup" => Signal::HUP,
                    // The terminal sends Ctrl-C to both; what it means there is the command's own affair.
                    _ if io::stdin().is_terminal() => continue,
                    _ => Signal::INT,
                };
                let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
                if let Some(id) = id {
                    // One that has ended in the meantime needs no signal.
                    let _ = kill_process(id, signal);
                }
            }
        }
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

enum Voice {
    Text(Style),
    Json,
}

/// The stream that lines go to.
enum To {
    Out,
    Err,
}

/// What is told while it runs.
struct Log {
    voice: Voice,
    to: To,
    holds: bool,
    held: VecDeque<String>,
    recorded: u64,
    /// Lines that were held and gave way to later ones.
    hidden: u64,
}

impl Log {
    fn notice(&mut self, notice: &Notice) {
        if matches!(notice, Notice::Recorded { .. }) {
            self.recorded += 1;
        }
        let served = Served::from(notice);
        if !self.holds {
            return self.write(&served);
        }
        if self.held.len() == HELD {
            self.held.pop_front();
            self.hidden += 1;
        }
        self.held.push_back(self.say(&served));
    }

    fn end(&mut self, exit: u8, configuration: &str) {
        if self.hidden > 0 {
            self.write(&Served::Hidden { lines: self.hidden });
        }
        for line in std::mem::take(&mut self.held) {
            self.put(&line);
        }
        // A command that sent nothing may want to be told otherwise.
        let configuration = if self.recorded == 0 { configuration } else { "" };
        self.write(&Served::Result { recorded: self.recorded, exit, configuration: configuration.lines().collect() });
    }

    fn write(&self, served: &Served<'_>) {
        self.put(&self.say(served));
    }

    fn say(&self, served: &Served<'_>) -> String {
        match self.voice {
            Voice::Text(style) => served::served(served, style).join("\n"),
            Voice::Json => json::line(served),
        }
    }

    fn put(&self, text: &str) {
        let line = format!("{text}\n");
        // Nobody listening is no reason to stop forwarding.
        let _ = match self.to {
            To::Out => io::stdout().write_all(line.as_bytes()).and_then(|()| io::stdout().flush()),
            To::Err => io::stderr().write_all(line.as_bytes()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_means_all_of_this_machine_is_no_address_of_it() {
        let check = |address: &str, expect: &str| assert_eq!(reachable(address.parse().unwrap()).to_string(), expect);
        check("0.0.0.0:1", "127.0.0.1:1");
        check("[::]:1", "[::1]:1");
        check("127.0.0.2:1", "127.0.0.2:1");
    }

    #[test]
    fn steles_own_variable_is_led_here_when_it_names_the_server() {
        let target = Target::parse("http://127.0.0.1:90/v1").unwrap();
        let led = |set| own_variable(set, &target, LISTEN).map(|(_, value)| value);
        assert_eq!(led(Some("http://127.0.0.1:90/v1")).as_deref(), Some("http://127.0.0.1:8787/v1"));
        assert_eq!(led(Some("http://127.0.0.1:90")).as_deref(), Some("http://127.0.0.1:8787"));
        assert_eq!(led(Some("http://127.0.0.1:901/v1")), None);
        assert_eq!(led(Some("https://elsewhere/v1")), None);
        assert_eq!(led(None), None);
    }

    #[test]
    fn a_signal_ends_with_what_a_shell_would_say() {
        assert_eq!(code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code(ExitStatus::from_raw(15)), 143);
    }
}
