//! Run-time dispatch to the host's vector units, without changing a bit.

use crate::sum::dot;

/// Runs `f` compiled for the widest vector unit of this host. `f` and what it calls must be
/// `#[inline(always)]` to profit; results are the same either way.
#[inline(always)]
pub fn vectorised<R>(f: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(f)
}

/// Four dot products against one `x`, each in the order of [`crate::sum::dot`].
#[inline(always)]
pub fn dot4(x: &[f32], w: [&[f32]; 4]) -> [f64; 4] {
    pulp::Arch::new().dispatch(Dot4 { x, w })
}

/// [`dot4`] as an operation: unlike a closure, it is inlined into the dispatched function for sure,
/// and so is compiled for its vector unit.
struct Dot4<'a> {
    x: &'a [f32],
    w: [&'a [f32]; 4],
}

impl pulp::WithSimd for Dot4<'_> {
    type Output = [f64; 4];
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> [f64; 4] {
        let [a, b, c, d] = self.w;
        // One after the other: with all 32 lanes of four at once, the compiler keeps them in memory.
        [dot(self.x, a), dot(self.x, b), dot(self.x, c), dot(self.x, d)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_at_once_have_the_bits_of_one() {
        for n in [0, 1, 7, 8, 9, 64, 100] {
            let row = |s: usize| -> Vec<f32> {
                (0..n).map(|i| ((i * 37 + s * 11) % 101) as f32 * 0.37 - 18.0).collect()
            };
            let (x, w) = (row(9), [row(1), row(2), row(3), row(4)]);
            let each: Vec<u64> = w.iter().map(|w| dot(&x, w).to_bits()).collect();
            let [a, b, c, d] = &w;
            let four = vectorised(|| dot4(&x, [a, b, c, d]));
            assert_eq!(four.map(f64::to_bits).to_vec(), each, "{n} elements");
        }
    }
}
