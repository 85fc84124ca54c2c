//! Uniform shifts of indentation between what was written and what is in the file.

use crate::text::{blank, indentation};

/// Widths of a tab that are tried, the usual first.
const WIDTHS: [usize; 4] = [4, 2, 8, 3];

/// One way to turn the indentation that was written into the file's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shift {
    /// The same on both sides.
    None,
    /// The file has this in front of every line.
    Add(String),
    /// The file lacks this in front of every line.
    Remove(String),
    /// Spaces were written, the file has tabs, and `levels` more (or fewer) of them.
    ToTabs { width: usize, levels: isize },
    /// Tabs were written, the file has spaces, and `levels` more (or fewer) times the width.
    ToSpaces { width: usize, levels: isize },
}

impl Shift {
    /// A line as the file would indent it; absent when the shift cannot be applied to it.
    pub(crate) fn apply(&self, line: &str) -> Option<String> {
        if blank(line) {
            return Some(line.to_owned());
        }
        let (indent, rest) = indentation(line);
        Some(match self {
            Self::None => line.to_owned(),
            Self::Add(prefix) => format!("{prefix}{line}"),
            Self::Remove(prefix) => line.strip_prefix(prefix.as_str())?.to_owned(),
            Self::ToTabs { width, levels } => {
                let (columns, more) = spaces(indent)?;
                let tabs = (columns / width).checked_add_signed(*levels)?;
                format!("{}{}{more}{rest}", "\t".repeat(tabs), " ".repeat(columns % width))
            }
            Self::ToSpaces { width, levels } => {
                let tabs = indent.len() - indent.trim_start_matches('\t').len();
                let after = &indent[tabs..];
                let columns = tabs.checked_add_signed(*levels)? * width;
                format!("{}{after}{rest}", " ".repeat(columns))
            }
        })
    }

    /// True when nothing but tabs and spaces is swapped.
    fn plain_swap(&self) -> bool {
        matches!(self, Self::ToTabs { levels: 0, .. } | Self::ToSpaces { levels: 0, .. })
    }
}

/// Leading spaces, and what else the indentation holds.
fn spaces(indent: &str) -> Option<(usize, &str)> {
    let columns = indent.len() - indent.trim_start_matches(' ').len();
    Some((columns, &indent[columns..])).filter(|(_, more)| more.is_empty())
}

/// Every uniform shift that turns each written indentation into the file's, the most plausible first; empty when the
/// shift is not the same on every line.
pub(crate) fn shifts(pairs: &[(&str, &[u8])]) -> Vec<Shift> {
    let Some(pairs) = pairs
        .iter()
        .map(|(written, file)| std::str::from_utf8(file).ok().map(|file| (*written, file)))
        .collect::<Option<Vec<_>>>()
    else {
        return if pairs.iter().all(|(written, file)| written.as_bytes() == *file) {
            vec![Shift::None]
        } else {
            vec![]
        };
    };
    let Some((written, file)) = pairs.first().copied() else { return vec![Shift::None] };
    if pairs.iter().all(|(written, file)| written == file) {
        return vec![Shift::None];
    }
    if let Some(prefix) = file.strip_suffix(written).filter(|prefix| !prefix.is_empty())
        && pairs.iter().all(|(written, file)| file.strip_prefix(prefix) == Some(written))
    {
        return vec![Shift::Add(prefix.to_owned())];
    }
    if let Some(prefix) = written.strip_suffix(file).filter(|prefix| !prefix.is_empty())
        && pairs.iter().all(|(written, file)| written.strip_prefix(prefix) == Some(file))
    {
        return vec![Shift::Remove(prefix.to_owned())];
    }
    let swaps = WIDTHS.iter().flat_map(|width| {
        [
            to_tabs(written, file, *width).map(|levels| Shift::ToTabs { width: *width, levels }),
            to_spaces(written, file, *width).map(|levels| Shift::ToSpaces { width: *width, levels }),
        ]
    });
    let fits = |shift: &Shift| {
        pairs.iter().all(|(written, file)| {
            shift.apply(&format!("{written}x")).is_some_and(|line| line.strip_suffix('x') == Some(file))
        })
    };
    let mut found: Vec<Shift> = swaps.flatten().filter(fits).collect();
    found.sort_by_key(|shift| !shift.plain_swap());
    found
}

fn to_tabs(written: &str, file: &str, width: usize) -> Option<isize> {
    if written.contains('\t') {
        return None;
    }
    let tabs = file.len() - file.trim_start_matches('\t').len();
    Some(isize::try_from(tabs).ok()? - isize::try_from(written.len() / width).ok()?)
}

fn to_spaces(written: &str, file: &str, width: usize) -> Option<isize> {
    if file.contains('\t') {
        return None;
    }
    let tabs = written.len() - written.trim_start_matches('\t').len();
    let after = written.len() - tabs;
    let columns = file.len().checked_sub(after)?;
    if !columns.is_multiple_of(width) {
        return None;
    }
    Some(isize::try_from(columns / width).ok()? - isize::try_from(tabs).ok()?)
}

/// New lines, each as the file would indent it. With several shifts possible they must agree, or one must be clearly
/// meant: a plain swap of one level, or of four columns a level. Absent when that cannot be told.
pub(crate) fn shifted(shifts: &[Shift], lines: &[&str]) -> Option<Vec<String>> {
    let all = |shift: &Shift| lines.iter().map(|line| shift.apply(line)).collect::<Option<Vec<String>>>();
    let mut results: Vec<(&Shift, Vec<String>)> =
        shifts.iter().filter_map(|shift| all(shift).map(|lines| (shift, lines))).collect();
    if let Some((_, first)) = results.first()
        && results.iter().all(|(_, lines)| lines == first)
    {
        return Some(results.swap_remove(0).1);
    }
    let mut plain = results.into_iter().filter(|(shift, _)| shift.plain_swap());
    match (plain.next(), plain.next()) {
        (Some((Shift::ToTabs { width: 4, .. } | Shift::ToSpaces { width: 4, .. }, lines)), None) => Some(lines),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shift(pairs: &[(&str, &str)]) -> Vec<Shift> {
        shifts(&pairs.iter().map(|(written, file)| (*written, file.as_bytes())).collect::<Vec<_>>())
    }

    #[test]
    fn prefixes() {
        assert_eq!(shift(&[("", "    "), ("  ", "      ")]), [Shift::Add("    ".into())]);
        assert_eq!(shift(&[("    ", ""), ("      ", "  ")]), [Shift::Remove("    ".into())]);
        assert_eq!(shift(&[("  ", "  "), ("", "")]), [Shift::None]);
        // Scaling is no shift.
        assert_eq!(shift(&[("  ", "    "), ("    ", "        ")]), []);
    }

    #[test]
    fn tabs_against_spaces() {
        let found = shift(&[("    ", "\t"), ("        ", "\t\t")]);
        assert_eq!(found, [Shift::ToTabs { width: 4, levels: 0 }]);
        assert_eq!(shifted(&found, &["", "            x"]).unwrap(), ["", "\t\t\tx"]);
        let found = shift(&[("\t", "  "), ("\t\t", "    ")]);
        assert_eq!(found, [Shift::ToSpaces { width: 2, levels: 0 }]);
        assert_eq!(shifted(&found, &["\t\t\tx"]).unwrap(), ["      x"]);
        // A comment that is aligned by one space keeps it.
        assert_eq!(shift(&[("    ", "\t"), ("     ", "\t ")])[0], Shift::ToTabs { width: 4, levels: 0 });
    }

    #[test]
    fn what_cannot_be_told_is_not_guessed() {
        let found = shift(&[("    ", "\t\t")]);
        assert!(found.len() > 1);
        assert_eq!(shifted(&found, &["    x"]).unwrap(), ["\t\tx"]);
        assert_eq!(shifted(&found, &["        x"]), None);
        let found = shift(&[("    ", "\t")]);
        assert_eq!(shifted(&found, &["        x"]).unwrap(), ["\t\tx"]);
    }
}
