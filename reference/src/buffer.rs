//! Operands that tests own.

use crate::{Card, Context, Group, Host, Tensor, TensorMut};
use std::time::Duration;

use tandem_hal::{Dir, Domain, Elem, Enc, Extents, Facts, IoSet, Operand, Slot, View};

/// The bytes of one operand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Buffer {
    enc: Enc,
    shape: Vec<u64>,
    pub codes: Vec<u8>,
    pub scales: Vec<u8>,
}

impl Buffer {
    /// Given bytes.
    pub fn raw(enc: Enc, shape: &[u64], codes: &[u8], scales: &[u8]) -> Buffer {
        Buffer { enc, shape: shape.to_vec(), codes: codes.to_vec(), scales: scales.to_vec() }
    }
    /// All bytes `byte`.
    pub fn filled(enc: Enc, shape: &[u64], byte: u8) -> Buffer {
        let (codes, scales) = View::size(enc, shape).expect("tests are small");
        Buffer::raw(enc, shape, &vec![byte; codes as usize], &vec![byte; scales as usize])
    }
    /// Values, encoded row by row: plain numbers, or blocks with scales of one row each.
    pub fn of(enc: Enc, shape: &[u64], values: &[f32]) -> Buffer {
        let mut buffer = Buffer::filled(enc, shape, 0);
        let mut to = buffer.tensor_mut();
        for (r, row) in values.chunks(to.cols().max(1)).enumerate() {
            match enc {
                Enc::Plain(Elem::I32) => {
                    to.set_ints(r, &row.iter().map(|v| *v as i32).collect::<Vec<_>>());
                }
                Enc::Scaled { .. } => to.set_scaled_row(r, row),
                _ => to.set_row_f32(r, row),
            }
        }
        buffer
    }
    /// The operand that is not there.
    pub fn absent() -> Buffer {
        Buffer::filled(Enc::BF16, &[0], 0)
    }
    /// To read.
    pub fn tensor(&self) -> Tensor<'_> {
        Tensor::dense(self.enc, &self.shape, &self.codes, &self.scales)
    }
    /// To write.
    pub fn tensor_mut(&mut self) -> TensorMut<'_> {
        TensorMut::dense(self.enc, &self.shape, &mut self.codes, &mut self.scales, None)
    }
    /// Its values, row after row.
    pub fn values(&self) -> Vec<f32> {
        let tensor = self.tensor();
        let rows = if tensor.is_empty() { 0 } else { tensor.rows() };
        (0..rows).flat_map(|r| tensor.row(r).into_owned()).collect()
    }

    /// Varied contents within the operand's domain.
    fn varied(operand: &Operand, extents: &Extents, seed: u64) -> Buffer {
        let shape = operand.shape(extents);
        let mut buffer = Buffer::filled(operand.enc, &shape, 0);
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        if let Enc::Plain(elem) = operand.enc {
            let count = shape.iter().product::<u64>();
            let values: Vec<f32> = (0..count)
                .map(|_| match (elem, operand.domain) {
                    (_, Domain::Index { below, .. }) => {
                        (next() % (below.at(extents) + 1)) as f32 - 1.0
                    }
                    (_, Domain::Position) => (next() % 70_000) as f32 - 1.0,
                    (Elem::I32, _) => (next() % 3) as f32,
                    _ => ((next() % 2001) as f32 - 1000.0) * 0.0037,
                })
                .collect();
            if matches!(elem, Elem::F32 | Elem::Bf16 | Elem::I32) {
                return Buffer::of(operand.enc, &shape, &values);
            }
        }
        // No NaN codes: bytes up to 0x77; scales within a few binades of one.
        buffer.codes.fill_with(|| (next() % 0x78) as u8 | ((next() % 2) << 7) as u8);
        buffer.scales.fill_with(|| 120 + (next() % 12) as u8);
        buffer
    }
}

/// Calls `f` with the context of a device alone.
pub(crate) fn alone<R>(f: impl FnOnce(&Context<'_>) -> R) -> R {
    let group = Group::of(1, Duration::from_secs(1)).pop().expect("a group of one");
    f(&Context { group: &group })
}

/// Runs every row of the card on the same varied operands and compares all bytes.
pub(crate) fn rows_agree<D: Card>(d: &D, extents: &Extents) {
    d.check().expect("a case has a valid descriptor");
    let facts = Facts::of(d);
    let operands: Vec<Buffer> = facts
        .operands
        .iter()
        .enumerate()
        .map(|(i, (_, _, operand))| Buffer::varied(operand, extents, 17 + i as u64))
        .collect();
    let run = |row: &tandem_hal::Row<D, crate::Compute<D>>| {
        let mut copies = operands.clone();
        let mut slots = copies.iter_mut().zip(&facts.operands).map(|(b, (_, dir, _))| match dir {
            Dir::In => Slot::In(b.tensor()),
            Dir::Out | Dir::InOut => Slot::Out(b.tensor_mut()),
        });
        let io: Host<'_, D> = D::Io::from_slots(&mut slots);
        alone(|context| (row.launch)(d, io, context)).expect("checked operands");
        drop(slots);
        copies
    };
    let rows = D::rows();
    let first = run(&rows[0]);
    for row in &rows[1..] {
        assert!(first == run(row), "{}: {d:?} {extents:?}", row.name);
    }
}

/// [`rows_agree`] on every edge case of the card.
pub(crate) fn edges_agree<D: Card>() {
    for (d, extents) in D::edges() {
        rows_agree(&d, &extents);
    }
}
