//! The one order in which sums run.
//!
//! A dot product has eight lanes: element i goes to lane `i mod 8`, each lane adds in order, and the
//! lanes are added as `((0+4)+(2+6))+((1+5)+(3+7))`. Products of two f32 are exact in f64, so
//! fused and unfused multiply-adds agree, and so do vector units of any width.

/// Lanes of a sum.
pub const LANES: usize = 8;

/// Adds the lanes of a sum in the fixed order.
#[inline(always)]
pub fn join(lanes: [f64; LANES]) -> f64 {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// `Σ x_i w_i` in the fixed order; the shorter length counts.
#[inline(always)]
pub fn dot(x: &[f32], w: &[f32]) -> f64 {
    products(x, w)
}

/// [`dot`] of f32 values that were widened before, for vectors that meet many others.
#[inline(always)]
pub fn wide_dot(x: &[f64], w: &[f64]) -> f64 {
    products(x, w)
}

#[inline(always)]
fn products<T: Copy + Into<f64>>(x: &[T], w: &[T]) -> f64 {
    let n = x.len().min(w.len());
    let (x, w) = (&x[..n], &w[..n]);
    let mut lanes = [0.0f64; LANES];
    let (mut xs, mut ws) = (x.chunks_exact(LANES), w.chunks_exact(LANES));
    for (x, w) in xs.by_ref().zip(ws.by_ref()) {
        for lane in 0..LANES {
            lanes[lane] += x[lane].into() * w[lane].into();
        }
    }
    for (lane, (x, w)) in xs.remainder().iter().zip(ws.remainder()).enumerate() {
        lanes[lane] += (*x).into() * (*w).into();
    }
    join(lanes)
}

/// `Σ term(i)` for `i < n` in the fixed order, for terms that are not products of two f32.
#[inline(always)]
pub fn total(n: usize, term: impl Fn(usize) -> f64) -> f64 {
    let mut lanes = [0.0f64; LANES];
    for start in (0..n / LANES * LANES).step_by(LANES) {
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum += term(start + lane);
        }
    }
    for i in n / LANES * LANES..n {
        lanes[i % LANES] += term(i);
    }
    join(lanes)
}

/// `Σ |x_i w_i|`, the magnitude that bounds are stated in.
pub fn dot_magnitude(x: &[f32], w: &[f32]) -> f64 {
    x.iter().zip(w).map(|(x, w)| (f64::from(*x) * f64::from(*w)).abs()).sum()
}

/// `Σ x_i²` in the fixed order.
#[inline(always)]
pub fn squares(x: &[f32]) -> f64 {
    dot(x, x)
}

/// `x`, infinite where it lies beyond f32: what an fp32 accumulator holds instead. For sums that
/// arithmetic goes on with.
#[inline(always)]
pub fn in_f32_range(x: f64) -> f64 {
    let narrow = x as f32;
    if narrow.is_infinite() { f64::from(narrow) } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_join_in_the_stated_order() {
        // Values that expose any other association: 2^53 absorbs a lone 1 but not a pair.
        let big = 2f64.powi(53);
        let lanes = [big, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
        assert_eq!(join(lanes), ((big + 1.0) + 2.0) + 4.0);
    }

    #[test]
    fn tails_go_to_the_first_lanes() {
        let x: Vec<f32> = (0..19).map(|i| i as f32 + 0.5).collect();
        let mut lanes = [0.0; LANES];
        for (i, v) in x.iter().enumerate() {
            lanes[i % LANES] += f64::from(*v) * f64::from(*v);
        }
        assert_eq!(dot(&x, &x), join(lanes));
        assert_eq!(total(x.len(), |i| f64::from(x[i]) * f64::from(x[i])), join(lanes));
        let wide: Vec<f64> = x.iter().map(|v| f64::from(*v)).collect();
        assert_eq!(wide_dot(&wide, &wide), join(lanes));
        assert_eq!(dot(&[], &[]), 0.0);
    }
}
