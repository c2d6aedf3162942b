//! All a picture brings to the model.

use super::{
    DecodeLimits, Error, PatchMatrix, Picture, PictureLimits, Span, TargetSize, decode, fit,
};

/// What the vision tower and the prompt need of one picture.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureInput {
    /// The tower's input.
    pub patches: PatchMatrix,
    /// The positions in the prompt.
    pub span: Span,
}

impl PictureInput {
    /// From the bytes of a PNG or JPEG file.
    ///
    /// # Errors
    ///
    /// Those of [`decode`] and of [`TargetSize::of`].
    pub fn from_file(
        file: &[u8],
        decode_limits: &DecodeLimits,
        limits: &PictureLimits,
    ) -> Result<Self, Error> {
        Self::from_picture(&decode(file, decode_limits)?, limits)
    }

    /// From decoded pixels.
    ///
    /// # Errors
    ///
    /// Those of [`TargetSize::of`].
    pub fn from_picture(picture: &Picture, limits: &PictureLimits) -> Result<Self, Error> {
        let target = TargetSize::of(picture.width(), picture.height(), limits)?;
        let patches = PatchMatrix::new(&fit(picture, &target)?, limits.patch)?;
        Ok(Self { patches, span: target.span })
    }
}
