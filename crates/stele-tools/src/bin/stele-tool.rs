//! Runs built-in tools from the command line: `stele-tool NAME ARGUMENTS-AS-JSON …`, one after the other, in the current
//! folder; `-` for the arguments reads a line of standard input. What one call has read the next ones know. To try a tool
//! by hand; with `__supervise` it is the supervisor of its own shell commands.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::Arc;

use stele_core::{CallId, CallSession, ImageInput, Invocation, JobId, ReadFile, ReadFiles, SessionId, Watch};
use stele_tools::{Options, builtin, supervise};

const SUPERVISE: &str = "__supervise";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|first| first == SUPERVISE) {
        return supervise(&arguments[1..]);
    }
    match run(&arguments) {
        Ok(code) => code,
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "stele-tool: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[OsString]) -> Result<ExitCode, String> {
    const USAGE: &str = "usage: stele-tool NAME ARGUMENTS-AS-JSON [NAME ARGUMENTS-AS-JSON]…";

    if arguments.is_empty() || !arguments.len().is_multiple_of(2) {
        return Err(USAGE.to_owned());
    }
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let options = Options {
        environment: env::vars_os().collect(),
        supervisor: Some(vec![program.into(), SUPERVISE.into()]),
        ..Options::default()
    };
    let tools = builtin(&options);
    let cwd = env::current_dir().map_err(|error| error.to_string())?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let mut read_files = ReadFiles::new();
    for (number, call) in (1..).zip(arguments.chunks(2)) {
        let [name, json] = call else { return Err(USAGE.to_owned()) };
        let mut piped = String::new();
        let json = match json.to_str().ok_or("the arguments are not UTF-8")? {
            "-" => {
                std::io::stdin().lock().read_line(&mut piped).map_err(|error| error.to_string())?;
                piped.as_str()
            }
            json => json,
        };
        let tool = tools.iter().find(|tool| *name == *tool.spec().name).ok_or("there is no such tool")?;
        let output = runtime.block_on(tool.run(Invocation {
            call: CallId(number),
            arguments: json,
            cwd: &cwd,
            workspace: &cwd,
            session: CallSession {
                id: SessionId::new("00000000-0000-0000-0000-000000000000")?,
                next_job: JobId(1),
                notify: Arc::new(|_| {}),
                closed: Box::pin(std::future::pending()),
            },
            read_files: Arc::new(read_files.clone()),
            shown_files: Arc::new(BTreeMap::new()),
            images: ImageInput::Noted,
            watch: Watch::Nothing,
            ahead: Arc::new(|_| Ok(())),
            cancelled: Box::pin(std::future::pending()),
            progress: &|_| {},
        }));
        output.meta.files.iter().for_each(|file| ReadFile::follow(&mut read_files, file));
        writeln!(std::io::stdout(), "{}", output.content).map_err(|error| error.to_string())?;
        if output.error.is_some() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}
