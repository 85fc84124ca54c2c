//! What is wrong with the words of a command line, and what was probably meant.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::Cli;
use crate::error::CommandError;
use crate::nearest::distance;

/// The error for a line that the parser refuses.
pub fn misused(error: &clap::Error) -> CommandError {
    let first = std::env::args_os().nth(1).map(|first| first.to_string_lossy().into_owned()).unwrap_or_default();
    let is_command = Cli::command().find_subcommand(&first).is_some();
    match loose_word(error) {
        // Commands other than `run` take no prompt.
        Some(_) if !is_command && let Some(error) = no_command(&first) => {
            error.hint("a prompt of several words stands in quotes: stele run \"fix the failing test\"")
        }
        Some(word) if first == "run" || !is_command => {
            let message = format!("a prompt of several words stands in quotes; {word:?} came after it");
            CommandError::usage("usage.words", message).hint("stele run \"fix the failing test\"")
        }
        _ => wrong_options(error),
    }
}

/// The error for a word that is probably meant as a command and is none; `None` for what may be a prompt.
pub fn no_command(word: &str) -> Option<CommandError> {
    if let Some((said, hints)) = known_elsewhere(word) {
        let error = CommandError::usage("usage.command", format!("there is no command {word}; {said}"));
        return Some(hints.iter().fold(error, |error, hint| error.hint(*hint)));
    }
    let name = nearest_command(word)?;
    let message = format!("there is no command {word}; did you mean `stele {name}`?");
    Some(CommandError::usage("usage.command", message))
}

/// Commands of other agents, and what does here what they do there.
fn known_elsewhere(word: &str) -> Option<(&'static str, &'static [&'static str])> {
    Some(match word {
        "resume" | "continue" => {
            ("what was begun goes on with -c, or with -r and an id", &["stele -c", "stele sessions", "/resume, inside"])
        }
        "exec" | "print" => ("one prompt in, an answer out, is `run`", &["stele run \"fix the failing test\""]),
        "chat" | "new" => ("without a command Stele talks", &["stele"]),
        "login" | "logout" | "auth" => (
            "a provider's key stands in a variable, and nothing else is needed",
            &["export ANTHROPIC_API_KEY=…", "stele models  # each route with its key's variable", "stele doctor"],
        ),
        "version" => ("it is an option", &["stele --version"]),
        "update" | "upgrade" => ("install it again as it was installed", &["stele --version"]),
        "init" => (
            "instructions for every session stand in AGENTS.md, which anybody may write",
            &["stele run --mode edit \"write AGENTS.md: how this project is built, tested and laid out\""],
        ),
        "log" | "logs" | "history" => {
            ("logs are looked at with `sessions`", &["stele sessions", "stele sessions show"])
        }
        "export" => ("logs are exported with `sessions`", &["stele sessions export ID"]),
        _ => return None,
    })
}

/// The command that a single word may have been meant as.
pub fn nearest_command(prompt: &str) -> Option<String> {
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

/// A word that nothing takes, where that is what the error is about.
fn loose_word(error: &clap::Error) -> Option<&str> {
    refused(error).filter(|word| error.kind() == ErrorKind::UnknownArgument && !word.starts_with('-'))
}

/// What the parser refuses.
fn refused(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(word) => Some(word),
        _ => None,
    }
}

/// The parser's message as any other error: what is wrong, what was probably meant, and where the options are explained.
fn wrong_options(error: &clap::Error) -> CommandError {
    if error.kind() == ErrorKind::UnknownArgument && matches!(refused(error), Some("-p" | "--print")) {
        let message =
            "there is no such option; one prompt in, an answer out, is `stele run`, and -q prints nothing else";
        return CommandError::usage("usage.options", message).hint("stele run -q \"fix the failing test\"");
    }
    let text = error.to_string();
    let lines =
        text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let (tips, said): (Vec<&str>, Vec<&str>) =
        lines.filter(|line| !line.is_empty()).partition(|line| line.starts_with("tip:"));
    let said = said.join(" ");
    let mut wrong = CommandError::usage("usage.options", said.strip_prefix("error: ").unwrap_or(&said));
    if refused(error).is_some_and(|option| option.starts_with("--resume")) {
        wrong = wrong.hint("stele -c  # the latest session of this folder").hint("stele sessions  # their ids");
    }
    let wrong = tips.iter().fold(wrong, |wrong, tip| wrong.hint(tip["tip:".len()..].trim()));
    let words = command_words(std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()));
    let command: String = words.iter().map(|word| format!("{word} ")).collect();
    wrong.hint(format!("stele {command}--help"))
}

/// The command that a line names, with the one within it.
fn command_words(typed: impl Iterator<Item = String>) -> Vec<String> {
    let mut command = Cli::command();
    let mut words = Vec::new();
    for word in typed.take_while(|word| word != "--") {
        if let Some(found) = command.find_subcommand(&word).cloned() {
            words.push(word);
            command = found;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_no_prompt() {
        assert_eq!(nearest_command("verfy").as_deref(), Some("verify"));
        assert_eq!(nearest_command("session").as_deref(), Some("sessions"));
        assert_eq!(nearest_command("list").as_deref(), Some("sessions list"));
        assert_eq!(nearest_command("man").as_deref(), Some("help"));
        for prompt in ["fix", "refactor", "verify it", "hello"] {
            assert_eq!(no_command(prompt), None, "{prompt}");
        }
        assert!(no_command("exec").unwrap().hints[0].starts_with("stele run"));
    }

    #[test]
    fn help_is_advised_of_the_command_that_was_named() {
        let words = |line: &str| command_words(line.split(' ').map(str::to_owned)).join(" ");
        assert_eq!(words("-C dir sessions rm --x"), "sessions rm");
        assert_eq!(words("cache simulate abc"), "cache simulate");
        assert_eq!(words("fix it"), "");
    }
}
