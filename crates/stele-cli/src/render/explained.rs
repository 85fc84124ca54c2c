//! Why a request read of the provider's cache what it read, as lines of 80 columns.

use std::time::Duration;

use serde::Serialize;
use stele_proxy::{Bound, Excerpt, Explanation, Report, Verdict};

use super::WIDTH;
use super::inert::{one_line, shorten};
use super::money::{count, elapsed, known, plural};
use super::requests::{cut_facts, lost_once, verdict};
use super::style::Style;

/// That nothing missed, where a miss was to be explained.
#[derive(Debug, Serialize)]
pub struct NoMiss {
    /// The one to explain: none.
    request: Option<u64>,
    /// Requests that were judged.
    requests: u64,
    /// Those of them that share less with the one before than the endpoint keeps.
    below_minimum: u64,
    /// Those of them whose cache figures were not reported, of which nothing can be said.
    not_reported: u64,
}

impl NoMiss {
    pub fn of(report: &Report) -> Self {
        let lines = || report.conversations.iter().flat_map(|conversation| &conversation.requests);
        let judged = |verdict: &Verdict| lines().filter(|line| line.verdict == *verdict).count() as u64;
        Self {
            request: None,
            requests: lines().count() as u64,
            below_minimum: judged(&Verdict::BelowMinimum),
            not_reported: judged(&Verdict::NotReported),
        }
    }

    pub fn describe(&self) -> String {
        let mut found = match (self.requests, self.requests - self.below_minimum - self.not_reported) {
            (0, _) => return "no request was answered".to_owned(),
            (1, _) => "one request, which had none before it to continue".to_owned(),
            (_, 0) => "no miss".to_owned(),
            (_, read) => {
                let all = if read == 1 { "one request".to_owned() } else { format!("each of {read} requests") };
                format!("no miss: {all} continued the one before it, or began anew")
            }
        };
        if self.below_minimum > 0 {
            let short = plural(self.below_minimum, "request");
            found.push_str(&format!("\n{short} had less in common with the one before than this endpoint keeps"));
        }
        if self.not_reported > 0 {
            let hidden = plural(self.not_reported, "request");
            found.push_str(&format!(
                "\nof {hidden} the provider reported no cached tokens: nothing is known of what was read"
            ));
        }
        found
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

/// The same with what it is about.
fn whole_verdict(found: &Verdict, style: Style) -> String {
    let about = match found {
        Verdict::Cut(declared) => format!(": {}", declared.reason.name()),
        Verdict::Broken { segment } => format!(" at {}", one_line(segment)),
        _ => String::new(),
    };
    format!("{}{about}", verdict(found, style))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_read_is_said_to_have_continued() {
        let said = |requests, below_minimum, not_reported| {
            NoMiss { request: None, requests, below_minimum, not_reported }.describe()
        };
        assert_eq!(said(0, 0, 0), "no request was answered");
        assert_eq!(said(1, 0, 0), "one request, which had none before it to continue");
        assert_eq!(said(3, 0, 0), "no miss: each of 3 requests continued the one before it, or began anew");
        assert_eq!(
            said(3, 2, 0),
            "no miss: one request continued the one before it, or began anew\n\
             2 requests had less in common with the one before than this endpoint keeps"
        );
        assert!(said(2, 0, 2).starts_with("no miss\nof 2 requests the provider reported no cached tokens"));
    }
}
