//! Random numbers of a request.

use super::philox;

/// What a number decides. Numbers of different purposes are independent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The token at the position, without drafts.
    Token = 0,
    /// Whether a draft stands, by the position of the first draft.
    Accept = 1,
    /// A draft, by the position of the first.
    Draft = 2,
    /// The token after the drafts that stand, by the position of the first draft.
    After = 3,
}

/// The numbers of one request: a function of its seed, the position and the purpose alone, so that
/// neither batching nor chunks nor a restart of the request changes a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draws {
    seed: u64,
}

impl Draws {
    /// Of a seed. Every value is a seed, 0 included.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Uniform in (0, 1), never an end point: 23 bits and a half.
    pub fn uniform(self, position: u64, purpose: Purpose) -> f32 {
        self.uniform_of_block((position, 0), purpose)
    }

    /// As [`Draws::uniform`], for one place of the block of drafts whose first is at `position`. Every
    /// block has numbers of its own: which of it stand depends on all of its drafts and all of their
    /// numbers, so the next block may not see those of its rejected places again.
    pub fn uniform_of_block(self, (position, place): (u64, u32), purpose: Purpose) -> f32 {
        let counter = [position as u32, (position >> 32) as u32, purpose as u32, place];
        let [word, ..] = philox(counter, [self.seed as u32, (self.seed >> 32) as u32]);
        (f32::from_bits(0x3F80_0000 | word >> 9) - 1.0) + 0.5 / 8_388_608.0
    }

    /// The seed of one of several replies to a request with `seed`. The first has the seed itself:
    /// it is the reply that the request would get alone.
    pub fn reply_seed(seed: u64, reply: u64) -> u64 {
        if reply == 0 {
            return seed;
        }
        let counter = [reply as u32, (reply >> 32) as u32, u32::MAX - 1, 0];
        let [low, high, ..] = philox(counter, [seed as u32, (seed >> 32) as u32]);
        u64::from(high) << 32 | u64::from(low)
    }

    /// The seed of a request that names none: the engine's own, and the request's number.
    pub fn unseeded(engine_seed: u64, request: u64) -> Self {
        let counter = [request as u32, (request >> 32) as u32, u32::MAX, 0];
        let key = [engine_seed as u32, (engine_seed >> 32) as u32];
        let [low, high, ..] = philox(counter, key);
        Self::new(u64::from(high) << 32 | u64::from(low))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lie_inside_the_interval_and_are_even() {
        let draws = Draws::new(0);
        let numbers: Vec<f32> = (0..20_000).map(|at| draws.uniform(at, Purpose::Token)).collect();
        assert!(numbers.iter().all(|u| *u > 0.0 && *u < 1.0));
        let mut tenths = [0; 10];
        numbers.iter().for_each(|u| tenths[(u * 10.0) as usize] += 1);
        assert!(tenths.iter().all(|count| (1800..2200).contains(count)), "{tenths:?}");
    }

    #[test]
    fn the_ends_of_the_words_stay_inside() {
        let uniform =
            |word: u32| (f32::from_bits(0x3F80_0000 | word >> 9) - 1.0) + 0.5 / 8_388_608.0;
        assert_eq!(uniform(0), 0.5 / 8_388_608.0);
        assert!(uniform(u32::MAX) < 1.0);
    }

    #[test]
    fn c075_seeds_positions_and_purposes_are_apart() {
        let first = Draws::new(0).uniform(7, Purpose::Token);
        assert_eq!(first, Draws::new(0).uniform(7, Purpose::Token));
        assert_ne!(first, Draws::new(1 << 63).uniform(7, Purpose::Token));
        assert_ne!(first, Draws::new(0).uniform(8, Purpose::Token));
        assert_ne!(first, Draws::new(0).uniform(7 + (1 << 32), Purpose::Token));
        for other in [Purpose::Accept, Purpose::Draft, Purpose::After] {
            assert_ne!(first, Draws::new(0).uniform(7, other));
        }
        let third = Draws::new(0).uniform_of_block((5, 2), Purpose::Draft);
        assert_ne!(third, Draws::new(0).uniform_of_block((7, 0), Purpose::Draft));
        assert_ne!(third, Draws::new(0).uniform_of_block((5, 2), Purpose::Accept));
        assert_ne!(Draws::unseeded(1, 0), Draws::unseeded(1, 1));
        assert_ne!(Draws::unseeded(1, 0), Draws::unseeded(2, 0));
    }
}
