//! Scaling a picture onto its canvas, bit for bit as Pillow does.

use super::bicubic::{Axis, HALF, level};
use super::{Error, Picture, TargetSize};

/// Level of the three channels of the canvas around the picture.
pub const PADDING_LEVEL: u8 = 127;

/// Size and top left corner of a scaled picture on its canvas, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Placement {
    width: u32,
    height: u32,
    left: u32,
    top: u32,
}

impl Placement {
    /// Fits `width` by `height` pixels inside `canvas_width` by `canvas_height`, keeping the
    /// shape, and centres them. One of the two sides fills the canvas; the other side and its
    /// offset are rounded half to even (never to zero pixels: extreme shapes get one).
    ///
    /// All four are at least one.
    fn new(width: u32, height: u32, canvas_width: u32, canvas_height: u32) -> Self {
        let (w, h) = (f64::from(width), f64::from(height));
        let (canvas_w, canvas_h) = (f64::from(canvas_width), f64::from(canvas_height));
        let (shape, canvas_shape) = (w / h, canvas_w / canvas_h);
        let (mut new_width, mut new_height) = (canvas_width, canvas_height);
        if shape > canvas_shape {
            new_height = ((h / w * canvas_w).round_ties_even() as u32).clamp(1, canvas_height);
        } else if shape < canvas_shape {
            new_width = ((w / h * canvas_h).round_ties_even() as u32).clamp(1, canvas_width);
        }
        let offset = |free: u32| (f64::from(free) * 0.5).round_ties_even() as u32;
        Self {
            width: new_width,
            height: new_height,
            left: offset(canvas_width - new_width),
            top: offset(canvas_height - new_height),
        }
    }
}

/// Scales `picture` onto the canvas of `target` and fills the rest with [`PADDING_LEVEL`].
///
/// # Errors
///
/// [`Error::Empty`] if the target has no pixels.
pub fn fit(picture: &Picture, target: &TargetSize) -> Result<Picture, Error> {
    let (width, height) = (target.width, target.height);
    if width == 0 || height == 0 {
        return Err(Error::Empty { width, height });
    }
    let place = Placement::new(picture.width(), picture.height(), width, height);
    let scaled = resize(picture, place.width, place.height)?;
    let line = 3 * width as usize;
    let left = 3 * place.left as usize;
    let mut canvas = vec![PADDING_LEVEL; line * height as usize];
    for (row, to) in scaled.rows().zip(canvas.chunks_exact_mut(line).skip(place.top as usize)) {
        to[left..left + row.len()].copy_from_slice(row);
    }
    Picture::new(width, height, canvas)
}

/// Scales `picture` to exactly `width` by `height` pixels: bicubic, filtered when shrinking,
/// columns first, each direction rounded to 8 bits. A direction that keeps its size is skipped.
///
/// # Errors
///
/// [`Error::Empty`] if a side is zero.
pub fn resize(picture: &Picture, width: u32, height: u32) -> Result<Picture, Error> {
    if width == 0 || height == 0 {
        return Err(Error::Empty { width, height });
    }
    let across =
        if width == picture.width() { picture.rgb().to_vec() } else { scale_rows(picture, width) };
    if height == picture.height() {
        return Picture::new(width, height, across);
    }
    let rgb = scale_columns(&across, 3 * width as usize, picture.height(), height);
    Picture::new(width, height, rgb)
}

/// Every row brought to `width` pixels.
fn scale_rows(picture: &Picture, width: u32) -> Vec<u8> {
    let axis = Axis::new(picture.width(), width);
    let mut rgb = Vec::with_capacity(3 * width as usize * picture.height() as usize);
    for row in picture.rows() {
        for (first, weights) in axis.taps() {
            let mut sums = [HALF; 3];
            for (pixel, weight) in row[3 * first..].chunks_exact(3).zip(weights) {
                for (sum, &value) in sums.iter_mut().zip(pixel) {
                    *sum += weight * i32::from(value);
                }
            }
            rgb.extend(sums.map(level));
        }
    }
    rgb
}

/// `from` rows of `line` bytes brought to `to` rows.
fn scale_columns(rgb: &[u8], line: usize, from: u32, to: u32) -> Vec<u8> {
    let axis = Axis::new(from, to);
    let mut scaled = Vec::with_capacity(line * to as usize);
    let mut sums = vec![HALF; line];
    for (first, weights) in axis.taps() {
        sums.fill(HALF);
        for (row, weight) in rgb[first * line..].chunks_exact(line).zip(weights) {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += weight * i32::from(value);
            }
        }
        scaled.extend(sums.iter().map(|&sum| level(sum)));
    }
    scaled
}

#[cfg(test)]
mod tests {
    use super::Placement;

    fn place(width: u32, height: u32, canvas: (u32, u32)) -> (u32, u32, u32, u32) {
        let Placement { width, height, left, top } =
            Placement::new(width, height, canvas.0, canvas.1);
        (width, height, left, top)
    }

    #[test]
    fn odd_offsets_round_to_even() {
        assert_eq!(place(640, 480, (644, 490)), (644, 483, 0, 4), "3.5 becomes 4");
        assert_eq!(place(10, 9, (70, 68)), (70, 63, 0, 2), "2.5 becomes 2");
        assert_eq!(place(9, 10, (68, 70)), (63, 70, 2, 0));
    }

    #[test]
    fn sides_round_to_even_and_stay_on_the_canvas() {
        assert_eq!(place(4, 1, (10, 10)), (10, 2, 0, 4), "2.5 rows become 2");
        assert_eq!(place(4, 1, (14, 14)), (14, 4, 0, 5), "3.5 rows become 4");
        assert_eq!(place(3, 2, (42, 28)), (42, 28, 0, 0), "the same shape fills the canvas");
        assert_eq!(place(1_000_000, 1, (42882, 42)), (42882, 1, 0, 20), "never zero rows");
        assert_eq!(place(1, u32::MAX, (42, 21462)), (1, 21462, 20, 0));
    }
}
