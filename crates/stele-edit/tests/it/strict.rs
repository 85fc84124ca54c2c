//! A strict reader of unified diffs, written apart from the engine: every byte of context has to be right.

/// Applies a diff to the bytes it was made from; nothing where it does not fit to the byte.
pub fn patched(before: &[u8], diff: &[u8]) -> Option<Vec<u8>> {
    let old: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
    let mut lines = diff.split_inclusive(|byte| *byte == b'\n').peekable();
    let mut after = Vec::new();
    let mut at = 0;
    if diff.is_empty() {
        return Some(before.to_vec());
    }
    lines.next().filter(|line| line.starts_with(b"--- "))?;
    lines.next().filter(|line| line.starts_with(b"+++ "))?;
    while let Some(header) = lines.next() {
        let header = std::str::from_utf8(header).ok()?.strip_prefix("@@ -")?.strip_suffix(" @@\n")?;
        let (from, to) = header.split_once(" +")?;
        let side = |text: &str| -> Option<(usize, usize)> {
            let (first, count) = text.split_once(',').unwrap_or((text, "1"));
            Some((first.parse().ok()?, count.parse().ok()?))
        };
        let ((from, mut left), (_, mut right)) = (side(from)?, side(to)?);
        let start = if left == 0 { from } else { from.checked_sub(1)? };
        after.extend(old.get(at..start)?.concat());
        at = start;
        while left > 0 || right > 0 {
            let line = lines.next()?;
            let open = lines.next_if(|line| line.starts_with(b"\\")).is_some();
            let content = if open { line[1..].strip_suffix(b"\n")? } else { &line[1..] };
            if line[0] != b'+' {
                (*old.get(at)? == content).then_some(())?;
                at += 1;
                left = left.checked_sub(1)?;
            }
            if line[0] != b'-' {
                after.extend(content);
                right = right.checked_sub(1)?;
            }
        }
    }
    after.extend(old.get(at..)?.concat());
    Some(after)
}

#[test]
fn differences_are_exact() {
    for (before, after) in [
        (&b"a\nb\nc\n"[..], &b"a\nB\nc\n"[..]),
        (b"a\nb", b"a\nb\n"),
        (b"a\nb\n", b"a\nb"),
        (b"", b"a\n"),
        (b"a", b""),
        (b"\xff\xfe\n\xe9", b"\xff\n\xe9"),
        (b"a\r\nb\r\n", b"a\nb\r\n"),
        (b"a\0\n", b"a\n"),
    ] {
        let diff = stele_edit::unified_diff("f", before, after);
        assert_eq!(patched(before, diff.bytes()).as_deref(), Some(after), "{}", diff.text);
        assert!(diff.added + diff.removed > 0);
    }
    assert_eq!(stele_edit::unified_diff("f", b"a", b"a").text, "");
    assert_eq!(patched(b"a\n", b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-b\n+c\n"), None);
}
