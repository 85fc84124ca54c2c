//! The corpus, from its seed.

use super::case::Case;
use super::program::Random;
use super::{forms, levels, slips};

/// The seed of the stored corpus.
pub const SEED: u64 = 0x5e1e_2026;

/// Every case, in a fixed order; another seed makes another corpus.
pub fn cases(seed: u64) -> Vec<Case> {
    let categories: [fn(&mut Random) -> Vec<Case>; 32] = [
        levels::exact,
        levels::ambiguous,
        levels::not_found,
        levels::distant,
        levels::line_ends_of_the_file,
        levels::final_newline,
        levels::trailing_space,
        levels::unicode,
        levels::indentation,
        levels::uneven_indentation,
        levels::look_alike,
        levels::escapes,
        levels::literal,
        levels::blank_lines,
        levels::encodings,
        levels::byte_order_marks,
        levels::several,
        levels::wrapped,
        levels::large,
        forms::conflict,
        forms::unified,
        forms::envelope,
        forms::patches,
        forms::xml,
        forms::json,
        forms::sed,
        forms::whole,
        forms::unclear,
        slips::lost_marks,
        slips::mixtures,
        slips::own_bytes,
        slips::numbered,
    ];
    let seeds = categories.iter().zip(1..);
    seeds.flat_map(|(make, number)| make(&mut Random::new(seed.wrapping_mul(2 * number + 1)))).collect()
}

/// One case a line.
pub fn lines(cases: &[Case]) -> String {
    cases.iter().map(|case| format!("{}\n", case.to_json())).collect()
}
