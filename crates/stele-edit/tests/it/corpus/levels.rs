//! Cases about finding the place: structured edits with the slips that models make.

use serde_json::json;

use super::case::{Case, Right, Task};
use super::program::{LANGUAGES, Program, Random, program};

/// Cases in a category.
pub const EACH: usize = 16;

/// A change of whole lines in a program: what is there and what it becomes.
pub struct Spot {
    pub program: Program,
    pub first: usize,
    pub last: usize,
    pub new: Vec<String>,
}

impl Spot {
    /// A change around one statement, with lines of context.
    pub fn new(random: &mut Random, number: usize) -> Self {
        let language = LANGUAGES[number % LANGUAGES.len()];
        let functions = random.below(5) + 3;
        let made = program(random, language, functions);
        Self::within(random, made)
    }

    pub fn within(random: &mut Random, program: Program) -> Self {
        let statement = program.statements[random.below(program.statements.len())];
        let function = program.functions.iter().find(|(first, last)| (*first..*last).contains(&statement));
        let (start, end) = function.copied().unwrap_or((statement, statement + 1));
        let first = statement.saturating_sub(random.below(3)).max(start);
        let last = (statement + 1 + random.below(3)).min(end);
        let mut new = program.lines[first..last].to_vec();
        let indent = program.language.indent;
        new[statement - first] = format!("{indent}replaced_{} = {}", random.below(900), random.below(900));
        if random.chance(40) {
            new.insert(statement - first + 1, format!("{indent}added_{} = \"new\"", random.below(900)));
        }
        Self { program, first, last, new }
    }

    pub fn old(&self) -> Vec<String> {
        self.program.lines[self.first..self.last].to_vec()
    }

    /// The program after the change.
    pub fn after(&self) -> Vec<String> {
        [&self.program.lines[..self.first], &self.new, &self.program.lines[self.last..]].concat()
    }

    pub fn edit(&self, category: &str, original: Vec<u8>, input: String, right: Right) -> Case {
        let task = Task::Edit { path: self.program.path.clone(), original: Some(original), input };
        Case { category: category.to_owned(), task, right }
    }
}

pub fn structured(old: &str, new: &str) -> String {
    json!({ "edits": [{ "old": old, "new": new }] }).to_string()
}

/// Lines as the bytes of a file.
pub fn file(lines: &[String], end: &str, closed: bool) -> Vec<u8> {
    let mut text = lines.join(end);
    if closed {
        text.push_str(end);
    }
    text.into_bytes()
}

pub fn code(code: &str) -> Right {
    Right::Code(code.to_owned())
}

fn each(random: &mut Random, mut make: impl FnMut(&mut Random, usize, Spot) -> Case) -> Vec<Case> {
    (0..EACH)
        .map(|number| Spot::new(random, number))
        .collect::<Vec<_>>()
        .into_iter()
        .enumerate()
        .map(|(number, spot)| make(random, number, spot))
        .collect()
}

/// Old and new text, with or without the last line end.
fn texts(spot: &Spot, closed: bool) -> (String, String) {
    let end = if closed { "\n" } else { "" };
    (spot.old().join("\n") + end, spot.new.join("\n") + end)
}

pub fn exact(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let (mut old, mut new) = texts(&spot, number % 2 == 0);
        let mut after = file(&spot.after(), "\n", true);
        match number % 4 {
            // Inside a line, and a removal.
            1 => {
                let line = spot.old()[0].clone();
                let statement = line.trim();
                let unique = spot.program.text().matches(statement).count() == 1;
                if unique && statement.len() > 6 {
                    (old, new) = (statement.to_owned(), format!("changed({})", random.below(99)));
                    after = spot.program.text().replacen(&old, &new, 1).into_bytes();
                }
            }
            3 => {
                (old, new) = (spot.old().join("\n") + "\n", String::new());
                let rest = [&spot.program.lines[..spot.first], &spot.program.lines[spot.last..]].concat();
                after = file(&rest, "\n", true);
            }
            _ => {}
        }
        spot.edit("exact", spot.program.text().into_bytes(), structured(&old, &new), Right::Bytes(after))
    })
}

/// The same statement at several places: refused, unless the edit says which.
pub fn ambiguous(random: &mut Random) -> Vec<Case> {
    (0..EACH)
        .map(|number| {
            let language = LANGUAGES[number % LANGUAGES.len()];
            let made = program(random, language, 6 + number % 3);
            let line = format!("{}return limit{}", language.indent, if line_ends(&made) { ";" } else { "" });
            let at: Vec<usize> = (0..made.lines.len()).filter(|index| made.lines[*index] == line).collect();
            let pick = at[random.below(at.len())];
            let mut edit = json!({ "old": line, "new": format!("{}return {number}", language.indent) });
            let mut after = made.lines.clone();
            let mut right = code("edit.ambiguous");
            match number % 4 {
                1 => {
                    edit["near_line"] = json!(pick + 1);
                    after[pick] = format!("{}return {number}", language.indent);
                    right = Right::Bytes(file(&after, "\n", true));
                }
                2 => {
                    edit["all"] = json!(true);
                    at.iter().for_each(|index| after[*index] = format!("{}return {number}", language.indent));
                    right = Right::Bytes(file(&after, "\n", true));
                }
                // Far from all of them.
                3 => edit["near_line"] = json!(made.lines.len() + 60),
                _ => {}
            }
            let task = Task::Edit {
                path: made.path.clone(),
                original: Some(made.text().into_bytes()),
                input: json!({ "edits": [edit] }).to_string(),
            };
            Case { category: "ambiguous".into(), task, right }
        })
        .collect()
}

fn line_ends(program: &Program) -> bool {
    program.lines.iter().any(|line| line.ends_with("return limit;"))
}

/// The model remembers another version of the file.
pub fn not_found(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let mut old = spot.old();
        let at = random.below(old.len());
        match number % 4 {
            0 => old[at] = old[at].replace('_', "_old_"),
            1 => old.insert(at + 1, format!("{}extra_line = 1", spot.program.language.indent)),
            2 => old[at] = format!("{} + 1", old[at].trim_end_matches(';')),
            _ => old = vec!["this is not".into(), "in the file".into()],
        }
        if old == spot.old() {
            old.push("never there".into());
        }
        let input = structured(&old.join("\n"), &spot.new.join("\n"));
        spot.edit("not_found", spot.program.text().into_bytes(), input, code("edit.not_found"))
    })
}

/// The first and the last line are right, but they are far apart in the file.
pub fn distant(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let (first, _) = spot.program.functions[0];
        let last = *spot.program.statements.last().unwrap();
        let mut old = vec![spot.program.lines[first].clone()];
        old.extend(spot.old().into_iter().take(number % 2).map(|line| format!("{line} // moved")));
        old.push(spot.program.lines[last].clone());
        let new = format!("{}gone_{} = 0", spot.program.language.indent, random.below(99));
        let mut right = code("edit.not_found");
        if last == first + 1 && old.len() == 2 {
            let rest =
                [&spot.program.lines[..first], std::slice::from_ref(&new), &spot.program.lines[last + 1..]].concat();
            right = Right::Bytes(file(&rest, "\n", true));
        }
        spot.edit("distant_anchors", spot.program.text().into_bytes(), structured(&old.join("\n"), &new), right)
    })
}

pub fn line_ends_of_the_file(random: &mut Random) -> Vec<Case> {
    each(random, |_, number, spot| {
        let (old, new) = texts(&spot, number % 3 == 0);
        if number % 4 != 3 {
            let original = file(&spot.program.lines, "\r\n", true);
            let after = file(&spot.after(), "\r\n", true);
            let (old, new) = if number % 4 == 1 { (old.replace('\n', "\r\n"), new) } else { (old, new) };
            return spot.edit("line_ends", original, structured(&old, &new), Right::Bytes(after));
        }
        // Half of the file was pasted from elsewhere: every line outside the change keeps its own end.
        let ended = |lines: &[String], crlf: bool| {
            lines.iter().map(|line| format!("{line}{}", if crlf { "\r\n" } else { "\n" })).collect::<String>()
        };
        let (before, rest) = (&spot.program.lines[..spot.first], &spot.program.lines[spot.last..]);
        let original = ended(before, true) + &ended(&spot.old(), false) + &ended(rest, true);
        let after = ended(before, true) + &ended(&spot.new, false) + &ended(rest, true);
        spot.edit("line_ends", original.into_bytes(), structured(&old, &new), Right::Bytes(after.into_bytes()))
    })
}

/// Files that end without a line end, changed at the end and elsewhere.
pub fn final_newline(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let end = if number % 3 == 2 { "\r\n" } else { "\n" };
        if number % 2 == 0 {
            let (old, new) = texts(&spot, true);
            let original = file(&spot.program.lines, end, false);
            let after = file(&spot.after(), end, false);
            return spot.edit("final_newline", original, structured(&old, &new), Right::Bytes(after));
        }
        // The last lines themselves; the model writes a line end after them.
        let mut lines = spot.program.lines.clone();
        lines.extend(["last_one = 1".to_owned(), format!("last_two = {}", random.below(99) + 1)]);
        let mut after = lines.clone();
        *after.last_mut().unwrap() = "last_two = 0".into();
        let old = format!("last_one = 1\n{}\n", lines.last().unwrap());
        let input = structured(&old, "last_one = 1\nlast_two = 0\n");
        spot.edit("final_newline", file(&lines, end, false), input, Right::Bytes(file(&after, end, false)))
    })
}

pub fn trailing_space(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let dirt = [" ", "  ", "\t", "    "][random.below(4)];
        let crlf = if number % 5 == 4 { "\r\n" } else { "\n" };
        let (old, new) = (spot.old(), spot.new.clone());
        let dirty = |lines: &[String]| lines.iter().map(|line| format!("{line}{dirt}")).collect::<Vec<_>>();
        if number % 2 == 0 {
            // The file has the space; lines that stay keep it.
            let mut lines = spot.program.lines.clone();
            lines[spot.first..spot.last].clone_from_slice(&dirty(&old));
            let kept = new.iter().map(|line| if old.contains(line) { format!("{line}{dirt}") } else { line.clone() });
            let after = [&lines[..spot.first], &kept.collect::<Vec<_>>(), &lines[spot.last..]].concat();
            let input = structured(&(old.join("\n") + "\n"), &(new.join("\n") + "\n"));
            return spot.edit(
                "trailing_space",
                file(&lines, crlf, true),
                input,
                Right::Bytes(file(&after, crlf, true)),
            );
        }
        // The model wrote it.
        let input = structured(&(dirty(&old).join("\n") + "\n"), &(new.join("\n") + "\n"));
        let after = [&spot.program.lines[..spot.first], &new, &spot.program.lines[spot.last..]].concat();
        let original = file(&spot.program.lines, crlf, true);
        spot.edit("trailing_space", original, input, Right::Bytes(file(&after, crlf, true)))
    })
}

/// Typographic quotes, dashes, spaces and decomposed letters, in the file or in what the model writes.
pub fn unicode(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let pairs = [
            ("say(\"yes - no\")", "say(\u{201c}yes \u{2013} no\u{201d})"),
            ("it's = 'a'", "it\u{2019}s\u{a0}=\u{202f}\u{2018}a\u{2019}"),
            ("caf\u{e9} = na\u{ef}ve", "cafe\u{301} = nai\u{308}ve"),
            ("range: 1-2, 3-4", "range: 1\u{2013}2,\u{2009}3\u{2212}4"),
        ];
        let (plain, fancy) = pairs[number % pairs.len()];
        let indent = spot.program.language.indent;
        let (there, written) = if number % 2 == 0 { (fancy, plain) } else { (plain, fancy) };
        let id = random.below(900);
        let mut lines = spot.program.lines.clone();
        let mark = format!("{indent}marker_{id} = 0");
        lines.splice(spot.first..spot.first, [format!("{indent}{there}"), mark.clone()]);
        let mut after = lines.clone();
        after[spot.first + 1] = format!("{indent}marker_{id} = 1");
        // The first line stays as the file has it, the second changes.
        let old = format!("{indent}{written}\n{mark}");
        let new = format!("{indent}{written}\n{indent}marker_{id} = 1");
        let right = Right::Bytes(file(&after, "\n", true));
        spot.edit("unicode", file(&lines, "\n", true), structured(&old, &new), right)
    })
}

fn reindent(lines: &[String], from: &str, to: &str) -> Vec<String> {
    lines
        .iter()
        .map(|line| {
            let rest = line.trim_start_matches([' ', '\t']);
            let levels = (line.len() - rest.len()) / from.len();
            format!("{}{rest}", to.repeat(levels))
        })
        .collect()
}

/// A whole function, written at another depth or with the other kind of indentation.
pub fn indentation(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let indent = spot.program.language.indent;
        let (first, last) = spot.program.functions[random.below(spot.program.functions.len())];
        let statement = spot.program.statements.iter().copied().find(|at| (first..last).contains(at)).unwrap_or(first);
        let old = spot.program.lines[first..last].to_vec();
        let mut new = old.clone();
        new[statement - first] = format!("{indent}changed_{} = 7", random.below(900));
        new.insert(statement - first + 1, format!("{indent}{indent}deeper_{} = 8", random.below(900)));
        let deeper = |lines: &[String], by: &str| {
            lines
                .iter()
                .map(|line| if line.is_empty() { line.clone() } else { format!("{by}{line}") })
                .collect::<Vec<_>>()
        };
        // The file may hold it deeper, as in a class or a module.
        let by = if number % 3 == 0 { "" } else { indent };
        let lines = deeper(&spot.program.lines, by);
        let (old_there, new_there) = (deeper(&old, by), deeper(&new, by));
        let (old, new) = match number % 3 {
            1 => (old, new),
            2 => (deeper(&old_there, indent), deeper(&new_there, indent)),
            _ if indent == "\t" => (reindent(&old_there, "\t", "    "), reindent(&new_there, "\t", "    ")),
            _ => (reindent(&old_there, indent, "\t"), reindent(&new_there, indent, "\t")),
        };
        let after = [&lines[..first], &new_there, &lines[last..]].concat();
        let input = structured(&(old.join("\n") + "\n"), &(new.join("\n") + "\n"));
        spot.edit("indentation", file(&lines, "\n", true), input, Right::Bytes(file(&after, "\n", true)))
    })
}

/// Indentation that is scaled or uneven is another text.
pub fn uneven_indentation(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let indent = spot.program.language.indent;
        let (first, last) = spot.program.functions[random.below(spot.program.functions.len())];
        let old = spot.program.lines[first..last].to_vec();
        let mut written = match number % 2 {
            0 if indent == "\t" => reindent(&old, indent, "\t\t"),
            0 => reindent(&old, indent, &indent.repeat(2)),
            _ => old.clone(),
        };
        if number % 2 == 1 {
            let at = (old.len() / 2..).find(|at| !old[*at].is_empty()).unwrap();
            written[at] = format!("   {}", written[at]);
        }
        let mut new = written.clone();
        new[1] = format!("{indent}changed_{} = 7", random.below(900));
        let input = structured(&written.join("\n"), &new.join("\n"));
        spot.edit("uneven_indentation", spot.program.text().into_bytes(), input, code("edit.not_found"))
    })
}

/// Two blocks that differ in depth only, and an old text that is at neither depth.
pub fn look_alike(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let id = random.below(900);
        let block = [format!("flush_{id}()"), format!("return item_{id}")];
        let (one, two) = if number % 2 == 0 { ("\t\t", "\t\t\t") } else { ("      ", "          ") };
        let mut lines = spot.program.lines.clone();
        lines.push("first:".into());
        lines.extend(block.iter().map(|line| format!("{one}{line}")));
        lines.push("second:".into());
        lines.extend(block.iter().map(|line| format!("{two}{line}")));
        let written = if number % 2 == 0 { "    " } else { "  " };
        let old: Vec<String> = block.iter().map(|line| format!("{written}{line}")).collect();
        let input = if number % 4 < 2 {
            structured(&old.join("\n"), &format!("{written}done_{id}()"))
        } else {
            let removed: Vec<String> = old.iter().map(|line| format!("-{line}")).collect();
            format!(
                "*** Begin Patch\n*** Update File: {}\n@@\n{}\n*** End Patch\n",
                spot.program.path,
                removed.join("\n")
            )
        };
        spot.edit("look_alike", file(&lines, "\n", true), input, code("edit.ambiguous"))
    })
}

pub fn escapes(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let id = random.below(900);
        let indent = spot.program.language.indent;
        let (there, slipped) = match number % 3 {
            0 => (format!("print(\"value_{id}\")"), format!("print(\\\"value_{id}\\\")")),
            1 => (format!("list_{id}[0] = row[1]"), format!("list_{id}\\[0\\] = row\\[1\\]")),
            _ => (format!("text_{id} = \"a\\tb\""), format!("text_{id} = \\\"a\\\\tb\\\"")),
        };
        let next = format!("{indent}following_{id} = 2");
        let mut lines = spot.program.lines.clone();
        lines.splice(spot.first..spot.first, [format!("{indent}{there}"), next.clone()]);
        let original = file(&lines, "\n", true);
        let mut after = lines;
        match number % 4 {
            // The line end between the two lines is escaped too.
            1 => {
                let new = format!("{indent}both_{id} = 0");
                after.splice(spot.first..spot.first + 2, [new.clone()]);
                let input = structured(&format!("{indent}{slipped}\\n{next}"), &new);
                spot.edit("escapes", original, input, Right::Bytes(file(&after, "\n", true)))
            }
            // The new text has the same slips.
            2 => {
                let new = slipped.replace("value", "other").replace("row", "column").replace("text", "words");
                spot.edit("escapes", original, structured(&slipped, &new), code("edit.escape_slip"))
            }
            // Escapes that are the new text's own.
            _ => {
                let new = format!("{indent}print('ok {id}\\n')");
                after[spot.first] = new.clone();
                let input = structured(&format!("{indent}{slipped}"), &new);
                spot.edit("escapes", original, input, Right::Bytes(file(&after, "\n", true)))
            }
        }
    })
}

/// New text that some replacement function would expand or decode.
pub fn literal(random: &mut Random) -> Vec<Case> {
    let texts = [
        "a$&b $$ $1 ${0} $` $' \\1 \\0 &",
        "puts(\"a\\tb\\n\"); char nul = '\\0';",
        "re = r\"\\d+\\\\s\"; path = \"C:\\\\new\\\\table\"",
        "sed 's/\\(a\\)/\\1&/g' <<'EOF' | tr '\\n' ' '",
        "f\"{x!r:>{w}}\" % (\"%s\", \"%%\") # \u{1f600} \\u00e9",
        "<b>&lt;x&gt; &amp; \"y\"</b>",
        "```not a fence``` --- +++ @@ *** <<<<<<< =======",
        "     1\u{2192}not a gutter",
    ];
    each(random, |random, number, spot| {
        let indent = spot.program.language.indent;
        let text = format!("{indent}{} {}", texts[number % texts.len()], random.below(900));
        let old = spot.old();
        let mut lines = spot.program.lines.clone();
        let after: Vec<String> = [&lines[..spot.first], std::slice::from_ref(&text), &lines[spot.last..]].concat();
        if number % 2 == 0 {
            let input = structured(&old.join("\n"), &text);
            return spot.edit("literal", file(&lines, "\n", true), input, Right::Bytes(file(&after, "\n", true)));
        }
        // The other way round: such a line is what is found.
        lines = after;
        let mut back = lines.clone();
        back[spot.first] = format!("{indent}plain");
        let input = structured(&text, &format!("{indent}plain"));
        spot.edit("literal", file(&lines, "\n", true), input, Right::Bytes(file(&back, "\n", true)))
    })
}

pub fn blank_lines(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let indent = spot.program.language.indent;
        let id = random.below(900);
        let block: Vec<String> =
            ["one", "two", "three"].iter().map(|name| format!("{indent}{name}_{id} = 0")).collect();
        let (one, two, three) = (block[0].clone(), block[1].clone(), block[2].clone());
        let blank = String::new;
        // How the file has it, how the model writes it; only the last line changes.
        let (there, written) = match number % 4 {
            0 => (vec![one, blank(), blank(), two, three], vec![0, 9, 1, 2]),
            1 => (vec![one, two, blank(), three], vec![0, 1, 2]),
            2 => (vec![one, two, three], vec![0, 9, 1, 9, 2]),
            _ => (vec![one, blank(), two, blank(), three], vec![0, 1, 2]),
        };
        let write = |last: &str| {
            let line = |index: &usize| match index {
                9 => String::new(),
                2 => last.to_owned(),
                index => block[*index].clone(),
            };
            written.iter().map(line).collect::<Vec<_>>().join("\n")
        };
        let changed = format!("{indent}three_{id} = 3");
        let mut lines = spot.program.lines.clone();
        lines.splice(spot.first..spot.first, there.iter().cloned());
        let mut after = lines.clone();
        after[spot.first + there.len() - 1] = changed.clone();
        let input = structured(&write(&block[2]), &write(&changed));
        spot.edit("blank_lines", file(&lines, "\n", true), input, Right::Bytes(file(&after, "\n", true)))
    })
}

/// Files in other encodings, with stray bytes, and files that are no text.
pub fn encodings(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let (old, new) = texts(&spot, true);
        let mut original = spot.program.text().into_bytes();
        let mut after = file(&spot.after(), "\n", true);
        let strays: [&[u8]; 4] = [
            b"// d\xe9j\xe0 vu\n",
            b"# \x93quoted\x94 \x80\n",
            b"/* \xc3( \xff\xfe */\n",
            b"// \x83e\x83X\x83g \x93\xfa\x96{\n",
        ];
        let stray = strays[number % 4];
        let front = number % 3 == 0;
        for bytes in [&mut original, &mut after] {
            let at = if front { 0 } else { bytes.len() };
            bytes.splice(at..at, stray.iter().copied());
        }
        match number % 8 {
            // New text that the encoding cannot take.
            5 => {
                let new = format!("{new}// \u{20ac} {}\n", random.below(9));
                spot.edit("encodings", original, structured(&old, &new), code("edit.encoding"))
            }
            6 => {
                let wide: Vec<u8> = spot.program.text().encode_utf16().flat_map(u16::to_le_bytes).collect();
                let original = [&b"\xff\xfe"[..], &wide].concat();
                spot.edit("encodings", original, structured(&old, &new), code("edit.encoding"))
            }
            7 => {
                original.extend(b"\0\x01\x02");
                spot.edit("encodings", original, structured(&old, &new), code("edit.binary"))
            }
            _ => spot.edit("encodings", original, structured(&old, &new), Right::Bytes(after)),
        }
    })
}

pub fn byte_order_marks(random: &mut Random) -> Vec<Case> {
    each(random, |_, number, mut spot| {
        if number % 2 == 0 {
            // The change is at the very start.
            spot.first = 0;
            spot.last = 1;
            spot.new = vec![format!("# changed {number}")];
        }
        let (old, new) = texts(&spot, number % 3 == 0);
        let end = if number % 4 == 1 { "\r\n" } else { "\n" };
        let marked = |lines: &[String]| [&b"\xef\xbb\xbf"[..], &file(lines, end, true)].concat();
        let after = marked(&spot.after());
        let original = marked(&spot.program.lines);
        spot.edit("byte_order_mark", original, structured(&old, &new), Right::Bytes(after))
    })
}

/// Several edits in one call.
pub fn several(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let made = &spot.program;
        let at: Vec<usize> =
            vec![made.statements[0], made.statements[made.statements.len() / 2], *made.statements.last().unwrap()];
        let edit = |index: usize, new: String| json!({ "old": made.lines[index], "new": new });
        let new = |tag: &str| format!("{}{tag}_{number}", made.language.indent);
        let mut edits = vec![edit(at[2], new("third")), edit(at[0], new("first")), edit(at[1], new("second"))];
        let mut after = made.lines.clone();
        (after[at[0]], after[at[1]], after[at[2]]) = (new("first"), new("second"), new("third"));
        let mut right = Right::Bytes(file(&after, "\n", true));
        match number % 5 {
            // One has no place: none is made.
            1 => {
                edits.push(json!({ "old": format!("nowhere {}", random.below(99)), "new": "x" }));
                right = code("edit.not_found");
            }
            2 => {
                edits.push(json!({ "old": format!("{}\n", made.lines[at[0]]), "new": "x\n" }));
                right = code("edit.overlap");
            }
            3 => {
                edits[1]["new"] = edits[1]["old"].clone();
                right = code("edit.no_change");
            }
            // What one writes is what another looks for: only the original counts.
            4 => {
                edits = vec![edit(at[0], made.lines[at[2]].clone()), edit(at[2], made.lines[at[0]].clone())];
                let mut swapped = made.lines.clone();
                swapped.swap(at[0], at[2]);
                right = Right::Bytes(file(&swapped, "\n", true));
            }
            _ => {}
        }
        let original = made.text().into_bytes();
        spot.edit("several", original, json!({ "edits": edits }).to_string(), right)
    })
}

/// Line numbers, code fences and HTML escapes that were copied along.
pub fn wrapped(random: &mut Random) -> Vec<Case> {
    each(random, |random, number, spot| {
        let indent = spot.program.language.indent;
        let id = random.below(900);
        let mut lines = spot.program.lines.clone();
        let block = [format!("{indent}if a_{id} < b && c > \"d\" {{"), format!("{indent}end_{id} = 1")];
        lines.splice(spot.first..spot.first, block.iter().cloned());
        let changed = format!("{indent}end_{id} = \"2\" < 3");
        let mut after = lines.clone();
        after[spot.first + 1] = changed.clone();
        let (old, new) = (block.to_vec(), vec![block[0].clone(), changed]);
        let numbered = |lines: &[String], from: usize| {
            lines
                .iter()
                .enumerate()
                .map(|(at, line)| format!("{:>6}\u{2192}{line}", from + at))
                .collect::<Vec<_>>()
                .join("\n")
        };
        let escape = |lines: &[String]| {
            lines.join("\n").replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
        };
        let fence = |lines: &[String]| format!("```{}\n{}\n```", spot.program.language.name, lines.join("\n"));
        let mut right = Right::Bytes(file(&after, "\n", true));
        let (old, new) = match number % 4 {
            0 => (numbered(&old, spot.first + 1), numbered(&new, spot.first + 1)),
            1 => (escape(&old), escape(&new)),
            2 => (fence(&old), fence(&new)),
            // Numbers of another place.
            _ => {
                right = code("edit.not_found");
                (numbered(&old, spot.first + 200), numbered(&new, spot.first + 200))
            }
        };
        spot.edit("wrapped", file(&lines, "\n", true), structured(&old, &new), right)
    })
}

/// Long files, where the same lines come again and again.
pub fn large(random: &mut Random) -> Vec<Case> {
    (0..EACH)
        .map(|number| {
            let language = LANGUAGES[number % LANGUAGES.len()];
            let made = program(random, language, 40 + 10 * (number % 4));
            let spot = Spot::within(random, made);
            let (old, new) = texts(&spot, number % 2 == 0);
            let end = if number % 3 == 1 { "\r\n" } else { "\n" };
            let closed = number % 5 != 4;
            let right = Right::Bytes(file(&spot.after(), end, closed));
            spot.edit("large", file(&spot.program.lines, end, closed), structured(&old, &new), right)
        })
        .collect()
}
