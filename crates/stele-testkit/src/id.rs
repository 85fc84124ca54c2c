//! Ids that look like the vendors' and depend only on where they stand, so that a run can be repeated byte for byte.

use stele_core::Wire;

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// FNV-1a: stable over processes and versions.
pub(crate) fn digest(parts: &[&[u8]]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        for byte in part.iter().chain(&[0xff]) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}

/// `prefix` and `length` letters or digits that depend on `seed` only.
pub(crate) fn letters(prefix: &str, seed: u64, length: usize) -> String {
    let mut state = seed;
    let mut id = prefix.to_owned();
    for _ in 0..length {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let letter = LETTERS.get((mixed % 62) as usize).copied().unwrap_or(b'0');
        id.push(char::from(letter));
    }
    id
}

/// The id of the call `index` of a step.
pub(crate) fn call(wire: Wire, step: usize, index: usize) -> String {
    let seed = digest(&[b"call", &step.to_le_bytes(), &index.to_le_bytes()]);
    match wire {
        Wire::AnthropicMessages => letters("toolu_01", seed, 22),
        _ => letters("call_", seed, 24),
    }
}

/// An id of something else in the answer to request `number`.
pub(crate) fn other(prefix: &str, number: usize, index: usize, length: usize) -> String {
    letters(prefix, digest(&[prefix.as_bytes(), &number.to_le_bytes(), &index.to_le_bytes()]), length)
}

/// The signature of a piece of reasoning, which must come back with exactly this text.
pub(crate) fn signature(text: &str) -> String {
    letters("sig", digest(&[b"signature", text.as_bytes()]), 61)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_their_place_only() {
        let id = call(Wire::AnthropicMessages, 3, 0);
        assert_eq!(id, call(Wire::AnthropicMessages, 3, 0));
        assert_eq!(id.len(), "toolu_01".len() + 22);
        assert_ne!(id, call(Wire::AnthropicMessages, 3, 1));
        assert_ne!(id, call(Wire::AnthropicMessages, 4, 0));
        assert!(call(Wire::OpenaiChat, 3, 0).starts_with("call_"));
    }

    #[test]
    fn a_signature_depends_on_every_byte() {
        assert_ne!(signature("think "), signature("think"));
    }
}
