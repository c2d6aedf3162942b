//! Operands that tests own.

use crate::{
    Card, Choices, Context, Fill, Group, Host, Profile, Random, Tensor, TensorMut, Tolerance,
};
use std::time::Duration;

use tandem_hal::{Dir, Elem, Enc, Extents, Facts, IoSet, Operand, Slot, View};

/// The bytes of one operand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Buffer {
    pub enc: Enc,
    pub shape: Vec<u64>,
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
    /// Values, encoded row by row: plain numbers, or blocks with scales of one row each. Of a
    /// cache, entry by entry.
    pub fn of(enc: Enc, shape: &[u64], values: &[f32]) -> Buffer {
        let mut buffer = Buffer::filled(enc, shape, 0);
        let mut to = buffer.tensor_mut();
        if let Enc::Record(record) = enc {
            for (at, vector) in values.chunks(record.width as usize).enumerate() {
                to.set_entry(at as i32, vector);
            }
            return buffer;
        }
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
    /// Integers, row after row.
    pub fn ints(shape: &[u64], values: &[i32]) -> Buffer {
        let codes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Buffer::raw(Enc::I32, shape, &codes, &[])
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
    /// Its values, row after row; of a cache, entry after entry.
    pub fn values(&self) -> Vec<f32> {
        let tensor = self.tensor();
        if matches!(self.enc, Enc::Record(_)) {
            let entries = 0..tensor.entries() as i32;
            return entries.flat_map(|at| tensor.entry(at).expect("an entry inside")).collect();
        }
        let rows = if tensor.is_empty() { 0 } else { tensor.rows() };
        (0..rows).flat_map(|r| tensor.row(r).into_owned()).collect()
    }

    /// Every integer, row after row.
    pub fn integers(&self) -> Vec<i32> {
        self.codes.as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b)).collect()
    }

    /// Contents of operand number `place`.
    fn varied(fill: Fill, place: usize, operand: &Operand, extents: &Extents) -> Buffer {
        if operand.absent {
            return Buffer::filled(operand.enc, &[0], 0);
        }
        let shape = operand.shape(extents);
        let bytes = fill.bytes(place, operand, extents);
        let (codes, _) = View::size(operand.enc, &shape).expect("tests are small");
        let (codes, scales) = bytes.split_at(codes as usize);
        Buffer::raw(operand.enc, &shape, codes, scales)
    }
}

/// Calls `f` with the context of a device alone.
pub(crate) fn alone<R>(f: impl FnOnce(&Context<'_>) -> R) -> R {
    let group = Group::of(1, Duration::from_secs(1)).pop().expect("a group of one");
    f(&Context { group: &group })
}

/// [`rows_agree`] on one filling.
fn rows_agree_on<D: Card>(d: &D, extents: &Extents, fill: Fill) {
    let name = format!("{d:?} {extents:?} {fill:?}");
    d.check().unwrap_or_else(|e| panic!("{name}: {e}"));
    let facts = Facts::of(d);
    let made = facts.operands.iter().enumerate();
    let operands: Vec<Buffer> =
        made.map(|(i, (_, _, operand))| Buffer::varied(fill, i, operand, extents)).collect();
    let run = |row: &tandem_hal::Row<D, crate::Compute<D>>, magnitudes: &mut [Vec<f64>]| {
        let mut copies = operands.clone();
        let zipped = copies.iter_mut().zip(&facts.operands).zip(magnitudes);
        let mut slots = zipped.map(|((b, (_, dir, _)), magnitude)| match dir {
            Dir::In => Slot::In(b.tensor()),
            Dir::Out | Dir::InOut => {
                let mut to = b.tensor_mut();
                to.magnitude = (!magnitude.is_empty()).then_some(magnitude);
                Slot::Out(to)
            }
        });
        let io: Host<'_, D> = D::Io::from_slots(&mut slots);
        alone(|context| (row.launch)(d, io, context)).expect("checked operands");
        drop(slots);
        copies
    };
    let bounded = |(name, dir, operand): &(&str, Dir, Operand)| {
        *dir != Dir::In
            && matches!(operand.enc, Enc::Plain(_))
            && matches!(d.tolerance(name), Tolerance::Bound { .. })
    };
    let size = |o: &(&str, Dir, Operand)| o.2.shape(extents).iter().product::<u64>() as usize;
    let none = vec![vec![]; operands.len()];
    let mut magnitudes: Vec<Vec<f64>> =
        facts.operands.iter().map(|o| vec![0.0; if bounded(o) { size(o) } else { 0 }]).collect();
    let scalar = D::rows().iter().find(|r| r.name == "scalar").expect("every card has one");
    let right = run(scalar, &mut magnitudes);
    for row in D::rows() {
        assert!(right == run(row, &mut none.clone()), "{}: {name}", row.name);
    }
    for (buffer, magnitudes) in right.iter().zip(&magnitudes).filter(|(_, m)| !m.is_empty()) {
        for (value, magnitude) in buffer.values().iter().zip(magnitudes) {
            let covered = f64::from(value.abs()) <= 1.01 * magnitude + 1e-30;
            assert!(covered || !value.is_finite(), "{name}: {value} under {magnitude}");
        }
    }
}

/// Choices that a seed decides.
struct Seeded(Random);

impl Choices for Seeded {
    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }
}

/// Runs every row of the card on the same operands, of every profile of numbers, in and out of
/// range: all bytes must agree, and the scalar row's magnitudes cover its values.
pub(crate) fn rows_agree<D: Card>(d: &D, extents: &Extents) {
    for (seed, profile) in Profile::ALL.iter().enumerate() {
        let fill = Fill { profile: *profile, strays: seed % 2 == 1, seed: seed as u64 };
        rows_agree_on(d, extents, fill);
    }
}

/// [`rows_agree`] on every edge case of the card.
pub(crate) fn edges_agree<D: Card>() {
    for (d, extents) in D::edges() {
        rows_agree(&d, &extents);
    }
}

/// [`rows_agree`] on random cases of the card.
pub(crate) fn draws_agree<D: Card>(cases: usize) {
    let mut seeded = Seeded(Random::new(1, 0));
    for _ in 0..cases {
        let (d, extents) = D::draw(&mut seeded);
        rows_agree(&d, &extents);
    }
}
