//! One axis of a bicubic resampling in 8-bit fixed point.

/// Fraction bits of a weight: a weighted sum of 8-bit levels stays within 32 bits. The magnitudes
/// of a position's weights sum to less than 1.5 (1.27 at worst), and 1.5 * 255 * 2^22 < 2^31.
const FRACTION_BITS: u32 = 32 - 8 - 2;

/// Half the width of the kernel in source pixels when not shrinking.
const SUPPORT: f64 = 2.0;

/// The weights of every output position along one axis.
///
/// The kernel is the cubic convolution with `a = -0.5`, widened by the scale when shrinking so
/// that it also filters. Weights are computed and normalised in doubles, then rounded half away
/// from zero to 22 fraction bits.
pub(super) struct Axis {
    windows: Vec<Window>,
    weights: Vec<i32>,
}

/// The source pixels of one output position and where their weights are.
struct Window {
    first: usize,
    weights: std::ops::Range<usize>,
}

impl Axis {
    /// Weights that bring `from` pixels to `to` pixels, both at least one.
    pub(super) fn new(from: u32, to: u32) -> Self {
        let scale = f64::from(from) / f64::from(to);
        let stretch = scale.max(1.0);
        let support = SUPPORT * stretch;
        let inverse = 1.0 / stretch;
        let mut axis = Self { windows: Vec::with_capacity(to as usize), weights: Vec::new() };
        let mut exact = Vec::new();
        for position in 0..to {
            let centre = (f64::from(position) + 0.5) * scale;
            // Float to integer casts truncate and saturate at zero.
            let first = (centre - support + 0.5) as u32;
            let end = ((centre + support + 0.5) as u32).min(from);
            exact.clear();
            exact.extend(
                (first..end).map(|pixel| kernel((f64::from(pixel) - centre + 0.5) * inverse)),
            );
            let total: f64 = exact.iter().sum();
            let start = axis.weights.len();
            // `f64::round` rounds half away from zero.
            let one = f64::from(1u32 << FRACTION_BITS);
            axis.weights.extend(exact.iter().map(|weight| (weight / total * one).round() as i32));
            let weights = start..axis.weights.len();
            axis.windows.push(Window { first: first as usize, weights });
        }
        axis
    }

    /// For each output position: its first source pixel and the weights from there on.
    pub(super) fn taps(&self) -> impl Iterator<Item = (usize, &[i32])> {
        self.windows.iter().map(|window| (window.first, &self.weights[window.weights.clone()]))
    }
}

/// A sum that rounds to nearest once it is shifted.
pub(super) const HALF: i32 = 1 << (FRACTION_BITS - 1);

/// The level of a sum that started at [`HALF`].
pub(super) fn level(sum: i32) -> u8 {
    (sum >> FRACTION_BITS).clamp(0, 255) as u8
}

/// Cubic convolution with `a = -0.5`.
fn kernel(distance: f64) -> f64 {
    const A: f64 = -0.5;
    let x = distance.abs();
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < SUPPORT {
        (((x - 5.0) * x + 8.0) * x - 4.0) * A
    } else {
        0.0
    }
}
