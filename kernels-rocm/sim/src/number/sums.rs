//! How matrix units of CDNA3 add, as MMA-Sim measured it on hardware: products in groups of 8 (16-bit operands)
//! or 16 (8-bit ones) are aligned to the largest exponent, cut to 24 bits of fraction, added, and joined with the
//! accumulator; each group is rounded once.

/// A number as a significand and an exponent: 1 <= |significand| < 2, less for what is below the least exponent.
fn parts(x: f64, least: i32) -> (f64, i32) {
    if x == 0.0 {
        return (0.0, -126);
    }
    let exponent = libm::ilogb(x).max(least);
    (x / 2f64.powi(exponent), exponent)
}

/// Products brought to the largest exponent, cut to 24 bits of fraction, added.
fn fused(terms: impl Iterator<Item = (f64, i32)> + Clone) -> (f64, i32) {
    let most = terms.clone().map(|(_, exponent)| exponent).max().unwrap_or(-126);
    let cut = |(significand, exponent)| {
        let significand: f64 = significand;
        let shift: i32 = 24 + exponent - most;
        (significand * 2f64.powi(shift)).trunc() * 2f64.powi(-24)
    };
    (terms.map(cut).sum(), most)
}

/// Rounded down to so many bits of fraction after a shift.
fn floored(x: f64, bits: i32, shift: i32) -> f64 {
    (x * 2f64.powi(bits + shift)).floor() * 2f64.powi(-bits)
}

/// A row times a column plus an accumulator. `bits` is the operands' width.
pub(crate) fn cdna3_sum(row: &[f64], column: &[f64], accumulator: f32, bits: u32) -> f32 {
    let exact: f64 =
        row.iter().zip(column).map(|(x, y)| x * y).sum::<f64>() + f64::from(accumulator);
    if !exact.is_finite() || bits > 16 {
        return exact as f32;
    }
    let (least, group) = if bits == 8 { (-9, 16) } else { (-126, 8) };
    let mut sum = accumulator;
    for (row, column) in row.chunks(group).zip(column.chunks(group)) {
        let terms = row.iter().zip(column).map(|(x, y)| {
            let ((a, e), (b, f)) = (parts(*x, least), parts(*y, least));
            (a * b, e + f)
        });
        let (own, own_exponent) = parts(sum.into(), -126);
        let (products, exponent) = if bits == 8 {
            // Even and odd products are added apart.
            let ((even, e), (odd, f)) =
                (fused(terms.clone().step_by(2)), fused(terms.skip(1).step_by(2)));
            let most = e.max(f);
            (floored(even, 24, e - most) + floored(odd, 24, f - most), most)
        } else {
            fused(terms)
        };
        let most = exponent.max(own_exponent);
        let is_lost = bits == 8 && own_exponent < most - 25;
        let own = if is_lost { 0.0 } else { floored(own, 24, own_exponent - most) };
        sum = ((floored(products, 31, exponent - most) + own) * 2f64.powi(most)) as f32;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_integers_are_exact() {
        let row: Vec<f64> = (0..32).map(|i| f64::from(i % 7 - 3)).collect();
        let column: Vec<f64> = (0..32).map(|i| f64::from(i % 5 - 2)).collect();
        let exact: f64 = row.iter().zip(&column).map(|(x, y)| x * y).sum();
        for bits in [8, 16] {
            assert_eq!(cdna3_sum(&row, &column, 5.0, bits), exact as f32 + 5.0);
        }
    }

    #[test]
    fn what_lies_far_below_the_largest_product_is_cut_off() {
        // 2^30 - 2^30 + 2^-10: the small product is lost in alignment.
        let row = [32768.0, -32768.0, 1.0 / 1024.0];
        let column = [32768.0, 32768.0, 1.0];
        assert_eq!(cdna3_sum(&row, &column, 0.0, 16), 0.0);
    }
}
