//! Pages as text.

use std::collections::HashMap;
use std::rc::Rc;

use htmd::{HtmlToMarkdown, Node};

/// Deepest nesting that is turned into markdown: the conversion calls itself for each level.
const DEEPEST: usize = 256;
/// Elements that may be open at the same time: the parser looks through them again and again.
const OPEN: usize = 1_000;
/// Longest page, in bytes, that is turned into markdown.
const CONVERTED: usize = 2 * 1024 * 1024;
/// Elements that hold nothing to read.
const SKIPPED: [&str; 7] = ["script", "style", "noscript", "template", "svg", "iframe", "head"];
/// Elements that are closed by what follows, or never opened.
const SELF_CLOSING: [&str; 22] = [
    "area", "base", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta", "option", "p",
    "param", "source", "td", "th", "tr", "track", "wbr",
];

/// A page as text, and whether it could be turned into markdown. One that is too long, or nested so deeply
/// that nobody would read it, only loses its tags.
pub(crate) fn text(html: &str) -> (String, bool) {
    match markdown(html) {
        Some(text) => (text, true),
        None => (without_tags(html), false),
    }
}

fn markdown(html: &str) -> Option<String> {
    if html.len() > CONVERTED || keeps_open(html, OPEN) {
        return None;
    }
    let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).build();
    let tree = converter.html_to_tree(html).ok()?;
    if is_deeper(&tree, DEEPEST) {
        return None;
    }
    Some(converter.tree_to_markdown(&tree))
}

/// True when more elements than that are open at some place.
fn keeps_open(html: &str, most: usize) -> bool {
    let mut open: HashMap<&str, usize> = HashMap::new();
    let mut total = 0;
    for tag in html.split('<').skip(1) {
        let (closes, tag) = tag.strip_prefix('/').map_or((false, tag), |tag| (true, tag));
        let name = &tag[..tag.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(tag.len())];
        if name.is_empty() || SELF_CLOSING.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            continue;
        }
        let count = open.entry(name).or_default();
        if closes {
            total -= usize::from(*count > 0);
            *count = count.saturating_sub(1);
        } else {
            *count += 1;
            total += 1;
        }
        if total > most {
            return true;
        }
    }
    false
}

fn is_deeper(root: &Rc<Node>, most: usize) -> bool {
    let mut level = vec![Rc::clone(root)];
    for _ in 0..most {
        let next: Vec<Rc<Node>> = level.iter().flat_map(|node| node.children.borrow().clone()).collect();
        if next.is_empty() {
            return false;
        }
        level = next;
    }
    true
}

/// What stands between the tags, outside of scripts and styles.
fn without_tags(html: &str) -> String {
    let mut text = String::new();
    let mut skipped: Option<&str> = None;
    for (index, piece) in html.split('<').enumerate() {
        let (tag, after) = if index == 0 { ("", piece) } else { piece.split_once('>').unwrap_or((piece, "")) };
        let name = tag.trim_start_matches('/');
        let is = |wanted: &str| {
            name.get(..wanted.len()).is_some_and(|name| name.eq_ignore_ascii_case(wanted))
                && !name[wanted.len()..].starts_with(|c: char| c.is_ascii_alphanumeric())
        };
        match skipped {
            Some(open) if tag.starts_with('/') && is(open) => skipped = None,
            Some(_) => continue,
            None => skipped = SKIPPED.into_iter().find(|wanted| !tag.starts_with('/') && is(wanted)),
        }
        if skipped.is_none() {
            text.push_str(after);
        }
    }
    let text = text.replace("&nbsp;", " ").replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_becomes_markdown_without_its_machinery() {
        let html = "<html><head><title>T</title><style>p{}</style></head><body><h1>A &amp; B</h1><script>x()</script>\
            <p>See <a href=\"/c\">this</a>.</p><ul><li>one<li>two</ul><pre><code>let x;\n</code></pre></body>";
        assert_eq!(text(html), ("# A & B\n\nSee [this](/c).\n\n*   one\n*   two\n\n```\nlet x;\n```".to_owned(), true));
    }

    #[test]
    fn what_is_nested_too_deeply_loses_its_tags_in_short_time() {
        let began = Instant::now();
        let page = |body: &str| text(&format!("<style>a{{}}</style>{body}<p>end &amp; all</p>"));
        for body in ["<div>".repeat(100_000), "<b>".repeat(100_000), "<x></y>".repeat(50_000), "<div>".repeat(400)] {
            assert_eq!(page(&body), ("end & all".to_owned(), false));
        }
        // Elements that stay open although it does not look so.
        let hidden = "<div><table><tr><td></div></td></tr></table>".repeat(2_000);
        assert_eq!(page(&hidden), ("end & all".to_owned(), false));
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }

    #[test]
    fn many_elements_beside_each_other_are_no_depth() {
        let html = "<ul><li>one<br><p>two</ul><div><span>x</span></div>".repeat(5_000);
        assert!(text(&html).1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn whatever_the_page_it_ends(html in "[<>/a-zé \"=&;#0-9\\n]{0,200}") {
            let _ = text(&html);
            let _ = without_tags(&html);
        }
    }
}
