//! Whether what was timed computed what the card says.

use crate::{Budget, subject::Once};
use tandem_hal::{Accumulator, Dim, Dir, Enc, Extents, IoSet, Operand, Result, Slot, View};
use tandem_reference::{
    Card, Context, Group, Host, Tensor, TensorMut,
    compare::{Expected, judge},
};

/// How long a rank waits for others; there are none.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// The outcome of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Check {
    /// So many rows of data are within the operator's tolerance.
    Agrees(u64),
    /// The first element that is not.
    Differs(String),
    /// The scalar arithmetic of one row is more than the budget.
    Skipped,
}

/// One operand as the card gets it: the rows compared, before and after.
struct Taken<'a> {
    once: &'a Once<'a>,
    shape: Vec<u64>,
    before: Vec<u8>,
    after: Vec<u8>,
    expected: Expected,
}

impl Check {
    /// Compare a launch of `descriptor` at `extents` with the card's own arithmetic, on as many rows
    /// of data as the budget allows, evenly spread: rows are independent of each other. The bound is
    /// that of a row that adds in `accumulator`.
    ///
    /// # Errors
    /// What the card returns.
    pub fn of<D: Card>(
        descriptor: &D,
        extents: &Extents,
        operands: &[Once<'_>],
        accumulator: Accumulator,
        budget: &Budget,
    ) -> Result<Check> {
        let rows = extents.at(D::ROWS).max(1);
        let work = |rows: &u64| {
            let cost = descriptor.cost(&extents.with(D::ROWS, *rows));
            cost.flops + (cost.read_bytes + cost.written_bytes) as f64
        };
        let halves = std::iter::successors(Some(rows), |n| (*n > 1).then_some(n / 2));
        let fit = halves.into_iter().find(|rows| work(rows) <= budget.check_flops);
        let whole = operands.iter().any(|o| {
            let rowless = o.dir != Dir::In && !o.spec.absent && !has_rows::<D>(o.spec);
            rowless || o.spec.dims.iter().skip(1).any(|d| *d == Dim::Of(D::ROWS))
        });
        let Some(count) = fit.filter(|count| !whole || *count == rows) else {
            return Ok(Check::Skipped);
        };
        let picked: Vec<u64> = (0..count).map(|i| i * rows / count).collect();
        let at = extents.with(D::ROWS, count);
        let take = |once| Taken::of::<D>(once, extents, &at, &picked);
        let mut taken: Vec<_> = operands.iter().map(take).collect();
        compute(descriptor, &mut taken)?;
        for one in taken.iter().filter(|t| t.once.dir != Dir::In && !t.once.spec.absent) {
            let Once { name, spec, .. } = one.once;
            let tolerance = descriptor.tolerance(name).of(accumulator);
            if let Err(why) = judge(spec.enc, &one.shape, tolerance, &one.after, &one.expected) {
                return Ok(Check::Differs(format!("{name} {why}")));
            }
        }
        Ok(Check::Agrees(count))
    }
}

/// Whether the operand has one first part for each row of data.
fn has_rows<D: Card>(spec: &Operand) -> bool {
    spec.dims.first() == Some(&Dim::Of(D::ROWS))
}

impl<'a> Taken<'a> {
    fn of<D: Card>(once: &'a Once<'a>, from: &Extents, at: &Extents, rows: &[u64]) -> Taken<'a> {
        let (spec, shape) = (once.spec, once.spec.shape(at));
        let select = |bytes: &[u8]| match bytes.is_empty() || !has_rows::<D>(spec) {
            true => bytes.to_vec(),
            false => select_rows(spec, from.at(D::ROWS), from, rows, bytes),
        };
        let (before, after) = (select(once.before), select(&once.after));
        let expected = if once.dir == Dir::In || spec.absent {
            Expected::default()
        } else {
            expected(spec, &shape, &before)
        };
        Taken { once, shape, before, after, expected }
    }
}

/// Room for what the card writes, with magnitudes where the output is plain.
fn expected(spec: &Operand, shape: &[u64], before: &[u8]) -> Expected {
    let (codes, scales) = View::size(spec.enc, shape).expect("a case fits 64 bits");
    let bytes =
        if before.is_empty() { vec![0; (codes + scales) as usize] } else { before.to_vec() };
    let plain = matches!(spec.enc, Enc::F32 | Enc::BF16);
    let elements = if plain { (codes * 8 / spec.enc.unit_bits()) as usize } else { 0 };
    Expected { bytes, magnitude: vec![0.0; elements], exact: vec![f64::NAN; elements] }
}

/// Codes, then scales, of `rows` of an operand with `count` of them.
fn select_rows(spec: &Operand, count: u64, at: &Extents, rows: &[u64], bytes: &[u8]) -> Vec<u8> {
    let (codes, _) = View::size(spec.enc, &spec.shape(at)).expect("a case fits 64 bits");
    let (codes, scales) = bytes.split_at(codes as usize);
    let mut selected = Vec::new();
    for part in [codes, scales] {
        let width = part.len() / count.max(1) as usize;
        for row in rows {
            selected.extend_from_slice(&part[*row as usize * width..][..width]);
        }
    }
    selected
}

/// The card's arithmetic on the rows taken.
fn compute<D: Card>(descriptor: &D, taken: &mut [Taken<'_>]) -> Result<()> {
    let group = &Group::of(1, PATIENCE)[0];
    let mut slots = Vec::with_capacity(taken.len());
    for Taken { once, shape, before, expected, .. } in taken {
        let enc = once.spec.enc;
        let codes = View::size(enc, shape).map_or(0, |(codes, _)| codes as usize);
        let codes = if once.spec.absent { 0 } else { codes };
        if once.dir == Dir::In {
            let (codes, scales) = before.split_at(codes);
            slots.push(Slot::In(Tensor::dense(enc, shape, codes, scales)));
            continue;
        }
        let Expected { bytes, magnitude, exact } = expected;
        let (codes, scales) = bytes.split_at_mut(codes);
        let plain = !magnitude.is_empty();
        let out = TensorMut::dense(enc, shape, codes, scales, plain.then_some(&mut magnitude[..]));
        slots.push(Slot::Out(if plain { out.with_exact(exact) } else { out }));
    }
    let io: Host<'_, D> = IoSet::from_slots(&mut slots.into_iter());
    descriptor.compute(io, &Context { group })
}
