//! Card of [`Swiglu`].

use super::experts;
use crate::{
    Card, Choices, Compute, Context, Host, Tolerance, blocked_row, scalar_row,
    tensor_mut::encode_row, threads,
};
use tandem_hal::{Extents, Real, Result, Row, Swiglu, SwigluIo};

/// The clamped inputs of one unit. NaN passes, as it compares with nothing.
fn clamped(gate: f32, up: f32, limit: f32) -> (f64, f64) {
    let (mut gate, mut up) = (gate, up);
    if limit > 0.0 {
        gate = if gate > limit { limit } else { gate };
        up = if up > limit { limit } else { up };
        up = if up < -limit { -limit } else { up };
    }
    (f64::from(gate), f64::from(up))
}

/// `(g sigmoid(g)) u w` before rounding.
#[inline(always)]
pub(super) fn unit(gate: f32, up: f32, limit: f32, weight: f64) -> f64 {
    let (g, u) = clamped(gate, up, limit);
    g * (1.0 / (1.0 + libm::exp(-g))) * u * weight
}

/// Fp32 loses a few ulps in the sigmoid and three products, and `|g|` half-ulps in the argument of
/// the exponential; a sigmoid below the smallest normal number may be flushed.
const GAMMA: f64 = f32::EPSILON as f64 / 2.0;

fn magnitude(gate: f32, up: f32, limit: f32, weight: f64) -> f64 {
    let (g, u) = clamped(gate, up, limit);
    let flushed = (g * u * weight).abs() * 2f64.powi(-126) / GAMMA;
    unit(gate, up, limit, weight).abs() * (g.abs() + 8.0) + flushed
}

/// A unit costs about as much as so many additions.
pub(super) const OPERATIONS: usize = 20;

/// `f` of each unit of a row: gate, up, weight.
fn units(
    d: &Swiglu,
    x: &[f32],
    weight: impl Fn(usize) -> f64,
    f: fn(f32, f32, f32, f64) -> f64,
) -> Vec<f64> {
    let (inter, limit) = (d.inter as usize, d.limit.value());
    let slots = x.chunks_exact(2 * inter).enumerate();
    let of = |(i, x): (usize, &[f32])| {
        let w = weight(i);
        (0..inter).map(|n| f(x[n], x[inter + n], limit, w)).collect::<Vec<_>>()
    };
    slots.flat_map(of).collect()
}

fn case(slots: u64, inter: u64, limit: f32, weighted: bool, tokens: u64) -> (Swiglu, Extents) {
    let limit = Real::new(limit);
    (Swiglu { slots, inter, limit, weighted }, experts::tokens(tokens))
}

impl Card for Swiglu {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let SwigluIo { x, weight, mut y } = io;
        for t in 0..if y.is_empty() { 0 } else { y.rows() } {
            let w = |i| if self.weighted { f64::from(weight.at(t, i)) } else { 1.0 };
            let row = x.row(t);
            y.set_row(t, &units(self, &row, w, unit));
            if y.wants_magnitude() {
                y.set_magnitude(t, &units(self, &row, w, magnitude));
            }
        }
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    let SwigluIo { x, weight, mut y } = io;
                    let enc = y.enc;
                    let operations = OPERATIONS * y.cols();
                    threads::each(y.split_rows(), operations, |(t, bytes)| {
                        let w = |i| if d.weighted { f64::from(weight.at(t, i)) } else { 1.0 };
                        encode_row(enc, bytes, &units(d, &x.row(t), w, unit));
                    });
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        Tolerance::Bound { gamma: GAMMA }
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (slots, inter) = (choices.between(1, 4), choices.pick(&[1, 7, 32, 64, 100]));
        let limit = choices.pick(&[10.0, 0.0, 0.5]);
        case(slots, inter, limit, choices.flag(), choices.between(0, 9))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![
            case(1, 1, 10.0, false, 1),
            case(6, 32, 10.0, true, 0),
            case(6, 288, 10.0, true, 3),
            case(1, 64, 0.0, false, 65),
            case(2, 33, 0.5, true, 7),
        ]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        let tokens = [1, 6, 128, 8192];
        let shapes = [(6, true), (1, false)];
        let each = |(slots, weighted)| tokens.map(|t| case(slots, 2304, 10.0, weighted, t));
        shapes.into_iter().flat_map(each).collect()
    }
}
