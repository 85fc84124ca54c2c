//! What a run came to, for a person.

use std::path::Path;
use std::time::Duration;

use stele_core::limits::LimitKind;
use stele_core::{LimitReached, Micros};

use super::card::{counts, relative};
use super::json::{RunResult, Status};
use super::money;
use super::style::Style;
use super::wrap::hanging;
use crate::tally::Tally;

/// Columns of what stands before a line.
const LABEL: usize = 9;

/// Files that are named; the rest is counted.
const FILES: usize = 12;

/// How a session goes on for whoever reads the closing lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoesOn {
    /// From this folder.
    Here,
    /// From its own folder, which is another one.
    Elsewhere,
    /// Not at all: its model is gone.
    Never,
}

/// The closing lines.
pub fn lines(
    tally: &Tally,
    result: &RunResult,
    folder: &Path,
    goes_on: GoesOn,
    columns: Option<usize>,
    style: Style,
) -> Vec<String> {
    let label = |name: &str| style.dim(&format!("{name:<LABEL$}"));
    let beneath = format!("\n{}", " ".repeat(LABEL));
    let mut lines = Vec::new();
    for (at, file) in tally.files.values().take(FILES).enumerate() {
        let name = label(if at == 0 { "changed" } else { "" });
        let action = match file.action {
            stele_core::FileAction::Created => " new",
            stele_core::FileAction::Deleted => " deleted",
            _ => "",
        };
        let counts = file.added.zip(file.removed).map(|(added, removed)| format!(" {}", counts(added, removed, style)));
        lines.push(format!(
            "{name}{}{}{}",
            relative(&file.path, folder),
            counts.unwrap_or_default(),
            style.dim(action)
        ));
    }
    if tally.files.len() > FILES {
        lines.push(format!("{}… {} more files", label(""), tally.files.len() - FILES));
    }
    for refused in &tally.refused {
        let why = match (&refused.allow_with, &refused.reason) {
            (Some(flag), _) => format!("(allow with {flag})"),
            (None, Some(reason)) => format!("({reason})"),
            (None, None) => format!("(asked by {})", refused.by),
        };
        lines.push(format!("{}{} {}", label("refused"), refused.tool, style.dim(&super::inert::one_line(&why))));
    }
    for skipped in &result.skipped {
        lines.push(format!("{}{}", label("skipped"), super::inert::one_line(skipped)));
    }
    for job in &result.jobs {
        lines.push(format!("{}{}, ended with the run", label("job"), super::inert::one_line(job)));
    }
    if let Some(model) = &result.model {
        lines.push(format!("{}{}", label("model"), super::inert::one_line(model)));
    }
    let time = tally.started.zip(tally.ended).map(|(from, to)| to.0.saturating_sub(from.0).max(0).unsigned_abs());
    lines.push(format!(
        "{}{} · {} · {} · {}",
        label("work"),
        money::plural(tally.steps, "step"),
        money::plural(tally.attempts, "attempt"),
        money::plural(tally.executions, "execution"),
        money::elapsed(Duration::from_millis(time.unwrap_or(0)))
    ));
    let mut tokens = money::tokens(tally.account.usage());
    let coverage = tally.account.coverage();
    match tally.hit_rate() {
        None if tally.account.usage().cache_read.is_some() && coverage.known == coverage.attempts => {
            tokens.push_str(" · ? from cache");
        }
        rate => tokens.push_str(&money::from_cache(rate)),
    }
    if coverage.known < coverage.attempts && coverage.known > 0 {
        tokens.push_str(&format!(" · known for {} of {} attempts", coverage.known, coverage.attempts));
    }
    let room = columns.map(|columns| columns.saturating_sub(LABEL));
    lines.push(format!("{}{}", label("tokens"), hanging(&tokens, room, 0).replace('\n', &beneath)));
    lines.extend(super::timeline::local_reuse(&tally.local_reuse).map(|reuse| format!("{}{reuse}", label(""))));
    lines.push(format!("{}{}", label("cost"), money::cost(tally.account.cost())));
    let Some(session) = &result.session else { return lines };
    lines.push(format!("{}{session}", label("session")));
    if let Some(head) = &result.head {
        lines.push(format!("{}{} {}", label("head"), head.seq, style.dim(&head.hash)));
    }
    if goes_on == GoesOn::Never {
        return lines;
    }
    let elsewhere = goes_on == GoesOn::Elsewhere;
    if elsewhere {
        lines.push(format!("{}{}", label("folder"), super::inert::one_line(&folder.display().to_string())));
    }
    // A session that does not fit any more cannot go on.
    let full = result.error.as_ref().is_some_and(|error| error.code == "provider.context_overflow");
    let again = tally.steps == 0 && matches!(result.status, Status::Failed | Status::Limit);
    let there = match elsewhere {
        true => format!(" -C {}", super::inert::one_line(&super::word::shell_word(&folder.display().to_string()))),
        false => String::new(),
    };
    let (name, command) = match (full, elsewhere) {
        (true, _) => ("new", "stele run \"…\"".to_owned()),
        _ if again => ("again", format!("stele run{there} --resume {session}")),
        (false, true) => ("continue", format!("stele run{there} --resume {session} \"…\"")),
        (false, false) => ("continue", "stele run --continue \"…\"".to_owned()),
    };
    lines.push(format!("{}{}", label(name), style.bold(&command)));
    lines
}

/// A limit's name for a person.
pub fn limit(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::Steps => "steps in a turn",
        LimitKind::Executions => "tool executions in a turn",
        LimitKind::Time => "time",
        LimitKind::Cost => "cost",
        LimitKind::Tokens => "tokens in a turn",
        LimitKind::Repeats => "the same call with the same result",
        LimitKind::FailedSteps => "steps in a row in which every call failed",
    }
}

/// A limit's number in its unit.
pub fn measure(kind: LimitKind, number: u64) -> String {
    match kind {
        // The few milliseconds before the turn began belong to no one.
        LimitKind::Time if number >= 500 => money::elapsed(Duration::from_millis((number + 50) / 100 * 100)),
        LimitKind::Time => money::elapsed(Duration::from_millis(number)),
        LimitKind::Cost => money::money(Micros(number)),
        _ => money::count(number),
    }
}

/// A limit that ended a turn, with its numbers. A limit of cost ends it before the request that might pass it is sent:
/// then what was observed is that request's highest price on top of what was spent, at most.
pub fn reached(reached: &LimitReached, cost: Option<Micros>, at_most: Option<Micros>) -> String {
    let (which, maximum) = (limit(reached.which), measure(reached.which, reached.maximum));
    let spent = at_most.filter(|spent| reached.which == LimitKind::Cost && spent.0 <= reached.maximum);
    match spent {
        Some(spent) => format!(
            "{which} ({}{} of {maximum}; the next request may cost up to {})",
            if cost.is_none() { "up to " } else { "" },
            money::money(spent),
            money::money(Micros(reached.observed.saturating_sub(spent.0)))
        ),
        None => format!("{which} ({} of {maximum})", measure(reached.which, reached.observed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_a_second_is_a_second() {
        assert_eq!(measure(LimitKind::Time, 999), "1.0 s");
        assert_eq!(measure(LimitKind::Time, 1_003), "1.0 s");
        assert_eq!(measure(LimitKind::Time, 120), "120 ms");
        assert_eq!(measure(LimitKind::Steps, 1_000), "1,000");
    }

    #[test]
    fn what_may_be_spent_is_not_told_as_spent() {
        let limit = |which, maximum, observed| LimitReached {
            which,
            maximum,
            observed,
            closest: Vec::new(),
            last_calls: Vec::new(),
        };
        let cost = limit(LimitKind::Cost, 10, 661_410);
        let check = |limit, cost: Option<u64>, at_most: Option<u64>, expect| {
            assert_eq!(reached(limit, cost.map(Micros), at_most.map(Micros)), expect);
        };
        check(&cost, Some(0), Some(0), "cost ($0 of $0.000010; the next request may cost up to $0.6614)");
        check(&cost, None, Some(10), "cost (up to $0.000010 of $0.000010; the next request may cost up to $0.6614)");
        check(&cost, Some(661_410), Some(661_410), "cost ($0.6614 of $0.000010)");
        check(&cost, None, None, "cost ($0.6614 of $0.000010)");
        check(&limit(LimitKind::Steps, 2, 2), Some(0), Some(0), "steps in a turn (2 of 2)");
    }
}
