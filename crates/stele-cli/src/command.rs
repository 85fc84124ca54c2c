//! The commands of the line interface: what begins with `/` and is no path.

use crate::nearest;

/// What `/help` says.
pub const HELP: &str = "\
Type what is to be done; Enter sends it. While the agent works, what you type
reaches it at its next step. Esc or Ctrl-C stops the turn, Ctrl-C twice leaves
at once; at the prompt it clears the line. At an empty prompt Ctrl-D leaves, and
Ctrl-C twice.
Arrows move in the line and bring back what was sent here before.
A paste is one message: nothing in it is a command, or a yes to a call.
  /model [NAME]   the model in use, or another: a model, a route, ROUTE/MODEL
  /mode [NAME]    what needs no question: ask, edit, full
  /cost           what this session came to
  /cache          how the provider's prompt cache was used
  /undo  /redo    take the last turn back, or do it again: files, conversation
  /changes        what each turn changed
  /jobs [ID]      what runs in the background, or what it printed; /jobs stop ID
  /resume [ID]    the latest sessions here, or one of them (ID --move: here)
  /new            another session here; this one stays as it is
  /help  /quit    /exit and /q leave as well";

/// Their names, as `/help` lists them.
const NAMES: [&str; 15] = [
    "help", "quit", "exit", "q", "model", "mode", "cost", "cache", "undo", "redo", "changes", "jobs", "resume", "new",
    "clear",
];

/// The name and the rest of a line that is a command. A path, as in `/tmp/log.txt says why`, is text.
pub fn named(line: &str) -> Option<(&str, Option<&str>)> {
    let command = line.trim().strip_prefix('/')?;
    let (name, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let argument = Some(argument.trim()).filter(|argument| !argument.is_empty());
    (!name.contains('/')).then_some((name, argument))
}

/// What of a line is meant as text: `//name` is `/name`.
pub fn text(line: &str) -> &str {
    match line.strip_prefix('/') {
        Some(rest) if named(rest).is_some_and(|(name, _)| !name.is_empty()) => rest,
        _ => line,
    }
}

/// What is said of a name that is no command.
pub fn unknown(name: &str) -> String {
    let near = nearest::closest(name, NAMES.iter().map(|name| (*name).to_owned()));
    match near.filter(|near| nearest::distance(name, near) <= 2) {
        Some(near) => format!("no such command; did you mean /{near}? /help lists them, and //{name} sends it as text"),
        None => format!("no such command; /help lists them, and //{name} sends it as text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::WIDTH;

    #[test]
    fn the_help_fits() {
        assert!(HELP.lines().count() <= 24 && HELP.lines().all(|line| line.chars().count() <= WIDTH), "{HELP}");
    }

    #[test]
    fn a_path_is_no_command() {
        assert_eq!(named("/mode full "), Some(("mode", Some("full"))));
        assert_eq!(named(" /cost"), Some(("cost", None)));
        for text in ["/tmp/log.txt says why", "//mode full", "cost", "a /mode"] {
            assert_eq!(named(text), None, "{text}");
        }
        for (line, meant) in [("//mode full", "/mode full"), ("/tmp/x", "/tmp/x"), ("// x", "// x"), ("x", "x")] {
            assert_eq!(text(line), meant);
        }
        assert!(unknown("modle").contains("/model?"));
    }
}
