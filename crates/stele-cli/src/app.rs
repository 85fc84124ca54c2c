//! From the command line to an exit code.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use crate::args::{Cli, ColorChoice, Command, Global, SessionArgs};
use crate::commands;
use crate::error::{CommandError, Kind, Result};
use crate::nearest::distance;
use crate::output;
use crate::render::json::{self, Line};
use crate::setup::{Environment, Setup};

/// Runs the command of this process.
pub fn run() -> ExitCode {
    let environment = Environment::of_this_process();
    if let Some(asked) = help_of_a_command() {
        return match asked.and_then(|help| output::print(help.trim_end())) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                if error.kind != Kind::Closed {
                    report(&error, environment.look(ColorChoice::Auto).stderr());
                }
                ExitCode::from(error.kind.exit())
            }
        };
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
                // Help that nobody reads any more is no fault.
                let _ = error.print();
                return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
            }
            let error = misused(&error);
            if wants_json() {
                // The last line is there whatever happens.
                let result = commands::run::nothing_ran(&error);
                let _ = output::print(&json::line(&Line::Result(Box::new(result))));
            }
            report(&error, environment.look(ColorChoice::Auto).stderr());
            return ExitCode::from(error.kind.exit());
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

/// What `stele help COMMAND` says; `None` for anything else.
fn help_of_a_command() -> Option<Result<String>> {
    let mut typed = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    (typed.next()? == "help").then_some(())?;
    let words: Vec<String> = typed.collect();
    (!words.is_empty()).then(|| help(&words))
}

/// The help of a command, or of a command of a command.
fn help(words: &[String]) -> Result<String> {
    let mut cli = Cli::command();
    cli.build();
    let mut command = &mut cli;
    for word in words {
        command = match command.find_subcommand(word).map(|found| found.get_name().to_owned()) {
            Some(name) => command.find_subcommand_mut(name).ok_or_else(|| no_command(word))?,
            None => return Err(no_command(word)),
        };
    }
    Ok(command.render_long_help().to_string())
}

fn no_command(word: &str) -> CommandError {
    let error = CommandError::usage("usage.command", format!("there is no command {word}"));
    match nearest_command(word) {
        Some(name) => error.hint(format!("stele help {name}")),
        None => error.hint("stele help"),
    }
}

/// True for `stele run --json …`, as far as it can be told of a line that is wrong.
fn wants_json() -> bool {
    let typed: Vec<_> = std::env::args_os().skip(1).take_while(|word| word != "--").collect();
    typed.iter().any(|word| word == "run") && typed.iter().any(|word| word == "--json")
}

/// What is wrong with the words of the command line.
fn misused(error: &clap::Error) -> CommandError {
    let first = std::env::args_os().nth(1).map(|first| first.to_string_lossy().into_owned()).unwrap_or_default();
    let is_command = Cli::command().find_subcommand(&first).is_some();
    match loose_word(error) {
        // Commands other than `run` take no prompt.
        Some(_) if !is_command && let Some(name) = nearest_command(&first) => {
            CommandError::usage("usage.command", format!("there is no command {first}; did you mean `stele {name}`?"))
                .hint("a prompt of several words stands in quotes: stele run \"fix the failing test\"")
        }
        Some(word) if first == "run" || !is_command => {
            let message = format!("a prompt of several words stands in quotes; {word:?} came after it");
            CommandError::usage("usage.words", message).hint("stele run \"fix the failing test\"")
        }
        _ => wrong_options(&error.to_string(), is_command.then_some(first.as_str())),
    }
}

/// A word that nothing takes, where that is what the error is about.
fn loose_word(error: &clap::Error) -> Option<&String> {
    match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(word) if error.kind() == ErrorKind::UnknownArgument => {
            Some(word).filter(|word| !word.starts_with('-'))
        }
        _ => None,
    }
}

/// The parser's message as any other error: what is wrong, what was probably meant, and where the options are explained.
fn wrong_options(text: &str, command: Option<&str>) -> CommandError {
    let lines =
        text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let (tips, said): (Vec<&str>, Vec<&str>) =
        lines.filter(|line| !line.is_empty()).partition(|line| line.starts_with("tip:"));
    let said = said.join(" ");
    let error = CommandError::usage("usage.options", said.strip_prefix("error: ").unwrap_or(&said));
    let error = tips.iter().fold(error, |error, tip| error.hint(tip["tip:".len()..].trim()));
    error.hint(command.map_or_else(|| "stele --help".to_owned(), |command| format!("stele {command} --help")))
}

/// Writes an error for a person.
pub fn report(error: &CommandError, style: crate::render::style::Style) {
    use std::io::Write;

    use crate::render::inert::inert;
    use crate::render::wrap::behind;

    let label = format!("error: {}:", error.code);
    let rest = behind(label.len(), &format!(" {}", inert(&error.message)), output::columns(), 2);
    let mut text = format!("{} {}:{rest}\n", style.red("error:"), style.bold(&error.code));
    for hint in &error.hints {
        text.push_str(&format!("  {} {}\n", style.cyan("try:"), inert(hint)));
    }
    // Standard error that cannot be written has nobody to be told.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn dispatch(cli: Cli, environment: Environment) -> Result<u8> {
    let Cli { global, session, prompt, command } = cli;
    let Some(command) = command else {
        if prompt.as_ref().is_some_and(|prompt| prompt == "help") {
            output::print(&Cli::command().render_help().to_string())?;
            return Ok(0);
        }
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
        Command::Sessions(args) => commands::sessions::main(&for_logs(environment, &global)?, args),
        Command::Verify(args) => commands::verify::main(&for_logs(environment, &global)?, &args),
        Command::Cache(command) => commands::cache::main(&for_logs(environment, &global)?, &command),
        Command::Proxy(args) => commands::proxy::main(&Setup::new(environment, &global, &plain)?, &args),
        Command::Edit(args) => commands::edit::edit(&environment, &global, &args),
        Command::Patch(args) => commands::edit::patch(&environment, &global, &args),
        Command::Undo(args) => commands::undo::main(&Setup::new(environment, &global, &plain)?, &args),
        Command::Models(args) => commands::models::main(&Setup::new(environment, &global, &plain)?, &args),
        Command::Probe(args) => commands::probe::main(&Setup::new(environment, &global, &plain)?, &args),
        Command::Config(args) => commands::config::main(environment, &global, &args),
        Command::Doctor(args) => commands::doctor::main(environment, &global, &args),
        Command::Completions { shell } => commands::completions::main(shell),
    }
}

/// The logs stay readable whatever the configuration says; what is wrong with it is told.
fn for_logs(environment: Environment, global: &Global) -> Result<Setup> {
    let (setup, wrong) = Setup::for_logs(environment, global)?;
    if let Some(error) = wrong {
        let error = error.hint("the logs are read all the same; nothing else runs before this is put right");
        report(&error, setup.look.stderr());
    }
    Ok(setup)
}

/// The command that a single word may have been meant as.
fn nearest_command(prompt: &str) -> Option<String> {
    // Other programs list with this word; here the sessions are what there is to list.
    match prompt {
        "list" => return Some("sessions list".to_owned()),
        "man" => return Some("help".to_owned()),
        _ => {}
    }
    if prompt.is_empty() || prompt.contains(char::is_whitespace) || prompt.contains(['/', '.', '?', '!']) {
        return None;
    }
    let command = Cli::command();
    let names = command.get_subcommands().map(|command| command.get_name().to_owned());
    let most = if prompt.chars().count() < 4 { 1 } else { 2 };
    names.map(|name| (distance(prompt, &name), name)).filter(|(far, _)| *far <= most).min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_help() {
        let say = |words: &[&str]| help(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        for command in Cli::command().get_subcommands() {
            let help = say(&[command.get_name()]).unwrap();
            assert!(help.contains(&format!("Usage: stele {}", command.get_name())), "{help}");
        }
        assert!(say(&["sessions", "rm"]).unwrap().contains("Usage: stele sessions rm"));
        let error = say(&["rnu"]).unwrap_err();
        assert_eq!((error.code.as_str(), error.hints[0].as_str()), ("usage.command", "stele help run"));
        assert_eq!(say(&["run", "run"]).unwrap_err().code, "usage.command");
    }

    #[test]
    fn a_slip_of_the_pen_is_no_prompt() {
        assert_eq!(nearest_command("verfy").as_deref(), Some("verify"));
        assert_eq!(nearest_command("session").as_deref(), Some("sessions"));
        assert_eq!(nearest_command("list").as_deref(), Some("sessions list"));
        assert_eq!(nearest_command("man").as_deref(), Some("help"));
        assert_eq!(nearest_command("fix"), None);
        assert_eq!(nearest_command("refactor"), None);
        assert_eq!(nearest_command("verify it"), None);
        assert_eq!(nearest_command("hello"), None);
    }
}
