//! The demonstration: the main job with no key and no network.

use serde_json::json;

use crate::support::{Done, Place, seen};

#[test]
fn it_fixes_the_test_and_shows_how() {
    let place = Place::new();
    let done = Done::of(place.stele(["demo"]));
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.out.lines().chain(done.err.lines()).all(|line| line.chars().count() <= 80 || !line.contains('·')), "{done:?}");
    seen!(place, format!("{}\n---\n{}", done.out, done.err));
}

#[test]
fn its_session_is_an_ordinary_one() {
    let place = Place::new();
    let done = Done::of(place.stele(["demo", "--json"]));
    let result = done.result();
    assert_eq!((done.code, &result["status"], &result["refused"]), (0, &json!("succeeded"), &json!([])), "{done:?}");
    assert!(result["hit_rate"].as_f64().unwrap() > 0.5, "{result}");
    let id = result["session"].as_str().unwrap();
    let verified = Done::of(place.stele(["verify", id]));
    assert_eq!(verified.code, 0, "{verified:?}");
    let shown = Done::of(place.stele(["sessions", "show", id]));
    assert!(shown.out.contains("The test passes now."), "{shown:?}");
}
