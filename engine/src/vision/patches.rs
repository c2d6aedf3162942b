//! The matrix the vision tower reads.

use half::bf16;
use sha2::{Digest, Sha256};

use super::{Error, Picture};

/// Normalised patches of one picture, `[patch_rows * patch_columns, 3 * patch * patch]`.
///
/// Patches are in reading order; within one, values are ordered by channel (red, green, blue),
/// then row, then column.
#[derive(Clone, Debug, PartialEq)]
pub struct PatchMatrix {
    patch_rows: u32,
    patch_columns: u32,
    patch: u32,
    values: Vec<bf16>,
    digest: [u8; 32],
}

impl PatchMatrix {
    /// Cuts `picture` into patches of `patch` by `patch` pixels. A level becomes
    /// `(level / 255 - 0.5) / 0.5`, in fp32 with one rounding to bf16 at the end.
    ///
    /// # Errors
    ///
    /// [`Error::NotPatched`] if a side is no multiple of `patch`, or `patch` is zero.
    pub fn new(picture: &Picture, patch: u32) -> Result<Self, Error> {
        let (width, height) = (picture.width(), picture.height());
        if patch == 0 || !width.is_multiple_of(patch) || !height.is_multiple_of(patch) {
            return Err(Error::NotPatched { width, height, patch });
        }
        let normalised = normalised_levels();
        let (side, line) = (patch as usize, 3 * width as usize);
        let mut values = Vec::with_capacity(picture.rgb().len());
        for band in picture.rgb().chunks_exact(side * line) {
            for left in (0..line).step_by(3 * side) {
                for channel in 0..3 {
                    for row in band.chunks_exact(line) {
                        let pixels = row[left..left + 3 * side].chunks_exact(3);
                        values.extend(pixels.map(|pixel| normalised[usize::from(pixel[channel])]));
                    }
                }
            }
        }
        let (patch_rows, patch_columns) = (height / patch, width / patch);
        let mut digest = Sha256::new();
        for size in [patch_rows, patch_columns, patch] {
            digest.update(size.to_le_bytes());
        }
        for value in &values {
            digest.update(value.to_le_bytes());
        }
        let digest = digest.finalize().into();
        Ok(Self { patch_rows, patch_columns, patch, values, digest })
    }

    /// SHA-256 of its sizes and values: equal for equal matrices, and for no others.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Patches from top to bottom.
    pub fn patch_rows(&self) -> u32 {
        self.patch_rows
    }

    /// Patches from left to right.
    pub fn patch_columns(&self) -> u32 {
        self.patch_columns
    }

    /// Number of patches, the rows of the matrix.
    pub fn patches(&self) -> usize {
        self.patch_rows as usize * self.patch_columns as usize
    }

    /// Values per patch, the columns of the matrix: `3 * patch * patch`.
    pub fn patch_values(&self) -> usize {
        3 * (self.patch as usize).pow(2)
    }

    /// The matrix as a device reads it: row by row, two little-endian bytes a value.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// The matrix, row by row.
    pub fn values(&self) -> &[bf16] {
        &self.values
    }
}

/// The bf16 value of each of the 256 levels.
fn normalised_levels() -> [bf16; 256] {
    std::array::from_fn(|level| bf16::from_f32((level as f32 / 255.0 - 0.5) / 0.5))
}
