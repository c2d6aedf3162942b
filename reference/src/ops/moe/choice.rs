//! What routers share: scores, and the weights of the experts taken.

use crate::Tolerance;

/// `sqrt(softplus(logit))`, rounded to f32.
pub(super) fn score(logit: f32) -> f32 {
    let z = f64::from(logit);
    let softplus = if z > 20.0 { z } else { libm::log1p(libm::exp(z)) };
    softplus.sqrt() as f32
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
