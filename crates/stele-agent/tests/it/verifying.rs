//! Verification names what was damaged.

use serde_json::json;
use stele_core::Wire;
use stele_testkit::{Say, Script};

use crate::stage::{Stage, ask};

#[tokio::test]
async fn a_request_that_was_logged_otherwise_is_named() {
    let stage =
        Stage::new(Wire::AnthropicMessages, Script::new([Say::call("read", &json!({"path": "a"})), Say::text("ok")]));
    stage.write("a", "content");
    let mut driver = stage.create();
    ask(&mut driver, "go").await;
    let session = driver.session().clone();
    drop(driver);
    assert!(stele_agent::verify(&stage.store(), &session).unwrap().is_clean());

    // Whole records, a valid chain, but another text than the one that was sent: only rebuilding shows it.
    let mut exported = Vec::new();
    stage.store().export(&session, &mut exported).unwrap();
    let text = String::from_utf8(exported).unwrap();
    assert!(text.contains("content"));
}
