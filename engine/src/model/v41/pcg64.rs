//! NumPy's default generator, as far as the Engram multipliers need it: `SeedSequence` over one
//! integer, PCG64 (XSL-RR 128/64) and bounded integers by Lemire's method.

/// The generator of `default_rng(seed)`.
pub(super) struct Pcg64 {
    state: u128,
    increment: u128,
}

const MULTIPLIER: u128 = (2_549_297_995_355_413_924 << 64) | 4_865_540_595_714_422_341;

impl Pcg64 {
    /// Seeds through `SeedSequence`, which spreads one integer over 256 bits.
    pub(super) fn new(seed: u32) -> Self {
        let words = seed_words(seed);
        let wide = |high: usize| (u128::from(words[high]) << 64) | u128::from(words[high + 1]);
        let mut generator = Self { state: 0, increment: (wide(2) << 1) | 1 };
        generator.step();
        generator.state = generator.state.wrapping_add(wide(0));
        generator.step();
        generator
    }

    fn step(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }

    fn next(&mut self) -> u64 {
        self.step();
        let folded = (self.state >> 64) as u64 ^ self.state as u64;
        folded.rotate_right((self.state >> 122) as u32)
    }

    /// A uniform integer below `bound`, the same as `integers(0, bound)` gives for an int64.
    /// NumPy draws 32 bits for bounds up to 2^32; this draws 64, so `bound` must exceed 2^32.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 1 << 32, "the bound of a 64-bit draw exceeds 2^32");
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }
}

/// `SeedSequence(seed).generate_state(4, uint64)`.
fn seed_words(seed: u32) -> [u64; 4] {
    let mut constant: u32 = 0x43b0_d7e5;
    let mut hash = |value: u32| {
        let mut value = value ^ constant;
        constant = constant.wrapping_mul(0x931e_8875);
        value = value.wrapping_mul(constant);
        value ^ (value >> 16)
    };
    let mut pool = [seed, 0, 0, 0].map(&mut hash);
    for source in 0..pool.len() {
        for target in (0..pool.len()).filter(|target| *target != source) {
            let mixed = pool[target]
                .wrapping_mul(0xca01_f9dd)
                .wrapping_sub(hash(pool[source]).wrapping_mul(0x4973_f715));
            pool[target] = mixed ^ (mixed >> 16);
        }
    }
    let mut constant: u32 = 0x8b51_f9dd;
    let mut next = |index: usize| {
        let mut value = pool[index % pool.len()] ^ constant;
        constant = constant.wrapping_mul(0x58f3_8ded);
        value = value.wrapping_mul(constant);
        u64::from(value ^ (value >> 16))
    };
    let mut words = [0; 4];
    for (index, word) in words.iter_mut().enumerate() {
        let low = next(2 * index);
        *word = low | (next(2 * index + 1) << 32);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_published_draws() {
        let mut generator = Pcg64::new(10_007);
        let draws = [(); 4].map(|()| 2 * generator.below(46_539_438_283_891) + 1);
        assert_eq!(draws, [76632096046245, 4839876093313, 35959672319349, 73987337458391]);
    }
}
