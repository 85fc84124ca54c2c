//! The table of all agents, as JSON and as Markdown.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::adapters::UNTRIED;
use super::outcome::{Outcome, Uncached, VENDORS};

/// Everything that one call found.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Peers {
    /// Stele's version.
    pub version: String,
    /// The agents that ran.
    pub outcomes: Vec<Outcome>,
    /// Those that are not installed.
    pub missing: Vec<String>,
    /// Those that are there but did not do the task.
    pub failed: Vec<String>,
}

const HEAD: &str = "\
# The same task through other agents

Written by `cargo xtask peers`: twelve steps, then three more in another process, then the twelve in another folder, all
through `stele proxy` against the scripted model server. Ratios within one table count; absolute times on a shared machine
do not. How it is measured: [README.md](README.md).
";

impl Peers {
    /// What a folder has from before; nothing when it has none that can be read.
    pub fn kept(folder: &Path) -> Option<Self> {
        serde_json::from_str(&std::fs::read_to_string(folder.join("peers.json")).ok()?).ok()
    }

    /// Leaves only the agents whose name is to be kept.
    pub fn drop_others(&mut self, keep: impl Fn(&str) -> bool) {
        self.outcomes.retain(|outcome| keep(&outcome.name));
        self.missing.retain(|name| keep(name));
        // A failure is named with its wire.
        self.failed.retain(|failed| failed.split_once(" over ").is_some_and(|(name, _)| keep(name)));
    }

    /// Puts agents in an order.
    pub fn sort_by<K: Ord>(&mut self, place: impl Fn(&str) -> K) {
        self.outcomes.sort_by_key(|outcome| place(&outcome.name));
        self.missing.sort_by_key(|name| place(name));
    }

    /// Writes `peers.json` and `peers.md` into a folder.
    pub fn keep(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("peers.json"), serde_json::to_string_pretty(self)? + "\n")?;
        std::fs::write(folder.join("peers.md"), self.markdown())?;
        Ok(())
    }

    /// The table for people.
    pub fn markdown(&self) -> String {
        let mut text = HEAD.to_owned();
        text.push_str(
            "\n| agent | wire | start → first request, ms | CPU a step, ms | peak, MB | first request, bytes (tools) | requests | \
             bytes sent | prefix kept in a session | at a resume | in another folder |\n\
             |---|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for outcome in &self.outcomes {
            let _ = writeln!(
                text,
                "| {} {} | {} | {:.0} | {:.1} | {:.0} | {} ({}) | {} | {} | {:.2} | {} | {:.2} |",
                outcome.name,
                outcome.version,
                outcome.wire,
                outcome.start_ms,
                outcome.cpu_ms,
                outcome.peak_mb,
                grouped(outcome.first_bytes as u64),
                outcome.tools,
                outcome.requests,
                grouped(outcome.sent_bytes as u64),
                outcome.within,
                outcome.resume.map_or_else(|| "–".to_owned(), |share| format!("{share:.2}")),
                outcome.elsewhere,
            );
        }
        text.push_str(
            "\n## Input that is not read from the cache\n\nTokens of both prompts by each vendor's rules, those that are read \
             from the cache behind the sign, and what all of their requests cost there, where the vendor's model has a list \
             price (`stele proxy simulate`).\n\n| agent | wire |",
        );
        VENDORS.iter().for_each(|vendor| text.push_str(&format!(" {vendor} |")));
        text.push_str("\n|---|---|");
        VENDORS.iter().for_each(|_| text.push_str("---|"));
        text.push('\n');
        for outcome in &self.outcomes {
            let _ = write!(text, "| {} | {} |", outcome.name, outcome.wire);
            for vendor in &outcome.uncached {
                let cost = vendor.cost.map(|cost| format!(" ($ {:.3})", cost as f64 / 1e6)).unwrap_or_default();
                let _ = write!(text, " {} + {}{cost} |", grouped(vendor.tokens), grouped(vendor.read));
            }
            text.push('\n');
        }
        text.push_str("\n## Where they break\n\nAs `stele proxy explain` names it.\n\n");
        let mut broken = false;
        for outcome in &self.outcomes {
            for found in &outcome.breaks {
                broken = true;
                let _ = writeln!(
                    text,
                    "- {} ({}), {}: {} leaves after {} of {} bytes: {}; `{}` became `{}`",
                    outcome.name,
                    outcome.wire,
                    found.phase,
                    found.segment,
                    grouped(found.shared.0),
                    grouped(found.shared.1),
                    found.change.as_deref().unwrap_or("a change of no known kind"),
                    inline(&found.differs.0),
                    inline(&found.differs.1),
                );
            }
        }
        if !broken {
            text.push_str("Nowhere.\n");
        }
        text.push_str("\n## First in each figure\n\n");
        for (what, value) in FIGURES {
            if let Some(first) = self.outcomes.iter().min_by(|one, other| value(one).total_cmp(&value(other))) {
                let _ = writeln!(text, "- {what}: {} ({})", first.name, first.wire);
            }
        }
        self.lower(&mut text);
        let alone: BTreeSet<&str> =
            self.outcomes.iter().filter(|one| one.resume.is_none()).map(|one| one.name.as_str()).collect();
        for name in alone {
            let _ = write!(
                text,
                "\n{name} goes on with a session only for a person who works with it: its figures are those of the first prompt \
                 alone, and no first place among the uncached ones.\n"
            );
        }
        for (name, why) in UNTRIED {
            if self.outcomes.iter().all(|outcome| outcome.name != name) {
                let _ = write!(text, "\nNever run, so that its adapter is untried: {name}; {why}.\n");
            }
        }
        for (what, names) in [("Not installed", &self.missing), ("There, but did not do the task", &self.failed)] {
            if !names.is_empty() {
                let _ = write!(text, "\n{what}: {}.\n", names.join(", "));
            }
        }
        text
    }
}

impl Peers {
    /// Where another agent has less uncached input than Stele, and what that is worth: a vendor with a minimum caches
    /// nothing of short prompts, so an agent that sends much from the beginning may have less of it and pay more.
    fn lower(&self, text: &mut String) {
        for vendor in VENDORS {
            let least = |stele: bool| {
                let own = self.outcomes.iter().filter(|one| (one.name == "Stele") == stele && one.resume.is_some());
                own.filter_map(|one| Some((one, of_vendor(one, vendor)?))).min_by_key(|(_, found)| found.tokens)
            };
            let (Some((ours, stele)), Some((other, found))) = (least(true), least(false)) else { continue };
            if stele.tokens <= found.tokens {
                continue;
            }
            let _ = write!(
                text,
                "\nBy {vendor}'s rules {} has {} tokens less that are not read from the cache than Stele ({})",
                other.name,
                grouped(stele.tokens - found.tokens),
                ours.wire
            );
            let _ = match found.read.checked_sub(stele.read).filter(|more| *more > 0) {
                Some(more) => writeln!(
                    text,
                    ", and {} more that are: Stele costs less wherever a token from the cache costs more than {:.1} % of a \
                     fresh one.",
                    grouped(more),
                    (stele.tokens - found.tokens) as f64 * 100.0 / more as f64
                ),
                None => writeln!(text, "."),
            };
        }
    }
}

type Of = fn(&Outcome) -> f64;

const FIGURES: [(&str, Of); 7] = [
    ("start", |outcome| outcome.start_ms),
    ("CPU a step", |outcome| outcome.cpu_ms),
    ("memory", |outcome| outcome.peak_mb),
    ("uncached input, Anthropic's rules", |outcome| tokens(outcome, "anthropic")),
    ("uncached input, OpenAI's rules", |outcome| tokens(outcome, "openai")),
    ("uncached input, Gemini's rules", |outcome| tokens(outcome, "gemini")),
    ("uncached input, DeepSeek's rules", |outcome| tokens(outcome, "deepseek")),
];

/// Of one prompt instead of two it would be less.
fn tokens(outcome: &Outcome, vendor: &str) -> f64 {
    let whole = outcome.resume.and_then(|_| of_vendor(outcome, vendor));
    whole.map_or(f64::INFINITY, |own| own.tokens as f64)
}

fn of_vendor<'a>(outcome: &'a Outcome, vendor: &str) -> Option<&'a Uncached> {
    outcome.uncached.iter().find(|own| own.vendor == vendor)
}

/// Text on one line of a table, without what Markdown or a terminal would take for its own.
fn inline(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '`' | '|' => '\'',
            other if other.is_control() => ' ',
            other => other,
        })
        .collect()
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::super::outcome::Break;
    use super::*;

    fn outcome(name: &str, start_ms: f64, tokens: u64, read: u64) -> Outcome {
        let found = Break {
            phase: "at a resume".to_owned(),
            segment: "system".to_owned(),
            change: Some("listing".to_owned()),
            shared: (1_000, 20_000),
            differs: ("a|b`c\n".to_owned(), "\u{1b}[1m".to_owned()),
        };
        Outcome {
            name: name.to_owned(),
            version: "1.0".to_owned(),
            wire: stele_core::Wire::Gemini,
            start_ms,
            cpu_ms: 1.0,
            peak_mb: 10.0,
            first_bytes: 1_234,
            tools: 3,
            requests: 15,
            sent_bytes: 1_234_567,
            within: 1.0,
            resume: Some(0.5),
            elsewhere: 0.25,
            uncached: vec![Uncached { vendor: "anthropic".to_owned(), tokens, read, cost: Some(1_500_000) }],
            breaks: vec![found],
        }
    }

    #[test]
    fn the_table_names_who_is_first_what_breaks_and_what_is_missing() {
        let peers = Peers {
            version: "0".to_owned(),
            outcomes: vec![
                outcome("Stele", 5.0, 900, 1_000),
                outcome("Other", 50.0, 800, 3_000),
                Outcome { resume: None, ..outcome("Alone", 60.0, 10, 20) },
            ],
            missing: vec!["Third".to_owned()],
            failed: vec!["Fourth over gemini".to_owned()],
        };
        let text = peers.markdown();
        for part in [
            "| Stele 1.0 | gemini | 5 | 1.0 | 10 | 1,234 (3) | 15 | 1,234,567 | 1.00 | 0.50 | 0.25 |",
            "| Alone 1.0 | gemini | 60 | 1.0 | 10 | 1,234 (3) | 15 | 1,234,567 | 1.00 | – | 0.25 |",
            "| Other | gemini | 800 + 3,000 ($ 1.500) |",
            "- start: Stele (gemini)",
            "- uncached input, Anthropic's rules: Other (gemini)",
            "system leaves after 1,000 of 20,000 bytes: listing; `a'b'c ` became ` [1m`",
            "By anthropic's rules Other has 100 tokens less that are not read from the cache than Stele (gemini), and 2,000 \
             more that are: Stele costs less wherever a token from the cache costs more than 5.0 % of a fresh one.",
            "Alone goes on with a session only for a person who works with it",
            "Never run, so that its adapter is untried: Crush; its npm package",
            "Not installed: Third.",
            "did not do the task: Fourth over gemini.",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let folder = tempfile::tempdir().unwrap();
        peers.keep(folder.path()).unwrap();
        let mut kept = Peers::kept(folder.path()).unwrap();
        assert_eq!(kept.markdown(), text);
        kept.drop_others(|name| name == "Other");
        assert_eq!((kept.outcomes.len(), kept.missing.len(), kept.failed.len()), (1, 0, 0));
    }
}
