//! What a model's command can find out about the agent.

#![cfg(target_os = "linux")]

use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use serde_json::json;
use stele_testkit::{Say, Script};

use crate::support::{Done, Place, server};

const KEY: &str = "sk-of-a-provider";

/// The same as a user who is nobody special: root may read everything.
fn without_privileges(agent: Command, place: &Place) -> Command {
    if place.folder().metadata().unwrap().uid() != 0 {
        return agent;
    }
    let mut plain = Command::new("/usr/bin/setpriv");
    plain.args(["--bounding-set=-all", "--inh-caps=-all"]).arg(agent.get_program()).args(agent.get_args());
    plain.current_dir(place.folder()).env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    plain.envs(agent.get_envs().filter_map(|(name, value)| Some((name, value?))));
    plain
}

#[test]
fn a_command_cannot_read_the_providers_key_from_the_agent() {
    let place = Place::new();
    // Between a command and the agent is its supervisor.
    let command = "agent=$(sed 's/.*) //' /proc/$PPID/stat | cut -d' ' -f2)
        tr '\\0' ' ' </proc/$agent/cmdline >named
        cat /proc/$agent/environ >environment 2>refused; env >own; cat /proc/self/status >status";
    let server = server(Script::new([Say::call("bash", &json!({"command": command})), Say::text("Done.")]));
    let mut agent = place.with(&server, ["run", "--mode", "full", "find the key"]);
    agent.env("STELE_API_KEY", KEY);
    let done = Done::of(without_privileges(agent, &place));
    assert_eq!(done.code, 0, "{done:?}");
    assert!(place.read("named").contains("find the key"), "it looked at the agent: {:?}", place.read("named"));
    assert_eq!(place.read("environment"), "");
    assert!(place.read("refused").contains("Permission denied"), "{}", place.read("refused"));
    assert!(!place.read("own").contains(KEY));
    // Nor does it inherit how the agent takes a file beyond the limit (SIGXFSZ).
    let status = place.read("status");
    for set in ["SigBlk:", "SigIgn:"] {
        let mask = status.lines().find_map(|line| line.strip_prefix(set)).unwrap().trim();
        assert_eq!(u64::from_str_radix(mask, 16).unwrap() & (1 << 24), 0, "{set} {mask}");
    }
}
