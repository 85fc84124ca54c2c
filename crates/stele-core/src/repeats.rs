//! Notices when the model goes in circles: the same calls with the same results.

use std::collections::VecDeque;

use crate::{CallDigest, CallRecord, Hash, Text};

/// Longest cycle that is recognised.
const LONGEST_CYCLE: usize = 4;
/// How many executions are remembered.
const REMEMBERED: usize = 64;

/// The last executions of a turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeats {
    last: VecDeque<Execution>,
}

/// A call and what it gave. The texts are shared with the surface; comparing them is cheaper than hashing each.
#[derive(Clone, Debug, PartialEq)]
struct Execution {
    name: String,
    arguments: Text,
    result: Text,
}

impl Execution {
    fn is_of(&self, call: &CallRecord) -> bool {
        self.name == call.name && self.arguments == call.arguments
    }
}

impl Repeats {
    pub(crate) fn push(&mut self, call: &CallRecord, result: Text) {
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
        }
        self.last.push_back(Execution { name: call.name.clone(), arguments: call.arguments.clone(), result });
    }

    pub(crate) fn clear(&mut self) {
        self.last.clear();
    }

    /// How often the shortest cycle at the end has been gone through: 1 when nothing repeats.
    pub(crate) fn count(&self) -> u64 {
        (1..=LONGEST_CYCLE).map(|period| self.rounds(period)).max().unwrap_or(0)
    }

    /// How often the last `period` executions stand at the end, one after the other.
    fn rounds(&self, period: usize) -> u64 {
        let len = self.last.len();
        if len < period {
            return 0;
        }
        let same = |round: usize| {
            (1..=period).all(|back| {
                let (one, other) = (len.checked_sub(back), len.checked_sub(back + round * period));
                matches!((one, other), (Some(one), Some(other)) if self.last.get(one) == self.last.get(other))
            })
        };
        1 + (1..).take_while(|round| same(*round)).count() as u64
    }

    /// True when this call would go on with what repeats.
    pub(crate) fn continues(&self, call: &CallRecord) -> bool {
        self.last.iter().rev().take(LONGEST_CYCLE).any(|last| last.is_of(call))
    }

    /// What this call gave the last time.
    pub(crate) fn last_result(&self, call: &CallRecord) -> Option<Text> {
        self.last.iter().rev().find(|last| last.is_of(call)).map(|last| last.result.clone())
    }

    /// The last calls, oldest first.
    pub(crate) fn calls(&self, most: usize) -> Vec<CallDigest> {
        let skip = self.last.len().saturating_sub(most);
        let digest = |last: &Execution| CallDigest {
            name: last.name.clone(),
            arguments: Hash::of(last.arguments.as_str().as_bytes()),
        };
        self.last.iter().skip(skip).map(digest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Wire;

    fn repeats(calls: &str) -> Repeats {
        let mut repeats = Repeats::default();
        for call in calls.chars() {
            let call =
                CallRecord { wire: Wire::OpenaiChat, vendor_id: None, name: call.to_string(), arguments: "{}".into() };
            repeats.push(&call, "same".into());
        }
        repeats
    }

    #[test]
    fn counts_cycles_at_the_end() {
        for (calls, count) in
            [("", 0), ("a", 1), ("ab", 1), ("aaa", 3), ("baaa", 3), ("abab", 2), ("abcabcabc", 3), ("aaab", 1)]
        {
            assert_eq!(repeats(calls).count(), count, "{calls}");
        }
    }
}
