//! The way from pixels to patches and span, for shapes of every kind.

use proptest::prelude::*;
use tandem_engine::vision::{
    Error, PADDING_LEVEL, PatchMatrix, Picture, PictureInput, PictureLimits, Span, SpanKind,
    TargetSize, fit, resize,
};

const RELEASED: PictureLimits = PictureLimits {
    patch: 14,
    downsample: 3,
    max_image_tokens: 1024,
    min_pixels: 544 * 544,
    max_wh_ratio: None,
};

/// Small enough to run many.
const TINY: PictureLimits = PictureLimits { max_image_tokens: 64, min_pixels: 7056, ..RELEASED };

fn flat(width: u32, height: u32, level: u8) -> Picture {
    let rgb = vec![level; 3 * width as usize * height as usize];
    Picture::new(width, height, rgb).unwrap()
}

fn noise(width: u32, height: u32, seed: u32) -> Picture {
    let levels = 3 * width * height;
    let rgb = (0..levels).map(|i| ((i ^ seed).wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    Picture::new(width, height, rgb).unwrap()
}

#[test]
fn extreme_shapes_pass() {
    for (width, height) in [(1, 1), (1, 3000), (3000, 1), (50000, 1), (1, 50000), (65535, 2)] {
        let target = TargetSize::of(width, height, &RELEASED).unwrap();
        let input = PictureInput::from_picture(&flat(width, height, 200), &RELEASED).unwrap();
        assert_eq!(input.patches.patch_rows(), target.patch_rows);
        assert_eq!(input.patches.patch_columns(), target.patch_columns);
        assert_eq!(input.span, target.span);
        let values = input.patches.patches() * input.patches.patch_values();
        assert_eq!(input.patches.values().len(), values);
    }
}

#[test]
fn mismatched_pixels_are_refused() {
    assert_eq!(Picture::new(0, 3, vec![]), Err(Error::Empty { width: 0, height: 3 }));
    let refused = Picture::new(2, 2, vec![0; 11]);
    assert_eq!(refused, Err(Error::PixelBytes { width: 2, height: 2, bytes: 11 }));
    assert!(Picture::new(u32::MAX, u32::MAX, vec![0; 3]).is_err());
    for patch in [0, 3, 14] {
        let refused = PatchMatrix::new(&flat(4, 4, 0), patch);
        assert_eq!(refused, Err(Error::NotPatched { width: 4, height: 4, patch }));
    }
    assert_eq!(resize(&flat(2, 2, 0), 0, 9), Err(Error::Empty { width: 0, height: 9 }));
}

/// Weights by hand: doubling two pixels puts the centres at 0.25, 0.75, 1.25 and 1.75.
#[test]
fn doubling_two_pixels() {
    let picture = Picture::new(2, 1, [[0; 3], [200; 3]].concat()).unwrap();
    let wide = resize(&picture, 4, 1).unwrap();
    // Kernel at .25, .75: .8671875, .2265625; at 1.25: -.0703125. First: taps at .25 and 1.25,
    // normalised: 1.088235 and -.088235, so below zero. Second: taps at .25 and .75.
    assert_eq!(wide.rgb(), [[0; 3], [41; 3], [159; 3], [218; 3]].concat());
    let tall = Picture::new(1, 2, picture.rgb().to_vec()).unwrap();
    assert_eq!(resize(&tall, 1, 4).unwrap().rgb(), wide.rgb(), "both directions agree");
}

/// Two by two patches of two by two pixels, numbered.
#[test]
fn patch_order() {
    let levels: Vec<u8> = (0..48).collect();
    let patches = PatchMatrix::new(&Picture::new(4, 4, levels).unwrap(), 2).unwrap();
    let level = |value: &half::bf16| ((value.to_f32() + 1.0) * 127.5).round() as u8;
    let order: Vec<u8> = patches.values().iter().map(level).collect();
    assert_eq!(order[..12], [0, 3, 12, 15, 1, 4, 13, 16, 2, 5, 14, 17]);
    assert_eq!(order[12..24], [6, 9, 18, 21, 7, 10, 19, 22, 8, 11, 20, 23]);
    assert_eq!(order[24..28], [24, 27, 36, 39]);
}

#[test]
fn normalised_levels() {
    for (level, expected) in [
        (0, -1.0),
        (1, -0.992_187_5),
        (127, -0.003_936_767_578_125),
        (128, 0.003_936_767_578_125),
        (254, 0.992_187_5),
        (255, 1.0),
    ] {
        let patches = PatchMatrix::new(&flat(1, 1, level), 1).unwrap();
        assert!(patches.values().iter().all(|value| value.to_f64() == expected), "{level}");
    }
}

#[test]
fn padding_surrounds_the_picture() {
    let target = TargetSize::of(640, 480, &RELEASED).unwrap();
    let canvas = fit(&flat(640, 480, 9), &target).unwrap();
    let rows: Vec<bool> = canvas.rows().map(|row| row == vec![PADDING_LEVEL; 644 * 3]).collect();
    assert!(rows[..4].iter().all(|&padding| padding));
    assert!(rows[4..487].iter().all(|&padding| !padding));
    assert!(rows[487..].iter().all(|&padding| padding) && rows.len() == 490);
}

#[test]
fn span_of_two_by_three() {
    use SpanKind::{End, Image, Newline, Start};
    let span = Span { rows: 2, columns: 3 };
    let kinds = [Start, Image, Image, Image, Newline, Image, Image, Image, Newline, End];
    assert!(span.kinds().eq(kinds));
    assert_eq!((span.tokens(), span.cells()), (10, 6));
    let cells: Vec<Option<u64>> = (0..11).map(|position| span.cell(position)).collect();
    let (some, none) = (Some, None);
    assert_eq!(
        cells,
        [none, some(0), some(1), some(2), none, some(3), some(4), some(5), none, none, none]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_picture_passes(width in 1u32..400, height in 1u32..400, seed: u32) {
        let input = PictureInput::from_picture(&noise(width, height, seed), &TINY).unwrap();
        prop_assert!(input.span.tokens() <= 64);
        prop_assert!(input.patches.values().iter().all(|value| value.to_f32().abs() <= 1.0));
    }

    /// Weights sum to one within the rounding of 22 bits, at every edge and scale.
    #[test]
    fn flat_pictures_stay_flat(
        width in 1u32..200, height in 1u32..40, to in (1u32..400, 1u32..80), level: u8,
    ) {
        let scaled = resize(&flat(width, height, level), to.0, to.1).unwrap();
        prop_assert!(scaled.rgb().iter().all(|&value| value == level));
    }

    /// Extreme levels are where a 32-bit sum could overflow; overflow panics in this build.
    #[test]
    fn extreme_levels_do_not_overflow(
        width in 1u32..300, to in 1u32..600, bits in prop::collection::vec(any::<bool>(), 300),
    ) {
        let rgb = bits.iter().take(width as usize).flat_map(|&bit| [if bit { 255 } else { 0 }; 3]);
        let picture = Picture::new(width, 1, rgb.collect()).unwrap();
        prop_assert_eq!(resize(&picture, to, 1).unwrap().width(), to);
    }

    #[test]
    fn spans_count_what_they_list(rows in 1u32..40, columns in 1u32..40) {
        let span = Span { rows, columns };
        prop_assert_eq!(span.kinds().count() as u64, span.tokens());
        let cells: Vec<u64> = (0..span.tokens()).filter_map(|at| span.cell(at)).collect();
        prop_assert!(cells.into_iter().eq(0..span.cells()));
        let newlines = span.kinds().filter(|&kind| kind == SpanKind::Newline).count();
        prop_assert_eq!(newlines as u32, rows);
    }
}
