//! The timeline as a table of 80 columns.

use std::collections::BTreeSet;
use std::time::Duration;

use stele_core::timeline::{Entry, EntryKind, Status, Timeline};
use stele_core::{EndReason, Reuse};

use super::inert::{one_line, shorten};
use super::money::{cost, count, elapsed, from_cache, known, plural, tokens};
use super::style::Style;

/// The timeline, a line an entry, sums at the end.
pub fn lines(timeline: &Timeline, undone: &BTreeSet<u64>, style: Style) -> Vec<String> {
    let header = format!("{:>4} {:>5} {:<9}{:<26}{:>9}  {}", "turn", "step", "what", "name", "time", "how");
    let mut lines = vec![style.dim(&header)];
    lines.extend(timeline.steps.iter().map(|entry| line(entry, style)));
    if timeline.left_out > 0 {
        lines.push(style.dim(&format!("… {} more", count(timeline.left_out))));
    }
    if let Some(stop) = timeline.stop.as_ref().filter(|stop| **stop != EndReason::Completed) {
        lines.push(style.yellow(&ended(stop, timeline)));
    }
    if !undone.is_empty() {
        let turns = undone.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        lines.push(style.yellow(&format!("taken back, files and conversation: turn {turns}")));
    }
    let sum = |get: fn(&stele_core::timeline::TurnSums) -> u64| timeline.turns.iter().map(get).sum::<u64>();
    lines.push(format!(
        "{} · {} · {} · {}",
        plural(timeline.turns.len() as u64, "turn"),
        plural(sum(|turn| turn.steps), "step"),
        plural(sum(|turn| turn.attempts), "attempt"),
        plural(sum(|turn| turn.executions), "execution"),
    ));
    lines.push(format!("{}{} · {}", tokens(&timeline.usage), from_cache(timeline.hit_rate), cost(timeline.cost)));
    lines.extend(local_reuse(&timeline.local_reuse));
    lines
}

/// Why the last turn ended, where it did not complete.
fn ended(stop: &EndReason, timeline: &Timeline) -> String {
    match stop {
        EndReason::Completed => "completed".to_owned(),
        EndReason::Failed { code, .. } => format!("failed: {}", one_line(code)),
        EndReason::Limit(reached) => {
            format!("limit reached: {}", super::summary::reached(reached, timeline.cost, None))
        }
        EndReason::MaxOutput => "cut at the model's maximum of output tokens".to_owned(),
        EndReason::Aborted { by } => format!("stopped by {}", one_line(&by.0)),
        EndReason::Interrupted => "left open, and closed later".to_owned(),
    }
}

fn line(entry: &Entry, style: Style) -> String {
    let what = match entry.kind {
        EntryKind::Model => "model",
        EntryKind::Tool => "tool",
        EntryKind::Approval => "approval",
        EntryKind::Retry => "retry",
        EntryKind::Epoch => "epoch",
    };
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    let time = entry.duration_ms.map(|millis| elapsed(Duration::from_millis(millis))).unwrap_or_default();
    let how = match (&entry.usage, &entry.code, entry.status) {
        (_, Some(code), _) => style.red(&one_line(code)),
        (Some(usage), None, _) => format!("{} in, {} out", known(usage.input()), known(usage.output)),
        (None, None, Status::Succeeded) => style.green("ok"),
        (None, None, Status::Running) => style.yellow("open"),
        (None, None, Status::Failed) => style.red("failed"),
        (None, None, Status::Denied) => style.red("refused"),
        (None, None, Status::Aborted) => style.yellow("stopped"),
    };
    let name = shorten(&one_line(&entry.name), 25);
    format!("{:>4} {:>5} {what:<9}{name:<26}{time:>9}  {how}", number(entry.turn), number(entry.step))
}

/// What pointers saved, apart from what the provider's cache did.
pub fn local_reuse(reuse: &Reuse) -> Option<String> {
    (!reuse.is_none()).then(|| {
        format!("local tool-result reuse: {}, {} B not sent again", plural(reuse.times, "time"), count(reuse.bytes))
    })
}
