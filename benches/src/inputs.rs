//! Operand data for timing: what production data looks like, made fast.
//!
//! Unlike the data of conformance cases it has nothing special in it: no index is missing, every
//! count is at its bound, and a row lists an entry once. Large operands repeat a block of random
//! bytes of a few megabytes.

use tandem_hal::{Dim, Domain, Enc, Extents, IndexBound, Op, Operand, Sym, View};
use tandem_reference::{Fill, Profile, Random, TensorMut};

/// Elements of the block that repeats.
const BLOCK_ELEMENTS: u64 = 1 << 20;
/// Cache entries of the block that repeats.
const BLOCK_ENTRIES: u64 = 1 << 12;
/// Positions lie below this.
const POSITIONS: u64 = 1 << 17;

/// Makes the operands of one operator.
pub struct Inputs<'a> {
    op: &'a Op,
    at: Extents,
}

impl<'a> Inputs<'a> {
    /// For launches of `op` at `at`.
    pub fn new(op: &'a Op, at: &Extents) -> Inputs<'a> {
        Inputs { op, at: *at }
    }

    /// Bytes of operand number `place` (codes, then scales); `variant` tells apart the lists that
    /// launches take in turn.
    ///
    /// # Panics
    /// When the operand does not fit the host's memory.
    pub fn bytes(&self, place: usize, operand: &Operand, variant: u64) -> Vec<u8> {
        let mut random = Random::new(1 + variant, place as u64 + 1);
        let ints = |values: Vec<i32>| values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let shape = operand.shape(&self.at);
        let count = shape.iter().product::<u64>();
        match operand.domain {
            _ if operand.absent => vec![],
            Domain::Index { below, distinct } => {
                let columns = if distinct { count } else { shape[shape.len() - 1] };
                let below_at = self.bound(below, &shape);
                if is_sequence(operand, below) {
                    let rows = count.max(1);
                    return ints((0..count).map(|t| (t * below_at / rows) as i32).collect());
                }
                ints(lists(count, columns, below_at, &mut random))
            }
            Domain::Count(bound) => {
                let full = bound.at(&self.at).min(i32::MAX as u64) as i32;
                ints(vec![full; count as usize])
            }
            Domain::Position => ints((0..count).map(|_| random.below(POSITIONS) as i32).collect()),
            Domain::Flag => ints(vec![0; count as usize]),
            _ => self.repeated(place, operand, &shape),
        }
    }

    /// The exclusive bound of an index. Candidate blocks are numbered by block, not by entry.
    fn bound(&self, below: IndexBound, shape: &[u64]) -> u64 {
        let blocks = match self.op {
            Op::TopK(d) => d.blocks.as_ref(),
            Op::Select(d) => d.top_k.blocks.as_ref(),
            _ => None,
        };
        let bound = below.at(&self.at);
        match blocks {
            Some(blocks) if shape.last() == Some(&blocks.count) => bound.div_ceil(blocks.size),
            _ => bound,
        }
    }

    /// A random block, over and over.
    fn repeated(&self, place: usize, operand: &Operand, shape: &[u64]) -> Vec<u8> {
        let (codes, scales) = View::size(operand.enc, shape).expect("a case fits 64 bits");
        let columns = shape[shape.len() - 1];
        let rows = shape[..shape.len() - 1].iter().product::<u64>();
        let (elements, tile) = match operand.enc {
            Enc::Record(_) => (BLOCK_ENTRIES, 1),
            Enc::Scaled { rows, .. } => (BLOCK_ELEMENTS, u64::from(rows)),
            Enc::Plain(_) => (BLOCK_ELEMENTS, 1),
        };
        let block_rows = (elements / columns.max(1)).max(1).next_multiple_of(tile).min(rows);
        let (first, second) = match operand.enc {
            Enc::Scaled { rows: 1, .. } => quantised(place, operand.enc, block_rows, columns),
            _ => {
                let dims = vec![Dim::Is(block_rows), Dim::Is(columns)];
                let block = Operand { dims, ..operand.clone() };
                let fill = Fill { profile: Profile::Normal, strays: false, seed: 1 };
                let mut bytes = fill.bytes(place, &block, &self.at);
                let (block_codes, _) =
                    View::size(operand.enc, &[block_rows, columns]).expect("a block is small");
                let scales = bytes.split_off(block_codes as usize);
                (bytes, scales)
            }
        };
        let mut all = Vec::with_capacity((codes + scales) as usize);
        repeat(&first, codes as usize, &mut all);
        repeat(&second, (codes + scales) as usize, &mut all);
        all
    }
}

/// Codes and scales of normal values as a quantiser writes them. Any scales at all would put the blocks of a row further
/// apart than a model's are, and time what a kernel does for such rows alone.
fn quantised(place: usize, enc: Enc, rows: u64, columns: u64) -> (Vec<u8>, Vec<u8>) {
    let shape = [rows, columns];
    let (codes, scales) = View::size(enc, &shape).expect("a block is small");
    let (mut codes, mut scales) = (vec![0; codes as usize], vec![0; scales as usize]);
    let mut random = Random::new(1, place as u64 + 1);
    let mut tensor = TensorMut::dense(enc, &shape, &mut codes, &mut scales, None);
    for row in 0..rows as usize {
        let values: Vec<f32> = (0..columns).map(|_| random.normal()).collect();
        tensor.set_scaled_row(row, &values);
    }
    (codes, scales)
}

/// Whether the operand names each row's sequence: neighbouring rows belong to one.
fn is_sequence(operand: &Operand, below: IndexBound) -> bool {
    operand.dims.len() == 1 && below == IndexBound::Rows(Sym::Sequences, 1)
}

/// `count` indices below `below`, no index twice within `columns` of them where that can be.
fn lists(count: u64, columns: u64, below: u64, random: &mut Random) -> Vec<i32> {
    let below = below.min(1 << 31);
    let mut values = Vec::with_capacity(count as usize);
    let mut taken = std::collections::HashSet::new();
    for i in 0..count {
        if columns == 0 || i % columns == 0 {
            taken.clear();
        }
        if below == 0 {
            values.push(-1);
            continue;
        }
        let mut value = random.below(below);
        // From a random start to the next free one: few steps unless nearly all are taken.
        while columns <= below && !taken.insert(value) {
            value = (value + 1) % below;
        }
        values.push(value as i32);
    }
    values
}

fn repeat(block: &[u8], until: usize, to: &mut Vec<u8>) {
    while to.len() < until && !block.is_empty() {
        let rest = until - to.len();
        to.extend_from_slice(&block[..rest.min(block.len())]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_hal::{Experts, Facts, GateUp, Mxfp8Linear};

    #[test]
    fn operands_have_their_bytes_and_no_nan() {
        let d = Mxfp8Linear { n: 2080, k: 1056 };
        let (op, at) = (Op::from(d.clone()), Extents::of(&[(Sym::Tokens, 3)]));
        for (place, (name, _, operand)) in Facts::of(&d).operands.iter().enumerate() {
            let bytes = Inputs::new(&op, &at).bytes(place, operand, 0);
            assert_eq!(bytes.len() as u64, operand.bytes(&at), "{name}");
            if *name != "y" {
                let codes = operand.shape(&at).iter().product::<u64>() as usize;
                assert!(!bytes[..codes].iter().any(|b| b & 0x7F == 0x7F), "{name} has a NaN code");
            }
        }
    }

    #[test]
    fn scales_of_a_row_lie_together() {
        let d = Mxfp8Linear { n: 64, k: 1056 };
        let (op, at) = (Op::from(d.clone()), Extents::of(&[(Sym::Tokens, 40)]));
        let x = Facts::of(&d).operands[0].2.clone();
        let bytes = Inputs::new(&op, &at).bytes(0, &x, 0);
        let (codes, scales) = bytes.split_at(40 * 1056);
        let (least, most) = (scales.iter().min().unwrap(), scales.iter().max().unwrap());
        assert!(most - least <= 2, "{least} to {most}");
        assert!(codes.chunks(32).all(|block| block.iter().any(|code| code & 0x7F >= 0x70)));
    }

    #[test]
    fn a_row_takes_an_expert_once_and_variants_differ() {
        let experts = Experts { total: 8, first: 0, local: 8, top_k: 6, hidden: 32, inter: 32 };
        let (operand, at) = (experts.index(), Extents::of(&[(Sym::Tokens, 50)]));
        let op = Op::from(GateUp { experts });
        let bytes = |variant| Inputs::new(&op, &at).bytes(1, &operand, variant);
        assert_ne!(bytes(0), bytes(1));
        for row in bytes(0).chunks(24) {
            let mut row: Vec<_> = row.as_chunks::<4>().0.iter().collect();
            row.sort_unstable();
            row.dedup();
            assert_eq!(row.len(), 6);
        }
    }
}
