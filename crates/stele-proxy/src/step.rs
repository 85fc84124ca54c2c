//! What an endpoint's own figures show of its cache: in which steps it counts what is read, and how little it caches.

use std::collections::{BTreeMap, BTreeSet};

use stele_provider::CacheRules;

use crate::record::{Place, Recorded};

/// The largest step that several figures can show, in tokens.
const MANY_SHOW: u64 = 1_024;
/// The largest step that is read out of a single figure: what OpenAI documents.
const ONE_SHOWS: u64 = 128;

/// What the figures of each endpoint show.
#[derive(Debug, Default)]
pub(crate) struct Shown<'a> {
    figures: BTreeMap<Place<'a>, BTreeSet<u64>>,
}

impl<'a> Shown<'a> {
    /// What the reads of some requests show.
    pub(crate) fn by(requests: &[&'a Recorded]) -> Self {
        let mut figures: BTreeMap<Place<'a>, BTreeSet<u64>> = BTreeMap::new();
        for request in requests {
            let read = request.usage.and_then(|usage| usage.cache_read).filter(|read| *read > 0);
            figures.entry(request.place()).or_default().extend(read);
        }
        Self { figures }
    }

    /// The rules of a request's endpoint, with the step that was seen where no page gives one, and a minimum that is no
    /// greater than what it read.
    pub(crate) fn complete(&self, rules: CacheRules, request: &Recorded) -> CacheRules {
        let Some(figures) = self.figures.get(&request.place()) else { return rules };
        let least = figures.first().copied().unwrap_or(rules.minimum);
        CacheRules {
            granularity: rules.granularity.or_else(|| step(figures)),
            minimum: rules.minimum.min(least),
            ..rules
        }
    }
}

/// The largest step that explains every figure. Servers keep prompts in blocks of a power of two, so one figure that is no
/// multiple of it rules a step out.
fn step(figures: &BTreeSet<u64>) -> Option<u64> {
    let shared = figures.iter().map(|figure| 1 << figure.trailing_zeros()).min()?;
    Some(u64::min(shared, if figures.len() > 1 { MANY_SHOW } else { ONE_SHOWS }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_step_that_explains_every_figure() {
        let check = |figures: &[u64], expect: Option<u64>| {
            assert_eq!(step(&figures.iter().copied().collect()), expect, "{figures:?}");
        };
        check(&[], None);
        check(&[1_225], Some(1));
        check(&[1_152], Some(128));
        check(&[2_048], Some(128));
        check(&[2_048, 4_096], Some(1_024));
        check(&[1_152, 3_328, 3_456], Some(128));
        check(&[1_152, 3_344], Some(16));
    }
}
