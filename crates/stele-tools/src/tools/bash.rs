//! `bash`: a shell command, with its output and how it ended, as numbers.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use stele_core::{
    CallCard, CardKind, Effects, Future, Invocation, ProcessMeta, ResultCard, ResultMeta, Subject, Tool, ToolError,
    ToolOutput, ToolSpec, limits,
};

use crate::declare::{Declared, finish};
use crate::error::{Error, Result};
use crate::shell::{self, Command, End, Outcome};
use crate::{Options, card};

/// Bytes kept free for the line that says how the command ended.
const STATUS: usize = 1024;

/// Arguments of `bash`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    command: String,
    /// Seconds until it is stopped: 120 by default, at most 600.
    timeout: Option<u64>,
    /// What it does, in a few words.
    description: Option<String>,
}

/// The tool.
pub(crate) struct Bash {
    declared: Declared<Arguments>,
    environment: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    supervisor: Option<Vec<std::ffi::OsString>>,
    default_ms: u64,
    limit: usize,
}

impl Bash {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            declared: Declared::new("bash", include_str!("bash.md"), ""),
            environment: shell::environment::environment(&options.environment, &options.pass),
            supervisor: options.supervisor.clone(),
            default_ms: options.limits.shell_ms,
            limit: options.limits.result_bytes,
        }
    }

    fn timeout(&self, arguments: &Arguments) -> Result<Duration> {
        let Some(seconds) = arguments.timeout else { return Ok(Duration::from_millis(self.default_ms)) };
        let most = limits::SHELL_MS.hard / 1000;
        if seconds == 0 || seconds > most {
            return Err(Error::Value(format!(
                "timeout = {seconds} is out of bounds: at least 1, at most {most} seconds"
            )));
        }
        Ok(Duration::from_secs(seconds))
    }
}

impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &self.declared.spec
    }

    fn effects(&self) -> Effects {
        Effects::Local
    }

    fn parallel(&self, _: &str) -> bool {
        false
    }

    fn subjects(&self, arguments: &str) -> Result<Vec<Subject>, ToolError> {
        let arguments = self.declared.parse(arguments)?;
        self.timeout(&arguments)?;
        Ok(vec![Subject::Command(arguments.command)])
    }

    fn call_card(&self, arguments: &str, _: &Path) -> CallCard {
        let Ok(arguments) = self.declared.parse(arguments) else { return self.declared.plain_card(CardKind::Execute) };
        let title = arguments.description.filter(|text| !text.trim().is_empty());
        CallCard::Terminal {
            title: card::title(title.as_ref().unwrap_or(&arguments.command)),
            command: arguments.command,
        }
    }

    fn result_card(&self, _: &str, content: &str, meta: &ResultMeta) -> ResultCard {
        match &meta.process {
            Some(process) => {
                ResultCard::Terminal { output: content.to_owned(), exit: process.exit, signal: process.signal }
            }
            None => ResultCard::Generic { content: content.to_owned() },
        }
    }

    fn run<'a>(&'a self, invocation: Invocation<'a>) -> Future<'a, ToolOutput> {
        Box::pin(async move {
            let result = async {
                let arguments = self.declared.parse(invocation.arguments)?;
                if arguments.command.contains('\0') {
                    return Err(Error::Value("command holds a NUL character, which no shell can take".to_owned()));
                }
                let command = Command {
                    line: &arguments.command,
                    cwd: invocation.cwd,
                    environment: &self.environment,
                    supervisor: self.supervisor.as_deref(),
                    timeout: self.timeout(&arguments)?,
                    limit: self.limit.saturating_sub(STATUS),
                };
                let outcome = shell::run(&command, invocation.cancelled, invocation.progress).await?;
                Ok(output(&command, &outcome))
            };
            finish(result.await, Some(self.limit))
        })
    }
}

fn output(command: &Command<'_>, outcome: &Outcome) -> ToolOutput {
    let text = if outcome.text.is_empty() { "(no output)" } else { &outcome.text };
    let error = match outcome.end {
        End::Itself => None,
        End::TimedOut => Some(Error::TimedOut),
        End::Cancelled => Some(Error::Cancelled),
        End::Lost => Some(Error::Unsupervised),
    };
    ToolOutput {
        content: format!("{text}\n[{}]", status(command, outcome)),
        error: error.map(ToolError::from),
        meta: ResultMeta {
            process: Some(ProcessMeta {
                exit: outcome.ending.exit,
                signal: outcome.ending.signal,
                timed_out: outcome.end == End::TimedOut,
                output_bytes: outcome.printed,
            }),
            duration_ms: Some(u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX)),
            ..ResultMeta::default()
        },
        todo: None,
    }
}

/// How it ended, in numbers. It never speaks of success: what an exit code means only the command
/// knows.
fn status(command: &Command<'_>, outcome: &Outcome) -> String {
    let mut text = String::new();
    match outcome.end {
        End::Itself => {}
        End::TimedOut => {
            let _ = write!(text, "stopped: the time limit of {} s was reached; ", command.timeout.as_secs());
        }
        End::Cancelled => text.push_str("stopped: cancelled; "),
        End::Lost => text.push_str("the supervisor of the command was lost, so nobody knows how far it got; "),
    }
    match (outcome.ending.exit, outcome.ending.signal) {
        (Some(code), _) => {
            let _ = write!(text, "exit {code}");
            if code == 0 && ends_in_pipeline(command.line) {
                text.push_str(" of the last command in the pipe");
            }
        }
        (None, Some(signal)) => {
            let _ = write!(text, "ended by signal {signal}{}", signal_name(signal));
        }
        (None, None) => text.push_str("exit unknown"),
    }
    let _ = write!(text, ", {:.1} s", outcome.duration.as_secs_f64());
    if outcome.left.any {
        let what = if outcome.end == End::Itself { "still running" } else { "could not be stopped" };
        let _ = write!(text, "; {what}");
        let mut groups: Vec<i32> = outcome.left.processes.iter().map(|process| process.group).collect();
        if groups.is_empty() {
            groups.push(outcome.group);
        } else {
            let names: Vec<String> =
                outcome.left.processes.iter().map(|process| format!("{} ({})", process.name, process.pid)).collect();
            let _ = write!(text, ": {}", names.join(", "));
        }
        groups.sort_unstable();
        groups.dedup();
        let groups: Vec<String> = groups.iter().map(|group| format!("-{group}")).collect();
        let _ = write!(text, "; stop with: kill -- {}", groups.join(" "));
    } else if matches!(outcome.end, End::TimedOut | End::Cancelled) {
        text.push_str("; nothing of it is left running");
    }
    text
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (HUP)",
        2 => " (INT)",
        6 => " (ABRT)",
        9 => " (KILL)",
        11 => " (SEGV)",
        13 => " (PIPE)",
        15 => " (TERM)",
        _ => "",
    }
}

/// True when the last thing in a command line is a pipeline of several commands: its exit code is
/// only the last one's. A hint, so quoting is followed and nothing else.
fn ends_in_pipeline(line: &str) -> bool {
    let mut pipe = false;
    let mut quote = None;
    let mut rest = line.trim_end_matches([';', '\n', ' ']).chars().peekable();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => {
                rest.next();
            }
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '|' | '&') if rest.peek() == Some(&c) => {
                rest.next();
                pipe = false;
            }
            (None, '>') => {
                // `>|` and `>&` are redirections.
                if matches!(rest.peek(), Some('|' | '&')) {
                    rest.next();
                }
            }
            (None, '|') => {
                // `|&` pipes standard error too.
                if rest.peek() == Some(&'&') {
                    rest.next();
                }
                pipe = true;
            }
            (None, ';' | '\n') => pipe = false,
            (None, '&') if rest.peek() != Some(&'>') => pipe = false,
            _ => {}
        }
    }
    pipe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pipeline_at_the_end_counts() {
        for line in ["a | b", "x; a | b", "a 2>&1 | tail -n 1", "a |& b\n", "a && b | c;"] {
            assert!(ends_in_pipeline(line), "{line}");
        }
        for line in [
            "a",
            "a || b",
            "a | b; c",
            "a | b && c",
            "echo 'a | b'",
            "echo \"a \\\" | b\"",
            "a >| b",
            "a \\| b",
            "a | b &",
        ] {
            assert!(!ends_in_pipeline(line), "{line}");
        }
    }
}
