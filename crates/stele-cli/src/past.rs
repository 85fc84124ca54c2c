//! The prompts that were given in a folder before, as they are in its logs.

use std::path::Path;

use stele_core::{Event, InboxQueued, Part, Source};
use stele_store::{Filter, Store};

use crate::command;
use crate::feed::decode;
use crate::keyboard::history::{Earlier, Past};
use crate::setup::now;

/// Sessions that are looked at, the latest.
const SESSIONS: u32 = 20;
/// Records that are looked at, of all of them: 40 ms in which nothing else is done (a shipped build, 2026-12).
const RECORDS: u64 = 20_000;
/// Prompts that are given.
const PROMPTS: usize = 200;

/// The way to what was said in the sessions of this folder up to now.
pub fn earlier(store: Store, folder: &Path) -> Earlier {
    let (cwd, until) = (folder.display().to_string(), now());
    Box::new(move || {
        let mut prompts = Vec::new();
        let mut records = RECORDS;
        // A past that cannot be read is none: whoever looks for it sees that, and the log's own commands say why.
        for row in store.sessions(&Filter { cwd: Some(cwd), limit: Some(SESSIONS) }).unwrap_or_default() {
            let from = row.head.seq.0.saturating_sub(records);
            records -= row.head.seq.0 - from;
            let Ok(stored) = store.read(&row.id, stele_core::Seq(from)) else { continue };
            let said = stored.map_while(Result::ok).filter(|stored| is_queued(&stored.bytes));
            let said = said.filter_map(|stored| decode(&store, &stored).ok().flatten());
            let said = said.filter(|logged| logged.record.ts < until).filter_map(|logged| match logged.record.event {
                Event::InboxQueued(queued) if queued.source == Source::Person => {
                    Some((logged.record.ts, text(&queued)))
                }
                _ => None,
            });
            prompts.extend(said);
            if records == 0 || prompts.len() >= PROMPTS {
                break;
            }
        }
        prompts.sort_by_key(|(when, _)| *when);
        prompts.dedup_by(|(_, one), (_, other)| one == other);
        let surplus = prompts.len().saturating_sub(PROMPTS);
        // It was no command, so it is none when it comes again.
        let past = |(_, text): (_, String)| Past::new(text.clone(), command::named(&text).is_some());
        prompts.into_iter().skip(surplus).map(past).collect()
    })
}

/// True where a record may be about something that was said: its kind stands near its begin.
fn is_queued(bytes: &[u8]) -> bool {
    const KIND: &[u8] = b"\"inbox/queued\"";
    bytes[..bytes.len().min(200)].windows(KIND.len()).any(|window| window == KIND)
}

fn text(queued: &InboxQueued) -> String {
    let texts = queued.content.iter().map(|part| match part {
        Part::Text { text } => text.as_str(),
    });
    texts.collect::<Vec<_>>().join("\n")
}
