//! Times a thousand exact edits in a file of ten megabytes: `cargo run --release -p stele-edit --example large`.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a measurement is no part of the engine"
)]

use std::fmt::Write as _;
use std::time::Instant;

use stele_edit::{Edit, apply, unified_diff};

fn main() {
    let mut file = String::new();
    let mut line = 0_u32;
    while file.len() < 10 * 1024 * 1024 {
        let _ = writeln!(file, "        let value_{line} = compute(&context, {});", line.wrapping_mul(2_654_435_761));
        line += 1;
    }
    for (name, size, slip) in
        [("exact, one line", 1, false), ("exact, three lines", 3, false), ("trailing space", 3, true)]
    {
        let lines: Vec<&str> = file.lines().collect();
        let edits: Vec<Edit> = (0..1000)
            .map(|index| {
                let from = index * lines.len() / 1000;
                let old = lines[from..from + size].join(if slip { " \n" } else { "\n" });
                let new = old.replace("compute", "recompute");
                Edit { old, new, ..Edit::default() }
            })
            .collect();
        let mut times: Vec<f64> = (0..5)
            .map(|_| {
                let start = Instant::now();
                let applied = apply(file.as_bytes(), &edits).expect("every edit has its place");
                let time = start.elapsed().as_secs_f64() * 1000.0;
                assert_eq!(applied.places.len(), edits.len());
                time
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{name}: {:.1} ms (median of 5), {} bytes, {} edits", times[2], file.len(), edits.len());
    }
    let after = file.replace("value_7", "value_x7");
    let start = Instant::now();
    let diff = unified_diff("large", file.as_bytes(), after.as_bytes());
    println!("difference: {:.1} ms, {} lines added", start.elapsed().as_secs_f64() * 1000.0, diff.added);
}
