//! Numbers that a seed decides, the same on every host.

/// SplitMix64: small, seedable, good enough for test data.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed; `lane` tells apart the streams of one seed.
    pub fn new(seed: u64, lane: u64) -> Random {
        let mut random = Random(seed ^ lane.wrapping_mul(0xD1B5_4A32_D192_ED03));
        // Seeds that differ in few bits are apart after one step.
        let first = random.bits();
        Random(first ^ lane)
    }
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    /// A number below `n`; 0 when `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }
    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
    /// One of the choices.
    ///
    /// # Panics
    /// When there are none.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
    /// Uniform in [0, 1), with the 24 bits of an f32.
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u32 << 24) as f32
    }
    /// Roughly normal, of variance 1 and within 6: a centred sum of twelve uniforms, since the bits
    /// of logarithms and cosines depend on the host.
    pub fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.unit()).sum::<f32>() - 6.0
    }
    /// Plus or minus one.
    pub fn sign(&mut self) -> f32 {
        if self.one_in(2) { -1.0 } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_and_lanes_differ() {
        let take = |seed, lane| -> Vec<u64> {
            let mut r = Random::new(seed, lane);
            (0..4).map(|_| r.bits()).collect()
        };
        assert_eq!(take(1, 2), take(1, 2));
        assert_ne!(take(1, 2), take(1, 3));
        assert_ne!(take(1, 2), take(2, 2));
    }

    #[test]
    fn numbers_stay_in_range() {
        let mut r = Random::new(7, 0);
        assert_eq!(r.below(0), 0);
        let mut mean = 0.0;
        for _ in 0..4096 {
            assert!(r.below(3) < 3);
            assert!((0.0..1.0).contains(&r.unit()));
            let x = r.normal();
            assert!(x.abs() <= 6.0);
            mean += f64::from(x) / 4096.0;
        }
        assert!(mean.abs() < 0.1, "mean {mean} of a centred law");
    }
}
