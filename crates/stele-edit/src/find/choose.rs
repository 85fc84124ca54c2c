//! Which of the places that fit is meant.

use super::wrapping::{Gutter, Style};
use super::{Hit, Sought};
use crate::OnAmbiguous;
use crate::limits::{MAX_PLACES, NEAR_LINES};
use crate::refuse::{Code, Refusal};
use crate::text::Source;

pub(crate) enum Choice {
    /// Indexes of the places.
    These(Vec<usize>),
    Several,
    Refused(Refusal),
}

/// True when a place may be meant at all.
pub(super) fn allowed(source: &Source<'_>, sought: &Sought, gutter: Option<Gutter>, hit: &Hit) -> bool {
    (!sought.at_end || hit.end_line == source.lines.len())
        && sought.scope.as_ref().is_none_or(|scope| hit.line >= scope.after)
        && gutter.is_none_or(|gutter| {
            gutter.line.abs_diff(hit.line as u64 + 1) <= NEAR_LINES
                && (gutter.style == Style::Arrow || source.are_lines(&hit.range))
        })
}

pub(super) fn choose(sought: &Sought, hits: &[Hit], more: bool, on_ambiguous: OnAmbiguous) -> Choice {
    if sought.all {
        if more {
            let places =
                format!("the old text is at more than {MAX_PLACES} places or too long to replace at all of them");
            return Choice::Refused(Refusal::new(Code::TooLarge, places + "; use a script"));
        }
        let mut order: Vec<usize> = (0..hits.len()).collect();
        order.sort_by_key(|at| hits[*at].range.start);
        if let Some(pair) = order.windows(2).find(|pair| hits[pair[1]].range.start < hits[pair[0]].range.end) {
            let line = hits[pair[1]].line + 1;
            let places = format!("two places of the old text overlap (line {line}), so not all can be replaced");
            return Choice::Refused(Refusal::new(Code::Overlap, places + "; give a longer old text"));
        }
        return Choice::These(order);
    }
    let inside: Vec<usize> = match &sought.scope {
        Some(scope) => {
            let inside = |at: &usize| scope.blocks.iter().any(|block| block.contains(&hits[*at].line));
            (0..hits.len()).filter(inside).collect()
        }
        None => Vec::new(),
    };
    let hits_in_question = if inside.is_empty() { (0..hits.len()).collect() } else { inside };
    if let ([only], false) = (hits_in_question.as_slice(), more) {
        return Choice::These(vec![*only]);
    }
    if let Some(near) = sought.near {
        let distance = |at: &usize| near.abs_diff(hits[*at].line as u64 + 1);
        let nearest = hits_in_question.iter().map(distance).min().unwrap_or(u64::MAX);
        let mut at_that = hits_in_question.iter().filter(|at| distance(at) == nearest);
        if let (true, false, Some(only), None) = (nearest <= NEAR_LINES, more, at_that.next(), at_that.next()) {
            return Choice::These(vec![*only]);
        }
    }
    match (on_ambiguous, more, hits_in_question.iter().max_by_key(|at| hits[**at].range.start)) {
        (OnAmbiguous::Last, false, Some(last)) => Choice::These(vec![*last]),
        _ => Choice::Several,
    }
}
