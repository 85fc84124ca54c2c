//! The table of processes, as far as Linux shows it in `/proc` (`proc_pid_stat(5)`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rustix::process::{Pid, Signal};

use super::{Left, MARK, Process};

/// A row of the table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) process: Process,
    parent: i32,
    /// The session of terminals it belongs to (`setsid(2)`).
    pub(super) session: i32,
    /// Clock ticks from the boot to its start: with the number it names one process for ever.
    started: u64,
    zombie: bool,
    /// Stopped by a signal, and not by a debugger.
    pub(super) suspended: bool,
}

/// Processes that are named to the model.
const NAMED: usize = 5;

/// The whole table; empty where `/proc` is not there.
fn table() -> Vec<Row> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| row(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// The session of this process, where the table shows it: 0 when its leader lies outside this container, a number that
/// `getsid(2)` gives too and that no process has.
pub(super) fn own_session() -> Option<i32> {
    Some(row(i32::try_from(std::process::id()).ok()?)?.session)
}

/// True where this process' group leads its session, so that no shell started it; false where the table does not show it.
#[must_use]
pub fn leads_session() -> bool {
    let own = i32::try_from(std::process::id()).ok().and_then(row);
    own.is_some_and(|own| own.process.group == own.session)
}

/// Every living descendant of a process, parents before children.
pub(super) fn descendants(of: Pid) -> Vec<Row> {
    beneath(table(), of.as_raw_nonzero().get())
}

fn beneath(table: Vec<Row>, of: i32) -> Vec<Row> {
    let mut children: BTreeMap<i32, Vec<Row>> = BTreeMap::new();
    for row in table {
        children.entry(row.parent).or_default().push(row);
    }
    let mut found = Vec::new();
    let mut parents = vec![of];
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

/// Every living process of a command whose supervisor is lost or hangs, without the supervisor: what descends from it,
/// as long as it is there; those of its session, which has its number; and those that left both and still have the
/// command's mark. A number is not given away while it names a session.
pub(super) fn abandoned(supervisor: i32, mark: &str) -> Vec<Row> {
    let own = i32::try_from(std::process::id()).ok();
    let table = table();
    // What is older than the supervisor needs no closer look.
    let since = table.iter().find(|row| row.process.pid == supervisor).map_or(0, |row| row.started);
    let variable = format!("{MARK}={mark}").into_bytes();
    let is_marked = |pid: i32| {
        is_limited(pid, mark)
            || fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == variable))
    };
    let descend: BTreeSet<i32> = beneath(table.clone(), supervisor).iter().map(|row| row.process.pid).collect();
    let is_of_it = |row: &Row| {
        let pid = row.process.pid;
        !row.zombie
            && pid != supervisor
            && Some(pid) != own
            && (descend.contains(&pid) || row.session == supervisor || row.started >= since && is_marked(pid))
    };
    table.into_iter().filter(is_of_it).collect()
}

/// True when a process group has a living member. The system counts those too that ended and that their parent, then
/// the system's first process, did not wait for yet.
pub(super) fn group_lives(group: Pid) -> bool {
    if rustix::process::test_kill_process_group(group) == Err(rustix::io::Errno::SRCH) {
        return false;
    }
    let table = table();
    table.is_empty() || table.iter().any(|row| row.is_member(group))
}

/// The living members of a process group.
pub(super) fn members(group: Pid) -> Vec<Row> {
    let mut table = table();
    table.retain(|row| row.is_member(group));
    table
}

/// True when a process has a command's mark as its limit (see [`super::limit`]).
fn is_limited(pid: i32, mark: &str) -> bool {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    limits.split_ascii_whitespace().any(|word| word == mark)
}

/// Sends signals to all of these. Whole groups where that is safe, since no member can fork its way out of that; one
/// by one those whose group may hold others, which `mixed` tells.
pub(super) fn signal(rows: &[Row], mixed: impl Fn(&Row) -> bool, signals: &[Signal]) {
    let (single, grouped): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| mixed(row));
    let groups: BTreeSet<i32> = grouped.iter().map(|row| row.process.group).collect();
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        // It had a member when the table was read, and a number goes round slowly.
        for signal in signals {
            let _ = rustix::process::kill_process_group(group, *signal);
        }
    }
    for row in single {
        signals.iter().for_each(|signal| row.signal(*signal));
    }
}

/// What there is to say of processes that still run.
pub(super) fn left(rows: Vec<Row>) -> Left {
    let groups: BTreeSet<i32> = rows.iter().map(|row| row.process.group).collect();
    Left {
        any: !rows.is_empty(),
        total: rows.len(),
        groups: groups.into_iter().collect(),
        processes: rows.into_iter().map(|row| row.process).take(NAMED).collect(),
    }
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
        suspended: *fields.first()? == "T",
    })
}

impl Row {
    /// True for a living member of a process group.
    fn is_member(&self, group: Pid) -> bool {
        self.process.group == group.as_raw_nonzero().get() && !self.zombie
    }

    /// True as long as this very process runs, in the group it was in.
    pub(super) fn lives(&self) -> bool {
        row(self.process.pid)
            .is_some_and(|now| !now.zombie && now.started == self.started && now.process.group == self.process.group)
    }

    /// Sends a signal to this very process, never to another that got its number since.
    fn signal(&self, signal: Signal) {
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
        assert_eq!((row.parent, row.session, row.started), (7, 42, 12345));
        assert_eq!((row.zombie, row.suspended), (false, false));
        assert_eq!(parse(1, b"garbage"), None);
    }
}
