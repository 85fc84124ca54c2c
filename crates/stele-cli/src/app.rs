//! From the command line to an exit code.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Cli, Command, SessionArgs};
use crate::commands;
use crate::error::{CommandError, Kind, Result};
use crate::setup::{Environment, Setup};

/// Runs the command of this process.
pub fn run() -> ExitCode {
    let environment = Environment::of_this_process();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help that nobody reads any more is no fault.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let look = environment.look(cli.global.color);
    match dispatch(cli, environment) {
        Ok(exit) => ExitCode::from(exit),
        Err(error) => {
            if error.kind != Kind::Closed {
                report(&error, look.stderr());
            }
            ExitCode::from(error.kind.exit())
        }
    }
}

/// Writes an error for a person.
pub fn report(error: &CommandError, style: crate::render::style::Style) {
    use std::io::Write;

    use crate::render::inert::inert;

    let mut text = format!("{} {}: {}\n", style.red("error:"), style.bold(&error.code), inert(&error.message));
    for hint in &error.hints {
        text.push_str(&format!("  {} {}\n", style.cyan("try:"), inert(hint)));
    }
    // Standard error that cannot be written has nobody to be told.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn dispatch(cli: Cli, environment: Environment) -> Result<u8> {
    let Cli { global, session, prompt, command } = cli;
    let Some(command) = command else {
        if let Some(name) = prompt.as_ref().and_then(|prompt| nearest_command(&prompt.to_string_lossy())) {
            let message = format!("there is no such command; did you mean `stele {name}`?");
            return Err(CommandError::usage("usage.command", message).hint("a prompt of one word: stele run WORD"));
        }
        if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
            return Err(CommandError::usage("usage.no_terminal", "the line interface needs a terminal")
                .hint("stele run \"…\" works without one"));
        }
        return commands::line::main(&Setup::new(environment, &global, &session)?, &session, prompt.as_deref());
    };
    if prompt.is_some() || session.is_given() {
        return Err(CommandError::usage("usage.order", "options of a command stand after its name")
            .hint("stele run --continue \"…\""));
    }
    let plain = SessionArgs::default();
    match command {
        Command::Run(args) => commands::run::main(environment, &global, args),
        Command::Demo(args) => commands::demo::main(environment, &global, &args),
        Command::Sessions(command) => commands::sessions::main(&Setup::new(environment, &global, &plain)?, command),
        Command::Verify(args) => commands::verify::main(&Setup::new(environment, &global, &plain)?, &args),
        Command::Cache(command) => commands::cache::main(&Setup::new(environment, &global, &plain)?, &command),
        Command::Models(args) => commands::models::main(&Setup::new(environment, &global, &plain)?, &args),
        Command::Config(args) => commands::config::main(environment, &global, &args),
        Command::Doctor(args) => commands::doctor::main(environment, &global, &args),
        Command::Completions { shell } => commands::completions::main(shell),
    }
}

/// The command that a single word may have been meant as.
fn nearest_command(prompt: &str) -> Option<String> {
    if prompt.is_empty() || prompt.contains(char::is_whitespace) || prompt.contains(['/', '.', '?', '!']) {
        return None;
    }
    let command = Cli::command();
    let names = command.get_subcommands().map(|command| command.get_name().to_owned());
    names.map(|name| (distance(prompt, &name), name)).filter(|(far, _)| *far <= 2).min().map(|(_, name)| name)
}

/// Insertions, deletions and substitutions between two words.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, left) in one.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], line + 1);
        for (at, right) in other.iter().enumerate() {
            let substituted = corner + usize::from(left != *right);
            corner = row[at + 1];
            row[at + 1] = substituted.min(row[at] + 1).min(corner + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_no_prompt() {
        assert_eq!(nearest_command("verfy").as_deref(), Some("verify"));
        assert_eq!(nearest_command("session").as_deref(), Some("sessions"));
        assert_eq!(nearest_command("refactor"), None);
        assert_eq!(nearest_command("verify it"), None);
        assert_eq!(nearest_command("hello"), None);
    }
}
