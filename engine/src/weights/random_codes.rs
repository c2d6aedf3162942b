//! Random bytes in place of a checkpoint's: every code a number, of sizes that keep activations near
//! those of a trained model.

use std::collections::HashMap;
use std::ops::Range;

use half::bf16;

use super::codes::Codes;
use super::stored::Stored;

/// Elements of the block that tensors repeat, each from a place of its own.
const BLOCK_ELEMENTS: usize = 1 << 20;

/// Blocks of random elements by what they encode.
pub struct RandomCodes {
    bits: SplitMix,
    blocks: HashMap<(Codes, bool), Vec<u8>>,
}

/// A small generator of well-mixed bits.
#[derive(Clone)]
pub struct SplitMix(u64);

impl SplitMix {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from `low` up to but without `high`.
    pub fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * (self.bits() >> 40) as f32 / (1u32 << 24) as f32
    }

    /// A byte of `low..=high`.
    pub fn byte(&mut self, low: u8, high: u8) -> u8 {
        low + (self.bits() >> 32) as u8 % (high - low + 1)
    }

    /// An E4M3 code that is a number.
    pub fn e4m3(&mut self) -> u8 {
        let code = self.bits() as u8;
        if code & 0x7f == 0x7f { code & 0x80 } else { code }
    }
}

impl RandomCodes {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self { bits: SplitMix::new(seed), blocks: HashMap::new() }
    }

    /// Appends a piece of a tensor: codes, then scales.
    pub fn append(&mut self, stored: &Stored, piece: &Range<u64>, to: &mut Vec<u8>) {
        let (codes, scales) = stored.piece_bytes(piece);
        self.repeat(stored.codes, stored.is_vector(), codes as usize, to);
        if let Some(held) = &stored.scales {
            self.repeat(held.codes, false, scales as usize, to);
        }
    }

    fn repeat(&mut self, codes: Codes, vector: bool, bytes: usize, to: &mut Vec<u8>) {
        let start = (self.bits.bits() % BLOCK_ELEMENTS as u64) as usize * codes.bytes();
        let bits = &mut self.bits;
        let block = self.blocks.entry((codes, vector)).or_insert_with(|| {
            let mut block = Vec::with_capacity(BLOCK_ELEMENTS * codes.bytes());
            (0..BLOCK_ELEMENTS).for_each(|_| element(codes, vector, bits, &mut block));
            block
        });
        let until = to.len() + bytes;
        to.extend(&block[start..(start + bytes).min(block.len())]);
        while to.len() < until {
            let rest = until - to.len();
            to.extend(&block[..rest.min(block.len())]);
        }
    }
}

/// One element. Norms are about 1, biases small; a matrix's elements are about one over the square
/// root of a width of a few thousand. Codes are spread evenly, so that those of E4M3 are about 80 in
/// the root mean square and those of E2M1 about 3, which the scales make up for.
fn element(codes: Codes, vector: bool, bits: &mut SplitMix, to: &mut Vec<u8>) {
    let (bf16, f32) =
        if vector { ((0.75, 1.25), (-0.05, 0.05)) } else { ((-0.03, 0.03), (-0.005, 0.005)) };
    match codes {
        Codes::Bf16 => to.extend(bf16::from_f32(bits.between(bf16.0, bf16.1)).to_le_bytes()),
        Codes::F32 => to.extend(bits.between(f32.0, f32.1).to_le_bytes()),
        Codes::E4m3 => to.push(bits.e4m3()),
        Codes::E2m1 => to.push(bits.bits() as u8),
        Codes::E4m3Scale => to.push(bits.byte(113, 115)),
        Codes::E2m1Scale => to.push(bits.byte(118, 120)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_hal::{Elem, Enc};

    #[test]
    fn every_piece_is_whole_and_without_bad_elements() {
        let mut random = RandomCodes::new(7);
        let matrix = |codes, scales, enc| Stored::scaled("w", enc, codes, scales, 0..70, 4096);
        for stored in [
            matrix(Codes::E4m3, Codes::E4m3Scale, Enc::MXFP8_TILE),
            matrix(Codes::E2m1, Codes::E2m1Scale, Enc::MXFP4),
            Stored::plain("w", Elem::Bf16, &[70, 4096], 0..70),
            Stored::plain("n", Elem::F32, &[70], 0..70),
        ] {
            let mut bytes = vec![];
            random.append(&stored, &(0..70), &mut bytes);
            assert_eq!(bytes.len() as u64, stored.bytes());
            let (codes, _) = stored.piece_bytes(&(0..70));
            let (codes, scales) = bytes.split_at(codes as usize);
            assert_eq!(stored.codes.first_bad(codes), None);
            let held = stored.scales.as_ref();
            assert_eq!(held.and_then(|held| held.codes.first_bad(scales)), None);
        }
    }

    #[test]
    fn a_seed_decides_and_tensors_differ() {
        let stored = Stored::plain("w", Elem::Bf16, &[8, 64], 0..8);
        let take = |random: &mut RandomCodes| {
            let mut bytes = vec![];
            random.append(&stored, &(0..8), &mut bytes);
            bytes
        };
        let (mut a, mut b) = (RandomCodes::new(1), RandomCodes::new(1));
        let first = take(&mut a);
        assert_eq!(first, take(&mut b));
        assert_ne!(first, take(&mut a));
    }
}
