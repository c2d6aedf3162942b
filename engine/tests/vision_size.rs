//! Target sizes against the published table, and for arbitrary sizes and limits.

use proptest::prelude::*;
use tandem_engine::vision::{Error, PictureLimits, TargetSize};

const RELEASED: PictureLimits = PictureLimits {
    patch: 14,
    downsample: 3,
    max_image_tokens: 1024,
    min_pixels: 544 * 544,
    max_wh_ratio: None,
};

#[test]
fn published_sizes() {
    let square = (546, 546, 13, 13, 184);
    let largest_square = (1302, 1302, 31, 31, 994);
    let tallest = (42, 21462, 511, 1, 1024);
    // Input, then width, height, rows and columns of cells, tokens.
    for ((width, height), expected) in [
        ((1, 1), square),
        ((100, 100), square),
        ((224, 224), square),
        ((544, 544), square),
        ((640, 480), (644, 490, 12, 16, 206)),
        ((978, 479), (980, 490, 12, 24, 302)),
        ((272, 300), (518, 574, 14, 13, 198)),
        ((40, 50), (490, 616, 15, 12, 197)),
        ((1344, 1344), largest_square),
        ((4096, 4096), largest_square),
        ((8192, 8192), largest_square),
        ((1920, 1080), (1708, 966, 23, 41, 968)),
        ((1080, 1920), (966, 1708, 41, 23, 986)),
        ((3024, 4032), (1134, 1512, 36, 27, 1010)),
        ((16809, 11841), (1540, 1092, 26, 37, 990)),
        ((2, 165), (70, 4942, 118, 2, 356)),
        ((165, 2), (4942, 70, 2, 118, 240)),
        ((158, 10000), (126, 7966, 190, 3, 762)),
        ((10000, 158), (10010, 168, 4, 239, 962)),
        ((3000, 1), (29806, 14, 1, 710, 713)),
        ((1, 3000), tallest),
        ((1, 50000), tallest),
        ((50000, 1), (42882, 42, 1, 1021, 1024)),
    ] {
        let target = TargetSize::of(width, height, &RELEASED).unwrap();
        let span = target.span;
        assert_eq!(
            (target.width, target.height, span.rows, span.columns, span.tokens()),
            expected,
            "{width}x{height}"
        );
    }
}

/// One round, not iterated to a fixed point: fed its own output, the rule moves on to 10556.
#[test]
fn one_round_only() {
    let target = TargetSize::of(13, 4871, &RELEASED).unwrap();
    assert_eq!((target.width, target.height), (28, 10542));
    let again = TargetSize::of(target.width, target.height, &RELEASED).unwrap();
    assert_eq!((again.width, again.height), (28, 10556));
}

#[test]
fn ratio_limit_narrows_wide_pictures_only() {
    let limits = PictureLimits { max_wh_ratio: Some(2.5), ..RELEASED };
    let as_if = |width, height| TargetSize::of(width, height, &RELEASED);
    assert_eq!(TargetSize::of(4000, 401, &limits), as_if(1002, 401));
    assert_eq!(TargetSize::of(1000, 400, &limits), as_if(1000, 400));
    assert_eq!(TargetSize::of(400, 4000, &limits), as_if(400, 4000));
    let narrow = PictureLimits { max_wh_ratio: Some(0.001), ..RELEASED };
    assert_eq!(TargetSize::of(9, 9, &narrow), as_if(1, 9), "at least one pixel is left");
}

#[test]
fn unusable_limits_are_named() {
    let field = |limits: PictureLimits| match TargetSize::of(10, 10, &limits) {
        Err(Error::Limits { field, .. }) => field,
        other => panic!("not refused: {other:?}"),
    };
    assert_eq!(field(PictureLimits { patch: 0, ..RELEASED }), "patch_size");
    assert_eq!(field(PictureLimits { patch: 1 << 20, ..RELEASED }), "patch_size");
    assert_eq!(field(PictureLimits { downsample: 0, ..RELEASED }), "downsample_ratio");
    assert_eq!(field(PictureLimits { max_image_tokens: 3, ..RELEASED }), "max_image_tokens");
    assert_eq!(field(PictureLimits { min_pixels: u64::MAX, ..RELEASED }), "min_pixels");
    for ratio in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(field(PictureLimits { max_wh_ratio: Some(ratio), ..RELEASED }), "max_wh_ratio");
    }
}

#[test]
fn no_pixels_is_an_error() {
    for (width, height) in [(0, 0), (0, 7), (7, 0)] {
        let error = TargetSize::of(width, height, &RELEASED).unwrap_err();
        assert_eq!(error, Error::Empty { width, height });
        assert!(!error.to_string().contains('\n'));
    }
}

/// Sides of every magnitude.
fn side() -> impl Strategy<Value = u32> {
    (0u32..32, any::<u32>()).prop_map(|(bits, value)| (value >> bits).max(1))
}

fn limits() -> impl Strategy<Value = PictureLimits> {
    (1u32..=256, 1u32..=16, 4u32..=16384, 0u64..=1 << 32, prop::option::of(0.001f64..1000.0))
        .prop_map(|(patch, downsample, max_image_tokens, min_pixels, max_wh_ratio)| PictureLimits {
            patch,
            downsample,
            max_image_tokens,
            min_pixels,
            max_wh_ratio,
        })
}

fn check(width: u32, height: u32, limits: &PictureLimits) -> Result<(), TestCaseError> {
    let target = TargetSize::of(width, height, limits).unwrap();
    prop_assert!(target.patch_rows >= 1 && target.patch_columns >= 1);
    prop_assert_eq!(target.width, target.patch_columns * limits.patch);
    prop_assert_eq!(target.height, target.patch_rows * limits.patch);
    prop_assert_eq!(target.span.rows, target.patch_rows.div_ceil(limits.downsample));
    prop_assert_eq!(target.span.columns, target.patch_columns.div_ceil(limits.downsample));
    prop_assert!(target.span.tokens() <= u64::from(limits.max_image_tokens));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn any_size_fits_the_released_budget(width in side(), height in side()) {
        check(width, height, &RELEASED)?;
    }

    #[test]
    fn any_size_fits_any_budget(width in side(), height in side(), limits in limits()) {
        check(width, height, &limits)?;
    }

    #[test]
    fn small_budgets_are_kept(
        width in side(), height in side(), downsample in 1u32..4, max_image_tokens in 4u32..40,
    ) {
        check(width, height, &PictureLimits { downsample, max_image_tokens, ..RELEASED })?;
    }
}
