//! When requests are sent.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, Gamma};

/// How requests come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arrivals {
    /// Whenever one of so many is answered.
    Closed(usize),
    /// So many a second, whatever becomes of them; gaps have this burstiness: 1 is Poisson's, less is bursts, more is even.
    Open { rate: f64, burstiness: f64 },
}

impl Arrivals {
    /// Seconds from one request to the next, of so many; nothing for a closed loop.
    pub(super) fn gaps(self, requests: usize, seed: u64) -> Vec<f64> {
        let Self::Open { rate, burstiness } = self else { return vec![] };
        // Mean shape x scale is one over the rate, the variance that squared over the shape.
        let gaps = Gamma::new(burstiness, 1.0 / (rate * burstiness)).expect("both are above zero");
        gaps.sample_iter(StdRng::seed_from_u64(seed)).take(requests).collect()
    }

    /// As a row of a table says it.
    pub(super) fn label(self) -> String {
        match self {
            Self::Closed(count) => format!("{count} at once"),
            Self::Open { rate, .. } => format!("{rate} a second"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_the_mean_and_variance_of_their_law() {
        for (rate, burstiness) in [(10.0, 1.0), (3.0, 0.25), (50.0, 4.0)] {
            let gaps = Arrivals::Open { rate, burstiness }.gaps(400_000, 7);
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let square = |gap: &f64| (gap - mean) * (gap - mean);
            let variance = gaps.iter().map(square).sum::<f64>() / gaps.len() as f64;
            assert!((mean * rate - 1.0).abs() < 0.02, "{rate} {burstiness}: {mean}");
            let expected = 1.0 / (rate * rate * burstiness);
            assert!((variance / expected - 1.0).abs() < 0.02, "{rate} {burstiness}: {variance}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_gaps_again() {
        let gaps = |seed| Arrivals::Open { rate: 1.0, burstiness: 1.0 }.gaps(5, seed);
        assert_eq!(gaps(3), gaps(3));
        assert_ne!(gaps(3), gaps(4));
        assert!(Arrivals::Closed(4).gaps(5, 3).is_empty());
    }
}
