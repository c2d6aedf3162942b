//! What routers share: scores, the order of keys, and the weights of the experts taken.

use crate::Tolerance;
use std::cmp::Ordering;

/// `sqrt(softplus(logit))`, rounded to f32.
pub(super) fn score(logit: f32) -> f32 {
    let z = f64::from(logit);
    let softplus = if z > 20.0 { z } else { libm::log1p(libm::exp(z)) };
    softplus.sqrt() as f32
}

/// Larger keys first, ties to the lower place, NaN behind every number.
fn order(keys: &[f32], a: usize, b: usize) -> Ordering {
    let (x, y) = (keys[a], keys[b]);
    let falling = y.partial_cmp(&x).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()));
    falling.then(a.cmp(&b))
}

/// The places of the `k` largest keys, best first.
pub(super) fn best(keys: &[f32], k: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..keys.len()).collect();
    if k < places.len() {
        places.select_nth_unstable_by(k, |a, b| order(keys, *a, *b));
        places.truncate(k);
    }
    places.sort_unstable_by(|a, b| order(keys, *a, *b));
    places
}

/// `s / (Σ s + 1e-20) x scale`, before rounding; the sum runs in the order taken.
pub(super) fn weights(taken: &[f32], scale: f32) -> Vec<f64> {
    let sum: f64 = taken.iter().map(|s| f64::from(*s)).sum();
    taken.iter().map(|s| f64::from(*s) / (sum + 1e-20) * f64::from(scale)).collect()
}

/// The choice is exact; a weight loses an ulp or two in each of logarithm, exponential, root, the
/// division and the factor, half an ulp per term of the sum, and what `z` loses before the
/// exponential, up to ten ulps where it matters.
pub(super) fn tolerance(operand: &str, top_k: u64) -> Tolerance {
    match operand {
        "expert" => Tolerance::Exact,
        _ => Tolerance::Bound { gamma: (top_k as f64 / 2.0 + 20.0) * f64::from(f32::EPSILON) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_before_nan_and_lower_places_before_higher() {
        let keys = [f32::NAN, 1.0, f32::NEG_INFINITY, 1.0, f32::INFINITY, -0.0, 0.0];
        assert_eq!(best(&keys, 7), [4, 1, 3, 5, 6, 2, 0]);
        assert_eq!(best(&keys, 3), [4, 1, 3]);
        assert_eq!(best(&[f32::NAN, f32::NAN], 1), [0]);
    }
}
