//! What a refusal says: which places there are, or what comes nearest.

use crate::Dialect;
use crate::find::closest::{Closest, against, closest, plain, visible};
use crate::find::wrapping::{GUTTER, without_numbers};
use crate::find::{Hit, Sought};
use crate::refuse::{Code, Refusal};
use crate::text::{Source, encoding};

/// The text is at several places, of which the first are shown.
pub(super) fn several(source: &Source<'_>, dialect: Dialect, hits: &[Hit], count: usize, more: bool) -> Refusal {
    let lines: Vec<String> = hits.iter().map(|hit| (hit.line + 1).to_string()).collect();
    let at_least = if more { "at least " } else { "" };
    let dots = if count > hits.len() || more { ", …" } else { "" };
    let mut message = format!(
        "the old text is at {at_least}{count} places (lines {}{dots}); add lines around it until only one fits{}",
        lines.join(", "),
        match dialect {
            Dialect::Structured | Dialect::Json => ", or name one with `near_line`, or take all with `all`",
            Dialect::Sed => ", or take all with the flag `g`",
            Dialect::Unified | Dialect::Envelope => ", or give its line in the hunk's header (`@@ -12,1 +12,1 @@`)",
            _ => "",
        }
    );
    for hit in hits {
        let from = hit.line.saturating_sub(1);
        message.push('\n');
        for line in from..(hit.end_line + 1).min(from + 4).min(source.lines.len()) {
            let text = String::from_utf8_lossy(source.content(line)).into_owned();
            message.push_str(&format!("\n{:>6}{GUTTER}{}", line + 1, plain(&text)));
        }
    }
    Refusal::new(Code::Ambiguous, message)
}

/// The text is nowhere; what comes nearest is shown.
pub(super) fn missing(source: &Source<'_>, sought: &Sought) -> Refusal {
    let mut message = "the old text is not in the file".to_owned();
    if source.lines.is_empty() {
        message.push_str(", which is empty");
    }
    // Numbers that do not fit the place are no part of what is compared.
    let bare = without_numbers(&sought.texts.old);
    let near = |old: &str| closest(source, old).map(|region| (old.to_owned(), region));
    let numbered = bare.as_deref().and_then(near);
    let numbers = numbered.is_some();
    match numbered.or_else(|| near(&sought.texts.old)) {
        Some((old, region)) => {
            let numbers = if numbers { ". Leave the line numbers out" } else { "" };
            message.push_str(&format!(
                "; the closest is {}, {} (`-` was looked for, `+` is there){numbers}. Copy the lines from the file:\n{}",
                lines_of(&region),
                likeness(sought, &region, numbers),
                against(source, &old, &region)
            ));
        }
        None => message.push_str("; nothing there comes near it: read the file again, or check the path"),
    }
    if !sought.texts.old.is_ascii()
        && let Some(name) = encoding(source.bytes)
    {
        message.push_str(&format!(
            "\nthe file is not UTF-8 (it looks like {name}), so text that is not ASCII cannot match; use the \
                 ASCII part of the lines"
        ));
    }
    Refusal::new(Code::NotFound, message)
}

fn lines_of(region: &Closest) -> String {
    match region.lines {
        1 => format!("line {}", region.first + 1),
        lines => format!("lines {}-{}", region.first + 1, region.first + lines),
    }
}

/// How near a region comes, and what keeps it from being the place where that is all the same.
fn likeness(sought: &Sought, region: &Closest, numbers: &str) -> String {
    if region.similarity <= 0.9995 {
        return format!("{} % the same", (region.similarity * 100.0).min(99.0) as u32);
    }
    let but = if sought.at_end {
        ", but not at the end of the file"
    } else if sought.scope.is_some() {
        ", but not where the `@@` line says"
    } else if !numbers.is_empty() {
        " but for the line numbers"
    } else {
        " but for white space"
    };
    format!("the same{but}")
}

/// No line of the file is the one after `@@`.
pub(super) fn no_such_name(names: &[String]) -> Refusal {
    let names: Vec<String> = names.iter().map(|name| format!("`@@ {}`", visible(name))).collect();
    let text = format!("the file has no line {}; give a line that is there, or leave it out", names.join(" under "));
    Refusal::new(Code::NotFound, text)
}
