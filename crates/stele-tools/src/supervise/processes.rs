//! The table of processes, as far as Linux shows it in `/proc` (`proc_pid_stat(5)`).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;

use rustix::process::{Pid, Signal};

use super::{MARK, Process};

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) process: Process,
    parent: i32,
    /// The session of terminals it belongs to (`setsid(2)`).
    session: i32,
    /// Clock ticks from the boot to its start: with the number it names one process for ever.
    started: u64,
    zombie: bool,
}

/// Every living descendant of a process, parents before children; empty where `/proc` is not there.
pub(super) fn descendants(of: Pid) -> Vec<Row> {
    let mut children: BTreeMap<i32, Vec<Row>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        if let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok())
            && let Some(row) = row(pid)
        {
            children.entry(row.parent).or_default().push(row);
        }
    }
    let mut found = Vec::new();
    let mut parents = vec![of.as_raw_nonzero().get()];
    while let Some(parent) = parents.pop() {
        for row in children.remove(&parent).into_iter().flatten() {
            parents.push(row.process.pid);
            if !row.zombie {
                found.push(row);
            }
        }
    }
    found
}

/// Every living process of a command whose supervisor is lost: those of the supervisor's session, which has its
/// number, and those that left it and still have the command's mark. A number is not given away while it names a session.
pub(super) fn abandoned(session: i32, mark: &OsStr) -> Vec<Row> {
    let own = std::process::id();
    let mut marked = format!("{MARK}=").into_bytes();
    marked.extend_from_slice(mark.as_encoded_bytes());
    let is_marked = |pid: i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == marked)
    };
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        if let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok())
            && u32::try_from(pid) != Ok(own)
            && let Some(row) = row(pid)
            && !row.zombie
            && (row.session == session || is_marked(pid))
        {
            found.push(row);
        }
    }
    found
}

fn row(pid: i32) -> Option<Row> {
    parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(pid: i32, stat: &[u8]) -> Option<Row> {
    let stat = String::from_utf8_lossy(stat);
    // The name stands in parentheses and may itself hold some.
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    Some(Row {
        process: Process { pid, group: fields.get(2)?.parse().ok()?, name },
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        zombie: matches!(*fields.first()?, "Z" | "X"),
    })
}

impl Row {
    /// Sends a signal to this very process, never to another that got its number since.
    pub(super) fn signal(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.process.pid) else { return };
        #[cfg(target_os = "linux")]
        match rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
            Ok(process) => {
                if row(self.process.pid).is_some_and(|now| now.started == self.started) {
                    let _ = rustix::process::pidfd_send_signal(process, signal);
                }
                return;
            }
            // A kernel before 5.3, or a filter that does not know the call.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {}
            Err(_) => return,
        }
        if row(self.process.pid).is_some_and(|now| now.started == self.started) {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_parsed_whatever_the_name() {
        let stat = b"42 (a) b (c) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 2 3\n";
        let row = parse(42, stat).unwrap();
        assert_eq!(row.process, Process { pid: 42, group: 42, name: "a) b (c".to_owned() });
        assert_eq!((row.parent, row.session, row.started, row.zombie), (7, 42, 12345, false));
        assert_eq!(parse(1, b"garbage"), None);
    }
}
