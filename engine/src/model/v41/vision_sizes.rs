//! Dims of the picture tower.

use super::config::{Config, Vision};
use crate::error::{Error, Result};
use crate::vision::PictureLimits;

/// Dims of a tower.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// Values of a patch.
    pub(super) pixels: u64,
    pub(super) width: u64,
    pub(super) heads: u64,
    pub(super) inter: u64,
    /// Patches along a side of a cell.
    pub(super) side: u64,
    /// Width of the text model.
    pub(super) hidden: u64,
    /// Positions of a span, at most.
    pub(super) tokens: u64,
}

impl Sizes {
    pub(super) fn of(config: &Config, vision: &Vision) -> Self {
        Self {
            pixels: (3 * vision.patch_pixels * vision.patch_pixels) as u64,
            width: vision.hidden_size as u64,
            heads: vision.heads as u64,
            inter: vision.intermediate_size as u64,
            side: vision.downsample as u64,
            hidden: config.hidden_size as u64,
            tokens: vision.max_image_tokens as u64,
        }
    }
    /// Values of a merged cell.
    pub(super) fn merged(&self) -> u64 {
        self.width * self.side * self.side
    }
    /// Cells of a picture, at most: every span has a start, an end, and one newline a row.
    pub(super) fn cells(&self) -> u64 {
        self.tokens.saturating_sub(3).max(1)
    }
    /// Patches of a picture, at most.
    pub(super) fn patches(&self) -> u64 {
        self.cells() * self.side * self.side
    }
}

/// The configuration of the tower.
///
/// # Errors
/// [`Error::Argument`] for a text-only model.
pub(super) fn vision(config: &Config) -> Result<&Vision> {
    let problem = "this model reads text only; send no pictures".to_owned();
    config.vision.as_ref().ok_or_else(|| Error::argument("pictures", problem))
}

/// What pictures may measure for this model.
///
/// # Errors
/// [`Error::Argument`] for a text-only model.
pub fn picture_limits(config: &Config) -> Result<PictureLimits> {
    let vision = vision(config)?;
    Ok(PictureLimits {
        patch: vision.patch_pixels as u32,
        downsample: vision.downsample as u32,
        max_image_tokens: vision.max_image_tokens as u32,
        min_pixels: vision.min_pixels,
        max_wh_ratio: vision.max_wh_ratio,
    })
}
