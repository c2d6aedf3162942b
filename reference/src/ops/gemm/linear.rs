//! The arithmetic that all dense linears share: `y = W x + b` per row, one rounding.

use crate::{Tensor, TensorMut, Tolerance, simd, sum, tensor_mut::encode_row};
use rayon::prelude::*;

/// Accumulation in fp32, promoted at least every 32 products: each of the `k / 32` promotions may
/// lose an ulp of the running sum, each block of 32 a few.
pub(crate) fn tolerance(k: u64) -> Tolerance {
    let promotions = k.div_ceil(32) as f64;
    Tolerance::Bound { gamma: (promotions + 8.0) * f64::from(f32::EPSILON) }
}

/// One dot product per element, in order: the definition.
pub(crate) fn scalar(
    x: &Tensor<'_>,
    weight: &Tensor<'_>,
    bias: Option<&Tensor<'_>>,
    y: &mut TensorMut<'_>,
) {
    if y.is_empty() {
        return;
    }
    let bias = bias.map(|b| b.row(0));
    for t in 0..x.rows() {
        let row = x.row(t);
        let (mut values, mut magnitudes) = (vec![], vec![]);
        for n in 0..weight.rows() {
            let w = weight.row(n);
            let b = bias.as_ref().map_or(0.0, |b| f64::from(b[n]));
            values.push(sum::dot(&row, &w) + b);
            if y.wants_magnitude() {
                magnitudes.push(sum::dot_magnitude(&row, &w) + b.abs());
            }
        }
        y.set_row(t, &values);
        y.set_magnitude(t, &magnitudes);
    }
}

/// Rows of the weight in blocks of four over threads; the bits of [`scalar`].
pub(crate) fn blocked(
    x: &Tensor<'_>,
    weight: &Tensor<'_>,
    bias: Option<&Tensor<'_>>,
    y: &mut TensorMut<'_>,
) {
    if y.is_empty() {
        return;
    }
    let bias = bias.map(|b| b.row(0));
    let rows: Vec<_> = (0..x.rows()).map(|t| x.row(t)).collect();
    let (tokens, outputs, enc) = (rows.len(), weight.rows(), y.enc);
    let mut sums = vec![0.0f64; tokens * outputs];
    // Outputs outermost, so that each weight row is read once however many tokens there are.
    let columns: Vec<Vec<f64>> = (0..outputs.div_ceil(4))
        .into_par_iter()
        .with_min_len((1 << 14) / (4 * weight.cols() * tokens.max(1)).max(1))
        .map(|block| {
            let at = |i: usize| weight.row((4 * block + i).min(outputs - 1));
            let w = [at(0), at(1), at(2), at(3)];
            simd::vectorised(|| {
                let w = [&*w[0], &*w[1], &*w[2], &*w[3]];
                rows.iter().flat_map(|x| simd::dot4(x, w)).collect()
            })
        })
        .collect();
    for (block, column) in columns.iter().enumerate() {
        for (t, four) in column.as_chunks::<4>().0.iter().enumerate() {
            for (i, v) in four.iter().enumerate().take(outputs - 4 * block) {
                let b = bias.as_ref().map_or(0.0, |b| f64::from(b[4 * block + i]));
                sums[t * outputs + 4 * block + i] = v + b;
            }
        }
    }
    for (t, bytes) in y.split_rows() {
        encode_row(enc, bytes, &sums[t * outputs..][..outputs]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_hal::Enc;

    #[test]
    fn blocked_has_the_bits_of_scalar() {
        for (tokens, n, k) in [(1usize, 1usize, 32usize), (3, 5, 33), (7, 64, 100)] {
            let bytes = |count: usize, step: usize| -> Vec<u8> {
                let real = |i: usize| ((i * step) % 211) as f32 * 0.031 - 3.2;
                (0..count).flat_map(|i| real(i).to_le_bytes()).collect()
            };
            let (xs, ws, bs) = (bytes(tokens * k, 7), bytes(n * k, 13), bytes(n, 3));
            let dims = |a: usize, b: usize| [a as u64, b as u64];
            let x = Tensor::dense(Enc::F32, &dims(tokens, k), &xs, &[]);
            let w = Tensor::dense(Enc::F32, &dims(n, k), &ws, &[]);
            let b = Tensor::dense(Enc::F32, &[n as u64], &bs, &[]);
            let run = |f: fn(&Tensor<'_>, &Tensor<'_>, Option<&Tensor<'_>>, &mut TensorMut<'_>)| {
                let mut out = vec![0u8; tokens * n * 2];
                let mut y = TensorMut::dense(Enc::BF16, &dims(tokens, n), &mut out, &mut [], None);
                f(&x, &w, Some(&b), &mut y);
                out
            };
            assert_eq!(run(scalar), run(blocked), "{tokens} {n} {k}");
        }
    }
}
