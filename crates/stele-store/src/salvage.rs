//! Taking a damaged line apart: what is whole in it, and what is not.

use std::ops::Range;

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece<T> {
    /// A whole value.
    Whole(T),
    /// Bytes that are part of no value.
    Damaged(Range<usize>),
}

/// Splits a line at the values in it. `read` reads one value at the start of what it is given and says
/// how many bytes it took.
///
/// A line that was written in one piece gives one value. A cut value followed by its retry on the same
/// line, as a writer without transactions leaves them, gives the damaged part and the retry. Only
/// where `{"` stands can a value start; inside a JSON string that quote would be escaped.
pub(crate) fn split<T>(line: &[u8], mut read: impl FnMut(&[u8]) -> Option<(T, usize)>) -> Vec<Piece<T>> {
    let mut pieces = Vec::new();
    let mut damaged_from = 0;
    let mut at = 0;
    while let Some(found) = line.get(at..).and_then(|rest| rest.windows(2).position(|window| window == b"{\"")) {
        at += found;
        match read(&line[at..]) {
            Some((value, taken)) if taken > 0 => {
                damaged(line, damaged_from..at, &mut pieces);
                pieces.push(Piece::Whole(value));
                at += taken;
                damaged_from = at;
            }
            _ => at += 1,
        }
    }
    damaged(line, damaged_from..line.len(), &mut pieces);
    pieces
}

fn damaged<T>(line: &[u8], range: Range<usize>, pieces: &mut Vec<Piece<T>>) {
    let rest = line.get(range.clone()).unwrap_or_default();
    if !rest.iter().all(u8::is_ascii_whitespace) {
        pieces.push(Piece::Damaged(range));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    /// The simplest record: a number and a text.
    #[derive(Debug, Deserialize)]
    struct Simple {
        seq: u64,
        #[allow(dead_code)]
        kind: String,
        text: String,
    }

    fn read(bytes: &[u8]) -> Option<(Simple, usize)> {
        let mut values = serde_json::Deserializer::from_slice(bytes).into_iter();
        let value = values.next()?.ok()?;
        Some((value, values.byte_offset()))
    }

    /// The seqs of a file's whole records, and its damaged bytes.
    fn salvage(file: &[u8]) -> (Vec<u64>, Vec<Vec<u8>>) {
        let (mut seqs, mut damaged) = (Vec::new(), Vec::new());
        for line in file.split(|byte| *byte == b'\n') {
            for piece in split(line, read) {
                match piece {
                    Piece::Whole(record) => {
                        assert!(!record.text.is_empty());
                        seqs.push(record.seq);
                    }
                    Piece::Damaged(range) => damaged.push(line[range].to_vec()),
                }
            }
        }
        (seqs, damaged)
    }

    #[test]
    fn a_cut_record_and_its_retry_on_one_line() {
        let (seqs, damaged) = salvage(include_bytes!("../tests/it/cases/torn-record/middle.jsonl"));
        assert_eq!(seqs, [1, 2, 3, 4, 5]);
        assert_eq!(damaged, [br#"{"seq": 3, "kind": "assistant", "text": "a longer text that "#]);
    }

    #[test]
    fn a_cut_last_line() {
        let (seqs, damaged) = salvage(include_bytes!("../tests/it/cases/torn-record/tail.jsonl"));
        assert_eq!(seqs, [1, 2, 3, 4]);
        assert_eq!(damaged, [br#"{"seq": 5, "kind": ""#]);
    }

    #[test]
    fn a_cut_inside_a_character() {
        let (seqs, damaged) = salvage(include_bytes!("../tests/it/cases/torn-record/utf8.jsonl"));
        assert_eq!(seqs, [1, 2]);
        assert_eq!(damaged.len(), 1);
        assert!(std::str::from_utf8(&damaged[0]).is_err());
    }

    #[test]
    fn whole_records_without_a_line_end_between_them() {
        let line =
            br#"{"seq":1,"kind":"a","text":"b"}{"seq":2,"kind":"a","text":"{\"seq\":9}"} {"seq":3,"kind":"a","te"#;
        let (seqs, damaged) = salvage(line);
        assert_eq!(seqs, [1, 2]);
        assert_eq!(damaged.len(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn every_byte_is_in_a_value_or_is_damaged_or_blank(
            parts in proptest::collection::vec((0..5_usize, 0..60_usize), 0..8),
        ) {
            let whole = r#"{"seq":7,"kind":"a","text":"some \"text\" with {\"seq\": 1}"}"#;
            let mut line = String::new();
            let mut expect = 0;
            for (what, cut) in parts {
                match what {
                    0 => line.push_str(&whole[..cut.min(whole.len() - 1)]),
                    1 => line.push(' '),
                    _ => { line.push_str(whole); expect += 1; }
                }
            }
            let mut found = 0;
            let mut covered = 0;
            for piece in split(line.as_bytes(), read) {
                match piece {
                    Piece::Whole(_) => { found += 1; covered += whole.len(); }
                    Piece::Damaged(range) => covered += range.len(),
                }
            }
            prop_assert_eq!(found, expect);
            prop_assert!(covered <= line.len());
            prop_assert!(line.len() - covered <= line.bytes().filter(u8::is_ascii_whitespace).count());
        }

        #[test]
        fn any_bytes_are_taken_apart(line in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut at = 0;
            for piece in split(&line, |_| None::<((), usize)>) {
                let Piece::Damaged(range) = piece else { return Err(TestCaseError::fail("nothing was read")) };
                prop_assert!(range.start >= at && range.end <= line.len());
                at = range.end;
            }
        }
    }
}
