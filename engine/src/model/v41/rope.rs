//! Parameters of the two rotary tables.

use super::config::Rope;

/// One rotary table: pair `i` of `dim / 2` turns by `base^(-2 i / dim)` per position, with the
/// slow pairs divided where a ramp is given.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeTable {
    /// Base of the geometric frequencies.
    pub base: f64,
    /// YaRN's ramp, for layers that compress.
    pub yarn: Option<YarnRamp>,
}

/// YaRN: pairs up to `low` keep their frequency, pairs from `high` on have it divided by `factor`,
/// linear in between. There is no amplitude factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct YarnRamp {
    /// Division of the slow frequencies.
    pub factor: f64,
    /// Last pair that is kept.
    pub low: usize,
    /// First pair that is fully divided.
    pub high: usize,
}

impl Rope {
    /// The table of a layer with a compression ratio; ratio 0 (and every draft stage) is plain.
    pub fn table(&self, ratio: usize, rope_dim: usize) -> RopeTable {
        match ratio {
            0 => RopeTable { base: self.base, yarn: None },
            _ => RopeTable { base: self.compressed_base, yarn: Some(self.ramp(rope_dim)) },
        }
    }

    /// The ramp, from `pair(beta) = dim ln(length / (2 pi beta)) / (2 ln base)` at both betas,
    /// rounded outwards and kept inside the dims.
    pub(super) fn ramp(&self, rope_dim: usize) -> YarnRamp {
        let pair = |beta: f64| {
            let turns = self.original_tokens as f64 / (2.0 * std::f64::consts::PI * beta);
            rope_dim as f64 * turns.ln() / (2.0 * self.compressed_base.ln())
        };
        YarnRamp {
            factor: self.factor,
            low: pair(self.beta_fast).floor().max(0.0) as usize,
            high: pair(self.beta_slow).ceil().clamp(0.0, rope_dim as f64 - 1.0) as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::model::v41::Config;

    #[test]
    fn the_ramp_runs_from_pair_15_to_25() {
        let rope = Config::named("v4.1-flash").unwrap().rope;
        let ramp = rope.table(2, 64).yarn.unwrap();
        assert_eq!((ramp.low, ramp.high), (15, 25));
        let small = rope.table(1, 16).yarn.unwrap();
        assert_eq!((small.low, small.high), (3, 7));
        assert_eq!(rope.table(1, 64).base, 160_000.0);
        assert_eq!(rope.table(0, 64).base, 10_000.0);
        assert_eq!(rope.table(0, 64).yarn, None);
    }
}
