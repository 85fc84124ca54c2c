//! Many byte strings in one pass.

use std::collections::BTreeMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use memchr::memmem;

/// Bytes of a needle that the automaton knows; the rest is compared where they are found.
const PREFIX: usize = 32;
/// Up to this many needles are searched one by one.
const FEW: usize = 3;
/// Bytes that may be compared after the automaton; beyond, needles are searched one by one in linear time.
const COMPARED: usize = 1 << 30;

/// Where one needle is: every place up to a cap, overlapping ones included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hits {
    pub at: Vec<usize>,
    /// True when there are more than the cap.
    pub more: bool,
}

/// Finds needles (none empty) in a haystack. `caps` bounds the places of each.
pub(crate) fn scan(haystack: &[u8], needles: &[&[u8]], caps: &[usize]) -> Vec<Hits> {
    let mut same: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
    for (index, needle) in needles.iter().enumerate() {
        same.entry(needle).or_default().push(index);
    }
    let mut distinct: Vec<(&[u8], usize, Hits)> = same
        .iter()
        .map(|(needle, of)| (*needle, of.iter().map(|index| caps[*index]).max().unwrap_or(1), Hits::default()))
        .collect();
    if distinct.len() <= FEW || !together(haystack, &mut distinct) {
        for (needle, cap, hits) in &mut distinct {
            *hits = alone(haystack, needle, *cap);
        }
    }
    let mut found = vec![Hits::default(); needles.len()];
    for ((_, of), (_, _, hits)) in same.iter().zip(distinct) {
        for index in of {
            found[*index] = hits.clone();
        }
    }
    found
}

/// One automaton for all; false when that would cost more than one by one.
fn together(haystack: &[u8], needles: &mut [(&[u8], usize, Hits)]) -> bool {
    let mut prefixes: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
    for (index, (needle, ..)) in needles.iter().enumerate() {
        prefixes.entry(&needle[..needle.len().min(PREFIX)]).or_default().push(index);
    }
    let built = AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(prefixes.keys());
    let Ok(automaton) = built else { return false };
    let members: Vec<&Vec<usize>> = prefixes.values().collect();
    let mut compared = 0_usize;
    for hit in automaton.find_overlapping_iter(haystack) {
        for index in members[hit.pattern().as_usize()] {
            let (needle, cap, hits) = &mut needles[*index];
            if hits.more {
                compared += 1;
                continue;
            }
            compared += needle.len();
            if haystack[hit.start()..].starts_with(needle) {
                if hits.at.len() == *cap {
                    hits.more = true;
                } else {
                    hits.at.push(hit.start());
                }
            }
        }
        if compared > COMPARED {
            return false;
        }
    }
    true
}

fn alone(haystack: &[u8], needle: &[u8], cap: usize) -> Hits {
    let finder = memmem::Finder::new(needle);
    let mut hits = Hits::default();
    let (mut at, mut compared) = (0, 0_usize);
    while let Some(next) = finder.find(&haystack[at..]) {
        compared += needle.len();
        if hits.at.len() == cap || compared > COMPARED {
            hits.more = true;
            break;
        }
        hits.at.push(at + next);
        at += next + 1;
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn together_and_alone_agree() {
        let text = b"0, 0, 0 and abcabcabcabcabcabcabcabcabcabcabcabcabc, aaaa".as_slice();
        let needles: Vec<&[u8]> =
            vec![b"0, 0", b"a", b"aa", b"abcabcabcabcabcabcabcabcabcabcabcabcabc", b"nothing", b"aa", b"c"];
        let caps = vec![100; needles.len()];
        let found = scan(text, &needles, &caps);
        for (needle, hits) in needles.iter().zip(&found) {
            assert_eq!(hits, &alone(text, needle, 100));
        }
        assert_eq!(found[0].at, [0, 3]);
        assert_eq!(found[2].at.len(), 3);
        assert!(scan(text, &needles, &vec![2; needles.len()])[2].more);
    }

    #[test]
    fn repetition_stays_bounded() {
        let text = vec![b'a'; 1 << 16];
        let needles: Vec<Vec<u8>> = (1..200).map(|length| vec![b'a'; length * 50]).collect();
        let needles: Vec<&[u8]> = needles.iter().map(Vec::as_slice).collect();
        assert!(scan(&text, &needles, &vec![2; needles.len()]).iter().all(|hits| hits.more));
    }
}
