//! `read` of images and PDF.

use std::io::Cursor;

use image::ImageFormat;
use serde_json::json;
use stele_core::{Hash, ImageInput, MediaType};
use stele_tools::Options;

use crate::{Session, code, options};

/// An image file that is drawn, 30 by 20 pixels unless it says otherwise.
fn picture(format: ImageFormat, width: u32, height: u32) -> Vec<u8> {
    let drawn = image::RgbImage::from_fn(width, height, |x, y| image::Rgb([x as u8, y as u8, 9]));
    let mut bytes = Vec::new();
    drawn.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
    bytes
}

#[test]
fn an_image_is_known_by_its_content_and_shown() {
    let session = Session::new();
    let bytes = picture(ImageFormat::Png, 30, 20);
    session.file("drawing.txt", &bytes);
    let output = session.call("read", json!({"path": "drawing.txt"}));
    assert_eq!(output.content, format!("drawing.txt: PNG image, 30 × 20 px, {} bytes", bytes.len()));
    let [shown] = output.images.as_slice() else { panic!("{:?}", output.images) };
    assert_eq!((shown.media_type, shown.width, shown.height), (MediaType::Png, 30, 20));
    assert_eq!((output.meta.files[0].hash, output.meta.read), (Some(Hash::of(&bytes)), None));

    // A name alone makes no image.
    session.file("text.png", "just text\n");
    assert_eq!(session.call("read", json!({"path": "text.png"})).content, "1→just text");
}

#[test]
fn an_image_that_is_too_wide_is_fitted_on_its_way_in() {
    let session = Session::new();
    session.file("wide.webp", picture(ImageFormat::WebP, 2500, 10));
    let output = session.call("read", json!({"path": "wide.webp"}));
    assert!(output.content.starts_with("wide.webp: WebP image, 2500 × 10 px, "), "{}", output.content);
    assert!(output.content.ends_with("; shown at 2000 × 8 px"), "{}", output.content);
    assert_eq!((output.images[0].width, output.images[0].media_type), (2000, MediaType::Png));
}

#[test]
fn an_image_that_cannot_be_shown_is_told_by_type_size_and_dimensions() {
    let mut session = Session::new();
    let whole = picture(ImageFormat::Jpeg, 60, 40);
    session.file("whole.jpg", &whole);
    session.file("damaged.png", &picture(ImageFormat::Png, 60, 40)[..80]);
    let damaged = session.call("read", json!({"path": "damaged.png"}));
    assert!(
        damaged.content.starts_with("damaged.png: PNG image, 60 × 40 px, 80 bytes; not shown: "),
        "{}",
        damaged.content
    );
    assert!(damaged.images.is_empty());
    session.images = ImageInput::Noted;
    let noted = session.call("read", json!({"path": "whole.jpg"}));
    let told = format!("whole.jpg: JPEG image, 60 × 40 px, {} bytes; this model is sent no images", whole.len());
    assert_eq!((noted.content, noted.images.len()), (told, 0));
}

#[test]
fn several_images_come_in_one_result() {
    let session = Session::new();
    session.file("a.png", picture(ImageFormat::Png, 30, 20));
    session.file("b.gif", picture(ImageFormat::Gif, 30, 20));
    session.file("c.txt", "text\n");
    let output = session.call("read", json!({"paths": ["a.png", "c.txt", "b.gif"]}));
    assert_eq!(output.images.len(), 2);
    assert!(output.content.contains("==> c.txt <==\n1→text"), "{}", output.content);
    assert!(output.content.contains("b.gif: GIF image, 30 × 20 px"), "{}", output.content);
}

/// A PDF of one page.
fn written(text: &str) -> Vec<u8> {
    let content = format!("BT /F1 12 Tf 72 700 Td ({text}) Tj ET");
    let objects = [
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        "<</Type/Pages/Kids[4 0 R]/Count 1>>".to_owned(),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>".to_owned(),
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources<</Font<</F1 3 0 R>>>>/Contents 5 0 R>>".to_owned(),
        format!("<</Length {}>>stream\n{content}\nendstream", content.len()),
    ];
    let mut file = String::from("%PDF-1.4\n");
    let mut table = String::from("xref\n0 6\n0000000000 65535 f \n");
    for (at, object) in objects.iter().enumerate() {
        table.push_str(&format!("{:010} 00000 n \n", file.len()));
        file.push_str(&format!("{} 0 obj\n{object}\nendobj\n", at + 1));
    }
    let start = file.len();
    format!("{file}{table}trailer<</Size 6/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n").into_bytes()
}

#[test]
fn a_pdf_is_read_as_text_by_a_process_of_its_own() {
    let bytes = written("Hello from a page");
    for options in [options(), Options { supervisor: None, ..options() }] {
        let session = Session::with(options);
        session.file("paper", &bytes);
        let output = session.call("read", json!({"path": "paper"}));
        assert_eq!(output.content, "1→## page 1\n2→Hello from a page\n[a PDF of 1 page, shown as text]");
        assert_eq!(output.meta.files[0].hash, Some(Hash::of(&bytes)));
        let window = session.call("read", json!({"path": "paper", "offset": 2, "limit": 1}));
        assert!(window.content.starts_with("2→Hello from a page\n[lines 2-2 of 2; a PDF"), "{}", window.content);
    }
}

#[test]
fn a_pdf_that_is_none_or_has_no_text_is_told() {
    let session = Session::new();
    session.file("a.pdf", b"%PDF-1.7 and nothing");
    let output = session.call("read", json!({"path": "a.pdf"}));
    let told = "a.pdf is not text: PDF document, 20 bytes; it cannot be read as one";
    assert_eq!((code(&output), output.content.as_str()), ("read.binary", told));
    session.file("b.pdf", written(""));
    let output = session.call("read", json!({"path": "b.pdf"}));
    assert!(output.content.ends_with("; there is no text in it: its pages may be pictures]"), "{}", output.content);
}
