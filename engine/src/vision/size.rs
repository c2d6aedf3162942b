//! How large the model sees a picture.

use super::{Error, Span};

/// The numbers of a checkpoint's `vision_config` that decide sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PictureLimits {
    /// Side of a patch in pixels.
    pub patch: u32,
    /// Patches per side of the square that becomes one token.
    pub downsample: u32,
    /// Longest span of one picture in tokens, markers and newlines included.
    pub max_image_tokens: u32,
    /// Pictures of fewer pixels are enlarged to about this many.
    pub min_pixels: u64,
    /// Wider pictures count as this many times their height; `None` for no such rule.
    pub max_wh_ratio: Option<f64>,
}

impl PictureLimits {
    /// Refuses values that leave no valid size, or sizes beyond any use.
    ///
    /// # Errors
    ///
    /// [`Error::Limits`] naming the first field out of range.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |field, value: String, allowed| Err(Error::Limits { field, value, allowed });
        if !(1..=256).contains(&self.patch) {
            return refuse("patch_size", self.patch.to_string(), "1 to 256");
        }
        if !(1..=16).contains(&self.downsample) {
            return refuse("downsample_ratio", self.downsample.to_string(), "1 to 16");
        }
        // Four: start, one image token, its newline, end.
        if !(4..=16384).contains(&self.max_image_tokens) {
            return refuse("max_image_tokens", self.max_image_tokens.to_string(), "4 to 16384");
        }
        if self.min_pixels > 1 << 32 {
            return refuse("min_pixels", self.min_pixels.to_string(), "at most 4294967296");
        }
        match self.max_wh_ratio {
            Some(ratio) if !(ratio.is_finite() && ratio > 0.0) => {
                refuse("max_wh_ratio", ratio.to_string(), "null or a positive number")
            }
            _ => Ok(()),
        }
    }

    /// Side of the square that becomes one token, in pixels.
    fn cell(&self) -> u32 {
        self.patch * self.downsample
    }
}

/// The canvas a picture is scaled onto, a whole number of patches each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetSize {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Patches from top to bottom.
    pub patch_rows: u32,
    /// Patches from left to right.
    pub patch_columns: u32,
    /// The positions of the picture in the prompt.
    pub span: Span,
}

impl TargetSize {
    /// The canvas for a picture of `width` by `height` pixels.
    ///
    /// Small pictures are enlarged to `min_pixels` in area; sides are rounded up to patches; if
    /// the span is then over the budget, the largest fitting scale is solved for from the sides
    /// before rounding up. One round, in doubles, in the order of the publisher's processor: the
    /// floors depend on that order.
    ///
    /// `max_wh_ratio`, null in every released configuration, truncates the width to whole pixels.
    ///
    /// # Errors
    ///
    /// [`Error::Empty`] if a side is zero, [`Error::Limits`] if the limits are unusable.
    pub fn of(width: u32, height: u32, limits: &PictureLimits) -> Result<Self, Error> {
        limits.check()?;
        if width == 0 || height == 0 {
            return Err(Error::Empty { width, height });
        }
        let (width, height) = enlarged(width, height, limits);
        let patch = u64::from(limits.patch);
        let patches = (width.div_ceil(patch), height.div_ceil(patch));
        let budget = u64::from(limits.max_image_tokens);
        let (columns, rows) = if span_tokens(patches, limits) <= budget {
            patches
        } else {
            shrunk(width as f64, height as f64, limits)
        };
        debug_assert!(span_tokens((columns, rows), limits) <= budget, "{width}x{height}");
        // Within the budget a side has at most 16382 * 16 patches of at most 256 pixels.
        let (patch_columns, patch_rows) = (columns as u32, rows as u32);
        Ok(Self {
            width: patch_columns * limits.patch,
            height: patch_rows * limits.patch,
            patch_rows,
            patch_columns,
            span: Span {
                rows: patch_rows.div_ceil(limits.downsample),
                columns: patch_columns.div_ceil(limits.downsample),
            },
        })
    }
}

/// Sides after the ratio limit and the enlargement of small pictures, truncated to pixels.
fn enlarged(width: u32, height: u32, limits: &PictureLimits) -> (u64, u64) {
    let (mut width, height) = (u64::from(width), u64::from(height));
    if let Some(ratio) = limits.max_wh_ratio {
        let widest = height as f64 * ratio;
        if width as f64 > widest {
            width = (widest as u64).max(1);
        }
    }
    let area = width * height;
    if area >= limits.min_pixels {
        return (width, height);
    }
    let scale = (limits.min_pixels as f64 / area as f64).sqrt();
    ((width as f64 * scale) as u64, (height as f64 * scale) as u64)
}

/// Span length of a grid of `(columns, rows)` patches.
fn span_tokens((columns, rows): (u64, u64), limits: &PictureLimits) -> u64 {
    let downsample = u64::from(limits.downsample);
    rows.div_ceil(downsample) * (columns.div_ceil(downsample) + 1) + 2
}

/// `(columns, rows)` of patches of the largest fitting canvas of about this shape.
fn shrunk(width: f64, height: f64, limits: &PictureLimits) -> (u64, u64) {
    let downsample = u64::from(limits.downsample);
    let inner_tokens = u64::from(limits.max_image_tokens) - 2;
    let cell = f64::from(limits.cell());
    // rows * (columns + 1) = inner_tokens with rows = ratio * columns, in cells.
    let ratio = height / width;
    let columns = (inner_tokens as f64 / ratio + 0.25).sqrt() - 0.5;
    let rows = columns * ratio;
    if columns < 1.0 {
        (downsample, inner_tokens / 2 * downsample)
    } else if rows < 1.0 {
        ((inner_tokens - 1) * downsample, downsample)
    } else {
        let scale = (columns.floor() * cell / width).min(rows.floor() * cell / height);
        let patches = |side: f64| ((side * scale / f64::from(limits.patch)).floor() as u64).max(1);
        (patches(width), patches(height))
    }
}
