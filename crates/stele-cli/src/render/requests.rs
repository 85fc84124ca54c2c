//! What the proxy recorded, as lines of 80 columns.

use std::collections::BTreeMap;

use stele_core::{Micros, Usage};
use stele_proxy::{Conversation, Cut, Forgotten, Line, Report, Simulation, Sum, Verdict};

use super::WIDTH;
use super::inert::{one_line, shorten};
use super::money::{cost, count, known, money, percent, plural, short, tokens};
use super::style::Style;
use crate::cut;

/// What was removed, for a person.
pub fn forgotten(forgotten: &Forgotten) -> String {
    let Forgotten { requests, segments, bytes: (before, after) } = forgotten;
    let mega = |bytes: &u64| *bytes as f64 / 1e6;
    format!(
        "{} and {} forgotten; {:.1} MB were {:.1} MB",
        plural(*requests, "request"),
        plural(*segments, "segment"),
        mega(after),
        mega(before)
    )
}

/// The report: a table a conversation, and sums.
pub fn report(report: &Report, damaged: &[String], style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for found in &report.conversations {
        lines.extend(conversation(found, style));
        lines.push(String::new());
    }
    if report.side.requests > 0 {
        lines.push(style.bold("Beside the conversations (titles, summaries)"));
        lines.extend(sum(&report.side));
        lines.push(String::new());
    }
    lines.push(style.bold("All"));
    lines.extend(sum(&report.total));
    if report.failed > 0 {
        lines.push(format!("  {} got no answer, or an error", plural(report.failed, "request")));
    }
    lines.extend(self::damaged(damaged, style));
    lines
}

fn conversation(found: &Conversation, style: Style) -> Vec<String> {
    let agent = found.agent.as_deref().map_or_else(|| "an agent without a name".to_owned(), one_line);
    let mut lines = Vec::new();
    // A session that goes on elsewhere is one conversation still.
    let place = |line: &Line| (line.model.clone(), line.wire, line.base_url.clone(), line.rules);
    for requests in found.requests.chunk_by(|one, next| place(one) == place(next)) {
        let Some(first) = requests.first() else { continue };
        let title = format!("{} · {} · {}", one_line(&first.model), first.wire, one_line(&first.base_url));
        lines.push(style.bold(&shorten(&title, WIDTH)));
        lines.push(style.dim(&shorten(&format!("  {agent} · judged by the rules of {}", first.rules), WIDTH)));
        let header = format!(
            "{:>6} {:<8}{:>6}{:>11}{:>11}{:>11}{:>10}  {}",
            "id", "from", "cache", "input", "predicted", "read", "cost", "verdict"
        );
        lines.push(style.dim(&header));
        lines.extend(requests.iter().flat_map(|request| rows(request, style)));
    }
    lines.extend(sum(&found.sum));
    lines
}

/// A request, and what there is to say of it.
fn rows(request: &Line, style: Style) -> Vec<String> {
    let mut lines = vec![row(request, style)];
    if let Verdict::Cut(declared) = &request.verdict {
        let (why, price) = cut_facts(declared);
        lines.push(style.dim(&shorten(&format!("       cut: {}: {why}", declared.reason.name()), WIDTH)));
        lines.extend(price.map(|price| style.dim(&shorten(&format!("       estimated before it: {price}"), WIDTH))));
    }
    if let Some(leaves) = &request.leaves {
        let change = leaves.change.as_ref().map(|change| format!(": {change}")).unwrap_or_default();
        let text = format!("       leaves {} at {}{change}", leaves.request, leaves.segment);
        lines.push(style.dim(&shorten(&one_line(&text), WIDTH)));
    }
    if request.lost > 0 {
        lines.push(style.dim(&format!("       lost {}", lost_once(request.lost, request.step, request.lost_cost))));
    }
    lines
}

fn row(request: &Line, style: Style) -> String {
    let rate = request.reported.zip(request.input).map(|(read, input)| read as f64 / input as f64);
    format!(
        "{:>6} {}{:>6}{:>11}{:>11}{:>11}{:>10}  {}",
        request.id,
        bar(rate, style),
        rate.map_or_else(|| "?".to_owned(), |rate| percent(Some(rate))),
        known(request.input),
        known(request.predicted),
        known(request.reported),
        request.cost.map_or_else(|| "?".to_owned(), money),
        verdict(&request.verdict, style)
    )
}

/// A share as a bar of eight columns; empty when it is not known.
fn bar(share: Option<f64>, style: Style) -> String {
    let Some(share) = share else { return " ".repeat(8) };
    // Between nothing and all there is always something to see.
    let eighths = (share.clamp(0.0, 1.0) * 64.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    let full = "█".repeat(eighths / 8);
    let shown = format!("{full}{part}");
    let left = 8 - shown.chars().count().min(8);
    format!("{}{}", style.green(&shown), style.dim(&"·".repeat(left)))
}

/// The report on one of our own sessions.
pub fn session(report: &Report, notes: &[String], style: Style) -> Vec<String> {
    let mut lines: Vec<String> = report.conversations.iter().flat_map(|found| conversation(found, style)).collect();
    if lines.is_empty() {
        lines.push("no request was answered".to_owned());
    }
    if report.failed > 0 {
        lines.push(format!("  {} got no answer, or an error", plural(report.failed, "request")));
    }
    lines.extend(notes.iter().map(|what| format!("{} {}", style.yellow("!"), shorten(&one_line(what), WIDTH - 2))));
    lines
}

/// Sums, a line each, and all of them together.
pub fn sums(sums: &BTreeMap<String, Sum>, by: &str, style: Style) -> Vec<String> {
    let header = format!("{by:<36}{:>5} {:<8}{:>6}{:>12}{:>11}", "reqs", "from", "cache", "input", "cost");
    let mut lines = vec![style.dim(&header)];
    let row = |name: &str, sum: &Sum| {
        format!(
            "{:<36}{:>5} {}{:>6}{:>12}{:>11}",
            shorten(&one_line(name), 36),
            short(sum.requests),
            bar(sum.hit_rate, style),
            sum.hit_rate.map_or_else(|| "?".to_owned(), |rate| percent(Some(rate))),
            known(sum.usage.input()),
            cost(sum.cost)
        )
    };
    lines.extend(sums.iter().map(|(name, sum)| row(name, sum)));
    let total = sums.values().fold(Sum::default(), |total, sum| total.join(sum));
    lines.push(style.bold(&row("all", &total)));
    lines.extend(sum(&total).into_iter().skip(1));
    lines
}

/// A verdict in at most 14 columns.
pub fn verdict(verdict: &Verdict, style: Style) -> String {
    match verdict {
        Verdict::First => style.dim("first request"),
        Verdict::Hit => style.green("hit"),
        Verdict::Partial => style.yellow("partial"),
        Verdict::BelowMinimum => style.dim("too short"),
        Verdict::Expired => style.yellow("expired"),
        Verdict::Cut(_) => style.yellow("declared cut"),
        Verdict::Broken { .. } => style.red("broken"),
        Verdict::NotMarked => style.yellow("not marked"),
        Verdict::Concurrent => style.yellow("concurrent"),
        Verdict::NotReported => style.dim("not reported"),
        Verdict::Unexplained => style.red("unexplained"),
    }
}

/// Why a cut was made, and what it was said to cost.
pub fn cut_facts(declared: &Cut) -> (String, Option<String>) {
    (cut::reason(&declared.reason), declared.cost.as_ref().map(cut::price))
}

/// `unpriced`: how many of the tokens are not in the price, where there is one.
fn lost(tokens: u64, price: Option<Micros>, unpriced: u64) -> String {
    let price = match (price, unpriced) {
        (None, _) => String::new(),
        (Some(price), 0) => format!(" ({})", money(price)),
        (Some(price), unpriced) => format!(" ({}; {} of them without a price)", money(price), count(unpriced)),
    };
    format!("{}{price}", plural(tokens, "token"))
}

/// The same of one request: without a step of the counting, what is left of one is no loss.
pub fn lost_once(tokens: u64, step: Option<u64>, price: Option<Micros>) -> String {
    format!("{}{}", if step.is_none() { "up to " } else { "" }, lost(tokens, price, 0))
}

fn sum(sum: &Sum) -> Vec<String> {
    let mut lines = vec![format!("  {} · {}", plural(sum.requests, "request"), tokens(&sum.usage))];
    let mut facts = vec![format!("{} from cache", percent(sum.hit_rate)), cost(sum.cost)];
    if sum.cost.is_some() && sum.unpriced > 0 {
        facts.push(format!("{} without a price", count(sum.unpriced)));
    }
    if sum.coverage.known < sum.coverage.attempts {
        facts.push(format!("usage known for {} of {}", count(sum.coverage.known), count(sum.coverage.attempts)));
    }
    if sum.lost > 0 {
        let up_to = if sum.lost_at_most > 0 { "up to " } else { "" };
        facts.push(format!("{up_to}{} lost", lost(sum.lost, sum.lost_cost, sum.lost_unpriced)));
    }
    lines.push(format!("  {}", facts.join(" · ")));
    lines
}

/// What cannot be read of what was recorded.
pub fn damaged(damaged: &[String], style: Style) -> Vec<String> {
    damaged.iter().map(|what| format!("{} {}", style.yellow("!"), one_line(what))).collect()
}

/// The same requests elsewhere.
pub fn simulation(found: &Simulation, vendor: &str, recorded: &Sum, style: Style) -> Vec<String> {
    let price = if found.priced { "priced as" } else { "without a known price of" };
    let stand_in = if found.rules == vendor { String::new() } else { format!(" (for {})", one_line(vendor)) };
    let model = one_line(&found.model);
    let title = format!("By the rules of {}{stand_in}, {price} {model} (an estimate)", found.rules);
    let mut lines = vec![style.bold(&shorten(&title, WIDTH))];
    let header = format!("{:>6}{:>14}{:>14}{:>14}{:>14}{:>14}", "id", "fresh", "read", "written", "output", "cost");
    lines.push(style.dim(&header));
    for request in &found.requests {
        let usage = &request.usage;
        lines.push(format!(
            "{:>6}{:>14}{:>14}{:>14}{:>14}{:>14}",
            request.id,
            known(usage.fresh),
            known(usage.cache_read),
            count(usage.writes().unwrap_or(0)),
            known(usage.output),
            cost(request.cost)
        ));
    }
    let line = |name: &str, usage: &Usage, rate, price| {
        let head = format!("  {name:<10}{}", tokens(usage));
        [head, format!("  {:<10}{} from cache · {}", "", percent(rate), cost(price))]
    };
    lines.extend(line("there", &found.usage, found.hit_rate, found.cost));
    lines.extend(line("recorded", &recorded.usage, recorded.hit_rate, recorded.cost));
    lines
}
