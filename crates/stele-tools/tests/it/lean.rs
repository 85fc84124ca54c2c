//! A build without any feature says what it lacks.

use serde_json::json;
use stele_core::ImageInput;
use stele_tools::Offer;

use crate::{Session, code};

#[test]
fn images_and_pdf_are_named_with_the_feature_that_shows_them() {
    let mut session = Session::new();
    session.file("a", b"\x89PNG\r\n\x1a\n and so on");
    session.file("b", b"%PDF-1.7 and so on");
    for (path, what) in [("a", "PNG image, 18 bytes"), ("b", "PDF document, 18 bytes")] {
        let output = session.call("read", json!({ "path": path }));
        let told = format!(
            "{path} is not text: {what}; this build of Stele cannot show it: it lacks the cargo feature documents"
        );
        assert_eq!(code(&output), "read.binary");
        assert_eq!(output.content, told);
    }
    session.images = ImageInput::Noted;
    let output = session.call("read", json!({"path": "a"}));
    assert_eq!(output.content, "a is not text: PNG image, 18 bytes; this model is sent no images");
}

#[test]
fn tools_that_are_not_there_are_named_with_the_feature_that_brings_them() {
    for (name, feature) in [("symbols", "symbols"), ("web_fetch", "web"), ("web_search", "web")] {
        let told = name.parse::<Offer>().unwrap_err();
        assert_eq!(told, format!("{name} is not part of this build; build it with the cargo feature {feature}"));
    }
    assert!("ls".parse::<Offer>().is_ok());
}
