//! Card of [`MhcMixes`].

use super::streams::side_by_side;
use crate::ops::{gemm::linear, norm::rms};
use crate::{
    Card, Choices, Compute, Context, Host, Tensor, TensorMut, Tolerance, blocked_row, scalar_row,
    simd, sum, threads,
};
use std::borrow::Cow;
use tandem_hal::{Extents, MhcMixes, MhcMixesIo, Real, Result, Row, Sym};

/// The operands that all tokens share.
struct Mixer<'a> {
    streams: usize,
    iterations: u64,
    eps: f64,
    norm_eps: Real,
    projection: Vec<Cow<'a, [f32]>>,
    base: Cow<'a, [f32]>,
    scale: Cow<'a, [f32]>,
}

impl<'a> Mixer<'a> {
    fn new(d: &MhcMixes, projection: &Tensor<'a>, base: &Tensor<'a>, scale: &Tensor<'a>) -> Self {
        Mixer {
            streams: d.streams as usize,
            iterations: d.iterations,
            eps: f64::from(d.eps.value()),
            norm_eps: d.norm_eps,
            projection: (0..projection.rows()).map(|i| projection.row(i)).collect(),
            base: base.row(0),
            scale: scale.row(0),
        }
    }

    /// The scale of coefficient `i`: pre, post, comb.
    fn scale(&self, i: usize) -> f64 {
        f64::from(self.scale[(i / self.streams).min(2)])
    }

    /// Pre, post and comb of one token, in this order; `to` has one place for each coefficient.
    #[inline(always)]
    fn mix(&self, v: &[f32], to: &mut [f64]) {
        let rstd = f64::from(rms::rstd(v, self.norm_eps));
        for (i, (to, row)) in to.iter_mut().zip(&self.projection).enumerate() {
            let m = sum::in_f32_range(sum::dot(row, v)) * rstd;
            *to = m * self.scale(i) + f64::from(self.base[i]);
        }
        let (gates, comb) = to.split_at_mut(2 * self.streams);
        let (pre, post) = gates.split_at_mut(self.streams);
        pre.iter_mut().for_each(|v| *v = sigmoid(*v) + self.eps);
        post.iter_mut().for_each(|v| *v = 2.0 * sigmoid(*v));
        sinkhorn(comb, self.streams, self.iterations, self.eps);
    }

    /// What the bounds of `mixes` are stated in. A logit's own magnitude is that of its product, as
    /// often again for the root, and its base. A sigmoid's slope is a quarter at most; `log C` moves
    /// by at most `4 iterations` times what the largest logit does, as each of the two steps of an
    /// iteration is a log-sum-exp, which passes on no more than it gets.
    fn magnitudes(&self, v: &[f32], mixes: &[f64]) -> Vec<f64> {
        let rstd = f64::from(rms::rstd(v, self.norm_eps));
        let logit = |i: usize| {
            let product = sum::dot_magnitude(&self.projection[i], v) * rstd;
            2.0 * product * self.scale(i).abs() + f64::from(self.base[i].abs())
        };
        let logits: Vec<f64> = (0..mixes.len()).map(logit).collect();
        let (s, steps) = (self.streams, 4.0 * self.iterations as f64);
        let largest = logits[2 * s..].iter().copied().fold(0.0, f64::max);
        let magnitude = |(i, mix): (usize, &f64)| match i / s {
            0 => mix.abs() + logits[i] / 4.0,
            1 => mix.abs() + logits[i] / 2.0,
            _ => mix.abs() * steps * (1.0 + largest),
        };
        mixes.iter().enumerate().map(magnitude).collect()
    }
}

/// `1 / (1 + e^-x)`.
fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

/// Softmax of every row, then columns and rows in turn divided by their sums, columns last.
pub(super) fn sinkhorn(comb: &mut [f64], streams: usize, iterations: u64, eps: f64) {
    for row in comb.chunks_exact_mut(streams) {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter_mut().for_each(|v| *v = libm::exp(*v - largest));
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|v| *v = *v / sum + eps);
    }
    divide_columns(comb, streams, eps);
    for _ in 1..iterations {
        for row in comb.chunks_exact_mut(streams) {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|v| *v /= sum + eps);
        }
        divide_columns(comb, streams, eps);
    }
}

fn divide_columns(comb: &mut [f64], streams: usize, eps: f64) {
    for k in 0..streams {
        let sum: f64 = comb.iter().skip(k).step_by(streams).sum();
        comb.iter_mut().skip(k).step_by(streams).for_each(|v| *v /= sum + eps);
    }
}

/// The three outputs.
struct Outputs<'a> {
    pre: TensorMut<'a>,
    post: TensorMut<'a>,
    comb: TensorMut<'a>,
}

impl<'a> Outputs<'a> {
    /// Hands token `t` to `set` output by output: tensor, row, and its share of `values`.
    fn each_row(&mut self, t: usize, values: &[f64], set: fn(&mut TensorMut<'a>, usize, &[f64])) {
        let s = self.pre.cols();
        set(&mut self.pre, t, &values[..s]);
        set(&mut self.post, t, &values[s..2 * s]);
        for (j, row) in values[2 * s..].chunks_exact(s).enumerate() {
            set(&mut self.comb, t * s + j, row);
        }
    }
}

fn case(streams: u64, width: u64, tokens: u64) -> (MhcMixes, Extents) {
    let (eps, norm_eps) = (Real::new(1e-6), Real::new(1e-20));
    let d = MhcMixes { streams, width, iterations: 20, eps, norm_eps };
    (d, Extents::of(&[(Sym::Tokens, tokens)]))
}

impl Card for MhcMixes {
    fn compute(&self, io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let MhcMixesIo { streams, projection, base, scale, pre, post, comb } = io;
        let mixer = Mixer::new(self, &projection, &base, &scale);
        let mut outputs = Outputs { pre, post, comb };
        let mut mixes = vec![0.0; mixer.projection.len()];
        for t in 0..streams.rows() / mixer.streams {
            let v = side_by_side(&streams, mixer.streams, t);
            mixer.mix(&v, &mut mixes);
            outputs.each_row(t, &mixes, TensorMut::set_row);
            if [&outputs.pre, &outputs.post, &outputs.comb].iter().any(|o| o.wants_magnitude()) {
                outputs.each_row(t, &mixer.magnitudes(&v, &mixes), TensorMut::set_magnitude);
            }
        }
        Ok(())
    }

    fn rows() -> &'static [Row<Self, Compute<Self>>] {
        const {
            &[
                blocked_row::<Self>(|d, io, _| {
                    let MhcMixesIo { streams, projection, base, scale, pre, post, comb } = io;
                    let mixer = Mixer::new(d, &projection, &base, &scale);
                    let (n, k) = (mixer.projection.len(), projection.cols());
                    let mut mixes = vec![0.0; streams.rows() / mixer.streams * n];
                    let tokens: Vec<_> = mixes.chunks_mut(n).enumerate().collect();
                    threads::each(tokens, n * k / 2, |(t, to)| {
                        simd::vectorised(|| {
                            mixer.mix(&side_by_side(&streams, mixer.streams, t), to);
                        });
                    });
                    let mut outputs = Outputs { pre, post, comb };
                    for (t, mixes) in mixes.chunks(n).enumerate() {
                        outputs.each_row(t, mixes, TensorMut::set_row);
                    }
                    Ok(())
                }),
                scalar_row::<Self>(),
            ]
        }
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        linear::tolerance(self.streams * self.width)
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (d, extents) =
            case(choices.between(1, 5), choices.between(1, 130), choices.between(0, 9));
        (MhcMixes { iterations: choices.pick(&[20, 1, 2]), ..d }, extents)
    }

    fn edges() -> Vec<(Self, Extents)> {
        vec![case(1, 1, 1), case(4, 32, 0), case(4, 100, 3), case(4, 5120, 2), case(4, 64, 65)]
    }

    fn bench_shapes() -> Vec<(Self, Extents)> {
        [1, 6, 32, 128, 8192].map(|tokens| case(4, 5120, tokens)).to_vec()
    }
}
