//! Card of [`Rotate`].

use crate::{
    Card, Choices, Compute, Context, Host, TensorMut, Tolerance, blocked_row, scalar_row, simd,
    tensor_mut::encode_row, threads,
};
use tandem_hal::num::bf16;
use tandem_hal::{Enc, Extents, Real, Result, Rotate, RotateIo, Row, Sym, Yarn};

/// Cosine and sine of one pair's angle, as f32 holds them.
pub(crate) type Turn = [f32; 2];

/// The rotation of one launch: frequencies once, then the turns of each position.
pub(crate) struct Rotation {
    frequencies: Vec<f32>,
    inverse: bool,
    group: i32,
}

impl Rotation {
    /// Of a descriptor.
    pub(crate) fn of(d: &Rotate) -> Rotation {
        // Larger groups than positions exist put every token at 0.
        let group = i32::try_from(d.group).unwrap_or(i32::MAX);
        Rotation { frequencies: d.frequencies(), inverse: d.inverse, group }
    }

    /// The turn of every pair at `position`; none for padding rows.
    pub(crate) fn turns(&self, position: i32) -> Option<Vec<Turn>> {
        if position < 0 {
            return None;
        }
        let t = (position / self.group * self.group) as f32;
        let turn = |f: &f32| {
            let (sin, cos) = libm::sincos(f64::from(t * f));
            let sin = sin as f32;
            [cos as f32, if self.inverse { -sin } else { sin }]
        };
        Some(self.frequencies.iter().map(turn).collect())
    }
}

/// Rotates one head's values, whose last dims pair up with `turns`; before the rounding.
#[inline(always)]
pub(crate) fn rotate(x: &mut [f64], turns: &[Turn]) {
    let start = x.len() - 2 * turns.len();
    for (pair, turn) in x[start..].as_chunks_mut::<2>().0.iter_mut().zip(turns) {
        // The values are bf16, so narrowing is exact; products and sums are fp32 steps.
        let ([a, b], [cos, sin]) = (pair.map(|v| v as f32), *turn);
        *pair = [a * cos - b * sin, a * sin + b * cos].map(f64::from);
    }
}

/// Rotates one head's bf16 bytes.
#[inline(always)]
fn rotate_bytes(bytes: &mut [u8], turns: &[Turn]) {
    let start = bytes.len() - 4 * turns.len();
    for (pair, turn) in bytes[start..].as_chunks_mut::<4>().0.iter_mut().zip(turns) {
        let [a, b, c, d] = *pair;
        let half = |low, high| f64::from(bf16::to_f32(u16::from_le_bytes([low, high])));
        let mut values = [half(a, b), half(c, d)];
        rotate(&mut values, &[*turn]);
        encode_row(Enc::BF16, pair, &values);
    }
}

/// `|x0 cos| + |x1 sin|` of each turned value, `|x|` of the others.
pub(crate) fn magnitudes(x: &[f64], turns: &[Turn]) -> Vec<f64> {
    let mut terms: Vec<f64> = x.iter().map(|x| x.abs()).collect();
    let start = x.len() - 2 * turns.len();
    for (pair, turn) in terms[start..].as_chunks_mut::<2>().0.iter_mut().zip(turns) {
        let ([a, b], [cos, sin]) = (*pair, turn.map(|v| f64::from(v).abs()));
        *pair = [a * cos + b * sin, a * sin + b * cos];
    }
    terms
}

/// Sine and cosine two ulps off, and a rounding each of product and sum.
pub(crate) const GAMMA: f64 = 4.0 * f32::EPSILON as f64;

/// One head in place. Padding rows and dims that do not turn keep every bit.
fn scalar(turns: Option<&[Turn]>, r: usize, x: &mut TensorMut<'_>) {
    let turns = turns.unwrap_or_default();
    let mut values: Vec<f64> = x.read().row(r).iter().map(|v| f64::from(*v)).collect();
    x.set_magnitude(r, &magnitudes(&values, turns));
    rotate(&mut values, turns);
    let start = values.len() - 2 * turns.len();
    x.set_row_from(r, start, &values[start..]);
    x.set_exact(r, &values);
}

impl Card for Rotate {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let RotateIo { mut x, position } = io;
        let (rotation, heads) = (Rotation::of(self), self.heads as usize);
        for r in 0..x.rows() {
            let turns = rotation.turns(position.int(0, r / heads));
            scalar(turns.as_deref(), r, &mut x);
        }
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    let RotateIo { mut x, position } = io;
                    let (rotation, heads) = (Rotation::of(d), d.heads as usize);
                    let mut rows = x.split_rows();
                    let tokens: Vec<_> = rows.chunks_mut(heads).enumerate().collect();
                    let operations = (20 + 4 * heads) * d.rotary as usize;
                    threads::each(tokens, operations, |(t, heads)| {
                        let Some(turns) = rotation.turns(position.int(0, t)) else { return };
                        simd::vectorised(|| {
                            for (_, bytes) in heads.iter_mut() {
                                rotate_bytes(bytes, &turns);
                            }
                        });
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
        let rotary = choices.pick(&[2, 8, 32, 64]);
        let head_dim = rotary + choices.pick(&[0, 2, 32, 64, 448]);
        let heads = choices.between(1, 5);
        let long = choices.flag();
        let d = Rotate {
            heads,
            head_dim,
            rotary,
            base: Real::new(if long { 160_000.0 } else { 10_000.0 }),
            yarn: long.then(yarn),
            inverse: choices.flag(),
            group: choices.pick(&[1, 2, 4]),
        };
        (d, Extents::of(&[(Sym::Tokens, choices.between(0, 9))]))
    }

    fn edges() -> Vec<(Self, Extents)> {
        let small = Rotate { heads: 1, head_dim: 2, rotary: 2, ..queries(true) };
        let keys = Rotate { heads: 1, ..queries(true) };
        let cases = [
            (queries(false), 1),
            (queries(true), 3),
            (Rotate { inverse: true, ..queries(true) }, 3),
            (Rotate { group: 2, ..keys.clone() }, 65),
            (keys, 0),
            (small, 1),
        ];
        cases.map(|(d, tokens)| (d, Extents::of(&[(Sym::Tokens, tokens)]))).to_vec()
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        let heads = |heads, head_dim| Rotate { heads, head_dim, ..queries(true) };
        let tokens = [1, 6, 32, 128, 8192];
        [heads(64, 512), heads(1, 512), heads(32, 128)]
            .iter()
            .flat_map(|d| tokens.map(|t| (d.clone(), Extents::of(&[(Sym::Tokens, t)]))))
            .collect()
    }
}

/// The model's interpolation.
fn yarn() -> Yarn {
    let real = Real::new;
    Yarn { factor: real(16.0), beta_fast: real(32.0), beta_slow: real(1.0), original: 65_536 }
}

/// A few query heads under either of the model's tables.
pub(crate) fn queries(long: bool) -> Rotate {
    Rotate {
        heads: 4,
        head_dim: 512,
        rotary: 64,
        base: Real::new(if long { 160_000.0 } else { 10_000.0 }),
        yarn: long.then(yarn),
        inverse: false,
        group: 1,
    }
}
