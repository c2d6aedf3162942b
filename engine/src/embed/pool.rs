//! The mean of vectors.

/// Adds up vectors in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Pool {
    sums: Vec<f64>,
    count: u64,
}

impl Pool {
    /// Adds one.
    pub(super) fn add(&mut self, state: &[f32]) {
        self.sums.resize(state.len(), 0.0);
        for (sum, value) in self.sums.iter_mut().zip(state) {
            *sum += f64::from(*value);
        }
        self.count += 1;
    }

    /// The mean at unit length; `None` when it has no direction, as sums that are no numbers or are all
    /// zero have none.
    pub(super) fn unit(&self) -> Option<Vec<f32>> {
        let count = self.count.max(1) as f64;
        let mean = self.sums.iter().map(|sum| sum / count);
        let length = mean.clone().map(|value| value * value).sum::<f64>().sqrt();
        let has_direction = length.is_finite() && length > 0.0;
        has_direction.then(|| mean.map(|value| (value / length) as f32).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_has_unit_length_and_the_direction_of_the_sum() {
        let mut pool = Pool::default();
        pool.add(&[1.0, 0.0, 2.0]);
        pool.add(&[5.0, 0.0, 6.0]);
        assert_eq!(pool.unit(), Some(vec![0.6, 0.0, 0.8]));
        pool.add(&[f32::NAN, 0.0, 0.0]);
        assert_eq!(pool.unit(), None);
        let mut zero = Pool::default();
        assert_eq!(zero.unit(), None);
        zero.add(&[0.0, 0.0]);
        assert_eq!(zero.unit(), None);
    }
}
