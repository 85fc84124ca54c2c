//! Cases about what edits are written in.

use std::collections::BTreeMap;

use serde_json::json;

use super::case::{Case, Right, Task};
use super::levels::{EACH, Spot, code, file};
use super::program::Random;

fn each(random: &mut Random, mut make: impl FnMut(&mut Random, usize, Spot) -> Case) -> Vec<Case> {
    (0..EACH)
        .map(|number| {
            let spot = Spot::new(random, number);
            make(random, number, spot)
        })
        .collect()
}

fn plain(spot: &Spot) -> (Vec<u8>, Right) {
    (spot.program.text().into_bytes(), Right::Bytes(file(&spot.after(), "\n", true)))
}

pub fn conflict(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let length = [7, 7, 5, 9, 7, 3, 12, 7][number % 8];
        let words = [(" SEARCH", " REPLACE"), ("", ""), (" HEAD", " branch"), (" ORIGINAL", " UPDATED")][number % 4];
        let block = |old: &[String], new: &[String]| {
            let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            format!(
                "{}{}\n{}{}\n{}{}{}\n",
                "<".repeat(length),
                words.0,
                text(old),
                "=".repeat(length),
                text(new),
                ">".repeat(length),
                words.1
            )
        };
        let (original, right) = plain(&spot);
        let (old, new) = (spot.old(), spot.new.clone());
        let path = &spot.program.path;
        match number {
            0..=5 => spot.edit("conflict", original, block(&old, &new), right),
            6 => {
                spot.edit("conflict", original, format!("Change it:\n\n{path}\n```\n{}```\n", block(&old, &new)), right)
            }
            7 => {
                let original = file(&spot.program.lines, "\r\n", true);
                let right = Right::Bytes(file(&spot.after(), "\r\n", true));
                spot.edit("conflict", original, block(&old, &new).replace('\n', "\r\n"), right)
            }
            // Whole lines go with their ends.
            8 => {
                let rest = [&spot.program.lines[..spot.first], &spot.program.lines[spot.last..]].concat();
                spot.edit("conflict", original, block(&old, &[]), Right::Bytes(file(&rest, "\n", true)))
            }
            // An empty search appends.
            9 => {
                let after = [&spot.program.lines[..], &new].concat();
                spot.edit("conflict", original, block(&[], &new), Right::Bytes(file(&after, "\n", true)))
            }
            10 => {
                let original = file(&spot.program.lines, "\r\n", false);
                let after = [&spot.program.lines[..], &new].concat();
                spot.edit("conflict", original, block(&[], &new), Right::Bytes(file(&after, "\r\n", false)))
            }
            11 => {
                let task = Task::Edit { path: path.clone(), original: None, input: block(&[], &new) };
                Case { category: "conflict".into(), task, right: Right::Bytes(file(&new, "\n", true)) }
            }
            // Cut in the middle.
            12 => {
                let whole = block(&old, &new);
                let cut = whole[..whole.rfind('>').unwrap() + 1 - length].to_owned();
                spot.edit("conflict", original, cut, code("edit.unparsed"))
            }
            13 => spot.edit("conflict", original, block(&old, &old), code("edit.no_change")),
            // A statement is no part of a line.
            14 => {
                let id = random.below(90) + 10;
                let mut lines = spot.program.lines.clone();
                lines.extend([format!("level = {id}0"), format!("level = {id}")]);
                let mut after = lines.clone();
                *after.last_mut().unwrap() = "level = 0".into();
                let input = block(&[format!("level = {id}")], &["level = 0".into()]);
                spot.edit("conflict", file(&lines, "\n", true), input, Right::Bytes(file(&after, "\n", true)))
            }
            _ => {
                let gone: Vec<String> = old.iter().map(|line| format!("{line} gone")).collect();
                spot.edit("conflict", original, block(&gone, &new), code("edit.not_found"))
            }
        }
    })
}

/// The lines of a hunk with context around the change, and where it starts.
fn hunk(spot: &Spot, context: usize) -> (usize, Vec<String>, usize, usize) {
    let lines = &spot.program.lines;
    let start = spot.first.saturating_sub(context);
    let end = (spot.last + context).min(lines.len());
    let mut text: Vec<String> = lines[start..spot.first].iter().map(|line| format!(" {line}")).collect();
    text.extend(spot.old().iter().map(|line| format!("-{line}")));
    text.extend(spot.new.iter().map(|line| format!("+{line}")));
    text.extend(lines[spot.last..end].iter().map(|line| format!(" {line}")));
    let old = end - start;
    (start, text, old, old - spot.old().len() + spot.new.len())
}

pub fn unified(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let path = &spot.program.path;
        let (start, lines, old, new) = hunk(&spot, 3);
        let body = lines.join("\n") + "\n";
        let names = format!("--- a/{path}\n+++ b/{path}\n");
        let numbers = format!("@@ -{},{old} +{},{new} @@", start + 1, start + 1);
        let (original, right) = plain(&spot);
        let case = |input: String, right: Right| spot.edit("unified", original.clone(), input, right);
        match number {
            0 => case(format!("{names}{numbers}\n{body}"), right),
            1 => case(format!("{numbers} fn context()\n{body}"), right),
            2 => case(format!("{names}@@\n{body}"), right),
            3 => case(format!("{names}@@ -1,99 +1,3 @@\n{body}"), right),
            4 => {
                case(format!("diff --git a/{path} b/{path}\nindex 1a2b..3c4d 100644\n{names}{numbers}\n{body}"), right)
            }
            5 => case(format!("The change:\n```diff\n{names}{numbers}\n{body}```\nThat is all.\n"), right),
            6 => {
                let original = file(&spot.program.lines, "\r\n", true);
                let right = Right::Bytes(file(&spot.after(), "\r\n", true));
                spot.edit("unified", original, format!("{names}{numbers}\n{body}"), right)
            }
            // Blank context lines lost their space.
            7 => case(format!("{names}{numbers}\n{}\n", body.replace("\n \n", "\n\n").trim_end()), right),
            // Right line, wrong context.
            8 => case(
                format!("{names}{numbers}\n{}", body.replace("-", "-wrong ").replace("\n ", "\n other ")),
                code("edit.not_found"),
            ),
            // An addition without context, by its number.
            9 => {
                let at = spot.first;
                let after = [&spot.program.lines[..at], &["added = 1".into()], &spot.program.lines[at..]].concat();
                case(
                    format!("{names}@@ -{at},0 +{},1 @@\n+added = 1\n", at + 1),
                    Right::Bytes(file(&after, "\n", true)),
                )
            }
            10 => case(format!("{names}@@\n+added = 1\n"), code("edit.not_found")),
            11 => case(format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,1 @@\n+new\n"), code("edit.exists")),
            12 => {
                let new = ["one".to_owned(), format!("two {}", random.below(99))];
                let input = format!("--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,2 @@\n+{}\n", new.join("\n+"));
                let task = Task::Edit { path: path.clone(), original: None, input };
                Case { category: "unified".into(), task, right: Right::Bytes(file(&new, "\n", true)) }
            }
            // The end of the file gets its line end, and only because the diff says so.
            13 => {
                let lines = &spot.program.lines;
                let last = lines.last().unwrap();
                let input =
                    format!("{names}@@ -{0} +{0} @@\n-{last}\n\\ No newline at end of file\n+{last}\n", lines.len());
                spot.edit("unified", file(lines, "\n", false), input, Right::Bytes(file(lines, "\n", true)))
            }
            14 => case(format!("{names}{numbers}\n{body}").replace(path.as_str(), "other/name.txt"), right),
            _ => {
                let original = file(&spot.program.lines, "\n", false);
                let right = Right::Bytes(file(&spot.after(), "\n", false));
                spot.edit("unified", original, format!("{names}{numbers}\n{body}"), right)
            }
        }
    })
}

pub fn envelope(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let path = &spot.program.path;
        let (_, lines, ..) = hunk(&spot, 2);
        let body = lines.join("\n") + "\n";
        let wrap = |body: &str| format!("*** Begin Patch\n*** Update File: {path}\n{body}*** End Patch\n");
        let (original, right) = plain(&spot);
        let case = |input: String, right: Right| spot.edit("envelope", original.clone(), input, right);
        match number {
            0 => case(wrap(&format!("@@\n{body}")), right),
            1 => case(wrap(&body), right),
            2 => case(format!("apply_patch <<'EOF'\n{}EOF\n", wrap(&format!("@@\n{body}"))), right),
            3 => case(wrap(&body).replace("*** End Patch", "  *** End Patch  "), right),
            4 => {
                let right = Right::Bytes(file(&spot.after(), "\n", false));
                spot.edit("envelope", file(&spot.program.lines, "\n", false), wrap(&body), right)
            }
            5 => {
                let right = Right::Bytes(file(&spot.after(), "\r\n", true));
                spot.edit("envelope", file(&spot.program.lines, "\r\n", true), wrap(&body), right)
            }
            6 => {
                let after = [&spot.program.lines[..], &["tail = 1".into()]].concat();
                case(wrap("@@\n+tail = 1\n"), Right::Bytes(file(&after, "\n", true)))
            }
            // The same line in every function: the line that opens the function says which.
            7..=9 => {
                let mut lines = spot.program.lines.clone();
                let id = random.below(900);
                for name in ["alpha", "beta", "gamma"] {
                    lines.extend([
                        format!("def {name}_{id}():"),
                        "    value = 1".into(),
                        "    return value".into(),
                        String::new(),
                    ]);
                }
                let name = ["alpha", "beta", "gamma"][number - 7];
                let opened = lines.iter().position(|line| *line == format!("def {name}_{id}():")).unwrap();
                let mut after = lines.clone();
                after[opened + 1] = "    value = 2".into();
                let input = wrap(&format!("@@ def {name}_{id}():\n-    value = 1\n+    value = 2\n"));
                spot.edit("envelope", file(&lines, "\n", true), input, Right::Bytes(file(&after, "\n", true)))
            }
            10 => {
                let mut lines = spot.program.lines.clone();
                lines.insert(0, "end_mark = 1".into());
                lines.push("end_mark = 1".into());
                let mut after = lines.clone();
                *after.last_mut().unwrap() = "end_mark = 2".into();
                let input = wrap("@@\n-end_mark = 1\n+end_mark = 2\n*** End of File\n");
                spot.edit("envelope", file(&lines, "\n", true), input, Right::Bytes(file(&after, "\n", true)))
            }
            11 => case(wrap(&body).replace("*** End Patch\n", ""), code("edit.unparsed")),
            12 => case(wrap(&body.replace('-', "-not ")), code("edit.not_found")),
            13 => case(wrap(&body).replace(path.as_str(), "other/name.txt"), code("edit.outside")),
            14 => case(format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n"), code("edit.exists")),
            // Only removals.
            _ => {
                let removed: String = spot.old().iter().map(|line| format!("-{line}\n")).collect();
                let rest = [&spot.program.lines[..spot.first], &spot.program.lines[spot.last..]].concat();
                case(wrap(&removed), Right::Bytes(file(&rest, "\n", true)))
            }
        }
    })
}

/// Patches over several files.
pub fn patches(random: &mut Random) -> Vec<Case> {
    (0..EACH)
        .map(|number| {
            let (one, two) = (Spot::new(random, number), Spot::new(random, number + 3));
            let (a, b) = (format!("a/{}", one.program.path), format!("b/{}", two.program.path));
            let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
            files.insert(a.clone(), one.program.text().into_bytes());
            files.insert(b.clone(), file(&two.program.lines, if number % 2 == 0 { "\n" } else { "\r\n" }, number % 3 != 0));
            files.insert("old.txt".into(), b"old\ntext\n".to_vec());
            let mut after = files.clone();
            after.insert(a.clone(), file(&one.after(), "\n", true));
            after.insert(b.clone(), file(&two.after(), if number % 2 == 0 { "\n" } else { "\r\n" }, number % 3 != 0));
            let ((at, lines, old, new), (at_two, lines_two, old_two, new_two)) = (hunk(&one, 3), hunk(&two, 3));
            let (body, body_two) = (lines.join("\n"), lines_two.join("\n"));
            let mut right = None;
            let envelope = |more: &str| {
                format!("*** Begin Patch\n*** Update File: {a}\n@@\n{body}\n*** Update File: {b}\n@@\n{body_two}\n{more}*** End Patch\n")
            };
            let diff = |more: &str| {
                format!(
                    "diff --git a/{a} b/{a}\n--- a/{a}\n+++ b/{a}\n@@ -{0},{old} +{0},{new} @@\n{body}\ndiff --git a/{b} b/{b}\n--- a/{b}\n+++ b/{b}\n@@ -{1},{old_two} +{1},{new_two} @@\n{body_two}\n{more}",
                    at + 1, at_two + 1
                )
            };
            let patch = match number {
                0 | 1 => envelope(""),
                2 | 3 => diff(""),
                4 => {
                    after.insert("new.txt".into(), b"n\n".to_vec());
                    envelope("*** Add File: new.txt\n+n\n")
                }
                5 => {
                    after.remove("old.txt");
                    envelope("*** Delete File: old.txt\n")
                }
                6 => {
                    after.remove("old.txt");
                    after.insert("moved.txt".into(), b"new\ntext\n".to_vec());
                    envelope("*** Update File: old.txt\n*** Move to: moved.txt\n@@\n-old\n+new\n text\n")
                }
                7 => {
                    let content = after.remove("old.txt").unwrap();
                    after.insert("moved.txt".into(), content);
                    diff("diff --git a/old.txt b/moved.txt\nsimilarity index 100%\nrename from old.txt\nrename to moved.txt\n")
                }
                8 => {
                    after.remove("old.txt");
                    diff("diff --git a/old.txt b/old.txt\ndeleted file mode 100644\n--- a/old.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-old\n-text\n")
                }
                9 => {
                    after.insert("new.txt".into(), b"n".to_vec());
                    diff("--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+n\n\\ No newline at end of file\n")
                }
                // One part is wrong: nothing is done.
                10 => {
                    right = Some("edit.not_found");
                    envelope("*** Update File: old.txt\n@@\n-older\n+new\n")
                }
                11 => {
                    right = Some("edit.missing");
                    envelope("*** Update File: nowhere.txt\n@@\n-old\n+new\n")
                }
                12 => {
                    right = Some("edit.exists");
                    envelope("*** Add File: old.txt\n+new\n")
                }
                13 => {
                    right = Some("edit.outside");
                    envelope("*** Update File: ../old.txt\n@@\n-old\n+new\n")
                }
                14 => {
                    right = Some("edit.not_found");
                    diff("--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n")
                }
                _ => {
                    right = Some("edit.exists");
                    envelope("*** Update File: old.txt\n*** Move to: ").replace("Move to: ", &format!("Move to: {a}\n"))
                }
            };
            let right = right.map_or(Right::Files(after), code);
            Case { category: "patches".into(), task: Task::Patch { files, patch }, right }
        })
        .collect()
}

pub fn xml(random: &mut Random) -> Vec<Case> {
    each(random, |_, number, spot| {
        let (old, new) = (spot.old().join("\n"), spot.new.join("\n"));
        let pair = |old: &str, new: &str| format!("<old_text>\n{old}\n</old_text>\n<new_text>\n{new}\n</new_text>\n");
        let (original, right) = plain(&spot);
        match number % 8 {
            0 | 1 => spot.edit("xml", original, pair(&old, &new), right),
            2 => spot.edit("xml", original, format!("<edits>\n{}</edits>\n", pair(&old, &new)), right),
            3 => spot.edit(
                "xml",
                original,
                format!("Done:\n\n<old_text line={}>{old}</old_text><new_text>{new}</new_text>\n", spot.first + 1),
                right,
            ),
            4 => {
                let original = file(&spot.program.lines, "\r\n", true);
                spot.edit("xml", original, pair(&old, &new), Right::Bytes(file(&spot.after(), "\r\n", true)))
            }
            5 => spot.edit("xml", original, format!("<old_text>{old}</old_text>"), code("edit.unparsed")),
            6 => {
                let escape = |text: &str| {
                    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
                };
                let mut lines = spot.program.lines.clone();
                lines.push(format!("a < b && \"{number}\""));
                let mut after = lines.clone();
                *after.last_mut().unwrap() = "a > b".into();
                let input = pair(&escape(lines.last().unwrap()), &escape("a > b"));
                spot.edit("xml", file(&lines, "\n", true), input, Right::Bytes(file(&after, "\n", true)))
            }
            _ => spot.edit("xml", original, pair(&format!("{old} gone"), &new), code("edit.not_found")),
        }
    })
}

pub fn json(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let (old, new) = (spot.old().join("\n"), spot.new.join("\n"));
        let quoted = |text: &str| json!(text).to_string();
        let raw = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let (original, right) = plain(&spot);
        let case = |input: String, right: Right| spot.edit("json", original.clone(), input, right);
        match number % 8 {
            0 => case(json!({ "search": old, "replace": new }).to_string(), right),
            1 => case(json!([{ "old_string": old, "new_string": new }]).to_string(), right),
            2 => case(format!("{{search: {}, replace: {},}}", quoted(&old), quoted(&new)), right),
            // Line breaks as they are, and single quotes around the keys.
            3 => case(format!("{{'search': \"{}\", 'replace': \"{}\"}}", raw(&old), raw(&new)), right),
            4 => case(format!("search=\"{}\" replace=\"{}\"", raw(&old), raw(&new)), right),
            5 => case(format!("```json\n{}\n```\n", json!({ "search": old, "replace": new })), right),
            6 => case(format!("{{\"search\": {}, \"repl", quoted(&old)), code("edit.unparsed")),
            _ => {
                let gone = format!("{old} {}", random.below(900));
                case(json!({ "search": gone, "replace": new }).to_string(), code("edit.not_found"))
            }
        }
    })
}

pub fn sed(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let id = random.below(900) + 10;
        let with = |there: &[&str], after: &[&str], input: String| {
            let lines = |more: &[&str]| {
                let more: Vec<String> = more.iter().map(|line| line.replace("ID", &id.to_string())).collect();
                file(&[&spot.program.lines[..], &more].concat(), "\n", true)
            };
            spot.edit("sed", lines(there), input.replace("ID", &id.to_string()), Right::Bytes(lines(after)))
        };
        let refused =
            |there: &[&str], input: &str, why: &str| Case { right: code(why), ..with(there, there, input.to_owned()) };
        match number {
            0 => with(&["size_ID = 1"], &["size_ID = 2"], "s/size_ID = 1/size_ID = 2/".into()),
            1 => with(&["dir/ID/x"], &["out/ID/x"], "s|dir/ID|out/ID|".into()),
            2 => with(&["k_ID, k_ID, k_ID"], &["v_ID, v_ID, v_ID"], "s/k_ID/v_ID/g".into()),
            3 => refused(&["k_ID, k_ID"], "s/k_ID/v_ID/", "edit.ambiguous"),
            4 => with(&["go_ID(); go_ID;"], &["stop(&); go_ID;"], "s/go_ID()/stop(\\&)/".into()),
            5 => with(&["key_ID=val"], &["val=key_ID"], "s/(key_ID)=(val)/\\2=\\1/".into()),
            6 => with(&["key_ID=val"], &["val=key_ID"], "s/\\(key_ID\\)=\\(val\\)/\\2=\\1/".into()),
            7 => with(&["x_ID.y x_ID-y"], &["z x_ID-y"], "s/x_ID.y/z/".into()),
            8 => with(&["mark_ID"], &["[mark_ID]!"], "s/mark_ID/[&]!/".into()),
            9 => with(&["cost_ID"], &["$1 $cost"], "s/cost_ID/$1 $cost/".into()),
            10 => with(&["aa_ID bb_ID"], &["bb_ID aa_ID"], "s/aa_ID/bb_ID/; s/bb_ID/aa_ID/".into()),
            11 => with(
                &["q_ID('a')"],
                &["r_ID('a')"],
                "sed -i \"s/q_ID('a')/r_ID('a')/\" PATH".replace("PATH", &spot.program.path),
            ),
            12 => refused(&["a_ID"], "s/b_ID/c/", "edit.not_found"),
            13 => refused(&["a_ID"], "s/a_ID/b", "edit.unparsed"),
            14 => refused(&["abc_ID"], "s/abc_ID/x/; s/c_ID/y/", "edit.overlap"),
            _ => with(&["say_ID(\u{201c}hi\u{201d})"], &["say_ID()"], "s/say_ID(\"hi\")/say_ID()/".into()),
        }
    })
}

pub fn whole(random: &mut Random) -> Vec<Case> {
    each(random, |_, number, spot| {
        let text: String = spot.after().iter().map(|line| format!("{line}\n")).collect();
        let (original, right) = plain(&spot);
        let fenced = format!("```{}\n{text}```\n", spot.program.language.name);
        match number % 8 {
            0 | 1 => spot.edit("whole", original, fenced, right),
            2 => spot.edit("whole", original, format!("\n~~~~\n{text}~~~~"), right),
            3 => {
                let right = Right::Bytes(file(&spot.after(), "\r\n", false));
                spot.edit("whole", file(&spot.program.lines, "\r\n", false), fenced, right)
            }
            4 => {
                let task = Task::Edit { path: spot.program.path.clone(), original: None, input: fenced };
                Case { category: "whole".into(), task, right: Right::Bytes(text.into_bytes()) }
            }
            5 => spot.edit("whole", original, format!("Here is the file:\n\n{fenced}"), code("edit.unparsed")),
            6 => spot.edit("whole", original, format!("```\n{text}"), code("edit.unparsed")),
            _ => spot.edit("whole", original, format!("```\n{}```", spot.program.text()), code("edit.no_change")),
        }
    })
}

/// Two dialects at once, or none.
pub fn unclear(random: &mut Random) -> Vec<Case> {
    each(random, |_, number, spot| {
        let (old, new) = (spot.old().join("\n"), spot.new.join("\n"));
        let (_, lines, ..) = hunk(&spot, 1);
        let path = &spot.program.path;
        let block = format!("<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n");
        let diff = format!("--- a/{path}\n+++ b/{path}\n@@\n{}\n", lines.join("\n"));
        let xml = format!("<old_text>{old}</old_text>\n<new_text>{new}</new_text>\n");
        let (input, why) = match number % 8 {
            0 => (format!("{block}\n{diff}"), "edit.mixed"),
            1 => (format!("*** Begin Patch\n*** Update File: {path}\n{block}*** End Patch\n"), "edit.mixed"),
            2 => (format!("{xml}{block}"), "edit.mixed"),
            3 => (format!("*** Begin Patch\n*** Update File: {path}\n{diff}*** End Patch\n"), "edit.mixed"),
            4 => (String::new(), "edit.unparsed"),
            5 => (format!("Please replace `{}` by something better.", old.trim()), "edit.unparsed"),
            6 => (format!("<<<<<<< SEARCH\n{old}\n>>>>>>> REPLACE\n"), "edit.unparsed"),
            _ => (format!("{diff}{xml}"), "edit.mixed"),
        };
        spot.edit("unclear", spot.program.text().into_bytes(), input, code(why))
    })
}
