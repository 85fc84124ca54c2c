//! The known name that a slip of the pen was meant as.

/// The candidate with the smallest edit distance; of several the one of the same length.
#[must_use]
pub fn closest(given: &str, candidates: impl Iterator<Item = String>) -> Option<String> {
    candidates.min_by_key(|candidate| (distance(given, candidate), given.len().abs_diff(candidate.len())))
}

/// The candidates with the smallest edit distances, so many of them, the nearest first.
#[must_use]
pub fn several(given: &str, candidates: impl Iterator<Item = String>, most: usize) -> Vec<String> {
    let mut candidates: Vec<String> = candidates.collect();
    candidates.sort_by_key(|candidate| (distance(given, candidate), given.len().abs_diff(candidate.len())));
    candidates.truncate(most);
    candidates
}

/// Characters of a name that are compared, from the front: names come from outside and may have any length.
const COMPARED: usize = 64;

/// The edit distance: insertions, deletions, replacements and swaps of neighbours between the beginnings of two names.
#[must_use]
pub fn distance(one: &str, other: &str) -> usize {
    let beginning = |name: &str| name.chars().take(COMPARED).collect::<Vec<char>>();
    let (one, other) = (beginning(one), beginning(other));
    let mut rows = vec![(0..=other.len()).collect::<Vec<usize>>()];
    for (index, character) in one.iter().enumerate() {
        let above = &rows[index];
        let mut row = vec![index + 1];
        for (column, candidate) in other.iter().enumerate() {
            let mut best =
                (above[column] + usize::from(character != candidate)).min(above[column + 1] + 1).min(row[column] + 1);
            if index > 0 && column > 0 && one[index - 1] == *candidate && other[column - 1] == *character {
                best = best.min(rows[index - 1][column - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (one, other, expect) in
            [("main.rs", "mian.rs", 1), ("", "abc", 3), ("read", "read", 0), ("élan", "elan", 1), ("abc", "cab", 2)]
        {
            assert_eq!((distance(one, other), distance(other, one)), (expect, expect), "{one} {other}");
        }
        assert_eq!(distance(&"a".repeat(10_000_000), "read"), 63, "a name of any length costs little");
    }
}
