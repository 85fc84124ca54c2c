//! Images, fitted to what every vendor takes before they are logged.
//!
//! The limits that hold with many images in one request (2026-11): Anthropic refuses more than 2,000 pixels a side
//! ("max allowed size for many-image requests") and 5 MiB of base64 each, and 32 MB for a request; Gemini takes 20 MB
//! for a request (Firebase, input file requirements). GIF is not taken by Gemini, and WebP not by servers that decode
//! with stb_image: both become PNG, of a moving GIF the first frame.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::codecs::jpeg::JpegEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use stele_core::{Image, MediaType};

use super::Kind;

/// Longest side, in pixels, of what is sent.
const SIDE: u32 = 2_000;
/// Bytes of what is sent, before base64: 2 MB after it.
const SENT: usize = 1_500_000;
/// Pixels of an image that is decoded.
const PIXELS: u64 = 50_000_000;
/// Bytes of memory that decoding may take.
const MEMORY: u64 = 256 * 1024 * 1024;
/// Largest file, in bytes, that is looked at.
pub(crate) const LARGEST: u64 = 64 * 1024 * 1024;
/// Qualities that are tried, one after the other, until the result is small enough.
const QUALITIES: [u8; 3] = [85, 70, 50];

/// What it is decoded as.
fn format(kind: Kind) -> ImageFormat {
    match kind {
        Kind::Png => ImageFormat::Png,
        Kind::Jpeg => ImageFormat::Jpeg,
        Kind::Gif => ImageFormat::Gif,
        Kind::WebP => ImageFormat::WebP,
    }
}

/// An image file.
pub(crate) struct Picture<'a> {
    pub(crate) kind: Kind,
    bytes: &'a [u8],
    /// As it is stored, in pixels.
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl<'a> Picture<'a> {
    /// Reads the head of an image file; `None` when it has none.
    pub(crate) fn look(kind: Kind, bytes: &'a [u8]) -> Option<Self> {
        let (width, height) = decoder(kind, bytes).ok()?.dimensions();
        (width > 0 && height > 0).then_some(Self { kind, bytes, width, height })
    }

    /// The image as it is sent.
    ///
    /// # Errors
    /// Why it cannot be shown, in words.
    pub(crate) fn fit(&self) -> Result<Image, String> {
        let pixels = u64::from(self.width) * u64::from(self.height);
        if pixels > PIXELS {
            return Err(format!("it has {pixels} pixels and at most {PIXELS} are decoded"));
        }
        let broken = |error: image::ImageError| format!("it cannot be decoded ({error})");
        let mut decoder = decoder(self.kind, self.bytes).map_err(broken)?;
        let turned = decoder.orientation().unwrap_or(Orientation::NoTransforms);
        // Also what goes as it is must be whole: a provider refuses the request for a damaged image.
        let mut image = DynamicImage::from_decoder(decoder).map_err(broken)?;
        let plain = match self.kind {
            Kind::Png => Some(MediaType::Png),
            Kind::Jpeg => Some(MediaType::Jpeg),
            Kind::Gif | Kind::WebP => None,
        };
        if let Some(media_type) = plain
            && turned == Orientation::NoTransforms
            && self.bytes.len() <= SENT
            && self.width.max(self.height) <= SIDE
        {
            return Ok(Image::new(media_type, STANDARD.encode(self.bytes), self.width, self.height));
        }
        image.apply_orientation(turned);
        let mut side = SIDE;
        loop {
            if image.width().max(image.height()) > side {
                image = image.resize(side, side, FilterType::Triangle);
            }
            if let Some((media_type, bytes)) = encode(&image, self.kind).map_err(broken)? {
                return Ok(Image::new(media_type, STANDARD.encode(bytes), image.width(), image.height()));
            }
            side = image.width().max(image.height()) / 2;
            if side == 0 {
                return Err("it cannot be made small enough".to_owned());
            }
        }
    }
}

fn decoder(kind: Kind, bytes: &[u8]) -> image::ImageResult<impl ImageDecoder + '_> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format(kind));
    let mut limits = Limits::default();
    limits.max_alloc = Some(MEMORY);
    reader.limits(limits);
    reader.into_decoder()
}

/// The smallest loss that fits: PNG where nothing was lost before, else JPEG. `None` when nothing fits.
fn encode(image: &DynamicImage, from: Kind) -> image::ImageResult<Option<(MediaType, Vec<u8>)>> {
    if from != Kind::Jpeg {
        let mut bytes = Vec::new();
        // Eight bits a channel are what models see.
        let image = if image.color().has_alpha() {
            DynamicImage::from(image.to_rgba8())
        } else {
            DynamicImage::from(image.to_rgb8())
        };
        image.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)?;
        if bytes.len() <= SENT {
            return Ok(Some((MediaType::Png, bytes)));
        }
    }
    let opaque = on_white(image);
    for quality in QUALITIES {
        let mut bytes = Vec::new();
        JpegEncoder::new_with_quality(&mut bytes, quality).encode_image(&opaque)?;
        if bytes.len() <= SENT {
            return Ok(Some((MediaType::Jpeg, bytes)));
        }
    }
    Ok(None)
}

/// Without transparency, which JPEG has not: as if it lay on white paper.
fn on_white(image: &DynamicImage) -> image::RgbImage {
    if !image.color().has_alpha() {
        return image.to_rgb8();
    }
    let image = image.to_rgba8();
    image::RgbImage::from_fn(image.width(), image.height(), |x, y| {
        let [red, green, blue, alpha] = image.get_pixel(x, y).0;
        let over = |channel: u8| {
            let shown = u16::from(channel) * u16::from(alpha) + 255 * (255 - u16::from(alpha));
            u8::try_from(shown / 255).unwrap_or(u8::MAX)
        };
        image::Rgb([over(red), over(green), over(blue)])
    })
}

#[cfg(test)]
mod tests {
    use image::{Rgba, RgbaImage};
    use proptest::prelude::*;

    use super::*;

    fn drawn(width: u32, height: u32) -> DynamicImage {
        RgbaImage::from_fn(width, height, |x, y| Rgba([x as u8, y as u8, (x ^ y) as u8, 255])).into()
    }

    fn file(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Vec::new();
        let image = if format == ImageFormat::Jpeg { DynamicImage::from(image.to_rgb8()) } else { image.clone() };
        image.write_to(&mut Cursor::new(&mut bytes), format).unwrap();
        bytes
    }

    fn fit(bytes: &[u8]) -> Image {
        Picture::look(Kind::of(bytes).unwrap(), bytes).unwrap().fit().unwrap()
    }

    fn sent(image: &Image) -> DynamicImage {
        let bytes = STANDARD.decode(image.data.as_str()).unwrap();
        let format = match image.media_type {
            MediaType::Png => ImageFormat::Png,
            MediaType::Jpeg => ImageFormat::Jpeg,
        };
        let decoded = image::load_from_memory_with_format(&bytes, format).unwrap();
        assert_eq!((decoded.width(), decoded.height()), (image.width, image.height));
        decoded
    }

    #[test]
    fn what_fits_goes_as_it_is() {
        for format in [ImageFormat::Png, ImageFormat::Jpeg] {
            let bytes = file(&drawn(40, 30), format);
            let image = fit(&bytes);
            assert_eq!(STANDARD.decode(image.data.as_str()).unwrap(), bytes);
            assert_eq!((image.width, image.height), (40, 30));
        }
    }

    #[test]
    fn other_kinds_become_png_and_of_a_moving_one_the_first_frame_is_sent() {
        let webp = fit(&file(&drawn(40, 30), ImageFormat::WebP));
        assert_eq!((webp.media_type, sent(&webp).to_rgba8()), (MediaType::Png, drawn(40, 30).to_rgba8()));
        let mut moving = Vec::new();
        {
            let mut encoder = image::codecs::gif::GifEncoder::new(&mut moving);
            let frame = |level| image::Frame::new(RgbaImage::from_pixel(8, 8, Rgba([level, level, level, 255])));
            encoder.encode_frames([frame(0), frame(255)]).unwrap();
        }
        let gif = fit(&moving);
        assert_eq!((gif.media_type, gif.width), (MediaType::Png, 8));
        assert!(sent(&gif).to_luma8().pixels().all(|pixel| pixel.0[0] < 8));
    }

    #[test]
    fn what_is_too_wide_is_made_smaller() {
        let image = fit(&file(&drawn(2400, 12), ImageFormat::Png));
        assert_eq!((image.media_type, image.width, image.height), (MediaType::Png, 2000, 10));
        sent(&image);
        assert_eq!(fit(&file(&drawn(3, 2001), ImageFormat::Jpeg)).height, 2000);
    }

    #[test]
    fn what_is_too_heavy_loses_detail_and_then_size() {
        // Noise, which nothing makes small; half of it transparent.
        let mut state = 1_u32;
        let noise = RgbaImage::from_fn(900, 900, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [a, b, c, d] = state.to_be_bytes();
            Rgba([a, b, c, if d & 16 == 0 { 255 } else { 0 }])
        });
        let bytes = file(&noise.into(), ImageFormat::Png);
        assert!(bytes.len() > SENT);
        let image = fit(&bytes);
        assert_eq!(image.media_type, MediaType::Jpeg);
        assert!(image.data.len() <= SENT * 4 / 3 + 4);
        sent(&image);
    }

    #[test]
    fn a_bomb_is_told_by_its_head() {
        // A PNG of 60,000 by 60,000 pixels, of which only the head is there.
        let mut bytes = file(&drawn(2, 2), ImageFormat::Png);
        bytes[16..24].copy_from_slice(&[0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60]);
        let crc = crc32(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&crc.to_be_bytes());
        let picture = Picture::look(Kind::Png, &bytes).unwrap();
        assert_eq!((picture.width, picture.height), (60_000, 60_000));
        assert!(picture.fit().unwrap_err().contains("3600000000 pixels"));
    }

    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0_u32, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
        })
    }

    #[test]
    fn a_turned_photograph_is_turned_back() {
        // The orientation "rotated by 90 degrees" as an EXIF segment behind the beginning of a JPEG.
        let mut bytes = file(&drawn(40, 20), ImageFormat::Jpeg);
        let exif = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        let mut segment = vec![0xff, 0xe1];
        segment.extend_from_slice(&u16::try_from(exif.len() + 2).unwrap().to_be_bytes());
        segment.extend_from_slice(exif);
        bytes.splice(2..2, segment);
        let image = fit(&bytes);
        assert_eq!((image.width, image.height), (20, 40));
        assert_eq!(image.media_type, MediaType::Jpeg);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn whatever_the_bytes_it_ends_and_does_not_panic(
            kind in 0_usize..4,
            at in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let format = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP][kind];
            let mut bytes = file(&drawn(9, 7), format);
            for (index, byte) in at {
                let index = index.index(bytes.len());
                bytes[index] = byte;
            }
            bytes.truncate(cut.index(bytes.len() * 2) + 1);
            if let Some(kind) = Kind::of(&bytes)
                && let Some(picture) = Picture::look(kind, &bytes)
                && let Ok(image) = picture.fit()
            {
                sent(&image);
            }
        }
    }
}
