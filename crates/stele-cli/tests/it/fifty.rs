//! Fifty steps with everything that could move a byte of what was sent, on every wire.

use std::path::Path;

use stele_core::Wire;
use stele_testkit::fifty;

fn check(wire: Wire) {
    let folder = tempfile::tempdir().unwrap();
    let mut session =
        fifty::play(Path::new(env!("CARGO_BIN_EXE_stele")), wire, &folder.path().canonicalize().unwrap()).unwrap();
    let found = session.judge().unwrap();
    assert_eq!(found.kept, 1.0, "{found:?}");
    assert_eq!(
        (found.pairs, found.cuts.as_slice()),
        (fifty::STEPS - 2, ["initial", "undo"].map(str::to_owned).as_slice())
    );
    assert_eq!(found.unpriced, 0, "{found:?}");
    assert!(found.unlike.is_empty(), "{found:?}");
    assert!(found.read >= 0.95, "{found:?}");
    for (what, least) in [
        ("todo/set", 5),
        ("mode/set", 4),
        ("undo/applied", 1),
        ("turn/started", 6),
        ("steering", 1),
        ("notices of jobs", 1),
    ] {
        let count = found.happened.iter().find(|(name, _)| *name == what).map_or(0, |(_, count)| *count);
        assert!(count >= least, "{what}: {found:?}");
    }

    // That a moved byte would be seen.
    let later = &mut session.requests[30];
    let body =
        String::from_utf8(later.body.to_vec()).unwrap().replace("Keep functions short.", "Keep functions small.");
    later.body = body.into_bytes().into();
    assert!(session.judge().unwrap().kept < 1.0);
}

#[test]
fn fifty_steps_keep_every_byte_on_anthropic_messages() {
    check(Wire::AnthropicMessages);
}

#[test]
fn fifty_steps_keep_every_byte_on_openai_responses() {
    check(Wire::OpenaiResponses);
}

#[test]
fn fifty_steps_keep_every_byte_on_openai_chat() {
    check(Wire::OpenaiChat);
}

#[test]
fn fifty_steps_keep_every_byte_on_gemini() {
    check(Wire::Gemini);
}
