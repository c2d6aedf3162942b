//! Card of [`DenseAttention`].

use crate::tensor_mut::encode_row;
use crate::{Card, Choices, Compute, Context, Host, Tensor, Tolerance, sum, threads};
use crate::{blocked_row, scalar_row};
use std::borrow::Cow;
use tandem_hal::num::bf16;
use tandem_hal::{DenseAttention, DenseAttentionIo, Extents, Real, Result, Row, Sym};

/// Keys and values of a picture, row by row.
struct Picture<'a> {
    k: Vec<Cow<'a, [f32]>>,
    v: Vec<Cow<'a, [f32]>>,
    head_dim: usize,
    scale: f64,
}

impl<'a> Picture<'a> {
    fn of(d: &DenseAttention, k: &Tensor<'a>, v: &Tensor<'a>) -> Picture<'a> {
        let rows = |x: &Tensor<'a>| (0..x.rows()).map(|r| x.row(r)).collect();
        let (head_dim, scale) = (d.head_dim as usize, f64::from(d.scale.value()));
        Picture { k: rows(k), v: rows(v), head_dim, scale }
    }

    /// Columns of head `h`.
    #[inline(always)]
    fn head<'x>(&self, row: &'x [f32], h: usize) -> &'x [f32] {
        &row[h * self.head_dim..][..self.head_dim]
    }

    /// `exp(s - max s)` of every key, rounded to f32.
    #[inline(always)]
    fn weights(&self, q: &[f32], h: usize) -> Vec<f32> {
        let q = self.head(q, h);
        let score = |k: &Cow<'_, [f32]>| (self.scale * sum::dot(q, self.head(k, h))) as f32;
        let scores: Vec<f32> = self.k.iter().map(score).collect();
        // `max` passes over NaN, which comes back through its own exponential.
        let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        scores.iter().map(|s| libm::exp(f64::from(*s) - f64::from(max)) as f32).collect()
    }

    /// One row of the result before rounding, zeros without keys.
    #[inline(always)]
    fn attend(&self, q: &[f32]) -> Vec<f64> {
        let mut row = vec![0.0f64; q.len()];
        if self.k.is_empty() {
            return row;
        }
        for (h, to) in row.chunks_exact_mut(self.head_dim).enumerate() {
            let weights = self.weights(q, h);
            for (w, v) in weights.iter().zip(&self.v) {
                let w = f64::from(bf16::round_f32(*w));
                for (to, v) in to.iter_mut().zip(self.head(v, h)) {
                    *to += w * f64::from(*v);
                }
            }
            let mass: f64 = weights.iter().map(|w| f64::from(*w)).sum();
            to.iter_mut().for_each(|to| *to /= mass);
        }
        row
    }

    /// What [`GAMMA`] is a factor of. Two roundings of a weight to bf16 (one may be against a
    /// running maximum) differ by 2^-7 of it; a weight inherits the error of its score and of the
    /// largest; sums over keys run in fp32, in pieces.
    fn magnitudes(&self, q: &[f32]) -> Vec<f64> {
        let mut row = vec![0.0f64; q.len()];
        for (h, to) in row.chunks_exact_mut(self.head_dim).enumerate() {
            let weights = self.weights(q, h);
            let size = |k: &[f32]| sum::dot_magnitude(self.head(q, h), self.head(k, h));
            // A key of no weight may have a score without bounds.
            let heavy = weights.iter().zip(&self.k).filter(|(w, _)| **w > 0.0);
            let largest = heavy.map(|(_, k)| size(k)).fold(0.0, f64::max) * self.scale.abs();
            let score = (self.head_dim.div_ceil(32) as f64 + 8.0) * largest;
            let sums = self.k.len() as f64 / 16.0 + 8.0;
            let each = 2f64.powi(-7) / GAMMA + 4.0 * score + sums;
            let flushed = f64::from(f32::MIN_POSITIVE) / GAMMA;
            let mass: f64 = weights.iter().map(|w| f64::from(*w)).sum();
            for (w, v) in weights.iter().zip(&self.v) {
                let share = (f64::from(*w) * each + flushed) / mass;
                for (to, v) in to.iter_mut().zip(self.head(v, h)) {
                    *to += share * f64::from(v.abs());
                }
            }
        }
        row
    }
}

/// [`Picture::attend`] as an operation, compiled for the vector unit it is dispatched to.
struct Attend<'a> {
    picture: &'a Picture<'a>,
    q: &'a [f32],
}

impl pulp::WithSimd for Attend<'_> {
    type Output = Vec<f64>;
    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> Vec<f64> {
        self.picture.attend(self.q)
    }
}

/// An ulp of fp32.
const GAMMA: f64 = f32::EPSILON as f64;

fn case(heads: u64, head_dim: u64, tokens: u64, keys: u64) -> (DenseAttention, Extents) {
    let scale = Real::new(1.0 / (head_dim as f32).sqrt());
    let extents = Extents::of(&[(Sym::Tokens, tokens), (Sym::Keys, keys)]);
    (DenseAttention { heads, head_dim, scale }, extents)
}

impl Card for DenseAttention {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let DenseAttentionIo { q, k, v, mut y } = io;
        let picture = Picture::of(self, &k, &v);
        for t in 0..q.rows() {
            y.set_row(t, &picture.attend(&q.row(t)));
            if y.wants_magnitude() {
                y.set_magnitude(t, &picture.magnitudes(&q.row(t)));
            }
        }
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    let DenseAttentionIo { q, k, v, mut y } = io;
                    let (picture, enc) = (Picture::of(d, &k, &v), y.enc);
                    // A dot product and a share of the sum for each key and column.
                    let operations = 2 * k.rows() * q.cols();
                    threads::each(y.split_rows(), operations, |(t, bytes)| {
                        let row = q.row(t);
                        let attend = Attend { picture: &picture, q: &row };
                        let values = pulp::Arch::new().dispatch(attend);
                        encode_row(enc, bytes, &values);
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
        let (heads, head_dim) = (choices.between(1, 3), choices.pick(&[1, 4, 8, 13, 32, 64]));
        case(heads, head_dim, choices.between(0, 9), choices.pick(&[1, 0, 2, 9, 31, 33, 70]))
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 1, 1, 1), case(2, 8, 3, 0), case(2, 8, 0, 3), case(4, 32, 20, 129)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1610, 9198].iter().map(|t| case(16, 64, *t, *t)).collect()
    }
}
