//! Figures, their bars, and the files they are written to.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

/// One measured figure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// Group, for `--only`.
    pub group: String,
    /// What it is.
    pub what: String,
    /// The median of all runs, or the one value there is.
    pub value: f64,
    /// The least and the greatest value.
    pub spread: (f64, f64),
    /// The number of runs.
    pub runs: usize,
    /// Its unit.
    pub unit: String,
    /// What it has to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bar: Option<Bar>,
    /// How it was measured.
    pub how: String,
    /// The same of the binary that it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<f64>,
}

/// What a figure has to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bar {
    /// At most this.
    Most(f64),
    /// At least this.
    Least(f64),
}

impl Figure {
    /// A figure of several runs.
    pub fn of(group: &str, what: impl Into<String>, unit: &str, values: &[f64], how: &str) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let value = median(&sorted);
        let spread = (sorted.first().copied().unwrap_or(value), sorted.last().copied().unwrap_or(value));
        let (group, unit, how) = (group.to_owned(), unit.to_owned(), how.to_owned());
        Self { group, what: what.into(), value, spread, runs: values.len(), unit, bar: None, how, other: None }
    }

    /// With a bar.
    #[must_use]
    pub fn bar(mut self, bar: Bar) -> Self {
        self.bar = Some(bar);
        self
    }

    /// Whether it is as it has to be; nothing when nothing is asked of it.
    pub fn holds(&self) -> Option<bool> {
        self.bar.map(|bar| match bar {
            Bar::Most(most) => self.value <= most,
            Bar::Least(least) => self.value >= least,
        })
    }

    /// A row of the table.
    pub fn row(&self) -> String {
        let bar = match self.bar {
            None => "–".to_owned(),
            Some(Bar::Most(most)) => format!("≤ {}", number(most)),
            Some(Bar::Least(least)) => format!("≥ {}", number(least)),
        };
        let mark = match self.holds() {
            Some(false) => " **missed**",
            _ => "",
        };
        let mut value = number(self.value);
        if self.runs > 1 {
            let _ = write!(value, " ({}–{}, {} runs)", number(self.spread.0), number(self.spread.1), self.runs);
        }
        let other = self.other.map(|other| format!(" · other: {}", number(other))).unwrap_or_default();
        format!("| {} | {value} {}{other} | {bar}{mark} | {} |", self.what, self.unit, self.how)
    }
}

/// The middle of sorted values.
pub fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.get(middle) {
        Some(high) if sorted.len().is_multiple_of(2) => {
            let low = middle.checked_sub(1).and_then(|low| sorted.get(low)).unwrap_or(high);
            f64::midpoint(*low, *high)
        }
        Some(middle) => *middle,
        None => f64::NAN,
    }
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 || value.abs() >= 1_000.0 {
        let digits = format!("{:.0}", value.abs());
        let mut grouped = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        if value < 0.0 { format!("-{grouped}") } else { grouped }
    } else if value.abs() >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// Everything that one call of the benchmark found.
#[derive(Debug, Serialize, Deserialize)]
pub struct Results {
    /// The version of the program.
    pub version: String,
    /// The machine, as far as it matters.
    pub machine: String,
    /// The figures.
    pub figures: Vec<Figure>,
}

impl Results {
    /// What a folder has from before; nothing when it has none that can be read.
    pub fn kept(folder: &Path) -> Option<Self> {
        serde_json::from_str(&std::fs::read_to_string(folder.join("results.json")).ok()?).ok()
    }

    /// How many figures of these groups are not as they have to be.
    pub fn missed(&self, of: impl Fn(&str) -> bool) -> usize {
        let of_these = self.figures.iter().filter(|figure| of(&figure.group));
        of_these.filter(|figure| figure.holds() == Some(false)).count()
    }

    /// Writes `results.json` and `results.md` into a folder.
    pub fn keep(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("results.json"), serde_json::to_string_pretty(self)? + "\n")?;
        let mut table = format!(
            "# Results\n\nWritten by `cargo xtask bench`. Medians with the least and the greatest value. Version {}, {}.\n\n\
             | what | figure | bar | how measured |\n|---|---|---|---|\n",
            self.version, self.machine
        );
        for figure in &self.figures {
            table.push_str(&figure.row());
            table.push('\n');
        }
        std::fs::write(folder.join("results.md"), table)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_stands_in_the_middle() {
        assert_eq!(median(&[1.0, 2.0, 9.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), 3.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn only_the_groups_that_ran_miss_their_bars() {
        let of = |group, value| Figure::of(group, "x", "ms", &[value], "h").bar(Bar::Most(1.0));
        let figures = vec![of("one", 2.0), of("one", 0.5), of("other", 3.0)];
        let results = Results { version: String::new(), machine: String::new(), figures };
        assert_eq!(results.missed(|group| group == "one"), 1);
        assert_eq!(results.missed(|group| group == "third"), 0);
    }

    #[test]
    fn a_missed_bar_is_marked() {
        let figure = Figure::of("g", "size", "B", &[10.0, 1234567.0, 20.0], "by counting").bar(Bar::Most(15.0));
        assert_eq!(figure.row(), "| size | 20 (10–1,234,567, 3 runs) B | ≤ 15 **missed** | by counting |");
        assert_eq!(Figure::of("g", "x", "ms", &[1.5], "h").bar(Bar::Least(1.0)).holds(), Some(true));
    }
}
