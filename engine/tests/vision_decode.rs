//! Decoding: pixel formats, limits, damaged files.

use std::io::Cursor;

use image::{DynamicImage, ExtendedColorType, ImageBuffer, ImageEncoder, ImageFormat};
use proptest::prelude::*;
use tandem_engine::vision::{DecodeLimits, Error, Picture, decode};

fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    picture.write_to(&mut file, format).expect("test picture encodes");
    file.into_inner()
}

/// A PNG of one row holding `samples` in the layout of `color`.
fn png_row(samples: &[u8], width: u32, color: ExtendedColorType) -> Vec<u8> {
    let mut file = Vec::new();
    image::codecs::png::PngEncoder::new(&mut file)
        .write_image(samples, width, 1, color)
        .expect("test picture encodes");
    file
}

fn decoded(file: &[u8]) -> Result<Picture, Error> {
    decode(file, &DecodeLimits::default())
}

fn levels(file: &[u8]) -> Vec<u8> {
    decoded(file).unwrap().rgb().to_vec()
}

/// Native-endian bytes of 16-bit samples, as the encoder takes them.
fn wide(samples: &[u16]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.to_ne_bytes()).collect()
}

#[test]
fn rgb_and_grey_levels_pass_unchanged() {
    let file = png_row(&[1, 2, 3, 253, 254, 255], 2, ExtendedColorType::Rgb8);
    assert_eq!(levels(&file), [1, 2, 3, 253, 254, 255]);
    let file = png_row(&[0, 77, 255], 3, ExtendedColorType::L8);
    assert_eq!(levels(&file), [0, 0, 0, 77, 77, 77, 255, 255, 255]);
}

#[test]
fn transparency_is_blended_on_near_white() {
    let pixels = [9, 8, 7, 0, 9, 8, 7, 255, 0, 100, 255, 128, 0, 1, 2, 1, 255, 255, 255, 254];
    let file = png_row(&pixels, 5, ExtendedColorType::Rgba8);
    // By hand: (s * a + 253 * (255 - a) + 127) / 255.
    let expected = [253, 253, 253, 9, 8, 7, 126, 176, 254, 252, 252, 252, 255, 255, 255];
    assert_eq!(levels(&file), expected);
    let file = png_row(&[10, 0, 10, 51], 2, ExtendedColorType::La8);
    assert_eq!(levels(&file), [253, 253, 253, 204, 204, 204]);
}

#[test]
fn sixteen_bits_are_divided_by_257_to_nearest() {
    let grey = wide(&[0, 128, 129, 257, 385, 386, 0x1234, 65406, 65407, 65535]);
    let expected = [0, 0, 1, 1, 1, 2, 18, 254, 255, 255].map(|level| [level; 3]).concat();
    assert_eq!(levels(&png_row(&grey, 10, ExtendedColorType::L16)), expected);
    for level in 0..=255u8 {
        let sample = u16::from(level) * 257;
        let file = png_row(&wide(&[sample; 3]), 1, ExtendedColorType::Rgb16);
        assert_eq!(levels(&file), [level; 3], "an 8-bit level widened comes back");
    }
    let pixel = wide(&[0, 100 * 257, 65535, 128 * 257]);
    let file = png_row(&pixel, 1, ExtendedColorType::Rgba16);
    assert_eq!(levels(&file), [126, 176, 254], "reduced first, blended after");
}

#[test]
fn flat_jpeg_decodes() {
    let grey = ImageBuffer::from_pixel(40, 24, image::Rgb([128u8; 3]));
    let picture = decoded(&encoded(&grey.into(), ImageFormat::Jpeg)).unwrap();
    assert_eq!((picture.width(), picture.height()), (40, 24));
    // Level 128 is the zero of the transform: no codec rounds it.
    assert!(picture.rgb().iter().all(|&level| level == 128));
    let luma = ImageBuffer::from_pixel(3, 50, image::Luma([128u8]));
    let picture = decoded(&encoded(&luma.into(), ImageFormat::Jpeg)).unwrap();
    assert_eq!((picture.width(), picture.height(), picture.rgb().len()), (3, 50, 450));
}

#[test]
fn other_formats_are_refused() {
    let long = vec![7; 1000];
    for file in [&b""[..], b"\x89", b"GIF89a\x01\0\x01\0", b"RIFF\0\0\0\0WEBPVP8 ", b"BM", &long] {
        assert_eq!(decoded(file), Err(Error::UnknownFormat));
    }
}

#[test]
fn limits_are_inclusive() {
    let file = png_row(&[5; 60], 20, ExtendedColorType::Rgb8);
    let max_file_bytes = file.len() as u64;
    let limits = DecodeLimits { max_file_bytes, max_side: 20 };
    assert!(decode(&file, &limits).is_ok());
    let tight = DecodeLimits { max_side: 19, ..limits };
    let refused = Error::SideTooLong { width: 20, height: 1, max_side: 19 };
    assert_eq!(decode(&file, &tight), Err(refused));
    let tight = DecodeLimits { max_file_bytes: max_file_bytes - 1, ..limits };
    let refused = Error::FileTooLarge { bytes: max_file_bytes, max_bytes: max_file_bytes - 1 };
    assert_eq!(decode(&file, &tight), Err(refused));
}

/// A PNG whose header claims `width` by `height` 16-bit RGBA pixels and which holds none.
fn bare_png(width: u32, height: u32) -> Vec<u8> {
    let mut file = png_row(&wide(&[1; 4]), 1, ExtendedColorType::Rgba16);
    file[16..20].copy_from_slice(&width.to_be_bytes());
    file[20..24].copy_from_slice(&height.to_be_bytes());
    let check = crc32(&file[12..29]);
    file[29..33].copy_from_slice(&check.to_be_bytes());
    file
}

/// The checksum of PNG chunks.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |state, &byte| {
        (0..8).fold(state ^ u32::from(byte), |state, _| {
            (state >> 1) ^ if state & 1 == 1 { 0xEDB8_8320 } else { 0 }
        })
    })
}

#[test]
fn hostile_png_headers() {
    assert!(decoded(&bare_png(1, 1)).is_ok(), "the forged header is otherwise sound");
    let refused = decoded(&bare_png(8192, 8192));
    assert!(matches!(refused, Err(Error::Implausible { .. })), "{refused:?}");
    for (width, height) in [(8193, 1), (1, 8193), (50000, 1)] {
        let refused = Error::SideTooLong { width, height, max_side: 8192 };
        assert_eq!(decoded(&bare_png(width, height)), Err(refused));
    }
    // Sizes that the format itself forbids are the PNG reader's to refuse.
    for (width, height) in [(0, 1), (1, 0), (0, 0), (i32::MAX as u32, 1 << 30), (u32::MAX, 1)] {
        let error = decoded(&bare_png(width, height)).expect_err("a forged size");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

#[test]
fn hostile_jpeg_headers() {
    let flat = ImageBuffer::from_pixel(16, 16, image::Rgb([90u8; 3]));
    let file = encoded(&flat.into(), ImageFormat::Jpeg);
    let frame = file.windows(2).position(|pair| pair == [0xFF, 0xC0]).expect("a frame header");
    for (width, height) in [(8192u16, 8192u16), (65535, 65535), (0, 16), (16, 0), (65535, 1)] {
        let mut forged = file.clone();
        forged[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
        forged[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
        let refused = decoded(&forged).expect_err("a forged size");
        assert!(!refused.to_string().contains('\n'), "{refused}");
    }
}

#[test]
fn truncated_png_is_refused() {
    let file = png_row(&[200; 600], 200, ExtendedColorType::Rgb8);
    for length in 0..file.len() - 12 {
        let error = decoded(&file[..length]).expect_err("a truncated file");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

/// Small files of several layouts to damage.
fn samples() -> Vec<Vec<u8>> {
    let noise = |bytes: usize| (0..bytes).map(|i| (i * i * 31 % 251) as u8).collect::<Vec<_>>();
    let rgb = ImageBuffer::<image::Rgb<u8>, _>::from_raw(23, 17, noise(23 * 17 * 3)).unwrap();
    let luma = ImageBuffer::<image::Luma<u8>, _>::from_raw(23, 17, noise(23 * 17)).unwrap();
    let (rgb, luma) = (DynamicImage::from(rgb), DynamicImage::from(luma));
    vec![
        encoded(&rgb, ImageFormat::Png),
        encoded(&rgb.to_rgba16().into(), ImageFormat::Png),
        encoded(&rgb, ImageFormat::Jpeg),
        encoded(&luma, ImageFormat::Jpeg),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Either a picture within the limits or a one-line error, never a panic.
    #[test]
    fn damaged_files_do_no_harm(
        which in 0usize..4,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        keep in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut file = samples().swap_remove(which);
        for (at, byte) in damage {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Some(keep) = keep {
            file.truncate(keep.index(file.len()));
        }
        let limits = DecodeLimits { max_side: 512, ..DecodeLimits::default() };
        match decode(&file, &limits) {
            Ok(picture) => prop_assert!(picture.width().max(picture.height()) <= 512),
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
        }
    }
}
