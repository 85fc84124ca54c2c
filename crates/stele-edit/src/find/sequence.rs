//! Sequences of lines in a file, compared by what one level makes of each line.

use std::collections::BTreeMap;

use super::Level;
use super::view::key;
use crate::text::Source;

/// The lines of a file at one level, hashed. Equal hashes are compared again before anything is made of them.
pub(crate) struct Keys<'a> {
    source: &'a Source<'a>,
    level: Level,
    /// Which lines of the file these are: all of them, or those that are not blank.
    lines: Vec<u32>,
    hashes: Vec<u64>,
    places: BTreeMap<u64, Vec<u32>>,
}

impl<'a> Keys<'a> {
    /// Hashes a file's lines; `sought` are the lines that will be asked for. With `skip_blank`, blank lines are left out.
    pub(crate) fn new<'s>(
        source: &'a Source<'a>,
        level: Level,
        skip_blank: bool,
        sought: impl Iterator<Item = &'s String>,
    ) -> Self {
        let mut places: BTreeMap<u64, Vec<u32>> =
            sought.map(|line| (hash(&key(line.as_bytes(), level)), Vec::new())).collect();
        let mut keys = Self { source, level, lines: Vec::new(), hashes: Vec::new(), places: BTreeMap::new() };
        for line in 0..source.lines.len() {
            let key = key(source.content(line), level);
            if skip_blank && key.is_empty() {
                continue;
            }
            let hash = hash(&key);
            if let Some(at) = places.get_mut(&hash) {
                at.push(u32::try_from(keys.lines.len()).unwrap_or(u32::MAX));
            }
            keys.lines.push(u32::try_from(line).unwrap_or(u32::MAX));
            keys.hashes.push(hash);
        }
        keys.places = places;
        keys
    }

    /// The line of the file at a position.
    pub(crate) fn line(&self, position: usize) -> usize {
        self.lines[position] as usize
    }

    /// Calls `hit` with every position where the lines stand one after the other, until it returns false.
    ///
    /// Work is linear in the file and the lines, whatever repeats.
    pub(crate) fn find(&self, sought: &[String], hit: &mut dyn FnMut(usize) -> bool) {
        let needle: Vec<u64> = sought.iter().map(|line| hash(&key(line.as_bytes(), self.level))).collect();
        if needle.is_empty() || needle.len() > self.hashes.len() {
            return;
        }
        let rarest = (0..needle.len()).min_by_key(|index| self.places.get(&needle[*index]).map_or(0, Vec::len));
        let Some((rarest, places)) = rarest.and_then(|index| Some((index, self.places.get(&needle[index])?))) else {
            return;
        };
        if places.len().saturating_mul(needle.len()) <= self.hashes.len() + needle.len() {
            for place in places {
                let Some(start) = (*place as usize).checked_sub(rarest) else { continue };
                if self.hashes.get(start..start + needle.len()) == Some(&needle[..])
                    && self.same(start, sought)
                    && !hit(start)
                {
                    return;
                }
            }
            return;
        }
        let failure = failure(&needle);
        let mut matched = 0;
        for (at, hash) in self.hashes.iter().enumerate() {
            while matched > 0 && needle[matched] != *hash {
                matched = failure[matched - 1];
            }
            matched += usize::from(needle[matched] == *hash);
            if matched == needle.len() {
                let start = at + 1 - matched;
                if self.same(start, sought) && !hit(start) {
                    return;
                }
                matched = failure[matched - 1];
            }
        }
    }

    fn same(&self, start: usize, sought: &[String]) -> bool {
        sought.iter().enumerate().all(|(index, line)| {
            key(self.source.content(self.line(start + index)), self.level) == key(line.as_bytes(), self.level)
        })
    }
}

/// For each prefix of the needle, the length of its longest proper border (Knuth, Morris and Pratt).
fn failure(needle: &[u64]) -> Vec<usize> {
    let mut failure = vec![0; needle.len()];
    let mut matched = 0;
    for at in 1..needle.len() {
        while matched > 0 && needle[at] != needle[matched] {
            matched = failure[matched - 1];
        }
        matched += usize::from(needle[at] == needle[matched]);
        failure[at] = matched;
    }
    failure
}

/// FNV-1a over 64 bits (draft-eastlake-fnv): short lines, no secret, and hits are compared again.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(file: &str, sought: &[&str], level: Level, skip_blank: bool) -> Vec<usize> {
        let source = Source::new(file.as_bytes()).unwrap();
        let sought: Vec<String> = sought.iter().map(|line| (*line).to_owned()).collect();
        let keys = Keys::new(&source, level, skip_blank, sought.iter());
        let mut found = Vec::new();
        keys.find(&sought, &mut |at| {
            found.push(keys.line(at));
            true
        });
        found
    }

    #[test]
    fn whole_lines_only() {
        assert_eq!(find("a = 10\na = 1\nb\n", &["a = 1"], Level::Exact, false), [1]);
        assert_eq!(find("x\n a \nb\nx\na\nb", &["a", "b"], Level::Indentation, false), [1, 4]);
        assert_eq!(find("a\n\n\nb\na\nb\n", &["a", "b"], Level::Indentation, true), [0, 4]);
        assert_eq!(find("", &["a"], Level::Exact, false), [0; 0]);
    }

    #[test]
    fn repetition_is_found_in_linear_time() {
        let file = "x\n".repeat(20_000);
        let sought = vec!["x"; 10_000];
        assert_eq!(find(&file, &sought[..3], Level::Exact, false).len(), 19_998);
        let mut first = Vec::new();
        let source = Source::new(file.as_bytes()).unwrap();
        let sought: Vec<String> = sought.iter().map(|line| (*line).to_owned()).chain(["y".to_owned()]).collect();
        Keys::new(&source, Level::Exact, false, sought.iter()).find(&sought, &mut |at| {
            first.push(at);
            true
        });
        assert!(first.is_empty());
    }
}
