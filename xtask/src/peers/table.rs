//! The table of all agents, as JSON and as Markdown.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::adapters::UNTRIED;
use super::outcome::{Outcome, VENDORS};

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
                "| {} {} | {} | {:.0} | {:.1} | {:.0} | {} ({}) | {} | {} | {:.2} | {:.2} | {:.2} |",
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
                outcome.resume,
                outcome.elsewhere,
            );
        }
        text.push_str(
            "\n## Input that is not read from the cache\n\nTokens of both prompts by each vendor's rules, and what all of \
             their requests cost there (`stele proxy simulate`).\n\n| agent | wire |",
        );
        VENDORS.iter().for_each(|vendor| text.push_str(&format!(" {vendor} |")));
        text.push_str("\n|---|---|");
        VENDORS.iter().for_each(|_| text.push_str("---|"));
        text.push('\n');
        for outcome in &self.outcomes {
            let _ = write!(text, "| {} | {} |", outcome.name, outcome.wire);
            for vendor in &outcome.uncached {
                let cost = vendor.cost.map(|cost| format!(" ($ {:.3})", cost as f64 / 1e6)).unwrap_or_default();
                let _ = write!(text, " {}{cost} |", grouped(vendor.tokens));
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
        let untried: Vec<&str> =
            UNTRIED.into_iter().filter(|name| self.outcomes.iter().all(|outcome| outcome.name != *name)).collect();
        if !untried.is_empty() {
            let _ = write!(text, "\nNever run, so that their adapters are untried: {}.\n", untried.join(", "));
        }
        for (what, names) in [("Not installed", &self.missing), ("There, but did not do the task", &self.failed)] {
            if !names.is_empty() {
                let _ = write!(text, "\n{what}: {}.\n", names.join(", "));
            }
        }
        text
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

fn tokens(outcome: &Outcome, vendor: &str) -> f64 {
    outcome.uncached.iter().find(|own| own.vendor == vendor).map_or(f64::INFINITY, |own| own.tokens as f64)
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
    use super::super::outcome::{Break, Uncached};
    use super::*;

    fn outcome(name: &str, start_ms: f64, tokens: u64) -> Outcome {
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
            resume: 0.5,
            elsewhere: 0.25,
            uncached: vec![Uncached { vendor: "anthropic".to_owned(), tokens, cost: Some(1_500_000) }],
            breaks: vec![found],
        }
    }

    #[test]
    fn the_table_names_who_is_first_what_breaks_and_what_is_missing() {
        let peers = Peers {
            version: "0".to_owned(),
            outcomes: vec![outcome("One", 5.0, 900), outcome("Other", 50.0, 800)],
            missing: vec!["Third".to_owned()],
            failed: vec!["Fourth over gemini".to_owned()],
        };
        let text = peers.markdown();
        for part in [
            "| One 1.0 | gemini | 5 | 1.0 | 10 | 1,234 (3) | 15 | 1,234,567 | 1.00 | 0.50 | 0.25 |",
            "| Other | gemini | 800 ($ 1.500) |",
            "- start: One (gemini)",
            "- uncached input, Anthropic's rules: Other (gemini)",
            "system leaves after 1,000 of 20,000 bytes: listing; `a'b'c ` became ` [1m`",
            "Never run, so that their adapters are untried: Kimi Code, Crush, DeepSeek Harness.",
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
