//! What the proxy recorded, as lines of 80 columns.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use stele_core::{Micros, Usage, Wire};
use stele_proxy::{
    Bound, Conversation, Cut, Ending, Excerpt, Explanation, Forgotten, Line, Notice, Report, Simulation, Sum, Verdict,
};

use super::WIDTH;
use super::inert::{one_line, shorten};
use super::money::{cost, count, elapsed, known, money, percent, plural, short, tokens};
use super::style::Style;
use crate::cut;

/// What is told while the proxy runs.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Served<'a> {
    Listening {
        base_url: String,
        to: String,
        folder: &'a Path,
        variables: BTreeMap<&'a str, &'a str>,
        /// For agents that read a file.
        configuration: Vec<&'a str>,
    },
    Recorded {
        id: u64,
        wire: Wire,
        model: &'a str,
        status: Option<u16>,
        ending: Ending,
        prompt_bytes: u64,
        usage: Option<Usage>,
    },
    NotRecorded {
        why: &'a str,
    },
    Refused {
        code: &'a str,
        message: &'a str,
    },
    /// Lines that are not shown.
    Hidden {
        lines: u64,
    },
    Result {
        recorded: u64,
        exit: u8,
        /// For agents that read a file, when nothing was recorded.
        configuration: Vec<&'a str>,
    },
}

impl<'a> From<&'a Notice> for Served<'a> {
    fn from(notice: &'a Notice) -> Self {
        match notice {
            Notice::Recorded { id, wire, model, status, ending, prompt_bytes, usage } => Self::Recorded {
                id: *id,
                wire: *wire,
                model,
                status: *status,
                ending: *ending,
                prompt_bytes: *prompt_bytes,
                usage: *usage,
            },
            Notice::NotRecorded { why } => Self::NotRecorded { why },
            Notice::Refused { code, message } => Self::Refused { code, message },
        }
    }
}

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

/// What happened, for a person.
pub fn served(served: &Served<'_>, style: Style) -> Vec<String> {
    let name = style.dim("proxy");
    match served {
        Served::Listening { base_url, to, folder, variables, configuration } => {
            let mut lines = vec![format!("{name} {} → {}", style.bold(base_url), one_line(to))];
            lines.push(style.dim(&format!("  recorded in {}", one_line(&folder.display().to_string()))));
            lines.extend(variables.iter().map(|(name, value)| format!("  {name}={value}")));
            lines.extend(configuration.iter().map(|line| format!("  {line}")));
            lines
        }
        Served::Recorded { id, model, status, ending, prompt_bytes, usage, .. } => {
            let state = match (status, ending) {
                (Some(status @ 200..300), Ending::Whole) => style.green(&status.to_string()),
                (_, Ending::ClientLeft) => style.yellow("client left"),
                (_, Ending::ServerBroke) => style.red("broke off"),
                (_, Ending::Unreachable) | (None, Ending::Whole) => style.red("no answer"),
                (Some(status), Ending::Whole) => style.red(&status.to_string()),
            };
            let usage = usage.as_ref().map_or_else(|| "not reported".to_owned(), tokens);
            let model = shorten(&one_line(model), 20);
            vec![format!("{name} #{id} {model} {state} {}B {usage}", short(*prompt_bytes))]
        }
        Served::NotRecorded { why } => vec![format!("{name} {} {}", style.yellow("not recorded:"), one_line(why))],
        Served::Refused { code, message } => vec![format!("{name} {} {}", style.red(code), one_line(message))],
        Served::Hidden { lines } => vec![style.dim(&format!("proxy … {} before", plural(*lines, "line")))],
        Served::Result { recorded: 0, configuration, .. } => {
            let mut lines = vec![format!("{name} nothing was recorded")];
            if !configuration.is_empty() {
                lines.push("  the command may take its base URL from a file only:".to_owned());
                lines.extend(configuration.iter().map(|line| format!("  {line}")));
            }
            lines
        }
        Served::Result { recorded, .. } => {
            vec![format!("{name} {} recorded; see: stele proxy report", plural(*recorded, "request"))]
        }
    }
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
    lines.extend(damaged.iter().map(|what| format!("{} {}", style.yellow("!"), one_line(what))));
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
fn verdict(verdict: &Verdict, style: Style) -> String {
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
fn cut_facts(declared: &Cut) -> (String, Option<String>) {
    (cut::reason(&declared.reason), declared.cost.as_ref().map(cut::price))
}

/// The same with what it is about.
fn whole_verdict(found: &Verdict, style: Style) -> String {
    let about = match found {
        Verdict::Cut(declared) => format!(": {}", declared.reason.name()),
        Verdict::Broken { segment } => format!(" at {}", one_line(segment)),
        _ => String::new(),
    };
    format!("{}{about}", verdict(found, style))
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
fn lost_once(tokens: u64, step: Option<u64>, price: Option<Micros>) -> String {
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

/// That nothing missed, where a miss was to be explained.
#[derive(Debug, Serialize)]
pub struct NoMiss {
    /// The one to explain: none.
    request: Option<u64>,
    /// Requests that were judged.
    requests: u64,
    /// Those of them whose cache figures were not reported, of which nothing can be said.
    not_reported: u64,
}

impl NoMiss {
    pub fn of(report: &Report) -> Self {
        let lines = report.conversations.iter().flat_map(|conversation| &conversation.requests);
        let (mut requests, mut not_reported) = (0, 0);
        for line in lines {
            requests += 1;
            not_reported += u64::from(line.verdict == Verdict::NotReported);
        }
        Self { request: None, requests, not_reported }
    }

    pub fn describe(&self) -> String {
        let found = match self.requests {
            0 => return "no request was answered".to_owned(),
            1 => "one request, which had none before it to continue".to_owned(),
            requests => {
                format!("no miss: each of {} continued the one before it, or began anew", plural(requests, "request"))
            }
        };
        match self.not_reported {
            0 => found,
            hidden => format!(
                "{found}\nof {} the provider reported no cached tokens: nothing is known of what they read",
                plural(hidden, "request")
            ),
        }
    }
}

/// Why a request read what it read.
pub fn explanation(found: &Explanation, style: Style) -> Vec<String> {
    let label = |name: &str| style.dim(&format!("  {name:<10}"));
    let title = style.bold(&format!("request {}", found.request));
    let mut lines = vec![format!("{title}  {}", whole_verdict(&found.verdict, style))];
    if let Verdict::Cut(declared) = &found.verdict {
        let (why, price) = cut_facts(declared);
        lines.push(format!("{}{}", label("reason"), shorten(&why, WIDTH - 12)));
        lines.extend(price.map(|price| format!("{}{}", label("estimated"), shorten(&price, WIDTH - 12))));
    }
    match found.earlier {
        Some(earlier) => {
            let gap = found.gap_ms.map(|gap| format!(", {} earlier", elapsed(Duration::from_millis(gap))));
            let other = if found.same_conversation { "" } else { ", of another conversation" };
            lines.push(format!("{}request {earlier}{}{other}", label("against"), gap.unwrap_or_default()));
        }
        None => lines.push(format!("{}no earlier request that begins alike", label("against"))),
    }
    lines.push(format!("{}{} bytes", label("shared"), count(found.shared_bytes)));
    let (predicted, reported) = (known(found.predicted), known(found.reported));
    lines.push(format!("{}{reported} tokens of {predicted} predicted", label("read")));
    lines.extend(found.bound.map(|bound| format!("{}{}", label(""), bound_text(bound))));
    if found.lost > 0 {
        lines.push(format!("{}{}", label("lost"), lost_once(found.lost, found.step, found.lost_cost)));
    }
    if found.verdict == Verdict::Partial && found.change.is_none() && found.parting.is_none() {
        lines.push(format!("{}no byte of the shared prefix changed: the server dropped some of it", label("cause")));
    }
    if let Some(lifetime) = found.lifetime_ms {
        lines.push(format!(
            "{}an entry lives {} at least",
            label("lifetime"),
            elapsed(Duration::from_millis(lifetime))
        ));
    }
    if let Some(change) = &found.change {
        lines.push(format!("{}{}", label("change"), one_line(&change.to_string())));
    }
    if !found.also.is_empty() {
        let also = format!("{} differ too: it takes both to be mended", one_line(&found.also.join(", ")));
        lines.push(format!("{}{}", label("also"), shorten(&also, WIDTH - 12)));
    }
    if let Some(reason) = &found.miss_reason {
        lines.push(format!("{}{}", label("endpoint"), shorten(&one_line(reason), WIDTH - 12)));
    }
    if let Some(parting) = &found.parting {
        let place =
            format!("{}, item {}, byte {}", parting.zone.name(), count(parting.index as u64), count(parting.offset));
        let segment = shorten(&one_line(&parting.segment), WIDTH - 16 - place.len());
        lines.push(format!("{}{segment} ({place})", label("parts at")));
        lines.push(excerpt(&parting.before, |text| style.red(text), '-'));
        lines.push(excerpt(&parting.after, |text| style.green(text), '+'));
    }
    lines
}

/// Why less is predicted than two requests share.
fn bound_text(bound: Bound) -> &'static str {
    match bound {
        Bound::Concurrent => "not more: the answer to the request before had not begun",
        Bound::Expired => "not more: what was kept had outlived its lifetime",
        Bound::BelowMinimum => "not more: what they share is shorter than this endpoint caches",
        Bound::NotMarked => "not more: only what ends at a mark is kept, and none stands there",
        Bound::NoEntry => "not more: what this endpoint keeps ends elsewhere",
    }
}

/// An excerpt in one line: the end of what is shared, the beginning of what is not.
fn excerpt(found: &Excerpt, paint: impl Fn(&str) -> String, sign: char) -> String {
    let shared: Vec<char> = one_line(&found.shared).chars().collect();
    let shared: String = shared[shared.len().saturating_sub(24)..].iter().collect();
    let differs = shorten(&one_line(&found.differs), WIDTH - 4 - shared.chars().count());
    format!("  {} {shared}{}", paint(&sign.to_string()), paint(&differs))
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
