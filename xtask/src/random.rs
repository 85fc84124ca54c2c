//! Numbers that are drawn, the same ones for the same seed (SplitMix64).

/// A source of numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The source of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 when there is none.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or(0)
    }

    /// A number from `first` to `last`.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below((last + 1).saturating_sub(first))
    }

    /// Text of about this many bytes, in lines of words.
    pub fn text(&mut self, bytes: usize) -> String {
        const WORDS: [&str; 16] = [
            "fn",
            "let",
            "parser",
            "the",
            "cache",
            "=>",
            "value",
            "\"quoted\"",
            "return",
            "of",
            "match",
            "item",
            "a",
            "test result: ok",
            "0x1f",
            "self.items",
        ];
        let mut text = String::with_capacity(bytes + 24);
        while text.len() < bytes {
            match self.below(12) {
                0 => text.push('\n'),
                // Most text is ASCII, but no long text is only that.
                1 if self.below(10) == 0 => text.push_str("— "),
                1 => text.push_str(&format!("{} ", self.below(100_000))),
                _ => {
                    text.push_str(WORDS[usize::try_from(self.below(16)).unwrap_or(0)]);
                    text.push(' ');
                }
            }
        }
        text
    }
}
