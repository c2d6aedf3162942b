//! Card of [`MlaExpanded`].

use crate::{Card, Choices, Context, Host, Tensor, Tolerance, sum};
use tandem_hal::{Extents, Mla, MlaExpanded, Real, Result, Sym};

/// Keys that row `t` sees.
pub(super) fn seen(visible: &Tensor<'_>, t: usize, keys: usize) -> usize {
    usize::try_from(visible.int(0, t)).unwrap_or(0).min(keys)
}

/// The softmax of scores, in f64 throughout; NaN anywhere makes all of it NaN.
pub(super) fn softmax(scores: &[f64]) -> Vec<f64> {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let terms: Vec<f64> = scores.iter().map(|s| libm::exp(s - largest)).collect();
    let sum: f64 = terms.iter().sum();
    terms.iter().map(|e| e / sum).collect()
}

/// Both forms compute in f64 and round once; what else separates them is far below that rounding.
pub(super) fn tolerance() -> Tolerance {
    Tolerance::Bound { gamma: f64::from(f32::EPSILON) }
}

/// Magnitudes of a head's values: the products behind every expanded value, weighed.
pub(super) fn magnitudes(
    mla: &Mla,
    uv: &Tensor<'_>,
    latent: &Tensor<'_>,
    head: usize,
    weights: &[f64],
) -> Vec<f64> {
    let value = |i: usize| {
        let row = uv.row(head * mla.value as usize + i);
        let terms = weights.iter().enumerate();
        terms.map(|(j, p)| p * sum::dot_magnitude(&row, &latent.row(j))).sum()
    };
    (0..mla.value as usize).map(value).collect()
}

/// Keys `[nope | rope]` and values of one head.
struct Expanded {
    keys: Vec<Vec<f64>>,
    values: Vec<Vec<f64>>,
}

impl Expanded {
    fn of(mla: &Mla, io: &Host<'_, MlaExpanded>, head: usize, count: usize) -> Expanded {
        let up = |weight: &Tensor<'_>, dims: u64, j: usize| -> Vec<f64> {
            let latent = io.latent.row(j);
            let dims = dims as usize;
            (0..dims).map(|i| sum::dot(&weight.row(head * dims + i), &latent)).collect()
        };
        let key = |j: usize| {
            let mut key = up(&io.uk, mla.nope, j);
            key.extend(io.k_rope.row(j).iter().map(|v| f64::from(*v)));
            key
        };
        Expanded {
            keys: (0..count).map(key).collect(),
            values: (0..count).map(|j| up(&io.uv, mla.value, j)).collect(),
        }
    }
}

/// Small sizes of every kind.
pub(super) fn sizes(choices: &mut dyn Choices) -> (Mla, Extents) {
    let mut size = |n: u64| choices.between(1, n);
    let (heads, nope, rope) = (size(3), size(20), 2 * size(4));
    let (latent, value, tokens, keys) = (size(20), size(9), size(4) - 1, size(13) - 1);
    let mla = Mla { heads, nope, rope, latent, value, scale: Real::new(0.25) };
    (mla, Extents::of(&[(Sym::Tokens, tokens), (Sym::Keys, keys)]))
}

/// Sizes at the edges.
pub(super) fn edges() -> Vec<(Mla, Extents)> {
    let mla = |heads, nope, rope, latent, value| Mla {
        heads,
        nope,
        rope,
        latent,
        value,
        scale: Real::new(1.0 / ((nope + rope) as f32).sqrt()),
    };
    let extents = |tokens, keys| Extents::of(&[(Sym::Tokens, tokens), (Sym::Keys, keys)]);
    vec![
        (mla(1, 1, 2, 1, 1), extents(1, 1)),
        (mla(2, 16, 8, 32, 16), extents(0, 4)),
        (mla(2, 16, 8, 32, 16), extents(3, 0)),
        (mla(2, 64, 32, 48, 64), extents(2, 9)),
    ]
}

impl Card for MlaExpanded {
    fn compute(&self, mut io: Host<'_, Self>, _context: &Context<'_>) -> Result<()> {
        let (mla, scale) = (&self.mla, f64::from(self.mla.scale.value()));
        let (heads, keys) = (mla.heads as usize, io.latent.rows());
        let tokens = if io.y.is_empty() { 0 } else { io.visible.cols() };
        let most = (0..tokens).map(|t| seen(&io.visible, t, keys)).max().unwrap_or(0);
        for head in 0..heads {
            let expanded = Expanded::of(mla, &io, head, most);
            for t in 0..tokens {
                let r = t * heads + head;
                let (q, seen) = (io.q.row(r), seen(&io.visible, t, keys));
                let score = |k: &Vec<f64>| scale * sum::total(k.len(), |i| f64::from(q[i]) * k[i]);
                let weights = softmax(&expanded.keys[..seen].iter().map(score).collect::<Vec<_>>());
                let mut y = vec![0.0; mla.value as usize];
                for (p, value) in weights.iter().zip(&expanded.values) {
                    y.iter_mut().zip(value).for_each(|(y, v)| *y += p * v);
                }
                io.y.set_row(r, &y);
                if io.y.wants_magnitude() {
                    let sizes = magnitudes(mla, &io.uv, &io.latent, head, &weights);
                    io.y.set_magnitude(r, &sizes);
                }
            }
        }
        Ok(())
    }

    fn tolerance(&self, _operand: &str) -> Tolerance {
        tolerance()
    }

    fn draw(choices: &mut dyn Choices) -> (Self, Extents) {
        let (mla, extents) = sizes(choices);
        (MlaExpanded { mla }, extents)
    }

    fn edges() -> Vec<(Self, Extents)> {
        edges().into_iter().map(|(mla, extents)| (MlaExpanded { mla }, extents)).collect()
    }
}
