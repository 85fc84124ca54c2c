//! A home of its own, a folder to work in, a scripted server, and the binary.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use stele_core::Wire;
use stele_testkit::{Behaviour, Server};
use tempfile::TempDir;

/// Home and folder of one test.
pub struct Place {
    scratch: TempDir,
}

impl Place {
    pub fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::create_dir(scratch.path().join("work")).unwrap();
        Self { scratch }
    }

    pub fn folder(&self) -> PathBuf {
        self.scratch.path().canonicalize().unwrap().join("work")
    }

    pub fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.folder().join(name), content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder().join(name)).unwrap()
    }

    /// The binary in the folder, with an environment that holds nothing else.
    pub fn stele<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stele"));
        command
            .args(arguments)
            .current_dir(self.folder())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.scratch.path())
            .env("TMPDIR", self.scratch.path())
            .env("STELE_HOME", self.home())
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The same with a model to ask.
    pub fn with<'a>(&self, server: &Server, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        self.on(server, Wire::AnthropicMessages, arguments)
    }

    /// The same over some wire.
    pub fn on<'a>(&self, server: &Server, wire: Wire, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.stele(arguments);
        command
            .env("STELE_WIRE", wire.to_string())
            .env("STELE_BASE_URL", server.base_url(wire))
            .env("STELE_MODEL", "scripted");
        command
    }

    /// Ids of the sessions, the last used first.
    pub fn sessions(&self) -> Vec<String> {
        let listed = Done::of(self.stele(["sessions", "list", "--json"]));
        assert_eq!(listed.code, 0, "{listed:?}");
        listed.lines().iter().map(|line| line["session"].as_str().unwrap().to_owned()).collect()
    }

    /// Fails the test unless every session is as it was written.
    pub fn assert_clean(&self) {
        let verified = Done::of(self.stele(["verify", "--all"]));
        assert_eq!(verified.code, 0, "{verified:?}");
    }

    pub fn path(&self) -> &Path {
        self.scratch.path()
    }
}

/// A server that behaves like this.
pub fn server(behaviour: impl Into<Behaviour>) -> Server {
    Server::start(behaviour).unwrap()
}

/// How a command ended.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Done {
    pub fn of(mut command: Command) -> Self {
        command.output().unwrap().into()
    }

    /// With something on standard input.
    pub fn fed(mut command: Command, input: impl AsRef<[u8]>) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // A program that does not read its input to the end is fine.
        let _ = child.stdin.take().unwrap().write_all(input.as_ref());
        Self::wait(child)
    }

    pub fn wait(child: Child) -> Self {
        child.wait_with_output().unwrap().into()
    }

    /// Standard output as JSON lines.
    #[track_caller]
    pub fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}\n{self:?}"));
        self.out.lines().map(parse).collect()
    }

    /// The last line, which is the result.
    #[track_caller]
    pub fn result(&self) -> Value {
        let lines = self.lines();
        let results = lines.iter().filter(|line| line["type"] == "result").count();
        assert_eq!(results, 1, "{self:?}");
        let last = lines.last().unwrap().clone();
        assert_eq!(last["type"], "result", "{self:?}");
        last
    }
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Ids, ports, folders and times out of what is compared.
pub fn filters(place: &Place) -> Vec<(String, &'static str)> {
    vec![
        (regex_escape(&place.folder().display().to_string()), "[folder]"),
        (regex_escape(&place.path().canonicalize().unwrap().display().to_string()), "[scratch]"),
        (regex_escape(&place.path().display().to_string()), "[scratch]"),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}".to_owned(), "[session]"),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}".to_owned(), "[short session]"),
        (r"[0-9a-f]{64}".to_owned(), "[hash]"),
        (r"127\.0\.0\.1:\d+".to_owned(), "[address]"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d".to_owned(), "[time]"),
        // Said only when the machine was so busy that it took a second.
        (r"\[exit 0, \d+\.\d s\]".to_owned(), "[exit 0]"),
        (r" *\b\d+(\.\d)? m?s\b".to_owned(), " [elapsed]"),
        (r" *\b\d{1,3}(,\d{3})+\b".to_owned(), " [number]"),
        (r" *\b\d+ %".to_owned(), " [share]"),
        (r"[█▉▊▋▌▍▎▏·]{8}".to_owned(), "[bar]   "),
        (r"stele-demo-\w+".to_owned(), "stele-demo-[name]"),
    ]
}

fn regex_escape(text: &str) -> String {
    text.chars()
        .flat_map(
            |character| {
                if character.is_alphanumeric() || character == '/' { vec![character] } else { vec!['\\', character] }
            },
        )
        .collect()
}

/// Compares what a person sees with the snapshot.
macro_rules! seen {
    ($place:expr, $text:expr) => {{
        let filters = $crate::support::filters(&$place);
        let filters: Vec<(&str, &str)> = filters.iter().map(|(from, to)| (from.as_str(), *to)).collect();
        insta::with_settings!({ filters => filters, omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!($text);
        });
    }};
}
pub(crate) use seen;
