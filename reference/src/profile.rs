//! Kinds of real numbers that break arithmetic in different ways.

use crate::Random;

/// What the real numbers of a case look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// Roughly normal, variance 1.
    Normal,
    /// Normal with one value in 32 a thousand times larger.
    Outliers,
    /// Zeros of both signs, subnormal and very small numbers.
    Subnormal,
    /// Few distinct values, many of them midpoints of a rounding.
    Ties,
    /// One value everywhere.
    Constant,
    /// Normal with a few NaN, infinities and extremes.
    Adversarial,
}

/// Midpoints of E2M1, of E4M3 and of bf16 under a scale of one, their neighbours, and the limits
/// that fix such a scale.
const TIES: [f32; 18] = [
    0.0,
    0.25,
    0.5,
    0.75,
    1.0,
    1.25,
    1.75,
    2.5,
    3.5,
    5.0,
    6.0,
    448.0,
    1.0625,
    1.1875,
    1.0 + 1.0 / 256.0,
    1.0 + 3.0 / 256.0,
    17.0,
    432.0,
];

/// Infinities, NaN, the largest f32 and bf16, the smallest of each.
const EXTREMES: [f32; 10] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    f32::MAX,
    3.389_531_4e38,
    -3.389_531_4e38,
    f32::MIN_POSITIVE,
    1e-45,
    -0.0,
];

impl Profile {
    /// Every profile.
    pub const ALL: &'static [Profile] = &[
        Profile::Normal,
        Profile::Outliers,
        Profile::Ties,
        Profile::Adversarial,
        Profile::Subnormal,
        Profile::Constant,
    ];

    /// The profile that `seed` stands for, so that a seed alone reproduces a case.
    pub fn of_seed(seed: u64) -> Profile {
        Profile::ALL[(seed % Profile::ALL.len() as u64) as usize]
    }

    /// `count` numbers in rows of `cols`.
    pub(crate) fn reals(self, count: usize, cols: usize, random: &mut Random) -> Vec<f32> {
        let constant = random.pick(&TIES) * random.sign();
        let mut values: Vec<f32> = (0..count).map(|_| self.real(constant, random)).collect();
        if self == Profile::Adversarial {
            // A few rows only, so that the others still show what the operator computes.
            for row in values.chunks_mut(cols.max(1)) {
                if random.one_in(4) {
                    let at = random.below(row.len() as u64) as usize;
                    row[at] = random.pick(&EXTREMES);
                }
            }
        }
        values
    }

    fn real(self, constant: f32, random: &mut Random) -> f32 {
        match self {
            Profile::Normal | Profile::Adversarial => random.normal(),
            Profile::Outliers => random.normal() * if random.one_in(32) { 1024.0 } else { 1.0 },
            Profile::Subnormal => match random.below(4) {
                0 => 0.0 * random.sign(),
                1 => f32::from_bits(random.below(1 << 23) as u32) * random.sign(),
                // Subnormal as bf16: the upper half of the word only.
                2 => f32::from_bits((random.below(1 << 7) as u32) << 16) * random.sign(),
                _ => random.normal() * 1e-30,
            },
            Profile::Ties => random.pick(&TIES) * random.sign(),
            Profile::Constant => constant,
        }
    }

    /// A code of `bits` exponent-and-mantissa bits below the NaN code, without its sign.
    pub(crate) fn code(self, largest: u8, subnormals: u8, random: &mut Random) -> u8 {
        let any = |random: &mut Random, n: u8| random.below(u64::from(n) + 1) as u8;
        match self {
            Profile::Subnormal => any(random, subnormals),
            Profile::Outliers if !random.one_in(32) => any(random, largest / 2),
            Profile::Outliers => largest,
            Profile::Constant => largest / 2,
            Profile::Ties => random.pick(&[largest / 2, largest / 2 + 1, 0, largest]),
            Profile::Normal | Profile::Adversarial => any(random, largest),
        }
    }
}
