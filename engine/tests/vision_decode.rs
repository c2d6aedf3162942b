//! Decoding: pixel formats, limits, damaged files.

use jpeg_encoder::{ColorType as JpegColor, SamplingFactor};
use png::{BitDepth, ColorType};
use proptest::prelude::*;
use tandem_engine::vision::{DecodeLimits, Error, Picture, decode};

/// A PNG encoder of `width` by `height` pixels.
fn png_encoder(
    file: &mut Vec<u8>,
    [width, height]: [u32; 2],
    color: ColorType,
    depth: BitDepth,
) -> png::Encoder<'_, &mut Vec<u8>> {
    let mut encoder = png::Encoder::new(file, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    encoder
}

/// Writes `samples`, whole bytes in the order of the format, as the default frame.
fn written(encoder: png::Encoder<'_, &mut Vec<u8>>, samples: &[u8]) {
    let mut writer = encoder.write_header().expect("test header encodes");
    writer.write_image_data(samples).expect("test picture encodes");
}

/// A PNG holding `samples`.
fn png(samples: &[u8], sides: [u32; 2], color: ColorType, depth: BitDepth) -> Vec<u8> {
    let mut file = Vec::new();
    written(png_encoder(&mut file, sides, color, depth), samples);
    file
}

/// A PNG of one row holding `samples`.
fn png_row(samples: &[u8], width: u32, color: ColorType, depth: BitDepth) -> Vec<u8> {
    png(samples, [width, 1], color, depth)
}

/// A PNG of one row with eight bits per channel.
fn png_row8(samples: &[u8], width: u32, color: ColorType) -> Vec<u8> {
    png_row(samples, width, color, BitDepth::Eight)
}

/// A JPEG holding `samples`.
fn jpeg(samples: &[u8], sides: [u16; 2], color: JpegColor, sampling: SamplingFactor) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = jpeg_encoder::Encoder::new(&mut file, 75);
    encoder.set_sampling_factor(sampling);
    encoder.encode(samples, sides[0], sides[1], color).expect("test picture encodes");
    file
}

fn decoded(file: &[u8]) -> Result<Picture, Error> {
    decode(file, &DecodeLimits::default())
}

fn levels(file: &[u8]) -> Vec<u8> {
    decoded(file).unwrap().rgb().to_vec()
}

/// Bytes of 16-bit samples in the order of the format.
fn wide(samples: &[u16]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.to_be_bytes()).collect()
}

#[test]
fn rgb_and_grey_levels_pass_unchanged() {
    let file = png_row8(&[1, 2, 3, 253, 254, 255], 2, ColorType::Rgb);
    assert_eq!(levels(&file), [1, 2, 3, 253, 254, 255]);
    let file = png_row8(&[0, 77, 255], 3, ColorType::Grayscale);
    assert_eq!(levels(&file), [0, 0, 0, 77, 77, 77, 255, 255, 255]);
}

#[test]
fn transparency_is_blended_on_near_white() {
    let pixels = [9, 8, 7, 0, 9, 8, 7, 255, 0, 100, 255, 128, 0, 1, 2, 1, 255, 255, 255, 254];
    let file = png_row8(&pixels, 5, ColorType::Rgba);
    // By hand: (s * a + 253 * (255 - a) + 127) / 255.
    let expected = [253, 253, 253, 9, 8, 7, 126, 176, 254, 252, 252, 252, 255, 255, 255];
    assert_eq!(levels(&file), expected);
    let file = png_row8(&[10, 0, 10, 51], 2, ColorType::GrayscaleAlpha);
    assert_eq!(levels(&file), [253, 253, 253, 204, 204, 204]);
}

#[test]
fn sixteen_bits_are_divided_by_257_to_nearest() {
    let grey = wide(&[0, 128, 129, 257, 385, 386, 0x1234, 65406, 65407, 65535]);
    let expected = [0, 0, 1, 1, 1, 2, 18, 254, 255, 255].map(|level| [level; 3]).concat();
    assert_eq!(levels(&png_row(&grey, 10, ColorType::Grayscale, BitDepth::Sixteen)), expected);
    for level in 0..=255u8 {
        let sample = u16::from(level) * 257;
        let file = png_row(&wide(&[sample; 3]), 1, ColorType::Rgb, BitDepth::Sixteen);
        assert_eq!(levels(&file), [level; 3], "an 8-bit level widened comes back");
    }
    let pixel = wide(&[0, 100 * 257, 65535, 128 * 257]);
    let file = png_row(&pixel, 1, ColorType::Rgba, BitDepth::Sixteen);
    assert_eq!(levels(&file), [126, 176, 254], "reduced first, blended after");
}

#[test]
fn narrow_grey_levels_and_palettes_are_expanded() {
    for (depth, expected) in [(BitDepth::One, [255, 0]), (BitDepth::Two, [170, 85])] {
        // Bits 10 01: the first two levels of either depth.
        let file = png_row(&[0b1001_0000], 2, ColorType::Grayscale, depth);
        assert_eq!(levels(&file), expected.map(|level| [level; 3]).concat());
    }
    let file = png_row(&[0xF3], 2, ColorType::Grayscale, BitDepth::Four);
    assert_eq!(levels(&file), [255, 255, 255, 51, 51, 51]);
    let mut file = Vec::new();
    let mut encoder = png_encoder(&mut file, [3, 1], ColorType::Indexed, BitDepth::Two);
    encoder.set_palette(&[1, 2, 3, 0, 100, 255, 7, 8, 9][..]);
    // One alpha per entry, the rest opaque: the blends worked out above.
    encoder.set_trns(&[0, 128][..]);
    written(encoder, &[0b1000_0100]);
    assert_eq!(levels(&file), [7, 8, 9, 253, 253, 253, 126, 176, 254]);
}

#[test]
fn the_transparent_colour_shows_the_backdrop() {
    let mut file = Vec::new();
    let mut encoder = png_encoder(&mut file, [2, 1], ColorType::Rgb, BitDepth::Eight);
    encoder.set_trns(&[0, 1, 0, 2, 0, 3][..]);
    written(encoder, &[1, 2, 3, 1, 2, 4]);
    assert_eq!(levels(&file), [253, 253, 253, 1, 2, 4]);
    let mut file = Vec::new();
    let mut encoder = png_encoder(&mut file, [2, 1], ColorType::Grayscale, BitDepth::Sixteen);
    encoder.set_trns(&[0x12, 0x34][..]);
    written(encoder, &wide(&[0x1234, 0x1235]));
    assert_eq!(levels(&file), [253, 253, 253, 18, 18, 18], "all 16 bits are compared");
}

#[test]
fn the_default_frame_of_an_animation_counts() {
    for apart in [false, true] {
        let mut file = Vec::new();
        let mut encoder = png_encoder(&mut file, [1, 1], ColorType::Rgb, BitDepth::Eight);
        encoder.set_animated(if apart { 1 } else { 2 }, 0).expect("frames");
        encoder.set_sep_def_img(apart).expect("an animation");
        let mut writer = encoder.write_header().expect("test header encodes");
        writer.write_image_data(&[1, 2, 3]).expect("the default frame");
        writer.write_image_data(&[4, 5, 6]).expect("a later frame");
        writer.finish().expect("test picture encodes");
        assert_eq!(levels(&file), [1, 2, 3], "apart: {apart}");
    }
}

#[test]
fn flat_jpeg_decodes() {
    let picture =
        decoded(&jpeg(&[128; 40 * 24 * 3], [40, 24], JpegColor::Rgb, SamplingFactor::F_2_2))
            .unwrap();
    assert_eq!((picture.width(), picture.height()), (40, 24));
    // Level 128 is the zero of the transform: no codec rounds it.
    assert!(picture.rgb().iter().all(|&level| level == 128));
    let picture =
        decoded(&jpeg(&[128; 3 * 50], [3, 50], JpegColor::Luma, SamplingFactor::F_1_1)).unwrap();
    assert_eq!((picture.width(), picture.height(), picture.rgb().len()), (3, 50, 450));
}

#[test]
fn flat_cmyk_jpeg_becomes_rgb() {
    // Ink without black: each channel of light is what its ink leaves of 255.
    let samples = [127, 127, 127, 0].repeat(16 * 16);
    for color in [JpegColor::Cmyk, JpegColor::CmykAsYcck] {
        let picture = decoded(&jpeg(&samples, [16, 16], color, SamplingFactor::F_1_1)).unwrap();
        assert!(picture.rgb().iter().all(|&level| level == 128), "{color:?}: {:?}", picture.rgb());
    }
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
    let file = png_row8(&[5; 60], 20, ColorType::Rgb);
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
    let mut file = png_row(&wide(&[1; 4]), 1, ColorType::Rgba, BitDepth::Sixteen);
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
    let file = jpeg(&[90; 16 * 16 * 3], [16, 16], JpegColor::Rgb, SamplingFactor::F_2_2);
    let frame = file.windows(2).position(|pair| pair == [0xFF, 0xC0]).expect("a frame header");
    for (width, height) in [(8192u16, 8192u16), (65535, 65535), (0, 16), (16, 0), (65535, 1)] {
        let mut forged = file.clone();
        forged[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
        forged[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
        let refused = decoded(&forged).expect_err("a forged size");
        assert!(!refused.to_string().contains('\n'), "{refused}");
    }
}

/// Files like this one, sound but rare, have made the JPEG decoder panic.
#[test]
fn coarse_cmyk_jpeg_does_no_harm() {
    let samples = (0..61 * 33 * 4).map(|i| (i / 3) as u8).collect::<Vec<_>>();
    let file = jpeg(&samples, [61, 33], JpegColor::Cmyk, SamplingFactor::F_4_1);
    match decoded(&file) {
        Ok(picture) => assert_eq!((picture.width(), picture.height()), (61, 33)),
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}

/// The decoder looks for more rows of black than this file has.
#[test]
fn a_jpeg_that_makes_the_decoder_panic_is_refused() {
    let mut file = jpeg(&[90; 8 * 8 * 4], [8, 8], JpegColor::Cmyk, SamplingFactor::F_4_1);
    let frame = file.windows(2).position(|pair| pair == [0xFF, 0xC0]).expect("a frame header");
    file[frame + 7..frame + 9].copy_from_slice(&264u16.to_be_bytes());
    let reason = "the decoder cannot cope with it".to_owned();
    assert_eq!(decoded(&file), Err(Error::Malformed { format: "JPEG", reason }));
}

#[test]
fn a_panic_that_is_answered_prints_nothing() {
    let only = ["--exact", "a_jpeg_that_makes_the_decoder_panic_is_refused", "--nocapture"];
    let this = std::env::current_exe().expect("the path of this program");
    let output = std::process::Command::new(this).args(only).output().expect("it runs again");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn truncated_png_is_refused() {
    let file = png_row8(&[200; 600], 200, ColorType::Rgb);
    for length in 0..file.len() - 12 {
        let error = decoded(&file[..length]).expect_err("a truncated file");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

/// Small files of several layouts to damage.
fn samples() -> Vec<Vec<u8>> {
    let noise = |bytes: usize| (0..bytes).map(|i| (i * i * 31 % 251) as u8).collect::<Vec<_>>();
    let rgb = noise(23 * 17 * 3);
    let rgba16 =
        rgb.chunks(3).flat_map(|rgb| [rgb[0], rgb[0], rgb[1], rgb[1], rgb[2], rgb[2], 255, 255]);
    vec![
        png(&rgb, [23, 17], ColorType::Rgb, BitDepth::Eight),
        png(&rgba16.collect::<Vec<_>>(), [23, 17], ColorType::Rgba, BitDepth::Sixteen),
        jpeg(&rgb, [23, 17], JpegColor::Rgb, SamplingFactor::F_2_2),
        jpeg(&noise(23 * 17), [23, 17], JpegColor::Luma, SamplingFactor::F_1_1),
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
