//! Where prompts come from: an argument, standard input, or JSON lines.

use std::ffi::OsStr;
use std::io::{self, BufRead, IsTerminal, Read};
use std::os::unix::ffi::OsStrExt;

use serde::Deserialize;
use stele_core::limits::PROMPT_BYTES;
use tokio::sync::mpsc;

use crate::args::InputFormat;
use crate::error::{CommandError, Result};

/// Longest line of JSON lines: a prompt in which every byte is escaped, and some room.
const LINE_MAX: u64 = PROMPT_BYTES.default * 6 + 1024;

/// The prompts of a run.
pub enum Prompts {
    /// None: what is owed goes on.
    None,
    /// One.
    One(Option<String>),
    /// One after another, as they are sent.
    Lines(mpsc::Receiver<Result<String>>),
}

impl Prompts {
    /// The next prompt.
    pub async fn next(&mut self) -> Option<Result<String>> {
        match self {
            Self::None => None,
            Self::One(prompt) => prompt.take().map(Ok),
            Self::Lines(lines) => lines.recv().await,
        }
    }

    /// True when there is none at all.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// Finds the prompts of `stele run`.
///
/// With a session to go on with and no prompt, standard input is left alone: what is owed goes on.
pub fn find(argument: Option<&OsStr>, format: InputFormat, goes_on: bool) -> Result<Prompts> {
    if format == InputFormat::Jsonl {
        return match argument {
            None => Ok(Prompts::Lines(lines())),
            Some(argument) if argument == "-" => Ok(Prompts::Lines(lines())),
            Some(_) => Err(CommandError::usage(
                "usage.prompt",
                "with --input-format jsonl the prompts come from standard input; leave the argument out",
            )),
        };
    }
    let text = match argument {
        Some(argument) if argument == "-" => from_stdin()?,
        Some(argument) => check(argument.as_bytes(), "the prompt")?,
        None if goes_on => return Ok(Prompts::None),
        None if io::stdin().is_terminal() => {
            return Err(CommandError::usage("usage.no_prompt", "there is no prompt")
                .hint("stele run \"fix the failing test\", or a prompt on standard input, or --continue"));
        }
        None => from_stdin()?,
    };
    Ok(Prompts::One(Some(text)))
}

fn from_stdin() -> Result<String> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(PROMPT_BYTES.default + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CommandError::usage("usage.stdin", format!("cannot read standard input: {error}")))?;
    check(&bytes, "standard input")
}

/// Takes a prompt's bytes.
pub fn check(bytes: &[u8], place: &str) -> Result<String> {
    if bytes.len() as u64 > PROMPT_BYTES.default {
        return Err(CommandError::usage(
            "usage.prompt_too_long",
            format!(
                "{place} is longer than a prompt may be ({} bytes); put it into a file in the folder and name the file",
                PROMPT_BYTES.default
            ),
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        CommandError::usage(
            "usage.not_utf8",
            format!(
                "{place} is not UTF-8: byte {} (0x{:02x}, line {line}) begins no character; convert it first",
                at + 1,
                bytes[at]
            ),
        )
    })?;
    if text.trim().is_empty() {
        return Err(CommandError::usage("usage.no_prompt", format!("{place} is empty; say what is to be done")));
    }
    Ok(text.to_owned())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PromptLine {
    prompt: String,
}

/// Reads one JSON line.
fn line(bytes: &[u8], number: usize) -> Result<Option<String>> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let place = format!("line {number} of standard input");
    let parsed: PromptLine = serde_json::from_slice(bytes).map_err(|error| {
        CommandError::usage(
            "usage.prompt_line",
            format!("{place} is no prompt ({error}); expected {{\"prompt\": \"…\"}}"),
        )
    })?;
    check(parsed.prompt.as_bytes(), &place).map(Some)
}

/// JSON lines, read on a thread of their own so that the next prompt may come while a turn runs.
fn lines() -> mpsc::Receiver<Result<String>> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut bytes = Vec::new();
        for number in 1.. {
            bytes.clear();
            let read = stdin.by_ref().take(LINE_MAX).read_until(b'\n', &mut bytes);
            let prompt = match read {
                Ok(0) => return,
                Ok(_) => line(&bytes, number),
                Err(error) => Err(CommandError::usage("usage.stdin", format!("cannot read standard input: {error}"))),
            };
            let broken = prompt.is_err();
            if let Some(prompt) = prompt.transpose()
                && sender.blocking_send(prompt).is_err()
            {
                return;
            }
            if broken {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code(bytes: &[u8]) -> String {
        check(bytes, "the prompt").unwrap_err().code
    }

    #[test]
    fn a_prompt_is_text_not_empty_and_not_too_long() {
        assert_eq!(check("héllo\n".as_bytes(), "x").unwrap(), "héllo\n");
        assert_eq!(code(b" \n\t"), "usage.no_prompt");
        assert_eq!(code(&vec![b'x'; PROMPT_BYTES.default as usize + 1]), "usage.prompt_too_long");
        let error = check(b"ab\ncd\xffe", "standard input").unwrap_err();
        assert_eq!(error.code, "usage.not_utf8");
        assert!(error.message.contains("byte 6 (0xff, line 2)"), "{error}");
    }

    #[test]
    fn json_lines() {
        assert_eq!(line(b"{\"prompt\": \"a\\nb\"}\n", 1).unwrap().as_deref(), Some("a\nb"));
        assert_eq!(line(b"  \n", 1).unwrap(), None);
        for wrong in
            [&b"hello"[..], b"{\"prompt\": 1}", b"{\"prompt\":\"x\",\"y\":1}", b"{\"prompt\":\"\\ud800\"}", b"\xff"]
        {
            let error = line(wrong, 7).unwrap_err();
            assert!(error.code == "usage.prompt_line" && error.message.contains("line 7"), "{error}");
        }
        assert_eq!(line(b"{\"prompt\":\" \"}", 1).unwrap_err().code, "usage.no_prompt");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_bytes_are_a_prompt_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = line(&bytes, 1);
            match check(&bytes, "x") {
                Ok(text) => prop_assert_eq!(text.as_bytes(), &bytes[..]),
                Err(error) => prop_assert!(error.code.starts_with("usage.")),
            }
        }
    }
}
