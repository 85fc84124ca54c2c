//! Server-sent events over chunks that may end anywhere.
//!
//! Bytes are kept until a line is whole and decoded then, so a character cut by the network stays whole. WHATWG, HTML
//! Living Standard, server-sent events, 2026-11; beyond it, an event that the end of the stream cuts off from its blank
//! line is still handed out, since some servers leave the blank line out.

/// One event: its type, when it was named, and its data lines joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub name: Option<String>,
    pub data: String,
}

/// No line may be longer than this many bytes: an endless one would fill the memory.
const LINE_MAX: usize = 64 * 1024 * 1024;

/// Cuts bytes into events.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    name: Option<String>,
    data: Option<String>,
    /// The last chunk ended in a carriage return: a line feed that comes next belongs to it.
    after_return: bool,
    started: bool,
}

/// A line was longer than the parser keeps.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LineTooLong;

impl Parser {
    /// Takes the next bytes and hands out each event that they complete.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<(), LineTooLong> {
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            self.line.extend_from_slice(&bytes[..end]);
            let returned = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if returned {
                match bytes.first() {
                    Some(b'\n') => bytes = &bytes[1..],
                    Some(_) => {}
                    None => self.after_return = true,
                }
            }
            self.end_line(events);
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() > LINE_MAX { Err(LineTooLong) } else { Ok(()) }
    }

    /// The stream is over: hands out what has no line end or blank line after it.
    pub(crate) fn finish(&mut self, events: &mut Vec<Event>) {
        if !self.line.is_empty() {
            self.end_line(events);
        }
        self.dispatch(events);
    }

    fn end_line(&mut self, events: &mut Vec<Event>) {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !self.started {
            self.started = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(events);
            return;
        }
        let (field, value) = match memchr::memchr(b':', line) {
            // A comment: servers send them to keep the connection alive.
            Some(0) => return,
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match field {
            b"event" => self.name = Some(value.into_owned()),
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(&value);
                }
                None => self.data = Some(value.into_owned()),
            },
            _ => {}
        }
    }

    fn dispatch(&mut self, events: &mut Vec<Event>) {
        let name = self.name.take();
        if let Some(data) = self.data.take() {
            events.push(Event { name, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(chunks: &[&[u8]]) -> Vec<(Option<String>, String)> {
        let (mut parser, mut events) = (Parser::default(), Vec::new());
        for chunk in chunks {
            parser.feed(chunk, &mut events).unwrap();
        }
        parser.finish(&mut events);
        events.into_iter().map(|event| (event.name, event.data)).collect()
    }

    #[track_caller]
    fn check(input: &str, expect: &[(Option<&str>, &str)]) {
        let expect: Vec<_> = expect.iter().map(|(name, data)| (name.map(str::to_owned), (*data).to_owned())).collect();
        assert_eq!(parse(&[input.as_bytes()]), expect, "in one piece");
        let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
        assert_eq!(parse(&bytes), expect, "byte by byte");
    }

    #[test]
    fn lines_end_in_any_of_three_ways() {
        for end in ["\n", "\r\n", "\r"] {
            let input = "event: a\ndata: 1\n\n: keep-alive\n\ndata:2\ndata: 3\n\n".replace('\n', end);
            check(&input, &[(Some("a"), "1"), (None, "2\n3")]);
        }
    }

    #[test]
    fn the_last_event_needs_no_blank_line_and_no_line_end() {
        check("data: a\n\ndata: b", &[(None, "a"), (None, "b")]);
        check("data: b\n", &[(None, "b")]);
        check("event: ping\n\n", &[]);
    }

    #[test]
    fn a_byte_order_mark_unknown_fields_and_bare_fields_do_no_harm() {
        check("\u{feff}data: 1\nid: 7\nretry: 5\nsomething\n\ndata\n\n", &[(None, "1"), (None, "")]);
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(
            lines in prop::collection::vec("(data|event|id|): ?[a-z🙂é\r]{0,6}\r?\n|\r?\n", 0..20),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let bytes = lines.concat().into_bytes();
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            chunks.push(&bytes[from..]);
            prop_assert_eq!(parse(&chunks), parse(&[&bytes]));
        }
    }
}
