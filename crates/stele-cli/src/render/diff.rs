//! Unified diffs of edits, coloured and bounded.

use super::inert::{inert, shorten};
use super::style::Style;

/// Lines of a diff that are shown while an agent works; the rest is counted.
pub const LINES: usize = 40;

/// Columns of a line that are shown.
const COLUMNS: usize = 200;

/// The lines of a unified diff, without its header of file names, each at most so wide.
pub fn lines(diff: &str, style: Style, limit: usize) -> Vec<String> {
    let inert = inert(diff);
    let body: Vec<&str> =
        inert.lines().skip_while(|line| line.starts_with("--- ") || line.starts_with("+++ ")).collect();
    let mut shown: Vec<String> = body
        .iter()
        .take(limit)
        .map(|line| {
            let line = shorten(line, COLUMNS);
            match line.chars().next() {
                Some('+') => style.green(&line),
                Some('-') => style.red(&line),
                Some('@') => style.cyan(&line),
                _ => line,
            }
        })
        .collect();
    if body.len() > limit {
        shown.push(style.dim(&format!("… {} more lines", body.len() - limit)));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_removed_lines_are_told_apart_and_the_rest_is_counted() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-old\u{1b}[2J\n+new\n same\n";
        assert_eq!(lines(diff, Style::Plain, 9), ["@@ -1,2 +1,2 @@", "-old", "+new", " same"]);
        let coloured = lines(diff, Style::Coloured, 2);
        assert_eq!(coloured[1], "\u{1b}[31m-old\u{1b}[0m");
        assert!(coloured[2].contains("2 more lines"));
    }

    #[test]
    fn a_removed_line_that_looks_like_a_header_stays() {
        assert_eq!(lines("--- a\n+++ b\n@@ -1 +0,0 @@\n--- x\n", Style::Plain, 9)[1], "--- x");
    }
}
