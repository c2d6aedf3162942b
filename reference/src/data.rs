//! Operand data made from what a page says an operand may hold.

use crate::{Profile, Random, TensorMut};
use std::collections::BTreeSet;
use tandem_hal::num::{Ue8m0, bf16};
use tandem_hal::{Domain, Elem, Enc, Extents, Operand, Shape, View};

/// How the operands of a case are filled; everything follows from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fill {
    /// What real numbers look like.
    pub profile: Profile,
    /// Whether indices and counts stray out of range, which the page masks.
    pub strays: bool,
    /// Decides every number.
    pub seed: u64,
}

impl Fill {
    /// In range, with the profile that the seed stands for.
    pub fn of_seed(seed: u64) -> Fill {
        Fill { profile: Profile::of_seed(seed), strays: false, seed }
    }

    /// Bytes of operand number `place` (codes, then scales) under `extents`.
    ///
    /// # Panics
    /// When the operand does not fit the host's memory.
    pub fn bytes(&self, place: usize, operand: &Operand, extents: &Extents) -> Vec<u8> {
        if operand.absent {
            return vec![];
        }
        let shape = Shape::of(&operand.shape(extents));
        let (codes, scales) = View::size(operand.enc, shape.dims()).expect("a case fits 64 bits");
        let mut random = Random::new(self.seed, place as u64 + 1);
        let mut writer = Writer { fill: *self, shape, random: &mut random };
        let bytes = match operand.domain {
            Domain::Real | Domain::Weight(_) => writer.real(operand.enc),
            Domain::Within(limit) => writer.within(operand.enc, limit),
            Domain::Cache => writer.cache(operand.enc),
            Domain::Index { below, distinct } => writer.index(below.at(extents), distinct),
            Domain::Count(bound) => writer.count(bound.at(extents)),
            Domain::Position => writer.position(),
            Domain::Flag => writer.ints(|r| r.below(2) as i32),
            Domain::Uniform => writer.uniform(operand.enc),
            Domain::Distribution => writer.distribution(operand.enc),
            Domain::Bytes => vec![],
        };
        if bytes.is_empty() {
            return (0..codes + scales).map(|_| random.bits() as u8).collect();
        }
        assert_eq!(bytes.len() as u64, codes + scales, "an operand's bytes fill it");
        bytes
    }
}

struct Writer<'a> {
    fill: Fill,
    shape: Shape,
    random: &'a mut Random,
}

impl Writer<'_> {
    fn count_of_elements(&self) -> usize {
        self.shape.elements().map_or(0, |n| n as usize)
    }
    fn cols(&self) -> usize {
        self.shape.cols() as usize
    }

    /// Encoded real numbers; nothing for encodings whose bytes are any.
    fn real(&mut self, enc: Enc) -> Vec<u8> {
        match enc {
            Enc::Plain(Elem::F32 | Elem::Bf16) => {
                let count = self.count_of_elements();
                plain(enc, &self.fill.profile.reals(count, self.cols(), self.random))
            }
            Enc::Scaled { code, scale, .. } => self.scaled(enc, code, scale),
            Enc::Plain(_) | Enc::Record(_) => vec![],
        }
    }

    fn within(&mut self, enc: Enc, limit: f32) -> Vec<u8> {
        let mut one = || match self.random.below(6) {
            0 => 0.0,
            1 => 1.0f32.min(limit),
            _ => (2.0 * self.random.unit() - 1.0) * limit,
        };
        let count = self.shape.elements().unwrap_or(0);
        let values: Vec<f32> = (0..count).map(|_| one()).collect();
        plain(enc, &values)
    }

    /// Any codes and scales but NaN, which only the adversarial profile has, a few.
    fn scaled(&mut self, enc: Enc, code: Elem, scale: Elem) -> Vec<u8> {
        let (code_bytes, scale_bytes) =
            View::size(enc, self.shape.dims()).expect("a case fits 64 bits");
        let profile = self.fill.profile;
        let adversarial = profile == Profile::Adversarial;
        let mut bytes: Vec<u8> = Vec::with_capacity((code_bytes + scale_bytes) as usize);
        for _ in 0..code_bytes {
            bytes.push(self.code(code));
        }
        let per_row = (code_bytes as usize / self.shape.rows().unwrap_or(1).max(1) as usize).max(1);
        if adversarial && code != Elem::E2m1 {
            for row in bytes.chunks_mut(per_row) {
                if self.random.one_in(8) {
                    let at = self.random.below(row.len() as u64) as usize;
                    row[at] = if code == Elem::E4m3Fn { 0x7F } else { 0x80 };
                }
            }
        }
        let width = scale.bits() / 8;
        for _ in 0..scale_bytes / width {
            let nan = adversarial && self.random.one_in(32);
            self.scale(scale, nan, &mut bytes);
        }
        bytes
    }

    fn code(&mut self, code: Elem) -> u8 {
        let profile = self.fill.profile;
        match code {
            Elem::E4m3Fn => profile.code(0x7E, 7, self.random) | (self.random.bits() as u8 & 0x80),
            Elem::E4m3Fnuz => {
                let magnitude = profile.code(0x7F, 7, self.random);
                // The code of minus zero is the dialect's NaN.
                if magnitude == 0 { 0 } else { magnitude | (self.random.bits() as u8 & 0x80) }
            }
            // Two E2M1 codes, each with its sign.
            _ => {
                let pair = [profile.code(7, 1, self.random), profile.code(7, 1, self.random)];
                pair[0] | (pair[1] << 4) | (self.random.bits() as u8 & 0x88)
            }
        }
    }

    fn scale(&mut self, scale: Elem, nan: bool, to: &mut Vec<u8>) {
        let small = self.fill.profile == Profile::Subnormal;
        match scale {
            Elem::Ue8m0 if nan => to.push(Ue8m0::NAN.0),
            Elem::Ue8m0 if small => to.push(self.random.below(12) as u8),
            Elem::Ue8m0 => to.push(120 + self.random.below(12) as u8),
            Elem::E4m3Fn if nan => to.push(0x7F),
            Elem::E4m3Fn if small => to.push(1 + self.random.below(8) as u8),
            Elem::E4m3Fn => to.push(0x20 + self.random.below(0x30) as u8),
            _ => {
                let value = if nan { f32::NAN } else { 0.001 + self.random.unit() };
                to.extend((if small { value * 1e-30 } else { value }).to_le_bytes());
            }
        }
    }

    /// Entries that a writer of the record made of random vectors.
    fn cache(&mut self, enc: Enc) -> Vec<u8> {
        let Enc::Record(record) = enc else { return self.real(enc) };
        let entries = self.count_of_elements();
        let mut bytes = vec![0u8; entries * record.bytes() as usize];
        let mut cache = TensorMut::dense(enc, self.shape.dims(), &mut bytes, &mut [], None);
        let width = record.width as usize;
        for at in 0..entries {
            let values = self.fill.profile.reals(width, width, self.random);
            cache.set_entry(at as i32, &values);
        }
        bytes
    }

    fn ints(&mut self, mut one: impl FnMut(&mut Random) -> i32) -> Vec<u8> {
        (0..self.count_of_elements()).flat_map(|_| one(self.random).to_le_bytes()).collect()
    }

    /// Indices below `bound`, some -1, and strays on both sides when asked for.
    fn index(&mut self, bound: u64, distinct: bool) -> Vec<u8> {
        let mut used = BTreeSet::new();
        let strays = self.fill.strays;
        self.ints(|r| {
            if strays && r.one_in(4) {
                return stray(bound, r);
            }
            if bound == 0 || r.one_in(8) {
                return -1;
            }
            let index = r.below(bound.min(1 << 31)) as i32;
            if distinct && !used.insert(index) { -1 } else { index }
        })
    }

    /// Counts from 0 to `bound`, both ends often, and strays when asked for.
    fn count(&mut self, bound: u64) -> Vec<u8> {
        let strays = self.fill.strays;
        let top = bound.min(i32::MAX as u64);
        self.ints(|r| match r.below(8) {
            0 if strays => -1 - r.below(9) as i32,
            1 if strays => top.saturating_add(1 + r.below(9)).min(i32::MAX as u64) as i32,
            2 => 0,
            3 | 4 => top as i32,
            _ => r.below(top + 1) as i32,
        })
    }

    /// Small, large and very large positions, and padding rows.
    fn position(&mut self) -> Vec<u8> {
        self.ints(|r| match r.below(8) {
            0 => -1,
            1 => r.below(1 << 20) as i32,
            2 => r.below(1 << 16) as i32,
            _ => r.below(256) as i32,
        })
    }

    fn uniform(&mut self, enc: Enc) -> Vec<u8> {
        let mut one = || match self.random.below(8) {
            0 => 0.0,
            1 => 1.0 - f32::EPSILON / 2.0,
            2 => 0.5,
            _ => self.random.unit(),
        };
        let count = self.shape.elements().unwrap_or(0);
        let values: Vec<f32> = (0..count).map(|_| one()).collect();
        plain(enc, &values)
    }

    /// Rows that add up to 1 as nearly as f32 can, with zeros, spikes and equal shares among them.
    fn distribution(&mut self, enc: Enc) -> Vec<u8> {
        let (count, cols) = (self.count_of_elements(), self.cols().max(1));
        let mut values = vec![0.0f32; count];
        let adversarial = self.fill.profile == Profile::Adversarial;
        for row in values.chunks_mut(cols) {
            let kind = self.random.below(6);
            let mut weight = |i: usize| match kind {
                0 => 1.0,
                1 => f64::from(u8::from(i + 1 == cols)),
                2 => f64::from(self.random.below(3) as u8),
                _ => f64::from(self.random.unit()).powi(4),
            };
            let weights: Vec<f64> = (0..cols).map(&mut weight).collect();
            let mass: f64 = weights.iter().sum();
            if mass > 0.0 {
                for (to, w) in row.iter_mut().zip(weights) {
                    *to = (w / mass) as f32;
                }
            } else {
                row[0] = 1.0;
            }
            if adversarial && self.random.one_in(4) {
                row[self.random.below(cols as u64) as usize] = f32::NAN;
            }
        }
        plain(enc, &values)
    }
}

/// An index outside, and not -1.
fn stray(bound: u64, random: &mut Random) -> i32 {
    let above = |n: u64| bound.saturating_add(n).min(i32::MAX as u64) as i32;
    random.pick(&[-2, i32::MIN, above(0), above(7), i32::MAX])
}

/// Values of an encoding without scales, each rounded once.
fn plain(enc: Enc, values: &[f32]) -> Vec<u8> {
    match enc {
        Enc::Plain(Elem::Bf16) => {
            values.iter().flat_map(|v| bf16::from_f32(*v).to_le_bytes()).collect()
        }
        Enc::Plain(Elem::F32) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
        other => panic!("{other:?} does not hold plain real numbers"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tensor;
    use tandem_hal::{Class, Dim, Form, IndexBound, Record, Sym};

    fn fill(profile: Profile, strays: bool) -> Fill {
        Fill { profile, strays, seed: 11 }
    }
    fn ints(bytes: &[u8]) -> Vec<i32> {
        bytes.as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b)).collect()
    }
    fn make(fill: Fill, operand: &Operand) -> Vec<u8> {
        fill.bytes(0, operand, &Extents::of(&[(Sym::Tokens, 64), (Sym::Pages, 4)]))
    }
    const T: Dim = Dim::Of(Sym::Tokens);

    #[test]
    fn the_seed_decides() {
        let x = Operand::new(Enc::BF16, &[T, Dim::Is(8)]);
        let a = make(fill(Profile::Normal, false), &x);
        assert_eq!(a, make(fill(Profile::Normal, false), &x));
        assert_ne!(a, make(Fill { seed: 12, ..fill(Profile::Normal, false) }, &x));
    }

    #[test]
    fn indices_stay_in_range_unless_they_may_stray() {
        let below = IndexBound::Rows(Sym::Pages, 4);
        let plain = Operand::index(&[T, Dim::Is(4)], below);
        let valid = ints(&make(fill(Profile::Normal, false), &plain));
        assert!(valid.iter().all(|i| (-1..16).contains(i)));
        assert!(valid.contains(&-1) && valid.contains(&15));
        let strays = ints(&make(fill(Profile::Normal, true), &plain));
        assert!(strays.contains(&16) && strays.contains(&i32::MIN) && strays.contains(&i32::MAX));
    }

    #[test]
    fn distinct_targets_occur_once() {
        let domain = Domain::Index { below: IndexBound::Fixed(40), distinct: true };
        let targets = Operand::new(Enc::I32, &[T]).domain(domain);
        let mut named = ints(&make(fill(Profile::Normal, true), &targets));
        named.retain(|i| (0..40).contains(i));
        let count = named.len();
        named.sort_unstable();
        named.dedup();
        assert_eq!(named.len(), count);
        assert!(count > 10);
    }

    #[test]
    fn cache_entries_are_what_a_writer_made() {
        let enc = Enc::Record(Record::new(Form::Nvfp4, 64));
        let cache = Operand::new(enc, &[Dim::Of(Sym::Pages), Dim::Is(4)]).domain(Domain::Cache);
        let bytes = make(fill(Profile::Normal, false), &cache);
        let shape = [4, 4];
        let read = Tensor::dense(enc, &shape, &bytes, &[]);
        for at in 0..16 {
            let values = read.entry(at).expect("in range");
            assert!(values.iter().all(|v| v.is_finite()) && values.iter().any(|v| *v != 0.0));
        }
    }

    #[test]
    fn only_the_adversarial_profile_has_nan() {
        let weight =
            Operand::new(Enc::MXFP8_TILE, &[T, Dim::Is(96)]).domain(Domain::Weight(Class::Dense));
        for profile in Profile::ALL {
            let bytes = make(fill(*profile, false), &weight);
            let (codes, scales) = bytes.split_at(64 * 96);
            let t = Tensor::dense(Enc::MXFP8_TILE, &[64, 96], codes, scales);
            let nan = (0..64).any(|r| t.row(r).iter().any(|v| v.is_nan()));
            assert_eq!(nan, *profile == Profile::Adversarial, "{profile:?}");
        }
    }

    #[test]
    fn distributions_add_up_to_one() {
        let p = Operand::new(Enc::F32, &[T, Dim::Is(7)]).domain(Domain::Distribution);
        let bytes = make(fill(Profile::Normal, false), &p);
        let t = Tensor::dense(Enc::F32, &[64, 7], &bytes, &[]);
        for r in 0..64 {
            let row = t.row(r);
            assert!(row.iter().all(|v| *v >= 0.0));
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn counts_reach_both_ends_and_stray_beyond() {
        let count =
            Operand::new(Enc::I32, &[T]).domain(Domain::Count(IndexBound::Rows(Sym::Pages, 2)));
        let within = ints(&make(fill(Profile::Normal, false), &count));
        assert!(within.contains(&0) && within.contains(&8));
        assert!(within.iter().all(|n| (0..=8).contains(n)));
        let beyond = ints(&make(fill(Profile::Normal, true), &count));
        assert!(beyond.iter().any(|n| *n < 0) && beyond.iter().any(|n| *n > 8));
    }
}
