//! How a command ended, in words made of numbers.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Command, End, Outcome};

/// Process groups that are listed in the command that stops them.
const GROUPS: usize = 20;

/// How it ended, in numbers. It never speaks of success: what an exit code means only the command
/// knows.
pub(crate) fn status(command: &Command<'_>, outcome: &Outcome) -> String {
    let mut text = String::new();
    match outcome.end {
        End::Itself => {}
        End::TimedOut => {
            let _ = write!(
                text,
                "stopped: the time limit of {} s was reached; ",
                command.timeout.unwrap_or_default().as_secs()
            );
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
            // The codes belong to the last pipeline only if they agree with the end.
            let stages = outcome.after.as_ref().map(|after| after.stages.as_slice()).unwrap_or_default();
            if stages.len() > 1 && stages.last() == Some(&code) && ends_in_pipeline(command.line) {
                let stages: Vec<String> = stages.iter().map(ToString::to_string).collect();
                let _ = write!(text, " (stages: {})", stages.join(", "));
            }
        }
        (None, Some(signal)) => {
            let _ = write!(text, "ended by signal {signal}{}", signal_name(signal));
        }
        (None, None) => text.push_str("exit unknown"),
    }
    // How long a moment was says nothing, and would make every result another one.
    if outcome.duration >= Duration::from_secs(1) {
        let _ = write!(text, ", {:.1} s", outcome.duration.as_secs_f64());
    }
    if outcome.left.any {
        let what = if outcome.end == End::Itself { "still running" } else { "could not be stopped" };
        let _ = write!(text, "; {what}");
        if !outcome.left.processes.is_empty() {
            let _ = write!(text, ": {}", outcome.left.named().unwrap_or_default());
        }
        let _ = write!(text, "; stop with: {}", stop(outcome));
    } else if outcome.end == End::Lost {
        text.push_str("; nothing of it was found running after that");
    } else if outcome.end != End::Itself {
        text.push_str("; nothing of it is left running");
    }
    text
}

/// A command that stops all that is left of one: by its groups, or, where they are too many for a line, by the limit
/// that all of it has.
fn stop(outcome: &Outcome) -> String {
    match &outcome.mark {
        Some(mark) if outcome.left.groups.len() > GROUPS => {
            format!("kill $(grep -l {mark} /proc/[0-9]*/limits | cut -d/ -f3)")
        }
        _ => {
            let own = [outcome.group];
            let groups = if outcome.left.groups.is_empty() { &own[..] } else { &outcome.left.groups };
            let groups: Vec<String> = groups.iter().map(|group| format!("-{group}")).collect();
            format!("kill -- {}", groups.join(" "))
        }
    }
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
    use std::path::Path;

    use crate::supervise::{Ending, Left};

    use super::*;

    #[test]
    fn how_long_it_took_is_said_from_a_second_on() {
        let command = Command { line: "true", cwd: Path::new("/"), environment: &[], supervisor: None, timeout: None };
        let after = |ms| {
            let ending = Ending { exit: Some(0), ..Ending::default() };
            let (left, duration) = (Left::default(), Duration::from_millis(ms));
            status(
                &command,
                &Outcome { end: End::Itself, ending, left, group: 0, mark: None, duration, after: None, remains: None },
            )
        };
        assert_eq!((after(0).as_str(), after(999).as_str()), ("exit 0", "exit 0"));
        assert_eq!((after(1_000).as_str(), after(2_340).as_str()), ("exit 0, 1.0 s", "exit 0, 2.3 s"));
    }

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
