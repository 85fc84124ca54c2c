//! The lines that an `@@` line names, and the blocks they open.

use std::ops::Range;

use super::view::key;
use super::{Level, Scope};
use crate::text::Source;

/// Where the named lines lead: each is looked for in the blocks of the one before. Absent when one is not in the file.
pub(crate) fn scope(source: &Source<'_>, names: &[String]) -> Option<Scope> {
    let everywhere = 0..source.lines.len();
    let mut within = Vec::from([everywhere]);
    let mut after = 0;
    for name in names {
        let found: Vec<usize> = lines_named(source, name, &within);
        after = *found.first()?;
        within = found.into_iter().map(|line| block(source, line)).collect();
    }
    Some(Scope { blocks: within, after })
}

/// Lines that are the name but for space and look-alikes; else those that hold it.
fn lines_named(source: &Source<'_>, name: &str, within: &[Range<usize>]) -> Vec<usize> {
    let wanted = key(name.as_bytes(), Level::Indentation).into_owned();
    let lines = |fits: &dyn Fn(&[u8]) -> bool| -> Vec<usize> {
        let mut found: Vec<usize> = within
            .iter()
            .flat_map(Clone::clone)
            .filter(|line| fits(&key(source.content(*line), Level::Indentation)))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    let whole = lines(&|line| line == wanted);
    if !whole.is_empty() || wanted.is_empty() {
        return whole;
    }
    let finder = memchr::memmem::Finder::new(&wanted);
    lines(&|line| finder.find(line).is_some())
}

/// The line and what is indented under it; lines of brackets alone do not end a block.
fn block(source: &Source<'_>, first: usize) -> Range<usize> {
    let depth = |line: usize| source.content(line).iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let own = depth(first);
    let ends = |line: &usize| {
        let text = key(source.content(*line), Level::Indentation);
        let brackets = text.iter().all(|byte| matches!(byte, b'{' | b'}' | b'(' | b')' | b'[' | b']' | b';' | b','));
        depth(*line) <= own && !brackets
    };
    first..(first + 1..source.lines.len()).find(ends).unwrap_or(source.lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_under_names() {
        let file =
            "class A:\n  def f(x):\n    return 1\n\nclass B:\n  def f(x):\n    return 1\n  def g(x):\n    pass\n";
        let source = Source::new(file.as_bytes()).unwrap();
        let names = |names: &[&str]| scope(&source, &names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        let found = names(&["class B:", "def f"]).unwrap();
        assert_eq!((found.blocks.len(), found.blocks[0].clone(), found.after), (1, 5..7, 5));
        assert_eq!(names(&["def f(x):"]).unwrap().blocks, [1..4, 5..7]);
        assert_eq!(names(&["class C:"]), None);
    }
}
