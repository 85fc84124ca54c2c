//! The demonstration: the main job with no key and no network.

use serde_json::json;

use crate::support::{Done, Place, seen};

#[test]
fn it_fixes_the_test_and_shows_how() {
    let place = Place::new();
    let done = Done::of(place.stele(["demo"]));
    assert_eq!(done.code, 0, "{done:?}");
    let wide = done.out.lines().chain(done.err.lines()).find(|line| line.chars().count() > 80);
    assert_eq!(wide.filter(|line| !line.contains(&*place.path().to_string_lossy())), None);
    for shown in ["$ sh test.sh", "FAIL  3725 is 1h 62m 05s", "Edit format.sh", "[x] run the test again", "exit 0"] {
        assert!(done.err.contains(shown), "{shown} is not in {}", done.err);
    }
    seen!(place, done.out);
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
