//! Cases about slips that would change half of what was meant, or more than it.

use super::case::{Case, Right, Task};
use super::levels::{EACH, Spot, code, file, structured};
use super::program::Random;

fn each(random: &mut Random, mut make: impl FnMut(&mut Random, usize, Spot) -> Case) -> Vec<Case> {
    (0..EACH)
        .map(|number| {
            let spot = Spot::new(random, number);
            make(random, number, spot)
        })
        .collect()
}

fn bytes(lines: &[String]) -> Right {
    Right::Bytes(file(lines, "\n", true))
}

/// Unified diffs in which an added line has no `+`, and those that only look as if.
pub fn lost_marks(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let (at, path, id) = (spot.first, &spot.program.path, random.below(900));
        let mut lines = spot.program.lines.clone();
        lines.insert(at, format!("after_{id}"));
        let (before, after) = (&lines[at - 1], &lines[at]);
        let added = [format!("first_{id} = 1"), format!("second_{id} = 2")];
        let right = [&lines[..at], &added, &lines[at..]].concat();
        let names = format!("--- a/{path}\n+++ b/{path}\n");
        let numbers = format!("@@ -{at},2 +{at},4 @@");
        let [first, second] = &added;
        let (hunk, right) = match number % 8 {
            // Context after it, wrong counts, the end of the input, a string with a blank line in it.
            0 => (format!("{numbers}\n {before}\n+{first}\n{second}\n {after}\n"), code("edit.not_found")),
            1 => (format!("@@\n {before}\n+{first}\n{second}\n {after}\n"), code("edit.not_found")),
            2 => (format!("@@ -{at},1 +{at},3 @@\n {before}\n+{first}\n{second}\n"), code("edit.not_found")),
            3 => (format!("{numbers}\n {before}\n+{first} \"\"\"\n\n{second}\n"), code("edit.unparsed")),
            4 => (format!("@@\n {before}\n+{first} \"\"\"\n\n{second}\n {after}\n"), code("edit.not_found")),
            // Context that lost its space, and prose after a whole hunk.
            5 => (format!("{numbers}\n {before}\n+{first}\n+{second}\n{after}\n"), bytes(&right)),
            6 => (format!("{numbers}\n {before}\n+{first}\n+{second}\n {after}\n\nThat adds two.\n"), bytes(&right)),
            _ => (format!("{numbers}\n {before}\n+{first}\n+{second}\n {after}\nThat adds two.\n"), bytes(&right)),
        };
        spot.edit("lost_mark", file(&lines, "\n", true), names + &hunk, right)
    })
}

/// Two forms in one input, of which one would do.
pub fn mixtures(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let path = &spot.program.path;
        let id = random.below(900);
        let mut lines = spot.program.lines.clone();
        lines.push(format!("tail_{id} = 0"));
        let (old, new) = (spot.old().join("\n"), spot.new.join("\n"));
        let block = format!("<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n");
        let tail =
            format!("--- a/{path}\n+++ b/{path}\n@@ -{0} +{0} @@\n-tail_{id} = 0\n+tail_{id} = 1\n", lines.len());
        let xml = format!("<old_text>{old}</old_text>\n<new_text>{new}</new_text>\n");
        let section = format!("*** Update File: {path}\n@@\n-tail_{id} = 0\n+tail_{id} = 1\n");
        let envelope = format!("*** Begin Patch\n{section}*** End Patch\n");
        let sed = format!("s/tail_{id}/rest_{id}/\n");
        let json = format!("{{\"search\": \"tail_{id}\", \"replace\": \"rest_{id}\"}}\n");
        let input = match number {
            0 => block.clone() + &json,
            1 => format!("{block}\n```\n{}\n```\n", lines.join("\n")),
            2 => block.clone() + &sed,
            3 => sed + &block,
            4 => tail + &sed,
            5 => format!("{tail}\n{json}"),
            6 => xml + &sed,
            7 => format!("{xml}\nor\n{json}"),
            8 => envelope + &sed,
            9 => format!("{json}\n{envelope}"),
            10 => format!("{block}\nsed -i 's/tail_{id}/rest_{id}/' {path}\n"),
            11 => format!(
                "{block}{{\n  \"path\": \"{path}\",\n  \"old_string\": \"tail_{id}\",\n  \"new_string\": \"b\"\n}}\n"
            ),
            // Two envelopes are one form, but not one input.
            12 => {
                let right = code("edit.unparsed");
                return spot.edit("mixture", file(&lines, "\n", true), envelope.clone() + &envelope, right);
            }
            // What is around the form may look like one.
            _ => {
                let prose = ["s.o. said: so", "The old: a, the new: b.", "{braces} stay"][number - 13];
                let input = format!("{path}\n```\n{block}```\n{prose}\n");
                let after = [&spot.after()[..], &lines[lines.len() - 1..]].concat();
                return spot.edit("mixture", file(&lines, "\n", true), input, bytes(&after));
            }
        };
        spot.edit("mixture", file(&lines, "\n", true), input, code("edit.mixed"))
    })
}

/// Look-alikes in a line that changes elsewhere: they stay as the file has them.
pub fn own_bytes(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let id = random.below(900);
        let indent = spot.program.language.indent;
        let (there, written) = [
            (format!("say(\u{201c}a_{id}\u{201d}, \u{201c}b\u{201d})"), format!("say(\"a_{id}\", \"b\")")),
            (format!("it\u{2019}s\u{a0}b \u{2013} \u{2018}{id}\u{2019}"), format!("it's b - '{id}'")),
            (format!("cafe\u{301}_{id} = nai\u{308}ve + b"), format!("caf\u{e9}_{id} = na\u{ef}ve + b")),
            (format!("call('{id}', \"b\") - 1"), format!("call(\u{2018}{id}\u{2019}, \u{201c}b\u{201d}) \u{2013} 1")),
        ][number % 4]
            .clone();
        let change = |line: &str| line.replace('b', "changed(c)");
        let mut lines = spot.program.lines.clone();
        lines.splice(spot.first..spot.first, [format!("{indent}{there}"), format!("{indent}last_{id}")]);
        let mut after = lines.clone();
        after[spot.first] = format!("{indent}{}", change(&there));
        let (mut old, mut new) = (format!("{indent}{written}"), format!("{indent}{}", change(&written)));
        match number / 4 {
            0 => {}
            // A line more, lines around it, another indentation.
            1 => {
                after.insert(spot.first + 1, format!("{indent}added_{id}"));
                new.push_str(&format!("\n{indent}added_{id}"));
            }
            2 => {
                after.splice(spot.first + 1..spot.first + 2, [format!("{indent}end_{id}")]);
                old.push_str(&format!("\n{indent}last_{id}\n"));
                new.push_str(&format!("\n{indent}end_{id}\n"));
            }
            _ => {
                (old, new) = (
                    format!("{indent}{indent}{written}\n{indent}{indent}last_{id}"),
                    format!("{indent}{indent}{}\n{indent}{indent}last_{id}", change(&written)),
                )
            }
        }
        spot.edit("own_bytes", file(&lines, "\n", true), structured(&old, &new), bytes(&after))
    })
}

/// Lines as `grep` and refusals number them, and hunks whose header does.
pub fn numbered(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let (id, path) = (random.below(900), &spot.program.path);
        let mut lines = spot.program.lines.clone();
        lines.splice(spot.first..spot.first, [format!("key_{id} = 1"), format!("next_{id}")]);
        let mut after = lines.clone();
        after[spot.first] = format!("key_{id} = 2");
        let line = spot.first + 1;
        let (there, below, new) = (&lines[spot.first], &lines[spot.first + 1], &after[spot.first]);
        let right = bytes(&after);
        let hunk = |body: &str| format!("*** Begin Patch\n*** Update File: {path}\n{body}*** End Patch\n");
        let (input, right) = match number % 8 {
            0 => (structured(&format!("{line}: {there}"), new), right),
            1 => (
                structured(
                    &format!("{line}: {there}\n{}- {below}\n", line + 1),
                    &format!("{line}: {new}\n{}- {below}\n", line + 1),
                ),
                right,
            ),
            2 => (
                structured(
                    &format!("{line:>6}\u{2192}{there}\n{:>6}\u{2192}{below}", line + 1),
                    &format!("{new}\n{below}"),
                ),
                right,
            ),
            // Part of a line, numbers of elsewhere, numbers with a gap, a new text that is numbered otherwise.
            3 => (structured(&format!("{line}: key_{id}"), "x"), code("edit.not_found")),
            4 => (structured(&format!("{}: {there}", line + 90), new), code("edit.not_found")),
            5 => (structured(&format!("{line}: {there}\n{}: {below}", line + 5), new), code("edit.not_found")),
            6 => (structured(&format!("{line}: {there}"), &format!("1: {new}")), code("edit.not_found")),
            // Of two places, the one that the header of a hunk names.
            _ => {
                let lines = [&lines[..], &[format!("key_{id} = 1")]].concat();
                let mut after = lines.clone();
                *after.last_mut().unwrap() = format!("key_{id} = 2");
                let input = hunk(&format!("@@ -{0},1 +{0},1 @@\n-{there}\n+{new}\n", lines.len()));
                let task = Task::Edit { path: path.clone(), original: Some(file(&lines, "\n", true)), input };
                return Case { category: "numbered".into(), task, right: bytes(&after) };
            }
        };
        spot.edit("numbered", file(&lines, "\n", true), input, right)
    })
}
