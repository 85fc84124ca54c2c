//! What is piped in beside a prompt that is given as an argument: `git diff | stele run "review this"`.

use std::ffi::OsStr;
use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use stele_core::limits::PROMPT_BYTES;

use crate::error::{CommandError, Result};
use crate::prompt::{self, Prompts};
use crate::render::style::Style;

/// How long the first byte is waited for. A pipe that was inherited and that nobody writes to ends with its other end
/// only, which may be never; and nothing tells it from one whose writer takes its time.
const PATIENCE: Duration = Duration::from_secs(5);

/// Puts what is piped in behind a prompt that was an argument. Any other prompt stays as it is.
pub fn appended(prompts: Prompts, argument: Option<&OsStr>, style: Style) -> Result<Prompts> {
    match prompts {
        Prompts::One(Some(prompt))
            if argument.is_some_and(|argument| argument != "-") && !io::stdin().is_terminal() =>
        {
            let piped = read(style)?;
            Ok(Prompts::One(Some(append(prompt, &piped)?)))
        }
        other => Ok(other),
    }
}

/// Standard input to its end, or to the first byte that is too many. Nothing where nothing comes, which is said.
fn read(style: Style) -> Result<Vec<u8>> {
    let (sender, pieces) = mpsc::channel();
    // Where nothing comes, this thread ends with the process.
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        let first = input.fill_buf().map(<[u8]>::to_vec);
        let length = first.as_ref().map_or(0, Vec::len);
        let ends = first.as_ref().is_ok_and(Vec::is_empty);
        input.consume(length);
        if !ends && sender.send(first).is_ok() {
            let mut rest = Vec::new();
            let read = input.take(PROMPT_BYTES.default + 1).read_to_end(&mut rest);
            // Somebody waits, or the process ends.
            let _ = sender.send(read.map(|_| rest));
        }
    });
    let mut bytes = Vec::new();
    match pieces.recv_timeout(PATIENCE) {
        Ok(first) => {
            for piece in std::iter::once(first).chain(pieces) {
                bytes.extend(piece.map_err(|error| {
                    CommandError::usage("usage.stdin", format!("cannot read standard input: {error}"))
                })?);
            }
        }
        Err(RecvTimeoutError::Disconnected) => {}
        Err(RecvTimeoutError::Timeout) => {
            let seconds = PATIENCE.as_secs();
            // Standard error that cannot be written has nobody to be told.
            let _ = writeln!(
                io::stderr(),
                "{} nothing came on standard input in {seconds} s, so the prompt goes without it; \
                 < /dev/null says so at once, and a prompt that is piped in as well (stele run -) waits for the end",
                style.yellow("! run.stdin_silent:")
            );
        }
    }
    Ok(bytes)
}

/// The prompt, then what was piped in as a block of its own: its fence is longer than any that stands in it.
fn append(prompt: String, piped: &[u8]) -> Result<String> {
    if piped.iter().all(u8::is_ascii_whitespace) {
        return Ok(prompt);
    }
    if piped.len() as u64 <= PROMPT_BYTES.default
        && let Some(at) = piped.iter().position(|byte| *byte == 0)
    {
        let message = format!("standard input is no text: byte {} is zero; convert it, or name the file", at + 1);
        return Err(CommandError::usage("usage.not_text", message));
    }
    let text = prompt::check(piped, "standard input")?;
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let whole = format!("{prompt}\n\nStandard input:\n\n{fence}\n{text}{end}{fence}");
    prompt::check(whole.as_bytes(), "the prompt with standard input")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(piped: &[u8], expect: &str) {
        assert_eq!(append("explain".to_owned(), piped).unwrap(), expect);
    }

    #[test]
    fn what_is_piped_in_is_a_block_with_clear_bounds() {
        check(b" \n", "explain");
        check(b"a\nb\n", "explain\n\nStandard input:\n\n```\na\nb\n```");
        check(b"a", "explain\n\nStandard input:\n\n```\na\n```");
        check(b"```\n````x", "explain\n\nStandard input:\n\n`````\n```\n````x\n`````");
    }

    #[test]
    fn what_is_no_text_or_too_long_is_refused() {
        let code = |piped: &[u8]| append("explain".to_owned(), piped).unwrap_err().code;
        assert_eq!(code(b"a\0b"), "usage.not_text");
        assert_eq!(code(b"a\xff"), "usage.not_utf8");
        let most = vec![b'x'; PROMPT_BYTES.default as usize];
        assert_eq!(code(&most), "usage.prompt_too_long", "the prompt counts as well");
        assert_eq!(code(&[&most[..], b"\0"].concat()), "usage.prompt_too_long");
    }
}
