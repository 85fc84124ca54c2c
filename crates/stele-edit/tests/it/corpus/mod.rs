//! The corpus of `bench/edits`: its generator, its runner, its score.

pub mod case;
pub mod forms;
pub mod generate;
pub mod levels;
pub mod program;
pub mod slips;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use case::{Case, Score};

/// Right, refused and wrong by category, and what went wrong.
pub fn table(cases: &[Case]) -> (String, [usize; 3]) {
    let mut rows: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut failures = String::new();
    for (number, case) in cases.iter().enumerate() {
        let outcome = case.outcome();
        let score = case.score(&outcome);
        rows.entry(&case.category).or_default()[score as usize] += 1;
        if score != Score::Right {
            let _ =
                writeln!(failures, "line {} ({}): {score:?}, {}", number + 1, case.category, case.described(&outcome));
        }
    }
    let mut text = format!("{:<20} {:>6} {:>8} {:>6}\n", "category", "right", "refused", "wrong");
    let mut sum = [0; 3];
    for (category, row) in &rows {
        let _ = writeln!(text, "{category:<20} {:>6} {:>8} {:>6}", row[0], row[1], row[2]);
        (0..3).for_each(|at| sum[at] += row[at]);
    }
    let _ = writeln!(text, "{:<20} {:>6} {:>8} {:>6}", "all", sum[0], sum[1], sum[2]);
    (text + &failures, sum)
}

/// The corpus as it is stored.
pub fn read(lines: &str) -> Option<Vec<Case>> {
    lines.lines().map(|line| Case::from_json(&serde_json::from_str(line).ok()?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORED: &str = include_str!("../../../../../bench/edits/corpus.jsonl");

    #[test]
    fn the_stored_corpus_is_what_the_generator_makes() {
        assert!(
            STORED == generate::lines(&generate::cases(generate::SEED)),
            "bench/edits/corpus.jsonl is stale: cargo run -p stele-edit --example corpus > bench/edits/corpus.jsonl"
        );
    }

    #[test]
    fn every_case_comes_out_right() {
        let cases = read(STORED).unwrap();
        let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
        cases.iter().for_each(|case| *sizes.entry(&case.category).or_default() += 1);
        assert!(cases.len() >= 300 && sizes.values().all(|size| *size >= 15), "{sizes:?}");
        let (table, [_, refused, wrong]) = table(&cases);
        assert_eq!((refused, wrong), (0, 0), "\n{table}");
    }

    #[test]
    fn other_seeds_come_out_right_too() {
        for seed in 1..=3 {
            let (table, [_, refused, wrong]) = table(&generate::cases(seed));
            assert_eq!((refused, wrong), (0, 0), "seed {seed}\n{table}");
        }
    }
}
