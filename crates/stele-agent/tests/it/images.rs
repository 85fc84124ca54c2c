//! Images that a tool shows: sent, remembered, and left out where they are not taken.

use serde_json::json;
use stele_agent::{OpenPolicy, Taken, verify};
use stele_core::{CutReason, EndReason, EpochReason, Event, ImageInput, Wire};
use stele_testkit::{Behaviour, Fault, FaultKind, Say, Script};

use crate::stage::{Stage, ask, events, prompt_items};

/// A PNG of one white pixel, and one of another.
const PICTURES: [(&str, &str); 2] = [
    ("a.png", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mP4DwABAQEAHLCMmQAAAABJRU5ErkJggg=="),
    ("b.png", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="),
];

pub fn draw(stage: &Stage) {
    for (name, base64) in PICTURES {
        let mut child = std::process::Command::new("base64")
            .arg("-d")
            .stdin(std::process::Stdio::piped())
            .stdout(std::fs::File::create(stage.path(name)).unwrap())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), base64.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    }
}

/// The model looks at one image, then at the other, and says what it saw.
fn looks() -> Script {
    let look = |name: &str| Say::call("read", &json!({"path": name}));
    Script::new([look("a.png"), look("b.png"), Say::text("Both are small."), Say::text("Still.")])
}

fn holds(body: &[u8]) -> [bool; 2] {
    let body = String::from_utf8_lossy(body).into_owned();
    PICTURES.map(|(_, base64)| body.contains(base64))
}

#[tokio::test]
async fn what_read_shows_is_sent_on_every_wire_and_stays_where_it_was() {
    for wire in Wire::ALL {
        let mut stage = Stage::new(wire, looks());
        stage.images = Some(true);
        draw(&stage);
        let mut driver = stage.create();
        assert_eq!(ask(&mut driver, "look").await, EndReason::Completed, "{wire}");
        let session = driver.session().clone();
        drop(driver);
        // From the log alone it is the same.
        let mut driver = stage.open(&session, OpenPolicy::Continue);
        assert_eq!(ask(&mut driver, "and now?").await, EndReason::Completed, "{wire}");
        let requests = stage.requests();
        let held: Vec<_> = requests.iter().map(|request| holds(&request.body)).collect();
        assert_eq!(held, [[false, false], [true, false], [true, true], [true, true]], "{wire}");
        for pair in requests.windows(2) {
            assert!(prompt_items(&pair[1]).starts_with(&prompt_items(&pair[0])), "{wire}");
        }
        assert_eq!(driver.state().epoch().unwrap().n, 1);
        drop(driver);
        assert!(verify(&stage.store(), &session).unwrap().is_clean(), "{wire}");
    }
}

#[tokio::test]
async fn a_model_of_which_nothing_is_known_is_told_and_not_shown() {
    let stage = Stage::new(Wire::AnthropicMessages, looks());
    draw(&stage);
    let mut driver = stage.create();
    assert_eq!(ask(&mut driver, "look").await, EndReason::Completed);
    assert_eq!(driver.state().epoch().unwrap().config.images, ImageInput::Noted);
    let last = stage.requests().pop().unwrap();
    assert_eq!(holds(&last.body), [false, false]);
    let text = String::from_utf8(last.body.to_vec()).unwrap();
    assert!(text.contains("a.png: PNG image, 1 × 1 px, 67 bytes; this model is sent no images"), "{text}");
}

#[tokio::test]
async fn an_image_that_is_refused_becomes_a_note_and_the_request_is_tried_again_once() {
    let refusal = |message: &str| FaultKind::Status {
        status: 400,
        headers: Vec::new(),
        body: Some(json!({"error": {"type": "invalid_request_error", "message": message}}).to_string()),
    };
    let named = "messages.2.content.0.tool_result.content.1.image.source.base64: At least one of the image dimensions \
                 exceed max allowed size for many-image requests: 2000 pixels";
    for (wire, message, left) in [
        (Wire::AnthropicMessages, named, [false, true]),
        (Wire::OpenaiResponses, "The image data you provided does not represent a valid image.", [false, false]),
        (Wire::OpenaiChat, "Invalid image_url", [false, false]),
        (Wire::Gemini, "Unable to process input image.", [false, false]),
    ] {
        let behaviour = Behaviour::from(looks()).fault(Fault::at(2, 1..=1, refusal(message)));
        let mut stage = Stage::new(wire, behaviour);
        stage.images = Some(true);
        draw(&stage);
        let mut driver = stage.create();
        let mut notices = driver.subscribe();
        assert_eq!(ask(&mut driver, "look").await, EndReason::Completed, "{wire}");
        assert_eq!(ask(&mut driver, "again").await, EndReason::Completed, "{wire}");
        let held: Vec<_> = stage.requests().iter().map(|request| holds(&request.body)).collect();
        assert_eq!(held, [[false, false], [true, false], [true, true], left, left], "{wire}");
        let body = stage.requests()[3].body.to_vec();
        let note = "[image left out (image/png, 1 × 1 px): the provider did not take it]";
        let notes = String::from_utf8(body).unwrap().matches(note).count();
        assert_eq!(notes, left.iter().filter(|held| !**held).count(), "{wire}");
        let events = events(&mut notices);
        let repaired = events
            .iter()
            .any(|event| matches!(event, Event::SurfaceReplaced(replaced) if replaced.reason == CutReason::Repair));
        let declared = events
            .iter()
            .any(|event| matches!(event, Event::EpochOpened(opened) if opened.reason == EpochReason::Repair));
        assert!(repaired && declared, "{wire}");
        assert!(!events.iter().any(|event| matches!(event, Event::PrefixBroken(_) | Event::RequestRetried(_))));
        let session = driver.session().clone();
        drop(driver);
        assert!(verify(&stage.store(), &session).unwrap().is_clean(), "{wire}");
    }
}

#[tokio::test]
async fn a_provider_that_goes_on_refusing_ends_the_turn_and_not_the_session() {
    let body = json!({"error": {"type": "invalid_request_error", "message": "messages.1: bad image"}}).to_string();
    let refusal = FaultKind::Status { status: 400, headers: Vec::new(), body: Some(body) };
    let behaviour = Behaviour::from(looks()).fault(Fault::at(1, 1..=2, refusal));
    let mut stage = Stage::new(Wire::AnthropicMessages, behaviour);
    stage.images = Some(true);
    draw(&stage);
    let mut driver = stage.create();
    let end = ask(&mut driver, "look").await;
    assert!(matches!(&end, EndReason::Failed { code, .. } if code == "provider.invalid_request"), "{end:?}");
    assert_eq!(stage.requests().len(), 3, "it is tried again once");
    assert_eq!(ask(&mut driver, "go on").await, EndReason::Completed);
}

#[tokio::test]
async fn a_repair_takes_nothing_else_that_differs() {
    let body = json!({"error": {"type": "invalid_request_error", "message": "Invalid image_url"}}).to_string();
    let refusal = FaultKind::Status { status: 400, headers: Vec::new(), body: Some(body) };
    // The last request of the first turn is refused for its images.
    let behaviour = Behaviour::from(looks()).fault(Fault::at(3, 1..=1, refusal));
    let mut stage = Stage::new(Wire::OpenaiChat, behaviour);
    stage.images = Some(true);
    draw(&stage);
    let mut driver = stage.create();
    assert_eq!(ask(&mut driver, "look").await, EndReason::Completed);
    let session = driver.session().clone();
    drop(driver);
    let mut driver = stage.open_with(&session, |options| {
        options.version = "9.9.9".into();
        options.persona = Some("Newer text.".into());
    });
    assert_eq!(driver.drift().unwrap().taken, Taken::AtTheNextCut);
    assert_eq!(ask(&mut driver, "again").await, EndReason::Completed);
    let epoch = driver.state().epoch().unwrap();
    assert_eq!((&epoch.reason, epoch.version.as_str()), (&EpochReason::Repair, "0.0.0-test"));
    assert!(!String::from_utf8_lossy(&stage.requests().pop().unwrap().body).contains("Newer text."));
    assert_eq!(driver.drift().unwrap().taken, Taken::AtTheNextCut, "it waits still");
    drop(driver);
    assert!(verify(&stage.store(), &session).unwrap().is_clean());
}
