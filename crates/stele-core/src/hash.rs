//! Content hashes: BLAKE3, 32 bytes, written as 64 hex digits.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A BLAKE3 hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

/// An incremental BLAKE3 hasher; cloning it gives the state so far.
pub type Hasher = blake3::Hasher;

impl Hash {
    /// Hash of some bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Hash of a record in a chain: `BLAKE3("stele.record.1" ‖ prev ‖ bytes)`.
    #[must_use]
    pub fn of_record(prev: &Self, bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(b"stele.record.1");
        hasher.update(&prev.0);
        hasher.update(bytes);
        Self::from(&hasher)
    }

    /// The first eight hex digits, for people.
    #[must_use]
    pub fn short(&self) -> String {
        self.to_string()[..8].to_owned()
    }
}

impl From<&Hasher> for Hash {
    fn from(hasher: &Hasher) -> Self {
        Self(*hasher.finalize().as_bytes())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Hash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        hex(text.as_bytes()).map(Self).ok_or_else(|| format!("expected 64 hex digits, got {text:?}"))
    }
}

/// The value of each hex digit; 255 for every other byte. A long log has many hashes to read.
const DIGITS: [u8; 256] = {
    let mut digits = [u8::MAX; 256];
    let mut value = 0;
    while value < 16 {
        digits[b"0123456789abcdef"[value] as usize] = value as u8;
        digits[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    digits
};

fn hex(text: &[u8]) -> Option<[u8; 32]> {
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    let pairs: &[[u8; 2]; 32] = pairs.try_into().ok()?;
    let mut wrong = 0;
    let bytes = pairs.map(|[high, low]| {
        let (high, low) = (DIGITS[usize::from(high)], DIGITS[usize::from(low)]);
        wrong |= high | low;
        high << 4 | low
    });
    // Only what is no digit has the upper bits.
    (wrong < 16).then_some(bytes)
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::json::parsed(deserializer, "64 hex digits")
    }
}

impl JsonSchema for Hash {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Hash".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_as_it_is_written() {
        let hash = Hash::of(b"something");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_eq!(hash.to_string().to_uppercase().parse(), Ok(hash));
        let digits = "0123456789abcdef".repeat(4);
        assert_eq!(digits.parse::<Hash>().unwrap().to_string(), digits);
        for wrong in
            ["", "0", &digits[1..], &format!("{digits}00"), &digits.replace('f', "g"), &digits.replace('0', "é")]
        {
            assert!(wrong.parse::<Hash>().is_err(), "{wrong}");
        }
    }
}
