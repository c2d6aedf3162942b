//! The arithmetic that all dense linears share: `y = W x + b` per row, one rounding.
//!
//! A linear may be block-diagonal: of `groups` blocks, row `t * groups + g` of `x` meets the g-th
//! share of the weight's rows and gives row `t * groups + g` of `y`.

use crate::{Tensor, TensorMut, Tolerance, simd, sum, tensor_mut::encode_row, threads};

/// Accumulation in fp32, promoted at least every 32 products: each of the `k / 32` promotions may
/// lose an ulp of the running sum, each block of 32 a few.
pub(crate) fn tolerance(k: u64) -> Tolerance {
    Tolerance::Bound { gamma: gamma(k) }
}

/// The factor of [`tolerance`].
pub(crate) fn gamma(k: u64) -> f64 {
    let promotions = k.div_ceil(32) as f64;
    (promotions + 8.0) * f64::from(f32::EPSILON)
}

/// One dot product per element, in order: the definition.
pub(crate) fn scalar(
    x: &Tensor<'_>,
    weight: &Tensor<'_>,
    bias: Option<&Tensor<'_>>,
    groups: usize,
    y: &mut TensorMut<'_>,
) {
    if y.is_empty() {
        return;
    }
    let (outputs, bias) = (y.cols(), bias.map(|b| b.row(0)));
    let rows: Vec<_> = (0..x.rows()).map(|r| x.row(r)).collect();
    let mut values = vec![vec![0.0; outputs]; rows.len()];
    let mut magnitudes = if y.wants_magnitude() { values.clone() } else { vec![] };
    for (g, n) in (0..groups).flat_map(|g| (0..outputs).map(move |n| (g, n))) {
        let w = weight.row(g * outputs + n);
        let b = bias.as_ref().map_or(0.0, |b| f64::from(b[n]));
        for r in (g..rows.len()).step_by(groups) {
            values[r][n] = sum::dot(&rows[r], &w) + b;
            if let Some(row) = magnitudes.get_mut(r) {
                row[n] = sum::dot_magnitude(&rows[r], &w) + b.abs();
            }
        }
    }
    for (r, row) in values.iter().enumerate() {
        y.set_row(r, row);
    }
    for (r, row) in magnitudes.iter().enumerate() {
        y.set_magnitude(r, row);
    }
}

/// Rows of the weight in blocks of four over threads; the bits of [`scalar`].
pub(crate) fn blocked(
    x: &Tensor<'_>,
    weight: &Tensor<'_>,
    bias: Option<&Tensor<'_>>,
    groups: usize,
    y: &mut TensorMut<'_>,
) {
    if y.is_empty() {
        return;
    }
    let (outputs, enc, bias) = (y.cols(), y.enc, bias.map(|b| b.row(0)));
    let rows: Vec<_> = (0..x.rows()).map(|r| x.row(r)).collect();
    let (tokens, blocks) = (rows.len() / groups, outputs.div_ceil(4));
    // By group, block and token: each weight row is read once however many tokens there are.
    let mut sums = vec![[0.0f64; 4]; groups * blocks * tokens];
    let items: Vec<_> = sums.chunks_mut(tokens).enumerate().collect();
    threads::each(items, weight.cols() * tokens, |(item, sums)| {
        let (g, block) = (item / blocks, item % blocks);
        let at = |i: usize| weight.row(g * outputs + (4 * block + i).min(outputs - 1));
        let w = [at(0), at(1), at(2), at(3)];
        simd::vectorised(|| {
            let w = [&*w[0], &*w[1], &*w[2], &*w[3]];
            for (t, four) in sums.iter_mut().enumerate() {
                *four = simd::dot4(&rows[t * groups + g], w);
            }
        });
    });
    let mut values = vec![0.0; outputs];
    for (r, bytes) in y.split_rows() {
        let (t, g) = (r / groups, r % groups);
        for (n, v) in values.iter_mut().enumerate() {
            let b = bias.as_ref().map_or(0.0, |b| f64::from(b[n]));
            *v = sums[(g * blocks + n / 4) * tokens + t][n % 4] + b;
        }
        encode_row(enc, bytes, &values);
    }
}
