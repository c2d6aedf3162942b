//! The softmax of one query over listed scores.

/// Weights before division, and what divides them.
pub(super) struct Softmax {
    /// `exp(s - largest)` of each score, rounded to f32.
    pub(super) weights: Vec<f32>,
    /// The largest score; `-inf` when there is none.
    pub(super) largest: f32,
    /// Sum of the weights in list order, then the sink's.
    pub(super) denominator: f64,
}

impl Softmax {
    /// Of `scores`, with the logit of a sink that has no value.
    pub(super) fn of(scores: &[f32], sink: Option<f32>) -> Softmax {
        // `max` passes over NaN, which comes back through its own exponential.
        let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weight = |s: f32| libm::exp(f64::from(s) - f64::from(largest)) as f32;
        let weights: Vec<f32> = scores.iter().map(|s| weight(*s)).collect();
        let listed: f64 = weights.iter().map(|w| f64::from(*w)).sum();
        let denominator = listed + sink.map_or(0.0, |s| f64::from(weight(s)));
        Softmax { weights, largest, denominator }
    }
    /// Log of the sum of exponentials.
    pub(super) fn log_sum(&self) -> f64 {
        f64::from(self.largest) + libm::log(self.denominator)
    }
}
