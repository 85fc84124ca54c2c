//! From the command line to an exit code.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::args::{Cli, ColorChoice, Command, Global, SessionArgs};
use crate::commands;
use crate::error::{CommandError, Kind, Result};
use crate::misused;
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
            let error = misused::misused(&error);
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
    match misused::nearest_command(word) {
        Some(name) => error.hint(format!("stele help {name}")),
        None => error.hint("stele help"),
    }
}

/// True for `stele run --json …`, as far as it can be told of a line that is wrong.
fn wants_json() -> bool {
    let typed: Vec<_> = std::env::args_os().skip(1).take_while(|word| word != "--").collect();
    typed.iter().any(|word| word == "run") && typed.iter().any(|word| word == "--json")
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
        if let Some(error) = prompt.as_ref().and_then(|prompt| misused::no_command(&prompt.to_string_lossy())) {
            return Err(error.hint("a prompt of one word: stele run WORD"));
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
}
