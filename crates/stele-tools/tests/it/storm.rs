//! Random shell commands with random ends: every call returns in time, tells the truth, and leaves nothing.
//!
//! `STELE_STORM=500` sets the number of commands, `STELE_STORM_SEED` where they begin.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{Session, block_on};

/// A small generator of numbers that look random (xorshift, G. Marsaglia, 2003).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[usize::try_from(self.roll(from.len() as u64)).unwrap()]
    }
}

/// Commands that end by themselves; `@` stands for a number.
const QUICK: &[&str] = &[
    "true",
    "exit @",
    "echo out; echo err >&2; exit @",
    "seq 1 20000",
    "head -c 300000 /dev/urandom",
    "printf '\\0\\377\\033[31m@\\r\\n'",
    "kill -TERM $$",
    "kill -KILL $$",
    "cat",
    "read x; echo \"$x\"; exit @",
    "exec >&- 2>&-; exit @",
    "exec sh -c 'exec sh -c \"exit @\"'",
    "yes | head -n 100000 | tail -n 1",
    "false | exit @",
    "cd / && pwd",
    "trap 'exit @' EXIT; exit 1",
    "set -e; false; echo never",
    "for do",
    "exec setsid sleep 600",
];

/// What is left behind, or beside, or instead.
const LINGERING: &[&str] = &[
    "sleep 600 &",
    "setsid sleep 600 &",
    "(setsid sh -c 'sleep 600 & sleep 600 & exit' &)",
    "sh -c 'trap \"\" TERM HUP INT; while :; do sleep 600; done' &",
    "nohup sleep 600 >/dev/null 2>&1 &",
    "( ( sleep 600 ) & ) ",
    "sleep 600 </dev/null >/dev/null 2>&1 & disown",
    "yes >/dev/null &",
    "(while :; do echo tick; sleep 0.05; done) &",
    "bash -c 'exec -a innocent sleep 600' &",
    "setsid setsid sh -c 'cd /; sleep 600' &",
];

/// Commands that do not end.
const ENDLESS: &[&str] = &[
    "sleep 600",
    "wait; sleep 600",
    "trap '' TERM; while :; do sleep 1; done",
    "trap 'sleep 600' TERM; sleep 600",
    "yes",
    "cat /dev/zero",
    "exec sleep 600",
    "exec >&- 2>&-; sleep 600",
    "kill -STOP $$; sleep 600",
    "while :; do :; done",
    "tail -f /dev/null | cat | cat",
];

/// Processes that carry the marker in their environment, looked at from outside.
fn marked(marker: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let numbered = entry.file_name().to_str().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        let environment =
            if numbered { std::fs::read(entry.path().join("environ")).unwrap_or_default() } else { continue };
        if environment.windows(marker.len()).any(|part| part == marker.as_bytes()) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            // One that ended has no command line any more.
            if !line.is_empty() {
                found.push(format!("{:?} {}", entry.file_name(), String::from_utf8_lossy(&line).replace('\0', " ")));
            }
        }
    }
    found
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// One command: when it may run and how it is stopped.
struct Call {
    command: String,
    endless: bool,
    cancel: Option<Duration>,
}

impl Call {
    fn random(dice: &mut Dice) -> Self {
        let mut command = String::new();
        for _ in 0..dice.roll(3) {
            command.push_str(dice.pick(LINGERING));
            command.push('\n');
        }
        let endless = dice.roll(2) == 0;
        command.push_str(dice.pick(if endless { ENDLESS } else { QUICK }));
        let command = command.replace('@', &dice.roll(200).to_string());
        let cancel = (dice.roll(3) == 0).then(|| Duration::from_millis(dice.roll(400)));
        Self { command, endless, cancel }
    }
}

#[test]
fn nothing_survives_a_storm_of_commands() {
    let (count, seed) = (setting("STELE_STORM", 40), setting("STELE_STORM_SEED", 1));
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut ends = [0u32; 3];
    for number in 0..count {
        let call = Call::random(&mut dice);
        let (name, value) = ("STELE_STORM_MARK", format!("{}-{seed}-{number}.", std::process::id()));
        let marker = format!("{name}={value}");
        let mut options = crate::options();
        options.environment.push((name.into(), value.into()));
        options.pass.push(name.to_owned());
        let session = Session::with(options);
        let began = Instant::now();
        let (output, took, left) = block_on(async {
            let cancelled = async {
                match call.cancel {
                    Some(after) => tokio::time::sleep(after).await,
                    None => std::future::pending().await,
                }
            };
            let arguments = json!({"command": call.command, "timeout": 1});
            let output = session.start("bash", arguments, cancelled, &|_| {}).await;
            let took = began.elapsed();
            let mut left = marked(&marker);
            // One in the middle of becoming another program has a name already, and no environment yet.
            let deadline = Instant::now() + Duration::from_secs(5);
            while left.is_empty() && output.content.contains("still running") && Instant::now() < deadline {
                left = marked(&marker);
            }
            (output, took, left)
        });
        let last = output.content.lines().next_back().unwrap_or_default();
        let told = format!("command {number}: {:?}\n{last}", call.command);
        assert!(took < Duration::from_secs(1 + 3), "{took:?} for {told}");
        let process = output.meta.process.as_ref().unwrap_or_else(|| panic!("no end of {told}"));
        match output.error.as_ref().map(|error| error.code.as_str()) {
            // It ended by itself: with a number, and what it left is named.
            None => {
                assert!(!call.endless, "an endless command ended: {told}");
                assert!(process.exit.is_some() != process.signal.is_some(), "{told}");
                assert_eq!(output.content.contains("still running"), !left.is_empty(), "{left:?} after {told}");
                ends[0] += 1;
            }
            // It was stopped: nothing is left, and that is said.
            Some(code @ ("bash.timeout" | "tool.cancelled")) => {
                assert_eq!(code == "bash.timeout", process.timed_out, "{told}");
                assert!(code == "bash.timeout" || call.cancel.is_some(), "{told}");
                assert!(output.content.contains("nothing of it is left running"), "{told}");
                assert_eq!(left, Vec::<String>::new(), "after {told}");
                ends[if code == "bash.timeout" { 1 } else { 2 }] += 1;
            }
            Some(other) => panic!("{other}: {told}"),
        }
        // With the runtime the life line is gone, as it is when the agent dies: so is what was left.
        let deadline = Instant::now() + Duration::from_secs(5);
        while !marked(&marker).is_empty() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(marked(&marker), Vec::<String>::new(), "after the end of the agent, from {told}");
    }
    assert!(ends.iter().all(|count| *count > 0), "{ends:?}");
}
